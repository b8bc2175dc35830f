"""Private numbers as mechanisms take them: exact, and each read by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidValue
from sfumato.numeric.private_values import MASKED

__all__ = ["Number", "integer_of", "integers_of", "numbers_of", "unusable"]

Number: TypeAlias = int | float | np.integer[Any] | np.floating[Any]
"""One private number. A float means its exact binary value, never the decimal it prints as."""

_EXACT = 2**53  # every integer up to here is a float
_LEAST, _MOST = -(2**63), 2**63 - 1
_KINDS = {"b": "truth values", "U": "text", "S": "text", "T": "text", "f": "floats", "c": "complex numbers"}
_KINDS |= {"M": "dates", "m": "durations"}
_TYPES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "truth values"),
    ((str, bytes), "text"),
    (float, "floats"),
    (complex, "complex numbers"),
)
_REMEDIES = {
    "truth values": ": convert them to 0 and 1 first.",
    "text": ": convert them first.",
    "floats": ": round them first, or use Laplace or Gaussian, which take floats.",
    "Decimal": ": convert it with float() first.",
    "Fraction": ": convert it with float() first.",
}


def numbers_of(value: Any, *, truths: bool = False) -> NDArray[Any]:
    """An array that holds each number exactly, from an array or a nested list.

    An array of numbers of at most 64 bits is taken as it is. The numbers of a list, or of an array of
    objects, are read each by itself: what they are together makes no difference to what is released for one
    of them, only to how they are held. That is as int64 or float64 where these hold all of them exactly,
    otherwise as objects: Python's integers and floats.

    Args:
        value: the numbers.
        truths: whether truth values count as 0 and 1; otherwise they are refused.

    Raises:
        InvalidValue: for anything else; the message names the kind, and tells nothing of the content.
    """
    array = _array_of(value, "numbers")
    if array.dtype.kind == "b" and truths:
        return array.astype(np.int64)
    if array.dtype.kind != "O":
        if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
            raise unusable(array if array.ndim else value)
        return array
    return _packed([_number(entry, truths) for entry in _flat(array, value, "numbers")]).reshape(array.shape)


def integers_of(value: Any) -> NDArray[np.int64]:
    """An int64 array of integers; those of a list are read each by itself, and clamped to 64 bits.

    Raises:
        InvalidValue: for floats, truth values, objects and arrays of unsigned 64-bit integers.
    """
    array = _array_of(value, "integers")
    if array.dtype.kind != "O":
        if array.dtype.kind not in "iu" or not np.can_cast(array.dtype, np.int64):
            raise unusable(array if array.ndim else value, "integers")
        return array.astype(np.int64, copy=False)
    whole = [max(_LEAST, min(_MOST, _integer(entry))) for entry in _flat(array, value, "integers")]
    return np.array(whole, np.int64).reshape(array.shape)


def integer_of(value: Any) -> int:
    """One Python or NumPy integer, of any size."""
    if not _is_whole(value):
        raise unusable(value, "integers")
    return int(value)


def unusable(value: object, wanted: str = "numbers") -> InvalidValue:
    """The refusal of a private value, or array of values, of another kind than `wanted`.

    It names the kind in words. A dtype's own name would tell the length of the longest text.
    """
    if isinstance(value, np.ndarray | np.generic):
        kind = _KINDS.get(value.dtype.kind, "records")
        if value.dtype.kind == "O":
            return InvalidValue(f"Values must be {wanted}: the array holds other objects.")
        if value.dtype.kind in "iu":
            return InvalidValue("Values must be integers that fit in int64: convert them with astype first.")
        if value.dtype.kind == "f" and wanted == "numbers":
            return InvalidValue("Floats must be of at most 64 bits: convert them to float first.")
    else:
        kind = next((name for types, name in _TYPES if isinstance(value, types)), type(value).__name__)
    return InvalidValue(f"Values must be {wanted}, not {kind}{_REMEDIES.get(kind, '.')}")


def _array_of(value: Any, wanted: str) -> NDArray[Any]:
    """An array of declared type, or one of objects."""
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidValue(MASKED)
    if isinstance(value, np.ndarray):
        return value
    listed = isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview)
    if isinstance(value, list | tuple):
        kinds = set(map(type, value))
        if kinds == {float}:
            return np.array(value, np.float64)
        if kinds == {int} and min(value) >= _LEAST and max(value) <= _MOST:
            return np.array(value, np.int64)
    try:
        if listed and not hasattr(value, "__array__"):
            return np.array(value if isinstance(value, list | tuple) else list(value), dtype=object)
        return np.asarray(value)
    except (ValueError, OverflowError):
        raise InvalidValue(f"Values must form a regular array of {wanted}.") from None


def _flat(array: NDArray[Any], value: Any, wanted: str) -> list[Any]:
    """The entries of an array of objects, one after the other."""
    if not array.ndim:
        raise unusable(value, wanted)
    entries = [x[()] if isinstance(x, np.ndarray) and not x.ndim else x for x in array.reshape(-1).tolist()]
    if any(isinstance(entry, list | tuple | np.ndarray) for entry in entries):
        raise InvalidValue(f"Values must form a regular array of {wanted}.")
    return entries


def _is_whole(value: Any) -> bool:
    others = isinstance(value, bool | np.bool_ | np.timedelta64)
    return isinstance(value, int | np.integer) and not others


def _number(value: Any, truths: bool) -> int | float:
    if _is_whole(value) or (truths and isinstance(value, bool | np.bool_)):
        return int(value)
    if isinstance(value, float) or (isinstance(value, np.floating) and value.dtype.itemsize <= 8):
        return float(value)
    raise _entry(value, "numbers")


def _integer(value: Any) -> int:
    if not _is_whole(value):
        raise _entry(value, "integers")
    return int(value)


def _entry(value: Any, wanted: str) -> InvalidValue:
    """The refusal of one value among others: in the words of its kind, or as another object."""
    named = isinstance(value, bool | str | bytes | float | complex | np.generic)
    return unusable(value if named else np.empty(0, object), wanted)


def _packed(numbers: list[int | float]) -> NDArray[Any]:
    """Numbers in the narrowest array that holds each of them exactly."""
    whole = [number for number in numbers if isinstance(number, int)]
    if len(whole) == len(numbers) and _within(whole, _LEAST, _MOST) and whole:
        return np.array(whole, np.int64)
    if _within(whole, -_EXACT, _EXACT):
        return np.array(numbers, np.float64)
    array = np.empty(len(numbers), object)
    array[:] = numbers
    return array


def _within(whole: list[int], least: int, most: int) -> bool:
    return not whole or (least <= min(whole) and max(whole) <= most)
