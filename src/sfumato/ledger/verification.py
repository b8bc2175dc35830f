"""`Verification`: the whole ledger read again, every loss through its gate, every answer by its digest."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import LedgerTampered, LedgerUnusable, SfumatoError
from sfumato.ledger.anchor import Anchor, Mark, stale
from sfumato.ledger.blocks import can_be_resumed, problems_of
from sfumato.ledger.book import Account, Book
from sfumato.ledger.budget import Budget
from sfumato.ledger.chain import Chain, Row, canonical
from sfumato.ledger.receipt import Receipt, fractions, stored_loss
from sfumato.ledger.seat import settled
from sfumato.ledger.sharing import problems_of_gift, problems_of_read
from sfumato.ledger.store import Store

__all__ = ["Verification", "audit"]

_MOST = 50  # problems worth listing


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification found.

    Attributes:
        problems: one sentence each; empty if all is well.
        entries: how many receipts were read.
        head: the mac of the last one, in hexadecimal.
    """

    problems: tuple[str, ...]
    entries: int
    head: str

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def __str__(self) -> str:
        """One line, or one for each problem."""
        if self.ok:
            return f"{self.entries} receipts, all in order; the last is {self.head[:16]}…"
        return "\n".join(self.problems)


def audit(store: Store, chain: Chain, anchor: Anchor, *, known: Mark | None = None) -> Verification:
    """Reads everything again and believes nothing: neither an earlier look nor the stored sums.

    Args:
        store: the database.
        chain: its key.
        anchor: the mark outside.
        known: the last receipt that an open ledger has seen.
    """
    problems: list[str] = []
    marks = [] if known is None else [known]
    try:
        held = anchor.read()
    except LedgerTampered as wrong:
        problems.append(str(wrong))
    else:
        if held is not None:
            marks.append(held.mark)
        elif anchor.kept:
            problems.append("The anchor is missing: receipts that were cut off could not be noticed.")
    book, entries, trusted = Book(chain), 0, True
    taken: dict[int, Fraction] = {}
    try:
        for row in store.walk(1):
            entries += 1
            if trusted:
                problems += _reading(store, chain, book, row, marks, taken)
                trusted = book.number == row.number
            if len(problems) >= _MOST:
                break
    except LedgerUnusable as wrong:
        problems.append(str(wrong))
    for mark in marks:
        if mark.number > book.number and trusted:
            problems.append(
                f"The ledger ends at receipt {book.number}, but receipt {mark.number} was written: it is an "
                "older copy, or receipts were cut off."
            )
    if not problems:
        problems += _behind(anchor, Mark(book.number, book.mac))
    if not trusted:
        problems.append(f"From receipt {book.number + 1} on nothing can be believed.")
    return Verification(tuple(dict.fromkeys(problems)), entries, book.mac.hex())


def _behind(anchor: Anchor, head: Mark) -> list[str]:
    """Whether the anchor is behind: what it does not announce was written under another one."""
    held = anchor.read()
    if held is None or held.mark.number >= head.number or held.ends_at(head):
        return []
    return [stale(held, head)]


def _reading(
    store: Store, chain: Chain, book: Book, row: Row, marks: list[Mark], taken: dict[int, Fraction]
) -> list[str]:
    """What is wrong with the next receipt. The book has taken it in if its mac holds."""
    try:
        chain.check(row, book.number + 1, book.mac)
    except LedgerTampered as wrong:
        return [str(wrong)]
    problems = [
        f"Receipt {row.number} is not the one that was written: the ledger was rewritten."
        for mark in marks
        if mark.number == row.number and mark.mac != row.mac
    ]
    try:
        if row.kind == "debit":
            problems += _debit(book.accounts[row.dataset], row)
            if can_be_resumed(row):
                taken[row.number] = Fraction(0)
        elif row.kind in ("open", "raise", "redeclare"):
            problems += _fixed(book.accounts[row.dataset], row)
        elif row.kind == "read":
            problems += problems_of_read(store, book.accounts[row.dataset], row)
        elif row.kind == "give":
            problems += problems_of_gift(store, row)
        elif row.kind == "block":
            problems += problems_of(row, taken)
        elif row.kind == "release":
            problems += _release(store, row)
        Receipt.of(row)
        book.take(row)
    except (SfumatoError, KeyError, ValueError, TypeError) as wrong:
        reason = str(wrong) if isinstance(wrong, SfumatoError) else "it cannot be understood"
        problems.append(f"Receipt {row.number}: {reason}")
        if book.number != row.number:
            book.number, book.mac = row.number, row.mac
    return problems


def _debit(account: Account, row: Row) -> list[str]:
    """What is wrong with a debit: its price against its loss today, its sums, its gates."""
    body = json.loads(row.body)
    units, wrong = account.cap.units, []
    price = tuple(fractions(body["price"])[unit] for unit in units)
    loss = stored_loss(canonical(body["loss"]))
    due = account.cap.totals(account.cap.filter().price(loss))
    if any(paid < owed for paid, owed in zip(price, due, strict=True)):
        wrong.append(f"Receipt {row.number} paid less than its loss costs.")
    seat = account.own(row.analyst)  # the gate counts other spellings, too
    sums = (
        ("dataset", account.totals, "totals", account.cap),
        ("analyst", seat.totals(account.cap), "analyst_totals", seat.limit),
    )
    for whose, before, name, budget in sums:
        after = tuple(a + b for a, b in zip(before, price, strict=True))
        stored = fractions(body[name])
        if tuple(settled(total) for total in after) != tuple(stored[unit] for unit in units):
            wrong.append(f"Receipt {row.number} has sums of its {whose} that do not add up.")
        if budget is not None and any(a > b for a, b in zip(after, budget.limits, strict=True)):
            wrong.append(f"Receipt {row.number} overdraws the budget of its {whose}.")
    if account.closed or seat.revoked:
        wrong.append(f"Receipt {row.number} was written when nothing more was allowed.")
    return wrong


def _fixed(account: Account, row: Row) -> list[str]:
    """Whether a receipt changes what the first debit fixed: the unit, the accountant, a budget downwards."""
    if not account.debits:
        return []
    body = json.loads(row.body)
    if row.kind == "redeclare":
        changed = body["declaration"]["unit"] != account.declaration["unit"]
    else:
        budget = Budget.from_dict(body["budget"])
        lower = any(new < old for new, old in zip(budget.limits, account.cap.limits, strict=False))
        changed = row.kind == "open" or budget.units != account.cap.units or lower
    return [f"Receipt {row.number} changes what the first debit had fixed."] if changed else []


def _release(store: Store, row: Row) -> list[str]:
    body = json.loads(row.body)
    payload = store.payload(body["debit"])
    if payload is None or hashlib.sha256(payload).hexdigest() != body["digest"]:
        return [f"The answer recorded by receipt {row.number} is missing or was changed."]
    return []
