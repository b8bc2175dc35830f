"""Questions on a budget for each window: in which they are paid, which rows are read, who is refused."""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import pyarrow as pa
import pytest
from sqlglot import exp

import sfumato as sf
from sfumato.errors import BudgetExceeded, LedgerMismatch, QueryRefused
from sfumato.ledger import Memo, Steward
from sfumato.ledger.account import Account
from sfumato.ledger.spans import Spans
from sfumato.loss import PureLoss
from sfumato.plan.questions.nodes import Measured
from sfumato.purchase import Purchase, buy, known, on_record
from sfumato.schema import Windows
from sfumato.session import declaration_of
from sfumato.session.vault import Vault
from sfumato.sql.write import parts, sources
from sfumato.sql.write.constants import constant_node

DAY = datetime.date
NOW = datetime.datetime(2026, 11, 17, tzinfo=datetime.UTC)
MARCH = "day >= DATE '2026-03-01' AND day < DATE '2026-04-01'"
FITTED = "SELECT kind, MONTH(day) AS month, DAY(day) AS day FROM visits"


def rows_of(*rows: tuple[int, DAY | None]) -> list[tuple[int, DAY | None, str]]:
    return [(patient, day, "ab"[patient % 2]) for patient, day in rows]


def random_rows(seed: int = 0, many: int = 400) -> list[tuple[int, DAY | None, str]]:
    rng = random.Random(seed)
    days = [DAY(2026, 1, 1) + datetime.timedelta(days=rng.randrange(-40, 200)) for _ in range(many)]
    return rows_of(*((rng.randrange(60), None if rng.random() < 0.1 else day) for day in days))


def table(rows, *, window="month", version="1", max_rows=5, zone="UTC", **more) -> sf.PrivateTable:
    patients, days, kinds = zip(*rows, strict=True)
    at = [None if day is None else datetime.datetime.combine(day, datetime.time(23, 30)) for day in days]
    source = pa.table(
        {
            "patient": pa.array(patients, pa.int64()),
            "day": pa.array(days, pa.date32()),
            "at": pa.array(at, pa.timestamp("s")),
            "kind": pa.array(kinds),
            "ward": pa.array(kinds),
        }
    )
    schema = {
        "day": sf.Date("2026-01-01", "2026-06-30"),  # which some rows break
        "at": sf.Timestamp("2026-01-01", "2026-06-30"),
        "kind": sf.Enum("a", "b"),
        "ward": sf.Text(),  # whose values are not public
    }
    time = "at" if zone != "UTC" else "day"
    unit = sf.PrivacyUnit("patient", max_rows=max_rows, window=window, time=time, zone=zone, **more)
    return sf.PrivateTable("visits", source=source, unit=unit, schema=schema, version=version)


KINDS = sf.PublicTable(
    "kinds",
    source=pa.table({"kind": ["a", "b"], "long": ["acute", "booked"]}),
    schema={"kind": sf.Text(), "long": sf.Text()},
    key="kind",
)


def opened(rows=None, *, each="month", budget=None, ledger=None, **declared) -> sf.Session:
    made = table(random_rows() if rows is None else rows, **declared)
    return sf.Session(made, KINDS, budget=budget or sf.Budget(1, "1e-6", each=each), ledger=ledger)


@contextmanager
def readings(monkeypatch) -> Iterator[list[tuple[Windows | None, str, list[list[int]]]]]:
    """What is read, exactly: the windows that were paid for, the question, its integers."""
    found, read = [], Vault.read

    def spied(self, questions, right, **more):
        reading = read(self, questions, right, **more)
        columns = [column.tolist() for column in reading.columns]
        found.append((right.receipt.windows, questions[more.get("place", 0)].fingerprint, columns))
        return reading

    with monkeypatch.context() as patch:
        patch.setattr(Vault, "read", spied)
        yield found


# ── in which windows a question is paid


@pytest.mark.parametrize(
    ("where", "paid"),
    [
        (MARCH, "2026-03"),
        ("day BETWEEN DATE '2026-03-01' AND DATE '2026-03-31'", "2026-03"),
        ("day <= DATE '2026-04-01' AND day > DATE '2026-02-28'", "2026-03 to 2026-04"),
        ("DATE_TRUNC('month', day) = DATE '2026-03-01'", "2026-03"),
        ("DATE_TRUNC('quarter', day) = DATE '2026-04-01'", "2026-04 to 2026-06"),
        ("DATE_TRUNC('week', day) < DATE '2026-03-02' AND day >= DATE '2026-02-02'", "2026-02 to 2026-03"),
        ("YEAR(day) = 2026", "2026-01 to 2026-12"),
        ("YEAR(day) = 2026 AND MONTH(day) = 3", "2026-01 to 2026-12"),
        ("NOT (day < DATE '2026-03-01' OR day > DATE '2026-03-31')", "2026-03"),
        ("day IN (DATE '2026-03-01', DATE '2026-05-05')", "2026-03 to 2026-05"),
        ("DATE '2026-03-09' = day OR day = DATE '2026-02-09'", "2026-02 to 2026-03"),
        ("day >= DATE '2026-03-01' AND day < DATE '2026-03-01' + INTERVAL 1 MONTH", "2026-03"),
        (f"{MARCH} AND kind = 'a'", "2026-03"),
        ("day > DATE '2026-03-05' AND day < DATE '2026-03-01'", "2026-03"),
    ],
)
def test_the_dates_of_a_question_say_which_windows_it_is_paid_in(where, paid):
    with opened() as session:
        query = session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {where}")
        assert str(query.windows) == paid
        release = query.release(epsilon=0.5)
        assert str(release.receipt.windows) == paid
        for month in range(1, 13):
            window = Windows.named("month", f"2026-{month:02d}")
            inside = query.windows.first <= window.first <= query.windows.last
            assert session.balance(window=window).spent == (Fraction(1, 2) if inside else 0)
        assert session.ledger.verify().ok


@pytest.mark.parametrize(
    "where",
    [
        "TRUE",
        "day >= DATE '2026-03-01'",
        "day < DATE '2026-03-01'",
        "day IS NULL",
        f"({MARCH}) OR kind = 'a'",
        f"({MARCH}) OR day IS NULL",
        f"NOT ({MARCH})",
        "day <> DATE '2026-03-01'",
        "at >= TIMESTAMP '2026-03-01 00:00:00' AND at < TIMESTAMP '2026-04-01 00:00:00'",  # another column
        "MONTH(day) = 3",
    ],
)
def test_a_question_that_names_no_window_is_refused_with_the_fix(where, monkeypatch):
    with opened() as session, readings(monkeypatch) as read:
        query = session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {where}")
        for ask in (query.quote, query.release):
            with pytest.raises(QueryRefused, match=r"WHERE day >= DATE '2026-03-01' AND day < DATE"):
                ask(epsilon=0.5)
        assert not session.releases()
        assert not read


def test_the_declared_bounds_of_a_column_name_no_window():
    with opened() as session, pytest.raises(QueryRefused, match="does not say of which months"):
        session.sql("SELECT day, COUNT(*) AS n FROM visits GROUP BY day").quote(epsilon=0.5)


@pytest.mark.parametrize("each", ["day", "week", "month", "quarter", "year", 10])
def test_no_row_that_was_asked_for_is_lost(each, monkeypatch):
    """The same integers as where the budget is for all time: the session's condition takes nothing away."""
    rng = random.Random(str(each))
    first = DAY(2025, 12, 1)
    with opened(window=each, each=each) as session, opened(window=each, budget=sf.Budget(99)) as other:
        for number in range(8):
            begin, end = sorted(first + datetime.timedelta(days=rng.randrange(220)) for _ in range(2))
            where = f"v.day >= DATE '{begin}' AND v.day <= DATE '{end}'"
            text = (
                f"SELECT k.long, COUNT(*) AS n, COUNT(DISTINCT patient) AS m FROM visits v "
                f"JOIN kinds k ON v.kind = k.kind WHERE {where} GROUP BY k.long"
                if number % 2
                else f"SELECT COUNT(*) AS n FROM visits v WHERE {where}"
            )
            with readings(monkeypatch) as read:
                session.sql(text).release(epsilon=0.1)
            with readings(monkeypatch) as plain:
                other.sql(text).release(epsilon=0.1)
            assert [each[2] for each in read] == [each[2] for each in plain]


def test_windows_of_a_zone_are_paid_by_its_clocks(monkeypatch):
    """23:30 in UTC on the last of March is April in Berlin."""
    rows = rows_of((1, DAY(2026, 3, 31)), (2, DAY(2026, 3, 30)), (3, DAY(2026, 2, 28)), (4, DAY(2026, 2, 27)))
    april = "at >= TIMESTAMP '2026-03-31 22:00:00' AND at < TIMESTAMP '2026-04-30 22:00:00'"
    with opened(rows, zone="Europe/Berlin") as session, readings(monkeypatch) as read:
        query = session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {april}")
        assert str(query.windows) == "2026-04"
        query.release(epsilon=0.5)
        day = "CAST(at AS DATE) = DATE '2026-03-31'"
        assert (
            str(session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {day}").windows) == "2026-03 to 2026-04"
        )
        bought(session, Windows.named("month", "2026-03"))
    assert [columns[0][0] // 2**30 or columns[0][0] for _, _, columns in read] == [1, 2]


# ── which rows are read


def question_of(session: sf.Session, text: str = "SELECT COUNT(*) AS n FROM visits") -> Measured:
    return session.sql(text).recipe().measured


def bought(session: sf.Session, windows: Windows, text: str = "SELECT COUNT(*) AS n FROM visits") -> int:
    """A spender whose question says nothing of time, and that pays in these windows."""
    question = question_of(session, text)
    wanted = Purchase(
        dataset="visits",
        loss=PureLoss("0.1"),
        fingerprint=f"{windows} {question.fingerprint}",
        memo=Memo("test", "a count"),
        answer=lambda right: session.vault.read((question,), right).columns[0].tolist(),
        write=lambda answer: str(answer).encode(),
        read_back=lambda data: data,
        reads=(question.fingerprint,),
        windows=windows,
    )
    return sum(session.buy(wanted).answer)


@pytest.mark.parametrize("each", ["day", "week", "month", "quarter", "year", 10])
@pytest.mark.parametrize("max_rows", [1, 400])
def test_a_statement_reads_the_windows_that_its_receipt_names_and_no_other_row(each, max_rows):
    """Whatever the question says; rows without a time are in none."""
    rows = random_rows(3)
    joined = "SELECT COUNT(*) AS n FROM visits v JOIN kinds k ON v.kind = k.kind"
    with opened(rows, window=each, each=each, max_rows=max_rows) as session:
        for first, last in ((0, 0), (2, 2), (3, 9)):
            begin = Windows.of_days(each, DAY(2026, 1, 20), DAY(2026, 1, 20)).first
            windows = Windows(each, begin + first, begin + last)
            days = windows.days()
            inside = [(patient, day) for patient, day, _ in rows if day and days[0] <= day <= days[1]]
            units = {(patient, Windows.of_days(each, day, day)) for patient, day in inside}
            expected = len(units) if max_rows == 1 else len(inside)
            for text in ("SELECT COUNT(*) AS n FROM visits", joined):
                read = bought(session, windows, text)
                assert abs(read / 2**30 - expected) < 1e-3  # weights are rounded down


def test_a_table_of_other_windows_is_not_read():
    with opened() as session:
        with pytest.raises(LedgerMismatch, match="does not say of which months"):
            bought(session, Windows("week", 2900, 2900))
        assert not session.releases()


# ── neighbouring histories


def history(seed: int, person: int, month: int, *, without: bool) -> list[list[tuple[int, DAY | None, str]]]:
    """A table at three times: rows come late, are moved to another month, are erased; without some rows.

    The neighbour lacks what one person ever has in one month.
    """
    rng, states, rows = random.Random(seed), [], list(random_rows(seed, 120))
    for _ in range(3):
        rows = [row for row in rows if rng.random() > 0.1]  # erased
        rows = [  # corrected: moved to another month
            (patient, day and day + datetime.timedelta(days=rng.choice((-35, 35))), kind)
            if rng.random() < 0.2
            else (patient, day, kind)
            for patient, day, kind in rows
        ]
        rows += random_rows(rng.randrange(10**6), 40)  # late
        states.append(
            [
                (patient, day, kind)
                for patient, day, kind in rows
                if not (without and day and patient == person and (day.year, day.month) == (2026, month))
            ]
        )
    return states


def asked(states, ledger, monkeypatch) -> list:
    """The same questions about each state of a table, and what was read for them."""
    months = [(1, 1), (3, 3), (2, 4), (5, 6), (3, 5)]
    with readings(monkeypatch) as read:
        for version, rows in enumerate(states):
            with opened(rows, version=str(version), ledger=ledger) as session:
                for first, last in months:
                    begin, end = DAY(2026, first, 1), DAY(2026, last + 1, 1)
                    where = f"day >= DATE '{begin}' AND day < DATE '{end}'"
                    grouped = f"SELECT kind, COUNT(*) AS n FROM visits WHERE {where} GROUP BY kind"
                    session.sql(grouped).release(epsilon="0.01")
                    bought(session, Windows.of_days("month", begin, DAY(2026, last, 1)))
                assert session.ledger.verify().ok
    return read


@pytest.mark.parametrize("seed", range(3))
def test_what_a_person_does_in_a_month_is_seen_in_that_month_alone(seed, tmp_path, monkeypatch):
    """Late, corrected and erased rows: by the time that a row has when it is read, not by when it came."""
    states = history(seed, -1, 3, without=False)
    march = [patient for rows in states for patient, day, _ in rows if day and day.month == 3]
    person = max(march, key=march.count)
    at = Windows.named("month", "2026-03").first
    paths = tmp_path / "one.ledger", tmp_path / "two.ledger"
    both = [
        asked(history(seed, person, 3, without=without), path, monkeypatch)
        for without, path in zip((False, True), paths, strict=True)
    ]
    assert len(both[0]) == len(both[1]) == 30
    seen = 0
    for (windows, one, here), (same, other, there) in zip(*both, strict=True):
        assert (windows, one) == (same, other)
        if windows.first <= at <= windows.last:
            seen += here != there
        else:
            assert here == there
    assert seen  # the person is in the data


# ── planted: each of these must be seen


def without_condition(source, tables, dialect):
    del source, tables, dialect


def test_a_statement_without_the_condition_is_seen(monkeypatch):
    monkeypatch.setattr(parts, "in_paid_windows", without_condition)
    monkeypatch.setattr(sources, "in_paid_windows", without_condition)
    with pytest.raises(AssertionError):
        test_a_statement_reads_the_windows_that_its_receipt_names_and_no_other_row("month", 400)


def test_rows_without_a_time_that_are_counted_are_seen(monkeypatch):
    window = sources._window

    def never_null(private, tables, dialect):
        first = constant_node(DAY(2026, 1, 1))
        return exp.Coalesce(this=window(private, tables, dialect), expressions=[first])

    monkeypatch.setattr(sources, "_window", never_null)
    with pytest.raises(AssertionError):
        test_a_statement_reads_the_windows_that_its_receipt_names_and_no_other_row("month", 400)


def test_windows_by_the_time_of_asking_are_seen(monkeypatch):
    def now(self, windows):
        return windows and Windows.of_days(windows.each, NOW.date(), NOW.date())

    monkeypatch.setattr(Account, "charged_in", now)
    with pytest.raises(AssertionError):
        test_the_dates_of_a_question_say_which_windows_it_is_paid_in(MARCH, "2026-03")


def test_a_debit_that_is_charged_in_its_first_window_alone_is_seen(monkeypatch):
    add = Spans.add

    def once(self, windows, price, **more):
        add(self, windows and Windows(windows.each, windows.first, windows.first), price, **more)

    monkeypatch.setattr(Spans, "add", once)
    with pytest.raises(AssertionError):
        test_the_dates_of_a_question_say_which_windows_it_is_paid_in("YEAR(day) = 2026", "2026-01 to 2026-12")


# ── who is refused


def test_spenders_that_say_no_windows_are_refused_before_they_pay(monkeypatch):
    with opened() as session, readings(monkeypatch) as read:
        refused = (LedgerMismatch, QueryRefused)
        for spend in (
            lambda: session.most_common("kind", 0.1),
            lambda: session.profile("visits", 0.1),
            lambda: session.unreadable("visits", "at", 0.1),
            lambda: session.first_above(["SELECT COUNT(*) AS n FROM visits"], 10, 0.1),
            lambda: session.stream(
                "SELECT at, COUNT(*) AS n FROM visits GROUP BY at", start="2026-01-01", horizon=3, epsilon=0.1
            ),
            lambda: sf.learn.LogisticRegression(epsilon=0.1).fit(
                session, "SELECT kind, day FROM visits", target="kind"
            ),
            lambda: sf.synth.fit(session, "visits", epsilon=0.1),
            lambda: session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {MARCH}").release(0.1, profile=True),
        ):
            with pytest.raises(refused):
                spend()
        assert not session.releases()
        assert not read


def test_bounds_and_first_above_pay_in_the_windows_of_their_questions():
    with opened() as session:
        found = session.first_above(
            [f"SELECT COUNT(*) AS n FROM visits WHERE day = DATE '2026-0{month}-01'" for month in (2, 4)],
            9,
            0.1,
        )
        assert str(found.receipt.windows) == "2026-02 to 2026-04"


def grown(**more) -> sf.Session:
    """Numbers and wards that are few in March, and a thousand times as large and eight in April."""
    march = [(patient, DAY(2026, 3, 5), 1.0, "w0") for patient in range(200)]
    april = [(patient, DAY(2026, 4, 5), 1000.0, f"w{ward}") for patient in range(200) for ward in range(8)]
    patients, days, costs, wards = zip(*march, *april, strict=True)
    source = pa.table(
        {"patient": patients, "day": pa.array(days, pa.date32()), "cost": costs, "ward": pa.array(wards)}
    )
    made = sf.PrivateTable(
        "visits",
        source=source,
        unit=sf.PrivacyUnit("patient", window="month", time="day", max_groups=1, max_rows=8),
        schema={"day": sf.Date("2026-01-01", "2026-12-31"), "cost": sf.Float(), "ward": sf.Text()},
    )
    return sf.Session(made, budget=sf.Budget(10**6, "1e-3", each="month"), **more)


def in_months(first: int, last: int) -> str:
    return f"day >= DATE '2026-0{first}-01' AND day < DATE '2026-0{last + 1}-01'"


def bounds_paid(session: sf.Session) -> list[str]:
    return [str(paid.windows) for paid in session.releases() if paid.purpose.spender == "bounds"]


def test_bounds_of_one_window_are_no_bounds_of_another():
    text = "SELECT SUM(cost) AS n FROM visits WHERE {}"
    asked = {(3, 3): 200, (4, 4): 1_600_000, (3, 4): 1_600_200}
    with grown() as session:
        for months, total in asked.items():
            query = session.sql(text.format(in_months(*months)))
            assert query.release(epsilon=1000, bounds="auto").table["n"][0].as_py() == pytest.approx(
                total, rel=0.1
            )
        assert bounds_paid(session) == ["2026-03", "2026-04", "2026-03 to 2026-04"]
        for months in asked:
            assert session.sql(text.format(in_months(*months))).release(epsilon=1000, bounds="auto").free
        again = session.sql(text.replace("SUM", "AVG").format(in_months(4, 4)))
        assert again.release(epsilon=1000, bounds="auto").table["n"][0].as_py() == pytest.approx(
            1000, rel=0.1
        )
        assert len(bounds_paid(session)) == 3  # those of its window serve another question about it


def test_the_limit_of_groups_of_one_window_is_none_of_another():
    text = "SELECT ward, COUNT(*) AS n FROM visits WHERE {} GROUP BY ward"
    with grown() as session:
        for month, groups in ((3, 1), (4, 8)):
            query = session.sql(text.format(in_months(month, month)))
            release = query.release(epsilon=1000, delta="1e-5", bounds="auto")
            assert release.quote.selection.groups == groups
        assert bounds_paid(session) == ["2026-03", "2026-04"]


def test_an_answer_on_record_serves_in_the_windows_that_it_was_paid_in():
    """Whatever spends and whatever its fingerprint names: by the receipt, for the payer and for others."""
    with grown() as session:
        Steward(session.ledger).limit(
            "visits", "ana", sf.Budget(10**6, "1e-3", each="month"), reason="a course"
        )
        for analyst in (None, "ana"):
            for month in ("2026-03", "2026-04"):
                wanted = spending(Windows.named("month", month), month)
                assert known(session.ledger, wanted, analyst) is None
                assert buy(session.ledger, wanted, analyst).answer == month
                assert known(session.ledger, wanted, analyst).answer == month
            may = spending(Windows.named("month", "2026-05"), "2026-05")
            assert on_record(session.ledger, may, analyst) is None


def spending(windows: Windows, answer: str) -> Purchase[str]:
    return Purchase(
        dataset="visits",
        loss=PureLoss(1),
        fingerprint="one question",
        memo=Memo("test", "one question", Fraction(1)),
        answer=lambda _: answer,
        write=str.encode,
        read_back=bytes.decode,
        windows=windows,
    )


def test_several_windows_are_admitted_together_or_not_at_all():
    with opened() as session:
        session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {MARCH}").release(epsilon=0.8)
        year = session.sql("SELECT COUNT(*) AS n FROM visits WHERE YEAR(day) = 2026")
        assert "in 2026-03" in str(year.quote(epsilon=0.5))
        with pytest.raises(BudgetExceeded, match=r"in 2026-03: asked epsilon 0.5, spent 0.8 of 1, left 0.2"):
            year.release(epsilon=0.5)
        assert session.balance(window="2026-05").spent == 0
        year.release(epsilon=0.2)
        assert session.balance(window="2026-05").spent == Fraction(1, 5)
        assert session.balance(window="2027-05").spent == 0


def test_delta_is_spared_by_what_is_left_in_the_windows_that_are_read():
    with opened(budget=sf.Budget(10, "1e-6", each="month")) as session:
        text = f"SELECT kind, COUNT(*) AS n FROM visits WHERE {MARCH} GROUP BY kind"
        session.sql(text).release(epsilon=1, delta="9e-7", mechanism="gaussian")
        march = session.sql(text).quote(epsilon=2, mechanism="gaussian")
        april = session.sql(text.replace("-04-", "-05-").replace("-03-", "-04-"))
        assert march.delta < april.quote(epsilon=2, mechanism="gaussian").delta == Fraction(1, 10**8)


def test_the_quote_says_where_it_is_paid_and_what_a_life_may_lose():
    with opened() as session:
        told = " ".join(
            str(session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {MARCH}").quote(0.5)).split()
        )
        assert "Paid in 2026-03. The budget is for each month, and none is for life" in told
        assert "for 12 times as long may lose 12 times its epsilon 1." in told


# ── series


def test_a_series_is_paid_in_each_window_that_its_horizon_meets(monkeypatch):
    with opened() as session, readings(monkeypatch) as read:
        series = session.stream(
            "SELECT day, COUNT(*) AS n FROM visits GROUP BY day",
            start="2026-02-20",
            horizon=50,
            epsilon=0.5,
            delta="1e-7",
        )
        assert str(series.windows) == "2026-02 to 2026-04"
        assert not session.releases()
        series.advance(now=NOW)
        assert str(series.receipt.windows) == "2026-02 to 2026-04"
        spent = [session.balance(window=f"2026-0{month}").spent for month in range(1, 6)]
        assert spent == [0, Fraction(1, 2), Fraction(1, 2), Fraction(1, 2), 0]
        assert {windows for windows, _, _ in read} == {series.windows}
        again = session.stream(
            "SELECT day, COUNT(*) AS n FROM visits GROUP BY day",
            start="2026-02-20",
            horizon=50,
            epsilon=0.5,
            delta="1e-7",
        )
        assert len(again) == 50
        with pytest.raises(BudgetExceeded, match="in 2026-04"):
            session.stream(
                "SELECT day, COUNT(*) AS n FROM visits GROUP BY day",
                start="2026-04-01",
                horizon=60,
                epsilon=0.6,
                delta="1e-7",
            ).advance(now=NOW)
        assert session.ledger.verify().ok


def test_a_series_that_finds_its_groups_is_paid_in_the_same_way(monkeypatch):
    with opened(budget=sf.Budget(9, "1e-3", each="month")) as session, readings(monkeypatch) as read:
        series = session.stream(
            "SELECT DATE_TRUNC('week', day) AS w, ward, COUNT(*) AS n FROM visits "
            "GROUP BY DATE_TRUNC('week', day), ward",
            start="2026-02-02",
            horizon=8,
            epsilon=8,
            delta="5e-4",
        )
        series.advance(now=NOW)
        assert str(series.receipt.windows) == "2026-02 to 2026-03"
        assert {windows for windows, _, _ in read} == {series.windows}
        assert session.balance(window="2026-04").spent == 0
        assert session.ledger.verify().ok


def test_the_column_that_decides_windows_stays_once_something_is_spent(tmp_path):
    """A row in March by one column and in April by the other would be in two accounts."""
    path, rows = tmp_path / "one.ledger", random_rows()
    with opened(rows, ledger=path) as session:
        declared = declaration_of([session.tables["visits"]])
        session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {MARCH}").release(0.1)
        other = json.loads(json.dumps(declared))
        other["schema"]["visits"]["time"] = "at"
        kind = json.loads(json.dumps(declared))
        kind["schema"]["visits"]["columns"]["day"]["type"] = "timestamp"
        wider = json.loads(json.dumps(declared))
        wider["schema"]["visits"]["columns"]["day"]["end"] = "2027-12-31"
        steward = Steward(session.ledger)
        for wrong in (other, kind):
            with pytest.raises(LedgerMismatch, match=r"Windows of visits were decided by day date when"):
                steward.redeclare("visits", wrong, reason="x")
        steward.redeclare("visits", wider, reason="another year")
        assert session.ledger.verify().ok
        with session.ledger._journal.writing() as draft:  # by somebody who has the key
            draft.add("redeclare", "visits", declaration=other, reason="x")
        assert "changes what the first debit had fixed" in str(session.ledger.verify())


def test_fits_and_synthetic_tables_pay_in_the_windows_of_their_rows():
    rows = f"{FITTED} WHERE {MARCH}"
    with opened(budget=sf.Budget(9, "1e-3", each="month")) as session:
        model = sf.learn.LogisticRegression(epsilon=1, delta="1e-6")
        model.fit(session, rows, target="kind")
        sf.synth.fit(session, rows, epsilon=1, delta="1e-6")
        assert [str(receipt.windows) for receipt in session.releases()] == ["2026-03"] * 2
        assert session.balance(window="2026-04").spent == 0 < session.balance(window="2026-03").spent
        for refused in (
            lambda: model.fit(session, FITTED, target="kind"),
            lambda: sf.synth.fit(session, "visits", epsilon=1, delta="1e-6"),
        ):
            with pytest.raises(QueryRefused, match="does not say of which months"):
                refused()
        assert len(session.releases()) == 2
        assert session.ledger.verify().ok


def test_units_that_are_no_such_windows_are_refused():
    for declared, told in (
        ({"window": "week"}, "windows of one week"),
        ({"adjacency": "exchange"}, "added or removed"),
    ):
        with pytest.raises(LedgerMismatch, match=told):
            opened(**declared)
