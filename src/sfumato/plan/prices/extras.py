"""Aggregates that need a question of their own beside the sums: quantiles and distinct values.

A report is one question about sums and counts (`Recipe.measured`) and such others, each with its part of the
price. They are read one after the other for one receipt.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms import Geometric, Laplace, NestedQuantiles, Quantiles
from sfumato.plan.expressions.facts import Facts, facts_of
from sfumato.plan.expressions.tree import Expression, only_column, to_wire
from sfumato.plan.intervals.cdf import Tree
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.intervals.rings import Aim
from sfumato.plan.prices.price import instrument
from sfumato.plan.prices.touched import PricedTouched, Touched
from sfumato.plan.questions.aggregates import argument_of, statistic
from sfumato.plan.questions.aggregates.quantile import Quantile
from sfumato.plan.questions.grids import CellGrid, grid_of
from sfumato.plan.questions.nodes import AggregateCall, Measured, Measurement
from sfumato.plan.questions.sensitivity import is_exchange
from sfumato.plan.questions.slots import Slot
from sfumato.plan.questions.sums import Range, range_of

__all__ = ["NESTED", "Distinct", "Extra", "PricedExtra", "QuantileSet", "Slot", "extras_of"]

NESTED = 1
"""Says in an answer on record that its quantiles were selected one between the others."""

_MANY = 2**14  # groups that may be found: their cells must fit together

_COUNTED, _COUNTED_ALONE = Fraction(3, 4), Fraction(5, 6)  # of a price; bars are then twice their errors

_EXTREMES = (
    (0, "MIN", "fall below", "least", "upper"),
    (1, "MAX", "exceed", "greatest", "lower"),
)


@dataclass(frozen=True, slots=True)
class QuantileSet:
    """Quantiles of one argument: the weights of its cells are read, and cells are selected.

    Attributes:
        measured: The question, with one measurement of `cells`.
        grid: The public cells.
        levels: Which quantiles, ascending.
        whole: Whether the numbers are whole.
    """

    measured: Measured
    grid: CellGrid
    levels: tuple[Fraction, ...]
    whole: bool

    @property
    def results(self) -> int:
        """How many columns it gives."""
        return len(self.levels)

    def priced(self, epsilon: Fraction, *, adds: bool = True) -> PricedQuantiles:
        """Its mechanisms at this price."""
        return PricedQuantiles(self, epsilon, adds)


@dataclass(frozen=True, slots=True)
class PricedQuantiles:
    """A quantile set with its price.

    Privacy:
        Claim: the selected cells and the noisy weights around them together carry `loss`, a pure ε. The cells
        are selected at a small part of it (`mechanisms.NestedQuantiles`). They say where the grid of each
        group is cut; the weights between cuts are then released at the rest by Laplace noise for their L1
        sensitivity: they are a partition of the cells, so a unit of weight R moves them by at most R, or 2R
        under exchange, whatever was selected (`intervals.rings.weights_between`). Both prices are fixed
        beforehand: pure prices add up also where the second question is chosen by the answer to the first.

    Attributes:
        extra: What is asked.
        epsilon: Its price.
        adds: Whether the budget that pays adds up pure prices: answers from before were selected otherwise
            for one that composes them more tightly.
    """

    extra: QuantileSet
    epsilon: Fraction
    adds: bool = True

    @property
    def selection(self) -> NestedQuantiles:
        """What selects the cells of all groups."""
        price = self.epsilon * (1 - self._counted)
        weight, exchange = self._own_weight, self._exchange
        return NestedQuantiles(price, self.extra.levels, sensitivity=weight, exchange=exchange)

    @property
    def bars(self) -> Laplace:
        """The noise of the weights between cuts, on their integers."""
        return Laplace(self.epsilon * self._counted, self._weight)

    @property
    def noise(self) -> Noise:
        """The law of that noise in natural units."""
        return Noise.of(self.bars, self.unit)

    @property
    def aims(self) -> tuple[Aim, ...]:
        """The ranks that the levels aim at, in natural units."""
        selection = self.selection
        guard = selection.guard(self.extra.grid.cells)
        return self._aims(guard, [math.sqrt(2 / each) for each in selection.rank_variances])

    @property
    def former_aims(self) -> tuple[Aim, ...]:
        """Those of answers kept from when each level was selected by itself."""
        weight, exchange = self._own_weight, self._exchange
        price = self.epsilon * (1 - self._counted)
        selection = Quantiles(
            price, self.extra.levels, sensitivity=weight, exchange=exchange, together=self.adds
        )
        guard = selection.guard(self.extra.grid.cells)
        return self._aims(guard, [float(selection.rate(each)) for each in self.extra.levels])

    def _aims(self, guard: int, rates: Sequence[float]) -> tuple[Aim, ...]:
        unit = float(self.unit)
        return tuple(
            Aim(
                level,
                guard * unit if level in (0, 1) else None,
                rate / unit,
                guard * unit if Quantiles.is_outer(level) else None,
            )
            for level, rate in zip(self.extra.levels, rates, strict=True)
        )

    @property
    def former(self) -> tuple[Tree, Noise]:
        """How still older ones were counted: all cells in a tree, at a third of a level's price."""
        tree = Tree(self.extra.grid.cells)
        price = self.epsilon / (1 + 3 * len(self.extra.levels))
        return tree, Noise.of(Laplace(price, tree.levels * self._weight), self.unit)

    @property
    def unit(self) -> Fraction:
        """What one integer is worth."""
        return instrument(self.extra.measured.measurements[0], self.extra.measured).unit

    @property
    def loss(self) -> PrivacyLoss:
        """What is debited for it."""
        return self.selection.loss + self.bars.loss

    @property
    def told(self) -> tuple[str, str]:
        """What is measured and with which noise, in words."""
        few = ", ".join(f"{float(level):.4g}" for level in self.extra.levels)
        return (
            f"quantiles {few} among {self.extra.grid.cells} cells",
            "exact selection, laplace counts around it",
        )

    @property
    def notes(self) -> list[str]:
        """What the extremes and their bars mean."""
        rows = math.ceil(self.selection.guard(self.extra.grid.cells) * self.unit)
        argument = self.extra.measured.measurements[0].argument
        column = None if argument is None else only_column(argument)
        what = f" of {column.name}" if column else ""
        return [
            f"{name}{what} is the value that about {rows:,} row{'s' * (rows != 1)} {side}, or the median of "
            f"fewer than {2 * rows:,}, and its bar is for that value; the very {most} lies between the bar's "
            f"{end} end and the declared bound."
            for level, name, side, most, end in _EXTREMES
            if level in self.extra.levels
        ]

    @property
    def _counted(self) -> Fraction:
        """The part of the price for counts: more for one inner level, which is selected well at little."""
        alone = len(self.extra.levels) == 1 and not Quantiles.is_outer(self.extra.levels[0])
        return _COUNTED_ALONE if alone else _COUNTED

    @property
    def _exchange(self) -> bool:
        return is_exchange(self.extra.measured.unit)

    @property
    def _own_weight(self) -> int:
        """What a unit's weights in the cells of all groups total."""
        return self._weight // (2 if self._exchange else 1)

    @property
    def _weight(self) -> int:
        """How far neighbouring tables differ in the cells of all groups together."""
        return instrument(self.extra.measured.measurements[0], self.extra.measured).sensitivity.l1


@dataclass(frozen=True, slots=True)
class Distinct:
    """The number of distinct values of an argument in each group."""

    measured: Measured

    @property
    def results(self) -> int:
        """One column."""
        return 1

    def priced(self, epsilon: Fraction, *, adds: bool = True) -> PricedDistinct:  # noqa: ARG002
        """Its mechanism at this price, the same for every budget."""
        return PricedDistinct(self, epsilon)


@dataclass(frozen=True, slots=True)
class PricedDistinct:
    """A count of distinct values with its price: geometric noise for the sensitivity of `values`."""

    extra: Distinct
    epsilon: Fraction

    @property
    def mechanism(self) -> Geometric:
        """What draws its noise."""
        return Geometric(self.epsilon, self._sensitivity)

    @property
    def noise(self) -> Noise:
        """The law of the noise."""
        return Noise.of(self.mechanism)

    @property
    def loss(self) -> PrivacyLoss:
        """What is debited for it."""
        return self.mechanism.loss

    @property
    def told(self) -> tuple[str, str]:
        """What is measured and with which noise, in words."""
        most = self._sensitivity
        many = "1 value" if most == 1 else f"{most:,} values"
        return f"distinct values, a unit vouches for {many}", f"geometric, scale {self.noise.scale:.3g}"

    @property
    def _sensitivity(self) -> int:
        return instrument(self.extra.measured.measurements[0], self.extra.measured).sensitivity.l1


Extra: TypeAlias = QuantileSet | Distinct | Touched
PricedExtra: TypeAlias = PricedQuantiles | PricedDistinct | PricedTouched


def extras_of(
    calls: Sequence[AggregateCall], columns: Mapping[str, Facts], base: Measured
) -> tuple[tuple[Extra, ...], dict[AggregateCall, Slot]]:
    """The extra questions of a report, and where each aggregate is among their results.

    Args:
        calls: The aggregates that need them.
        columns: What is known about the columns.
        base: The question about the same rows and keys, without measurements.

    Raises:
        QueryRefused: if an argument has no range.
    """
    sets: dict[Expression, list[AggregateCall]] = {}
    distinct: dict[Expression, list[AggregateCall]] = {}
    ranges: dict[Expression, Range] = {}
    for call in calls:
        argument = argument_of(call, columns)
        assert argument is not None
        if call.function == "count_values":
            facts_of(argument, columns)
            distinct.setdefault(argument, []).append(call)
            continue
        name = "MEDIAN" if call.level == Fraction(1, 2) else statistic(call.function).title
        known = range_of(name, argument, columns)
        ranges[known.argument] = known
        sets.setdefault(known.argument, []).append(call)
    extras: list[Extra] = []
    slots: dict[AggregateCall, Slot] = {}
    for argument in sorted(sets, key=_written):
        known = ranges[argument]
        grid = grid_of(known, _MANY if base.is_open else len(base.combinations))
        levels = tuple(sorted({_level(call) for call in sets[argument]}))
        cells = Measurement("cells", grid.index(argument), 0, grid.cells - 1, marks=tuple(map(str, levels)))
        extra = QuantileSet(replace(base, measurements=(cells,)), grid, levels, known.whole)
        slots |= {call: Slot(len(extras), levels.index(_level(call)), known.whole) for call in sets[argument]}
        extras.append(extra)
    for argument in sorted(distinct, key=_written):
        values = Measurement("values", argument)
        slots |= {call: Slot(len(extras), 0, True) for call in distinct[argument]}
        extras.append(Distinct(replace(base, measurements=(values,))))
    return tuple(extras), slots


def _level(call: AggregateCall) -> Fraction:
    known = statistic(call.function)
    level = known.level if isinstance(known, Quantile) and call.level is None else call.level
    return Fraction(1, 2) if level is None else level


def _written(expression: Expression) -> str:
    return json.dumps(to_wire(expression))
