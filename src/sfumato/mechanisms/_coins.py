"""Exact coins for probabilities that no fraction can write, such as e^ε/(e^ε + 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import overload

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import NotCertified

__all__ = ["Coin"]

_WORD = 62  # bits of the first decision, so that a draw and its threshold are int64
_MOST = 1 << 16


@dataclass(frozen=True, slots=True)
class Coin:
    """A coin whose probability of heads is a real number in (0, 1) that is known as a ball at any precision.

    Privacy:
        Claim: heads has exactly the stated probability p. Proof: with U uniform on [0, 1), heads is U < p.
        The first 62 bits of U decide unless they equal those of p, and then as many more are drawn and
        compared as it takes; both are compared as integers, p through a ball that excludes all but one.
        Condition: p is irrational (which e^ε is for rational ε ≠ 0, by Lindemann), or the comparison could
        go on for ever.
    """

    probability: Callable[[], arb]
    _threshold: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_threshold", self._digits(_WORD))

    def _digits(self, count: int) -> int:
        """⌊p·2**count⌋, from a ball narrow enough to leave no doubt."""
        precision = count + 64
        while precision < _MOST:
            with ctx.workprec(precision):
                whole = (self.probability() * arb(2) ** count).floor().unique_fmpz()
            if whole is not None:
                return int(whole)
            precision *= 2
        raise NotCertified("A coin's probability could not be told from a fraction.")

    @overload
    def toss(self, size: None = None) -> bool: ...
    @overload
    def toss(self, size: int) -> NDArray[np.bool_]: ...
    def toss(self, size: int | None = None) -> bool | NDArray[np.bool_]:
        """Heads or tails, once or `size` times."""
        if size is None:
            drawn = random.integers(2**_WORD)
            return drawn < self._threshold if drawn != self._threshold else self._resolve()
        draws = random.integers(2**_WORD, size)
        heads = draws < self._threshold
        for tied in np.flatnonzero(draws == self._threshold):
            heads[tied] = self._resolve()
        return heads

    def _resolve(self) -> bool:
        """The decision after the first word tied: later words of U against those of p."""
        known, count = self._threshold, _WORD
        while True:
            count += _WORD
            finer = self._digits(count)
            drawn, wanted = random.integers(2**_WORD), finer - (known << _WORD)
            if drawn != wanted:
                return drawn < wanted
            known = finer
