"""Columns in memory as one number a row, equal where all their values are: numbers are cheaper to count."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass

__all__ = ["Codes", "Key", "key_of", "occurring", "ranks_of"]

Codes: TypeAlias = npt.NDArray[np.int64]
_Whole: TypeAlias = npt.NDArray[np.signedinteger[Any]]

_LARGEST = 2**62
_NARROW = 2**31  # numbers below it are sorted twice as fast
_FEW = 10_000  # rows; below it a helper does not pay
_DENSE = 4  # numbers to a row; below it they are counted in place, above it sorted


@dataclass(frozen=True, slots=True)
class Key:
    """A number for each row.

    Attributes:
        codes: From 0 on; two rows have the same if and only if they agree in all columns.
        size: How many numbers there may be.
    """

    codes: _Whole
    size: int

    def beside(self, codes: _Whole, size: int) -> Key:
        """The key of these columns and one more with such codes."""
        mine = self if self.size * size < _LARGEST else _dense(self)
        narrow = mine.size * size < _NARROW
        both = np.multiply(mine.codes, size, dtype=np.int32 if narrow else np.int64)
        both += codes
        return Key(both, mine.size * size)


def key_of(columns: Sequence[Any]) -> Key | None:
    """The key of some columns; None if one holds nested values.

    Missing values are equal, all NaN are, and −0.0 is 0.0.

    Args:
        columns: Chunked arrays of one length.
    """
    import pyarrow as pa

    try:
        coded = _all_coded(columns)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
        return None
    key = Key(coded[0][0], max(1, len(coded[0][1])))
    for codes, dictionary in coded[1:]:
        key = key.beside(codes, max(1, len(dictionary)))
    return key


def ranks_of(column: Any) -> Key | None:
    """The place of each value among the different ones of a column; None if it holds nested values.

    A missing value comes first, NaN last.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        codes, different = _coded(column)
        if pa.types.is_floating(different.type):  # Arrow puts NaN beside what is missing, numpy last
            known = different.is_valid().to_numpy(zero_copy_only=False)
            order = np.lexsort((different.fill_null(0.0).to_numpy(), known))
        else:
            # Arrow puts a missing value last, and it is there once at most; older ones cannot put it first.
            order = np.roll(pc.sort_indices(different).to_numpy(), different.null_count)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
        return None
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return Key(places[codes], len(order))


def occurring(key: Key, weights: Codes | None = None) -> tuple[_Whole, Codes]:
    """The numbers that occur, in order, and how often each does, or how much its rows weigh together."""
    if key.size <= _DENSE * len(key.codes):
        counts = np.bincount(key.codes, weights=weights, minlength=key.size).astype(np.int64)
        keys = np.flatnonzero(counts)
        return keys, counts[keys]
    order = None if weights is None else np.argsort(key.codes, kind="stable")
    codes = np.sort(key.codes) if order is None else key.codes[order]
    begins = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    if weights is None or order is None:
        return codes[begins], np.diff(np.append(begins, len(codes)))
    return codes[begins], np.add.reduceat(weights[order], begins)


def _all_coded(columns: Sequence[Any]) -> list[tuple[_Whole, Any]]:
    """The codes of columns; of many rows a helper codes every other column, as Arrow leaves the lock."""
    if len(columns) == 1 or len(columns[0]) < _FEW:
        return [_coded(column) for column in columns]
    others = _helper(os.getpid()).submit(lambda: [_coded(column) for column in columns[1::2]])
    mine = [_coded(column) for column in columns[::2]]
    theirs = others.result()
    return [theirs[i // 2] if i % 2 else mine[i // 2] for i in range(len(columns))]


def _dense(key: Key) -> Key:
    """The same with as few numbers as there are different rows."""
    distinct, codes = np.unique(key.codes, return_inverse=True)
    return Key(codes.astype(np.int64), max(1, len(distinct)))


@cache
def _helper(_process: int) -> ThreadPoolExecutor:
    """A thread that waits for columns to code: to start one each time would take as long as the work."""
    return ThreadPoolExecutor(1, thread_name_prefix="sfumato-codes")


def _coded(column: Any) -> tuple[_Whole, Any]:
    """The codes of a column and what they mean, each value once and a missing one among them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        return _recoded(column)
    if pa.types.is_floating(kind):
        column = pc.add(column, pa.scalar(0, kind))
        if pc.any(pc.is_nan(column)).as_py():  # there are many of them, and Arrow tells them apart
            column = pc.if_else(pc.is_nan(column), pa.scalar(math.nan, kind), column)
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    coded = array.dictionary_encode(null_encoding="encode")
    return coded.indices.to_numpy(zero_copy_only=False), coded.dictionary


def _recoded(column: Any) -> tuple[_Whole, Any]:
    """The same for a column that has codes already, where a value may stand twice, or be missing."""
    import pyarrow as pa

    array = column.unify_dictionaries().combine_chunks()
    listed = pa.concat_arrays([array.dictionary, pa.nulls(1, array.dictionary.type)])
    codes, different = _coded(pa.chunked_array([listed]))
    places = array.indices.fill_null(len(listed) - 1).to_numpy(zero_copy_only=False)
    return codes[places], different
