"""Acts on accounts, as the ledger has them: accounts can go back in time, and are held against it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Self

from sfumato._dataclasses import dataclass
from sfumato.ledger import Ledger, Steward
from sfumato.server.access.roles import Account, Role
from sfumato.server.access.tables import AccountRow, Tables, TokenRow
from sfumato.server.access.tokens import person

__all__ = ["AT_THE_MACHINE", "REMOVED", "REVOKED", "Ended", "Record", "added", "issued", "put_right", "tell"]

AT_THE_MACHINE = "sfumato account"
"""Who acts, where nobody logged in: whoever has the machine and its keys."""
REMOVED, REVOKED = "account removed", "token revoked"
_ADDED = "account added as "


def added(role: Role | str) -> str:
    """The act by which an account came."""
    return f"{_ADDED}{Role(role).value}"


def issued(days: int) -> str:
    """The act by which a token came."""
    return f"token issued for {days} days"


def tell(steward: Steward, act: str, account: Account, token: str = "", *, reason: str = "") -> None:
    """Puts an act on the ledger, before it is done for good, with its reason where one is given."""
    facts = {"token": token, "reason": reason}
    steward.access(account.name, act, **{name: said for name, said in facts.items() if said})


@dataclass(frozen=True, slots=True)
class _Came:
    """The last act by which an account came or went: its receipt and time; the role, None: it went."""

    number: int
    time: float
    role: str | None


@dataclass(frozen=True, slots=True)
class Ended:
    """What was there although the ledger says that it had ended.

    Attributes:
        accounts: The names of accounts that were removed, or given another role.
        tokens: The ids of tokens that were revoked, or whose account was removed after they were issued.
    """

    accounts: tuple[str, ...]
    tokens: tuple[str, ...]


class Record:
    """What a ledger says of accounts and tokens.

    Privacy:
        Claim: an account that the ledger says was removed, or has another role, and a token that it says was
        revoked, or was issued before its account was removed, are told from those that hold. So neither comes
        back with an older copy of the accounts.
        Condition: the act is on record. What was done while there was no ledger is not, and is believed.
    """

    def __init__(self) -> None:
        self._came: dict[str, _Came] = {}  # by person
        self._gone: dict[str, _Came] = {}  # by person: the last removal
        self._issued: dict[str, int] = {}  # by a token's id: the receipt
        self._revoked: set[str] = set()

    @classmethod
    def of(cls, ledger: Ledger) -> Self:
        """The record of a ledger, as of now."""
        made = cls()
        for receipt in ledger.accesses():
            made._add(receipt.number, receipt.time, receipt.analyst or "", receipt.memo)
        return made

    def _add(self, number: int, time: datetime, account: str, facts: Mapping[str, Any]) -> None:
        act, who, token = str(facts.get("act", "")), person(account), str(facts.get("token", ""))
        if act.startswith(_ADDED):
            self._came[who] = _Came(number, time.timestamp(), act.removeprefix(_ADDED))
        elif act == REMOVED:
            self._came[who] = self._gone[who] = _Came(number, time.timestamp(), None)
        elif act == REVOKED:
            self._revoked.add(token)
        elif token:
            self._issued[token] = number

    def admits(self, row: AccountRow) -> bool:
        """Whether an account is as the ledger has it; one that came later, unrecorded, is believed."""
        last = self._came.get(row.person)
        return last is None or row.role == last.role or row.created > last.time

    def ended(self, row: TokenRow) -> bool:
        """Whether a token has ended by what the ledger says."""
        gone = self._gone.get(row.person)
        if row.id in self._revoked:
            return True
        if gone is None:
            return False
        receipt = self._issued.get(row.id)
        return row.created <= gone.time if receipt is None else receipt < gone.number


def put_right(tables: Tables, record: Record) -> Ended:
    """Takes away what has ended by the record; within `tables.writing()`."""
    accounts = [row for row in tables.accounts() if not record.admits(row)]
    for row in accounts:
        tables.remove(row.person)
    tokens = [row for row in tables.tokens() if row.revoked is None and record.ended(row)]
    for token in tokens:
        tables.revoke(token.id, int(datetime.now(UTC).timestamp()))
    return Ended(tuple(row.name for row in accounts), tuple(token.id for token in tokens))
