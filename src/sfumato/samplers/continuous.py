"""Continuous noise added to fixed-point values and rounded to whole numbers, exactly.

A real X never exists in full. Its floor in units of 2**-64 is enough: what lies below cannot carry (the
carry lemma of docs/proofs/sampling.md). Almost always even fewer bits decide, those that one 64-bit word
holds beside the symbol; the rest are drawn when a sum could carry either way, and where a test needs more
of X.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.samplers.law import Law, draw
from sfumato.samplers.stream import Integers, Stream, Words64
from sfumato.samplers.table import UNDECIDED, Table
from sfumato.samplers.wholes import Wholes

__all__ = ["DIGITS", "OFFSET", "add", "floors", "one", "rounded", "saturated", "unbiased"]

DIGITS = 64
"""Fractional bits to which a point is known."""

_WIDEST = 48  # bits of a word that are left beside the prefix
_CHUNK, _BATCH = 1 << 16, 1 << 19
_LARGEST = 2**63 - 1
_SAFE = 2**62  # a value up to this and a block of noise, at most 2**62 - 2, cannot overflow


OFFSET = 1 << 126
"""Added to points that are kept for single sums, so that all have the same length whatever the noise."""


def unbiased(whole: int, fraction: int, noise: int) -> int:
    """floor(whole + fraction / 2**64 + X + 1/2), given OFFSET + 2**63 + the floor of X 2**64."""
    return (((whole << DIGITS) + fraction + noise) >> DIGITS) - (OFFSET >> DIGITS)


def rounded(whole: int, fraction: int, noise: int) -> int:
    """floor(whole + fraction / 2**64 + X + 1/2), given the floor of X 2**64."""
    return ((whole << DIGITS) + fraction + noise + (1 << (DIGITS - 1))) >> DIGITS


def saturated(value: int) -> int:
    """The nearest integer of magnitude at most 2**63 - 1."""
    return max(-_LARGEST, min(_LARGEST, value))


def one(stream: Stream, law: Law) -> int:
    """The floor of X 2**64 for one draw X."""
    point = draw(stream, law, DIGITS)
    # Blocks narrower than 2**-64 give X in units of their own width.
    return point >> max(0, -DIGITS - law.exponent)


def _place(law: Law) -> int:
    """Bits of the position that a word gives: with the block, at most 62 bits after the point."""
    return min(_WIDEST, 62 + law.exponent)


def _fits(law: Law) -> bool:
    """Whether that leaves a fractional bit and 16 bits of position; else draws are made singly."""
    return _place(law) >= 16 and _place(law) - law.exponent >= 1


def floors(stream: Stream, table: Table, count: int) -> list[int]:
    """The floors of X 2**64 for `count` independent draws X, as plain integers."""
    if not _fits(table.law):
        return [one(stream, table.law) for _ in range(count)]
    points = [0] * count
    places = list(range(count))
    while places:
        words = stream.words64(len(places))
        prefixes = (words >> np.uint64(64 - table.prefix)).astype(np.intp)
        words &= np.uint64((1 << _place(table.law)) - 1)
        settled = _settle(stream, table, prefixes, words.view(np.int64))
        for i, whole, fraction in zip(places, settled.whole.tolist(), settled.fraction.tolist(), strict=True):
            points[i] = (whole << DIGITS) | fraction
        for i, point in settled.tails:
            points[places[i]] = point
        places = [places[i] for i in settled.rejected.tolist()]
    return points


def add(stream: Stream, table: Table, whole: Wholes, fraction: Words64) -> Wholes:
    """floor(whole + fraction / 2**64 + X + 1/2) for one-dimensional arrays, of any size.

    A whole number can be taken out of the floor, so that numbers held aside meet their noise as 0 would and
    are added afterwards. No sum saturates: those that 64 bits do not hold are held aside.
    """
    if not _fits(table.law):
        pairs = zip(whole.tolist(), fraction.tolist(), strict=True)
        return Wholes.of([rounded(w, f, one(stream, table.law)) for w, f in pairs])
    whole = whole.within(_SAFE)
    out = np.empty(whole.size, np.int64)
    tails: dict[int, int] = {}
    for start in range(0, whole.size, _BATCH):
        part = slice(start, start + _BATCH)
        beyond = _add(stream, table, whole.near[part], fraction[part], out[part])
        tails.update((start + place, total) for place, total in beyond)
    # `out` is right but at the tails and at the numbers held aside.
    sums = {place: value + tails.pop(place, int(out[place])) for place, value in whole.far.items()} | tails
    if not sums:
        return Wholes(out)
    places = np.fromiter(sums, np.intp, len(sums))
    again = Wholes.of(list(sums.values()))
    out[places] = again.near
    return Wholes(out, {int(places[i]): value for i, value in again.far.items()})


def _add(
    stream: Stream, table: Table, whole: Integers, fraction: Words64, out: Integers
) -> list[tuple[int, int]]:
    """Writes the sums of numbers up to 2**62; gives (place, sum) for points of the tails, of any size."""
    rejected, tails = _propose(stream, table, whole, fraction, out)
    while rejected.size:
        again = np.empty(rejected.size, np.int64)
        still, more = _propose(stream, table, whole[rejected], fraction[rejected], again)
        out[rejected] = again
        tails += [(int(rejected[i]), total) for i, total in more]
        rejected = rejected[still]
    return tails


def _propose(
    stream: Stream, table: Table, whole: Integers, fraction: Words64, out: Integers
) -> tuple[NDArray[np.intp], list[tuple[int, int]]]:
    """Writes the sum with one proposal to each place; gives the rejected places and the sums of tails."""
    scratch = _Scratch(min(whole.size, _CHUNK))
    parts = []
    for start in range(0, whole.size, _CHUNK):
        part = slice(start, min(start + _CHUNK, whole.size))
        left = _decide(stream, table, whole[part], fraction[part], out[part], scratch)
        parts.append((left[0] + start, left[1], left[2]))
    places, prefixes, positions = (
        parts[0] if len(parts) == 1 else [np.concatenate(column) for column in zip(*parts, strict=True)]
    )
    if places.size == 0:
        return places, []
    settled = _settle(stream, table, prefixes, positions)
    terms = whole[places], fraction[places]
    out[places] = _sum(*terms, settled.whole, settled.fraction)
    tails = [
        (int(places[i]), rounded(int(terms[0][i]), int(terms[1][i]), point)) for i, point in settled.tails
    ]
    return places[settled.rejected], tails


class _Scratch:
    """Arrays that every chunk uses again, so that the memory stays in the cache."""

    __slots__ = ("flags", "prefix", "symbols", "total", "value")

    def __init__(self, size: int) -> None:
        self.symbols = np.empty(size, np.int16)
        self.flags = np.empty((2, size), np.bool_)
        self.prefix = np.empty(size, np.uint64)
        self.value = np.empty(size, np.uint64)
        self.total = np.empty(size, np.int64)


def _decide(
    stream: Stream, table: Table, whole: Integers, fraction: Words64, out: Integers, scratch: _Scratch
) -> tuple[NDArray[np.intp], NDArray[np.intp], Integers]:
    """Writes the sums that one word a value decides; gives place, prefix and position of the others.

    With d digits, X is known as an integer of units 2**-d and less than one unit more, and so is the value.
    Both remainders together are less than two units: the floor is decided unless the sum of the integers
    ends in d ones.
    """
    size = out.size
    place = _place(table.law)
    digits = place - table.law.exponent
    symbols, prefix, total = scratch.symbols[:size], scratch.prefix[:size], scratch.total[:size]
    undecided, ambiguous = scratch.flags[:, :size]
    words = stream.words64(size)
    np.right_shift(words, np.uint64(64 - table.prefix), out=prefix)
    prefixes = prefix.view(np.int64).astype(np.intp, copy=False)
    np.take(table.lookup, prefixes, out=symbols, mode="clip")
    np.equal(symbols, UNDECIDED, out=undecided)
    words &= np.uint64((1 << place) - 1)
    positions = words.view(np.int64)
    np.left_shift(symbols, place, out=total, dtype=np.int64)
    total += positions
    value = scratch.value[:size]
    np.right_shift(fraction, np.uint64(DIGITS - digits), out=value)
    total += value.view(np.int64)
    total += 1 << (digits - 1)
    ones = (1 << digits) - 1
    np.bitwise_and(total, ones, out=out)
    np.equal(out, ones, out=ambiguous)
    undecided |= ambiguous
    total >>= digits
    np.add(whole, total, out=out)
    places = np.flatnonzero(undecided)
    return places, prefixes[places], positions[places]


@dataclass(frozen=True, slots=True)
class _Settled:
    """Proposals known to 64 fractional bits.

    Attributes:
        whole: floors of X.
        fraction: the 64 bits after the point.
        rejected: which are rejected.
        tails: accepted points of the tails, (which, floor of X 2**64), in place of `whole` and `fraction`.
    """

    whole: Integers
    fraction: Words64
    rejected: NDArray[np.intp]
    tails: list[tuple[int, int]]


def _settle(stream: Stream, table: Table, prefixes: NDArray[np.intp], positions: Integers) -> _Settled:
    """Draws what is missing of proposals of which the prefix and the first bits of the position are known."""
    place = _place(table.law)
    lows = stream.words64(prefixes.size)
    blocks = table.lookup.take(prefixes, mode="clip").astype(np.int64)
    open_ = np.flatnonzero(blocks == UNDECIDED)
    resolved = table.resolve(
        stream,
        prefixes[open_],
        # All the bits that are known: the margin of the float test does not allow for a place cut short.
        np.multiply(positions[open_] + lows[open_] * 2.0**-DIGITS, 2.0**-place, dtype=np.float64),
        exact=lambda i: (int(positions[open_[i]]) << DIGITS) | int(lows[open_[i]]),
        size=place + DIGITS,
        digits=DIGITS,
    )
    blocks[open_] = resolved.blocks
    digits = np.uint64(place - table.law.exponent)
    points = (blocks << place) + positions
    fraction = (points.view(np.uint64) << (np.uint64(DIGITS) - digits)) | (lows >> digits)
    tails = [(int(open_[i]), point) for i, point in resolved.tails]
    return _Settled(points >> digits.astype(np.int64), fraction, open_[resolved.rejected], tails)


def _sum(whole: Integers, fraction: Words64, step: Integers, below: Words64) -> Integers:
    """floor(whole + fraction / 2**64 + step + below / 2**64 + 1/2), where both wholes fit (`_SAFE`)."""
    low = below + fraction
    carry = (low < fraction) + (low >> np.uint64(DIGITS - 1)).view(np.int64)
    return np.asarray(whole + step + carry, np.int64)
