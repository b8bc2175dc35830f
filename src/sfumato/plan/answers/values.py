"""The released value of an aggregate, from its noisy measurements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.plan.answers.moments import pair_value
from sfumato.plan.questions.aggregates import Estimator
from sfumato.plan.questions.nodes import Measured

__all__ = ["as_whole", "limits_of", "value_of"]

_MOST = 2.0**63


def value_of(estimator: Estimator, measured: Measured, arrays: list[NDArray[Any]]) -> NDArray[Any]:
    """The released value of an aggregate in each group."""
    parts = [arrays[part] for part in estimator.parts]
    if estimator.kind == "mean" and estimator.rows is not None:
        # Sums of whole numbers are released as whole numbers, and their error bars are around these.
        whole = measured.measurements[estimator.parts[0]].whole
        parts = [np.rint(part) for part in parts] if whole else parts
    if estimator.affine is not None:
        return _affine(estimator, parts, len(measured.combinations))
    if estimator.kind in ("covar", "corr"):
        return pair_value(estimator, [part.astype(np.float64) for part in parts])
    n = parts[-1].astype(np.float64)
    some = np.maximum(n, 1.0)
    half, shift = float(estimator.half), float(estimator.shift)
    lower, upper = limits_of(estimator)
    mean = np.clip(parts[0] / some, -half, half)
    if estimator.kind == "mean":
        return np.where(n > 0, np.clip(float(estimator.center) + mean, lower, upper), (lower + upper) / 2)
    spread = np.clip(parts[1] / some, -shift, half * half - shift) + shift - mean * mean
    if estimator.sample:
        spread = spread * some / np.maximum(some - 1, 1.0)
    spread = np.maximum(np.where(n > 0, spread, half * half / 2), 0.0)
    return np.clip(np.sqrt(spread) if estimator.kind == "std" else spread, lower, upper)


def _affine(estimator: Estimator, parts: list[NDArray[Any]], size: int) -> NDArray[Any]:
    assert estimator.affine is not None
    constant, weights = estimator.affine
    if not constant and [*weights] == [1] and parts[0].dtype.kind in "iu":
        return parts[0].astype(np.int64) if estimator.whole else parts[0].astype(np.float64)
    total: NDArray[np.float64] = np.full(size, float(constant))
    for weight, part in zip(weights, parts, strict=True):
        total = total + float(weight) * part
    if estimator.kind == "mean":
        lower, upper = limits_of(estimator)
        return np.clip(total, lower, upper)
    return as_whole(total) if estimator.whole else total


def as_whole(values: NDArray[Any]) -> NDArray[Any]:
    """Rounded to whole numbers, int64 where they fit."""
    rounded: NDArray[Any] = np.rint(values)
    return rounded.astype(np.int64) if not (np.abs(rounded) >= _MOST).any() else rounded


def limits_of(estimator: Estimator) -> tuple[float, float]:
    """The least and the greatest value that an aggregate can have; infinite for counts and sums."""
    lower = -math.inf if estimator.lower is None else float(estimator.lower)
    upper = math.inf if estimator.upper is None else float(estimator.upper)
    return lower, upper
