"""`Staffing`: accounts and tokens, made and ended in a steward's own name, for the API and the page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sfumato.errors import AccessDenied, InvalidParameter
from sfumato.server.access import Account, Accounts, Listed, Role, TokenInfo, Witness, record
from sfumato.server.house import House

__all__ = ["LONGEST", "Staffing"]

LONGEST = 366
"""Days for which a token may be valid that was issued from afar."""


class Staffing:
    """The acts on accounts, each on the ledger with the name of who did it, and why where they say it.

    Privacy:
        Claim: a steward's token cannot be made to outlast its own expiry from afar. Nothing here makes a
        steward's account, gives one a token or removes one, so that who has stolen such a token has it until
        it expires or is revoked, and whoever has the machine can revoke it.
    """

    def __init__(self, house: House, accounts: Accounts) -> None:
        self._house, self._accounts = house, accounts

    def all(self) -> Sequence[Listed]:
        """All accounts, with what may be known of their tokens."""
        return self._accounts.list()

    def add(self, by: str, name: str, role: str, *, reason: str = "") -> Account:
        """They log in with a token, which is issued next."""
        witness = self._witness(by, record.added(role), reason)
        return self._accounts.add(name, role, witness=witness)

    def remove(self, by: str, name: str, *, reason: str = "") -> str:
        """What it spent stays on record; gives the name as it was written."""
        return self._accounts.remove(name, witness=self._witness(by, record.REMOVED, reason))

    def issue(self, by: str, name: str, days: int, *, reason: str = "") -> tuple[str, TokenInfo]:
        """A token's text, which is kept nowhere: if it is lost, revoke it and issue another."""
        if not 1 <= days <= LONGEST:
            raise InvalidParameter(f"A token is valid for 1 to {LONGEST} days.")
        witness = self._witness(by, record.issued(days), reason)
        return self._accounts.issue(name, timedelta(days=days), witness=witness)

    def revoke(self, by: str, token: str, *, reason: str = "") -> TokenInfo:
        """Every server process refuses it within seconds; stewards' can be revoked, too."""
        witness = self._witness(by, record.REVOKED, reason, stewards=True)
        return self._accounts.revoke(token, witness=witness)

    def _witness(self, by: str, act: str, reason: str, *, stewards: bool = False) -> Witness:
        """What puts an act on the ledger, before it is done for good."""

        def tell(account: Account, token: str) -> None:
            if account.role is Role.STEWARD and not stewards:
                raise AccessDenied(
                    "Stewards' accounts and tokens are made and removed at the machine that holds the keys: "
                    "sfumato account."
                )
            record.tell(self._house.steward(by), act, account, token, reason=reason)

        return tell
