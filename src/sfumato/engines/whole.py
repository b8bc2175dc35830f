"""Whether a source is whole: what its steward may be told when it is attached, and no analyst ever.

A quote in a CSV file that is opened and not closed, or closed too early (as after a backslash), makes a
reader take the rows that follow for text: what one person's field holds would decide whether the rows of
others count.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable
from pathlib import Path

from sfumato.engines._csv import read_header
from sfumato.engines.base import Source
from sfumato.engines.sources import Files, locate
from sfumato.errors import SourceUnusable

__all__ = ["check_whole"]

_BLOCK = 1 << 20
_LONGEST = 1 << 20  # bytes of a field in quotes; the engine takes lines of twice as many
_BOM = b"\xef\xbb\xbf"


def check_whole(source: Source) -> None:
    """Look through a CSV file for a quote that would hide rows; anything else passes.

    Privacy:
        For the steward: that the check fails is a fact about the rows. A session in an analyst's name does
        not make it.

    Raises:
        SourceUnusable: if there is such a quote; of the file's content nothing is said.
    """
    if not isinstance(source, str | Path | list | tuple):
        return
    try:
        located = locate(source)
    except SourceUnusable:
        return  # nothing that is known here: its engine knows
    if not isinstance(located, Files) or located.format != "csv":
        return
    for path in located.paths:
        header = read_header(path, located.shown)
        if not _is_whole(path, header.delimiter.encode()):
            raise SourceUnusable(
                f"{located.shown} has a quote that is not closed where a field ends, in "
                f"{os.path.basename(path)[:100]}, and would lose rows behind it; write quotes within text "
                "twice, or use Parquet."
            )


def _is_whole(path: str, delimiter: bytes) -> bool:
    try:
        with gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb") as file:
            return _closes(file.read, re.escape(delimiter))
    except (OSError, EOFError, zlib.error):
        return True  # it cannot be read: whoever reads it says so


def _closes(read: Callable[[int], bytes], delimiter: bytes) -> bool:
    """Whether every quote that begins a field ends one, too."""
    text = rb' *+"(?:[^"]++|"")*+" *+'  # the engine passes over spaces around quotes
    plain = rb'(?! *+")[^\r\n' + delimiter + rb"]++"
    fields = re.compile(rb"(?:(?:" + text + rb"|" + plain + rb")?+[\r\n" + delimiter + rb"])*+")
    last = re.compile(rb"(?:" + text + rb"|" + plain + rb")?+")
    ends, rest = (b"\n", b"\r", delimiter[-1:]), b""
    while block := read(_BLOCK):
        held = rest + block if rest else block.removeprefix(_BOM)
        if b'"' not in held:
            rest = _begun(held[max(map(held.rfind, ends)) + 1 :])
            continue
        found = fields.match(held)
        assert found is not None  # it may be empty
        rest = held[found.end() :]
        if rest.lstrip(b" ").startswith(b'"'):
            ended = last.match(rest)
            closed = ended is not None and 0 < ended.end() < len(rest)
            if closed or len(rest) > _LONGEST:
                return False
        elif len(rest) > _LONGEST:
            rest = _begun(rest)
    ended = last.match(rest)
    return ended is not None and ended.end() == len(rest)


def _begun(field: bytes) -> bytes:
    """Of a field without quotes only that it has begun; after spaces a quote may yet come."""
    return b"." if field.strip(b" ") else field[:1]
