"""The reader's data as arrays: a frame of any kind with a named column, or the column itself."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.numeric.exact import floor_log2
from sfumato.numeric.private_values import floats_of as floats_each_of

__all__ = [
    "Floats",
    "above",
    "column_of",
    "floats_of",
    "items_of",
    "levels_of",
    "many",
    "numbers_of",
    "stacked",
]

Floats: TypeAlias = NDArray[np.float64]

# Clamped values are told in 2**30 to 2**31 steps, so that 2**32 of them add up exactly in 64 bits.
_BITS = 30


def many(values: object) -> bool:
    """Whether this is a column of values rather than one of them."""
    return hasattr(values, "__len__") and not isinstance(values, str | bytes)


def column_of(df: Any, name: str) -> Any:
    """The named column of a pandas, Polars or Arrow frame or of a mapping; anything else is the column.

    Raises:
        InvalidParameter: if the frame has no such column.
    """
    if isinstance(df, np.ndarray):
        return df
    # An Arrow table calls its names `column_names`, and the data itself `columns`.
    heads: Any = df if isinstance(df, Mapping) else getattr(df, "column_names", getattr(df, "columns", None))
    if heads is None:
        return df
    names = list(heads)
    if name not in names:
        shown = ", ".join(f'"{str(head)[:40]}"' for head in names[:12])
        raise InvalidParameter(f'The table has no column "{name}"; it has {shown or "none"}.')
    return df[name]


def numbers_of(df: Any, name: str = "Age") -> Floats:
    """The numbers of a column, each read by itself; rows without one are left out.

    What is missing or no number (NaN, None, text in a list) is left out; what is infinite, or beyond all
    floats, counts as the largest float, for every clamp to take.

    Raises:
        InvalidParameter: if the frame has no such column.
        InvalidValue: if the values are not a flat column, or of a declared type without numbers.
    """
    given = column_of(df, name)
    numbers = floats_each_of(
        given,
        flat="Values must be a flat column of numbers, one for each row.",
        other="Values must be a flat column of numbers, one for each row: convert them first.",
    )
    return np.nan_to_num(numbers[~np.isnan(numbers)])


def above(values: Floats, floor: float) -> Floats:
    """How far each value lies above `floor`; infinite beyond all floats, which every clamp takes.

    Without a word: whether a difference overflows depends on the data, and a warning would tell.
    """
    with np.errstate(over="ignore"):
        return np.asarray(values - floor)


def stacked(values: Any) -> Any:
    """A dictionary of columns as a matrix with a row for each row; anything else as it is."""
    if not isinstance(values, Mapping):
        return values
    return np.column_stack([np.asarray(column) for column in values.values()])


def floats_of(values: Any, name: str) -> Floats:
    """The values as an array of floats of any shape; of a dictionary of columns, a row for each row.

    Raises:
        InvalidValue: if they are not numbers; none of them is shown.
    """
    try:
        return np.asarray(stacked(values), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(f"{name} must be numbers; encode text first.") from None


def items_of(data: Any) -> list[Any]:
    """The values of a column as Python objects.

    Raises:
        InvalidValue: if it is not a column.
    """
    is_table = isinstance(data, Mapping) or hasattr(data, "column_names") or hasattr(data, "columns")
    if not many(data) or is_table:
        raise InvalidValue("Give one column of values, such as adult['Occupation'], and not a whole table.")
    for way in ("to_pylist", "to_list", "tolist"):
        if hasattr(data, way):
            return list(getattr(data, way)())
    return list(data)


def levels_of(values: Floats, upper: Fraction) -> tuple[NDArray[np.int64], int, Fraction]:
    """Values clamped to 0 … upper in whole steps of a power of two, the most steps, and the step.

    Privacy:
        Each row's level lies in 0 … most and depends on that row alone. Sums of them are exact, so that one
        row more or less moves a sum by at most `most`, however the others round.
    """
    exponent = floor_log2(upper) - _BITS
    step = Fraction(2) ** exponent
    most = int(upper // step)
    scaled = np.ldexp(np.clip(values, 0.0, float(upper)), -exponent)
    return np.minimum(np.floor(scaled).astype(np.int64), most), most, step
