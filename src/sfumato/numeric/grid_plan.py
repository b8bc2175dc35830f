"""Where to put the grid: ranges, tilt, window and step, from a coarse sketch of the composition.

Nothing here is part of a proof. A bad plan gives a wide bracket, never a wrong one: what a plan leaves out
is bounded again, from the fine grid, in `grid_fft`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.errors import NotCertified
from sfumato.numeric.grid_dots import hull, masses
from sfumato.numeric.laws.base import Term
from sfumato.numeric.rounding import Floats, U

__all__ = ["Layout", "Place", "Sketch", "common_step", "place"]

_NEGLIGIBLE = 26.0
"""What is left outside the window is about e^-26 of the answer."""

_ROUGH_NOISE = 4e-15
"""What one event adds, in order of magnitude, to the rounding error of a tilted composition."""

_FLATTER = 1.0, 0.99, 0.98, 0.97, 0.95, 0.9, 0.85, 0.7, 0.55, 0.4, 0.3, 0.2, 0.1, 0.05
_STEEPER = 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0
"""The parts of the saddle point that are tried as tilts."""

_DIGITS = 12
"""A decimal of at most so many digits is told from one that a float only happens to be near."""

_STEEPEST = 600.0
"""The tilt times the range of one law stays below this, so that no exponential overflows."""

_FARTHEST = 1e12
"""A law whose losses are further apart is laid on no grid: squares of the tilts that it asks for vanish."""

_NO_STEP = 2.0**-16
"""A law whose losses are closer together than this, for all its events, is as good as one loss: no grid
is laid by the step between them."""


@dataclass(frozen=True, slots=True)
class Place:
    """The losses that one law's grid has to span, and the step of its lattice where it has one."""

    term: Term
    low: float
    high: float
    lattice: float | None
    spare: float = 0.0  # so wide a stretch at the low end hardly counts


def place(term: Term, cut: float, floor: float) -> Place:
    """The range of one law: at most `cut` is left above it, at most `floor` below."""
    law, parameters = term.law, term.parameters
    low, high = law.support(parameters)
    lattice = law.lattice(parameters)
    infinity = law.infinity(parameters)
    if high == math.inf:

        def left_above(x: Floats) -> Floats:
            return law.bounds(x, parameters)[1] - infinity

        high = _reach(lambda x: left_above(x) <= max(cut, 1e-9 * infinity), term)
        if lattice is not None:
            high = lattice[0] + math.ceil((high - lattice[0]) / lattice[1]) * lattice[1]
    if (
        lattice is not None
    ):  # grid points must not fall below the atoms they replace, however those were rounded
        high += 4 * U * (abs(high) + abs(lattice[0]))
    if low == -math.inf:

        def lost_below(x: Floats) -> Floats:
            return np.asarray(law.bounds(-x, parameters)[1] + np.expm1(-x), dtype=np.float64)

        noise = float(np.min(np.abs(lost_below(np.array([20.0, 40.0, 80.0])))))
        # On a lattice points are few, and the more of them the less is moved.
        least = max(floor if lattice is None else min(floor, 1e-13), 4 * noise, 2.0**-50)
        low = -_reach(lambda x: lost_below(x) <= least, term)
    if high - low > _FARTHEST:
        raise _too_far(term)
    step = None if lattice is None or lattice[1] * term.count <= _NO_STEP else lattice[1]
    return Place(term, min(low, high), high, step)


def _reach(done: Callable[[Floats], npt.NDArray[np.bool_]], term: Term) -> float:
    """The least x ≥ 0, to a few per cent, at which a falling quantity is done."""
    x = np.concatenate(([0.0], np.geomspace(2.0**-20, 2.0**12, 257)))
    for _ in range(2):
        good = np.flatnonzero(done(x))
        if len(good) == 0:
            raise _too_far(term)
        first = int(good[0])
        x = np.linspace(x[max(first - 1, 0)], x[first], 17)
    return float(x[-1])


def _too_far(term: Term) -> NotCertified:
    return NotCertified(
        f"The privacy loss of a {term.law.name} law reaches too far for a grid; "
        "use more noise or a larger delta."
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """A step, a tilt and a window for the composition."""

    step: float
    tilt: float
    low: float
    high: float
    up: float  # the further tilt of the Chernoff bound above the window
    down: float  # and of the one below

    @property
    def size(self) -> int:
        """The length of the transform: a power of two that spans the window."""
        return 1 << max(8, math.ceil(math.log2((self.high - self.low) / self.step + 2)))


class Sketch:
    """The composition on a few hundred uneven points a law: good enough to place things."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._laws = [(*_sketch(spot), spot.term.count) for spot in places]
        widest = max(spot.high - spot.low for spot in places)
        self.steepest = _STEEPEST / max(widest, 1e-9)
        self.top = sum(spot.term.count * spot.high for spot in places)
        self.bottom = sum(spot.term.count * spot.low for spot in places)

    def cumulants(self, tilt: float) -> tuple[float, float, float]:
        """K, K' and K'' of the finite loss at a real tilt."""
        value = mean = variance = 0.0
        for loss, log_mass, count in self._laws:
            exponent = log_mass + tilt * loss
            top = float(exponent.max())
            weight = np.exp(exponent - top)
            total = float(weight.sum())
            centre = float(weight @ loss) / total
            value += count * (top + math.log(total))
            mean += count * centre
            variance += count * float(weight @ (loss - centre) ** 2) / total
        return value, mean, variance

    def at(self, tilt: float) -> tuple[float, float]:
        """(epsilon, log delta) where this tilt is the saddle point of the contour integral of the profile."""
        value, mean, variance = self.cumulants(tilt)
        epsilon = mean - 1 / tilt - 1 / (tilt + 1)
        curvature = variance + 1 / tilt**2 + 1 / (tilt + 1) ** 2
        log_delta = (
            value - tilt * epsilon - math.log(tilt * (tilt + 1)) - 0.5 * math.log(2 * math.pi * curvature)
        )
        return epsilon, log_delta

    def tilt_for(self, *, epsilon: float | None = None, log_delta: float | None = None) -> float:
        """The saddle point for an epsilon, or for a delta."""
        low, high = math.log(1e-4), math.log(self.steepest)
        for _ in range(40):
            middle = 0.5 * (low + high)
            at_epsilon, at_delta = self.at(math.exp(middle))
            early = at_epsilon < epsilon if epsilon is not None else at_delta > (log_delta or 0.0)
            low, high = (middle, high) if early else (low, middle)
        return math.exp(0.5 * (low + high))

    def frame(
        self, saddle: float, log_delta: float, step: float, tolerance: float, *, steeper: bool = False
    ) -> tuple[float, ...]:
        """(tilt, low, high, up, down): of some tilts near the saddle point the one with the narrowest window.

        Where rare large losses decide, as with small sampling rates, the saddle point drags the window out
        to them; a smaller tilt leaves the bulk in the middle. Where rare low losses are in the way, as in the
        swapped pair, a `steeper` one hides them. It must keep the rounding of the transform, which is
        relative to e^(K(tilt) - tilt·ε), below the tolerance.
        """
        epsilon = self.at(saddle)[0]
        best: tuple[float, ...] = ()
        for fraction in _STEEPER if steeper else _FLATTER:
            tilt = min(saddle * fraction, self.steepest)
            size = self.cumulants(tilt)[0] - tilt * epsilon - log_delta
            # An epsilon moves by what delta does, relatively, over the tilt.
            most = math.log(0.05 * tolerance * (1.0 if steeper else max(tilt, 1.0)))
            if best and self.noise(tilt, epsilon, log_delta, step) > most:
                break
            low, high, up, down = self.window(tilt, _NEGLIGIBLE + max(size, 0.0))
            if not best or high - min(low, epsilon) < 0.95 * (best[2] - min(best[1], epsilon)):
                best = tilt, low, high, up, down
        return best

    def noise(self, tilt: float, epsilon: float, log_delta: float, step: float) -> float:
        """The logarithm of what the rounding of the transform is, roughly, as a part of delta."""
        events = sum(count for _, _, count in self._laws)
        size = self.cumulants(tilt)[0] - tilt * epsilon - log_delta
        return math.log(_ROUGH_NOISE * events) + size - 0.5 * math.log(2 * tilt * min(step, 1.0))

    def trimmed(self, places: Sequence[Place], tilt: float, epsilon: float, log_delta: float) -> list[Place]:
        """The places without the low losses that the tilt makes irrelevant (see the zone of `grid_dots`)."""
        size = self.cumulants(tilt)[0] - tilt * epsilon - log_delta
        result = []
        for spot, (loss, log_mass, count) in zip(places, self._laws, strict=True):
            exponent = log_mass + tilt * loss
            share = np.cumsum(np.exp(exponent - exponent.max()))
            few = share * count <= share[-1] * math.exp(-_NEGLIGIBLE - max(size, 0.0))
            if not few.any() or spot.lattice is not None:
                result.append(spot)
                continue
            light = float(loss[np.flatnonzero(few)[-1]])
            low = max(spot.low, light - min(0.1, spot.high - light))
            result.append(replace(spot, low=low, spare=light - low))
        return result

    def window(self, tilt: float, negligible: float) -> tuple[float, float, float, float]:
        """(low, high, up, down): all but e^-negligible of the tilted law lies between, by Chernoff."""
        value, _, variance = self.cumulants(tilt)
        spread = math.sqrt(max(variance, 1e-18))
        further = np.geomspace(0.05, 50.0, 22) / spread
        above = (self._values(tilt + further) - value + negligible) / further
        right = int(above.argmin())
        back = np.concatenate((further, tilt * np.array([0.25, 0.5, 0.75, 0.9, 1.0])))
        below = (value - self._values(tilt - back) - negligible) / back
        left = int(below.argmax())
        low, high = float(below[left]), float(above[right])
        return max(low, self.bottom), min(high, self.top), float(further[right]), float(back[left])

    def _values(self, tilts: Floats) -> Floats:
        """K at each of some tilts."""
        result = np.zeros(len(tilts))
        for loss, log_mass, count in self._laws:
            exponent = log_mass + tilts[:, None] * loss
            top = exponent.max(axis=1)
            result += count * (top + np.log(np.exp(exponent - top[:, None]).sum(axis=1)))
        return result


def _sketch(spot: Place) -> tuple[Floats, Floats]:
    """Losses and log masses of one law on uneven points, dense around 0 where sampled laws live."""
    low, high = spot.low, spot.high
    law, parameters = spot.term.law, spot.term.parameters
    if spot.lattice is not None and (high - low) / spot.lattice < 2000:
        count = round((high - low) / spot.lattice)
        loss = high - spot.lattice * np.arange(count, -1, -1.0)
    else:
        near = np.geomspace(1e-5, 1.0, 160)
        near = np.concatenate((-near[::-1] * max(-low, 0.0), [0.0], near * max(high, 0.0)))
        loss = np.unique(np.concatenate((np.linspace(low, high, 300), near)))
        loss = loss[(loss >= low) & (loss <= high)]
        loss = loss[np.concatenate(([True], np.diff(loss) > 1e-9 * (high - low)))]
    curve = np.minimum.accumulate(np.minimum(law.bounds(loss, parameters)[1], 1.0))
    kept = hull(loss, curve)
    mass = masses(loss[kept], curve[kept])
    some = mass > 0.0
    if not some.any():
        raise _too_far(spot.term)
    return loss[kept][some], np.log(mass[some])


def common_step(places: Sequence[Place]) -> tuple[Fraction | None, list[bool]]:
    """A step that divides the lattices of as many laws as possible, and which laws those are.

    Parameters are decimals, most of them rounded up to floats, so two lattices with a common divisor show it
    in the decimals of their steps.
    """
    order = sorted(
        (i for i, spot in enumerate(places) if spot.lattice is not None), key=lambda i: -places[i].term.count
    )
    shared = [False] * len(places)
    divisor: Fraction | None = None
    for i in order:
        step = _decimal(places[i].lattice or 0.0)
        finer = step if divisor is None else _gcd(divisor, step)
        if divisor is None or (finer * 4096 >= divisor and finer * 10**6 >= step):
            divisor, shared[i] = finer, True
    return divisor, shared


def _decimal(value: float) -> Fraction:
    """The short decimal that a float was rounded up from by a few last places, or what it shows."""
    short = Fraction(f"{value:.{_DIGITS}g}")
    return short if 0 <= Fraction(value) - short <= 4 * Fraction(math.ulp(value)) else Fraction(repr(value))


def _gcd(a: Fraction, b: Fraction) -> Fraction:
    return Fraction(
        math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator
    )
