"""What selects groups that are not public: of two ways the one that finds smaller groups at the price."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import InvalidParameter
from sfumato.mechanisms import GaussianSelection, PartitionSelection

__all__ = ["Selection", "selection_of"]

Selection: TypeAlias = PartitionSelection | GaussianSelection
"""What selects groups by the number of units in them."""

_CONFIDENCE = Fraction(19, 20)
_RARELY, _NEARLY_ALWAYS = Fraction(1, 100), 0.99
_PLACES = 16


@functools.lru_cache(maxsize=256)
def selection_of(
    epsilon: Fraction, delta: Fraction, *, groups: int, exchange: bool, counted: bool
) -> Selection:
    """The better way to select groups at this price, where a unit counts 1 in at most `groups` of them.

    Gaussian noise is taken where it keeps groups of all sizes no less often, from those that are kept rarely
    to those that are kept nearly always; `PartitionSelection` where not, as for one group a unit, where
    nothing keeps more than it does.
    Where the noisy counts are shown as well, their noise must not become wider either.

    Args:
        epsilon: The price.
        delta: The price.
        groups: In how many groups a unit counts, at most.
        exchange: Whether neighbours differ in exchanging a unit.
        counted: Whether the noisy counts of units are part of the answer.

    Privacy:
        The choice follows from the price and from public limits alone.
    """
    divided = PartitionSelection(epsilon, delta, groups=groups, exchange=exchange)
    if divided.per_group[0] == epsilon:
        return divided
    try:
        shared = GaussianSelection(epsilon, delta, groups=groups, exchange=exchange)
    except InvalidParameter:
        return divided
    wider = shared.error(_CONFIDENCE) > divided.error(_CONFIDENCE) or shared.variance > divided.variance
    if counted and wider:
        return divided
    first, last = divided.least(_RARELY), divided.certain
    sizes = {first + (last - first) * place // _PLACES for place in range(_PLACES + 1)}
    never_less = all(
        shared.keep_probability(size) >= min(divided.keep_probability(size), _NEARLY_ALWAYS) for size in sizes
    )
    return shared if never_less else divided
