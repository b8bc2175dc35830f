"""`one_thread`: matrix products of a fit on one thread, and as many as before once the last fit is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]


class _Inside:
    """How many fits are under way in this process, and what gives the libraries their threads back."""

    def __init__(self) -> None:
        self.lock, self.many = Lock(), 0
        self.limit: Any = None


_inside = _Inside()


@cache
def _matrix_libraries() -> Any:
    """Those that are loaded; to find them takes longer than a small fit."""
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_thread() -> Iterator[None]:
    """Limits the libraries of matrix products to one thread.

    Blocks of a fit are too small to be worth several threads, which wait for each other in a loop. The limit
    holds for the whole process: the first of several fits at once sets it, and the last one lifts it.
    """
    with _inside.lock:
        if not _inside.many:
            _inside.limit = _matrix_libraries().limit(limits=1)
            _let_go()
        _inside.many += 1
    try:
        yield
    finally:
        with _inside.lock:
            _inside.many -= 1
            if not _inside.many:
                _inside.limit.restore_original_limits()
                _inside.limit = None
                _let_go()


def _let_go() -> None:
    """Lets any thread set the next limit: newer threadpoolctl keeps to the one that set the last.

    To leave a limit that changes nothing gives that right up, unless a caller of this thread holds another.
    """
    with _matrix_libraries().limit(limits=None):
        pass
