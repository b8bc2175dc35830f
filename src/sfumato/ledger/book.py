"""`Book`: what the receipts add up to, kept in memory as the chain is followed."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.errors import AccessDenied, BudgetExceeded, LedgerMismatch, LedgerUnusable, UnsupportedLoss
from sfumato.ledger.anchor import Mark
from sfumato.ledger.budget import Budget, Totals, amount
from sfumato.ledger.chain import GENESIS, Chain, Row
from sfumato.ledger.names import alike, new_name
from sfumato.ledger.receipt import Dataset
from sfumato.ledger.seat import Seat, settled, together, totals_of
from sfumato.ledger.spare import Spare, spared
from sfumato.loss import PrivacyLoss

__all__ = ["Account", "Book", "Charge"]


@dataclass(frozen=True, slots=True)
class Charge:
    """A loss that both gates admit: its price and the sums once it is paid."""

    price: Totals
    totals: Totals
    analyst_totals: Totals
    adjacency: str | None


@dataclass(slots=True)
class Account:
    """One dataset: its budget and declaration in force, the last debit, and who sits at it."""

    id: str
    name: str
    salt: bytes
    declaration: dict[str, Any]
    chosen_by: str | None = None
    since: int = 0  # the receipt that last declared or opened it; versions and raised budgets do not count
    budget: Budget | None = None
    closed: bool = False
    adopted: bool = False  # taken over without its anchor: debits may have been cut off
    last: int = 0  # the last debit
    sums: Mapping[str, str] = field(default_factory=dict)  # what is spent in all, as that debit has it
    adjacency: str | None = None  # the neighbours that the losses so far hold for, if one of them says so
    debits: int = 0
    given: set[int] = field(default_factory=set)  # debits whose answers the steward gave to all
    taken: dict[int, Fraction] = field(default_factory=dict)  # the part that blocks took of each debit
    lengths: dict[int, int] = field(default_factory=dict)  # how many points each series has, by its debit
    seats: dict[str, Seat] = field(default_factory=dict)  # by each spelling on record
    _spellings: dict[str, list[str]] = field(default_factory=dict)

    @property
    def cap(self) -> Budget:
        """The budget in force."""
        if self.budget is None:
            raise LedgerUnusable(f"The dataset {self.name!r} has no budget on record: restore the ledger.")
        return self.budget

    @property
    def bound(self) -> bool:
        """Whether unit, bounds and budget are fixed: once something was, or may have been, spent.

        A database that is older than its anchor does not open, so that one which was put back to before the
        first debit is here only if it was adopted.
        """
        return self.debits > 0 or self.closed or self.adopted

    @property
    def totals(self) -> Totals:
        """What is spent in all."""
        return totals_of(self.sums, self.cap)

    def seat(self, analyst: str | None) -> Seat:
        """Where an analyst sits, however the name is spelled; nobody has no limit of their own."""
        known = [] if analyst is None else self._spellings.get(alike(analyst), [])
        return together([self.seats[name] for name in known]) if known else _NOBODY

    def own(self, spelling: str | None) -> Seat:
        """What is on record under this very spelling."""
        return _NOBODY if spelling is None else self.seats.get(spelling, _NOBODY)

    def take_seat(self, spelling: str) -> Seat:
        """The seat of this very spelling, made if there is none."""
        if spelling not in self.seats:
            self.sit(spelling, Seat())
        return self.seats[spelling]

    def sit(self, spelling: str, seat: Seat) -> None:
        """Gives a spelling that has none yet a seat."""
        self.seats[spelling] = seat
        self._spellings.setdefault(alike(spelling), []).append(spelling)

    def spelling(self, analyst: str) -> str:
        """The analyst's name as it is on record; a new one is checked."""
        known = self._spellings.get(alike(analyst), [])
        if known:
            return analyst if analyst in known else known[0]
        return new_name(analyst, "analyst")

    def everybody(self) -> dict[str, Seat]:
        """All analysts by `alike` of their names."""
        return {key: together([self.seats[name] for name in known]) for key, known in self._spellings.items()}

    def dataset(self) -> Dataset:
        """The account as a value."""
        declared = copy.deepcopy(self.declaration)  # whoever is given it cannot change what is on record
        return Dataset(
            self.id, self.name, self.salt, self.cap, declared, self.closed, self.chosen_by, self.since
        )

    def refuse_stale(self, known: Dataset) -> None:
        """Refuses who priced a loss for a declaration or a budget that are no longer those on record.

        Privacy:
            Claim: what is debited was priced for the unit that is on record at that moment. Asked within the
            debit's transaction, so that of several who declare a dataset differently before its first debit
            one can pay, and the others are refused from then on.
        """
        if (known.id, known.since) != (self.id, self.since):
            raise LedgerMismatch(
                f"{self.name!r} was declared otherwise or given another budget since this session was "
                f"opened (receipt {self.since}); nothing was spent. Open the session again."
            )

    def refuse_others(self, loss: PrivacyLoss) -> None:
        """Refuses a loss that holds for other neighbours than those that the dataset's unit was declared for.

        Asked where a debit is made, not where an old one is read again: what was paid stays paid.
        """
        unit = self.declaration.get("unit")
        declared = unit.get("adjacency") if isinstance(unit, dict) else None
        own = loss.adjacency
        if own is not None and declared not in (None, own):
            raise UnsupportedLoss(
                f"This loss holds for {own} neighbours and {self.name!r} protects {declared} neighbours: "
                "restate the loss; nothing was spent."
            )

    def refuse_closed(self, analyst: str | None) -> None:
        """Refuses whoever may no longer ask.

        Raises:
            AccessDenied: if the budget is closed or the analyst revoked.
        """
        if self.closed:
            raise AccessDenied(
                f"The budget of {self.name!r} is closed: nothing more can be asked and nothing was spent."
            )
        if self.seat(analyst).revoked:
            raise AccessDenied(
                f"{analyst!r} may no longer ask about {self.name!r}; nothing was spent. A new limit from the "
                "steward would allow it again."
            )

    def priced(self, loss: PrivacyLoss, analyst: str | None) -> Charge:
        """What this loss costs here, once the dataset's gate and the analyst's have admitted it.

        Args:
            loss: what is asked for.
            analyst: who asks, in a spelling on record.

        Raises:
            AccessDenied: if the budget is closed or the analyst revoked.
            BudgetExceeded: if it does not fit; nothing was spent.

        Privacy:
            Claim: both gates are filters resumed from the exact sums of every loss admitted so far, so that
            all that is admitted stays within the dataset's budget, whoever asks. Source: see `Budget`.
        """
        seat = self.seat(analyst)
        self.refuse_closed(analyst)
        gate = self.cap.filter(self.totals, self.adjacency)
        price = self.cap.totals(gate.price(loss))
        try:
            later = gate.after(loss)
        except BudgetExceeded:
            raise _exceeded(f"the budget of {self.name!r}", self.cap, price, self.totals) from None
        if not self._within_limit(seat, loss):
            raise _exceeded(
                f"the limit of {analyst!r} on {self.name!r}", seat.limit, price, seat.totals(self.cap)
            )
        return Charge(
            price=price,
            totals=tuple(settled(total) for total in self.cap.totals(later.spent)),
            analyst_totals=self._with(analyst, price),
            adjacency=later.adjacency,
        )

    def spare(self, analyst: str | None, *, finds: bool) -> Spare:
        """What a question takes of delta where it names none; never more than both gates would admit now.

        Args:
            analyst: who asks, in a spelling on record.
            finds: whether it looks for groups, for which accountants that add up ρ have a delta aside.
        """
        seat, adds = self.seat(analyst), self.cap.accountant == "basic"
        told = [] if adds else [Spare(self.cap.hundredth, f"a hundredth of {_BUDGETS}")]
        gates = [(_BUDGETS, self.cap, self.totals)]
        if seat.limit is not None:
            gates.append(("your limit's", seat.limit, seat.totals(self.cap)))
        for whose, budget, spent in gates:
            if adds or (finds and "delta" in budget.units):
                part = whose if adds else f"what is aside of {whose}"
                told.append(spared(budget.limits[1], budget.limits[1] - spent[1], part))
        return min(told, key=lambda spare: spare.delta)  # the first of equals is the dataset's

    def refuse_several(self, losses: Sequence[tuple[PrivacyLoss, bool]], analyst: str | None) -> None:
        """Refuses losses that could not all be admitted, one after the other; changes nothing.

        Args:
            losses: in their order, each with whether the dataset pays for it, too; otherwise it is another's
                answer, which only counts toward the analyst's limit.
            analyst: who asks, in a spelling on record.

        Raises:
            AccessDenied: if the budget is closed or the analyst revoked.
            BudgetExceeded: if they do not fit.
        """
        self.refuse_closed(analyst)
        seat = self.seat(analyst)
        paid = [loss for loss, pays in losses if pays]
        gates = [(f"the budget of {self.name!r}", self.cap, self.totals, paid)]
        if seat.limit is not None:
            whose = f"the limit of {analyst!r} on {self.name!r}"
            gates.append((whose, seat.limit, seat.totals(self.cap), [loss for loss, _ in losses]))
        for whose, budget, spent, asked in gates:
            gate = budget.filter(spent, self.adjacency)
            prices = [budget.totals(gate.price(loss)) for loss in asked]
            try:
                for loss in asked:
                    self.refuse_others(loss)
                    gate = gate.after(loss)
            except BudgetExceeded:
                price = tuple(sum(parts, Fraction(0)) for parts in zip(*prices, strict=True))
                if budget is seat.limit and not losses[-1][1]:
                    raise self._beyond(seat, price) from None
                raise _exceeded(whose, budget, price, spent) from None

    def counted(self, loss: PrivacyLoss, analyst: str) -> tuple[Totals, Totals]:
        """What another's answer counts for this analyst, and their sums with it.

        Raises:
            BudgetExceeded: if it is not within their limit.
        """
        seat, price = self.seat(analyst), self.cap.totals(self.cap.filter().price(loss))
        if not self._within_limit(seat, loss):
            raise self._beyond(seat, price)
        return price, self._with(analyst, price)

    def _beyond(self, seat: Seat, price: Totals) -> BudgetExceeded:
        return BudgetExceeded(
            "Somebody else's answer to this question is on record, and reading it counts toward your own "
            f"limit on {self.name!r}: {_parts(seat.limit, price, seat.totals(self.cap))}. Nothing was "
            "spent; ask the steward for a larger limit, or to give this answer to all."
        )

    def _within_limit(self, seat: Seat, loss: PrivacyLoss) -> bool:
        if seat.limit is None:
            return True
        try:
            seat.limit.filter(seat.totals(self.cap), self.adjacency).after(loss)
        except BudgetExceeded:
            return False
        return True

    def _with(self, analyst: str | None, price: Totals) -> Totals:
        """The sums of this very spelling with a price added."""
        own = self.own(analyst).totals(self.cap)
        return tuple(settled(a + b) for a, b in zip(own, price, strict=True))


_NOBODY = Seat()
_BUDGETS = "the budget's"


def _exceeded(whose: str, budget: Budget | None, price: Totals, spent: Totals) -> BudgetExceeded:
    assert budget is not None
    parts = _parts(budget, price, spent)
    if spent[0] >= budget.limits[0]:
        return BudgetExceeded(
            f"{whose[0].upper()}{whose[1:]} is used up: {parts}. Nothing was spent; answers on record stay "
            "free, and the steward may raise it."
        )
    fix = "ask for less"
    if "delta" in budget.units and spent[0] + price[0] <= budget.limits[0]:  # it is delta that does not fit
        fix = (
            "ask for less delta, or name none: then a small part of what is left is taken"
            if spent[1] < budget.limits[1]
            else "list the groups and take Laplace noise, which need no delta; the steward may raise it"
        )
    return BudgetExceeded(f"Not within {whose}: {parts}. Nothing was spent; {fix}.")


def _parts(budget: Budget | None, price: Totals, spent: Totals) -> str:
    assert budget is not None
    parts = []
    for unit, asked, so_far, limit in zip(budget.units, price, spent, budget.limits, strict=True):
        if so_far + asked > limit or unit == budget.units[0]:
            left = amount(max(limit - so_far, Fraction(0)))
            parts.append(
                f"asked {unit} {amount(asked)}, spent {amount(so_far)} of {amount(limit)}, left {left}"
            )
    return "; ".join(parts)


class Book:
    """The state of all datasets after a receipt, which is the last whose mac was checked.

    Attributes:
        due: The last receipt that the anchor must have (see `Held`): all after it are of kept answers.

    Privacy:
        Claim: every receipt up to `number` was checked in order, each against the mac before it, by this
        process or by the one that sealed the checkpoint it began at (see `FileCheckpoint`), so that the sums
        a gate resumes from are those of the last debit that was ever written, and none is hidden.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self.number = GENESIS
        self.mac = chain.start
        self.due = Mark(self.number, self.mac)
        self.accounts: dict[str, Account] = {}

    def follow(self, rows: Iterable[Row]) -> None:
        """Checks and takes in the next receipts."""
        for row in rows:
            self._chain.check(row, self.number + 1, self.mac)
            self.take(row)

    def take(self, row: Row) -> None:
        """Takes in a receipt that is known to be the next."""
        try:
            _EFFECTS[row.kind](self.accounts, row)
        except (LookupError, TypeError, ValueError):
            raise LedgerUnusable(
                f"Receipt {row.number} cannot be understood: upgrade Sfumato, or restore the ledger."
            ) from None
        if row.kind != "release":
            self.due = Mark(row.number, row.mac)  # before the number: an interrupt then takes it in again
        self.number, self.mac = row.number, row.mac

    @property
    def head(self) -> Mark:
        """The last receipt."""
        return Mark(self.number, self.mac)


def _register(accounts: dict[str, Account], row: Row) -> None:
    body = row.facts
    accounts[row.dataset] = Account(
        body["id"],
        row.dataset,
        bytes.fromhex(body["salt"]),
        body["declaration"],
        body.get("chosen_by"),
        row.number,
    )


def _open(accounts: dict[str, Account], row: Row) -> None:
    _budget(accounts, row)
    accounts[row.dataset].since = row.number


def _budget(accounts: dict[str, Account], row: Row) -> None:
    accounts[row.dataset].budget = Budget.from_dict(row.facts["budget"])


def _debit(accounts: dict[str, Account], row: Row) -> None:
    account = accounts[row.dataset]
    if account.last >= row.number:
        return  # an interrupt came between this and the number: it is taken in already
    facts = row.facts
    adjacency = facts["adjacency"]
    account.sums, account.adjacency = facts["totals"], adjacency if isinstance(adjacency, str) else None
    account.debits += 1
    if row.analyst is not None:
        seat = account.take_seat(row.analyst)
        seat.sums, seat.last = facts["analyst_totals"], row.number
        seat.debits += 1
    account.last = row.number


def _read(accounts: dict[str, Account], row: Row) -> None:
    seat = accounts[row.dataset].take_seat(str(row.analyst))
    if seat.last < row.number:
        facts = row.facts
        seat.sums = facts["analyst_totals"]
        seat.reads.add(facts["debit"])
        seat.last = row.number


def _give(accounts: dict[str, Account], row: Row) -> None:
    accounts[row.dataset].given.add(row.facts["debit"])


def _block(accounts: dict[str, Account], row: Row) -> None:
    facts = row.facts
    accounts[row.dataset].taken[facts["debit"]] = Fraction(facts["taken"])


def _point(accounts: dict[str, Account], row: Row) -> None:
    facts = row.facts
    accounts[row.dataset].lengths[int(facts["debit"])] = int(facts["point"]) + 1


def _nothing(accounts: dict[str, Account], row: Row) -> None:
    del accounts, row


def _version(accounts: dict[str, Account], row: Row) -> None:
    accounts[row.dataset].declaration = row.facts["declaration"]


def _declare(accounts: dict[str, Account], row: Row) -> None:
    account, body = accounts[row.dataset], row.facts
    account.declaration, account.since = body["declaration"], row.number
    account.chosen_by = body.get("chosen_by", account.chosen_by)


def _limit(accounts: dict[str, Account], row: Row) -> None:
    seat = accounts[row.dataset].take_seat(str(row.analyst))
    body = row.facts
    seat.limit = None if body["budget"] is None else Budget.from_dict(body["budget"])
    seat.revoked, seat.since = False, row.number
    seat.allotted = "allotment" in body or body.get("restores") is True


def _revoke(accounts: dict[str, Account], row: Row) -> None:
    seat = accounts[row.dataset].take_seat(str(row.analyst))
    seat.revoked, seat.since = True, row.number


def _close(accounts: dict[str, Account], row: Row) -> None:
    accounts[row.dataset].closed = True


def _adopt(accounts: dict[str, Account], row: Row) -> None:
    accounts[row.dataset].adopted = True


_EFFECTS = {
    "register": _register,
    "open": _open,
    "raise": _budget,
    "debit": _debit,
    "release": _nothing,
    "read": _read,
    "give": _give,
    "block": _block,
    "point": _point,
    "version": _version,
    "redeclare": _declare,
    "limit": _limit,
    "revoke": _revoke,
    "close": _close,
    "adopt": _adopt,
}
