"""`Login`: one login by SCRAM, from a name to an account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.errors import LoginFailed
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
        """
        try:
            answer = self._exchange.final(client_final)
            self.account = self._accounts.current(self._exchange.label)
        except LoginFailed:
            self._wrong()
            raise
        self.token = self._exchange.label
        return answer

    def _wrong(self) -> None:
        if self._address:
            self._accounts.tries.wrong(self._address, person(self._name))
