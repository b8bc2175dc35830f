"""How Spark says what statements are made of, in ANSI mode: what does not fit is NULL by our own forms alone.

Where a common form names its argument once and Spark needs it several times, it is bound by a lambda, so that
nested calls do not grow by multiplication: `ELEMENT_AT(TRANSFORM(ARRAY(x), v -> …), 1)`.
"""

from __future__ import annotations

from sfumato.engines.dialect import Dialect, Template, portable
from sfumato.numeric.moments import DAY

__all__ = ["SPARK"]

_X, _Y, _DAY = "CAST({0} AS DOUBLE)", "CAST({1} AS DOUBLE)", "CAST({0} AS DATE)"
_NAN = "CAST('NaN' AS DOUBLE)"
_TWO63 = "9.223372036854775808e18"
_TWO62 = "4.611686018427387904e18"
_ENDS = "CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE)"
_SPACES = "".join(map(chr, (0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)))
_MOST = 10_000
_TRUTH = (  # Spark itself takes off blanks before it looks
    "CASE WHEN TYPEOF(v) <> 'string' THEN TRY_CAST(v AS BOOLEAN) "
    "WHEN LOWER(CAST(v AS STRING)) IN ('true', 't', 'yes', 'y', '1') THEN TRUE "
    "WHEN LOWER(CAST(v AS STRING)) IN ('false', 'f', 'no', 'n', '0') THEN FALSE END"
)


def _let(value: str, body: str) -> str:
    """A template in which `v` stands for a value that is named once."""
    return f"ELEMENT_AT(TRANSFORM(ARRAY({value}), v -> {body}), 1)"


def _cut(value: str) -> str:
    """A double rounded toward zero: the remainder is exact, and that of an infinity is NaN."""
    return f"{value} - NANVL({value} % 1e0, 0e0)"


def _whole(value: str) -> str:
    """A double as BIGINT. Spark takes 2**63, which does not fit, for the number below it."""
    return f"CASE WHEN {value} < {_TWO63} THEN TRY_CAST({value} AS BIGINT) END"


def _wide(value: str) -> str:
    """A whole double below 2**125 as that number: Spark itself takes the shortest decimal near it."""
    high, unit = f"TRY_CAST({value} / {_TWO62} AS BIGINT)", "CAST(4611686018427387904 AS DECIMAL(38, 0))"
    low = f"TRY_CAST({value} % {_TWO62} AS BIGINT)"
    inside = f"ABS({value}) < 4.253529586511730793e37"
    return f"CASE WHEN {inside} THEN CAST({high} AS DECIMAL(38, 0)) * {unit} + {low} END"


def _by_type(native: str, its: str, other: str) -> str:
    """One of two forms by the type of the argument, which Spark knows before it reads a row."""
    return f"CASE WHEN TYPEOF({{0}}) = '{native}' THEN {its} ELSE {other} END"


def _wide_quotient(first: str, second: str) -> str:
    """Two digits to the base 2**63, since a quotient of wide numbers is a BIGINT here."""
    unit = "CAST(9223372036854775808 AS DECIMAL(38, 0))"
    large = f"CAST({second} AS DECIMAL(38, 0)) * {unit}"
    return (
        f"CAST({first} DIV ({large}) AS DECIMAL(38, 0)) * {unit} + "
        f"({first} % ({large})) DIV CAST({second} AS DECIMAL(38, 0))"
    )


def _listed(count: int, start: int = 0) -> str:
    return ", ".join(f"{{{place}}}" for place in range(start, count))


def _extreme(name: str) -> Template:
    return lambda count: "{0}" if count == 1 else f"{name}({_listed(count)})"


def _trimmed(side: str) -> Template:
    characters = {1: f"'{_SPACES}'", 2: "{1}"}
    return lambda count: f"TRIM({side} {characters[count]} FROM {{0}})"


def _like(operator: str) -> Template:
    """A pattern without an escape character has one here, the backslash, unless another is named."""
    return lambda count: (
        f"{{0}} {operator} " + ("REPLACE({1}, '!', '!!')" if count == 2 else "{1}") + " ESCAPE '!'"
    )


def _moved(operator: str) -> str:
    days = "CAST(TRY_CAST({1} AS DECIMAL(7, 0)) AS INT)"
    moved = f"DATE_ADD({_DAY}, {operator}{days})"
    return f"CASE WHEN {moved} BETWEEN {_ENDS} THEN {moved} END"


_MONTHS = f"ADD_MONTHS({_DAY}, CAST({{1}} AS INT))"
_QUOTIENT = f"{_X} / {_Y}"
_NEAREST = (  # halves away from zero, as C rounds: the remainder of 1 is exact
    "v - NANVL(v % 1e0, 0e0) + CASE WHEN NANVL(v % 1e0, 0e0) >= 5e-1 THEN 1e0 "
    "WHEN NANVL(v % 1e0, 0e0) <= -5e-1 THEN -1e0 ELSE 0e0 END"
)
_YEAR = "CAST(1 + TRY_CAST(SUBSTRING(t, 2, LENGTH(t) - 7) AS INT) AS STRING)"
_DAY_AS_TEXT = (  # as DuckDB writes days beyond four digits, with the two that it has no text for
    "CASE WHEN t = '+5881580-07-11' THEN 'infinity' WHEN t = '-5877641-06-24' THEN '-infinity' "
    "WHEN STARTSWITH(t, '+') THEN SUBSTRING(t, 2) WHEN STARTSWITH(t, '-') OR STARTSWITH(t, '0000') "
    f"THEN LPAD({_YEAR}, GREATEST(4, LENGTH({_YEAR})), '0') || RIGHT(t, 6) || ' (BC)' ELSE t END"
)
_NUMBER = r"^[ \\t-\\r]*[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?[ \\t-\\r]*$"
_NAMED = r"^[ \\t-\\r]*[+-]?(?i)(inf|infinity)[ \\t-\\r]*$"
_NO_NUMBER = r"^[ \\t-\\r]*[+-]?(?i)nan[ \\t-\\r]*$"  # Spark knows none with a sign
_ISO_DAY = "^[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]$"  # braces would be places of arguments
_DOUBLE_AS_TEXT = (  # from Java's form to DuckDB's, as `PORTABLE` says it: t is Java's text
    "CASE WHEN t = 'NaN' THEN 'nan' WHEN t = 'Infinity' THEN 'inf' WHEN t = '-Infinity' THEN '-inf' "
    "WHEN INSTR(t, 'E') = 0 THEN t "
    "WHEN TRY_CAST(RIGHT(t, LENGTH(t) - INSTR(t, 'E')) AS INT) BETWEEN -4 AND 15 "
    "THEN REPLACE(TRIM(TRAILING '0' FROM CAST(TRY_CAST(t AS DECIMAL(38, 20)) AS STRING)) || '#', "
    "'.#', '.0#') "
    "ELSE REPLACE(LEFT(t, INSTR(t, 'E') - 1) || '#', '.0#', '#') || 'e' || "
    "CASE WHEN CONTAINS(t, 'E-') THEN '-' ELSE '+' END || "
    "LPAD(REPLACE(RIGHT(t, LENGTH(t) - INSTR(t, 'E')), '-', ''), "
    "GREATEST(2, LENGTH(REPLACE(RIGHT(t, LENGTH(t) - INSTR(t, 'E')), '-', ''))), '0') END"
)
_SHOWN = _let(
    "{0}",
    "ELEMENT_AT(TRANSFORM(ARRAY(TRY_CAST(v AS STRING)), t -> "
    f"CASE WHEN TYPEOF(v) IN ('double', 'float') THEN REPLACE({_DOUBLE_AS_TEXT}, '#', '') "
    f"WHEN TYPEOF(v) = 'date' THEN {_DAY_AS_TEXT} ELSE t END), 1)",
)
_EPOCH = "CAST('1970-01-01' AS DATE)"
_AS_DECIMAL = "TRY_CAST(CAST(v AS STRING) AS DECIMAL(38, 18))"
_INTEGER = (
    "CASE WHEN TYPEOF(v) = 'double' THEN "
    + _whole("RINT(TRY_CAST(v AS DOUBLE))")
    + f" WHEN TYPEOF(v) <> 'string' THEN TRY_CAST(v AS BIGINT) WHEN CAST(v AS STRING) RLIKE '{_NUMBER}' "
    f"THEN TRY_CAST(ROUND({_AS_DECIMAL}) AS BIGINT) END"
)


def _both(body: str) -> str:
    """A template in which `v` and `w` stand for two doubles that are named once, neither inside a lambda.

    There a column that is called `v` would be taken for its variable.
    """
    return f"ELEMENT_AT(ZIP_WITH(ARRAY({_X} + 0e0), ARRAY({_Y}), (v, w) -> {body}), 1)"


_POWER = (  # Java has NaN for these two
    "CASE WHEN v = 1e0 AND w IS NOT NULL THEN 1e0 "
    "WHEN v = -1e0 AND ABS(w) = CAST('Infinity' AS DOUBLE) THEN 1e0 "
    f"WHEN POWER(v, w) <> {_NAN} THEN POWER(v, w) END"
)


def _round(count: int) -> str:
    """Scaled, rounded, scaled back; what does not fit stays as it is."""
    if count == 1:
        return _let(_X, _NEAREST)
    up, down = "POWER(1e1, {1})", "POWER(1e1, -{1})"
    scaled = f"CASE WHEN {{1}} > 0 THEN x * {up} ELSE x / {down} END"
    back = f"CASE WHEN {{1}} > 0 THEN v / {up} ELSE v * {down} END"
    rounded = _let(_let(scaled, _NEAREST), back)
    kept = _let(rounded, "CASE WHEN ABS(v) < CAST('Infinity' AS DOUBLE) THEN v ELSE x END")
    return f"ELEMENT_AT(TRANSFORM(ARRAY({_X}), x -> {kept}), 1)"


def _part_of_time(around: int, size: int) -> str:
    """Hours, minutes or seconds, as doubles: FLOOR makes whole numbers here, whose text is another."""
    return f"CAST(FLOOR(({_X} - FLOOR({_X} / {around}e0) * {around}e0) / {size}e0) AS DOUBLE)"


def _between(size: int) -> str:
    return f"CAST(FLOOR({_X} / {size}e0) - FLOOR({_Y} / {size}e0) AS DOUBLE)"


_COMMON = """
    abs add and append case coalesce divide equal exp greater greater_equal in is_distinct is_not_distinct
    is_null length less less_equal ln modulo multiply negate not not_equal nullif or replace sqrt
    subtract width_bucket contains left right substring
    add_seconds epoch seconds_between
    timestamp_to_time to_time to_timestamp trunc_day trunc_hour trunc_minute
"""

_FORMS: dict[str, Template] = {
    "int_divide": f"CASE WHEN {{1}} <> 0 THEN {_let(_QUOTIENT, _cut('v'))} END",
    "sign": _let(
        _X, f"CASE WHEN v = {_NAN} THEN 0e0 WHEN v > 0 THEN 1e0 WHEN v < 0 THEN -1e0 WHEN v = 0 THEN 0e0 END"
    ),
    "floor": _let(_X, "CASE WHEN ABS(v) < 9.007199254740992e15 THEN CAST(FLOOR(v) AS DOUBLE) ELSE v END"),
    "ceil": _let(_X, "CASE WHEN ABS(v) < 9.007199254740992e15 THEN CAST(CEIL(v) AS DOUBLE) ELSE v END"),
    "trunc": _let(_X, _cut("v")),
    "round": _round,
    "log10": f"CASE WHEN {{0}} > 0 THEN LOG10({_X}) END",
    "log2": f"CASE WHEN {{0}} > 0 THEN LOG2({_X}) END",
    "greatest": _extreme("GREATEST"),
    "least": _extreme("LEAST"),
    "lower": "LOWER({0})",
    "upper": "UPPER({0})",
    "trim": _trimmed("BOTH"),
    "ltrim": _trimmed("LEADING"),
    "rtrim": _trimmed("TRAILING"),
    "concat": lambda count: f"CONCAT_WS('', {_listed(count)})",
    "like": _like("LIKE"),
    "ilike": _like("ILIKE"),
    "starts_with": "STARTSWITH({0}, {1})",
    "ends_with": "ENDSWITH({0}, {1})",
    "position": "INSTR({0}, {1})",
    "year": f"YEAR({_DAY})",
    "quarter": f"QUARTER({_DAY})",
    "month": f"MONTH({_DAY})",
    "day": f"DAYOFMONTH({_DAY})",
    "dayofweek": f"DAYOFWEEK({_DAY}) - 1",
    "isodow": f"WEEKDAY({_DAY}) + 1",
    "dayofyear": f"DAYOFYEAR({_DAY})",
    "week": f"WEEKOFYEAR({_DAY})",
    **{f"trunc_{unit}": f"TRUNC({_DAY}, '{unit.upper()}')" for unit in ("year", "quarter", "month", "week")},
    "add_days": _moved(""),
    "subtract_days": _moved("-"),
    "add_months": f"CASE WHEN {_MONTHS} BETWEEN {_ENDS} THEN {_MONTHS} END",
    "hour": _part_of_time(DAY, 3600),
    "minute": _part_of_time(3600, 60),
    "second": _part_of_time(60, 1),
    "hours_between": _between(3600),
    "minutes_between": _between(60),
    "timestamp_to_date": f"DATE_ADD({_EPOCH}, CAST(FLOOR({_X} / {DAY}e0) AS INT))",
    "date_to_timestamp": f"CAST(DATEDIFF({_DAY}, {_EPOCH}) AS BIGINT) * {DAY}",
    "days_between": f"DATEDIFF({_DAY}, {_DAY.replace('{0}', '{1}')})",
    "to_float": _let(
        "{0}",
        f"CASE WHEN TYPEOF(v) <> 'string' OR CAST(v AS STRING) RLIKE '{_NUMBER}' "
        f"OR CAST(v AS STRING) RLIKE '{_NAMED}' THEN TRY_CAST(v AS DOUBLE) "
        f"WHEN CAST(v AS STRING) RLIKE '{_NO_NUMBER}' THEN {_NAN} END",
    ),
    "power": _both(_POWER),
    "to_integer": _let("{0}", _INTEGER),
    "integer_to_text": _let("{0}", f"CAST({_INTEGER} AS STRING)"),
    "to_text": _let(
        "{0}",
        "ELEMENT_AT(TRANSFORM(ARRAY(CAST(v AS STRING)), t -> "
        f"CASE WHEN TYPEOF(v) <> 'date' THEN t ELSE {_DAY_AS_TEXT} END), 1)",
    ),
    "to_date": _let(
        "{0}",
        f"CASE WHEN TYPEOF(v) = 'date' OR CAST(v AS STRING) RLIKE '{_ISO_DAY}' THEN TRY_CAST(v AS DATE) END",
    ),
    "to_boolean": _let("{0}", _TRUTH),
}

_WHOLE_CAST = _by_type("double", _whole("TRY_CAST({0} AS DOUBLE)"), "TRY_CAST({0} AS BIGINT)")

SPARK = Dialect(
    name="spark",
    writer="spark",
    sum="SUM(CAST({0} AS DECIMAL(38, 0)))",  # a BIGINT that is summed as such can leave 64 bits
    wide="CAST({0} AS DECIMAL(38, 0))",
    casts={
        "integer": _WHOLE_CAST,
        "float": "TRY_CAST({0} AS DOUBLE)",
        "boolean": _let("{0}", _TRUTH),
        "text": "TRY_CAST({0} AS STRING)",
        "date": "TRY_CAST({0} AS DATE)",
        "timestamp": _WHOLE_CAST,
        "time": _WHOLE_CAST,
        "wide": _by_type("double", _wide("TRY_CAST({0} AS DOUBLE)"), "TRY_CAST({0} AS DECIMAL(38, 0))"),
    },
    is_nan=f"{{0}} = {_NAN}",  # ISNAN is false for NULL
    nan=_NAN,
    ordered="{0}",
    truncate=_cut("{0}"),
    whole="TRY_CAST({0} AS BIGINT)",  # which rounds toward zero
    windowed=True,
    divide="{0} DIV {1}",
    wide_divide=_wide_quotient("{0}", "{1}"),
    greatest="GREATEST({0}, {1})",
    type_of="TYPEOF(MAX({0}))",
    shown=_SHOWN,
    digest=portable(_SHOWN),
    materialised=False,
    forms=_FORMS,
    common=frozenset(_COMMON.split()),
    refused={"Java before 19 does not write the fewest digits": frozenset({"float_to_text"})},
    different={
        "other last digits": frozenset({"exp", "ln", "log10", "log2", "power"}),
        "beyond ASCII as Java has letters": frozenset({"lower", "upper", "ilike"}),
        "texts other than `2024-02-29` are NULL": frozenset({"to_date"}),
    },
)
"""Spark's dialect."""
