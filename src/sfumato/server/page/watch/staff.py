"""`/watch/accounts`: who may log in, and their tokens, for stewards; each act with a reason, on record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.server.access import Act, Role
from sfumato.server.http.staffing import LONGEST, Staffing
from sfumato.server.page.common import Common
from sfumato.server.page.forms import fields, reason_in, status_of
from sfumato.server.page.looks import asker
from sfumato.server.page.once import Once
from sfumato.server.page.watch.told import Told

__all__ = ["Staff"]

_WHERE = "/watch/accounts"
_SURE = {
    "remove": ("All tokens of the account end at once. What it spent stays on record.", "Remove the account"),
    "revoke": ("The token ends for good: whoever logs in with it is refused.", "End the token"),
}


class Staff:
    """Forms for stewards alone: nobody else sees them, or can send one."""

    def __init__(self, common: Common) -> None:
        self._common, self._house, self._run = common, common.house, common.aside
        self._staffing, self._once = Staffing(common.house, common.accounts), Once()
        self._deeds: dict[str, Callable[[str, Mapping[str, str]], str]] = {
            "add": self._add,
            "issue": self._issue,
            "revoke": self._revoke,
            "remove": self._remove,
        }

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        app.add_api_route(_WHERE, self.shown, methods=["GET"], response_model=None)
        app.add_api_route(_WHERE + "/{act}", self.sent, methods=["POST"], response_model=None)

    async def shown(self, request: Request) -> Response:
        """All accounts, and on top of them what was done last."""
        asker(request).needs(Act.GOVERN)
        number = request.query_params.get("done", "")
        told = None
        if number.isascii() and number.isdigit() and 0 < len(number) <= 18 and int(number):
            found = await self._run(lambda: self._house.one_of(None, int(number)))
            told = None if found is None else Told(found)
        return await self._page(request, told=told)

    async def sent(self, request: Request, act: str) -> Response:
        """Does what a form says, or asks whether it is meant; a token is shown here and never again."""
        who = asker(request)
        who.needs(Act.GOVERN)
        if act not in self._deeds:
            raise HTTPException(404)
        values = fields(await request.body())
        try:
            reason_in(values)
            if act in _SURE and values.get("sure") != "yes":
                return self._asked(request, act, values)
            again = self._once.begin(who, act, values, _WHERE)
            if again is not None:
                return RedirectResponse(again, 303)
            try:
                token, number = await self._run(lambda: self._acted(act, who.name, values))
            except BaseException:
                self._once.failed(who, values)
                raise
        except SfumatoError as error:
            return await self._page(request, values=values, act=act, wrong=error)
        where = f"{_WHERE}?{urlencode({'done': number})}" if number else _WHERE
        self._once.done(who, act, values, where)
        if token:
            return self._common.looks.page(
                request, "watch_token.html", tab=_WHERE, token=token, person=values.get("name", "")
            )
        return RedirectResponse(where, 303)

    def _acted(self, act: str, by: str, values: Mapping[str, str]) -> tuple[str, int]:
        """The token that was made, if any, and the number of the receipt; 0: nothing changed."""
        before = self._house.ledger.number
        token = self._deeds[act](by, values)
        since = self._house.record(None, after=before)
        numbers = [one.number for one in since if one.kind == "access" and one.memo.get("by") == by]
        return token, max(numbers, default=0)

    def _asked(self, request: Request, act: str, values: Mapping[str, str]) -> Response:
        """Whether it is really meant."""
        sure, button = _SURE[act]
        kept = {name: value for name, value in values.items() if name not in ("form", "sure")}
        return self._common.looks.page(
            request,
            "watch_confirm.html",
            tab=_WHERE,
            title=f"{button} of {values.get('name', '')}?",
            sure=sure,
            button=button,
            action=f"{_WHERE}/{act}",
            back=_WHERE,
            kept=kept,
            named=[(name, value) for name, value in kept.items() if value and name != "once"],
        )

    async def _page(
        self,
        request: Request,
        *,
        told: Told | None = None,
        values: Mapping[str, str] | None = None,
        act: str = "",
        wrong: SfumatoError | None = None,
    ) -> Response:
        listed = await self._run(self._staffing.all)
        now = datetime.now(UTC)
        people: list[dict[str, Any]] = [
            {
                "account": one.account,
                "created": one.created,
                "steward": one.account.role is Role.STEWARD,
                "tokens": [(info, info.status(now)) for info in one.tokens],
            }
            for one in listed
        ]
        return await self._common.looks.made(
            request,
            "watch_accounts.html",
            status_of(wrong),
            tab=_WHERE,
            people=people,
            told=told,
            act=act,
            wrong="" if wrong is None else str(wrong),
            values=values or {},
            once=self._once.word,
            longest=LONGEST,
        )

    # ── each of them: what is shown once, or nothing

    def _add(self, by: str, values: Mapping[str, str]) -> str:
        role = "auditor" if values.get("role") == "auditor" else "analyst"
        self._staffing.add(by, values.get("name", "").strip(), role, reason=reason_in(values))
        return ""

    def _issue(self, by: str, values: Mapping[str, str]) -> str:
        days = values.get("days", "").strip()
        if not (days.isascii() and days.isdigit() and len(days) < 5):
            raise InvalidParameter(f"A token is valid for 1 to {LONGEST} days.")
        text, _ = self._staffing.issue(by, values.get("name", ""), int(days), reason=reason_in(values))
        return text

    def _revoke(self, by: str, values: Mapping[str, str]) -> str:
        self._staffing.revoke(by, values.get("token", ""), reason=reason_in(values))
        return ""

    def _remove(self, by: str, values: Mapping[str, str]) -> str:
        self._staffing.remove(by, values.get("name", ""), reason=reason_in(values))
        return ""
