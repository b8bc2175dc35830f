"""The Laplace mechanism on a public grid: continuous noise, rounded, drawn exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.loss import LaplaceLoss
from sfumato.mechanisms._density import Dense, laplace_log
from sfumato.mechanisms._grid import WIDENING, Grid, noisy, noisy_whole
from sfumato.mechanisms._numbers import Number
from sfumato.mechanisms.base import Example, Mechanism
from sfumato.numeric.exact import Rational, positive
from sfumato.numeric.figures import laplace_width
from sfumato.numeric.frozen import freeze, shown
from sfumato.samplers.wholes import Wholes

__all__ = ["Laplace", "examples"]

_BITS = (
    30  # the noise has a scale of 2**30 to 2**31 grid units: rounding to the grid is invisible in the answer
)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Laplace(Dense, Mechanism):
    """Adds Laplace noise of scale sensitivity/epsilon to numbers.

    A release is a multiple of the public grid `grid`, a power of two between 2**-31 and 2**-30 of the scale:
    the exact sum of value and noise, rounded to the grid and then to the nearest float. Values of every size
    are answered, and none is clamped; a sum beyond all floats is released as the largest finite one.

    Attributes:
        epsilon: The price, exact.
        sensitivity: The most that the value can move between neighbours, in L1 over all coordinates; exact.

    Privacy:
        Claim: `release` is ε-DP and its curve is that of the scalar Laplace mechanism, for neighbours whose
        values differ by at most `sensitivity` in L1, in any dimension. Proof: the input is rounded to 2**-63
        grid units a coordinate, which widens the sensitivity by a factor of at most 1 + 2**-54 (`Grid`); the
        scale is Δ(1 + 2**-54)/ε exactly; the noise drawn is the *continuous* Laplace, and a release is one
        fixed function of the exact sum, whatever its size: rounding it to the grid and then to a float is
        post-processing (docs/proofs/sampling.md, lemma 13). Laplace noise is log-concave, so for shifts s_1,
        …, s_d of the coordinates the trade-off function is nowhere below that of one shift Σ|s_i|: changing
        one coordinate after the other is a chain, a chain is bounded by the composed functions (Dong, Roth,
        Su 2022, group privacy), and these compose to the shift by the sum because the optimal tests of a
        log-concave shift family are nested. Source of the ε bound: Dwork, McSherry, Nissim, Smith 2006.
        Sampling floats directly leaks through their low bits (Mironov 2012); here every answer is reachable
        from every input, with the stated probability.
    """

    epsilon: Fraction
    sensitivity: Fraction
    _scale: Fraction = field(compare=False)
    _units: Fraction = field(compare=False)
    _grid: Grid = field(compare=False)
    _room: int = field(compare=False)
    _loss: LaplaceLoss = field(compare=False)

    def __init__(self, epsilon: Rational, sensitivity: Rational) -> None:
        """Fix the noise from the price and the L1 sensitivity.

        Raises:
            InvalidParameter: if either is not a positive finite number, or the noise is out of the range of
                floats.
        """
        price, bound = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
        scale = bound * WIDENING / price
        grid = Grid.below(scale, _BITS)
        room = grid.room_l1(bound)
        if not room:
            raise InvalidParameter(
                "epsilon is too small: below about 1e-12, rounding can no longer be paid for."
            )
        freeze(self, epsilon=price, sensitivity=bound, _scale=scale, _units=grid.units(scale), _room=room)
        freeze(self, _grid=grid, _loss=LaplaceLoss(price))

    def __repr__(self) -> str:
        return shown("Laplace", epsilon=self.epsilon, sensitivity=self.sensitivity)

    @property
    def loss(self) -> LaplaceLoss:
        """What one release costs, whatever its shape."""
        return self._loss

    @property
    def scale(self) -> float:
        """The scale of the noise, the nearest float."""
        return float(self._scale)

    @property
    def room(self) -> int:
        """How many numbers one release may hold: as many as rounding is paid for."""
        return self._room

    @property
    def grid(self) -> float:
        """The power of two that every release is a multiple of."""
        return self._grid.step

    @property
    def variance(self) -> float:
        """The variance of the noise; rounding to the grid adds less than 2**-60 of it."""
        return 2 * self.scale * self.scale  # infinite where floats end

    @property
    def bias(self) -> float:
        """Zero: the noise is symmetric (rounding it moves the mean by less than 2**-31 of the scale)."""
        return 0.0

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """The half-width w with P(|noise| ≤ w for all of `size` coordinates) ≥ confidence, rounded up.

        The exact quantile scale·ln(1/(1 − confidence^(1/size))) and half a grid step for the rounding. A
        released float beyond 2**53 grid steps is also off by half its own last place.
        """
        return laplace_width(
            self._scale, confidence, size, slack=self._grid.length(Fraction(1, 2) + Fraction(1, 2**63))
        )

    def _log_law(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        return laplace_log(noise, self.scale)

    @overload
    def release(self, value: Number) -> float: ...
    @overload
    def release(self, value: ArrayLike) -> NDArray[np.float64]: ...
    def release(self, value: Any) -> float | NDArray[np.float64]:
        """The value with noise: a float for a number, an array of the same shape for an array.

        Raises:
            InvalidValue: for NaN, infinity, truth values and anything that is not an int or float of 64 bits;
                outside the claim, which is about numbers.
        """
        return noisy(value, random.add_laplace, self._units, grid=self._grid, room=self._room)

    def release_whole(self, values: Sequence[int] | Wholes) -> NDArray[np.float64]:
        """Integers of any size with noise, in one array of floats.

        Raises:
            InvalidValue: if there are more than the price covers the rounding of.
        """
        return noisy_whole(values, random.add_laplace, self._units, grid=self._grid, room=self._room)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        Example.of_release("laplace", Laplace(1, 1), 0.0, 1.0),
        Example.of_release("laplace: small epsilon, odd sensitivity", Laplace("0.1", "0.37"), 5.0, 5.37),
        Example.of_release("laplace: vector", Laplace(2, 3), (0.0, 0.0), (1.0, -2.0)),
    )
