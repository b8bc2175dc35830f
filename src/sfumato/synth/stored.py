"""What a file says a fit released, held to what a fit can release: a file may hold anything."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidValue
from sfumato.numeric.exact import as_fraction
from sfumato.numeric.moments import DAY, FIRST, LAST
from sfumato.plan.expressions.ranges import FIRST_DAY, LAST_DAY
from sfumato.schema import Kind
from sfumato.synth._model.domain import Clique
from sfumato.synth._model.trees import cells_of
from sfumato.synth.columns.coarse import Coarse
from sfumato.synth.columns.fine import MOST_CELLS, Fine
from sfumato.synth.columns.ids import Id
from sfumato.synth.columns.scales import Scales, widths
from sfumato.synth.constraints import Constraints
from sfumato.synth.linked_tables import LinkedReleased
from sfumato.synth.linking import Link
from sfumato.synth.released import Released

__all__ = ["check_columns", "check_ids", "check_linked", "check_released", "price_of"]

_KINDS: dict[Kind, tuple[type, ...]] = {
    "integer": (int,),
    "float": (float, int),
    "boolean": (bool,),
    "text": (str,),
    "date": (datetime.date,),
    "timestamp": (datetime.datetime,),
    "time": (datetime.time,),
}
_ENDS: dict[Kind, tuple[Fraction | int, Fraction | int]] = {
    "date": (FIRST_DAY, LAST_DAY),
    "timestamp": (FIRST, LAST),
    "time": (0, DAY - 1),
}
_FAR = 2**53
_MOST_CELLS = 2**28
_MOST_ROWS = 1e18


def price_of(said: Any) -> tuple[Fraction, Fraction]:
    """Epsilon and delta, from the facts of a file.

    Raises:
        InvalidValue: if they are no price.
    """
    epsilon, delta = as_fraction(said["epsilon"], "epsilon"), as_fraction(said["delta"], "delta")
    _demand(0 < epsilon < _FAR and 0 < delta < 1)
    return epsilon, delta


def check_columns(columns: Sequence[Fine]) -> None:
    """Refuse columns that nobody could declare.

    Raises:
        InvalidValue: if one is.
    """
    _demand(bool(columns) and len({column.name for column in columns}) == len(columns))
    for column in columns:
        _demand(column.kind in _KINDS)
        if column.values is not None:
            own = _KINDS[column.kind]
            _demand(all(type(value) in own for value in column.values))
            _demand(column.kind != "float" or all(map(math.isfinite, column.values)))
            _demand(column.kind != "integer" or all(abs(value) <= _FAR for value in column.values))
            _demand(len(set(column.values)) == len(column.values) and column.size > 0)
        else:
            _check_number(column)


def _check_number(column: Fine) -> None:
    lower, upper = column.lower, column.upper
    _demand(column.kind in ("integer", "float", *_ENDS) and not column.folds)
    _demand(-_FAR <= lower <= upper <= _FAR and 0 <= column.steps < MOST_CELLS)
    _demand((column.steps > 0) == (lower < upper))
    if column.kind != "float":
        _demand(column.steps <= upper - lower and lower.denominator == upper.denominator == 1)
    if column.kind in _ENDS:
        least, most = _ENDS[column.kind]
        _demand(least <= lower <= upper <= most)


def check_released(released: Released, columns: Sequence[Fine], constraints: Constraints) -> None:
    """Refuse what no fit of these columns could release.

    Raises:
        InvalidValue: if it is.
    """
    model, marginals = released.learned.model, released.learned.marginals
    for cut, column in zip(released.cuts, columns, strict=True):
        _check_cut(cut, column)
    for place in constraints.totals.counts:
        _demand(released.cuts[place].size == columns[place].size)
    _demand(released.sizes.ndim == 1 and _finite(released.sizes, least=1))
    for place, told in released.fine.items():
        _demand(0 <= place < len(columns))
        _check_scales(told, columns[place])
    for part, sigma in released.learned.parts.items():
        _demand(_ascending(part) and 0 < sigma < math.inf)
        _demand(all(0 <= place < len(columns) for place in part))
    for marginal in marginals:
        _demand(all(0 <= place < len(columns) for place in marginal.clique))
        _demand(_ascending(marginal.clique) and 0 < marginal.sigma < math.inf and _finite(marginal.values))
    _demand(model.total <= _MOST_ROWS and all(map(_ascending, model.potentials)))
    _demand(cells_of(model.domain, model.potentials) <= _MOST_CELLS and model.is_possible)


def check_linked(released: LinkedReleased, link: Link) -> None:
    """Refuse what no fit of two tables could release.

    Raises:
        InvalidValue: if it is.
    """
    check_columns(link.columns)
    _demand(link.parent != link.child and len(released.joined.sizes) == link.most + 1)
    for keys, columns in ((link.key, link.parents), (link.pointer, link.children)):
        names = [*keys, *map(link.bare, columns)]
        _demand(bool(keys) and len(set(names)) == len(names))
    check_released(released.joined, link.columns, Constraints(link.columns))
    check_released(released.childless, link.parents, Constraints(link.parents))
    for mine, theirs in zip(released.childless.cuts, released.joined.cuts, strict=False):
        _demand(bool(np.array_equal(mine.place, theirs.place)))


def check_ids(ids: Sequence[Id], columns: Sequence[Fine]) -> None:
    """Refuse columns that name rows, if their names are taken or they are of no such kind.

    Raises:
        InvalidValue: if one is.
    """
    names = [*(one.name for one in ids), *(column.name for column in columns)]
    _demand(all(type(one.name) is str and type(one.place) is int for one in ids))
    _demand(all(one.kind in ("integer", "text") and 0 <= one.place < len(names) for one in ids))
    _demand(len(set(names)) == len(names))


def _check_scales(told: Scales, column: Fine) -> None:
    sizes = [-(-column.known // width) + column.nullable for width in widths(column)]
    listed = [len(counts) for counts in told.counts]
    if len(listed) == 1:  # an earlier version, or no number
        _demand(listed == sizes[:1])
    else:
        _demand(told.known == column.known and listed == sizes)
    _demand(0 < told.sigma < math.inf and all(counts.ndim == 1 and _finite(counts) for counts in told.counts))


def _check_cut(cut: Coarse, column: Fine) -> None:
    place, weight = cut.place, cut.weight
    _demand(place.shape == weight.shape == (column.size,) and place.dtype.kind == "i")
    _demand(int(place.min()) == 0 and cut.size <= column.size)
    _demand(bool(np.bincount(place).all()) and _finite(weight) and float(weight.min()) >= 0)
    _demand(bool((np.bincount(place, weight) > 0).all()) and math.isfinite(float(weight.sum())))


def _finite(numbers: NDArray[Any], least: int = 0) -> bool:
    return numbers.size >= least and bool(np.isfinite(numbers).all())


def _ascending(clique: Clique) -> bool:
    return list(clique) == sorted(set(clique))


def _demand(holds: bool) -> None:
    if not holds:
        raise InvalidValue("This is nothing that a fit released.")
