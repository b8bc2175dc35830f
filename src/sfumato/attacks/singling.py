"""Attacks on synthetic tables: singling out, inference and linkability, each beside people not in them.

The three risks by which European data protection judges anonymisation, measured as Giomi, Boenisch,
Wehmeyer and Tasnádi (2023) do: an attacker who sees the synthetic table alone, and a control of people from
the same population whom it was not made from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato.anonymity._codes import Codes
from sfumato.anonymity._given import whole
from sfumato.attacks._calls import Chance
from sfumato.attacks._control import check_apart
from sfumato.attacks._matching import Flags, named, one_name, read, read_with_records, together_typed
from sfumato.attacks._mixed import Column, Floats, mixed, nearest
from sfumato.attacks._power import LEAK, beside_guess, leak_given, one_in, planted, stated, tried
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer
from sfumato.random import simulation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["inference", "linkability", "singling_out"]

_ORIGINAL, _SYNTHETIC, _CONTROL = 0, 1, 2
_MOST = 100_000  # descriptions
_TRIES = 20  # rows looked at for each predicate wanted
_OFTEN = 4  # how often each predicate that there is comes up, on average, where they are few
_BLOCK = 2_000_000  # pairs of a description and a person that are looked at together
_BEYOND = float(np.finfo(np.float64).max)
_STRANGERS = "the same attack on people whom the table was not made from"
_MORE = "give more people, more columns, more attacks, or a larger leak"


def singling_out(
    original: Source,
    synthetic: Source,
    control: Source,
    *,
    columns: str | Sequence[str] | None = None,
    width: int = 3,
    attacks: int = 500,
    seed: int | None = None,
    leak: float = LEAK,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How often a description learned from a synthetic table fits exactly one of the people behind it.

    A predicate is made from a synthetic row that it singles out there: a category is equal, a number at
    least as large if it lies above the median and at most as large otherwise (`width` columns at random).
    With a width of 1, it is a value that occurs once, or beyond the least or largest number. Copies
    of a synthetic row, alike in every column where most rows stand as often, are one row.

    ```python
    singling_out(people, copied, others).works            # rows copied with a little noise
    singling_out(people, private, others).within          # epsilon = 1
    ```

    Steward-only: predicates are counted on real people.

    Baseline: the same predicates on the control, as many rows as the original: some descriptions fit one
    person of any crowd, and only what fits better in the original tells that somebody was in it.

    Args:
        original: The people whom the synthetic table was made from.
        synthetic: The synthetic table.
        control: People of the same population whom it was not made from.
        columns: Which ones predicates are about; by default all of the synthetic table.
        width: How many columns a predicate has; at most all.
        attacks: How many predicates to try at most.
        seed: For the same predicates again; by default others each time.
        leak: The share of people whose rows are planted to see whether the attack would notice.
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for a column that is not there, no rows, more than 100,000 attacks, or if no
            predicate singles out a synthetic row, or the control has rows of the original.
        SourceUnusable: if a table cannot be read.
    """
    wide, most, share = as_integer(width, "width"), as_integer(attacks, "attacks"), leak_given(leak)
    if most > _MOST:
        raise InvalidParameter(f"attacks must be at most {_MOST:,}; a thousand show it as well.")
    names = whole(synthetic)[0].column_names if columns is None else named(columns, "columns")
    made, record, _ = read_with_records(synthetic, names)
    check_apart(original, control)
    people, others = read(original, names), read(control, names)
    random = simulation(seed)
    size = min(people.num_rows, others.num_rows)
    # Descriptions fit one of a large crowd less often than one of a small one: both have the same size.
    rows = [random.permutation(each.num_rows)[:size] for each in (people, others)]

    people, others = people.take(rows[0]), others.take(rows[1])

    def attack(inside: pa.Table, table: pa.Table, records: Codes, outside: pa.Table) -> Outcome:
        # A table with each row twice hides nobody: copies are looked at once.
        once = np.unique(records, return_index=True)[1]
        held = [each.take([None, once, None]) for each in mixed([inside, table, outside], names)]
        if wide == 1:
            found = _single(held)
            found = found.take(random.permutation(len(found.columns))[:most])
        else:
            # No more than find nearly all that there are.
            tries = min(_TRIES * most, _OFTEN * len(once) * math.comb(len(held), min(wide, len(held))))
            chosen = random.random((tries, len(held))).argsort(axis=1)[:, :wide]
            found = _several(held, random.integers(len(once), size=tries), chosen, most)
        if not len(found.columns):
            raise InvalidParameter(
                "No description singles out a synthetic row; give more columns or a larger width."
            )
        hits, guesses = (
            int((found.counts(_matrix(held, part)) == 1).sum()) for part in (_ORIGINAL, _CONTROL)
        )
        return Outcome(
            "singling out",
            "a description fits exactly one person",
            Tally(hits, len(found.columns)),
            Tally(guesses, len(found.columns)),
            _STRANGERS,
            target,
            confidence,
            {
                "width": min(wide, len(held)),
                "people": size,
                "synthetic rows": table.num_rows,
                "different rows": len(once),
            },
        )

    everybody = _stacked(people, others, names)

    def twin(chance: Chance) -> Outcome | None:
        # Whoever the table was made from, half of them are now on either side, and only the planted tell.
        order = chance.permutation(2 * size)
        inside, outside = everybody.take(order[:size]), everybody.take(order[size:])
        table, kept, own = planted(made, inside, names, share, chance)
        records = np.concatenate([record[kept], made.num_rows + np.arange(len(own))])
        try:
            return attack(inside, table, records, outside)
        except InvalidParameter:  # no description singles out a row of the twin
            return None

    found = attack(people, made, record, others)
    cells = found.reached.trials * size + _TRIES * most * made.num_rows / 10
    return stated(found, lambda: tried(_leaked(share), twin, random, cells=cells), advice=_MORE)


def inference(
    original: Source,
    synthetic: Source,
    control: Source,
    *,
    known: str | Sequence[str],
    secret: str,
    tolerance: float = 0.05,
    attacks: int = 500,
    seed: int | None = None,
    leak: float = LEAK,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How often the nearest synthetic row tells a person's secret.

    ```python
    inference(people, copied, others, known=["zip", "age"], secret="income").works
    inference(people, private, others, known=["zip", "age"], secret="income").within      # epsilon = 1
    ```

    Steward-only: guesses are compared with the truth.

    Baseline: the same guesses about people whom the table was not made from. What holds for them too, as that
    smokers fall ill, is what a table is for; only the difference is a harm of having been in it.

    Args:
        original: The people whom the synthetic table was made from.
        synthetic: The synthetic table.
        control: People of the same population whom it was not made from.
        known: What the attacker knows of a person.
        secret: What they want to learn.
        tolerance: How far off a number may be, as a share of the extent of the synthetic column. A category
            has to be right.
        attacks: How many people to attack at most, of either kind.
        seed: For the same people again; by default others each time.
        leak: The share of people whose rows are planted to see whether the attack would notice.
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for a column that is not there, both known and secret, or of numbers in one table
            and text in another, no rows, no tolerance, or a control with rows of the original.
        SourceUnusable: if a table cannot be read.
    """
    names = named(known, "known")
    if one_name(secret, "secret") in names:
        raise InvalidParameter("secret must not be among the known columns: what is known is no secret.")
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance <= 1:
        raise InvalidParameter("tolerance is a share of the extent of the column; give a number from 0 to 1.")
    share = leak_given(leak)

    def tally(held: Sequence[Column], part: int) -> Tally:
        own = held[-1]
        told = own.parts[_SYNTHETIC][nearest(held[:-1], part, _SYNTHETIC)[:, 0]]
        hits = _near(own.parts[part], told, tolerance * own.extent(_SYNTHETIC) if own.ordered else 0.0)
        return Tally(int(hits.sum()), len(hits))

    sides = _Sides.of(original, synthetic, control, [*names, secret], attacks, seed)
    held = sides.columns
    found = Outcome(
        "inference",
        "the nearest row tells a person's secret",
        tally(held, _ORIGINAL),
        tally(held, _CONTROL),
        _STRANGERS,
        target,
        confidence,
        {"known columns": len(names), "synthetic rows": len(held[-1].parts[_SYNTHETIC])},
    )
    return sides.with_power(found, tally, share)


def linkability(
    original: Source,
    synthetic: Source,
    control: Source,
    *,
    left: str | Sequence[str],
    right: str | Sequence[str],
    neighbours: int = 1,
    attacks: int = 500,
    seed: int | None = None,
    leak: float = LEAK,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How often two halves of a person's record lead to the same synthetic row.

    Somebody has one half under a name and the other half without; if the nearest synthetic rows of both are
    the same, the table has joined what two sources kept apart.

    ```python
    linkability(people, copied, others, left=["zip", "age"], right=["job", "income"]).works
    linkability(people, private, others, left=["zip", "age"], right=["job", "income"]).within   # epsilon = 1
    ```

    Steward-only: real people are attacked.

    Baseline: the same attack on people whom the table was not made from, whose halves may meet by chance, or
    because both say the same about anybody.

    Args:
        original: The people whom the synthetic table was made from.
        synthetic: The synthetic table.
        control: People of the same population whom it was not made from.
        left: The columns of one half.
        right: The columns of the other half.
        neighbours: How many nearest rows of each half are looked at.
        attacks: How many people to attack at most, of either kind.
        seed: For the same people again; by default others each time.
        leak: The share of people whose rows are planted to see whether the attack would notice.
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for a column that is not there, in both halves, or of numbers in one table and text
            in another, no rows, or a control with rows of the original.
        SourceUnusable: if a table cannot be read.
    """
    one, other = named(left, "left"), named(right, "right")
    if set(one) & set(other):
        raise InvalidParameter("left and right must have no column in common: it would join them by itself.")
    count = as_integer(neighbours, "neighbours")
    share = leak_given(leak)

    def tally(held: Sequence[Column], part: int) -> Tally:
        mine = nearest(held[: len(one)], part, _SYNTHETIC, count)
        theirs = nearest(held[len(one) :], part, _SYNTHETIC, count)
        hits = (mine[:, :, None] == theirs[:, None, :]).any(axis=(1, 2))
        return Tally(int(hits.sum()), len(hits))

    sides = _Sides.of(original, synthetic, control, [*one, *other], attacks, seed)
    held = sides.columns
    found = Outcome(
        "linkability",
        "both halves of a record lead to one row",
        tally(held, _ORIGINAL),
        tally(held, _CONTROL),
        _STRANGERS,
        target,
        confidence,
        {"neighbours": count, "synthetic rows": len(held[0].parts[_SYNTHETIC])},
    )
    return sides.with_power(found, tally, share)


@dataclass(frozen=True, slots=True, eq=False)
class _Sides:
    """A random choice of people and of strangers, and all rows of the synthetic table."""

    people: pa.Table
    made: pa.Table
    others: pa.Table
    names: Sequence[str]
    random: Chance

    @classmethod
    def of(
        cls,
        original: Source,
        synthetic: Source,
        control: Source,
        names: Sequence[str],
        attacks: int,
        seed: int | None,
    ) -> _Sides:
        most, random = as_integer(attacks, "attacks"), simulation(seed)
        check_apart(original, control)
        people, made, others = (read(each, names) for each in (original, synthetic, control))
        chosen, apart = (random.permutation(each.num_rows)[:most] for each in (people, others))
        return cls(people.take(chosen), made, others.take(apart), names, random)

    @property
    def columns(self) -> list[Column]:
        return mixed([self.people, self.made, self.others], self.names)

    def with_power(
        self, found: Outcome, tally: Callable[[Sequence[Column], int], Tally], share: float
    ) -> Outcome:
        """The outcome, and what it would have noticed: rows of some of the people planted in the table."""

        def twin(chance: Chance) -> Outcome | None:
            table, _, own = planted(self.made, self.people, self.names, share, chance)
            held = mixed([self.people.take(own), table, self.others], self.names)
            return beside_guess(found, tally(held, _ORIGINAL), chance)

        cells = self.people.num_rows * share * self.made.num_rows * len(self.names)
        return stated(found, lambda: tried(_leaked(share), twin, self.random, cells=cells), advice=_MORE)


def _stacked(one: pa.Table, other: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows of two tables below each other."""
    import pyarrow as pa

    made = {}
    for name in names:
        first, second = together_typed([one.column(name), other.column(name)])
        made[name] = pa.chunked_array([*first.chunks, *second.chunks], type=first.type)
    return pa.table(made)


def _leaked(share: float) -> str:
    return f"{one_in(share)} copied into the table"


def _near(true: Floats, told: Floats, within: float) -> Flags:
    hits: Flags = (np.abs(true - told) <= within) | (np.isnan(true) & np.isnan(told))
    return hits


# ── descriptions


@dataclass(frozen=True, slots=True, eq=False)
class _Described:
    """Descriptions, a row each: which columns they are about, and from where to where their values go.

    A value is equal where both ends are it, and at least or at most as large where one end is beyond all.
    What is missing is infinite, so that no end but its own reaches it.
    """

    columns: Codes
    low: Floats
    high: Floats

    def counts(self, values: Floats) -> Codes:
        """How many people each of them fits.

        Args:
            values: A row for each column, an entry for each person.
        """
        found = np.zeros(len(self.columns), dtype=np.int64)
        step = max(1, _BLOCK // values.shape[1])
        for start in range(0, len(found), step):
            fits = np.ones((min(step, len(found) - start), values.shape[1]), dtype=bool)
            for place in range(self.columns.shape[1]):
                some = slice(start, start + step)
                own = values[self.columns[some, place]]
                fits &= (own >= self.low[some, place, None]) & (own <= self.high[some, place, None])
            found[start : start + step] = fits.sum(axis=1)
        return found

    def take(self, which: Codes) -> _Described:
        return _Described(self.columns[which], self.low[which], self.high[which])

    def different(self) -> _Described:
        """Each of them once."""
        _, first = np.unique(np.hstack([self.columns, self.low, self.high]), axis=0, return_index=True)
        return self.take(np.sort(first))


def _matrix(columns: Sequence[Column], part: int) -> Floats:
    """The values of a table, a row for each column, with infinity for what is missing."""
    values = np.stack([column.parts[part] for column in columns])
    return np.where(np.isnan(values), np.inf, values)


def _single(columns: Sequence[Column]) -> _Described:
    """Descriptions by one column: what occurs once, and the ends of numbers."""
    places, low, high = [], [], []
    for place, (column, own) in enumerate(zip(columns, _matrix(columns, _SYNTHETIC), strict=True)):
        values, counts = np.unique(own, return_counts=True)
        ends = [(value, value) for value in values[counts == 1].tolist()]
        known = values[np.isfinite(values)].tolist()
        if column.ordered and known:
            ends += [(-_BEYOND, known[0]), (known[-1], _BEYOND)]
        places += [[place]] * len(ends)
        low += [[first] for first, _ in ends]
        high += [[last] for _, last in ends]
    if not places:
        return _Described(np.zeros((0, 1), dtype=np.int64), np.zeros((0, 1)), np.zeros((0, 1)))
    found = _Described(np.array(places), np.array(low), np.array(high)).different()
    return found.take(np.flatnonzero(found.counts(_matrix(columns, _SYNTHETIC)) == 1))


def _several(columns: Sequence[Column], rows: Codes, chosen: Codes, most: int) -> _Described:
    """Different descriptions by several columns, each of which fits one synthetic row.

    Args:
        columns: All columns.
        rows: The synthetic rows to describe, one after the other.
        chosen: The columns to describe each by.
        most: How many descriptions are enough.
    """
    values = _matrix(columns, _SYNTHETIC)
    low, high = values.copy(), values.copy()
    for place, column in enumerate(columns):
        known = values[place][np.isfinite(values[place])]
        if column.ordered and len(known):
            is_large, is_known = values[place] > np.median(known), np.isfinite(values[place])
            high[place][is_large & is_known] = _BEYOND
            low[place][~is_large & is_known] = -_BEYOND
    about = np.sort(chosen, axis=1)
    found = _Described(about, low[about, rows[:, None]], high[about, rows[:, None]]).different()
    kept: list[int] = []
    # Many tables give enough of them soon; the others are then not looked at.
    for start in range(0, len(found.columns), most):
        some = np.arange(start, min(start + most, len(found.columns)))
        kept += some[found.take(some).counts(values) == 1].tolist()
        if len(kept) >= most:
            break
    return found.take(np.array(kept[:most], dtype=np.int64))
