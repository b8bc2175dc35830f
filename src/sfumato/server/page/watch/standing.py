"""`Standing`: how much of a budget is spent, in words, and what is to be said where little is left."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Literal, TypeAlias
from urllib.parse import urlencode

from markupsafe import Markup

from sfumato._dataclasses import dataclass
from sfumato.ledger.balance import Balance
from sfumato.server.access import Account, Act
from sfumato.server.house import House
from sfumato.server.page.drawing import figure, gauge

__all__ = ["Alert", "Standing", "alerts", "standings"]

NEAR = Fraction(8, 10)
"""The share of a budget from which on it is told that little is left."""
Level: TypeAlias = Literal["", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Alert:
    """That little or nothing is left of a budget.

    Attributes:
        level: `warn` from 80 % on, `bad` from 100 % on.
        title: What is so.
        words: In figures.
        fix: What helps.
        where: The address of more.
    """

    level: Level
    title: str
    words: str
    fix: str
    where: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What is spent and left of a dataset's budget, or of one analyst's share.

    Attributes:
        balance: As the ledger has it.
        own: Whether it is the reader's own share.
    """

    balance: Balance
    own: bool = False

    @property
    def share(self) -> float:
        """How much of the budget is spent: 1 is all of it, and more than that, a limit lowered since."""
        return float(Fraction(self.balance.spent) / self.balance.epsilon)

    @property
    def percent(self) -> int:
        """The same in percent; 100 only if all is spent."""
        return int(100 * Fraction(self.balance.spent) / self.balance.epsilon)

    @property
    def level(self) -> Level:
        """How urgent it is."""
        balance = self.balance
        if not self.bounds or not balance.open:
            return ""
        if balance.spent >= balance.epsilon or balance.remaining == 0:
            return "bad"
        return "warn" if Fraction(balance.spent) >= NEAR * balance.epsilon else ""

    @property
    def bounds(self) -> bool:
        """Whether it is a budget of its own: a dataset's, or the limit of an analyst."""
        return self.balance.analyst is None or self.balance.limited

    @property
    def gauge(self) -> Markup:
        """As a picture."""
        return gauge(self.share, title=f"{self.percent} % spent")

    @property
    def state(self) -> str:
        """`closed`, `revoked`, or nothing."""
        return "" if self.balance.open else "closed" if self.balance.closed else "revoked"

    @property
    def words(self) -> str:
        """In a sentence or two."""
        balance = self.balance
        debits = f"{balance.entries} paid answer{'' if balance.entries == 1 else 's'}"
        if balance.reads:
            debits += f" and {balance.reads} read of others'"
        when = f" in {balance.window}" if balance.window else ""
        spent = f"Epsilon {figure(balance.spent)} of {figure(balance.epsilon)} is spent{when}, on {debits}."
        if not self.bounds:
            spent = f"Epsilon {figure(balance.spent)} is spent{when}, on {debits}; no limit of their own."
            spent = spent.replace("their", "your") if self.own else spent
        if self.state:
            return f"{spent} Nothing more can be asked: {self.state}."
        shared = f", since {balance.dataset} has no more" if balance.shared and self.bounds else ""
        left = figure(balance.remaining) if balance.remaining else "Nothing"
        return f"{spent} {left} is left{shared}."

    @property
    def where(self) -> str:
        """The address of its chart."""
        names = {"dataset": self.balance.dataset} | (
            {} if self.balance.analyst is None or self.own else {"analyst": self.balance.analyst}
        )
        return f"/watch/spent?{urlencode(names)}"

    def alert(self, who: Account) -> Alert | None:
        """What is to be said of it, if something is."""
        if not self.level:
            return None
        balance = self.balance
        whose = balance.dataset
        if balance.analyst is not None:
            whose = f"Your limit on {whose}" if self.own else f"{balance.analyst} on {whose}"
        used = self.level == "bad"
        title = f"{whose}: all is spent" if used else f"{whose}: {self.percent} % is spent"
        if used and balance.spent < balance.epsilon:
            title = f"{whose}: nothing is left"
        words = self.words + (" New questions are refused; answers on record stay free." if used else "")
        return Alert(self.level, title, words, self._fix(who), self._act(who))

    def _fix(self, who: Account) -> str:
        what = "budget" if self.balance.analyst is None or self.balance.shared else "limit"
        if who.may(Act.GOVERN):
            rest = "leave it so" if self.level == "bad" else "keep what is left for what matters most"
            return f"Raise the {what}, or {rest}."
        if self.own:
            return (
                f"Ask the steward for a higher {what}. The same question asked again costs nothing, and a "
                "smaller price makes the rest last longer."
            )
        return f"Tell the steward, who can raise the {what}."

    def _act(self, who: Account) -> str:
        if not who.may(Act.GOVERN):
            return self.where
        names = {"dataset": self.balance.dataset}
        if self.balance.analyst is not None and not self.balance.shared:
            names["analyst"] = self.balance.analyst
        return f"/watch/acts?{urlencode(names)}"


def standings(house: House, who: Account) -> Iterator[Standing]:
    """What somebody may know: all there is for auditors and stewards; an analyst's own for all others."""
    for dataset in house.datasets:
        if not who.may(Act.AUDIT):
            yield Standing(house.session(who.name).balance(dataset), own=True)
            continue
        ledger = house.ledger
        yield Standing(ledger.balance(dataset))
        for analyst in ledger.analysts(dataset):
            yield Standing(ledger.balance(dataset, analyst))


def alerts(found: list[Standing], who: Account) -> list[Alert]:
    """What is to be said of them, the most urgent first."""
    told = [alert for standing in found if (alert := standing.alert(who)) is not None]
    return sorted(told, key=lambda alert: alert.level != "bad")
