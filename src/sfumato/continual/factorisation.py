"""A stream's factorisation: how the noise of its steps hangs together, what that costs, what it is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.continual.banded import Banded
from sfumato.continual.base import Factor, Floats
from sfumato.continual.buffered import Buffered
from sfumato.continual.series import correlated, norm_squared_up, trust
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer

__all__ = ["SCALE_BITS", "Factorisation"]

SCALE_BITS = 16
"""Column factors are whole multiples of 2**-16."""

_LONGEST = 2**24
_FORM = "continual.1"


@dataclass(frozen=True)
class Factorisation:
    """A stream of `horizon` steps whose noise is D⁻¹C⁻¹z, for independent z.

    Attributes:
        horizon: How many steps there are at most.
        factor: The Toeplitz matrix C.
        scaled: Whether steps late in the stream get a factor d_t above 1 (D), because less of their column
            lies within the horizon: every column then is as long as the first. Only for units that touch one
            step.
        touches: The most steps that one unit's data can change.
        apart: The fewest steps from one that a unit touches to the next.

    Privacy:
        Claim: `norm` is at least the L2 norm of C·D·x over all x that are at most 1 in absolute value and
            differ from 0 in at most `touches` steps, `apart` from one another; and the same for x of vectors
            of norm at most 1. Proof: docs/proofs/continual.md, lemmas 2 and 3. It is computed with roundings
            to the safe side.
    """

    horizon: int
    factor: Factor
    scaled: bool = False
    touches: int = 1
    apart: int = field(default=1)

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            InvalidParameter: for unusable ones.
        """
        steps = as_integer(self.horizon, "horizon")
        if steps > _LONGEST:
            raise InvalidParameter(
                "horizon must be at most 2**24 steps: publish longer steps, or start anew after them."
            )
        touches, apart = as_integer(self.touches, "touches"), as_integer(self.apart, "apart")
        if touches > steps:
            raise InvalidParameter(
                "touches must be at most the horizon: a unit cannot touch more steps than there are."
            )
        if self.scaled and touches > 1:
            raise InvalidParameter(
                "A scaled factorisation is for units that touch one step: use scaled=False."
            )
        for name, value in (("horizon", steps), ("touches", touches), ("apart", apart)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        told = f"horizon={self.horizon}, factor={self.factor!r}, scaled={self.scaled}"
        return f"Factorisation({told}, touches={self.touches}, apart={self.apart})"

    @cached_property
    def norm(self) -> Fraction:
        """How far one unit that changes a step by 1 moves all of C·D·x, in L2; rounded up."""
        return Fraction(math.nextafter(math.sqrt(self._norm_squared), math.inf))

    @cached_property
    def scales(self) -> NDArray[np.int64] | None:
        """The factors d_t as multiples of 2**-16; None where all are 1."""
        if not self.scaled:
            return None
        sums = np.cumsum(self._coefficients**2)
        # Rounded down by more than both sums can be off: no column gets longer than the first.
        ratios = np.sqrt(sums[-1] / sums[::-1]) * (1 - 2 * trust(self.horizon))
        one = 2**SCALE_BITS
        return np.asarray(np.maximum(np.floor(ratios * one), one), np.int64)

    def scale(self, step: int) -> int:
        """d_t of one step, counted from 0, as a multiple of 2**-16."""
        return 2**SCALE_BITS if self.scales is None else int(self.scales[step])

    def variance(self, weights: Sequence[float] | Floats, *, since: int = 0) -> float:
        """The variance of Σ weights_t·noise_t over the first steps, over that of z; not rounded up.

        Args:
            weights: One a step, from the first.
            since: The step before which there was no noise (docs/proofs/continual.md, lemma 7).
        """
        array = np.asarray(weights, np.float64)
        if array.ndim != 1 or not 0 < array.size <= self.horizon or not np.isfinite(array).all():
            raise InvalidParameter(
                "weights must be a list of finite numbers, at most one for each step of the horizon."
            )
        if self.scales is not None:
            array = array / (self.scales[: array.size] / 2.0**SCALE_BITS)
        return float(np.sum(correlated(self._inverse, array)[since:] ** 2))

    def variances(self, window: int | None = None, *, since: int = 0) -> Floats:
        """The variance of the totals of `window` steps, or of all so far, over that of z: one a step.

        Args:
            window: How many steps; None: all so far.
            since: The step before which there was no noise, and is no variance.

        Raises:
            InvalidParameter: for a scaled factorisation of more than 65,536 steps, which takes `variance` for
                each.
        """
        length = self._length(window)
        if self.scales is None:
            known = np.cumsum(_windows(np.cumsum(self._inverse), length) ** 2)
            return np.concatenate([np.zeros(since), known[: self.horizon - since]])
        if self.horizon > _LISTED:
            raise InvalidParameter(
                "The steps are too many to list: ask for the deviation of those that are shown."
            )
        total, shrink = np.zeros(self.horizon), 2.0**SCALE_BITS / self.scales
        for s in range(since, self.horizon):  # a column of the matrix of errors at a time
            total[s:] += _windows(np.cumsum(self._inverse[: self.horizon - s] * shrink[s:]), length) ** 2
        return total

    def mean_square(self, window: int | None = None) -> float:
        """The mean over all steps of the squared error of sums over `window` steps; None: of all so far.

        In units of the squared error of one number that is released once, at the same price, by a unit that
        changes it by 1. Above 4,096 steps, scaled ones are an average over some steps, weighted as an
        integral is.
        """
        if self.scaled and self.horizon > _SUMMED:
            mean = self._mean_by_step(self._length(window))
        else:
            mean = float(np.mean(self.variances(window)))
        return mean * self._norm_squared

    def _length(self, window: int | None) -> int:
        return self.horizon if window is None else min(as_integer(window, "window"), self.horizon)

    def _mean_by_step(self, length: int) -> float:
        """Gauss' quadrature over the steps."""
        places, parts = np.polynomial.legendre.leggauss(_PLACES)
        steps = np.clip(np.rint((places + 1) / 2 * self.horizon), 1, self.horizon).astype(int)
        return float(
            np.sum([part / 2 * self.variance(last(t, length)) for t, part in zip(steps, parts, strict=True)])
        )

    def record(self) -> dict[str, Any]:
        """All that it is, exact, as JSON knows it; `of_record` makes the same from it."""
        return {
            "form": _FORM,
            "horizon": self.horizon,
            "factor": self.factor.record(),
            "scaled": self.scaled,
            "touches": self.touches,
            "apart": self.apart,
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Factorisation:
        """The factorisation that wrote a record.

        Raises:
            InvalidParameter: if it is not a record of this form.
        """
        try:
            if record["form"] != _FORM or type(record["scaled"]) is not bool:
                raise ValueError
            factor = record["factor"]
            made: Factor
            if factor["kind"] == Banded.kind:
                made = Banded(factor["numerators"])
            elif factor["kind"] == Buffered.kind:
                made = Buffered(
                    [tuple(pair) for pair in factor["falls"]], [tuple(pair) for pair in factor["weights"]]
                )
            else:
                raise ValueError
            return cls(record["horizon"], made, record["scaled"], record["touches"], record["apart"])
        except (KeyError, TypeError, ValueError):
            raise InvalidParameter(
                "This is no record of a stream's factorisation that this version can read."
            ) from None

    @cached_property
    def _coefficients(self) -> Floats:
        return self.factor.coefficients(self.horizon)

    @cached_property
    def _inverse(self) -> Floats:
        return self.factor.inverse(self.horizon)

    @cached_property
    def _norm_squared(self) -> float:
        return norm_squared_up(self._coefficients, self.touches, self.apart)


_SUMMED, _LISTED = 4096, 2**16
_PLACES = 12


def _windows(sums: Floats, length: int) -> Floats:
    """Sums over the last `length` terms, from running sums."""
    if length < sums.size:
        sums[length:] -= sums[:-length].copy()
    return sums


def last(time: int, length: int) -> Floats:
    """Weights of the sum over the last `length` of `time` steps."""
    weights = np.ones(time)
    weights[: max(0, time - length)] = 0.0
    return weights
