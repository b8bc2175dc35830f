"""Planting leaks: the twins on which an attack shows what it would have noticed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sfumato.anonymity.codes import Codes
from sfumato.attacks._calls import Chance
from sfumato.attacks.matching import together_typed
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.attacks.percent import percent
from sfumato.attacks.power import Power
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "LEAK",
    "beside_guess",
    "certain_power",
    "copied",
    "counted_power",
    "exchanged",
    "leak_given",
    "one_in",
    "planted",
    "replaced",
    "stated",
    "tried",
]

LEAK = 0.1
"""The share of people whose data a planted twin gives away, unless another is given."""

_TWINS = 20
_LONG_TWINS = 5  # where one takes long; large tables show a leak more clearly, too
_LONG = 20_000_000  # cells that a twin looks at
_MISSES = 5  # after so many the rest would change nothing

Twin: TypeAlias = Callable[[Chance], Outcome | None]
"""The attack on a twin with a leak of its own; None where the twin cannot be attacked at all."""


def stated(outcome: Outcome, power: Callable[[], Power], *, advice: str = "") -> Outcome:
    """The outcome with its power, and without a verdict where it is an all-clear that nothing vouches for.

    Args:
        outcome: What the attack reached. If it works, or is undecided for another reason, it stays as it is.
        power: Measures the power; called only where an all-clear depends on it.
        advice: What would give the attack more power: "give more people".
    """
    if outcome.undecided or outcome.beats:
        return outcome
    own = power()
    if own.enough:
        return replace(outcome, power=own)
    only = "only " if not isinstance(own.noticed, Tally) or own.noticed.hits else ""
    why = f"this attack would notice a planted leak ({own.leak}) {only}{own.words}"
    more = advice or "give more people, or a larger leak"
    return replace(outcome, power=own, undecided=f"{why}, so that its failure says nothing; {more}.")


def tried(leak: str, twin: Twin, random: Chance, *, cells: float = 0) -> Power:
    """The power by trial: the attack on so many twins, each with a leak planted again.

    Args:
        leak: What is planted, in words.
        twin: The attack on one of them.
        random: Draws who is leaked.
        cells: How much one twin looks at: long ones are fewer.
    """
    noticed = missed = 0
    for _ in range(_TWINS if cells <= _LONG else _LONG_TWINS):
        outcome = twin(random)
        if outcome is not None and outcome.beats:
            noticed += 1
        else:
            missed += 1
        if missed == _MISSES:
            break
    return Power(leak, Tally(noticed, noticed + missed))


def beside_guess(outcome: Outcome, leaked: Tally | None, random: Chance) -> Outcome | None:
    """The outcome of a twin in which some people are leaked and all others are hit as often as by a guess.

    What was attacked may itself leak, so that the twin takes nothing from it but how often a guess hits.

    Args:
        outcome: The outcome over everybody.
        leaked: How many of the leaked people are hit; None where nobody can be.
        random: Draws the others.
    """
    if leaked is None or outcome.guess is None:
        return None
    rest, guess, rate = max(0, outcome.reached.trials - leaked.trials), outcome.guess, outcome.baseline
    if isinstance(guess, Tally):
        rate = (guess.hits + 0.5) / (guess.trials + 1)  # 0 of 100 is not certainty
        guess = Tally(int(random.binomial(guess.trials, rate)), guess.trials)
    reached = Tally(leaked.hits + int(random.binomial(rest, rate)), leaked.trials + rest)
    return replace(outcome, reached=reached, guess=guess)


def counted_power(outcome: Outcome, share: float, leak: str) -> Power:
    """The power of counting alone, where whoever is leaked is a hit for sure and all others as a guess is.

    Args:
        outcome: The outcome, whose number of trials and guess count.
        share: The share of trials that are leaked; at least one is.
        leak: What that is, in words.
    """
    from scipy.stats import binom

    trials = outcome.reached.trials
    leaked = max(1, min(trials, round(share * trials)))
    most = round(outcome.baseline_interval[1] * trials)
    # P(leaked + X > most) for X binomial over the others.
    chance = float(binom.sf(most - leaked, trials - leaked, outcome.baseline)) if leaked <= most else 1.0
    return Power(leak, min(1.0, chance), "whoever is leaked is a hit, and hits are counted")


def certain_power(leak: str, why: str) -> Power:
    """The power of an attack that cannot miss a leak of its kind."""
    return Power(leak, 1.0, why)


def leak_given(leak: float) -> float:
    """The share of people to leak, checked.

    Raises:
        InvalidParameter: if it is not a share above 0.
    """
    if isinstance(leak, bool) or not isinstance(leak, int | float) or not 0 < leak <= 1:
        raise InvalidParameter(
            "leak is the share of people that a planted twin gives away; above 0, at most 1."
        )
    return float(leak)


def one_in(share: float, what: str = "person") -> str:
    """A share of people in words: "one person in ten", "35% of the people"."""
    several = {"person": "people"}.get(what, f"{what}s")
    if share == 1:
        return f"all {several}"
    named = {2: "two", 3: "three", 4: "four", 5: "five", 10: "ten", 20: "twenty", 100: "a hundred"}
    often = named.get(round(1 / share)) if math.isclose(share * round(1 / share), 1) else None
    return f"one {what} in {often}" if often else f"{percent(share)} of the {several}"


def copied(share: float) -> str:
    """A leak of whole rows in words: "one person in ten copied into the table"."""
    return f"{one_in(share)} copied into the table"


def replaced(rows: int, people: int, share: float, random: Chance) -> tuple[Codes, Codes]:
    """Which rows of a table stay where the rows of a share of the people take the place of the others.

    Args:
        rows: How many the table has.
        people: How many there are.
        share: Of the people.
        random: Draws both.

    Returns:
        The rows that stay, and whose rows are planted.
    """
    count = min(max(1, round(share * people)), rows)
    kept: Codes = np.sort(random.permutation(rows)[count:])
    own: Codes = random.permutation(people)[:count]
    return kept, own


def planted(
    released: pa.Table, people: pa.Table, names: Sequence[str], share: float, random: Chance
) -> tuple[pa.Table, Codes, Codes]:
    """The table with some of its rows replaced by people's own, as they are.

    Args:
        released: The table.
        people: Whose rows to plant.
        names: The columns, of both.
        share: Of the people.
        random: Draws whose rows go in, and which ones they replace.

    Returns:
        As many rows as before, first those that stayed; which those are; and whose the planted ones are.
    """
    kept, own = replaced(released.num_rows, people.num_rows, share, random)
    return exchanged(released, people, names, kept, own), kept, own


def exchanged(
    released: pa.Table, people: pa.Table, names: Sequence[str], kept: Codes, own: Codes
) -> pa.Table:
    """Some rows of the table, and below them the rows of some people."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name in names:
        old, new = (table.column(name) for table in (released, people))
        if old.null_count == len(old):  # the type of a column without values says nothing
            old = pa.chunked_array([pa.nulls(len(old), new.type)])
        old, new = together_typed([old, new])
        columns[name] = pa.chunked_array(
            [*old.take(pa.array(kept)).chunks, *new.take(pa.array(own)).chunks], type=old.type
        )
    return pa.table(columns)
