"""The parser's log, silent while a question is read: what is wrong with it is said in the refusal."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["quiet"]

_reading: ContextVar[bool] = ContextVar("reading", default=False)


class _Silence(logging.Filter):
    """Drops what is logged while a question of ours is read, in this thread alone."""

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 - as the base class has it
        return not _reading.get()


logging.getLogger("sqlglot").addFilter(_Silence())


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing of sqlglot's log gets out meanwhile; a program's own use of sqlglot is left alone."""
    before = _reading.set(True)
    try:
        yield
    finally:
        _reading.reset(before)
