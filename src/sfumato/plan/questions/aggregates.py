"""The aggregates: for each, which integers are measured and how its value follows from them.

To add one, write a class with a `plan` and list it in `AGGREGATES`; its sensitivity is that of its
measurements, which `plan.questions.sensitivity` proves once for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, Protocol, TypeAlias

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts, facts_of
from sfumato.plan.expressions.tree import Expression, call, literal, to_wire
from sfumato.plan.expressions.tree import Literal as Constant
from sfumato.plan.questions.nodes import AggregateCall, AggregateName, Measurement
from sfumato.plan.questions.sums import Range, held, products, range_of

__all__ = [
    "AGGREGATES",
    "EXTERNAL",
    "PAIRS",
    "Estimator",
    "EstimatorKind",
    "PairRule",
    "Part",
    "Range",
    "Rule",
    "argument_of",
    "range_of",
    "ways_of",
]

EstimatorKind: TypeAlias = Literal["count", "sum", "mean", "var", "std", "covar", "corr"]

EXTERNAL = {"count_values", "min", "max", "quantile"}
"""Aggregates that need a question of their own beside the sums (`plan.prices.extras`)."""

_LARGEST = 1e308  # what is larger in absolute value is as good as infinite
_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, slots=True)
class Estimator:
    """How one aggregate is computed from the noisy measurements, in natural units (not in fixed point).

    With θ = S/n, for the parts S (sum of x − center), Q (sum of (x − center)² − shift) and n (count):
    count is n; sum is S, or S + center·n where it has two parts; mean is center + θ; var is Q/n + shift − θ²,
    times n/(n − 1) for a sample; std is its square root. For two columns with the parts S and T (sums of both
    distances), P (of their products), Q and R (of their squares less `shift` and `other_shift`): covar is
    P/n − (S/n)(T/n), times n/(n − 1) for a sample; corr is the covariance over the root of both variances.

    Attributes:
        kind: Which formula.
        parts: Indices into `Measured.measurements`: count (n,), sum (S,) or (S, n), mean (S, n), var and std
            (S, Q, n), covar (S, T, P, n), corr (S, T, P, Q, R, n).
        center: What was taken off every value before summing; 0 for a count and for a sum of one part.
        half: How far from the center a value can be: half the width of its range where that is the middle; 0
            for counts.
        shift: What was taken off every square before summing.
        sample: Whether a variance divides by n − 1.
        lower: The least value that the aggregate can have by declaration; None for count and sum.
        upper: The greatest one.
        whole: Whether the true value is a whole number, so that the released one is rounded.
        other_half: The same as `half` for the second column.
        other_shift: The same as `shift` for the second column.
        rows: The number of rows where that is public and all of them count: then n is no part, and this
            stands in its place.
    """

    kind: EstimatorKind
    parts: tuple[int, ...]
    center: Fraction = _ZERO
    half: Fraction = _ZERO
    shift: Fraction = _ZERO
    sample: bool = False
    lower: Fraction | None = None
    upper: Fraction | None = None
    whole: bool = False
    other_half: Fraction = _ZERO
    other_shift: Fraction = _ZERO
    rows: int | None = None

    @property
    def affine(self) -> tuple[Fraction, tuple[Fraction, ...]] | None:
        """A constant and the coefficients of the parts, where those alone make it; None for other formulas.

        So are counts, sums, and averages over a public number of rows.
        """
        if self.kind == "count":
            return (_ZERO, (_ONE,)) if self.rows is None else (Fraction(self.rows), ())
        if self.kind == "sum":
            if self.rows is not None:
                return self.center * self.rows, (_ONE,)
            return _ZERO, (_ONE, self.center)[: len(self.parts)]
        if self.kind == "mean" and self.rows is not None:
            return self.center, (Fraction(1, self.rows),)
        return None

    @property
    def offset(self) -> Fraction:
        """How far from the center a typical average lies: a quarter of the range off its middle."""
        if self.lower is None or self.upper is None or self.kind != "mean":
            return self.half / 2
        return abs((self.lower + self.upper) / 2 - self.center) + (self.upper - self.lower) / 4


@dataclass(frozen=True, slots=True)
class Part:
    """One aggregate's measurements, and its estimator with indices into them."""

    measurements: tuple[Measurement, ...]
    estimator: Estimator


class Rule(Protocol):
    """An aggregate: what it measures and how its value follows."""

    def plan(self, argument: Expression | None, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """The ways to measure it, the one that is best alone first.

        Raises:
            QueryRefused: if its argument has no range, with what would give it one.
        """
        ...


@dataclass(frozen=True, slots=True)
class Count:
    """COUNT(*), or of the rows where the argument is present."""

    def plan(self, argument: Expression | None, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """All rows where the argument cannot be missing."""
        measurement = Measurement("rows")
        if argument is not None and facts_of(argument, columns).nullable:
            measurement = Measurement("present", argument)
        return (Part((measurement,), Estimator("count", (0,), whole=True)),)


@dataclass(frozen=True, slots=True)
class CountUnits:
    """COUNT(DISTINCT unit)."""

    def plan(self, argument: Expression | None, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """The units, whatever the argument says: the parser lets only the unit's column through."""
        del argument, columns
        return (Part((Measurement("units"),), Estimator("count", (0,), whole=True)),)


@dataclass(frozen=True, slots=True)
class Sum:
    """SUM: of the numbers themselves, or of their distances from the middle of the range, and the count."""

    def plan(self, argument: Expression | None, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """Measured directly; the second way is for reports that need the count or the average anyway."""
        known = range_of("SUM", argument, columns)
        plain = Estimator("sum", (0,), half=known.reach(_ZERO), whole=known.whole)
        direct = Part((known.total(_ZERO),), plain)
        if not known.middle:
            return (direct,)
        center = known.middle
        centred = Estimator("sum", (0, 1), center=center, half=known.reach(center), whole=known.whole)
        return direct, Part((known.total(center), known.present()), centred)


@dataclass(frozen=True, slots=True)
class Mean:
    """AVG: the middle of the range, plus the sum of the distances from it over the count."""

    def plan(self, argument: Expression | None, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """Centred; the second way takes the plain sum, for reports that measure that anyway."""
        known = range_of("AVG", argument, columns)
        centers = (known.middle, _ZERO) if known.middle else (_ZERO,)
        return tuple(
            Part(
                (known.total(center), known.present()),
                Estimator(
                    "mean",
                    (0, 1),
                    center=center,
                    half=known.reach(center),
                    lower=known.lower,
                    upper=known.upper,
                ),
            )
            for center in centers
        )


@dataclass(frozen=True, slots=True)
class Spread:
    """VARIANCE and STDDEV, from the centred sum, the centred squares and the count."""

    name: str
    kind: Literal["var", "std"]
    sample: bool
    most: Callable[[Fraction], Fraction] = field(repr=False)

    def plan(self, argument: Expression | None, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """One way: the squares are taken around the middle of the range and shifted by half their own."""
        known = range_of(self.name, argument, columns)
        squares, shift = known.squares()
        half = known.reach(known.middle)
        estimator = Estimator(
            self.kind,
            (0, 1, 2),
            center=known.middle,
            half=half,
            shift=shift,
            sample=self.sample,
            lower=_ZERO,
            upper=self.most(half),
        )
        return (Part((known.total(known.middle), squares, known.present()), estimator),)


class PairRule(Protocol):
    """An aggregate of two columns."""

    def plan(self, first: Expression, second: Expression, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """The ways to measure it, the one that is best alone first.

        Raises:
            QueryRefused: if an argument has no range, with what would give it one.
        """
        ...


@dataclass(frozen=True, slots=True)
class Pair:
    """Two columns over the rows where both are present, in an order that does not depend on the question's.

    Each column is made missing where the other is; where the other never is, its sums are those that AVG and
    VARIANCE measure. Infinite numbers count as missing here, unless nothing may be missing.

    Attributes:
        first: One column where the other is present.
        second: The other one where the first is.
        count: How often both are.
        product: The sum of the products of their distances from the middles.
    """

    first: Range
    second: Range
    count: Measurement
    product: Measurement

    @classmethod
    def of(cls, name: str, first: Expression, second: Expression, columns: Mapping[str, Facts]) -> Pair:
        """The pair of these arguments."""
        first, second = sorted((first, second), key=lambda each: str(to_wire(each)))
        plain, alone = range_of(name, first, columns), range_of(name, second, columns)
        there = _there((first, second), columns)
        one = range_of(name, _only(there, first) if alone.nullable and first != second else first, columns)
        two = range_of(name, _only(there, second) if plain.nullable and first != second else second, columns)
        count = one.present() if plain.nullable else two.present()
        sides = replace(one, argument=plain.argument), replace(two, argument=alone.argument)
        return cls(one, two, count, products(*sides, there))


def _only(there: Expression | None, argument: Expression) -> Expression:
    return argument if there is None else call("case", there, argument, Constant(None, None))


def _there(arguments: tuple[Expression, ...], columns: Mapping[str, Facts]) -> Expression | None:
    """Whether all of these are numbers; None where none of them can be missing."""
    conditions: list[Expression] = []
    for argument in dict.fromkeys(arguments):
        facts = facts_of(argument, columns)
        if facts.nullable and facts.kind == "float":  # NaN is above all numbers
            conditions.append(call("less_equal", call("abs", argument), literal(_LARGEST)))
        elif facts.nullable:
            conditions.append(call("not", call("is_null", argument)))
    return conditions[0] if len(conditions) == 1 else call("and", *conditions) if conditions else None


@dataclass(frozen=True, slots=True)
class Covariance:
    """COVAR_POP and COVAR_SAMP, from both centred sums, the products of the centred values and the count."""

    name: str
    sample: bool

    def plan(self, first: Expression, second: Expression, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """One way: the middles of both ranges are taken off, so that products are as far above 0 as below."""
        pair = Pair.of(self.name, first, second, columns)
        one, two = pair.first, pair.second
        half, other = one.reach(one.middle), two.reach(two.middle)
        most = half * other * (2 if self.sample else 1)
        estimator = Estimator(
            "covar", (0, 1, 2, 3), half=half, other_half=other, sample=self.sample, lower=-most, upper=most
        )
        return (Part((one.total(one.middle), two.total(two.middle), pair.product, pair.count), estimator),)


@dataclass(frozen=True, slots=True)
class Correlation:
    """CORR, from the measurements of the covariance and of both variances."""

    def plan(self, first: Expression, second: Expression, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """One way, around the middles of both ranges."""
        pair = Pair.of("CORR", first, second, columns)
        one, two = pair.first, pair.second
        (squares, shift), (others, other_shift) = one.squares(), two.squares()
        estimator = Estimator(
            "corr",
            (0, 1, 2, 3, 4, 5),
            half=one.reach(one.middle),
            other_half=two.reach(two.middle),
            shift=shift,
            other_shift=other_shift,
            lower=Fraction(-1),
            upper=Fraction(1),
        )
        sums = one.total(one.middle), two.total(two.middle)
        return (Part((*sums, pair.product, squares, others, pair.count), estimator),)


# The population variance is at most half² (Popoviciu 1935); that of a sample is n/(n − 1) ≤ 2 times it. A
# covariance is at most the root of both variances (Cauchy, Schwarz).
AGGREGATES: Mapping[AggregateName, Rule] = {
    "count": Count(),
    "count_distinct": CountUnits(),
    "sum": Sum(),
    "mean": Mean(),
    "var_pop": Spread("VAR_POP", "var", False, lambda half: half**2),
    "var_samp": Spread("VARIANCE", "var", True, lambda half: 2 * half**2),
    "std_pop": Spread("STDDEV_POP", "std", False, lambda half: half),
    "std_samp": Spread("STDDEV", "std", True, lambda half: half * Fraction(14143, 10000)),  # √2, rounded up
}
PAIRS: Mapping[AggregateName, PairRule] = {
    "covar_pop": Covariance("COVAR_POP", sample=False),
    "covar_samp": Covariance("COVAR_SAMP", sample=True),
    "corr": Correlation(),
}


def argument_of(each: AggregateCall, columns: Mapping[str, Facts]) -> Expression | None:
    """What an aggregate is over: its argument, held within the bounds that the question gives for each row.

    Raises:
        QueryRefused: if the bounds are none, or for another aggregate.
    """
    if each.bounds is None or each.bounds[0] != "row":
        return each.argument
    if each.argument is None or each.function in ("count", "count_distinct", "count_values"):
        raise QueryRefused("A count has no bounds for each row.", "Leave them out, or bound each group.")
    return held(each.argument, *each.bounds[1:], columns)


def ways_of(each: AggregateCall, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
    """The ways to measure an aggregate by sums and counts, the one that is best alone first.

    Raises:
        QueryRefused: if an argument has no range, or it is not measured by sums and counts.
    """
    if each.bounds is not None and each.bounds[0] == "group":
        raise QueryRefused("Bounds for a unit's total in each group are not supported here.")
    argument = argument_of(each, columns)
    if each.function in PAIRS:
        if argument is None or each.other is None:
            raise QueryRefused("This aggregate takes two columns.", "Write CORR(y, x).")
        return PAIRS[each.function].plan(argument, each.other, columns)
    if each.function not in AGGREGATES:
        raise QueryRefused(f"{each.function.upper()} is not measured by sums and counts.")
    return AGGREGATES[each.function].plan(argument, columns)
