"""A column as whole numbers: each distinct value has a code, in order, and a missing value is one too."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Coded", "Codes", "Kind", "classes_of", "encode", "text_of"]

Codes: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Kind: TypeAlias = Literal["number", "date", "time", "text", "other"]

_UNTYPED = (
    "holds lists, spans of time or other values that have no order; leave it out or make it text first."
)
_BEYOND = "holds days or times beyond the years 1 to 9999; leave it out or make it text first."


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column as codes.

    Attributes:
        name: The column.
        kind: What its values are.
        values: Each value once, in order. NaN is one value, -0.0 is 0.0, and None, where it occurs, is last.
        codes: For each row the place of its value among `values`.
        proper: How many of the values lie on a line: infinities, NaN and None come after those.
    """

    name: str
    kind: Kind
    values: Sequence[object]
    codes: Codes
    proper: int

    @property
    def line(self) -> Floats:
        """Where the proper values lie: numbers and days by size, text by rank.

        Not scaled, so that equal shares of two columns are equal floats: a quotient is rounded once.
        """
        ranks = np.arange(self.proper, dtype=np.float64)
        if self.kind not in ("number", "date", "time") or self.proper < 2:
            return ranks
        numbers = np.array([_number(value) for value in self.values[: self.proper]])
        if math.isinf(float(numbers[-1]) - float(numbers[0])):
            numbers = numbers / 4
        # Huge neighbours may be one float; then ranks are all there is to go by.
        return numbers if numbers[0] < numbers[-1] and np.isfinite(numbers).all() else ranks


def encode(table: pa.Table, name: str) -> Coded:
    """The column as codes.

    Raises:
        InvalidParameter: if its values are nested, so that they have no order.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _plain(table.column(name))
    try:
        coded = column.dictionary_encode("encode")
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        if isinstance(coded, pa.ChunkedArray):  # an empty one has no chunk to give
            coded = coded.chunk(0) if coded.num_chunks else pa.array([], column.type).dictionary_encode()
        distinct = coded.dictionary
        indices = pc.sort_indices(distinct)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
        raise InvalidParameter(f'Column "{name[:100]}" {_UNTYPED}') from None
    kind = _kind(column.type)
    values = _listed(distinct.take(indices))
    if values is None:
        raise InvalidParameter(f'Column "{name[:100]}" {_BEYOND}')
    order, values, proper = _odd_last(indices.to_numpy(), values)
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    codes = back[coded.indices.to_numpy(zero_copy_only=False)] if len(coded) else np.zeros(0, dtype=np.int64)
    return Coded(name, kind, values, codes, proper)


def _plain(column: Any) -> Any:
    """The column in a type whose equal values are equal codes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type))
    if pa.types.is_float16(kind):
        return _plain(column.cast(pa.float32()))
    if pa.types.is_floating(kind):
        # Adding zero makes -0.0 into 0.0; NaNs of different bits become one.
        zero, nan = pa.scalar(0.0, kind), pa.scalar(math.nan, kind)
        return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if pa.types.is_binary_view(kind):
        return column.cast(pa.large_binary())
    return column


def _kind(kind: Any) -> Kind:
    import pyarrow as pa

    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_date(kind):
        return "date"
    if types.is_timestamp(kind):
        return "time"
    return "text" if types.is_string(kind) or types.is_large_string(kind) else "other"


def _listed(distinct: Any) -> list[object] | None:
    """The values as Python has them; None if one is a day or time that it has not."""
    import pyarrow as pa

    values: list[object] | None = None
    # The text of such an error may hold the value.
    with suppress(pa.ArrowInvalid, OverflowError, ValueError):
        if pa.types.is_timestamp(distinct.type):
            # Python knows microseconds. What is finer keeps codes of its own and only looks the same.
            is_finer = distinct.type.unit == "ns"
            distinct = distinct.cast(pa.timestamp("us", distinct.type.tz), safe=not is_finer)
        values = distinct.to_pylist()
    if values is not None and pa.types.is_float32(distinct.type):
        # As it is written: the double next to it would say 0.10000000149011612 for 0.1.
        return [None if value is None else float(str(np.float32(value))) for value in values]  # type: ignore[arg-type]
    return values


def _is_odd(value: object) -> bool:
    return value is None or (isinstance(value, float | Decimal) and not math.isfinite(value))


def _odd_last(order: Codes, values: list[object]) -> tuple[Codes, list[object], int]:
    """The values with odd ones at the end and None as the last; how many others there are."""
    odd = [_is_odd(value) for value in values]
    if not any(odd):
        return order, values, len(values)
    places = sorted(range(len(values)), key=lambda i: (odd[i], values[i] is None))
    return order[places], [values[i] for i in places], len(values) - sum(odd)


def _number(value: object) -> float:
    if isinstance(value, datetime.datetime):
        start = datetime.datetime(1970, 1, 1, tzinfo=value.tzinfo)
        return (value - start).total_seconds()
    if isinstance(value, datetime.date):
        return float(value.toordinal())
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf


def text_of(value: object) -> str | None:
    """A value as the anonymised table shows it: None stays missing, 67.0 is 67, a day is 2024-05-31."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, Decimal) and value.is_finite():
        whole = f"{value:f}"
        return whole.rstrip("0").rstrip(".") if "." in whole else whole
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)


def classes_of(columns: Sequence[Codes], rows: int) -> tuple[Codes, int]:
    """For each row the number of its class, equal exactly where all codes are equal, and how many there are.

    Numbers go by the order of the codes, the first column first.
    """
    classes, count = np.zeros(rows, dtype=np.int64), min(rows, 1)
    for codes in columns:
        if not rows:
            break
        wide = int(codes.max()) + 1
        key = classes * wide + codes
        if count * wide <= 4 * rows + 65_536:
            seen = np.zeros(count * wide, dtype=bool)
            seen[key] = True
            rank = np.cumsum(seen) - 1
            classes, count = rank[key], int(rank[-1]) + 1
        else:
            distinct, classes = np.unique(key, return_inverse=True)
            count = len(distinct)
    return classes, count
