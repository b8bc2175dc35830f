"""A composition read through the swapped pair, where the window that it needs is shorter.

    delta(epsilon) = 1 - e^epsilon + e^epsilon·delta'(-epsilon)

with delta' the profile of (Q, P): an identity of hockey-stick divergences. The left side needs all losses
above epsilon, the right side those below. Rare large losses, as with small sampling rates, make the first
window hundreds of times longer than the second, at the same step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from sfumato._dataclasses import dataclass
from sfumato.errors import NotCertified
from sfumato.numeric.grid_fft import Composed
from sfumato.numeric.grid_plan import Place, place
from sfumato.numeric.laws.base import Term
from sfumato.numeric.rounding import LIBRARY, U

__all__ = ["Swapped", "about_swapped", "swapped_places", "without_depths"]

# One exponential, one expm1, two products, a sum and a product with this factor itself.
_SLACK = 2 * LIBRARY + 8 * U

_ROOM = 32.0
"""So many times as far down as a loss can matter the places of the swapped terms end."""


@dataclass(frozen=True, slots=True)
class Swapped:
    """Bounds on a composed profile from those on the profile of the swapped pair.

    Privacy:
        δ(ε) = E_P[(1 − x/X)+] and δ'(−ε) = E_Q[(1 − X/x)+] with x = e^ε, so δ(ε) − x·δ'(−ε) = E_P[1 − x/X] =
        1 − x, masses at infinity included. The right side rises with δ', so an upper end stays one and so
        does a lower end; the rounding of each term is added to the first and subtracted from the second.
    """

    inner: Composed

    def upper(self, epsilon: float) -> tuple[float, float]:
        """(a bound above δ(epsilon), the slope -dδ/dε there)."""
        value, slope = self.inner.upper(-epsilon)
        grown = math.exp(min(epsilon, 700.0))
        high = self._told(epsilon, value, 1.0)
        return min(1.0, max(high, 0.0)), max(grown * (1.0 - value - slope), 0.0)

    def lower(self, epsilon: float) -> float:
        """A bound below δ(epsilon)."""
        return max(0.0, self._told(epsilon, self.inner.lower(-epsilon), -1.0))

    def rounding(self, epsilon: float) -> float:
        """Roughly what rounding adds to upper - lower."""
        grown = math.exp(min(epsilon, 700.0))
        return grown * self.inner.rounding(-epsilon) + 2 * _SLACK * abs(grown - 1.0)

    def _told(self, epsilon: float, other: float, sign: float) -> float:
        """1 - e^ε + e^ε·other, the rounding of both terms added (sign 1) or subtracted (-1)."""
        if epsilon > 700.0:
            return 1.0 if sign > 0 else 0.0
        first, second = -math.expm1(epsilon), math.exp(epsilon) * other
        return first + second + sign * _SLACK * (abs(first) + second)


def about_swapped(epsilon: float, delta: float) -> float:
    """Roughly δ'(-epsilon), from δ(epsilon)."""
    return -math.expm1(-epsilon) + math.exp(-epsilon) * delta


def swapped_places(terms: Sequence[Term], epsilon: float, left: float) -> list[Place] | None:
    """The places of the swapped terms for -epsilon, at most `left` above all; None where not known."""
    events = sum(term.count for term in terms)
    places = []
    for term in terms:
        law = term.law.swap()
        if law is None:
            return None
        try:
            places.append(place(Term(law, term.parameters, term.count), left / events, 1e-13 / events))
        except NotCertified:
            return None
    return without_depths(places, epsilon)


def without_depths(places: Sequence[Place], epsilon: float) -> list[Place]:
    """The places without losses that are too low for any sum to come near epsilon, of either sign.

    An event so low that the largest losses of all others do not lift the sum up to there counts for
    nothing; some room below that is left for what the lower end leaves out (lemma 4).
    """
    lowest = -_ROOM * (abs(epsilon) + sum(spot.term.count * max(spot.high, 0.0) for spot in places))
    return [spot if spot.lattice else replace(spot, low=max(spot.low, lowest)) for spot in places]
