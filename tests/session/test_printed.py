"""Answers and quotes as they are printed: the order of rows, lines that fit, empty answers, whole prices."""

from __future__ import annotations

import itertools
import re

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.mechanisms import AdaptiveSelection

CITIES = ("Bonn", "Lyon", "Rome")


@pytest.fixture
def session():
    rows = list(itertools.product(range(400), CITIES, ("b", "a")))
    table = sf.PrivateTable(
        "visits",
        source=pa.table(
            {
                "a_quite_long_name_of_a_customer": [row[0] for row in rows],
                "zone": [row[1] for row in rows],
                "letter": [row[2] for row in rows],
                "fee": [float(row[0] % 7) for row in rows],
            }
        ),
        unit=sf.PrivacyUnit("a_quite_long_name_of_a_customer", max_groups=6),
        schema={"zone": sf.Text(), "letter": sf.Enum("b", "a"), "fee": sf.Float()},
    )
    with sf.Session(table, budget=sf.Budget(epsilon=1000, delta=1e-6)) as opened:
        yield opened


def keys(release, *names):
    return list(zip(*(release.table[name].to_pylist() for name in names), strict=True))


def test_found_groups_come_by_the_first_key_and_then_by_the_second(session):
    by_zone = session.sql("SELECT zone, letter, COUNT(*) AS n FROM visits GROUP BY zone, letter").release(50)
    assert keys(by_zone, "zone", "letter") == list(itertools.product(CITIES, ("b", "a")))
    by_letter = session.sql("SELECT letter, zone, COUNT(*) AS n FROM visits GROUP BY letter, zone").release(
        50
    )
    assert by_letter.free  # the same question, shown otherwise
    assert keys(by_letter, "letter", "zone") == list(itertools.product(("b", "a"), CITIES))
    one = dict(zip(keys(by_zone, "zone", "letter"), by_zone.table["n"].to_pylist(), strict=True))
    other = dict(zip(keys(by_letter, "zone", "letter"), by_letter.table["n"].to_pylist(), strict=True))
    assert one == other
    halves = by_letter.error()["n"].to_pylist()
    assert dict(zip(keys(by_letter, "zone", "letter"), halves, strict=True)) == dict(
        zip(keys(by_zone, "zone", "letter"), by_zone.error()["n"].to_pylist(), strict=True)
    )


def test_levels_come_by_the_first_key_and_then_by_the_second(session):
    text = "SELECT {0}, COUNT(*) AS n FROM visits WHERE zone IN ('Bonn', 'Lyon') GROUP BY ROLLUP ({0})"
    first = session.sql(text.format("zone, letter")).release(50)
    fine = [("Bonn", "b"), ("Bonn", "a"), ("Lyon", "b"), ("Lyon", "a")]
    assert keys(first, "zone", "letter") == [*fine, ("Bonn", None), ("Lyon", None), (None, None)]
    turned = session.sql(text.format("letter, zone")).release(50)
    fine = [("b", "Bonn"), ("b", "Lyon"), ("a", "Bonn"), ("a", "Lyon")]
    assert keys(turned, "letter", "zone") == [*fine, ("b", None), ("a", None), (None, None)]
    n = dict(zip(keys(turned, "letter", "zone"), turned.table["n"].to_pylist(), strict=True))
    assert n["b", None] == n["b", "Bonn"] + n["b", "Lyon"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT zone, COUNT(*) FROM visits GROUP BY zone HAVING COUNT(*) > 1e6", "HAVING removed them all"),
        (
            "SELECT letter, COUNT(*) FROM visits GROUP BY letter HAVING COUNT(*) > 1e6",
            "HAVING removed them all",
        ),
        ("SELECT letter, COUNT(*) FROM visits GROUP BY letter LIMIT 3 OFFSET 9", "LIMIT or OFFSET"),
        (
            "SELECT zone, COUNT(*) FROM visits WHERE fee > 99 GROUP BY zone",
            "No group is shown: none has more",
        ),
    ],
)
def test_an_empty_answer_says_why(session, text, why):
    release = session.sql(text).release(1)
    assert release.table.num_rows == 0
    assert why in release.nothing
    assert why in " ".join(str(release).split())
    assert "holds 95%" not in str(release)  # there is no number for it to hold for


@pytest.mark.parametrize(
    ("groups", "figure"), [(1, "SUM(fee)"), (8, "COUNT(*)"), (8, "SUM(fee)"), (30, "SUM(fee)")]
)
def test_an_empty_answer_says_what_its_groups_were_short_of(groups, figure):
    """Units where they were counted, weights where they were weighed; no more digits than are read."""
    rows = pa.table({"who": [1] * 8, "place": [f"p{at}" for at in range(8)], "fee": [1.0] * 8})
    unit = sf.PrivacyUnit("who", max_groups=groups)
    schema = {"place": sf.Text(), "fee": sf.Float(0, 2)}
    table = sf.PrivateTable("t", source=rows, unit=unit, schema=schema)
    with sf.Session(table, budget=sf.Budget(10, "1e-3")) as opened:
        release = opened.sql(f"SELECT place, {figure} AS n FROM t GROUP BY place").release(1, delta="1e-9")
    (threshold,) = {selection.threshold for selection in release.quote.selections}
    weighed = isinstance(release.quote.selection, AdaptiveSelection)
    assert weighed == (groups > 1 and figure == "SUM(fee)")
    said = re.search(r"more than ([\d,.]*\d) (units|together)", release.nothing)
    assert said is not None
    assert ("weigh" in release.nothing, said[2]) == (weighed, "together" if weighed else "units")
    assert threshold <= float(said[1].replace(",", "")) <= threshold * 1.01
    assert len(said[1].replace(".", "")) <= 4


def test_an_answer_with_rows_says_nothing_of_that(session):
    assert session.sql("SELECT COUNT(*) FROM visits").release(1).nothing == ""


def test_bars_of_groups_that_their_figures_chose_are_said_to_hold_less_often(session):
    text = "SELECT letter, COUNT(*) AS n, COUNT(DISTINCT letter) AS d FROM visits GROUP BY letter"
    for more, chosen in {
        "": False,
        " ORDER BY n": False,
        " ORDER BY n LIMIT 1": True,
        " HAVING n > 9": True,
    }.items():
        words = " ".join(str(session.sql(text + more).release(1)).split())
        assert ("less often for groups that HAVING or LIMIT chose" in words) == chosen, more
        assert ("each bound over all rows holds as often" in words) != chosen, more


def test_a_quote_without_figures_has_no_table_of_them(session):
    quote = session.table("visits").unique("zone").quote(1)
    assert "confidence" not in str(quote)
    assert "\n\n\n" not in str(quote)


def test_declaring_nothing_missing_is_advised_only_where_it_helps(session):
    asked = {"COUNT(fee)": True, "COUNT_IF(fee > 3)": False, "COUNT(*) FILTER (WHERE fee > 3)": False}
    for aggregate, helps in asked.items():
        quote = session.sql(f"SELECT {aggregate} AS a, COUNT(*) AS n FROM visits").quote(1)
        assert ("declared as not nullable" in " ".join(quote.notes)) == helps, aggregate


def test_no_printed_line_is_wider_than_a_terminal(session):
    release = session.sql("SELECT zone, COUNT(*) AS n FROM visits GROUP BY zone").release(1)
    assert max(map(len, str(release).splitlines())) <= 80


def test_a_quote_with_bought_bounds_shows_the_whole_price(session):
    query = session.sql("SELECT AVG(fee) FROM visits")
    before = query.quote(1, bounds="auto")
    assert "price   epsilon 1 (pure, delta 0): 0.2 for bounds, once, and 0.8 for the answer" in str(before)
    assert (before.to_dict()["epsilon"], before.to_dict()["epsilon_for_bounds"]) == (0.8, 0.2)
    left = session.balance().remaining
    query.release(1, bounds="auto")
    assert left - session.balance().remaining == before.epsilon + before.first
    again = query.quote(1, bounds="auto")  # they are kept
    assert again.first == 0
    assert str(again).startswith("price   epsilon 0.8 (pure")


def test_no_value_and_empty_text_are_told_apart(session):
    town = ["", "NULL", None, "Köln"]
    rows = pa.table({"id": range(400), "town": town * 100, "year": [2024, None] * 200})
    table = sf.PrivateTable(
        "t", source=rows, unit=sf.PrivacyUnit("id"), schema={"town": sf.Text(), "year": sf.Int(2020, 2029)}
    )
    with sf.Session(table, budget=sf.Budget(epsilon=100, delta=1e-6)) as opened:
        release = opened.sql("SELECT town, COUNT(*) AS n FROM t GROUP BY town").release(20)
        assert set(release.table["town"].to_pylist()) == set(town)
        assert set(release.shown().columns["town"]) == {"''", "'NULL'", "NULL", "Köln"}
        assert "\nNULL " in str(release)
        assert "NULL" in release._repr_html_()


def test_a_quote_tells_what_is_on_record_and_what_is_more_than_left(session):
    query = session.sql("SELECT letter, COUNT(*) AS n FROM visits GROUP BY letter")
    assert query.quote(1).standing == ()
    query.release(1)
    for again in (query.quote(1), query.quote("0.5"), query.sort("n").quote(1)):
        assert "record  An answer is on record: asking for this again is free." in str(again)
        assert again.to_dict()["standing"]["record"]
    assert query.quote(2).standing == ()
    far = query.quote(1000)
    assert dict(far.standing)["left"] == (
        "This is more than what is left, epsilon 999 and delta 1e-06: it would be refused."
    )
    assert "\nleft    This is more" in str(far)
    with pytest.raises(sf.errors.BudgetExceeded):
        query.release(1000)
    profiled = query.quote(1000, profile=True)  # 200 of it for the profile
    assert dict(profiled.standing)["left"]


def test_a_quote_tells_of_others_answers_and_of_limits(session):
    query = "SELECT letter, COUNT(*) AS n FROM visits GROUP BY letter"
    sf.Steward(session.ledger).limit("visits", "bob", sf.Budget(epsilon=2), reason="a test")
    session.as_analyst("ada").sql(query).release(1)
    bob = session.as_analyst("bob").sql(query)
    assert dict(bob.quote(1).standing)["record"].startswith("Somebody else has paid")
    assert dict(bob.quote(3).standing)["left"].startswith("This is more than what is left, epsilon 2")
    assert bob.quote(2).standing == ()
    sf.Steward(session.ledger).revoke("visits", "bob", reason="a test")
    assert bob.quote(2).standing == ()  # asking says why not


def test_all_that_is_paid_is_told_with_what_for(session):
    count = session.sql("SELECT COUNT(*) AS n FROM visits")
    assert count.release(1).paid.startswith("Paid epsilon 1 (receipt")
    first = session.sql("SELECT letter, COUNT(*) AS n FROM visits GROUP BY letter").release(1, profile=True)
    assert first.paid.startswith("Paid epsilon 1: 0.2 for the profile, 0.8 for the answer (receipt")
    assert sum(first.first.values()) + first.epsilon == 1
    bounds = session.sql("SELECT SUM(fee) AS s FROM visits").release(1, bounds="auto")
    assert bounds.paid.startswith("Paid epsilon 1: 0.2 for bounds, 0.8 for the answer (receipt")
    assert count.release(1).paid.startswith("Answered again from the ledger, free (receipt")
    built = session.table("visits").filter(sf.col("fee") > 2).value_counts("letter").release(1)
    assert str(built.receipt.purpose) == "rows of visits where fee > 2, by letter"
    for release in (first, bounds):
        assert str(release).count("at most 6") <= len(
            release.estimands
        )  # the heads tell the limit, and they alone


def test_figures_of_many_columns_are_a_line_for_each():
    names = [f"quite_long_name_{place}" for place in range(3)]
    rows = pa.table({"id": range(60), **{name: [float(i % 9) for i in range(60)] for name in names}})
    schema = {name: sf.Float(0, 10) for name in names}
    table = sf.PrivateTable("t", source=rows, unit=sf.PrivacyUnit("id", max_groups=1), schema=schema)
    with sf.Session(table, budget=sf.Budget(10**9)) as opened:
        release = opened.table("t").describe().release(epsilon=10**4)
        lines = str(release).split("\n")
    assert max(map(len, lines)) <= 80
    assert release.table.num_columns == 1 + 6 * len(names)  # as it was asked
    figures, shown = release.shown().tables[1], release.to_pandas().iloc[0]
    assert figures["column"] == names
    assert next(iter(figures)) == "column"
    for word in ("count", "mean", "std", "min", "median", "max"):
        (cells,) = [cells for head, cells in figures.items() if head.split(" ")[0] == word]
        for name, cell in zip(names, cells, strict=True):
            told = float(cell.split(" ±")[0].replace(",", ""))
            assert told == pytest.approx(shown[f"{name}_{word}"], abs=0.6)
    assert sum(line.startswith(names[-1]) for line in lines) <= 4
