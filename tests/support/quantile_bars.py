"""A slow reference for the bars of quantiles: how often they hold the truth, how wide they are, by drawing.

Tables of many shapes, the truth by its definition, and answers drawn by the mechanisms that a release uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.mechanisms import Laplace, NestedQuantiles
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.intervals.rings import Aim, Rings, cuts_around, weights_between
from sfumato.testing import seeded

SMOOTH = ("uniform", "normal", "lognormal", "two bumps", "heavy tails", "rising")
TIED = ("few values", "one value", "two ends", "rounded")
KINDS = (*SMOOTH, *TIED)


def table(kind: str, rows: int, cells: int, seed: int = 0) -> np.ndarray:
    """The weights of the cells of a grid over a table of this kind."""
    draw = np.random.default_rng([KINDS.index(kind), rows, seed])
    spread = draw.standard_normal(rows)
    shares = {
        "uniform": lambda: draw.random(rows),
        "normal": lambda: 0.5 + 0.1 * spread,
        "lognormal": lambda: np.exp(spread) / 50,
        "two bumps": lambda: np.where(draw.random(rows) < 0.5, 0.2, 0.8) + 0.02 * spread,
        "heavy tails": lambda: np.abs(draw.standard_cauchy(rows)) / 200,
        "rising": lambda: np.sqrt(draw.random(rows)),
        "few values": lambda: draw.integers(0, 7, rows) / 7 + 0.05,
        "one value": lambda: np.full(rows, 0.3),
        "two ends": lambda: draw.integers(0, 2, rows) * 0.999,
        "rounded": lambda: np.round(draw.random(rows) * 64) / 64,
    }[kind]()
    return np.bincount(np.clip(shares * cells, 0, cells - 1).astype(np.int64), minlength=cells)


def target(aim: Aim, rows: int) -> float:
    """The rank that a level aims at."""
    plain = float(aim.level) * rows
    if aim.guard is None:
        return plain
    if 2 * aim.level < 1:
        return min(rows / 2, aim.guard)
    return max(rows / 2, rows - aim.guard)


def quantile_cells(weights: np.ndarray, rank: float) -> np.ndarray:
    """All cells with a quantile in them, by the definition."""
    upto = np.cumsum(weights)
    return np.flatnonzero((upto - weights <= rank) & (rank <= upto))


@dataclass(frozen=True)
class Drawn:
    """Many answers about one table.

    Attributes:
        weights: The table.
        rings: What was counted.
        aims: The ranks that were aimed at.
        selected: The cells that were selected, answers × levels.
    """

    weights: np.ndarray
    rings: Rings
    aims: tuple[Aim, ...]
    selected: np.ndarray

    def truth(self, place: int) -> np.ndarray:
        return quantile_cells(self.weights, target(self.aims[place], int(self.weights.sum())))

    def cells(self, place: int) -> np.ndarray:
        return self.rings.estimates(self.aims[place], self.selected[:, place])

    def rank_errors(self, place: int, cells: np.ndarray) -> np.ndarray:
        rank, upto = target(self.aims[place], int(self.weights.sum())), np.cumsum(self.weights)
        return np.maximum(0, np.maximum((upto - self.weights)[cells] - rank, rank - upto[cells]))

    def held(self, place: int, risk: float) -> np.ndarray:
        """Which intervals hold the first and the last cell with the quantile, two rows."""
        low, high = self.rings.intervals(self.aims[place], risk, place)
        ends = self.truth(place)[[0, -1], None]
        return (low <= ends) & (ends <= high)

    def ratio(self, place: int, risk: float) -> float:
        """The mean half-width over the error that is exceeded as seldom, both with half of a cell."""
        low, high = self.rings.intervals(self.aims[place], risk, place)
        cells, truth = self.cells(place), self.truth(place)
        off = np.maximum(0, np.maximum(truth[0] - cells, cells - truth[-1]))
        wide = np.maximum(high - cells, cells - low) + 0.5
        return float(wide.mean() / (np.quantile(off, 1 - risk) + 0.5))


def drawn(
    weights: np.ndarray, levels: tuple[str, ...], epsilon: float, answers: int, *, exchange: bool = False
) -> Drawn:
    """Answers about a table at a price: a quarter selects, a sixth for one inner level; the rest counts."""
    price, moved = Fraction(epsilon), 2 if exchange else 1
    alone = len(levels) == 1 and not NestedQuantiles.is_outer(levels[0])
    part = price / 6 if alone else price / 4
    mechanism = NestedQuantiles(part, levels, sensitivity=1, exchange=exchange)
    laplace = Laplace(price - part, moved)
    with seeded(f"bars {weights.sum()} {levels} {epsilon} {answers}"):
        many = np.broadcast_to(weights, (answers, weights.size))
        selected = mechanism.select_many(many)
        cuts = cuts_around(selected, weights.size)
        noisy = np.asarray(laplace.release(weights_between(many, cuts)), dtype=float)
    guard = float(mechanism.guard(weights.size))
    aims = tuple(
        Aim(
            level,
            guard if level in (0, 1) else None,
            (2 / variance) ** 0.5,
            guard if mechanism.is_outer(level) else None,
        )
        for level, variance in zip(mechanism.levels, mechanism.rank_variances, strict=True)
    )
    rings = Rings(weights.size, cuts, noisy, Noise.of(laplace), len(levels))
    return Drawn(weights, rings, aims, selected)
