"""The whole ledger over HTTP, for auditors and stewards: every receipt, and whether the chain holds."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial
from itertools import islice
from typing import Annotated

from fastapi import FastAPI, Query
from starlette.responses import Response, StreamingResponse

from sfumato.ledger import Receipt
from sfumato.ledger.verification import Verification
from sfumato.server.house import House
from sfumato.server.http import failures
from sfumato.server.http.asking import Auditor, Threads

__all__ = ["Books"]

_PAGE = 1_000
LINES = "application/x-ndjson"


class Books:
    """Addresses for whoever may read the whole ledger."""

    def __init__(self, house: House, run: Threads) -> None:
        self._house, self._run = house, run
        self._verifying = Threads(1)  # it reads everything: one at a time, and not in a questions' thread

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        for path, run, what in (
            ("/api/ledger/export", self.export, "Every receipt, one JSON object a line."),
            ("/api/ledger/verify", self.verify, "Whether every receipt, the chain and its anchor hold."),
        ):
            app.add_api_route(path, run, methods=["GET"], summary=what, response_model=None)

    async def export(
        self,
        who: Auditor,  # noqa: ARG002
        after: Annotated[int, Query(ge=0, le=2**62, description="Only those after this number.")] = 0,
    ) -> Response:
        """As `sfumato ledger export` writes them.

        The header `Sfumato-Receipts` has the number of the last one: a stream that ends before it was cut,
        and goes on with `after`.
        """
        last = await self._run(lambda: self._house.ledger.number)
        return StreamingResponse(
            self._lines(after, last), headers={"Sfumato-Receipts": str(last)}, media_type=LINES
        )

    async def _lines(self, after: int, last: int) -> AsyncIterator[bytes]:
        """Page by page: between two of them others are served, and nothing long is held in memory."""
        while after < last:
            page = await self._run(partial(self._page, after, last))
            yield "".join(json.dumps(receipt.to_dict(), sort_keys=True) + "\n" for receipt in page).encode()
            if not page:
                return
            after = page[-1].number

    def _page(self, after: int, last: int) -> list[Receipt]:
        entries = islice(self._house.ledger.entries(after=after), min(_PAGE, last - after))
        return list(entries)

    async def verify(self, who: Auditor) -> Response:  # noqa: ARG002
        """Others go on meanwhile; a long ledger takes its time."""
        found = await self.verified()
        return failures.answered(
            {
                "ok": found.ok,
                "entries": found.entries,
                "head": found.head,
                "problems": list(found.problems),
            }
        )

    async def verified(self) -> Verification:
        """What a verification finds now."""
        return await self._verifying(lambda: self._house.ledger.verify(beside=True))
