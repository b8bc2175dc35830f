"""When it may show that a read has ended: a server's clock, between a read and all that follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

__all__ = ["Pace", "paced", "reading"]


class Pace(Protocol):
    """The clock of one caller."""

    def begin(self, dataset: str) -> None:
        """A read was paid for, and begins."""

    def end(self) -> None:
        """It has ended, or failed: returns once that may show."""


_PACE: ContextVar[Pace | None] = ContextVar("pace", default=None)


@contextmanager
def paced(pace: Pace) -> Iterator[None]:
    """Reads in this thread keep to a clock."""
    token = _PACE.set(pace)
    try:
        yield
    finally:
        _PACE.reset(token)


@contextmanager
def reading(dataset: str) -> Iterator[None]:
    """Around a read that was paid for.

    Privacy:
        Claim: with a clock, nothing follows from the end of a read before the clock says so: no answer, no
        error, no receipt, and nobody else's turn.
    """
    pace = _PACE.get()
    if pace is None:
        yield
        return
    pace.begin(dataset)
    try:
        yield
    finally:
        pace.end()
