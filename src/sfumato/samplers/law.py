"""Noise laws cut into boxes: the exact description that the tables are built from.

A law here has density (or mass) proportional to exp(-phi(|x|)) with phi(k) = slope k + curvature k², on the
integers or on the reals, on both sides or on one. Each side is cut into blocks of width W = 2**exponent.
Over a block the density lies between its values at the far and the near end, so a block is

- a *sure* box of the far end's height: a uniform position in it needs no test;
- a *test* box on top of it: a uniform position is accepted with the probability that the density leaves
  there;

and all that lies beyond the last block is one *tail* symbol a side, a geometric number of blocks under the
tangent of phi. A proposal is a box drawn in proportion to its volume and a position in it;
docs/proofs/sampling.md has the argument.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.samplers import rough, scalar
from sfumato.samplers.enclosure import Enclosure, below_one, exp_minus, quotient
from sfumato.samplers.stream import Stream

__all__ = [
    "COARSE",
    "FINE",
    "SURE",
    "TAIL",
    "TEST",
    "Law",
    "box_chance",
    "draw",
    "finish",
    "gaussian",
    "geometric",
    "is_accepted",
    "laplace",
    "tail_chance",
]

FINE, COARSE = 1024, 32
"""Blocks on a side at most: many for a table that serves vectors, few for a law that is drawn from once."""

TAIL, TEST, SURE = 0, 1, 2
"""Kinds of boxes."""

_WORD = 64
# Bits that volumes carry beyond those of the boundaries made from them.
_GUARD = 64
_KEPT = 4
# Where tails begin, in scales: there the tail has a mass of about 2**-40, so that its slower draw costs
# nothing on average.
_REACH_LAPLACE, _REACH_GAUSSIAN = 28.0, 7.3
# Blocks must stay inside int64 with room for one addition.
_LARGEST = 2**56


@dataclass(frozen=True)  # without slots: what is computed once is kept beside the fields
class Law:
    """A law proportional to exp(-slope |x| - curvature x²), cut into blocks.

    Attributes:
        slope: coefficient of |x|.
        curvature: coefficient of x².
        exponent: the block width is W = 2**exponent.
        blocks: blocks on a side before the tail.
        discrete: on the integers; otherwise on the reals.
        signed: on both sides; otherwise x >= 0.
    """

    slope: Fraction
    curvature: Fraction
    exponent: int
    blocks: int
    discrete: bool = True
    signed: bool = True

    @property
    def width(self) -> Fraction:
        """The width W of a block."""
        return Fraction(2) ** self.exponent

    @property
    def reach(self) -> Fraction:
        """From the near end of a block to its far end: the farthest integer, or the open end."""
        return self.width - 1 if self.discrete else self.width

    @property
    def single(self) -> bool:
        """Whether a block is a single integer, so that nothing needs a test."""
        return self.discrete and self.exponent == 0

    @property
    def sides(self) -> tuple[tuple[int, int], ...]:
        """(sign, least |x|) of each side; on the integers zero belongs to the positive side alone."""
        return ((-1, 1 if self.discrete else 0), (1, 0)) if self.signed else ((1, 0),)

    def least(self, block: int) -> int:
        """The least |x| on the side of a block."""
        return self.sides[0 if block < 0 else -1][1]

    def start(self, block: int) -> Fraction:
        """Where the tail on the side of a block begins."""
        return self.width * self.blocks + self.least(block)

    def drop(self, near: Fraction, step: Fraction) -> Fraction:
        """phi(near + step) - phi(near)."""
        return self.slope * step + self.curvature * step * (2 * near + step)

    def tangent(self, start: Fraction) -> Fraction:
        """The slope of phi at `start`."""
        return self.slope + 2 * self.curvature * start

    @cached_property
    def symbols(self) -> tuple[tuple[int, int], ...]:
        """(kind, block) of every box, in the order in which they share [0, 1); a negative block i is ~i.

        The order is rare first, the innermost sure box last: a boundary next to 1, which no finite
        precision could tell from 1, never occurs. It also is not symmetric, so that no boundary is a dyadic
        rational by symmetry.
        """
        outward = range(self.blocks - 1, -1, -1)
        signs = [sign for sign, _ in self.sides]
        kinds = (SURE,) if self.single else (TEST, SURE)
        tails = [(TAIL, self.blocks if sign > 0 else ~self.blocks) for sign in signs]
        boxes = [(kind, i if sign > 0 else ~i) for kind in kinds for sign in signs for i in outward]
        return (*tails, *boxes)

    def volumes(self, bits: int) -> tuple[list[int], list[int]]:
        """Lower and upper bounds of 2**bits times every symbol's volume over W, in the order of `symbols`."""
        tails: tuple[list[int], list[int]] = ([], [])
        tests: tuple[list[int], list[int]] = ([], [])
        sures: tuple[list[int], list[int]] = ([], [])
        for _, least in self.sides:
            tail = self._tail(self.width * self.blocks + least, bits)
            tails[0].append(tail[0])
            tails[1].append(tail[1])
            near = self._heights(Fraction(least), bits)
            if self.single:
                far = near
            else:
                far = self._heights(least + self.reach, bits)
                tests[0].extend(max(n - f, 0) for n, f in zip(near[0], far[1], strict=True))
                tests[1].extend(n - f for n, f in zip(near[1], far[0], strict=True))
            sures[0].extend(far[0])
            sures[1].extend(far[1])
        return tails[0] + tests[0] + sures[0], tails[1] + tests[1] + sures[1]

    def _tail(self, start: Fraction, bits: int) -> Enclosure:
        """Encloses the volume over W under the tangent of phi beyond the last block, a geometric series."""
        ratio = exp_minus(self.tangent(start) * self.width, bits)
        first = exp_minus(self.drop(Fraction(0), start), bits)
        one = 1 << bits
        return (first[0] << bits) // (one - ratio[0]), -((-first[1] << bits) // (one - ratio[1]))

    def _heights(self, start: Fraction, bits: int) -> tuple[list[int], list[int]]:
        """Bounds of exp(-phi(start + i W)) for every block i, outermost first.

        Each height is the one before times a ratio, and each ratio the one before times exp(-2 curvature
        W²). Every product is rounded outwards, so that the bounds hold whatever the number of steps.
        """
        bend = exp_minus(2 * self.curvature * self.width**2, bits)
        ratios = exp_minus(self.drop(start, self.width), bits)
        firsts = exp_minus(self.drop(Fraction(0), start), bits)
        lower, upper = [], []
        height, ratio = firsts[0], ratios[0]
        for _ in range(self.blocks):
            lower.append(height)
            height = height * ratio >> bits
            ratio = ratio * bend[0] >> bits
        height, ratio = firsts[1], ratios[1]
        for _ in range(self.blocks):
            upper.append(height)
            height = (height * ratio >> bits) + 1
            ratio = (ratio * bend[1] >> bits) + 1
        lower.reverse()
        upper.reverse()
        return lower, upper

    def boundaries(self, bits: int) -> tuple[list[int], list[int]]:
        """Integers with lower[i] <= 2**bits C_i <= upper[i]: where symbol i begins in [0, 1); C_0 = 0."""
        lower, upper = self.volumes(bits + _GUARD)
        # C_i is the volume before symbol i over the whole volume, whose reciprocal is enclosed to 2**-scale.
        scale = 2 * (bits + _GUARD)
        least, most = (1 << scale) // sum(upper), -((-1 << scale) // sum(lower))
        shift = scale - bits
        starts = [before * least >> shift for before in accumulate(lower[:-1], initial=0)]
        ends = [-(-before * most >> shift) for before in accumulate(upper[:-1], initial=0)]
        return starts, ends

    @cached_property
    def about(self) -> rough.About | None:
        """The law in floats, which decide on most draws."""
        return rough.about(self.slope, self.curvature, self.exponent, self.blocks, self.sides, self.discrete)

    @cached_property
    def _made(self) -> dict[int, tuple[list[int], list[int]]]:
        return {}

    def thresholds(self, bits: int) -> tuple[list[int], list[int]]:
        """`boundaries`, kept for the few precisions that ever occur."""
        pair = self._made.get(bits)
        if pair is None:
            pair = self.boundaries(bits)
            if (
                len(self._made) >= _KEPT
            ):  # another thread may read or clear at the same time, which is harmless
                self._made.clear()
            self._made[bits] = pair
        return pair

    def locate(self, stream: Stream, *, value: int = 0, known: int = 0) -> int:
        """The index of the symbol that a uniform U falls into; its first `known` bits may be given."""
        if known == 0:
            value, known = stream.bits(_WORD), _WORD
            if (found := rough.symbol(self.about, value)) is not None:
                return found
        while True:
            lower, upper = self.thresholds(known)
            # U lies in [value, value + 1) / 2**known: surely at or after C_i, surely before C_j.
            first = bisect_right(upper, value) - 1
            last = bisect_right(lower, value) - 1
            if first == last and (last + 1 == len(lower) or value + 1 <= lower[last + 1]):
                return first
            value = (value << _WORD) | stream.bits(_WORD)
            known += _WORD


def draw(stream: Stream, law: Law, digits: int = 0) -> int:
    """The integer N with N <= X 2**digits < N + 1, for one exact draw X of the law.

    For a discrete law `digits` is 0 and N is the draw itself.
    """
    while True:
        kind, block = law.symbols[law.locate(stream)]
        drawn = finish(stream, law, kind, block, digits=digits)
        if drawn is not None:
            return drawn


def finish(stream: Stream, law: Law, kind: int, block: int, *, digits: int = 0) -> int | None:
    """Completes a proposal whose symbol is known: the floor of X 2**digits, or None if it is rejected."""
    size = max(law.exponent + digits, 0)
    position = stream.bits(size) if size else 0
    index = block if block >= 0 else ~block
    if kind == TAIL:
        extra = scalar.geometric(stream, law.tangent(law.start(block)) * law.width)
        index += extra
        place = _Place(stream, law, position, size)
        accepted = scalar.is_below(
            stream, lambda bits: tail_chance(law, block, extra, *place.ends(bits), bits)
        )
    else:
        accepted = kind == SURE or is_accepted(stream, law, block, position=position, size=size)
    if not accepted:
        return None
    magnitude = (index << size) + position
    # On the reals, -X lies in the open cell above with probability one, so the floor of X is the complement.
    return magnitude if block >= 0 else ~magnitude


def box_chance(law: Law, block: int, closest: Fraction, farthest: Fraction, bits: int) -> Enclosure:
    """Encloses the probability that a point of a test box is accepted, at a place in [closest, farthest].

    That is (exp(-d) - exp(-D)) / (1 - exp(-D)), with d and D the drops of phi from the near end of the
    block to the place and to the far end. Places are measured from the near end.
    """
    index = block if block >= 0 else ~block
    near = index * law.width + law.least(block)
    floor = exp_minus(law.drop(near, law.reach), bits)
    top = exp_minus(law.drop(near, farthest), bits)[0], exp_minus(law.drop(near, closest), bits)[1]
    return quotient((max(top[0] - floor[1], 0), top[1] - floor[0]), below_one(floor, bits), bits)


def tail_chance(
    law: Law, block: int, extra: int, closest: Fraction, farthest: Fraction, bits: int
) -> Enclosure:
    """Encloses the probability that a point of a tail is accepted, `extra` blocks and a place beyond it.

    That is exp(-(phi(start + y) - phi(start)) + tangent W extra), with y = W extra + place: what the
    geometric number of blocks did not account for.
    """
    start = law.start(block)

    def excess(place: Fraction) -> Fraction:
        return law.tangent(start) * place + law.curvature * (law.width * extra + place) ** 2

    return exp_minus(excess(farthest), bits)[0], exp_minus(excess(closest), bits)[1]


class _Place:
    """How far a point lies from the near end of its block: drawn bits, and as many more as are asked for."""

    __slots__ = ("_known", "_law", "_stream", "_value")

    def __init__(self, stream: Stream, law: Law, value: int, known: int) -> None:
        self._stream, self._law, self._value, self._known = stream, law, value, known

    def ends(self, bits: int) -> tuple[Fraction, Fraction]:
        """The place twice on the integers; else an interval around it, below 2**-bits of a block wide."""
        if self._law.discrete:
            return Fraction(self._value), Fraction(self._value)
        while self._known < bits:
            self._value = (self._value << _WORD) | self._stream.bits(_WORD)
            self._known += _WORD
        unit = self._law.width / 2**self._known
        return self._value * unit, (self._value + 1) * unit


def is_accepted(
    stream: Stream, law: Law, block: int, *, position: int, size: int, value: int = 0, known: int = 0
) -> bool:
    """Whether a point of a test box is accepted, with exactly the probability that the density leaves there.

    Args:
        stream: where bits come from.
        law: the law.
        block: the block of the box.
        position: the first `size` bits of the place in it, from the near end.
        size: their number.
        value: the first `known` bits of the uniform that decides, if some were drawn already.
        known: their number.
    """
    place = _Place(stream, law, position, size)
    if known == 0:
        value, known = stream.bits(_WORD), _WORD
        closest, _ = place.ends(_WORD + scalar.GUARD)  # drawn as exact arithmetic would draw it
        sure = rough.accepted(law.about, block if block >= 0 else ~block, law.least(block), closest, value)
        if sure is not None:
            return sure
    return scalar.is_below(
        stream, lambda bits: box_chance(law, block, *place.ends(bits), bits), value=value, known=known
    )


def _cut(reach: float, limit: int, discrete: bool) -> tuple[int, int]:
    """(exponent, blocks): the narrowest power-of-two blocks of which `limit` cover the reach."""
    exponent = math.ceil(math.log2(reach / limit))
    if discrete:
        exponent = max(exponent, 0)
    return exponent, max(2, math.ceil(reach / 2.0**exponent))


def _checked(scale: float, name: str) -> float:
    if not scale <= _LARGEST:
        raise InvalidParameter(f"{name} must be at most 2**56 units, so that noise fits 64-bit integers.")
    return scale


def laplace(scale: Fraction, *, discrete: bool = True, limit: int = FINE) -> Law:
    """The Laplace law proportional to exp(-|x| / scale)."""
    exponent, blocks = _cut(_REACH_LAPLACE * _checked(float(scale), "scale"), limit, discrete)
    return Law(1 / scale, Fraction(0), exponent, blocks, discrete)


def gaussian(variance: Fraction, *, discrete: bool = True, limit: int = FINE) -> Law:
    """The Gaussian law proportional to exp(-x² / (2 variance))."""
    sigma = _checked(math.sqrt(float(variance)), "sigma")
    exponent, blocks = _cut(_REACH_GAUSSIAN * sigma, limit, discrete)
    return Law(Fraction(0), 1 / (2 * variance), exponent, blocks, discrete)


def geometric(rate: Fraction, *, limit: int = FINE) -> Law:
    """The geometric law proportional to exp(-rate x) on the integers x >= 0."""
    exponent, blocks = _cut(_REACH_LAPLACE * _checked(float(1 / rate), "1 / rate"), limit, True)
    return Law(rate, Fraction(0), exponent, blocks, True, False)
