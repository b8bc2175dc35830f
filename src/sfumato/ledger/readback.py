"""Whether receipts can be read again, found out before they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sfumato.errors import LedgerUnusable
from sfumato.ledger.account import Account
from sfumato.ledger.book import Book
from sfumato.ledger.chain import Chain, Row
from sfumato.ledger.receipt import Receipt

__all__ = ["refuse_unreadable"]


def refuse_unreadable(book: Book, rows: Sequence[Row], chain: Chain) -> None:
    """Take receipts in as whoever opens the ledger next will, on a copy of what they change.

    One that cannot be taken in would shut everyone out of the ledger for ever, and nobody could take it out
    again: the chain holds it.

    Args:
        book: All receipts before them.
        rows: What is about to be committed, in order.
        chain: What sealed them.

    Raises:
        LedgerUnusable: if one cannot be understood.
    """
    copy = Book(chain)
    copy.number, copy.mac = book.number, book.mac
    for name in {row.dataset for row in rows} & book.accounts.keys():
        analysts = {row.analyst for row in rows if row.dataset == name and row.analyst is not None}
        copy.accounts[name] = _copied(book.accounts[name], analysts)
    for row in rows:
        try:
            copy.take(row)
            Receipt.of(row)
        except Exception:
            raise LedgerUnusable(
                f"The receipt of this {row.kind} could not be read again, so that it was not written; "
                "nothing was spent. What it was given is not what a ledger can hold: check the arguments."
            ) from None


def _copied(account: Account, analysts: set[str]) -> Account:
    """An account to take receipts in on: without what they only add to, which may be long."""
    seats = {name: replace(account.seats[name], reads=set()) for name in analysts & account.seats.keys()}
    return replace(account, given=set(), taken={}, lengths={}, seats=seats, _spellings={})
