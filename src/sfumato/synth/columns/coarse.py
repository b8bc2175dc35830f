"""`Coarse`: few cells out of many, chosen by noisy counts; and from each to fine ones. All public."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.random import Simulation
from sfumato.synth.columns.fine import Fine
from sfumato.synth.columns.scales import Scales

__all__ = ["WIDE", "Coarse", "affordable", "as_it_is", "coarse"]

Floats: TypeAlias = NDArray[np.float64]

WIDE = 64
"""A column with more cells than this is held in fewer: bins of a number, common values of a list."""

_CERTAIN = 3.0  # so many times its noise must a count be for its cell to stand by itself
_FEWEST = 4  # coarse cells of a number, whatever the noise
_HALVINGS = 30


@dataclass(frozen=True, slots=True)
class Coarse:
    """Which coarse cell each fine one is in, and how likely each fine one is there.

    Attributes:
        place: The coarse cell of each fine one.
        weight: About how many rows each fine cell has, none of them below 0; a coarse cell has some.
    """

    place: NDArray[np.int64]
    weight: Floats

    @property
    def size(self) -> int:
        """How many coarse cells there are."""
        return int(self.place.max()) + 1

    def codes(self, codes: NDArray[Any]) -> NDArray[Any]:
        """The coarse cells of fine ones."""
        table = self.place.astype(np.uint8 if self.size <= 2**8 else np.uint16)
        return np.asarray(table[codes])

    def finer(self, codes: NDArray[Any], rng: Simulation) -> NDArray[np.int64]:
        """A fine cell in each coarse one, as likely as its weight says."""
        order = np.argsort(self.place, kind="stable")
        edges = np.searchsorted(self.place[order], np.arange(self.size + 1))
        sums = np.concatenate([[0.0], np.cumsum(self.weight[order])])
        low, high = sums[edges[:-1]][codes], sums[edges[1:]][codes]
        drawn = low + rng.random(len(codes)) * (high - low)
        at = np.clip(np.searchsorted(sums, drawn, side="right") - 1, edges[:-1][codes], edges[1:][codes] - 1)
        return np.asarray(order[at], np.int64)

    def spans(self, column: Fine) -> list[tuple[float, float] | None]:
        """Where each coarse cell of a number begins and ends, with half a step around; None: it is no run.

        Of timestamps in days since 1970-01-01, of times of day in hours: for pictures.
        """
        scale = {"timestamp": 86_400, "time": 3_600}.get(column.kind, 1)
        step = float(column.upper - column.lower) / max(column.steps, 1) / scale if column.steps else 1.0
        found = list[tuple[float, float] | None]()
        for cell in range(self.size):
            fine = np.flatnonzero(self.place == cell)
            is_run = bool(len(fine)) and fine[-1] < column.known and fine[-1] - fine[0] + 1 == len(fine)
            start = float(column.lower) / scale - step / 2
            found.append((start + fine[0] * step, start + (fine[-1] + 1) * step) if is_run else None)
        return found

    def to_arrays(self) -> Mapping[str, NDArray[Any]]:
        """What it is made of."""
        return {"place": self.place, "weight": self.weight}


def as_it_is(column: Fine) -> Coarse:
    """Each cell by itself."""
    return Coarse(np.arange(column.size), np.ones(column.size))


def coarse(column: Fine, told: Scales, most: int, allowed: NDArray[np.bool_] | None = None) -> Coarse:
    """Coarse cells of a column, out of noisy counts of its fine ones.

    Numbers are cut into runs with about as many rows each, and what is missing stays by itself. Of listed
    values the common ones stay, and all others are one cell.

    Args:
        column: The column.
        told: Noisy counts of its cells.
        most: How many coarse cells there may be.
        allowed: Which fine cells a row can be in; all others are one coarse cell by themselves. None: all.
    """
    known, counts = column.known, told.cells
    weight = np.maximum(counts, 0.0)
    stays = np.ones(column.size, bool) if allowed is None else allowed
    inner = np.flatnonzero(stays[:known])
    most = most - column.nullable - (not stays.all())
    place, many = np.zeros(column.size, np.int64), 0
    if column.is_ordered:
        weight[:known] = told.density(stays)
    if len(inner):
        own = counts[inner]
        place[inner] = _runs(weight[inner], most) if column.is_ordered else _common(own, told.sigma, most)
        many = int(place.max()) + 1
    if column.nullable and stays[known]:
        place[known] = many
        many += 1
    if not stays.all():
        place[~stays] = many
        many += 1
    empty = np.bincount(place, weight, many) <= 0
    weight[empty[place]] = 1.0  # nothing is known of what lies within: all alike
    return Coarse(place, weight)


def affordable(told: Scales, sigma: float, most: int) -> int:
    """How many coarse cells a number is held in: more where there are more rows and less noise.

    A pair of numbers with so many cells each has as many rows in a cell, on average, as that count's noise.

    Args:
        told: Noisy counts of the column.
        sigma: About the standard deviation of the noise of later counts.
        most: How many there may be.
    """
    rows = max(float(told.cells.sum()), 0.0)
    return min(max(int(math.sqrt(rows / sigma)), _FEWEST), most)


def _runs(density: Floats, most: int) -> NDArray[np.int64]:
    """Runs of cells with about as much of a density each; a cell with more than that is one by itself."""
    many, most = len(density), max(most, 1)
    if many <= most:
        return np.arange(many)
    total = float(density.sum())
    shares = (density / total if total > 0 else np.full(many, 1 / many)).tolist()
    short, enough = 0.0, 1.0 + 1e-9  # the least room for a run that needs no more runs than there may be
    for _ in range(_HALVINGS):
        room = (short + enough) / 2
        if _filled(shares, room)[-1] < most:
            enough = room
        else:
            short = room
    return np.array(_filled(shares, enough), np.int64)


def _filled(shares: list[float], room: float) -> list[int]:
    """The run of each cell, if each run takes cells until there is no room for the next."""
    found, run, held = list[int](), 0, 0.0
    for share in shares:
        if found and held + share > room:
            run, held = run + 1, 0.0
        found.append(run)
        held += share
    return found


def _common(counts: Floats, sigma: float, most: int) -> NDArray[np.int64]:
    """Common values each by itself, all others in the last cell."""
    many = len(counts)
    if many <= most:
        return np.arange(many)
    order = np.argsort(-counts, kind="stable")[: max(most - 1, 0)]
    stay = np.sort(order[counts[order] > _CERTAIN * sigma])
    place = np.full(many, len(stay), np.int64)
    place[stay] = np.arange(len(stay))
    return place
