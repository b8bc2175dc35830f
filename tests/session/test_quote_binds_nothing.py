"""A session that was only looked at, quoted or refused fixes nothing: the next one may declare otherwise."""

from __future__ import annotations

import contextlib

import pyarrow as pa
import pytest

import sfumato as sf

ROWS = pa.table({"user": [1, 2, 3, 4], "usr": [1, 1, 1, 1], "age": [34, 71, 52, 88]})
SLIP = {"unit": sf.PrivacyUnit("usr", max_groups=4), "schema": {"age": sf.Int(0, 200)}}
RIGHT = {"unit": sf.PrivacyUnit("user", max_groups=1), "schema": {"age": sf.Int(0, 110)}}
COUNT = "SELECT COUNT(*) AS n FROM people"
LOOKS = {
    "opened": lambda s: None,
    "quoted": lambda s: s.sql(COUNT).quote(epsilon=1),
    "balance": lambda s: s.balance(),
    "analyst's quote": lambda s: s.as_analyst("ada").sql(COUNT).quote(epsilon=1),
    "refused": lambda s: s.sql("SELECT age FROM people"),
    "too dear": lambda s: s.sql(COUNT).release(epsilon=100),
    "too dear to choose": lambda s: s.most_common("age", epsilon=100, among=[1, 2]),
    "too dear with bounds": lambda s: s.sql("SELECT SUM(age) FROM people").release(
        epsilon=100, bounds="auto"
    ),
}


def opened(ledger, declared, epsilon, **more):
    table = sf.PrivateTable("people", source=ROWS, **declared)
    return sf.Session(table, budget=sf.Budget(epsilon, "1e-6"), ledger=ledger, **more)


@pytest.mark.parametrize("look", LOOKS)
def test_looking_binds_nothing(tmp_path, look):
    ledger = tmp_path / "people.ledger"
    with opened(ledger, SLIP, 8) as s, contextlib.suppress(sf.errors.SfumatoError):
        LOOKS[look](s)
    with opened(ledger, RIGHT, 2) as s:
        assert s.sql(COUNT).release(epsilon=1).receipt.price["epsilon"] == 1
        assert s.balance().epsilon == 2
        assert s.ledger.verify().ok
    with pytest.raises(sf.errors.LedgerMismatch, match=r"unit\.column user on record, usr now"):
        opened(ledger, SLIP, 2)


def test_sessions_that_declare_differently_at_once(tmp_path):
    """Whoever pays first has declared last; the others are refused before their debit."""
    ledger = sf.Ledger.open(tmp_path / "people.ledger")
    with ledger, opened(ledger, SLIP, 8) as first:
        ada = first.as_analyst("ada")
        with opened(ledger, RIGHT, 2) as second:
            for session in (first, ada):
                with pytest.raises(sf.errors.LedgerMismatch, match="Open the session again"):
                    session.sql(COUNT).release(epsilon=1)
            second.sql(COUNT).release(epsilon=1)
        with pytest.raises(sf.errors.LedgerMismatch):
            first.sql(COUNT).release(epsilon=3)
        assert ledger.balance("people").spent == 1
