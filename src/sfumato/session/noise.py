"""From exact integers to a private answer: the only place where a query's noise is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sfumato.plan.quote import Quote

__all__ = ["privatise"]

_LIMIT = 2**61  # where the mechanisms clamp integers; a clamp is 1-Lipschitz, so nothing is lost but reach


def privatise(exact: Sequence[Sequence[int]], quote: Quote) -> tuple[NDArray[Any], ...]:
    """Each measurement with its noise, in natural units.

    Privacy:
        Claim: the arrays together carry `quote.loss`. Each is released by its own mechanism, built for its
        own sensitivity; scaling afterwards is post-processing.
    """
    return tuple(
        _noisy(values, mechanism, unit)
        for values, mechanism, unit in zip(exact, quote.mechanisms, quote.units, strict=True)
    )


def _noisy(values: Sequence[int], mechanism: Any, unit: Fraction) -> NDArray[Any]:
    if all(-_LIMIT <= value <= _LIMIT for value in values):
        noisy = np.asarray(mechanism.release(np.array(values, dtype=np.int64)))
    else:  # integers of any size, one at a time: the same law
        noisy = np.array([mechanism.release(value) for value in values])
    if noisy.dtype.kind == "i" and unit == 1:
        return noisy.astype(np.int64)
    return noisy.astype(np.float64) * float(unit)  # a power of two: exact
