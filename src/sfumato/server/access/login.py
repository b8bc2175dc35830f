"""`Login`: one login by SCRAM, from a name to an account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.errors import LoginFailed, TooManyTries
from sfumato.server.access.roles import Account
from sfumato.server.access.scram import Exchange
from sfumato.server.access.tokens import person

if TYPE_CHECKING:
    from sfumato.server.access.accounts import Accounts

__all__ = ["Login"]


class Login:
    """One SCRAM login: an `Exchange` that counts what is wrong, and ends with an account."""

    __slots__ = ("_accounts", "_address", "_exchange", "_name", "account", "token")

    def __init__(self, accounts: Accounts, name: str, exchange: Exchange, address: str) -> None:
        self._accounts, self._name, self._exchange, self._address = accounts, name, exchange, address
        self.account: Account | None = None
        self.token = ""  # its id, for `Accounts.current`

    def first(self, client_first: str) -> str:
        """The server's first message.

        Raises:
            LoginFailed: if the client's cannot be.
            TooManyTries: if it cannot, and too many were wrong before.
        """
        try:
            return self._exchange.first(client_first)
        except LoginFailed:
            self._wrong()
            raise

    def final(self, client_final: str) -> str:
        """The server's last message; from now on there is an `account`.

        Raises:
            LoginFailed: if the client's proves no token that is still valid.
            TooManyTries: if too many were wrong before; see `Accounts.login`.
        """
        try:
            answer = self._exchange.final(client_final)
            label = self._exchange.label
            if self._address and not self._accounts.was_current(label):
                self._accounts.tries.admit_name(self._address, person(self._name))
            self.account = self._accounts.current(label)
        except TooManyTries:
            raise
        except LoginFailed:
            self._wrong()
            raise
        self.token = label
        return answer

    def _wrong(self) -> None:
        if self._address:
            known = self._exchange.is_of_somebody
            self._accounts.tries.refuse(self._address, person(self._name), known=known)
