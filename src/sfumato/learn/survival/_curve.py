"""`Curve`: survival from noisy counts in cells of time, with bands that hold sampling and noise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.isotonic import isotonic_regression

from sfumato.random import simulation

__all__ = ["Curve", "stops"]

Floats: TypeAlias = NDArray[np.float64]

_FEWEST = 12.0  # at risk
_CLEAR = 8.0  # at risk, in deviations of its noise
_SURE = 10.0  # likewise, where noise hardly hides whether there are enough
_WIDER = 1.04  # what bands of many cells need beside the law that they are drawn by
_STOPS = 6
_DRAWS = 4000
_STEEPEST = 0.9


class Curve:
    """A survival curve over J cells, from J counts of events, J of who left, and one of survivors.

    Attributes:
        events: About how many events are in each cell.
        left: About how many left in each cell.
        at_risk: About how many were at risk in each cell; who left counts for a part.
        risk: From the counts to `at_risk`.
        least: About how many were at risk through the whole cell.
        most: About how many were at its start; with discrete durations, who leaves there has left before.
        whole: From the counts to `least`.
        spread: From independent noise of deviation 1 to that of the counts.
    """

    def __init__(self, counts: Floats, spread: Floats, *, discrete: bool) -> None:
        self._size = len(counts) // 2
        self.events, self.left = counts[: self._size], counts[self._size : -1]
        self.spread = spread
        self.risk = _risk(self._size, 1.0 if discrete else 0.5)
        self.at_risk = self.risk @ counts
        # Who leaves within a cell is at risk for an unknown part of it: for none, or for all of it.
        self.whole = _risk(self._size, 1.0)
        self.least, self.most = self.whole @ counts, self.at_risk + (0.0 if discrete else self.left / 2)

    @cached_property
    def noise(self) -> Floats:
        """The deviation of the noise of each number at risk."""
        return np.asarray(np.linalg.norm(self.risk @ self.spread, axis=1))

    @cached_property
    def clear(self) -> int:
        """In how many cells from the start enough people are at risk throughout for what follows to hold."""
        return self.seen(_CLEAR)

    def seen(self, clear: float) -> int:
        """In how many cells from the start those at risk throughout are so many deviations of their noise."""
        return _first(self.least >= np.maximum(_FEWEST, clear * self._least_noise))

    @cached_property
    def _least_noise(self) -> Floats:
        return np.asarray(np.linalg.norm(self.whole @ self.spread, axis=1))

    @cached_property
    def staying(self) -> int:
        """In how many cells from the start at most half of the people leave: of others little is known."""
        return _first(self.least >= self.most / 2)

    @cached_property
    def rates(self) -> Floats:
        """The share of those at risk that has an event in each cell; noise may make it less than 0."""
        return self.shares(self.at_risk)

    def shares(self, risk: Floats) -> Floats:
        """The share of so many at risk that has an event in each cell."""
        shown = np.maximum(risk, np.maximum(self.noise, 1.0))
        return np.asarray(np.clip(self.events / shown, -_STEEPEST, _STEEPEST))

    @cached_property
    def survival(self) -> Floats:
        """The share that survives each cell: the nearest curve that never rises, between 0 and 1."""
        raw = np.exp(-np.cumsum(-np.log1p(-self.rates)))
        weights = np.maximum(self.at_risk, 1.0)
        return np.asarray(isotonic_regression(raw, sample_weight=weights, y_min=0, y_max=1, increasing=False))

    @cached_property
    def moved(self) -> Floats:
        """By what independent noise of deviation 1 moves the hazard of each clear cell."""
        cells = self.clear
        rates, risk = self.rates[:cells], self.at_risk[:cells]
        # Counts of events move the hazard by the first line; numbers at risk by the second.
        moved = np.zeros((cells, len(self.spread)))
        moved[np.arange(cells), np.arange(cells)] = 1 / (risk * (1 - rates))
        moved -= (rates / (risk * (1 - rates)))[:, None] * self.risk[:cells]
        return np.asarray(moved @ self.spread)

    @cached_property
    def _hazard(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Up to each clear cell: the hazard, its sampling variance a hazard, its noise, its slack.

        The slack, down and up, is what it would be if all who leave within a cell did so at its end, or at
        its start: Kaplan and Meier's own estimate lies between, whenever they do.
        """
        clear = self.clear
        rates, risk = self.rates[:clear], self.at_risk[:clear]
        hazard = np.cumsum(-np.log1p(-rates))
        noise = np.cumsum(self.moved, axis=0)
        greenwood = np.cumsum(rates / (risk * (1 - rates)))
        usual = np.cumsum(1 / risk) / np.arange(1, clear + 1)
        some = (hazard > 0) & (greenwood > 0)
        each = np.divide(greenwood, hazard, out=usual.copy(), where=some)
        each = np.clip(each, 1 / risk[:1], 1.2 * np.maximum.accumulate(1 / risk))
        lower, upper = (self.shares(part)[:clear] for part in (self.most, self.least))
        down = np.abs(hazard + np.cumsum(np.log1p(-lower)))
        up = np.abs(hazard + np.cumsum(np.where(upper < _STEEPEST, np.log1p(-upper), -np.inf)))
        return hazard, each, noise, down, up

    def interval(self, times: float) -> tuple[Floats, Floats]:
        """The ends at so many deviations, for all cells.

        A score interval: the hazards L that lie within so many deviations of what was measured, where the
        deviation is that of L. Beyond the clear cells survival is only known not to rise.
        """
        hazard, each, noise, down, up = self._hazard
        spread = np.maximum(hazard, 0) * each + (noise**2).sum(axis=1)
        middle, half = hazard + times**2 * each / 2, times * np.sqrt(spread + (times * each) ** 2 / 4)
        low, high = np.zeros(self._size), np.ones(self._size)
        low[: self.clear] = np.exp(-(middle + half + up))
        high[: self.clear] = np.exp(-np.maximum(middle - half - down, 0))
        high[self.clear :] = high[self.clear - 1] if self.clear else 1.0
        return np.minimum(low, self.survival), np.maximum(high, self.survival)

    def pointwise(self, level: float) -> tuple[Floats, Floats]:
        """The ends of an interval for each cell by itself."""
        return self.interval(float(norm.ppf(0.5 + level / 2)) * _WIDER)

    def simultaneous(self, level: float) -> tuple[Floats, Floats]:
        """The ends of a band that holds the whole curve at once.

        The most deviations that the curve is off anywhere are simulated: Greenwood's process with independent
        steps, and the noise, whose law is known.
        """
        hazard, each, noise, *_ = self._hazard
        sampling = np.maximum.accumulate(np.maximum(hazard, 0) * each)
        together = np.minimum.outer(sampling, sampling) + noise @ noise.T
        deviation = np.maximum(np.sqrt(np.diag(together)), 1e-150)
        values, directions = np.linalg.eigh(together / np.outer(deviation, deviation))
        root = directions * np.sqrt(np.maximum(values, 0))
        most = np.abs(simulation(0).normal(size=(_DRAWS, self.clear)) @ root.T).max(axis=1)
        low, high = self.interval(float(np.quantile(most, level)) * _WIDER)
        # All ends hold at once, so that each may use its neighbours'.
        return np.maximum.accumulate(low[::-1])[::-1], np.minimum.accumulate(high)


def stops(curves: Sequence[Curve]) -> list[int]:
    """Over how many cells from the start groups can be compared: a few numbers; none: not at all.

    Where to stop is chosen by noisy counts, so that a figure at the last cell that is clear would be chosen
    by its own noise. What holds for all of these numbers holds for the one that no noise has chosen, which
    lies among them but for a chance.
    """
    least, most = (
        min(min(curve.seen(clear), curve.staying) for curve in curves) for clear in (_SURE, _CLEAR)
    )
    some = np.linspace(max(least, 1), most, _STOPS) if most else np.zeros(0)
    return sorted({round(each) for each in some.tolist()})


def _first(enough: NDArray[np.bool_]) -> int:
    return len(enough) if enough.all() else int(np.argmin(enough))


def _risk(size: int, gone: float) -> Floats:
    """From counts to the number at risk in each cell."""
    whole = np.zeros((size, 2 * size + 1))
    place = np.arange(size)
    later = np.subtract.outer(place, place) <= 0
    whole[:, :size], whole[:, size:-1], whole[:, -1] = later, later, 1
    whole[place, size + place] -= gone
    return whole
