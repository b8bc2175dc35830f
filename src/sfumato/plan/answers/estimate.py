"""From noisy measurements to the numbers that are shown, with an interval for the noise of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational
from sfumato.plan.answers.boxes import Affine, Box, Solver
from sfumato.plan.answers.covering import Covering, LeftOut
from sfumato.plan.answers.later import KeyColumn, Later, Values
from sfumato.plan.answers.order import arranged, held_rows, shown_rows
from sfumato.plan.answers.outside import Movable, Outside
from sfumato.plan.answers.over import Groups, over_rows
from sfumato.plan.answers.reconcile import reconciled, reconciled_lines
from sfumato.plan.expressions.facts import facts_of
from sfumato.plan.expressions.ranges import Facts
from sfumato.plan.expressions.tree import Column, Expression, columns_of, literal
from sfumato.plan.expressions.written import written
from sfumato.plan.intervals.forms import Floats
from sfumato.plan.intervals.noise import Noise, risk_of
from sfumato.plan.prices.recipe import Recipe
from sfumato.plan.questions.aggregates import Estimator, Linear, as_whole
from sfumato.plan.questions.aggregates._average import Average
from sfumato.plan.questions.cut import Cut
from sfumato.plan.questions.found import Found
from sfumato.plan.questions.levels import stages_of
from sfumato.plan.questions.nodes import LEVEL, Report
from sfumato.plan.questions.others import labels
from sfumato.plan.questions.slots import Slot

__all__ = ["Estimates", "Values", "estimate"]


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """The answer to a report: its columns, and for each number an interval for the noise.

    An interval holds the value *before noise* (the exact aggregates of the data as they were measured:
    clamped, weighted, over the rows that have a public key) with probability at least the confidence, for
    each cell by itself and whatever the data are. It says nothing about other data that could have been
    collected, nor about what clamps and weights took away. It is not simultaneous over cells, and it is as of
    before HAVING, ORDER BY and LIMIT choose rows: among the rows with the greatest values, more than the
    stated part err upwards.

    Where a value before noise does not exist (an average over no rows), every convention for it is covered.

    Attributes:
        columns: By name and in the report's order: int64 for whole numbers, float64 for others, objects for
            keys and text, bool and datetime64 for what conditions and dates give; masked where NULL.
        rows: Which of the question's combinations the rows are.
        intervals: The names of the columns that have an interval: numbers with noise in them.
        keys: The columns that are keys as they are, without an object for each value.
    """

    columns: Mapping[str, Values]
    rows: NDArray[np.int64]
    intervals: tuple[str, ...]
    keys: Mapping[str, KeyColumn] = field(repr=False)
    _expressions: Mapping[str, Expression] = field(repr=False)
    _solver: Solver = field(repr=False)
    _cover: Covering = field(repr=False)
    _among: int = field(default=1, repr=False)

    def value(self, name: str) -> Values:
        """One column."""
        if name not in self.columns:
            raise InvalidParameter(f"The answer has no column {name[:60]!r}.")
        return self.columns[name]

    def interval(self, name: str, confidence: Rational = 0.95) -> Box:
        """The lower and upper ends of one column's intervals, the value between them; NaN where it is NULL.

        Raises:
            InvalidParameter: for keys and for columns that are not numbers, and unless 0 < confidence < 1.
        """
        shown = self._numbers(name)
        return _around(shown, self._solver.interval(self._expressions[name], risk_of(confidence)))

    def covering(self, name: str, confidence: Rational = 0.95) -> Box:
        """Intervals for the values over all rows, what limits left out included; else as `interval`.

        All rows: those that belong to a unit, pass the condition and have a reported key, with numbers held
        within their bounds. An end is infinite where nothing is known on that side. Where released values
        choose the rows (HAVING, LIMIT), all of them hold at once, those that were not chosen too: the risk is
        shared by all groups there were.
        """
        shown = self._numbers(name)
        ends = self._cover.interval(self._expressions[name], risk_of(confidence) / self._among)
        low, high = _around(shown, ends)
        if not self.cut(name):
            return low, high
        least, most = self.certain(name)
        return np.maximum(low, least), np.minimum(high, most)

    def given(self, left_out: LeftOut) -> Estimates:
        """The same where other bounds on what limits left out are taken to hold."""
        return replace(self, _cover=replace(self._cover, left_out=left_out))

    def _numbers(self, name: str) -> Values:
        shown = self.value(name)
        if name not in self.intervals:
            raise InvalidParameter(
                f"Column {name[:60]!r} has no error bar: it is not a number with noise in it."
            )
        return shown

    @property
    def chosen(self) -> bool:
        """Whether released values may have chosen the rows: bars hold less often for such than `covering`."""
        return self._among > 1

    def cut(self, name: str) -> bool:
        """Whether limits may leave something out of a column."""
        return self._cover.cut(self._expressions[name])

    def tells(self, name: str) -> bool:
        """Whether the covering intervals of a column say more than `certain` does."""
        return self._cover.tells(self._expressions[name])

    def whole(self, name: str) -> str:
        """What the values of a column that is cut would be over: `all rows`."""
        return self._cover.whole(self._expressions[name])

    def certain(self, name: str) -> Box:
        """Where the values over all rows are, as far as that is public."""
        return self._cover.interval(self._expressions[name], 0.0)

    def half_width(self, name: str, confidence: Rational = 0.95) -> Floats:
        """How far the value before noise may be from the shown one: the longer side of the interval."""
        low, high = self.interval(name, confidence)
        at = np.ma.filled(self.value(name).astype(np.float64), np.nan)
        with np.errstate(invalid="ignore"):  # an infinite value has no width
            return np.maximum(high - at, at - low)


def estimate(
    recipe: Recipe,
    report: Report,
    noises: Sequence[Noise],
    noisy: Sequence[ArrayLike],
    outside: Mapping[int, Outside] | None = None,
    cuts: Sequence[Cut] | None = None,
    left_out: LeftOut | None = None,
) -> Estimates:
    """The answer to a report from its noisy measurements: post-processing, at no cost.

    Means are center + S/max(n, 1) held within the declared range, and its middle where n ≤ 0; variances
    likewise, with n − 1 for samples; covariances and correlations are 0 there. Where n is public it stands
    for itself. Rows are filtered, sorted (ties in the report's own order of keys) and cut by the released
    values.

    Args:
        recipe: What was measured, and how each aggregate follows.
        report: What is shown.
        noises: The law of each measurement's noise.
        noisy: The measurements in natural units, best as they were drawn, before rounding to whole numbers:
            one array each, aligned with `recipe.measured.combinations`.
        outside: The results of the extra questions by number, aligned likewise; −1 is the selection's.
        cuts: What limits may take from each aggregate; by default anything.
        left_out: What they took at most, where that is known.

    Raises:
        InvalidParameter: if these do not fit together.
    """
    arrays = [np.asarray(array) for array in noisy]
    size = len(recipe.measured.combinations)
    if not len(arrays) == len(noises) == len(recipe.measured.measurements):
        raise InvalidParameter("An estimate takes one array and one noise for each measurement.")
    if any(array.shape != (size,) for array in arrays):
        raise InvalidParameter("Every measurement has one number for each combination of keys.")
    order = np.arange(size) if isinstance(recipe.row_order, range) else np.asarray(recipe.row_order, np.int64)
    arrays = [array[order] for array in arrays]
    others = {} if outside is None else outside
    agreed = arrays
    if recipe.measured.levels:
        agreed = _agreed(recipe, arrays)
        # Intervals are around the measurements. With Gaussian noise, the estimates that agree have Gaussian
        # errors of no more variance (Gauss, Markov), and intervals of the same width hold around them.
        if all(noise.law == "gaussian" for noise in noises):
            arrays = _agreed(recipe, arrays, rounded=False)
    every = recipe.measured.combinations
    keys = {f"k{i}": KeyColumn(every, at, order, i) for i, at in enumerate(recipe.key_order)}
    made = _results(recipe, agreed, order, others) | _left_out(recipe, report, len(order))
    if recipe.lines:
        made[LEVEL] = np.ma.MaskedArray(np.array(labels(recipe.lines, _key_names(recipe, report)), object))
    results = _with_keys(made, keys)
    left = held_rows(report, results, arranged(recipe, [*keys.values()], len(order)))
    groups = Groups(report.windows, results, left)
    made |= groups.columns(len(order))
    results = _with_keys(made, keys)
    kept = shown_rows(report, results, left)
    if report.windows:
        inside = _with_keys({name: column[left] for name, column in made.items()}, _over(keys, left))
        chosen = [array[left] for array in arrays]
        groups.solver = _solver(recipe, chosen, tuple(noises), inside, others, order[left])
        place = np.zeros(len(order), dtype=np.int64)
        place[left] = np.arange(len(left))
        groups.places = place[kept]
    keys = _over(keys, kept)
    results = _with_keys({name: column[kept] for name, column in made.items()}, keys)
    chosen = [array[kept] for array in arrays]
    solver = _solver(recipe, chosen, tuple(noises), results, others, order[kept], groups)
    kinds = {name: _facts(name, recipe) for name in results if name[0] != "w"}
    kinds |= {
        f"w{place}": Facts("integer" if window.function != "sum" else facts_of(window.value, kinds).kind)
        for place, window in enumerate(report.windows)
    }
    columns: dict[str, Callable[[], Values]] = {}
    plain, bars = {}, []
    for output in report.columns:
        facts = facts_of(output.expression, kinds)
        if isinstance(output.expression, Column) and output.expression.name in keys:
            plain[output.name] = keys[output.expression.name]
            columns[output.name] = partial(_shown, output.expression, facts, results, len(kept))
            continue
        columns[output.name] = partial(_same, _shown(output.expression, facts, results, len(kept)))
        if facts.numeric and solver.noisy_in(output.expression):
            bars.append(output.name)
    expressions = {output.name: output.expression for output in report.columns}
    named = {f"a{place}": cut for place, cut in enumerate(cuts or [Cut()] * len(recipe.aggregates))}
    open_ = {name for name, cut in named.items() if cut.adds > 0 or cut.takes > 0}
    named |= {f"w{place}": Cut() for place in range(len(report.windows)) if groups.names(place) & open_}
    counts = {
        f"a{place}": _single(aggregate.parts[1], len(arrays))
        for place, aggregate in enumerate(recipe.aggregates)
        if isinstance(aggregate, Average)
    }
    uncertain = {name: cut for name, cut in named.items() if name not in solver.keys}
    if groups.solver is not None:
        groups.cover = Covering(groups.solver, uncertain, counts, left_out)
    over = groups if groups.cover is not None else None
    ranks = {
        f"a{place}": _rank(moved, slot.place, order[kept])
        for place, slot in enumerate(recipe.aggregates)
        if isinstance(slot, Slot) and isinstance(moved := others.get(slot.extra), Movable)
    }
    cover = Covering(solver, uncertain, counts, left_out, over, ranks)
    among = len(order) if report.having is not None or report.limit is not None else 1
    shown = Later(columns)
    return Estimates(shown, order[kept], tuple(bars), plain, expressions, solver, cover, max(1, among))


def _with_keys(made: Mapping[str, Values], keys: Mapping[str, KeyColumn]) -> Later[Values]:
    """All results by name, of which keys, which may be many texts, are made last and if at all."""
    ready = {name: partial(_same, column) for name, column in made.items()}
    return Later(ready | {name: partial(_values, key) for name, key in keys.items()})


def _same(column: Values) -> Values:
    return column


def _values(key: KeyColumn) -> Values:
    return key.values


def _over(keys: Mapping[str, KeyColumn], rows: NDArray[np.int64]) -> dict[str, KeyColumn]:
    return {name: key.over(rows) for name, key in keys.items()}


def _rank(quantile: Movable, place: int, rows: NDArray[np.int64]) -> Callable[[float, float], Box]:
    """The interval of a quantile on some rows, at a risk, where so many rows may have been left out."""

    def ends(risk: float, added: float) -> Box:
        low, high = quantile.moved(place, risk, added)
        return low[rows], high[rows]

    return ends


def _around(shown: Values, ends: Box) -> Box:
    """Intervals with the shown values in them; NaN where those are NULL."""
    at = np.ma.filled(shown.astype(np.float64), np.nan)
    missing = np.isnan(at)
    low, high = ends
    return np.where(missing, np.nan, np.fmin(low, at)), np.where(missing, np.nan, np.fmax(high, at))


def _agreed(recipe: Recipe, arrays: list[NDArray[Any]], *, rounded: bool = True) -> list[NDArray[Any]]:
    """Numbers of several levels that add up."""
    if recipe.measured.is_open:
        return [*reconciled_lines(recipe.measured, recipe.lines, arrays, rounded=rounded)]
    return [*reconciled(recipe.measured, arrays, rounded=rounded)]


def _left_out(recipe: Recipe, report: Report, size: int) -> dict[str, Values]:
    """What GROUPING asks about: `g0`, …, 1 in the rows of levels that leave a key out, 0 in others."""
    shown = [column.expression for column in report.columns] + [item.expression for item in report.order]
    shown += [] if report.having is None else [report.having]
    asked = {name for expression in shown for name in columns_of(expression) if name.startswith("g")}
    levels = _levels(recipe, size) if asked else []
    marks: dict[str, Values] = {}
    for name in sorted(asked):
        key = recipe.key_order[int(name[1:])]
        marks[name] = np.ma.MaskedArray(np.array([key not in level for level in levels], dtype=np.int64))
    return marks


def _levels(recipe: Recipe, size: int) -> list[tuple[int, ...]]:
    """The level of each row, as the keys that it has."""
    measured = recipe.measured
    if recipe.lines:
        return [line.level for line in recipe.lines]
    if not measured.levels:
        return [tuple(range(len(measured.keys)))] * size
    stages = stages_of(measured.keys, measured.levels, measured.together)
    return [level for level, stage in zip(measured.levels, stages, strict=True) for _ in stage.rows]


def _key_names(recipe: Recipe, report: Report) -> list[str]:
    """What the question's keys are called in the result; those that are not shown, as they are written."""
    shown = {column.expression: column.name for column in reversed(report.columns)}
    names = {at: shown.get(Column(f"k{i}")) for i, at in enumerate(recipe.key_order)}
    return [names[at] or written(key.expression) for at, key in enumerate(recipe.measured.keys)]


def _results(
    recipe: Recipe, arrays: list[NDArray[Any]], order: NDArray[np.int64], outside: Mapping[int, Outside]
) -> dict[str, Values]:
    """Aggregates `a0`, … before any row is left out."""
    results: dict[str, Values] = {}
    for i, estimator in enumerate(recipe.aggregates):
        if isinstance(estimator, Slot):
            results[f"a{i}"] = np.ma.MaskedArray(outside[estimator.extra].value(estimator.place)[order])
            continue
        results[f"a{i}"] = np.ma.MaskedArray(estimator.value([arrays[part] for part in estimator.parts]))
    return results


def _facts(name: str, recipe: Recipe) -> Facts:
    """The kind of a result; nothing is said about the values."""
    if name == LEVEL:
        return Facts("text", nullable=False)
    if name.startswith("g"):
        return Facts("integer", nullable=False)
    if name.startswith("a"):
        return Facts("integer" if recipe.aggregates[int(name[1:])].whole else "float")
    at = recipe.key_order[int(name[1:])]
    values: Iterable[Any] | None = recipe.measured.keys[at].values
    groups = recipe.measured.combinations
    if values is None and isinstance(groups, Found):
        values = (groups.first(at),)
    if values is None:  # found in the data: their kind is that of the first that is not NULL
        values = (row[at] for row in groups if row[at] is not None)
    return Facts(literal(next(iter(values), None)).kind)


def _shown(expression: Expression, facts: Facts, results: Mapping[str, Values], size: int) -> Values:
    if isinstance(expression, Column):
        values = results[expression.name]
    else:
        values = over_rows(expression, results, size)
    if facts.kind == "integer" and values.dtype.kind == "f":
        return np.ma.MaskedArray(as_whole(np.ma.filled(values, 0.0)), mask=np.ma.getmaskarray(values))
    return values


def _solver(
    recipe: Recipe,
    arrays: list[NDArray[Any]],
    noises: tuple[Noise, ...],
    results: Mapping[str, Values],
    outside: Mapping[int, Outside],
    rows: NDArray[np.int64],
    groups: Groups | None = None,
) -> Solver:
    """What intervals are computed from."""
    floats = tuple(array.astype(np.float64) for array in arrays)
    laws = tuple(_law(noise, array) for noise, array in zip(noises, floats, strict=True))
    forms = {
        f"a{i}": _form(aggregate, len(floats))
        for i, aggregate in enumerate(recipe.aggregates)
        if isinstance(aggregate, Linear) and aggregate.parts
    }

    def solve(name: str, risk: float) -> Box:
        if groups is not None and name[0] == "w":
            return groups.interval(int(name[1:]), risk)
        estimator = recipe.aggregates[int(name[1:])]
        if isinstance(estimator, Slot):
            low, high = outside[estimator.extra].interval(estimator.place, risk)
            return low[rows], high[rows]
        return _solved(estimator, solver, forms.get(name), risk=risk)

    known = {
        f"a{i}"
        for i, aggregate in enumerate(recipe.aggregates)
        if isinstance(aggregate, Linear) and not aggregate.parts
    }
    if groups is not None:
        known |= {
            f"w{i}" for i in range(len(groups.windows)) if not any(n[0] == "a" for n in groups.names(i))
        }
    public = [name for name in results if name[0] not in "aw" or name in known]
    keys = Later({name: partial(_key_array, results, name) for name in public})
    solver = Solver(floats, noises, laws, keys, forms, solve, len(rows))
    return solver


def _law(noise: Noise, array: Floats) -> Noise:
    """The noise of what was handed over: with the slack of rounding only where numbers were rounded."""
    return noise if noise.rounding and bool((array == np.rint(array)).all()) else noise.unrounded


def _single(part: int, count: int) -> Affine:
    """One measurement as it is."""
    form = np.zeros((count, 1))
    form[part] = 1.0
    return Affine(np.zeros(1), form)


def _form(estimator: Linear, count: int) -> Affine:
    form = np.zeros((count, 1))
    for part, weight in zip(estimator.parts, estimator.weights, strict=True):
        form[part] += float(weight)
    return Affine(np.array([float(estimator.constant)]), form)


def _key_array(results: Mapping[str, Values], name: str) -> NDArray[Any]:
    """A key as an array of its own type."""
    values = results[name].data
    first = values[0] if len(values) else None
    if isinstance(first, int | float) and not isinstance(first, bool):
        return values.astype(np.float64)
    return values


def _solved(estimator: Estimator, solver: Solver, form: Affine | None, *, risk: float) -> Box:
    """The interval of one aggregate."""
    if form is not None:
        low, high = solver.spread(form, risk)
        return np.clip(low, *estimator.limits), np.clip(high, *estimator.limits)
    noisy = [solver.noisy[part] for part in estimator.parts]
    return estimator.interval(noisy, [solver.laws[part] for part in estimator.parts], risk=risk)
