"""The house of `sfumato serve --demo`: generated data, accounts of every role, and some history."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.demo import SQL, SQL_WARDS, prepare
from sfumato.server.access import Accounts, Role
from sfumato.server.house import House

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["accounts_made", "catalog_made", "history_made"]

PEOPLE = {
    "ada": Role.ANALYST,
    "ben": Role.ANALYST,
    "chloe": Role.ANALYST,
    "sofia": Role.STEWARD,
    "omar": Role.AUDITOR,
}
_BUDGET, _LIMITS = 20, {"ada": 8, "ben": 6, "chloe": 4}
_ASKED = (
    ("ada", SQL, "0.8"),
    ("ben", SQL_WARDS, "0.4"),
    ("ada", "SELECT ward, AVG(age) AS age FROM visits GROUP BY ward", "0.5"),
)


def catalog_made(folder: Path) -> Path:
    """Writes the visits of a hospital that does not exist; gives the path of its catalog."""
    return prepare(folder, epsilon=_BUDGET, analysts=_LIMITS)


def accounts_made(accounts: Accounts) -> Iterator[tuple[str, Role, str]]:
    """Adds the people, and gives each one's name, role and token."""
    for name, role in PEOPLE.items():
        accounts.add(name, role)
        yield name, role, accounts.issue(name)[0]


def history_made(house: House) -> None:
    """What some of them asked already."""
    for name, text, price in _ASKED:
        house.session(name).sql(text).release(epsilon=price)
