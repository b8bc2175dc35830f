"""What selects groups that are not public: of three ways the one that finds smaller groups at the price."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import InvalidParameter
from sfumato.mechanisms import AdaptiveSelection, GaussianSelection, PartitionSelection

__all__ = ["Counting", "Selection", "selection_of"]

Counting: TypeAlias = PartitionSelection | GaussianSelection
"""What selects groups by the number of units in them, and shows it with noise."""

Selection: TypeAlias = Counting | AdaptiveSelection
"""What selects groups."""

_CONFIDENCE = Fraction(19, 20)
_RARELY, _HALF, _NEARLY_ALWAYS = Fraction(1, 100), Fraction(1, 2), 0.99
_PLACES = 16
_NEARLY_EQUAL = Fraction(51, 50)


@functools.lru_cache(maxsize=256)
def selection_of(
    epsilon: Fraction, delta: Fraction, *, groups: int, exchange: bool, counted: bool, rounds: bool = False
) -> Selection:
    """The better way to select groups at this price, where a unit counts 1 in at most `groups` of them.

    Gaussian noise is taken where it keeps groups of all sizes no less often, from those that are kept rarely
    to those that are kept nearly always; `PartitionSelection` where not, as for one group a unit, where
    nothing keeps more than it does. Where the noisy counts are shown as well, their noise must not become
    wider either. Two rounds are taken where even if all units were in as many groups as they may be, and
    nothing were found in the first round, they would keep groups about as often: in all other tables they
    keep more.

    Args:
        epsilon: The price.
        delta: The price.
        groups: In how many groups a unit counts, at most.
        exchange: Whether neighbours differ in exchanging a unit.
        counted: Whether the noisy counts of units are part of the answer.
        rounds: Whether units' weights can be read, in two rounds; their counts are not known then.

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
    chosen = shared if _never_less(shared, divided) else divided
    if not rounds or counted or groups == 1:
        return chosen
    try:
        adaptive = AdaptiveSelection(epsilon, delta, groups=groups, exchange=exchange)
    except InvalidParameter:
        return chosen
    near = adaptive.least(_HALF) <= chosen.least(_HALF) * _NEARLY_EQUAL
    return adaptive if near and _never_less(adaptive, divided) else chosen


def _never_less(selection: Selection, divided: PartitionSelection) -> bool:
    """Whether groups of all sizes are kept at least as often, up to nearly always."""
    first, last = divided.least(_RARELY), divided.certain
    sizes = {first + (last - first) * place // _PLACES for place in range(_PLACES + 1)}
    return all(
        selection.keep_probability(size) >= min(divided.keep_probability(size), _NEARLY_ALWAYS)
        for size in sizes
    )
