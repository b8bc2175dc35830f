"""The steward's promise: which columns a table has, within which bounds, and whose privacy is protected."""

from __future__ import annotations

import datetime
import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, as_fraction, as_integer, show

__all__ = [
    "Bool",
    "ColumnType",
    "Date",
    "Enum",
    "Float",
    "Int",
    "Keys",
    "Kind",
    "PrivacyUnit",
    "PrivateTable",
    "Text",
    "column_from_dict",
]

Kind: TypeAlias = Literal["integer", "float", "boolean", "text", "date"]
Adjacency: TypeAlias = Literal["add-remove", "exchange"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXACT = 2**53  # beyond, engines that compute in floats would round whole numbers


class ColumnType(ABC):
    """What a column holds. Bounds choose clamps and keys; no guarantee relies on the data keeping them."""

    __slots__ = ()
    kind: ClassVar[Kind]
    nullable: bool

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data that `column_from_dict` reads back."""


def _bounds(
    lower: Rational | None, upper: Rational | None, word: str
) -> tuple[Fraction | None, Fraction | None]:
    if (lower is None) != (upper is None):
        raise InvalidParameter(f"{word} takes both bounds or neither: {word}(0, 100) or {word}().")
    if lower is None or upper is None:
        return None, None
    low, high = as_fraction(lower, "the lower bound"), as_fraction(upper, "the upper bound")
    if low > high:
        raise InvalidParameter(f"{word}: the lower bound {show(low)} is above the upper bound {show(high)}.")
    if max(abs(low), abs(high)) > _EXACT:
        raise InvalidParameter(f"{word}: bounds beyond 2**53 are not supported; rescale the column.")
    return low, high


def _plain(exact: Fraction | None) -> Any:
    if exact is None:
        return None
    return exact.numerator if exact.denominator == 1 else str(exact)


@dataclass(frozen=True, slots=True, init=False)
class Int(ColumnType):
    """Whole numbers from `lower` to `upper` inclusive; without bounds they can be filtered on, not summed."""

    lower: int | None
    upper: int | None
    nullable: bool
    kind: ClassVar[Kind] = "integer"

    def __init__(self, lower: int | None = None, upper: int | None = None, *, nullable: bool = True) -> None:
        low, high = _bounds(lower, upper, "Int")
        if any(bound is not None and bound.denominator != 1 for bound in (low, high)):
            raise InvalidParameter("Int takes whole bounds; use Float for a column of fractions.")
        _set(self, lower=None if low is None else int(low), upper=None if high is None else int(high))
        _set(self, nullable=bool(nullable))

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `column_from_dict` reads back."""
        return {"type": "int", "lower": self.lower, "upper": self.upper, "nullable": self.nullable}


@dataclass(frozen=True, slots=True, init=False)
class Float(ColumnType):
    """Numbers from `lower` to `upper` inclusive; without bounds they can be filtered on, not summed."""

    lower: Fraction | None
    upper: Fraction | None
    nullable: bool
    kind: ClassVar[Kind] = "float"

    def __init__(
        self, lower: Rational | None = None, upper: Rational | None = None, *, nullable: bool = True
    ) -> None:
        low, high = _bounds(lower, upper, "Float")
        _set(self, lower=low, upper=high, nullable=bool(nullable))

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `column_from_dict` reads back."""
        return {
            "type": "float",
            "lower": _plain(self.lower),
            "upper": _plain(self.upper),
            "nullable": self.nullable,
        }


@dataclass(frozen=True, slots=True, init=False)
class Enum(ColumnType):
    """A public list of values, all text or all whole numbers: the keys that a GROUP BY reports."""

    values: tuple[str, ...] | tuple[int, ...]
    nullable: bool

    def __init__(self, *values: str | int, nullable: bool = True) -> None:
        if len(values) == 1 and isinstance(values[0], list | tuple):
            values = tuple(values[0])
        kinds = {type(value) for value in values}
        if not values or kinds not in ({str}, {int}):
            raise InvalidParameter('Enum takes its values, all text or all whole numbers: Enum("FR", "DE").')
        if len(set(values)) != len(values):
            raise InvalidParameter("Enum: a value is listed twice.")
        if kinds == {int} and any(abs(int(value)) > _EXACT for value in values):
            raise InvalidParameter("Enum: whole numbers beyond 2**53 are not supported; use text.")
        _set(self, values=tuple(values), nullable=bool(nullable))

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        """Text or integer, as the values are."""
        return "text" if isinstance(self.values[0], str) else "integer"

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `column_from_dict` reads back."""
        return {"type": "enum", "values": list(self.values), "nullable": self.nullable}


@dataclass(frozen=True, slots=True)
class Text(ColumnType):
    """Text with no public list of values: it can be filtered on, and grouped by values that a query lists."""

    nullable: bool = field(default=True, kw_only=True)
    kind: ClassVar[Kind] = "text"

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `column_from_dict` reads back."""
        return {"type": "text", "nullable": self.nullable}


@dataclass(frozen=True, slots=True)
class Bool(ColumnType):
    """Truth values."""

    nullable: bool = field(default=True, kw_only=True)
    kind: ClassVar[Kind] = "boolean"

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `column_from_dict` reads back."""
        return {"type": "bool", "nullable": self.nullable}


@dataclass(frozen=True, slots=True, init=False)
class Date(ColumnType):
    """Days, from `start` to `end` inclusive; without bounds they can be filtered on, not grouped by."""

    start: datetime.date | None
    end: datetime.date | None
    nullable: bool
    kind: ClassVar[Kind] = "date"

    def __init__(
        self,
        start: str | datetime.date | None = None,
        end: str | datetime.date | None = None,
        *,
        nullable: bool = True,
    ) -> None:
        if (start is None) != (end is None):
            raise InvalidParameter('Date takes both ends or neither: Date("2020-01-01", "2024-12-31").')
        first, last = _day(start), _day(end)
        if first is not None and last is not None and first > last:
            raise InvalidParameter("Date: the first day is after the last.")
        _set(self, start=first, end=last, nullable=bool(nullable))

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `column_from_dict` reads back."""
        return {
            "type": "date",
            "start": None if self.start is None else self.start.isoformat(),
            "end": None if self.end is None else self.end.isoformat(),
            "nullable": self.nullable,
        }


def _day(value: str | datetime.date | None) -> datetime.date | None:
    if isinstance(value, datetime.datetime):
        return value.date()
    if value is None or isinstance(value, datetime.date):
        return value
    try:
        return datetime.date.fromisoformat(value)
    except (TypeError, ValueError):
        raise InvalidParameter('A day is written like "2020-01-31".') from None


_TYPES: dict[str, type[ColumnType]] = {
    "int": Int,
    "float": Float,
    "enum": Enum,
    "text": Text,
    "bool": Bool,
    "date": Date,
}
_ARGUMENTS = {"int": ("lower", "upper"), "float": ("lower", "upper"), "date": ("start", "end")}


def column_from_dict(data: Mapping[str, Any]) -> ColumnType:
    """The column type that `to_dict` wrote, or that a catalog holds.

    Raises:
        InvalidParameter: for an unknown type or unfitting fields.
    """
    word = data.get("type")
    if word not in _TYPES:
        raise InvalidParameter(f"A column's type is one of {', '.join(_TYPES)}, not {str(word)[:40]!r}.")
    positional = (
        tuple(data.get("values", ()))
        if word == "enum"
        else tuple(data.get(name) for name in _ARGUMENTS.get(word, ()))
    )
    known = {"type", "nullable", "values" if word == "enum" else "", *_ARGUMENTS.get(word, ())}
    if unknown := sorted(set(data) - known):
        raise InvalidParameter(f"A column of type {word} has no setting {unknown[0]!r}.")
    make: Any = _TYPES[word]
    return make(*positional, nullable=data.get("nullable", True))  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, init=False)
class Keys:
    """Public group keys as a value: for each column its list, or explicit combinations.

    `Keys(city=["Lyon", "Nice"])` is every listed value, several columns give every combination;
    `Keys.of(("city", "sex"), [("Lyon", "F"), …])` is just those.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __init__(self, **values: Iterable[Any]) -> None:
        if not values:
            raise InvalidParameter('Keys takes columns with their values: Keys(city=["Lyon", "Nice"]).')
        lists = [tuple(each) for each in values.values()]
        _set(self, columns=tuple(values), rows=_distinct(itertools.product(*lists)))

    @classmethod
    def of(cls, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Keys:
        """Just these combinations."""
        made = cls.__new__(cls)
        listed = [tuple(row) for row in rows]
        if any(len(row) != len(columns) for row in listed):
            raise InvalidParameter("Keys.of: every row must have one value for each column.")
        _set(made, columns=tuple(columns), rows=_distinct(listed))
        return made


def _distinct(rows: Iterable[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
    unique = tuple(dict.fromkeys(rows))
    if not unique:
        raise InvalidParameter("Keys: a list of values is empty.")
    return unique


@dataclass(frozen=True, slots=True, init=False)
class PrivacyUnit:
    """Whose privacy is protected: all rows of one value of a column, or each single row.

    Attributes:
        column: The column whose values are the units; None: each row is a unit of its own.
        max_groups: In how many groups of a result one unit may count.
        max_rows: How many rows one unit weighs in all, at most.
        adjacency: Whether neighbouring tables differ by adding or removing a unit, or by exchanging one.
    """

    column: str | None
    max_groups: int
    max_rows: int
    adjacency: Adjacency

    def __init__(
        self,
        column: str,
        *,
        max_groups: int = 1,
        max_rows: int | None = None,
        adjacency: Adjacency = "add-remove",
    ) -> None:
        if not isinstance(column, str) or not column:
            raise InvalidParameter("PrivacyUnit takes the name of a column; for rows use PrivacyUnit.row().")
        groups = _few(max_groups, "max_groups")
        rows = groups if max_rows is None else _few(max_rows, "max_rows")
        _set(self, column=column, max_groups=groups, max_rows=rows, adjacency=_adjacency(adjacency))

    @classmethod
    def row(cls, *, adjacency: Adjacency = "add-remove") -> PrivacyUnit:
        """Each row is a unit: only right where nobody can have two."""
        made = cls.__new__(cls)
        _set(made, column=None, max_groups=1, max_rows=1, adjacency=_adjacency(adjacency))
        return made

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `from_dict` reads back."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PrivacyUnit:
        """The unit that `to_dict` wrote."""
        adjacency = data.get("adjacency", "add-remove")
        if data.get("column") is None:
            return cls.row(adjacency=adjacency)
        return cls(
            data["column"],
            max_groups=data.get("max_groups", 1),
            max_rows=data.get("max_rows"),
            adjacency=adjacency,
        )

    def __str__(self) -> str:
        return "one row" if self.column is None else f"one {self.column}"


def _few(value: int, name: str) -> int:
    number = as_integer(value, name)
    if number > 2**20:
        raise InvalidParameter(f"{name} must be at most 2**20: the noise grows with it.")
    return number


def _adjacency(value: str) -> Adjacency:
    if value == "add-remove":
        return "add-remove"
    if value == "exchange":
        return "exchange"
    raise InvalidParameter(f'adjacency is "add-remove" or "exchange", not {str(value)[:40]!r}.')


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class PrivateTable:
    """A table that may be asked but not seen: the steward's promise about it.

    Attributes:
        name: What queries call it.
        source: Where the rows are: a path, glob, folder, DuckDB file, Arrow table, pandas or Polars frame.
        unit: Whose privacy is protected.
        schema: Its columns; others of the source cannot be asked for.
        dataset: Whose budget it draws on. Tables about the same units share one; by default each has its own.
        version: The steward's word for the state of the data. Answers are given again, free, while it stays.
        size: About how many units there are, if that is public: lets the errors of means be quoted.
    """

    name: str
    source: Any
    unit: PrivacyUnit
    schema: dict[str, ColumnType]
    dataset: str
    version: str
    size: int | None

    def __init__(
        self,
        name: str,
        *,
        source: Any,
        unit: PrivacyUnit,
        schema: Mapping[str, ColumnType],
        dataset: str | None = None,
        version: str | int = "1",
        size: int | None = None,
    ) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidParameter(
                "A table's name is made of letters, digits and underscores, such as visits."
            )
        if not isinstance(unit, PrivacyUnit):
            raise InvalidParameter(
                'unit must be a PrivacyUnit: PrivacyUnit("user_id", max_groups=3), or .row().'
            )
        columns = dict(schema)
        for column, kind in columns.items():
            if not isinstance(column, str) or not column:
                raise InvalidParameter("A column's name must be text.")
            if not isinstance(kind, ColumnType):
                raise InvalidParameter(f"Column {column!r} needs a type such as sf.Int(0, 100) or sf.Text().")
        folded = [column.lower() for column in columns]
        if len(set(folded)) != len(folded):
            raise InvalidParameter(
                "Two columns differ only in upper and lower case; SQL cannot tell them apart."
            )
        _set(self, name=name, source=source, unit=unit, schema=columns, dataset=str(dataset or name))
        _set(self, version=str(version), size=None if size is None else as_integer(size, "size"))

    def __repr__(self) -> str:
        # Never the source itself: a frame would show its rows.
        where = str(self.source) if isinstance(self.source, str | Path) else f"<{type(self.source).__name__}>"
        return (
            f"PrivateTable({self.name!r}, source={where!r}, unit={self.unit!r}, columns={list(self.schema)})"
        )

    def declaration(self) -> dict[str, Any]:
        """What the steward declares, as plain data: unit, columns and bounds, version; not the source."""
        return {
            "table": self.name,
            "unit": self.unit.to_dict(),
            "schema": {name: kind.to_dict() for name, kind in self.schema.items()},
            "version": self.version,
        }


def _set(target: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(target, name, value)
