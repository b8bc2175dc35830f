"""Limits of several analysts set at once, and set back: all of it or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidParameter, LedgerMismatch
from sfumato.ledger.book import Account
from sfumato.ledger.budget import Budget, amount
from sfumato.ledger.chain import Row, text
from sfumato.ledger.receipt import Kind, Receipt
from sfumato.ledger.rules import Draft, comparable, within_cap
from sfumato.ledger.store import Store
from sfumato.random import token

__all__ = ["allot", "latest", "take_back"]

_PAGE = 1000


def allot(draft: Draft, account: Account, limits: Mapping[str, Budget | None], reason: str) -> None:
    """Writes a limit for each analyst, None being a revocation, with what was in force before.

    Raises:
        LedgerMismatch: if a limit lies outside the dataset's budget, or together they leave the analysts
            more than the dataset has left.
    """
    if not isinstance(limits, Mapping) or not limits:
        raise InvalidParameter("An allotment is a mapping of at least one analyst to a Budget.")
    wanted = {
        text(name, "analyst"): None if each is None else within_cap(comparable(each, account), account)
        for name, each in limits.items()
    }
    _fits(account, {name: each for name, each in wanted.items() if each is not None})
    mark = token()
    for name, each in wanted.items():
        seat = account.seat(name)
        before = {"limit": None if seat.limit is None else seat.limit.to_dict(), "revoked": seat.revoked}
        kind: Kind = "revoke" if each is None else "limit"
        facts: dict[str, Any] = {} if each is None else {"budget": each.to_dict()}
        draft.add(kind, account.name, analyst=name, reason=reason, allotment=mark, before=before, **facts)


def _fits(account: Account, limits: Mapping[str, Budget]) -> None:
    """Refuses limits of which somebody could not spend all because of the others."""
    for at, (unit, cap, spent) in enumerate(
        zip(account.cap.units, account.cap.limits, account.totals, strict=True)
    ):
        rests = [
            each.limits[at] - account.seat(name).totals(account.cap)[at] for name, each in limits.items()
        ]
        given, left = sum((rest for rest in rests if rest > 0), Fraction(0)), max(cap - spent, Fraction(0))
        if given > left:
            raise LedgerMismatch(
                f"Together these limits leave {unit} {amount(given)} to spend, and {account.name!r} has "
                f"{amount(left)} left: give less, or raise its budget."
            )


def latest(store: Store, dataset: str) -> list[Receipt]:
    """The receipts of the last allotment of a dataset that was not taken back.

    Raises:
        LedgerMismatch: if there is none, or an analyst's limit was changed by a later act.
    """
    found: dict[str, list[Receipt]] = {}
    last: dict[str | None, Receipt] = {}
    for receipt in map(Receipt.of, _acts(store, dataset)):
        last[receipt.analyst] = receipt
        if "allotment" in receipt.memo:
            found.setdefault(receipt.memo["allotment"], []).append(receipt)
        elif "takes_back" in receipt.memo:
            found.pop(receipt.memo["takes_back"], None)
    if not found:
        raise LedgerMismatch(f"{dataset!r} has no allotment that could be taken back.")
    receipts = list(found.values())[-1]
    for receipt in receipts:
        since = last[receipt.analyst].number
        if since != receipt.number:
            raise LedgerMismatch(
                f"The limit of {receipt.analyst!r} was changed since, by receipt {since}, so the allotment "
                "cannot be taken back as a whole: set the limits one by one."
            )
    return receipts


def _acts(store: Store, dataset: str) -> list[Row]:
    """Every limit and revocation of a dataset, in order."""
    found: list[Row] = []
    for kind in ("limit", "revoke"):
        first = 1
        while rows := store.rows_of(dataset, kind, first, _PAGE):
            found += rows
            first = rows[-1].number + 1
    return sorted(found, key=lambda row: row.number)


def take_back(draft: Draft, account: Account, receipts: Iterable[Receipt], reason: str) -> None:
    """Puts what was in force before an allotment in force again; what was spent stays spent.

    An analyst who had no limit gets one of the whole budget, which is the same until that is raised.
    """
    for receipt in receipts:
        before, mark = receipt.memo["before"], receipt.memo["allotment"]
        held = account.cap if before["limit"] is None else Budget.from_dict(before["limit"])
        who = receipt.analyst
        draft.add("limit", account.name, analyst=who, budget=held.to_dict(), reason=reason, takes_back=mark)
        if before["revoked"]:
            draft.add("revoke", account.name, analyst=who, reason=reason, takes_back=mark)
