"""Releases that are the same are paid once, and what was read before a window was over is not published."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest

from commands import invoke
from sfumato.cli import app
from sfumato.ledger import rules

_COUNT = "SELECT COUNT(*) AS n FROM visits WHERE day >= $from AND day < $to"
_OTHERWISE = "SELECT  count(*)  AS many FROM visits WHERE day < $to AND day >= $from"


def series(name, epsilon="1"):
    text = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
    terms = f"start = 2024-01-01\nhorizon = 400\nepsilon = {epsilon}\ndelta = 1e-6\n"
    return f'[[series]]\nname = "{name}"\nsql = "{text}"\n{terms}'


def question(name, text=_COUNT, start="2024-01-01", epsilon="0.25"):
    terms = f'every = "month"\nstart = {start}\nepsilon = {epsilon}\n'
    return f'[[question]]\nname = "{name}"\nsql = "{text}"\n{terms}'


SAME = {
    "series": (series("a"), series("b"), 1),
    "a budget that one of them fits": (series("a", "2"), series("b", "2"), 2),
    "questions": (question("a"), question("b"), Fraction(1, 2)),
    "questions that begin at other times": (question("a"), question("b", start="2024-02-01"), Fraction(1, 2)),
    "in other words": (question("a"), question("b", _OTHERWISE), Fraction(1, 2)),
}


@pytest.mark.parametrize("case", SAME)
def test_releases_that_are_the_same_are_paid_once_and_said_to_be(clinic, case):
    first, second, cost = SAME[case]
    clinic.lists(first + second)
    shown = f"for epsilon {float(cost):g}"
    assert shown in clinic.publish("2024-03-01", "--dry-run")
    assert shown in clinic.publish("2024-03-01")
    assert clinic.spent() == cost
    before = clinic.files()
    assert "Nothing is new" in clinic.publish("2024-03-01")
    assert clinic.files() == before


def test_a_higher_price_is_paid_beside_a_lower_one(clinic):
    clinic.lists(question("a", epsilon="0.125") + question("b"))
    clinic.publish("2024-03-01")
    assert clinic.spent() == Fraction(3, 4)


def test_for_how_many_windows_it_is_enough_counts_each_once(clinic):
    clinic.lists(question("a"))
    alone = clinic.publish("2024-02-01", "--dry-run")
    clinic.lists(question("a") + question("b"))
    both = clinic.publish("2024-02-01", "--dry-run")
    assert "11 months" in alone
    assert both.count("11 months") == 2


@pytest.fixture
def asked(clinic, monkeypatch):
    """Asks about a month, on a day by the clock of the ledger."""

    class Clock(datetime.datetime):
        today = datetime.datetime(2024, 1, 10, tzinfo=datetime.UTC)

        @classmethod
        def now(cls, tz=None):
            return cls.today.astimezone(tz)

    def asked(month, day):
        where = f"day >= DATE '2024-{month:02}-01' AND day < DATE '2024-{month + 1:02}-01'"
        text = f"SELECT COUNT(*) AS n FROM visits WHERE {where}"
        with monkeypatch.context() as patch:
            patch.setattr(Clock, "today", datetime.datetime.fromisoformat(f"{day}+00:00"))
            patch.setattr(rules, "datetime", Clock)
            result = invoke(app, ["query", text, "--epsilon", "0.25"])
        assert result.exit_code == 0, result.stderr

    clinic.lists(question("monthly"))
    return asked


@pytest.mark.parametrize(("month", "day"), [(1, "2024-01-10"), (1, "2024-01-31T23:59"), (2, "2024-02-01")])
def test_an_answer_that_was_read_before_its_window_was_over_is_not_published(clinic, asked, month, day):
    asked(month, day)
    said = clinic.publish("2024-03-05", code=2)
    assert f"what is on record of 2024-{month:02}-01 was read before that month was over (receipt " in said
    assert "another version or state of the table, or give another epsilon" in said
    assert clinic.spent() == Fraction(1, 4)
    assert clinic.files() == {}
    clinic.lists(question("monthly", epsilon="0.5"))
    clinic.publish("2024-03-05")
    assert clinic.spent() == Fraction(5, 4)


def test_an_answer_that_was_read_afterwards_is_published_free(clinic, asked):
    asked(1, "2024-02-01")
    asked(2, "2024-03-01")
    assert "Nothing is new" in clinic.publish("2024-03-05")
    assert clinic.spent() == Fraction(1, 2)


def test_what_is_published_stays_and_the_next_window_is_looked_at(clinic, asked):
    clinic.publish("2024-02-05")
    asked(2, "2024-02-10")
    first = clinic.files()
    assert "Nothing is new" in clinic.publish("2024-02-28")
    assert clinic.files() == first
    assert "2024-02-01 was read before" in clinic.publish("2024-03-01", code=2)
    assert clinic.files() == first
