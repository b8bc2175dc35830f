"""What each cell of a synthetic table counts for in a question: surely, at most, and about. All public."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.functions import evaluate
from sfumato.plan.expressions.names import in_sql
from sfumato.plan.expressions.tree import Call, Expression, Literal, names_of
from sfumato.synth._model.domain import Clique
from sfumato.synth._rules.rules import constants_of, is_plain, turns_at_constants
from sfumato.synth._rules.values import Points, points
from sfumato.synth.columns.coarse import Coarse
from sfumato.synth.columns.fine import Fine

__all__ = ["Weights", "coarsened", "multiplied", "weights_of"]

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

_MOST = 2**22  # combinations of values that are looked at together


class Weights(NamedTuple):
    """What the rows of each cell of some columns count for, whatever values they have within it.

    Attributes:
        clique: The columns, by their places.
        every: Whether all rows of a cell are counted, surely.
        some: Whether any of them may be.
        share: About which share of them is.
        least: The least value that a counted row of the cell can have.
        most: The greatest.
        mean: About the mean of a row's value, 0 for those that are not counted.
    """

    clique: Clique
    every: Bools
    some: Bools
    share: Floats
    least: Floats
    most: Floats
    mean: Floats

    def low(self, centre: float = 0.0) -> Floats:
        """The least that a row of each cell can count for, if it counts for its value less the centre."""
        found = np.where(self.every, self.least - centre, np.minimum(self.least - centre, 0.0))
        return np.where(self.some, found, 0.0)

    def high(self, centre: float = 0.0) -> Floats:
        """The most that it can count for."""
        found = np.where(self.every, self.most - centre, np.maximum(self.most - centre, 0.0))
        return np.where(self.some, found, 0.0)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value that a counted row can have; 0 where none is counted."""
        if not self.some.any():
            return 0.0, 0.0
        return float(self.least[self.some].min()), float(self.most[self.some].max())


def weights_of(
    conditions: Sequence[Expression],
    value: Expression | None,
    columns: Sequence[Fine],
    *,
    as_one: bool = False,
) -> Weights:
    """What rows of each fine cell count for; columns that change nothing are left out.

    Args:
        conditions: A row is counted if all of them are true.
        value: What it counts for; it is not counted where that is NULL. None: 1 for each row.
        columns: Those of the table.
        as_one: Whether each row with a value counts for 1.

    Raises:
        InvalidParameter: if there are too many combinations of values to look at.
    """
    expressions = [*conditions, *([] if value is None else [value])]
    names = {name for expression in expressions for name in names_of(expression)}
    clique = tuple(place for place, column in enumerate(columns) if column.name in names)
    own = [columns[place] for place in clique]
    constants = [constant for expression in expressions for constant in constants_of(expression)]
    tried = [points(column, constants, closed=True) for column in own]
    many = math.prod(len(some.cells) for some in tried)
    if many > _MOST:
        said = ", ".join(in_sql(column.name) for column in own)
        raise InvalidParameter(
            f"The question compares {said} with each other, which have {many:,} combinations of values; at "
            f"most {_MOST:,} are looked at: compare each with constants."
        )
    counted, known, values = _at_points(conditions, value, [column.name for column in own], tried)
    if as_one:
        values = np.ones(values.shape)
    found = _in_cells(clique, counted, known, values, tried)
    several = _several(own, tried)
    bent = [one for one in expressions if not turns_at_constants(one) and _has_several(one, own)]
    if not all(_shows(one, own) for one in expressions) or len(bent) > 1:
        found = found._replace(every=found.every & ~several, some=found.some | several)
    if value is not None and not as_one and not _shows(value, own):
        found = found._replace(
            least=np.where(several, -np.inf, found.least), most=np.where(several, np.inf, found.most)
        )
    return _shortened(found)


def _at_points(
    conditions: Sequence[Expression], value: Expression | None, names: Sequence[str], tried: Sequence[Points]
) -> tuple[Bools, Bools, Floats]:
    """For each combination of values whether it is counted, whether there is a value, and which."""
    shape = tuple(len(some.cells) for some in tried)
    places = np.unravel_index(np.arange(math.prod(shape)), shape) if shape else ()
    rows = {name: some.values[place] for name, some, place in zip(names, tried, places, strict=True)}
    counted, known, values = (np.ones(math.prod(shape), kind) for kind in (bool, bool, float))
    for condition in conditions:
        counted &= np.asarray(evaluate(condition, rows).filled(False), bool)
    if value is not None:
        found = evaluate(value, rows)
        known = known & ~np.ma.getmaskarray(found)
        if found.dtype.kind in "bf":
            values = np.where(known, found.data.astype(np.float64), 0.0)
    return (counted & known).reshape(shape), known.reshape(shape), values.reshape(shape)


def _in_cells(
    clique: Clique, counted: Bools, known: Bools, values: Floats, tried: Sequence[Points]
) -> Weights:
    """The same by fine cell, of which each has some of the values.

    The least and the greatest are those of the whole cell: a condition may leave values that are as near to
    the ones beside them as one likes.
    """
    every, some = counted, counted
    least, most = np.where(known, values, np.inf), np.where(known, values, -np.inf)
    share, mean = counted.astype(np.float64), np.where(counted, values, 0.0)
    for axis, own in enumerate(tried):
        starts = np.searchsorted(own.cells, np.arange(own.cells[-1] + 1))
        every = np.logical_and.reduceat(every, starts, axis=axis)
        some = np.logical_or.reduceat(some, starts, axis=axis)
        least = np.minimum.reduceat(least, starts, axis=axis)
        most = np.maximum.reduceat(most, starts, axis=axis)
        weight = _along(_lengths(own), axis, len(tried))
        share = np.add.reduceat(share * weight, starts, axis=axis)
        mean = np.add.reduceat(mean * weight, starts, axis=axis)
    return Weights(clique, every, some, share, least, most, mean)


def _along(values: NDArray[Any], axis: int, many: int) -> NDArray[Any]:
    """Numbers along one of several axes."""
    return values.reshape([-1 if at == axis else 1 for at in range(many)])


def _several(columns: Sequence[Fine], tried: Sequence[Points]) -> Bools:
    """Whether a combination of cells has more values than were looked at."""
    found = np.zeros((1,) * len(tried), bool)
    for axis, (column, own) in enumerate(zip(columns, tried, strict=True)):
        several = np.bincount(own.cells) > 1
        several[column.known - 1] |= column.folds
        found = found | _along(several, axis, len(tried))
    return found


def _lengths(tried: Points) -> Floats:
    """Which part of its cell each value stands for.

    Of several numbers in a cell, every second one lies between its neighbours and stands for all that do.
    """
    if tried.single:
        return np.ones(len(tried.cells))
    numbers = tried.values.data.astype(np.float64)
    whole = bool((numbers == np.rint(numbers)).all())
    starts = np.flatnonzero(np.diff(tried.cells, prepend=-1))
    found = np.ones(len(numbers))
    for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
        if (end - start) % 2 == 1 and end - start > 2:
            found[start:end] = 1.0 if whole else 0.0
            gaps = numbers[start + 2 : end : 2] - numbers[start : end - 2 : 2]
            found[start + 1 : end : 2] = np.maximum(gaps - 1, 0.0) if whole else gaps
        total = found[start:end].sum()
        found[start:end] = found[start:end] / total if total > 0 else 1 / (end - start)
    return found


def _has_several(expression: Expression, columns: Sequence[Fine]) -> bool:
    """Whether it names a column with several values in a cell."""
    own = [column for column in columns if column.name in names_of(expression)]
    return any(column.folds or (column.values is None and not column.has_whole_steps) for column in own)


def _shows(expression: Expression, columns: Sequence[Fine]) -> bool:
    """Whether all that an expression can be in a cell shows at the values that are looked at."""
    if not _has_several(expression, columns):
        return True
    own = [column for column in columns if column.folds and column.name in names_of(expression)]
    if own:
        return _is_listed(expression, {value for column in own for value in column.values or ()})
    if isinstance(expression, Call) and expression.function == "case":
        arguments = expression.arguments
        conditions, results = arguments[:-1:2], (*arguments[1:-1:2], arguments[-1])
        return all(map(turns_at_constants, conditions)) and all(isinstance(r, Literal) for r in results)
    return is_plain(expression)


def _is_listed(expression: Expression, texts: Collection[str]) -> bool:
    """Whether a condition asks of columns alone which of some texts they have.

    Texts that were not found are one value, of which nothing else is known.
    """
    if isinstance(expression, Literal):
        return expression.kind != "text" or expression.value in texts
    if isinstance(expression, Call):
        asks = expression.function in ("equal", "not_equal", "in", "and", "or", "not", "is_null")
        return asks and all(_is_listed(argument, texts) for argument in expression.arguments)
    return True


def coarsened(weights: Weights, cuts: Sequence[Coarse]) -> Weights:
    """The same by coarse cell, where nothing is known of what lies within but about how likely it is."""
    found = weights
    for axis in reversed(range(len(found.clique))):
        cut = cuts[found.clique[axis]]
        order = np.argsort(cut.place, kind="stable")
        starts = np.searchsorted(cut.place[order], np.arange(cut.size))
        part = cut.weight[order] / np.bincount(cut.place, cut.weight)[cut.place[order]]
        by = _along(part, axis, found.every.ndim)
        clique, *tables = found
        every, some, share, least, most, mean = (np.take(table, order, axis=axis) for table in tables)
        found = Weights(
            clique,
            np.logical_and.reduceat(every, starts, axis=axis),
            np.logical_or.reduceat(some, starts, axis=axis),
            np.add.reduceat(share * by, starts, axis=axis),
            np.minimum.reduceat(np.where(some, least, np.inf), starts, axis=axis),
            np.maximum.reduceat(np.where(some, most, -np.inf), starts, axis=axis),
            np.add.reduceat(mean * by, starts, axis=axis),
        )
    return _shortened(found)


def _shortened(weights: Weights) -> Weights:
    """The same without columns that change nothing, and with no values where no row is counted."""
    found = weights._replace(
        least=np.where(weights.some, weights.least, 0.0), most=np.where(weights.some, weights.most, 0.0)
    )
    for axis in reversed(range(len(found.clique))):
        clique, *tables = found
        if all(np.allclose(table, np.take(table, [0], axis=axis), 1e-12, 0.0) for table in tables):
            left = tuple(place for at, place in enumerate(clique) if at != axis)
            found = Weights(left, *(np.asarray(np.take(table, 0, axis=axis)) for table in tables))
    return found


def multiplied(parts: Sequence[Weights]) -> Weights:
    """What rows count for that several parts of a question judge, each by columns of its own.

    The last one says for what they count, and all before whether they do.
    """
    clique = tuple(sorted(place for part in parts for place in part.clique))

    def spread(part: Weights, table: NDArray[Any]) -> NDArray[Any]:
        sizes = dict(zip(part.clique, table.shape, strict=True))
        return table.reshape([sizes.get(place, 1) for place in clique])

    *_, last = parts
    every = reduce(np.logical_and, (spread(part, part.every) for part in parts))
    some = reduce(np.logical_and, (spread(part, part.some) for part in parts))
    judged = reduce(np.multiply, (spread(part, part.share) for part in parts[:-1]), np.ones(()))
    return Weights(
        clique,
        np.asarray(every, bool),
        np.asarray(some, bool),
        np.asarray(judged * spread(last, last.share), np.float64),
        np.asarray(np.broadcast_to(spread(last, last.least), np.shape(some)), np.float64),
        np.asarray(np.broadcast_to(spread(last, last.most), np.shape(some)), np.float64),
        np.asarray(judged * spread(last, last.mean), np.float64),
    )
