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
from sfumato.schema import Kind
from sfumato.synth._model.domain import Clique
from sfumato.synth._model.trees import cells_of
from sfumato.synth.columns.coarse import Coarse
from sfumato.synth.columns.fine import MOST_CELLS, Fine
from sfumato.synth.constraints import Constraints
from sfumato.synth.released import Released

__all__ = ["check_columns", "check_released", "price_of"]

_KINDS: dict[Kind, tuple[type, ...]] = {
    "integer": (int,),
    "float": (float, int),
    "boolean": (bool,),
    "text": (str,),
    "date": (datetime.date,),
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
    _demand(column.kind in ("integer", "float", "date") and not column.folds)
    _demand(-_FAR <= lower <= upper <= _FAR and 0 <= column.steps < MOST_CELLS)
    _demand((column.steps > 0) == (lower < upper))
    if column.kind != "float":
        _demand(column.steps <= upper - lower)
    if column.kind == "date":
        start = datetime.date(1970, 1, 1).toordinal()
        ends = datetime.date.min.toordinal() - start, datetime.date.max.toordinal() - start
        _demand(ends[0] <= lower <= upper <= ends[1])


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
    for place, marginal in released.fine.items():
        _demand(0 <= place < len(columns) and marginal.values.shape == (columns[place].size,))
    for part, sigma in released.learned.parts.items():
        _demand(_ascending(part) and 0 < sigma < math.inf)
        _demand(all(0 <= place < len(columns) for place in part))
    for marginal in [*marginals, *released.fine.values()]:
        _demand(_ascending(marginal.clique) and 0 < marginal.sigma < math.inf and _finite(marginal.values))
    _demand(model.total <= _MOST_ROWS and all(map(_ascending, model.potentials)))
    _demand(cells_of(model.domain, model.potentials) <= _MOST_CELLS and model.is_possible)


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
