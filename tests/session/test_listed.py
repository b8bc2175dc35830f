"""A value that a declared list does not have is refused before it is paid for, however it is asked for."""

import itertools

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import QueryRefused

LISTS = {"sex": ("F", "M"), "city": ("Lyon", "Nice", "Lille"), "grade": (1, 2, 3)}
OUTSIDE = {"sex": ("X", "f"), "city": ("Lion", ""), "grade": (4, -1)}
NEAR = {"f": "'F'", "Lion": "'Lyon'"}
c = sf.col


@pytest.fixture(scope="module")
def session():
    rows = pa.table(
        {
            "id": range(60),
            "sex": ["F", "M"] * 30,
            "city": ["Lyon", "Nice", "Lille"] * 20,
            "grade": [1, 2, 3] * 20,
            "word": ["a", "b"] * 30,
            "age": range(60),
        }
    )
    schema = {name: sf.Enum(*values) for name, values in LISTS.items()}
    table = sf.PrivateTable(
        "visits",
        source=rows,
        unit=sf.PrivacyUnit("id", max_groups=2),
        schema={**schema, "word": sf.Text(), "age": sf.Int(0, 99)},
    )
    with sf.Session(table, budget=sf.Budget(1)) as opened:
        yield opened


SQL = {
    "where": "SELECT COUNT(*) AS n FROM visits WHERE {0} = {1}",
    "turned": "SELECT COUNT(*) AS n FROM visits WHERE {1} = {0}",
    "or": "SELECT COUNT(*) AS n FROM visits WHERE age > 30 OR {0} = {1}",
    "in": "SELECT COUNT(*) AS n FROM visits WHERE {0} IN ({1})",
    "case": "SELECT SUM(CASE WHEN {0} = {1} THEN 1 ELSE 0 END) AS n FROM visits",
    "simple case": "SELECT SUM(CASE {0} WHEN {1} THEN 1 ELSE 0 END) AS n FROM visits",
    "filter": "SELECT COUNT(*) FILTER (WHERE {0} = {1}) AS n FROM visits",
    "count_if": "SELECT COUNT_IF({0} = {1}) AS n FROM visits",
    "key": "SELECT {0} = {1} AS k, COUNT(*) AS n FROM visits GROUP BY 1",
    "below": "SELECT COUNT(*) AS n FROM (SELECT id, SUM(age) AS a FROM visits WHERE {0} = {1} GROUP BY id) "
    "AS v",
    "twice": "SELECT COUNT(*) AS n FROM (SELECT id, {0} FROM visits WHERE age > 3) AS v WHERE {0} = {1}",
}
BUILT = {
    "where": lambda t, name, value: t.filter(c(name) == value).agg(n=sf.count()),
    "in": lambda t, name, value: t.filter(c(name).is_in([value])).agg(n=sf.count()),
    "case": lambda t, name, value: t.agg(n=c("age").where(c(name) == value).sum()),
    "count_if": lambda t, name, value: t.agg(n=sf.count_if(c(name) == value)),
    "key": lambda t, name, value: t.group_by(k=c(name) == value).agg(n=sf.count()),
}


def asked(session, way, name, value):
    if way in SQL:
        session.sql(SQL[way].format(name, repr(value)))
    if way in BUILT:
        BUILT[way](session.table("visits"), name, value)


@pytest.mark.parametrize("way", SQL)
def test_every_form_takes_declared_values_and_no_others(session, way):
    for name in LISTS:
        for value in LISTS[name][:1]:
            asked(session, way, name, value)
        for value in OUTSIDE[name]:
            with pytest.raises(QueryRefused) as refusal:
                asked(session, way, name, value)
            told = str(refusal.value)
            assert f"{name} is declared without the value {value!r}, so that no row has it." in told
            fix = f"Did you mean {NEAR[value]}?" if value in NEAR else "Values: "
            assert fix in told
    assert session.balance().spent == 0


def test_a_list_with_one_declared_value_is_a_question(session):
    for name in LISTS:
        for inside, outside in itertools.product(LISTS[name], OUTSIDE[name]):
            session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {name} IN ({outside!r}, {inside!r})")
        with pytest.raises(QueryRefused, match="declared without"):
            session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {name} IN {OUTSIDE[name]!r}")


@pytest.mark.parametrize(
    "condition",
    [
        "word = 'z'",  # text has no list
        "age = 150",  # a bound is not a list: rows beyond it are there
        "sex <> 'X'",
        "NOT (sex = 'X')",
        "sex IS NULL",
        "sex = word",
        "grade > 9",
        "city LIKE 'X%'",
        "UPPER(city) = 'LYON'",
    ],
)
def test_conditions_that_may_hold_or_are_wider_stay(session, condition):
    session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {condition}")
    session.sql(f"SELECT SUM(CASE WHEN {condition} THEN 1 ELSE 0 END) AS n FROM visits")


def test_what_is_made_of_a_list_has_one_too(session):
    for text in ("UPPER(city) = 'Lyon'", "CASE WHEN age < 18 THEN 'young' ELSE 'old' END = 'yung'"):
        with pytest.raises(QueryRefused, match="declared without"):
            session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {text}")


@pytest.mark.parametrize(
    "inner",
    [
        "(SELECT id, sex FROM visits WHERE sex = 'F') AS v",
        "(SELECT id, sex, COUNT(*) AS k FROM visits WHERE sex = 'F' GROUP BY id, sex) AS v",
    ],
)
def test_what_an_inner_condition_leaves_out_is_no_slip(session, inner):
    session.sql(f"SELECT COUNT(*) AS n FROM {inner} WHERE sex = 'M'")
    with pytest.raises(QueryRefused, match="declared without"):
        session.sql(f"SELECT COUNT(*) AS n FROM {inner} WHERE sex = 'X'")
