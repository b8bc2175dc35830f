"""Vectors of uniform integers and of coins whose probability is rational or an exponential."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

from sfumato.samplers import scalar
from sfumato.samplers.enclosure import exp_minus
from sfumato.samplers.stream import Booleans, Integers, Stream

__all__ = ["coins", "coins_exp", "integers", "permutation"]

_WORD = 32
_SPAN = 1 << _WORD


def integers(stream: Stream, bound: int, count: int) -> Integers:
    """Uniform integers in 0 … bound-1, for 1 <= bound <= 2**63."""
    out = np.empty(count, np.int64)
    draw = _narrow if bound <= _SPAN else _wide
    out[:], kept = draw(stream, bound, count)
    missing = np.flatnonzero(~kept)
    while missing.size:
        out[missing], kept = draw(stream, bound, missing.size)
        missing = missing[~kept]
    return out


def _narrow(stream: Stream, bound: int, count: int) -> tuple[Integers, Booleans]:
    """Lemire (2019): the high half of word x bound, kept unless the low half is below 2**32 mod bound."""
    product = stream.words32(count).astype(np.uint64)
    product *= np.uint64(bound)
    kept = (product & np.uint64(_SPAN - 1)) >= np.uint64(_SPAN % bound)
    return (product >> np.uint64(_WORD)).view(np.int64), kept


def _wide(stream: Stream, bound: int, count: int) -> tuple[Integers, Booleans]:
    """The remainder of a word, kept if the word is below the largest multiple of the bound."""
    words = stream.words64(count)
    kept = words <= np.uint64((1 << 64) // bound * bound - 1)
    return (words % np.uint64(bound)).view(np.int64), kept


def coins(stream: Stream, p: Fraction, count: int) -> Booleans:
    """Heads with probability exactly p, for 0 < p < 1.

    The first word of U decides unless it equals the first word of p; then the rest of U against the rest of
    p does.
    """
    digit, rest = divmod(p.numerator << _WORD, p.denominator)
    words = stream.words32(count)
    heads = words < np.uint32(digit)
    for i in np.flatnonzero(words == np.uint32(digit)).tolist():
        heads[i] = scalar.bernoulli(stream, Fraction(rest, p.denominator))
    return heads


def coins_exp(stream: Stream, x: Fraction, count: int) -> Booleans:
    """Heads with probability exactly exp(-x), for x > 0."""
    lower, upper = exp_minus(x, 2 * _WORD)
    words = stream.words32(count).astype(np.uint64)
    heads = words < np.uint64(lower >> _WORD)
    # Sure tails from the ceiling of the upper bound on; between the two the word does not decide.
    for i in np.flatnonzero(~heads & (words < np.uint64(-(-upper >> _WORD)))).tolist():
        heads[i] = scalar.is_below(stream, partial(exp_minus, x), value=int(words[i]), known=_WORD)
    return heads


def permutation(stream: Stream, count: int) -> Integers:
    """A uniform permutation of 0 … count-1: the order of independent random words.

    All are drawn again if two are equal: given that none are, every order is equally likely, by symmetry.
    """
    while True:
        words = stream.words64(count)
        order = np.argsort(words)
        ranked = words[order]
        if not np.any(ranked[1:] == ranked[:-1]):
            return order.astype(np.int64, copy=False)
