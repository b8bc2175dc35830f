"""Limits of an engine, as whoever opens it gives them."""

from __future__ import annotations

import re

from sfumato.errors import InvalidParameter

__all__ = ["check_limits"]


def check_limits(
    threads: int | None, memory: str | None, timeout: float | None, *, size: re.Pattern[str], such: str
) -> None:
    """Refuse limits that are none.

    Args:
        threads: How many threads; None: any number.
        memory: How much memory, as text; None: as much as the engine takes.
        timeout: How many seconds; None: any number.
        size: What the engine takes for a size.
        such: One that it takes, for the message.

    Raises:
        InvalidParameter: for the first that is none.
    """
    if threads is not None and (type(threads) is not int or threads < 1):
        raise InvalidParameter("threads must be a whole number of at least 1, or None.")
    if memory is not None and not (isinstance(memory, str) and size.fullmatch(memory)):
        raise InvalidParameter(f'memory must be a size like "{such}", or None.')
    if timeout is not None and not (type(timeout) in (int, float) and timeout > 0):
        raise InvalidParameter("timeout must be a positive number of seconds, or None.")
