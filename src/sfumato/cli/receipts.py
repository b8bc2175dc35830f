"""Balances and receipts as the command line shows them."""

from __future__ import annotations

from datetime import UTC
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato.cli.opening import exactly
from sfumato.numeric.exact import read_fraction
from sfumato.schema.windows import span_of

if TYPE_CHECKING:
    from sfumato.ledger import Balance, Receipt

__all__ = ["balance_facts", "listed"]


def balance_facts(balance: Balance) -> dict[str, Any]:
    """A balance, for programs."""
    return {
        "dataset": balance.dataset,
        "analyst": balance.analyst,
        "accountant": balance.accountant,
        "open": balance.open,
        "closed": balance.closed,
        "limited": balance.limited,
        "epsilon": balance.epsilon,
        "delta": balance.delta,
        "spent": balance.spent,
        "spent_delta": balance.spent_delta,
        "remaining": balance.remaining,
        "remaining_delta": balance.remaining_delta,
        "next_delta": balance.next_delta,
        "retrospective": balance.retrospective,
        "entries": balance.entries,
        "reads": balance.reads,
        **({"window": balance.window, "each": balance.each} if balance.window else {}),
    }


def listed(receipts: list[Receipt]) -> dict[str, list[object]]:
    """The receipts as columns; those that would be the same or empty throughout are left out."""
    columns: dict[str, list[object]] = {
        "no.": [receipt.number for receipt in receipts],
        "time (UTC)": [f"{receipt.time.astimezone(UTC):%Y-%m-%d %H:%M}" for receipt in receipts],
    }
    if len({receipt.dataset for receipt in receipts}) > 1:
        columns["dataset"] = [receipt.dataset for receipt in receipts]
    columns["what"] = [receipt.kind for receipt in receipts]
    if any(receipt.analyst for receipt in receipts):
        columns["who"] = [receipt.analyst or "" for receipt in receipts]
    columns["epsilon"] = [_paid(receipt) for receipt in receipts]
    if any(receipt.purpose.state for receipt in receipts):
        columns["data of"] = [receipt.purpose.state for receipt in receipts]
    if any(receipt.windows for receipt in receipts):
        columns["paid in"] = ["" if receipt.windows is None else str(receipt.windows) for receipt in receipts]
    columns["question or reason"] = [_about(receipt) for receipt in receipts]
    return columns


def _paid(receipt: Receipt) -> Fraction | None:
    """What was asked for when it was paid, whatever the accountant adds up."""
    if receipt.kind == "read":
        return receipt.counts.get("epsilon")
    if receipt.kind != "debit":
        return None
    return receipt.price.get("epsilon", receipt.purpose.epsilon)


def _about(receipt: Receipt) -> str:
    text = str(receipt.purpose) or str(receipt.memo.get("reason") or "")
    if receipt.kind in ("read", "give"):
        text = f"{text}: " if text else ""
        text = f"{text}the answer that receipt {receipt.memo['debit']} paid for"
    if receipt.kind == "block":
        text = f"{receipt.memo['share']} of what receipt {receipt.memo['debit']} paid for"
    if receipt.kind == "point":
        text = f"point {receipt.memo['point'] + 1} of what receipt {receipt.memo['debit']} paid for"
    if receipt.kind == "limit":
        limit = receipt.memo.get("budget")
        each = None if limit is None else limit.get("each")
        span = "in all" if each is None else f"for each {span_of(each)}"
        text = f"{'none' if limit is None else exactly(read_fraction(limit['epsilon']))} {span}: {text}"
    if receipt.kind == "access":
        text = str(receipt.memo.get("act", ""))
    by = receipt.memo.get("by") if receipt.kind != "debit" else None
    return " ".join(f"{text} (by {by})".split() if by else text.split())
