"""Spellings of other dialects: the same question as in DuckDB's, or a refusal that says how it is written."""

from __future__ import annotations

import pytest

from sfumato.errors import QueryRefused
from sfumato.schema import Date, Enum, PrivacyUnit, PrivateTable
from sfumato.sql.asking import Asking, ask

TABLE = PrivateTable(
    "visits",
    source=None,
    unit=PrivacyUnit("user_id"),
    schema={
        "country": Enum("FR", "DE"),
        "day": Date("2024-01-01", "2024-12-31"),
        "seen": Date("2024-01-01", "2024-12-31"),
        "my key": Enum("a", "b"),
    },
)
CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, privacy_unit_column = user_id)"


def asked(text: str) -> Asking:
    return ask(text, {"visits": TABLE})


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (
            f"{CLAUSE} `country`, COUNT(*) FROM `visits` GROUP BY `country`",
            f"{CLAUSE} country, COUNT(*) FROM visits GROUP BY country",
        ),
        (
            "SELECT `my key`, COUNT(*) AS `n` FROM visits -- a `comment\nGROUP BY `my key`",
            'SELECT "my key", COUNT(*) AS n FROM visits GROUP BY "my key"',
        ),
        (
            f"{CLAUSE} DATE_TRUNC(day, MONTH) AS m, COUNT(*) FROM visits GROUP BY m",
            f"{CLAUSE} DATE_TRUNC('month', day) AS m, COUNT(*) FROM visits GROUP BY m",
        ),
        (
            f"{CLAUSE} DATE_TRUNC('month', day) AS m, COUNT(*) FROM visits GROUP BY m",
            f"{CLAUSE} DATE_TRUNC(month, day) AS m, COUNT(*) FROM visits GROUP BY m".replace(
                "(month", "('month'"
            ),
        ),
        (
            "SELECT DATE_TRUNC(seen, ISOWEEK) AS m, COUNT(*) FROM visits GROUP BY m",
            "SELECT DATE_TRUNC('week', seen) AS m, COUNT(*) FROM visits GROUP BY m",
        ),
        (
            "SELECT DATE_TRUNC(DATE_TRUNC(seen, WEEK(MONDAY)), YEAR) AS m, COUNT(*) FROM visits GROUP BY m",
            "SELECT DATE_TRUNC('year', DATE_TRUNC('week', seen)) AS m, COUNT(*) FROM visits GROUP BY m",
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE DATE_DIFF(day, seen, DAY) > 3",
            "SELECT COUNT(*) FROM visits WHERE DATE_DIFF('day', seen, day) > 3",
        ),
        (
            f"{CLAUSE} COUNT(*) FROM visits WHERE DATE_DIFF(day, seen, MONTH) > 3",
            f"{CLAUSE} COUNT(*) FROM visits WHERE DATE_DIFF('month', seen, day) > 3",
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE country = 'DATE_TRUNC(day, MONTH) `'",
            "SELECT COUNT(*) FROM visits WHERE 'DATE_TRUNC(day, MONTH) `' = country",
        ),
    ],
)
def test_the_same_question(text, same):
    one, other = asked(text), asked(same)
    assert one.report.child == other.report.child
    assert (one.epsilon, one.delta) == (other.epsilon, other.delta)


def test_a_day_that_is_a_part_elsewhere_stays_what_it_is():
    quoted = asked("SELECT DATE_TRUNC('month', day) AS m, COUNT(*) FROM visits GROUP BY m")
    bare = asked("SELECT DATE_TRUNC(month, day) AS m, COUNT(*) FROM visits GROUP BY m")
    assert quoted.report.child == bare.report.child


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT COUNT(*) FROM `visits", "backticks is not closed"),
        ("SELECT COUNT(*) FROM ``", "no name between two backticks"),
        ("SELECT COUNT(*) FROM `shop.visits`", "Did you mean visits"),
        (f"{CLAUSE} DATE_TRUNC(day, WEEK) AS m, COUNT(*) FROM visits GROUP BY m", "WEEK begins on Sunday"),
        (
            "SELECT DATE_TRUNC(day, MONTH) AS m, COUNT(*) FROM visits GROUP BY m",
            r"DATE_TRUNC\('month', day\)",
        ),
        ("SELECT DATE_TRUNC(day, ) FROM visits", "line 1, column 24"),
        ("SELECT DATE_TRUNC(day, MONTH FROM visits", "parenthesis is not closed"),
    ],
)
def test_refused_with_the_way_it_is_written(text, told):
    with pytest.raises(QueryRefused, match=told):
        asked(text)
