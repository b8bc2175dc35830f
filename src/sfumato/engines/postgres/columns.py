"""A column of PostgreSQL: what it holds, and the SQL that gives it the type of a kind, or makes an id of it.

| type | as a column | as an id |
| --- | --- | --- |
| smallint, integer, bigint | whole number | BIGINT |
| numeric | number; whole if it has no digits after the point | BIGINT if 18 whole digits do; NaN is none |
| real, double precision | number | the double of the fewest digits; NaN is none |
| boolean, uuid, date | truth value, text, day | as it is |
| text, varchar, char(n), name, citext, enums | text, by its bytes; char(n) without its padding | the same |
| the same, in the spellings of ISO 8601 | moments, days, times of day; truth values | |
| json, jsonb | text | refused |
| timestamps | moments, the day, the time of day; in UTC | as it is |
| time | the time of day | refused |
| bytea | refused | as it is |
| a domain | as its base type | as its base type |
| all others | refused | refused |

No function of a user runs: what is not of a type of PostgreSQL's own becomes text by the type's output
function, which CONCAT calls, and not by a cast, which anyone who owns the type may define.

Text and bytes of more than `LONGEST` bytes are NULL, and so is JSONB that could be longer as text: functions
of PostgreSQL raise on what is very long, and a row must not make a read fail.
"""

from __future__ import annotations

from sfumato._dataclasses import dataclass
from sfumato.engines.base import SourceKind
from sfumato.engines.postgres.dialect import POSTGRES, number_cast, trimmed
from sfumato.errors import SourceUnusable
from sfumato.numeric.moments import DAY, FIRST, LAST
from sfumato.schema import Kind

__all__ = [
    "LONGEST",
    "Column",
    "id_of",
    "is_exact",
    "is_unread",
    "kind_of",
    "may_fail",
    "pointer_of",
    "quoted",
    "value_of",
]

LONGEST = 1_000_000
"""How many bytes a text, or an id of bytes, may have. A statement reads far fewer than 1000 of them, so that
no row and no text of 1 GiB is made, at which the server raises."""

_JSONB_LONGEST, _JSONB_STORED = 80_000, 500_000
"""How many bytes JSONB may have, or its text is not made at all: a byte is 12,300 characters at most
(1e131071), and a stored one, compressed, 256 bytes."""

_WHOLE = {"int2", "int4", "int8"}
_FLOATS = {"float4", "float8"}
_TEXTS = {"text", "varchar", "bpchar", "name"}
_SHORT = {"name", "uuid"}
_SHOWN_AS_TEXT = {"uuid", "json", "jsonb"}
_TIMES = {"timestamp", "timestamptz"}
_C = 'COLLATE "C"'
_HOUR, _SECOND = "([01]?[0-9]|2[0-3]):[0-5][0-9]", r":[0-5][0-9](\.[0-9]*)?"
_CLOCK, _TIME = f"{_HOUR}({_SECOND})?", f"^ *{_HOUR}({_SECOND} *)?$"
_MOMENT = (
    rf"^ *[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([ T]({_CLOCK}|24:00(:00)?)(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)? *)?$"
)
_TO_SECONDS = r"^ *([0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]+:[0-9]{2}(?::[0-9]{2})?)?)"
_ZONE = r":[0-9:.]*(Z|[+-][0-9]{2}(?::?[0-9]{2})?) *$"
_DAYS = "CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE)"
_IN_64 = "{0} > -9223372036854775808.5 AND {0} < 9223372036854775807.5"
# Decimals beyond the doubles are none of them; those too small for one are 0. A cast would raise on both.
_IN_DOUBLES = (
    "CASE WHEN ABS({0}) < CAST('2.5e-324' AS NUMERIC) THEN CAST(0 AS DOUBLE PRECISION) "
    "WHEN ABS({0}) <= CAST('1.797693134862315e308' AS NUMERIC) OR ABS({0}) >= CAST('Infinity' AS NUMERIC) "
    "THEN CAST({0} AS DOUBLE PRECISION) END"
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: Its name.
        generated: Empty, `s` if its values are stored, `v` if they are computed as rows are read.
        native: The name of its type, or of the base type of its domain.
        sort: `e` for an enum; `b` for a type of PostgreSQL's own.
        modifier: Digits of a numeric.
        builtin: Whether the type came with PostgreSQL itself.
        number: Its place.
        is_citext: Whether the type is the one of the extension citext, and becomes text as text does.
    """

    name: str
    generated: str
    native: str
    sort: str
    modifier: int
    builtin: bool
    number: int
    is_citext: bool = False

    @property
    def type(self) -> str:
        """The type as it is known here; `other` if it is not."""
        if self.sort == "e":
            return "text"
        if self.is_citext or (self.builtin and self.native in _TEXTS):
            return "text"
        return self.native if self.builtin and self.sort == "b" else "other"

    @property
    def digits(self) -> int | None:
        """Of a numeric that is whole by its type, how many digits it has."""
        if self.type != "numeric" or self.modifier < 4 or (self.modifier - 4) & 0x7FF:
            return None
        return ((self.modifier - 4) >> 16) & 0xFFFF


def kind_of(column: Column) -> SourceKind:
    """What a column holds."""
    native = column.type
    if native in _WHOLE or column.digits is not None:
        return "integer"
    if native in _FLOATS or native == "numeric":
        return "float"
    if native == "text" or native in _SHOWN_AS_TEXT:
        return "text"
    if native in _TIMES:
        return "timestamp"
    if native == "time":
        return "time"
    return "boolean" if native == "bool" else "date" if native == "date" else "other"


def quoted(name: str) -> str:
    """A name that stands for itself."""
    return '"' + name.replace('"', '""') + '"'


def value_of(column: Column, kind: Kind, shown: str) -> str:
    """SQL for a column in the type of a kind, NULL where a value does not fit.

    Raises:
        SourceUnusable: if it cannot have that kind.
    """
    sql = _cast(column, kind)
    if sql is None:
        raise SourceUnusable(
            f'{shown}: column "{column.name[:100]}" cannot be read as {kind}; the source has it as '
            f"{kind_of(column)}."
        )
    return sql


def may_fail(name: str, value: str) -> bool:
    """Whether a value of the source's type may be none of the declared kind, by the form of the cast."""
    return value != quoted(name) and not value.startswith("CAST(")


def is_unread(column: Column, value: str) -> str:
    """SQL for whether a cell is there, not blank, and no value of the declared kind."""
    there = f"{quoted(column.name)} IS NOT NULL"
    if column.type == "text":
        blank = f"({trimmed.replace('{0}', _text(column))} = '')"  # NULL if it is too long
        there = f"{there} AND {blank} IS NOT TRUE"
    return f"({there} AND ({value}) IS NULL)"


def _text(column: Column) -> str:
    """SQL for a column as text, compared by its bytes; NULL if it is too long."""
    return _short(column, _whole_text(column))


def _whole_text(column: Column) -> str:
    name = quoted(column.name)
    if column.builtin:
        return f"CAST({name} AS TEXT) {_C}"
    return f"CASE WHEN {name} IS NOT NULL THEN CONCAT({name}) END {_C}"


def _is_long(column: Column) -> str:
    """SQL for whether a cell is of too many bytes; empty where none is."""
    name, native = quoted(column.name), column.native
    if column.sort == "e" or (column.builtin and native in _SHORT):
        return ""
    too_long = f"OCTET_LENGTH({name if native == 'bytea' else _whole_text(column)}) > {LONGEST}"
    if native == "jsonb" and column.builtin:
        # What a path finds is not compressed, and its size is what it is.
        return (
            f"CASE WHEN PG_COLUMN_SIZE({name}) > {_JSONB_STORED} THEN TRUE "
            f"WHEN PG_COLUMN_SIZE(JSONB_PATH_QUERY_FIRST({name}, '$')) > {_JSONB_LONGEST} THEN TRUE "
            f"ELSE {too_long} END"
        )
    return too_long


def _cast(column: Column, kind: Kind) -> str | None:
    """SQL for a column in the type of a kind, NULL where a value does not fit; None: it cannot be."""
    name, native, own = quoted(column.name), column.type, kind_of(column)
    if own == "other":
        return None
    if kind == "text":
        if own == "date":
            return f"REPLACE(CAST({name} AS TEXT), ' BC', ' (BC)') {_C}"
        if own == "text":
            return _text(column)
        return f"CAST({name} AS TEXT) {_C}" if own in ("integer", "boolean") else None
    if kind == "date":
        if own == "text":
            return _as_day(column)
        day = f"CAST({name} AS DATE)" if own in ("date", "timestamp") else ""
        if own == "timestamp":  # it can be "infinity", which is not a day
            return f"CASE WHEN ISFINITE({day}) THEN {day} END"
        return day or None
    if kind in ("timestamp", "time"):
        return _seconds(column, kind)
    if kind == "boolean":
        if own == "text":
            return _short(column, POSTGRES.casts["boolean"].replace("{0}", _whole_text(column)))
        if own == "boolean":
            return f"CAST({name} AS BOOLEAN)"  # so that a domain is its base type
    if own not in ("integer", "float", "boolean"):
        return None
    if kind == "float":
        if native == "numeric":
            return _IN_DOUBLES.replace("{0}", name)
        inner = f"CAST({name} AS INTEGER)" if native == "bool" else name
        return f"CAST({inner} AS DOUBLE PRECISION)"
    if kind == "boolean" and column.digits is not None:  # whole, and of any size
        return f"CASE WHEN {name} <> CAST('NaN' AS NUMERIC) THEN {name} <> 0 END"
    whole = _as_bigint(name, native)
    return whole if kind == "integer" else f"{whole} <> 0"


def _short(column: Column, value: str) -> str:
    """What is made of a text, of those that are not too long; these are asked first."""
    too_long = _is_long(column)
    return f"CASE WHEN NOT {too_long} THEN {value} END" if too_long else value


def _as_day(column: Column) -> str:
    """A day of a text; it can say "infinity", which is none."""
    day = POSTGRES.casts["date"].replace("{0}", _whole_text(column))
    ends = [f"CAST('{end}' AS DATE)" for end in ("infinity", "-infinity")]
    return _short(column, f"NULLIF(NULLIF({day}, {ends[0]}), {ends[1]})")


def _seconds(column: Column, kind: Kind) -> str | None:
    """Whole seconds, since 1970 or of the day; None: the column cannot be read so."""
    name, own = quoted(column.name), kind_of(column)
    low, high = (FIRST, LAST) if kind == "timestamp" else (0, DAY - 1)
    if own == "text":
        return _short(column, _written(_whole_text(column), kind))
    if own == "integer":
        number, whole = _as_bigint(name, column.type), ""
    elif kind == "timestamp" and own == "date":  # there are days that no timestamp is of
        number = f"EXTRACT(EPOCH FROM CAST({name} AS TIMESTAMP))"
        return f"CASE WHEN {name} BETWEEN {_DAYS} THEN CAST({number} AS BIGINT) END"
    elif own == "timestamp":
        moment = f"CAST({name} AS TIMESTAMP)"
        number, whole = f"FLOOR(EXTRACT(EPOCH FROM {moment}))", f"ISFINITE({moment}) AND "
        if kind == "time":
            return f"CASE WHEN {whole}{number} BETWEEN {FIRST} AND {LAST} THEN {_clock(moment)} END"
    elif kind == "time" and own == "time":
        number, whole = f"FLOOR(EXTRACT(EPOCH FROM {name}))", ""
    else:
        return None
    return f"CASE WHEN {whole}{number} BETWEEN {low} AND {high} THEN CAST({number} AS BIGINT) END"


def _clock(moment: str) -> str:
    """The whole seconds of the day of a moment."""
    return f"CAST(FLOOR(EXTRACT(EPOCH FROM CAST({moment} AS TIME))) AS BIGINT)"


def _written(text: str, kind: Kind) -> str:
    """Whole seconds of a text as ISO 8601 writes them; parts of a second are cut off, not rounded."""
    if kind == "time":
        clock = f"SUBSTRING({text} FROM '^ *([0-9]+:[0-9]+(?::[0-9]+)?)')"
        seconds = f"CAST(EXTRACT(EPOCH FROM CAST({clock} AS TIME)) AS BIGINT)"
        return f"CASE WHEN {text} ~ '{_TIME}' THEN {seconds} END"
    zone = f"COALESCE(SUBSTRING({text} FROM '{_ZONE}'), '')"
    moment = f"SUBSTRING({text} FROM '{_TO_SECONDS}') || {zone}"
    number = f"EXTRACT(EPOCH FROM CAST({moment} AS TIMESTAMPTZ))"
    held = f"CASE WHEN {number} BETWEEN {FIRST} AND {LAST} THEN CAST({number} AS BIGINT) END"
    is_moment = f"{text} ~ '{_MOMENT}' AND PG_INPUT_IS_VALID({moment}, 'timestamptz')"
    return f"CASE WHEN {is_moment} THEN {held} END"


def _as_bigint(name: str, native: str) -> str:
    if native == "numeric":
        return f"CASE WHEN {_IN_64.replace('{0}', name)} THEN CAST({name} AS BIGINT) END"
    if native in _FLOATS:
        return number_cast.replace("{0}", f"CAST({name} AS DOUBLE PRECISION)")
    return f"CAST(CAST({name} AS INTEGER) AS BIGINT)" if native == "bool" else f"CAST({name} AS BIGINT)"


def id_of(column: Column, shown: str) -> str:
    """An id as the source has it; equal ones in one form, since a digest reads their text."""
    name, native = quoted(column.name), column.type
    if native in _WHOLE or (column.digits or 99) <= 18:
        return _as_bigint(name, native)
    if native == "numeric":
        return f"CASE WHEN {name} <> CAST('NaN' AS NUMERIC) THEN TRIM_SCALE({name}) END"
    if native in _FLOATS:
        # In the fewest digits that mean it: 0.1 of single precision is 0.1, as in other tables.
        double = f"CAST(CAST({name} AS TEXT) AS DOUBLE PRECISION)" if native == "float4" else name
        plain = f"{double} + CAST(0 AS DOUBLE PRECISION)"
        return f"CASE WHEN {double} <> CAST('NaN' AS DOUBLE PRECISION) THEN {plain} END"
    if native == "text":
        return _text(column)
    if native == "bytea":
        return _short(column, name)
    if native in {"bool", "uuid", "date", *_TIMES}:
        return f"CAST({name} AS DATE)" if native == "date" else name
    raise SourceUnusable(
        f'{shown}: the values of column "{column.name[:100]}" cannot be the ids of units; write them as text '
        "or whole numbers."
    )


def pointer_of(column: Column, shown: str) -> str:
    """A pointer; of floats those count that are whole and small enough to be exact."""
    if column.type not in _FLOATS:
        return id_of(column, shown)
    most, double = (
        2**24 if column.type == "float4" else 2**53,
        f"CAST({quoted(column.name)} AS DOUBLE PRECISION)",
    )
    return (
        f"CASE WHEN {double} = TRUNC({double}) AND ABS({double}) < {most} THEN CAST({double} AS BIGINT) END"
    )


def is_exact(column: Column, kind: Kind) -> bool:
    """Whether a column of a kind keeps apart what the source does, and has the type that a pointer has."""
    native = column.type
    whole = native in _WHOLE or (native == "numeric" and (column.digits or 99) <= 18)
    same: dict[str, bool] = {
        "integer": whole,
        "text": native == "text",
        "boolean": native == "bool",
        "date": native == "date",
        "float": native == "float8",
    }
    return same.get(kind, False)
