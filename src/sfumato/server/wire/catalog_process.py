"""The program of a process in which queries of the catalog run: its memory and its time have an end.

DuckDB's own limits bound no single value, and it looks at an interrupt between values only. So this is run
as a file, with nothing of the package; it reads how to begin, then texts of queries, and writes the parts of
their answers.
"""

from __future__ import annotations

import datetime
import os
import pickle
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["END", "FIELDS", "READY", "REFUSED", "ROWS", "addresses", "main"]

READY, FIELDS, ROWS, REFUSED, END = "ready", "fields", "rows", "refused", "end"
"""Kinds of parts: FIELDS with names and types, REFUSED with a code of PostgreSQL and what DuckDB said, END
with whether the process stays."""

_LEAST = 8  # bytes that any value is counted as
_DEEPEST = 6
_PLAIN = (type(None), bool, int, float, str, bytes, Decimal, datetime.date, datetime.time)
_STATUS = Path("/proc/self/statm")


class _Large(Exception):
    """An answer is beyond a limit, or took too long; it has the code of that."""


def addresses() -> int:
    """How many bytes of addresses this process has; 0 where that is not known."""
    try:
        return int(_STATUS.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0


def _kept_to(room: int) -> int:
    """Keep this process to what it has by now, which is given, and so many bytes more."""
    begun = addresses()
    if begun:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (begun + room, begun + room))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return begun


def _plain(value: Any, depth: int = 0) -> Any:
    """The value itself, or its text where it is of a class that clients have not.

    Raises:
        ValueError: if lists are inside each other deeper than in PostgreSQL.
    """
    if isinstance(value, list):
        if depth == _DEEPEST:
            raise ValueError
        return [_plain(one, depth + 1) for one in value]
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC)
    return value if isinstance(value, _PLAIN) else str(value)


def _size(value: Any, most: int) -> int:
    """How many bytes a value is counted as, with all that is in it.

    Raises:
        _Large: if a list has more than `most` values.
    """
    if isinstance(value, list | tuple):
        if len(value) > most:
            raise _Large("54000")
        return _LEAST + sum(_size(one, most) for one in value)
    return max(_LEAST, len(value)) if isinstance(value, str | bytes) else _LEAST


_ZONED = "TIMESTAMP WITH TIME ZONE"
_MOMENTS = frozenset({"DATE", "TIMESTAMP", _ZONED})


def _finite(text: str, kinds: list[str]) -> str:
    """The same query with moments that Python has: without zones, and none of them infinite.

    Python gives the last day that it has for an infinite one, and moments with a zone only if it has pytz.
    """
    columns = []
    for place, kind in enumerate(kinds):
        value = f"timezone('UTC', c{place})" if kind == _ZONED else f"c{place}"
        if kind in _MOMENTS:
            value = f"CASE WHEN isinf(c{place}) THEN error('A moment is infinite.') ELSE {value} END"
        columns.append(value)
    names = ", ".join(f"c{place}" for place in range(len(kinds)))
    return f"SELECT {', '.join(columns)} FROM ({text}) AS t({names})"


def _in_utc(value: Any, zoned: bool) -> Any:
    if zoned and isinstance(value, datetime.datetime):
        return value.replace(tzinfo=datetime.UTC)
    return value


def _state(kind: str, said: str) -> str:
    """PostgreSQL's code of an error of DuckDB."""
    match kind:
        case "CatalogException":
            return "42P01"
        case "BinderException":
            return "42883" if "No function matches" in said else "42703"
        case "OutOfRangeException":
            return "22003"
        case "ConversionException":
            return next((state for words, state in _CONVERSIONS if re.search(words, said)), "22P02")
        case "InvalidInputException" if "Division by zero" in said:
            return "22012"
    return "0A000"


_CONVERSIONS = (
    (r"out of range for the destination|string '\s*[-+]?\d+\s*' to U?INT", "22003"),
    (r"field value out of range", "22008"),
    (r"field format|Unimplemented type for cast .* -> (?:DATE|TIME)", "22007"),
)


class _Asked:
    """Answers queries, one after the other."""

    def __init__(self, begin: Mapping[str, Any]) -> None:
        import duckdb

        self._duckdb = duckdb
        self._seconds, self._most, self._bytes, self._columns, self._page = begin["limits"]
        self._connection = duckdb.connect(":memory:", config=begin["settings"])
        for script in begin["scripts"]:
            self._connection.execute(script)
        self._room = begin["room"]
        self._begun = _kept_to(self._room)

    def parts(self, text: str) -> Iterator[tuple[Any, ...]]:
        """The parts of one answer; whatever is raised is one of them."""
        short = False
        try:
            yield from self._read(text)
        except (MemoryError, self._duckdb.OutOfMemoryException):
            short = True
            yield REFUSED, "53200", ""
        except self._duckdb.InterruptException:
            yield REFUSED, "57014", ""
        except self._duckdb.Error as error:
            yield REFUSED, _state(type(error).__name__, str(error)), str(error).split("\n")[0][:200]
        except _Large as error:
            yield REFUSED, error.args[0], ""
        except Exception:  # a value that Python has not, such as an interval of a billion days
            yield REFUSED, "0A000", "A value is beyond what can be read here."
        yield END, not short and addresses() - self._begun <= self._room // 2

    def _read(self, text: str) -> Iterator[tuple[Any, ...]]:
        cursor, ends = self._connection.cursor(), time.monotonic() + self._seconds
        alarm = threading.Timer(self._seconds, cursor.interrupt)
        alarm.start()
        try:
            cursor.execute(text)
            described = [(column[0], str(column[1])) for column in cursor.description or []]
            if len(described) > self._columns:
                raise _Large("54011")
            kinds = [kind for _, kind in described]
            if not _MOMENTS.isdisjoint(kinds):
                cursor.execute(_finite(text, kinds))
            yield FIELDS, described
            zoned = [kind == _ZONED for kind in kinds]
            count = size = 0
            while page := cursor.fetchmany(self._page):
                rows = [tuple(map(_plain, row)) for row in page]
                if any(zoned):
                    rows = [tuple(map(_in_utc, row, zoned)) for row in rows]
                count += len(rows)
                size += sum(_size(row, self._most) for row in rows)
                if count > self._most or size > self._bytes:
                    raise _Large("54000")
                if time.monotonic() > ends:
                    raise _Large("57014")
                yield ROWS, rows
        finally:
            alarm.cancel()
            cursor.close()


def main(source: BinaryIO, target: BinaryIO) -> None:
    """Answer until the source ends, or the process has too little room left."""

    def tell(*part: Any) -> None:
        pickle.dump(part, target, pickle.HIGHEST_PROTOCOL)
        target.flush()

    begin = pickle.load(source)
    sys.path[:] = begin["path"]
    asked, stays = _Asked(begin), True
    tell(READY)
    while stays:
        text = pickle.load(source)
        _alarm(begin["last"])
        for part in asked.parts(text):
            tell(*part)
            stays = part[-1]
        _alarm(0)


def _alarm(seconds: int) -> None:
    """End this process after a while, in case whoever asked is gone and does not."""
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else gets into the answers
    try:
        main(sys.stdin.buffer, answers)
    finally:
        os._exit(0)  # without a clean end, which may want memory
