"""`COPY (SELECT …) TO STDOUT`: an answer as lines of text, or as CSV."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.server.wire.replies import Field
from sfumato.server.wire.sqlstates import WireError
from sfumato.server.wire.types import encoder

__all__ = ["COPY", "Layout", "layout_of", "lines"]

COPY = re.compile(
    r"COPY\s*\((?P<query>.*)\)\s*TO\s+STDOUT\b(?:\s+WITH\b)?(?:\s*\((?P<options>[^()]*)\)|(?P<words>[^()]*))$",
    re.IGNORECASE | re.DOTALL,
)
"""What is copied, and how."""
_OPTION = re.compile(r"(?P<name>[a-z_]+)(?:\s+(?:AS\s+)?(?P<value>'(?:[^']|'')*'|[a-z0-9]+))?", re.IGNORECASE)
_ESCAPES = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_ALONE = re.compile(r"\b(CSV|HEADER)\b(?=\s+\w)(?!\s+(?:true|false|on|off)\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows are written: as CSV or with tabs, with a line of names or not, and what stands for NULL."""

    csv: bool = False
    header: bool = False
    delimiter: str = "\t"
    null: str = "\\N"


def layout_of(options: str) -> Layout:
    """What the options of a COPY say.

    Raises:
        WireError: if one is not supported.
    """
    alone = _ALONE.sub(r"\1,", options)  # as in the older "CSV HEADER"
    given = {
        match["name"].lower(): (match["value"] or "true").strip("'") for match in _OPTION.finditer(alone)
    }
    kind = given.pop("format", "csv" if "csv" in given else "text").lower()
    given.pop("csv", None)
    unknown = set(given) - {"header", "delimiter", "null"}
    if unknown or kind not in ("csv", "text") or len(given.get("delimiter", ",")) != 1:
        raise WireError(
            "0A000",
            "This way of copying is not supported.",
            hint="Use FORMAT csv or text, HEADER, DELIMITER, NULL.",
        )
    csv = kind == "csv"
    header = given.get("header", "false").lower() in ("true", "on", "1")
    return Layout(
        csv, header, given.get("delimiter", "," if csv else "\t"), given.get("null", "" if csv else "\\N")
    )


def lines(layout: Layout, fields: Sequence[Field], rows: Sequence[tuple[Any, ...]]) -> Iterator[bytes]:
    """The lines of a copy, one for each row."""
    if layout.header:
        yield _line(layout, [field.name for field in fields])
    write = [encoder(field.oid, 0) for field in fields]
    for row in rows:
        texts = [make(value) for make, value in zip(write, row, strict=True)]
        yield _line(layout, [None if text is None else text.decode() for text in texts])


def _line(layout: Layout, values: Sequence[str | None]) -> bytes:
    write = _quoted if layout.csv else _escaped
    parts = (layout.null if value is None else write(layout, value) for value in values)
    return (layout.delimiter.join(parts) + "\n").encode()


def _quoted(layout: Layout, value: str) -> str:
    if value == layout.null or set(value) & {layout.delimiter, '"', "\n", "\r"}:
        return '"' + value.replace('"', '""') + '"'
    return value


def _escaped(layout: Layout, value: str) -> str:
    escapes = {**_ESCAPES, layout.delimiter: f"\\{layout.delimiter}" if layout.delimiter != "\t" else "\\t"}
    return "".join(escapes.get(sign, sign) for sign in value)
