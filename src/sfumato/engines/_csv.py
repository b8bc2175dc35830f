"""The public part of a CSV file: its header line. No data row decides a name, a type or a dialect."""

from __future__ import annotations

import codecs
import csv as csv_module
import gzip
import io
import os
import re
import zlib
from collections import Counter

from sfumato._dataclasses import dataclass
from sfumato.engines.base import Source
from sfumato.engines.csv_format import DELIMITERS, Csv
from sfumato.engines.sources import Files, locate
from sfumato.errors import SourceUnusable

__all__ = ["Header", "delimiter_of", "first_lines", "header_of", "read_header"]

_START = 1 << 20


@dataclass(frozen=True, slots=True)
class Header:
    """The names and the delimiter of a CSV file."""

    names: tuple[str, ...]
    delimiter: str


def header_of(files: Files, *, names_files: bool = False) -> Header:
    """What CSV files are by their headers and by what is declared about them.

    Where it is declared that there is no header, nothing is looked at: a first row is a row.

    Args:
        files: The files.
        names_files: Whether errors say which of several files it is. For the steward alone: one of a folder
            may be called as a person is.

    Raises:
        SourceUnusable: if headers cannot be read, differ, or do not have as many columns as names are given.
    """
    csv = files.csv
    if csv is not None and csv.names is not None and not csv.header:
        return Header(csv.names, csv.delimiter or _usual(files.paths[0]))
    headers = [
        read_header(path, _shown(path, files) if names_files else files.shown, csv) for path in files.paths
    ]
    header = headers[0]
    other = next((path for path, its in zip(files.paths, headers, strict=True) if its != header), None)
    if other is not None:
        which = f': "{os.path.basename(other)}" is not like the first one' if names_files else ""
        raise SourceUnusable(
            f"{files.shown} has files with different headers{which}; give them the same columns."
        )
    if csv is None or csv.names is None:
        return header
    if len(csv.names) != len(header.names):
        raise SourceUnusable(
            f"{files.shown} has {len(header.names)} columns by its header, and {len(csv.names)} names are "
            "given; name each column once."
        )
    return Header(csv.names, header.delimiter)


def first_lines(source: Source) -> tuple[Header, ...] | None:
    """The first lines of CSV files, whether they hold names or a row; None for any other source.

    Privacy:
        For the steward, who alone knows what a first line is: it may be somebody's row. Whoever shows or
        writes it makes sure that it is not (`schema.headers`).

    Raises:
        SourceUnusable: if the source is not there, or a first line is not UTF-8; its content is not told.
    """
    located = locate(source)
    if not isinstance(located, Files) or located.format != "csv":
        return None
    for path in located.paths:
        _check_encoding(path, _shown(path, located))
    return tuple(read_header(path, _shown(path, located), located.csv) for path in located.paths)


def _shown(path: str, files: Files) -> str:
    """A file as an error of the steward names it: its own name, where there are several."""
    if len(files.paths) == 1:
        return files.shown
    return f'The file "{os.path.basename(path)}" of {files.shown[:1].lower()}{files.shown[1:]}'


def _check_encoding(path: str, shown: str) -> None:
    """Refuse a first line that is not UTF-8, with the way to make it so."""
    start = _bytes(path, shown) or b""
    line = start.splitlines()[0] if start else b""
    wide = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
    if wide is None and b"\0" in line:
        wide = "UTF-16LE" if line[1:2] == b"\0" else "UTF-16BE"
    if wide is None:
        try:
            line.decode("utf-8-sig")
            return
        except UnicodeDecodeError:
            pass
    what = "is not in UTF-8, and often that is Windows-1252 or Latin-1" if wide is None else f"is in {wide}"
    raise SourceUnusable(
        f"{shown} {what}; save it as UTF-8, for example with: "
        f"iconv -f {wide or 'WINDOWS-1252'} -t UTF-8 OLD.csv > NEW.csv"
    )


_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def delimiter_of(path: str, files: Files) -> str:
    """The delimiter of a CSV file: the declared one, or that of its header.

    Raises:
        SourceUnusable: if there is no header to look at where one is needed.
    """
    if files.csv is not None and not files.csv.header:
        return files.csv.delimiter or _usual(path)
    return read_header(path, files.shown, files.csv).delimiter


def _usual(path: str) -> str:
    return "\t" if path.lower().endswith((".tsv", ".tsv.gz")) else ","


def read_header(path: str, shown: str, csv: Csv | None = None) -> Header:
    """The header of a CSV file: its first record, split at the delimiter that is most frequent in it.

    Raises:
        SourceUnusable: if there is none, it cannot be read, or it is a note for Excel.
    """
    text = _start(path, shown)
    if text is None:
        raise SourceUnusable(f"{shown} cannot be read as a CSV file in UTF-8; convert it or check its name.")
    note = _FOR_EXCEL.match(text)
    if note:
        raise SourceUnusable(
            f"{shown} begins with the line {note[1]}, a note for Excel: delete it, so that the names of the "
            "columns come first."
        )
    usual = _usual(path)
    delimiter = (csv.delimiter if csv else None) or (usual if usual == "\t" else _delimiter(text))
    names = _first_record(text, delimiter)
    if not names or not any(names):
        raise SourceUnusable(f"{shown} has no header; a CSV file starts with a line of column names.")
    return Header(tuple(names), delimiter)


_FOR_EXCEL = re.compile(r'"?(sep=[,;|\t])"?[ ,;|\t]*(?:[\r\n]|\Z)', re.IGNORECASE)


def _start(path: str, shown: str) -> str | None:
    start = _bytes(path, shown)  # rows need not be valid; only names are looked at
    return None if start is None else start.decode("utf-8-sig", errors="replace")


def _bytes(path: str, shown: str) -> bytes | None:
    try:
        with gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb") as file:
            return file.read(_START)
    except PermissionError:
        raise SourceUnusable(
            f"{shown} cannot be read: permission denied. Give the account that runs this the right to read "
            "it."
        ) from None
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
        elif not quoted and character in DELIMITERS:
            seen[character] += 1
    return max(DELIMITERS, key=lambda delimiter: seen[delimiter])


def _first_record(text: str, delimiter: str) -> list[str] | None:
    try:
        return next(csv_module.reader(io.StringIO(text, newline=""), delimiter=delimiter), None)
    except csv_module.Error:
        return None
