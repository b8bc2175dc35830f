"""What each column estimates, in one phrase: made by each aggregate and each way of bounding."""

import json

import pytest

import sfumato as sf
from sfumato.plan.expressions.tree import Column
from sfumato.plan.questions.aggregates import statistics
from sfumato.plan.questions.bounding import Scope, boundings
from sfumato.plan.questions.nodes import AggregateCall

SCHEMA = {
    "country": sf.Enum("FR", "DE", "IT", "ES"),
    "city": sf.Text(),
    "amount": sf.Float(0, 200),
    "age": sf.Int(18, 99, nullable=False),
}
UNIT = sf.PrivacyUnit("patient", max_groups=3, max_rows=6)
ROWS = {
    "patient": [1, 1, 2, 3],
    "country": ["FR", "DE", "FR", "IT"],
    "city": ["a", "b", "a", "a"],
    "amount": [1.0, 2.0, 3.0, None],
    "age": [20, 20, 30, 40],
}


def session(unit=UNIT):
    import pyarrow as pa

    table = sf.PrivateTable("visits", source=pa.table(ROWS), unit=unit, schema=SCHEMA)
    return sf.Session(table, budget=sf.Budget(10**6, "0.01"))


@pytest.fixture(scope="module")
def opened():
    made = {
        "many": session(),
        "one": session(sf.PrivacyUnit("patient", max_groups=3)),
        "row": session(sf.PrivacyUnit.row()),
    }
    yield made
    for each in made.values():
        each.close()


ROWS_CUT = "at most 6 of each patient counted"
PHRASES = [
    ("many", "SELECT COUNT(*) AS x FROM visits", f"rows, {ROWS_CUT}"),
    ("many", "SELECT country, COUNT(*) AS x FROM visits GROUP BY country", f"rows, {ROWS_CUT}"),
    ("many", "SELECT COUNT(amount) AS x FROM visits", f"rows with amount, {ROWS_CUT}"),
    ("many", "SELECT AVG(age) AS x FROM visits", f"mean of age over rows, {ROWS_CUT}"),
    ("many", "SELECT SUM(amount) AS x FROM visits", f"sum of amount over rows, {ROWS_CUT}"),
    ("many", "SELECT MEDIAN(age) AS x FROM visits", f"median of age over rows, {ROWS_CUT}"),
    ("many", "SELECT QUANTILE(age, 0.9) AS x FROM visits", f"0.9-quantile of age over rows, {ROWS_CUT}"),
    ("many", "SELECT COUNT(DISTINCT patient) AS x FROM visits", "distinct patient"),
    (
        "many",
        "SELECT country, COUNT(DISTINCT patient) AS x FROM visits GROUP BY country",
        "distinct patient, each in at most 3 groups",
    ),
    (
        "many",
        "SELECT country, COUNT(DISTINCT patient) AS x FROM visits WHERE country < 'FR' GROUP BY 1",
        "distinct patient",
    ),
    (
        "many",
        "SELECT city, COUNT(*) AS x FROM visits GROUP BY city",
        "rows, at most 2 of each patient in each of at most 3 groups",
    ),
    (
        "one",
        "SELECT city, COUNT(*) AS x FROM visits GROUP BY city",
        "distinct patient, not rows, each in at most 3 groups",
    ),
    (
        "one",
        "SELECT city, COUNT(amount) AS x FROM visits GROUP BY city",
        "rows with amount, at most 1 of each patient in each of at most 3 groups",
    ),
    ("many", "SELECT COUNT(DISTINCT age) AS x FROM visits", f"distinct values of age, {ROWS_CUT}"),
    (
        "many",
        "SELECT SUM(amount) / COUNT(*) AS x FROM visits",
        f"(sum of amount over rows) / rows, {ROWS_CUT}",
    ),
    (
        "many",
        "SELECT COUNT(*) - 2 * COUNT(DISTINCT patient) AS x FROM visits",
        f"rows - ((distinct patient) * 2), {ROWS_CUT}",
    ),
    ("row", "SELECT country, COUNT(*) AS x FROM visits GROUP BY country", "rows"),
    ("row", "SELECT city, COUNT(*) AS x FROM visits GROUP BY city", "rows"),
    ("row", "SELECT AVG(amount) AS x FROM visits", "mean of amount over rows"),
]


@pytest.mark.parametrize(("unit", "sql", "phrase"), PHRASES)
def test_a_column_says_what_it_estimates(opened, unit, sql, phrase):
    quote = opened[unit].sql(sql).quote(epsilon=1, delta="1e-6")
    column = next(column for column in quote.columns if column.name == "x")
    assert column.estimand == phrase
    assert column.cut == ("at most" in phrase or "once" in phrase)
    told = quote.to_dict()["columns"][-1]
    assert (told["estimand"], told["cut"]) == (phrase, column.cut)
    assert " ".join(phrase.split()) in " ".join(str(quote).split())


def test_the_phrase_stands_in_every_display(opened, capsys):
    release = (
        opened["many"]
        .sql("SELECT country, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY country")
        .release(epsilon=1)
    )
    phrase = f"mean of age over rows, {ROWS_CUT}"
    assert release.estimands == {"n": f"rows, {ROWS_CUT}", "a": phrase}
    text = str(release)
    assert max(map(len, text.splitlines())) <= 80
    assert phrase in text
    assert "a ± noise" in text
    assert phrase in release._repr_html_()
    assert "± noise" in release._repr_html_()
    assert json.loads(json.dumps(release.quote.to_dict()))["columns"][2]["estimand"] == phrase


def test_where_nothing_is_cut_the_bars_are_plain(opened):
    release = (
        opened["row"].sql("SELECT country, COUNT(*) AS n FROM visits GROUP BY country").release(epsilon=1)
    )
    assert "± noise" not in str(release)
    assert str(release).startswith("n  rows\n")


def test_every_aggregate_and_every_way_has_words():
    call = {"argument": Column("age")}
    units = sf.PrivacyUnit("patient", max_groups=2, max_rows=4), sf.PrivacyUnit.row()
    for kind in statistics().values():
        other = {"other": Column("amount")} if kind.arity == 2 else {}
        asked = AggregateCall(kind.name, **call, **other)
        for way in boundings().values():
            for unit in units:
                made = kind.estimand(asked, Scope(unit, keyed=True, groups=None), way)
                assert "figure" not in str(made)
                assert ("patient" in str(made)) == (unit.column is not None) == made.cut
