"""Aggregates over the rows of one unit: exact, whatever the order of its rows and however large they are.

Values are summed as integers. Whole numbers are integers already; fractions become multiples of 2**-bits:

- with two known bounds, within them, where 2**53 units are the greater of both or a little more;
- otherwise within ±2**53 in units of 2**-24, or as many wider units if a bound lies beyond.

A value outside is taken for the nearest one inside, and a fraction of a unit is cut off toward zero. A sum of
whole numbers that needs more than 64 bits is the greatest or least number of 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.engines.dialect import Dialect
from sfumato.numeric.exact import float_down, float_up
from sfumato.plan.expressions.ranges import Facts
from sfumato.plan.questions.nodes import Measurement
from sfumato.sql.write.constants import constant_node
from sfumato.sql.write.fixed_point import fixed_point, is_present
from sfumato.sql.write.pieces import bigint, double
from sfumato.sql.write.typed import Typed, as_kind, plain

__all__ = ["ExactSum", "recipe"]

_WIDE, _FINE = 53, 24  # without bounds: up to 2**53 in units of 2**-24; 2**49 rows fit in 128 bits
_LEAST, _MOST = -(2**63), 2**63 - 1
_LARGEST = Fraction(2**1023)
_FINEST = 1000


@dataclass(frozen=True, slots=True)
class ExactSum:
    """An aggregate in two steps: what the engine aggregates, and the value that follows from it.

    Attributes:
        parts: Calls of aggregate functions.
        finish: The value, from the columns that hold the parts.
    """

    parts: tuple[exp.Expr, ...]
    finish: Callable[[Sequence[exp.Expr]], exp.Expr]


def recipe(
    function: str, value: Typed | None, facts: Facts | None, dialect: Dialect, *, bounded: bool = False
) -> ExactSum:
    """How one of `count`, `count_values`, `sum`, `mean`, `min`, `max` is computed.

    Args:
        function: Which.
        value: The column with the argument, in the type of its kind; None: rows are counted.
        facts: What is known about it once it is within the bounds that the question gives.
        dialect: The engine's.
        bounded: Whether the question gives bounds.

    Privacy:
        Claim: the value is a function of the multiset of the rows that are aggregated, defined for every
        multiset of fewer than 2**49 rows: no order, thread or partial result can show, and no row can make
        the engine raise.
        Proof: integers of less than 2**78 are added in 128 bits, which is exact, associative and commutative.
        Minimum, maximum and counts are so too, where equal values look the same (`plain`). What follows is
        computed from these alone, by casts that give NULL or by arithmetic that IEEE 754 defines everywhere.
    """
    if value is None or facts is None:
        return _single(exp.Count(this=exp.Star(), big_int=True))
    if function == "count":
        one = exp.Literal.number(1)
        return _single(exp.Count(this=exp.Case(ifs=[exp.If(this=is_present(value, dialect), true=one)])))
    if function == "count_values":
        return _single(exp.Count(this=exp.Distinct(expressions=[_present(value, dialect)])))
    if function in ("min", "max"):
        held = _within(as_kind(value, facts.kind, dialect), facts, dialect) if bounded else value
        shown = _present(held, dialect)
        return _single(
            dialect.least(shown, held.kind) if function == "min" else dialect.most(shown, held.kind)
        )
    units, bits = _units(value, facts, dialect)
    total = dialect.total(units)
    if function == "mean":
        return ExactSum((total, exp.Count(this=units.copy())), _mean(bits, facts, dialect))
    return ExactSum((total,), _scaled(bits, dialect) if facts.kind == "float" else _saturated(dialect))


def _single(part: exp.Expr) -> ExactSum:
    return ExactSum((part,), lambda columns: columns[0])


def _present(value: Typed, dialect: Dialect) -> exp.Expr:
    if value.kind != "float":
        return value.sql
    return exp.Case(ifs=[exp.If(this=is_present(value, dialect), true=plain(value, dialect))])


def _within(value: Typed, facts: Facts, dialect: Dialect) -> Typed:
    """The value within its bounds; NULL and NaN stay."""
    low, high = _ends(facts)
    number, seen, ifs = value.sql, value.sql, []
    if facts.kind == "float":  # NaN is above all numbers there
        seen = dialect.comparable(number.copy())
        ifs.append(exp.If(this=dialect.nan_test(number.copy()), true=number.copy()))
    if low is not None:
        ifs.append(exp.If(this=exp.LT(this=seen.copy(), expression=low), true=low.copy()))
    if high is not None:
        ifs.append(exp.If(this=exp.GT(this=seen.copy(), expression=high), true=high.copy()))
    return value if low is high is None else Typed(exp.Case(ifs=ifs, default=number.copy()), value.kind)


def _ends(facts: Facts) -> tuple[exp.Expr | None, exp.Expr | None]:
    if facts.kind == "float":
        low = None if facts.lower is None else constant_node(float_down(facts.lower))
        return low, None if facts.upper is None else constant_node(float_up(facts.upper))
    least = None if facts.lower is None else math.ceil(facts.lower)
    most = None if facts.upper is None else math.floor(facts.upper)
    return _whole(least), _whole(most)


def _whole(bound: int | None) -> exp.Expr | None:
    if bound is None or not _LEAST <= bound <= _MOST:
        return None
    return bigint(bound)


def _units(value: Typed, facts: Facts, dialect: Dialect) -> tuple[exp.Expr, int]:
    """The value as an integer of 2**-bits, NULL where it is not present."""
    if facts.kind != "float":
        return _within(as_kind(value, "integer", dialect), facts, dialect).sql, 0
    number = as_kind(value, "float", dialect)
    lower, upper = _cut(facts.lower), _cut(facts.upper)
    if lower is None or upper is None:
        return _wide(number.sql, lower, upper, dialect)
    most = max(abs(lower), abs(upper))
    bits = min(_WIDE - _exponent(most), _FINEST) if most else 0
    unit = Fraction(2) ** bits
    ends = math.floor(lower * unit), math.ceil(upper * unit)
    return fixed_point(number, Measurement("sum", None, *ends, bits, whole=False), dialect), bits


def _cut(bound: Fraction | None) -> Fraction | None:
    return None if bound is None else min(max(bound, -_LARGEST), _LARGEST)


def _exponent(size: Fraction) -> int:
    """The least e with size ≤ 2**e."""
    guess = size.numerator.bit_length() - size.denominator.bit_length()
    return next(e for e in range(guess - 1, guess + 3) if size <= Fraction(2) ** e)


def _wide(
    number: exp.Expr, lower: Fraction | None, upper: Fraction | None, dialect: Dialect
) -> tuple[exp.Expr, int]:
    known = abs(lower or upper or Fraction(0))
    reach = _WIDE if known <= 2**_WIDE else min(_exponent(known) + 10, 1023)
    bits = _WIDE + _FINE - reach
    low = float_down(-(Fraction(2) ** reach) if lower is None else lower)
    high = float_up(Fraction(2) ** reach if upper is None else upper)
    scaled = dialect.product(number.copy(), constant_node(math.ldexp(1.0, bits)))
    seen = dialect.comparable(number.copy())
    inside = exp.Between(this=seen.copy(), low=constant_node(low), high=constant_node(high))
    below = exp.LT(this=seen.copy(), expression=constant_node(low))
    no_nan = exp.not_(dialect.nan_test(number.copy()))
    above = exp.and_(exp.GT(this=seen.copy(), expression=constant_node(high)), no_nan, copy=False)
    whole = exp.Case(
        ifs=[
            exp.If(this=inside, true=dialect.attempt(dialect.truncated(scaled), "wide", "float")),
            exp.If(this=below, true=_huge(low, bits, dialect)),
            exp.If(this=above, true=_huge(high, bits, dialect)),
        ]
    )
    return whole, bits


def _huge(end: float, bits: int, dialect: Dialect) -> exp.Expr:
    return dialect.widened(exp.Literal.number(math.trunc(Fraction(end) * Fraction(2) ** bits)))


def _saturated(dialect: Dialect) -> Callable[[Sequence[exp.Expr]], exp.Expr]:
    def finish(columns: Sequence[exp.Expr]) -> exp.Expr:
        total = columns[0]
        high, low = (bigint(end) for end in (_MOST, _LEAST))
        return exp.Case(
            ifs=[
                exp.If(this=exp.GT(this=total.copy(), expression=high), true=high.copy()),
                exp.If(this=exp.LT(this=total.copy(), expression=low), true=low.copy()),
            ],
            default=dialect.attempt(total.copy(), "integer", "integer"),
        )

    return finish


def _scaled(bits: int, dialect: Dialect) -> Callable[[Sequence[exp.Expr]], exp.Expr]:
    def finish(columns: Sequence[exp.Expr]) -> exp.Expr:
        return _times(double(columns[0]), -bits, dialect)

    return finish


def _mean(bits: int, facts: Facts, dialect: Dialect) -> Callable[[Sequence[exp.Expr]], exp.Expr]:
    low = -math.inf if facts.lower is None else float_down(facts.lower)
    high = math.inf if facts.upper is None else float_up(facts.upper)

    def finish(columns: Sequence[exp.Expr]) -> exp.Expr:
        total, count = (double(node) for node in columns)
        mean = _times(exp.Paren(this=exp.Div(this=total, expression=count)), -bits, dialect)
        ifs = []
        if math.isfinite(low):  # rounding must not leave the bounds that the mean is known to have
            ifs.append(
                exp.If(this=exp.LT(this=mean.copy(), expression=constant_node(low)), true=constant_node(low))
            )
        if math.isfinite(high):
            ifs.append(
                exp.If(
                    this=exp.GT(this=mean.copy(), expression=constant_node(high)), true=constant_node(high)
                )
            )
        return exp.Case(ifs=ifs, default=mean) if ifs else mean

    return finish


def _times(number: exp.Expr, bits: int, dialect: Dialect) -> exp.Expr:
    return dialect.product(number, constant_node(math.ldexp(1.0, bits))) if bits else number
