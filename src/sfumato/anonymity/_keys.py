"""Columns in memory as one number a row, equal where all their values are: grouping by it is far cheaper."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["key_of"]

_Codes = npt.NDArray[np.int64]
_LARGEST = 2**62
_FEW = 10_000  # to start threads would take longer
_THREADS = 4


def key_of(columns: Sequence[Any]) -> _Codes | None:
    """A number for each row, the same for two rows if and only if all columns are; None for nested values.

    Missing values are equal, all NaN are, and −0.0 is 0.0.

    Args:
        columns: Chunked arrays of one length.
    """
    import pyarrow as pa

    try:
        with ThreadPoolExecutor(
            max(1, min(4, len(columns)))
        ) as pool:  # Arrow encodes without the lock of Python
            coded = list(pool.map(_code, columns))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):  # nested values
        return None
    key, size = coded[0]
    key = key.astype(np.int64)
    for codes, more in coded[1:]:
        if size * more >= _LARGEST:  # both are at most the number of rows once more coded
            key, size = _code(pa.chunked_array([pa.array(key)]))
            key = key.astype(np.int64)
        key *= more
        key += codes
        size *= more
    return key


def _code(column: Any) -> tuple[npt.NDArray[Any], int]:
    """The codes of a column from 0 on, and how many there may be."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_floating(kind):
        column = pc.add(column, pa.scalar(0, kind))
    elif pa.types.is_dictionary(kind):
        return _recoded(column)
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    coded = array.dictionary_encode(null_encoding="encode")
    return coded.indices.to_numpy(zero_copy_only=False), max(1, len(coded.dictionary))


def _recoded(column: Any) -> tuple[npt.NDArray[Any], int]:
    """Codes of a column that has some already, where a value may stand twice, or be missing."""
    import pyarrow as pa

    array = column.unify_dictionaries().combine_chunks()
    values, count = _code(pa.chunked_array([array.dictionary]))
    nowhere = array.dictionary.null_count  # a missing value of the dictionary is that of the rows
    missing = int(values[array.dictionary.is_null().to_numpy(zero_copy_only=False)][0]) if nowhere else count
    places = array.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return np.append(values, missing)[places], count + 1
