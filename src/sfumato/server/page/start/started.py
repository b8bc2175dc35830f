"""The end of `/start`: the first private answer, and who else may ask."""

from __future__ import annotations

import hashlib
import hmac
from datetime import timedelta
from fractions import Fraction
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.plan.prices.quote import Quote
from sfumato.render import plain_json
from sfumato.schema import Enum, PrivateTable
from sfumato.server.access import Account, Act, Role, Witness
from sfumato.server.access.record import added, issued, tell
from sfumato.server.http.answers import released
from sfumato.server.http.bodies import Question
from sfumato.server.http.failures import STATUS
from sfumato.server.http.rereads import own_receipt
from sfumato.server.page.common import Common
from sfumato.server.page.forms import fields, number_in
from sfumato.server.page.looks import asker, sections
from sfumato.server.page.start.drafting import Drafts, Paid
from sfumato.session.documents import cells_of
from sfumato.session.rereading import reread

__all__ = ["Started"]

_SHARE = Fraction(1, 10)  # of the budget, for a first answer
_SHARE_OF_PEOPLE = Fraction(1, 5)  # where a part of it buys the profile, once for all
_MOST_ROWS, _DAYS = 50, 90
_CONFIDENCE = "0.95"


class _Changed(InvalidParameter):
    """What would be paid is not what was shown."""


class Started:
    """What is shown once a table is served.

    Args:
        common: What the sections share.
        drafts: What stewards are at.
    """

    def __init__(self, common: Common, drafts: Drafts) -> None:
        self._common, self._drafts = common, drafts

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        for method, path, run in (
            ("GET", "/start/done", self.done),
            ("POST", "/start/answer", self.answer),
            ("POST", "/start/invite", self.invite),
        ):
            app.add_api_route(path, run, methods=[method], response_model=None)

    async def done(self, request: Request) -> Response:
        """A question with its price, or the answer that was paid for; nothing is spent by looking."""
        who, number = asker(request), number_in(request.query_params.get("receipt", ""))
        who.needs(Act.GOVERN)
        if not number:
            return await self._shown(request)
        draft = self._drafts.of(who.name)
        mine = () if draft is None or not draft.registered else tuple(draft.paid.values())
        paid = next((one for one in mine if one.number == number), None)
        if paid is None:  # of a table before this one, or before the server began anew
            return RedirectResponse(f"/show/releases/{number}", 303)
        return await self._shown(request, answer=await self._common.aside(lambda: self._told(who, paid)))

    async def answer(self, request: Request) -> Response:
        """Pays for what was looked at, once, and leads to the answer: sent again, it leads there again."""
        who, table = self._mine(request)
        who.needs(Act.SPEND)
        draft, seen = self._drafts.of(who.name), fields(await request.body()).get("seen", "")
        assert draft is not None

        def work() -> Paid:
            with draft.turn:
                if seen not in draft.paid:
                    draft.paid[seen] = self._pay(who, table, seen)
                return draft.paid[seen]

        try:
            paid = await self._common.run(work)  # within the deadline of a paid read
        except _Changed as error:
            return await self._shown(request, str(error), 409)
        except SfumatoError as error:
            return await self._shown(request, str(error), STATUS.get(error.code, 422))
        return RedirectResponse(f"/start/done?receipt={paid.number}", 303)

    def _pay(self, who: Account, table: PrivateTable, seen: str) -> Paid:
        question = _question(table, self._budget(table))
        quote = self._common.house.session(who.name).sql(question.sql).quote(**question.terms())
        if not hmac.compare_digest(_digest(table, question, quote), seen):
            raise _Changed("Nothing was paid: the table or its price is not what you saw.")
        release = released(self._common.house, question, who.name).release
        price = Fraction(0) if release.free else quote.epsilon + quote.first
        return Paid(release.receipt.number, price)

    def _told(self, who: Account, paid: Paid) -> dict[str, Any]:
        """An answer on record, as it is shown."""
        session = self._common.house.session(who.name)
        release = reread(session, own_receipt(session, paid.number))
        cells = cells_of(release, _CONFIDENCE)
        names, count = list(cells.values), release.table.num_rows
        rows = [
            [(cells.values[name][row], cells.errors.get(name, [None] * count)[row]) for name in names]
            for row in range(min(count, _MOST_ROWS))
        ]
        return {
            "columns": names,
            "rows": plain_json(rows),
            "receipt": paid.number,
            "price": float(paid.price),
            "left": float(session.balance(release.receipt.dataset).left()["epsilon"]),
        }

    async def invite(self, request: Request) -> Response:
        """An analyst's account, with a token that is shown this once."""
        who, _ = self._mine(request)
        name = fields(await request.body()).get("name", "").strip()

        def work() -> str:
            if not 0 < len(name) <= 200:
                raise InvalidParameter("Give the analyst a name, such as ada.")

            def witness(act: str) -> Witness:
                steward = self._common.house.steward(who.name)
                return lambda account, token: tell(steward, act, account, token)

            accounts = self._common.accounts
            accounts.add(name, Role.ANALYST, witness=witness(added(Role.ANALYST)))
            return accounts.issue(name, timedelta(days=_DAYS), witness=witness(issued(_DAYS)))[0]

        try:
            token = await self._common.aside(work)
        except SfumatoError as error:
            return await self._shown(request, str(error), STATUS.get(error.code, 422))
        return await self._shown(request, invited=(name, token))

    def _mine(self, request: Request) -> tuple[Account, PrivateTable]:
        """Who asks, and the table that they registered last."""
        who = asker(request)
        who.needs(Act.GOVERN)
        draft = self._drafts.of(who.name)
        if draft is None or not draft.registered:
            raise HTTPException(404)
        found: PrivateTable = self._common.house.tables[draft.table.name]
        return who, found

    def _budget(self, table: PrivateTable) -> Fraction:
        (known,) = (
            each.budget for each in self._common.house.ledger.datasets() if each.name == table.dataset
        )
        return known.epsilon

    async def _shown(
        self,
        request: Request,
        message: str = "",
        status: int = 200,
        *,
        answer: dict[str, Any] | None = None,
        invited: tuple[str, str] | None = None,
    ) -> Response:
        asker(request).needs(Act.GOVERN)
        draft = self._drafts.of(asker(request).name)
        if draft is None or not draft.registered:
            return RedirectResponse("/start?lost=" if draft is None else "/start/look", 303)
        who, table = self._mine(request)

        def work() -> dict[str, Any]:
            budget = self._budget(table)
            question = _question(table, budget)
            query = self._common.house.session(who.name).sql(question.sql)
            quote = query.quote(**question.terms())
            told = [(one["name"], one["told"]) for one in quote.to_dict()["columns"] if one["error"] != 0]
            return {
                "sql": question.sql,
                "seen": _digest(table, question, quote),
                "price": float(quote.epsilon + quote.first),
                "first": float(quote.first),
                "budget": float(budget),
                "told": told,
                "known": [sentence for _, sentence in quote.standing],
            }

        values = await self._common.aside(work)
        addresses = {where for where, *_ in sections(who)}
        return await self._common.looks.made(
            request,
            "start_done.html",
            status,
            message=message,
            table=table.name,
            unit_word="row" if table.unit.is_row else "person",
            dataset=table.dataset,
            answer=answer,
            invited=invited,
            can_ask="/ask" in addresses,
            can_watch="/watch" in addresses,
            **values,
        )


def _question(table: PrivateTable, budget: Fraction) -> Question:
    """A first question about a table: how many, by its first category if it has one."""
    category = next((name for name, kind in table.schema.items() if isinstance(kind, Enum)), None)
    share = _SHARE if table.unit.is_row else _SHARE_OF_PEOPLE
    if category is None:
        text = f"SELECT COUNT(*) AS rows_in_all FROM {_name(table.name)}"
    else:
        key = _name(category)
        text = f"SELECT {key}, COUNT(*) AS rows_in_group FROM {_name(table.name)} GROUP BY {key}"
    price = budget * share
    return Question.model_validate({"sql": text, "epsilon": str(price)})


def _digest(table: PrivateTable, question: Question, quote: Quote) -> str:
    """What somebody saw before they pay: the table, the question, its price, and what is on record of it."""
    told = [sentence for _, sentence in quote.standing]  # such as what somebody else's answer counts
    seen = (table.name, table.dataset, question.sql, quote.epsilon, quote.first, quote.delta, *told)
    return hashlib.sha256("\0".join(map(str, seen)).encode()).hexdigest()


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
