"""`Receipt` and `Dataset`: what a ledger gives to read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.errors import LedgerUnusable
from sfumato.ledger.budget import Budget, amount
from sfumato.ledger.chain import Row, canonical
from sfumato.ledger.memo import Memo
from sfumato.loss import PrivacyLoss
from sfumato.numeric.exact import read_fraction
from sfumato.schema import Windows

__all__ = ["Dataset", "Kind", "Receipt"]

Kind: TypeAlias = Literal[
    "register",
    "open",
    "debit",
    "release",
    "read",
    "give",
    "block",
    "point",
    "version",
    "redeclare",
    "raise",
    "limit",
    "revoke",
    "close",
    "adopt",
    "access",
]
_LOSS, _MEMO = '"loss":', ',"memo":'
# What a body holds beside the memo of a debit, or the facts of a steward's act.
_OWN = frozenset(
    {"time", "loss", "price", "totals", "analyst_totals", "adjacency", "memo", "salt", "windows"}
)


@dataclass(frozen=True, slots=True, repr=False)
class Dataset:
    """What the ledger knows about a dataset.

    Attributes:
        id: minted when it was first registered.
        name: what it is registered under, for good.
        salt: minted with it; makes fingerprints of questions unguessable elsewhere.
        budget: the one in force.
        declaration: unit, schema and version as last declared.
        closed: whether its budget is closed.
        chosen_by: what decides whose rows and groups count where there are too many, by its name; None for
            one that was registered before names were kept.
        since: the receipt that last declared it or opened its budget; 0 where nobody asks.
    """

    id: str
    name: str
    salt: bytes = field(repr=False)
    budget: Budget
    declaration: Mapping[str, Any]
    closed: bool
    chosen_by: str | None = None
    since: int = 0

    def __str__(self) -> str:
        """Its name and its budget."""
        return f"{self.name}: {self.budget}{', closed' if self.closed else ''}"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True, repr=False)
class Receipt:
    """One line of the ledger.

    Attributes:
        number: its place in the chain, from 1.
        dataset: the dataset's name; empty where it is about an account of the server.
        kind: what happened.
        analyst: who asked, or whom a limit, a revocation or an account is about; None: nobody in particular.
        time: when, by the clock of the machine that wrote it.
        fingerprint: of the question, for debits and releases.
        price: what a debit added to the sums of the budget's accountant, exact.
        totals: those sums afterwards, exact.
        memo: public facts as stored: what a debit is for, the reason and contents of a steward's act, and
            `by` whom it was done, where they had a name.
        mac: the keyed hash that ties it to all before it, in hexadecimal.
        windows: where the budget is for each window of time, those that a debit is paid in, and of which
            alone rows are read for it; None for all others.
    """

    number: int
    dataset: str
    kind: Kind
    analyst: str | None
    time: datetime
    fingerprint: str | None
    price: Mapping[str, Fraction]
    totals: Mapping[str, Fraction]
    memo: Mapping[str, Any]
    mac: str
    _loss: str | None = field(repr=False)
    windows: Windows | None = None

    @property
    def loss(self) -> PrivacyLoss | None:
        """What a debit paid for; None for every other kind."""
        return None if self._loss is None else stored_loss(self._loss)

    @property
    def counts(self) -> Mapping[str, Fraction]:
        """What a read of another's answer counts toward the reader's limit; empty for every other kind."""
        return fractions(self.memo["counts"]) if self.kind == "read" else {}

    @property
    def purpose(self) -> Memo:
        """What a debit was for, also where an earlier version wrote it down; empty for every other kind."""
        return Memo.of(self.memo) if self.kind == "debit" else Memo()

    @classmethod
    def of(cls, row: Row) -> Receipt:
        """The receipt that a row holds."""
        try:
            body = json.loads(row.body)  # and not `row.facts`: whoever is given it may change it
            loss = body.get("loss")
            kind: Any = row.kind
            return cls(
                number=row.number,
                dataset=row.dataset,
                kind=kind,
                analyst=row.analyst,
                time=datetime.fromisoformat(body["time"]),
                fingerprint=row.fingerprint,
                price=fractions(body.get("price", {})),
                totals=fractions(body.get("totals", {})),
                memo=body.get("memo", {}) | {key: body[key] for key in body if key not in _OWN},
                mac=row.mac.hex(),
                _loss=None if loss is None else canonical(loss),
                windows=windows_of(body),
            )
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise LedgerUnusable(
                f"Receipt {row.number} cannot be understood: upgrade Sfumato, or restore the ledger."
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the loss as it is stored."""
        return {
            "number": self.number,
            "dataset": self.dataset,
            "kind": self.kind,
            "analyst": self.analyst,
            "time": self.time.isoformat(),
            "loss": None if self._loss is None else json.loads(self._loss),
            "fingerprint": self.fingerprint,
            "price": {unit: str(value) for unit, value in self.price.items()},
            "totals": {unit: str(value) for unit, value in self.totals.items()},
            "memo": dict(self.memo),
            "mac": self.mac,
            **windows_facts(self.windows),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Receipt:
        """The receipt that `to_dict` wrote.

        Raises:
            LedgerUnusable: if it is none.
        """
        try:
            loss = data["loss"]
            return cls(
                number=data["number"],
                dataset=data["dataset"],
                kind=data["kind"],
                analyst=data["analyst"],
                time=datetime.fromisoformat(data["time"]),
                fingerprint=data["fingerprint"],
                price=fractions(data["price"]),
                totals=fractions(data["totals"]),
                memo=dict(data["memo"]),
                mac=data["mac"],
                _loss=None if loss is None else canonical(loss),
                windows=windows_of(data),
            )
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise LedgerUnusable("This is no receipt that this version of Sfumato can read.") from None

    def __str__(self) -> str:
        """Such as `#3 debit on visits by ada: epsilon 0.3, delta 0`, or `#4 limit on visits for bob`."""
        of = (
            "for" if self.kind in ("limit", "revoke", "access") else "by"
        )  # what a steward does is about somebody
        who = f" {of} {self.analyst}" if self.analyst else ""
        paid = ", ".join(f"{unit} {amount(value)}" for unit, value in (self.price or self.counts).items())
        when = f" in {self.windows}" if self.windows is not None else ""
        about = f" of the answer to #{self.memo['debit']}" if self.kind in ("read", "give") else ""
        where = f" on {self.dataset}" if self.dataset else ""
        return f"#{self.number} {self.kind}{about}{where}{who}{when}" + (f": {paid}" if paid else "")

    def __repr__(self) -> str:
        return str(self)


def windows_of(facts: Mapping[str, Any]) -> Windows | None:
    """The windows that a receipt names; None: none.

    Raises:
        ValueError, LookupError or TypeError: if they cannot be read.
    """
    named = facts.get("windows")
    return None if named is None else Windows.read(named["each"], [named["from"], named["to"]])


def windows_facts(windows: Windows | None) -> dict[str, Any]:
    """What a body holds of the windows that a receipt names; nothing where it names none."""
    if windows is None:
        return {}
    first, last = windows.names
    return {"windows": {"each": windows.each, "from": first, "to": last}}


def loss_text(row: Row) -> str:
    """The loss of a debit in its one JSON text, as the body has it.

    Bodies are canonical: their keys are sorted and a quote within a text is escaped, so that the first key
    `loss` is that of the debit, and the first key `memo` after it ends it.
    """
    begin = row.body.find(_LOSS)
    end = row.body.find(_MEMO, begin)
    if begin < 0 or end < 0:
        return canonical(row.facts["loss"])
    return row.body[begin + len(_LOSS) : end]


def refuse_unreadable(row: Row) -> None:
    """Refuses what `Receipt.of` could not read, the sums of a debit aside, without making a receipt of it.

    Raises:
        ValueError, LookupError or TypeError: if a part is missing or malformed.
    """
    body = row.facts
    datetime.fromisoformat(body["time"])
    if not isinstance(body.get("memo", {}), dict):
        raise TypeError("no memo")


def fractions(data: Mapping[str, str]) -> dict[str, Fraction]:
    """Exact numbers as a body holds them, ε or ρ before δ."""
    return {unit: fraction(value) for unit, value in sorted(data.items(), reverse=True)}


@lru_cache(maxsize=1024)
def fraction(written: str) -> Fraction:
    """An exact number as a body holds it: `3/4`.

    Raises:
        ValueError: if it is none, or too long.
    """
    return read_fraction(written)


@lru_cache(maxsize=4096)
def stored_loss(written: str) -> PrivacyLoss:
    """The loss in a body. Reading one back may prove its point again, so the latest are kept."""
    return PrivacyLoss.from_dict(json.loads(written))
