"""Receipts in words: what happened, to whom, at which price and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sfumato.errors import LedgerUnusable
from sfumato.ledger import Budget, Receipt
from sfumato.server.page.drawing import figure

__all__ = ["KINDS", "Told"]

KINDS: Mapping[str, str] = {
    "debit": "paid for an answer",
    "release": "answer recorded",
    "read": "another's answer read",
    "give": "answer given to all",
    "block": "part of a fit",
    "point": "point of a series",
    "limit": "limit set",
    "revoke": "analyst revoked",
    "raise": "budget raised",
    "close": "budget closed",
    "access": "account, token or publication",
    "register": "dataset registered",
    "open": "budget opened",
    "version": "new version",
    "redeclare": "declared anew",
    "adopt": "taken over without its anchor",
}
"""What each kind of receipt is called."""


class Told:
    """A receipt for people.

    Args:
        receipt: As the ledger has it.
    """

    def __init__(self, receipt: Receipt) -> None:
        self.receipt = receipt

    @property
    def kind(self) -> str:
        """What happened, in a few words."""
        return KINDS.get(self.receipt.kind, self.receipt.kind)

    @property
    def when(self) -> str:
        """The time in UTC, to the second."""
        return f"{self.receipt.time:%Y-%m-%d %H:%M:%S}"

    @property
    def price(self) -> str:
        """What was paid, or counted toward a limit."""
        paid = self.receipt.price or self.receipt.counts
        return ", ".join(f"{unit} {figure(value)}" for unit, value in paid.items() if value)

    @property
    def question(self) -> str:
        """What was asked, of a debit."""
        return str(self.receipt.purpose)

    @property
    def reason(self) -> str:
        """Why a steward acted."""
        return self._fact("reason")

    @property
    def by(self) -> str:
        """Which steward acted."""
        return self._fact("by")

    @property
    def debit(self) -> int | None:
        """The receipt whose answer it is about."""
        found = self.receipt.memo.get("debit")
        return found if isinstance(found, int) else None

    @property
    def sentence(self) -> str:
        """What happened, in a sentence."""
        receipt = self.receipt
        who, where, debit = receipt.analyst or "Nobody in particular", receipt.dataset, self.debit
        match receipt.kind:
            case "debit":
                return f"{who} paid for an answer about {where}."
            case "release":
                return f"The answer that receipt {debit} paid for was recorded."
            case "read":
                return f"{who} read the answer of receipt {debit}, which another had paid for."
            case "give":
                return f"The answer of receipt {debit} was given to all: reading it costs nobody anything."
            case "limit":
                if receipt.memo.get("budget") is None:
                    return f"{who} has no limit of their own on {where} any more."
                return f"{who} may spend {self.budget} on {where} in all."
            case "revoke":
                return f"{who} may ask nothing more of {where}, until a new limit is set."
            case "raise" | "open":
                return f"The budget of {where} is {self.budget}."
            case "close":
                return f"The budget of {where} was closed for good."
            case "access":
                return f"{who}: {self._fact('act')}."
            case _:
                return f"{where}: {self.kind}."

    @property
    def budget(self) -> str:
        """The budget that an act put in force."""
        try:
            return str(Budget.from_dict(self.receipt.memo["budget"]))
        except (LedgerUnusable, KeyError, TypeError):
            return "a budget that this version cannot read"

    @property
    def facts(self) -> list[tuple[str, str]]:
        """All that there is to say, in the order in which one asks."""
        receipt, purpose = self.receipt, self.receipt.purpose
        whom = "About" if receipt.kind in ("limit", "revoke", "access") else "Analyst"
        rows = (
            ("What", self.sentence),
            ("When", f"{self.when} UTC"),
            ("Dataset", receipt.dataset),
            (whom, receipt.analyst or ""),
            ("Done by", self.by),
            ("Reason", self.reason),
            ("Price", self.price),
            ("Spent in all afterwards", _sums(receipt)),
            ("Windows", "" if receipt.windows is None else str(receipt.windows)),
            ("Table", purpose.table),
            ("Noise", purpose.mechanism),
            ("Token", self._fact("token")),
        )
        return [(name, value) for name, value in rows if value]

    @property
    def raw(self) -> str:
        """As it is exported."""
        return json.dumps(self.receipt.to_dict(), indent=2, sort_keys=True, ensure_ascii=False)

    @property
    def searched(self) -> str:
        """The words that a search looks through."""
        receipt = self.receipt
        return "\n".join((self.sentence, self.question, self.reason, self.by, receipt.mac)).casefold()

    def _fact(self, name: str) -> str:
        found: Any = self.receipt.memo.get(name)
        return found if isinstance(found, str) else ""


def _sums(receipt: Receipt) -> str:
    return ", ".join(f"{unit} {figure(value)}" for unit, value in receipt.totals.items())
