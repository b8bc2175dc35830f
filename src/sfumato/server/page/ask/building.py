"""`/ask/build`: a question by choosing, for people without SQL. It writes the SQL, and asks nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from sfumato.errors import QueryRefused, SfumatoError
from sfumato.schema import PrivateTable
from sfumato.server.page.ask.picking import CONDITIONS, FIGURES, GROUPS, Offer, Picked, Unfinished, picked
from sfumato.server.page.common import Common
from sfumato.server.page.forms import place_in, said
from sfumato.server.page.looks import asker, is_part
from sfumato.server.troubles import is_told
from sfumato.session import Session

__all__ = ["Build"]


class Build:
    """One page, and the part of it that follows what is chosen."""

    def __init__(self, common: Common) -> None:
        self._house, self._run, self._looks = common.house, common.run, common.looks

    def add_to(self, app: FastAPI) -> None:
        """Makes the address known."""
        app.add_api_route("/ask/build", self.shown, methods=["GET", "POST"], response_model=None)

    async def shown(self, request: Request) -> Response:
        """The page, or the part of it that follows, with what is chosen."""
        sent = await said(request)
        name = asker(request).name
        template = "build_part.html" if is_part(request) else "build.html"

        def work() -> Response:  # the page, too, which has all declared values of a column
            return self._looks.page(request, template, **_built(self._house.session(name), sent))

        return await self._run(work)


def _built(session: Session, sent: Mapping[str, str]) -> dict[str, Any]:
    """All that is shown.

    Privacy:
        It reads declarations, and makes a plan: no row is read, nothing is written.
    """
    tables = [table for table in session.tables.values() if isinstance(table, PrivateTable)]
    at = place_in(sent.get("table", ""), len(tables)) or 0
    offer = Offer.of(tables[at])
    chosen = picked(offer, sent if sent.get("of_table", str(at)) == str(at) else {})
    return {"tables": [table.name for table in tables], "at": at, "offer": offer, "chosen": chosen} | {
        "names": chosen.names,
        "figures": _rows(chosen.figures, FIGURES),
        "groups": _rows(chosen.groups, GROUPS),
        "conditions": _rows(chosen.conditions, CONDITIONS),
        **_written(session, chosen),
    }


def _rows(chosen: tuple[Any, ...], most: int) -> list[Any]:
    """What was chosen, and room for one more."""
    return [*chosen, None][:most]


def _written(session: Session, chosen: Picked) -> dict[str, Any]:
    """The question in SQL and in words, or what is still to do."""
    nothing = {"text": "", "words": "", "todo": "", "fix": ""}
    try:
        choice = chosen.choice()
    except Unfinished as unfinished:
        return nothing | {"todo": str(unfinished)}
    told = nothing | {"text": choice.sql(), "words": choice.words()}
    try:
        session.sql(choice.sql())
    except QueryRefused as refused:
        return told | {"todo": refused.reason, "fix": refused.fix}
    except SfumatoError as error:
        if not is_told(error, steward=False):
            raise
        return told | {"todo": str(error)}
    return told
