"""A factor given by its coefficients: square-root coefficients, whole or cut to a band; or the identity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from sfumato.continual.base import Floats, Words, halved
from sfumato.continual.series import inverse
from sfumato.errors import InvalidParameter

__all__ = ["Banded"]

_DIGITS = 16
_ONE = 2**_DIGITS
_WIDEST = 2**14
_SOLVED = 2**16  # no narrower than the widest band
_NOTHING = 1e-13
_LEAST_BITS = 4  # so that noise stays far below 2**56, which is what can be drawn


class Banded:
    """C with the coefficients 1, a_1/2**16, …, and zeros beyond.

    Args:
        numerators: a_1, a_2, …: whole numbers from 2**16 down to 0 that never rise. None: the identity, which
            is independent noise.

    Raises:
        InvalidParameter: for numbers that rise, are negative or too many.
    """

    kind: ClassVar[str] = "banded"

    def __init__(self, numerators: Sequence[int] = ()) -> None:
        values = [_ONE, *numerators]
        falling = all(type(a) is int and type(b) is int and a >= b >= 0 for a, b in pairwise(values))
        if not falling or len(values) > _WIDEST:
            raise InvalidParameter(
                f"The coefficients of a band must be at most {_WIDEST} whole numbers that never rise, from "
                "2**16 down to 0."
            )
        self.numerators = tuple(numerators)

    @classmethod
    def square_root(cls, band: int, damping: float = 1.0) -> Banded:
        """The first `band` coefficients of (1 − damping·q)**(−1/2), rounded to 2**-16."""
        values, exact = [], 1.0
        for j in range(1, band):
            exact *= (2 * j - 1) / (2 * j) * damping
            values.append(round(exact * _ONE))
        return cls(values)

    def __repr__(self) -> str:
        return f"Banded(band={self.words})" if self.words else "Banded()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Banded) and self.numerators == other.numerators

    def __hash__(self) -> int:
        return hash(self.numerators)

    @property
    def words(self) -> int:
        """One word a group for each coefficient, so that a row that is still needed is never written to."""
        return len(self.numerators) + 1 if self.numerators else 0

    @property
    def bits(self) -> int:
        """A sum of products with all coefficients."""
        return max(_LEAST_BITS, math.ceil(math.log2(sum(self.numerators) + 1)))

    @property
    def slack(self) -> Fraction:
        """The sum is exact and rounded once."""
        return Fraction(1, 2) if self.numerators else Fraction(0)

    @cached_property
    def _values(self) -> Words:
        """For the noise of j steps ago; the row of the step itself is not read."""
        return np.array((0, *self.numerators), np.int64)

    def coefficients(self, count: int) -> Floats:
        """Exact floats."""
        out = np.zeros(count)
        known = np.array([_ONE, *self.numerators][:count]) / _ONE
        out[: known.size] = known
        return out

    def inverse(self, count: int) -> Floats:
        """By power series, as far as anything is left of it.

        Its coefficients are at most 1, since those of C never rise. As many small ones in a row as the band
        is wide are followed by small ones alone: each is a sum of those before it, with weights of C.
        """
        size = _SOLVED
        while size < count:
            known = inverse(self.coefficients(size))
            if np.abs(known[-len(self.numerators) - 1 :]).max() < _NOTHING:
                return np.concatenate([known, np.zeros(count - size)])
            size *= 4
        return inverse(self.coefficients(count))

    def exact(self, count: int) -> list[Fraction]:
        """The same as fractions."""
        known = [Fraction(a, _ONE) for a in (_ONE, *self.numerators)][:count]
        return known + [Fraction(0)] * (count - len(known))

    def carried(self, state: Words, time: int) -> Words:
        """The sum over the band, rounded once; the noise of step s lies in row s modulo the rows."""
        if not self.words:
            return np.zeros(state.shape[1], np.int64)
        turned = self._values[(time - np.arange(self.words)) % self.words]
        if state.dtype == object:
            turned = turned.astype(object)
        return halved(turned @ state, _DIGITS)

    def advanced(self, state: Words, time: int, noise: Words) -> Words:
        """The new noise takes the place of what lies beyond the band; done twice, it is as done once."""
        if not self.words:
            return state
        if state.dtype != object and (
            noise.dtype == object or int(np.abs(noise).max(initial=0)) >> (61 - self.bits)
        ):
            state = state.astype(object)
        state[time % self.words] = noise
        return state

    def record(self) -> dict[str, Any]:
        """The numerators."""
        return {"kind": self.kind, "numerators": list(self.numerators)}
