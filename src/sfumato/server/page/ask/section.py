"""`/ask`: a question in SQL, its quote while it is typed, and its answer once it is paid."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Annotated
from urllib.parse import urlencode

from fastapi import FastAPI, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sfumato._dataclasses import dataclass
from sfumato.errors import SfumatoError
from sfumato.ledger.names import alike
from sfumato.random import salt
from sfumato.server.access import Account, Act
from sfumato.server.http.answers import released
from sfumato.server.http.failures import STATUS
from sfumato.server.http.rereads import own_receipt
from sfumato.server.http.watching import PAID, RECEIPT
from sfumato.server.page.ask.declared import TableShown, tables_of
from sfumato.server.page.ask.past import last_of
from sfumato.server.page.ask.quoting import CONFIDENCES, Asked, Quoted, Refused, quoted
from sfumato.server.page.common import Common
from sfumato.server.page.forms import fields
from sfumato.server.page.looks import asker, is_part
from sfumato.server.page.rest import Rest, price_of_receipt
from sfumato.server.troubles import said
from sfumato.session import Session
from sfumato.sql.read.scalars import callable_names

__all__ = ["Ask"]

_LONGEST_LINK = 10_000
_WORDS = 10_000
_KEYWORDS = (
    "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AS AND OR NOT IN BETWEEN LIKE IS NULL CASE WHEN THEN ELSE "
    "END JOIN LEFT ON USING DISTINCT DESC ASC WITH FILTER ROLLUP CUBE DATE TIMESTAMP INTERVAL TRUE FALSE"
)


@dataclass(frozen=True, slots=True)
class _Paid:
    """What a release led to: a receipt, whether nothing was paid, and whether it is the own, in this text."""

    number: int
    free: bool
    worded: bool


class Ask:
    """The query page. What pays is a form that was sent by hand; every other address is free."""

    def __init__(self, common: Common) -> None:
        self._common, self._once = common, _Once()

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        for method, path, run in (
            ("GET", "/ask", self.page),
            ("GET", "/ask/quote", self.back),
            ("GET", "/ask/release", self.back),
            ("POST", "/ask/quote", self.quote),
            ("POST", "/ask/release", self.release),
        ):
            app.add_api_route(path, run, methods=[method], response_model=None)

    async def page(
        self,
        request: Request,
        sql: Annotated[str, Query()] = "",
        epsilon: Annotated[str, Query(max_length=64)] = "",
        of: Annotated[int | None, Query(alias="from", ge=1, le=2**62)] = None,
    ) -> Response:
        """The empty page, or with a question from elsewhere in it: a link, or the text of an own receipt."""
        who = _spender(request)
        note = ""
        if len(sql) > _LONGEST_LINK:
            sql, note = "", "The question in the link is too long to be taken over: paste it here."

        def work() -> tuple[Asked, Quoted | Refused]:
            session = self._common.house.session(who.name)
            asked = Asked(sql, epsilon)
            if of is not None:
                memo = own_receipt(session, of).purpose
                price = memo.epsilon if memo.asked is None else memo.asked
                asked = Asked(memo.sql or "", "" if price is None else str(float(price)))
            return asked, quoted(session, asked)

        asked, found = await self._common.run(work)
        return await self._shown(request, asked, found if asked.sql.strip() else None, note=note)

    async def back(self, request: Request) -> Response:
        """Whoever reloads the address of a form begins anew."""
        _spender(request)
        return RedirectResponse("/ask", 303)

    async def quote(self, request: Request) -> Response:
        """What an answer would cost, as a part of the page or as the whole; nothing is spent."""
        who = _spender(request)
        asked = Asked.of(fields(await request.body()))
        found = await self._common.run(lambda: quoted(self._common.house.session(who.name), asked))
        if not is_part(request):
            return await self._shown(request, asked, found)
        stewards = await self._stewards(found)
        return await self._common.looks.made(
            request,
            "ask_quote.html",
            found=found,
            refused=isinstance(found, Refused),
            stewards=stewards,
            note="",
        )

    async def release(self, request: Request) -> Response:
        """Pays for what was quoted, and leads to the answer: whoever reloads that reads it again, free."""
        who = _spender(request)
        sent = fields(await request.body())
        asked, word = Asked.of(sent), sent.get("word", "")[:64]
        found = await self._common.run(lambda: quoted(self._common.house.session(who.name), asked))
        if isinstance(found, Refused) or found.quote is None or found.too_much:
            return await self._shown(request, asked, found, status=402 if isinstance(found, Quoted) else 422)
        if found.seen != sent.get("seen", "") and not found.free:
            note = "The question or its price is another one than you saw: look at it, then release it."
            return await self._shown(request, asked, found, note=note, status=409)

        if found.is_others and len(asked.sql) > _LONGEST_LINK:
            note = (
                "An answer that somebody else paid for is read with a shorter question: leave something out."
            )
            return await self._shown(request, asked, found, note=note, status=413)

        async def pay() -> _Paid:
            def work() -> _Paid:
                release = released(self._common.house, asked.question(), who.name).release
                receipt = release.receipt
                own = alike(receipt.analyst or "") == alike(who.name)
                return _Paid(receipt.number, release.free, own and receipt.purpose.words == asked.sql)

            return await self._common.run(work)

        try:
            paid, first = await self._once((who.name, word, asked.digest) if word else None, pay)
        except SfumatoError as error:
            refused = Refused(said(error, who), "", (), STATUS.get(error.code, 500))
            return await self._shown(request, asked, refused)
        terms = {"confidence": asked.confidence} | ({"again": "yes"} if paid.free else {})
        if not paid.worded and len(asked.sql) <= _LONGEST_LINK:
            terms["sql"] = asked.sql  # the same numbers in other words, or what somebody else paid for
        told = {RECEIPT: str(paid.number), PAID: "yes" if first and not paid.free else "no"}
        return RedirectResponse(f"/ask/receipts/{paid.number}?{urlencode(terms)}", 303, told)

    async def _shown(
        self,
        request: Request,
        asked: Asked,
        found: Quoted | Refused | None,
        *,
        note: str = "",
        status: int = 200,
    ) -> Response:
        who = asker(request)
        tables = tables_of(self._common.house)
        rests = await self._common.run(
            lambda: rests_of(self._common.house.session(who.name), self._datasets())
        )
        return await self._common.looks.made(
            request,
            "ask.html",
            found.status if isinstance(found, Refused) else status,
            asked=asked,
            found=found,
            refused=isinstance(found, Refused),
            note=note,
            stewards=await self._stewards(found),
            tables=tables,
            rests=rests,
            words=_words(),
            examples=examples_of(tables),
            confidences=CONFIDENCES,
            word=salt(16).hex(),
        )

    def _datasets(self) -> list[str]:
        return self._common.house.datasets

    async def _stewards(self, found: Quoted | Refused | None) -> list[str]:
        """Whom to ask for more, where a budget is not enough."""
        if not isinstance(found, Quoted) or not found.too_much:
            return []
        listed = await self._common.run(self._common.accounts.list)
        return [one.account.name for one in listed if one.account.may(Act.GOVERN)]


class _Once:
    """Runs what has the same word once, however often it is sent; those that come meanwhile wait for it.

    It gives what came of it, and whether that was the first time.
    """

    def __init__(self, most: int = _WORDS) -> None:
        self._most = most
        self._begun: OrderedDict[tuple[str, ...], asyncio.Task[_Paid]] = OrderedDict()

    async def __call__(
        self, word: tuple[str, ...] | None, pay: Callable[[], Awaitable[_Paid]]
    ) -> tuple[_Paid, bool]:
        if word is None:
            return await pay(), True
        begun = self._begun.get(word)
        first = begun is None
        if begun is None:
            begun = self._begun[word] = asyncio.ensure_future(_awaited(pay))
            while len(self._begun) > self._most:
                self._begun.popitem(last=False)
        try:
            return await asyncio.shield(begun), first
        except Exception:
            self._begun.pop(word, None)  # what failed may be tried again
            raise


async def _awaited(pay: Callable[[], Awaitable[_Paid]]) -> _Paid:
    return await pay()


def _spender(request: Request) -> Account:
    who = asker(request)
    who.needs(Act.SPEND)
    return who


def rests_of(session: Session, datasets: list[str]) -> list[tuple[str, Rest]]:
    """What is left of each budget."""
    found = []
    for name in datasets:
        last = last_of(session, name)
        found.append((name, Rest(session.balance(name), {} if last is None else price_of_receipt(last))))
    return found


def examples_of(tables: list[TableShown]) -> list[tuple[str, str]]:
    """Questions to begin with, from what is declared: what they say, and their text."""
    table = next((table for table in tables if table.dataset), None)
    if table is None:
        return []
    found = [("How many rows are there?", f"SELECT COUNT(*) AS n\nFROM {table.written}")]
    listed = next((one for one in table.columns if one.kind == "one of a list"), None)
    if listed is not None:
        text = f"SELECT {listed.written}, COUNT(*) AS n\nFROM {table.written}\nGROUP BY {listed.written}"
        found.append((f"How many by {listed.name}?", text))
    bounded = next((one for one in table.columns if "number" in one.kind and " to " in one.holds), None)
    if bounded is not None:
        text = f"SELECT AVG({bounded.written}) AS mean\nFROM {table.written}"
        found.append((f"What is the mean {bounded.name}?", text))
    day = next((one for one in table.columns if one.kind == "day" and " to " in one.holds), None)
    if day is not None:
        month = f"DATE_TRUNC('month', {day.written})"
        text = f"SELECT {month} AS month, COUNT(*) AS n\nFROM {table.written}\nGROUP BY {month}"
        found.append(("How many each month?", text))
    return found


@cache
def _words() -> tuple[str, str]:
    """What completion knows beside names: keywords and functions."""
    return _KEYWORDS, " ".join(callable_names())
