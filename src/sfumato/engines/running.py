"""Running a read so that time-outs, Ctrl-C and failures end in an exception of ours with an empty chain."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

from sfumato.errors import Cancelled, EngineFailed, TimedOut

__all__ = ["run", "stoppable"]

_T = TypeVar("_T")
_SLICE = 0.1
_AGAIN = 0.05  # an interrupt that comes while the engine still plans is lost, so it is repeated
_STOP: ContextVar[threading.Event | None] = ContextVar("stop", default=None)


@contextmanager
def stoppable(stop: threading.Event) -> Iterator[None]:
    """Reads in this thread end as on Ctrl-C once `stop` is set: what a server has instead of that.

    An event and no exception from outside: that could strike while the ledger writes.
    """
    token = _STOP.set(stop)
    try:
        yield
    finally:
        _STOP.reset(token)


class _Task(Generic[_T]):
    """A read in a thread of its own; of a failure only the fact is kept, never the exception.

    Ctrl-C may strike between any two steps of the waiting thread, also while it starts this one: so a read
    that has not begun can be abandoned, and waiting is for one bare lock, never left half taken.
    """

    def __init__(self, work: Callable[[], _T]) -> None:
        self.result: _T | None = None
        self._work = work
        self._state = threading.Lock()
        self._begun = self._finished = self._abandoned = False
        self._latch = threading.Lock()
        self._latch.acquire()
        self.thread = threading.Thread(target=self._run, name="sfumato-read", daemon=True)

    def _run(self) -> None:
        with self._state:
            self._begun = not self._abandoned
        if not self._begun:
            return
        try:
            self.result = self._work()
        except BaseException:  # its text and frames may hold data: they end in this thread
            self.result = None
        finally:
            self._finished = True
            self._latch.release()

    def wait(self, limit: float | None, watch: Callable[[], object] | None = None) -> bool:
        """Whether it has ended within the limit.

        In slices: a signal that comes just before the thread goes to sleep does not wake it. After each of
        them `watch` is called.

        Raises:
            KeyboardInterrupt: on Ctrl-C, or once the event of `stoppable` is set.
        """
        deadline = math.inf if limit is None else time.monotonic() + limit
        stop = _STOP.get()
        while not self._latch.acquire(timeout=min(_SLICE, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return False
            if stop is not None and stop.is_set():
                raise KeyboardInterrupt
            if watch is not None:
                watch()
        return True

    def is_over(self) -> bool:
        """Whether it has ended; one that has not begun never will after this."""
        with self._state:
            self._abandoned = not self._begun
        return self._abandoned or self._finished


def run(
    work: Callable[[], _T],
    interrupt: Callable[[], object],
    *,
    timeout: float | None,
    watch: Callable[[], object] | None = None,
) -> _T:
    """What `work` returns, run in a thread of its own while this one waits and listens for Ctrl-C.

    Args:
        work: The read; it must end soon after `interrupt` is called.
        interrupt: Stops the read; called again until it has ended.
        timeout: The limit in seconds, if any.
        watch: Called again and again while this one waits. Only where a steward reads for himself: how far a
            read has come tells of the rows.

    Raises:
        TimedOut: after the limit.
        Cancelled: on Ctrl-C, or once the event of `stoppable` is set.
        EngineFailed: if the read failed, whatever the reason.

    Privacy:
        The exception is raised in the waiting thread, where the cause never was, so neither `__cause__` nor
        `__context__` nor a traceback can lead to it.
    """
    task = _Task(work)
    cancelled = late = False
    try:
        task.thread.start()
        late = not task.wait(timeout, watch)
    except KeyboardInterrupt:
        cancelled = True
    finally:
        while True:
            try:
                if task.is_over():
                    break
                interrupt()
                task.wait(_AGAIN)
            except KeyboardInterrupt:
                cancelled = True
    result, task.result = task.result, None  # an answer that came too late must not hang on the exception
    if cancelled or late:
        result = None
    if cancelled:
        raise Cancelled("The read was interrupted; the price stays paid.")
    if late:
        raise TimedOut("The read took longer than its time limit; the price stays paid.")
    if result is None:
        raise EngineFailed("The engine could not finish the read; the price stays paid.")
    return result
