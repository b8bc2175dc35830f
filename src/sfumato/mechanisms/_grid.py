"""The public grid of the float mechanisms: how inputs get onto it, and what that costs in sensitivity."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms._numbers import Number, numbers_of, unusable
from sfumato.numeric.exact import floor_log2
from sfumato.samplers.wholes import Wholes

__all__ = [
    "BIAS",
    "EDGE",
    "LIMIT",
    "WIDENING",
    "Grid",
    "bounded",
    "bounded_add",
    "bounded_input",
    "bounded_inputs",
    "bounded_sum",
    "check_reach",
    "noisy",
    "noisy_whole",
]

EDGE = 2.0**62
"""Numbers below this many grid units are held in 64 bits, which leaves room for the noise."""

WIDENING = 1 + Fraction(1, 2**54)
"""What the sensitivity is multiplied with at construction, to pay for rounding inputs on the grid."""

INPUT_LIMIT, LIMIT = 2**61, 2**62 - 1
"""Where integers are clamped before integer noise is added, and where the sum is."""

BIAS = 2**64
"""Added to single integers while they get their noise: Python takes longer to add up longer integers."""

_NOISE_LIMIT = 3 * 2**61 - 1
# Outputs are y·2**exponent with |y| < 2**63, and scaling must be exact: keep far from overflow and
# subnormals.
_LEAST, _MOST = -1000, 950
# Small enough that the passes over a block stay in the second-level cache.
_BLOCK = 1 << 15
_HALVES = 2.0**63
_HELD = 2**62
_TWICE = 2 * BIAS
_FINITE = "Values must be finite: replace NaN and infinity before the release."


@dataclass(frozen=True, slots=True)
class Grid:
    """The multiples of a power of two, 2**exponent, fixed from public parameters alone.

    Privacy:
        Claim: `split` and `split_array` are one function r of the input alone with |r(x) − r(y)| ≤ |x − y| +
        2**-63 in grid units, and `nearest` and `nearest_array` satisfy |n(x) − n(y)| ≤ ⌈|x − y|⌉. Proof:
        scaling a float by a power of two is exact (results so small that it is not are below 2**-1000 of a
        unit and become 0; those beyond 2**53 units are whole, and taken from the float's own integers); the
        fraction is cut towards zero at 2**-63, which moves two numbers of one sign by less than 2**-63
        against each other and brings two of opposite signs closer; and n(x) = ⌊x + 1/2⌋ exactly, held within
        ±`EDGE`, because a float with bits below 2**-63 has magnitude below 2**-10, where both sides round to
        0; holding is 1-Lipschitz. Integers take a path of their own, since converting one beyond 2**53 to a
        float would round it, but to the same r: whether a value comes as an integer or as a float makes no
        difference. A d-dimensional release therefore moves at most d·2**-63 further in L1 (√d·2**-63 in L2)
        than the input did; `room_l1` and `room_l2` are the greatest d for which `WIDENING` covers that.
        `float_at` and `floats_at` are one function of the integer alone: post-processing.
    """

    exponent: int
    step: float
    inverse: float

    @classmethod
    def below(cls, scale: Fraction, bits: int) -> Grid:
        """The grid of the greatest power of two that is at most `scale`·2**-`bits`.

        Raises:
            InvalidParameter: if float outputs could overflow or become subnormal on it.
        """
        exponent = floor_log2(scale) - bits
        if not _LEAST <= exponent <= _MOST:
            raise InvalidParameter(
                "The noise is too large or too small for floats: rescale the values and their sensitivity."
            )
        return cls(exponent, math.ldexp(1.0, exponent), math.ldexp(1.0, -exponent))

    def units(self, length: Fraction) -> Fraction:
        """A length in grid units, exactly."""
        return length / Fraction(2) ** self.exponent

    def length(self, units: Fraction | int) -> Fraction:
        """A number of grid units as a length, exactly."""
        return units * Fraction(2) ** self.exponent

    def room_l1(self, sensitivity: Fraction) -> int:
        """The most coordinates whose rounding `WIDENING` pays for, when the sensitivity is in L1."""
        return math.floor(self.units(sensitivity) * (WIDENING - 1) * 2**63)

    def room_l2(self, sensitivity: Fraction) -> int:
        """The most coordinates whose rounding `WIDENING` pays for, when the sensitivity is in L2."""
        return math.floor((self.units(sensitivity) * (WIDENING - 1) * 2**63) ** 2)

    def split(self, value: Number) -> tuple[int, int]:
        """One number in grid units, as a whole number of any size and a fraction of 2**64."""
        if isinstance(value, float):  # also numpy's float64
            units = float(value) * self.inverse
            if not -EDGE < units < EDGE:
                if not math.isfinite(value):
                    raise InvalidValue(_FINITE)
                return self._whole_units(float(value)), 0
            whole = int(units)
            fraction = int((units - whole) * _HALVES) << 1
        elif isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64):
            whole = int(value)
            if self.exponent > 0:
                halves = (abs(whole) << 63) >> self.exponent  # towards zero, as for floats
                whole, rest = divmod(halves if whole >= 0 else -halves, 2**63)
                fraction = rest << 1
            else:
                whole, fraction = whole << -self.exponent, 0
        elif isinstance(value, np.floating) and value.dtype.itemsize < 8:
            return self.split(float(value))
        else:
            raise unusable(value)
        return (whole, fraction) if fraction >= 0 else (whole - 1, fraction + 2**64)

    def _whole_units(self, value: float) -> int:
        """A float of 2**53 grid units or more in grid units: a whole number, since its last place is one."""
        numerator, denominator = value.as_integer_ratio()
        if self.exponent < 0:
            return (numerator << -self.exponent) // denominator
        return numerator >> self.exponent

    def nearest(self, value: Number) -> int:
        """One number rounded to whole grid units, halves upwards, held within ±2**62."""
        whole, fraction = self.split(value)
        return max(-_HELD, min(_HELD, whole + (fraction >> 63)))

    def split_array(self, array: NDArray[Any]) -> tuple[Wholes, NDArray[np.uint64]]:
        """A numeric array, flattened, in grid units as whole numbers and fractions of 2**64."""
        flat = array.reshape(-1)
        if flat.dtype.kind == "f":
            return self._split_floats(flat)
        if flat.dtype.kind == "O" or (flat.dtype == np.uint64 and int(flat.max(initial=0)) >= 2**63):
            return self._split_each(flat.tolist())
        return self._split_integers(flat.astype(np.int64, copy=False))

    def split_whole(self, values: Wholes) -> tuple[Wholes, NDArray[np.uint64]]:
        """Integers of any size in grid units as whole numbers and fractions of 2**64."""
        if not values.within(INPUT_LIMIT).far:  # the same, and quicker
            return self._split_integers(values.near)
        return self._split_each(values.tolist())

    def _split_each(self, values: Sequence[Number]) -> tuple[Wholes, NDArray[np.uint64]]:
        """Numbers that no array holds together, each by itself."""
        pairs = [self.split(value) for value in values]
        wholes = Wholes.of([whole for whole, _ in pairs])
        return wholes, np.array([fraction for _, fraction in pairs], np.uint64)

    def nearest_array(self, array: NDArray[Any]) -> NDArray[np.int64]:
        """A numeric array, flattened and rounded to whole grid units, halves upwards, held within ±2**62."""
        whole, fraction = self.split_array(array)
        held = whole.within(_HELD - 1)
        units = held.near + (fraction >> np.uint64(63)).view(np.int64)
        for place, value in held.far.items():
            units[place] = _HELD if value > 0 else -_HELD
        return units

    def float_at(self, units: int) -> float:
        """The float nearest to so many grid units, halves to even; the largest one beyond all floats."""
        try:
            if self.exponent < 0:
                return units / (1 << -self.exponent)  # Python rounds quotients of integers correctly
            return float(units << self.exponent)
        except OverflowError:
            return sys.float_info.max if units > 0 else -sys.float_info.max

    def floats_at(self, units: Wholes) -> NDArray[np.float64]:
        """`float_at` for an array."""
        lengths = self.floats(units.near)
        for place, value in units.far.items():
            lengths[place] = self.float_at(value)
        return lengths

    def floats(self, units: NDArray[np.int64]) -> NDArray[np.float64]:
        """`float_at` for integers of 64 bits: they are rounded once, and scaling them is exact."""
        lengths = units.astype(np.float64)
        lengths *= self.step
        return lengths

    def _split_floats(self, flat: NDArray[Any]) -> tuple[Wholes, NDArray[np.uint64]]:
        whole = np.empty(flat.size, np.int64)
        fraction = np.empty(flat.size, np.int64)
        far: dict[int, int] = {}
        with np.errstate(over="ignore", under="ignore"):
            for start in range(0, flat.size, _BLOCK):
                part = slice(start, start + _BLOCK)
                units = np.multiply(flat[part], self.inverse, dtype=np.float64)
                if not (units.min() > -EDGE and units.max() < EDGE):
                    if not np.isfinite(flat[part]).all():
                        raise InvalidValue(_FINITE)
                    beyond = np.flatnonzero(np.abs(units) >= EDGE)
                    values = flat[part][beyond].tolist()
                    units[beyond] = 0
                    far.update(zip((beyond + start).tolist(), map(self._whole_units, values), strict=True))
                cut = units.astype(np.int64)
                units -= cut
                units *= _HALVES
                halves = units.astype(np.int64)
                np.add(cut, halves >> 63, out=whole[part])
                np.left_shift(halves, 1, out=fraction[part])
        return Wholes(whole, far), fraction.view(np.uint64)

    def _split_integers(self, flat: NDArray[np.int64]) -> tuple[Wholes, NDArray[np.uint64]]:
        if self.exponent > 126:
            return Wholes(np.zeros(flat.size, np.int64)), np.zeros(flat.size, np.uint64)
        if self.exponent > 63:
            cut = self.exponent - 63
            halves = (flat + np.where(flat < 0, np.int64(2**cut - 1), np.int64(0))) >> cut  # towards zero
            return Wholes(halves >> 63), (halves << 1).view(np.uint64)
        if self.exponent > 0:
            # Modulo 2**64, shifting left drops the whole and keeps the fraction.
            return Wholes(flat >> self.exponent), (flat << (64 - self.exponent)).view(np.uint64)
        shift = -self.exponent
        held = Wholes(flat).within(_HELD >> shift)
        far = {place: value << shift for place, value in held.far.items()}
        return Wholes(held.near << min(shift, 63), far), np.zeros(flat.size, np.uint64)


def noisy(
    value: Any, add: Callable[..., Any], parameter: Fraction, *, grid: Grid, room: int
) -> float | NDArray[np.float64]:
    """A number or an array of them with noise, on the grid: what the float mechanisms release.

    Args:
        value: The private number or array.
        add: `random.add_laplace` or `random.add_gaussian`.
        parameter: Of that law, in grid units.
        grid: Where the answer lies.
        room: The most coordinates whose rounding the sensitivity has been widened for.

    Raises:
        InvalidValue: for NaN, infinity, truth values, anything that is not a number of 64 bits, and arrays
            beyond `room`.
    """
    if type(value) is float:  # what `Grid.split` does, without its cases
        units = value * grid.inverse
        if -EDGE < units < EDGE:
            whole = int(units)
            fraction = int((units - whole) * 2.0**64)
            if fraction < 0:
                whole -= 1
                fraction += 2**64
            return _float_of(add(whole + BIAS, fraction, parameter), grid)
    if isinstance(value, int | float | np.integer | np.floating):
        whole, fraction = grid.split(value)
        return _float_of(add(whole + BIAS, fraction, parameter), grid)
    array = numbers_of(value)
    _check_room(array.size, room)
    wholes, fractions = grid.split_array(array)
    if not array.size:
        return np.zeros(array.shape)
    return grid.floats_at(add(wholes, fractions, parameter)).reshape(array.shape)


def noisy_whole(
    values: Sequence[int] | Wholes,
    add: Callable[..., Any],
    parameter: Fraction,
    *,
    grid: Grid,
    room: int,
) -> NDArray[np.float64]:
    """`noisy` for integers of any size, which no array holds.

    Raises:
        InvalidValue: if there are more than `room` of them.
    """
    whole = values if isinstance(values, Wholes) else Wholes.of(values)
    _check_room(whole.size, room)
    return grid.floats_at(add(*grid.split_whole(whole), parameter)) if whole.size else np.zeros(0)


def _check_room(size: int, room: int) -> None:
    if size > room:
        raise InvalidValue(
            "The array is too large for this price, which does not cover the rounding of so many coordinates."
        )


def check_reach(scale: Fraction) -> Fraction:
    """The scale of integer noise, refused where draws would not fit in 64 bits or never differ from 0.

    Raises:
        InvalidParameter: above 2**56 or below 2**-14.
    """
    if scale < Fraction(1, 2**14):
        raise InvalidParameter(
            "This price leaves no noise to draw: use a smaller epsilon or rho, or a larger sigma."
        )
    if scale > 2**56:
        raise InvalidParameter(
            "The noise does not fit in 64-bit integers: use a larger epsilon, rho or unit."
        )
    return scale


def bounded_sum(values: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """The values, held within ±2**61, plus noise, held within ±(2**62 − 1), in the shape of the values.

    Privacy:
        Clamping the input is 1-Lipschitz and clamping the output is post-processing. The noise itself must
        not be cut off, or its ends would show where the input was; but noise of 3·2**61 − 1 or more already
        carries every admissible input beyond the end of the output, so cutting it there changes nothing. The
        samplers saturate far beyond.
    """
    flat, draws = values.reshape(-1), noise.reshape(-1)
    total = np.empty(flat.size, np.int64)
    for start in range(0, flat.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        out = np.clip(flat[part], -INPUT_LIMIT, INPUT_LIMIT, out=total[part])
        out += np.clip(draws[part], -_NOISE_LIMIT, _NOISE_LIMIT)
        np.clip(out, -LIMIT, LIMIT, out=out)
    return total.reshape(values.shape)


def bounded_add(value: int, noise: int) -> int:
    """`bounded_sum` for one integer of any size."""
    return bounded(bounded_input(value) + noise)


def bounded_input(value: int) -> int:
    """An integer of any size held within ±2**61."""
    return max(-INPUT_LIMIT, min(INPUT_LIMIT, value))


def bounded_inputs(values: Sequence[int] | Wholes) -> NDArray[np.int64]:
    """Integers of any size held within ±2**61, in one array."""
    whole = values if isinstance(values, Wholes) else Wholes.of(values)
    held: NDArray[np.int64] = np.clip(whole.near, -INPUT_LIMIT, INPUT_LIMIT)
    for place, value in whole.far.items():
        held[place] = bounded_input(value)
    return held


def bounded(total: int) -> int:
    """A sum held within ±(2**62 − 1)."""
    return max(-LIMIT, min(LIMIT, total))


def _float_of(biased: int, grid: Grid) -> float:
    """`Grid.float_at` of an integer y, given as `BIAS` + y.

    For a y within ±2**64 both parts are exact floats, so their sum is rounded once, as a conversion of y
    would be; but no step takes longer for a y of more digits.
    """
    if 0 < biased < _TWICE:
        return (((biased >> 29) - 2.0**35) * 2.0**29 + (biased & 0x1FFFFFFF)) * grid.step
    return grid.float_at(biased - BIAS)
