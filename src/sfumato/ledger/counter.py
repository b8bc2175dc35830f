"""The analysts' side of a ledger: to pay and to read, not to decide."""

from __future__ import annotations

from typing import Any, NoReturn

from sfumato.errors import AccessDenied
from sfumato.ledger.book import Account
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.opening import Opened

__all__ = ["Counter"]


class Counter(Ledger):
    """A ledger as an analyst has it: what the steward decides is refused.

    It is the same ledger, and stays in step with it. A guard against slips and borrowed scripts: whoever can
    read the ledger's key can open the ledger itself.
    """

    def __init__(self, ledger: Ledger | Opened) -> None:
        """The analysts' side of this ledger; `Counter.open` opens one that has no other side."""
        if isinstance(ledger, Ledger):
            self.__dict__ = ledger.__dict__  # one state, whichever of the two changes it
            self._survive_forks()  # also where nobody else holds the ledger
        else:
            super().__init__(ledger)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        """What only the steward can do.

        Raises:
            AccessDenied: always.
        """
        raise AccessDenied(
            "Only the steward can do this; this session belongs to an analyst. Ask the steward."
        )

    def _decided(self, dataset: str, known: Account | None) -> None:
        """Refuses to open a budget, or to declare something else than is on record.

        Raises:
            AccessDenied: always.
        """
        if known is None:
            raise AccessDenied(
                f"The ledger has no budget for {dataset!r}, and only the steward can open one; this session "
                "belongs to an analyst. Open a session without analyst= first."
            )
        raise AccessDenied(
            f"{dataset!r} is on record with another version, schema or bounds, which only the steward can "
            "change; this session belongs to an analyst."
        )

    raise_budget = _refuse
    close_budget = _refuse
    limit = _refuse
    allot = _refuse
    take_back = _refuse
    revoke = _refuse
    redeclare = _refuse
    adopted = _refuse
