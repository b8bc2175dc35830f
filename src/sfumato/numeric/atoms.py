"""Few events with finitely many losses each: the composed law outcome by outcome.

Contours and grids want many events or smooth losses. Where the events with finitely many losses have few
outcomes in all, their sums are simply listed, and what is left (nothing, one event, or Gaussians) is read
from its own profile: delta(epsilon) = mass at infinity + Σ p(l) delta_rest(epsilon - l).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.numeric.laws.base import Floats, Term
from sfumato.numeric.rounding import LIBRARY, U

__all__ = ["Outcomes", "outcomes"]

MOST = 1 << 16
"""How many outcomes are listed at most."""

Profile = Callable[[Floats], tuple[Floats, Floats]]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Finite losses, absolutely accurate to `absolute`, and probabilities, relatively to `relative`."""

    losses: Floats
    masses: Floats
    relative: float
    absolute: float

    def bounds(self, epsilon: float, rest: Profile, infinity: tuple[float, float]) -> tuple[float, float]:
        """Floats below and above the composed profile.

        Privacy:
            Conditioning on the listed losses is exact; each term reads the rest's own bounds at an
            argument moved to the safe side by the rounding of the losses, and all terms are at least 0.
        """
        slip = self.absolute + 4 * U * (abs(epsilon) + np.abs(self.losses))
        low = rest(epsilon - self.losses + slip)[0]
        high = rest(epsilon - self.losses - slip)[1]
        off = self.relative + 64 * U
        lower = float((self.masses * low).sum()) * (1 - off)
        upper = float((self.masses * high).sum()) * (1 + off)
        return max(0.0, lower + infinity[0] * (1 - U)), min(1.0, (upper + infinity[1]) * (1 + 2 * U))


def nothing(x: Floats) -> tuple[Floats, Floats]:
    """The profile of no event at all: 1 - e^x where that is positive."""
    value = -np.expm1(np.minimum(x, 0.0))
    return value * (1 - LIBRARY), value * (1 + LIBRARY)


def outcomes(terms: Sequence[Term]) -> tuple[Outcomes, list[Term]] | None:
    """The joint outcomes of all terms with finitely many losses, and the other terms; None if too many."""
    losses, masses = np.zeros(1), np.ones(1)
    relative = absolute = 0.0
    others: list[Term] = []
    for term in terms:
        own = term.law.masses(term.parameters)
        lattice = term.law.lattice(term.parameters)
        if own is None or lattice is None:
            others.append(term)
            continue
        span = (len(own) - 1) * term.count + 1
        if len(losses) * span > MOST:
            return None
        total = own
        for _ in range(term.count - 1):
            total = np.convolve(total, own)
        top, step = lattice
        sums = top * term.count - step * np.arange(span)
        losses = np.add.outer(losses, sums).ravel()
        masses = np.multiply.outer(masses, total).ravel()
        # A convolution of positive numbers errs by its longest sum; each factor by its own masses.
        relative += term.count * (8 * LIBRARY + 2 * U * (len(own) + 2))
        absolute += 8 * U * (abs(top) * term.count + step * span)
    if len(others) == len(terms):
        return None
    return Outcomes(losses, masses, math.expm1(2 * relative), absolute), others
