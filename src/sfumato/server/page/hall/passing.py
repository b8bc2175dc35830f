"""What every request of the page passes: whose cookie it has, where a form came from, how much is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sfumato.errors import AccessDenied, LoginFailed, TooManyTries
from sfumato.server.access import Account, Logins
from sfumato.server.crowds import Rates, TooFast
from sfumato.server.http.guard import (
    ASKER,
    ASKING,
    App,
    Known,
    Receive,
    Scope,
    Send,
    is_ambiguous,
    received,
    replayed,
    too_long,
    with_headers,
)
from sfumato.server.page.forms import FORM, fields
from sfumato.server.page.hall.cookies import Cookies, Opened
from sfumato.server.page.looks import Looks
from sfumato.server.troubles import note

__all__ = ["UPLOADS", "Hall"]

UPLOADS = "/start/upload"
"""Where a file comes in: a steward's alone, written to disk as it arrives, with a limit of its own."""
_OPEN = ("/login", "/public")
_FOR_ALL = ("/static/", "/public/")  # what is there is the same for everybody, and says how long it lasts
_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_NO_STORE = (b"cache-control", b"no-store")  # who logs out leaves nothing behind


class Hall:
    """Lets requests through that have a login, and forms that come from this page.

    Args:
        app: What is behind it.
        known: Whose a token is; asked in a thread.
        recent: The same for a token that was checked a moment ago, at once; None for all others.
        cookies: Of logins.
        logins: Which of them hold.
        looks: How a refusal is shown.
        rates: How often an account may ask.
    """

    def __init__(
        self,
        app: App,
        known: Known,
        recent: Callable[[str], Account | None],
        cookies: Cookies,
        logins: Logins,
        looks: Looks,
        rates: Rates,
    ) -> None:
        self._app, self._known, self._recent = app, known, recent
        self._cookies, self._logins, self._looks, self._rates = cookies, logins, looks, rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        lasting = scope["path"].startswith(_FOR_ALL)
        telling = with_headers(send, _HEADERS if lasting else (*_HEADERS, _NO_STORE))
        try:
            await self._one(scope, receive, telling)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # it is answered, or cannot be; a server would log its text
            note(error)

    async def _one(self, scope: Scope, receive: Receive, telling: Send) -> None:
        scope.setdefault("state", {})
        scope["state"].update({ASKER: None, "form": ""})
        request = Request(scope)
        refused = await self._refused(request)
        body = b""
        if refused is None and scope["path"] != UPLOADS:
            try:
                sent = await received(receive)
            except TimeoutError:
                refused = self._looks.refused(request, 408, "The request did not arrive in time.")
            else:
                if sent is None:
                    refused = self._looks.refused(request, 413, "That is more than a form may hold.")
                else:
                    body, receive = sent, replayed(sent, receive)
        if refused is None and scope["method"] == "POST" and scope["path"] != "/login":
            refused = self._foreign(request, body)
        if refused is not None:
            await refused(scope, receive, telling)
            return
        await self._app(scope, receive, telling)

    async def _refused(self, request: Request) -> Response | None:
        path = request.scope["path"]  # not request.url, which a header Host may have a part in
        if is_ambiguous(request.scope["headers"]):
            return self._looks.refused(request, 400, "A header that decides something came twice.")
        if path != UPLOADS and too_long(request.scope["headers"]):
            return self._looks.refused(request, 413, "That is more than a form may hold.")
        if request.method not in ("GET", "HEAD", "POST"):
            return self._looks.refused(request, 405, "That method is not taken here.")
        if request.method == "POST" and not _from_here(request):
            return self._looks.refused(request, 403, "This form was sent by another site: nothing was done.")
        secure = request.scope["scheme"] == "https"
        value = self._cookies.found(request.headers.get("cookie", ""), secure=secure)
        opened = self._cookies.opened(value) if value else None
        if path.startswith("/static/"):
            return None
        if opened is None:
            return None if _is_open(path) else _to_login(request)
        return await self._admitted(request, opened, value)

    def _looked_up(self, opened: Opened, address: str) -> Account:
        """Whose a login is, while it and its token hold."""
        if not self._logins.holds(opened.login):
            raise LoginFailed("This login has ended.")
        return self._known(opened.token, address)

    async def _admitted(self, request: Request, opened: Opened, value: str) -> Response | None:
        """Whether the owner of a login may go on; whose it is, is kept in the request's state."""
        address = (request.scope.get("client") or ("", 0))[0]
        try:
            asker = self._recent(opened.token) if self._logins.recent(opened.login) else None
            if asker is None:
                asker = await asyncio.to_thread(self._looked_up, opened, address)
        except TooManyTries as error:
            return self._looks.refused(request, 429, str(error))
        except AccessDenied:
            return None if _is_open(request.scope["path"]) else _to_login(request)
        except Exception as error:
            note(error)
            return self._looks.refused(request, 503, "Logins cannot be checked now: try again in a moment.")
        ASKING.set(asker)
        request.scope["state"].update({ASKER: asker, "form": self._cookies.form(value), "cookie": value})
        try:
            self._rates.admit(asker.name)
        except TooFast as error:
            return self._looks.refused(request, 429, str(error))
        return None

    def _foreign(self, request: Request, body: bytes) -> Response | None:
        """A refusal of a form that does not belong to this login."""
        sent = request.headers.get("x-form", "")
        if not sent and request.scope["path"] == UPLOADS:
            sent = request.query_params.get(FORM, "")
        if not sent:
            sent = fields(body).get(FORM, "")
        if self._cookies.is_form(request.scope["state"].get("cookie", ""), sent):
            return None
        return self._looks.refused(
            request, 403, "This form belongs to another login: load the page again and send it once more."
        )


def _is_open(path: str) -> bool:
    return path in _OPEN or path.startswith("/public/")


def _from_here(request: Request) -> bool:
    """Whether a browser says that a form was sent by this very site, or says nothing."""
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")
    except ValueError:  # no address at all
        return False


def _to_login(request: Request) -> Response:
    if request.method == "GET" and "x-form" not in request.headers:
        asked = request.scope["query_string"].decode("latin-1")
        back = quote(request.scope["path"]) + (f"?{asked}" if asked else "")
        where = "/login" if back == "/" else f"/login?next={quote(back, safe='')}"
    else:
        where = "/login"
    return RedirectResponse(where, 303)
