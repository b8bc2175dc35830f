"""Chapter 14 of the textbook: ranges and samples from one noisy histogram, which is all that is private.

The names and arguments are those of *Programming Differential Privacy* (Near and Abuah). A synthetic
representation is a list of noisy counts, as `laplace_mech_vec` gives. What is made of it is free. For tables
of many columns there is `sfumato.synth`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.book._data import Floats, floats_of, items_of
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.numeric.exact import as_integer
from sfumato.random import simulation

__all__ = ["gen_samples", "range_query_synth"]


def range_query_synth(syn_rep: Any, a: int, b: int, *, lower: int = 0) -> float:
    """How many values are at least a and less than b, by a noisy histogram with a bin for each whole number.

    Trap of the original: it looks counts up by position. A negative number takes the oldest people instead of
    nobody, and a range beyond the last bin is an error. Here what lies outside of all bins adds nothing. In
    both, the noise of each bin adds up: a range of m bins is √m times as far off as one.

    Args:
        syn_rep: The noisy counts, one for each whole number from `lower` on.
        a: The first number that counts.
        b: The first that does not count any more.
        lower: The number that the first bin is about.

    Privacy:
        None of its own: it works on noisy counts, and costs nothing.

    Raises:
        InvalidParameter: if a, b or lower is not a whole number.
        InvalidValue: if the counts are not a flat list of finite numbers.
    """
    first, counts = as_integer(lower, "lower", least=-(2**62)), _counts(syn_rep)
    start, end = (
        min(max(as_integer(edge, name, least=-(2**62)) - first, 0), len(counts))
        for edge, name in ((a, "a"), (b, "b"))
    )
    return float(counts[start:end].sum())


def gen_samples(n: int, *, syn_rep: Any, bins: Sequence[Any] | None = None) -> list[Any]:
    """Rows that are like those behind a noisy histogram: n of its bins, drawn by their counts.

    Traps of the original: counts below 0 are cut off and the rest is scaled, so that every empty bin gets
    people, and a histogram of many empty bins mostly shows those. Here the counts are the nearest ones that
    are not negative and add up to the same (as much is taken off all of them). The chapter's second table
    takes its bins from `crosstab`: a pair is there because somebody has it. And its n is a noisy count of
    the rows, for another epsilon that the text does not count: `round(sum(syn_rep))` is free.

    Args:
        n: How many rows.
        syn_rep: The noisy counts, one for each bin.
        bins: The bins, a public list: numbers, texts, or pairs of them for two columns. By default the whole
            numbers from 0 on.

    Privacy:
        None of its own: it works on noisy counts, and costs nothing, however many are drawn.

    Raises:
        InvalidParameter: if n is not a whole number, or there is not a bin for each count.
        InvalidValue: if the counts are not a flat list of finite numbers.
    """
    rows, counts = as_integer(n, "n", least=0), _counts(syn_rep)
    names = list(range(len(counts))) if bins is None else items_of(bins)
    if len(names) != len(counts):
        raise InvalidParameter(
            f"There are {len(names):,} bins and {len(counts):,} counts; give one for each."
        )
    drawn = simulation().choice(len(names), rows, p=_shares(counts))
    return [names[place] for place in drawn.tolist()]


def _counts(syn_rep: Any) -> Floats:
    counts = floats_of(syn_rep, "syn_rep")
    if counts.ndim != 1 or not len(counts) or not np.isfinite(counts).all():
        raise InvalidValue("syn_rep must be a flat list of noisy counts, one for each bin.")
    return counts


def _shares(counts: Floats) -> Floats:
    """The nearest counts that are not negative and have the same total, as shares; alike if that is 0.

    A projection on the simplex: one number is taken off all counts, and what falls below 0 is 0.
    """
    total = counts.sum()
    if total <= 0:
        return np.full(len(counts), 1 / len(counts))
    falling = np.sort(counts)[::-1]
    off = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    kept = np.maximum(counts - off[np.flatnonzero(falling > off)[-1]], 0)
    return np.asarray(kept / kept.sum())
