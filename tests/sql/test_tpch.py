"""The queries of TPC-H with customers as units: answers equal plain DuckDB, refusals say why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.support.tpch import Rows, session, tpch

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.tree import Column

HERE = Path(__file__).parent
TEXTS = {
    (int(number), which): text.strip()
    for number, which, text in re.findall(
        r"^-- (\d+) (\w+)\n(.*?);\n", (HERE / "fixtures/tpch.sql").read_text(), flags=re.S | re.M
    )
}
GUIDE = (HERE.parent.parent / "docs/tpch.md").read_text()
TABLE = {
    int(number): (verdict.strip(), why.strip())
    for number, verdict, why in re.findall(r"^\| (\d+)[^|]*\|([^|]*)\|(.*)\|$", GUIDE, flags=re.M)
}
EXACT = 10**8
"""So large a price that the noise is below a millionth of most answers."""
SELECTING = 600
"""The same for groups that are found in the data, whose selection knows no larger prices."""
IN_STEPS = {17, 22}


def verdict(number: int) -> str:
    return TABLE[number][0]


ANSWERED = [number for number in TABLE if verdict(number) != "refused" and number not in IN_STEPS]
REFUSED = [number for number in TABLE if verdict(number) == "refused"]


@pytest.fixture(scope="module")
def rows() -> Rows:
    return tpch()


@pytest.fixture(scope="module")
def ours(rows: Rows) -> Iterator[sf.Session]:
    with session(rows) as made:
        yield made


@pytest.fixture(scope="module")
def plain(rows: Rows) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, table in rows.items():
        connection.register(name, table)
    return connection


def asked(number: int) -> str:
    return TEXTS.get((number, "asked"), TEXTS[number, "original"])


def check(
    query: Any, release: Any, connection: duckdb.DuckDBPyConnection, number: int, *, few: str = ""
) -> None:
    """Hold a release to the original query on the raw tables.

    Args:
        query: What was asked.
        release: Its answer.
        connection: To the raw tables.
        number: Of the original query.
        few: The column that counts units, where groups of too few of them may be missing.
    """
    keys = [
        each.name
        for each in query.report.columns
        if isinstance(each.expression, Column) and each.expression.name.startswith("k")
    ]
    expected = by_keys(connection.sql(TEXTS[number, "original"]).to_arrow_table(), keys)
    answer, error = by_keys(release.table, keys), by_keys(release.error(1 - 1e-9), keys)
    assert expected
    for key, values in expected.items():
        if few and key not in answer:
            assert values[few] < 2, key
            continue
        for name, truth in values.items():
            near = 1e-6 * abs(float(truth)) + 0.5  # numbers are rounded to a grid before they are added
            width = error[key][name]
            assert abs(answer[key][name] - float(truth)) <= width + near, (key, name)
            if not (few and values[few] < 2):  # a group of one is rarely there at all
                assert width <= 0.05 * abs(float(truth)) + 1, (key, name, width)
    for key in answer.keys() - expected.keys():  # listed keys that the data does not have
        for name, value in answer[key].items():
            assert name.startswith("avg") or abs(value) <= error[key][name] + 0.5, (key, name)


def by_keys(table: Any, keys: list[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row.pop(key) for key in keys): row for row in table.to_pylist()}


def test_the_guide_has_a_line_for_each_query():
    assert list(TABLE) == list(range(1, 23))
    for number in TABLE:
        assert verdict(number) in ("answered", "answered, rewritten", "refused"), number


@pytest.mark.parametrize("number", ANSWERED)
def test_answers_equal_plain_duckdb(number, ours, plain):
    query = ours.sql(asked(number))
    price = EXACT if query.quote(epsilon=1).measured.groups is not None else SELECTING
    few = {13: "custdist"}.get(number, "")
    check(query, query.release(epsilon=price), plain, number, few=few)


def test_a_released_figure_is_a_constant_of_the_next_question(ours, plain):
    """22: the balance that the others are compared with is released first."""
    # A customer counts once here: at a hundred times this price the range of noise would end below the count.
    (balance,) = ours.sql(TEXTS[22, "first"]).release(epsilon=EXACT // 100).table["balance"].to_pylist()
    assert balance == pytest.approx(plain.sql(TEXTS[22, "first"]).fetchall()[0][0], rel=1e-4)
    query = ours.sql(asked(22), {"balance": balance})
    check(query, query.release(epsilon=SELECTING), plain, 22, few="numcust")


def test_a_release_is_a_public_table_of_the_next_question(ours, plain, rows):
    """17: the usual quantity of each part is released first, and joined."""
    first = ours.sql(TEXTS[17, "first"]).release(epsilon=EXACT).table
    averages = sf.PublicTable(
        "averages", source=first, key="p_partkey", schema={"p_partkey": sf.Int(), "quantity": sf.Float(0, 50)}
    )
    with session(rows, averages) as later:
        query = later.sql(asked(17))
        check(query, query.release(epsilon=EXACT), plain, 17)


@pytest.mark.parametrize("number", REFUSED)
def test_refusals_are_those_of_the_guide(number, ours):
    with pytest.raises(QueryRefused) as refusal:
        ours.sql(asked(number))
    assert f"*{refusal.value.reason}*" in TABLE[number][1]
    assert refusal.value.fix


@pytest.mark.parametrize("number", sorted({*IN_STEPS, 4, 15, 20, 21}))
def test_originals_that_need_a_rewrite_are_refused_with_one(number, ours):
    with pytest.raises(QueryRefused) as refusal:
        ours.sql(TEXTS[number, "original"])
    assert refusal.value.fix


@pytest.mark.parametrize(
    ("key", "table"),
    [
        ("c_custkey", "customer"),
        ("o_custkey", "orders"),
        ("l_orderkey", "lineitem"),
        ("o_orderkey", "orders"),
    ],
)
def test_groups_of_one_person_are_refused(key, table, ours):
    with pytest.raises(QueryRefused, match="about one person"):
        ours.sql(f"SELECT {key}, COUNT(*) FROM {table} GROUP BY {key}")


def test_listed_persons_may_be_asked_about(ours):
    """Keys that the query lists are public: the noise hides whether a person is there."""
    query = ours.sql("SELECT c_custkey, COUNT(*) FROM customer WHERE c_custkey IN (1, 2) GROUP BY c_custkey")
    assert query.quote(epsilon=1).measured.groups == 2
