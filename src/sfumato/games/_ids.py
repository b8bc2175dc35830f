"""Columns of ids and labels, each read by itself: what one row holds never changes how another is read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidValue

__all__ = ["ids_of"]


def ids_of(ids: ArrayLike, *, rows: int, uneven: str, other: str) -> NDArray[Any]:
    """A flat array of whole numbers, of text or of bytes.

    Args:
        ids: as they were given.
        rows: how many there must be.
        uneven: what to say where there are not so many.
        other: what to say where they are something else.

    Raises:
        InvalidValue: in those words; no id is quoted.

    Privacy:
        NumPy would make text of the numbers in a list that holds a single text, and drop what is masked. Then
        one bidder's id would decide which rows of all others are kept. So a list must be of one kind.
    """
    if isinstance(ids, np.ma.MaskedArray):
        raise InvalidValue("Masked arrays are refused: leave the masked rows out first.")
    try:
        array = np.asarray(ids)
    except (ValueError, OverflowError):
        raise InvalidValue(uneven) from None
    if array.ndim != 1 or len(array) != rows:
        raise InvalidValue(uneven)
    if array.dtype.kind == "O" or not hasattr(ids, "__array__"):
        array = _alike(array.tolist() if hasattr(ids, "__array__") else ids, other)
    if array.dtype.kind not in "iuUST" and rows:
        raise InvalidValue(other)
    return array


def _alike(ids: Any, other: str) -> NDArray[Any]:
    """A list of ids of one kind as an array."""
    kinds = set(map(type, ids))
    for kind, end in ((str, "\0"), (bytes, b"\0")):
        if kinds and all(issubclass(each, kind) for each in kinds):
            if any(each.endswith(end) for each in ids):
                raise InvalidValue("Ids must not end in a NUL character, which arrays of text forget.")
            return np.array(ids, kind)
    if all(issubclass(each, int | np.integer) and each is not bool for each in kinds):
        return np.array(ids, None if kinds else np.int64)
    raise InvalidValue(other)
