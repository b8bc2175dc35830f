"""Balances to the last digit; what is told in hindsight is computed where it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from sfumato.errors import ServerUnreachable
from sfumato.ledger import Balance
from sfumato.loss import PrivacyLoss
from sfumato.loss.base import counted
from sfumato.render import visible
from sfumato.session.carried.kinds import checked
from sfumato.session.carried.values import Room, pack, unpack

__all__ = ["pack_balance", "pack_losses", "unpack_balance"]

_WITHIN = frozenset({"_losses", "_found"})


def pack_balance(balance: Balance) -> dict[str, Any]:
    """What is spent and left, as plain data."""
    told = (field.name for field in fields(Balance) if field.name not in _WITHIN)
    return {name: pack(getattr(balance, name)) for name in told}


def pack_losses(balance: Balance) -> list[Any]:
    """What was paid or read by whoever the balance is of, each loss with how often."""
    return [[loss.to_dict(), count] for loss, count in balance._losses()]


def unpack_balance(data: Mapping[str, Any], losses: Callable[[], list[Any]]) -> Balance:
    """The balance that `pack_balance` wrote.

    Args:
        data: Plain data.
        losses: Gives what `pack_losses` wrote, when somebody looks back: what they have paid since is in it,
            too, so that the figure is above that of this balance at most, and never below.

    Raises:
        ValueError, TypeError or KeyError: if it is none.
    """

    def paid() -> list[tuple[PrivacyLoss, int]]:
        try:
            return [(PrivacyLoss.from_dict(loss), counted(count, "count")) for loss, count in losses()]
        except (ValueError, TypeError):
            raise ServerUnreachable(
                "What the server says was paid cannot be read: ask again, or connect anew."
            ) from None

    room = Room()
    told = {name: unpack(value, room) for name, value in data.items()}
    told |= {name: visible(text) for name, text in told.items() if isinstance(text, str)}
    return checked(Balance(**told, _losses=paid))
