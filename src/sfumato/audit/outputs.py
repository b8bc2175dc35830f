"""What a mechanism gave, in a shape that statistics can work on: numbers, rows of numbers, or categories."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter

__all__ = ["Outputs", "alike", "gathered", "is_numeric", "listed", "normal"]

Outputs: TypeAlias = NDArray[Any]
"""Outputs along the first axis: numbers, rows of numbers, or hashable values in a 1-D object array."""

_NUMBERS = {bool, int, float, np.float64, np.int64, np.bool_}
_PLAIN = frozenset({bool, int, str, bytes, type(None)})  # what is counted as it is


def _hashable(value: Any) -> Hashable:
    """The value as something that can be counted: arrays, lists and dicts become tuples, None and text stay.

    NaN becomes a text, because a NaN is not equal to itself and would never be counted twice.
    """
    kind = type(value)
    if kind in _PLAIN or (kind is tuple and _PLAIN.issuperset(map(type, value))):
        return value  # type: ignore[no-any-return]
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return tuple((_hashable(key), _hashable(inner)) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return tuple(_hashable(inner) for inner in value)
    if isinstance(value, set | frozenset):
        return frozenset(_hashable(inner) for inner in value)
    if isinstance(value, float) and value != value:
        return "nan"
    if isinstance(value, Hashable):
        return value
    raise InvalidParameter(
        f"outputs of type {type(value).__name__} cannot be compared; give numbers, texts or tuples."
    )


def listed(values: Iterable[Any]) -> Outputs:
    """The values as a 1-D object array, whatever they are (NumPy would otherwise make rows out of tuples)."""
    items = [_hashable(value) for value in values]
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def is_numeric(outputs: Outputs) -> bool:
    """Whether the outputs are numbers or rows of numbers rather than categories."""
    return outputs.dtype != object


def gathered(samples: Any) -> Any:
    """The samples as they came, in an array or a list.

    Raises:
        InvalidParameter: if there are none, or it is a single one.
    """
    if not isinstance(samples, Iterable) or (isinstance(samples, np.ndarray) and samples.ndim == 0):
        raise InvalidParameter("samples must be a sequence of outputs, not a single one.")
    outputs = samples if isinstance(samples, np.ndarray) else list(samples)
    if len(outputs) == 0:
        raise InvalidParameter("There are no samples to compare.")
    return outputs


def normal(samples: Any) -> Outputs:
    """The samples along one axis, as numbers where they are numbers and as hashable categories elsewhere.

    Raises:
        InvalidParameter: if there are no samples.
    """
    samples = gathered(samples)
    if not isinstance(samples, np.ndarray):
        plain = {type(value) for value in samples[:1000]}
        if plain <= _NUMBERS and {type(value) for value in samples} <= _NUMBERS:
            samples = np.asarray(samples)
        else:
            return listed(samples)
    outputs: Outputs = samples
    if outputs.dtype.kind not in "biuf":
        return listed(outputs)
    if outputs.dtype.kind == "b":
        outputs = outputs.astype(np.int8)
    return outputs.reshape(len(outputs), -1) if outputs.ndim > 1 else outputs


def alike(samples: Any, shape: tuple[int, ...] | None) -> Outputs:
    """More samples, in a representation that was fixed without them; what has no place in it is left out.

    Args:
        samples: an array, or a list.
        shape: that of one numeric output; None for categories.
    """
    if shape is None:
        outputs = normal(samples)
        return listed(outputs) if is_numeric(outputs) else outputs
    if not isinstance(samples, np.ndarray):
        samples = [value for value in samples if _is_number(value)]
    outputs = normal(samples) if len(samples) else np.empty((0, *shape))
    return outputs if is_numeric(outputs) and outputs.shape[1:] == shape else np.empty((0, *shape))


def _is_number(value: Any) -> bool:
    return type(value) in _NUMBERS and (type(value) is not int or -(2**63) <= value < 2**63)
