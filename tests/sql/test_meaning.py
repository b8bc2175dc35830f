"""The plan means what the SQL says: before any noise, both give the same numbers on the same table."""

from __future__ import annotations

import datetime
import random
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from on_engine import rows_below
from sfumato.plan.prices.recipe import recipe
from sfumato.plan.questions.sensitivity import step
from sfumato.schema import Bool, Date, Enum, Float, Int, PrivacyUnit, PrivateTable, Text
from sfumato.sql.read.parse import parse
from sfumato.sql.write.lower import lower

TABLE = PrivateTable(
    "visits",
    source=None,
    unit=PrivacyUnit.row(),
    schema={
        "country": Enum("FR", "DE", "IT"),
        "city": Text(),
        "amount": Float(0, 64),
        "age": Int(18, 30),
        "day": Date("2024-01-30", "2024-02-03"),
        "member": Bool(),
    },
)
KEYS = (
    "country",
    "member",
    "age",
    "day",
    "age % 3",
    "age > 24",
    "FLOOR(age / 5) * 5",
    "EXTRACT(month FROM day)",
    "CASE WHEN age < 21 THEN 'young' WHEN member THEN 'in' ELSE 'out' END",
    "country = 'FR'",
)
ATOMS = (
    "age > 24",
    "24 <= age",
    "age BETWEEN 20 AND 25",
    "age NOT IN (19, 20)",
    "country IN ('FR', 'IT')",
    "member",
    "country = 'FR'",
    "'DE' <> country",
    "city LIKE 'L%'",
    "city IS NULL",
    "amount >= 1.5",
    "amount < age",
    "day >= DATE '2024-02-01'",
    "member IS NOT TRUE",
    "COALESCE(member, FALSE)",
    "age = 20 OR age = 22",
    "LENGTH(city) > 4",
    "(age + 1) * 2 > 45",
    "NOT (age < 25)",
)
NUMBERS = (
    "age",
    "amount",
    "age * 2",
    "amount - age",
    "CASE WHEN member THEN age END",
    "ABS(age - 24)",
    "-age",
    "age + amount",
    "COALESCE(age, 20)",
    "LEAST(age, 21)",
    "age % 4",
)


def condition(draw: random.Random, depth: int = 2) -> str:
    match draw.randrange(4) if depth else 0:
        case 1:
            return f"({condition(draw, depth - 1)}) AND ({condition(draw, depth - 1)})"
        case 2:
            return f"({condition(draw, depth - 1)}) OR ({condition(draw, depth - 1)})"
        case 3:
            return f"NOT ({condition(draw, depth - 1)})"
    return draw.choice(ATOMS)


def aggregate(draw: random.Random) -> str:
    number, where = draw.choice(NUMBERS), condition(draw, 1)
    return draw.choice(
        ("COUNT(*)", f"COUNT({number})", "COUNT(city)", f"SUM({number})", f"COUNT_IF({where})",
         f"COUNT(*) FILTER (WHERE {where})", f"SUM({number}) FILTER (WHERE {where})")
    )  # fmt: skip


def make_table(draw: random.Random) -> pa.Table:
    def column(kind: pa.DataType, make: Any) -> pa.Array:
        return pa.array([None if draw.random() < 0.1 else make() for _ in range(300)], kind)

    return pa.table(
        {
            "country": column(pa.string(), lambda: draw.choice(("FR", "DE", "IT"))),
            "city": column(pa.string(), lambda: draw.choice(("Lyon", "Lille", "Rome", ""))),
            "amount": column(pa.float64(), lambda: draw.randrange(256) / 4),
            "age": column(pa.int64(), lambda: draw.randrange(18, 31)),
            "day": column(
                pa.date32(), lambda: datetime.date(2024, 1, 30) + datetime.timedelta(draw.randrange(5))
            ),
            "member": column(pa.bool_(), lambda: draw.random() < 0.5),
        }
    )


def ours(connection: duckdb.DuckDBPyConnection, query: str) -> dict[tuple[Any, ...], tuple[Fraction, ...]]:
    plan = recipe(parse(query, {"visits": TABLE}), TABLE)
    measured = plan.measured
    rows = rows_below(connection, lambda dialect: lower(measured, TABLE, dialect), ["visits"])
    width = len(measured.keys)
    found = {}
    for row in rows:
        values = [row[width + i] * step(each, TABLE.unit) for i, each in enumerate(measured.measurements)]
        numbers = [  # counts and sums alone are asked for, and are linear
            each.constant + sum(w * values[part] for w, part in zip(each.weights, each.parts, strict=True))  # type: ignore[union-attr]
            for each in plan.aggregates
        ]
        found[tuple(row[i] for i in plan.key_order)] = tuple(numbers)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_numbers_before_noise_equal_those_of_the_query(seed: int) -> None:
    draw = random.Random(seed)
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.register("source", make_table(draw))
    connection.execute("CREATE TABLE visits AS SELECT * FROM source")
    filled = 0
    for _ in range(40):
        keys = draw.sample(KEYS, draw.choice((0, 1, 1, 2)))
        chosen = list(dict.fromkeys(aggregate(draw) for _ in range(3)))
        where = draw.choice(("", f" WHERE {condition(draw)}"))
        grouped = (
            f" GROUP BY {draw.choice(('ALL', ', '.join(str(i + 1) for i in range(len(keys)))))}"
            if keys
            else ""
        )
        query = f"SELECT {', '.join((*keys, *chosen))} FROM visits{where}{grouped}"
        expected = {}
        for row in connection.execute(query).fetchall():
            if None not in row[: len(keys)]:
                expected[row[: len(keys)]] = [Fraction(each or 0) for each in row[len(keys) :]]
        answer = ours(connection, query)
        assert set(answer) <= set(expected), query
        calls = parse(query, {"visits": TABLE}).columns[len(keys) :]
        places = [int(each.expression.name[1:]) for each in calls]  # type: ignore[union-attr]
        for key, values in expected.items():
            assert [answer[key][place] for place in places] == values, (query, key)
        filled += len(expected)
    assert filled > 100
