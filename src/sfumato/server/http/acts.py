"""The steward's acts on budgets and limits, over HTTP: each on the ledger with the name of who did it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from sfumato.render import plain_json
from sfumato.server.house import House
from sfumato.server.http import failures
from sfumato.server.http.asking import Auditor, Governor, Name, Threads
from sfumato.server.http.bodies import Name as Team
from sfumato.server.http.bodies import Number
from sfumato.server.http.governing import Done, Governing

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

    @property
    def both(self) -> tuple[Number, Number | None]:
        """Epsilon and delta."""
        return self.epsilon, self.delta


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
    """Addresses for stewards alone; the list of analysts is for auditors, too."""

    def __init__(self, house: House, run: Threads) -> None:
        self._house, self._run, self._governing = house, run, Governing(house)

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
        self._governing.refuse_unknown(name)
        ledger = self._house.ledger
        found = await self._run(
            lambda: [ledger.balance(name, each).to_dict() for each in ledger.analysts(name)]
        )
        return failures.answered(plain_json(found))

    async def budget(self, name: Name, body: Sum, who: Governor) -> Response:
        """Only upwards, once something was spent; what was spent stays spent."""
        return await self._done(
            lambda: self._governing.raise_budget(who.name, name, body.both, reason=body.reason)
        )

    async def close(self, name: Name, body: Reason, who: Governor) -> Response:
        """Nothing more can be asked of it, ever."""
        return await self._done(lambda: self._governing.close(who.name, name, reason=body.reason))

    async def limit(self, name: Name, analyst: Name, body: Sum, who: Governor) -> Response:
        """Within the dataset's budget; what they spent counts. It lifts a revocation."""
        return await self._done(
            lambda: self._governing.limit(who.name, name, analyst, body.both, reason=body.reason)
        )

    async def revoke(self, name: Name, analyst: Name, body: Revocation, who: Governor) -> Response:
        """Until a new limit is set."""
        return await self._done(
            lambda: self._governing.revoke(who.name, name, analyst, reason=body.reason, force=body.force)
        )

    async def allot(self, name: Name, body: Allotment, who: Governor) -> Response:
        """They must fit together into what the dataset has left."""
        limits = {team: None if sums is None else sums.both for team, sums in body.limits.items()}
        return await self._done(lambda: self._governing.allot(who.name, name, limits, reason=body.reason))

    async def take_back(self, name: Name, body: Reason, who: Governor) -> Response:
        """What was spent stays spent."""
        return await self._done(lambda: self._governing.take_back(who.name, name, reason=body.reason))

    async def give(self, name: Name, body: Gift, who: Governor) -> Response:
        """Reading them counts toward nobody's limit from now on."""
        return await self._done(
            lambda: self._governing.give(who.name, name, body.receipts, reason=body.reason)
        )

    async def _done(self, act: Callable[[], Done]) -> Response:
        """Gives the receipts' numbers and the balance as it is now."""
        done = await self._run(act)
        return failures.answered(plain_json(done.to_dict()))
