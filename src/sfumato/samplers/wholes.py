"""Whole numbers of any size in one array: 64 bits for nearly all, Python's integers for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.samplers.stream import Integers

__all__ = ["Wholes"]

_LEAST, _LARGEST = -(2**63), 2**63 - 1
_NONE: Mapping[int, int] = MappingProxyType({})


class Wholes(NamedTuple):
    """A one-dimensional array of integers of any size.

    Where a number is held changes how fast it is, and nothing else: `tolist` gives the numbers themselves.

    Attributes:
        near: The numbers, as int64; 0 at the places of `far`.
        far: The other numbers, by their place.
    """

    near: Integers
    far: Mapping[int, int] = _NONE

    @classmethod
    def of(cls, values: Sequence[int]) -> Wholes:
        """Integers of any size, in 64 bits where these hold them."""
        try:
            return cls(np.array(values, np.int64))
        except OverflowError:
            far = {i: value for i, value in enumerate(values) if not _LEAST <= value <= _LARGEST}
            return cls(np.array([0 if i in far else v for i, v in enumerate(values)], np.int64), far)

    @classmethod
    def in_array(cls, values: NDArray[Any]) -> Wholes:
        """Those of an array of int64, or of Python's integers."""
        return cls(values) if values.dtype == np.int64 else cls.of(values.tolist())

    @property
    def size(self) -> int:
        """How many there are."""
        return self.near.size

    def tolist(self) -> list[int]:
        """The numbers, one after the other."""
        values: list[int] = self.near.tolist()
        for place, value in self.far.items():
            values[place] = value
        return values

    def within(self, most: int) -> Wholes:
        """The same numbers, with those beyond ±`most` held aside."""
        near = self.near
        if not near.size or (near.max() <= most and near.min() >= -most):
            return self
        beyond = np.flatnonzero((near > most) | (near < -most))
        far = dict(zip(beyond.tolist(), near[beyond].tolist(), strict=True))
        near = near.copy()
        near[beyond] = 0
        return Wholes(near, {**self.far, **far})
