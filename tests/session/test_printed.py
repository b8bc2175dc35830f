"""Answers and quotes as they are printed: the order of rows, lines that fit, empty answers, whole prices."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

import sfumato as sf

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


def test_an_answer_with_rows_says_nothing_of_that(session):
    assert session.sql("SELECT COUNT(*) FROM visits").release(1).nothing == ""


def test_no_printed_line_is_wider_than_a_terminal(session):
    release = session.sql("SELECT zone, COUNT(*) AS n FROM visits GROUP BY zone").release(1)
    assert len(release.weighting) > 80
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
