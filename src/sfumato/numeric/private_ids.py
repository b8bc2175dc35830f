"""Whose row each one is: ids compared each by itself, never through a type that all of them share."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidValue
from sfumato.numeric.private_values import column_of, ratio_of, same, whole_of

__all__ = ["Ids", "Key", "ids_of"]

Key: TypeAlias = int | str | bytes | tuple[str, str]
"""What an id is compared by: a whole number, text, bytes, or for others what they are and how shown."""

_NONE = -1


@dataclass(frozen=True, slots=True)
class Ids:
    """Ids as their places in a fixed order of all ids: whole numbers, then text, bytes and others.

    Attributes:
        codes: For each row the place of its id among the distinct ones; −1 for a row without an id.
        distinct: The distinct ids, in that order: an array of whole numbers, or a list of keys.

    Privacy:
        Claim: whether two rows have the same id, and which of two ids comes first, depends on those two ids
        alone. 1, 1.0 and True are one id, and so are equal real numbers of any type, like 0.5 and 1/2;
        a Decimal of more than 400 digits before or after the point is one with equal Decimals only. Text is
        never a number. What is missing (None, NaN, NaT, NA) or cannot be compared (a list) is not an id.
    """

    codes: NDArray[np.int64]
    distinct: NDArray[Any] | list[Key]

    def __len__(self) -> int:
        return len(self.distinct)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have an id."""
        return self.codes >= 0


def ids_of(values: Any, *, rows: int, uneven: str, kinds: str | None = None, other: str = "") -> Ids:
    """The ids of a column.

    Args:
        values: as they were given.
        rows: how many there must be.
        uneven: what to say where there are not so many, or they are not a flat column.
        kinds: which declared types are ids; None: all.
        other: what to say of another declared type.

    Raises:
        InvalidValue: by the shape or the declared type alone; no id is quoted.
    """
    column = column_of(values, uneven)
    if len(column) != rows:
        raise InvalidValue(uneven)
    if kinds is not None and column.kind not in kinds + "O" and rows:
        raise InvalidValue(other)
    if isinstance(column.data, np.ndarray) and column.data.dtype.kind in "iu":
        distinct, codes = np.unique(column.data, return_inverse=True)
        return Ids(codes.reshape(-1).astype(np.int64, copy=False), distinct)
    return _listed(column.data if isinstance(column.data, list) else _items(column.data))


def _items(array: NDArray[Any]) -> list[Any]:
    """The entries of a typed array; dates stay what they are, since some of them would turn into numbers."""
    return list(array) if array.dtype.kind in "mM" else list(array.tolist())


def _listed(values: list[Any]) -> Ids:
    kinds = set(map(type, values))
    if kinds <= {str} or kinds <= {int} or kinds <= {bytes}:
        plain: list[Key] = sorted(set(values))
        return Ids(_codes(values, plain), plain)
    keys = [_key(value) for value in values]
    distinct = sorted({key for key in keys if key is not None}, key=_rank)
    return Ids(_codes(keys, distinct), distinct)


def _codes(keys: list[Any], distinct: list[Key]) -> NDArray[np.int64]:
    places: dict[Key | None, int] = {None: _NONE}
    places.update(zip(distinct, range(len(distinct)), strict=True))
    return np.fromiter(map(places.__getitem__, keys), np.int64, len(keys))


def _rank(key: Key) -> tuple[int, Any]:
    if isinstance(key, int):
        return 0, key
    return (1, key) if isinstance(key, str) else (2, key) if isinstance(key, bytes) else (3, key)


def _key(value: Any) -> Key | None:
    """What an id is compared by; None for anything else."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes):
        return bytes(value)
    if (whole := whole_of(value)) is not None:
        return whole
    if value is None or not isinstance(value, Hashable) or not same(value, value):
        return None
    if (ratio := ratio_of(value)) is not None:
        return "number", ratio
    try:
        hash(value)
        return type(value).__name__, repr(value)
    except Exception:  # a tuple that holds a list, or whatever a type thinks of being shown: no id
        return None
