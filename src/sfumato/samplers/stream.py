"""What a sampler needs from a source of randomness: independent fair bits, and nothing else."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Booleans", "Integers", "Stream", "Words32", "Words64"]

Words32: TypeAlias = NDArray[np.uint32]
Words64: TypeAlias = NDArray[np.uint64]
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]


class Stream(Protocol):
    """A source of independent fair bits. Every bit is handed out once.

    The samplers are exact functions of such a stream: if the bits are fair and independent, the law that
    they draw from is exactly the one stated. With a cipher's keystream it is computationally
    indistinguishable from it.
    """

    def words32(self, count: int) -> Words32:
        """A fresh, writable array of `count` uniform 32-bit words."""
        ...

    def words64(self, count: int) -> Words64:
        """A fresh, writable array of `count` uniform 64-bit words."""
        ...

    def bits(self, count: int) -> int:
        """A uniform integer of `count` bits, 0 <= integer < 2**count."""
        ...
