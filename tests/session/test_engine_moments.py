"""Second moments that the engine adds up: those of the rows to the last bit; nobody weighs more than few."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from datafusion_engine import DataFusion
from sfumato.engines import DuckDB
from sfumato.errors import AccessDenied, InvalidParameter
from sfumato.ledger import Ledger
from sfumato.loss import PureLoss
from sfumato.session.rows_wanted import Coded, Plain, Scaled, Term, rows_wanted
from sfumato.sql.write import moments as written

UNIT = 2**14
SCHEMA = {"x": sf.Float(-10, 10), "k": sf.Int(0, 50), "word": sf.Enum("a", "b", "c")}
WAYS = {"x": Scaled(-10, 10, 2 * UNIT), "k": Scaled(0, 50, UNIT), "word": Coded(["a", "b", "c"])}
TERMS = (
    Term(0, less=UNIT), Term(1), Term(2, 0, UNIT), Term(2, 1, UNIT), Term(2, 2, UNIT), Term(None, size=UNIT),
)  # fmt: skip


def rows_of(draws, size):
    odd = [None, math.nan, math.inf, -math.inf, -10.0, 10.0, 1e300, 0.1]
    return [
        (
            draws.randrange(6),
            draws.choice(odd) if draws.random() < 0.3 else draws.uniform(-12, 12),
            draws.choice([None, 0, 50, 51, -1, 7]),
            draws.choice(["a", "b", "c", "d", None]),
        )
        for _ in range(size)
    ]


def session_of(rows, unit, ledger=None, engine=DuckDB):
    kinds = {"id": pa.int64(), "x": pa.float64(), "k": pa.int64(), "word": pa.string()}
    held = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds.values())]
    table = sf.PrivateTable("t", source=pa.table(held, list(kinds)), unit=unit, schema=SCHEMA)
    return sf.Session(table, budget=sf.Budget(1000), ledger=ledger, engine=engine())


def read(session, what):
    what.check()
    right = session.ledger.debit("t", PureLoss(1), fingerprint="fit", reads=(what.fingerprint,))
    return what.read(right)


def coordinates(found):
    """The coordinates of rows, as Python's integers."""
    x, k, word = (column.astype(object) for column in found.columns)
    codes = [np.where((word == code) & ~found.missing[2], UNIT, 0).astype(object) for code in range(3)]
    return np.array([x - UNIT, k, *codes, np.full(found.size, UNIT, object)], object)


def triangle(rows):
    width = len(rows)
    return [int(rows[i] @ rows[j]) for i in range(width) for j in range(i, width)]


def check_sums(engine, seed, size, wheres=("", " WHERE k < 40")):
    rows = rows_of(random.Random(seed), size)
    with session_of(rows, sf.PrivacyUnit.row(), engine=engine) as session:
        for where in wheres:
            taken = rows_wanted(session, f"SELECT x, k, word FROM t{where}").taking(WAYS, complete=("x", "k"))
            sums = taken.moments(TERMS)
            assert (sums.weight, sums.most_rows) == (1, 1)
            assert read(session, sums).tolist() == triangle(coordinates(read(session, taken)))


@pytest.mark.parametrize("engine", [DuckDB, DataFusion])
def test_the_engine_adds_up_what_the_rows_are(engine):
    for seed, size in enumerate((0, 1, 5, 200)):
        check_sums(engine, seed, size)


def test_another_rounding_does_not_pass(monkeypatch):
    real = written._coordinate

    def off(term):
        made = real(term)
        return written.exp.Add(this=made, expression=written.bigint(1)) if term.place == 1 else made

    monkeypatch.setattr(written, "_coordinate", off)
    with pytest.raises(AssertionError):
        check_sums(DuckDB, 3, 50, wheres=("",))


def moved(rows, ledger, engine, max_rows):
    unit = sf.PrivacyUnit("id", max_rows=max_rows)
    with session_of(rows, unit, ledger, engine) as session:
        sums = rows_wanted(session, "t").taking(WAYS, complete=("x", "k")).moments(TERMS)
        assert (sums.weight, sums.most_rows) == (2**30, max_rows)
        return read(session, sums).astype(object)


def check_units(engine, max_rows):
    """With or without any unit: the norm of what they move is at most that of so many rows of full weight."""
    rows = rows_of(random.Random(max_rows), 40)
    most = 4 * UNIT**2 * 2**30 * max_rows  # x, k, a category and the constant
    reached = 0.0
    with Ledger.open(None) as ledger:
        whole = moved(rows, ledger, engine, max_rows)
        for who in range(6):
            part = whole - moved([row for row in rows if row[0] != who], ledger, engine, max_rows)
            assert int(part @ part) <= most**2
            reached = max(reached, math.sqrt(int(part @ part)) / most)
    return reached


@pytest.mark.parametrize("engine", [DuckDB, DataFusion])
def test_a_unit_weighs_no_more_than_few_rows(engine):
    assert check_units(engine, 2) > 0.2


def test_rows_of_full_weight_do_not_pass(monkeypatch):
    monkeypatch.setattr(written, "share", lambda most, size, dialect: written.bigint(2**30))
    with pytest.raises(AssertionError):
        check_units(DuckDB, 1)


def test_wrong_coordinates_and_rights_are_refused():
    with session_of(rows_of(random.Random(1), 5), sf.PrivacyUnit.row()) as session:
        wanted = rows_wanted(session, "t")
        taken = wanted.taking(WAYS)
        for wrong in (Term(0), Term(2, 0, 2 * UNIT), Term(None, size=2 * UNIT), Term(1, less=-1)):
            with pytest.raises(InvalidParameter, match="too large"):
                taken.moments([wrong]).check()
        with pytest.raises(InvalidParameter, match="too large"):
            wanted.taking({"x": Plain()}).moments([Term(0)]).check()
        one, other = taken.moments(TERMS), taken.moments(TERMS[1:])
        for reads in (taken.fingerprint, other.fingerprint):
            right = session.ledger.debit("t", PureLoss(1), fingerprint="x", reads=(reads,))
            with pytest.raises(AccessDenied):
                one.read(right)
        right = session.ledger.debit("t", PureLoss(1), fingerprint="x", reads=(one.fingerprint,))
        one.read(right)
        with pytest.raises(AccessDenied):
            one.read(right)
        with pytest.raises(AccessDenied):
            one.read(right.receipt)
