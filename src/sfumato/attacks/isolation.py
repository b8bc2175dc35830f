"""Isolation: counts that lead to a description of exactly one person, whoever that is.

Each count is over a crowd. But the questions may follow the answers: of everybody, how many fall on this side
of an arbitrary line; of those on the smaller side, how many fall on this side of the next line? In exact
counts such a path ends at one person, and goes on to a description that would fit nobody else in the world.
That is singling out by predicates (Cohen and Nissim 2020), which the law on data protection asks about.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato.anonymity.given import whole
from sfumato.attacks._asking import Bits, Subset, asked, numbers_given
from sfumato.attacks._calls import Chance
from sfumato.attacks._power import stated, tried
from sfumato.attacks.matching import named, read
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer
from sfumato.random import simulation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["isolation"]

_SURE = 10  # lines beyond those that part the people: a description chosen blindly isolates 1 time in 1,000
_MOST = 60  # lines: the bits of a hash that are used

Hashes: TypeAlias = npt.NDArray[np.uint64]


def isolation(
    people: Source,
    ask: Subset,
    *,
    columns: str | Sequence[str] | None = None,
    questions: int | None = None,
    trials: int = 100,
    seed: int | None = None,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How often counts lead to a description that fits exactly one of the people.

    In each trial lines are drawn at random through everything that a row can be: a secret hash of the row,
    one bit a line. The first question is how many people there are; each further one, how many of those
    described so far lie on one side of the next line. The path takes the smaller side with anybody on it.
    The description at its end has one bit for each line, so that it fits a person of the population with
    probability 2^−lines, and hardly ever two people. It is a hit if it fits exactly one of the people.

    Steward-only: descriptions are counted on real people, and nothing pays for that.

    Baseline: a description with as many bits that was chosen without any answer. Among n people who all
    differ it fits exactly one with probability n·w·(1 − w)^(n − 1), where w = 2^−lines. People who are alike
    in every column cannot be told apart, and nothing isolates one of them.

    Power: exact counts, which have to be noticed.

    Args:
        people: Who the counts are about: one row a person.
        ask: Answers how many of a set of people, marked True, there are. It is called `questions` times in a
            trial.
        columns: What descriptions are about; by default all columns.
        questions: How many are asked in a trial; by default log₂ n and eleven more. More of them make a
            narrower description.
        trials: How often all of that is done, each time with other lines.
        seed: For the same lines again; by default others each time.
        target: What is attacked, in words.
        confidence: Of all intervals.

    Example:
        ```python
        isolation(people, lambda who: int(who.sum())).works       # exact counts: every time
        one = sf.Geometric(epsilon=1 / 21, sensitivity=1)         # 21 answers: epsilon 1 in all
        isolation(people, lambda who: one.release(int(who.sum())), questions=21).works    # False
        ```

    Privacy:
        Claim: where all answers of a trial are (ε, δ)-DP for a row, somebody is isolated with probability at
        most e^ε·n·w + n·δ. Proof: that the description fits row i and no other is at most e^ε times as
        likely (plus δ) as on answers without row i. There it follows from the other rows alone. If one of
        them is like row i, it fits both or neither; if none is, the hash of row i has not been used, and it
        fits with probability w. Add up over the n rows. Source: Cohen, Nissim 2020, "Towards formalizing the
        GDPR's notion of singling out", who also have the attack on exact counts. The hash is taken for a
        random function.

    Raises:
        InvalidParameter: for a column that is not there, no rows, too many questions, or if ask raises or
            gives something other than a finite number.
        SourceUnusable: if the table cannot be read.
        BudgetExceeded: if that is what ask raises.
    """
    names = whole(people)[0].column_names if columns is None else named(columns, "columns")
    rows = read(people, names)
    count = rows.num_rows
    if not count:
        raise InvalidParameter("people must have at least one row.")
    often = as_integer(trials, "trials")
    total = (
        1 + _SURE + math.ceil(math.log2(count)) if questions is None else as_integer(questions, "questions")
    )
    if not 2 <= total <= _MOST + 1:
        raise InvalidParameter(f"questions must be from 2 to {_MOST + 1}.")
    marks, lines, random = _marks(rows), total - 1, simulation(seed)

    def reached(answer: Callable[[Bits], float], keys: Sequence[int]) -> Tally:
        found = 0
        for key in keys:
            hashes = _mixed(marks, key)
            found += int(_followed(hashes, lines, answer).sum()) == 1
        return Tally(found, len(keys))

    def drawn(chance: Chance) -> list[int]:
        return [int(key) for key in chance.integers(2**62, size=often)]

    weight = 2.0**-lines
    outcome = Outcome(
        "isolation",
        "a description fits exactly one person",
        reached(lambda who: _told(ask, who), drawn(random)),
        _blind(marks, weight),
        "a description of the same weight, chosen without any answer",
        target,
        confidence,
        {"questions": total, "weight": weight, "people": count},
    )

    def twin(chance: Chance) -> Outcome:
        return replace(outcome, reached=reached(lambda who: float(np.count_nonzero(who)), drawn(chance)))

    return stated(
        outcome,
        lambda: tried("exact counts", twin, random, cells=often * total * count),
        advice="give more columns, so that people differ, or more trials",
    )


def _followed(hashes: Hashes, lines: int, answer: Callable[[Bits], float]) -> Bits:
    """Who fits the description that the answers lead to."""
    inside: Bits = np.ones(len(hashes), dtype=bool)
    size = answer(inside)
    for line in range(lines):
        side = inside & ((hashes >> np.uint64(line)) & np.uint64(1)).astype(bool)
        there = answer(side)
        # Half a person is the least that may be somebody; where both sides seem empty, the fuller one.
        sizes = sorted([(there, True), (size - there, False)])
        size, on_side = next((each for each in sizes if each[0] >= 0.5), sizes[-1])
        inside = side if on_side else inside & ~side
    return inside


def _told(ask: Subset, who: Bits) -> float:
    told = numbers_given(asked(ask, "ask", who.copy()), "what ask answers")
    if len(told) != 1:
        raise InvalidParameter("ask must answer with one number for a set of people.")
    return float(told[0])


def _marks(rows: pa.Table) -> Hashes:
    """A number for each row, the same for rows that are alike."""
    values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    digests = [hashlib.blake2b(repr(row).encode(), digest_size=8).digest() for row in values]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def _mixed(marks: Hashes, key: int) -> Hashes:
    """Other bits for each key (the finaliser of SplitMix64: Steele, Lea, Flood 2014)."""
    mixed = marks ^ np.uint64(key)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _blind(marks: Hashes, weight: float) -> float:
    """How often a description of this weight isolates somebody if it knows nothing of them."""
    _, sizes = np.unique(marks, return_counts=True)
    alone = int((sizes == 1).sum())
    return min(1.0, alone * weight * (1 - weight) ** (len(sizes) - 1))
