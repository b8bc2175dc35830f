"""Attacks on synthetic tables: singling out, inference and linkability, each beside people not in them.

The three risks by which European data protection judges anonymisation, measured as Giomi, Boenisch,
Wehmeyer and Tasnádi (2023) do: an attacker who sees the synthetic table alone, and a control of people from
the same population whom it was not made from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato.anonymity._codes import Codes
from sfumato.anonymity._given import whole
from sfumato.attacks._matching import Flags, named, read
from sfumato.attacks._mixed import Column, Floats, mixed, nearest
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer
from sfumato.random import simulation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["inference", "linkability", "singling_out"]

_ORIGINAL, _SYNTHETIC, _CONTROL = 0, 1, 2
_TRIES = 20  # rows looked at for each predicate wanted
_STRANGERS = "the same attack on people whom the table was not made from"


def singling_out(
    original: Source,
    synthetic: Source,
    control: Source,
    *,
    columns: str | Sequence[str] | None = None,
    width: int = 3,
    attacks: int = 500,
    seed: int | None = None,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How often a description learned from a synthetic table fits exactly one of the people behind it.

    A predicate is made from a synthetic row that it singles out there: a category is equal, a number at
    least as large if it lies above the median and at most as large otherwise (`width` columns at random).
    With a width of 1, it is a value that occurs once, or beyond the least or largest number.

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
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for a column that is not there, no rows, or if no predicate singles out a
            synthetic row.
        SourceUnusable: if a table cannot be read.
    """
    wide, most = as_integer(width, "width"), as_integer(attacks, "attacks")
    names = whole(synthetic)[0].column_names if columns is None else named(columns, "columns")
    tables = _three(original, synthetic, control, names)
    random = simulation(seed)
    size = min(tables[_ORIGINAL].num_rows, tables[_CONTROL].num_rows)
    rows = [random.permutation(table.num_rows)[:size] for table in tables]
    # Descriptions fit one of a large crowd less often than one of a small one: both have the same size.
    held = [each.take([rows[0], None, rows[2]]) for each in mixed(tables, names)]
    if wide == 1:
        found = _single(held, most, random)
    else:
        found = _several(held, min(wide, len(held)), most, random)
    if not found:
        raise InvalidParameter(
            "No description singles out a synthetic row; give more columns or a larger width."
        )
    hits, guesses = (
        sum(_fits(held, each, part).sum() == 1 for each in found) for part in (_ORIGINAL, _CONTROL)
    )
    return Outcome(
        "singling out",
        "a description fits exactly one person",
        Tally(int(hits), len(found)),
        Tally(int(guesses), len(found)),
        _STRANGERS,
        target,
        confidence,
        {"width": min(wide, len(held)), "people": size, "synthetic rows": tables[_SYNTHETIC].num_rows},
    )


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
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for a column that is not there or both known and secret, no rows, or no tolerance.
        SourceUnusable: if a table cannot be read.
    """
    names = named(known, "known")
    if not isinstance(secret, str) or not secret or secret in names:
        raise InvalidParameter("secret must be the name of one column that is not among the known ones.")
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance <= 1:
        raise InvalidParameter("tolerance is a share of the extent of the column; give a number from 0 to 1.")
    held = _targets(original, synthetic, control, [*names, secret], attacks, seed)
    own = held[-1]

    def tally(part: int) -> Tally:
        told = own.parts[_SYNTHETIC][nearest(held[:-1], part, _SYNTHETIC)[:, 0]]
        hits = _near(own.parts[part], told, tolerance * own.extent(_SYNTHETIC) if own.ordered else 0.0)
        return Tally(int(hits.sum()), len(hits))

    return Outcome(
        "inference",
        "the nearest row tells a person's secret",
        tally(_ORIGINAL),
        tally(_CONTROL),
        _STRANGERS,
        target,
        confidence,
        {"known columns": len(names), "synthetic rows": len(own.parts[_SYNTHETIC])},
    )


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
        target: What is attacked, in words.
        confidence: Of all intervals.

    Raises:
        InvalidParameter: for a column that is not there or in both halves, or no rows.
        SourceUnusable: if a table cannot be read.
    """
    one, other = named(left, "left"), named(right, "right")
    if set(one) & set(other):
        raise InvalidParameter("left and right must have no column in common: it would join them by itself.")
    count = as_integer(neighbours, "neighbours")
    held = _targets(original, synthetic, control, [*one, *other], attacks, seed)

    def tally(part: int) -> Tally:
        mine = nearest(held[: len(one)], part, _SYNTHETIC, count)
        theirs = nearest(held[len(one) :], part, _SYNTHETIC, count)
        hits = (mine[:, :, None] == theirs[:, None, :]).any(axis=(1, 2))
        return Tally(int(hits.sum()), len(hits))

    return Outcome(
        "linkability",
        "both halves of a record lead to one row",
        tally(_ORIGINAL),
        tally(_CONTROL),
        _STRANGERS,
        target,
        confidence,
        {"neighbours": count, "synthetic rows": len(held[0].parts[_SYNTHETIC])},
    )


def _three(original: Source, synthetic: Source, control: Source, names: Sequence[str]) -> list[pa.Table]:
    return [read(each, names) for each in (original, synthetic, control)]


def _targets(
    original: Source, synthetic: Source, control: Source, names: Sequence[str], attacks: int, seed: int | None
) -> list[Column]:
    """The columns of a random choice of people, and of all synthetic rows."""
    most, random = as_integer(attacks, "attacks"), simulation(seed)
    tables = _three(original, synthetic, control, names)
    some = [random.permutation(table.num_rows)[:most] for table in tables]
    return [each.take([some[0], None, some[2]]) for each in mixed(tables, names)]


def _near(true: Floats, told: Floats, within: float) -> Flags:
    hits: Flags = (np.abs(true - told) <= within) | (np.isnan(true) & np.isnan(told))
    return hits


# ── descriptions


@dataclass(frozen=True, slots=True)
class _Term:
    """One part of a description: what a column is, at least or at most, or that it is missing."""

    column: int
    sign: str
    value: float

    def holds(self, values: Floats) -> Flags:
        found: Flags = np.isnan(values)
        if self.sign == "=":
            found = values == self.value
        elif self.sign != "missing":
            found = values >= self.value if self.sign == "≥" else values <= self.value
        return found


def _fits(columns: Sequence[Column], terms: Sequence[_Term], part: int) -> Flags:
    found = terms[0].holds(columns[terms[0].column].parts[part])
    for term in terms[1:]:
        found = found & term.holds(columns[term.column].parts[part])
    return found


def _single(columns: Sequence[Column], most: int, random: np.random.Generator) -> list[tuple[_Term, ...]]:
    """Descriptions by one column: what occurs once, and the ends of numbers."""
    found: list[tuple[_Term, ...]] = []
    for place, column in enumerate(columns):
        values, counts = np.unique(column.parts[_SYNTHETIC], return_counts=True)
        once = values[counts == 1].tolist()
        terms = [_Term(place, "=", value) for value in once if not math.isnan(value)]
        terms += [_Term(place, "missing", 0.0) for value in once if math.isnan(value)]
        known = values[np.isfinite(values)]
        if column.ordered and len(known):
            terms += [_Term(place, "≤", float(known[0])), _Term(place, "≥", float(known[-1]))]
        found += [(term,) for term in terms if _fits(columns, (term,), _SYNTHETIC).sum() == 1]
    return [found[i] for i in random.permutation(len(found))[:most]]


def _several(
    columns: Sequence[Column], width: int, most: int, random: np.random.Generator
) -> list[tuple[_Term, ...]]:
    """Different descriptions by several columns, each of which fits one synthetic row."""
    middles = [_middle(column) for column in columns]
    rows: Codes = random.integers(len(columns[0].parts[_SYNTHETIC]), size=_TRIES * most)
    found: dict[tuple[_Term, ...], None] = {}
    for row in rows.tolist():
        chosen = sorted(random.permutation(len(columns))[:width].tolist())
        terms = tuple(_term(columns, place, row, middles[place]) for place in chosen)
        if terms not in found and _fits(columns, terms, _SYNTHETIC).sum() == 1:
            found[terms] = None
            if len(found) == most:
                break
    return list(found)


def _middle(column: Column) -> float:
    known = column.parts[_SYNTHETIC][np.isfinite(column.parts[_SYNTHETIC])]
    return float(np.median(known)) if len(known) else 0.0


def _term(columns: Sequence[Column], place: int, row: int, middle: float) -> _Term:
    value = float(columns[place].parts[_SYNTHETIC][row])
    if math.isnan(value):
        return _Term(place, "missing", 0.0)
    if not columns[place].ordered:
        return _Term(place, "=", value)
    return _Term(place, "≥" if value > middle else "≤", value)
