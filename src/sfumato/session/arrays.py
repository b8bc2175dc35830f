"""Arrow arrays made without `pyarrow.array`, which imports pandas, if installed, to see what it was given.

The import takes longer than the whole release of a small answer.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow.lib import StringBuilder

__all__ = ["from_list", "from_numbers", "kind_of"]

_KINDS = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    datetime.date: pa.date32(),
}
_DAY_0 = datetime.date(1970, 1, 1)


def kind_of(value: Any) -> pa.DataType:
    """The type that Arrow gives to an array of such values."""
    known = _KINDS.get(type(value))
    return pa.array([value]).type if known is None else known


def from_list(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Plain Python values as an array of this type; None is null."""
    types = {type(value) for value in values} - {type(None)}
    if not all(_KINDS.get(plain) == kind for plain in types):
        return pa.array(values, kind)
    if pa.types.is_string(kind):
        builder = StringBuilder()
        builder.append_values(values)
        return builder.finish()
    missing = np.array([value is None for value in values], dtype=bool)
    if pa.types.is_date32(kind):
        days = [(value or _DAY_0).toordinal() - _DAY_0.toordinal() for value in values]
        return _from_buffer(kind, np.array(days, dtype=np.int32), missing)
    if kind in _KINDS.values():
        return from_numbers(np.array([value or 0 for value in values], kind.to_pandas_dtype()), missing)
    return pa.array(values, kind)


def from_numbers(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_]) -> pa.Array:
    """Numbers or booleans of NumPy as an array, null where they are missing."""
    plain = np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    return _from_buffer(pa.from_numpy_dtype(values.dtype), plain, missing)


def _from_buffer(kind: pa.DataType, plain: npt.NDArray[Any], missing: npt.NDArray[np.bool_]) -> pa.Array:
    there = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
    return pa.Array.from_buffers(kind, len(missing), [there, pa.py_buffer(plain)])
