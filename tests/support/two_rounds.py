"""Selection in two rounds as one would do it by hand: pure Python, one unit after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfumato.mechanisms import AdaptiveSelection

__all__ = ["slowly", "weights_of"]


def weights_of(
    steps: Sequence[tuple[int, int]], units: Iterable[Iterable[Any]], without: Iterable[Any] = ()
) -> dict[Any, int]:
    """The sum of units' weights in each group, given the groups of each unit."""
    gone, total = set(without), dict[Any, int]()
    for groups in units:
        own = {group for group in groups if group not in gone}
        for group in own:
            size = next((weight for end, weight in steps if len(own) <= end), 0)
            total[group] = total.get(group, 0) + size
    return total


def slowly(
    mechanism: AdaptiveSelection, units: Sequence[Iterable[Any]], noise: Sequence[Mapping[Any, int]]
) -> tuple[set[Any], set[Any]]:
    """The groups that each round finds, for given noise."""
    first = weights_of(mechanism.steps, units)
    before = {group: weight + noise[0].get(group, 0) for group, weight in first.items()}
    found = {group for group in first if first[group] and before[group] > mechanism._thresholds[0]}
    second = weights_of(mechanism.steps, units, found)
    both = {group: before[group] + 7 * (weight + noise[1].get(group, 0)) for group, weight in second.items()}
    return found, {group for group in second if second[group] and both[group] > mechanism._thresholds[1]}
