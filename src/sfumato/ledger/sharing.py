"""Answers that somebody else paid for: to whom they are open, and what reading one counts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction

from sfumato.errors import LedgerMismatch
from sfumato.ledger.account import Account
from sfumato.ledger.chain import Row, canonical
from sfumato.ledger.gates import problems_of_sums, windows_in
from sfumato.ledger.names import alike
from sfumato.ledger.receipt import fractions, stored_loss, windows_facts
from sfumato.ledger.rules import Draft, named
from sfumato.ledger.store import Store
from sfumato.loss import PrivacyLoss

__all__ = ["count_read", "give", "is_open_to", "problems_of_gift", "problems_of_read"]


def is_open_to(account: Account, reader: str | None, debit: Row) -> bool:
    """Whether an answer costs this reader nothing more: their own, given to all, or counted before.

    Nobody in particular, which is the steward, has no limit that something could count toward.
    """
    if reader is None or debit.number in account.given:
        return True
    own = debit.analyst is not None and alike(debit.analyst) == alike(reader)
    return own or debit.number in account.seat(reader).reads


def count_read(draft: Draft, account: Account, reader: str | None, debit: Row) -> dict[str, Fraction]:
    """Counts another's answer toward the reader's limit, within one transaction; what was counted now.

    Privacy:
        Claim: what one analyst has been given, whoever paid, is within their limit: the same filter that
        admits their debits is resumed from the sums of both. Each answer counts once, before it is given:
        whether it has is asked in the transaction that writes it.

    Raises:
        BudgetExceeded: if it is not within the reader's limit; nothing was counted.
        AccessDenied: if the budget is closed or the reader revoked.
    """
    account.refuse_closed(reader)
    if reader is None or is_open_to(account, reader, debit):
        return {}
    units = account.cap.units
    windows = windows_in(debit.facts, account.cap.each)
    price, totals = account.counted(_loss(debit), reader, windows)
    draft.add(
        "read",
        account.name,
        analyst=reader,
        fingerprint=debit.fingerprint,
        debit=debit.number,
        counts=named(units, price),
        analyst_totals=named(units, totals),
        **windows_facts(windows),
    )
    return dict(zip(units, price, strict=True))


def give(draft: Draft, account: Account, debits: Iterable[Row], reason: str) -> None:
    """Writes down that answers are given to all.

    Raises:
        LedgerMismatch: if a receipt is not a debit of this dataset.
    """
    for debit in debits:
        if (debit.kind, debit.dataset) != ("debit", account.name):
            raise LedgerMismatch(
                f"Receipt {debit.number} is no debit on {account.name!r}: give the number of one "
                "(sfumato ledger show)."
            )
        if debit.number not in account.given:
            draft.add("give", account.name, fingerprint=debit.fingerprint, debit=debit.number, reason=reason)


def problems_of_read(store: Store, account: Account, row: Row) -> list[str]:
    """What is wrong with a read of another's answer: what it is of, what it counts, the reader's sums."""
    body, units = row.facts, account.cap.units
    wrong = problems_of_gift(store, row)
    if wrong:
        return wrong
    (debit,) = store.rows(body["debit"], 1)
    seat, counts = account.own(row.analyst), fractions(body["counts"])
    due = account.cap.totals(account.cap.filter().price(_loss(debit)))
    if row.analyst is None or is_open_to(account, row.analyst, debit):
        wrong.append(f"Receipt {row.number} counts an answer that was open to its reader.")
    if any(counts[unit] < owed for unit, owed in zip(units, due, strict=True)):
        wrong.append(f"Receipt {row.number} counts less than its answer costs.")
    windows, price = windows_in(body, account.cap.each), tuple(counts[unit] for unit in units)
    if windows != windows_in(debit.facts, account.cap.each):
        wrong.append(f"Receipt {row.number} counts in other windows than its answer was paid in.")
    wrong += problems_of_sums(
        row,
        "analyst",
        seat.spent(account.cap, windows),
        price,
        body["analyst_totals"],
        (account.cap, seat.limit),
    )
    if account.closed or seat.revoked:
        wrong.append(f"Receipt {row.number} was written when nothing more was allowed.")
    return wrong


def problems_of_gift(store: Store, row: Row) -> list[str]:
    """Whether a receipt is about a debit of its dataset that came before."""
    number = row.facts["debit"]
    found = store.rows(number, 1) if isinstance(number, int) and 0 < number < row.number else []
    if [(debit.number, debit.kind, debit.dataset) for debit in found] == [(number, "debit", row.dataset)]:
        return []
    return [f"Receipt {row.number} is about an answer that nobody paid for."]


def _loss(debit: Row) -> PrivacyLoss:
    return stored_loss(canonical(json.loads(debit.body)["loss"]))
