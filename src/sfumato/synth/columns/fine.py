"""`Fine`: a column of a table as declared cells, and cells as values again. All public."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_fraction, show
from sfumato.numeric.moments import as_clock, as_moment
from sfumato.plan.expressions.ranges import value_at
from sfumato.random import Simulation
from sfumato.schema import Kind
from sfumato.session.rows_wanted import LONGEST, Coded, Plain, Scaled, Taking, Texts, WantedColumn

__all__ = ["MOST_CELLS", "MOST_FOUND", "Fine", "all_fine", "fine"]

MOST_CELLS = 1024
"""How many cells the numbers of a column are held in, at most; whole numbers within fewer have one each."""

MOST_FOUND = 4096
"""How many values of a text that nobody listed are told apart, at most; all others are one."""

_MOST_CODED = 1000  # values that an engine compares one by one
_OTHERS = "others"

_TYPES: dict[Kind, pa.DataType] = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("s"),
    "time": pa.time32("s"),
}
_WORDS: dict[Kind, pa.DataType] = {"date": pa.int32(), "time": pa.int32(), "timestamp": pa.int64()}


@dataclass(frozen=True, slots=True)
class Fine:
    """A column as cells: one for each value, or for each step of a number; the last for what is missing.

    Attributes:
        name: Of the column.
        kind: Of its values.
        values: All of them, where they are listed; None: numbers.
        lower: The least number; of dates the days since 1970-01-01, of timestamps the seconds since then, of
            times of day those since midnight.
        upper: The greatest.
        steps: How many steps there are between them.
        nullable: Whether there is a cell for what is missing.
        folds: Whether the last of the values stands for all texts that are not listed. Without values, which
            texts there are is found out by the fit.
    """

    name: str
    kind: Kind
    values: tuple[Any, ...] | None
    lower: Fraction
    upper: Fraction
    steps: int
    nullable: bool
    folds: bool = False

    @property
    def is_open(self) -> bool:
        """Whether nobody knows its values yet."""
        return self.folds and self.values is None

    @property
    def known(self) -> int:
        """How many cells there are but for what is missing."""
        return self.steps + 1 if self.values is None else len(self.values)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.known + self.nullable

    @property
    def is_ordered(self) -> bool:
        """Whether neighbouring cells hold values that are near each other."""
        return self.values is None and not self.folds

    @property
    def way(self) -> Taking:
        """As what it is read from a table."""
        if self.folds:
            return Texts()
        if self.values is not None:
            if len(self.values) <= _MOST_CODED:
                return Coded(self.values)
            return Texts() if self.kind == "text" else Plain()
        return Scaled(float(self.lower), float(self.upper), max(self.steps, 1))

    def holding(self, texts: Sequence[str]) -> Fine:
        """The same column, once it is known which of its texts are common: all others are one value."""
        rest = _OTHERS
        while rest in texts:
            rest = f"all {rest}"
        return replace(self, values=(*sorted(texts), rest), steps=0)

    def codes(
        self, values: NDArray[Any], missing: NDArray[np.bool_], texts: Sequence[str] | None = None
    ) -> NDArray[Any]:
        """The cell of each row, as it was read `way`; what is missing is in the last.

        Args:
            values: Numbers of rows.
            missing: Where there is none.
            texts: What the numbers are places in, if it was read as texts.
        """
        if isinstance(self.way, Texts | Plain):
            values = self.places_of(values, texts)
            missing = missing | (values < 0)
        return self._cells(values, missing)

    def places_of(self, values: NDArray[Any], texts: Sequence[str] | None) -> NDArray[np.int64]:
        """The places among the listed values of what was read as texts or plain numbers; −1: it is none."""
        if texts is None:
            return self._listed(values.tolist())
        listed = np.append(self._listed(texts), -1)  # where there is no text at all, a row is missing
        return np.asarray(listed[values], np.int64)

    def _listed(self, values: Sequence[Any]) -> NDArray[np.int64]:
        """Where values are listed, by as many characters as are read of a text."""
        assert self.values is not None
        named = self.values[:-1] if self.folds else self.values
        place = {value[: LONGEST + 1] if self.kind == "text" else value: at for at, value in enumerate(named)}
        rest = len(named) if self.folds else -1
        return np.array([place.get(value, rest) for value in values], np.int64)

    def _cells(self, values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[Any]:
        found = np.clip(values, 0, self.known - 1)  # a row that is missing is 0
        if self.nullable:
            found = np.where(missing, self.known, found)
        return np.asarray(
            found, np.uint8 if self.size <= 2**8 else np.uint16 if self.size <= 2**16 else np.uint32
        )

    def restored(self, codes: NDArray[Any], rng: Simulation | None) -> pa.Array:
        """Values in these cells: of a cell that holds several numbers, any of them alike.

        Args:
            codes: Cells.
            rng: Draws within cells; None: the middle of each.
        """
        missing = codes >= self.known
        if self.values is not None:
            listed = pa.array(self.values, _TYPES[self.kind])
            return listed.take(pa.array(codes, pa.int64(), mask=missing))
        span = float(self.upper - self.lower) / max(self.steps, 1)
        near = codes.astype(np.float64)
        if rng is not None and not self.has_whole_steps:
            near += rng.random(len(codes)) - 0.5
        numbers = np.clip(float(self.lower) + near * span, float(self.lower), float(self.upper))
        if self.kind == "float":
            return pa.array(numbers, pa.float64(), mask=missing)
        whole = np.rint(numbers).astype(np.int64)
        words = _WORDS.get(self.kind, pa.int64())
        return pa.array(whole.astype(words.to_pandas_dtype()), words, mask=missing).cast(_TYPES[self.kind])

    def places(self, values: pa.ChunkedArray | pa.Array) -> NDArray[Any]:
        """The cells of values that are public, by the same rule as rows are read: of a table that was drawn.

        What is beyond the bounds is held within them; what is not listed is one of all others, or missing.
        """
        found = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if self.values is not None:
            codes = np.where(np.asarray(found.is_null()), -1, self._listed(found.to_pylist()))
            return self._cells(codes, codes < 0)
        if self.kind in _WORDS:
            found = found.cast(_TYPES[self.kind], safe=False).cast(_WORDS[self.kind])
        missing = np.asarray(found.is_null(nan_is_null=True))
        numbers = found.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        numbers = np.clip(np.where(missing, 0.0, numbers), float(self.lower), float(self.upper))
        span = float(self.upper - self.lower)
        steps = np.floor((numbers - float(self.lower)) * (self.steps / span) + 0.5) if span else numbers * 0
        return self.codes(steps.astype(np.int64), missing)

    @property
    def has_whole_steps(self) -> bool:
        """Whether a cell holds one whole number."""
        return self.kind != "float" and self.steps == self.upper - self.lower

    def exactly(self, codes: NDArray[Any]) -> pa.Array:
        """The values of cells that hold one each; the middle of those that hold several."""
        return self.restored(codes, None)

    def edges(self, first: int, last: int) -> tuple[Any, Any]:
        """The least and the greatest value in a run of cells of a number, as it is read."""
        span = (self.upper - self.lower) / max(self.steps, 1)
        half = Fraction(0) if self.has_whole_steps else span / 2
        low = max(self.lower + first * span - half, self.lower)
        high = min(self.lower + last * span + half, self.upper)
        if self.kind == "float":
            return float(low), float(high)
        ends = math.ceil(low), math.floor(high)
        least, greatest = (value_at(end, self.kind) for end in ends)
        return least, greatest

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `from_dict` reads back."""
        values = self.values
        if values is not None and self.kind in _READ:
            values = tuple(value.isoformat() for value in values)
        return {
            "name": self.name,
            "kind": self.kind,
            "values": None if values is None else list(values),
            "lower": str(self.lower),
            "upper": str(self.upper),
            "steps": self.steps,
            "nullable": self.nullable,
        } | ({"folds": True} if self.folds else {})

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Fine:
        """The column that `to_dict` wrote."""
        values = facts["values"]
        if values is not None and facts["kind"] in _READ:
            values = [_READ[facts["kind"]](value) for value in values]
        return cls(
            str(facts["name"]),
            facts["kind"],
            None if values is None else tuple(values),
            as_fraction(facts["lower"], "lower"),
            as_fraction(facts["upper"], "upper"),
            int(facts["steps"]),
            bool(facts["nullable"]),
            bool(facts.get("folds", False)),
        )


_READ: dict[Kind, Callable[[str], Any]] = {
    "date": datetime.date.fromisoformat,
    "timestamp": as_moment,
    "time": as_clock,
}


def fine(column: WantedColumn) -> Fine:
    """The cells of a column of a table.

    Raises:
        InvalidParameter: if nothing says which values it can have.
    """
    name = column.name[:60]
    kind: Kind = column.type or "text"
    if column.kind == "category":
        values = (False, True) if kind == "boolean" else column.values
        if values is None:
            return Fine(
                column.name, kind, None, Fraction(0), Fraction(0), MOST_FOUND, column.nullable, folds=True
            )
        return Fine(column.name, kind, tuple(values), Fraction(0), Fraction(0), 0, column.nullable)
    lower, upper = column.lower, column.upper
    if lower is None or upper is None:
        raise _unbounded([column])
    if kind == "float":
        steps = MOST_CELLS - 1 if upper > lower else 0
    else:
        steps = min(int(upper) - int(lower), MOST_CELLS - 1)
    if upper - lower >= 2**53:
        raise InvalidParameter(f"The bounds of {name!r} are too far apart: {show(upper - lower)}.")
    return Fine(column.name, kind, None, lower, upper, steps, column.nullable)


def all_fine(columns: Sequence[WantedColumn]) -> tuple[Fine, ...]:
    """The cells of all columns of a table.

    Raises:
        InvalidParameter: if nothing says which values some can have; it names all of them.
    """
    if bare := [one for one in columns if one.kind != "category" and None in (one.lower, one.upper)]:
        raise _unbounded(bare)
    return tuple(map(fine, columns))


def _unbounded(columns: Sequence[WantedColumn]) -> InvalidParameter:
    """That nothing says which values columns can have."""
    names = [repr(column.name[:60]) for column in columns]
    listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    such = list[str]()
    if any(column.type not in _READ for column in columns):
        such.append("sf.Int(0, 120)")
    for kind, word in (("date", "Date"), ("timestamp", "Timestamp")):
        if any(column.type == kind for column in columns):
            such.append(f"sf.{word}(first, last)")
    one = names[0] if len(names) == 1 else "…"
    bounds = " and ".join(_IN_TOML[is_date] for is_date in sorted({each.type in _READ for each in columns}))
    first, reason = columns[0].name[:60], f"Nothing says where the values of {listed} lie"
    return InvalidParameter(
        f"{reason}: declare bounds, such as {' and '.join(such)}; leave them out with columns=[…]; or make "
        f"what only names rows anew with ids=[{one}]."
    ).in_shell(
        f"{reason}: declare bounds in sfumato.toml, such as {bounds}; leave a column out, --without {first}; "
        f"or make what only names rows anew, --id {first}."
    )


# Bounds of numbers, and of dates and times, as the steward's file has them.
_IN_TOML = {False: "lower = 0, upper = 120", True: "start = 2020-01-01, end = 2024-12-31"}
