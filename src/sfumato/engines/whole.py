"""Whether a source is whole: what its steward may be told when it is attached, and no analyst ever.

A quote in a CSV file that is opened and not closed, or closed too early (as after a backslash), makes a
reader take the rows that follow for text: what one person's field holds would decide whether the rows of
others count. Rows with text that is not UTF-8 are left out by the engine, and nothing says so.
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from sfumato.engines._csv import delimiter_of
from sfumato.engines.base import Source
from sfumato.engines.csv_format import Csv
from sfumato.engines.sources import Files, locate
from sfumato.errors import SourceUnusable

__all__ = ["check_files", "check_whole"]

_BLOCK = 1 << 20
_LONGEST = 1 << 20  # bytes of a field in quotes; the engine takes lines of twice as many
_BOM = b"\xef\xbb\xbf"


def check_whole(source: Source) -> None:
    """Look through a CSV file for what would lose rows, a quote or text not in UTF-8; anything else passes.

    Privacy:
        For the steward: that the check fails is a fact about the rows. A session in an analyst's name does
        not make it.

    Raises:
        SourceUnusable: if there is any; of the file's content nothing is said.
    """
    if not isinstance(source, str | Path | list | tuple | Csv):
        return
    try:
        located = locate(source)
    except SourceUnusable:
        return  # nothing that is known here: its engine knows
    if isinstance(located, Files) and located.format == "csv":
        check_files(located)


def check_files(files: Files) -> None:
    """`check_whole` for CSV files that are listed.

    Raises:
        SourceUnusable: as there.
    """
    for path in files.paths:
        name = f" in {os.path.basename(path)[:100]}" if len(files.paths) > 1 else ""
        fault = _fault(path, delimiter_of(path, files).encode())
        if fault == "quote":
            raise SourceUnusable(
                f"{files.shown} has a quote{name} that is not closed where a field ends, and would lose the "
                "rows behind it; write quotes within text twice, or use Parquet."
            )
        if fault == "long":
            raise SourceUnusable(
                f"{files.shown} has a field in quotes{name} of more than 1 MB, or one that is not closed, "
                "and could lose rows; shorten it, or use Parquet."
            )
        if fault == "text":
            raise SourceUnusable(
                f"{files.shown} has text{name} that is not UTF-8, and would lose the rows that hold it; save "
                "it as UTF-8, or use Parquet."
            )


def _fault(path: str, delimiter: bytes) -> Literal["quote", "long", "text"] | None:
    decoder = codecs.getincrementaldecoder("utf-8")()

    def read(size: int) -> bytes:
        block = file.read(size)
        decoder.decode(block, final=not block)
        return block

    try:
        with gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb") as file:
            return _unclosed(read, re.escape(delimiter))
    except UnicodeDecodeError:
        return "text"
    except (OSError, EOFError, zlib.error):
        return None  # it cannot be read: whoever reads it says so


def _unclosed(read: Callable[[int], bytes], delimiter: bytes) -> Literal["quote", "long"] | None:
    """Whether a quote begins a field and does not end one, too, or ends it too far away to look for."""
    # The engine passes over spaces around quotes. Nothing here can match in two ways, so that little is tried
    # twice; possessive forms would say so, but Python before 3.11.5 mistakes those that hold others.
    text = rb' *"[^"]*(?:""[^"]*)*"(?!") *'
    plain = rb'(?! *")[^\r\n' + delimiter + rb"]+"
    fields = re.compile(rb"(?:(?:" + text + rb"|" + plain + rb")?[\r\n" + delimiter + rb"])*")
    last = re.compile(rb"(?:" + text + rb"|" + plain + rb")?")
    ends, rest = (b"\n", b"\r", delimiter[-1:]), b""
    while block := read(_BLOCK):
        held = rest + block if rest else block.removeprefix(_BOM)
        if b'"' not in held:
            rest = _begun(held[max(map(held.rfind, ends)) + 1 :])
            continue
        match = fields.match(held)
        assert match is not None  # it may be empty
        rest = held[match.end() :]
        if rest.lstrip(b" ").startswith(b'"'):
            ended = last.match(rest)
            closed = ended is not None and 0 < ended.end() < len(rest)
            if closed or len(rest) > _LONGEST:
                return "quote" if closed else "long"
        elif len(rest) > _LONGEST:
            rest = _begun(rest)
    ended = last.match(rest)
    return None if ended is not None and ended.end() == len(rest) else "quote"


def _begun(field: bytes) -> bytes:
    """Of a field without quotes only that it has begun; after spaces a quote may yet come."""
    return b"." if field.strip(b" ") else field[:1]
