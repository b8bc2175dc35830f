"""The draws of `noise` in one kernel, where Triton is: the same words, tables and places, bit for bit."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["chunk"]


@triton.jit
def _quarter(a, b, c, d):
    a = a + b
    d = d ^ a
    d = (d << 16) | (d >> 16)
    c = c + d
    b = b ^ c
    b = (b << 12) | (b >> 20)
    a = a + b
    d = d ^ a
    d = (d << 8) | (d >> 24)
    c = c + d
    b = b ^ c
    b = (b << 7) | (b >> 25)
    return a, b, c, d


@triton.jit
def _block(counter, key, STREAM: tl.constexpr):
    zero = counter * 0
    x0 = zero + 0x61707865
    x1 = zero + 0x3320646E
    x2 = zero + 0x79622D32
    x3 = zero + 0x6B206574
    k4 = zero + tl.load(key + 0).to(tl.uint32, bitcast=True)
    k5 = zero + tl.load(key + 1).to(tl.uint32, bitcast=True)
    k6 = zero + tl.load(key + 2).to(tl.uint32, bitcast=True)
    k7 = zero + tl.load(key + 3).to(tl.uint32, bitcast=True)
    k8 = zero + tl.load(key + 4).to(tl.uint32, bitcast=True)
    k9 = zero + tl.load(key + 5).to(tl.uint32, bitcast=True)
    k10 = zero + tl.load(key + 6).to(tl.uint32, bitcast=True)
    k11 = zero + tl.load(key + 7).to(tl.uint32, bitcast=True)
    x4, x5, x6, x7, x8, x9, x10, x11 = k4, k5, k6, k7, k8, k9, k10, k11
    x12, x13, x14, x15 = counter, zero + STREAM, zero, zero
    for _ in range(10):
        x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
    x0 += 0x61707865
    x1 += 0x3320646E
    x2 += 0x79622D32
    x3 += 0x6B206574
    x4 += k4
    x5 += k5
    x6 += k6
    x7 += k7
    x8 += k8
    x9 += k9
    x10 += k10
    x11 += k11
    x12 += counter
    x13 += STREAM
    return x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15


@triton.jit
def _sized(where, against, packed, keep, SHIFT: tl.constexpr):
    place = (where >> SHIFT) & 0xFFFF
    column = (place & 0x7FFF).to(tl.int32)
    entry = tl.load(packed + column, mask=keep, other=0).to(tl.uint32, bitcast=True)
    drawn = (against >> SHIFT) & 0xFFFF
    size = tl.where(drawn < (entry >> 16), column, (entry & 0xFFFF).to(tl.int32))
    return tl.where(place >= 0x8000, -size, size), keep & (drawn == (entry >> 16))


@triton.jit
def _finer(where, word, packed, second, unsure, SHIFT: tl.constexpr):
    place = (where >> SHIFT) & 0xFFFF
    column = (place & 0x7FFF).to(tl.int32)
    entry = tl.load(packed + column, mask=unsure, other=0).to(tl.uint32, bitcast=True)
    threshold = tl.load(second + column, mask=unsure, other=0).to(tl.uint32, bitcast=True)
    size = tl.where(word < threshold, column, (entry & 0xFFFF).to(tl.int32))
    return tl.where(place >= 0x8000, -size, size), unsure & (word == threshold)


@triton.jit
def _first(to, where, against, f0, c0, keep, WORTH: tl.constexpr):
    low, low_open = _sized(where, against, f0, keep, 0)
    high, high_open = _sized(where, against, c0, keep, 16)
    tl.store(to, low + WORTH * high, mask=keep)
    return low_open | high_open


@triton.jit
def _again(to, where, against, more_low, more_high, f0, f1, c0, c1, keep, WORTH: tl.constexpr):
    low, low_open = _sized(where, against, f0, keep, 0)
    high, high_open = _sized(where, against, c0, keep, 16)
    finer_low, unsure_low = _finer(where, more_low, f0, f1, low_open, 0)
    finer_high, unsure_high = _finer(where, more_high, c0, c1, high_open, 16)
    value = tl.where(low_open, finer_low, low) + WORTH * tl.where(high_open, finer_high, high)
    tl.store(to, value, mask=low_open | high_open)
    return unsure_low | unsure_high


@triton.jit
def _draw(
    out, undecided, key, blocks, f0, f1, c0, c1, WORTH: tl.constexpr, LANES: tl.constexpr, SLOTS: tl.constexpr
):
    at = tl.program_id(0) * LANES + tl.arange(0, LANES)
    keep = at < blocks
    counter = at.to(tl.uint32)
    wide = tl.cast(blocks, tl.int64)
    x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15 = _block(counter, key, 0)
    some = at < 0
    some = some | _first(out + 0 * wide + at, x0, x1, f0, c0, keep, WORTH)
    some = some | _first(out + 1 * wide + at, x2, x3, f0, c0, keep, WORTH)
    some = some | _first(out + 2 * wide + at, x4, x5, f0, c0, keep, WORTH)
    some = some | _first(out + 3 * wide + at, x6, x7, f0, c0, keep, WORTH)
    some = some | _first(out + 4 * wide + at, x8, x9, f0, c0, keep, WORTH)
    some = some | _first(out + 5 * wide + at, x10, x11, f0, c0, keep, WORTH)
    some = some | _first(out + 6 * wide + at, x12, x13, f0, c0, keep, WORTH)
    some = some | _first(out + 7 * wide + at, x14, x15, f0, c0, keep, WORTH)
    if tl.max(some.to(tl.int32)) > 0:
        y0, y1, y2, y3, y4, y5, y6, y7, y8, y9, y10, y11, y12, y13, y14, y15 = _block(counter, key, 1)
        still = at < 0
        still = still | _again(out + 0 * wide + at, x0, x1, y0, y1, f0, f1, c0, c1, keep, WORTH)
        still = still | _again(out + 1 * wide + at, x2, x3, y2, y3, f0, f1, c0, c1, keep, WORTH)
        still = still | _again(out + 2 * wide + at, x4, x5, y4, y5, f0, f1, c0, c1, keep, WORTH)
        still = still | _again(out + 3 * wide + at, x6, x7, y6, y7, f0, f1, c0, c1, keep, WORTH)
        still = still | _again(out + 4 * wide + at, x8, x9, y8, y9, f0, f1, c0, c1, keep, WORTH)
        still = still | _again(out + 5 * wide + at, x10, x11, y10, y11, f0, f1, c0, c1, keep, WORTH)
        still = still | _again(out + 6 * wide + at, x12, x13, y12, y13, f0, f1, c0, c1, keep, WORTH)
        still = still | _again(out + 7 * wide + at, x14, x15, y14, y15, f0, f1, c0, c1, keep, WORTH)
        if tl.max(still.to(tl.int32)) > 0:
            slot = tl.atomic_add(undecided, 1)
            tl.store(undecided + 1 + slot, tl.program_id(0), mask=slot < SLOTS)


def chunk(
    key: torch.Tensor, values: torch.Tensor, tables: Any, *, worth: int, group: int, slots: int
) -> torch.Tensor:
    """Makes the draws of all blocks; how many groups of them have an open one, and which."""
    undecided = torch.zeros(1 + slots, dtype=torch.int32, device=key.device)
    blocks = values.shape[1]
    _draw[(triton.cdiv(blocks, group),)](
        values,
        undecided,
        key,
        blocks,
        *tables[0],
        *tables[1],
        WORTH=worth,
        LANES=group,
        SLOTS=slots,
        num_warps=8,
    )
    return undecided
