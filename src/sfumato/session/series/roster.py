"""Who has counted in which steps: what holds a unit to the first few steps in which it has rows."""

from __future__ import annotations

import hashlib
import hmac
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from sfumato import random
from sfumato.continual import Banded, Continual, Factorisation

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = ["Roster", "hiding"]

_NONCE, _NAME, _COUNT = 12, 16, 8
_SURE = 14.0
"""Standard deviations that are added to a noisy length: noise is below that with a probability of 2**-146."""


def hiding(horizon: int, touches: int, rho: Fraction) -> Continual:
    """The noise of how many units count in each step, behind which the length of what is kept is hidden.

    Args:
        horizon: How many steps there are.
        touches: In how many of them neighbours can differ.
        rho: The price of all of it.
    """
    plan = Factorisation(horizon, Banded(), touches=touches)
    return Continual(plan, rho=rho, sensitivity=1, groups=1)


class Roster:
    """Who has counted in how many steps of a series so far.

    Privacy:
        Claim: over all steps of a series a unit counts in at most `most`, whatever its rows and those of
        others do in the meantime; and what is kept of a step says no more than the step's noisy number of
        units, which is paid for (`Pricing.hiding`). A unit counts in a step if it has rows there when that is
        read and has counted in fewer than `most` before, by what is on record: rows that are erased, moved or
        come late change nothing of that. What another unit does has no part in it, as long as no two ids have
        one digest of 128 bits. What is kept is a list of such digests, encrypted, of a length that follows
        from the noisy number: it is longer than the list, but for a probability of 2**-146 a step. Key and
        digests follow from the secret of the series. Proof: docs/proofs/continual.md, theorem 3.
    """

    __slots__ = ("_cipher", "_key", "_steps", "most", "now")

    def __init__(self, secret: bytes, most: int) -> None:
        """Nobody has counted yet."""
        self.most, self.now = most, list[bytes]()
        self._key = hmac.new(secret, b"roster", hashlib.sha256).digest()
        self._cipher = AESGCM(hmac.new(secret, b"roster, sealed", hashlib.sha256).digest())
        self._steps = Counter[bytes]()

    def admit(self, units: Sequence[str]) -> NDArray[np.bool_]:
        """Which of the units that have rows in the step that is next count in it; they are `now` then."""
        names = [self._name(unit) for unit in units]
        admitted = np.array([self._steps[name] < self.most for name in names], np.bool_)
        self.now = sorted(name for name, counts in zip(names, admitted.tolist(), strict=True) if counts)
        return admitted

    def _name(self, unit: str) -> bytes:
        return hmac.new(self._key, unit.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()[:_NAME]

    def closed(self, noisy: float, deviation: float) -> bytes:
        """Take in who counts now, and give what is kept of it.

        Args:
            noisy: The noisy number of those who count.
            deviation: The standard deviation of its noise.
        """
        counted = self.now
        self._join(counted)
        length = max(math.ceil(noisy + _SURE * deviation), len(counted))
        listed = len(counted).to_bytes(_COUNT, "big") + b"".join(counted)
        nonce = random.salt(_NONCE)
        padded = listed.ljust(_COUNT + _NAME * length, b"\0")
        return nonce + self._cipher.encrypt(nonce, padded, None)

    def follow(self, kept: bytes) -> None:
        """Take in who has counted in a step on record."""
        listed = self._cipher.decrypt(kept[:_NONCE], kept[_NONCE:], None)
        end = _COUNT + _NAME * int.from_bytes(listed[:_COUNT], "big")
        self._join(listed[at : at + _NAME] for at in range(_COUNT, end, _NAME))

    def _join(self, names: Iterable[bytes]) -> None:
        self._steps.update(names)
        self.now = []
