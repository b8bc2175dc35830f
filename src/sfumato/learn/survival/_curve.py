"""`Curve`: survival from noisy counts in cells of time, with bands that hold sampling and noise."""

from __future__ import annotations

from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.isotonic import isotonic_regression

from sfumato.random import simulation

__all__ = ["Curve"]

Floats: TypeAlias = NDArray[np.float64]

_FEWEST = 12.0  # at risk
_CLEAR = 8.0  # at risk, in deviations of its noise
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
    def enough(self) -> NDArray[np.bool_]:
        """Whether enough people are at risk through the whole of each cell for what follows to hold."""
        noise = np.linalg.norm(self.whole @ self.spread, axis=1)
        return np.asarray(self.least >= np.maximum(_FEWEST, _CLEAR * noise))

    @cached_property
    def clear(self) -> int:
        """In how many cells from the start that is so."""
        return self._size if self.enough.all() else int(np.argmin(self.enough))

    @cached_property
    def rates(self) -> Floats:
        """The share of those at risk that has an event in each cell; noise may make it less than 0."""
        return self._shares(self.at_risk)

    def _shares(self, risk: Floats) -> Floats:
        shown = np.maximum(risk, np.maximum(self.noise, 1.0))
        return np.asarray(np.clip(self.events / shown, -_STEEPEST, _STEEPEST))

    @cached_property
    def survival(self) -> Floats:
        """The share that survives each cell: the nearest curve that never rises, between 0 and 1."""
        raw = np.exp(-np.cumsum(-np.log1p(-self.rates)))
        weights = np.maximum(self.at_risk, 1.0)
        return np.asarray(isotonic_regression(raw, sample_weight=weights, y_min=0, y_max=1, increasing=False))

    @cached_property
    def _hazard(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Up to each clear cell: the hazard, its sampling variance a hazard, its noise, its slack.

        The slack, down and up, is what it would be if all who leave within a cell did so at its end, or at
        its start: Kaplan and Meier's own estimate lies between, whenever they do.
        """
        clear = self.clear
        rates, risk = self.rates[:clear], self.at_risk[:clear]
        hazard = np.cumsum(-np.log1p(-rates))
        # Counts of events move the hazard by the first line; numbers at risk by the second.
        moved = np.zeros((clear, len(self.spread)))
        moved[np.arange(clear), np.arange(clear)] = 1 / (risk * (1 - rates))
        moved -= (rates / (risk * (1 - rates)))[:, None] * self.risk[:clear]
        noise = np.cumsum(moved, axis=0) @ self.spread
        greenwood = np.cumsum(rates / (risk * (1 - rates)))
        usual = np.cumsum(1 / risk) / np.arange(1, clear + 1)
        some = (hazard > 0) & (greenwood > 0)
        each = np.divide(greenwood, hazard, out=usual.copy(), where=some)
        each = np.clip(each, 1 / risk[:1], 1.2 * np.maximum.accumulate(1 / risk))
        lower, upper = (self._shares(part)[:clear] for part in (self.most, self.least))
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
        return self.interval(float(norm.ppf(0.5 + level / 2)))

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
        low, high = self.interval(float(np.quantile(most, level)))
        # All ends hold at once, so that each may use its neighbours'.
        return np.maximum.accumulate(low[::-1])[::-1], np.minimum.accumulate(high)


def _risk(size: int, gone: float) -> Floats:
    """From counts to the number at risk in each cell."""
    whole = np.zeros((size, 2 * size + 1))
    place = np.arange(size)
    later = np.subtract.outer(place, place) <= 0
    whole[:, :size], whole[:, size:-1], whole[:, -1] = later, later, 1
    whole[place, size + place] -= gone
    return whole
