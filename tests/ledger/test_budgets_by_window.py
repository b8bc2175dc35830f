"""Budgets that open anew with each window of time, against a list of losses for each window."""

from __future__ import annotations

import datetime
import random
from fractions import Fraction

import pytest

from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerMismatch
from sfumato.ledger import Budget, Ledger, Steward, checkpoint
from sfumato.ledger.spans import Spans, added
from sfumato.loss import ApproximateLoss, ConcentratedLoss, GaussianLoss, PureLoss
from sfumato.schema import Windows

UNIT = {"column": "patient", "adjacency": "add-remove", "window": "month"}
FIRST = 2026 * 12
MARCH = Windows("month", FIRST + 2, FIRST + 2)


def months(first: int, last: int) -> Windows:
    return Windows("month", FIRST + first, FIRST + last)


def made(place, budget: Budget) -> Ledger:
    ledger = place.open()
    ledger.register("visits", {"unit": UNIT}, budget)
    return ledger


# ── the account against a list of losses for each window


class Reference:
    """For each window all that was admitted, and a filter that begins anew with every question."""

    def __init__(self, budget: Budget, limits: dict[str, Budget]) -> None:
        self.budget, self.limits = budget, limits
        self.paid: dict[int, list] = {}
        self.by: dict[str, dict[int, list]] = {name: {} for name in limits}

    def debit(self, loss, analyst: str | None, windows: Windows) -> bool:
        gates = [(self.budget, self.paid)]
        if analyst is not None:
            gates.append((self.limits[analyst], self.by[analyst]))
        every = range(windows.first, windows.last + 1)
        if not all(self._admits(budget, paid.get(at, []), loss) for budget, paid in gates for at in every):
            return False
        for _, paid in gates:
            for at in every:
                paid.setdefault(at, []).append(loss)
        return True

    @staticmethod
    def _admits(budget: Budget, paid: list, loss) -> bool:
        gate = budget.filter()
        try:
            for one in (*paid, loss):
                gate = gate.after(one)
        except BudgetExceeded:
            return False
        return True

    def spent(self, window: int, analyst: str | None = None) -> tuple[list[Fraction], int]:
        paid = (self.paid if analyst is None else self.by[analyst]).get(window, [])
        prices = [self.budget.totals(self.budget.filter().price(loss)) for loss in paid]
        zero = (Fraction(0),) * len(self.budget.units)
        return [sum(parts, Fraction(0)) for parts in zip(*prices, zero, strict=True)], len(paid)


BUDGETS = {
    "basic": (Budget(2, "1e-5", each="month"), Budget(1, "1e-6", each="month")),
    "zcdp": (
        Budget(2, "1e-5", "zcdp", each="month"),
        Budget(1, "1e-6", "zcdp", each="month"),
    ),
}
LOSSES = {
    "basic": [PureLoss("0.1"), PureLoss("1/3"), ApproximateLoss("0.2", "1e-7")],
    "zcdp": [ConcentratedLoss("0.01"), GaussianLoss("0.02"), PureLoss("0.2")],
}


def played(place, kind: str, seed: int, steps: int, *, every: int = 5) -> None:
    rng, (budget, limit) = random.Random(seed), BUDGETS[kind]
    reference = Reference(budget, {"ada": limit})
    made(place, budget).close()
    ledger = place.open()
    Steward(ledger).limit("visits", "ada", limit, reason="a part")
    refused = 0
    for _ in range(steps):
        if rng.random() < 0.15:
            ledger.close()
            ledger = place.open()
        begin = rng.randrange(24)
        windows = months(begin, begin + rng.choice((0, 0, 0, 1, 4, 40)))
        loss, who = rng.choice(LOSSES[kind]), rng.choice((None, "ada"))
        try:
            right = ledger.debit("visits", loss, fingerprint="q", analyst=who, windows=windows)
        except BudgetExceeded:
            assert not reference.debit(loss, who, windows)
            refused += 1
            continue
        assert reference.debit(loss, who, windows)
        assert right.receipt.windows == windows
    assert refused >= 3
    for _ in range(2):
        for at in (*range(0, 66, every), -1, 700):
            for who in (None, "ada"):
                sums, many = reference.spent(FIRST + at, who)
                balance = ledger.balance("visits", who, window=months(at, at))
                assert [spent for spent, _ in balance.gate.values()] == sums
                assert balance.entries == many
                assert len(list(balance._losses())) <= many
        assert ledger.verify().ok
        ledger.close()
        assert place.inspect().ok
        ledger = place.open()
    ledger.close()


@pytest.mark.parametrize("kind", ["basic", "zcdp"])
def test_each_window_has_the_sums_of_what_was_paid_in_it(place, kind, monkeypatch):
    """On both stores, opened again at random from checkpoints that are a few receipts old."""
    monkeypatch.setattr(checkpoint, "EVERY", 7)
    played(place, kind, 1, 60)


@pytest.mark.stats
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["basic", "zcdp"])
def test_long_histories(sqlite_place, kind, seed, monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY", random.Random(seed).choice((1, 3, 50)))
    played(sqlite_place, kind, seed, 250, every=1)


def test_stretches_are_the_sums_of_every_window():
    rng = random.Random(5)
    spans, reference, everywhere = Spans(), {}, ()
    for number in range(400):
        price = (Fraction(rng.randint(1, 9), 10), Fraction(rng.randint(0, 3), 1000))
        if rng.random() < 0.02:
            everywhere = added(everywhere, price)
            spans = spans.with_(None, price, number + 1)
            continue
        begin = rng.randrange(3650)
        windows = Windows("day", begin, begin + rng.choice((0, 0, 6, 3650)))
        spans = spans.with_(windows, price, number + 1)
        assert spans.with_(windows, price, number + 1) is spans  # an interrupt: it is taken in already
        for at in range(windows.first, windows.last + 1):
            reference[at] = added(reference.get(at, ()), price)
    assert Spans.from_dict(spans.to_dict()) == spans
    for at in range(-3, 7400):
        (piece,) = spans.over(Windows("day", at, at))
        assert piece.sums == added(reference.get(at, ()), everywhere)
    some = Windows("day", 100, 3000)
    largest = [max(reference.get(at, (0, 0))[place] for at in range(100, 3001)) for place in (0, 1)]
    full = [piece.sums for piece in spans.fullest(some)]
    assert [max(sums) for sums in zip(*full, strict=True)] == list(
        added(tuple(map(Fraction, largest)), everywhere)
    )


def test_many_windows_are_charged_at_once():
    """Ten years of days, each with debits of its own, and a debit over all of them."""
    spans = Spans()
    for day in range(3650):
        spans.add(Windows("day", day, day), (Fraction(day % 7, 10), Fraction(0)))
    spans.add(Windows("day", 0, 3649), (Fraction(1), Fraction(1, 10**6)))
    assert spans.over(Windows("day", 11, 11))[0].sums == (Fraction(14, 10), Fraction(1, 10**6))
    assert len(spans.fullest(Windows("day", 0, 3649))) == 1


# ── what a debit may be


def test_windows_have_budgets_of_their_own(place):
    with made(place, Budget(1, each="month")) as ledger:
        for month in range(3):
            ledger.debit("visits", PureLoss(1), fingerprint="q", windows=months(month, month))
        with pytest.raises(BudgetExceeded, match=r"budget of 'visits' in 2026-02 is used up"):
            ledger.debit("visits", PureLoss("0.1"), fingerprint="q", windows=months(1, 1))
        assert ledger.balance("visits", window="2026-04").remaining == 1
        assert ledger.balance("visits", window=datetime.date(2026, 2, 7)).remaining == 0
        assert str(ledger.balance("visits", window="2026-02")).startswith("visits in 2026-02 (basic)")


def test_several_windows_are_paid_in_full_by_all_or_none(place):
    with made(place, Budget(1, each="month")) as ledger:
        ledger.debit("visits", PureLoss("0.7"), fingerprint="q", windows=months(3, 3))
        before = list(ledger.entries())
        with pytest.raises(BudgetExceeded, match=r"in 2026-04: asked epsilon 0.4, spent 0.7 of 1, left 0.3"):
            ledger.debit("visits", PureLoss("0.4"), fingerprint="q", windows=months(0, 8))
        assert list(ledger.entries()) == before
        ledger.debit("visits", PureLoss("0.3"), fingerprint="q", windows=months(0, 8))
        left = [ledger.balance("visits", window=months(at, at)).remaining for at in (0, 3, 8, 9)]
        assert left == [Fraction(7, 10), 0, Fraction(7, 10), 1]
        assert ledger.balance("visits", window=months(0, 9)).window == "2026-04"  # the fullest


def test_a_debit_that_names_no_window_is_refused(place):
    with made(place, Budget(1, each="month")) as ledger:
        for windows in (None, Windows("week", 1, 1)):
            with pytest.raises(LedgerMismatch, match=r"does not say of which months.*nothing was spent"):
                ledger.debit("visits", PureLoss("0.1"), fingerprint="q", windows=windows)
            with pytest.raises(LedgerMismatch, match=r"does not say of which months"):
                ledger.refuse_several("visits", [(PureLoss("0.1"), True, windows)])
        assert not list(ledger.entries("visits", kind="debit"))


def test_a_debit_on_record_without_windows_counts_in_all_of_them(place):
    """As whoever knows of no windows would write it."""
    with made(place, Budget(1, each="month")) as ledger:
        with ledger._journal.writing() as draft:
            sums = {"epsilon": "3/4", "delta": "0"}
            draft.add(
                "debit",
                "visits",
                fingerprint="q",
                loss=PureLoss("3/4").to_dict(),
                price=sums,
                totals=sums,
                analyst_totals=sums,
                adjacency=None,
                memo={},
            )
        for at in (-500, 0, 9000):
            assert ledger.balance("visits", window=months(at, at)).remaining == Fraction(1, 4)
            with pytest.raises(BudgetExceeded):
                ledger.debit("visits", PureLoss("0.3"), fingerprint="q", windows=months(at, at))
        assert ledger.verify().ok


def test_a_version_without_windows_cannot_read_such_a_budget():
    """It looks for limits, and finds none: the ledger is refused, and nothing is added up in one sum."""
    written = Budget(1, each="month").to_dict()
    assert "limits" not in written
    assert Budget.from_dict(written) == Budget(1, each="month") != Budget(1)
    assert "each" not in Budget(1).to_dict()


def test_windows_are_not_kept_where_the_budget_is_for_all_time(place):
    with place.made() as ledger:
        right = ledger.debit("visits", PureLoss("0.1"), fingerprint="q", windows=MARCH)
        assert right.receipt.windows is None
        assert "windows" not in right.receipt.to_dict()
        with pytest.raises(InvalidParameter, match="is for all time"):
            ledger.balance("visits", window="2026-03")


def test_several_in_a_row_are_foreseen_window_by_window(place):
    with made(place, Budget(1, each="month")) as ledger:
        ledger.debit("visits", PureLoss("0.5"), fingerprint="q", windows=MARCH)
        half = PureLoss("0.5")
        ledger.refuse_several("visits", [(half, True, months(0, 1)), (half, True, months(1, 2))])
        with pytest.raises(BudgetExceeded, match=r"in 2026-02: asked epsilon 1.5, spent 0 of 1"):
            ledger.refuse_several("visits", [(half, True, months(1, 1))] * 3)


# ── the steward's acts


def test_a_budget_for_each_window_needs_units_that_are_such_windows(place):
    with place.open() as ledger:
        for unit, told in (
            ({"column": "patient"}, "are not windows of time"),
            ("row", "are not windows of time"),
            (UNIT | {"window": "week"}, "are windows of one week"),
            (UNIT | {"adjacency": "exchange"}, "added or removed"),
        ):
            with pytest.raises(LedgerMismatch, match=told):
                ledger.register("visits", {"unit": unit}, Budget(1, each="month"))
        ledger.register("visits", {"unit": UNIT}, Budget(1, each="month"))
        with pytest.raises(LedgerMismatch, match="are windows of one week"):
            ledger.register("visits", {"unit": UNIT | {"window": "week"}}, None)
        with pytest.raises(LedgerMismatch, match="are windows of one week"):
            Steward(ledger).redeclare("visits", {"unit": UNIT | {"window": "week"}}, reason="x")
        for wrong in ("fortnight", 0, True, 1.5):
            with pytest.raises(InvalidParameter, match="each is one of day, week"):
                Budget(1, each=wrong)


def test_a_raised_budget_holds_in_every_window(place):
    with made(place, Budget(1, each="month")) as ledger:
        steward = Steward(ledger)
        ledger.debit("visits", PureLoss(1), fingerprint="q", windows=MARCH)
        for other in (Budget(2), Budget(2, each="year")):
            with pytest.raises(LedgerMismatch, match="for each month"):
                steward.raise_budget("visits", other, reason="more")
        steward.raise_budget("visits", Budget(2, each="month"), reason="more")
        ledger.debit("visits", PureLoss(1), fingerprint="q", windows=MARCH)
        assert ledger.balance("visits", window="2026-03").remaining == 0
        assert ledger.balance("visits", window="2026-04").remaining == 2
        with pytest.raises(LedgerMismatch, match="can only be raised"):
            steward.raise_budget("visits", Budget(1, each="month"), reason="less")
        assert ledger.verify().ok


def test_limits_and_reads_hold_in_each_window(place):
    with made(place, Budget(2, each="month")) as ledger:
        steward = Steward(ledger)
        with pytest.raises(LedgerMismatch, match=r"give each='month'"):
            steward.limit("visits", "ada", Budget(1), reason="a part")
        steward.limit("visits", "ada", Budget(1, each="month"), reason="a part")
        paid = ledger.debit("visits", PureLoss("0.8"), fingerprint="q", analyst="bob", windows=months(0, 2))
        ledger.debit("visits", PureLoss("0.3"), fingerprint="r", analyst="ada", windows=months(1, 1))
        with pytest.raises(BudgetExceeded, match=r"on 'visits' in 2026-02"):
            ledger.count_read(paid.receipt, "ada")
        steward.limit("visits", "ada", Budget(2, each="month"), reason="more")
        assert ledger.count_read(paid.receipt, "ada")["epsilon"] == Fraction(4, 5)
        spent = [ledger.balance("visits", "ada", window=months(at, at)).spent for at in (0, 1, 2, 3)]
        assert spent == [Fraction(8, 10), Fraction(11, 10), Fraction(8, 10), 0]
        assert ledger.balance("visits", "ada", window="2026-01").reads == 1
        assert ledger.verify().ok


def test_an_allotment_shares_a_fresh_window(place):
    with made(place, Budget(2, each="month")) as ledger:
        steward, one = Steward(ledger), Budget(1, each="month")
        ledger.debit("visits", PureLoss(2), fingerprint="q", windows=MARCH)
        steward.allot("visits", {"ada": one, "bob": one}, reason="two teams")
        with pytest.raises(LedgerMismatch, match="kept for others"):
            steward.allot("visits", {"eve": one}, reason="a third")
        ledger.debit("visits", PureLoss(1), fingerprint="q", analyst="ada", windows=months(5, 7))
        with pytest.raises(BudgetExceeded, match=r"limit of 'ada' on 'visits' in 2026-07"):
            ledger.debit("visits", PureLoss(1), fingerprint="q", analyst="ada", windows=months(6, 8))
        ledger.debit("visits", PureLoss(1), fingerprint="q", analyst="bob", windows=months(6, 8))


# ── what a changed ledger shows


def test_a_debit_that_was_charged_in_too_few_windows_is_found(sqlite_place):
    """The very rows, rewritten by somebody who has the key: the gate of each window is asked again."""
    with made(sqlite_place, Budget(1, each="month")) as ledger:
        ledger.debit("visits", PureLoss("0.6"), fingerprint="q", windows=MARCH)
        with ledger._journal.writing() as draft:
            sums = {"epsilon": "3/5", "delta": "0"}
            draft.add(
                "debit",
                "visits",
                fingerprint="q",
                loss=PureLoss("3/5").to_dict(),
                price=sums,
                totals={"epsilon": "6/5", "delta": "0"},
                analyst_totals=sums,
                adjacency=None,
                memo={},
                windows={"each": "month", "from": "2026-01", "to": "2026-05"},
            )
        found = ledger.verify()
        assert not found.ok
        assert "overdraws the budget of its dataset" in str(found)


# ── names of windows


@pytest.mark.parametrize(
    ("each", "name", "days"),
    [
        ("day", "2026-03-01", ("2026-03-01", "2026-03-01")),
        ("week", "2026-03-02", ("2026-03-02", "2026-03-08")),
        ("month", "2024-02", ("2024-02-01", "2024-02-29")),
        ("quarter", "2026-Q2", ("2026-04-01", "2026-06-30")),
        ("year", "2026", ("2026-01-01", "2026-12-31")),
        (30, "1970-01-31", ("1970-01-31", "1970-03-01")),
    ],
)
def test_a_window_has_a_name_and_days(each, name, days):
    window = Windows.named(each, name)
    assert tuple(map(str, window.days())) == days
    assert str(window) == name
    assert Windows.read(each, window.names) == window
    for at in days:
        assert Windows.named(each, at) == window
        assert Windows.named(each, datetime.date.fromisoformat(at)) == window


@pytest.mark.parametrize("each", ["day", "week", "month", "quarter", "year", 1, 7, 30])
def test_each_day_is_in_one_window(each):
    day, last = datetime.date(1969, 12, 1), None
    while day < datetime.date(1972, 4, 1):
        window = Windows.of_days(each, day, day)
        first, end = window.days()
        assert first <= day <= end
        assert last is None or window.first - last.first in (0, 1)
        day, last = day + datetime.timedelta(days=1), window


def test_what_is_no_window_is_refused():
    for name in ("March", "2026-13", "2026", 3, None, "0000-01", "10000-01"):
        with pytest.raises(InvalidParameter, match=r"window names one month, such as 2026-03"):
            Windows.named("month", name)
    for wrong in ("2026-03", ["2026-03"], ["2026-04", "2026-03"], [1, 2]):
        with pytest.raises(ValueError, match=r"."):
            Windows.read("month", wrong)
