"""Series: paid for whole, each point once and in order, whoever dies; none beyond the horizon."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from sfumato.errors import AccessDenied, BudgetExceeded, LedgerMismatch, LedgerTampered
from sfumato.ledger import Counter, Steward
from sfumato.loss import PureLoss


def begin(ledger, horizon=3, **more):
    usual = {"fingerprint": "daily", "points": horizon}
    return ledger.debit("visits", PureLoss("0.1"), **(usual | more)).receipt


def take(ledger, receipt, point, payload=None):
    right = ledger.series.right(receipt, point, ("q",))
    ledger.series.record(right, point, f"point {point}".encode() if payload is None else payload)


def test_points_come_in_order_each_once_and_end_at_the_horizon(place):
    with place.made() as ledger:
        receipt = begin(ledger)
        assert ledger.series.length(receipt) == 0
        assert ledger.series.points(receipt) == []
        for point in range(3):
            for other in {0, 1, 2, 7} - {point}:
                with pytest.raises(LedgerMismatch, match=f"Point {point} of the series is next"):
                    ledger.series.right(receipt, other, ("q",))
            take(ledger, receipt, point)
        with pytest.raises(BudgetExceeded, match="The series ends here"):
            ledger.series.right(receipt, 3, ("q",))
        assert ledger.series.points(receipt) == [b"point 0", b"point 1", b"point 2"]
        assert ledger.series.points(receipt, 2) == [b"point 2"]
        assert ledger.balance("visits").spent == PureLoss("0.1").pure  # once
        assert ledger.verify().ok


def test_a_debit_for_a_series_reads_nothing_by_itself(place):
    with place.made() as ledger:
        right = ledger.debit("visits", PureLoss("0.1"), fingerprint="daily", points=3)
        with pytest.raises(AccessDenied):
            right.use("daily")
        with pytest.raises(LedgerMismatch):
            ledger.series.right(ledger.debit("visits", PureLoss("0.1"), fingerprint="x").receipt, 0, ())


def test_of_two_who_take_the_same_point_one_records_it(place):
    with place.made() as ledger:
        receipt = begin(ledger)
        rights = [ledger.series.right(receipt, 0, ("q",)) for _ in range(4)]
        refused = list[BaseException]()

        def record(right):
            try:
                ledger.series.record(right, 0, b"x")
            except LedgerMismatch as wrong:
                refused.append(wrong)

        threads = [threading.Thread(target=record, args=(right,)) for right in rights]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refused) == 3
        assert ledger.series.points(receipt) == [b"x"]


def test_it_is_found_again_with_its_secret_and_goes_on(place):
    with place.made() as ledger:
        receipt, other = begin(ledger), begin(ledger)
        take(ledger, receipt, 0, b"a")
        take(ledger, other, 0, b"b")
        take(ledger, receipt, 1, b"c")
        secrets = [ledger.series.secret(each) for each in (receipt, other)]
        assert secrets[0] != secrets[1]
        shown = str(ledger.export())
        assert not any(secret.hex() in shown for secret in secrets)
    with place.open() as ledger:
        found = ledger.series.begun("visits", "daily", None)
        assert [each.number for each in found] == [other.number, receipt.number]
        assert ledger.series.begun("visits", "daily", "ada") == []
        assert [ledger.series.secret(each) for each in (receipt, other)] == secrets
        assert ledger.series.points(receipt) == [b"a", b"c"]
        assert ledger.series.points(other) == [b"b"]
        parts = [ledger.series.points(receipt, first, end) for first in range(3) for end in range(4)]
        assert parts == [[b"a", b"c"][first:end] for first in range(3) for end in range(4)]
        take(ledger, receipt, 2)
        assert ledger.verify().ok


def test_a_closed_budget_ends_it(place):
    with place.made() as ledger:
        receipt = begin(ledger)
        right = ledger.series.right(receipt, 0, ("q",))
        Steward(ledger).close_budget("visits", reason="done")
        with pytest.raises(AccessDenied):
            ledger.series.right(receipt, 0, ("q",))
        with pytest.raises(AccessDenied):
            ledger.series.record(right, 0, b"x")


def test_an_analyst_has_no_series_of_others(place):
    with place.made() as ledger:
        own, other = (begin(Counter(ledger, name)) for name in ("Ada", "bob"))
        nobodys = begin(ledger)
        for receipt in (own, other, nobodys):
            take(ledger, receipt, 0)  # the steward's ledger has all
        ada = Counter(ledger, "ada").series
        assert ada.points(own) == [b"point 0"]
        assert [each.number for each in ada.begun("visits", "daily", "ada")] == [own.number]
        for receipt in (other, nobodys):
            acts = (
                lambda receipt=receipt: ada.points(receipt),
                lambda receipt=receipt: ada.length(receipt),
                lambda receipt=receipt: ada.secret(receipt),
                lambda receipt=receipt: ada.right(receipt, 1, ("q",)),
                lambda receipt=receipt: ada.record(ledger.series.right(receipt, 1, ("q",)), 1, b"x"),
            )
            for act in acts:
                with pytest.raises(AccessDenied, match="series of 'ada' and no others"):
                    act()
        for name in ("bob", None):
            with pytest.raises(AccessDenied, match="and no others"):
                ada.begun("visits", "daily", name)


def test_a_revoked_analyst_has_no_more_points(place):
    with place.made() as ledger:
        counter = Counter(ledger, "ada")
        receipt = begin(counter)
        take(counter, receipt, 0)
        Steward(ledger).revoke("visits", "ada", reason="left")
        with pytest.raises(AccessDenied, match="may no longer ask"):
            take(counter, receipt, 1)


def test_a_dataset_that_is_declared_anew_gives_no_more_points_to_who_knew_the_old_one(place):
    with place.made() as ledger:
        (known,) = ledger.datasets()
        receipt = begin(ledger, known=known)
        ledger.series.record(ledger.series.right(receipt, 0, ("q",), known=known), 0, b"x")
        Steward(ledger).redeclare("visits", {"unit": "row", "version": 2}, reason="wider")
        with pytest.raises(LedgerMismatch, match="declared otherwise"):
            ledger.series.right(receipt, 1, ("q",), known=known)
        assert ledger.verify().ok


def test_a_receipt_that_was_changed_opens_no_series(place):
    with place.made() as ledger:
        receipt = replace(begin(ledger), mac="00" * 32)
        with pytest.raises(LedgerMismatch, match="not of a series"):
            ledger.series.secret(receipt)


@pytest.mark.parametrize("how", ["UPDATE sfumato_payloads SET payload = ?", "DELETE FROM sfumato_payloads"])
def test_a_point_that_is_changed_or_cut_out_is_noticed(place, how):
    with place.made() as ledger:
        receipt = begin(ledger)
        take(ledger, receipt, 0)
        take(ledger, receipt, 1)
    place.sql(how, *([b"other"] if "?" in how else []))
    with place.open() as ledger:
        assert not ledger.verify().ok
        with pytest.raises(LedgerTampered):
            ledger.series.points(receipt)
        assert ledger.series.length(receipt) == 2
