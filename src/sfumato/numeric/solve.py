"""Finding points on curves of one variable: minima, crossings, and crossings with a side that is certain."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["approach", "fall", "minimum"]


def minimum(f: Callable[[float], float], start: float, least: float, most: float) -> float:
    """Roughly where a function of a positive number with a single minimum has it: within a few percent.

    Doubles or halves from the start until the minimum is passed, then narrows by golden sections in the
    logarithm. Infinite values are taken as too far to the right.
    """
    x, y = start, f(start)
    while not math.isfinite(y) and x > least:
        x /= 4.0
        y = f(x)
    right, y_right = x * 2, f(x * 2)
    factor = 2.0
    if not y_right < y:
        factor = 0.5
        right, y_right = x / 2, f(x / 2)
    behind = x / factor
    while y_right < y and least < right < most:
        behind, x, y = x, right, y_right
        right = x * factor
        y_right = f(right)
    low, high = math.log(min(behind, right)), math.log(max(behind, right))
    golden = (math.sqrt(5.0) - 1) / 2
    a, b = high - golden * (high - low), low + golden * (high - low)
    at_a, at_b = f(math.exp(a)), f(math.exp(b))
    for _ in range(7):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - golden * (high - low)
            at_a = f(math.exp(a))
        else:
            low, a, at_a = a, b, at_b
            b = low + golden * (high - low)
            at_b = f(math.exp(b))
    point = math.exp(a if at_a <= at_b else b)
    return point if min(at_a, at_b) <= y else x


def approach(f: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Roughly where a falling positive function meets a target between two points: the Illinois rule.

    Works on the logarithm of f over the target; nothing is certain about the answer but that it is a guess.
    """
    above, below = _log(f(low), target), _log(f(high), target)
    side = 0
    for _ in range(60):
        middle = low + (high - low) * (above / (above - below) if above > below else 0.5)
        if not low < middle < high:
            middle = 0.5 * (low + high)
        value = _log(f(middle), target)
        if value > 0:
            low, above, below, side = middle, value, below / 2 if side == 1 else below, 1
        else:
            high, below, above, side = middle, value, above / 2 if side == -1 else above, -1
        if abs(value) < 1e-14 or high - low <= 4e-16 * abs(high):
            return middle
    return middle


def _log(value: float, target: float) -> float:
    """log(value/target), kept finite."""
    return math.log(value) - math.log(target) if value > 0 else -1e3


def fall(
    f: Callable[[float], float], target: float, low: float, high: float, *, guess: float, tolerance: float
) -> tuple[float, float]:
    """Two points around where a falling function crosses a target: above it at the first only.

    Both ends were evaluated, so each is certain whatever the function does in between. The interval is
    closed in around the guess by steps that grow, then halved. `low` must be above the target and `high`
    not.
    """
    step, middle = tolerance, min(max(guess, low), high)
    for _ in range(200):
        if high - low <= 2 * tolerance or not low < middle < high:
            middle = 0.5 * (low + high)
            if high - low <= 2 * tolerance or not low < middle < high:
                break
        if f(middle) > target:
            low, following = middle, middle + step
        else:
            high, following = middle, middle - step
        # Once the steps have grown past the guess's error the other end is near: halve.
        middle = following if low < following < high else 0.5 * (low + high)
        step *= 4
    return low, high
