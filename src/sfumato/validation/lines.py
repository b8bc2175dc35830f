"""A CSV file read as lines: what would be left out before any type is looked at."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Iterator

from sfumato.engines._csv import header_of
from sfumato.engines.sources import Files
from sfumato.errors import SourceUnusable
from sfumato.validation.report import Lines

__all__ = ["look_through"]

_EVERY = 20_000  # lines between two words of progress
_LONGEST = 1 << 24  # characters of a field


def look_through(files: Files, progress: Callable[[float], None]) -> Lines:
    """Count the records of CSV files, and those that a read leaves out.

    Raises:
        SourceUnusable: if a file cannot be read.
    """
    header = header_of(files, names_files=True)
    has_header = files.csv is None or files.csv.header
    width, total = len(header.names), sum(os.path.getsize(path) for path in files.paths) or 1
    records = uneven = broken = before = 0
    first: int | None = None
    where = ""
    wide = False
    csv.field_size_limit(_LONGEST)
    for path in files.paths:
        state, here = _State(), None
        try:
            with open(path, "rb") as raw:
                lines: Iterable[bytes] = gzip.GzipFile(fileobj=raw) if path.lower().endswith(".gz") else raw
                reader = csv.reader(_decoded(lines, state), delimiter=header.delimiter)
                for number, record in enumerate(_records(reader)):
                    if number % _EVERY == 0:
                        progress(min((before + raw.tell()) / total, 1.0))
                    if (has_header and number == 0) or record == []:
                        continue
                    records += 1
                    if record is None or len(record) != width:
                        uneven += 1
                        here = here or reader.line_num
        except (OSError, EOFError, zlib.error):
            which = "" if len(files.paths) == 1 else f': "{os.path.basename(path)}"'
            raise SourceUnusable(f"{files.shown} cannot be read{which}; check that it is whole.") from None
        before += os.path.getsize(path)
        broken, wide = broken + state.broken, wide or state.wide
        here = min(filter(None, (here, state.first)), default=None)
        if first is None and here is not None:
            first, where = here, "" if len(files.paths) == 1 else os.path.basename(path)
    encoding = "" if not broken else "UTF-16" if wide else "Windows-1252 or Latin-1"
    return Lines(records, uneven, broken, encoding, first, where)


class _State:
    """What was seen while a file was decoded."""

    def __init__(self) -> None:
        self.broken = 0
        self.wide = False
        self.first: int | None = None


def _decoded(stream: Iterable[bytes], state: _State) -> Iterator[str]:
    for number, line in enumerate(stream, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").replace("\0", " ")
        except UnicodeDecodeError:
            state.broken += 1
            state.wide = state.wide or line.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in line
            state.first = state.first or number
            yield line.decode("latin-1").replace("\0", " ")


def _records(reader: Iterator[list[str]]) -> Iterator[list[str] | None]:
    """The records; None for one that the reader gives up on."""
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield None
