"""What a steward and an analyst may do to a ledger, and the draft in which it is written down."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from sfumato.errors import AccessDenied, InvalidParameter, LedgerMismatch
from sfumato.ledger.book import Account, Book
from sfumato.ledger.budget import Budget
from sfumato.ledger.chain import Chain, Row, canonical, plain, text
from sfumato.ledger.names import new_name, spelled
from sfumato.ledger.receipt import Kind
from sfumato.ledger.store import Store

__all__ = [
    "Draft",
    "account_of",
    "analyst_of",
    "changes",
    "comparable",
    "declared",
    "distinct",
    "named",
    "open_account",
    "reason_of",
    "same_unit",
    "within_cap",
]


class Draft:
    """Receipts on their way into the database, within one transaction."""

    def __init__(self, book: Book, chain: Chain, store: Store) -> None:
        self.book, self._chain, self._store = book, chain, store
        self.rows: list[Row] = []

    def add(
        self,
        kind: Kind,
        dataset: str,
        *,
        analyst: str | None = None,
        fingerprint: str | None = None,
        **facts: Any,
    ) -> None:
        """Seals and writes the next receipt."""
        number, mac = (
            (self.rows[-1].number, self.rows[-1].mac) if self.rows else (self.book.number, self.book.mac)
        )
        body = canonical({"time": datetime.now(UTC).isoformat(timespec="milliseconds")} | facts)
        row = self._chain.sealed(Row(number + 1, kind, dataset, analyst, fingerprint, body), mac)
        self._store.append(row)
        self.rows.append(row)


def account_of(book: Book, dataset: str) -> Account:
    """The account of a dataset by its name."""
    account = book.accounts.get(text(dataset, "dataset"))
    if account is None:
        raise LedgerMismatch(f"The ledger has no dataset {dataset!r}: register it first.")
    return account


def open_account(book: Book, dataset: str) -> Account:
    """The account of a dataset whose budget is not closed."""
    account = account_of(book, dataset)
    if account.closed:
        raise AccessDenied(f"The budget of {account.name!r} is closed, and stays so.")
    return account


def analyst_of(analyst: str | None, account: Account) -> str | None:
    """An analyst's name as it is on record; None is nobody in particular."""
    return None if analyst is None else account.spelling(text(analyst, "analyst"))


def distinct(book: Book, name: str) -> None:
    """Refuses the name of a new dataset that is another one's in a different spelling."""
    other = spelled(name, book.accounts)
    if other is not None:
        raise LedgerMismatch(
            f"The datasets {name!r} and {other!r} are one name in another case or spelling; write them "
            "alike, or they would have a budget each."
        )
    new_name(name, "name")


def reason_of(reason: str) -> str:
    """Why a steward acts, in their words."""
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidParameter("A steward's act needs a reason: say in a sentence why.")
    return str(plain(reason.strip(), "reason"))


def declared(declaration: Mapping[str, Any]) -> dict[str, Any]:
    """A declaration as plain data."""
    if not isinstance(declaration, Mapping) or "unit" not in declaration:
        raise InvalidParameter(
            "A declaration is a mapping that says at least whose privacy is protected, 'unit'."
        )
    data: dict[str, Any] = plain(declaration, "declaration")
    return data


def same_unit(account: Account, wanted: Mapping[str, Any]) -> None:
    """Refuses a privacy unit other than the one a budget was opened for."""
    if account.declaration["unit"] != wanted["unit"]:
        raise LedgerMismatch(
            f"{account.name!r} was registered with another privacy unit, for which its budget was opened. "
            "Declare that unit again, or register the data under another name with a budget of its own."
        )


def changes(account: Account, wanted: Mapping[str, Any], budget: Budget | None) -> list[Kind]:
    """What a registration would change; refuses what only a steward's act may."""
    if budget is not None and budget != account.cap:
        raise LedgerMismatch(
            f"The budget of {account.name!r} on record is {account.cap}, not {budget}. Leave it out or give "
            "the one on record; only the steward can raise it."
        )
    same_unit(account, wanted)
    if {**account.declaration, "version": None} != {**wanted, "version": None}:
        if account.debits:
            raise LedgerMismatch(
                f"{account.name!r} was spent on with a schema or bounds that differ from those declared now. "
                "Declare the old ones again, or have the steward redeclare it."
            )
        return ["redeclare"]
    return [] if account.declaration.get("version") == wanted.get("version") else ["version"]


def comparable(budget: Budget, account: Account) -> Budget:
    """A budget in the units of a dataset's own."""
    if not isinstance(budget, Budget):
        raise InvalidParameter(f"A budget is needed, not {type(budget).__name__}: Budget(epsilon, delta).")
    if budget.accountant != account.cap.accountant:
        raise LedgerMismatch(
            f"{account.name!r} is gated by {account.cap.accountant!r}, fixed when its budget was opened, not "
            f"by {budget.accountant!r}."
        )
    return budget.at_order_of(account.cap)


def within_cap(limit: Budget, account: Account) -> Budget:
    """An analyst's limit, refused where it is more than the dataset itself may spend."""
    if any(own > cap for own, cap in zip(limit.limits, account.cap.limits, strict=True)):
        raise LedgerMismatch(
            f"A limit lies within the dataset's budget, which is {account.cap} for {account.name!r}."
        )
    return limit


def named(units: tuple[str, ...], values: tuple[Fraction, ...]) -> dict[str, str]:
    """Exact numbers as a body holds them."""
    return {unit: str(value) for unit, value in zip(units, values, strict=True)}
