"""Noise for tensors where they are: a cipher's keystream in integer operations, through two finite tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import torch

from sfumato import random
from sfumato.learn.torch.law import COARSE, COLUMNS, Table, tables

__all__ = ["EACH", "GROUP", "SLOTS", "Drawn", "Noise", "keystream"]

Tensor: TypeAlias = torch.Tensor
Words: TypeAlias = tuple[Tensor, ...]

EACH = 5
"""How many draws one block of the keystream is enough for, at three of its 16 words each."""
GROUP = 256
"""How many blocks of the keystream are made together on an accelerator."""
SLOTS = 63
"""How many groups with an open draw are written down there, of a chunk."""
_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_COLUMN_ROUNDS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONAL_ROUNDS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
_MOST_BLOCKS = 1 << 24  # of one launch: counters and buffers stay small
_SIGNED = 1 << 31


def keystream(key: Tensor, first: int, blocks: int, *, double_rounds: int = 10) -> Words:
    """ChaCha20's 16 words of each of so many blocks, as tensors of 32-bit integers.

    Args:
        key: Its eight words.
        first: The counter of the first block.
        blocks: How many.
        double_rounds: Ten are ChaCha20.
    """
    counter = torch.arange(first, first + blocks, dtype=torch.int32, device=key.device)
    zero = torch.zeros_like(counter)
    start = [zero + _signed(word) for word in _CONSTANTS] + [zero + key[at] for at in range(8)]
    start += [counter, zero, zero, zero]
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


def drawn(words: Words, fine: tuple[Tensor, Tensor], coarse: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """A draw from three words each, and which of them 32 bits of a threshold could not decide.

    Args:
        words: 15 bits for a column and one for a sign, of each table; 32 for the threshold of each.
        fine: Thresholds, and whose a column is from there on.
        coarse: Likewise.
    """
    where, of_fine, of_coarse = words
    low, open_low = _value(where & 0xFFFF, of_fine, fine)
    high, open_high = _value((where >> 16) & 0xFFFF, of_coarse, coarse)
    return low + COARSE * high, open_low | open_high


def _value(place: Tensor, word: Tensor, table: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    column = place & (COLUMNS - 1)
    threshold = table[0][column]
    against = word ^ -_SIGNED
    value = torch.where(against < threshold, column, table[1][column])
    return torch.where(place >= COLUMNS, -value, value), against == threshold


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
        sign are uniform, and a threshold of 96 bits is compared with 96 uniform bits: with the first 32 for
        all draws at once, and with 64 more for the few that these leave open. Condition: the keystream is as
        good as uniform bits, as everywhere in the package.
    """

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        self._kept = tables()
        self._tables = tuple(
            (
                torch.from_numpy(table.first).to(self.device),
                torch.from_numpy(table.other).to(self.device),
            )
            for table in self._kept
        )
        self._shown: Tensor | None = None
        self._chunk: Callable[..., Any] = _kernel() if self.device.type == "cuda" else _chunk

    def draw(self, count: int) -> Drawn:
        """So many draws, under way where the device works by itself."""
        if self.device.type == "cpu":
            words = torch.from_numpy(random.current().words32(3 * count).view(np.int32)).reshape(3, -1)
            return Drawn(lambda: self._settled(words, *drawn(tuple(words), *self._tables)))
        return self.keyed(_key(), count)

    def keyed(self, key: Tensor, count: int) -> Drawn:
        """So many draws from ChaCha20 under a key that is used for nothing else."""
        there, blocks = key.to(self.device, non_blocking=True), -(-count // EACH)
        chunks = [(first, min(_MOST_BLOCKS, blocks - first)) for first in range(0, blocks, _MOST_BLOCKS)]
        begun = [self._chunk(there, *chunk, *self._tables) for chunk in chunks]
        seen = self._seen(torch.stack([groups for _, groups in begun]))

        def settle() -> Tensor:
            for (first, many), (values, _), (some, *groups) in zip(chunks, begun, seen(), strict=True):
                listed = groups[:some] if some <= SLOTS else range(-(-many // GROUP))
                self._settle(values.view(EACH, many), key, first, listed)
            return (begun[0][0] if len(begun) == 1 else torch.cat([values for values, _ in begun]))[:count]

        return Drawn(settle)

    def _seen(self, value: Tensor) -> Callable[[], list[list[int]]]:
        """What a small tensor of the device holds; nothing waits for it until that is asked."""
        if self.device.type != "cuda":
            return lambda: value.tolist()
        if self._shown is None or self._shown.shape != value.shape:
            self._shown = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
        shown, done = self._shown.copy_(value, non_blocking=True), torch.cuda.Event()
        done.record()

        def wait() -> list[list[int]]:
            done.synchronize()
            return shown.tolist()  # type: ignore[no-any-return]

        return wait

    def _settle(self, values: Tensor, key: Tensor, first: int, groups: Iterable[int]) -> None:
        """Makes the draws of these groups again, with all bits that they need."""
        tables = [tuple(each.cpu() for each in table) for table in self._tables]
        for group in groups:
            start, end = group * GROUP, min((group + 1) * GROUP, values.shape[1])
            stream = keystream(key.cpu(), first + start, end - start)
            for row, words in zip(values, _triples(stream), strict=True):
                row[start:end] = self._settled(torch.stack(words), *drawn(words, *tables)).to(row.device)

    def _settled(self, words: Tensor, values: Tensor, undecided: Tensor) -> Tensor:
        """The same draws, where those that 32 bits left open have 64 more."""
        for at in undecided.nonzero().flatten().tolist():
            values[at] = self._exactly(*(int(word) & 0xFFFFFFFF for word in words[:, at]))
        return values

    def _exactly(self, where: int, *firsts: int) -> int:
        value = 0
        for table, place, first, worth in zip(
            self._kept, (where & 0xFFFF, where >> 16), firsts, (1, COARSE), strict=True
        ):
            size = _decided(table, place & (COLUMNS - 1), first)
            value += worth * (-size if place >= COLUMNS else size)
        return value


def _decided(table: Table, column: int, first: int) -> int:
    threshold = ((int(table.first[column]) + _SIGNED) << 64) + int(table.rest[column])
    below = ((first << 64) + random.current().bits(64)) < threshold
    return column if below else int(table.other[column])


def _kernel() -> Callable[..., Any]:
    """One kernel for all of it; operation by operation where Triton is not installed."""
    if find_spec("triton") is None:
        return _chunk
    from sfumato.learn.torch.chacha import chunk

    return partial(chunk, worth=COARSE, each=EACH, group=GROUP, slots=SLOTS)


def _key() -> Tensor:
    return torch.from_numpy(random.current().words32(8).view(np.int32))


def _triples(stream: Words) -> list[Words]:
    return [stream[3 * at : 3 * at + 3] for at in range(EACH)]


def _chunk(
    key: Tensor, first: int, blocks: int, fine: tuple[Tensor, Tensor], coarse: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """The draws of some blocks; how many groups of them have an open one, and which."""
    values, undecided = zip(
        *(drawn(words, fine, coarse) for words in _triples(keystream(key, first, blocks))), strict=True
    )
    groups = (torch.stack(undecided).any(0).nonzero().flatten() // GROUP).unique().to(torch.int32)
    listed = torch.zeros(1 + SLOTS, dtype=torch.int32, device=key.device)
    listed[0] = len(groups)
    listed[1 : 1 + len(groups)] = groups[:SLOTS]
    return torch.cat(values), listed
