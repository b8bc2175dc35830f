"""Accounts and tokens over HTTP, for stewards: each act on the ledger with the name of who did it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from sfumato.render import plain_json
from sfumato.server.access import Accounts, TokenInfo
from sfumato.server.house import House
from sfumato.server.http import failures
from sfumato.server.http.asking import Governor, Name, Threads
from sfumato.server.http.staffing import LONGEST, Staffing

__all__ = ["People"]


class NewAccount(BaseModel):
    """Somebody who may log in. Stewards are added at the machine that holds the keys."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1, max_length=200)]
    role: Literal["analyst", "auditor"] = "analyst"


class NewToken(BaseModel):
    """How long a token is valid."""

    model_config = ConfigDict(extra="forbid", strict=True)

    days: Annotated[int, Field(ge=1, le=LONGEST)] = 90


class People:
    """Addresses for stewards alone."""

    def __init__(self, house: House, accounts: Accounts, run: Threads) -> None:
        self._staffing, self._run = Staffing(house, accounts), run

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        one = "/api/accounts/{name}"
        for method, path, run, what in (
            ("GET", "/api/accounts", self.accounts, "All accounts, and what may be known of their tokens."),
            ("POST", "/api/accounts", self.add, "Add an analyst or an auditor."),
            ("DELETE", one, self.remove, "Remove an analyst's or auditor's account and its tokens."),
            ("POST", f"{one}/tokens", self.issue, "A new token of an account, shown this once."),
            ("DELETE", "/api/tokens/{name}", self.revoke, "End a token for good, by its id."),
        ):
            app.add_api_route(path, run, methods=[method], summary=what, response_model=None)

    async def accounts(self, who: Governor) -> Response:  # noqa: ARG002
        """What was spent by whom is with the datasets."""
        found = await self._run(self._staffing.all)
        told = [
            {
                "name": each.account.name,
                "role": each.account.role.value,
                "created": each.created.isoformat(),
                "tokens": [_facts(info) for info in each.tokens],
            }
            for each in found
        ]
        return failures.answered(told)

    async def add(self, body: NewAccount, who: Governor) -> Response:
        """They log in with a token, which is issued next."""
        made = await self._run(lambda: self._staffing.add(who.name, body.name, body.role))
        return failures.answered({"name": made.name, "role": made.role.value}, 201)

    async def remove(self, name: Name, who: Governor) -> Response:
        """What it spent stays on record."""
        removed = await self._run(lambda: self._staffing.remove(who.name, name))
        return failures.answered({"removed": removed})

    async def issue(self, name: Name, body: NewToken, who: Governor) -> Response:
        """It is kept nowhere: if the answer is lost, revoke it and issue another."""
        text, info = await self._run(lambda: self._staffing.issue(who.name, name, body.days))
        return failures.answered({"token": text, **_facts(info)}, 201)

    async def revoke(self, name: Name, who: Governor) -> Response:
        """Every server process refuses it within seconds; stewards' can be revoked, too."""
        info = await self._run(lambda: self._staffing.revoke(who.name, name))
        return failures.answered(_facts(info))


def _facts(info: TokenInfo) -> dict[str, Any]:
    told: dict[str, Any] = plain_json(
        {
            "id": info.id,
            "name": info.name,
            "created": info.created.isoformat(),
            "expires": info.expires.isoformat(),
            "revoked": None if info.revoked is None else info.revoked.isoformat(),
            "status": info.status(datetime.now(UTC)),
        }
    )
    return told
