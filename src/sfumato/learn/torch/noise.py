"""Noise for tensors where they are: a cipher's keystream in integer operations, through two finite tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from sfumato import random
from sfumato.learn.torch.law import COARSE, COLUMNS, tables

__all__ = ["EACH", "GROUP", "SLOTS", "Drawn", "Noise", "keystream"]

Tensor: TypeAlias = torch.Tensor
Words: TypeAlias = tuple[Tensor, ...]
Halves: TypeAlias = NDArray[np.uint16]
Tables: TypeAlias = tuple[tuple[Tensor, ...], ...]

EACH = 8
"""How many draws one block of the keystream is enough for, at two of its 16 words each."""
GROUP = 256
"""How many blocks of the keystream are made together on an accelerator."""
SLOTS = 63
"""How many groups with an open draw are written down there, of a chunk."""
_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_COLUMN_ROUNDS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONAL_ROUNDS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
_MOST_BLOCKS = 1 << 20  # together, where each operation holds them all
_AT_ONCE = 1 << 15
_SHARED = 4  # so many times, from which threads share the work
_SIGNED = 1 << 31


def keystream(key: Tensor, counter: Tensor, stream: int = 0, *, double_rounds: int = 10) -> Words:
    """ChaCha20's 16 words of each block, as tensors of 32-bit integers.

    Args:
        key: Its eight words.
        counter: Which blocks.
        stream: The first word of the nonce.
        double_rounds: Ten are ChaCha20.
    """
    zero = torch.zeros_like(counter)
    start = [zero + _signed(word) for word in _CONSTANTS] + [zero + key[at] for at in range(8)]
    start += [counter, zero + stream, zero, zero]
    state = list(start)
    for _ in range(double_rounds):
        for quarter in _COLUMN_ROUNDS + _DIAGONAL_ROUNDS:
            _quarter_round(state, *quarter)
    return tuple(word + begun for word, begun in zip(state, start, strict=True))


def _quarter_round(state: list[Tensor], a: int, b: int, c: int, d: int) -> None:
    state[a] = state[a] + state[b]
    state[d] = _turned(state[d] ^ state[a], 16)
    state[c] = state[c] + state[d]
    state[b] = _turned(state[b] ^ state[c], 12)
    state[a] = state[a] + state[b]
    state[d] = _turned(state[d] ^ state[a], 8)
    state[c] = state[c] + state[d]
    state[b] = _turned(state[b] ^ state[c], 7)


def _turned(word: Tensor, by: int) -> Tensor:
    return (word << by) | ((word >> (32 - by)) & ((1 << by) - 1))


def _signed(word: int) -> int:
    return word - 2 * _SIGNED if word >= _SIGNED else word


def drawn(words: Tensor, tables: Tables) -> tuple[Tensor, Tensor]:
    """Draws from two words each, and which of them 16 bits of a threshold could not decide.

    Args:
        words: 15 bits for a column and one for a sign, of each table; 16 for the threshold of each.
        tables: The fine and the coarse one.
    """
    where, against = words
    parts = [
        _sized(where >> shift, (against >> shift) & 0xFFFF, table[0])
        for shift, table in zip((0, 16), tables, strict=True)
    ]
    return parts[0][0] + COARSE * parts[1][0], parts[0][1] | parts[1][1]


def redrawn(words: Tensor, more: Tensor, tables: Tables) -> tuple[Tensor, Tensor]:
    """The same draws with 32 more bits for each threshold that 16 could not decide."""
    where, against = words
    values, undecided = list[Tensor](), list[Tensor]()
    for shift, word, (packed, second) in zip((0, 16), more, tables, strict=True):
        size, open_still = _sized(where >> shift, (against >> shift) & 0xFFFF, packed)
        column, sign = (where >> shift) & (COLUMNS - 1), 1 - 2 * ((where >> (shift + 15)) & 1)
        threshold = second[column]
        below = (word ^ -_SIGNED) < (threshold ^ -_SIGNED)
        finer = sign * torch.where(below, column, packed[column] & 0xFFFF)
        values.append(torch.where(open_still, finer, size))
        undecided.append(open_still & (word == threshold))
    return values[0] + COARSE * values[1], undecided[0] | undecided[1]


def _sized(place: Tensor, against: Tensor, packed: Tensor) -> tuple[Tensor, Tensor]:
    column = place & (COLUMNS - 1)
    entry = packed[column]
    threshold = (entry >> 16) & 0xFFFF
    size = torch.where(against < threshold, column, entry & 0xFFFF)
    return torch.where((place & COLUMNS) > 0, -size, size), against == threshold


def _drawn_here(words: NDArray[np.uint32]) -> tuple[Tensor, Tensor]:
    """What `drawn` gives, on a processor: in halves of words, and so many at once as its caches hold."""
    count = words.shape[1]
    halves = words.astype("<u4", copy=False).view("<u2").reshape(2, count, 2)
    values, undecided = np.empty(count, np.int32), np.empty(count, np.bool_)

    def made(start: int) -> None:
        part = slice(start, start + _AT_ONCE)
        (low, low_open), (high, high_open) = (
            _sized_here(np.ascontiguousarray(halves[0, part, side]), halves[1, part, side], *table)
            for side, table in enumerate(_halves())
        )
        values[part], undecided[part] = low + COARSE * high, low_open | high_open

    starts, threads = range(0, count, _AT_ONCE), torch.get_num_threads()
    if threads == 1 or len(starts) < _SHARED:
        deque(map(made, starts), maxlen=0)
    else:
        with ThreadPoolExecutor(threads, thread_name_prefix="sfumato-noise") as pool:
            deque(pool.map(made, starts), maxlen=0)
    return torch.from_numpy(values), torch.from_numpy(undecided)


def _sized_here(place: Halves, against: Halves, first: Halves, other: Halves) -> tuple[Any, Any]:
    column = place & np.uint16(COLUMNS - 1)
    threshold = first.take(column)
    size = np.where(against < threshold, column, other.take(column)).astype(np.int32)
    size *= 1 - 2 * (place >> np.uint16(15)).astype(np.int32)
    return size, against == threshold


@cache
def _halves() -> list[tuple[Halves, Halves]]:
    """Of each table the highest 16 bits of thresholds, and whose a column is from there on."""
    packed = [table.packed.view(np.uint32) for table in tables()]
    return [((each >> 16).astype(np.uint16), (each & 0xFFFF).astype(np.uint16)) for each in packed]


class Drawn:
    """Draws that are under way."""

    def __init__(self, settle: Callable[[], Tensor]) -> None:
        self._settle = settle

    def values(self) -> Tensor:
        """The draws, as 32-bit integers."""
        return self._settle()


class Noise:
    """Draws of the noise, each a whole number of steps of a grid, on one device.

    On a processor the bits are those of `sfumato.random`. On an accelerator they are ChaCha20's under a key
    of `sfumato.random`, a new one for each call, made there by integer operations.

    Privacy:
        Claim: each draw is independent and has the law of `sfumato.learn.torch.law`, exactly. A column and a
        sign are uniform, and a threshold of 96 bits is compared with 96 uniform bits: with the first 16 for
        all draws at once, with 32 more of another stream of the same key for those that these leave open, and
        with 48 of `sfumato.random` for the few that are open still. Condition: the keystream is as good as
        uniform bits, as everywhere in the package.
    """

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        self._here = tuple(
            (torch.from_numpy(table.packed), torch.from_numpy(table.second)) for table in tables()
        )
        self._there = tuple(tuple(part.to(self.device) for part in table) for table in self._here)
        self._shown: Tensor | None = None
        self._chunk: Callable[..., Any] = _kernel() if self.device.type == "cuda" else _chunk

    def draw(self, count: int) -> Drawn:
        """So many draws, under way where the device works by itself."""
        if self.device.type == "cpu":
            words = random.current().words32(2 * count).reshape(2, -1)
            signed = torch.from_numpy(words.view(np.int32))
            return Drawn(lambda: self._settled(signed, *_drawn_here(words)))
        return self.keyed(_key(), count)

    def keyed(self, key: Tensor, count: int) -> Drawn:
        """So many draws from ChaCha20 under a key that is used for nothing else."""
        there, blocks = key.to(self.device, non_blocking=True), -(-count // EACH)
        values = torch.empty((EACH, blocks), dtype=torch.int32, device=self.device)
        seen = self._seen(self._chunk(there, values, self._there))

        def settle() -> Tensor:
            some, *groups = seen()
            self._settle(values, key, groups[:some] if some <= SLOTS else range(-(-blocks // GROUP)))
            return values.view(-1)[:count]

        return Drawn(settle)

    def _seen(self, value: Tensor) -> Callable[[], list[int]]:
        """What a small tensor of the device holds; nothing waits for it until that is asked."""
        if self.device.type != "cuda":
            return lambda: value.tolist()
        if self._shown is None:
            self._shown = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
        shown, done = self._shown.copy_(value, non_blocking=True), torch.cuda.Event()
        done.record()

        def wait() -> list[int]:
            done.synchronize()
            return shown.tolist()  # type: ignore[no-any-return]

        return wait

    def _settle(self, values: Tensor, key: Tensor, groups: Iterable[int]) -> None:
        """Makes the draws of these groups again, with all bits that they need."""
        for group in groups:
            start, end = group * GROUP, min((group + 1) * GROUP, values.shape[1])
            counter = torch.arange(start, end, dtype=torch.int32)
            streams = [_pairs(keystream(key.cpu(), counter, stream)) for stream in (0, 1)]
            for row, words, more in zip(values, *streams, strict=True):
                again, undecided = redrawn(words, more, self._here)
                row[start:end] = self._exactly(words, more, again, undecided).to(row.device)

    def _settled(self, words: Tensor, values: Tensor, undecided: Tensor) -> Tensor:
        """The same draws, where those that 16 bits left open have 80 more."""
        places = undecided.nonzero().flatten()
        if len(places):
            more = torch.from_numpy(random.current().words32(2 * len(places)).view(np.int32)).reshape(2, -1)
            few = words[:, places]
            values[places] = self._exactly(few, more, *redrawn(few, more, self._here))
        return values

    def _exactly(self, words: Tensor, more: Tensor, values: Tensor, undecided: Tensor) -> Tensor:
        """The same draws, where those that 48 bits left open have all of them."""
        for at in undecided.nonzero().flatten().tolist():
            values[at] = _decided(*(int(word) & 0xFFFFFFFF for word in (*words[:, at], *more[:, at])))
        return values


def _decided(where: int, against: int, *more: int) -> int:
    """A draw with 96 bits for each threshold, the last 48 of them new."""
    value = 0
    for table, shift, middle, worth in zip(tables(), (0, 16), more, (1, COARSE), strict=True):
        column = where >> shift & (COLUMNS - 1)
        threshold, other = table.column(column)
        drawn = ((against >> shift & 0xFFFF) << 80) + (middle << 48) + random.current().bits(48)
        size = column if drawn < threshold else other
        value += worth * (-size if where >> (shift + 15) & 1 else size)
    return value


def _kernel() -> Callable[..., Any]:
    """One kernel for all of it; operation by operation where Triton is not installed."""
    if find_spec("triton") is None:
        return _chunk
    from sfumato.learn.torch.chacha import chunk

    return partial(chunk, worth=COARSE, group=GROUP, slots=SLOTS)


def _key() -> Tensor:
    return torch.from_numpy(random.current().words32(8).view(np.int32))


def _pairs(stream: Words) -> list[Tensor]:
    return [torch.stack(stream[2 * at : 2 * at + 2]) for at in range(EACH)]


def _chunk(key: Tensor, values: Tensor, tables: Tables) -> Tensor:
    """Makes the draws of all blocks; how many groups of them have an open one, and which."""
    blocks = values.shape[1]
    listed, some = torch.zeros(1 + SLOTS, dtype=torch.int32, device=key.device), list[Tensor]()
    for first in range(0, blocks, _MOST_BLOCKS):
        counter = torch.arange(first, min(first + _MOST_BLOCKS, blocks), dtype=torch.int32, device=key.device)
        for row, words in zip(values, _pairs(keystream(key, counter)), strict=True):
            made, undecided = drawn(words, tables)
            row[first : first + _MOST_BLOCKS] = made
            some.append(counter[undecided])
    again = torch.cat(some).unique()
    if len(again):
        streams = [_pairs(keystream(key, again, stream)) for stream in (0, 1)]
        undecided = torch.zeros_like(again, dtype=torch.bool)
        for row, words, more in zip(values, *streams, strict=True):
            row[again], still = redrawn(words, more, tables)
            undecided |= still
        groups = (again[undecided] // GROUP).unique()
        listed[0] = len(groups)
        listed[1 : 1 + min(len(groups), SLOTS)] = groups[:SLOTS]
    return listed
