"""Chapter 2 of the textbook: is a table k-anonymous, and how numbers are made coarser until it is.

The names and arguments are those of *Programming Differential Privacy* (Near and Abuah). For the steward:
both read the truth, and k-anonymity is not differential privacy. `sfumato.anonymity` does more of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.anonymity.measure import measure
from sfumato.anonymity.tables import opened
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer

__all__ = ["generalize", "isKAnonymized"]


def isKAnonymized(  # noqa: N802
    df: Source | Mapping[str, Any], k: int, *, quasi: str | Sequence[str] | None = None
) -> bool:
    """Whether every row shares its quasi-identifiers with at least k − 1 others.

    Traps of the original: it searches the whole table once for each row, where one count of the classes will
    do; it treats every column as a quasi-identifier, so that a table with a diagnosis in it hardly
    ever passes; text breaks its search, and a missing value equals nothing, not even itself. And a class
    whose rows all have the same diagnosis tells it, for any k: see `sfumato.anonymity.measure`.

    Args:
        df: A path, an Arrow, pandas or Polars frame, or a dictionary of columns.
        k: The least number of rows in a class.
        quasi: The columns that an outsider may know; all of them unless given, as in the original.

    Privacy:
        None is claimed; steward-only. The result is an exact function of the rows.

    Raises:
        InvalidParameter: for a column that is not there, or a table without rows.
        SourceUnusable: if the table cannot be read.
    """
    least = as_integer(k, "k")
    if isinstance(df, Mapping):
        df = _table(df)
    if quasi is None:
        with opened(df) as rows:
            quasi = list(rows.kinds)
    return bool(measure(df, quasi).k >= least)


def generalize(df: Any, depths: Mapping[str, int]) -> Any:
    """The table with so many last digits of each named column set to 0, rounding down.

    Traps of the original: it truncates towards 0, so that −9 … 9 become one class, twice as wide as others;
    it goes through floats, which hold no whole number beyond 2⁵³; it applies a function to each cell; and it
    fails for a column without a depth. Here such columns stay as they are. Depths that were chosen by
    looking at the rows do not give a guarantee, and an outlier stays an outlier at any depth.

    Args:
        df: A pandas, Polars or Arrow frame, or a dictionary of columns; the result is of the same kind, and
            `df` is left as it is.
        depths: How many digits, by column: 1 for tens, 2 for hundreds.

    Privacy:
        None is claimed; steward-only. The result is an exact function of the rows.

    Raises:
        InvalidParameter: for anything else than a frame, a column that is not there or not of numbers, or a
            depth that is not a whole number from 0 to 18.
    """
    family = "plain" if isinstance(df, Mapping) else _family(df)
    if not isinstance(df, Mapping) and (family == "plain" or not hasattr(df, "columns")):
        raise InvalidParameter(
            "generalize takes a pandas, Polars or Arrow table, or a dictionary of columns."
        )
    if not isinstance(depths, Mapping):
        raise InvalidParameter('depths must tell the digits of each column, such as {"Age": 1, "Zip": 2}.')
    names = list(df if family == "plain" else df.column_names if family == "pyarrow" else df.columns)
    for name, depth in depths.items():
        if name not in names:
            raise InvalidParameter(f'The table has no column "{name}" to make coarser.')
        if as_integer(depth, "A depth", least=0) > 18:
            raise InvalidParameter(
                "A depth is at most 18: no whole number of 64 bits has more digits to lose."
            )
        if not _is_numeric(df[name]):
            raise InvalidParameter(
                f'Column "{name}" does not hold numbers; give it a hierarchy of sf.anonymity.'
            )
    coarse = {name: _coarse(df[name], 10**depth) for name, depth in depths.items()}
    if family == "plain":
        return {**df, **coarse}
    if family == "pandas":
        return df.assign(**coarse)
    if family == "polars":
        return df.with_columns(*coarse.values())
    for name, column in coarse.items():
        df = df.set_column(names.index(name), name, column)
    return df


def _family(data: Any) -> str:
    """Whose frame or column it is; "plain" for lists and arrays."""
    family = type(data).__module__.partition(".")[0]
    return family if family in ("pandas", "polars", "pyarrow") else "plain"


def _table(columns: Mapping[str, Any]) -> Any:
    """A dictionary of columns as a table.

    Raises:
        InvalidParameter: if they are not columns of one length.
    """
    import pyarrow as pa

    def column(values: Any) -> Any:
        return values.to_arrow() if _family(values) == "polars" else values

    try:
        return pa.table({str(name): column(values) for name, values in columns.items()})
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError):
        raise InvalidParameter(
            "A dictionary must hold columns of one length, each of one kind of values."
        ) from None


def _is_numeric(column: Any) -> bool:
    family = _family(column)
    if family == "plain":
        try:
            array = np.asarray(column)
        except (TypeError, ValueError):
            return False
        return array.ndim == 1 and array.dtype.kind in "iuf"
    if family == "pandas":
        return getattr(column.dtype, "kind", "O") in "iuf"
    if family == "polars":
        return bool(column.dtype.is_integer() or column.dtype.is_float())
    import pyarrow.types as kinds

    return bool(kinds.is_integer(column.type) or kinds.is_floating(column.type))


def _coarse(column: Any, width: int) -> Any:
    """The column rounded down to multiples of the width, in integers of 64 bits or in floats."""
    family = _family(column)
    if family == "plain":
        array = np.asarray(column)
        wide = array.astype(np.int64) if array.dtype.kind in "iu" and array.dtype.itemsize < 8 else array
        coarse = wide // wide.dtype.type(width) * wide.dtype.type(width)
        return coarse if isinstance(column, np.ndarray) else coarse.tolist()
    if family == "pandas":
        return _wide_pandas(column) // width * width
    if family == "polars":
        import polars as pl

        short = column.dtype.is_integer() and column.dtype not in (pl.Int64, pl.UInt64)
        return (column.cast(pl.Int64) if short else column) // width * width
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        return pc.multiply(pc.floor(pc.divide(column, float(width))), float(width))
    kind = pa.uint64() if column.type == pa.uint64() else pa.int64()
    column, step = pc.cast(column, kind), pa.scalar(width, kind)
    below = pc.multiply(pc.divide(column, step), step)  # rounded towards 0
    return pc.subtract(below, pc.if_else(pc.less(column, below), step, pa.scalar(0, kind)))


def _wide_pandas(column: Any) -> Any:
    """Short integers hold no large width: int8 has no 1000 to be divided by."""
    dtype = column.dtype
    if dtype.kind not in "iu" or dtype.itemsize >= 8:
        return column
    name = str(dtype)
    return column.astype(
        "int64[pyarrow]" if name.endswith("[pyarrow]") else "Int64" if name[0] in "IU" else "int64"
    )
