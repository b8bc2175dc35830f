"""Blocks: parts of a debit that a fit which can be resumed takes in advance, each on record for good."""

from __future__ import annotations

from fractions import Fraction

from sfumato.errors import BudgetExceeded, LedgerMismatch
from sfumato.ledger.book import Book
from sfumato.ledger.chain import Row
from sfumato.ledger.journal import Journal
from sfumato.ledger.names import alike
from sfumato.ledger.receipt import Receipt
from sfumato.ledger.rules import account_of
from sfumato.numeric.exact import read_fraction

__all__ = ["BlocksOf", "can_be_resumed", "problems_of"]


class BlocksOf:
    """The blocks of one ledger's debits."""

    __slots__ = ("_journal",)

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def left(self, receipt: Receipt) -> Fraction:
        """The part of a debit that no block has taken."""
        with self._journal.reading() as book:
            return 1 - _taken(book, self._row(receipt))

    def take(self, receipt: Receipt, share: Fraction) -> Receipt:
        """Writes down that a part is taken, and gives the debit's receipt as it is on record."""
        with self._journal.writing() as draft:
            row = self._row(receipt)
            account_of(draft.book, row.dataset).refuse_closed(row.analyst)
            taken = _taken(draft.book, row) + share
            if taken > 1:
                raise BudgetExceeded(
                    f"This block is beyond what was paid for: {1 - taken + share} of it is left, and {share} "
                    "was asked for."
                )
            draft.add(
                "block",
                row.dataset,
                analyst=row.analyst,
                fingerprint=row.fingerprint,
                debit=row.number,
                share=str(share),
                taken=str(taken),
            )
        return Receipt.of(row)

    def unfinished(self, dataset: str, fingerprint: str, analyst: str | None) -> Receipt | None:
        """The newest debit of an analyst that can be resumed: with something left, and without an answer."""
        for row in self._journal.store.about(dataset, fingerprint, "debit"):
            own = alike(row.analyst or "") == alike(analyst or "")
            if own and can_be_resumed(row) and self._journal.store.payload(row.number) is None:
                with self._journal.reading() as book:
                    known = self._journal.row(row.number)
                    if _taken(book, known) < 1:
                        return Receipt.of(known)
        return None

    def _row(self, receipt: Receipt) -> Row:
        row = self._journal.row(receipt.number)
        if row.mac.hex() != receipt.mac or not can_be_resumed(row):
            raise LedgerMismatch("This receipt is not of a fit on this ledger that can be resumed.")
        return row


def _taken(book: Book, debit: Row) -> Fraction:
    """The part of a debit that blocks took, by the book: a block that is cut out of the database counts."""
    return account_of(book, debit.dataset).taken.get(debit.number, Fraction(0))


def can_be_resumed(row: Row) -> bool:
    """Whether a receipt is the debit of a fit that takes blocks."""
    return row.kind == "debit" and row.facts.get("resumable") is True


def problems_of(row: Row, taken: dict[int, Fraction]) -> list[str]:
    """What is wrong with a block, with what was taken so far of each debit that can be resumed."""
    body = row.facts
    debit, share, total = body["debit"], read_fraction(body["share"]), read_fraction(body["taken"])
    if debit not in taken or share <= 0 or taken[debit] + share != total or total > 1:
        return [f"Receipt {row.number} takes a block that was not paid for."]
    taken[debit] = total
    return []
