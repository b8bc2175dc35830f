"""What boosted shapes are fitted to: classes and numbers, whose residuals are integers."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.fits.meter import Meter
from sfumato.learn._core.design import BITS, UNIT
from sfumato.learn._shapes.tallies import Tallies

__all__ = ["Classes", "Numbers", "Outcome", "chances"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[Any]

_STEPS = 1 << 10  # a score is a whole multiple of 2**-10
_FAR = 12 * _STEPS  # beyond ±12 a score changes no chance that matters
_CELLS = 64
_KEPT = 0.995  # so much of the target's weight is within reach of its mean


class Outcome(Protocol):
    """What is to be learned, once something noisy is known of it.

    Attributes:
        steps: Which integer a score of 1 is.
        unit: Which integer a residual of 1 is.
        longest: What the residuals of a row are at most in L2, as an integer divisible by 4.
        count: About how many units there are.
        start: The score of each output that fitting begins at.
        scale: How far scores are expected to differ between bins.
        spread: The variance of a residual for each unit of curvature.
        kinds: How many kinds of rows are counted apart.
    """

    steps: int
    unit: int
    longest: int
    count: float
    start: Floats
    scale: float
    spread: float
    kinds: int

    def residuals(self, scores: Integers, target: Integers) -> list[Integers]:
        """The residuals of rows, one line for each output: each of its own row, and integers."""
        ...

    def indicators(self, target: Integers) -> list[Integers]:
        """For each kind, 1 for rows of it and 0 for others."""
        ...

    def curvature(self, counts: Floats, sigma: float) -> tuple[Floats, Floats]:
        """From noisy counts (bins × kinds): how much each bin weighs, and its curvature for each output."""
        ...


class Classes:
    """Two classes, or several of which each is told from the rest.

    Of two classes, the residual y − p is cut to ±5/8: a loss that punishes wild errors linearly, and whose
    best score still says the chance (`chances`). Of several, the residuals of all of them are shortened to
    length 1 together.

    Privacy:
        Claim: a row's residuals follow from the row's own score and class and are no longer than `longest`.
        Proof: they are looked up in one public table; what is shortened is rounded towards zero, after a
        root that IEEE 754 rounds correctly and a factor that is smaller by more than all roundings.
    """

    steps, unit, spread, scale = _STEPS, UNIT, 1.0, 1.0

    def __init__(self, classes: int, counts: Floats, sigma: float) -> None:
        self.kinds = classes
        self.outputs = 1 if classes == 2 else classes
        self.longest = UNIT * 5 // 8 if classes == 2 else UNIT
        held = np.maximum(counts, 0.0)
        self.count = max(float(held.sum()), sigma)
        self.shares = (held + 2 * sigma) / (held + 2 * sigma).sum()
        grid = np.arange(-_FAR, _FAR + 1) / _STEPS
        places = np.searchsorted(chances(grid, self.longest / UNIT), self._own(self.shares))
        self.start = grid[np.minimum(places, len(grid) - 1)]

    @classmethod
    def bought(
        cls, classes: int, tallies: Tallies, target: Integers, meter: Meter, share: Fraction
    ) -> Classes:
        """The classes, of which noisy counts are bought."""
        total = tallies.sums(target, classes, lambda _: [1], 1, 1)
        return cls(classes, meter.noisy(total, share), meter.sigma(1, share))

    def _own(self, shares: Floats) -> Floats:
        """The shares that outputs are about: of two classes the second's."""
        return shares[..., 1:] if self.outputs == 1 else shares

    @cached_property
    def _table(self) -> NDArray[np.int16]:
        """The residual of a row that is not of the class, and of one that is, by its score."""
        chance = np.rint(UNIT / (1 + np.exp(-np.arange(-_FAR, _FAR + 1) / _STEPS)))
        both = np.concatenate([-chance, UNIT - chance])
        return np.asarray(np.clip(both, -self.longest, self.longest), dtype=np.int16)

    def residuals(self, scores: Integers, target: Integers) -> list[Integers]:
        """The residuals of rows, one line for each output."""
        places = np.clip(scores, -_FAR, _FAR)
        places += _FAR
        if self.outputs == 1:
            places[0] += target.astype(np.int32) * (2 * _FAR + 1)
            return [self._table[places[0]]]
        for each in range(self.outputs):
            places[each] += (target == each) * np.int32(2 * _FAR + 1)
        found = self._table[places].astype(np.float64)
        lengths = np.sqrt((found * found).sum(axis=0))
        most = self.longest * (1 - 2.0**-30)
        factors = np.divide(most, lengths, out=np.ones_like(lengths), where=lengths > most)
        return list(np.trunc(found * factors))

    def indicators(self, target: Integers) -> list[Integers]:
        """For each class, 1 for rows of it and 0 for others."""
        return [(target == each).astype(np.float64) for each in range(self.kinds)]

    def curvature(self, counts: Floats, sigma: float) -> tuple[Floats, Floats]:
        """Weights of bins, and for each output p·(1 − p) of the rates seen there, or of all if that is more.

        Where scores are right on average, the curvature in a bin is at most that, p·(1 − p) being concave.
        """
        weights = np.maximum(counts.sum(axis=1), 2 * sigma)
        prior = 4 * sigma
        rates = (counts + prior * self.shares) / (weights + prior)[:, None]
        rates, shares = (np.clip(self._own(each), 1e-3, 1 - 1e-3) for each in (rates, self.shares))
        curves = np.maximum(rates * (1 - rates), shares * (1 - shares))
        return weights, weights[:, None] * curves


class Numbers:
    """A number between 0 and 1, whose residuals are cut to a length found from a noisy histogram of it.

    Privacy:
        Claim: a row's residual follows from the row's own score and target and is at most `longest`.
        Proof: a difference of two integers, cut.
    """

    steps = unit = 1 << 16
    kinds, outputs = 1, 1

    def __init__(self, cells: Floats, sigma: float) -> None:
        weights = np.where(cells > 3 * sigma, cells, 0.0)
        middles = (np.arange(len(cells)) + 0.5) / len(cells)
        self.count = max(float(cells.sum()), sigma)
        whole = float(weights.sum())
        mean = float(weights @ middles) / whole if whole else 0.5
        far = np.abs(middles - mean)
        order = np.argsort(far, kind="stable")
        seen = np.searchsorted(np.cumsum(weights[order]), _KEPT * whole) if whole else len(cells) - 1
        reach = min(1.0, float(far[order][min(seen, len(cells) - 1)]) + 1 / len(cells))
        self.longest = 4 * int(np.ceil(reach * self.unit / 4))
        variance = float(weights @ far**2) / whole if whole else 1 / 12
        self.spread = variance + 1 / len(cells) ** 2 / 12
        self.scale = 2 * float(np.sqrt(self.spread))
        self.start = np.array([mean])

    @classmethod
    def bought(cls, tallies: Tallies, target: Integers, meter: Meter, share: Fraction) -> Numbers:
        """The numbers, of which a noisy histogram is bought."""

        def cells(part: slice) -> Integers:
            return np.asarray(np.minimum(target[part].astype(np.intp) * _CELLS >> BITS, _CELLS - 1))

        total = tallies.sums(cells, _CELLS, lambda _: [1], 1, 1)
        return cls(meter.noisy(total, share), meter.sigma(1, share))

    def residuals(self, scores: Integers, target: Integers) -> list[Integers]:
        """The residuals of rows, in one line."""
        exact = target.astype(np.int32) * (self.unit // UNIT) - scores[0]
        return [np.clip(exact, -self.longest, self.longest)]

    def indicators(self, target: Integers) -> list[Integers]:
        """1 for each row: numbers are all of one kind."""
        return [np.ones(len(target))]

    def curvature(self, counts: Floats, sigma: float) -> tuple[Floats, Floats]:
        """Weights of bins, which are their curvature too."""
        weights = np.maximum(counts[:, 0], 2 * sigma)
        return weights, weights[:, None]


def chances(scores: Floats, longest: float) -> Floats:
    """The chance of a class at which a score is best, where residuals are cut to ±`longest`.

    At score f with p = 1/(1 + e⁻ᶠ), the expected residual of a row that is of the class with chance c is
    c·min(1 − p, longest) − (1 − c)·min(p, longest): zero at the c given here.
    """
    plain = 1 / (1 + np.exp(-np.clip(scores, -700, 700)))
    for_it, against = np.minimum(plain, longest), np.minimum(1 - plain, longest)
    return np.asarray(for_it / (for_it + against))
