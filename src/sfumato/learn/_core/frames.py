"""Tables as people hand them in: arrays, Arrow, pandas and Polars frames, as columns of numbers and codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.learn._core.declared import Number, Unbought
from sfumato.learn._core.design import Design, coded

__all__ = ["column_of", "columns_for", "names_of"]


def names_of(X: Any) -> list[str] | None:
    """The names of a frame's columns; None: it has none that are text."""
    if isinstance(X, pa.Table):
        return list(X.column_names)
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def column_of(X: Any, name: str) -> NDArray[Any]:
    """One column of a frame, or of a dictionary of arrays, as an array."""
    column = X.column(name) if isinstance(X, pa.Table) else X[name]
    return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)


def columns_for(design: Design, X: Any) -> list[NDArray[Any]]:
    """The columns of a frame by their names: floats, and the codes of categories.

    Raises:
        InvalidParameter: for a column of text whose bounds were to be bought.
        InvalidValue: for numbers that are missing or not finite; outside every guarantee.
    """
    found = list[NDArray[Any]]()
    for column in design.columns:
        values = column_of(X, column.name)
        if isinstance(column, Unbought) and values.dtype.kind not in "biuf":
            raise InvalidParameter(
                f"Column {column.name[:60]!r} is not of numbers, and categories cannot be bought: "
                "list them, or release them with a query first."
            )
        if isinstance(column, Number):
            found.append(_finite(values, column.name))
        else:
            found.append(_codes(values, column.values))
    return found


def _finite(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    try:
        floats = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidValue(f"Column {name[:60]!r} has values that are no numbers.") from None
    if not np.isfinite(floats).all():
        raise InvalidValue(f"Column {name[:60]!r} has NaN or infinity: replace them first.")
    return floats


def _codes(values: NDArray[Any], listed: Sequence[Any]) -> NDArray[np.int64]:
    if values.dtype == object and all(isinstance(value, str) for value in listed):
        import pyarrow.compute as pc

        try:
            texts = pa.array(values, pa.string())
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return coded(values.tolist(), listed)
        places = pc.index_in(texts, value_set=pa.array(list(listed), pa.string()))
        return np.asarray(pc.fill_null(places, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    return coded(values.tolist(), listed)
