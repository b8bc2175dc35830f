"""Rows of packed bits, the first value in the lowest bit of the first byte."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidValue

__all__ = ["Bytes", "blocks", "check", "put", "totals", "trim", "width"]

Bytes: TypeAlias = NDArray[np.uint8]

_BLOCK = 1 << 20  # bytes of rows handled at a time
_ROWS = 255  # so many bits add up in a byte


def width(bits: int) -> int:
    """The bytes of a row of so many bits."""
    return -(-bits // 8)


def blocks(rows: int, size: int) -> range:
    """Where blocks of rows of `size` bytes begin; the step is their length, small enough for the cache."""
    return range(0, rows, max(1, _BLOCK // size))


def trim(rows: Bytes, bits: int) -> None:
    """Clear what lies in the last byte beyond the bits."""
    if bits % 8:
        rows[:, -1] &= (1 << bits % 8) - 1


def put(rows: Bytes, places: NDArray[np.int64], heads: NDArray[np.bool_]) -> None:
    """Set one bit of each row to what was tossed, whatever it was."""
    row, byte, bit = np.arange(len(rows)), places >> 3, (places & 7).astype(np.uint8)
    kept = rows[row, byte] & ~(np.uint8(1) << bit)
    rows[row, byte] = kept | (heads.view(np.uint8) << bit)


def check(rows: NDArray[Any], bits: int) -> None:
    """Refuse rows with something beyond their bits.

    Raises:
        InvalidValue: if there is.
    """
    if bits % 8 and len(rows) and int(np.bitwise_or.reduce(rows[:, -1])) >> bits % 8:
        raise InvalidValue("A report has bits beyond the values of the domain.")


def totals(rows: Bytes, bits: int) -> NDArray[np.int64]:
    """How many rows have each bit."""
    counts = np.zeros(bits, np.int64)
    for start in range(0, len(rows), _ROWS):
        unpacked = np.unpackbits(rows[start : start + _ROWS], axis=1, count=bits, bitorder="little")
        counts += np.add.reduce(unpacked, axis=0, dtype=np.uint8)
    return counts
