"""Values as clamped integers of the engine: the place where the bounds are enforced."""

from __future__ import annotations

import math

from sqlglot import exp

from sfumato.engines.dialect import Dialect
from sfumato.engines.trees import copied
from sfumato.errors import InvalidParameter
from sfumato.plan.questions.nodes import Measurement
from sfumato.sql.write.constants import constant_node
from sfumato.sql.write.pieces import bigint, double
from sfumato.sql.write.typed import Typed

__all__ = ["clamped", "fixed_point", "is_present", "weighted"]

_EXACT = 2**53  # integers up to here are floats, so both ends of the clamp are exact


def is_present(value: Typed, dialect: Dialect) -> exp.Expr:
    """Whether a value is there: neither NULL nor NaN."""
    if value.kind == "float":
        return exp.not_(dialect.nan_test(copied(value.sql)))  # NULL for NULL, which no CASE takes for true
    return exp.Is(this=copied(value.sql), expression=exp.Null()).not_()


def fixed_point(value: Typed, measurement: Measurement, dialect: Dialect) -> exp.Expr:
    """The value in units of 2**-bits, rounded toward zero, within [lower, upper]; NULL for NULL and NaN.

    Privacy:
        The result is an integer in [lower, upper] or NULL for every row, whatever the column holds: the first
        branch is taken only where lower ≤ value·2**bits ≤ upper, comparing floats that are exact since both
        ends are integers below 2**53 times a power of two; multiplying by 2**bits is exact, and rounding
        toward zero stays between the two integers. The other branches are the ends themselves.
    """
    lower, upper = measurement.lower, measurement.upper
    if not -_EXACT <= lower <= upper <= _EXACT:
        raise InvalidParameter("A measurement's clamp must lie within ±2**53 units; rescale the column.")
    if value.kind == "integer" and not measurement.bits:
        number = value.sql
        ends = bigint(lower), bigint(upper)
        return _clamp(number, *ends, lower=lower, upper=upper, within=number, dialect=dialect)
    return _from_float(value, lower, upper, measurement.bits, dialect)


def _from_float(value: Typed, lower: int, upper: int, bits: int, dialect: Dialect) -> exp.Expr:
    number = value.sql if value.kind == "float" else double(value.sql)
    if bits:
        within = dialect.scaled(copied(number), constant_node(_power(bits)), grows=bits > 0)
    else:
        within = dialect.attempt(dialect.truncated(copied(number)), "integer", "float")
    ends = constant_node(lower * _power(-bits)), constant_node(upper * _power(-bits))
    return _clamp(number, *ends, lower=lower, upper=upper, within=within, dialect=dialect)


def _clamp(
    number: exp.Expr,
    low: exp.Expr,
    high: exp.Expr,
    *,
    lower: int,
    upper: int,
    within: exp.Expr,
    dialect: Dialect,
) -> exp.Expr:
    """This shape is the fastest of those tried; LEAST and GREATEST would take NaN for a bound."""
    is_float = within is not number
    seen = dialect.comparable(copied(number)) if is_float else number
    inside = exp.Between(this=copied(seen), low=low, high=high)
    below = exp.LT(this=copied(seen), expression=copied(low))
    above: exp.Expr = exp.GT(this=copied(seen), expression=copied(high))
    if is_float:  # NaN is above all numbers there
        above = exp.and_(above, exp.not_(dialect.nan_test(copied(number))), copy=False)
    return exp.Case(
        ifs=[
            exp.If(this=inside, true=copied(within)),
            exp.If(this=below, true=bigint(lower)),
            exp.If(this=above, true=bigint(upper)),
        ]
    )


def clamped(number: exp.Expr, lower: int, upper: int) -> exp.Expr:
    """A whole number of any size within [lower, upper]; NULL for NULL."""
    low, high = exp.Literal.number(lower), exp.Literal.number(upper)
    if lower < 0:
        low = exp.Neg(this=exp.Literal.number(-lower))
    if upper < 0:
        high = exp.Neg(this=exp.Literal.number(-upper))
    return exp.Case(
        ifs=[
            exp.If(this=exp.LT(this=copied(number), expression=low), true=copied(low)),
            exp.If(this=exp.GT(this=copied(number), expression=high), true=copied(high)),
            exp.If(this=exp.Is(this=copied(number), expression=exp.Null()).not_(), true=copied(number)),
        ]
    )


def weighted(
    units: exp.Expr, weight: exp.Expr, measurement: Measurement, most: int, dialect: Dialect
) -> exp.Expr:
    """The units of a row times its weight of at most `most`, in an integer type that holds the product."""
    if measurement.magnitude * most >= 2**63:
        units = dialect.widened(units)
    return exp.Mul(this=units, expression=weight)


def _power(bits: int) -> float:
    try:
        power = math.ldexp(1.0, bits)
    except OverflowError:
        power = 0.0
    if power < 2.0**-1022:
        raise InvalidParameter(
            "A measurement's unit is too small or too large for a float; rescale the column."
        )
    return power
