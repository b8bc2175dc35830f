"""`Ledger`: the only state of the system, and the only way to pay."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from sfumato.errors import LedgerMismatch, LedgerTampered
from sfumato.ledger.allotment import promised
from sfumato.ledger.budget import Budget
from sfumato.ledger.chain import text
from sfumato.ledger.counter import Counter
from sfumato.ledger.gates import refuse_unfit
from sfumato.ledger.journal import Journal
from sfumato.ledger.names import alike
from sfumato.ledger.opening import Opened, Wish, opened
from sfumato.ledger.receipt import Dataset, Receipt
from sfumato.ledger.rules import account_of, changes, distinct
from sfumato.ledger.verification import Verification, audit
from sfumato.random import salt, token

__all__ = ["Ledger"]


class Ledger(Counter):
    """Budgets, debits and answers, in a chain of receipts that cannot be rewritten unnoticed.

    Open one with `Ledger.open`. It may be used from several threads, from several processes and after a fork.
    It pays in any name, reads, and registers datasets; the steward's acts are `Steward(ledger)`.
    """

    def __init__(self, opened: Opened) -> None:
        """Made by `Ledger.open`."""
        self._begin(Journal(opened), None, closes=True)

    @classmethod
    def open(
        cls,
        where: str | Path | None = None,
        *,
        state: str | Path | None = None,
        create: bool = True,
        adopt: bool = False,
    ) -> Self:
        """The ledger at a place, which is made if there is none.

        Args:
            where: a path (SQLite), a `postgresql://…` address, or None for one in memory that dies with the
                process.
            state: the folder of key and anchor; by default beside an SQLite file, and `.sfumato` in the
                current folder for PostgreSQL. Machines that use one ledger name one folder that they share.
            create: make a ledger if there is none.
            adopt: take a chain that is whole although its anchor is lost. A steward's decision: receipts that
                were cut off at the end are not noticed then.

        Raises:
            LedgerTampered: if the chain is broken, or the database is older than its anchor.
            LedgerUnusable: if it cannot be opened, reached or understood.
        """
        wish = Wish(create=create, adopt=adopt)
        parts = opened(where, None if state is None else Path(state), wish)
        ledger = cls(parts)
        if parts.adopted:
            ledger._bind_adopted()
        return ledger

    def _bind_adopted(self) -> None:
        """Fixes what is declared about datasets without a debit: one may have been cut off."""
        with self._journal.writing() as draft:
            for name, account in draft.book.accounts.items():
                if not account.bound:
                    draft.add("adopt", name, reason="opened without its anchor: debits may have been cut off")

    @classmethod
    def inspect(
        cls,
        where: str | Path,
        *,
        state: str | Path | None = None,
        progress: Callable[[float, str], None] | None = None,
    ) -> Verification:
        """What `verify` finds, also where `open` would refuse."""
        try:
            wish = Wish(create=False, follow=False)
            parts = opened(where, None if state is None else Path(state), wish)
        except LedgerTampered as wrong:
            return Verification((str(wrong),), 0, "")
        try:
            return audit(parts.store, parts.chain, parts.anchor, parts.checkpoint, progress=progress)
        finally:
            parts.store.close()

    @property
    def number(self) -> int:
        """The number of the last receipt, 0 before the first."""
        with self._journal.reading() as book:
            return book.number

    def analysts(self, dataset: str) -> list[str]:
        """Everybody whom a dataset's budget knows, each in one spelling, in the order they came in."""
        with self._journal.reading() as book:
            first = dict[str, str]()
            for name in account_of(book, dataset).seats:
                first.setdefault(alike(name), name)
            return list(first.values())

    def accesses(self) -> Iterator[Receipt]:
        """What was done about accounts of the server, in order."""
        until = self.number
        for row in self._journal.rows(until, dataset="", kind="access"):
            yield Receipt.of(row)

    def promised(self, dataset: str, besides: Collection[str] = ()) -> dict[str, Fraction]:
        """What allotments leave to others than these analysts, in what the gate adds up: unit → amount."""
        with self._journal.reading() as book:
            account = account_of(book, dataset)
            others = {text(name, "analyst") for name in ([besides] if isinstance(besides, str) else besides)}
            return dict(zip(account.cap.units, promised(account, others), strict=True))

    def _decide(
        self, dataset: str, wanted: dict[str, Any], budget: Budget | None, chosen_by: str | None
    ) -> Dataset:
        """Puts a dataset on record with its budget, or what is declared anew about one."""
        with self._journal.writing() as draft:
            known = draft.book.accounts.get(dataset)
            if known is None:
                distinct(draft.book, dataset)
                if budget is None:
                    raise LedgerMismatch(
                        f"The ledger has no budget for {dataset!r} yet: give one when it is first used."
                    )
                refuse_unfit(dataset, wanted, budget)
                chooses = {} if chosen_by is None else {"chosen_by": text(chosen_by, "chosen_by")}
                draft.add("register", dataset, id=token(), salt=salt().hex(), declaration=wanted, **chooses)
                draft.add("open", dataset, budget=budget.to_dict())
            else:
                for kind, facts in changes(known, wanted, budget, chosen_by):
                    draft.add(kind, dataset, **facts)
        return draft.book.accounts[dataset].dataset()
