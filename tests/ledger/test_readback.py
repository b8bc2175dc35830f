"""No receipt is written that cannot be read again, whatever its kind: it would shut the ledger for ever."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sfumato.errors import InvalidParameter, LedgerUnusable
from sfumato.ledger import Budget, Ledger
from sfumato.ledger.book import _EFFECTS
from sfumato.loss import PureLoss
from sfumato.schema import Windows

UNIT = {"column": "person", "adjacency": "add-remove", "window": "month"}
MARCH = 2026 * 12 + 2
NEED_NO_FACTS = {"release", "revoke", "close", "adopt"}


def paid_in(first, last):
    """What a debit says that is paid from one month to another."""
    windows = {"each": "month", "from": first, "to": last}
    return {"windows": windows, "price": {"epsilon": "1/4", "delta": "0"}, "adjacency": None}


BROKEN = [
    ("debit", paid_in("2026-03", "2026-02")),
    ("debit", paid_in("2026-03", "10000-01")),
    ("debit", paid_in("2026-03", "2026-03") | {"price": {"epsilon": "a half", "delta": "0"}}),
    ("debit", paid_in("2026-03", "2026-03") | {"memo": "no facts"}),
    ("open", {"budget": {"epsilon": "-1"}}),
    ("register", {"id": "x", "salt": "no bytes", "declaration": {}}),
    ("block", {"debit": 3, "taken": "1/0"}),
    ("point", {"debit": 3, "point": "first"}),
    ("moved", {}),
    *((kind, {}) for kind in sorted(_EFFECTS.keys() - NEED_NO_FACTS)),
]


def test_a_debit_that_can_be_read_again_is_written(path):
    with Ledger.open(path) as ledger:
        written(ledger, ("debit", paid_in("2026-03", "2026-04")))
        assert ledger.balance("visits", window="2026-04").spent == Fraction(1, 4)


def written(ledger, *receipts):
    with ledger._journal.writing() as draft:
        for kind, facts in receipts:
            draft.add(kind, "visits", analyst="ann", **facts)


@pytest.fixture
def path(tmp_path):
    with Ledger.open(tmp_path / "ledger") as ledger:
        ledger.register("visits", {"unit": UNIT}, Budget(epsilon=1, delta="1e-6", each="month"))
    return tmp_path / "ledger"


def paid(ledger, windows, name="q"):
    return ledger.debit("visits", PureLoss("1/4"), fingerprint=name, windows=windows)


@pytest.mark.parametrize(("kind", "facts"), BROKEN, ids=[kind for kind, _ in BROKEN])
def test_what_could_not_be_read_again_is_not_written(path, kind, facts):
    with Ledger.open(path) as ledger:
        paid(ledger, Windows("month", MARCH, MARCH))
        before = ledger.verify().entries
        with pytest.raises(LedgerUnusable, match="it was not written; nothing was spent"):
            written(ledger, (kind, facts))
        assert ledger.verify().entries == before
        paid(ledger, Windows("month", MARCH, MARCH), "another")
    with Ledger.open(path) as ledger:
        assert ledger.verify().ok
        assert ledger.balance("visits", window="2026-03").spent == Fraction(1, 2)


def test_several_receipts_are_read_back_in_their_order(path):
    """A budget that one of them opens is the budget of the next; all of them are written, or none is."""
    with Ledger.open(path) as ledger:
        before = ledger.verify().entries
        weekly = {"budget": Budget(2, "1e-6", each="week").to_dict()}
        with pytest.raises(LedgerUnusable, match="receipt of this debit"):
            written(ledger, ("adopt", {}), ("open", weekly), ("debit", paid_in("2026-03", "2026-04")))
        assert ledger.verify().entries == before
        assert not ledger.datasets()[0].closed
        paid(ledger, Windows("month", MARCH, MARCH))


@pytest.mark.parametrize(
    ("first", "last"),
    [(MARCH, MARCH - 1), (MARCH, 10**9), (True, True), (0.5, 1.5), (9999 * 12, 9999 * 12 + 11), (3, MARCH)],
)
def test_windows_are_of_the_calendar_and_in_order(first, last):
    with pytest.raises(InvalidParameter):
        Windows("month", first, last)
    with pytest.raises(InvalidParameter, match="each is one of"):
        Windows("decade", 3, 3)


def test_no_debit_is_made_in_windows_that_go_back(path, monkeypatch):
    """By the book, too, were such windows to be had."""
    monkeypatch.setattr(Windows, "__post_init__", lambda self: None)
    with Ledger.open(path) as ledger, pytest.raises(LedgerUnusable, match="not written"):
        paid(ledger, Windows("month", MARCH, MARCH - 1))
    with Ledger.open(path) as ledger:
        assert ledger.verify().ok
