"""How many units clamps, weights and the choice of groups touched: the cut that noise bars leave out."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms import Geometric
from sfumato.plan.expressions.normal import conjunction
from sfumato.plan.expressions.tree import Call, Column, Expression, call, literal
from sfumato.plan.expressions.tree import Literal as Constant
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.prices.price import instrument
from sfumato.plan.questions.bounding.reweight import Reweight
from sfumato.plan.questions.nodes import Measured, Measurement, PerUnit, Source
from sfumato.plan.questions.sensitivity import rows_in_group
from sfumato.plan.questions.sources import AggregateCall
from sfumato.schema import PrivacyUnit

__all__ = ["PricedTouched", "Share", "Touched", "touched_of"]

_ROWS, _OUTSIDE, _GROUPS, _CUT, _TOTAL = "rows", "outside", "groups", "cut", "total"


@dataclass(frozen=True, slots=True, repr=False)
class Share:
    """A part of the units, with an interval for the noise."""

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.share:.1%} ({self.low:.1%} to {self.high:.1%})"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class Touched:
    """The number of units, and of those that were clamped or cut."""

    measured: Measured

    @property
    def results(self) -> int:
        """No column of the report."""
        return 0

    def priced(self, epsilon: Fraction, *, adds: bool = True) -> PricedTouched:  # noqa: ARG002
        """Its mechanisms at this price, the same for every budget."""
        return PricedTouched(self, epsilon)


@dataclass(frozen=True, slots=True)
class PricedTouched:
    """The two counts with their price.

    Privacy:
        Claim: both together carry `loss`. There is one row for each unit (`PerUnit`), so each count moves by
        at most 1 when a unit comes or goes, and by at most 2 under exchange; each is released at half of ε.
    """

    extra: Touched
    epsilon: Fraction

    @property
    def mechanism(self) -> Geometric:
        """What draws the noise of each count."""
        tool = instrument(self.extra.measured.measurements[0], self.extra.measured)
        return Geometric(self.epsilon / 2, tool.sensitivity.l1)

    @property
    def loss(self) -> PrivacyLoss:
        """What is debited for both."""
        return self.mechanism.loss * 2

    @property
    def told(self) -> tuple[str, str]:
        """What is measured and with which noise, in words."""
        noise = Noise.of(self.mechanism)
        return "units, and those clamped or cut", f"geometric, scale {noise.scale:.3g}"

    def share(self, units: int, touched: int, risk: float) -> Share:
        """The part of the units that were touched: both counts lie within their noise, half the risk each."""
        wide = Noise.of(self.mechanism).width(risk / 2)
        least, most = max(0.0, touched - wide), max(0.0, touched + wide)
        low = min(1.0, least / max(1.0, units + wide))
        high = min(1.0, most / (units - wide)) if units > wide else 1.0
        middle = touched / units if units > 0 else 0.0
        return Share(float(np.clip(middle, low, high)), low, high)


def touched_of(main: Measured) -> Touched | None:
    """The question which units a main question touches; None where none can be: each row is a unit.

    Ranks of a prepared table were given before any condition, and are not seen here: behind one nothing can
    be said. Those of groups touch whoever has more groups, or rows in one, than count, listed or not.
    """
    unit, bounding = main.unit, main.bounding
    if unit.column is None or not bounding.tells_touched(condition=main.predicate is not None):
        return None
    predicate, outside = None if bounding.ranks(unit) else _predicate(main), _outside(main)
    figures: list[tuple[str, AggregateCall]] = [(_ROWS, AggregateCall("count"))]
    figures += [] if outside is None else [(_OUTSIDE, AggregateCall("count", outside))]
    figures += _totals(main)
    source: Source
    if bounding.few_groups and main.keys:
        keys = tuple((f"key {i}", key.expression) for i, key in enumerate(main.keys))
        pairs = PerUnit(main.rows, predicate, keys, tuple(figures))
        beyond: list[Expression] = [call("greater", Column(_ROWS), literal(rows_in_group(unit)))]
        beyond += _beyond(main)
        beyond += [] if outside is None else [call("greater", Column(_OUTSIDE), literal(0))]
        flag = call("case", _any(beyond), literal(1), literal(0))
        lines = ((_GROUPS, AggregateCall("count")), (_CUT, AggregateCall("max", flag)))
        source = PerUnit(pairs, None, (), lines)
        cut: list[Expression] = [
            call("greater", Column(_GROUPS), literal(unit.max_groups)),
            call("greater", Column(_CUT), literal(0)),
        ]
    else:
        source = PerUnit(main.rows, predicate, (), tuple(figures))
        cut = [call("greater", Column(_ROWS), literal(unit.max_rows)), *_beyond(main)]
        cut += [] if outside is None else [call("greater", Column(_OUTSIDE), literal(0))]
    counted = call("case", _any(cut), literal(1), Constant(None, None))
    row = PrivacyUnit.row(adjacency=unit.adjacency)
    question = replace(
        main,
        unit=row,
        predicate=None,
        keys=(),
        combinations=((),),
        measurements=(Measurement("rows"), Measurement("present", counted)),
        source=source,
        bounding=Reweight(),
        levels=(),
    )
    return Touched(question)


def _any(conditions: list[Expression]) -> Expression:
    return conditions[0] if len(conditions) == 1 else Call("or", tuple(conditions))


def _totals(main: Measured) -> list[tuple[str, AggregateCall]]:
    """A unit's own figures in a group, where bounds are for those."""
    totals: list[tuple[str, AggregateCall]] = []
    for place, measurement in enumerate(main.measurements):
        if measurement.per == "row":
            continue
        if measurement.kind == "sum":
            function = {"total": "sum", "average": "mean"}[measurement.per]
            totals.append((f"{_TOTAL} {place}", AggregateCall(function, measurement.argument)))
        elif measurement.upper > 1:  # of 0 or 1 it is only asked whether there is any
            totals.append((f"{_TOTAL} {place}", AggregateCall("count", measurement.argument)))
    return totals


def _beyond(main: Measured) -> list[Expression]:
    """Whether such a figure lies outside its bounds."""
    conditions: list[Expression] = []
    for name, _ in _totals(main):
        measurement = main.measurements[int(name.rpartition(" ")[2])]
        low, high = (
            float(Fraction(bound, 1 << measurement.bits)) for bound in (measurement.lower, measurement.upper)
        )
        conditions.append(call("less", Column(name), literal(low)))
        conditions.append(call("greater", Column(name), literal(high)))
    return conditions


def _predicate(main: Measured) -> Expression | None:
    """The rows that count: those that pass the condition and have a public key."""
    parts = [] if main.predicate is None else [main.predicate]
    listed = [key for key in main.keys if key.values]
    parts += [Call("in", (key.expression, *map(literal, key.values or ()))) for key in listed]
    return conjunction(parts) if parts else None


def _outside(main: Measured) -> Expression | None:
    """1 for a row that a clamp changes, NULL for others; None where nothing is clamped."""
    beyond: list[Expression] = []
    for measurement in main.measurements:
        if measurement.kind == "sum" and measurement.per == "row" and measurement.argument is not None:
            low, high = (
                float(Fraction(bound, 1 << measurement.bits))
                for bound in (measurement.lower, measurement.upper)
            )
            beyond.append(call("less", measurement.argument, literal(low)))
            beyond.append(call("greater", measurement.argument, literal(high)))
    if not beyond:
        return None
    return call("case", Call("or", tuple(beyond)), literal(1), Constant(None, None))
