"""Answers that are on record, by the receipt that paid for them: free, and only for whoever paid."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Path, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from sfumato.ledger import Receipt
from sfumato.ledger.names import alike
from sfumato.render import plain_json
from sfumato.server.house import House
from sfumato.server.http.answers import ARROW, lasts, stream, wants_arrow
from sfumato.server.http.asking import Threads, Who
from sfumato.server.http.failures import answered
from sfumato.server.http.lasting import lasting
from sfumato.server.http.watching import PAID, RECEIPT
from sfumato.session import Session
from sfumato.session.documents import document_of
from sfumato.session.rereading import reread

__all__ = ["Rereads", "own_receipt"]


def own_receipt(session: Session, number: int) -> Receipt:
    """A receipt of what the session's analyst paid.

    Raises:
        HTTPException: 404, whether it is another one's or not there.
    """
    found = next(session.ledger.entries(after=number - 1), None)
    if found is None or found.number != number or alike(found.analyst or "") != alike(session.analyst or ""):
        raise HTTPException(404)
    return found


class Rereads:
    """The address of answers by receipt.

    Args:
        house: What is asked.
        run: Runs work in threads.
    """

    def __init__(self, house: House, run: Threads) -> None:
        self._house, self._run = house, run

    def add_to(self, app: FastAPI) -> None:
        """Makes the address known."""
        app.add_api_route(
            "/api/receipts/{number}/answer",
            self.answer,
            methods=["GET"],
            summary="The answer of an own receipt again, free.",
            response_model=None,
        )

    async def answer(
        self,
        number: Annotated[int, Path(ge=1, le=2**62)],
        request: Request,
        who: Who,
        confidence: Annotated[str, Query(max_length=64)] = "0.95",
    ) -> Response:
        """JSON, or the columns as an Arrow stream where the header Accept asks for it."""
        arrow = wants_arrow(request)

        def work() -> tuple[Response, bool]:
            session = self._house.session(who.name)
            release = reread(session, own_receipt(session, number))
            told = {RECEIPT: str(number), PAID: "no"}
            if arrow:
                columns = release.to_arrow(errors=True, confidence=confidence)
                return Response(stream(columns), headers=told, media_type=ARROW), lasts(release)
            balance = session.balance(release.receipt.dataset, window=release.receipt.windows)
            document = plain_json(document_of(release, balance, confidence))
            return answered(document, headers=told), lasts(release)

        return lasting(request, *await self._run(work))
