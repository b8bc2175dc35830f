"""Tables as people hand them in: arrays, Arrow, pandas and Polars frames, as columns of numbers and codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.learn._core.declared import Number, Unbought, listed
from sfumato.learn._core.design import Design, coded

__all__ = ["check_table", "column_of", "columns_for", "names_of", "not_numbers"]


def check_table(X: Any) -> None:
    """Refuses what is no table, without a value of it in the message.

    Raises:
        InvalidValue: if it has not rows and columns.
    """
    if hasattr(X, "collect"):
        raise InvalidValue("X has not been read yet: give X.collect().")
    if X is None or (
        isinstance(X, str | Mapping) and not hasattr(X, "shape")
    ):  # a sparse matrix may be a dict
        raise InvalidValue(
            f"X must be an array or a frame of pandas, Polars or Arrow, not {_kind(X)}; or a session, with a "
            "SELECT after it."
        )
    if not hasattr(X, "shape") and not isinstance(X, list | tuple):
        return  # scikit-learn says what it makes of it
    if (getattr(X, "ndim", None) if hasattr(X, "shape") else _depth(X)) == 1:
        raise InvalidValue(
            "X must have rows and columns. Reshape your data: X.reshape(-1, 1) if it is a single column "
            "(of a frame, X[['name']]), X.reshape(1, -1) if it is a single row."
        )


def _kind(X: Any) -> str:
    return "None" if X is None else f"a {type(X).__name__}"


def _depth(X: Any) -> int:
    return 1 if not X or np.isscalar(X[0]) else 2


def not_numbers(X: Any, names: Sequence[str] | None) -> InvalidValue:
    """What says which columns hold something else than numbers, without a value of them."""
    texts = [name for name in names or () if column_of(X, name).dtype.kind not in "biuf"]
    which = f"Column {listed(texts)}" if texts else "X"
    return InvalidValue(
        f"{which} has values that are no numbers: declare it as categories, bounds={{'sex': ['F', 'M'], …}}, "
        "or leave it out."
    )


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
        raise InvalidValue(
            f"Column {name[:60]!r} has values that are no numbers: declare it as categories, ['a', 'b']."
        ) from None
    if not np.isfinite(floats).all():
        raise InvalidValue(f"Column {name[:60]!r} has NaN or infinity: replace them first.")
    return floats


def _codes(values: NDArray[Any], known: Sequence[Any]) -> NDArray[np.int64]:
    if values.dtype == object and all(isinstance(value, str) for value in known):
        import pyarrow.compute as pc

        try:
            texts = pa.array(values, pa.string())
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return coded(values.tolist(), known)
        places = pc.index_in(texts, value_set=pa.array(list(known), pa.string()))
        return np.asarray(pc.fill_null(places, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    return coded(values.tolist(), known)
