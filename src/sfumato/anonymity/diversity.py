"""l-diversity: how many values of a sensitive column a class leaves possible, counted in three ways."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato.anonymity._keys import Codes
from sfumato.anonymity._spread import Spread

__all__ = ["distinct_l", "entropy_l", "recursive_ratios"]


def distinct_l(spread: Spread) -> int:
    """The least number of different values in a class.

    Source: Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam, l-Diversity, TKDD 2007, section 4.
    """
    return int(spread.distinct.min())


def entropy_l(spread: Spread) -> float:
    """The exponential of the least entropy of a class: as many equally frequent values it is worth.

    Source: the same, definition 4.1: the entropy of every class is at least log l.
    """
    counts = spread.counts.astype(np.float64)
    sizes = spread.sizes.astype(np.float64)
    inside = np.add.reduceat(counts * np.log(counts), spread.starts[:-1])
    worth = np.exp(np.log(sizes) - inside / sizes).clip(1.0, spread.distinct)
    # Of equally frequent values it is their number, which logarithms may miss by a little.
    is_even = counts[spread.starts[:-1]] * spread.distinct == sizes
    is_even &= np.maximum.reduceat(counts, spread.starts[:-1]) == counts[spread.starts[:-1]]
    return float(np.where(is_even, spread.distinct, worth).min())


def recursive_ratios(spread: Spread) -> tuple[Fraction, ...]:
    """For l = 1, 2, …: what c has to exceed so that every class is recursively (c, l)-diverse.

    With the counts of a class from the largest on, r_1 ≥ r_2 ≥ … ≥ r_m, it is so if
    r_1 < c (r_l + … + r_m). Beyond the least number of different values no c will do.

    Source: the same, definition 4.3.
    """
    order = np.lexsort((-spread.counts, spread.owners))
    counts = spread.counts[order]
    begin = spread.starts[:-1]
    most, tail = counts[begin], spread.sizes
    ratios = []
    for place in range(distinct_l(spread)):
        ratios.append(_largest(most, tail))
        tail = tail - counts[begin + place]
    return tuple(ratios)


def _largest(above: Codes, below: Codes) -> Fraction:
    """The largest of the quotients, exactly: floats find the few that can be it."""
    quotients = above / below
    near = np.flatnonzero(quotients >= quotients.max() * (1 - 1e-12))
    shared = np.gcd(above[near], below[near])
    pairs = set(zip((above[near] // shared).tolist(), (below[near] // shared).tolist(), strict=True))
    return max(Fraction(a, b) for a, b in pairs)
