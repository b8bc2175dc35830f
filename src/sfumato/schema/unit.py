"""Whose privacy is protected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer
from sfumato.numeric.zones import UTC, zone_of
from sfumato.schema._assign import assign

__all__ = ["Adjacency", "PrivacyUnit", "window_of"]

Adjacency: TypeAlias = Literal["add-remove", "exchange"]

WINDOWS = ("day", "week", "month", "quarter", "year")
"""The windows of a calendar that a unit may have."""

CEILING = 1_000
"""The most rows that a unit is taken to have, unless something else is declared."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PrivacyUnit:
    """Whose privacy is protected: all rows of one value of a column, each single row, or a row's owner.

    The owner of a row is named in another table: `PrivacyUnit.via("orders", on={"l_orderkey": "o_orderkey"})`
    gives a line the owner of the order it points to, who may again be the owner of something else. `owners`
    follows the pointers.

    Attributes:
        column: The column whose values are the units. None: each row is a unit of its own. For a unit that is
            reached through `table` it is the words `owner in orders`, which no column of the table has for a
            name: the owner's own column is known only once all tables are.
        max_groups: In how many groups of a result one unit may count.
        max_rows: How many rows one unit weighs in all, at most; where that is `auto`, without a profile.
        adjacency: Whether neighbouring tables differ by adding or removing a unit, or by exchanging one.
        table: The table whose rows the rows of this one point to; None: the unit is named here.
        on: Pairs of a column here and the column of `table` that it equals.
        auto: Whether a profile of how many rows units have chooses `max_rows` for each question.
        ceiling: The most rows that a unit is taken to have where it is said what a limit cuts away; more are
            just as private.
        window: Each "day", "week", "month", "quarter" or "year" of a unit, or so many days of it, is a unit
            by itself; None: all its rows together are. Whoever is in the data for ten windows may lose ten
            times what one of them loses.
        time: The column of dates or timestamps that says in which window a row is; a row without belongs to
            nobody, and counts nowhere.
        zone: The time zone at whose midnight windows of timestamps end, such as "Europe/Berlin". A date is a
            day there as it is.
    """

    column: str | None
    max_groups: int
    max_rows: int
    adjacency: Adjacency
    table: str | None
    on: tuple[tuple[str, str], ...]
    auto: bool
    ceiling: int
    window: str | int | None
    time: str | None
    zone: str

    def __init__(
        self,
        column: str,
        *,
        max_groups: int = 1,
        max_rows: int | Literal["auto"] | None = None,
        adjacency: Adjacency = "add-remove",
        ceiling: int = CEILING,
        window: str | int | None = None,
        time: str | None = None,
        zone: str = UTC,
    ) -> None:
        if not isinstance(column, str) or not column:
            raise InvalidParameter("PrivacyUnit takes the name of a column; for rows use PrivacyUnit.row().")
        _fill(
            self,
            column,
            max_groups,
            max_rows,
            adjacency,
            ceiling=ceiling,
            window=window,
            time=time,
            zone=zone,
        )

    @classmethod
    def row(cls, *, adjacency: Adjacency = "add-remove") -> PrivacyUnit:
        """Each row is a unit: only right where nobody can have two."""
        unit = cls.__new__(cls)
        _fill(unit, None, 1, 1, adjacency)
        return unit

    @classmethod
    def via(
        cls,
        table: str,
        *,
        on: str | Mapping[str, str] | Iterable[tuple[str, str]],
        max_groups: int = 1,
        max_rows: int | Literal["auto"] | None = None,
        adjacency: Adjacency = "add-remove",
        ceiling: int = CEILING,
    ) -> PrivacyUnit:
        """The owner of the row of `table` that a row points to.

        Args:
            table: The name of a private table, whose unit is a column or again an owner.
            on: Which column here equals which there, `{"l_orderkey": "o_orderkey"}`; the name alone where
                both are called the same. All must be declared in the schemas of their tables.
            max_groups: In how many groups of a result about this table one owner may count.
            max_rows: How many rows of this table one owner weighs in all, at most; or "auto".
            adjacency: As of the table that names the owner.
            ceiling: The most rows that an owner is taken to have where it is said what a limit cuts away.
        """
        if not isinstance(table, str) or not table:
            raise InvalidParameter('PrivacyUnit.via takes the name of a table: via("orders", on={…}).')
        unit = cls.__new__(cls)
        _fill(
            unit,
            f"owner in {table}",
            max_groups,
            max_rows,
            adjacency,
            table=table,
            on=_pairs(on),
            ceiling=ceiling,
        )
        return unit

    @property
    def is_row(self) -> bool:
        """Whether each row is a unit of its own."""
        return self.column is None

    @property
    def is_via(self) -> bool:
        """Whether the unit is named in another table."""
        return self.table is not None

    @property
    def span(self) -> str:
        """How long a window is, in words: `month`, `30 days`; empty where there is none."""
        return f"{self.window} days" if isinstance(self.window, int) else self.window or ""

    def timed(self, time: str) -> PrivacyUnit:
        """The unit whose windows are decided by this column."""
        unit = PrivacyUnit.__new__(PrivacyUnit)
        _fill(
            unit,
            self.column,
            self.max_groups,
            "auto" if self.auto else self.max_rows,
            self.adjacency,
            ceiling=self.ceiling,
            window=self.window,
            time=time,
            zone=self.zone,
        )
        return unit

    @property
    def is_plain(self) -> bool:
        """Whether its limits are fixed, and nothing else is said: as in a question."""
        return not self.auto and self.ceiling == CEILING

    def limited(self, max_groups: int, max_rows: int) -> PrivacyUnit:
        """The unit with the limits of one question."""
        unit = PrivacyUnit.__new__(PrivacyUnit)
        _fill(
            unit,
            self.column,
            max_groups,
            max_rows,
            self.adjacency,
            table=self.table,
            on=self.on,
            window=self.window,
            time=self.time,
            zone=self.zone,
        )
        return unit

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `from_dict` reads back; what is as it is by default is left out, but for limits."""
        data: dict[str, Any] = {
            "column": self.column,
            "max_groups": self.max_groups,
            "max_rows": "auto" if self.auto else self.max_rows,
            "adjacency": self.adjacency,
        }
        data |= {"table": self.table, "on": self.on} if self.is_via else {}
        data |= {} if self.window is None else {"window": self.window, "time": self.time}
        data |= {} if self.zone == UTC else {"zone": self.zone}
        return data | ({"ceiling": self.ceiling} if self.ceiling != CEILING else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PrivacyUnit:
        """The unit that `to_dict` wrote."""
        adjacency = data.get("adjacency", "add-remove")
        bounds = {
            "max_groups": data.get("max_groups", 1),
            "max_rows": data.get("max_rows"),
            "ceiling": data.get("ceiling", CEILING),
        }
        if data.get("table") is not None:
            return cls.via(data["table"], on=data.get("on", ()), adjacency=adjacency, **bounds)
        if data.get("column") is None:
            return cls.row(adjacency=adjacency)
        windows = {"window": data.get("window"), "time": data.get("time"), "zone": data.get("zone", UTC)}
        return cls(data["column"], adjacency=adjacency, **windows, **bounds)

    def __repr__(self) -> str:
        return f"PrivacyUnit({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"

    def __str__(self) -> str:
        if self.column is None:
            return "one row"
        if self.window is None:
            return f"one {self.column}"
        within = self.span if isinstance(self.window, int) else f"one {self.span}"
        return f"one {self.column} in {within}{'' if self.zone == UTC else f' of {self.zone}'}"


def _fill(
    unit: PrivacyUnit,
    column: str | None,
    max_groups: int,
    max_rows: int | str | None,
    adjacency: str,
    *,
    table: str | None = None,
    on: tuple[tuple[str, str], ...] = (),
    ceiling: int = CEILING,
    window: str | int | None = None,
    time: str | None = None,
    zone: str = UTC,
) -> None:
    groups = _few(max_groups, "max_groups")
    auto = isinstance(max_rows, str)
    if auto and max_rows != "auto":
        raise InvalidParameter('max_rows is a whole number, or "auto": then a profile chooses it.')
    rows = groups if max_rows is None or isinstance(max_rows, str) else _few(max_rows, "max_rows")
    assign(unit, column=column, max_groups=groups, max_rows=rows, adjacency=_adjacency(adjacency))
    assign(unit, table=table, on=on, auto=auto, ceiling=_few(ceiling, "ceiling"))
    if time is not None and (window is None or not isinstance(time, str)):
        raise InvalidParameter('time names the column that decides windows: window="month", time="day".')
    assign(unit, window=window_of(window), time=time, zone=_zone(zone, window))


def _pairs(on: object) -> tuple[tuple[str, str], ...]:
    """The pairs of columns, by the name here: the order in which they are written means nothing."""
    listed: list[Any] = []
    if isinstance(on, str):
        listed = [(on, on)]
    elif isinstance(on, Mapping):
        listed = list(on.items())
    elif isinstance(on, Iterable):
        listed = list(on)
    pairs = [tuple(pair) for pair in listed if isinstance(pair, list | tuple) and len(pair) == 2]
    if (
        not pairs
        or len(pairs) != len(listed)
        or not all(isinstance(name, str) and name for pair in pairs for name in pair)
    ):
        raise InvalidParameter(
            'on says which column here equals which there: on={"l_orderkey": "o_orderkey"}.'
        )
    for side in zip(*pairs, strict=True):
        if len({name.casefold() for name in side}) != len(side):
            raise InvalidParameter("on: a column is given twice.")
    return tuple(sorted((here, there) for here, there in pairs))


def window_of(value: str | int | None, name: str = "window") -> str | int | None:
    """How long windows are, checked; None: there are none."""
    if value is None or (isinstance(value, str) and value in WINDOWS):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 36_525:
        return value
    raise InvalidParameter(f"{name} is one of {', '.join(WINDOWS)}, or a number of days up to 36525.")


def _zone(zone: str, window: str | int | None) -> str:
    if zone == UTC:
        return UTC
    if window is None:
        raise InvalidParameter('zone says where windows end: window="day", zone="Europe/Berlin".')
    zone_of(zone)
    return zone


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
