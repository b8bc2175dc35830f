"""What a steward and an analyst may do to a ledger, and the draft in which it is written down."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, TypeAlias

from sfumato.errors import AccessDenied, InvalidParameter, LedgerMismatch
from sfumato.ledger.account import Account
from sfumato.ledger.book import Book
from sfumato.ledger.budget import Budget
from sfumato.ledger.chain import Chain, Row, canonical, plain, text
from sfumato.ledger.gates import refuse_unfit
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
    "times_of",
    "within_cap",
]

Change: TypeAlias = tuple[Kind, dict[str, Any]]
_FEW = 3  # differences that a message names


class Draft:
    """Receipts on their way into the database, within one transaction.

    Attributes:
        by: Who acts, by name, which each receipt then holds; None: somebody at the machine itself.
    """

    def __init__(self, book: Book, chain: Chain, store: Store) -> None:
        self.book, self._chain, self._store = book, chain, store
        self.by: str | None = None
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
        whose = {} if self.by is None else {"by": self.by}
        body = canonical({"time": datetime.now(UTC).isoformat(timespec="milliseconds")} | facts | whose)
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
    """Refuses a privacy unit other than the one that was spent for; before the first debit any will do."""
    old, new = {"unit": account.declaration["unit"]}, {"unit": wanted["unit"]}
    if account.bound and old != new:
        _same_offsets(account.name, old["unit"], new["unit"])
        raise LedgerMismatch(
            f"{account.name!r} was spent on with another privacy unit ({_differing(old, new)}), and "
            "what was spent holds for that one. Declare that unit again, or give the table another dataset= "
            "with a budget of its own."
        )
    if account.bound and account.cap.each is not None:
        _same_times(account.name, account.declaration, wanted)


def _same_times(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Refuses another column that decides windows, or another kind of it, where each has a budget.

    Privacy:
        A row that is in March by one column and in April by another would be paid for in neither as it must:
        what was spent in a window holds for the rows that were in it.
    """
    times, now = times_of(old), times_of(new)
    for table in times.keys() & now.keys():
        if times[table] != now[table]:
            raise LedgerMismatch(
                f"Windows of {table} were decided by {' '.join(times[table])} when {name!r} was spent on, "
                "and what was spent in each holds for those: declare that again, or give the table another "
                "dataset= with a budget of its own."
            )


def times_of(declaration: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """By table, the column that decides windows, and its kind."""
    schema = declaration.get("schema")
    found = dict[str, tuple[str, str]]()
    for name, table in schema.items() if isinstance(schema, Mapping) else ():
        if isinstance(table, Mapping) and table.get("time") is not None:
            kind = (table.get("columns") or {}).get(table["time"]) or {}
            found[str(name)] = str(table["time"]), str(kind.get("type"))
    return found


def _same_offsets(name: str, old: Any, new: Any) -> None:
    """Refuses a unit whose zone alone has changed its clocks: no steward did that."""
    if (
        isinstance(old, Mapping)
        and isinstance(new, Mapping)
        and {**old, "offsets": 0} == {**new, "offsets": 0}
    ):
        raise LedgerMismatch(
            f"The time zone {new.get('zone')} has other offsets on this machine than when {name!r} was first "
            "spent on, and its windows would move: nothing was spent. Use the time zone data of then "
            "(PYTHONTZPATH), or give the table another dataset= with a budget of its own."
        )


def changes(
    account: Account, wanted: Mapping[str, Any], budget: Budget | None, chosen_by: str | None = None
) -> list[Change]:
    """What a registration would change: anything before the first debit, the version after it.

    Raises:
        LedgerMismatch: for what only a steward's act may change, or nothing may.
    """
    refuse_unfit(account.name, wanted, budget or account.cap)
    if budget is not None and budget != account.cap and account.bound:
        raise LedgerMismatch(
            f"The budget of {account.name!r} on record is {account.cap}, not {budget}. Leave it out or give "
            "the one on record; only the steward can raise it (sfumato ledger raise, Steward.raise_budget)."
        )
    same_unit(account, wanted)
    if account.bound:
        if {**account.declaration, "version": None} != {**wanted, "version": None}:
            raise LedgerMismatch(
                f"{account.name!r} was spent on with a schema or bounds that differ from those declared now: "
                f"{_differing(account.declaration, wanted)}. Declare the old ones again, or have the "
                f"steward redeclare it (sfumato ledger redeclare {shlex.quote(account.name)} --reason '…', "
                "Steward.redeclare)."
            )
        if account.declaration.get("version") == wanted.get("version"):
            return []
        return [("version", {"declaration": account.declaration | {"version": wanted.get("version")}})]
    found: list[Change] = []
    if budget is not None and budget != account.cap:
        found.append(("open", {"budget": budget.to_dict()}))
        found += _limits_under(account, budget)
    chooses = {} if chosen_by in (None, account.chosen_by) else {"chosen_by": text(chosen_by, "chosen_by")}
    if chooses or {**account.declaration, "version": None} != {**wanted, "version": None}:
        found.append(("redeclare", {"declaration": dict(wanted), **chooses}))
    elif account.declaration.get("version") != wanted.get("version"):
        found.append(("version", {"declaration": dict(wanted)}))
    return found


def _limits_under(account: Account, budget: Budget) -> list[Change]:
    """The analysts' limits again, in what another accountant adds up, or for as long; none while both stay.

    Privacy:
        A limit is compared with sums in the units of the dataset's budget, so it must have them, too.
    """
    same = (budget.accountant, budget.order, budget.each)
    if same == (account.cap.accountant, account.cap.order, account.cap.each):
        return []
    reason, found = "the budget was opened otherwise before anything was spent", list[Change]()
    for analyst, seat in sorted(account.seats.items(), key=lambda each: each[1].since):
        if seat.limit is None:
            continue
        try:
            limit = Budget(
                seat.limit.epsilon,
                seat.limit.delta,
                budget.accountant,
                order=budget.order,
                each=budget.each,
            )
        except InvalidParameter:
            raise LedgerMismatch(
                f"The limit of {analyst!r} on {account.name!r} is {seat.limit}, which {budget.accountant!r} "
                "cannot hold: have the steward set one with a delta first."
            ) from None
        kept = {"restores": True} if seat.allotted else {}
        facts = {"analyst": analyst, "budget": limit.to_dict(), "reason": reason, **kept}
        found.append(("limit", facts))
        if seat.revoked:
            found.append(("revoke", {"analyst": analyst, "reason": reason}))
    return found


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Where a declaration is another one than on record, in words: `visits.max_groups 3 on record, now 5`."""
    places = sorted(_places(old, new), key=lambda place: place[1] not in (_NEW, _GONE))
    parts = [f"{where} {what}" for where, what in places]
    # What was renamed is new and missing at once, which is said where nothing else is.
    if sorted(what for _, what in places[:2]) == sorted((_NEW, _GONE)) and len(_parents(places[:2])) == 1:
        parts[:2] = [f"{parts[0]}; {parts[1]}: was it renamed?"]
    more = f" and {len(parts) - _FEW} more" if len(parts) > _FEW else ""
    return "; ".join(parts[:_FEW]) + more


_NEW, _GONE = "is new", "is missing"


def _parents(places: Sequence[tuple[str, str]]) -> set[str]:
    return {where.rpartition(".")[0] for where, _ in places}


def _places(old: Any, new: Any, where: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted({*old, *new} - ({"version"} if not where else set())):
            yield from _places(old.get(name), new.get(name), (*where, str(name)))
    elif old != new:
        named = ".".join(part for part in where if part not in ("schema", "columns")) or "it"
        if old is None and isinstance(new, Mapping):
            yield named, _NEW
        elif new is None and isinstance(old, Mapping):
            yield named, _GONE
        else:
            yield named, f"{_short(old)} on record, {_short(new)} now"


def _short(value: Any) -> str:
    return "none" if value is None else str(value)[:40]


def comparable(budget: Budget, account: Account) -> Budget:
    """A budget in the units of a dataset's own."""
    if not isinstance(budget, Budget):
        raise InvalidParameter(f"A budget is needed, not {type(budget).__name__}: Budget(epsilon, delta).")
    if budget.accountant != account.cap.accountant:
        raise LedgerMismatch(
            f"{account.name!r} is gated by {account.cap.accountant!r}, fixed when its budget was opened, not "
            f"by {budget.accountant!r}."
        )
    if budget.each != account.cap.each:
        wanted = f"each={account.cap.each!r}" if account.cap.each is not None else "no each"
        raise LedgerMismatch(
            f"The budget of {account.name!r} is for {account.cap.span or 'all time'}, and so is everything "
            f"within it: give {wanted}."
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
