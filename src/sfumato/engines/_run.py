"""Running a read so that time-outs, Ctrl-C and failures end in an exception of ours with an empty chain."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from sfumato.errors import Cancelled, EngineFailed, TimedOut

__all__ = ["run"]

_T = TypeVar("_T")
_AGAIN = 0.05  # an interrupt that comes while the engine still plans is lost, so it is repeated


class _Work(Generic[_T]):
    """A read in a thread of its own; of a failure only the fact is kept, never the exception."""

    def __init__(self, work: Callable[[], _T]) -> None:
        self.done = threading.Event()
        self.result: _T | None = None
        self._work = work
        self.thread = threading.Thread(target=self._run, name="sfumato-read", daemon=True)

    def _run(self) -> None:
        try:
            self.result = self._work()
        except BaseException:  # its text and frames may hold data: they end in this thread
            self.result = None
        finally:
            self.done.set()


def run(work: Callable[[], _T], interrupt: Callable[[], None], *, timeout: float | None) -> _T:
    """What `work` returns, run in a thread of its own while this one waits and listens for Ctrl-C.

    Args:
        work: The read; it must end soon after `interrupt` is called.
        interrupt: Stops the read; called again until it has ended.
        timeout: The limit in seconds, if any.

    Raises:
        TimedOut: after the limit.
        Cancelled: on Ctrl-C.
        EngineFailed: if the read failed, whatever the reason.

    Privacy:
        The exception is raised in the waiting thread, where the cause never was, so neither `__cause__` nor
        `__context__` nor a traceback can lead to it.
    """
    task = _Work(work)
    limit = None if timeout is None else min(timeout, threading.TIMEOUT_MAX)
    cancelled = late = False
    try:
        task.thread.start()
        late = not task.done.wait(limit)
    except KeyboardInterrupt:
        cancelled = True
    finally:
        while task.thread.ident is not None and not task.done.is_set():
            try:
                interrupt()
                task.done.wait(_AGAIN)
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
