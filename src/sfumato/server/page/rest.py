"""What is left, in words: beside every balance, for how many more questions it is enough."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.ledger import Balance, Budget, Receipt
from sfumato.ledger.budget import amount
from sfumato.plan.prices.quote import Quote
from sfumato.server.page.drawing import gauge

__all__ = ["Rest", "how_many", "price_of_quote", "price_of_receipt"]

_MANY = 1_000


def price_of_quote(budget: Budget, quote: Quote) -> dict[str, Fraction]:
    """What a quote would add to what a budget counts; a delta that nobody named shrinks with what is left."""
    charged = budget.totals(budget.filter().price(quote.loss))
    price = dict(zip(budget.units, charged, strict=True))
    return {unit: part for unit, part in price.items() if unit != "delta" or "delta" not in quote.unnamed}


def price_of_receipt(receipt: Receipt) -> dict[str, Fraction]:
    """The same of what was paid; a delta that nobody named is left out."""
    unnamed = "delta" in receipt.purpose.unnamed
    return {unit: part for unit, part in receipt.price.items() if unit != "delta" or not unnamed}


def how_many(balance: Balance, price: Mapping[str, Fraction]) -> int | None:
    """How many more questions of a price fit into what is left; None where the price is nothing."""
    rooms = [
        (limit - spent) / price[unit]
        for unit, (spent, limit) in balance.gate.items()
        if price.get(unit, 0) > 0
    ]
    if price.get("epsilon"):  # what the dataset has left may be less than the analyst's own limit
        rooms.append(Fraction(balance.remaining) / price["epsilon"])
    if not rooms:
        return None
    return max(math.floor(min(rooms)), 0) if balance.open else 0


@dataclass(frozen=True, slots=True)
class Rest:
    """A balance as it is shown.

    Attributes:
        balance: What is spent and left.
        price: What the last question cost, by what the budget counts; empty where there was none.
        next: What the next one would take, as a share of the whole budget.
    """

    balance: Balance
    price: Mapping[str, Fraction]
    next: float = 0.0

    @property
    def left(self) -> str:
        """Such as `epsilon 6.7 of 8`."""
        balance = self.balance
        within = f" in {balance.window}" if balance.window else ""
        return f"epsilon {amount(balance.remaining)} of {amount(balance.epsilon)}{within}"

    @property
    def told(self) -> str:
        """What the gauge shows, such as `epsilon 1.3 of 8 spent, 6.7 left`."""
        balance = self.balance
        spent, within = balance.epsilon - balance.remaining, f" in {balance.window}" if balance.window else ""
        whole, left = amount(balance.epsilon), amount(balance.remaining)
        return f"epsilon {amount(spent)} of {whole} spent, {left} left{within}"

    @property
    def more(self) -> str:
        """For how many more questions like the last it is enough, in words; empty where nobody can say."""
        balance = self.balance
        if not balance.open:
            return "nothing more can be asked: " + (
                "the budget is closed" if balance.closed else "the steward has revoked you"
            )
        count = how_many(balance, self.price) if self.price else None
        return "" if count is None else f"{counted(count)} like your last"

    @property
    def picture(self) -> Any:
        """A gauge of what is spent."""
        whole = float(self.balance.epsilon) or 1.0
        return gauge(1 - float(self.balance.remaining) / whole, more=self.next, title=f"Left: {self.left}")


def counted(count: int) -> str:
    """A number of questions, in words."""
    if count == 0:
        return "not one more question"
    if count == 1:
        return "one more question"
    return f"about {min(count, _MANY):,}{' or more' if count > _MANY else ''} more questions"
