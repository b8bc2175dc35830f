"""Templates, and what all of them know: who asks, which sections are theirs, where scripts and styles are."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from sfumato.dossier.facts import many
from sfumato.ledger.budget import amount
from sfumato.render import key, shown
from sfumato.server.access import Account, Act
from sfumato.server.http.guard import ASKER
from sfumato.server.page.drawing import figure, gauge

__all__ = ["BADGES", "Looks", "asker", "is_part", "sections", "static_file"]

BADGES = "badges"
"""Where a request's state has how many alerts there are: the address of a section → how many."""
_PACKAGE = "sfumato.server.page"
_KINDS = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
SECTIONS: tuple[tuple[str, str, Act | None], ...] = (
    ("/ask", "Ask", Act.SPEND),
    ("/feel", "Feel", None),
    ("/watch", "Watch", None),
    ("/show", "Show", None),
    ("/start", "Start", Act.GOVERN),
)
"""The address, the name, and what one must be allowed to do to see it."""


class Looks:
    """Fills templates in. All text is escaped; whatever is not given is an error, not an empty place."""

    def __init__(self) -> None:
        self._made = Environment(
            loader=PackageLoader(_PACKAGE),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._made.filters.update({"key": key, "shown": shown, "ticked": _ticked})
        self._made.globals.update({"static": _address, "amount": amount, "many": many, "gauge": _gauge})
        self._made.globals["options"] = _options
        self._made.globals["figure"] = figure

    def text(self, name: str, **values: Any) -> str:
        """A template that knows nothing of who asks."""
        return self._made.get_template(name).render(**values)

    def page(self, request: Request, name: str, status: int = 200, **values: Any) -> Response:
        """A template as a whole page, or as a part of one."""
        text = self._made.get_template(name).render(**_common(request), **values)
        return HTMLResponse(text, status, {"Cache-Control": "no-store"})

    async def made(self, request: Request, name: str, status: int = 200, **values: Any) -> Response:
        """The same in a thread, for what may be long: others are served meanwhile."""
        return await asyncio.to_thread(self.page, request, name, status, **values)

    def refused(self, request: Request, status: int, message: str, fix: str = "") -> Response:
        """That something cannot be done: a page of its own, or a note where a script asked for a part."""
        name = "failed_part.html" if is_part(request) else "failed.html"
        return self.page(request, name, status, message=message, code=status, fix=fix)


def asker(request: Request) -> Account:
    """Whoever is logged in."""
    found: Account = request.state.asker
    return found


def sections(who: Account) -> list[tuple[str, str, Act | None]]:
    """What somebody sees of the page."""
    return [part for part in SECTIONS if part[2] is None or who.may(part[2])]


def is_part(request: Request) -> bool:
    """Whether a script asks, for a part of a page."""
    return "x-form" in request.headers


def _common(request: Request) -> dict[str, Any]:
    who: Account | None = request.scope["state"].get(ASKER)
    path = request.scope["path"]
    mine = [] if who is None else sections(who)
    return {
        "who": who,
        "form": request.scope["state"].get("form", ""),
        "sections": [(where, name, path == where or path.startswith(f"{where}/")) for where, name, _ in mine],
        "badges": request.scope["state"].get(BADGES, {}),
        "may": {act.value: who is not None and who.may(act) for act in Act},
    }


def _ticked(text: str) -> Markup:
    """What stands between backticks, as code."""
    parts = [escape(part) for part in text.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part for place, part in enumerate(parts)
    )


def _options(listed: Sequence[str], chosen: str) -> Markup:
    """A list to choose from by place, which may be long: no template goes through it."""
    picked = [" selected" if str(place) == chosen else "" for place in range(len(listed))]
    return Markup(
        "".join(
            f'<option value="{place}"{picked[place]}>{escape(words)}</option>'
            for place, words in enumerate(listed)
        )
    )


def _gauge(share: Any, title: str) -> Markup:
    return gauge(float(share), title=f"{title}: {float(share):.0%}")


_FILES: dict[str, tuple[bytes, str]] = {}  # those that exist, and no name that a stranger makes up


def _found(name: str) -> tuple[bytes, str] | None:
    """A file of `static/`, and its digest."""
    if name in _FILES:
        return _FILES[name]
    place = files(_PACKAGE) / "static"
    for part in name.split("/"):
        if not part or part.startswith("."):
            return None
        place = place / part
    if not place.is_file():
        return None
    data = place.read_bytes()
    _FILES[name] = data, hashlib.sha256(data).hexdigest()[:12]
    return _FILES[name]


def _address(name: str) -> str:
    found = _found(name)
    assert found is not None, name
    return f"/static/{name}?v={found[1]}"


def static_file(name: str) -> Response | None:
    """A style, a script or a picture; browsers keep it until its content, and so its address, changes."""
    found = _found(name) if len(name) < 100 else None
    kind = _KINDS.get(name.rpartition(".")[2])
    if found is None or kind is None:
        return None
    return Response(
        found[0],
        headers={"Cache-Control": "public, max-age=31536000, immutable", "Content-Type": kind},
    )
