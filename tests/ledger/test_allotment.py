"""Limits of several analysts at once: all or none, on record, and set back by the steward alone."""

from __future__ import annotations

import gc
import os
import sqlite3
from fractions import Fraction

import pytest

from sfumato.errors import (
    AccessDenied,
    BudgetExceeded,
    InvalidParameter,
    LedgerMismatch,
    LedgerTampered,
    LedgerUnusable,
)
from sfumato.ledger import Budget, Counter, Ledger, Steward
from sfumato.loss import PureLoss

F = Fraction
DECLARED = {"unit": {"column": "user_id"}, "version": None}


def pay(ledger, epsilon, analyst=None):
    return ledger.debit("visits", PureLoss(epsilon), fingerprint="q", analyst=analyst).receipt


def opened(place, budget=None):
    ledger = place.open()
    ledger.register("visits", DECLARED, budget or Budget(2))
    return ledger


def limits(ledger, *analysts):
    found = [ledger.balance("visits", each) for each in analysts]
    return [each.epsilon if each.limited and each.open else None for each in found]


def test_an_allotment_limits_everybody_and_is_taken_back(place):
    with opened(place) as ledger:
        Steward(ledger).limit("visits", "bob", Budget("0.3"), reason="a start")
        Steward(ledger).revoke("visits", "eve", reason="left")
        written = Steward(ledger).allot(
            "visits", {"ada": Budget(1), "bob": Budget("0.5"), "eve": Budget("0.5")}, reason="spring"
        )
        assert [each.kind for each in written] == ["limit"] * 3
        assert limits(ledger, "ada", "bob", "eve") == [1, F("0.5"), F("0.5")]
        pay(ledger, "0.4", "ada")
        with pytest.raises(BudgetExceeded, match="limit of 'ada'"):
            pay(ledger, "0.7", "ada")
    with place.open() as ledger:
        Steward(ledger).take_back("visits", reason="summer")
        assert limits(ledger, "bob") == [F("0.3")]
        pay(ledger, "0.7", "ada")  # no limit but the budget's, and what was spent stays spent
        assert ledger.balance("visits").spent == F("1.1")
        with pytest.raises(AccessDenied, match="no longer ask"):
            pay(ledger, "0.1", "eve")
        assert ledger.verify().ok
        with pytest.raises(LedgerMismatch, match="no allotment"):
            Steward(ledger).take_back("visits", reason="again")


def test_who_had_no_limit_has_none_again_even_if_the_budget_is_raised(place):
    with opened(place) as ledger:
        Steward(ledger).allot("visits", {"ada": Budget("0.5")}, reason="spring")
        Steward(ledger).take_back("visits", reason="summer")
        assert not ledger.balance("visits", "ada").limited
        Steward(ledger).raise_budget("visits", Budget(5), reason="a second wave")
        pay(ledger, 3, "ada")
        assert ledger.verify().ok


def test_none_revokes_and_is_taken_back(place):
    with opened(place) as ledger:
        Steward(ledger).allot("visits", {"ada": Budget(2), "bob": None}, reason="an auction")
        with pytest.raises(AccessDenied):
            pay(ledger, "0.1", "bob")
        Steward(ledger).take_back("visits", reason="over")
        pay(ledger, "0.1", "bob")


def test_limits_that_do_not_fit_together_are_refused_and_nothing_is_written(place):
    with opened(place) as ledger:
        pay(ledger, "0.5", "ada")
        before = len(list(ledger.entries()))
        with pytest.raises(LedgerMismatch, match=r"leave epsilon 1.6 to spend, and 'visits' has 1.5 left"):
            Steward(ledger).allot("visits", {"ada": Budget("1.1"), "bob": Budget(1)}, reason="too much")
        with pytest.raises(LedgerMismatch, match="within the dataset's budget"):
            Steward(ledger).allot("visits", {"bob": Budget("0.1"), "ada": Budget(3)}, reason="too much")
        with pytest.raises(LedgerMismatch, match="gated by"):
            Steward(ledger).allot("visits", {"bob": Budget("0.1", "1e-6", "zcdp")}, reason="another gate")
        for wrong in ({}, None, ["ada"]):
            with pytest.raises(InvalidParameter, match="at least one analyst"):
                Steward(ledger).allot("visits", wrong, reason="nobody")
        with pytest.raises(InvalidParameter, match="needs a reason"):
            Steward(ledger).allot("visits", {"bob": Budget(1)}, reason=" ")
        assert len(list(ledger.entries())) == before
        # What ada has spent counts: 0.5 more for her and 1 for bob is all there is.
        Steward(ledger).allot("visits", {"ada": Budget(1), "bob": Budget(1)}, reason="just so")


def test_limits_fit_together_in_delta_too(place):
    with opened(place, Budget(2, "1e-6")) as ledger:
        shares = {"ada": Budget(1, "8e-7"), "bob": Budget(1, "8e-7")}
        with pytest.raises(
            LedgerMismatch, match=r"leave delta 1.6e-06 to spend, and 'visits' has 1e-06 left"
        ):
            Steward(ledger).allot("visits", shares, reason="too much of one")
        Steward(ledger).allot(
            "visits", {"ada": Budget(1, "8e-7"), "bob": Budget(1, "2e-7")}, reason="just so"
        )


def test_a_later_act_is_not_overwritten(place):
    with opened(place) as ledger:
        Steward(ledger).allot("visits", {"ada": Budget(1), "bob": Budget(1)}, reason="spring")
        Steward(ledger).limit("visits", "bob", Budget("0.1"), reason="a slip")
        with pytest.raises(LedgerMismatch, match="'bob' was changed since"):
            Steward(ledger).take_back("visits", reason="summer")
        assert limits(ledger, "ada", "bob") == [1, F("0.1")]


def test_two_allotments_are_taken_back_one_by_one_where_they_do_not_meet(place):
    with opened(place) as ledger:
        Steward(ledger).allot("visits", {"ada": Budget(1)}, reason="one")
        Steward(ledger).allot("visits", {"bob": Budget("0.5")}, reason="two")
        assert [each.analyst for each in Steward(ledger).take_back("visits", reason="x")] == ["bob"]
        assert [each.analyst for each in Steward(ledger).take_back("visits", reason="x")] == ["ada"]


def test_an_analysts_side_of_the_ledger_pays_and_reads_and_decides_nothing(place):
    with opened(place) as ledger:
        Steward(ledger).allot("visits", {"ada": Budget("0.5")}, reason="spring")
        counter = Counter(ledger, "ada")
        before = ledger.export()
        with pytest.raises(AccessDenied, match="Only the steward can do this"):
            Steward(counter)
        acts = {name for name in dir(Steward) if not name.startswith("_")}
        assert len(acts) == 10
        assert not acts & {*dir(counter), *dir(ledger)}  # there is nothing to refuse: see test_counter.py
        assert ledger.export() == before
        pay(counter, "0.2", "ada")
        pay(ledger, "0.2", "ada")
        assert (
            counter.balance("visits", "ada").remaining
            == ledger.balance("visits", "ada").remaining
            == F("0.1")
        )
        with pytest.raises(BudgetExceeded):
            pay(counter, "0.2", "ada")


def test_nobody_but_the_steward_undoes_it(tmp_path):
    path = tmp_path / "visits.ledger"
    with Ledger.open(path) as ledger:
        ledger.register("visits", DECLARED, Budget(2))
        Steward(ledger).allot("visits", {"ada": Budget("0.5")}, reason="spring")
        # Not by registering again with more once something was spent.
        ledger.debit("visits", PureLoss("0.1"), fingerprint="q")
        with pytest.raises(LedgerMismatch, match="only the steward"):
            ledger.register("visits", DECLARED, Budget(4))
        with pytest.raises(BudgetExceeded):
            pay(ledger, 1, "ada")
    # Not without the key.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with pytest.raises(LedgerUnusable):
        Ledger.open(path, state=elsewhere, create=False)
    # Not by hand: the receipt cannot be edited or removed unnoticed.
    database = sqlite3.connect(path)
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    touched = 0
    for name in tables:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({name})")]
        if "kind" in columns:
            touched += database.execute(f"DELETE FROM {name} WHERE kind = 'limit'").rowcount
    database.commit()
    database.close()
    assert touched == 1
    with pytest.raises(LedgerTampered):
        Ledger.open(path)


def test_earlier_allotments_count_until_they_are_taken_back(place):
    with opened(place) as ledger:
        Steward(ledger).allot("visits", {"ada": Budget("1.5")}, reason="one")
        assert ledger.promised("visits") == {"epsilon": F("1.5"), "delta": 0}
        for besides in (["ada"], {"ada", "bob"}, "ada"):
            assert ledger.promised("visits", besides) == {"epsilon": 0, "delta": 0}
        assert ledger.promised("visits", "adam")["epsilon"] == F("1.5")
        with pytest.raises(LedgerMismatch, match=r"has 2 left, 1.5 of it kept for others"):
            Steward(ledger).allot("visits", {"bob": Budget(1)}, reason="two")
        Steward(ledger).allot("visits", {"bob": Budget("0.5")}, reason="two")
        # Who is named again has a new share, not a second one.
        Steward(ledger).allot("visits", {"ada": Budget(1), "bob": Budget(1)}, reason="three")
        Steward(ledger).allot("visits", {"ada": None}, reason="four")
        assert ledger.promised("visits")["epsilon"] == 1
    with place.open() as ledger:
        for kept in ([1, 1], [F("1.5"), F("0.5")], [F("1.5"), None], [None, None]):
            Steward(ledger).take_back("visits", reason="back")
            assert limits(ledger, "ada", "bob") == kept
        assert ledger.promised("visits")["epsilon"] == 0
        with pytest.raises(LedgerMismatch, match="no allotment"):
            Steward(ledger).take_back("visits", reason="again")


def test_two_spellings_of_one_name_are_refused(place):
    with opened(place) as ledger, pytest.raises(InvalidParameter, match="spellings of one"):
        Steward(ledger).allot("visits", {"\u00e9": Budget(1), "e\u0301": Budget("0.2")}, reason="x")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_analysts_side_survives_a_fork_when_nobody_holds_the_ledger(tmp_path):
    ledger = Ledger.open(tmp_path / "visits.ledger")
    ledger.register("visits", DECLARED, Budget(2))
    counter = Counter(ledger, "ada", closes=True)
    del ledger
    gc.collect()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            pay(counter, "0.5", "ada")
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert counter.balance("visits").spent == F("0.5")
    counter.close()


def test_an_analysts_side_can_be_opened_as_such(tmp_path):
    with Ledger.open(tmp_path / "visits.ledger") as ledger:
        ledger.register("visits", DECLARED, Budget(2))
    with Counter(Ledger.open(tmp_path / "visits.ledger"), "ada", closes=True) as counter:
        pay(counter, "0.5")
        with pytest.raises(AccessDenied):
            Steward(counter)
    with pytest.raises(LedgerUnusable, match="closed"):
        counter.balance("visits")
    with Ledger.open(tmp_path / "visits.ledger") as ledger:
        assert ledger.balance("visits", "ada").spent == F("0.5")
