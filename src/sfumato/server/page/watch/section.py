"""`/watch`: budgets over time, alerts, the ledger with search, and whether it holds."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sfumato._dataclasses import dataclass
from sfumato.audit.kept import Kept, kept
from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.ledger.verification import Verification
from sfumato.schema import Windows
from sfumato.server.access import Account, Act
from sfumato.server.http.books import Books
from sfumato.server.page.common import Common
from sfumato.server.page.forms import number_in
from sfumato.server.page.looks import asker
from sfumato.server.page.watch.history import Histories, outlook
from sfumato.server.page.watch.searching import Wanted, search
from sfumato.server.page.watch.standing import Standing, alerts, standings
from sfumato.server.page.watch.told import KINDS, Told
from sfumato.server.troubles import said

__all__ = ["Watch"]

_ROWS, _PATIENCE = 50, 5.0


@dataclass(frozen=True, slots=True)
class _Verified:
    """The last verification by this server: when it began, who asked, what it found, or why it could not."""

    when: datetime
    by: str
    found: Verification
    wrong: SfumatoError | None = None


class Watch:
    """What is spent, by whom and when, for everybody as far as they may know it."""

    def __init__(self, common: Common) -> None:
        self._common, self._house = common, common.house
        self._books = Books(common.house, common.aside)
        self._histories = Histories(common.house)
        self._verified: _Verified | None = None
        self._verifying: asyncio.Task[None] | None = None

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        for method, path, run in (
            ("GET", "/watch", self.overview),
            ("GET", "/watch/spent", self.spent),
            ("GET", "/watch/ledger", self.ledger),
            ("GET", "/watch/ledger/{number}", self.receipt),
            ("GET", "/watch/checks", self.checks),
            ("POST", "/watch/verify", self.verify),
            ("GET", "/watch/export", self.export),
        ):
            app.add_api_route(path, run, methods=[method], response_model=None)

    def count(self, who: Account) -> int:
        """How many alerts somebody has."""
        return len(alerts(list(standings(self._house, who)), who))

    async def overview(self, request: Request) -> Response:
        """Gauges of all that the asker may know."""
        who = asker(request)

        def work() -> dict[str, Any]:
            found = list(standings(self._house, who))
            whole = [one for one in found if one.own or one.balance.analyst is None]
            return {
                "alerts": alerts(found, who),
                "budgets": [(one, *self._over_time(who, one)) for one in whole],
                "analysts": {one.balance.dataset: _analysts(found, one.balance.dataset) for one in whole},
            }

        values = await self._common.threads(who)(work)
        most = 10**6 if request.query_params.get("all") else _ROWS
        return await self._common.looks.made(request, "watch.html", tab="/watch", most=most, **values)

    async def spent(self, request: Request) -> Response:
        """One budget over time: a dataset's, or an analyst's."""
        who = asker(request)
        dataset, analyst = (request.query_params.get(name, "") for name in ("dataset", "analyst"))

        def work() -> dict[str, Any]:
            if dataset not in self._house.datasets:
                raise HTTPException(404)
            if not who.may(Act.AUDIT):
                if analyst:
                    raise HTTPException(404)
                one = Standing(self._house.session(who.name).balance(dataset), own=True)
            else:
                if analyst and analyst not in self._house.ledger.analysts(dataset):
                    raise HTTPException(404)
                one = Standing(self._house.ledger.balance(dataset, analyst or None))
            picture, forecast, whole = self._over_time(who, one)
            wanted = Wanted(dataset=dataset, analyst=analyst)
            latest = search(self._house, who, wanted).receipts[:10]
            return {
                "one": one,
                "picture": picture,
                "forecast": forecast,
                "whole": whole,
                "latest": latest,
                "more": wanted.address(),
            }

        return await self._common.looks.made(
            request, "watch_spent.html", tab="/watch", **await self._common.threads(who)(work)
        )

    def _over_time(self, who: Account, one: Standing) -> tuple[Any, str, bool]:
        """The chart, the forecast, and whether the chart goes back to the beginning."""
        balance, now = one.balance, datetime.now(UTC)
        window = None
        if balance.window:
            ledger = self._house.ledger if who.may(Act.AUDIT) else self._house.session(who.name).ledger
            (each,) = (known.budget.each for known in ledger.datasets() if known.name == balance.dataset)
            window = None if each is None else Windows.named(each, balance.window)
        spending = self._histories.of(who).of(balance, window)
        whose = "" if balance.analyst is None else f" by {balance.analyst}"
        picture = spending.chart(now, f"What was spent of {balance.dataset}{whose} over time")
        return picture, outlook(balance, spending, now), spending.whole

    async def ledger(self, request: Request) -> Response:
        """Receipts that fit a search: an analyst's own, all for auditors and stewards."""
        who, asked = asker(request), request.query_params
        wanted, before = Wanted.of(asked), number_in(asked.get("before", ""))
        found = await self._common.threads(who)(lambda: search(self._house, who, wanted, before))
        older = wanted.address(found.older) if found.older else ""
        return await self._common.looks.made(
            request,
            "watch_ledger.html",
            tab="/watch/ledger",
            wanted=wanted,
            found=found,
            older=older,
            newest=wanted.address() if before else "",
            kinds=KINDS,
            datasets=self._house.datasets,
        )

    async def receipt(self, request: Request, number: str) -> Response:
        """Whether it is another one's, or is not there, is not told apart."""
        who, wanted = asker(request), number_in(number)
        name = None if who.may(Act.AUDIT) else who.name
        found = await self._common.threads(who)(lambda: self._house.one_of(name, wanted))
        if found is None:
            raise HTTPException(404)
        return await self._common.looks.made(
            request, "watch_receipt.html", tab="/watch/ledger", told=Told(found)
        )

    async def checks(self, request: Request) -> Response:
        """Whether the ledger holds, and what else may be checked."""
        who = asker(request)
        who.needs(Act.AUDIT)
        number = await self._common.threads(who)(lambda: self._house.ledger.number)
        last, busy = self._verified, self._verifying
        if last is not None and last.wrong is not None:
            last = replace(last, found=Verification((said(last.wrong, who),), 0, ""))
        audited, unread = await self._common.threads(who)(self._audited)
        return await self._common.looks.made(
            request,
            "watch_checks.html",
            tab="/watch/checks",
            last=last,
            since=0 if last is None else number - last.found.entries,
            number=number,
            running=busy is not None and not busy.done(),
            audited=audited,
            unread=unread,
        )

    def _audited(self) -> tuple[Kept | None, str]:
        """The last audit that was kept, or why it cannot be read."""
        place = self._common.ways.audits
        try:
            return (None if place is None else kept(place)), ""
        except InvalidParameter as error:
            return None, str(error)

    async def verify(self, request: Request) -> Response:
        """Reads the whole ledger again; one at a time, and whoever asks meanwhile waits for that one."""
        who = asker(request)
        who.needs(Act.AUDIT)
        if self._verifying is None or self._verifying.done():
            self._verifying = asyncio.create_task(self._verify(who.name))
        await asyncio.wait([self._verifying], timeout=_PATIENCE)
        return RedirectResponse("/watch/checks", 303)

    async def _verify(self, by: str) -> None:
        begun = datetime.now(UTC)
        try:
            self._verified = _Verified(begun, by, await self._books.verified())
        except SfumatoError as error:  # it cannot even be read; who looks is told what is for them
            self._verified = _Verified(begun, by, Verification((), 0, ""), error)

    async def export(self, request: Request) -> Response:
        """Every receipt, one JSON object a line, as a file."""
        who = asker(request)
        who.needs(Act.AUDIT)
        response = await self._books.export(who)
        response.headers["Content-Disposition"] = 'attachment; filename="ledger.jsonl"'
        response.headers["Cache-Control"] = "no-store"
        return response


def _analysts(found: list[Standing], dataset: str) -> list[Standing]:
    """The analysts of a dataset, those first who have spent most of what they may."""
    own = [one for one in found if one.balance.dataset == dataset and one.balance.analyst is not None]
    return sorted((one for one in own if not one.own), key=lambda one: (not one.bounds, -one.share))
