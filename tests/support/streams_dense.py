"""The slow way: whole matrices of fractions, and the means that two neighbouring streams have on one view."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.continual import Continual, Factorisation
from sfumato.continual.factorisation import SCALE_BITS

Matrix = list[list[Fraction]]


def matrix(plan: Factorisation) -> Matrix:
    """C·D, exactly."""
    column = plan.factor.exact(plan.horizon)
    scales = [Fraction(plan.scale(t), 2**SCALE_BITS) for t in range(plan.horizon)]
    steps = range(plan.horizon)
    return [[column[i - t] * scales[t] if i >= t else Fraction(0) for t in steps] for i in steps]


def inverted(lower: Matrix) -> Matrix:
    """The inverse of a lower triangular matrix."""
    size = len(lower)
    found = [[Fraction(0)] * size for _ in range(size)]
    for t in range(size):
        for i in range(t, size):
            rest = sum((lower[i][k] * found[k][t] for k in range(t, i)), Fraction(0))
            found[i][t] = ((i == t) - rest) / lower[i][i]
    return found


def largest(plan: Factorisation) -> Fraction:
    """The greatest squared norm of C·D·x over all places and signs of a unit's steps, by trying all."""
    dense = matrix(plan)
    best = Fraction(0)
    for count in range(1, plan.touches + 1):
        for places in itertools.combinations(range(plan.horizon), count):
            if any(b - a < plan.apart for a, b in itertools.pairwise(places)):
                continue
            for signs in itertools.product((1, -1), repeat=count - 1):
                pairs = list(zip((1, *signs), places, strict=True))
                rows = [sum(sign * row[t] for sign, t in pairs) for row in dense]
                best = max(best, sum((value * value for value in rows), Fraction(0)))
    return best


def variance(plan: Factorisation, weights: list[int]) -> Fraction:
    """The variance of a sum of releases, over that of z."""
    noise = inverted(matrix(plan))
    steps = range(plan.horizon)
    parts = [sum((w * noise[i][s] for i, w in enumerate(weights)), Fraction(0)) for s in steps]
    return sum((part * part for part in parts), Fraction(0))


def means(mechanism: Continual, values: list[list[int]], view: list[np.ndarray]) -> np.ndarray:
    """What each step of a view is centred at, for a stream of values, given the steps of the view before.

    The view is v = 2**fine·D·x + ν, in units of the noise: a release is a rounding of it.
    """
    factor = mechanism.plan.factor
    state: Any = np.zeros((factor.words, mechanism.groups), object)
    centres = []
    for t, (row, seen) in enumerate(zip(values, view, strict=True)):
        fixed = np.array([placed(mechanism, t, value) for value in row], object)
        centres.append(fixed - factor.carried(state, t))
        state = factor.advanced(state, t, seen - fixed)
    return np.array(centres)


def placed(mechanism: Continual, step: int, value: int) -> int:
    """A value in units of the noise, with the factor of its step."""
    return on_grid(mechanism, value) * mechanism.plan.scale(step) << (mechanism.fine - SCALE_BITS)


def on_grid(mechanism: Continual, value: int) -> int:
    if mechanism.exponent <= 0:
        return value << -mechanism.exponent
    return (value + (1 << (mechanism.exponent - 1))) >> mechanism.exponent


def view_of(mechanism: Continual, values: list[list[int]], secret: bytes) -> list[np.ndarray]:
    """The view that a course has: its noise, by the recursion itself, on top of the placed values."""
    from sfumato.continual.course import step_noise

    factor = mechanism.plan.factor
    state: Any = np.zeros((factor.words, mechanism.groups), np.int64)
    view = []
    for t, row in enumerate(values):
        drawn = step_noise(secret, mechanism.variance, mechanism.groups, time=t, measure=0)
        noise = drawn - factor.carried(state, t)
        state = factor.advanced(state, t, noise)
        view.append(np.array([placed(mechanism, t, value) for value in row], object) + noise)
    return view


def shift(mechanism: Continual, left: list[list[int]], right: list[list[int]], secret: bytes) -> float:
    """How far apart two streams are on a view of the first, in sigmas: at most √(2ρ) if paid for."""
    view = view_of(mechanism, left, secret)
    apart = means(mechanism, left, view) - means(mechanism, right, view)
    return float((sum(int(value) ** 2 for value in apart.ravel()) / mechanism.variance) ** 0.5)
