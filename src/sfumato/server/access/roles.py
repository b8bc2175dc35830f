"""Accounts and what their roles may do."""

from __future__ import annotations

from enum import StrEnum

from sfumato._dataclasses import dataclass
from sfumato.errors import AccessDenied

__all__ = ["Account", "Act", "Role"]


class Act(StrEnum):
    """What somebody may want to do."""

    SPEND = "spend"
    """Release answers, paid in the own name; see the own receipts and balance."""
    AUDIT = "audit"
    """Read the whole ledger: everybody's receipts and balances, export, verification."""
    GOVERN = "govern"
    """The steward's acts: budgets, limits, declarations, accounts."""


class Role(StrEnum):
    """What an account is for."""

    ANALYST = "analyst"
    STEWARD = "steward"
    AUDITOR = "auditor"


_MAY = {
    Role.ANALYST: frozenset({Act.SPEND}),
    Role.STEWARD: frozenset(Act),
    Role.AUDITOR: frozenset({Act.AUDIT}),
}
_WORDS = {
    Act.SPEND: "release answers",
    Act.AUDIT: "read the whole ledger",
    Act.GOVERN: "act on budgets, limits and accounts",
}


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody who may log in.

    Attributes:
        name: As it was first written; the ledger takes other spellings of it for the same analyst.
        role: What they may do.
    """

    name: str
    role: Role

    def may(self, act: Act) -> bool:
        """Whether the role has the right to an act."""
        return act in _MAY[self.role]

    def needs(self, act: Act) -> None:
        """Goes on only with the right to an act.

        Raises:
            AccessDenied: if the role has it not.
        """
        if not self.may(act):
            others = " or ".join(role.value for role in Role if act in _MAY[role])
            raise AccessDenied(
                f"An account with the role {self.role.value} may not {_WORDS[act]}: log in as {others}."
            )
