"""How DataFusion says what statements are made of, and which scalar functions it does not have."""

from __future__ import annotations

from sfumato.engines import PORTABLE, Dialect
from sfumato.plan.expressions.functions import FUNCTIONS

__all__ = ["DATAFUSION", "NAN", "TYPES"]

TYPES = {
    "integer": "BIGINT",
    "float": "DOUBLE",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "date": "DATE",
    "timestamp": "BIGINT",
    "time": "BIGINT",
    "wide": "DECIMAL(38, 0)",
}
"""The type that each kind has here; `wide` is for sums and products below 2**126."""
NAN = "CAST('nan' AS DOUBLE)"

_DOUBLE, _SECOND = "CAST({0} AS DOUBLE)", "CAST({1} AS DECIMAL(38, 0))"
_CAN_BE_NAN = ("add", "subtract", "multiply", "divide", "modulo", "negate", "to_float")
_COMMON = """
    abs and append case ceil coalesce concat contains day dayofweek dayofyear days_between equal exp
    floor greater greater_equal greatest in int_divide integer_to_text is_null isodow least left
    length less less_equal ln ltrim month not not_equal nullif or position quarter replace right
    rtrim sqrt starts_with substring to_boolean trim trunc week width_bucket year
    add_seconds date_to_timestamp epoch hour hours_between minute minutes_between second seconds_between
    timestamp_to_time to_time to_timestamp trunc_day trunc_hour trunc_minute
"""
_REFUSED = {
    "it has no days beyond 64 bits of nanoseconds": """
        add_days subtract_days add_months trunc_year trunc_quarter trunc_month trunc_week timestamp_to_date
    """,
    "days as text fail beyond the years of a calendar": "to_date to_text",
    "it writes fractions with another exponent": "float_to_text",
    "it cuts where others round, and does not read fractions in text": "to_integer",
    "its patterns have no escape character but the backslash": "like ilike",
    "letters that become two stay as they are": "lower upper",
    "it has other last digits, or an error": "log10 log2 power round",
}

DATAFUSION = Dialect(
    name="datafusion",
    writer="duckdb",  # names, constants, clauses and types are spelled alike
    sum="SUM(CAST({0} AS DECIMAL(38, 0)))",
    wide="CAST({0} AS DECIMAL(38, 0))",
    casts={kind: f"TRY_CAST({{0}} AS {native})" for kind, native in TYPES.items()},
    is_nan="ISNAN({0})",
    nan=NAN,
    ordered=f"NANVL({{0}} + CAST(0 AS DOUBLE), {NAN})",
    truncate="TRUNC({0})",
    divide="{0} / {1}",
    wide_divide=f"CAST(({{0}} - {{0}} % {_SECOND}) / {_SECOND} AS DECIMAL(38, 0))",
    greatest="GREATEST({0}, {1})",
    type_of="ARROW_TYPEOF(MAX({0}))",
    digest=PORTABLE,
    materialised=False,
    forms={
        # NaN of two signs differ in its order, so that there is only one.
        **{name: f"NANVL({FUNCTIONS[name].common(2)}, {NAN})" for name in _CAN_BE_NAN},
        # Without parentheses it takes an AND behind it for a part of the second argument.
        **{name: f"({FUNCTIONS[name].common(2)})" for name in ("is_distinct", "is_not_distinct")},
        "ends_with": "ENDS_WITH({0}, {1})",
        "sign": f"CASE WHEN ISNAN({_DOUBLE}) THEN 0e0 WHEN {_DOUBLE} > 0 THEN 1e0 "
        f"WHEN {_DOUBLE} < 0 THEN -1e0 WHEN {_DOUBLE} = 0 THEN 0e0 END",
    },
    common=frozenset(_COMMON.split()),
    refused={reason: frozenset(names.split()) for reason, names in _REFUSED.items()},
)
"""DataFusion's dialect: what it has is the same as on DuckDB to the last bit."""
