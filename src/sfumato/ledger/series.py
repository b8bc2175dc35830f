"""Series: debits that pay for many points in advance; each point is read, recorded and shown in its turn."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from sfumato.errors import AccessDenied, BudgetExceeded, LedgerMismatch, LedgerTampered
from sfumato.ledger.book import Book
from sfumato.ledger.chain import Row
from sfumato.ledger.journal import Journal
from sfumato.ledger.names import alike
from sfumato.ledger.receipt import Dataset, Receipt
from sfumato.ledger.right import Right, granted
from sfumato.ledger.rules import account_of

__all__ = ["SeriesOf", "horizon_of", "problems_of_point"]

_PURPOSE = "noise of a series"


class SeriesOf:
    """The series of one ledger: who paid for one, how far it is, and its points.

    Privacy:
        Claim: of each point of a series at most one answer is ever on record, in order, and none beyond what
        was paid for; and none is lost. A point is recorded within one transaction that knows how many there
        are, durable and anchored before it returns. Until then nothing of it was shown, so that a process
        which is killed before it leaves a point that is read again, by whoever goes on. An analyst's counter
        has that analyst's series and no others, and reads for a point only while the dataset is declared as
        it was when the reader's session was opened.
    """

    __slots__ = ("_analyst", "_journal")

    def __init__(self, journal: Journal, analyst: str | None = None) -> None:
        """Those of an analyst; None: all, as the steward's ledger has them."""
        self._journal, self._analyst = journal, analyst

    def begun(self, dataset: str, fingerprint: str, analyst: str | None) -> list[Receipt]:
        """The debits of an analyst for this series, newest first.

        Raises:
            AccessDenied: for another analyst than the counter's.
        """
        self._refuse_others(analyst)
        with self._journal.reading():
            return [
                Receipt.of(self._journal.row(row.number))
                for row in self._journal.store.about(dataset, fingerprint, "debit")
                if alike(row.analyst or "") == alike(analyst or "") and horizon_of(row)
            ]

    def length(self, receipt: Receipt) -> int:
        """How many points are on record."""
        with self._journal.reading() as book:
            return _length(book, self._row(receipt))

    def secret(self, receipt: Receipt) -> bytes:
        """32 bytes that belong to a series, the same each time, which nobody knows without the ledger's key.

        They are no part of the database or of a receipt.
        """
        row = self._row(receipt)
        return bytes.fromhex(self._journal.chain.seal(_PURPOSE, f"{row.number} {row.mac.hex()}"))

    def right(
        self,
        receipt: Receipt,
        point: int,
        reads: Iterable[str],
        *,
        known: Dataset | None = None,
        many: int = 1,
    ) -> Right:
        """The right to read for the next point, or for several that come next.

        Args:
            receipt: Of the debit that paid for the series.
            point: Which point; the first of several.
            reads: The fingerprints of what it lets this process read, once each.
            known: The dataset as the reader's session has it; None: whatever is on record will do.
            many: How many points it is for.

        Raises:
            AccessDenied: if the budget is closed or the analyst revoked.
            BudgetExceeded: for a point beyond the last one that was paid for.
            LedgerMismatch: if another point is next, or the dataset was declared anew since it was `known`.
        """
        with self._journal.reading() as book:
            row = self._row(receipt)
            account = account_of(book, row.dataset)
            account.refuse_closed(row.analyst)
            if known is not None:
                account.refuse_stale(known)
            length = _length(book, row)
            _refuse(row, point, length)
            if point + many > horizon_of(row):
                raise _ended(row)
        return granted(Receipt.of(row), reads)

    def record(self, right: Right, point: int, payload: bytes) -> None:
        """Keeps a point, durably: once this returns it may be shown.

        Raises:
            LedgerMismatch: if somebody else has recorded it.
        """
        right.check_process()
        with self._journal.writing() as draft:
            row = self._row(right.receipt)
            account_of(draft.book, row.dataset).refuse_closed(row.analyst)
            _refuse(row, point, _length(draft.book, row))
            draft.add(
                "point",
                row.dataset,
                analyst=row.analyst,
                fingerprint=row.fingerprint,
                debit=row.number,
                point=point,
                digest=hashlib.sha256(payload).hexdigest(),
                size=len(payload),
            )
            self._journal.store.keep(draft.rows[-1].number, payload)

    def points(self, receipt: Receipt, first: int = 0, end: int | None = None) -> list[bytes]:
        """What was recorded of a series from a point on, in order, up to the one before `end`.

        Raises:
            LedgerTampered: if something is missing or is not what was written.
        """
        store = self._journal.store
        with self._journal.reading() as book:
            row = self._row(receipt)
            length = _length(book, row)
            last = length if end is None else min(end, length)
            if first >= last:
                return []
            question = row.dataset, str(row.fingerprint), "point"
            rows = store.about(*question, skip=length - last, most=last - first)
            own = [each for each in reversed(rows) if each.facts["debit"] == row.number]
            if [each.facts["point"] for each in own] != [*range(first, last)]:
                # Two series of one question: those of the other are among them.
                every = reversed(store.about(*question))
                own = [each for each in every if each.facts["debit"] == row.number][first:last]
            kept = dict(store.payloads([each.number for each in own]))
            found = list[bytes]()
            for place, number in enumerate([each.number for each in own], start=first):
                facts, payload = self._journal.row(number).facts, kept.get(number)
                same = payload is not None and hashlib.sha256(payload).hexdigest() == facts["digest"]
                if payload is None or not same or facts["point"] != place:
                    raise _edited(number)
                found.append(payload)
            if len(found) != last - first:
                raise _edited(row.number)
            return found

    def _row(self, receipt: Receipt) -> Row:
        row = self._journal.row(receipt.number)
        if row.mac.hex() != receipt.mac or not horizon_of(row):
            raise LedgerMismatch("This receipt is not of a series on this ledger.")
        self._refuse_others(row.analyst)
        return row

    def _refuse_others(self, analyst: str | None) -> None:
        if self._analyst is not None and alike(analyst or "") != alike(self._analyst):
            raise AccessDenied(
                f"This session has the series of {self._analyst!r} and no others: ask for one of your own."
            )


def horizon_of(row: Row) -> int:
    """How many points a receipt has paid for; 0 for every other receipt."""
    points = row.facts.get("points") if row.kind == "debit" else None
    return points if type(points) is int else 0


def problems_of_point(row: Row, recorded: dict[int, tuple[int, int]]) -> list[str]:
    """What is wrong with a point, with how many there are and may be of each series so far."""
    debit, point = row.facts["debit"], row.facts["point"]
    length, horizon = recorded.get(debit, (0, 0))
    if point != length or length >= horizon:
        return [f"Receipt {row.number} has a point of a series that was not paid for, or not the next one."]
    recorded[debit] = length + 1, horizon
    return []


def _length(book: Book, debit: Row) -> int:
    """How many points a series has, by the book: one that is cut out of the database counts."""
    return account_of(book, debit.dataset).lengths.get(debit.number, 0)


def _refuse(debit: Row, point: int, length: int) -> None:
    if length >= horizon_of(debit):
        raise _ended(debit)
    if point != length:
        raise LedgerMismatch(f"Point {length} of the series is next, not {point}: open it again.")


def _ended(debit: Row) -> BudgetExceeded:
    return BudgetExceeded(
        f"The series ends here: {horizon_of(debit)} points were paid for, and none beyond them. Begin "
        "another one for what comes after."
    )


def _edited(number: int) -> LedgerTampered:
    return LedgerTampered(
        f"The point recorded by receipt {number} is missing or is not what was written. Restore the ledger "
        "from a copy that is whole."
    )
