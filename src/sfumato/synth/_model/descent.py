"""`descend`: the least value of a smooth convex function, by L-BFGS with a diagonal of the user's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sfumato.synth._model.beliefs import Floats

__all__ = ["Moves", "Point", "descend", "moves_kept"]

_MOST_MOVES, _LEAST_MOVES = 40, 8
_NUMBERS = 2**19  # that all moves have together, where that leaves a few of them
_FIRST = 0.3  # how much of the diagonal's step is taken when nothing is known yet
_HALVINGS = 30


class Point(NamedTuple):
    """A point, and what the function says of it.

    Attributes:
        at: The point.
        value: Of the function.
        slope: Its gradient.
        scale: About the inverse of each of its second derivatives.
        extra: Whatever else the function has to tell.
    """

    at: Floats
    value: float
    slope: Floats
    scale: Floats
    extra: Floats


class Moves(deque[tuple[Floats, Floats, float]]):
    """The last moves: by how much, how the gradient turned, and the inverse of the product of both."""

    def __init__(self, size: int) -> None:
        """None yet, of points of so many numbers."""
        super().__init__(maxlen=moves_kept(size))


def moves_kept(size: int) -> int:
    """How many of the last moves are kept: fewer where a point has many numbers, since they take room."""
    return min(max(_NUMBERS // max(size, 1), _LEAST_MOVES), _MOST_MOVES)


def descend(
    function: Callable[[Floats], Point],
    start: Point,
    moves: Moves,
    *,
    done: Callable[[Point], bool],
    steps: int,
) -> Point:
    """Goes downhill until `done`, or for so many steps, or until rounding hides the way.

    The moves are added to; those of a function that is almost the same make a good start.

    Source: Liu, Nocedal 1989; a step is taken when the value falls enough, or, because values may be lost to
    rounding where slopes are not, when the slope along it has shrunk by half (Hager, Zhang 2005).
    """
    point = start
    for _ in range(steps):
        if done(point):
            break
        way = _direction(point, moves)
        down = float(way @ point.slope)
        if not down < 0:
            break
        found = _search(function, point, way, down)
        if found is None:
            if not moves:
                break
            moves.clear()
            continue
        move, turn = found.at - point.at, found.slope - point.slope
        curve = float(move @ turn)
        if curve > 1e-14 * float(np.sqrt((move @ move) * (turn @ turn))):
            moves.append((move, turn, 1 / curve))
        point = found
    return point


def _direction(point: Point, moves: Moves) -> Floats:
    """Minus the gradient times what the last moves tell of the inverse of the second derivative."""
    way = -point.slope
    parts = list[float]()
    for move, turn, rate in reversed(moves):
        part = rate * float(move @ way)
        way -= part * turn
        parts.append(part)
    factor = _FIRST
    if moves:
        _, turn, rate = moves[-1]
        factor = 1 / (rate * float(turn @ (point.scale * turn)))
    way *= point.scale
    way *= factor
    for (move, turn, rate), part in zip(moves, reversed(parts), strict=True):
        way += (part - rate * float(turn @ way)) * move
    return way


def _search(function: Callable[[Floats], Point], point: Point, way: Floats, down: float) -> Point | None:
    length = 1.0
    for _ in range(_HALVINGS):
        found = function(point.at + length * way)
        slope = float(way @ found.slope)
        if found.value <= point.value + 1e-4 * length * down or abs(slope) <= 0.5 * abs(down):
            return found
        # where a straight line through both slopes is zero
        crosses = np.isfinite(slope) and slope != down
        length *= min(0.6, max(0.05, down / (down - slope))) if crosses else 0.1
    return None
