"""Exact coins by the million: about eight random bits a toss, packed as they come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, NotCertified
from sfumato.numeric.figures import PRECISION, ball

__all__ = ["Coins", "Odds", "nearest"]

Bytes: TypeAlias = NDArray[np.uint8]

_PLANES = 8  # digits of the probability that are compared at a time
_KNOWN = 4  # times eight digits that are looked up: few tosses need more
_BLOCK = 1 << 17  # bytes of coins made at a time: their random bits stay in the cache
_MOST = 1 << 16


@dataclass(frozen=True, slots=True)
class Odds:
    """1/(1 + others·e^−ε) as a ball at the current precision: the truth against so many untruths.

    It is irrational for rational ε ≠ 0 and rational others > 0 (Lindemann), so that `Coins` can toss it. A
    negative epsilon gives the complements: `Odds(-e)` is 1/(e^ε + 1).
    """

    epsilon: Fraction
    others: Fraction = Fraction(1)

    def __call__(self) -> arb:
        """The ball."""
        return 1 / (1 + ball(self.others) * (-ball(self.epsilon)).exp())


def nearest(figure: Callable[[], arb]) -> float:
    """The float at the middle of a figure that is computed with precision to spare."""
    with ctx.workprec(PRECISION):
        return float(figure().mid())


@dataclass(frozen=True, slots=True)
class Coins:
    """Independent tosses of a coin with one probability: a fraction, or an irrational number known as a ball.

    Privacy:
        Claim: each toss is heads with exactly the stated probability p, independently. Proof: let U be
        uniform on [0, 1); heads is U < p. At the first binary digit in which U and p differ, U is less if
        and only if p has 1 there. "The digit of U equals that of p" is a fair bit, whatever p's is, and
        independent of the others; so one random bit a digit says whether the toss goes on or is decided, and
        if decided, the digit of p is the outcome. Eight digits are compared for every toss; a toss that is
        still undecided then (one in 256) goes on with fresh bits for the next eight, as long as it takes. It
        is tails if all later digits of p are 0. Bits of a word are the tosses, so that a digit is compared
        for 64 of them at once. Condition: a probability given as a ball is irrational, or NotCertified is
        raised. What is drawn and how long it takes depends on p and the number of tosses alone, never on a
        private value.
    """

    probability: Fraction | Callable[[], arb]
    _known: tuple[tuple[int, bool], ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.probability, Fraction) and not 0 <= self.probability <= 1:
            raise InvalidParameter("A probability must lie between 0 and 1.")
        object.__setattr__(self, "_known", tuple(self._byte(level) for level in range(_KNOWN)))

    def toss(self, size: int) -> NDArray[np.bool_]:
        """Heads or tails, `size` times."""
        return np.unpackbits(self.packed(-(-size // 8)), count=size).view(np.bool_)

    def packed(self, size: int) -> Bytes:
        """8·`size` tosses: each bit of so many bytes is one."""
        if self.probability in (0, 1):
            return np.full(size, 255 if self.probability else 0, np.uint8)
        out = np.empty(size, np.uint8)
        for start in range(0, size, _BLOCK):
            self._fill(out[start : start + _BLOCK])
        return out

    def _fill(self, out: Bytes) -> None:
        out[:], tied = self._compare(0, out.size)
        places = np.flatnonzero(tied)
        tied, level = tied[places], 1
        while places.size:
            heads, still = self._compare(level, places.size)
            out[places] |= heads & tied
            tied &= still
            left = tied != 0
            places, tied, level = places[left], tied[left], level + 1

    def _compare(self, level: int, size: int) -> tuple[Bytes, Bytes]:
        """Which tosses eight further digits decide as heads, and which they leave undecided."""
        digits, last = self._known[level] if level < _KNOWN else self._byte(level)
        # Digits that are 0 to the end decide nothing but tails.
        planes = _PLANES if not last else _PLANES - ((digits & -digits).bit_length() - 1 if digits else 8)
        words = -(-size // 8)
        heads, tied = np.zeros(words, np.uint64), np.full(words, 2**64 - 1, np.uint64)
        equal = random.current().words64(planes * words).reshape(planes, words)
        for place, same in enumerate(equal):
            if digits >> (_PLANES - 1 - place) & 1:
                same &= tied
                tied ^= same  # those decided here, as heads
                heads |= tied
                tied = same
            else:
                tied &= same
        if last:
            tied = np.zeros(words, np.uint64)
        return heads.view(np.uint8)[:size], tied.view(np.uint8)[:size]

    def _byte(self, level: int) -> tuple[int, bool]:
        """Eight binary digits of the probability, and whether all later ones are 0."""
        count = _PLANES * (level + 1)
        if isinstance(self.probability, Fraction):
            whole, rest = divmod(self.probability.numerator << count, self.probability.denominator)
            return whole & 255, rest == 0
        return _floor(self.probability, count) & 255, False


def _floor(probability: Callable[[], arb], count: int) -> int:
    """⌊p·2**count⌋, from a ball narrow enough to leave no doubt."""
    precision = count + 64
    while precision < _MOST:
        with ctx.workprec(precision):
            whole = (probability() * arb(2) ** count).floor().unique_fmpz()
        if whole is not None:
            return int(whole)
        precision *= 2
    raise NotCertified("A coin's probability could not be told from a fraction.")
