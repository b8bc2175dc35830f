"""`Common`: what the sections of the page share."""

from __future__ import annotations

from sfumato._dataclasses import dataclass
from sfumato.server.access import Account, Accounts, Act
from sfumato.server.grounds import Grounds
from sfumato.server.house import House
from sfumato.server.http.asking import Threads
from sfumato.server.page.looks import Looks
from sfumato.server.ways import Ways

__all__ = ["Common"]


@dataclass(frozen=True, slots=True)
class Common:
    """What the sections of the page share.

    Attributes:
        house: What is asked.
        accounts: Who may log in.
        run: Runs work in threads, paid reads within their deadlines.
        aside: The same for acts of stewards and looks of auditors, which questions cannot take.
        looks: Fills templates in.
        ways: How the server runs.
        grounds: Where its tables are declared; None: in no file.
    """

    house: House
    accounts: Accounts
    run: Threads
    aside: Threads
    looks: Looks
    ways: Ways
    grounds: Grounds | None = None

    def threads(self, who: Account) -> Threads:
        """Where what somebody looks at is done: that of stewards and auditors waits behind no question."""
        return self.aside if who.may(Act.AUDIT) else self.run
