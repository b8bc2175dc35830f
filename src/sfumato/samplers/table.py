"""Vectors of proposals: a lookup table that decides almost every draw from its first 16 bits.

A symbol is found by inverting the cumulative law at one uniform U that is only known as far as needed. The
first bits of U index a table; an entry holds the block if every U that begins so falls into that one sure
box. Otherwise U is extended to 64 bits and searched among the integer boundaries, and if it sits on one of
them, extended further in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.samplers import rough
from sfumato.samplers.law import SURE, TAIL, TEST, Law, finish, is_accepted
from sfumato.samplers.stream import Integers, Stream, Words64

__all__ = ["UNDECIDED", "Resolved", "Table"]

UNDECIDED = -(2**15)
"""The entry of a slot that does not decide."""

_PREFIX, _SUFFIX = 16, 48
# The float evaluation of an acceptance probability is off by less than this (lemma 6 of
# docs/proofs/sampling.md).
_MARGIN = 2.0**-44
# Terms of the series of (1 - exp(-d)) / d, enough for d up to _STEEPEST.
_TERMS = 10
_STEEPEST = Fraction(1, 8)


@dataclass(frozen=True, slots=True)
class Resolved:
    """What became of the proposals that their first bits did not decide.

    Attributes:
        blocks: the block of each; that of a rejected or a tail proposal means nothing.
        rejected: which of them are rejected, as positions among the undecided.
        tails: accepted points of the tails, (position, floor of X 2**digits).
    """

    blocks: Integers
    rejected: NDArray[np.intp]
    tails: list[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Table:
    """A law's lookup table and boundaries, ready for vectors.

    Attributes:
        law: the law that is drawn from.
        prefix: bits that index the table.
        suffix: bits that follow before exact arithmetic takes over.
        margin: floats decide an acceptance only farther than this from its probability.

    The last three are parameters for the tests alone, which shrink them so that every path is taken often.
    """

    law: Law
    prefix: int = _PREFIX
    suffix: int = _SUFFIX
    margin: float = _MARGIN
    lookup: NDArray[np.int16] = field(init=False)
    _lower: Words64 = field(init=False)
    _upper: Words64 = field(init=False)
    _kinds: NDArray[np.int8] = field(init=False)
    _blocks: Integers = field(init=False)
    _near: NDArray[np.float64] = field(init=False)
    _falls: NDArray[np.float64] = field(init=False)
    _shape: tuple[float, float] = field(init=False)
    _reach: float = field(init=False)

    def __post_init__(self) -> None:
        law = self.law
        if not law.single and law.drop((law.blocks - 1) * law.width + law.sides[0][1], law.reach) > _STEEPEST:
            raise InvalidParameter("A table needs blocks that are narrow against the law's scale.")
        put = object.__setattr__
        kinds, blocks = zip(*law.symbols, strict=True)
        put(self, "_kinds", np.array(kinds, np.int8))
        put(self, "_blocks", np.array(blocks, np.int64))
        lower, upper = self._boundaries()
        put(self, "_lower", lower)
        put(self, "_upper", upper)
        put(self, "lookup", self._slots(lower, upper))
        put(self, "_shape", (float(law.slope * law.width), float(law.curvature * law.width**2)))
        put(self, "_reach", float(law.reach / law.width))
        near, falls = self._boxes()
        put(self, "_near", near)
        put(self, "_falls", falls)

    def _boundaries(self) -> tuple[Words64, Words64]:
        """Words below and above where symbols begin: wide ones from floats, where no slot depends on them."""
        known = self.prefix + self.suffix
        near = rough.boundaries(self.law.about, self.suffix) if known == _PREFIX + _SUFFIX else None
        if near is not None:
            return near
        # The last symbol is a large one, so that every boundary is far from 1 and fits a word.
        lower, upper = self.law.boundaries(known)
        return np.array(lower, np.uint64), np.array(upper, np.uint64)

    def _slots(self, lower: Words64, upper: Words64) -> NDArray[np.int16]:
        """The table: slot s is decided for a sure box if all of [s, s+1) / 2**prefix lies in it."""
        sure = np.flatnonzero(self._kinds == SURE)
        suffix, rest = np.uint64(self.suffix), np.uint64((1 << self.suffix) - 1)
        begins = upper[sure]
        first = ((begins >> suffix) + ((begins & rest) > 0)).astype(np.int64)
        ends = np.append(lower[1:] >> suffix, np.uint64(1 << self.prefix))
        last = np.maximum(ends[sure].astype(np.int64), first)
        # Boxes lie in the order of their symbols: what no box decides, and then what one does, in turns.
        lengths = np.diff(np.column_stack((first, last)).ravel(), prepend=0)
        values = np.column_stack((np.full(sure.size, UNDECIDED), self._blocks[sure])).ravel()
        slots = np.full(1 << self.prefix, UNDECIDED, np.int16)
        slots[: last[-1]] = np.repeat(values.astype(np.int16), lengths)
        return slots

    def _boxes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For every symbol, where its block begins (in blocks) and 1 - exp(-D), D the drop of phi across."""
        law = self.law
        if law.single:  # nothing is ever tested
            return np.zeros(self._blocks.size), np.ones(self._blocks.size)
        blocks = self._blocks
        indices = np.where(blocks < 0, ~blocks, blocks).astype(np.float64)
        offset = float(law.sides[0][1] / law.width)
        near = indices + np.where(blocks < 0, offset, 0.0)
        reach = float(law.reach / law.width)
        return near, fall(self.drop(near, np.float64(reach)))

    def drop(self, near: NDArray[np.float64], step: NDArray[np.float64] | np.float64) -> NDArray[np.float64]:
        """phi(near + step) - phi(near), both in blocks: floats, at most eight roundings of positive terms."""
        slope, curvature = self._shape
        total = 2.0 * near
        total += step
        total *= curvature
        total += slope
        total *= step
        return total

    def resolve(
        self,
        stream: Stream,
        prefixes: NDArray[np.intp],
        places: NDArray[np.float64],
        *,
        exact: Callable[[int], int],
        size: int,
        digits: int = 0,
    ) -> Resolved:
        """Finds the symbols of undecided proposals and decides whether they are accepted.

        Args:
            stream: where more bits come from.
            prefixes: the first bits of U of each.
            places: where in its block each lies, as a fraction of the block, from the lower end.
            exact: the same as an integer of `size` bits, given the position among the undecided.
            size: bits of that integer.
            digits: of the floor that tails are given to.
        """
        words = (prefixes.astype(np.uint64) << np.uint64(self.suffix)) | (
            stream.words64(prefixes.size) >> np.uint64(64 - self.suffix)
        )
        symbols = np.searchsorted(self._lower, words, side="right") - 1
        known = self.prefix + self.suffix
        for i in np.flatnonzero(words < self._upper[symbols]).tolist():
            symbols[i] = self.law.locate(stream, value=int(words[i]), known=known)
        kinds = self._kinds[symbols]
        blocks = self._blocks[symbols]
        refused = self._refused(stream, symbols, places, exact=exact, size=size)
        tails: list[tuple[int, int]] = []
        for i in np.flatnonzero(kinds == TAIL).tolist():
            point = finish(stream, self.law, TAIL, int(blocks[i]), digits=digits)
            if point is None:
                refused.append(i)
            else:
                tails.append((i, point))
        return Resolved(blocks, np.array(refused, np.intp), tails)

    def _refused(
        self,
        stream: Stream,
        symbols: NDArray[np.intp],
        places: NDArray[np.float64],
        *,
        exact: Callable[[int], int],
        size: int,
    ) -> list[int]:
        """Which points of test boxes are rejected: floats where they surely decide, else exact arithmetic."""
        tested = np.flatnonzero(self._kinds[symbols] == TEST)
        if tested.size == 0:
            return []
        which = symbols[tested]
        place = places[tested]
        np.subtract(self._reach, place, out=place, where=self._blocks[which] < 0)
        chance = fall(self.drop(self._near[which], place))
        chance /= self._falls[which]
        np.subtract(1.0, chance, out=chance)
        words = stream.words64(tested.size)
        uniform = (words >> np.uint64(11)) * 2.0**-53
        refused = uniform >= chance
        np.subtract(uniform, chance, out=uniform)
        np.abs(uniform, out=uniform)
        for k in np.flatnonzero(uniform < self.margin).tolist():
            i = int(tested[k])
            block = int(self._blocks[which[k]])
            position = exact(i) if block >= 0 else (1 << size) - 1 - exact(i)
            refused[k] = not is_accepted(
                stream, self.law, block, position=position, size=size, value=int(words[k]), known=64
            )
        kept: list[int] = tested[refused].tolist()
        return kept


def fall(drop: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 - exp(-drop) for 0 <= drop <= 1/8, to a relative 2**-48, trusting nothing but IEEE arithmetic."""
    inner = np.ones_like(drop)
    for k in range(_TERMS, 1, -1):
        inner *= drop
        inner *= -1.0 / k
        inner += 1.0
    inner *= drop
    return inner
