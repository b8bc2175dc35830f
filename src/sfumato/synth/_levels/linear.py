"""The best linear estimate of all tables from noisy marginals on all levels, in closed form: public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.synth._levels.grid import Floats, Grid, Part
from sfumato.synth._levels.tree import Tree

__all__ = ["Known", "Noisy", "best", "entry_variance", "upward"]

Noisy: TypeAlias = Mapping[Part, tuple[Floats, float]]
"""The marginals of one level: for each its noisy counts over all places, and the variance of their noise."""
Totals: TypeAlias = Sequence[Floats]
"""For each level the public totals of its places; NaN where there is none."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the tables of one level: an estimate of each part, and its variance.

    Attributes:
        parts: By part of the table, in `Grid.split`'s shape.
        variances: Likewise, one for each place: that of each coordinate of the part, in any orthonormal
            basis of it; 0 where it is public.
    """

    parts: dict[Part, Floats]
    variances: dict[Part, Floats]


def upward(tree: Tree, grid: Grid, noisy: Sequence[Noisy], totals: Totals) -> list[Known]:
    """For each level what its own marginals and those of all levels below say of it.

    Each marginal over A tells of every part S ⊆ A, with variance σ²·n_A/n in its coordinates, for n_A of n
    cells. Parts are orthogonal and noise is isotropic, so that estimates of one part are averaged by their
    variances, and the sum over the places within one is another estimate of that one's: the upward pass of
    least squares on a tree, which is exact here.
    """
    known: list[Known] = []
    for level in reversed(range(len(tree))):
        own = _own(grid, noisy[level], tree.sizes(level))
        if known:
            below = known[-1]
            parts = {part: tree.added_up(level, values) for part, values in below.parts.items()}
            sums = {part: tree.added_up(level, values) for part, values in below.variances.items()}
            for part in grid.parts:
                own.parts[part], own.variances[part] = _averaged(
                    (own.parts[part], own.variances[part]), (parts[part], sums[part])
                )
        public = ~np.isnan(totals[level])
        mean = own.parts[()]
        mean[public] = _wide(totals[level][public], mean) / grid.cells
        own.variances[()][public] = 0.0
        known.append(own)
    return known[::-1]


def best(tree: Tree, grid: Grid, known: Sequence[Known]) -> list[Known]:
    """The same for each level with what the levels above say: the best linear unbiased estimate of all.

    A place's estimate is moved by its share of what is missing to the one above, by its variance; the
    estimates of a place and those within it then agree exactly.
    """
    found = [known[0]]
    for level in range(1, len(tree)):
        here, above, parents = known[level], found[-1], tree.parents[level]
        parts, variances = dict[Part, Floats](), dict[Part, Floats]()
        for part in grid.parts:
            values, variance = here.parts[part], here.variances[part]
            together = tree.added_up(level - 1, variance)[parents]
            share = np.divide(variance, together, out=np.zeros_like(variance), where=together > 0)
            missing = above.parts[part] - tree.added_up(level - 1, values)
            parts[part] = values + _wide(share, values) * missing[parents]
            variances[part] = variance * (1 - share) + share**2 * above.variances[part][parents]
        found.append(Known(parts, variances))
    return found


def entry_variance(grid: Grid, known: Known, part: Part) -> Floats:
    """The variance of each count of a marginal, one for each place: its entries are all alike."""
    inside = [(other, known.variances[other]) for other in grid.parts if set(other) <= set(part)]
    each = sum(grid.dimension(other) * variance for other, variance in inside)
    return np.asarray(each * (grid.spread(part) / grid.cells_of(part)))


def _own(grid: Grid, noisy: Noisy, places: int) -> Known:
    """What a level's own marginals say, averaged by their variances."""
    parts = {
        part: np.zeros((places, *(size if at in part else 1 for at, size in enumerate(grid.sizes))))
        for part in grid.parts
    }
    known = Known(parts, {part: np.full(places, np.inf) for part in grid.parts})
    for measured, (values, variance) in noisy.items():
        spread = grid.spread(measured)
        for part, seen in grid.split(values / spread).items():
            known.parts[part], known.variances[part] = _averaged(
                (known.parts[part], known.variances[part]), (seen, np.full(places, variance / spread))
            )
    return known


def _averaged(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Two estimates of the same averaged by their variances, one of them finite."""
    (first, a), (second, b) = one, other
    if np.isinf(a).all():
        return second, b
    if np.isinf(b).all():
        return first, a
    total = a + b
    weight = np.divide(b, total, out=np.ones_like(total), where=total > 0)
    return second + _wide(weight, first) * (first - second), a * weight


def _wide(values: Floats, like: Floats) -> Floats:
    """Numbers for places in the shape of a table."""
    return values.reshape(-1, *(1,) * (like.ndim - 1))
