"""Answers as messages, in pieces that are made beside the event loop."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any

from sfumato.server.wire import replies
from sfumato.server.wire.copying import Layout, lines
from sfumato.server.wire.replies import Field
from sfumato.server.wire.sqlstates import WireError
from sfumato.server.wire.types import encoder

__all__ = ["PIECE", "copied", "encoded", "pieces"]

PIECE = 1 << 16
"""The most bytes that are written at once."""
_FEW, _SHORT = 500, 200  # values of a small answer, and characters of each


def encoded(
    fields: Sequence[Field], formats: Sequence[int], rows: Iterable[tuple[Any, ...]]
) -> Iterator[bytes]:
    """Rows as messages, one for each.

    Raises:
        WireError: if a value cannot be written in the format that was asked for.
    """
    write = [encoder(field.oid, code) for field, code in zip(fields, formats, strict=True)]
    for row in rows:
        try:
            yield replies.data_row([make(value) for make, value in zip(write, row, strict=True)])
        except (ArithmeticError, AttributeError, TypeError, ValueError, struct.error):
            raise WireError(
                "0A000", "A value cannot be written in this format.", hint="Ask for it as text."
            ) from None


def copied(layout: Layout, fields: Sequence[Field], rows: Sequence[tuple[Any, ...]]) -> Iterator[bytes]:
    """Rows as the messages of a copy, but for what says that it is done."""
    yield replies.copy_out(len(fields))
    for line in lines(layout, fields, rows):
        yield replies.copy_data(line)
    yield replies.COPY_DONE


async def pieces(messages: Iterator[bytes], rows: Sequence[tuple[Any, ...]]) -> AsyncIterator[bytes]:
    """The bytes of messages, a piece at a time; others have their turn between two.

    Args:
        messages: That are made as they are asked for.
        rows: That they are of. A few small values are written here and now: a thread would take longer.
    """
    if _is_small(rows):
        yield b"".join(messages)
        return
    made = _gathered(messages)
    while piece := await asyncio.to_thread(next, made, b""):
        yield piece


def _is_small(rows: Sequence[tuple[Any, ...]]) -> bool:
    if len(rows) * max(map(len, rows[:1]), default=0) > _FEW:
        return False
    return not any(
        isinstance(value, list | tuple) or (isinstance(value, str | bytes) and len(value) > _SHORT)
        for row in rows
        for value in row
    )


def _gathered(messages: Iterator[bytes]) -> Iterator[bytes]:
    held = bytearray()
    for message in messages:
        held += message
        if len(held) >= PIECE:
            whole = bytes(held)
            yield from (whole[at : at + PIECE] for at in range(0, len(whole), PIECE))
            held.clear()
    if held:
        yield bytes(held)
