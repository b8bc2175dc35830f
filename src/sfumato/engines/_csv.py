"""The public part of a CSV file: its header line. No data row decides a name, a type or a dialect."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections import Counter
from dataclasses import dataclass

from sfumato.errors import SourceUnusable

__all__ = ["Header", "read_header"]

_START = 1 << 20
_DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True, slots=True)
class Header:
    """The names and the delimiter of a CSV file."""

    names: tuple[str, ...]
    delimiter: str


def read_header(path: str, shown: str) -> Header:
    """The header of a CSV file: its first record, split at the delimiter that is most frequent in it.

    Raises:
        SourceUnusable: if there is none, or it cannot be read.
    """
    text = _start(path)
    if text is None:
        raise SourceUnusable(f"{shown} cannot be read as a CSV file in UTF-8; convert it or check its name.")
    delimiter = "\t" if path.lower().endswith((".tsv", ".tsv.gz")) else _delimiter(text)
    names = _first_record(text, delimiter)
    if not names or not any(names):
        raise SourceUnusable(f"{shown} has no header; a CSV file starts with a line of column names.")
    return Header(tuple(names), delimiter)


def _start(path: str) -> str | None:
    try:
        with gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb") as file:
            start = file.read(_START)
        return start.decode("utf-8-sig", errors="replace")  # rows need not be valid; only names are looked at
    except (OSError, EOFError, zlib.error):
        return None


def _delimiter(text: str) -> str:
    seen: Counter[str] = Counter()
    quoted = False
    for character in text:
        if character == '"':
            quoted = not quoted
        elif not quoted and character in "\r\n":
            break
        elif not quoted and character in _DELIMITERS:
            seen[character] += 1
    return max(_DELIMITERS, key=lambda delimiter: seen[delimiter])


def _first_record(text: str, delimiter: str) -> list[str] | None:
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), None)
    except csv.Error:
        return None
