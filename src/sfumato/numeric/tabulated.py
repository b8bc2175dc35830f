"""The profile of a composition at many points at once, for where a composition is itself a part of something.

A sample that several mechanisms share amplifies their *composition*, so the composed profile is read at
thousands of points. One discrete law that dominates the composition gives them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from sfumato.numeric.grid_dots import connect
from sfumato.numeric.grid_plan import place
from sfumato.numeric.laws.base import Term
from sfumato.numeric.rounding import LIBRARY, Floats, U

__all__ = ["MOST_EVENTS", "tabulated"]

MOST_EVENTS = 16
"""Masses are convolved term by term, which is exact up to relative rounding but slow for many events."""

_POINTS = 1 << 14
# What each law leaves above its grid goes to infinity, and what it leaves below is moved up.
_ABOVE, _BELOW = 1e-30, 1e-18


def tabulated(terms: Sequence[Term]) -> Callable[[Floats], Floats]:
    """A function that is nowhere below the composed profile, mass at infinity included.

    Privacy:
        Each law is dominated by its dots (`grid_dots.connect`), so the product of the discrete laws
        dominates the composition (Zhu, Dong, Wang 2022, Theorem 10), and its profile is the sum that is
        computed. All masses are positive, so rounding is relative: at most 2(n + 2)u for sums of n
        products, which every figure is raised by.
    """
    places = [place(term, _ABOVE, _BELOW) for term in terms for _ in range(term.count)]
    span = sum(spot.high - spot.low for spot in places)
    step = max(span, 1e-300) / _POINTS
    mass: Floats = np.ones(1)
    keep, top = 0.0, 0.0
    for spot in places:
        points = max(2, math.ceil((spot.high - spot.low) / step) + 1)
        dots = connect(spot.term.law, spot.term.parameters, spot.high, step, count=points)
        mass = np.convolve(mass, dots.mass)
        keep += math.log1p(-min(dots.infinity, 1 - U))
        top += dots.top
    infinity = -math.expm1(keep) * (1 + 64 * U)
    rounding = 4 * (len(mass) + 8) * U * (len(places) + 1)
    # tail[j] is the mass from j on, and faded[j] the same with each loss weighted by e^-(loss - loss j).
    tail = np.concatenate((np.cumsum(mass[::-1])[::-1], [0.0]))
    faded = np.concatenate((_faded(mass, math.exp(-step)), [0.0]))
    bottom = top - step * (len(mass) - 1)

    def profile(epsilons: Floats) -> Floats:
        x = np.asarray(epsilons, dtype=np.float64)
        # A hair to the left, where the profile is higher: the losses of the grid are rounded.
        x = x - 16 * U * (np.abs(x) + abs(top) + span)
        index = np.clip(np.ceil((x - bottom) / step), 0, len(mass)).astype(np.int64)
        gap = np.maximum(bottom + step * index - x, 0.0)
        finite = tail[index] - np.exp(-gap) * faded[index]
        error = (rounding + 4 * LIBRARY) * tail[index]
        raised: Floats = (np.maximum(finite, 0.0) + error + infinity) * (1 + 8 * U)
        return np.minimum(raised, 1.0)

    return profile


def _faded(mass: Floats, ratio: float) -> Floats:
    """Σ over i ≥ j of mass[i]·ratio^(i - j), from the end."""
    from scipy.signal import lfilter

    out: Floats = lfilter([1.0], [1.0, -ratio], mass[::-1])[::-1]
    return out
