"""Centres of few weighted points: k-means on what is public already, from many starts."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.random import Simulation

__all__ = ["gathered"]

Floats: TypeAlias = NDArray[np.float64]

_ROUNDS = 25


def gathered(points: Floats, weights: Floats, number: int, draw: Simulation, *, starts: int = 12) -> Floats:
    """So many centres for weighted points: the best of several starts by k-means++ and Lloyd's rounds.

    Points that are no more than the centres stand for themselves; other centres are among them again.
    """
    best, least = points[np.arange(number) % len(points)], np.inf
    for _ in range(starts if len(points) > number else 0):
        centres = _spread_out(points, weights, number, draw)
        for _ in range(_ROUNDS):
            place = _squares(points, centres).argmin(axis=1)
            members = np.zeros((number, len(points)))
            members[place, np.arange(len(points))] = weights
            mass = members.sum(axis=1, keepdims=True)
            moved = np.divide(members @ points, mass, out=centres.copy(), where=mass > 0)
            if np.array_equal(moved, centres):
                break
            centres = moved
        inertia = float(weights @ _squares(points, centres).min(axis=1))
        if inertia < least:
            best, least = centres, inertia
    return best


def _spread_out(points: Floats, weights: Floats, number: int, draw: Simulation) -> Floats:
    """Starting points by k-means++: each far from those before it (Arthur, Vassilvitskii 2007)."""
    chosen = [int(draw.choice(len(points), p=weights / weights.sum()))]
    squares = _squares(points, points[chosen])[:, 0]
    for _ in range(number - 1):
        mass = weights * squares
        whole = mass.sum()
        chosen.append(int(draw.choice(len(points), p=mass / whole if whole > 0 else None)))
        squares = np.minimum(squares, _squares(points, points[chosen[-1:]])[:, 0])
    return points[chosen]


def _squares(points: Floats, centres: Floats) -> Floats:
    own = np.einsum("ij,ij->i", points, points)[:, None] + np.einsum("ij,ij->i", centres, centres)
    return np.asarray(np.maximum(0.0, own - 2 * points @ centres.T))
