"""`Journal`: the chain of receipts in its database, followed and written to by one thread at a time."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator
from heapq import merge
from operator import attrgetter

from sfumato.errors import LedgerTampered, LedgerUnusable
from sfumato.ledger.anchor import Mark, check_end
from sfumato.ledger.book import Book
from sfumato.ledger.chain import Row
from sfumato.ledger.kept import Kept
from sfumato.ledger.opening import Opened
from sfumato.ledger.readback import refuse_unreadable
from sfumato.ledger.rules import Draft
from sfumato.ledger.spellings import Spellings

__all__ = ["Journal"]

_PAGE = 1000
_FEW = 100  # receipts that are read first: who looks for one, or a page, often has enough


class Journal:
    """The one state behind a ledger, and behind whatever pays from it or acts on it.

    It knows how receipts are read and written and nothing of who may write which: `Counter`, `Ledger` and
    `Steward` hold it and decide that. It may be used from several threads and after a fork.

    Attributes:
        store: The database.
        chain: What seals receipts.
        anchor: Where the end of the chain is remembered outside the database.
        checkpoint: Where what the receipts add up to is kept, so that opening is quick.
        kept: The answers that were read lately; to be asked within `reading`.
    """

    def __init__(self, opened: Opened) -> None:
        self.store, self.chain, self.anchor = opened.store, opened.chain, opened.anchor
        self.checkpoint = opened.checkpoint
        self._book: Book = opened.book
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._fleeting = opened.fleeting
        self._closed = self._anew = False
        self.kept = Kept(self.store, self.row)
        self._spellings = Spellings(self.store)
        _living.add(self)

    def close(self) -> None:
        """Lets go of the database; safe to call twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self.store.close()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Book]:
        """The book as of now, and the only thread that looks at it."""
        with self._lock:
            self._usable()
            self._catch_up()
            yield self._book

    @contextlib.contextmanager
    def writing(self, *, answer: bool = False) -> Iterator[Draft]:
        """A draft of receipts; on leaving: read back, announced, committed, taken in, anchored, in turn.

        Args:
            answer: Whether it is the receipt of an answer, which is committed at once and synced with what
                is next: nothing was spent with it, so that a power cut may take it, and the anchor does not
                have it (see `Held`).
        """
        pending = None
        with self._lock:
            self._usable()
            try:
                self.store.begin(synced=not answer)
                self._catch_up()
                check_end(self.anchor, self._book.head, self._book.due, self.store.name)
                draft = Draft(self._book, self.chain, self.store)
                yield draft
                if answer and any(row.kind != "release" for row in draft.rows):
                    raise LedgerUnusable("Only the receipt of an answer may be synced later.")
                refuse_unreadable(self._book, draft.rows, self.chain)
                if draft.rows and not answer:
                    last = draft.rows[-1]
                    pending = self.anchor.prepare(self._book.due, Mark(last.number, last.mac))
                if draft.rows:
                    self.store.commit()
                else:
                    self.store.rollback()
            except BaseException:
                self.store.rollback()
                raise
            self._take_in(draft.rows)
        if pending is not None:
            pending.settle()  # while other threads go on: who comes next marks this receipt, too
            with self._lock:
                self.checkpoint.keep(self._book)

    def row(self, number: int) -> Row:
        """One receipt, its mac checked."""
        rows = self.store.rows(max(number - 1, 1), 2 if number > 1 else 1)
        previous = rows[0].mac if number > 1 and rows else self.chain.start
        row = rows[-1] if rows else None
        if row is None or row.number != number or not self.chain.holds(row, previous):
            raise LedgerTampered(
                f"Receipt {number} is missing or not what was written. Restore the ledger from a copy that "
                "is whole."
            )
        return row

    def rows(
        self,
        until: int,
        *,
        dataset: str | None = None,
        analyst: str | None = None,
        kind: str | None = None,
        after: int = 0,
        newest: bool = False,
    ) -> Iterator[Row]:
        """Receipts up to one, all or some, in order or newest first; between pages others may write.

        An analyst's are those of all spellings of the name.
        """
        first = max(after, 0) + 1
        if analyst is None:
            return self._pages(first, until, dataset=dataset, kind=kind, newest=newest)
        with self.reading():
            spellings = self._spellings.of(analyst)
        each = (self._pages(first, until, analyst=name, kind=kind, newest=newest) for name in spellings)
        own = merge(*each, key=attrgetter("number"), reverse=newest)
        # The dataset is no part of the statement, which could then go through all receipts of that instead.
        return (row for row in own if dataset is None or row.dataset == dataset)

    def _pages(
        self,
        first: int,
        last: int,
        *,
        dataset: str | None = None,
        analyst: str | None = None,
        kind: str | None = None,
        newest: bool,
    ) -> Iterator[Row]:
        most = min(_FEW, _PAGE)
        while first <= last:
            with self.reading():
                rows = self.store.rows_of(
                    first, most, last=last, dataset=dataset, analyst=analyst, kind=kind, newest=newest
                )
            yield from rows
            if len(rows) < most:
                return
            first, last = (first, rows[-1].number - 1) if newest else (rows[-1].number + 1, last)
            most = _PAGE

    def debits(self, dataset: str, until: int, number: int) -> Iterator[Row]:
        """The `number` debits of a dataset up to a receipt, checked: for a figure that is made of them.

        Each is what was written after the mac that stands before it, and there are as many as the book has
        counted. So they are those very debits: a mac covers the number, the kind and the dataset, too.

        Raises:
            LedgerTampered: while they are read, if one was changed, or at the end, if one is missing.
        """
        last = found = 0
        while last < until:
            with self.reading():
                rows = self.store.debits_of(dataset, last + 1, _PAGE)
            for row, before in rows:
                if row.number > until:
                    break
                if row.number <= last or before is None or not self.chain.holds(row, before):
                    raise _edited(f"Receipt {row.number}, or the one before it,", dataset)
                last, found = row.number, found + 1
                yield row
            if len(rows) < _PAGE or rows[-1][0].number > until:
                break
        if found != number:
            raise _edited(f"One of the {number} debits", dataset)

    def refuse_edits(self) -> None:
        """Checks every receipt from the first: for acts that go by what old receipts say."""
        with self.reading() as book:
            whole = Book(self.chain)
            whole.follow(self.store.walk(1))
            if (whole.number, whole.mac) != (book.number, book.mac):
                raise LedgerTampered(
                    f"{self.store.name} was changed while it was read. Restore the latest copy."
                )

    @contextlib.contextmanager
    def still(self) -> Iterator[Mark]:
        """Where the chain ended when it was last followed; no thread writes meanwhile."""
        with self._lock:
            self._usable()
            yield self._book.head

    def claim(self, place: int) -> bool:
        """Takes the lock of a number against other processes, or says that one of them has it."""
        with self.still():
            return self.store.claim(place)

    def give_back(self, place: int) -> None:
        """Gives that lock back."""
        with self._lock:
            self.store.give_back(place)

    def _usable(self) -> None:
        if self._closed:
            raise LedgerUnusable("This ledger is closed: open it again.")
        if self._process != os.getpid():
            raise LedgerUnusable(
                "A ledger in memory cannot be shared with a forked process, or each would spend the whole "
                "budget: give it a file."
            )

    def _catch_up(self) -> None:
        """Checks and takes in what other threads' and processes' ledgers have written since."""
        if self._anew:
            self._book, self._anew = self.checkpoint.resume(self.store), False
        book = self._book
        while True:
            rows = self.store.rows(max(book.number, 1), _PAGE)
            if book.number and (not rows or (rows[0].number, rows[0].mac) != (book.number, book.mac)):
                raise LedgerTampered(
                    f"{self.store.name} has lost or changed receipt {book.number}: an older copy was put in "
                    "its place, or rows were cut off. Restore the latest copy."
                )
            self._take_in(rows[1:] if book.number else rows)
            if len(rows) < _PAGE:
                return

    def _take_in(self, rows: list[Row]) -> None:
        self.kept.follow(rows)
        self._spellings.follow(rows)
        self._book.follow(rows)

    def _forked(self) -> None:
        """In a forked child: a lock and a connection of its own."""
        self._lock = threading.RLock()
        self.kept.clear()  # another thread may have been at work on it
        self._spellings.clear()
        self._book, self._anew = Book(self.chain), True  # another thread may have been at work on the old one
        if not self._fleeting:
            self.store.abandon()
            self._process = os.getpid()


def _edited(what: str, dataset: str) -> LedgerTampered:
    return LedgerTampered(
        f"{what} is missing or not what was written, so that what was spent on {dataset} cannot be composed "
        "again. `sfumato ledger verify` finds what was changed; restore the ledger from a copy that is whole."
    )


_living: weakref.WeakSet[Journal] = weakref.WeakSet()


def _after_fork() -> None:
    for journal in list(_living):
        journal._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
