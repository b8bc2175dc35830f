"""`/login` and `/logout`: a token becomes a cookie, and ends being one."""

from __future__ import annotations

import asyncio
from urllib.parse import quote, urlsplit

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sfumato.errors import AccessDenied, TooManyTries
from sfumato.server.access import Logins
from sfumato.server.http.guard import ASKER, Known
from sfumato.server.page.forms import fields
from sfumato.server.page.hall.cookies import Cookies
from sfumato.server.page.looks import Looks

__all__ = ["Entering"]

_WRONG = "This token is not valid: paste it whole, or ask the steward for a new one."


class Entering:
    """The door of the page."""

    def __init__(self, known: Known, cookies: Cookies, logins: Logins, looks: Looks) -> None:
        self._known, self._cookies, self._logins, self._looks = known, cookies, logins, looks

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        app.add_api_route("/login", self.asked, methods=["GET"], response_model=None)
        app.add_api_route("/login", self.given, methods=["POST"], response_model=None)
        app.add_api_route("/logout", self.left, methods=["POST"], response_model=None)

    async def asked(self, request: Request) -> Response:
        """The form, or straight on for whoever is logged in."""
        after = _after(request.query_params.get("next", ""))
        if request.scope["state"].get(ASKER) is not None:
            return RedirectResponse(after, 303)
        return self._looks.page(request, "login.html", after=after, message="")

    async def given(self, request: Request) -> Response:
        """Looks at a token."""
        sent = fields(await request.body())
        token, after = sent.get("token", "").strip(), _after(sent.get("next", ""))
        address = (request.scope.get("client") or ("", 0))[0]
        try:
            await asyncio.to_thread(self._known, token, address)
        except TooManyTries as error:
            return self._looks.page(request, "login.html", 429, after=after, message=str(error))
        except AccessDenied:
            return self._looks.page(request, "login.html", 401, after=after, message=_WRONG)
        response = RedirectResponse(after, 303)
        secure = request.scope["scheme"] == "https"
        response.headers["Set-Cookie"] = self._cookies.made(token, secure=secure)
        return response

    async def left(self, request: Request) -> Response:
        """Takes the cookie away, and lets it open nothing more."""
        opened = self._cookies.opened(request.scope["state"].get("cookie", ""))
        if opened is not None:
            await asyncio.to_thread(self._logins.end, opened.login, opened.until)
        response = RedirectResponse("/login", 303, {"Clear-Site-Data": '"cache"'})
        response.headers["Set-Cookie"] = self._cookies.ended(secure=request.scope["scheme"] == "https")
        return response


def _after(wanted: str) -> str:
    """Where to go after a login: an address of this page, never another site's."""
    try:
        parts = urlsplit(wanted)
    except ValueError:
        return "/"
    if parts.scheme or parts.netloc or not parts.path.startswith("/") or "\\" in wanted:
        return "/"
    path = "/" + quote(parts.path.lstrip("/"), safe="/-._~%")
    return path + (f"?{quote(parts.query, safe='=&-._~%+')}" if parts.query else "")
