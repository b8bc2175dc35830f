"""The Hadamard subsets: N questions about N people that a fast transform takes apart again."""

from __future__ import annotations

import numpy as np

from sfumato.attacks._asking import Bits
from sfumato.numeric.rounding import Floats

__all__ = ["Subsets", "padded", "transformed"]


def padded(n: int) -> int:
    """The least power of two that is not below n."""
    return 1 << max(n - 1, 0).bit_length()


def transformed(values: Floats) -> Floats:
    """H·values for the Hadamard matrix H with entries (−1)^⟨r, j⟩, in O(N log N) (Yates 1937).

    Args:
        values: N numbers, N a power of two.
    """
    out = np.array(values, dtype=np.float64)
    half = 1
    while half < len(out):
        pairs = out.reshape(-1, 2, half)
        upper = pairs[:, 0, :] - pairs[:, 1, :]
        pairs[:, 0, :] += pairs[:, 1, :]
        pairs[:, 1, :] = upper
        half *= 2
    return out


class Subsets:
    """The subsets of n people, one for each row r of H: those at a place j where ⟨r, j⟩ is even.

    H is the Kronecker product of two small matrices, so that a row is made of copies of a small row and of
    its opposite: they are laid side by side instead of counting bits for each person.
    """

    def __init__(self, n: int) -> None:
        self.people = n
        self.rows = padded(n)
        bits = self.rows.bit_length() - 1
        self._low = bits // 2
        odd = _odd(self._low)
        self._pairs = np.stack([odd, ~odd], axis=1)
        self._even_high = (~_odd(bits - self._low)).view(np.uint8)

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, row: int) -> Bits:
        if not 0 <= row < self.rows:
            raise IndexError(row)
        pair = self._pairs[row & ((1 << self._low) - 1)]
        mask: Bits = pair.take(self._even_high[row >> self._low], axis=0).reshape(-1)[: self.people]
        return mask


def _odd(bits: int) -> Bits:
    places = np.arange(1 << bits)
    odd: Bits = (np.bitwise_count(places[:, None] & places[None, :]) & 1).astype(np.bool_)
    return odd
