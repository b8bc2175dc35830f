"""Noisy sums on several levels, made to agree: a group is the sum of the groups below it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.plan.nodes import Measured

__all__ = ["reconciled"]


def reconciled(
    measured: Measured, noisy: Sequence[NDArray[Any]], *, rounded: bool = True
) -> list[NDArray[np.float64]]:
    """The least-squares fit of the finest groups to all levels, added up again for each of them.

    All levels have noise of the same law, so that this is the best linear unbiased estimate (Gauss, Markov);
    by conjugate gradients, which need no more steps than there are levels and one (the normal matrix has so
    few eigenvalues). Where the finest groups are reported and numbers are whole, those are rounded before
    they are added up, so that sums agree to the last digit, unless `rounded` is False. Post-processing, at no
    cost.
    """
    shape = tuple(len(key.values or ()) for key in measured.keys)
    ends = list(itertools.accumulate(_size(shape, level) for level in measured.levels))
    found = []
    for array, measurement in zip(noisy, measured.measurements, strict=True):
        parts = [
            part.reshape(tuple(size if i in level else 1 for i, size in enumerate(shape))).astype(np.float64)
            for part, level in zip(np.split(array, ends[:-1]), measured.levels, strict=True)
        ]
        fit = _fitted(parts, shape)
        if rounded and measurement.whole and any(part.shape == shape for part in parts):
            fit = np.rint(fit)
        found.append(np.concatenate([_added(fit, part.shape).reshape(-1) for part in parts]))
    return found


def _size(shape: tuple[int, ...], level: tuple[int, ...]) -> int:
    return int(np.prod([shape[key] for key in level], dtype=np.int64))


def _added(values: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """The sums over the keys that a level leaves out."""
    over = tuple(i for i, size in enumerate(shape) if size == 1 and values.shape[i] != 1)
    return values.sum(axis=over, keepdims=True) if over else values


def _fitted(parts: Sequence[NDArray[np.float64]], shape: tuple[int, ...]) -> NDArray[np.float64]:
    def normal(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return sum((np.broadcast_to(_added(values, part.shape), shape) for part in parts), np.zeros(shape))

    fit = np.zeros(shape)
    rest = sum((np.broadcast_to(part, shape) for part in parts), np.zeros(shape))
    step, size = rest.copy(), float((rest * rest).sum())
    start = size
    for _ in range(4 * len(parts) + 8):
        if size <= 1e-26 * start or not size:
            break
        image = normal(step)
        length = size / float((step * image).sum())
        fit, rest = fit + length * step, rest - length * image
        size, old = float((rest * rest).sum()), size
        step = rest + size / old * step
    return fit
