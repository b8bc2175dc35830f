"""The page over a `House`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sfumato.errors import QueryRefused, SfumatoError
from sfumato.server.access import Act
from sfumato.server.deadlines import Overrun
from sfumato.server.house import House, NothingYet
from sfumato.server.http.failures import STATUS, is_steward
from sfumato.server.http.guard import App, Known
from sfumato.server.page.ask.answered import Answered
from sfumato.server.page.ask.building import Build
from sfumato.server.page.ask.section import Ask
from sfumato.server.page.common import Common
from sfumato.server.page.feel.section import Feel
from sfumato.server.page.hall.badges import Badged
from sfumato.server.page.hall.cookies import Cookies
from sfumato.server.page.hall.entering import Entering
from sfumato.server.page.hall.passing import Hall
from sfumato.server.page.looks import Looks, asker, sections, static_file
from sfumato.server.page.show.section import Show
from sfumato.server.page.start.section import Start
from sfumato.server.page.watch.deciding import Deciding
from sfumato.server.page.watch.section import Watch
from sfumato.server.page.watch.staff import Staff
from sfumato.server.troubles import hidden, is_told
from sfumato.server.turns import TooBusy

__all__ = ["make_page"]


def make_page(common: Common, known: Known) -> App:
    """The page, with what its requests pass first."""
    _load()
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    looks = common.looks
    _Failures(looks).add_to(app)
    accounts = common.accounts
    cookies = Cookies(accounts.cookie_key)
    Entering(known, cookies, accounts.logins, looks).add_to(app)
    Ask(common).add_to(app)
    Answered(common).add_to(app)
    Show(common).add_to(app)
    Build(common).add_to(app)
    Feel(common).add_to(app)
    watch = Watch(common)
    watch.add_to(app)
    Deciding(common).add_to(app)
    Staff(common).add_to(app)
    Start(common).add_to(app)
    app.add_api_route("/", _first(common.house), methods=["GET"], response_model=None)
    app.add_api_route("/static/{name:path}", _static, methods=["GET"], response_model=None)
    badged = Badged(app, common.aside, watch.count, "/watch")
    return Hall(badged, known, accounts.recent, cookies, accounts.logins, looks, common.ways.rates)


def _load() -> None:
    """Loads what the first card and the first quote for a wanted error need: nobody is to wait for it."""
    for name in ("scipy.fft", "scipy.special"):
        import_module(name)


def _first(house: House) -> Callable[[Request], Awaitable[Response]]:
    """Where somebody's work begins: at the first section, and with the first table."""

    async def first(request: Request) -> Response:
        who = asker(request)
        mine = sections(who)
        if not mine:
            raise HTTPException(404)
        begins = not house.tables and who.may(Act.GOVERN)
        return RedirectResponse("/start" if begins else mine[0][0], 303)

    return first


async def _static(name: str) -> Response:
    found = static_file(name)
    if found is None:
        raise HTTPException(404)
    return found


class _Failures:
    """How what fails is shown: one sentence, the fix, and never a value of the data."""

    def __init__(self, looks: Looks) -> None:
        self._looks = looks

    def add_to(self, app: FastAPI) -> None:
        """Makes them known."""
        app.add_exception_handler(SfumatoError, self.on_error)
        app.add_exception_handler(RequestValidationError, self.on_missing)
        app.add_exception_handler(HTTPException, self.on_missing)
        app.add_exception_handler(Overrun, self.on_overrun)
        app.add_exception_handler(TooBusy, self.on_busy)
        app.add_exception_handler(Exception, self.on_unforeseen)

    async def on_error(self, request: Request, error: Exception) -> Response:
        """Of this package."""
        assert isinstance(error, SfumatoError)
        if isinstance(error, NothingYet):
            return self._looks.refused(request, 404, str(error), fix="Stewards do that under Start.")
        status = STATUS.get(error.code, 500)
        if not is_told(error, steward=is_steward(request)):
            return self._looks.refused(request, status, hidden(error))
        fix = error.fix if isinstance(error, QueryRefused) else ""
        message = error.reason if isinstance(error, QueryRefused) else str(error)
        return self._looks.refused(request, status, message, fix=fix)

    async def on_missing(self, request: Request, error: Exception) -> Response:
        """Of an address that is not there."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        said = {404: "There is no such page.", 405: "That method is not taken here."}
        return self._looks.refused(request, status, said.get(status, "That cannot be done."))

    async def on_overrun(self, request: Request, error: Exception) -> Response:
        """Of a read that was not over at its deadline."""
        return self._looks.refused(request, 504, str(error))

    async def on_busy(self, request: Request, error: Exception) -> Response:
        """Of an account of which too much waits."""
        return self._looks.refused(request, 429, str(error))

    async def on_unforeseen(self, request: Request, error: Exception) -> Response:
        """Of anything else: its text may quote data."""
        return self._looks.refused(request, 500, hidden(error))
