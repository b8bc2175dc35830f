"""`Apart`: the processes in which queries of the catalog run, each kept to a memory and a time."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.errors import EngineFailed
from sfumato.server.wire import catalog_process

__all__ = ["Apart", "Limits", "Refused"]

_MOST, _IDLE = 4, 2  # processes at a time, and those of them that are kept for the next query
_ROOM = 384 << 20  # bytes that a process may take beyond what it begins with
_GRACE, _START = 1.0, 60.0  # seconds that DuckDB has to notice an interrupt, and a process to begin
_KEPT = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_CLASSES = {"datetime": ("date", "datetime", "time", "timedelta", "timezone"), "decimal": ("Decimal",)}


class Refused(Exception):
    """A query has no answer.

    Attributes:
        state: PostgreSQL's code of why; 53200 if it took too much memory, 57014 if it took too long.
        detail: What DuckDB said.
    """

    def __init__(self, state: str, detail: str = "") -> None:
        super().__init__(state)
        self.state, self.detail = state, detail


@dataclass(frozen=True, slots=True)
class Limits:
    """What one answer may take.

    Attributes:
        seconds: Until it is there.
        rows: Of it; a list in it has as many values at most.
        bytes: Of all its values, of which each counts as eight at least.
        columns: Of it.
        page: Rows that are looked at together.
    """

    seconds: float
    rows: int
    bytes: int
    columns: int
    page: int


class Apart:
    """Processes that all hold one database, of which each answers one query at a time.

    A query that takes too much ends its process, and nothing else. It may be used from several threads. The
    limit of memory holds on Linux.

    Privacy:
        Such a process gets the scripts and the queries; of this one's memory, files and environment it has
        nothing. What it says is read as plain values only.

    Args:
        scripts: What makes the database, in order.
        settings: Of DuckDB.
        limits: Of each answer.
    """

    def __init__(self, scripts: Sequence[str], settings: Mapping[str, Any], limits: Limits) -> None:
        self._seconds = limits.seconds + _GRACE
        self._begin = {
            "path": [entry for entry in sys.path if os.path.isabs(entry)],
            "scripts": list(scripts),
            "settings": dict(settings),
            "limits": (limits.seconds, limits.rows, limits.bytes, limits.columns, limits.page),
            "room": _ROOM,
            "last": int(2 * self._seconds),
        }
        self._turns, self._lock = threading.BoundedSemaphore(_MOST), threading.Lock()
        self._all, self._idle = set[_Process](), list[_Process]()
        self._closed = False
        self._end = weakref.finalize(self, _end, self._all)

    def ask(self, text: str) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
        """The columns, by name and type, and the rows that a query gives.

        Raises:
            Refused: if it gives none.
            EngineFailed: if no process begins.
        """
        with self._turns, self._process() as process:
            return process.ask(text, self._seconds)

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._closed = True
        self._end()

    @contextlib.contextmanager
    def _process(self) -> Iterator[_Process]:
        """One for a query; it is kept for the next one, or ended."""
        with self._lock:
            process = self._idle.pop() if self._idle else _Process()
            self._all.add(process)
        try:
            if not process.stays:
                process.begin(self._begin)
            yield process
        finally:
            with self._lock:
                keeps = process.stays and not self._closed and len(self._idle) < _IDLE
                if keeps:
                    self._idle.append(process)
                else:
                    self._all.discard(process)
            if not keeps:
                process.end()


class _Process:
    """One process.

    Attributes:
        stays: Whether it takes another query.
    """

    def __init__(self) -> None:
        self.stays = False
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(catalog_process.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
            start_new_session=True,  # what a keyboard sends to the server is not for it
        )

    def begin(self, begin: Mapping[str, Any]) -> None:
        """Let it make its database.

        Raises:
            EngineFailed: if it does not.
        """
        try:
            for _ in self._told(dict(begin), _START, catalog_process.READY):
                self.stays = True
        except Refused:
            raise EngineFailed("The process of the catalog does not begin.") from None

    def ask(self, text: str, seconds: float) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
        """The columns and rows that a query gives.

        Raises:
            Refused: if it gives none; also if the process ended, or had to be ended.
        """
        fields, rows, refused = list[tuple[str, str]](), list[tuple[Any, ...]](), None
        self.stays = False  # until it says so
        for kind, *said in self._told(text, seconds, catalog_process.END):
            match kind:
                case catalog_process.FIELDS:
                    fields = said[0]
                case catalog_process.ROWS:
                    rows += said[0]
                case catalog_process.REFUSED:
                    refused = Refused(*said)
                case catalog_process.END:
                    self.stays = said[0]
        if refused is not None:
            raise refused
        return fields, rows

    def _told(self, asked: object, seconds: float, last: str) -> Iterator[tuple[Any, ...]]:
        """What it says, up to a last kind of part."""
        late, kind = threading.Event(), ""

        def end() -> None:
            late.set()
            self._child.kill()

        alarm = threading.Timer(seconds, end)
        alarm.start()
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        try:
            pickle.dump(asked, self._child.stdin, pickle.HIGHEST_PROTOCOL)
            self._child.stdin.flush()
            while kind != last:
                part = _Plain(self._child.stdout).load()
                kind = part[0]
                yield part
        except (EOFError, OSError, pickle.UnpicklingError):
            raise Refused("57014" if late.is_set() else "53200") from None
        finally:
            alarm.cancel()

    def end(self) -> None:
        """End it, whatever it does."""
        self._child.kill()
        for pipe in (self._child.stdin, self._child.stdout):
            with contextlib.suppress(OSError):  # if something was left to be written
                if pipe is not None:
                    pipe.close()
        self._child.wait()


class _Plain(pickle.Unpickler):
    """Reads plain values, whatever the bytes say."""

    def find_class(self, module: str, name: str) -> Any:
        """A class that values may have."""
        if name not in _CLASSES.get(module, ()):
            raise pickle.UnpicklingError(name)
        return super().find_class(module, name)


def _end(processes: set[_Process]) -> None:
    for process in list(processes):
        process.end()
    processes.clear()
