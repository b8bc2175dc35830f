"""The laws on whole numbers behind means of people's numbers: two ends, a window, a mixture of both."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.local._mean_bars import Spread
from sfumato.local.coins import Coins, Odds, nearest
from sfumato.numeric.figures import ball

__all__ = ["STEPS", "Ends", "Law", "Window"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

STEPS = 2**15 - 1
"""Grid steps from lower to upper: window and outside together are numbered by 16 bits, with two to spare."""

_WORD = 32


@dataclass(frozen=True, slots=True)
class Ends:
    """One of two ends, the nearer one more likely, and then told truthfully with probability e^ε/(e^ε + 1).

    Attributes:
        coin: Heads for the truth.
        untrue: The probability of tails.
        gap: By how much the truth is likelier: tanh(ε/2).
    """

    coin: Coins
    untrue: float
    gap: float

    @classmethod
    def at(cls, epsilon: Fraction) -> Ends:
        """Those of an epsilon."""
        return cls(Coins(Odds(epsilon)), nearest(Odds(-epsilon)), math.tanh(float(epsilon) / 2))

    def draw(self, shares: Floats) -> NDArray[np.bool_]:
        """One bit for each number t in [0, 1]: rounded up with probability t, to within 2**-33, then told."""
        upper = random.current().words32(shares.size) < np.rint(shares * 2.0**_WORD).astype(np.uint64)
        told: NDArray[np.bool_] = upper == self.coin.toss(shares.size)
        return told

    @property
    def spread(self) -> Spread:
        """A bit tells 1/2 ± 1/(2·gap), with the variance 1/(4·gap²) − (t − 1/2)²."""
        return Spread(1 / (4 * self.gap**2), -1.0, 1 / (2 * self.gap))


@dataclass(frozen=True, slots=True)
class Window:
    """A place in a window that begins at the grid point, or a place outside it.

    There are STEPS + width places, and the window of a point i is i … i + width − 1: STEPS are outside.

    Attributes:
        width: How many places a window has.
        coin: Heads for a place in the window.
        inside: The probability of heads.
        outside: The probability of tails.
        slope: By how much the mean place moves with the grid point.
    """

    width: int
    coin: Coins
    inside: float
    outside: float
    slope: float

    @classmethod
    def at(cls, epsilon: Fraction) -> Window:
        """That of an epsilon, with the width that Wang et al. (2019) found best."""
        width = max(1, round(STEPS * math.exp(-float(epsilon) / 2)))
        ratio = Fraction(STEPS, width)
        odds = Odds(epsilon, ratio)
        # inside − outside·width/STEPS = inside·(1 − e^−ε), without cancellation where epsilon is small
        slope = nearest(lambda: odds() * -(-ball(epsilon)).expm1())
        return cls(width, Coins(odds), nearest(odds), nearest(Odds(-epsilon, 1 / ratio)), slope)

    @property
    def places(self) -> int:
        """How many there are."""
        return STEPS + self.width

    def draw(self, shares: Floats) -> Integers:
        """One place for each number in [0, 1]; there is no branch on the coins or the numbers.

        The number is rounded up or down to a grid point so that its mean stays, to within 2**-33 of a step.
        """
        fine = np.rint(shares * float(STEPS << _WORD)).astype(np.int64)
        points = (fine + random.current().words32(shares.size)) >> _WORD
        within = random.integers(self.width, shares.size) + points
        without = random.integers(STEPS, shares.size)
        without += self.width * (without >= points)
        return np.where(self.coin.toss(shares.size), within, without)

    @property
    def start(self) -> float:
        """The mean place for the first grid point."""
        return self.inside * (self.width - 1) / 2 + self.outside * (self.width + (STEPS - 1) / 2)

    def variance(self, point: float) -> float:
        """That of the place for a grid point, from moments about that point."""
        after, w = STEPS - point, self.width
        first = (w - 1) / 2, (after * (w + (after - 1) / 2) - point * (point + 1) / 2) / STEPS
        left = point * (point + 1) * (2 * point + 1) / 6
        right = after * w * w + w * after * (after - 1) + after * (after - 1) * (2 * after - 1) / 6
        second = (w - 1) * (2 * w - 1) / 6, (left + right) / STEPS
        mean = self.inside * first[0] + self.outside * first[1]
        return self.inside * second[0] + self.outside * second[1] - mean * mean

    @property
    def spread(self) -> Spread:
        """That of (place − start)/(slope·STEPS), a term for a number in [0, 1]; rounding is at its most."""
        scale = (self.slope * STEPS) ** 2
        center, end = (self.variance(share) / scale for share in (STEPS / 2, 0))
        rounding = 1 / (4 * STEPS**2)
        return Spread(center + rounding, 4 * (end - center), (self.places - 1) / (2 * self.slope * STEPS))


@dataclass(frozen=True, slots=True)
class Law:
    """The window with probability `share`, which says nothing about the number, and the ends otherwise."""

    share: Fraction
    ends: Ends
    window: Window

    @classmethod
    def at(cls, epsilon: Fraction, share: Fraction) -> Law:
        """Both of an epsilon."""
        return cls(share, Ends.at(epsilon), Window.at(epsilon))

    def draw(self, shares: Floats) -> Integers:
        """A place of the window for each number, or one of the two that follow on the places for the ends."""
        ends = self.window.places + self.ends.draw(shares).astype(np.int64)
        return np.where(random.bernoulli(self.share, shares.size), self.window.draw(shares), ends)

    @property
    def spread(self) -> Spread:
        """That of a term, whichever it came from."""
        if self.share in (0, 1):
            return self.window.spread if self.share else self.ends.spread
        part, fine, coarse = float(self.share), self.window.spread, self.ends.spread
        return Spread(
            part * fine.center + (1 - part) * coarse.center,
            part * fine.slope + (1 - part) * coarse.slope,
            max(fine.reach, coarse.reach),
        )
