"""Refusals hold their facts in named slots, and the sentences are put together from those."""

from __future__ import annotations

import pickle
import string

import pytest

from sfumato.errors import QueryRefused
from sfumato.schema import Float, Int, PrivacyUnit, PrivateTable
from sfumato.sql.read.parse import parse
from sfumato.sql.refusals import AGGREGATES, CLAUSES, NODES, TABLE_PARTS, refused
from sfumato.sql.shape_refusals import JOINS, PER_UNIT, SUBQUERIES, UNIONS, WINDOWS

LISTED = [
    *(
        pair
        for each in (CLAUSES, JOINS, PER_UNIT, SUBQUERIES, TABLE_PARTS, UNIONS, WINDOWS)
        for pair in each.values()
    ),
    *NODES.values(),
]
STAYS = PrivateTable(
    "stays",
    source=None,
    unit=PrivacyUnit("patient"),
    schema={"days": Float(), "age": Int(0, 99), "user_id": Int(0, 9)},
)


def told(text: str) -> QueryRefused:
    with pytest.raises(QueryRefused) as refusal:
        parse(text, {"stays": STAYS})
    return refusal.value


def slots(text: str) -> set[str | None]:
    return {name for _, name, _, _ in string.Formatter().parse(text)} - {None}


def test_listed_sentences_have_no_slots_but_those_that_are_filled():
    for pair in LISTED:
        assert slots("".join(pair)) <= {"unit"}
        assert "who" in str(refused(pair, "who")) or "{unit}" not in "".join(pair)
    for pair in AGGREGATES.values():
        assert slots(pair[0]) == set()
        assert slots(pair[1]) <= {"x", "y", "level"}


@pytest.mark.parametrize("name", sorted(name for name, (_, fix) in AGGREGATES.items() if "{y}" in fix))
def test_advice_for_two_columns_names_both(name):
    written = name.replace("regr", "regr_")
    fix = told(f"SELECT {written}(days, age) FROM stays").fix
    assert "days" in fix
    assert "age" in fix
    assert slots(AGGREGATES[name][1]) == {"x", "y"}
    assert fix == AGGREGATES[name][1].format(y="days", x="age")


def test_a_column_is_told_as_the_innermost_query_that_names_it_does():
    inner = "SELECT patient, days AS length FROM stays"
    refusal = told(f"SELECT SUM(length) FROM ({inner})")
    assert refusal.reason.startswith("SUM needs bounds for length:")
    assert refusal.fix.startswith("Write SUM(LEAST(GREATEST(length, LOW), HIGH)),")
    twice = told("SELECT SUM(a.days) FROM stays AS a JOIN stays AS b ON a.patient = b.patient")
    assert twice.reason.startswith("SUM needs bounds for a.days:")
    odd = told('SELECT SUM("a {column}") FROM (SELECT patient, days AS "a {column}" FROM stays)')
    assert 'SUM needs bounds for "a {column}":' in odd.reason


def test_examples_name_the_unit_even_where_another_column_is_called_like_theirs():
    assert "PARTITION BY patient ORDER BY" in told("SELECT AVG(age) FROM (SELECT age FROM stays LIMIT 3)").fix
    aliased = told("SELECT user_id, COUNT(*) FROM (SELECT patient AS user_id FROM stays) GROUP BY user_id")
    assert "(SELECT user_id, COUNT(*) AS n FROM … GROUP BY user_id)" in aliased.fix


@pytest.mark.parametrize("braces", ["{unit}", "{0}", "{", "}", "{x!r:>9}"])
def test_braces_of_the_query_are_text(braces):
    assert braces in told(f'SELECT COUNT("{braces}") FROM stays').reason
    assert braces in told(f'SELECT COUNT(*) FROM "{braces}"').reason


def test_a_refusal_is_the_same_after_pickling():
    refusal = told("SELECT SUM(days) FROM stays")
    again = pickle.loads(pickle.dumps(refusal))
    assert (str(again), again.reason, again.fix) == (str(refusal), refusal.reason, refusal.fix)
