"""Linkage from a few ratings or places: tables in which nobody is like anybody else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.anonymity.codes import Codes, classes_of, encode
from sfumato.attacks._calls import Chance
from sfumato.attacks._power import LEAK, beside_guess, leak_given, one_in, stated, tried
from sfumato.attacks.matching import Flags, beside, grouped, named, one_name, read, together_typed
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.random import simulation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["sparse_linkage"]

Floats = npt.NDArray[np.float64]
_BLOCK = 4_000_000  # scores that are held at once
_DAY = 86_400e6  # microseconds


def sparse_linkage(
    known: Source,
    released: Source,
    *,
    person: str,
    item: str | Sequence[str],
    value: str | None = None,
    tolerance: float = 0.0,
    eccentricity: float = 1.5,
    truth: str | None = None,
    control: Source | None = None,
    leak: float = LEAK,
    seed: int | None = None,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How many people are found by a few of their ratings, purchases or places.

    The attack of Narayanan and Shmatikov (2008) on the Netflix ratings. Each person of the released table
    scores the sum, over the known items that they have too, of 1 / log(1 + people who have the item): what
    is rare weighs more. The best is taken for the person only if it stands out, by at least `eccentricity`
    standard deviations of all scores above the second best; so an attacker mostly knows whether they are
    right.

    ```python
    sparse_linkage(reviews, ratings, person="user", item="film", value="stars", tolerance=1, truth="id").works
    sparse_linkage(visits, traces, person="phone", item=["cell", "hour"], truth="id").works
    sparse_linkage(reviews, private, person="user", item="film", control=strangers).within    # epsilon = 1
    ```

    Steward-only: the outcome counts people, and with `truth` it compares with the truth.

    Baseline: a random person of the table, 1 / n. With `control`, the same attack on people of the same
    kind who are not in the data: right for synthetic and private tables, where a match that strangers find
    as often says nothing about anybody.

    Power: what is known of `leak` of the people is planted in the table, in place of some of its people, and
    has to be noticed.

    Args:
        known: What an attacker knows: a row for each item of a person.
        released: The table, laid out alike; its `person` is a pseudonym.
        person: The column that tells people apart, in each table by itself.
        item: The column, or columns, of the item: a film; a place and an hour.
        value: A column of numbers or days that also has to agree, such as stars; by default having the item
            is enough.
        tolerance: How far the values may be apart, in numbers or days.
        eccentricity: By how many standard deviations the best has to beat the second best.
        truth: A column of both that says who is who, kept by the steward: then a hit is a right match.
            Without it, a hit is a match.
        control: What is known of people who are not in the data.
        leak: The share of people who are planted to see whether the attack would notice.
        seed: For the same planted people again; by default others each time.
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for a column that is not there, values that are neither numbers nor days, a released
            table of fewer than two people, or `truth` together with `control`.
        SourceUnusable: if a table cannot be read.
    """
    _check(tolerance, eccentricity, truth, control)
    share = leak_given(leak)
    for name, what in ((person, "person"), (value, "value"), (truth, "truth")):
        if name is not None or what == "person":
            one_name(name, what)
    items = named(item, "item")
    shared = [*items, *([value] if value is not None else [])]
    columns = list(dict.fromkeys([person, *shared, *([truth] if truth is not None else [])]))
    if len(columns) < 1 + len(shared):
        raise InvalidParameter("person, item and value must be different columns.")
    rows = read(released, columns)
    aware = read(known, columns)
    strangers = None if control is None else read(control, [person, *shared])

    def claims(some: pa.Table, table: pa.Table) -> tuple[_Claims, Flags]:
        """Whom everybody is taken for, and who is found."""
        taken = _claims(some, table, person, items, value, tolerance, eccentricity)
        claimed = taken.best >= 0
        if truth is None or some is strangers:
            return taken, claimed
        ids = beside(some, table, truth)
        return taken, claimed & (ids.first[taken.first_known] == ids.second[taken.first_released][taken.best])

    taken, hits = claims(aware, rows)
    if taken.candidates < 2:
        raise InvalidParameter("The released table has one person; a match needs others to stand out from.")
    guess: Tally | float = 1 / taken.candidates
    if strangers is not None:
        apart = claims(strangers, rows)[1]
        guess = Tally(int(apart.sum()), len(apart))
    outcome = Outcome(
        "sparse linkage",
        "a person is found, and rightly so" if truth is not None else "a person is found",
        Tally(int(hits.sum()), len(hits)),
        guess,
        "a random person" if control is None else "the same attack on people who are not in the data",
        target,
        confidence,
        {
            "candidates": taken.candidates,
            "found": int((taken.best >= 0).sum()),
            "eccentricity": float(eccentricity),
        },
    )

    def twin(random: Chance) -> Outcome | None:
        table, own = _planted(aware, rows, person, columns, share, random)
        leaked = claims(own, table)[1]
        return beside_guess(outcome, Tally(int(leaked.sum()), len(leaked)), random)

    cells = outcome.reached.trials * share * taken.candidates * 10
    words = f"all that is known of {one_in(share)}"
    return stated(outcome, lambda: tried(words, twin, simulation(seed), cells=cells), advice=_MORE)


_MORE = "give more people, more of what is known of each, or a larger leak"


def _planted(
    known: pa.Table, released: pa.Table, person: str, columns: Sequence[str], share: float, random: Chance
) -> tuple[pa.Table, pa.Table]:
    """The released table with what is known of some people in place of some others, and what that is."""
    import pyarrow as pa

    who, first = _people(known, person)
    whose, pseudonyms = _people(released, person)
    count = min(max(1, round(share * len(first))), len(pseudonyms) - 1)
    leaked, replaced = random.permutation(len(first))[:count], random.permutation(len(pseudonyms))[:count]
    under = np.full(len(first), -1)
    under[leaked] = pseudonyms[replaced]
    kept = np.flatnonzero(~np.isin(whose, replaced))
    own = np.flatnonzero(under[who] >= 0)
    by_name: dict[str, Any] = {}
    for name in columns:
        # Under the pseudonym of whom they replace.
        source = released if name == person else known
        places = under[who[own]] if name == person else own
        old, new = together_typed([released.column(name), source.column(name)])
        chunks = [*old.take(pa.array(kept)).chunks, *new.take(pa.array(places)).chunks]
        by_name[name] = pa.chunked_array(chunks, type=old.type)
    return pa.table(by_name), known.take(pa.array(own))


@dataclass(frozen=True, slots=True, eq=False)
class _Claims:
    """Whom an attacker takes each known person for: the number of a candidate, -1 for nobody."""

    best: Codes
    candidates: int
    first_known: Codes
    first_released: Codes


def _check(tolerance: float, eccentricity: float, truth: str | None, control: Source | None) -> None:
    for number, name in ((tolerance, "tolerance"), (eccentricity, "eccentricity")):
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < math.inf:
            raise InvalidParameter(f"{name} must be a finite number from 0 on.")
    if truth is not None and control is not None:
        raise InvalidParameter("Give truth or control, not both: people of the control have no true match.")


def _claims(
    known: pa.Table,
    released: pa.Table,
    person: str,
    items: Sequence[str],
    value: str | None,
    tolerance: float,
    eccentricity: float,
) -> _Claims:
    who, first_known = _people(known, person)
    whose, first_released = _people(released, person)
    sides = [beside(known, released, name) for name in items]
    codes, count = classes_of([side.coded.codes for side in sides], known.num_rows + released.num_rows)
    mine, theirs = codes[: known.num_rows], codes[known.num_rows :]
    points = None if value is None else (_points(known, value), _points(released, value))
    # Each item once a person: who was ten times at a place is one of those who were there.
    support = np.bincount(
        np.unique(theirs * len(first_released) + whose) // len(first_released), minlength=count
    )
    weights = 1 / np.log1p(np.maximum(support, 1))
    order = np.argsort(theirs, kind="stable")
    starts = np.searchsorted(theirs[order], np.arange(count + 1))
    best = np.full(len(first_known), -1)
    known_order = np.argsort(who, kind="stable")
    ends = np.searchsorted(who[known_order], np.arange(len(first_known) + 1))
    step = max(1, _BLOCK // len(first_released))
    for start in range(0, len(first_known), step):
        stop = min(start + step, len(first_known))
        entries = known_order[ends[start] : ends[stop]]
        entry, row = _meeting(mine[entries], starts, order)
        entry = entries[entry]
        if points is not None:
            near = np.abs(points[0][entry] - points[1][row]) <= tolerance
            entry, row = entry[near], row[near]
        # A known item counts once for a candidate, however often either of them has it.
        triple = ((who[entry] - start) * len(first_released) + whose[row]) * count + mine[entry]
        triple = np.unique(triple)
        cells = (stop - start) * len(first_released)
        scores = np.bincount(triple // count, weights=weights[triple % count], minlength=cells)
        best[start:stop] = _standing_out(scores.reshape(stop - start, -1), eccentricity)
    return _Claims(best, len(first_released), first_known, first_released)


def _standing_out(scores: npt.NDArray[Any], eccentricity: float) -> Codes:
    """The candidate of each row who stands out from all others, else -1."""
    if scores.shape[1] < 2:
        return np.full(len(scores), -1)
    best = scores.argmax(axis=1)
    second, first = np.partition(scores, -2, axis=1)[:, -2:].T
    clear = (first > second) & (first - second >= eccentricity * scores.std(axis=1))
    return np.where(clear, best, -1)


def _meeting(mine: Codes, starts: Codes, order: Codes) -> tuple[Codes, Codes]:
    """All pairs of a known entry and a released row with the same item."""
    lengths = starts[mine + 1] - starts[mine]
    entry = np.repeat(np.arange(len(mine)), lengths)
    offset = np.arange(len(entry)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return entry, order[np.repeat(starts[mine], lengths) + offset]


def _people(table: pa.Table, person: str) -> tuple[Codes, Codes]:
    """The number of each row's person, and the first row of each person."""
    groups = grouped([encode(table, person).codes])
    return groups.of_row, groups.first


def _points(table: pa.Table, value: str) -> Floats:
    """The values on a line; NaN, which is near nothing, where one is missing.

    Raises:
        InvalidParameter: if they are neither numbers nor days.
    """
    import pyarrow as pa

    column: Any = table.column(value)
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _floats(column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())) / _DAY
    if pa.types.is_date(kind):
        return _floats(column.cast(pa.date32()).cast(pa.int32()))
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise InvalidParameter(
            f'Column "{value[:100]}" must hold numbers or days to be compared with a tolerance.'
        )
    return _floats(column)


def _floats(column: Any) -> Floats:
    import pyarrow as pa

    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
