"""`/start`: a steward is led from a file to a table that may be asked, one decision a screen."""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from sfumato.catalog.write import known_bounds
from sfumato.errors import SfumatoError
from sfumato.explain import compare, source
from sfumato.explain.figures import percent_up
from sfumato.schema.classify import ROLES, units_of
from sfumato.server.access import Account, Act
from sfumato.server.grounds import SUFFIXES, Grounds
from sfumato.server.http.failures import STATUS
from sfumato.server.page.common import Common
from sfumato.server.page.drafting import OUT, STEPS, TYPES, Draft, Drafts
from sfumato.server.page.hall import UPLOADS, fields
from sfumato.server.page.looks import asker
from sfumato.server.page.started import Started
from sfumato.server.page.uploading import FILE, TooLarge, kept

__all__ = ["Start"]

_LOST = (
    "This draft is gone: the server began anew, or it was dropped in another tab. Choose the file once more."
)
_PRESETS = (
    ("0.5", "Very careful", "Answers are coarser. For health, faith, money of few people."),
    ("1", "Careful", "A common start, and the default."),
    ("3", "Closer answers", "For data that would embarrass nobody much, or of very many people."),
)
_USUAL, _DELTA = "1", "1e-6"
_LIKELY = 12


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

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        for method, path, run in (
            ("GET", "/start", self.file),
            ("POST", "/start/source", self.source),
            ("POST", UPLOADS, self.upload),
            ("POST", "/start/drop", self.drop),
            ("POST", "/start/header", self.header),
            ("GET", "/start/whose", self.whose),
            ("POST", "/start/whose", self.take_whose),
            ("GET", "/start/columns", self.columns),
            ("POST", "/start/columns", self.take_columns),
            ("GET", "/start/bounds", self.bounds),
            ("POST", "/start/bounds", self.take_bounds),
            ("GET", "/start/budget", self.budget),
            ("POST", "/start/budget", self.take_budget),
            ("GET", "/start/look", self.look),
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
        return self._common.looks.page(
            request,
            "start_file.html",
            status,
            **self._steps("file", draft),
            message=message,
            remark=remark,
            files=await self._common.run(grounds.files),
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
            await self._common.run(work)
        except SfumatoError as error:
            return await self._file(request, str(error), status=422)
        return _to("whose")

    async def upload(self, request: Request) -> Response:
        """A file that is sent here; who may not is refused before a byte is kept."""
        who, grounds = self._steward(request)
        try:
            file = await kept(request, grounds.folder, self._common.ways.most_upload)
            await self._common.run(lambda: self._drafts.begin(who.name, file, grounds, uploaded=True))
        except ClientDisconnect:
            return Response(status_code=499)
        except SfumatoError as error:
            return await self._file(request, str(error), status=413 if isinstance(error, TooLarge) else 422)
        return _to("whose")

    async def drop(self, request: Request) -> Response:
        """Begins anew."""
        who, _ = self._steward(request)
        await self._common.run(lambda: self._drafts.forget(who.name))
        return RedirectResponse("/start", 303)

    async def header(self, request: Request) -> Response:
        """Whether the first line holds names: the steward knows."""
        said = fields(await request.body()).get("header", "") == "yes"

        def work(draft: Draft, grounds: Grounds) -> None:
            naming, table = grounds.looked(draft.file, said)
            draft.naming, draft.table, draft.unit, draft.reached = naming, table, None, 1

        return await self._taken(request, "whose", "whose", work)

    # ── one decision a screen

    async def whose(self, request: Request) -> Response:
        """Whose privacy is protected."""
        return await self._shown(request, "whose")

    async def take_whose(self, request: Request) -> Response:
        """The same, decided."""
        sent = fields(await request.body())
        return await self._taken(request, "whose", "columns", lambda draft, _: draft.take_unit(sent))

    async def columns(self, request: Request) -> Response:
        """What each column is."""
        return await self._shown(request, "columns")

    async def take_columns(self, request: Request) -> Response:
        """The same, decided."""
        sent = fields(await request.body())

        def work(draft: Draft, grounds: Grounds) -> None:
            draft.take_columns(sent, grounds.taken())

        return await self._taken(request, "columns", "bounds", work)

    async def bounds(self, request: Request) -> Response:
        """Between what values are."""
        return await self._shown(request, "bounds")

    async def take_bounds(self, request: Request) -> Response:
        """The same, decided."""
        sent = fields(await request.body())
        return await self._taken(request, "bounds", "budget", lambda draft, _: draft.take_bounds(sent), sent)

    async def budget(self, request: Request) -> Response:
        """What all answers together may cost."""
        return await self._shown(request, "budget")

    async def take_budget(self, request: Request) -> Response:
        """The same, decided."""
        sent, datasets = fields(await request.body()), self._common.house.datasets
        return await self._taken(
            request, "budget", "look", lambda draft, _: draft.take_budget(sent, datasets), sent
        )

    async def look(self, request: Request) -> Response:
        """What will be written."""
        return await self._shown(request, "look")

    async def register(self, request: Request) -> Response:
        """Writes it, and serves the table; a second time it is done already."""
        seen = fields(await request.body()).get("seen", "")

        def work(draft: Draft, grounds: Grounds) -> None:
            with draft.turn:
                if draft.registered:
                    return
                text = grounds.text(draft.wanted)
                grounds.register(draft.wanted, text if hmac.compare_digest(_digest(text), seen) else "")
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
        reached = 0 if draft is None else draft.reached
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
        make: Callable[[], dict[str, Any]] = {
            "whose": lambda: _whose(draft),
            "columns": lambda: _columns(draft),
            "bounds": lambda: _bounds(draft, sent or {}),
            "budget": lambda: _budget(draft, self._common.house.datasets, sent or {}),
            "look": lambda: _look(draft, grounds),
        }[step]
        values = await self._common.run(make)
        return self._common.looks.page(
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
        try:
            await self._common.run(lambda: work(draft, grounds))
        except SfumatoError as error:
            status = STATUS.get(error.code, 422)
            return await self._shown(request, step, str(error), status, sent)
        return _to(after)


def _to(step: str) -> Response:
    return RedirectResponse("/start" if step == "file" else f"/start/{step}", 303)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _whose(draft: Draft) -> dict[str, Any]:
    table = draft.table
    columns = list(table.columns)
    likely = [name for name in units_of(table.columns) if table.role(name) == "identifier"]
    order = [*likely, *(name for name in columns if name not in likely)]
    chosen = draft.unit or (likely[0] if likely else "row")
    listed = [(columns.index(name), name, name in likely, name == chosen) for name in order]
    return {
        "first": [each for place, each in enumerate(listed) if place < _LIKELY or each[3]],
        "others": [each for place, each in enumerate(listed) if place >= _LIKELY and not each[3]],
        "by_row": chosen == "row",
        "rows": "" if table.max_rows is None else str(table.max_rows),
        "doubt": draft.naming.doubt,
        "header": draft.naming.header,
        "untyped": table.untyped,
    }


def _columns(draft: Draft) -> dict[str, Any]:
    table, listed = draft.table, list[dict[str, Any]]()
    for place, name in enumerate(table.columns):
        role, decided = table.role(name), table.of(name)
        listed.append(
            {
                "place": place,
                "name": name,
                "type": table.type(name),
                "what": OUT if decided.left_out else role,
                "is_unit": name == draft.unit,
            }
        )
    return {"listed": listed, "types": TYPES, "roles": (*ROLES, OUT), "untyped": table.untyped}


def _bounds(draft: Draft, sent: Mapping[str, str]) -> dict[str, Any]:
    table, listed, columns = draft.table, list[dict[str, Any]](), list(draft.table.columns)
    fresh = draft.reached <= STEPS.index("bounds")
    for name in draft.asked:
        word, decided, place = table.type(name), table.of(name), columns.index(name)
        known = known_bounds(name, word)
        low, high = decided.bounds or (known if fresh and known else ("", ""))
        listed.append(
            {
                "place": place,
                "name": name,
                "kind": {"int": "number", "float": "number", "text": "text"}.get(
                    word or "", "day" if word in ("date", "timestamp") else ""
                ),
                "low": sent.get(f"low{place}", low),
                "high": sent.get(f"high{place}", high),
                "values": sent.get(f"values{place}", "\n".join(decided.values)),
                "known": known is not None,
            }
        )
    return {
        "numbers": [each for each in listed if each["kind"] == "number"],
        "days": [each for each in listed if each["kind"] == "day"],
        "texts": [each for each in listed if each["kind"] == "text"],
    }


def _budget(draft: Draft, datasets: list[str], sent: Mapping[str, str]) -> dict[str, Any]:
    unit = "row" if draft.unit == "row" else "person"
    epsilon = sent.get("epsilon", draft.epsilon)
    chosen = sent.get("choice") or (draft.epsilon or _USUAL)
    near, told = _published(unit)
    return {
        "presets": [(value, name, why, *_meaning(value, unit)) for value, name, why in _PRESETS],
        "chosen": chosen if chosen in {value for value, *_ in _PRESETS} else "other",
        "epsilon": "" if epsilon in {value for value, *_ in _PRESETS} else epsilon,
        "delta": sent.get("delta", draft.delta or _DELTA),
        "unit_word": unit,
        "near": near,
        "source": told,
        "datasets": datasets,
        "dataset": sent.get("dataset", draft.dataset or ""),
    }


@lru_cache(maxsize=32)
def _meaning(epsilon: str, unit: str) -> tuple[str, int, int]:
    """How often the cleverest attacker is right, and how many published deployments are stricter or not."""
    where = compare(epsilon, 0, unit)
    return percent_up(1 / (1 + math.exp(-float(epsilon)))), where.smaller, where.larger


@lru_cache(maxsize=4)
def _published(unit: str) -> tuple[list[tuple[str, str, str]], str]:
    near = compare(1, 0, unit).near
    return [(f"{one.epsilon:g}", one.name, f"{one.curator}, {one.published[:4]}") for one in near], source()


def _look(draft: Draft, grounds: Grounds) -> dict[str, Any]:
    text = grounds.text(draft.wanted)
    return {
        "text": text,
        "seen": _digest(text),
        "file": grounds.path.name,
        "is_new": not grounds.path.exists(),
        "asked": draft.asked,
        "marks": text.count("DECIDE"),
    }
