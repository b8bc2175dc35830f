import datetime
import importlib.util
import threading
from pathlib import Path

import pytest

from sfumato.errors import (
    AccessDenied,
    BudgetExceeded,
    InvalidParameter,
    InvalidValue,
    LedgerMismatch,
    UnsupportedLoss,
)
from sfumato.games.daily import DailyReserve
from sfumato.games.reserve import BidLog, ReservePrice
from sfumato.ledger import Budget, Ledger, Steward
from sfumato.testing import seeded

LOG = BidLog([1, 1, 2, 2], ["ann", "bob", "cyd", "dan"], [5.0, 2.0, 4.0, 1.0])
UNIT = {"unit": "bidder"}


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "bids.ledger") as opened:
        opened.register("bids", UNIT, Budget("0.3"))
        yield opened


def daily(ledger, epsilon="0.1", **more):
    return DailyReserve(ledger, "bids", ReservePrice(epsilon, [1, 2, 4], max_auctions=2, **more))


def counted(log=LOG):
    """A reader, and the list of its reads."""
    reads = []

    def read():
        reads.append(1)
        return log

    return read, reads


def test_a_day_is_paid_once_and_then_recalled_unread(ledger):
    shop, (read, reads) = daily(ledger), counted()
    assert shop.days_left() == 3
    first = shop.learn("2026-03-01", read)
    assert first in (1.0, 2.0, 4.0)
    with seeded(3):  # whatever would be drawn now, it is not drawn
        assert {shop.learn(datetime.date(2026, 3, 1), read) for _ in range(20)} == {first}
    assert len(reads) == 1
    assert shop.days_left() == 2
    assert ledger.balance("bids").spent == Budget("0.1").epsilon
    # Another process, later, finds it too.
    assert daily(ledger).learn("20260301", read) == first
    assert len(reads) == 1


def test_an_exhausted_budget_reads_nothing(ledger):
    shop, (read, reads) = daily(ledger), counted()
    for day in ("2026-03-01", "2026-03-02", "2026-03-03"):
        shop.learn(day, read)
    assert shop.days_left() == 0
    with pytest.raises(BudgetExceeded):
        shop.learn("2026-03-04", read)
    assert len(reads) == 3
    assert shop.learn("2026-03-02", read) in (1.0, 2.0, 4.0)  # what was learned stays
    assert len(reads) == 3
    assert ledger.verify().ok


def test_the_debit_is_on_record_before_the_log_is_read_and_stays_if_that_fails(ledger):
    shop, seen = daily(ledger), []

    def read():
        seen.append(ledger.balance("bids").entries)
        raise OSError("the log is gone")

    with pytest.raises(OSError, match="gone"):
        shop.learn("2026-03-01", read)
    assert seen == [1]  # a debit after the read would show 0 here
    assert shop.days_left() == 2
    with pytest.raises(ValueError, match="one length"):
        shop.learn("2026-03-01", lambda: ([1], [1], []))
    assert shop.days_left() == 1
    assert shop.learn("2026-03-01", counted()[0]) in (1.0, 2.0, 4.0)
    assert shop.days_left() == 0


def test_other_parameters_are_another_question(ledger):
    read, reads = counted()
    daily(ledger).learn("2026-03-01", read)
    daily(ledger, salt="other").learn("2026-03-01", read)
    assert len(reads) == 2
    assert daily(ledger).days_left() == 1


@pytest.mark.parametrize(
    "other",
    [
        {"epsilon": "0.2"},
        {"prices": [1, 2, 5]},
        {"prices": ["0.1", "0.2", "0.4"]},
        {"max_auctions": 3},
        {"adjacency": "exchange"},
        {"salt": "other"},
    ],
)
def test_every_parameter_is_part_of_the_question(ledger, other):
    usual = {"epsilon": "0.1", "prices": [1, 2, 4], "max_auctions": 2}
    questions = [
        DailyReserve(ledger, "bids", ReservePrice(**given))._fingerprint("2026-03-01")
        for given in (usual, usual | other)
    ]
    assert questions[0] != questions[1]


def test_one_budget_is_for_one_kind_of_neighbours(ledger):
    read, reads = counted()
    daily(ledger).learn("2026-03-01", read)
    with pytest.raises(UnsupportedLoss, match="add-remove"):
        daily(ledger, adjacency="exchange").learn("2026-03-01", read)
    assert len(reads) == 1
    assert daily(ledger).days_left() == 2
    ledger.register("fixed", {"unit": {"column": "bidder", "adjacency": "exchange"}}, Budget(1))
    with pytest.raises(LedgerMismatch, match="declared for exchange neighbours"):
        DailyReserve(ledger, "fixed", ReservePrice(1, [1], max_auctions=1))
    assert (
        DailyReserve(
            ledger, "fixed", ReservePrice("0.5", [1], max_auctions=1, adjacency="exchange")
        ).days_left()
        == 2
    )


def test_an_analyst_learns_within_the_own_limit(ledger):
    read, reads = counted()
    Steward(ledger).allot("bids", {"ads": Budget("0.2")}, reason="two days")
    reserve = ReservePrice("0.1", [1, 2, 4], max_auctions=2)
    shop = DailyReserve(ledger, "bids", reserve, analyst="ads")
    assert (shop.days_left(), daily(ledger).days_left()) == (2, 3)
    shop.learn("2026-03-01", read)
    shop.learn("2026-03-02", read)
    assert (shop.days_left(), daily(ledger).days_left()) == (0, 1)
    with pytest.raises(BudgetExceeded, match="limit of 'ads'"):
        shop.learn("2026-03-03", read)
    assert len(reads) == 2
    Steward(ledger).limit("bids", "ads", Budget("0.1"), reason="less than was spent")
    assert shop.days_left() == 0
    Steward(ledger).revoke("bids", "ads", reason="over")
    assert shop.days_left() == 0
    with pytest.raises(AccessDenied):  # not even what was learned before
        shop.learn("2026-03-01", read)
    assert len(reads) == 2


def test_a_reader_may_learn_another_day_first(ledger):
    shop, (read, _reads) = daily(ledger), counted()
    ended = threading.Thread(
        target=lambda: shop.learn("2026-03-02", lambda: (shop.learn("2026-03-01", read), LOG)[1]), daemon=True
    )
    ended.start()
    ended.join(20)
    assert not ended.is_alive()
    assert shop.days_left() == 1


def test_under_zcdp_small_daily_prices_last_longer(tmp_path):
    with Ledger.open(tmp_path / "bids.ledger") as ledger:
        ledger.register("bids", UNIT, Budget(1, "1e-6", "zcdp"))
        shop = daily(ledger)
        left = shop.days_left()
        assert left > 10  # sums of epsilon would pay for ten days
        shop.learn("2026-03-01", counted()[0])
        assert shop.days_left() == left - 1
        Steward(ledger).close_budget("bids", reason="the season is over")
        assert shop.days_left() == 0
        with pytest.raises(AccessDenied):
            shop.learn("2026-03-02", counted()[0])


def test_threads_that_learn_the_same_day_at_once_pay_once_and_agree(ledger):
    shop, (read, reads), found = daily(ledger), counted(), []
    threads = [
        threading.Thread(target=lambda: found.append(shop.learn("2026-03-01", read))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert len(reads) == 1


def test_a_reader_cannot_learn_its_own_day(ledger):
    one, other = daily(ledger), daily(ledger)
    with pytest.raises(InvalidParameter, match="being answered"):
        one.learn("2026-03-01", lambda: other.learn("2026-03-01", counted()[0]))
    assert one.days_left() == 2  # paid, and not read


@pytest.mark.parametrize(
    "day", ["yesterday", "2026-13-01", 20260301, None, datetime.datetime(2026, 3, 1, 12)]
)
def test_what_is_no_day_costs_nothing(ledger, day):
    read, reads = counted()
    with pytest.raises(InvalidParameter, match="day must be a date"):
        daily(ledger).learn(day, read)
    assert not reads
    assert daily(ledger).days_left() == 3


def test_it_needs_a_dataset_on_record_and_a_reserve(ledger):
    with pytest.raises(LedgerMismatch, match="register"):
        DailyReserve(ledger, "other", ReservePrice(1, [1], max_auctions=1))
    with pytest.raises(InvalidParameter, match="ReservePrice"):
        DailyReserve(ledger, "bids", object())


def test_the_script_tells_its_story(capsys):
    place = Path(__file__).parents[2] / "examples" / "games" / "reserve.py"
    spec = importlib.util.spec_from_file_location("reserve_script", place)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(days=3, auctions=2000)
    told = capsys.readouterr().out
    assert "recalled, free" in told
    assert "is used up: asked" in told
    assert max(map(len, told.splitlines())) <= 80


def test_what_is_no_reader_costs_nothing_and_what_is_no_log_is_told(tmp_path):
    ledger = Ledger.open(tmp_path / "bids.ledger")
    ledger.register("bids", {"unit": "bidder", "version": None}, Budget(1))
    daily = DailyReserve(ledger, "bids", ReservePrice("0.1", [1, 2], max_auctions=1))
    log = ([1, 1], ["a", "b"], [1.0, 2.0])
    with pytest.raises(InvalidParameter, match="read must be a function"):
        daily.learn("2026-03-01", log)
    assert ledger.balance("bids").spent == 0
    with pytest.raises(InvalidValue, match="a tuple of three columns"):
        daily.learn("2026-03-01", lambda: list(log))
    with pytest.raises(InvalidParameter, match="an open Ledger"):
        DailyReserve("bids.ledger", "bids", daily.reserve)
    assert daily.learn("2026-03-02", lambda: log) in (1.0, 2.0)
