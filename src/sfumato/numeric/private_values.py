"""Private values, each read by itself: none decides how another is read, or what type all of them get.

NumPy makes one type for a whole list: one 0.5 among integers turns all of them into floats, one text turns
them into text, one NaN among ids of 64 bits merges people. So a type is only taken where it is *declared*:
from a NumPy array, or a pandas, Polars or Arrow column. A list, a tuple or a column of objects declares
none, and every value in it is converted alone to the type that the caller asks for.

Privacy:
    Claim: in what these functions give, the entry of a value depends on that value and the declared type
    alone. Whether they raise depends on the declared type and shape, never on a value. Proof: every
    conversion below is a function of one value; where all values of a list are of one plain kind, a
    single call to NumPy with a fixed type does the same to each of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidValue

__all__ = [
    "MASKED",
    "Column",
    "column_of",
    "float_of",
    "floats_each",
    "floats_of",
    "ratio_of",
    "same",
    "table_of",
    "truths_of",
    "whole_of",
]

Floats: TypeAlias = NDArray[np.float64]

MASKED = "Masked arrays are refused: fill the masked entries with a public value, or leave them out, first."

# Beyond this many digits a decimal is not spelt out: 1e999999999 would fill the memory.
_LONGEST = 400
_PLAIN = frozenset({float, int, bool, np.float64, np.float32, np.int64, np.int32, np.bool_})


@dataclass(frozen=True, slots=True)
class Column:
    """A flat column of private values.

    Attributes:
        kind: What its declared type holds, in NumPy's letters: "b", "i", "u", "f", "U" for text, "V" for
            others; "O" where nothing is declared.
        data: An array of that kind, or a list of values by themselves (a declared type with gaps, too).
        nullable: Whether the declared type has room for gaps, so that `data` may be either.
    """

    kind: str
    data: NDArray[Any] | list[Any]
    nullable: bool = False

    def __len__(self) -> int:
        return len(self.data)


def column_of(values: Any, flat: str) -> Column:
    """A flat column from a list, a tuple, or an array or column of NumPy, pandas, Polars or Arrow.

    Raises:
        InvalidValue: for anything else and for arrays of another shape, in the words of `flat`; for masked
            arrays.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidValue(MASKED)
    if isinstance(values, list):
        return Column("O", values)
    if isinstance(values, np.ndarray):
        return _array(values, flat)
    if hasattr(values, "to_pylist") and hasattr(values, "type"):  # Arrow
        return _nullable(values, _arrow_kind(values.type), bool(values.null_count), flat)
    dtype = getattr(values, "dtype", None)
    if dtype is not None and hasattr(values, "null_count") and hasattr(values, "to_list"):  # Polars
        return _nullable(values, _polars_kind(dtype), bool(values.null_count()), flat)
    if dtype is not None and hasattr(values, "isna") and not isinstance(dtype, np.dtype):  # pandas
        return _nullable(values, _pandas_kind(dtype), bool(np.any(values.isna())), flat)
    if hasattr(values, "__array__"):
        return _array(np.asarray(values), flat)
    if isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray | memoryview):
        return Column("O", list(values))
    raise InvalidValue(flat)


def _array(array: NDArray[Any], flat: str) -> Column:
    if array.ndim != 1:
        raise InvalidValue(flat)
    if array.dtype.kind == "O":
        return Column("O", array.tolist())
    return Column("U" if array.dtype.kind == "T" else array.dtype.kind, array)


def _nullable(values: Any, kind: str, gaps: bool, flat: str) -> Column:
    """A column that may have gaps; with or without them, the kind is the declared one."""
    if gaps or kind not in "biuf":
        for way in ("to_pylist", "to_list", "tolist"):
            if hasattr(values, way):
                return Column(kind, list(getattr(values, way)()), nullable=True)
    return Column(kind, _array(np.asarray(values), flat).data, nullable=True)


def _arrow_kind(declared: Any) -> str:
    name = str(declared)
    for start, kind in (("uint", "u"), ("int", "i"), ("bool", "b"), ("float", "f"), ("double", "f")):
        if name.startswith(start):
            return kind
    if name in ("halffloat", "half_float"):
        return "f"
    if name in ("string", "large_string", "string_view"):
        return "U"
    return "O" if name == "null" or name.startswith("decimal") else "V"


def _polars_kind(declared: Any) -> str:
    name = str(declared)
    for start, kind in (("UInt", "u"), ("Int", "i"), ("Boolean", "b"), ("Float", "f"), ("String", "U")):
        if name.startswith(start):
            return kind
    return "O" if name in ("Object", "Null") or name.startswith("Decimal") else "V"


def _pandas_kind(declared: Any) -> str:
    if str(declared) in ("str", "string") or str(declared).startswith("string"):
        return "U"
    kind = str(getattr(declared, "kind", "O"))
    return kind if kind in "biufO" else "V"


def float_of(value: Any) -> float:
    """One number as a float: infinite beyond all floats, NaN for what is not a number or missing.

    Numbers are ints, floats, truth values, Decimals and Fractions, of Python or NumPy; text is not a number.
    """
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if not isinstance(value, _NUMBERS) or isinstance(value, np.timedelta64):
        return math.nan
    number: Any = value
    try:
        with np.errstate(over="ignore"):
            return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    except (TypeError, ValueError, ArithmeticError):
        return math.nan


def whole_of(value: Any) -> int | None:
    """One number as a whole number, of any size; None for what is not a whole number or missing."""
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if isinstance(value, int | np.bool_) or (
        isinstance(value, np.integer) and not isinstance(value, np.timedelta64)
    ):
        return int(value)
    if not isinstance(value, float | np.floating | Decimal | Fraction):
        return None
    if isinstance(value, Decimal) and not value:
        return 0  # with any exponent
    if isinstance(value, Decimal) and not (value.is_finite() and abs(value.adjusted()) < _LONGEST):
        return None
    try:
        whole = int(value)
        return whole if whole == value else None
    except (ValueError, OverflowError):
        return None


def ratio_of(value: Any) -> str | None:
    """One real number that is not whole, exactly and the same for equal ones; None for anything else.

    It is a ratio in lowest terms, in hexadecimal digits (Python refuses to write very long decimal ones), or
    "inf". A Decimal too long to be spelt out is shown by its digits and its exponent.
    """
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if not isinstance(value, float | np.floating | Decimal | Fraction):
        return None
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) >= _LONGEST:
        sign, digits, exponent = value.as_tuple()
        written = "".join(map(str, digits)).lstrip("0")
        short = written.rstrip("0")
        return f"{'-' * sign}{short}e{int(exponent) + len(written) - len(short)}"
    try:
        above, below = value.as_integer_ratio()
        return f"{int(above):x}/{int(below):x}"
    except OverflowError:
        return "inf" if value > 0 else "-inf"
    except ValueError:  # NaN
        return None


def floats_each(values: list[Any]) -> Floats:
    """A list of values as floats, each by itself; NaN for what is not a number."""
    if _PLAIN.issuperset(map(type, values)):
        try:
            return np.array(values, np.float64)
        except OverflowError:  # an integer beyond all floats
            pass
    return np.fromiter(map(float_of, values), np.float64, len(values))


def floats_of(values: Any, *, flat: str, other: str, kinds: str = "iuf") -> Floats:
    """A flat column as float64, each value by itself: NaN where there is no number.

    Args:
        values: a list, an array or a column.
        flat: what to say of anything that is not a flat column.
        other: what to say of a declared type that holds no numbers.
        kinds: which declared types do.

    Raises:
        InvalidValue: by the shape or the declared type alone.
    """
    column = column_of(values, flat)
    if column.kind not in kinds + "O":
        raise InvalidValue(other)
    if isinstance(column.data, list):
        return floats_each(column.data)
    with np.errstate(over="ignore"):  # floats wider than these
        return column.data.astype(np.float64)


def truths_of(values: Any, *, flat: str, other: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """A flat column as truth values, each by itself, and which of them are known: exactly 0 or 1.

    Raises:
        InvalidValue: by the shape or the declared type alone.
    """
    numbers = floats_of(values, flat=flat, other=other, kinds="biuf")
    return numbers == 1, (numbers == 0) | (numbers == 1)


def table_of(values: Any, columns: int | None, *, flat: str, other: str) -> NDArray[Any]:
    """Rows of numbers: an array with the type and shape it has, or float64 rows of `columns` numbers.

    A list declares no type: its values are float64, each by itself, and so are those of a column with room
    for gaps. With `columns`, each row of a list is that many numbers; without, it is one. What does not fit
    is NaN: a number, or all numbers of a row of another length.

    Args:
        values: rows along the first axis.
        columns: how many numbers a row of a list has; None: each row is one number.
        flat: what to say of an array that has no rows, or not `columns` of them.
        other: what to say of a declared type that holds no numbers.

    Raises:
        InvalidValue: by the shape or the declared type alone.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidValue(MASKED)
    if _framed(values):
        values = values.to_numpy(dtype=object) if hasattr(values, "iloc") else _lists(values)
    if not isinstance(values, np.ndarray) and getattr(values, "ndim", 1) > 1 and hasattr(values, "__array__"):
        values = np.asarray(values)
    if isinstance(values, np.ndarray) and (values.ndim != 1 or columns is not None):
        return _declared_table(values, columns, flat, other)
    if columns is None:
        column = column_of(values, flat)
        if column.kind not in "biufO":
            raise InvalidValue(other)
        if isinstance(column.data, list):
            return floats_each(column.data)
        return column.data.astype(np.float64) if column.nullable else column.data
    listed = column_of(values, flat).data
    return _rows([_row(row) for row in listed], columns)


def _declared_table(array: NDArray[Any], columns: int | None, flat: str, other: str) -> NDArray[Any]:
    if array.ndim == 0 or (columns is not None and array.dtype.kind != "O" and array.shape[1:] != (columns,)):
        raise InvalidValue(flat)
    if array.dtype.kind != "O":
        if array.dtype.kind not in "biuf":
            raise InvalidValue(other)
        return array
    if columns is not None and array.ndim == 1:
        return _rows([_row(row) for row in array.tolist()], columns)
    if columns is not None and array.shape[1:] != (columns,):
        raise InvalidValue(flat)
    return floats_each(array.reshape(-1).tolist()).reshape(array.shape)


def _framed(values: Any) -> bool:
    """Whether it is a frame of pandas whose columns may have gaps, or one of Polars or Arrow."""
    if hasattr(values, "iloc") and hasattr(values, "dtypes") and getattr(values, "ndim", 1) == 2:
        return any(not isinstance(dtype, np.dtype) or dtype.kind == "O" for dtype in values.dtypes)
    return hasattr(values, "column_names") or (hasattr(values, "columns") and hasattr(values, "rows"))


def _lists(frame: Any) -> NDArray[Any]:
    """The cells of a frame of Polars or Arrow, each as Python has it."""
    names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    columns = [column_of(frame[name], "") for name in names]
    cells = np.empty((len(columns[0]) if columns else 0, len(columns)), object)
    for place, column in enumerate(columns):
        for row, value in enumerate(column.data):
            cells[row, place] = value
    return cells


def _row(row: Any) -> list[Any] | None:
    """The values of one row, or None for what is not a row."""
    if isinstance(row, list | tuple):
        return list(row)
    if isinstance(row, np.ndarray) and row.ndim == 1:
        return list(row)
    return None


def _rows(rows: list[list[Any] | None], columns: int) -> Floats:
    gap = [math.nan] * columns
    fitting = [row if row is not None and len(row) == columns else gap for row in rows]
    return floats_each(list(chain.from_iterable(fitting))).reshape(len(rows), columns)


def same(value: Any, other: Any) -> bool:
    """Whether two values are equal; what is missing, or cannot be compared, equals nothing."""
    try:
        equal = value == other
    except Exception:  # whatever a type thinks of the comparison, it must not become an error about one row
        return False
    if isinstance(equal, np.ndarray) and not equal.ndim:
        equal = equal[()]
    return isinstance(equal, bool | np.bool_) and bool(equal)


_NUMBERS: tuple[type, ...] = (int, float, np.bool_, np.integer, np.floating, Decimal, Fraction)
