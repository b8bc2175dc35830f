"""Whether a CSV file ends where a row does: the engine leaves out, unsaid, what follows an open quote."""

from __future__ import annotations

import gzip
import re
from contextlib import suppress
from typing import BinaryIO, cast

from sfumato.engines._csv import read_header
from sfumato.engines.sources import Files
from sfumato.errors import SourceUnusable

__all__ = ["check_closed"]

_CLOSED = re.compile(rb'(?:[^"]++|"")*+"')
_MARK = b"\xef\xbb\xbf"
_BLOCK = 1 << 20


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
            is_open = _ends_inside(cast(BinaryIO, file), delimiter)
        if is_open:
            raise SourceUnusable(
                f"{files.shown} ends inside a quoted field, so that rows are missing; check that it is whole."
            )


def _ends_inside(file: BinaryIO, delimiter: bytes) -> bool:
    """Whether the last line leaves a quote open."""
    mark = re.escape(delimiter)
    # Text without a quote, a quote within a field, which is a sign like any other, or a field in quotes.
    whole = re.compile(rb'(?:[^"]++|(?<![' + mark + rb'\r\n])(?<!\A)"|"(?:[^"]++|"")*+")*+')
    inside = False
    block = (file.read(_BLOCK) + file.readline()).removeprefix(_MARK)
    while block:
        closed = _CLOSED.match(block) if inside else None
        if closed or not inside:
            found = whole.match(block, closed.end() if closed else 0)
            inside = found is not None and found.end() < len(block)
        # Blocks end where a line does, so that no pair of quotes is torn apart.
        block = file.read(_BLOCK) + file.readline()
    return inside
