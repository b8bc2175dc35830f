"""A factor whose coefficients are a sum of a few falling powers: a handful of words a group, for any horizon.

Dvijotham, McMahan, Pillutla, Steinke, Thakurta 2024, "Efficient and near-optimal noise generation for
streaming differential privacy" (buffered linear Toeplitz matrices).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sfumato.continual.base import Floats, Words, halved
from sfumato.errors import InvalidParameter

__all__ = ["Buffered"]

_FALL_BITS, _WEIGHT_BITS = 6, 10
_SHIFT = 50  # the most places after the point: 1 minus such a number is a float
_REACH, _STEP = 3.0, 1.4  # of the quadrature: how far beyond the middle, and between two nodes at most
_BEYOND = 64  # slowest decay against the horizon
_MOST = 64
_TINY = -1000 * math.log(2)  # the logarithm of what is nothing beside 1


class Buffered:
    """C with the coefficients c_0 = 1, c_j = Σ_i ω_i·θ_i**(j−1): one buffer for each i.

    Args:
        falls: For each buffer (m, k): θ = 1 − m/2**k, with 0 < m < 2**6.
        weights: For each buffer (a, q): ω = a/2**q, with 0 < a < 2**10; all ω together at most 1.

    Raises:
        InvalidParameter: for other numbers.
    """

    kind: ClassVar[str] = "buffered"

    def __init__(self, falls: Sequence[tuple[int, int]], weights: Sequence[tuple[int, int]]) -> None:
        pairs = [*((pair, _FALL_BITS) for pair in falls), *((pair, _WEIGHT_BITS) for pair in weights)]
        usable = 0 < len(falls) == len(weights) <= _MOST and all(_is_part(pair, bits) for pair, bits in pairs)
        if not usable or sum(Fraction(a, 2**q) for a, q in weights) > 1:
            raise InvalidParameter(
                "A buffered factor needs as many weights as falls, each a pair of whole numbers (m, k) for "
                "m/2**k below 1, and weights that add up to at most 1."
            )
        self.falls = tuple((m, k) for m, k in falls)
        self.weights = tuple((a, q) for a, q in weights)

    @classmethod
    def square_root(cls, horizon: int, damping: float = 1.0) -> Buffered:
        """An approximation of (1 − damping·q)**(−1/2) that is good for so many steps.

        Its coefficients are the moments of the arcsine law, E[U**j]; with U = 1/(1 + e^y) a sum over evenly
        spaced y converges fast. What is off changes how large the errors are, never the claim: the factor
        that is used is the one with these rounded numbers.
        """
        low = -math.log(_BEYOND * horizon)
        count = math.ceil((_REACH - low) / _STEP) + 1
        step = (_REACH - low) / (count - 1)
        falls, weights = [], []
        for i in range(count):
            u = 1 / (1 + math.exp(low + i * step))
            mass = math.sqrt(u * (1 - u)) * step / math.pi
            falls.append(_part(1 - damping * u, _FALL_BITS))
            weights.append(_part(mass * damping * u, _WEIGHT_BITS))
        return cls(falls, weights)

    def __repr__(self) -> str:
        return f"Buffered(buffers={self.words})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Buffered) and (self.falls, self.weights) == (other.falls, other.weights)

    def __hash__(self) -> int:
        return hash((self.falls, self.weights))

    @property
    def words(self) -> int:
        """One word a group for each buffer."""
        return len(self.falls)

    @property
    def bits(self) -> int:
        """A product with one coefficient, and what a buffer may be above the noise that it adds up."""
        return _WEIGHT_BITS + 3

    @property
    def slack(self) -> Fraction:
        """Half a unit a buffer where it is read, and Σ_i ω_i/(2(1 − θ_i)) for roundings in it before."""
        pairs = zip(self.falls, self.weights, strict=True)
        kept = sum((Fraction(a, 2**q) / Fraction(m, 2**k) for (m, k), (a, q) in pairs), Fraction(0))
        return (self.words + kept) / 2

    @cached_property
    def _columns(self) -> tuple[Words, ...]:
        """m, k, a, q, each as a column."""
        table = np.array(
            [[*fall, *weight] for fall, weight in zip(self.falls, self.weights, strict=True)], np.int64
        )
        return tuple(table[:, i : i + 1] for i in range(4))

    def coefficients(self, count: int) -> Floats:
        """Powers by repeated multiplication: one rounding each, and no library to trust.

        Those below 2**-1000 are left out: beside c_0 = 1 that is far less than `trust` has to spare.
        """
        out = np.zeros(count)
        out[:1] = 1.0
        for theta, weight in self._floats():
            powers = _powers(weight, theta, count - 1)
            out[1 : 1 + powers.size] += powers
        return out

    def inverse(self, count: int) -> Floats:
        """Again a sum of powers: C⁻¹ has c'_j = −vᵀMʲ⁻¹v with v = √ω and the symmetric M = diag(θ) − v·vᵀ."""
        theta, weight = np.array(self._floats()).T
        root = np.sqrt(weight)
        powers, vectors = np.linalg.eigh(np.diag(theta) - np.outer(root, root))
        out = np.zeros(count)
        out[:1] = 1.0
        for power, part in zip(powers, root @ vectors, strict=True):
            series = _powers(part**2, power, count - 1)
            out[1 : 1 + series.size] -= series
        return out

    def exact(self, count: int) -> list[Fraction]:
        """The same as fractions."""
        pairs = [
            (1 - Fraction(m, 2**k), Fraction(a, 2**q))
            for (m, k), (a, q) in zip(self.falls, self.weights, strict=True)
        ]
        rest = [sum((w * theta ** (j - 1) for theta, w in pairs), Fraction(0)) for j in range(1, count)]
        return [Fraction(1), *rest][:count]

    def _floats(self) -> list[tuple[float, float]]:
        return [(1 - m / 2.0**k, a / 2.0**q) for (m, k), (a, q) in zip(self.falls, self.weights, strict=True)]

    def carried(self, state: Words, time: int) -> Words:  # noqa: ARG002
        """The weighted sum of the buffers, each product rounded to a whole number."""
        _, _, a, q = self._columns
        total: Words = halved(state * a, q).sum(axis=0)
        return total

    def advanced(self, state: Words, time: int, noise: Words) -> Words:  # noqa: ARG002
        """Each buffer becomes θ times itself, rounded, and the new noise."""
        m, k, _, _ = self._columns
        state = state - halved(state * m, k) + noise
        if state.dtype != object and int(np.abs(state).max(initial=0)) >> (60 - _WEIGHT_BITS):
            state = state.astype(object)
        return state

    def record(self) -> dict[str, Any]:
        """The pairs."""
        return {
            "kind": self.kind,
            "falls": [list(pair) for pair in self.falls],
            "weights": [list(pair) for pair in self.weights],
        }


def _powers(first: float, ratio: float, count: int) -> Floats:
    """first·ratio**j for j below `count`, or fewer: those left out are all below 2**-1000 times the first.

    Products that small are slow, and nothing beside the others.
    """
    size = abs(ratio)
    seen = count if size >= 1 else 1 if not size else math.ceil(_TINY / math.log(size)) + 1
    series = np.full(max(min(count, seen), 0), ratio)
    series[:1] = first
    return np.asarray(np.cumprod(series))


def _is_part(pair: tuple[int, int], bits: int) -> bool:
    return (
        len(pair) == 2
        and all(type(number) is int for number in pair)
        and 1 <= pair[1] <= _SHIFT
        and 0 < pair[0] < 2 ** min(bits, pair[1])
    )


def _part(value: float, bits: int) -> tuple[int, int]:
    """A number below 1 as m/2**k, with m of so many bits."""
    exponent = min(_SHIFT, bits - math.frexp(value)[1])
    return max(1, min(2**bits - 1, round(value * 2.0**exponent))), exponent
