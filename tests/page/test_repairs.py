"""Refusals as buttons: what the advice says is done to the text, and offered only where it helps."""

import ast
import datetime
import inspect
from dataclasses import replace
from fractions import Fraction
from re import _constants, _parser

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.server.page.ask import repairs
from sfumato.server.page.ask.quoting import Asked, Quoted, Refused, quoted
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


def test_bounds_are_offered_as_names_to_replace_and_never_as_numbers():
    free = sf.PrivateTable(
        "t", source=pa.table({"x": [1.0]}), unit=sf.PrivacyUnit.row(), schema={"x": sf.Float()}
    )
    with sf.Session(free, budget=sf.Budget(1)) as session:
        (repair,) = quoted(session, Asked("SELECT SUM(x) FROM t", "0.1")).repairs
        assert repair.sql == "SELECT SUM(LEAST(GREATEST(x, LOW), HIGH)) FROM t"
        left = quoted(session, Asked(repair.sql.replace("HIGH", "9"), "0.1"))
        assert left.fix == "Put the least value that you expect in the place of LOW."


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


def patterns():
    """Each pattern of the repairs, with a letter where it takes something in."""
    for node in ast.walk(ast.parse(inspect.getsource(repairs))):
        if not isinstance(node, ast.Call) or getattr(node.func, "value", None) is None:
            continue
        if (
            isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr != "escape"
        ):
            first = node.args[0]
            if isinstance(first, ast.Name):
                yield getattr(repairs, first.id)
            elif isinstance(first, ast.JoinedStr):
                yield "".join(part.value if isinstance(part, ast.Constant) else "x" for part in first.values)
            else:
                yield first.value


def begins_with_a_run(parts):
    """Whether a pattern may begin with as many characters as there are."""
    for kind, what in parts:
        if kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
            least, most, inner = what
            if most is _constants.MAXREPEAT:
                return True
            if begins_with_a_run(inner):
                return True
            if least == 0:
                continue
        if kind is _constants.SUBPATTERN:
            return begins_with_a_run(what[-1])
        if kind is _constants.BRANCH:
            return any(begins_with_a_run(branch) for branch in what[1])
        return False
    return False


def test_no_pattern_looks_for_the_end_of_a_run_from_each_of_its_places():
    found = list(patterns())
    assert len(found) > 30
    assert [pattern for pattern in found if begins_with_a_run(_parser.parse(pattern))] == []


@pytest.mark.parametrize("run", [" ", "\n", "'", '"', "(", ")", ",", "=", ".", "a", "a.", "''", " = ", "IN "])
def test_a_long_question_is_not_mended(monkeypatch, run):
    monkeypatch.setattr(repairs, "_candidates", lambda *_: pytest.fail("Its text was looked through."))
    error = QueryRefused("age = NULL is never true.", "Write age IS NULL.")
    assert repairs.repairs_of(error, N + run * 2_000, lambda _: True) == ()


def test_a_few_mends_are_tried_at_most(monkeypatch):
    many = [(str(number), f"{N} {number}") for number in range(100)]
    monkeypatch.setattr(repairs, "_candidates", lambda *_: iter(many))
    tried = []
    assert repairs.repairs_of(QueryRefused("x", "y"), N, tried.append) == ()
    assert len(tried) < 20


@pytest.mark.parametrize("blank", [" " * 300, "\n" * 300, "\t \n" * 100])
@pytest.mark.parametrize(
    ("sql", "mended"),
    [
        (f"{N} WHERE age~= NULL", f"{N} WHERE age IS NULL"),
        (f"{N} WHERE age~<>~NULL", f"{N} WHERE age IS NOT NULL"),
        ("SELECT city, COUNT(*) FROM visits~GROUP~city", "SELECT city, COUNT(*) FROM visits~GROUP BY city"),
        (f"{N}~FOR~UPDATE", N),
        (
            "SELECT city, COUNT(*) AS n FROM visits~ORDER BY n",
            "SELECT city, COUNT(*) AS n FROM visits\nGROUP BY city~ORDER BY n",
        ),
    ],
)
def test_runs_of_blanks_are_no_hindrance(session, sql, mended, blank):
    found = quoted(session, Asked(sql.replace("~", blank), "0.1"))
    assert found.repairs[0].sql == mended.replace("~", blank)


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


def test_what_was_seen_tells_the_delta_and_what_is_on_record(session):
    before = quoted(session, Asked(N, "0.01"))
    assert replace(before, quote=replace(before.quote, delta=Fraction(1, 10**7))).seen != before.seen
    assert replace(before, quote=replace(before.quote, epsilon=Fraction(1))).seen != before.seen
    session.sql(N).release(epsilon="0.01")
    after = quoted(session, Asked(N, "0.01"))
    assert after.free
    assert after.total == before.total
    assert after.seen != before.seen


def test_the_largest_price_that_fits_does_fit(session):
    found = quoted(session, Asked(N, "99"))
    assert found.too_much
    (choice,) = found.choices
    assert not quoted(session, Asked(N, choice.epsilon)).too_much
    assert float(choice.epsilon) == pytest.approx(10, rel=0.02)
