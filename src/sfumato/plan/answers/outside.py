"""The results of extra questions: values and intervals, as `plan.answers.estimate` takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.plan.answers.boxes import Box
from sfumato.plan.intervals.cdf import quantile_intervals
from sfumato.plan.intervals.rings import Aim, Rings
from sfumato.plan.prices.extras import PricedDistinct, PricedExtra, PricedQuantiles, QuantileSet
from sfumato.plan.prices.selecting import Counting
from sfumato.plan.prices.touched import PricedTouched

__all__ = ["Movable", "Outside", "Selected", "outside_of"]


class Outside(Protocol):
    """What an extra question gave, one row a group."""

    def value(self, place: int) -> NDArray[Any]:
        """The released numbers of one of its results."""
        ...

    def interval(self, place: int, risk: float) -> Box:
        """Ends that hold the number before noise with probability at least 1 − risk."""
        ...


@runtime_checkable
class Movable(Outside, Protocol):
    """Of quantiles: what they are if there are more rows than were counted."""

    def moved(self, place: int, risk: float, added: float) -> Box:
        """Ends that hold the number over all rows, up to so many of which were not counted."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Quantiles:
    """The noisy counts of cells, and the quantiles that are read off them."""

    extra: QuantileSet
    aims: tuple[Aim, ...]
    cells: NDArray[np.int64]
    rings: Rings

    @classmethod
    def of(
        cls, extra: QuantileSet, aims: tuple[Aim, ...], cells: NDArray[np.int64], rings: Rings
    ) -> _Quantiles:
        moved = [rings.estimates(aim, cells[:, i]) for i, aim in enumerate(aims)]
        # Levels that are estimated one by one could cross.
        return cls(extra, aims, np.sort(np.column_stack(moved), axis=1), rings)

    def value(self, place: int) -> NDArray[Any]:
        values = self.extra.grid.value(self.cells[:, place])
        return np.rint(values).astype(np.int64) if self.extra.whole else values

    def interval(self, place: int, risk: float) -> Box:
        return self.moved(place, risk, 0.0)

    def moved(self, place: int, risk: float, added: float) -> Box:
        return self.extra.grid.ends(*self.rings.intervals(self.aims[place], risk, place, added))


@dataclass(frozen=True, slots=True, eq=False)
class _FormerQuantiles:
    """Those of an answer that was kept when the cells of the whole grid were counted in a tree."""

    priced: PricedQuantiles
    cells: NDArray[np.int64]
    nodes: NDArray[np.float64]

    def value(self, place: int) -> NDArray[Any]:
        extra = self.priced.extra
        values = extra.grid.value(self.cells[:, place])
        return np.rint(values).astype(np.int64) if extra.whole else values

    def interval(self, place: int, risk: float) -> Box:
        extra, (tree, noise) = self.priced.extra, self.priced.former
        return extra.grid.ends(*quantile_intervals(tree, self.nodes, noise, extra.levels[place], risk))


@dataclass(frozen=True, slots=True, eq=False)
class _Distinct:
    """The noisy numbers of distinct values."""

    priced: PricedDistinct
    noisy: NDArray[Any]

    def value(self, place: int) -> NDArray[Any]:
        del place
        return self.noisy

    def interval(self, place: int, risk: float) -> Box:
        del place
        wide = self.priced.noise.width(risk)
        return np.maximum(self.noisy - wide, 0.0), self.noisy + wide


@dataclass(frozen=True, slots=True, eq=False)
class Selected:
    """The noisy numbers of units in the groups that were selected.

    Attributes:
        selection: What selected them.
        noisy: Their noisy numbers of units.
    """

    selection: Counting
    noisy: NDArray[np.int64]

    def value(self, place: int) -> NDArray[Any]:
        """The same for all places."""
        del place
        return self.noisy

    def interval(self, place: int, risk: float) -> Box:
        """Given that the group was selected: the bias of survivors is in it."""
        del place
        low, high = self.selection.interval(self.noisy, 1 - risk)
        return low.astype(np.float64), high.astype(np.float64)


def outside_of(priced: PricedExtra, arrays: Sequence[NDArray[Any]]) -> Outside:
    """The results of an extra question from what was released for it."""
    assert not isinstance(priced, PricedTouched)
    if isinstance(priced, PricedQuantiles):
        return _quantiles_of(priced, arrays)
    return _Distinct(priced, arrays[0])


def _quantiles_of(priced: PricedQuantiles, arrays: Sequence[NDArray[Any]]) -> Outside:
    """From cells, cuts, the weights between these, and a mark; answers from before have fewer arrays.

    Raises:
        ValueError: if they do not have a row for each group.
    """
    if len({array.shape[:1] for array in arrays[:3]}) != 1 or any(array.ndim != 2 for array in arrays[:3]):
        raise ValueError("quantiles without a row for each group")
    cells = arrays[0].astype(np.int64)
    if len(arrays) == 2:
        return _FormerQuantiles(priced, cells, arrays[1].astype(np.float64))
    aims = priced.former_aims if len(arrays) == 3 else priced.aims
    cuts, noisy = arrays[1].astype(np.int64), arrays[2].astype(np.float64)
    if cuts.shape[1] != noisy.shape[1] + 1:
        raise ValueError("other cuts than weights between them")
    rings = Rings(priced.extra.grid.cells, cuts, noisy, priced.noise, len(priced.extra.levels))
    return _Quantiles.of(priced.extra, aims, cells, rings)
