"""`Ledger`: the only state of the system, and the only way to pay."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from sfumato.errors import InvalidParameter, LedgerMismatch, LedgerTampered, LedgerUnusable, Spent
from sfumato.ledger.acts import Acts
from sfumato.ledger.allotment import promised
from sfumato.ledger.anchor import Mark, check_end
from sfumato.ledger.balance import Balance, balance_of
from sfumato.ledger.blocks import BlocksOf
from sfumato.ledger.book import Account, Book
from sfumato.ledger.budget import Budget
from sfumato.ledger.chain import Row, plain, text
from sfumato.ledger.memo import Memo
from sfumato.ledger.names import alike
from sfumato.ledger.opening import Opened, Wish, opened
from sfumato.ledger.receipt import Dataset, Receipt
from sfumato.ledger.right import Right, granted
from sfumato.ledger.rules import (
    Draft,
    account_of,
    analyst_of,
    changes,
    declared,
    distinct,
    named,
)
from sfumato.ledger.turns import turn
from sfumato.ledger.verification import Verification, audit
from sfumato.loss import PrivacyLoss
from sfumato.random import salt, token

__all__ = ["Ledger"]

_PAGE = 1000
_LARGEST_PAYLOAD = 2**30


class Ledger(Acts):
    """Budgets, debits and answers, in a chain of receipts that cannot be rewritten unnoticed.

    Open one with `Ledger.open`. It may be used from several threads, from several processes and after a fork.

    Privacy:
        Claim: a `Right` from `debit` exists only if its loss was admitted by the dataset's filter (see
        `Budget`) and is durable: committed by the database with full sync, then anchored outside it. Whatever
        is killed whenever, what was released is on record. A receipt opens nothing (see `Right`).
        Conditions: the database keeps what it says it committed; key and anchor are kept from whoever can
        write to the database.
    """

    def __init__(self, opened: Opened) -> None:
        """Made by `Ledger.open`."""
        self._store, self._chain, self._anchor = opened.store, opened.chain, opened.anchor
        self._book: Book = opened.book
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._fleeting = opened.fleeting
        self._closed = False
        self._survive_forks()

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
        return cls(opened(where, None if state is None else Path(state), wish))

    @classmethod
    def inspect(cls, where: str | Path, *, state: str | Path | None = None) -> Verification:
        """What `verify` finds, also where `open` would refuse."""
        try:
            wish = Wish(create=False, follow=False)
            found = opened(where, None if state is None else Path(state), wish)
        except LedgerTampered as wrong:
            return Verification((str(wrong),), 0, "")
        try:
            return audit(found.store, found.chain, found.anchor)
        finally:
            found.store.close()

    # ── reading

    def datasets(self) -> list[Dataset]:
        """All datasets, in the order of their registration."""
        with self._reading() as book:
            return [account.dataset() for account in book.accounts.values()]

    def balance(self, dataset: str, analyst: str | None = None) -> Balance:
        """What is spent and left of a dataset's budget, or of one analyst's share of it."""
        with self._reading() as book:
            account = account_of(book, dataset)
            who = analyst_of(analyst, account)
            until = book.number
            return balance_of(account, who, lambda: self._losses(account.name, who, until))

    def promised(self, dataset: str, besides: Collection[str] = ()) -> dict[str, Fraction]:
        """What allotments leave to others than these analysts, in what the gate adds up: unit → amount."""
        with self._reading() as book:
            account = account_of(book, dataset)
            others = {text(each, "analyst") for each in ([besides] if isinstance(besides, str) else besides)}
            return dict(zip(account.cap.units, promised(account, others), strict=True))

    def entries(self, dataset: str | None = None) -> Iterator[Receipt]:
        """All receipts in order, or those of one dataset."""
        wanted = None if dataset is None else text(dataset, "dataset")
        with self._reading() as book:
            until, first = book.number, 1
        while first <= until:
            with self._reading():
                rows = self._store.rows(first, _PAGE)
            if not rows:
                return
            for row in rows:
                if row.number <= until and wanted in (None, row.dataset):
                    yield Receipt.of(row)
            first = rows[-1].number + 1

    def export(self) -> list[dict[str, Any]]:
        """All receipts as plain data."""
        return [receipt.to_dict() for receipt in self.entries()]

    def recall(self, dataset: str, fingerprint: str) -> list[tuple[Receipt, bytes]]:
        """Earlier answers to a question, newest first: the receipt of each debit and what was recorded."""
        with self._reading() as book:
            name, question = account_of(book, dataset).name, text(fingerprint, "fingerprint")
            found = []
            for release in self._store.about(name, question, "release"):
                self._checked(release.number)
                facts = json.loads(release.body)
                payload = self._store.payload(facts["debit"])
                if payload is None or hashlib.sha256(payload).hexdigest() != facts["digest"]:
                    raise LedgerTampered(
                        f"The answer recorded by receipt {release.number} is not what was written. "
                        "Restore the ledger from a copy that is whole."
                    )
                found.append((Receipt.of(self._checked(facts["debit"])), payload))
            return found

    def verify(self) -> Verification:
        """Reads the whole ledger again: every mac, every loss through its gate, every answer, the anchor."""
        with self._lock:
            self._usable()
            return audit(
                self._store, self._chain, self._anchor, known=Mark(self._book.number, self._book.mac)
            )

    # ── paying

    def debit(
        self,
        dataset: str,
        loss: PrivacyLoss,
        *,
        fingerprint: str,
        analyst: str | None = None,
        memo: Memo | Mapping[str, Any] | None = None,
        reads: Iterable[str] | None = None,
        resumable: bool = False,
    ) -> Right:
        """Pays for a release, and gives the right to read for it. The debit is durable before it returns.

        Args:
            dataset: its name.
            loss: what the release costs.
            fingerprint: of the question, under which `recall` finds its answer.
            analyst: who asks; None is nobody in particular, whom only the dataset's budget limits.
            memo: what it is for, in public words, such as the query, or other public facts; never a value
                from the data.
            reads: the fingerprints of what it lets this process read, once each; by default the question's.
            resumable: whether a fit is paid for that takes blocks (`Right.block`), also in another process
                after this one has died. Without a block nothing is read for it.

        Raises:
            BudgetExceeded: if it does not fit. Nothing was spent.
            AccessDenied: if the budget is closed or the analyst revoked. Nothing was spent.
            UnsupportedLoss: if the loss holds for other neighbours than the dataset's unit has.
        """
        if not isinstance(loss, PrivacyLoss):
            raise InvalidParameter(f"A debit takes a loss, not {type(loss).__name__}; pass mechanism.loss.")
        question = text(fingerprint, "fingerprint")
        noted = memo.to_dict() if isinstance(memo, Memo) else memo or {}
        facts, written = plain(noted, "memo"), loss.to_dict()
        with self._writing() as draft:
            account = account_of(draft.book, dataset)
            who = analyst_of(analyst, account)
            account.refuse_others(loss)
            paid = account.priced(loss, who)
            units = account.cap.units
            draft.add(
                "debit",
                account.name,
                analyst=who,
                fingerprint=question,
                loss=written,
                price=named(units, paid.price),
                totals=named(units, paid.totals),
                analyst_totals=named(units, paid.analyst_totals),
                adjacency=paid.adjacency,
                memo=facts,
                **({"resumable": True} if resumable else {}),
            )
        if resumable:
            return granted(Receipt.of(draft.rows[0]), (), blocks=self._blocks)
        return granted(Receipt.of(draft.rows[0]), (question,) if reads is None else reads)

    def record(self, right: Right, payload: bytes) -> None:
        """Keeps the answer that a debit paid for, so that `recall` finds it. Once for each debit."""
        if not isinstance(right, Right):
            raise InvalidParameter("record takes the right that debit gave.")
        right.check_process()
        receipt = right.receipt
        if not isinstance(payload, bytes) or len(payload) > _LARGEST_PAYLOAD:
            raise InvalidParameter("payload must be bytes, at most a gibibyte.")
        with self._writing() as draft:
            row = self._checked(receipt.number)
            if row.mac.hex() != receipt.mac:
                raise LedgerMismatch("This receipt is not from this ledger.")
            if self._store.payload(row.number) is not None:
                raise Spent(f"The answer of receipt {row.number} is already recorded.")
            self._store.keep(row.number, payload)
            draft.add(
                "release",
                row.dataset,
                analyst=row.analyst,
                fingerprint=row.fingerprint,
                debit=row.number,
                digest=hashlib.sha256(payload).hexdigest(),
                size=len(payload),
            )

    @property
    def _blocks(self) -> BlocksOf:
        return BlocksOf(self._store, self._checked, self._reading, self._writing)

    def resume(self, dataset: str, fingerprint: str) -> Right | None:
        """The right to go on with a fit that was paid for, is unfinished, and has something left to take."""
        with self._reading() as book:
            name, question = account_of(book, dataset).name, text(fingerprint, "fingerprint")
            found = self._blocks.unfinished(name, question)
        return None if found is None else granted(found, (), blocks=self._blocks)

    @contextlib.contextmanager
    def turn(self, dataset: str, fingerprint: str) -> Iterator[None]:
        """One thread of one process at a time for a question: the others wait, and then find its answer.

        A process that dies gives its turn back, whatever it has paid.
        """
        names = (self._chain.ledger, text(dataset, "dataset"), text(fingerprint, "fingerprint"))
        with turn(names, self._claim, self._give_back):
            yield

    def _claim(self, place: int) -> bool:
        with self._lock:
            self._usable()
            return self._store.claim(place)

    def _give_back(self, place: int) -> None:
        with self._lock:
            self._store.give_back(place)

    def register(self, name: str, declaration: Mapping[str, Any], budget: Budget | None) -> Dataset:
        """The dataset of this name: as it is on record, or new with this budget.

        Args:
            name: its identity, for good; not that of a file, a view or a content.
            declaration: "unit", "version" and everything else that the steward promises, as plain data.
            budget: None means the one on record.

        Raises:
            LedgerMismatch: if the budget or the unit is another than on record, or something else but the
                version is and something was spent.
        """
        dataset, wanted = text(name, "name"), declared(declaration)
        if budget is not None and not isinstance(budget, Budget):
            raise InvalidParameter(f"budget must be a Budget, not {type(budget).__name__}.")
        with self._reading() as book:
            known = book.accounts.get(dataset)
            if known is not None and not changes(known, wanted, budget):
                return known.dataset()
        with self._writing() as draft:
            known = draft.book.accounts.get(dataset)
            self._decided(dataset, known)
            if known is None:
                distinct(draft.book, dataset)
                if budget is None:
                    raise LedgerMismatch(
                        f"The ledger has no budget for {dataset!r} yet: give one when it is first used."
                    )
                draft.add("register", dataset, id=token(), salt=salt().hex(), declaration=wanted)
                draft.add("open", dataset, budget=budget.to_dict())
            else:
                for kind in changes(known, wanted, budget):
                    version = {"version": wanted.get("version")}
                    new = wanted if kind == "redeclare" else known.declaration | version
                    draft.add(kind, dataset, declaration=new)
        return draft.book.accounts[dataset].dataset()

    def _decided(self, dataset: str, known: Account | None) -> None:
        """Whether whoever holds this ledger may put a budget or a declaration on record: a steward may."""

    # ── how it is done

    def close(self) -> None:
        """Lets go of the database; safe to call twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _usable(self) -> None:
        if self._closed:
            raise LedgerUnusable("This ledger is closed: open it again.")
        if self._process != os.getpid():
            raise LedgerUnusable(
                "A ledger in memory cannot be shared with a forked process, or each would spend the whole "
                "budget: give it a file."
            )

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Book]:
        """The book as of now, and the only thread that looks at it."""
        with self._lock:
            self._usable()
            self._catch_up()
            yield self._book

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Draft]:
        """A draft of receipts; on leaving: announced, committed, taken in, anchored, in this order."""
        with self._lock:
            self._usable()
            pending = None
            try:
                self._store.begin()
                self._catch_up()
                check_end(self._anchor, Mark(self._book.number, self._book.mac), self._store.name)
                draft = Draft(self._book, self._chain, self._store)
                yield draft
                if draft.rows:
                    last = draft.rows[-1]
                    now = Mark(self._book.number, self._book.mac)
                    pending = self._anchor.prepare(now, Mark(last.number, last.mac))
                    self._store.commit()
                else:
                    self._store.rollback()
            except BaseException:
                self._store.rollback()
                raise
            self._book.follow(draft.rows)
            if pending is not None:
                pending.settle()

    def _catch_up(self) -> None:
        """Checks and takes in what other threads' and processes' ledgers have written since."""
        book = self._book
        while True:
            rows = self._store.rows(max(book.number, 1), _PAGE)
            if book.number and (not rows or (rows[0].number, rows[0].mac) != (book.number, book.mac)):
                raise LedgerTampered(
                    f"{self._store.name} has lost or changed receipt {book.number}: an older copy was put in "
                    "its place, or rows were cut off. Restore the latest copy."
                )
            book.follow(rows[1:] if book.number else rows)
            if len(rows) < _PAGE:
                return

    def _checked(self, number: int) -> Row:
        """One receipt, its mac checked."""
        rows = self._store.rows(max(number - 1, 1), 2)
        previous = rows[0].mac if number > 1 and rows else self._chain.start
        row = rows[-1] if rows else None
        if row is None or row.number != number or not self._chain.holds(row, previous):
            raise LedgerTampered(
                f"Receipt {number} is missing or not what was written. Restore the ledger from a copy that "
                "is whole."
            )
        return row

    def _losses(self, dataset: str, analyst: str | None, until: int) -> list[PrivacyLoss]:
        found: list[PrivacyLoss] = []
        whose = None if analyst is None else alike(analyst)
        first = 1
        while first <= until:
            with self._reading():
                rows = self._store.rows_of(dataset, "debit", first, _PAGE)
            for row in rows:
                if row.number <= until and (whose is None or whose == alike(row.analyst or "")):
                    loss = Receipt.of(row).loss
                    if loss is not None:
                        found.append(loss)
            if len(rows) < _PAGE:
                break
            first = rows[-1].number + 1
        return found

    def _survive_forks(self) -> None:
        """From now on a forked child has this ledger with a lock and a connection of its own."""
        _living.add(self)

    def _forked(self) -> None:
        """In a forked child: a lock and a connection of its own."""
        self._lock = threading.RLock()
        self._book = Book(self._chain)  # another thread may have been at work on the old one
        if not self._fleeting:
            self._store.abandon()
            self._process = os.getpid()


_living: weakref.WeakSet[Ledger] = weakref.WeakSet()


def _after_fork() -> None:
    for ledger in list(_living):
        ledger._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
