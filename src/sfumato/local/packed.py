"""Reports that are rows of packed bits, one for each value of the domain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.local import _bits
from sfumato.local.support import SupportRandomizer
from sfumato.loss import PureLoss

__all__ = ["PackedRandomizer"]


class PackedRandomizer(SupportRandomizer):
    """A report supports the values whose bits are 1: ⌈d/8⌉ bytes, the first value in the lowest bit."""

    __slots__ = ()

    @property
    def loss(self) -> PureLoss:
        """What one report costs the one who gives it."""
        return PureLoss(self.epsilon)

    @property
    def report_dtype(self) -> np.dtype[np.uint8]:
        """Bytes, eight values each."""
        return np.dtype(np.uint8)

    @property
    def report_shape(self) -> tuple[int]:
        """⌈d/8⌉ of them."""
        return (_bits.width(self.domain.size),)

    def _refuse_others(self, batch: NDArray[Any]) -> None:
        _bits.check(batch, self.domain.size)

    def _supports(self, batch: NDArray[Any]) -> NDArray[np.int64]:
        return _bits.totals(batch, self.domain.size)
