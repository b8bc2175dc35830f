"""Whether a CSV file ends where a row does: the engine leaves out, unsaid, what follows an open quote."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from contextlib import suppress

from sfumato.engines._csv import read_header
from sfumato.engines.sources import Files
from sfumato.errors import SourceUnusable

__all__ = ["check_closed"]

_CLOSED = re.compile(rb'(?:[^"]++|"")*+"')
_MARK = b"\xef\xbb\xbf"


def check_closed(files: Files) -> None:
    """Refuse a CSV file that ends within quotes, as one that was cut off does.

    Raises:
        SourceUnusable: if one of the files does.
    """
    for path in files.paths:
        delimiter = read_header(path, files.shown).delimiter.encode()
        is_open = False
        with (
            suppress(OSError, EOFError),  # what cannot be opened is the engine's to say
            gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb") as file,
        ):
            is_open = _ends_inside(file, delimiter)
        if is_open:
            raise SourceUnusable(
                f"{files.shown} ends inside a quoted field, so that rows are missing; check that it is whole."
            )


def _ends_inside(lines: Iterable[bytes], delimiter: bytes) -> bool:
    """Whether the last line leaves a quote open."""
    mark = re.escape(delimiter)
    # A field in quotes with whatever follows it, or one that does not begin with a quote; many of those.
    fields = re.compile(
        rb'(?:(?:"(?:[^"]++|"")*+"[^' + mark + rb'\r\n]*+|[^"' + mark + rb"\r\n][^" + mark + rb"\r\n]*+)?+"
        rb"(?:[" + mark + rb"\r\n]|\Z))*+"
    )
    inside, is_first = False, True
    for each in lines:
        line = each.removeprefix(_MARK) if is_first else each
        is_first = False
        if b'"' not in line:
            continue
        start = 0
        if inside:
            closed = _CLOSED.match(line)
            if closed is None:
                continue
            start = closed.end()
            # The rest of that field goes with the next: it does not begin with a quote.
            while start < len(line) and line[start : start + 1] not in (delimiter, b"\r", b"\n"):
                start += 1
            start += 1
        found = fields.match(line, start)
        inside = start < len(line) and (found is None or found.end() < len(line))
    return inside
