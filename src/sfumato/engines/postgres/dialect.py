"""PostgreSQL's dialect: what raises there on a row is asked first, so that it never does.

PostgreSQL has no cast that gives NULL, and its arithmetic raises where IEEE 754 has infinity or zero. A CASE
is evaluated branch by branch for what a row decides; what constants alone decide is computed when the
statement is planned, and each condition below is about the arguments of its own call, so that it is then
decided first.

Text is compared by its bytes: the columns of attached tables have the collation "C", and what becomes text
here has it, too.

What a form computes on the way has a name that begins with "sfumato ", as no declared column may: where a
form names its argument beside it, the argument could be a column that is called so.
"""

from __future__ import annotations

from dataclasses import fields

from sfumato.engines.dialect import Dialect, Template, portable
from sfumato.errors import SourceUnusable
from sfumato.numeric.moments import FIRST, LAST

__all__ = ["POSTGRES", "STALE", "arithmetic", "number_cast", "trimmed"]

_X, _Y = "CAST({0} AS DOUBLE PRECISION)", "CAST({1} AS DOUBLE PRECISION)"
_NAN, _INF = "CAST('NaN' AS DOUBLE PRECISION)", "CAST('Infinity' AS DOUBLE PRECISION)"
_LESS_INF = "CAST('-Infinity' AS DOUBLE PRECISION)"
_TEXT = "CAST({0} AS TEXT)"
_C = 'COLLATE "C"'
_CASES = 'COLLATE "pg_c_utf8"'
_SPACES = "".join(map(chr, (0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)))


def _is(kind: str) -> str:
    """Whether the argument is of a type: known when the statement is read, whatever rows there are."""
    return f"PG_TYPEOF({{0}}) = CAST('{kind}' AS REGTYPE)"


# Sums ------------------------------------------------------------------------------------------------------


def _sum(operator: str) -> str:
    """A sum or difference, infinite if it is too large.

    Both below 2**1022, or one so small that it cannot carry the other over the end: no overflow. Halves of
    large numbers are exact, and so is what they say of the sum.
    """
    plain = f"{_X} {operator} {_Y}"
    return (
        f"CASE WHEN ABS({_X}) < 4e307 AND ABS({_Y}) < 4e307 THEN {plain} "
        f"WHEN ABS({_X}) < 1e290 OR ABS({_Y}) < 1e290 OR ABS({_X}) >= {_INF} OR ABS({_Y}) >= {_INF} "
        f"THEN {plain} "
        f"WHEN ABS({_X} * 0.5e0 {operator} {_Y} * 0.5e0) >= {2.0**1023!r} "
        f"THEN CASE WHEN {_X} > 0 THEN {_INF} ELSE {_LESS_INF} END ELSE {plain} END"
    )


# Products --------------------------------------------------------------------------------------------------

_SMALL, _LARGE, _DOWN, _UP = "1e-150", "1e150", repr(2.0**-512), repr(2.0**600)


def _middle(value: str) -> str:
    """A finite number that is not 0, brought near 1 by a power of two, which is exact."""
    return (
        f"CASE WHEN ABS({value}) >= {_LARGE} THEN {value} * {_DOWN} "
        f"WHEN ABS({value}) < {_SMALL} THEN {value} * {_UP} ELSE {value} END"
    )


def _moved(value: str) -> str:
    """The exponent of the power that was taken off."""
    return f"CASE WHEN ABS({value}) >= {_LARGE} THEN 512 WHEN ABS({value}) < {_SMALL} THEN -600 ELSE 0 END"


def _scaled(operator: str, exponents: str) -> str:
    """A product or quotient of any two numbers: infinite if it is too large, 0 if it is too small.

    Of two numbers near 1 it is exact to the last bit, and says whether the real one has a place.
    """
    plain = f"{_X} {operator} {_Y}"
    easy = f"ABS({_X}) BETWEEN {_SMALL} AND {_LARGE} AND ABS({_Y}) BETWEEN {_SMALL} AND {_LARGE}"
    sure = f"{_X} = 0 OR {_Y} = 0 OR ABS({_X}) >= {_INF} OR ABS({_Y}) >= {_INF}"
    near, moved = '"sfumato near"', '"sfumato moved"'
    return (
        f"CASE WHEN {easy} OR {sure} THEN {plain} ELSE ("
        f"SELECT CASE WHEN ABS({near}) >= POWER(2e0, LEAST(1024 - {moved}, 1023)) "
        f"THEN CASE WHEN {near} > 0 THEN {_INF} ELSE {_LESS_INF} END "
        f"WHEN ABS({near}) <= POWER(2e0, GREATEST(-1075 - {moved}, -1074)) THEN 0e0 ELSE {plain} END "
        f"FROM (SELECT ({_middle(_X)}) {operator} ({_middle(_Y)}) AS {near}, "
        f'({_moved(_X)}) {exponents} ({_moved(_Y)}) AS {moved} OFFSET 0) AS "sfumato scaled") END'
    )


_PRODUCT = _scaled("*", "+")
_QUOTIENT = _scaled("/", "-")


def _bits(value: str) -> str:
    return f"CAST(CAST('x' || ENCODE(FLOAT8SEND(ABS({value})), 'hex') AS BIT(64)) AS BIGINT)"


def _exponent(bits: str) -> str:
    return f"CAST(GREATEST({bits} / 4503599627370496, 1) - 1075 AS INTEGER)"


def _mantissa(bits: str) -> str:
    hidden = f"CASE WHEN {bits} / 4503599627370496 > 0 THEN 4503599627370496 ELSE 0 END"
    return f"CAST(MOD({bits}, 4503599627370496) + ({hidden}) AS NUMERIC)"


_TWO, _BX, _BY = "CAST(2 AS NUMERIC)", '"sfumato bx"', '"sfumato by"'
_MX, _MY, _EX, _EY = '"sfumato mx"', '"sfumato my"', '"sfumato ex"', '"sfumato ey"'
_REMAINDER = (
    f"CASE WHEN NOT ABS({_X}) < {_INF} OR {_Y} = {_NAN} THEN CASE WHEN {_X} IS NOT NULL THEN {_NAN} END "
    f"WHEN ABS({_X}) < ABS({_Y}) THEN {_X} "
    f"WHEN ABS({_X}) < 9e15 AND {_X} = TRUNC({_X}) AND {_Y} = TRUNC({_Y}) "
    f"THEN CAST(MOD(CAST({_X} AS BIGINT), CAST({_Y} AS BIGINT)) AS DOUBLE PRECISION) ELSE ("
    f"SELECT SIGN({_X}) * CAST(MOD({_MX} * POWER({_TWO}, GREATEST({_EX} - {_EY}, 0)), "
    f"{_MY} * POWER({_TWO}, GREATEST({_EY} - {_EX}, 0))) AS DOUBLE PRECISION) "
    f"* POWER(2e0, LEAST({_EX}, {_EY})) "
    f"FROM (SELECT {_mantissa(_BX)} AS {_MX}, {_exponent(_BX)} AS {_EX}, "
    f"{_mantissa(_BY)} AS {_MY}, {_exponent(_BY)} AS {_EY} "
    f'FROM (SELECT {_bits(_X)} AS {_BX}, {_bits(_Y)} AS {_BY} OFFSET 0) AS "sfumato bits" OFFSET 0) '
    f'AS "sfumato parts") END'
)
"""The exact remainder of two doubles: multiples of one power of two, divided as decimals of any size."""


def _nearest(value: str) -> str:
    """Whole numbers, halves away from zero; PostgreSQL's own ROUND takes halves to even."""
    return (
        f"TRUNC({value}) + CASE WHEN ABS(({value}) - TRUNC({value})) >= 0.5e0 THEN SIGN({value}) ELSE 0e0 END"
    )


def _round(count: int) -> str:
    if count == 1:
        return _nearest(_X)
    power = "POWER(10e0, ABS({1}))"
    fine = f"({_nearest(f'{_X} * {power}')}) / {power}"
    coarse = f"({_nearest(f'{_X} / {power}')}) * {power}"
    return (
        f"CASE WHEN {{1}} > 0 THEN CASE WHEN ABS({_X}) <= 1.797693134862315e308 / {power} THEN {fine} "
        f"ELSE {_X} END WHEN ABS({_X}) < 1e-290 THEN 0e0 WHEN ABS({_X}) > 1.7e308 THEN {_X} ELSE {coarse} END"
    )


_BASE = f"({_X} + 0e0)"
_SIZE = f"{_Y} * LN(ABS({_X}))"
_POWER = (
    f"CASE WHEN {_X} IS NULL OR {_Y} IS NULL THEN NULL "
    f"WHEN {_X} = 1 OR {_Y} = 0 THEN 1e0 "
    f"WHEN {_X} = {_NAN} OR {_Y} = {_NAN} THEN NULL "
    f"WHEN {_X} = 0 THEN CASE WHEN {_Y} < 0 THEN {_INF} ELSE 0e0 END "
    f"WHEN ABS({_Y}) >= {_INF} THEN CASE WHEN ABS({_X}) = 1 THEN 1e0 "
    f"WHEN (ABS({_X}) > 1) = ({_Y} > 0) THEN {_INF} ELSE 0e0 END "
    f"WHEN {_X} = {_LESS_INF} AND {_Y} <> TRUNC({_Y}) THEN CASE WHEN {_Y} > 0 THEN {_INF} ELSE 0e0 END "
    f"WHEN ABS({_X}) >= {_INF} THEN POWER({_BASE}, {_Y}) "
    f"WHEN {_X} < 0 AND {_Y} <> TRUNC({_Y}) THEN NULL "
    f"WHEN ABS({_X}) = 1 OR ABS({_Y}) < 1e-20 THEN POWER({_BASE}, {_Y}) "
    f"WHEN ABS({_Y}) > 1e22 THEN CASE WHEN (ABS({_X}) > 1) = ({_Y} > 0) THEN {_INF} ELSE 0e0 END "
    f"WHEN {_SIZE} > 709.7827128 THEN CASE WHEN {_X} < 0 AND MOD(CAST({_Y} AS NUMERIC), 2) <> 0 "
    f"THEN {_LESS_INF} ELSE {_INF} END "
    f"WHEN {_SIZE} < -745.13 THEN 0e0 ELSE POWER({_BASE}, {_Y}) END"
)
_EXP = (
    f"CASE WHEN {_X} > 709.782712893384e0 THEN {_X} * {_INF} "
    f"WHEN {_X} < -745.133e0 THEN 0e0 ELSE EXP({_X}) END"
)
_BUCKET = (
    f"CASE WHEN {_X} < {{1}} THEN 0 WHEN {_X} < {{2}} THEN CASE WHEN {_X} - {_Y} < 1e-280 THEN 1 ELSE "
    f"LEAST(FLOOR(({_X} - {_Y}) / (CAST({{2}} AS DOUBLE PRECISION) - {_Y}) "
    f"* CAST({{3}} AS DOUBLE PRECISION)) + 1, {{3}}) END "
    f"WHEN {_X} >= {{2}} THEN CAST({{3}} AS DOUBLE PRECISION) + 1 END"
)

# Casts -----------------------------------------------------------------------------------------------------

_NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
_SPELT = r"^\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|infinity|nan)\s*$"
_FITS = "{0} >= -9223372036854775808 AND {0} < 9223372036854775808"


def _fitting(value: str) -> str:
    """A number of any type as BIGINT; doubles go to the nearest, halves to even."""
    return f"CASE WHEN {_FITS.replace('{0}', value)} THEN CAST({value} AS BIGINT) END"


number_cast = _fitting("{0}")
"""A number of any type as BIGINT, NULL beyond 64 bits."""

_AS_DOUBLE = f"CAST({_TEXT} AS DOUBLE PRECISION)"
_INTEGER = (
    f"CASE WHEN {_is('double precision')} THEN {_fitting(_AS_DOUBLE)} "
    f"WHEN {_is('boolean')} THEN CASE {_TEXT} WHEN 'true' THEN 1 WHEN 'false' THEN 0 END "
    f"WHEN NOT {_TEXT} ~ '{_NUMBER}' THEN NULL "
    f"WHEN PG_INPUT_IS_VALID({_TEXT}, 'bigint') THEN CAST({_TEXT} AS BIGINT) "
    f"WHEN PG_INPUT_IS_VALID({_TEXT}, 'numeric') THEN "
    f"CASE WHEN CAST({_TEXT} AS NUMERIC) > -9223372036854775808.5 "
    f"AND CAST({_TEXT} AS NUMERIC) < 9223372036854775807.5 "
    f"THEN CAST(CAST({_TEXT} AS NUMERIC) AS BIGINT) END END"
)
_FLOAT = (
    f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {_is('boolean')} THEN "
    f"CASE {_TEXT} WHEN 'true' THEN 1e0 WHEN 'false' THEN 0e0 END "
    f"WHEN NOT {_TEXT} ~* '{_SPELT}' THEN NULL "
    f"WHEN PG_INPUT_IS_VALID({_TEXT}, 'double precision') THEN {_AS_DOUBLE} "
    f"WHEN {_TEXT} ~ '[eE]-' OR (PG_INPUT_IS_VALID({_TEXT}, 'numeric') AND "
    f"ABS(CAST({_TEXT} AS NUMERIC)) < 1) THEN 0e0 "
    f"WHEN {_TEXT} ~ '^\\s*-' THEN {_LESS_INF} ELSE {_INF} END"
)


def _wide_of(value: str) -> str:
    """A whole double of less than 2**126 as a decimal, exactly: in two parts that fit in 64 bits."""
    high = f"TRUNC({value} * {2.0**-63!r})"
    return (
        f"CASE WHEN ABS({value}) < 9e18 THEN CAST(CAST({value} AS BIGINT) AS NUMERIC) "
        f"WHEN ABS({value}) < {2.0**126!r} "
        f"THEN CAST(CAST({high} AS BIGINT) AS NUMERIC) * 9223372036854775808 "
        f"+ CAST(CAST({value} - {high} * {2.0**63!r} AS BIGINT) AS NUMERIC) END"
    )


_WIDE = (
    f"CASE WHEN {_is('double precision')} THEN {_wide_of(_AS_DOUBLE)} "
    f"WHEN NOT {_TEXT} ~ '{_NUMBER}' THEN NULL "
    f"WHEN PG_INPUT_IS_VALID({_TEXT}, 'numeric') THEN ROUND(CAST({_TEXT} AS NUMERIC)) END"
)
_BOOLEAN = (
    f"CASE WHEN {_is('text')} THEN CASE WHEN LOWER({_TEXT} {_C}) IN ('true', 't', 'yes', 'y', '1') THEN TRUE "
    f"WHEN LOWER({_TEXT} {_C}) IN ('false', 'f', 'no', 'n', '0') THEN FALSE END "
    f"WHEN {_TEXT} IN ('0', '-0', 'false') THEN FALSE WHEN {_TEXT} IS NOT NULL THEN TRUE END"
)
_PLAIN_DAY = "^[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]$"
_BETWEEN = r"(-[0-9]{1,2}-|/[0-9]{1,2}/| [0-9]{1,2} |\\[0-9]{1,2}\\)"
_SIXTY = "[0-5]?[0-9]"
_OCLOCK = rf"0*([01]?[0-9]|2[0-3]):({_SIXTY}(:({_SIXTY}(\.[0-9]*)?)?)?)?"
_MIDNIGHT = r"24:(0{1,2}(:(0{1,2}(\.(0{0,6}|000000[0-9]*))?)?)?)?"
_OFFSET = "(Z|[+-][0-9][0-9]([0-9][0-9]|:[0-9][0-9](:[0-9][0-9])?)?)"
_BEHIND = rf"[T\s]\s*({_OCLOCK}|{_MIDNIGHT})({_OFFSET}\s*| [-A-Za-z0-9_/+:]*\s*|)"
_DAY_FORM = rf"^\s*-?0*[0-9]{{1,7}}{_BETWEEN}[0-9]{{1,2}}(\s\([Bb][Cc]\))?(\s*|{_BEHIND})$"
"""What DuckDB takes for a day, of which a clock and a zone behind it change nothing."""
_ENDLESS, _EPOCH = r"^\s*-?(inf|infinity\s*)$", r"^\s*-?epoch\s*$"
_YEAR = f"CAST(SUBSTRING({_TEXT} FROM '^\\s*(-?[0-9]+)') AS INTEGER)"
_COUNTED = (
    f"CASE WHEN NOT {_TEXT} LIKE '%(%' THEN {_YEAR} WHEN {_YEAR} > 0 THEN 1 - {_YEAR} END"  # 0 is 1 (BC)
)
_MONTH_AND_DAY = r"SUBSTRING({0} FROM '^\s*-?[0-9]+([-/ \\][0-9]{1,2}[-/ \\][0-9]{1,2})')"
_REST = f"TRANSLATE({_MONTH_AND_DAY.replace('{0}', _TEXT)}, '/ \\', '---')"
_YEARS, _MONTHS_DAYS, _WRITTEN = '"sfumato year"', '"sfumato rest"', '"sfumato day"'
_YEAR_TEXT = f"CAST(GREATEST({_YEARS}, 1 - {_YEARS}) AS TEXT)"
_WRITTEN_DAY = (
    f"(SELECT CASE WHEN PG_INPUT_IS_VALID({_WRITTEN}, 'date') THEN CAST({_WRITTEN} AS DATE) END FROM (SELECT "
    f"LPAD({_YEAR_TEXT}, GREATEST(4, LENGTH({_YEAR_TEXT})), '0') || {_MONTHS_DAYS} || "
    f"CASE WHEN {_YEARS} > 0 THEN '' ELSE ' BC' END AS {_WRITTEN} "
    f'FROM (SELECT {_COUNTED} AS {_YEARS}, {_REST} AS {_MONTHS_DAYS} OFFSET 0) AS "sfumato parts" OFFSET 0) '
    'AS "sfumato days")'
)
_DATE = (
    f"CASE WHEN {_is('date')} THEN CAST({_TEXT} AS DATE) "
    f"WHEN {_TEXT} ~ '{_PLAIN_DAY}' AND PG_INPUT_IS_VALID({_TEXT}, 'date') THEN CAST({_TEXT} AS DATE) "
    f"WHEN {_TEXT} ~ '{_DAY_FORM}' THEN {_WRITTEN_DAY} "
    f"WHEN {_TEXT} ~* '{_EPOCH}' THEN CAST('1970-01-01' AS DATE) "
    f"WHEN {_TEXT} ~* '{_ENDLESS}' THEN CASE WHEN {_TEXT} LIKE '%-%' THEN CAST('-infinity' AS DATE) "
    f"ELSE CAST('infinity' AS DATE) END END"
)

# Text ------------------------------------------------------------------------------------------------------

_PLAIN = f"CAST(CAST({_TEXT} AS NUMERIC) AS TEXT)"
_DOUBLE_TEXT = (
    f"CASE WHEN {_TEXT} = 'NaN' THEN 'nan' WHEN {_TEXT} = 'Infinity' THEN 'inf' "
    f"WHEN {_TEXT} = '-Infinity' THEN '-inf' "
    f"WHEN {_TEXT} LIKE '%e+15' THEN {_PLAIN} || CASE WHEN {_PLAIN} LIKE '%.%' THEN '' ELSE '.0' END "
    f"WHEN {_TEXT} LIKE '%.%' OR {_TEXT} LIKE '%e%' THEN {_TEXT} ELSE {_TEXT} || '.0' END"
)
_DAY_SHOWN = f"REPLACE({_TEXT}, ' BC', ' (BC)')"
_SHOWN = (
    f"CASE WHEN {_is('double precision')} THEN {_DOUBLE_TEXT} "
    f"WHEN {_is('date')} THEN {_DAY_SHOWN} ELSE {_TEXT} END {_C}"
)
_ONE_ZERO = _SHOWN.replace(
    "CASE WHEN", f"CASE WHEN {_is('double precision')} AND {_TEXT} = '-0' THEN '0.0' WHEN", 1
)
"""The same, where equal doubles have one text: what a digest reads of a group is any of its rows."""
_FLOAT_TEXT = f"CASE WHEN {{0}} IS NOT NULL THEN {_DOUBLE_TEXT} END {_C}".replace(
    _TEXT, f"CAST({_X} + 0e0 AS TEXT)"
)

# Days ------------------------------------------------------------------------------------------------------

_FIRST = "CAST('0001-01-01' AS DATE)"
_DAY = "CAST({0} AS DATE)"
_LAST = 3652058


def _later(operator: str) -> str:
    place = f"({_DAY} - {_FIRST}) {operator} CAST({{1}} AS INTEGER)"
    return (
        f"CASE WHEN {{1}} BETWEEN -9999999 AND 9999999 THEN "
        f"CASE WHEN {place} BETWEEN 0 AND {_LAST} THEN {_FIRST} + ({place}) END END"
    )


_MONTH = f"DATE_PART('year', {_DAY}) * 12 + DATE_PART('month', {_DAY}) - 1 + {{1}}"
_MONTHS = (
    f"CASE WHEN {_MONTH} BETWEEN 12 AND 119999 "
    f"THEN CAST(CAST({_DAY} AS TIMESTAMP) + CAST('1 month' AS INTERVAL) * {_Y} AS DATE) END"
)


def _part(name: str) -> str:
    return f"CAST(DATE_PART('{name}', {_DAY}) AS BIGINT)"


def _start(unit: str) -> str:
    return f"CAST(DATE_TRUNC('{unit}', CAST({_DAY} AS TIMESTAMP)) AS DATE)"


trimmed = f"BTRIM({_TEXT}, '{_SPACES}')"
"""A text without the blanks around it."""


def _trimmed(function: str) -> Template:
    return lambda count: (
        f"{function}({_TEXT}, '{_SPACES}')" if count == 1 else f"{function}({_TEXT}, CAST({{1}} AS TEXT))"
    )


def arithmetic(function: str) -> str:
    """The form of `add`, `multiply` or `divide`, for tests that plant a plain one in its place."""
    form = _FORMS[function]
    assert isinstance(form, str)
    return form


_FORMS: dict[str, Template] = {
    "add": _sum("+"),
    "subtract": _sum("-"),
    "multiply": _PRODUCT,
    "divide": f"CASE WHEN {{1}} <> 0 THEN {_QUOTIENT} END",
    "int_divide": f"CASE WHEN {{1}} <> 0 THEN TRUNC({_QUOTIENT}) END",
    "modulo": f"CASE WHEN {{1}} <> 0 THEN {_REMAINDER} END",
    "round": _round,
    "log10": f"CASE WHEN {{0}} > 0 THEN LOG({_X}) END",
    "log2": f"CASE WHEN {{0}} > 0 THEN LN({_X}) / LN(2e0) END",
    "exp": _EXP,
    "power": _POWER,
    "width_bucket": _BUCKET,
    "lower": f"LOWER({_TEXT} {_CASES}) {_C}",
    "upper": f"UPPER({_TEXT} {_CASES}) {_C}",
    "trim": _trimmed("BTRIM"),
    "ltrim": _trimmed("LTRIM"),
    "rtrim": _trimmed("RTRIM"),
    "length": f"CAST(CHAR_LENGTH({_TEXT}) AS BIGINT)",
    "like": lambda count: "{0} LIKE {1} ESCAPE ''" if count == 2 else "{0} LIKE {1} ESCAPE '!'",
    "ilike": lambda count: (
        f"{_TEXT} {_CASES} ILIKE {{1}} ESCAPE ''"
        if count == 2
        else f"{_TEXT} {_CASES} ILIKE {{1}} ESCAPE '!'"
    ),
    "ends_with": f"RIGHT({_TEXT}, LENGTH(CAST({{1}} AS TEXT))) = CAST({{1}} AS TEXT)",
    "contains": f"STRPOS({_TEXT}, CAST({{1}} AS TEXT)) > 0",
    "position": f"CAST(STRPOS({_TEXT}, CAST({{1}} AS TEXT)) AS BIGINT)",
    **{name: _part(name) for name in ("year", "quarter", "month", "day", "isodow", "week")},
    "dayofweek": _part("dow"),
    "dayofyear": _part("doy"),
    **{f"trunc_{unit}": _start(unit) for unit in ("year", "quarter", "month", "week")},
    "add_days": _later("+"),
    "subtract_days": _later("-"),
    "add_months": _MONTHS,
    "add_seconds": (
        f"CASE WHEN {_X} + {_Y} BETWEEN {FIRST}e0 AND {LAST}e0 THEN CAST({_X} + {_Y} AS BIGINT) END"
    ),
    "to_integer": _INTEGER,
    "to_float": _FLOAT,
    "to_text": f"CASE WHEN {_is('date')} THEN {_DAY_SHOWN} ELSE {_TEXT} END {_C}",
    "float_to_text": _FLOAT_TEXT,
    "integer_to_text": f"CAST({number_cast} AS TEXT) {_C}",
    "to_date": _DATE,
    "to_boolean": _BOOLEAN,
}
_COMMON = """
    abs and append case ceil coalesce concat days_between equal floor greater greater_equal greatest in
    is_distinct is_not_distinct is_null least left less less_equal ln negate not not_equal nullif or replace
    right sign sqrt starts_with substring trunc
    date_to_timestamp epoch hour hours_between minute minutes_between second seconds_between
    timestamp_to_date timestamp_to_time to_time to_timestamp trunc_day trunc_hour trunc_minute
"""

POSTGRES = Dialect(
    name="postgres",
    writer="postgres",
    sum="SUM({0})",  # of BIGINT and NUMERIC it is NUMERIC
    wide="CAST({0} AS NUMERIC)",
    casts={
        "integer": _INTEGER,
        "float": _FLOAT,
        "boolean": _BOOLEAN,
        "text": _SHOWN,
        "date": _DATE,
        "timestamp": _INTEGER,
        "time": _INTEGER,
        "wide": _WIDE,
    },
    casts_from={
        ("number", "integer"): number_cast,
        ("number", "float"): _X,
        ("float", "wide"): _wide_of("{0}"),
        ("text", "text"): f"{_TEXT} {_C}",
        ("date", "date"): _DAY,
        ("boolean", "boolean"): "CAST({0} AS BOOLEAN)",
    },
    is_nan=f"{{0}} = {_NAN}",
    nan=_NAN,
    ordered="{0}",
    truncate="TRUNC({0})",
    whole="CAST(TRUNC({0}) AS BIGINT)",
    times=_PRODUCT,
    divide="{0} / {1}",
    wide_divide="DIV(CAST({0} AS NUMERIC), CAST({1} AS NUMERIC))",
    greatest="GREATEST({0}, {1})",
    type_of="CAST(PG_TYPEOF(ANY_VALUE({0})) AS TEXT)",
    extremes={"boolean": ("BOOL_AND({0})", "BOOL_OR({0})")},
    shown=_ONE_ZERO,
    digest=portable(_ONE_ZERO),
    materialised=True,
    lists={
        "integer": "(SELECT UNNEST(CAST(TRANSLATE({0}, '[]', '{}') AS BIGINT[])))",
        "float": "(SELECT UNNEST(CAST(TRANSLATE({0}, '[]', '{}') AS DOUBLE PRECISION[])))",
        "date": "(SELECT UNNEST(CAST(TRANSLATE({0}, '[]', '{}') AS DATE[])))",
        "text": "(SELECT UNNEST(STRING_TO_ARRAY({0}, {1})))",
    },
    binds=True,
    doubles=False,
    forms=_FORMS,
    # The largest doubles are more than 1e292 apart: so small a constant carries none of them over the end.
    beside_constants={"add": f"{_X} + {_Y}", "subtract": f"{_X} - {_Y}"},
    common=frozenset(_COMMON.split()),
    different={
        "other last digits": frozenset({"log2"}),
        "last digits by the server's mathematical library": frozenset({"exp", "ln", "log10", "power"}),
        "beyond ASCII by the server's version of Unicode": frozenset({"lower", "upper", "ilike"}),
    },
)
"""PostgreSQL's dialect, from version 17 on."""


class _Stale(Dialect):
    """The same dialect, in which no question is written: what it is about is not what was attached.

    Each question is written before it is paid, so that none is paid in vain.
    """

    __slots__ = ()

    def choosing_by(self, name: str) -> Dialect:
        del name
        raise SourceUnusable(
            "A table changed since it was attached, or a right to it, as the read before found; open a new "
            "session. Nothing was paid for this question."
        )


STALE = _Stale(**{each.name: getattr(POSTGRES, each.name) for each in fields(POSTGRES)})
"""PostgreSQL's dialect, once a read found that a table, or a right to it, has changed."""
