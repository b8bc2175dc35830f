"""Limits of several analysts set at once, and set back: all of it or nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidParameter, LedgerMismatch
from sfumato.ledger.account import Account
from sfumato.ledger.budget import Budget, Totals, amount
from sfumato.ledger.chain import Row, text
from sfumato.ledger.names import alike
from sfumato.ledger.receipt import Kind, Receipt
from sfumato.ledger.rules import Draft, comparable, within_cap
from sfumato.ledger.store import Store
from sfumato.random import token

__all__ = ["allot", "latest", "promised", "take_back"]

_PAGE = 1000


def allot(draft: Draft, account: Account, limits: Mapping[str, Budget | None], reason: str) -> None:
    """Writes a limit for each analyst, None being a revocation, with what was in force before.

    Raises:
        LedgerMismatch: if a limit lies outside the dataset's budget, or together they leave the analysts
            more than the dataset has left, less what earlier allotments keep for others.
    """
    if not isinstance(limits, Mapping) or not limits:
        raise InvalidParameter("An allotment is a mapping of at least one analyst to a Budget.")
    wanted = {
        account.spelling(text(name, "analyst")): None
        if limit is None
        else within_cap(comparable(limit, account), account)
        for name, limit in limits.items()
    }
    if len({alike(name) for name in wanted}) < len(limits):
        raise InvalidParameter("Two names of this allotment are spellings of one: give each analyst once.")
    _fits(account, {name: limit for name, limit in wanted.items() if limit is not None}, wanted)
    mark = token()
    for name, limit in wanted.items():
        seat = account.seat(name)
        before = {
            "limit": None if seat.limit is None else seat.limit.to_dict(),
            "revoked": seat.revoked,
            "allotted": seat.allotted,
        }
        kind: Kind = "revoke" if limit is None else "limit"
        facts: dict[str, Any] = {} if limit is None else {"budget": limit.to_dict()}
        draft.add(kind, account.name, analyst=name, reason=reason, allotment=mark, before=before, **facts)


def promised(account: Account, besides: Collection[str] = ()) -> Totals:
    """What allotments in force leave to others than these analysts, which is not to be given again."""
    kept = [Fraction(0)] * len(account.cap.units)
    named = {alike(name) for name in besides}
    for name, seat in account.everybody().items():
        if seat.allotted and not seat.revoked and seat.limit is not None and name not in named:
            spent = seat.totals(account.cap)  # by windows: in one that nobody has asked about
            for at, (own, limit) in enumerate(zip(spent, seat.limit.limits, strict=True)):
                kept[at] += max(limit - own, Fraction(0))
    return tuple(kept)


def _fits(account: Account, limits: Mapping[str, Budget], named: Collection[str]) -> None:
    """Refuses limits of which somebody could not spend all because of the others."""
    given = [Fraction(0)] * len(account.cap.units)
    for name, budget in limits.items():
        spent = account.seat(name).totals(account.cap)
        for at, (own, limit) in enumerate(zip(spent, budget.limits, strict=True)):
            given[at] += max(limit - own, Fraction(0))
    for unit, wanted, cap, spent_, kept in zip(
        account.cap.units, given, account.cap.limits, account.totals, promised(account, named), strict=True
    ):
        left = max(cap - spent_, Fraction(0))
        if wanted > max(left - kept, Fraction(0)):
            others = f", {amount(kept)} of it kept for others by an earlier allotment" if kept else ""
            raise LedgerMismatch(
                f"Together these limits leave {unit} {amount(wanted)} to spend, and {account.name!r} has "
                f"{amount(left)} left{others}: give less, or raise its budget."
            )


def latest(store: Store, dataset: str) -> list[Receipt]:
    """The receipts of the last allotment of a dataset that was not taken back.

    Raises:
        LedgerMismatch: if there is none, or an analyst's limit was changed by a later act.
    """
    allotments: dict[str, list[Receipt]] = {}
    last: dict[str | None, int] = {}
    before: dict[str, dict[str | None, int]] = {}
    for receipt in map(Receipt.of, _acts(store, dataset)):
        who, back = receipt.analyst, receipt.memo.get("takes_back")
        if back is not None:
            # What was in force before is again, and so is the act that it came from.
            last[who] = before[back][who]
            allotments.pop(back, None)
            continue
        if "allotment" in receipt.memo:
            mark = receipt.memo["allotment"]
            before.setdefault(mark, {})[who] = last.get(who, 0)
            allotments.setdefault(mark, []).append(receipt)
        last[who] = receipt.number
    if not allotments:
        raise LedgerMismatch(f"{dataset!r} has no allotment that could be taken back.")
    receipts = list(allotments.values())[-1]
    for receipt in receipts:
        since = last[receipt.analyst]
        if since != receipt.number:
            raise LedgerMismatch(
                f"The limit of {receipt.analyst!r} was changed since, by receipt {since}, so the allotment "
                "cannot be taken back as a whole: set the limits one by one."
            )
    return receipts


def _acts(store: Store, dataset: str) -> list[Row]:
    """Every limit and revocation of a dataset, in order."""
    acts: list[Row] = []
    for kind in ("limit", "revoke"):
        first = 1
        while rows := store.rows_of(first, _PAGE, dataset=dataset, kind=kind):
            acts += rows
            first = rows[-1].number + 1
    return sorted(acts, key=lambda row: row.number)


def take_back(draft: Draft, account: Account, receipts: Iterable[Receipt], reason: str) -> None:
    """Puts what was in force before an allotment in force again, no limit where there was none.

    What was spent stays spent.
    """
    for receipt in receipts:
        before, mark, who = receipt.memo["before"], receipt.memo["allotment"], receipt.analyst
        again: dict[str, Any] = {"restores": True} if before.get("allotted") else {}
        draft.add(
            "limit",
            account.name,
            analyst=who,
            budget=before["limit"],
            reason=reason,
            takes_back=mark,
            **again,
        )
        if before["revoked"]:
            draft.add("revoke", account.name, analyst=who, reason=reason, takes_back=mark)
