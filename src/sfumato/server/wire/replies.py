"""PostgreSQL's protocol, version 3: what the server sends, as bytes. No I/O."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

from sfumato._dataclasses import dataclass

__all__ = [
    "BIND_COMPLETE",
    "CLOSE_COMPLETE",
    "COPY_DONE",
    "EMPTY_QUERY",
    "NO_DATA",
    "PARSE_COMPLETE",
    "PORTAL_SUSPENDED",
    "Field",
    "authentication",
    "backend_key",
    "command_complete",
    "copy_data",
    "copy_out",
    "data_row",
    "negotiate",
    "parameter_description",
    "parameter_status",
    "ready",
    "report",
    "row_description",
]


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a result: its name, PostgreSQL's number of its type, and the bytes of a value (-1: any)."""

    name: str
    oid: int
    size: int = -1


def _message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack(">I", len(body) + 4) + body


def _text(text: str) -> bytes:
    return text.encode(errors="replace").replace(b"\0", b"?") + b"\0"


PARSE_COMPLETE, BIND_COMPLETE, CLOSE_COMPLETE = _message(b"1"), _message(b"2"), _message(b"3")
COPY_DONE = _message(b"c")
NO_DATA, PORTAL_SUSPENDED, EMPTY_QUERY = _message(b"n"), _message(b"s"), _message(b"I")


def authentication(code: int, data: bytes = b"") -> bytes:
    """A step of the login: 0 is done, 10 offers SASL's ways, 11 and 12 are its steps."""
    return _message(b"R", struct.pack(">i", code) + data)


def negotiate(unknown: Iterable[str]) -> bytes:
    """That version 3.0 is spoken, and which options of a later one are not."""
    names = list(unknown)
    return _message(b"v", struct.pack(">ii", 0, len(names)) + b"".join(map(_text, names)))


def parameter_status(name: str, value: str) -> bytes:
    """The value of a setting that clients want to know."""
    return _message(b"S", _text(name) + _text(value))


def backend_key(process: int, secret: bytes) -> bytes:
    """What a request to cancel must have."""
    return _message(b"K", struct.pack(">i", process) + secret)


def ready(status: str) -> bytes:
    """That the next message may come; I: outside a transaction, T: inside, E: inside a failed one."""
    return _message(b"Z", status.encode())


def row_description(fields: Sequence[Field], formats: Sequence[int]) -> bytes:
    """The columns of the rows that follow."""
    parts = [struct.pack(">H", len(fields))]
    for field, code in zip(fields, formats, strict=True):
        parts.append(_text(field.name) + struct.pack(">IHIhih", 0, 0, field.oid, field.size, -1, code))
    return _message(b"T", b"".join(parts))


def parameter_description(oids: Sequence[int]) -> bytes:
    """The types of a statement's parameters."""
    return _message(b"t", struct.pack(f">H{len(oids)}I", len(oids), *oids))


def data_row(values: Sequence[bytes | None]) -> bytes:
    """One row."""
    parts = [struct.pack(">H", len(values))]
    parts += [b"\xff\xff\xff\xff" if one is None else struct.pack(">I", len(one)) + one for one in values]
    return _message(b"D", b"".join(parts))


def copy_out(columns: int) -> bytes:
    """That the lines of a copy follow, as text."""
    return _message(b"H", struct.pack(f">bH{columns}h", 0, columns, *[0] * columns))


def copy_data(line: bytes) -> bytes:
    """One line of a copy."""
    return _message(b"d", line)


def command_complete(tag: str) -> bytes:
    """That a statement is done."""
    return _message(b"C", _text(tag))


def report(kind: bytes, fields: Mapping[str, str]) -> bytes:
    """An error (E) or a notice (N), by the letters that PostgreSQL has for their fields."""
    parts = [letter.encode() + _text(text) for letter, text in fields.items() if text]
    return _message(kind, b"".join(parts) + b"\0")
