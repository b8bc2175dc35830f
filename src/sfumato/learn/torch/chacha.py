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
def _drawn(where, word, shift: tl.constexpr, first, other, keep):
    place = (where >> shift) & 0xFFFF
    column = (place & 0x7FFF).to(tl.int32)
    threshold = tl.load(first + column, mask=keep, other=0)
    against = (word ^ 0x80000000).to(tl.int32, bitcast=True)
    size = tl.where(against < threshold, column, tl.load(other + column, mask=keep, other=0))
    return tl.where(place >= 0x8000, -size, size), against == threshold


@triton.jit
def _draw(
    out,
    undecided,
    key,
    start,
    blocks,
    f0,
    f1,
    c0,
    c1,
    COARSE: tl.constexpr,
    LANES: tl.constexpr,
    SLOTS: tl.constexpr,
):
    at = tl.program_id(0) * LANES + tl.arange(0, LANES)
    keep = at < blocks
    counter = (at + start).to(tl.uint32)
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
    x12, x13, x14, x15 = counter, zero, zero, zero
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
    some = keep & (at < 0)
    for each in tl.static_range(5):
        if each == 0:
            w, u, v = x0, x1, x2
        elif each == 1:
            w, u, v = x3, x4, x5
        elif each == 2:
            w, u, v = x6, x7, x8
        elif each == 3:
            w, u, v = x9, x10, x11
        else:
            w, u, v = x12, x13, x14
        low, low_open = _drawn(w, u, 0, f0, f1, keep)
        high, high_open = _drawn(w, v, 16, c0, c1, keep)
        tl.store(out + each * blocks + at, low + COARSE * high, mask=keep)
        some = some | (keep & (low_open | high_open))
    if tl.max(some.to(tl.int32)) > 0:
        slot = tl.atomic_add(undecided, 1)
        tl.store(undecided + 1 + slot, tl.program_id(0), mask=slot < SLOTS)


def chunk(
    key: torch.Tensor,
    first: int,
    blocks: int,
    fine: Any,
    coarse: Any,
    *,
    worth: int,
    each: int,
    group: int,
    slots: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The draws of some blocks; how many groups of them have an open one, and which."""
    out = torch.empty((each, blocks), dtype=torch.int32, device=key.device)
    undecided = torch.zeros(1 + slots, dtype=torch.int32, device=key.device)
    _draw[(triton.cdiv(blocks, group),)](
        out, undecided, key, first, blocks, *fine, *coarse, COARSE=worth, LANES=group, SLOTS=slots
    )
    return out.view(-1), undecided
