"""`Book`: what the receipts add up to, kept in memory as the chain is followed."""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.errors import LedgerUnusable
from sfumato.ledger.account import Account
from sfumato.ledger.anchor import Mark
from sfumato.ledger.budget import Budget
from sfumato.ledger.chain import GENESIS, Chain, Row
from sfumato.ledger.gates import windows_in
from sfumato.ledger.sums import totals_of
from sfumato.numeric.exact import read_fraction

__all__ = ["Book"]


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
    each, seat = account.cap.each, None if row.analyst is None else account.take_seat(row.analyst)
    if each is not None:
        windows, price = windows_in(facts, each), totals_of(facts["price"], account.cap)
        account.spans = account.spans.with_(windows, price, row.number)
        if seat is not None:
            seat.spans = seat.spans.with_(windows, price, row.number)
    account.sums = facts["totals"] if each is None else {}
    account.adjacency = adjacency if isinstance(adjacency, str) else None
    account.debits += 1
    if seat is not None:
        seat.sums, seat.last = facts["analyst_totals"] if each is None else {}, row.number
        seat.debits += 1
    account.last = row.number


def _read(accounts: dict[str, Account], row: Row) -> None:
    account = accounts[row.dataset]
    seat, each = account.take_seat(str(row.analyst)), account.cap.each
    if seat.last < row.number:
        facts = row.facts
        if each is not None:
            counts = totals_of(facts["counts"], account.cap)
            seat.spans = seat.spans.with_(windows_in(facts, each), counts, row.number, read=True)
        seat.sums = facts["analyst_totals"] if each is None else {}
        seat.reads.add(facts["debit"])
        seat.last = row.number


def _give(accounts: dict[str, Account], row: Row) -> None:
    accounts[row.dataset].given.add(row.facts["debit"])


def _block(accounts: dict[str, Account], row: Row) -> None:
    facts = row.facts
    accounts[row.dataset].taken[facts["debit"]] = read_fraction(facts["taken"])


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


def _access(accounts: dict[str, Account], row: Row) -> None:
    """Nothing is spent or allowed by it; what cannot say what was done, and by whom, is no such receipt."""
    del accounts
    _ = row.facts["act"], row.facts["by"]


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
    "access": _access,
}
