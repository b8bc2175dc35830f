"""`/start`: a steward is led from a file to a table that may be asked, one decision a screen."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from sfumato.errors import SfumatoError
from sfumato.server.access import Account, Act
from sfumato.server.grounds import SUFFIXES, Grounds
from sfumato.server.http.failures import STATUS
from sfumato.server.page.common import Common
from sfumato.server.page.forms import fields
from sfumato.server.page.hall.passing import UPLOADS
from sfumato.server.page.looks import asker
from sfumato.server.page.start.drafting import STEPS, Draft, Drafts
from sfumato.server.page.start.screens import digest, screen
from sfumato.server.page.start.started import Started
from sfumato.server.page.start.uploading import FILE, TooLarge, kept

__all__ = ["Start"]

_Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
_LOST = (
    "This draft is gone: the server began anew, or it was dropped in another tab. Choose the file once more."
)
_OTHER = (
    "Nothing was decided: that form was about another file, which was left in another tab. This is the one "
    "that you chose since."
)


class Start:
    """The screens, for stewards alone. Nothing of a row is shown or guessed from before an answer is paid.

    Privacy:
        Claim: what is shown and written up to the first answer follows from the names and types of columns
        (of a CSV file from its first line, where that is sure to hold names or the steward says so) and from
        what the steward types.
    """

    def __init__(self, common: Common) -> None:
        self._common, self._drafts = common, Drafts()
        self._started = Started(common, self._drafts)
        common.house.at_end(self._drafts.clear)
        self._takes: Mapping[str, Callable[[Draft, Mapping[str, str]], None]] = {
            "whose": Draft.take_unit,
            "columns": self._take_columns,
            "bounds": Draft.take_bounds,
            "budget": lambda draft, sent: draft.take_budget(sent, common.house.datasets),
        }

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        for method, path, run in (
            ("GET", "/start", self.file),
            ("POST", "/start/source", self.source),
            ("POST", UPLOADS, self.upload),
            ("POST", "/start/drop", self.drop),
            ("POST", "/start/header", self.header),
            *(("GET", f"/start/{step}", self._screen(step)) for step in STEPS[1:]),
            *(("POST", f"/start/{step}", self._decision(step)) for step in self._takes),
            ("POST", "/start/look", self.register),
        ):
            app.add_api_route(path, run, methods=[method], response_model=None)
        self._started.add_to(app)

    # ── the file

    async def file(self, request: Request) -> Response:
        """Which file; and what there is already."""
        self._steward(request)
        return await self._file(request, "", _LOST if "lost" in request.query_params else "")

    async def _file(self, request: Request, message: str, remark: str = "", status: int = 200) -> Response:
        who, grounds = self._steward(request)
        draft = self._drafts.of(who.name)
        most = self._common.ways.most_upload
        return await self._common.looks.made(
            request,
            "start_file.html",
            status,
            **self._steps("file", draft),
            message=message,
            remark=remark,
            files=await self._common.aside(grounds.files),
            tables=sorted(self._common.house.tables),
            unfinished=None if draft is None or draft.registered else draft,
            upload=f"{UPLOADS}?form={request.state.form}",
            field=FILE,
            most=most,
            most_said=f"{most / 2**30:.3g} GiB" if most >= 2**30 else f"{most / 2**20:.3g} MiB",
            suffixes=",".join(SUFFIXES),
        )

    async def source(self, request: Request) -> Response:
        """A file that is in the folder already."""
        who, grounds = self._steward(request)
        name = fields(await request.body()).get("source", "").strip()

        def work() -> Draft:
            return self._drafts.begin(who.name, grounds.located(name), grounds, uploaded=False)

        try:
            await self._common.aside(work)
        except SfumatoError as error:
            return await self._file(request, str(error), status=422)
        return _to("whose")

    async def upload(self, request: Request) -> Response:
        """A file that is sent here; who may not is refused before a byte is kept."""
        who, grounds = self._steward(request)
        try:
            file = await kept(request, grounds.folder, self._common.ways.most_upload)
            await self._common.aside(lambda: self._drafts.begin(who.name, file, grounds, uploaded=True))
        except ClientDisconnect:
            return Response(status_code=499)
        except SfumatoError as error:
            return await self._file(request, str(error), status=413 if isinstance(error, TooLarge) else 422)
        return _to("whose")

    async def drop(self, request: Request) -> Response:
        """Begins anew."""
        who, _ = self._steward(request)
        await self._common.aside(lambda: self._drafts.forget(who.name))
        return RedirectResponse("/start", 303)

    async def header(self, request: Request) -> Response:
        """Whether the first line holds names: the steward knows."""
        sent = fields(await request.body())
        said = sent.get("header", "") == "yes"

        def work(draft: Draft, grounds: Grounds) -> None:
            naming, table = grounds.looked(draft.file, said)
            draft.naming, draft.table, draft.unit, draft.reached = naming, table, None, 1

        return await self._taken(request, "whose", "whose", work, sent)

    # ── one decision a screen

    def _screen(self, step: str) -> _Handler:
        """Shows one."""

        async def shown(request: Request) -> Response:
            return await self._shown(request, step)

        return shown

    def _decision(self, step: str) -> _Handler:
        """Takes what it says, and goes on to the next."""
        after, take = STEPS[STEPS.index(step) + 1], self._takes[step]

        async def taken(request: Request) -> Response:
            sent = fields(await request.body())
            return await self._taken(request, step, after, lambda draft, _: take(draft, sent), sent)

        return taken

    def _take_columns(self, draft: Draft, sent: Mapping[str, str]) -> None:
        assert self._common.grounds is not None
        draft.take_columns(sent, self._common.grounds.taken())

    async def register(self, request: Request) -> Response:
        """Writes it, and serves the table; a second time it is done already."""
        seen = fields(await request.body()).get("seen", "")

        def work(draft: Draft, grounds: Grounds) -> None:
            with draft.turn:
                if draft.registered:
                    return
                text = grounds.text(draft.wanted)
                grounds.register(draft.wanted, text if hmac.compare_digest(digest(text), seen) else "")
                draft.registered = True

        return await self._taken(request, "look", "done", work)

    # ── how it is done

    def _steward(self, request: Request) -> tuple[Account, Grounds]:
        who, grounds = asker(request), self._common.grounds
        who.needs(Act.GOVERN)
        if grounds is None:
            raise HTTPException(404)
        return who, grounds

    def _steps(self, here: str, draft: Draft | None) -> dict[str, Any]:
        reached = 0 if draft is None or draft.registered else draft.reached
        return {
            "step": here,
            "steps": [(name, place <= reached and place > 0) for place, name in enumerate(STEPS)],
            "number": STEPS.index(here) + 1,
        }

    async def _shown(
        self,
        request: Request,
        step: str,
        message: str = "",
        status: int = 200,
        sent: Mapping[str, str] | None = None,
    ) -> Response:
        who, grounds = self._steward(request)
        draft = self._drafts.of(who.name)
        if draft is None:
            return RedirectResponse("/start?lost=", 303)
        if draft.registered:
            return _to("done")
        if STEPS.index(step) > draft.reached:
            return _to(STEPS[draft.reached])
        datasets = self._common.house.datasets
        values = await self._common.aside(lambda: screen(step, draft, grounds, datasets, sent or {}))
        return await self._common.looks.made(
            request,
            f"start_{step}.html",
            status,
            **self._steps(step, draft),
            message=message,
            draft=draft,
            table=draft.table,
            **values,
        )

    async def _taken(
        self,
        request: Request,
        step: str,
        after: str,
        work: Callable[[Draft, Grounds], object],
        sent: Mapping[str, str] | None = None,
    ) -> Response:
        """Goes on after a decision, or shows the screen again with why it cannot be."""
        who, grounds = self._steward(request)
        draft = self._drafts.of(who.name)
        if draft is None:
            return RedirectResponse("/start?lost=", 303)
        if draft.registered or STEPS.index(step) > draft.reached:
            return _to("done" if draft.registered else STEPS[draft.reached])
        if sent is not None and sent.get("draft", draft.word) != draft.word:
            return await self._shown(request, step, _OTHER, 409)
        try:
            await self._common.aside(lambda: work(draft, grounds))
        except SfumatoError as error:
            status = STATUS.get(error.code, 422)
            return await self._shown(request, step, str(error), status, sent)
        return _to(after)


def _to(step: str) -> Response:
    return RedirectResponse("/start" if step == "file" else f"/start/{step}", 303)
