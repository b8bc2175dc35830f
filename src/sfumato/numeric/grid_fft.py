"""Composition of discrete laws by one exponentially tilted transform, with all its errors in hand.

Masses are multiplied by e^(c·loss) and normalised before the transform and divided again after it, with c
the saddle point of the composed loss: the part of the law that decides δ(ε) then sits in the middle of the
array, and rounding, which is relative to the largest entry, stays relative to δ even where δ is 1e-14 or
1e-200. What is bounded, and how, is proved in `docs/proofs/grid.md`: the rounding of the transforms (lemma
6), what wraps around (lemma 5), and what the grid itself costs (lemmas 7 and 8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.errors import NotCertified
from sfumato.numeric.grid_dots import Dots
from sfumato.numeric.grid_plan import Layout
from sfumato.numeric.rounding import LIBRARY, Floats, U

__all__ = ["Composed", "Copies", "compose", "kernel_reach"]

_KERNEL = 0.8
_KERNEL_WIDTH = 1.1
"""Lemma 7: spreading costs at most E[0.8·√v·exp(-(S - ε)²/(2.2·v))] as long as √v ≤ 0.02."""
_WIDEST = 0.02

_DECAYED = 60.0
"""Sums over the tail stop where the tilt has fallen to e^-60; the rest is bounded by that."""

_WEIGHTLESS = 1e-15
"""What the points below the lowest atom of a law may weigh: rounding, and little else."""

_UNDERFLOW = 1e-290
"""Added to every upper figure: what products too small for a float may have lost."""

_LONGEST = 2**25
"""No transform is longer, four times what a plan aims at: a longer one asks for gigabytes."""


@dataclass(frozen=True, slots=True)
class Copies:
    """`count` copies of one law on its grid, whose points are every `stride`-th of the common one.

    Connecting the dots either spreads each loss over its cell (`spread`) or, where the cells are those of
    the law's own lattice, raises it by at most `raised`.
    """

    dots: Dots
    count: int
    stride: int
    spread: bool
    raised: float


@dataclass(frozen=True, slots=True)
class Composed:
    """The tilted composition on a window, and what is known about its errors."""

    mass: Floats  # tilted, on the window
    base: Fraction  # the loss at index 0
    step: float
    slope: float  # of the tilt, per step
    log_scale: float  # mass·exp(log_scale - slope·index) is the composed mass
    relative: float  # error of that factor
    noise: float  # a bound on the Euclidean norm of the error of `mass`
    wrapped: float  # tilted mass that lies outside the window, or went through the zone of a cut
    below: float  # the part of it that lies below
    beyond: float  # composed mass above the window
    infinity: tuple[float, float]
    slack: float
    excess: float
    variance: float
    raised: float
    decay: Floats  # e^(-slope·j)
    rising: Floats  # e^(-slope·j)·(1 - e^(-step·j))
    norms: tuple[float, float]  # of these two

    def upper(self, epsilon: float) -> tuple[float, float]:
        """(a bound above δ(epsilon), the slope -dδ/dε there).

        Privacy:
            Never below the profile of the composed dots, hence never below the truth (proof, theorem).
        """
        value, slope = self._finite(epsilon - self._hair(epsilon), sign=1.0)
        return min(1.0, (max(value, 0.0) + self.beyond + self.infinity[1]) * (1 + 8 * U) + _UNDERFLOW), slope

    def lower(self, epsilon: float) -> float:
        """A bound below the true δ(epsilon)."""
        if self.slack >= 1.0 or self.raised >= 1.0:
            return 0.0
        hair = self._hair(epsilon) + self.raised
        value = self._finite(epsilon + hair, sign=-1.0)[0]
        dots = (
            (max(value, 0.0) + self.infinity[0] - self.excess) * (1 - self.slack) * (1 - self.raised - 8 * U)
        )
        return max(0.0, dots - self._spreading(epsilon, hair) * (1 + 1e-9)) * (1 - 8 * U)

    def rounding(self, epsilon: float) -> float:
        """Roughly what of upper - lower finer steps do not lessen: rounding, and what was cut off above.

        The array's error is a sum over frequencies, and a finer step only adds some.
        """
        start = float(self.base - Fraction(epsilon))
        first = max(math.ceil(-start / self.step), 0)
        if first >= len(self.mass):
            return 0.0
        return 2 * self.noise * self.norms[1] * self._scale(first) + 3 * self.excess

    def _hair(self, epsilon: float) -> float:
        """The rounding error of loss - epsilon on the window."""
        return 8 * U * (abs(float(self.base - Fraction(epsilon))) + len(self.mass) * self.step)

    def _finite(self, epsilon: float, *, sign: float) -> tuple[float, float]:
        """E[(1 - e^(epsilon - S))+; S finite], its error added (sign 1) or subtracted (-1), and its slope.

        With the first loss at t above epsilon and the others steps of h behind it, 1 - e^-(t + jh) is
        (1 - e^-t) + e^-t·(1 - e^-jh): two inner products with fixed weights, nothing cancels.
        """
        start = float(self.base - Fraction(epsilon))  # the loss at entry 0 relative to epsilon
        size = len(self.mass)
        first = max(math.ceil(-start / self.step), 0)
        while start + self.step * first < 0.0:
            first += 1
        scale = self._scale(first)
        if first >= size or scale == math.inf:
            return (0.0, 0.0) if first >= size else (sign * math.inf, math.inf)
        t = start + self.step * first
        head, rest = -math.expm1(-t), math.exp(-t)
        last = min(size, first + len(self.decay))
        mass, decay, rising = self.mass[first:last], self.decay[: last - first], self.rising[: last - first]
        whole, risen = _inner(mass, decay), _inner(mass, rising)
        value = head * whole + rest * risen
        error = self.noise * (head * self.norms[0] + rest * self.norms[1])
        # The true masses are not negative, so the sum of moduli exceeds that of masses by twice the noise.
        error += (4 * LIBRARY + (size + 64) * U) * (max(value, 0.0) + 2 * error) * (1 + 1e-6)
        if sign < 0:
            error += self.wrapped  # it may have landed here, where no weight exceeds 1
        else:
            if last < size:
                error += 2 * math.exp(-_DECAYED)  # the tilted masses sum to 1, up to 1e-9
            if start > 0.0:  # the window begins above epsilon: untilt what lies between from there
                error += self.below * math.exp(min(self.slope * (start / self.step + 1), 700.0))
        return (value + sign * error) * scale * (1 + sign * self.relative), abs(
            rest * (whole - risen)
        ) * scale

    def _scale(self, index: int) -> float:
        exponent = self.log_scale - self.slope * index
        return math.exp(exponent) if exponent < 700.0 else math.inf

    def _spreading(self, epsilon: float, hair: float) -> float:
        """What spreading over cells may have added to δ near epsilon (lemmas 7 and 8)."""
        v = self.variance
        if v == 0.0:
            return 0.0
        if v > _WIDEST**2:
            return math.inf
        width = math.sqrt(_KERNEL_WIDTH * v)
        small = -math.log(max(self.upper(epsilon)[0], 1e-300))
        reach = kernel_reach(small) * width + hair
        start = float(self.base - Fraction(epsilon))
        size = len(self.mass)
        first, last = (
            min(max(math.floor((x - start) / self.step), 0), size) for x in (-reach, reach + 2 * self.step)
        )
        if start > -reach:
            return math.inf  # the window does not show the neighbourhood of epsilon
        at = np.abs(start + self.step * np.arange(first, last + 1)[: size - first])
        decay = np.exp(-self.slope * np.arange(len(at)))
        weight = decay * np.exp(-0.5 * (np.maximum(at - hair, 0.0) / width) ** 2)
        mass = self.mass[first : first + len(at)]
        inner = float(np.sum(mass * weight)) + self.noise * _norm(weight) * (1 + 1e-9)
        inner += 1e-12 * float(np.sum(np.abs(mass) * weight))
        kernel = _KERNEL * math.sqrt(v)
        near = kernel * (inner * self._scale(first) * (1 + self.relative) + self.beyond)
        # The dots that were connected are those of the profile up to slack, excess and raising: lemma 8.
        curve, slope = self.upper(epsilon - reach - self.raised)
        gap = self.slack * curve + self.excess + 2 * self.raised * (slope + curve)
        return near + kernel * math.exp(-80.0 - small) + 2 * gap


def kernel_reach(small: float) -> float:
    """How many widths of the kernel to look at, so that less than e^-80 of a delta e^-small is left out."""
    return math.sqrt(169.0 + 2.0 * max(small, 0.0))


def compose(parts: Sequence[Copies], layout: Layout, delta: float) -> Composed:
    """The composition on the layout's window; `delta` is about what the answer will be, and only steers."""
    size, step = layout.size, layout.step
    if size > _LONGEST:
        raise NotCertified(
            "These losses are too many, or reach too far, for a grid; "
            "use more noise, a larger delta or fewer releases, or another accountant."
        )
    slope = _short(layout.tilt * step)
    tilted = [_Tilted.of(part, slope) for part in parts]
    top = sum((Fraction(part.dots.top) * part.count for part in parts), Fraction(0))
    start = (
        math.floor((Fraction(layout.low) - top) / Fraction(step)) - 1
    )  # the index, from the top, of entry 0
    base = top + start * Fraction(step)
    shift = sum(part.count * tilt.reference for part, tilt in zip(parts, tilted, strict=True))
    mass, noise = _convolve(parts, tilted, size, start)
    log_norm = math.fsum(part.count * tilt.log_norm for part, tilt in zip(parts, tilted, strict=True))
    log_scale = log_norm - slope * (start - shift)
    events = sum(part.count for part in parts)
    folds = 2 + max(len(part.dots.mass) * part.stride for part in parts) / size
    relative = _grown(events, LIBRARY + (8 + folds) * U) + 8 * (LIBRARY + U) * (
        sum(part.count * abs(tilt.log_norm) for part, tilt in zip(parts, tilted, strict=True))
        + slope * (abs(start - shift) + size)
        + 4
    )
    above, below, beyond = _outside(parts, layout, base, start, size, slope)
    below = min(below, _under(parts, tilted, start))
    # Paths through the zone of a cut, which the lower end leaves out: lemma 4.
    cut = (
        sum(p.count * float(np.sum(tilt.mass[: p.dots.zone])) for p, tilt in zip(parts, tilted, strict=True))
        * 1.01
    )
    slack, excess = _loose(parts, delta)
    along = np.arange(min(size, math.ceil(_DECAYED / slope) + 2), dtype=np.float64)
    decay = np.exp(-slope * along)
    rising = decay * -np.expm1(-step * along)
    return Composed(
        mass=mass,
        base=base,
        step=step,
        slope=slope,
        log_scale=log_scale,
        relative=relative,
        noise=noise,
        wrapped=above + below + cut,
        below=below,
        beyond=beyond,
        infinity=_infinity(parts),
        slack=slack,
        excess=excess,
        variance=sum(p.count * (p.stride * step) ** 2 for p in parts if p.spread) / 4 * (1 + 16 * U),
        raised=sum(p.count * p.raised for p in parts if not p.spread) * (1 + 16 * U),
        decay=decay,
        rising=rising,
        norms=(_norm(decay) * (1 + 1e-9), _norm(rising) * (1 + 1e-9)),
    )


def _inner(one: Floats, other: Floats) -> float:
    """An inner product on one thread: the library's wakes all of them for a sum this short."""
    return float(np.einsum("i,i->", one, other))


def _norm(values: Floats) -> float:
    """The Euclidean norm, on one thread."""
    return math.sqrt(_inner(values, values))


def _short(value: float) -> float:
    """The value cut to 24 bits, so that its products with indices below 2**29 are exact."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.floor(mantissa * 2**24), exponent - 24)


def _grown(events: int, growth: float) -> float:
    """(1 + each)^events - 1, rounded up."""
    return math.expm1(events * growth) * (1 + 1e-9)


@dataclass(frozen=True, slots=True)
class _Tilted:
    """One law, tilted and normalised: mass·e^(slope·(index - reference) - log_norm); the top has index 0."""

    mass: Floats
    reference: int
    log_norm: float

    @classmethod
    def of(cls, part: Copies, slope: float) -> _Tilted:
        dots = part.dots.mass
        index = part.stride * np.arange(1 - len(dots), 1)
        with np.errstate(divide="ignore"):
            exponent = np.log(dots) + slope * index
        weight = np.exp(exponent - float(exponent.max()))
        reference = round(float(np.sum(weight * index)) / float(weight.sum()))
        # Products of slope and index are exact here, so that each factor errs by one library call and no
        # more.
        raised = dots * np.exp(slope * (index - reference))
        factor = 1.0 / float(np.sum(raised))
        return cls(raised * factor, reference, -math.log(factor))


def _convolve(
    parts: Sequence[Copies], tilted: Sequence[_Tilted], size: int, start: int
) -> tuple[Floats, float]:
    """The circular convolution of all events, turned so that entry 0 is index `start`; its error's norm."""
    from scipy import fft

    each_entry = 8 * U * math.log2(size) * (1 + 1e-9)  # of a transform whose input sums to 1: lemma 6
    product: npt.NDArray[np.complex128] | None = None
    log_size = np.zeros(size // 2 + 1)  # log Π (|factor| + 2·each_entry)^count
    amplified = np.zeros(size // 2 + 1)  # Σ count·each_entry/(|factor| + 2·each_entry)
    events, drift = 0, 0
    for part, tilt in zip(parts, tilted, strict=True):
        n = len(tilt.mass)
        drift += part.count * part.stride * (1 - n)
        events += part.count
        folded = np.bincount((part.stride * np.arange(n)) % size, weights=tilt.mass, minlength=size)
        factor = np.asarray(fft.rfft(folded), dtype=np.complex128)
        modulus = np.abs(factor) + 2 * each_entry
        log_size += part.count * np.log(modulus)
        amplified += part.count * each_entry / modulus
        powered = _power(factor, part.count)
        product = powered if product is None else product * powered
    assert product is not None
    spectral = amplified * np.exp(np.minimum(log_size, 1.0)) * (1 + 1e-6)
    # Half of a spectrum holds at least half of its squared norm.
    root = math.sqrt(2.0 / size)
    multiplications = 3 * U * (events + len(parts)) * 1.01
    noise = root * (_norm(spectral) + (multiplications + each_entry) * _norm(np.abs(product)))
    mass = fft.irfft(product, size)
    return np.roll(mass, (drift - start) % size), noise * (1 + 1e-6) + _UNDERFLOW


def _power(base: npt.NDArray[np.complex128], count: int) -> npt.NDArray[np.complex128]:
    """base**count by squaring: relative error 3 U a multiplication, count - 1 of them at most in effect."""
    result: npt.NDArray[np.complex128] | None = None
    square = base
    while True:
        if count & 1:
            result = square if result is None else result * square
        count >>= 1
        if not count:
            break
        square = square * square
    assert result is not None
    return result


def _outside(
    parts: Sequence[Copies], layout: Layout, base: Fraction, start: int, size: int, slope: float
) -> tuple[float, float, float]:
    """(tilted mass above the window, below it, composed mass above it), by Chernoff on the fine grid."""
    lowest = sum(part.count * part.stride * (1 - len(part.dots.mass)) for part in parts)
    tilt = slope / layout.step
    low = float(base)
    high = float(base + size * Fraction(layout.step))
    here = _cumulant(parts, tilt)
    above = below = beyond = 0.0
    if start + size <= 0:
        there = _cumulant(parts, tilt + layout.up)
        above = _bound(there - here - layout.up * high, abs(there) + abs(here))
        beyond = _bound(there - (tilt + layout.up) * high, abs(there) + abs(here))
    if lowest < start:
        there = _cumulant(parts, tilt - layout.down)
        below = _bound(there - here + layout.down * low, abs(there) + abs(here))
    return above, below, beyond


def _under(parts: Sequence[Copies], tilted: Sequence[_Tilted], start: int) -> float:
    """A bound on the tilted mass below a window that ends at the lowest losses, where Chernoff says little.

    A sum below the window has an event below the lowest point of its law that carries any weight (lemma 5).
    """
    floor, share = 0, _UNDERFLOW
    for part, tilt in zip(parts, tilted, strict=True):
        risen = np.cumsum(tilt.mass)
        first = int(np.searchsorted(risen, _WEIGHTLESS))
        floor += part.count * part.stride * (first + 1 - len(tilt.mass))
        share += part.count * float(risen[first - 1]) * 1.01 if first else 0.0
    return share if floor >= start else math.inf


def _bound(exponent: float, scale: float) -> float:
    return math.exp(min(exponent + 1e-9 * (1.0 + scale), 700.0))


def _cumulant(parts: Sequence[Copies], tilt: float) -> float:
    """Log E[e^(tilt·loss)] of the composed finite masses, to a relative error far below 1e-9."""
    total = 0.0
    for part in parts:
        dots = part.dots
        with np.errstate(divide="ignore"):
            exponent = np.log(dots.mass) + tilt * (
                dots.top - dots.width * np.arange(len(dots.mass) - 1, -1, -1.0)
            )
        top = float(exponent.max())
        total += part.count * (top + math.log(float(np.sum(np.exp(exponent - top)))))
    return total


def _infinity(parts: Sequence[Copies]) -> tuple[float, float]:
    """Bounds on 1 - Π (1 - mass at infinity)^count, without cancellation."""
    if any(part.dots.infinity >= 1.0 for part in parts):
        return 1.0, 1.0
    kept = math.fsum(part.count * math.log1p(-part.dots.infinity) for part in parts)
    exact = -math.expm1(kept)
    surplus = math.expm1(math.fsum(part.count * part.dots.surplus for part in parts))
    slack = 4 * LIBRARY
    return exact * (1 - slack), min(1.0, exact * (1 + slack) * (1 + surplus))


def _loose(parts: Sequence[Copies], delta: float) -> tuple[float, float]:
    """(slack, excess) of the composition: its dots' profile is at most (1 + slack)·exact + excess."""
    pairs = [(part.count, *part.dots.loose(delta)) for part in parts]
    log_slack = math.fsum(count * math.log1p(slack) for count, slack, _ in pairs)
    log_excess = math.fsum(count * math.log1p(excess) for count, _, excess in pairs)
    if not log_slack + log_excess < 1.0:
        return math.inf, math.inf
    return math.expm1(log_slack) * (1 + 1e-9), math.exp(log_slack) * math.expm1(log_excess) * (1 + 1e-9)
