"""`Verification`: the whole ledger read again, every loss through its gate, every answer by its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction

from sfumato._dataclasses import dataclass
from sfumato.errors import LedgerTampered, LedgerUnusable, SfumatoError
from sfumato.ledger.account import Account
from sfumato.ledger.anchor import Anchor, Mark, stale
from sfumato.ledger.blocks import can_be_resumed, problems_of
from sfumato.ledger.book import Book
from sfumato.ledger.budget import Budget, Totals
from sfumato.ledger.chain import Chain, Row
from sfumato.ledger.checkpoint import Checkpoint
from sfumato.ledger.gates import problems_of_sums, windows_in
from sfumato.ledger.receipt import fraction, loss_text, refuse_unreadable, stored_loss
from sfumato.ledger.rules import times_of
from sfumato.ledger.series import horizon_of, problems_of_point
from sfumato.ledger.sharing import problems_of_gift, problems_of_read
from sfumato.ledger.store import Store
from sfumato.ledger.sums import settled, totals_of

__all__ = ["NO_ANCHOR", "Verification", "audit"]

NO_ANCHOR = "The anchor is missing: receipts that were cut off could not be noticed."

_MOST = 50  # problems worth listing
_PRICES = 4096  # of different losses that are remembered


@dataclass(frozen=True, slots=True, repr=False)
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

    def __repr__(self) -> str:
        return str(self)


def audit(
    store: Store,
    chain: Chain,
    anchor: Anchor,
    checkpoint: Checkpoint,
    *,
    known: Mark | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> Verification:
    """Reads everything again and believes nothing: neither an earlier look nor the stored sums.

    Args:
        store: the database.
        chain: its key.
        anchor: the mark outside.
        checkpoint: the sums outside, which are compared and not used.
        known: the last receipt that an open ledger has seen.
        progress: is told how much is done, from 0 to 1, and what is being done.
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
            problems.append(NO_ANCHOR)
    replay = _Replay(store, chain, marks)
    book, entries, trusted = replay.book, 0, True
    at = checkpoint.number
    try:
        last = 0 if progress is None else max(store.last(), 1)
        for rows in store.pages(1):
            if progress is not None:
                progress((rows[0].number - 1) / last, f"receipt {rows[0].number:,} of {last:,}")
            for row in rows:
                entries += 1
                if trusted:
                    problems += replay.problems_of(row)
                    trusted = book.number == row.number
                    if trusted and row.number == at:
                        problems += checkpoint.problems(book)
                if len(problems) >= _MOST:
                    break
            problems += replay.problems_of_answers()
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
        problems += _behind(anchor, book)
    if not trusted:
        problems.append(f"From receipt {book.number + 1} on nothing can be believed.")
    return Verification(tuple(dict.fromkeys(problems)), entries, book.mac.hex())


def _behind(anchor: Anchor, book: Book) -> list[str]:
    """Whether the anchor is behind: what it does not announce was written under another one."""
    held = anchor.read()
    if held is None or held.mark.number >= book.number or held.ends_at(book.head, book.due):
        return []
    return [stale(held, book.head)]


class _Replay:
    """The receipts followed once more from the first, with what is remembered on the way."""

    def __init__(self, store: Store, chain: Chain, marks: list[Mark]) -> None:
        self.book = Book(chain)
        self._store, self._chain, self._marks = store, chain, marks
        self._taken: dict[int, Fraction] = {}
        self._series: dict[int, tuple[int, int]] = {}  # how many points each has, and may have
        self._recorded: list[tuple[int, object, object]] = []  # receipt, debit and digest of each answer
        self._prices: dict[str, tuple[Budget, dict[str, Totals]]] = {}
        self._sums: dict[tuple[str, str, str | None], tuple[object, Totals]] = {}

    def problems_of_answers(self) -> list[str]:
        """What is wrong with the answers that the receipts since the last call recorded."""
        recorded, self._recorded = self._recorded, []
        answers = self._store.payloads([debit for _, debit, _ in recorded if type(debit) is int])
        digests: dict[object, object] = {
            debit: hashlib.sha256(payload).hexdigest() for debit, payload in answers
        }
        return [
            f"The answer recorded by receipt {number} is missing or was changed."
            for number, debit, digest in recorded
            if digests.get(debit) is None or digests[debit] != digest
        ]

    def problems_of(self, row: Row) -> list[str]:
        """What is wrong with the next receipt. The book has taken it in if its mac holds."""
        book = self.book
        try:
            self._chain.check(row, book.number + 1, book.mac)
        except LedgerTampered as wrong:
            return [str(wrong)]
        problems = [
            f"Receipt {row.number} is not the one that was written: the ledger was rewritten."
            for mark in self._marks
            if mark.number == row.number and mark.mac != row.mac
        ]
        try:
            problems += self._checked(row)
            refuse_unreadable(row)
            book.take(row)
        except (SfumatoError, KeyError, ValueError, TypeError) as wrong:
            reason = str(wrong) if isinstance(wrong, SfumatoError) else "it cannot be understood"
            problems.append(f"Receipt {row.number}: {reason}")
            if book.number != row.number:
                book.number, book.mac = row.number, row.mac
        return problems

    def _checked(self, row: Row) -> list[str]:
        """What is wrong with what a receipt says."""
        if row.kind == "debit":
            if can_be_resumed(row):
                self._taken[row.number] = Fraction(0)
            if horizon_of(row):
                self._series[row.number] = 0, horizon_of(row)
            return self._debit(self.book.accounts[row.dataset], row)
        if row.kind in ("open", "raise", "redeclare"):
            return _fixed(self.book.accounts[row.dataset], row)
        if row.kind == "read":
            return problems_of_read(self._store, self.book.accounts[row.dataset], row)
        if row.kind == "give":
            return problems_of_gift(self._store, row)
        if row.kind == "block":
            return problems_of(row, self._taken)
        if row.kind == "point":
            self._recorded.append((row.number, row.number, row.facts["digest"]))
            return problems_of_point(row, self._series)
        if row.kind == "release":
            self._recorded.append((row.number, row.facts["debit"], row.facts["digest"]))
        return []

    def _debit(self, account: Account, row: Row) -> list[str]:
        """What is wrong with a debit: its price against its loss today, its sums, its gates."""
        body = row.facts
        units, wrong = account.cap.units, list[str]()
        price = totals_of(body["price"], account.cap)
        due = self._price(account, loss_text(row))
        if price != due and any(paid < owed for paid, owed in zip(price, due, strict=True)):
            wrong.append(f"Receipt {row.number} paid less than its loss costs.")
        seat = account.own(row.analyst)  # the gate counts other spellings, too
        if account.closed or seat.revoked:
            wrong.append(f"Receipt {row.number} was written when nothing more was allowed.")
        if account.cap.each is not None:
            windows = windows_in(body, account.cap.each)
            for whose, spent, stored, limit in (
                ("dataset", account.spent(windows), body["totals"], account.cap),
                ("analyst", seat.spent(account.cap, windows), body["analyst_totals"], seat.limit),
            ):
                wrong += problems_of_sums(row, whose, spent, price, stored, (account.cap, limit))
            return wrong
        sums = (
            ("dataset", None, account.sums, body["totals"], account.cap),
            ("analyst", row.analyst, seat.sums, body["analyst_totals"], seat.limit),
        )
        for whose, analyst, last, stored, budget in sums:
            key = account.name, whose, analyst
            known, before = self._sums.get(key, (None, ()))
            if known is not last:
                before = totals_of(last, account.cap)
            after = [a + b if b else a for a, b in zip(before, price, strict=True)]
            kept = tuple([settled(total) for total in after])
            if False in [_same(total, stored[unit]) for unit, total in zip(units, kept, strict=True)]:
                wrong.append(f"Receipt {row.number} has sums of its {whose} that do not add up.")
            else:
                self._sums[key] = stored, kept
            if budget is not None and True in [a > b for a, b in zip(after, budget.limits, strict=True)]:
                wrong.append(f"Receipt {row.number} overdraws the budget of its {whose}.")
        return wrong

    def _price(self, account: Account, written: str) -> Totals:
        """What a loss costs under the budget in force; many debits have the same one."""
        budget, known = self._prices.get(account.name, (None, {}))
        if budget is not account.cap:
            known = {}
            self._prices[account.name] = account.cap, known
        if written not in known:
            if len(known) >= _PRICES:
                known.clear()
            known[written] = account.cap.totals(account.cap.filter().price(stored_loss(written)))
        return known[written]


def _same(total: Fraction, written: str) -> bool:
    """Whether a stored number is this one; most are written as it is."""
    return str(total) == written or fraction(written) == total


def _fixed(account: Account, row: Row) -> list[str]:
    """Whether a receipt changes what the first debit fixed: the unit, the accountant, a budget downwards."""
    if not account.debits:
        return []
    body = row.facts
    if row.kind == "redeclare":
        wanted = body["declaration"]
        changed = wanted["unit"] != account.declaration["unit"]
        if account.cap.each is not None:
            old, new = times_of(account.declaration), times_of(wanted)
            changed = changed or any(old[table] != new[table] for table in old.keys() & new.keys())
    else:
        budget = Budget.from_dict(body["budget"])
        lower = any(new < old for new, old in zip(budget.limits, account.cap.limits, strict=False))
        gate = (budget.units, budget.each) != (account.cap.units, account.cap.each)
        changed = row.kind == "open" or gate or lower
    return [f"Receipt {row.number} changes what the first debit had fixed."] if changed else []
