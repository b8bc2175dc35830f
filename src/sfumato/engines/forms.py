"""One form for values that are equal: the one place that makes it, for statements and prepared files alike.

An engine's orders, hashes, groups and joins take 0.0 and -0.0 for one value, and all NaN for one. Expressions
need not: `POWER(x, -1)` and `CAST(x AS TEXT)` see the sign. Which of two such rows comes first, or represents
both, would be decided by arrival, and so by threads and by the rows of others. Where equal values have one
form, rows that an order cannot tell apart are the same row.

Text is compared by its bytes (no collation gets here), whole numbers, days and truth values have one form
anyway. The ids of units are never changed.
"""

from __future__ import annotations

from sqlglot import exp

from sfumato.engines.dialect import Dialect
from sfumato.schema import Kind

__all__ = ["group_form", "one_form"]

_DAYS = ("0001-01-01", "9999-12-31")


def one_form(value: exp.Expr, kind: Kind | None, dialect: Dialect) -> exp.Expr:
    """The value; of floats that are equal always the same one: zero without a sign, NaN without a payload."""
    if kind != "float":
        return value
    is_nan = dialect.nan_test(value.copy())
    return exp.Case(ifs=[exp.If(this=is_nan, true=dialect.fill(dialect.nan))], default=_unsigned(value))


def group_form(value: exp.Expr, kind: Kind | None, dialect: Dialect) -> exp.Expr:
    """The value as the key of a group: in one form, where NaN is NULL, and so is a day without four digits.

    No calendar but the engine's has other days, and a read must not fail on a row.
    """
    if kind == "date":
        low, high = (exp.cast(exp.Literal.string(day), "DATE") for day in _DAYS)
        known = exp.Between(this=value.copy(), low=low, high=high)
        return exp.Case(ifs=[exp.If(this=known, true=value.copy())])
    if kind != "float":
        return value
    real = exp.not_(dialect.nan_test(value.copy()))
    return exp.Case(ifs=[exp.If(this=real, true=_unsigned(value))])


def _unsigned(number: exp.Expr) -> exp.Expr:
    """-0.0 + 0.0 is 0.0, and no other float changes."""
    whole = number.copy() if isinstance(number, exp.Column) else exp.Paren(this=number.copy())
    return exp.Add(this=whole, expression=exp.cast(exp.Literal.number(0), "DOUBLE"))
