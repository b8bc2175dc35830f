"""Both curves of a pair from the law of its likelihood ratio: atoms of X = dP/dQ under Q.

E_Q[(X − x)+] is the profile of (P, Q) at log x, and E_Q[(1 − xX)+] that of (Q, P). The sums run over positive
terms only, so that the smallest value is as accurate as the largest.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.numeric.rounding import LIBRARY, Floats, U

__all__ = ["Curves"]

_FAR = 600.0
"""Beyond this epsilon, either way, a curve is read here."""

_CALLS = 2.0**-45
"""More than the few library calls and roundings of one value."""


@dataclass(frozen=True, slots=True)
class Curves:
    """A measure on ratios and how far it may be off; its curves are bounds from above, or from below.

    Attributes:
        ratio: rising places of X, from 0 on.
        mass: what is there under Q.
        infinite: what P has where X is infinite.
        up: whether the curves are above those that are meant, or below.
        rounding: how far masses may be off on the wrong side, relatively.
        hair: how far places may be off, relatively and on top of that absolutely.
        after: the mass of each place and all above it.
        before: the mass of each place and all below it.
        call: E[(X − x)+; X finite] at each place x.
        put: E[(x − X)+] at each place x.
    """

    ratio: Floats
    mass: Floats
    infinite: float
    up: bool
    rounding: float
    hair: float
    after: Floats
    before: Floats
    call: Floats
    put: Floats

    @classmethod
    def of(
        cls, ratio: Floats, mass: Floats, infinite: float, *, up: bool, rounding: float, hair: float
    ) -> Curves:
        """The curves of a measure."""
        after, before = np.cumsum(mass[::-1])[::-1], np.cumsum(mass)
        gaps = np.diff(ratio)
        call = np.concatenate((np.cumsum((gaps * after[1:])[::-1])[::-1], [0.0]))
        put = np.concatenate(([0.0], np.cumsum(gaps * before[:-1])))
        slack = rounding + hair + 4 * len(ratio) * U + _CALLS
        return cls(ratio, mass, infinite, up, slack, hair, after, before, call, put)

    def remove(self, epsilon: npt.ArrayLike) -> Floats:
        """The profile of (P, Q), rounded to its side."""
        given = np.asarray(epsilon, dtype=np.float64)
        x = np.exp(np.clip(given, -_FAR, _FAR))
        above = self._rounded(self._calls(x) + self.infinite)
        below = self._beside(given, self._rounded(self._puts(x)))
        return self._end(given, np.where(given < 0, below, above))

    def add(self, epsilon: npt.ArrayLike) -> Floats:
        """The profile of (Q, P), rounded to its side."""
        given = np.asarray(epsilon, dtype=np.float64)
        inside = np.clip(given, -_FAR, _FAR)
        x, z = np.exp(inside), np.exp(-inside)
        above = self._rounded(x * self._puts(z))
        below = self._beside(given, self._rounded(x * (self._calls(z) + self.infinite)))
        return self._end(given, np.where(given < 0, below, above))

    def _calls(self, x: Floats) -> Floats:
        off = self.hair * (1 + x)
        x = np.maximum(x - off, 0.0) if self.up else x + off
        at = np.searchsorted(self.ratio, x)
        last = np.minimum(at, len(self.ratio) - 1)
        value = self.call[last] + (self.ratio[last] - x) * self.after[last]
        return np.where(at < len(self.ratio), value, 0.0)

    def _puts(self, x: Floats) -> Floats:
        off = self.hair * (1 + x)
        x = x + off if self.up else np.maximum(x - off, 0.0)
        at = np.searchsorted(self.ratio, x, "right") - 1
        last = np.maximum(at, 0)
        value = self.put[last] + (x - self.ratio[last]) * self.before[last]
        return np.where(at >= 0, value, 0.0)

    def _rounded(self, value: Floats) -> Floats:
        return value * (1 + self.rounding if self.up else 1 - self.rounding)

    def _beside(self, epsilon: Floats, other: Floats) -> Floats:
        """A profile from the other one, 1 − x + other, since the mean of a ratio is 1."""
        base = -np.expm1(np.minimum(epsilon, 0.0))
        return base * (1 + LIBRARY if self.up else 1 - LIBRARY) + other

    def _end(self, epsilon: Floats, value: Floats) -> Floats:
        value = np.clip(value, 0.0, 1.0)
        return value if self.up else np.where(epsilon > _FAR, 0.0, value)

    @property
    def lowest(self) -> float:
        """A loss of (P, Q) that no finite one is below, nor any of (Q, P) above with the other sign."""
        least = float(self.ratio[self.ratio > 0][0])
        least -= 2 * self.hair * (1 + least)
        return math.log(least) - 1e-12 if least > 0 else -math.inf
