"""Whole queries that are audited by name: made-up neighbours of a small clinic."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from sfumato._dataclasses import dataclass
from sfumato.audit.session import QueryPair, query_pair
from sfumato.audit.written import WrittenPair, written_pair
from sfumato.ledger.budget import Accountant
from sfumato.schema import ColumnType, Enum, Int, PrivacyUnit, PrivateTable, Text

__all__ = ["QUERIES", "QueryExample"]

Row = tuple[int, str, str, int]
_CITIES = ("Lyon", "Nice")
_SCHEMA: dict[str, ColumnType] = {
    "city": Enum(*_CITIES),
    "ward": Text(),
    "cost": Int(0, 10),
}
_ALICE = 99


@dataclass(frozen=True, slots=True)
class QueryExample:
    """A question about two tables that differ in one privacy unit.

    Attributes:
        name: short and unique.
        left: the rows of one table.
        right: those of the other.
        unit: whose privacy is declared.
        sql: the question.
        epsilon: its price.
        delta: what of delta it may use.
        part: one answer is drawn for so many of a plain mechanism, since each takes as much longer.
        accountant: what keeps the budget, which decides on the noise.
        written: whether the answer is written part by part, where the groups are.
    """

    name: str
    left: tuple[Row, ...]
    right: tuple[Row, ...]
    unit: PrivacyUnit
    sql: str
    epsilon: float
    delta: float = 0.0
    part: int = 1
    accountant: Accountant = "basic"
    written: bool = False

    def pair(self) -> QueryPair | WrittenPair:
        """The question, paid for and read once about each table."""
        left, right = _table(self.left, self.unit), _table(self.right, self.unit)
        if self.written:
            return written_pair(left, right, self.sql, epsilon=self.epsilon, delta=self.delta)
        return query_pair(
            left,
            right,
            self.sql,
            epsilon=self.epsilon,
            delta=self.delta,
            accountant=self.accountant,
        )


def _table(rows: Iterable[Row], unit: PrivacyUnit) -> PrivateTable:
    names = ("person", "city", "ward", "cost")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return PrivateTable("visits", source=pa.table(columns), unit=unit, schema=_SCHEMA)


def _queries() -> tuple[QueryExample, ...]:
    others: tuple[Row, ...] = tuple(
        (person, _CITIES[person % 2], "east", person % 11) for person in range(20)
    )
    wards: tuple[Row, ...] = tuple(
        (person, "Lyon", "east" if person % 2 else "west", 5) for person in range(20)
    )
    alice: tuple[Row, ...] = ((_ALICE, "Lyon", "east", 10),)
    often: tuple[Row, ...] = tuple((_ALICE, city, "west", 10) for city in _CITIES for _ in range(3))
    moved: tuple[Row, ...] = ((_ALICE, "Nice", "east", 10),)
    row, two = PrivacyUnit.row(), PrivacyUnit("person", max_groups=2)
    exchange = PrivacyUnit("person", adjacency="exchange")
    by_city = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    return (
        QueryExample("query: count", (*others, *alice), others, row, "SELECT COUNT(*) AS n FROM visits", 1),
        QueryExample("query: count by city", (*others, *often), others, two, by_city, 1),
        QueryExample("query: exchange", (*others, *alice), (*others, *moved), exchange, by_city, 1),
        QueryExample(
            "query: sum", (*others, *alice), others, row, "SELECT SUM(cost) AS total FROM visits", 1
        ),
        QueryExample(
            "query: mean", (*others, *alice), others, row, "SELECT AVG(cost) AS mean FROM visits", 1
        ),
        QueryExample(
            "query: sums by city, delta",
            (*others, *often),
            others,
            two,
            "SELECT city, COUNT(*) AS n, SUM(cost) AS total FROM visits GROUP BY city",
            1,
            0.01,
        ),
        QueryExample(
            "query: zcdp",
            (*others, *alice),
            others,
            PrivacyUnit("person"),
            by_city,
            1,
            0.01,
            accountant="zcdp",
        ),
        QueryExample(
            "query: wards that are found",
            (*others, (_ALICE, "Lyon", "west", 10)),
            others,
            PrivacyUnit("person"),
            "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
            1,
            0.05,
            part=20,
        ),
        QueryExample(
            "query: wards written in parts",
            (*wards, *alice),
            wards,
            PrivacyUnit("person"),
            "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
            1,
            0.05,
            part=100,
            written=True,
        ),
        QueryExample(
            "query: median",
            (*others, *((person, "Nice", "east", 10) for person in (_ALICE,))),
            others,
            row,
            "SELECT MEDIAN(cost) AS middle FROM visits",
            2,
            part=40,
        ),
    )


QUERIES: tuple[QueryExample, ...] = _queries()
"""What `registry.run` audits beside mechanisms and clients."""
