"""`/show`: the privacy card and the dossier of a dataset, and releases as pages that anybody may be given."""

from __future__ import annotations

import asyncio
import logging
import threading
from functools import partial
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
from sfumato.server.page.forms import fields, reason_in
from sfumato.server.page.looks import asker
from sfumato.server.page.show.released import Shelf, standalone, told
from sfumato.session import Release
from sfumato.session.rereading import reread

__all__ = ["Show"]

Dataset = Annotated[str, Path(max_length=200)]
Number = Annotated[int, Path(ge=1, le=2**62)]
_MOST, _ROWS = 50, 400  # releases that are listed, and rows of one that are shown
_STEP, _STEPS = 500, 40  # receipts that are looked at for them
_AHEAD = 8  # datasets whose cards are made before somebody opens one
_LOG = logging.getLogger("sfumato.server")
_TEXT = "text/plain; charset=utf-8"


class Show:
    """What is shown to others: cards and dossiers for reviewers, releases for everybody."""

    def __init__(self, common: Common) -> None:
        self._house, self._looks, self._threads = common.house, common.looks, common.threads
        self._shelf = None if common.ways.shelf is None else Shelf(common.ways.shelf)
        self._acting = threading.Lock()
        # A dossier reads the whole ledger: one at a time, and to its end before the ledger is closed.
        self._reading = Threads(1, common.house.working)
        self._making: asyncio.Task[None] | None = None
        self._made_at: object = None

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
        listed = await self._threads(who)(lambda: self._listed(who))
        published = {} if self._shelf is None else await asyncio.to_thread(self._shelf.titles)
        if who.may(Act.AUDIT) and (self._making is None or self._making.done()):
            self._making = asyncio.create_task(self._make_cards())
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

    async def _make_cards(self) -> None:
        """Computes what cards tell, once for each end of the ledger, so that who opens one need not wait."""
        try:
            end = await self._reading(self._house.ledger.end)
            if end == self._made_at:
                return
            for name in self._house.datasets[:_AHEAD]:
                await self._reading(partial(self._known, name))
            self._made_at = end
        except Exception as error:  # whoever opens the card is told
            _LOG.debug("no card was made ahead: %s", type(error).__name__)

    def _known(self, name: str, latest: int | None = 0) -> Card:
        made = card_of(self._house.facts(name, latest=latest))
        _ = made.meaning, _compared(made)
        return made

    async def card(self, name: Dataset, request: Request) -> Response:
        """One page for a reviewer."""
        found = await self._card(name, request, 0)
        compared = await self._reading(lambda: _compared(found))
        return await self._looks.made(request, "card.html", card=found, facts=found.facts, compared=compared)

    async def dossier(self, name: Dataset, request: Request) -> Response:
        """All that is on record, with the twelve steps of a deployment."""
        latest = None if request.query_params.get("all") else _MOST
        found = await self._card(name, request, latest)
        steps = await self._reading(lambda: check(found.facts))
        paid = found.facts.paid if latest is None else found.facts.paid[-latest:]
        return await self._looks.made(
            request, "dossier.html", card=found, facts=found.facts, paid=paid, steps=steps
        )

    async def registry(self, name: Dataset, request: Request) -> Response:
        """The entry for a registry of deployments."""
        found = await self._card(name, request, None)
        text = await self._reading(lambda: found.yaml)
        headers = {"Content-Disposition": 'attachment; filename="registry.yaml"'}
        return Response(text, headers=headers, media_type=_TEXT)

    async def _card(self, name: str, request: Request, latest: int | None) -> Card:
        """The card of a dataset, with the errors of the latest answers; None: of all."""
        asker(request).needs(Act.AUDIT)
        if name not in self._house.datasets:
            raise HTTPException(404)
        return await self._reading(lambda: self._known(name, latest))

    async def release(self, number: Number, request: Request) -> Response:
        """A release as others would see it."""
        who = asker(request)
        facts = await self._threads(who)(lambda: told(self._found(who, number), _ROWS))
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
        text = await self._threads(who)(lambda: standalone(self._looks, self._found(who, number)))
        headers = {"Content-Disposition": f'attachment; filename="release-{number}.html"'}
        return HTMLResponse(text, headers=headers)

    async def publish(self, number: Number, request: Request) -> Response:
        """Lets anybody see a release: a steward's act, on record with a reason, done once."""
        who = asker(request)
        who.needs(Act.GOVERN)
        sent = fields(await request.body())
        title, reason = sent.get("title", "").strip()[:200], reason_in(sent)
        if self._shelf is None:
            raise InvalidParameter("This server publishes nothing: it has no folder for it.")
        shelf = self._shelf

        def work() -> None:
            text = standalone(self._looks, self._found(who, number), title=title)
            with self._acting:
                if not shelf.has(number):
                    self._put_on_record(who, f"release {number} published", reason)
                shelf.put(number, text)

        await self._threads(who)(work)
        return RedirectResponse(f"/show/releases/{number}", 303)

    async def withdraw(self, number: Number, request: Request) -> Response:
        """Takes it away again; what others kept of it, they have."""
        who = asker(request)
        who.needs(Act.GOVERN)
        reason = reason_in(fields(await request.body()))
        shelf = self._shelf

        def work() -> None:
            with self._acting:
                if shelf is not None and shelf.has(number):
                    self._put_on_record(who, f"release {number} withdrawn", reason)
                    shelf.take(number)

        await self._threads(who)(work)
        return RedirectResponse(f"/show/releases/{number}", 303)

    def _put_on_record(self, who: Account, act: str, reason: str) -> None:
        """Before it is done, so that nothing is ever public that the ledger does not have; and in the log."""
        self._house.steward(who.name).access(who.name, act, reason=reason)
        _LOG.warning("%s by %r: %r", act, who.name, reason)

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
