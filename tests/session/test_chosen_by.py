"""Whose rows and groups count is decided by the digest that a dataset has on record, and by no other."""

from __future__ import annotations

import dataclasses
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from datafusion_engine import DataFusion
from sfumato.engines import DuckDB
from sfumato.engines.dialect import DUCKDB, EARLIER, PORTABLE, Dialect
from sfumato.errors import EngineFailed, QueryRefused
from sfumato.ledger import Ledger
from sfumato.loss import PureLoss
from sfumato.plan.prices.recipe import measured_of
from sfumato.plan.prices.terms import Terms
from sfumato.session.vault import Vault, rows_fingerprint
from sfumato.testing.queries import exact_units

DATA = Path(__file__).parent.parent / "data" / "ledger-v2"
CHOSEN = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
CHOSEN_VALUES = "SELECT COUNT(DISTINCT city) AS n FROM visits"


class Later(DuckDB):
    """A version of DuckDB whose hash is another one, so that it chooses by the portable digest."""

    @property
    def dialect(self) -> Dialect:
        return dataclasses.replace(DUCKDB, digest=PORTABLE)


def visits() -> sf.PrivateTable:
    draw = random.Random(4)
    people = [i % 40 for i in range(400)]
    rows = pa.table({"person": people, "city": [draw.choice("abcdefgh") for _ in people]})
    unit = sf.PrivacyUnit("person", max_groups=2, max_rows=2)
    return sf.PrivateTable("visits", source=rows, unit=unit, schema={"city": sf.Enum(*"abcdefgh")})


def session(ledger: Ledger, engine) -> sf.Session:
    return sf.Session(visits(), budget=sf.Budget(100), ledger=ledger, engine=engine)


def asked(one: sf.Session, text: str = CHOSEN):
    """What is measured before noise."""
    terms = Terms.of(bounding="choose" if text == CHOSEN else None)
    return exact_units(one.vault, one.sql(text)._planned(terms).recipe.questions[0])


@pytest.mark.parametrize(
    ("first", "others"), [(DuckDB, ()), (Later, (DuckDB, DataFusion)), (DataFusion, (DuckDB, Later))]
)
def test_the_digest_is_on_record_and_every_engine_that_has_it_goes_on(first, others):
    with Ledger.open(None) as ledger:
        with session(ledger, first()) as one:
            kept, values = asked(one), asked(one, CHOSEN_VALUES)
            name = one._engine.dialect.digest.name
        ledger.debit("visits", PureLoss(1), fingerprint="q")
        (dataset,) = ledger.datasets()
        assert dataset.chosen_by == name
        (written,) = [each.memo["chosen_by"] for each in ledger.entries() if each.kind == "register"]
        assert written == name
        for engine in others:
            with session(ledger, engine()) as one:
                assert (asked(one), asked(one, CHOSEN_VALUES)) == (kept, values)
        assert ledger.datasets() == [dataset]
        assert ledger.verify().ok


def test_until_the_first_debit_the_last_engine_decides():
    with Ledger.open(None) as ledger:
        with session(ledger, DuckDB()) as one:
            one.sql(CHOSEN).quote(epsilon=1)
        with session(ledger, Later()) as one:
            one.sql(CHOSEN).release(epsilon=1, bounding="choose")
        assert [each.chosen_by for each in ledger.datasets()] == [PORTABLE.name]
        with session(ledger, DuckDB()) as one:
            one.sql(CHOSEN).release(epsilon=2, bounding="choose")
        assert [each.chosen_by for each in ledger.datasets()] == [PORTABLE.name]


def test_two_digests_choose_differently():
    """Or nothing here would show anything: the choices of one dataset by each of them."""
    found = []
    with Ledger.open(None) as ledger, session(ledger, DuckDB()) as one:
        measured = one.sql(CHOSEN)._planned(Terms.of(bounding="choose")).recipe.measured
        for name in (EARLIER, PORTABLE.name):
            salts = dict(one.vault._salts)
            found.append(Vault(one._engine, one.tables, salts, {"visits": name})._fetch(measured))
    assert found[0] != found[1]


@pytest.mark.parametrize("later", [Later, DataFusion])
@pytest.mark.parametrize("text", [CHOSEN, CHOSEN_VALUES])
def test_an_engine_without_it_refuses_before_it_is_paid_and_answers_all_else(later, text):
    with Ledger.open(None) as ledger:
        with session(ledger, DuckDB()) as one:
            options = {"bounding": "choose"} if text == CHOSEN else {}
            first = one.sql(text).release(epsilon=1, **options)
        spent = ledger.balance("visits").spent
        with session(ledger, later()) as one:
            again = one.sql(text).release(epsilon=1, **options)  # on record, and nothing is read
            assert (again.free, again.table) == (True, first.table)
            with pytest.raises(QueryRefused, match="duckdb-hash/1 decides which rows"):
                one.sql(text).release(epsilon=2, **options)
            assert ledger.balance("visits").spent == spent
            one.sql(CHOSEN).release(epsilon=1, bounding="reweight")
            assert ledger.balance("visits").spent == spent + 1


def test_rows_for_a_fit_are_not_read_by_another_digest():
    with Ledger.open(None) as ledger:
        with session(ledger, DuckDB()):
            ledger.debit("visits", PureLoss(1), fingerprint="q")
        with session(ledger, Later()) as one:
            report = one.sql("SELECT SUM(CASE WHEN city = 'a' THEN 1 ELSE 0 END) AS n FROM visits").report
            measured = measured_of(report, one.tables["visits"])
            right = ledger.debit("visits", PureLoss(1), fingerprint=rows_fingerprint(measured))
            with pytest.raises(EngineFailed):
                one.vault.rows(measured, right)


def test_a_ledger_of_before_goes_on_with_what_chose_then(tmp_path):
    for path in DATA.glob("visits.*"):
        shutil.copy(path, tmp_path)
    (tmp_path / "visits.ledger.key").chmod(0o600)
    with Ledger.open(tmp_path / "visits.ledger") as ledger:
        assert {each.chosen_by for each in ledger.datasets()} == {None}
    with Ledger.open(None) as ledger:  # as that one has it: registered without a name
        declared = sf.session.declaration_of([visits()])
        ledger.register("visits", declared, sf.Budget(100))
        ledger.debit("visits", PureLoss(1), fingerprint="q")
        with session(ledger, DuckDB()) as one:
            assert one.vault._digests == {"visits": EARLIER}
            kept = asked(one)
        with session(ledger, Later()) as one, pytest.raises(QueryRefused, match=EARLIER):
            one.sql(CHOSEN).release(epsilon=1, bounding="choose")
        with session(ledger, DuckDB()) as one:
            assert asked(one) == kept
