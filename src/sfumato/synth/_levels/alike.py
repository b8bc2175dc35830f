"""What places would have in their cells if all of a group were alike, and how unlike they seem: public."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.synth._levels.grid import Floats, Grid
from sfumato.synth._levels.linear import Known, entry_variance

__all__ = ["Alike", "alike"]

Integers: TypeAlias = NDArray[np.int64]

_ROUNDED = 0.25  # no count is told more closely than by half a person
_DOUBT = 1.0  # standard deviations by which a place must be unlike the others to be taken for it


@dataclass(frozen=True, slots=True)
class Alike:
    """The table of a group shared out by the totals of its places, and how much it is to be trusted.

    Attributes:
        table: Places × attributes.
        weights: Of each count: the inverse variance of what is off by more than noise.
    """

    table: Floats
    weights: Floats


def alike(grid: Grid, known: Known, totals: Integers, parents: Integers, above: Integers) -> Alike:
    """What the places of each group would have if they were alike, with weights found from the noisy counts.

    A count m of people who are where they are by chance has variance m, and places of one kind differ by
    φ·m² beside it. φ is estimated by moments over all places: what the noisy counts are off from m, less the
    variance of noise and chance. A place that is off by more than noise explains has a φ of its own, so that
    a barracks or a college is not smoothed away. All of this follows from noisy counts.

    Args:
        grid: The cells.
        known: What is known of the places.
        totals: Of the places.
        parents: The group of each, ascending.
        above: The counts of the groups.
    """
    wide, axes = (-1, *(1,) * len(grid.sizes)), tuple(range(1, 1 + len(grid.sizes)))
    of_group = np.maximum(above.sum(axis=axes), 1)
    table = above[parents] * (totals / of_group[parents]).reshape(wide)
    noise = entry_variance(grid, known, grid.parts[-1]).reshape(wide)
    chance = noise + table
    beyond = (grid.joined(known.parts, len(totals)) - table) ** 2 - chance
    trust = (table / chance) ** 2
    scale = float((trust * table**2).sum())
    common = max(0.0, float((trust * beyond).sum()) / scale) if scale > 0 else 0.0
    surely = beyond.sum(axis=axes) - _DOUBT * np.sqrt((2 * chance**2).sum(axis=axes))
    squares = (table**2).sum(axis=axes)
    own = np.divide(surely, squares, out=np.zeros_like(squares), where=squares > 0)
    unlike = np.maximum(common, own).reshape(wide)
    return Alike(table, 1 / (table + unlike * table**2 + _ROUNDED))
