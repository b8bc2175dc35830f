"""Values as PostgreSQL writes them, as text and in binary, by its numbers of types."""

from __future__ import annotations

import datetime
import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from sfumato._dataclasses import dataclass
from sfumato.server.wire.sqlstates import WireError

__all__ = [
    "BOOL",
    "FLOAT8",
    "INT8",
    "KINDS",
    "OID",
    "TEXT",
    "Kind",
    "decoded",
    "encoder",
    "kind_of",
    "oid_of",
    "sample",
]

BOOL, BYTEA, NAME, INT8, INT2, INT4, TEXT, OID = 16, 17, 19, 20, 21, 23, 25, 26
FLOAT4, FLOAT8, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, NUMERIC = 700, 701, 1082, 1083, 1114, 1184, 1700
_TEXTS = frozenset({18, NAME, TEXT, 705, 1042, 1043, 114, 3802})
_TIMES: dict[int, Callable[[str], Any]] = {
    DATE: datetime.date.fromisoformat,
    TIME: datetime.time.fromisoformat,
    TIMESTAMP: datetime.datetime.fromisoformat,
    TIMESTAMPTZ: datetime.datetime.fromisoformat,
}
_ZONE = re.compile(r"\s+([-+][0-9:]+|Z)$")  # "2024-02-01 +00", as drivers write dates
_EPOCH_DAY = datetime.date(2000, 1, 1).toordinal()
_EPOCH = datetime.datetime(2000, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_MOST, _LONGEST, _LONGEST_TIME = 2**63, 1000, 64


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of PostgreSQL: its number, name, how many bytes a value has, and that of an array of it."""

    oid: int
    name: str
    size: int
    array: int = 0


KINDS: Mapping[int, Kind] = {
    kind.oid: kind
    for kind in (
        Kind(BOOL, "bool", 1, 1000),
        Kind(BYTEA, "bytea", -1, 1001),
        Kind(18, "char", 1, 1002),
        Kind(NAME, "name", 64, 1003),
        Kind(INT8, "int8", 8, 1016),
        Kind(INT2, "int2", 2, 1005),
        Kind(INT4, "int4", 4, 1007),
        Kind(TEXT, "text", -1, 1009),
        Kind(OID, "oid", 4, 1028),
        Kind(FLOAT4, "float4", 4, 1021),
        Kind(FLOAT8, "float8", 8, 1022),
        Kind(1043, "varchar", -1, 1015),
        Kind(DATE, "date", 4, 1182),
        Kind(TIME, "time", 8, 1183),
        Kind(TIMESTAMP, "timestamp", 8, 1115),
        Kind(TIMESTAMPTZ, "timestamptz", 8, 1185),
        Kind(NUMERIC, "numeric", -1, 1231),
    )
}
_ELEMENTS = {kind.array: kind.oid for kind in KINDS.values()}
_WORDS = {INT2: ">h", INT4: ">i", INT8: ">q", OID: ">I", FLOAT4: ">f", FLOAT8: ">d"}
_DECLARED = {
    "integer": INT8,
    "float": FLOAT8,
    "boolean": BOOL,
    "text": TEXT,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "time": TIME,
}


def oid_of(kind: str) -> int:
    """The type that a declared column, or a result, of this kind has."""
    return _DECLARED.get(kind, TEXT)


def kind_of(arrow: pa.DataType) -> Kind:
    """The type that an Arrow column is sent as."""
    if pa.types.is_list(arrow):
        inner = kind_of(arrow.value_type)
        return Kind(inner.array, f"_{inner.name}", -1)
    for test, oid in _ARROW:
        if test(arrow):
            return KINDS[oid]
    return KINDS[TEXT]


_ARROW: tuple[tuple[Callable[[pa.DataType], bool], int], ...] = (
    (pa.types.is_boolean, BOOL),
    (pa.types.is_integer, INT8),
    (pa.types.is_floating, FLOAT8),
    (pa.types.is_date, DATE),
    (pa.types.is_timestamp, TIMESTAMP),
    (pa.types.is_time, TIME),
    (pa.types.is_decimal, NUMERIC),
    (pa.types.is_binary, BYTEA),
    (pa.types.is_large_binary, BYTEA),
)


def encoder(oid: int, binary: int) -> Callable[[Any], bytes | None]:
    """What writes one value of a type, in text (0) or in binary (1); None is NULL."""
    write = _binary(oid) if binary else _plainly
    return lambda value: None if value is None else write(value)


def _plainly(value: Any) -> bytes:
    return _written(value).encode(errors="replace")


def _written(value: Any) -> str:
    match value:
        case bool():
            return "t" if value else "f"
        case float():
            return _number(value)
        case datetime.datetime():
            text = value.isoformat(sep=" ")
            return text.removesuffix(":00") if value.tzinfo is not None else text
        case datetime.date() | datetime.time():
            return value.isoformat()
        case bytes():
            return f"\\x{value.hex()}"
        case list():
            return "{" + ",".join(map(_element, value)) + "}"
    return str(value)


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value).removesuffix(".0")
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    text = _written(value)
    if isinstance(value, str) and (not text or text.lower() == "null" or set(text) & set('{},"\\ \t\n')):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text


def _binary(oid: int) -> Callable[[Any], bytes]:
    if oid in _ELEMENTS:
        return lambda values: _array(_ELEMENTS[oid], values)
    if oid in (FLOAT4, FLOAT8):
        return lambda value: struct.pack(_WORDS[oid], value)
    if oid in _WORDS:
        return lambda value: struct.pack(_WORDS[oid], int(value))
    return _BINARY.get(oid, _plainly)


def _array(oid: int, values: Sequence[Any]) -> bytes:
    write = encoder(oid, 1)
    if not values:
        return struct.pack(">iiI", 0, 0, oid)
    parts = [struct.pack(">iiIii", 1, int(None in values), oid, len(values), 1)]
    written = map(write, values)
    parts += [b"\xff\xff\xff\xff" if one is None else struct.pack(">I", len(one)) + one for one in written]
    return b"".join(parts)


def _numeric(value: Any) -> bytes:
    """PostgreSQL's: digits to the base 10,000, the weight of the first, sign, digits after the point."""
    sign, digits, exponent = Decimal(value).as_tuple()
    if not isinstance(exponent, int):
        return struct.pack(">hhHh", 0, 0, 0xC000, 0)
    scale = max(0, -exponent)
    text = "".join(map(str, digits)) + "0" * max(0, exponent)
    whole, part = (text[:-scale].rjust(1, "0"), text[-scale:].rjust(scale, "0")) if scale else (text, "")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    part = part.ljust(-(-len(part) // 4) * 4, "0")
    groups = [int((whole + part)[at : at + 4]) for at in range(0, len(whole + part), 4)]
    weight = len(whole) // 4 - 1
    while groups and not groups[0]:
        groups, weight = groups[1:], weight - 1
    while groups and not groups[-1]:
        groups = groups[:-1]
    head = struct.pack(">hhHh", len(groups), weight if groups else 0, 0x4000 if sign else 0, scale)
    return head + struct.pack(f">{len(groups)}h", *groups)


def _moment(value: datetime.datetime) -> bytes:
    return struct.pack(">q", (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND)


def _clock(value: datetime.time) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return struct.pack(">q", seconds * 1_000_000 + value.microsecond)


_BINARY: Mapping[int, Callable[[Any], bytes]] = {
    BOOL: lambda value: b"\1" if value else b"\0",
    BYTEA: bytes,
    DATE: lambda value: struct.pack(">i", value.toordinal() - _EPOCH_DAY),
    TIMESTAMP: _moment,
    TIMESTAMPTZ: _moment,
    TIME: _clock,
    NUMERIC: _numeric,
}


def decoded(oid: int, binary: int, value: bytes | None) -> Any:
    """A parameter's value, as a session takes it.

    Raises:
        WireError: if the bytes are no value of that type, or the type is one that questions do not have.
    """
    if value is None:
        return None
    try:
        return _from_binary(oid, value) if binary else _from_text(oid, value.decode())
    except (ValueError, ArithmeticError, struct.error, LookupError):
        name = KINDS[oid].name if oid in KINDS else f"with the number {oid}"
        raise WireError(
            "22P03" if binary else "22P02", f"The value of a parameter cannot be read as its type, {name}."
        ) from None


def _from_text(oid: int, text: str) -> Any:
    if oid in (INT2, INT4, INT8, OID):
        if len(text) > _LONGEST or not text.strip().lstrip("+-").isascii():
            raise ValueError
        return int(text)
    if oid in (FLOAT4, FLOAT8):
        return float(text)
    if oid == NUMERIC:
        return _plain(Decimal(text))
    if oid == BOOL:
        return {"t": True, "f": False, "1": True, "0": False, "y": True, "n": False, "o": text == "on"}[
            text.strip().lower()[:1]
        ]
    if oid in _TIMES:
        if len(text) > _LONGEST_TIME:
            raise ValueError
        return _TIMES[oid](_ZONE.sub("" if oid == DATE else r"\1", text.strip()))
    if oid in _ELEMENTS:
        inner = text.strip()[1:-1]
        return [_from_text(_ELEMENTS[oid], part.strip('"')) for part in inner.split(",")] if inner else []
    return text


def _from_binary(oid: int, value: bytes) -> Any:
    if oid in _WORDS:
        return struct.unpack(_WORDS[oid], value)[0]
    if oid in _ELEMENTS:
        return _from_array(_ELEMENTS[oid], value)
    match oid:
        case _ if oid == BOOL:
            return bool(value[0])
        case _ if oid == DATE:
            return datetime.date.fromordinal(struct.unpack(">i", value)[0] + _EPOCH_DAY)
        case _ if oid in (TIMESTAMP, TIMESTAMPTZ):
            moment = _EPOCH + datetime.timedelta(microseconds=struct.unpack(">q", value)[0])
            return moment if oid == TIMESTAMP else moment.replace(tzinfo=datetime.UTC)
        case _ if oid == TIME:
            return (_EPOCH + datetime.timedelta(microseconds=struct.unpack(">q", value)[0])).time()
        case _ if oid == NUMERIC:
            return _from_numeric(value)
        case _ if oid in _TEXTS or oid == 0:
            return value.decode()
    raise WireError(
        "0A000",
        f"A parameter has a type that questions do not have, with the number {oid}.",
        hint="Give a number, a text, a truth value, a date, a time, or NULL.",
    )


def _from_numeric(value: bytes) -> Any:
    count, weight, sign, _ = struct.unpack(">hhHh", value[:8])
    if sign not in (0, 0x4000) or abs(weight) > 100:
        raise ValueError
    digits = struct.unpack(f">{count}h", value[8:])
    exact = sum((Decimal(digit).scaleb(4 * (weight - at)) for at, digit in enumerate(digits)), Decimal(0))
    return _plain(-exact if sign else exact)


def _from_array(oid: int, value: bytes) -> list[Any]:
    """A list of values of one type, which is never itself that of a list."""
    dimensions, _, said = struct.unpack(">iiI", value[:12])
    if said != oid or dimensions not in (0, 1):
        raise ValueError
    if dimensions == 0:
        return []
    count, at, found = struct.unpack(">i", value[12:16])[0], 20, list[Any]()
    for _ in range(count):
        (length,) = struct.unpack(">i", value[at : at + 4])
        at += 4
        found.append(None if length < 0 else _from_binary(oid, value[at : at + length]))
        at += max(0, length)
    return found


def _plain(number: Decimal) -> int | float:
    """As an int where it is whole and fits, else as the nearest float."""
    if not number.is_finite():
        return float(number)
    return int(number) if abs(number) < _MOST and number == int(number) else float(number)


_SAMPLES: Mapping[int, Any] = {
    **dict.fromkeys((INT2, INT4, INT8, OID, NUMERIC), 1),
    **dict.fromkeys((FLOAT4, FLOAT8), 1.0),
    BOOL: True,
    DATE: datetime.date(2000, 1, 1),
    TIMESTAMP: _EPOCH,
    TIMESTAMPTZ: _EPOCH,
    TIME: datetime.time(0),
}


def sample(oid: int) -> Any:
    """Some value of a type, where only the type of a parameter is known yet."""
    return [] if oid in _ELEMENTS else _SAMPLES.get(oid, _WORD)


_WORD = "month"  # a text that is a part of dates, too: DATE_TRUNC($1, day)
