"""How fast a characteristic function must fall: bounds that hold for every frequency beyond a given one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato.numeric.laws.base import Complexes
from sfumato.numeric.rounding import LIBRARY, Floats, U

__all__ = ["atoms_error", "doubled"]

_FACTORS: Floats = np.array([4.0**j for j in range(11)])[:, None, None]


def atoms_error(z: Complexes, scale: Any, events: Any) -> Floats:
    """The rounding of an mgf made of terms exp(-z·loss), the largest divided out, losses within ±eps.

    A product z·eps errs by 4 U |z| eps; exponentiated once as the common factor and once, doubled, in what
    is left, it moves each by that much of M(c). What is left errs by a few library calls of at most 1
    each, since M(c) with the largest term divided out is at least 1/2, and its logarithm by a few more.

    Args:
        z: the nodes.
        scale: the sum over events of eps.
        events: how many events there are.
    """
    error: Floats = 32 * U * (np.abs(z) + 1) * scale + 16 * LIBRARY * events
    return error


def doubled(
    ratio: Callable[[Floats, Floats, Floats], Floats], c: Floats, t: Floats, parameters: Floats
) -> Floats:
    """The best log-decay at t that a decreasing bound gives at t, 4t, 16t and so on: c, t (m,) → (m, n).

    `ratio(c, times, parameters)`, c (m, 1) and times (j, m, 1), must decrease in its times and bound
    f(τ) = |M(c + iτ)|/M(c). f is the modulus of a characteristic function (of the loss tilted by c), and
    for those 1 - f(2τ)² ≤ 4 (1 - f(τ)²) (Feller II, XV.1, with the symmetrised law), so that
    f(τ)² ≤ 1 - 4^-j (1 - f(2^j τ)²) for every j; every τ ≥ t has 2^j τ ≥ 2^j t.
    """
    value = np.minimum(ratio(c[:, None], t[:, None] * _FACTORS, parameters) * (1 + 8 * LIBRARY), 1.0)
    gap = (1 - value) * (1 + value) / _FACTORS**2
    best: Floats = 0.5 * np.log1p(-gap.max(axis=0))
    return best * (1 - 4 * LIBRARY)
