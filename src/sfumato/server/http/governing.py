"""`Governing`: the acts on budgets and limits, in a steward's own name, for the API and the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from starlette.exceptions import HTTPException

from sfumato._dataclasses import dataclass
from sfumato.ledger import Budget, Receipt, Steward
from sfumato.server.house import House

__all__ = ["Done", "Figures", "Governing"]

Number: TypeAlias = str | int | float | Fraction
Figures: TypeAlias = tuple[Number, Number | None]
"""Epsilon, and delta; None: what the dataset's budget has."""


@dataclass(frozen=True, slots=True)
class Done:
    """What an act put on record.

    Attributes:
        receipts: Of the act.
        by: Who did it.
        balance: What is spent and left now, of the dataset or of the analyst whom it is about.
        note: What else is to be done by hand; None: nothing.
    """

    receipts: Sequence[Receipt]
    by: str
    balance: Mapping[str, Any]
    note: str | None

    def to_dict(self) -> dict[str, Any]:
        """What the API tells."""
        numbers = [receipt.number for receipt in self.receipts]
        told = {"receipts": numbers, "by": self.by, "balance": self.balance}
        return told if self.note is None else told | {"note": self.note}


class Governing:
    """The acts on a house's datasets, each on the ledger with the name of who did it.

    All of them raise `HTTPException` 404 for a dataset that is not served. Whatever needs the ledger's key or
    the data's path is not here: taking a ledger over without its anchor, declaring anew, opening a budget.
    """

    def __init__(self, house: House) -> None:
        self._house = house

    def raise_budget(self, by: str, dataset: str, wanted: Figures, *, reason: str) -> Done:
        """Only upwards, once something was spent; what was spent stays spent."""
        note = (
            f"Write it into sfumato.toml, too: a server does not begin while [datasets.{dataset}] there has "
            "another budget than the ledger."
        )
        return self._done(
            by,
            dataset,
            lambda act: act.raise_budget(dataset, self._budget(dataset, wanted), reason=reason),
            note=note,
        )

    def close(self, by: str, dataset: str, *, reason: str) -> Done:
        """Nothing more can be asked of it, ever."""
        return self._done(by, dataset, lambda act: act.close_budget(dataset, reason=reason))

    def limit(self, by: str, dataset: str, analyst: str, wanted: Figures, *, reason: str) -> Done:
        """Within the dataset's budget; what they spent counts. It lifts a revocation."""
        note = f"If sfumato.toml lists {analyst} in [datasets.{dataset}.analysts], write it there, too."
        return self._done(
            by,
            dataset,
            lambda act: act.limit(dataset, analyst, self._budget(dataset, wanted), reason=reason),
            analyst=analyst,
            note=note,
        )

    def revoke(self, by: str, dataset: str, analyst: str, *, reason: str, force: bool = False) -> Done:
        """Until a new limit is set."""
        return self._done(
            by,
            dataset,
            lambda act: act.revoke(dataset, analyst, reason=reason, force=force),
            analyst=analyst,
        )

    def allot(self, by: str, dataset: str, limits: Mapping[str, Figures | None], *, reason: str) -> Done:
        """They must fit together into what the dataset has left."""

        def work(act: Steward) -> list[Receipt]:
            budgets = {
                name: None if figures is None else self._budget(dataset, figures)
                for name, figures in limits.items()
            }
            return act.allot(dataset, budgets, reason=reason)

        return self._done(by, dataset, work)

    def take_back(self, by: str, dataset: str, *, reason: str) -> Done:
        """What was spent stays spent."""
        return self._done(by, dataset, lambda act: act.take_back(dataset, reason=reason))

    def give(self, by: str, dataset: str, receipts: Iterable[int], *, reason: str) -> Done:
        """Reading them counts toward nobody's limit from now on."""
        return self._done(by, dataset, lambda act: act.give(dataset, receipts, reason=reason))

    def refuse_unknown(self, dataset: str) -> None:
        """Goes on only for what is served."""
        if dataset not in self._house.datasets:
            raise HTTPException(404)

    def _done(
        self,
        by: str,
        dataset: str,
        work: Callable[[Steward], Receipt | Sequence[Receipt]],
        *,
        analyst: str | None = None,
        note: str | None = None,
    ) -> Done:
        self.refuse_unknown(dataset)
        receipts = work(self._house.steward(by))
        several = [receipts] if isinstance(receipts, Receipt) else receipts
        return Done(several, by, self._house.ledger.balance(dataset, analyst).to_dict(), note)

    def _budget(self, dataset: str, wanted: Figures) -> Budget:
        """These figures, in the gate that the dataset's budget has."""
        (known,) = (each.budget for each in self._house.ledger.datasets() if each.name == dataset)
        epsilon, delta = wanted
        return Budget(
            epsilon,
            known.delta if delta is None else delta,
            known.accountant,
            order=known.order,
            aside=known.aside,
            each=known.each,
        )
