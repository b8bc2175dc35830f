"""The public list of values that people choose from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue

__all__ = ["Domain", "as_list", "wholes_of"]

_MOST = 2**32


@dataclass(frozen=True, slots=True, init=False)
class Domain:
    """Values 0 … size − 1, or listed ones (texts, whole numbers or truth values), in their order.

    Attributes:
        size: How many there are.
        labels: The values; None: they are the numbers themselves.
    """

    size: int
    labels: tuple[Any, ...] | None
    _places: dict[Any, int] = field(compare=False, repr=False)

    def __init__(self, values: int | Sequence[Any] | Domain) -> None:
        """Take a size, a list of values or another domain.

        Raises:
            InvalidParameter: for fewer than two values, more than 2**32, repeated ones or other types.
        """
        if isinstance(values, Domain):
            size, labels = values.size, values.labels
        elif isinstance(values, int | np.integer) and not isinstance(values, bool):
            size, labels = int(values), None
        elif isinstance(values, Sequence | np.ndarray) and not isinstance(values, str | bytes):
            labels = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
            size = len(labels)
            # Equal ones are the same to a dictionary, whatever their types: 1 and True.
            if not all(type(label) in (str, int, bool) for label in labels) or len(set(labels)) < size:
                raise InvalidParameter("domain lists different texts, whole numbers or truth values.")
        else:
            raise InvalidParameter('domain is a number of values, or their list, like ["yes", "no"].')
        if not 2 <= size <= _MOST:
            raise InvalidParameter("domain needs at least 2 values and at most 2**32.")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(
            self, "_places", {} if labels is None else {label: i for i, label in enumerate(labels)}
        )

    def indices(self, values: Any) -> NDArray[np.int64]:
        """The places of values in the domain.

        Raises:
            InvalidValue: if one is not in it; the value is not shown.
        """
        if _lumped(values):
            raise InvalidValue(_FLAT)
        try:
            if self.labels is not None:
                return self._listed(values)
            array = wholes_of(values, 0, self.size - 1)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InvalidValue(_OUTSIDE) from None
        if array.ndim != 1:
            raise InvalidValue(_FLAT)
        return array.astype(np.int64, copy=False)

    def _listed(self, values: Any) -> NDArray[np.int64]:
        truths = isinstance(values, np.ndarray) and values.dtype == np.bool_ and values.ndim == 1
        if truths and self.labels == (False, True):
            return np.asarray(values, np.int64)
        listed = as_list(values)
        return np.fromiter((self._places[value] for value in listed), np.int64, len(listed))

    def to_json(self) -> int | list[Any]:
        """A number, or the list."""
        return self.size if self.labels is None else list(self.labels)


def as_list(values: Any) -> list[Any]:
    """Values as Python has them, from a list, an array, or a column of pandas or Arrow.

    Raises:
        InvalidValue: for one text, which is not a list of its characters, or an array with gaps.
    """
    if _lumped(values) or not isinstance(values, Iterable):
        raise InvalidValue(_FLAT)
    if isinstance(values, np.ndarray):
        listed = values.tolist()
        return listed if isinstance(listed, list) else [listed]
    if hasattr(values, "to_pylist"):  # Arrow
        return list(values.to_pylist())
    return values if isinstance(values, list) else list(values)


def wholes_of(values: Any, least: int, most: int) -> NDArray[Any]:
    """Whole numbers of a public range, as an array; those of a list are read each by itself.

    Raises:
        ValueError: if one is not such a number.
    """
    array = np.asarray(values) if hasattr(values, "__array__") else np.empty(0, object)
    if array.dtype.kind == "O":
        listed = as_list(values)
        if not all(isinstance(value, int | np.integer) and _plain(value) for value in listed):
            raise ValueError
        if listed and not (min(listed) >= least and max(listed) <= most):
            raise ValueError
        return np.array(listed, np.uint64 if most >= 2**63 else np.int64)
    if array.size and (array.dtype.kind not in "iu" or array.min() < least or array.max() > most):
        raise ValueError
    return array if array.dtype.kind in "iu" else np.zeros(array.shape, np.int64)


def _plain(value: Any) -> bool:
    return not isinstance(value, bool | np.timedelta64)


def _lumped(values: Any) -> bool:
    return isinstance(values, str | bytes | np.ma.MaskedArray)


_FLAT = "Values are a flat list or array without gaps: one value for each person."
_OUTSIDE = "A value is not in the domain; list it there, or leave it out before it is randomised."
