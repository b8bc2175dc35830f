"""Vectors of exact integer noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.samplers.stream import Integers, Stream
from sfumato.samplers.table import UNDECIDED, Table

__all__ = ["fill"]

# Proposals decided by the table at a time, few enough to stay in the cache; and those after which the
# undecided ones of all of them are resolved together, enough that the calls this takes cost nothing.
_CHUNK, _BATCH = 1 << 16, 1 << 19
_LARGEST = 2**63 - 1
_NOTHING = np.zeros(0, np.int64)


def fill(stream: Stream, table: Table, out: Integers) -> None:
    """Fills a one-dimensional array with independent draws; magnitudes beyond 2**63 - 1 saturate there."""
    for start in range(0, out.size, _BATCH):
        part = out[start : start + _BATCH]
        rejected = _propose(stream, table, part)
        while rejected.size:
            again = np.empty(rejected.size, np.int64)
            still = _propose(stream, table, again)
            part[rejected] = again
            rejected = rejected[still]


def _propose(stream: Stream, table: Table, out: Integers) -> NDArray[np.intp]:
    """Writes one proposal to each place and gives the places whose proposal is rejected."""
    parts = [
        _decide(stream, table, out[start : start + _CHUNK], start) for start in range(0, out.size, _CHUNK)
    ]
    places, prefixes, positions = (
        parts[0] if len(parts) == 1 else [np.concatenate(column) for column in zip(*parts, strict=True)]
    )
    if places.size == 0:
        return places
    exponent = table.law.exponent
    resolved = table.resolve(
        stream,
        prefixes,
        np.multiply(positions, 2.0**-exponent, dtype=np.float64),
        exact=lambda i: int(positions[i]),
        size=exponent,
    )
    out[places] = (resolved.blocks << exponent) + positions
    for i, value in resolved.tails:
        out[places[i]] = max(-_LARGEST, min(_LARGEST, value))
    return places[resolved.rejected]


def _decide(
    stream: Stream, table: Table, out: Integers, offset: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], Integers]:
    """Writes what the table decides; gives place, prefix and position of the proposals that it does not."""
    exponent = table.law.exponent
    prefixes, positions = _words(stream, table, out.size)
    symbols = table.lookup.take(prefixes, mode="clip")
    if exponent == 0:
        out[:] = symbols
    else:
        np.left_shift(symbols, exponent, out=out, dtype=np.int64)
        out += positions
    undecided = np.flatnonzero(symbols == UNDECIDED)
    where = positions[undecided] if exponent else np.zeros(undecided.size, np.int64)
    return undecided + offset, prefixes[undecided], where


def _words(stream: Stream, table: Table, count: int) -> tuple[NDArray[np.intp], Integers]:
    """Prefixes, and positions of `exponent` bits, of fresh proposals, from as few words as hold both."""
    prefix, exponent = table.prefix, table.law.exponent
    if exponent == 0:
        halves = stream.words32((count + 1) // 2).view(np.uint16)[:count]
        if prefix < 16:
            halves >>= np.uint16(16 - prefix)
        return halves.astype(np.intp), _NOTHING
    if exponent <= 16:
        words = stream.words32(count)
        prefixes = (words >> np.uint32(32 - prefix)).astype(np.intp)
        words &= np.uint32((1 << exponent) - 1)
        return prefixes, words.astype(np.int64)
    wide = stream.words64(count)
    prefixes = (wide >> np.uint64(64 - prefix)).view(np.int64).astype(np.intp, copy=False)
    if exponent > 48:
        wide = stream.words64(count)
    wide &= np.uint64((1 << exponent) - 1)
    return prefixes, wide.view(np.int64)
