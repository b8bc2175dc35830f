"""A reserve price learned again each day, all days paid from one budget, each day paid once."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from numpy.typing import ArrayLike

from sfumato.errors import InvalidParameter, InvalidValue, LedgerMismatch
from sfumato.games.reserve import ReservePrice
from sfumato.ledger import Counter, Dataset, Memo, Right
from sfumato.purchase import Bought, Purchase, buy

__all__ = ["DailyReserve"]


class DailyReserve:
    """A reserve learned again each day, all days paid from one budget, each day paid once.

    Privacy:
        Claim: all reserves ever learned are together within the dataset's budget, where neighbours differ in
        one bidder on all days: days compose, whatever their logs have in common. A day is debited, durably,
        before its log is read; a log that cannot be read stays paid. Source: `Budget`. Conditions: the
        dataset's unit is the bidder. A debit says for which neighbours it holds, so that a budget never adds
        up reserves of both adjacencies.
    """

    __slots__ = ("_known", "_loss", "analyst", "dataset", "ledger", "reserve")

    def __init__(
        self, ledger: Counter, dataset: str, reserve: ReservePrice, *, analyst: str | None = None
    ) -> None:
        """Pay for a reserve from a dataset's budget.

        Args:
            ledger: in which the dataset is registered, its unit the bidder.
            dataset: its name.
            reserve: what is learned each day.
            analyst: who learns, within the limit that the steward has set; None is whoever the ledger belongs
                to, and nobody in particular where that is the steward.

        Raises:
            LedgerMismatch: if the ledger does not know the dataset, or it was declared for other neighbours
                than the reserve's.
        """
        if not isinstance(ledger, Counter):
            raise InvalidParameter("ledger must be an open Ledger: Ledger.open('bids.ledger').")
        if not isinstance(reserve, ReservePrice):
            raise InvalidParameter(f"reserve must be a ReservePrice, not {type(reserve).__name__}.")
        self.ledger, self.dataset, self.reserve = ledger, dataset, reserve
        self.analyst = ledger.whose(analyst)
        self._loss = reserve.loss.parallel(adjacency=reserve.adjacency)  # the same loss, which says for whom
        self._known = self._on_record()
        unit = self._known.declaration["unit"]
        declared = unit.get("adjacency") if isinstance(unit, Mapping) else None
        if declared not in (None, reserve.adjacency):
            raise LedgerMismatch(
                f"{dataset!r} is declared for {declared} neighbours: give the reserve adjacency={declared!r}."
            )

    def learn(
        self, day: str | datetime.date, read: Callable[[], tuple[ArrayLike, ArrayLike, ArrayLike]]
    ) -> float:
        """The reserve learned from a day's log; a day that was learned before is recalled, free and unread.

        Of several threads or processes that learn the same day at once, one pays and reads; the others wait
        for its price.

        Args:
            day: a date, or text such as "2026-03-01".
            read: gives the log: auctions, bidders and bids (a `BidLog`, or a tuple). It is called once the
                day is paid, and not at all where it need not be or cannot be.

        Raises:
            BudgetExceeded: if no day more fits; nothing was spent and nothing read.
            AccessDenied: if the budget is closed or the analyst revoked; nothing was spent and nothing read.
        """
        date = _day(day)
        if not callable(read):
            raise InvalidParameter(
                "read must be a function that gives the log: lambda: (auctions, bidders, bids)."
            )
        question = self._fingerprint(date)

        def answer(right: Right) -> float:
            right.use(question)
            return self.reserve.select(*_columns(read()))

        wanted = Purchase(
            dataset=self.dataset,
            loss=self._loss,
            fingerprint=question,
            memo=Memo("reserve price", date, self.reserve.epsilon),
            answer=answer,
            write=lambda price: json.dumps({"reserve": price}).encode(),
            read_back=lambda kept: float(json.loads(kept)["reserve"]),
            choose=_oldest,
            known=self._known,
        )
        return buy(self.ledger, wanted, self.analyst).answer

    def days_left(self) -> int:
        """How many more days the budget pays for, and the analyst's limit where there is one."""
        budget = self._on_record().budget
        balances = [self.ledger.balance(self.dataset, who) for who in {None, self.analyst}]
        if not all(balance.open for balance in balances):
            return 0
        prices = dict(zip(budget.units, budget.totals(budget.filter().price(self._loss)), strict=True))
        days = [
            int((limit - spent) // prices[unit])
            for balance in balances
            for unit, (spent, limit) in balance.gate.items()
            if prices[unit]
        ]
        return max(min(days), 0)  # a limit may be set below what was spent

    def _on_record(self) -> Dataset:
        for dataset in self.ledger.datasets():
            if dataset.name == self.dataset:
                return dataset
        raise LedgerMismatch(f"The ledger knows no dataset {self.dataset!r}: register it first.")

    def _fingerprint(self, date: str) -> str:
        reserve = self.reserve
        facts = [
            date, str(reserve.epsilon), str(reserve.prices.tick), reserve.prices.ticks,
            reserve.max_auctions, reserve.adjacency, reserve.salt,
        ]  # fmt: skip
        return f"reserve-price/{date}/{hashlib.sha256(json.dumps(facts).encode()).hexdigest()}"


def _oldest(kept: Iterable[Bought[float]]) -> Bought[float] | None:
    """The first price on record: earlier versions could pay twice for a day, and agreed on that one."""
    return next(iter(deque(kept, maxlen=1)), None)


def _columns(log: object) -> tuple[ArrayLike, ArrayLike, ArrayLike]:
    """The three columns of a log, which is paid for by now."""
    if not isinstance(log, tuple) or len(log) != 3:
        raise InvalidValue(
            "read must give a tuple of three columns (auctions, bidders, bids); this day stays paid for."
        )
    return log


def _day(day: str | datetime.date) -> str:
    if isinstance(day, datetime.datetime):
        raise InvalidParameter("day must be a date without a time: day.date().")
    if isinstance(day, datetime.date):
        return day.isoformat()
    try:
        return datetime.date.fromisoformat(day).isoformat()
    except (TypeError, ValueError):
        raise InvalidParameter("day must be a date, or text such as '2026-03-01'.") from None
