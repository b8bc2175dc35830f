"""The aggregates: for each, which integers are measured and how its value follows from them.

To add one, write a class with a `plan` and list it in `AGGREGATES`; its sensitivity is that of its
measurements, which `plan.sensitivity` proves once for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, Protocol, TypeAlias

from sfumato.errors import QueryRefused
from sfumato.plan.expressions import Call, Expression, call, columns_of
from sfumato.plan.expressions import Literal as Constant
from sfumato.plan.facts import Facts, facts_of
from sfumato.plan.names import in_sql
from sfumato.plan.nodes import AggregateName, Measurement

__all__ = ["AGGREGATES", "Estimator", "EstimatorKind", "Part", "Range", "Rule", "range_of"]

EstimatorKind: TypeAlias = Literal["count", "sum", "mean", "var", "std"]

_FINE = 29  # the bound of a fraction is 2**29 to 2**30 units: rounding to them is invisible beside the noise
_EXACT = 2**53  # beyond, engines that compute in floats would round whole numbers
_FINEST = 500
_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class Estimator:
    """How one aggregate is computed from the noisy measurements, in natural units (not in fixed point).

    With θ = S/n, for the parts S (sum of x − center), Q (sum of (x − center)² − shift) and n (count):
    count is n; sum is S, or S + center·n where it has two parts; mean is center + θ; var is Q/n + shift − θ²,
    times n/(n − 1) for a sample; std is its square root.

    Attributes:
        kind: Which formula.
        parts: Indices into `Measured.measurements`: count (n,), sum (S,) or (S, n), mean (S, n), var and std
            (S, Q, n).
        center: What was taken off every value before summing; 0 for a count and for a sum of one part.
        half: How far from the center a value can be: half the width of its range where that is the middle; 0
            for counts.
        shift: What was taken off every square before summing.
        sample: Whether a variance divides by n − 1.
        lower: The least value that the aggregate can have by declaration; None for count and sum.
        upper: The greatest one.
        whole: Whether the true value is a whole number, so that the released one is rounded.
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


@dataclass(frozen=True, slots=True)
class Range:
    """What is known about the numbers that are aggregated.

    Attributes:
        argument: The numbers.
        lower: The least.
        upper: The greatest.
        whole: Whether they are whole.
        nullable: Whether some may be missing.
    """

    argument: Expression
    lower: Fraction
    upper: Fraction
    whole: bool
    nullable: bool

    @property
    def middle(self) -> Fraction:
        """The middle of the range, exact for whole numbers and else the nearest float."""
        exact = (self.lower + self.upper) / 2
        return exact if self.whole else Fraction(float(exact))

    def reach(self, center: Fraction) -> Fraction:
        """How far from `center` a number can be."""
        return max(self.upper - center, center - self.lower)

    def present(self) -> Measurement:
        """The count of the rows that have a number: of all rows where none may be missing."""
        return Measurement("present", self.argument) if self.nullable else Measurement("rows")

    def total(self, center: Fraction) -> Measurement:
        """The sum of the numbers less `center`, which is their middle or 0."""
        grid = (0 if center.denominator == 1 else 1) if self.whole else None
        return _sum(_less(self.argument, center), self.lower - center, self.upper - center, grid)

    def squares(self) -> tuple[Measurement, Fraction]:
        """The sum of the squared distances from the middle, less what halves their range; and that shift."""
        center = self.middle
        most = self.reach(center) ** 2
        if most > _EXACT:
            raise QueryRefused(
                "The range is too wide: squares of its numbers can be larger than 2**53.",
                "Divide the numbers by a constant, or hold them within closer bounds.",
            )
        grid = (0 if center.denominator == 1 else 2) if self.whole else None
        shift = (
            Fraction(float(most / 2)) if grid is None else Fraction(math.floor(most * 2**grid / 2), 2**grid)
        )
        distance = _less(self.argument, center)
        square = _less(call("multiply", distance, distance), shift)
        return _sum(square, -shift, most - shift, grid), shift


def _less(argument: Expression, value: Fraction) -> Expression:
    if not value:
        return argument
    if abs(value) >= 2**63:
        raise QueryRefused(
            "The numbers to aggregate are larger than 2**63, where floats lose whole numbers.",
            "Divide them by a constant.",
        )
    whole = value.denominator == 1
    constant = Constant(int(value), "integer") if whole else Constant(float(value), "float")
    return call("subtract", argument, constant)


def _sum(argument: Expression, lower: Fraction, upper: Fraction, grid: int | None) -> Measurement:
    """A sum in fixed point: exact where the numbers lie on a grid of 2**-grid, else fine."""
    most = max(abs(lower), abs(upper))
    if most > _EXACT:
        raise QueryRefused(
            "The numbers to add up can be larger than 2**53, where floats lose whole numbers.",
            "Divide them by a constant, or hold them within bounds: SUM(LEAST(GREATEST(x, 0), 1000000)).",
        )
    if grid is not None and most * 2**grid <= _EXACT:
        bits = grid
    else:
        bits = min(_FINEST, max(0, _FINE - _floor_log2(most))) if most else 0
    low, high = math.trunc(lower * 2**bits), math.trunc(upper * 2**bits)
    # Where all numbers are 0 the clamp leaves room for 1, so that there is a sensitivity to speak of.
    return Measurement("sum", argument, low, high if (low or high) else 1, bits, grid == 0 and bits == 0)


def _floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if value >= Fraction(2) ** guess else guess - 1


def range_of(name: str, argument: Expression | None, columns: Mapping[str, Facts]) -> Range:
    """The range of an aggregate's argument.

    Raises:
        QueryRefused: if it is no number, or nothing bounds it.
    """
    if argument is None:
        raise QueryRefused(f"{name} needs something to aggregate.", f"Write {name}(x) with a column x.")
    facts = facts_of(argument, columns)
    if facts.kind not in ("integer", "float", "boolean"):
        raise QueryRefused(
            f"{name} is for numbers, and this is {'NULL' if facts.kind is None else f'a {facts.kind}'}.",
            "Aggregate a number, such as EXTRACT(year FROM day), or COUNT it.",
        )
    if facts.lower is None or facts.upper is None:
        raise QueryRefused(
            f"{name} needs bounds for {_named(argument)}: without them one row could move it by any amount.",
            "Declare the column's bounds in its schema, or hold it within bounds in the query: "
            f"{name}(LEAST(GREATEST({_named(argument, 'x')}, 0), 100)).",
        )
    whole = facts.kind != "float" or _on_whole_grid(facts)
    lower, upper = facts.lower, facts.upper
    if whole:
        lower, upper = Fraction(math.ceil(lower)), Fraction(math.floor(upper))
    if lower > upper:  # nothing passes the filter: any clamp will do
        lower = upper = _ZERO
    number = _as_number(argument) if facts.kind == "boolean" else argument
    return Range(number, lower, upper, whole, facts.nullable)


def _on_whole_grid(facts: Facts) -> bool:
    if facts.step is None or facts.lower is None:
        return False
    return facts.step.denominator == 1 and facts.lower.denominator == 1


def _as_number(truth: Expression) -> Expression:
    yes, no, neither = Constant(1, "integer"), Constant(0, "integer"), Constant(None, None)
    return Call("case", (truth, yes, call("not", truth), no, neither))


def _named(argument: Expression, otherwise: str = "its argument") -> str:
    names = sorted(set(columns_of(argument)))
    return in_sql(names[0]) if len(names) == 1 else otherwise


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


# The population variance is at most half² (Popoviciu 1935); that of a sample is n/(n − 1) ≤ 2 times it.
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
