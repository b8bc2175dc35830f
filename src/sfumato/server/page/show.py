"""`/show`: the privacy card and the dossier of a dataset, and releases as pages that anybody may be given."""

from __future__ import annotations

import asyncio
import logging
from itertools import islice
from typing import Annotated, Any

from fastapi import FastAPI, Path
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from sfumato.dossier import Card, check
from sfumato.dossier import card as card_of
from sfumato.errors import InvalidParameter
from sfumato.explain import compare
from sfumato.ledger import Receipt
from sfumato.ledger.names import alike
from sfumato.server.access import Account, Act
from sfumato.server.http.asking import Threads
from sfumato.server.http.rereads import own_receipt
from sfumato.server.page.common import Common
from sfumato.server.page.deciding import reason_in
from sfumato.server.page.hall import fields
from sfumato.server.page.looks import asker
from sfumato.server.page.released import Shelf, standalone, told
from sfumato.session import Release
from sfumato.session.rereading import reread

__all__ = ["Show"]

Dataset = Annotated[str, Path(max_length=200)]
Number = Annotated[int, Path(ge=1, le=2**62)]
_MOST, _ROWS = 50, 400  # releases that are listed, and rows of one that are shown
_STEP, _STEPS = 500, 40  # receipts that are looked at for them
_LOG = logging.getLogger("sfumato.server")
_TEXT = "text/plain; charset=utf-8"


class Show:
    """What is shown to others: cards and dossiers for reviewers, releases for everybody."""

    def __init__(self, common: Common) -> None:
        self._house, self._looks, self._run = common.house, common.looks, common.run
        self._shelf = None if common.ways.shelf is None else Shelf(common.ways.shelf)
        self._reading = Threads(1)  # a dossier reads the whole ledger: one at a time

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        release = "/show/releases/{number}"
        for method, path, run in (
            ("GET", "/show", self.index),
            ("GET", "/show/datasets/{name}/card", self.card),
            ("GET", "/show/datasets/{name}/dossier", self.dossier),
            ("GET", "/show/datasets/{name}/registry.yaml", self.registry),
            ("GET", release, self.release),
            ("GET", f"{release}/file", self.file),
            ("POST", f"{release}/publish", self.publish),
            ("POST", f"{release}/withdraw", self.withdraw),
            ("GET", "/public/{number}", self.public),
        ):
            app.add_api_route(path, run, methods=[method], response_model=None)

    async def index(self, request: Request) -> Response:
        """What there is to show."""
        who = asker(request)
        listed = await self._run(lambda: self._listed(who))
        published = {} if self._shelf is None else await asyncio.to_thread(self._shelf.titles)
        return await self._looks.made(
            request, "show.html", datasets=self._house.datasets, releases=listed, published=published
        )

    def _listed(self, who: Account) -> list[Receipt]:
        """The newest releases first, of the last so many receipts: the own ones, everybody's for stewards."""
        everything = who.may(Act.GOVERN)
        if not (everything or who.may(Act.SPEND)):
            return []
        session = self._house.session(who.name)  # an empty house says so
        ledger = self._house.ledger if everything else session.ledger
        found: list[Receipt] = []
        end = self._house.ledger.number + 1
        for _ in range(_STEPS):
            start = max(end - _STEP, 1)
            some = list(islice(ledger.entries(after=start - 1), end - start))
            fit = [each for each in some if each.number < end and _is_release(each)]
            found += [each for each in fit if everything or alike(each.analyst or "") == alike(who.name)][
                ::-1
            ]
            end = start
            if len(found) >= _MOST or start == 1:
                break
        return found[:_MOST]

    async def card(self, name: Dataset, request: Request) -> Response:
        """One page for a reviewer."""
        found = await self._card(name, request)
        compared = await self._reading(lambda: _compared(found))
        return await self._looks.made(request, "card.html", card=found, facts=found.facts, compared=compared)

    async def dossier(self, name: Dataset, request: Request) -> Response:
        """All that is on record, with the twelve steps of a deployment."""
        found = await self._card(name, request)
        steps = await self._reading(lambda: check(found.facts))
        return await self._looks.made(request, "dossier.html", card=found, facts=found.facts, steps=steps)

    async def registry(self, name: Dataset, request: Request) -> Response:
        """The entry for a registry of deployments."""
        found = await self._card(name, request)
        headers = {"Content-Disposition": 'attachment; filename="registry.yaml"', "Cache-Control": "no-store"}
        return Response(found.yaml, headers=headers, media_type=_TEXT)

    async def _card(self, name: str, request: Request) -> Card:
        asker(request).needs(Act.AUDIT)
        if name not in self._house.datasets:
            raise HTTPException(404)
        return await self._reading(lambda: card_of(self._house.facts(name)))

    async def release(self, number: Number, request: Request) -> Response:
        """A release as others would see it."""
        who = asker(request)
        facts = await self._run(lambda: told(self._found(who, number), _ROWS))
        on_shelf = self._shelf is not None and await asyncio.to_thread(self._shelf.has, number)
        return await self._looks.made(
            request,
            "release.html",
            **facts,
            most=_ROWS,
            on_shelf=on_shelf,
            can_publish=self._shelf is not None and who.may(Act.GOVERN),
        )

    async def file(self, number: Number, request: Request) -> Response:
        """The same as one file that needs nothing else."""
        who = asker(request)
        text = await self._run(lambda: standalone(self._looks, self._found(who, number)))
        headers = {
            "Content-Disposition": f'attachment; filename="release-{number}.html"',
            "Cache-Control": "no-store",
        }
        return HTMLResponse(text, headers=headers)

    async def publish(self, number: Number, request: Request) -> Response:
        """Lets anybody see a release: a steward's act, with a reason that the log keeps."""
        who = asker(request)
        who.needs(Act.GOVERN)
        sent = fields(await request.body())
        title, reason = sent.get("title", "").strip()[:200], reason_in(sent)
        if self._shelf is None:
            raise InvalidParameter("This server publishes nothing: it has no folder for it.")
        shelf = self._shelf
        text = await self._run(lambda: standalone(self._looks, self._found(who, number), title=title))
        await asyncio.to_thread(shelf.put, number, text)
        _LOG.warning("release %d is published by %r: %r", number, who.name, reason)
        return RedirectResponse(f"/show/releases/{number}", 303)

    async def withdraw(self, number: Number, request: Request) -> Response:
        """Takes it away again; what others kept of it, they have."""
        who = asker(request)
        who.needs(Act.GOVERN)
        reason = reason_in(fields(await request.body()))
        if self._shelf is not None:
            await asyncio.to_thread(self._shelf.take, number)
            _LOG.warning("release %d is withdrawn by %r: %r", number, who.name, reason)
        return RedirectResponse(f"/show/releases/{number}", 303)

    async def public(self, number: Number) -> Response:
        """What was published; no login is needed."""
        text = None if self._shelf is None else await asyncio.to_thread(self._shelf.get, number)
        if text is None:
            raise HTTPException(404)
        return HTMLResponse(
            text, headers={"Content-Security-Policy": Shelf.policy, "Cache-Control": "no-cache"}
        )

    def _found(self, who: Account, number: int) -> Release:
        """The answer that a receipt paid for: one's own, and any for a steward, who decides what is shown."""
        if who.may(Act.GOVERN):
            return self._house.answer(number)
        who.needs(Act.SPEND)
        session = self._house.session(who.name)
        return reread(session, own_receipt(session, number))


def _is_release(receipt: Receipt) -> bool:
    return receipt.kind == "debit" and receipt.purpose.sql is not None


def _compared(card: Card) -> Any:
    facts = card.facts
    if not facts.paid or not facts.balance.spent:
        return None
    return compare(facts.balance.spent, card.spent_delta, "record" if facts.unit.is_row else "person")
