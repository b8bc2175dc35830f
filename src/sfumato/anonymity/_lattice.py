"""The cheapest admissible combination of levels, found without trying them all.

Going up in any column joins classes, so that what is admissible stays so (Samarati 2001; El Emam et al., A
globally optimal k-anonymity method for the de-identification of health data, 2009). And what a combination
loses is at least what its labels alone lose, a sum over columns that needs no look at the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter

__all__ = ["Found", "Levels", "Node", "cheapest"]

Levels: TypeAlias = tuple[int, ...]

_MOST = 2_000_000  # combinations that are kept in memory
_SLACK = 1e-9  # sums of floats in another order may differ by less


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """What a combination of levels costs; of equal costs, fewer suppressed rows and lower levels go first."""

    loss: float
    suppressed: int
    height: int
    levels: Levels


@dataclass(frozen=True, slots=True)
class Found:
    """The cheapest node, how many combinations there are, and how many had to be looked at."""

    node: Node
    combinations: int
    looked_at: int


def cheapest(
    costs: Sequence[Sequence[float]],
    look: Callable[[Levels], tuple[float, int] | None],
) -> Found | None:
    """The node of least loss among those that `look` admits, None if it admits none.

    Args:
        costs: for each column what its labels alone lose at each level, never less at a higher one.
        look: the loss and the suppressed rows of a combination, or None if neither it nor anything below it
            is admissible. The loss must be at least the sum of the costs of its levels; it is infinite for a
            combination that is not admissible although some below it may be.

    Raises:
        InvalidParameter: if there are too many combinations.
    """
    heights = [len(levels) for levels in costs]
    count = math.prod(heights)
    if count > _MOST:
        raise InvalidParameter(
            f"The hierarchies have {count:,} combinations of levels; give fewer or shorter ones, "
            f"so that there are at most {_MOST:,}."
        )
    search = _Search(costs, look)
    while (start := search.next()) is not None:
        search.climb(start)
    return None if search.best is None else Found(search.best, count, search.looked_at)


class _Search:
    """What is known so far: which combinations are still worth a look, and the best of those looked at."""

    def __init__(
        self, costs: Sequence[Sequence[float]], look: Callable[[Levels], tuple[float, int] | None]
    ) -> None:
        self.look = look
        self.shape = tuple(len(levels) for levels in costs)
        floors = np.zeros(self.shape)
        for place, levels in enumerate(costs):
            beside = [1] * len(costs)
            beside[place] = -1
            floors = floors + np.reshape(np.asarray(levels, dtype=np.float64), beside)
        self.floors: npt.NDArray[np.float64] = floors
        self.open = np.ones(self.shape, dtype=bool)
        self.order = np.argsort(floors, axis=None, kind="stable")
        self.at = 0
        self.best: Node | None = None
        self.looked_at = 0

    def next(self) -> Levels | None:
        """The open combination with the lowest floor."""
        flat = self.open.reshape(-1)
        while self.at < len(self.order) and not flat[self.order[self.at]]:
            self.at += 1
        if self.at == len(self.order):
            return None
        return tuple(int(level) for level in np.unravel_index(self.order[self.at], self.shape))

    def climb(self, start: Levels) -> None:
        """Find by bisection where on a way up from here combinations begin to be admissible."""
        way = self._way(start)
        low, high = 0, len(way) - 1
        while low < high:
            middle = (low + high) // 2
            if self.open[way[middle]] and not self.ask(way[middle]):
                low = middle + 1
            else:
                high = middle
        if self.open[way[low]]:
            self.ask(way[low])

    def _way(self, start: Levels) -> list[Levels]:
        """From here one level up at a time, in the column where it costs least, while there is one to ask."""
        way = [start]
        while True:
            here = way[-1]
            ups = [(*here[:place], here[place] + 1, *here[place + 1 :]) for place in range(len(here))]
            above = [up for place, up in enumerate(ups) if up[place] < self.shape[place] and self.open[up]]
            if not above:
                return way
            way.append(min(above, key=lambda up: (self.floors[up], up)))

    def ask(self, levels: Levels) -> bool:
        """Look at a combination and close all that this makes pointless; False if all below it is, too."""
        self.looked_at += 1
        seen = self.look(levels)
        self.open[levels] = False
        if seen is None:
            self.open[tuple(slice(0, level + 1) for level in levels)] = False
            return False
        if math.isinf(seen[0]):
            return True
        node = Node(round(seen[0], 12), seen[1], sum(levels), levels)
        if self.best is None or node < self.best:
            self.best = node
            self.open &= self.floors <= node.loss + _SLACK
        return True
