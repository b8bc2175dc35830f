"""Single rows for a fit: few of each unit, clamped, and nobody else's rows move with them."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest
from sqlglot import exp

import sfumato as sf
from sfumato.accounting import BasicFilter
from sfumato.engines.dialect import DUCKDB
from sfumato.engines.prepare import prepare
from sfumato.errors import AccessDenied, BudgetExceeded, InvalidParameter
from sfumato.ledger import Ledger, Memo
from sfumato.purchase import Purchase
from sfumato.session.vault import rows_fingerprint
from sfumato.sql.write import rows as written

TEXT = "SELECT SUM(age) AS a, COUNT(pay) AS n, SUM(pay) AS p FROM people WHERE age > 20"
GATE = BasicFilter(1)


def people(rows, unit, source=None):
    kinds = {"id": pa.int64(), "age": pa.int64(), "pay": pa.float64()}
    columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds.values())]
    return sf.PrivateTable(
        "people",
        source=pa.table(columns, list(kinds)) if source is None else source,
        unit=unit,
        schema={"age": sf.Int(18, 99), "pay": sf.Float(0, 100)},
    )


def crowd(draws, many=6):
    odd = [None, float("nan"), float("inf"), -5.0, 1e300, 50.0, 50.0, 99.5]
    return [
        (who, draws.randint(10, 120), draws.choice(odd))
        for who in range(many)
        for _ in range(draws.randint(1, 7))
    ]


def values_of(column, missing):
    """The integers of a column as a list, None where there is none."""
    return [None if gone else value for value, gone in zip(column.tolist(), missing.tolist(), strict=True)]


def read(session):
    measured = session.sql(TEXT).recipe().measured
    right = session.ledger.debit("people", GATE.loss, fingerprint="fit", reads=(rows_fingerprint(measured),))
    return measured, session.vault.rows(measured, right)


def read_of(rows, unit, ledger, source=None):
    """The lines of each person, by what is in them: numbers of units differ between neighbours."""
    with sf.Session(people(rows, unit, source), budget=sf.Budget(1000), ledger=ledger) as session:
        measured, found = read(session)
    whose = {}
    numbers = range(found.size) if found.units is None else found.units.tolist()
    for number, *values in zip(numbers, *map(values_of, found.columns, found.missing), strict=True):
        whose.setdefault(number, []).append(tuple(values))
    return measured, [Counter(each) for each in whose.values()]


def check(draws, max_rows):
    unit = sf.PrivacyUnit("id", max_groups=1, max_rows=max_rows)
    rows = crowd(draws)
    with Ledger.open(None) as ledger:  # one ledger: neighbours share the salt
        measured, all_of_them = read_of(rows, unit, ledger)
        for each in all_of_them:
            assert sum(each.values()) <= max_rows
            for values in each:
                for value, measurement in zip(values, measured.measurements, strict=True):
                    assert value is None or measurement.lower <= value <= measurement.upper
        out = draws.randrange(6)
        _, others = read_of([row for row in rows if row[0] != out], unit, ledger)
    left = Counter(frozenset(each.items()) for each in all_of_them)
    right = Counter(frozenset(each.items()) for each in others)
    assert right <= left
    assert sum((left - right).values()) <= 1
    return max(sum(each.values()) for each in all_of_them)


def test_neighbours_differ_in_the_rows_of_one_unit():
    draws = random.Random("rows")
    assert max(check(draws, max_rows) for max_rows in (1, 2, 3, 3, 4, 4)) == 4


def test_rows_that_are_not_limited_do_not_pass(monkeypatch):
    number = written.number
    monkeypatch.setattr(written, "number", lambda value: number(value if value > 4 else 100))
    with pytest.raises(AssertionError):
        check(random.Random("rows"), 2)


class Careless:
    """The parts of a statement, with places among everybody's rows instead of one unit's."""

    def __getattr__(self, name):
        real = getattr(exp, name)
        if name != "Window":
            return real
        return lambda **parts: real(**{each: parts[each] for each in parts if each != "partition_by"})


def test_places_among_everybodys_rows_do_not_pass(monkeypatch):
    monkeypatch.setattr(written, "exp", Careless())
    with pytest.raises(AssertionError):
        test_neighbours_differ_in_the_rows_of_one_unit()


def test_where_each_row_is_a_unit_all_of_them_are_read():
    rows = [(1, 30, 5.0), (1, 30, 5.0), (2, 15, 5.0), (3, 200, None)]
    with Ledger.open(None) as ledger:
        measured, found = read_of(rows, sf.PrivacyUnit.row(), ledger)
    assert len(found) == 3  # WHERE age > 20
    places = {each.kind: place for place, each in enumerate(measured.measurements)}
    assert sorted(next(iter(each))[places["present"]] for each in found) == [0, 1, 1]


def test_a_prepared_table_gives_its_ranked_rows(tmp_path):
    rows, unit = crowd(random.Random(4)), sf.PrivacyUnit("id", max_groups=1, max_rows=2)
    made = prepare(people(rows, unit), tmp_path / "people.duckdb")
    with Ledger.open(None) as ledger:
        _, found = read_of(rows, unit, ledger, str(made.path))
    assert all(sum(each.values()) <= 2 for each in found)
    assert found


def test_only_a_right_to_rows_opens_them_and_once():
    unit = sf.PrivacyUnit("id")
    with sf.Session(people(crowd(random.Random(1)), unit), budget=sf.Budget(100)) as session:
        measured = session.sql(TEXT).recipe().measured
        sums = session.ledger.debit("people", GATE.loss, fingerprint=measured.fingerprint)
        with pytest.raises(AccessDenied, match="not paid for this"):
            session.vault.rows(measured, sums)
        with pytest.raises(AccessDenied, match="opens nothing"):
            session.vault.rows(measured, sums.receipt)
        right = session.ledger.debit(
            "people", GATE.loss, fingerprint="x", reads=(rows_fingerprint(measured),)
        )
        with pytest.raises(AccessDenied):
            session.vault.read((measured,), right)
        session.vault.rows(measured, right)
        with pytest.raises(AccessDenied, match="used before"):
            session.vault.rows(measured, right)


def test_groups_and_units_are_no_rows():
    with sf.Session(people([(1, 30, 1.0)], sf.PrivacyUnit("id")), budget=sf.Budget(1)) as session:
        for text in ("SELECT COUNT(*) AS n FROM people", "SELECT COUNT(DISTINCT id) AS n FROM people"):
            with pytest.raises(InvalidParameter, match="sums and counts"):
                written.lower_rows(session.sql(text).recipe().measured, session.tables, DUCKDB)


def test_a_fit_of_many_steps_over_rows_is_one_debit():
    """A mean by noisy gradients: rows are read once, each step is paid, one more is refused."""
    rows = [(who, 40, 60.0) for who in range(200)]
    with sf.Session(people(rows, sf.PrivacyUnit("id")), budget=sf.Budget(2000)) as session:
        measured = session.sql("SELECT SUM(pay) AS p FROM people").recipe().measured
        (bound,) = {each.upper for each in measured.measurements if each.kind == "sum"}
        gate, refused = BasicFilter(1000), []

        def answer(right):
            steps = right.steps(gate)
            found = session.vault.rows(measured, right).columns[0].tolist()
            guess = 0.0
            step = sf.Laplace(epsilon=100, sensitivity=bound)
            for _ in range(10):
                steps.take(step.loss)
                slope = sum(max(-bound, min(bound, value - int(guess))) for value in found)
                guess += float(step.release(float(slope))) / 400
            try:
                steps.take(step.loss)
            except BudgetExceeded:
                refused.append(1)
            return guess / bound * 100

        wanted = Purchase(
            dataset="people",
            loss=gate.loss,
            fingerprint="mean by gradients",
            memo=Memo("test", "mean by gradients"),
            answer=answer,
            write=lambda mean: repr(mean).encode(),
            read_back=float,
            reads=(rows_fingerprint(measured),),
        )
        bought = session.buy(wanted)
        assert bought.answer == pytest.approx(60, abs=1)
        assert refused == [1]
        assert session.buy(wanted).free
        assert [each.kind for each in session.ledger.entries("people")].count("debit") == 1
