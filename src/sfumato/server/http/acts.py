"""The steward's acts on budgets and limits, over HTTP: each on the ledger with the name of who did it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from sfumato.ledger import Budget, Receipt, Steward
from sfumato.render import plain_json
from sfumato.server.access import Account
from sfumato.server.house import House
from sfumato.server.http import failures
from sfumato.server.http.asking import Auditor, Governor, Name, Threads
from sfumato.server.http.bodies import Name as Team
from sfumato.server.http.bodies import Number

__all__ = ["Acts"]

_MANY = 1_000
_WHY = Field(min_length=1, max_length=2_000, description="Why, in a sentence; kept in the receipt.")


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Reason(_Body):
    """Why something is done."""

    reason: Annotated[str, _WHY]


class Figures(_Body):
    """What may be spent in all."""

    epsilon: Number
    delta: Number | None = Field(None, description="Else what the dataset's budget has.")


class Sum(Figures):
    """What may be spent in all from now on, and why."""

    reason: Annotated[str, _WHY]


class Revocation(Reason):
    """That somebody may ask nothing more."""

    force: bool = Field(False, description="Also for a name that the ledger has not seen.")


class Gift(Reason):
    """Answers for all."""

    receipts: Annotated[list[int], Field(min_length=1, max_length=_MANY)] = Field(
        description="The numbers of the debits that paid for them."
    )


class Allotment(Reason):
    """Limits of several analysts at once; null: that one may ask nothing more."""

    limits: Annotated[dict[Team, Figures | None], Field(min_length=1, max_length=_MANY)]


class Acts:
    """Addresses for stewards alone; the list of analysts is for auditors, too.

    Whatever needs the ledger's key or the data's path is not here: taking a ledger over without its anchor,
    declaring anew, opening a budget.
    """

    def __init__(self, house: House, run: Threads) -> None:
        self._house, self._run = house, run

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        at, one = "/api/datasets/{name}", "/api/datasets/{name}/analysts/{analyst}"
        for method, path, run, what in (
            ("GET", f"{at}/analysts", self.analysts, "Limits and balances of all analysts of a dataset."),
            ("PUT", f"{at}/budget", self.budget, "Raise a dataset's budget."),
            ("POST", f"{at}/close", self.close, "Close a dataset's budget for good."),
            ("PUT", f"{one}/limit", self.limit, "Set what an analyst may spend in all."),
            ("POST", f"{one}/revoke", self.revoke, "Let an analyst ask nothing more."),
            ("POST", f"{at}/allot", self.allot, "Limit several analysts, all or none."),
            ("POST", f"{at}/take-back", self.take_back, "Undo the last allotment."),
            ("POST", f"{at}/give", self.give, "Give answers on record to all."),
        ):
            app.add_api_route(path, run, methods=[method], summary=what, response_model=None)

    async def analysts(self, name: Name, who: Auditor) -> Response:  # noqa: ARG002
        """Everybody whom the dataset's budget knows, with what is spent and left."""
        self._known(name)
        ledger = self._house.ledger
        found = await self._run(
            lambda: [ledger.balance(name, each).to_dict() for each in ledger.analysts(name)]
        )
        return failures.answered(plain_json(found))

    async def budget(self, name: Name, body: Sum, who: Governor) -> Response:
        """Only upwards, once something was spent; what was spent stays spent."""
        note = (
            f"Write it into sfumato.toml, too: a server does not begin while [datasets.{name}] there has "
            "another budget than the ledger."
        )
        return await self._done(
            who,
            name,
            None,
            lambda act: act.raise_budget(name, self._budget(name, body), reason=body.reason),
            note,
        )

    async def close(self, name: Name, body: Reason, who: Governor) -> Response:
        """Nothing more can be asked of it, ever."""
        return await self._done(who, name, None, lambda act: act.close_budget(name, reason=body.reason))

    async def limit(self, name: Name, analyst: Name, body: Sum, who: Governor) -> Response:
        """Within the dataset's budget; what they spent counts. It lifts a revocation."""
        note = f"If sfumato.toml lists {analyst} in [datasets.{name}.analysts], write it there, too."
        return await self._done(
            who,
            name,
            analyst,
            lambda act: act.limit(name, analyst, self._budget(name, body), reason=body.reason),
            note,
        )

    async def revoke(self, name: Name, analyst: Name, body: Revocation, who: Governor) -> Response:
        """Until a new limit is set."""
        return await self._done(
            who, name, analyst, lambda act: act.revoke(name, analyst, reason=body.reason, force=body.force)
        )

    async def allot(self, name: Name, body: Allotment, who: Governor) -> Response:
        """They must fit together into what the dataset has left."""

        def work(act: Steward) -> list[Receipt]:
            limits = {
                team: None if figures is None else self._budget(name, figures)
                for team, figures in body.limits.items()
            }
            return act.allot(name, limits, reason=body.reason)

        return await self._done(who, name, None, work)

    async def take_back(self, name: Name, body: Reason, who: Governor) -> Response:
        """What was spent stays spent."""
        return await self._done(who, name, None, lambda act: act.take_back(name, reason=body.reason))

    async def give(self, name: Name, body: Gift, who: Governor) -> Response:
        """Reading them counts toward nobody's limit from now on."""
        return await self._done(
            who, name, None, lambda act: act.give(name, body.receipts, reason=body.reason)
        )

    async def _done(
        self,
        who: Account,
        dataset: str,
        analyst: str | None,
        work: Callable[[Steward], Receipt | Sequence[Receipt]],
        note: str | None = None,
    ) -> Response:
        """Acts in a steward's name; gives the receipts' numbers and the balance as it is now."""
        self._known(dataset)

        def acting() -> dict[str, Any]:
            receipts = work(self._house.steward(who.name))
            several = [receipts] if isinstance(receipts, Receipt) else receipts
            balance = self._house.ledger.balance(dataset, analyst)
            return {
                "receipts": [receipt.number for receipt in several],
                "by": who.name,
                "balance": balance.to_dict(),
                **({} if note is None else {"note": note}),
            }

        return failures.answered(plain_json(await self._run(acting)))

    def _budget(self, dataset: str, wanted: Figures) -> Budget:
        """These figures, in the gate that the dataset's budget has."""
        (known,) = (each.budget for each in self._house.ledger.datasets() if each.name == dataset)
        return Budget(
            wanted.epsilon,
            known.delta if wanted.delta is None else wanted.delta,
            known.accountant,
            order=known.order,
            aside=known.aside,
            each=known.each,
        )

    def _known(self, dataset: str) -> None:
        if dataset not in self._house.datasets:
            raise HTTPException(404)
