"""Refusals as buttons: what the advice says is done to the text, and offered only where it helps."""

import datetime

import pytest

from sfumato.server.page.quoting import Asked, Quoted, Refused, quoted
from sfumato.session.vault import Vault

TODAY = datetime.date.today().isoformat()


N = "SELECT COUNT(*) FROM visits"


@pytest.mark.parametrize(
    ("sql", "mended"),
    [
        ("SELECT COUNT(*) FROM vists", N),
        (f"{N} WHERE agee > 3", f"{N} WHERE age > 3"),
        (f"{N} WHERE CONTAINS(city, 'agee') AND agee > 3", f"{N} WHERE CONTAINS(city, 'agee') AND age > 3"),
        (f"{N} WHERE city = 'Lyn'", f"{N} WHERE city = 'Lyon'"),
        ("SELECT MEDAIN(cost) FROM visits", "SELECT MEDIAN(cost) FROM visits"),
        ("SELECT AVERAGE(cost) FROM visits", "SELECT AVG(cost) FROM visits"),
        ("SELECT COUNT_DISTINCT(user_id) FROM visits", "SELECT COUNT(DISTINCT user_id) FROM visits"),
        ("SELECT PERCENTILE(cost, 0.9) FROM visits", "SELECT QUANTILE_CONT(cost, 0.9) FROM visits"),
        (
            "SELECT REGR_SLOPE(cost, age) FROM visits",
            "SELECT COVAR_POP(cost, age) / VAR_POP(age) FROM visits",
        ),
        ("SELECT STD(cost) FROM visits", "SELECT STDDEV_SAMP(cost) FROM visits"),
        (f'{N} WHERE city = "Lyon"', f"{N} WHERE city = 'Lyon'"),
        (f"{N} WHERE city = Lyon", f"{N} WHERE city = 'Lyon'"),
        (f"{N} WHERE city = ‘Lyon’", f"{N} WHERE city = 'Lyon'"),
        ("SELECT city, COUNT(*) FROM visits", "SELECT city, COUNT(*) FROM visits\nGROUP BY city"),
        (
            "SELECT city, age, COUNT(*) FROM visits GROUP BY city",
            "SELECT city, age, COUNT(*) FROM visits GROUP BY age, city",
        ),
        ("SELECT * FROM visits", "SELECT COUNT(*) AS n FROM visits"),
        ("SELECT user_id FROM visits", "SELECT COUNT(DISTINCT user_id) FROM visits"),
        ("SELECT COUNT(*)", "SELECT COUNT(*)\nFROM visits"),
        ("SELECT COUNT(* FROM visits", N),
        ("SELCT COUNT(*) FROM visits", N),
        (
            "SELECT city, COUNT(*) FROM visits GRUOP BY city",
            "SELECT city, COUNT(*) FROM visits GROUP BY city",
        ),
        ("SELECT city, COUNT(*) FROM visits GROUP city", "SELECT city, COUNT(*) FROM visits GROUP BY city"),
        (f"{N} WHERE age ≥ 30", f"{N} WHERE age >= 30"),
        (f"{N} WHERE age => 30", f"{N} WHERE age >= 30"),
        (f"{N} WHERE age = NULL", f"{N} WHERE age IS NULL"),
        (f"{N} WHERE age <> NULL", f"{N} WHERE age IS NOT NULL"),
        (f"{N} WHERE city IN 'Lyon', 'Nice'", f"{N} WHERE city IN ('Lyon', 'Nice')"),
        (
            "SELECT TOP 3 city, COUNT(*) FROM visits GROUP BY city",
            "SELECT city, COUNT(*) FROM visits GROUP BY city\nLIMIT 3",
        ),
        ("SELECT COUNT(*) FROM public.visits", N),
        (f"{N} WHERE day < NOW()", f"{N} WHERE day < DATE '{TODAY}'"),
        (f"{N} FOR UPDATE", N),
        (
            "SELECT cost, COUNT(*) FROM visits GROUP BY cost",
            "SELECT FLOOR(cost / 10) * 10 AS cost, COUNT(*) FROM visits GROUP BY FLOOR(cost / 10) * 10",
        ),
    ],
)
def test_the_first_repair_is_a_question_that_has_a_quote(session, sql, mended):
    found = quoted(session, Asked(sql, "0.1"))
    assert isinstance(found, Refused)
    assert found.repairs[0].sql == mended
    assert isinstance(quoted(session, Asked(mended, "0.1")), Quoted)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM visits",
        "SELECT FLOOR(cost), COUNT(*) FROM visits GROUP BY cost",
        "SELECT MODE(city) FROM visits",
        "x",
        "'",
        "SELECT 1 2 3",
    ],
)
def test_no_repair_is_offered_where_none_helps(session, sql):
    found = quoted(session, Asked(sql, "0.1"))
    assert isinstance(found, Refused)
    assert found.repairs == ()


@pytest.mark.parametrize(
    ("epsilon", "error", "prices"),
    [
        ("0,5", "", ("0.5",)),
        ("0.5", "3", ("0.5",)),
        ("", "3", ("0.2", "1", "2")),
        ("abc", "", ("0.2", "1", "2")),
    ],
)
def test_a_price_that_cannot_be_read_is_mended_too(session, epsilon, error, prices):
    found = quoted(session, Asked("SELECT AVG(cost) FROM visits WHERE age > 3", epsilon, error))
    assert isinstance(found, Refused)
    assert found.prices == prices


def test_a_quote_spends_nothing_and_reads_no_row(session, monkeypatch):
    monkeypatch.setattr(Vault, "read", lambda *_, **__: pytest.fail("A row was read."))
    end = session.ledger.end()
    for asked in (Asked(N), Asked(N, "0.1"), Asked(N, "99"), Asked(N, "", "30"), Asked("SELECT *", "1")):
        quoted(session, asked)
    assert session.ledger.end() == end


def test_the_largest_price_that_fits_does_fit(session):
    found = quoted(session, Asked(N, "99"))
    assert found.too_much
    (choice,) = found.choices
    assert not quoted(session, Asked(N, choice.epsilon)).too_much
    assert float(choice.epsilon) == pytest.approx(10)
