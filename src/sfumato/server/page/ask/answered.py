"""`/ask/receipts/…` and `/ask/history`: answers that are on record, free to read again, and to take away."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import FastAPI, Path, Query
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sfumato._dataclasses import dataclass
from sfumato.ledger import Receipt
from sfumato.ledger.budget import amount
from sfumato.ledger.names import alike
from sfumato.render import cells_of
from sfumato.server.access import Act
from sfumato.server.page.ask.charts import Chart, chart_of, drawable
from sfumato.server.page.ask.downloads import file_of, kinds
from sfumato.server.page.ask.past import answer_of, leaf_of
from sfumato.server.page.ask.quoting import CONFIDENCES
from sfumato.server.page.common import Common
from sfumato.server.page.looks import asker
from sfumato.server.page.rest import Rest, price_of_receipt
from sfumato.session import Release, Session

__all__ = ["Answered"]

_ROWS, _PRINTED = 400, 1_000
Number = Annotated[int, Path(ge=1, le=2**62)]
Column = Annotated[str, Query(max_length=300)]
Words = Annotated[str, Query(max_length=10_000)]
Often = Annotated[str, Query(max_length=16)]


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is told of an answer.

    Attributes:
        receipt: What paid for it.
        own: Whether the reader did.
        paid: The price, in words.
        wrong: Why it cannot be shown now; else empty.
        tables: Finished columns.
        rows: How many there are in all.
        figure: The one number, with its bar; else empty.
        release: The answer.
        chart: Its picture.
        columns: What can be drawn.
        printed: Whether a picture can be taken away.
        column: What is.
        holds: What error bars promise.
        definitions: What each column estimates.
        rest: What is left.
    """

    receipt: Receipt
    own: bool
    paid: str
    rest: Rest
    wrong: str = ""
    release: Release | None = None
    tables: tuple[Any, ...] = ()
    rows: int = 0
    figure: str = ""
    chart: Chart | None = None
    columns: tuple[str, ...] = ()
    printed: bool = False
    column: str = ""
    holds: str = ""
    definitions: tuple[tuple[str, str], ...] = ()


class Answered:
    """Answers by receipt, as pages and as files, and the list of the own ones. Nothing here pays."""

    def __init__(self, common: Common) -> None:
        self._common = common

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        for path, run in (
            ("/ask/history", self.history),
            ("/ask/receipts/{number}", self.answer),
            ("/ask/receipts/{number}/answer.{kind}", self.file),
        ):
            app.add_api_route(path, run, methods=["GET"], response_model=None)

    async def answer(
        self,
        request: Request,
        number: Number,
        confidence: Often = "0.95",
        column: Column = "",
        sql: Words = "",
        again: Annotated[str, Query(max_length=3)] = "",
    ) -> Response:
        """An answer: table, picture, what it estimates, what was paid."""
        who = asker(request)
        who.needs(Act.SPEND)
        often = confidence if confidence in CONFIDENCES else "0.95"
        found = await self._common.run(
            lambda: _shown(self._common.house.session(who.name), number, often, column, sql)
        )
        terms = {"confidence": often, "column": found.column, "sql": sql}
        return await self._common.looks.made(
            request,
            "ask_answer.html",
            shown=found,
            confidence=often,
            confidences=CONFIDENCES,
            again=again == "yes",
            kinds=[kind for kind in kinds() if kind != "png" or found.printed],
            terms=urlencode({name: value for name, value in terms.items() if value}),
            sql=sql,
            most=_ROWS,
        )

    async def file(
        self,
        request: Request,
        number: Number,
        kind: str,
        confidence: Often = "0.95",
        column: Column = "",
        sql: Words = "",
    ) -> Response:
        """An answer as a file."""
        who = asker(request)
        who.needs(Act.SPEND)
        often = confidence if confidence in CONFIDENCES else "0.95"
        if kind not in kinds():
            raise HTTPException(404)

        def work() -> Response:
            session = self._common.house.session(who.name)
            receipt, release = answer_of(session, number, sql)
            if isinstance(release, str):
                raise HTTPException(404)
            drawn = column if column in drawable(release) else None
            if kind == "png" and not _is_printed(release):
                raise HTTPException(404)
            balance = session.balance(receipt.dataset, window=receipt.windows)
            own = _is_own(session, receipt)
            made = file_of(release, kind, own=own, balance=balance, confidence=often, column=drawn)
            held = {"Content-Disposition": f'attachment; filename="{made.name}"'}
            return Response(made.data, 200, held, media_type=made.kind)

        return await self._common.run(work)

    async def history(
        self, request: Request, before: Annotated[int | None, Query(ge=1, le=2**62)] = None
    ) -> Response:
        """The own questions, newest first."""
        who = asker(request)
        who.needs(Act.SPEND)
        leaf = await self._common.run(lambda: leaf_of(self._common.house.session(who.name), before))
        lines = [(receipt, _paid(receipt)) for receipt in leaf.receipts]
        return await self._common.looks.made(
            request, "ask_history.html", lines=lines, older=leaf.older, before=before
        )


def _shown(session: Session, number: int, confidence: str, column: str, sql: str) -> _Shown:
    receipt, release = answer_of(session, number, sql)
    own = _is_own(session, receipt)
    balance = session.balance(receipt.dataset, window=receipt.windows)
    rest = Rest(balance, price_of_receipt(receipt))
    if isinstance(release, str):
        return _Shown(receipt, own, _paid(receipt), rest, wrong=release)
    seen, columns = release.shown(confidence, most=_ROWS), drawable(release)
    drawn = column if column in columns else (columns[0] if columns else "")
    rows = release.table.num_rows
    tables = tuple(cells_of(listed) for listed in seen.tables)
    one = rows == 1 and len(columns) == 1
    return _Shown(
        receipt,
        own,
        _paid(receipt),
        rest,
        release=release,
        tables=tables,
        rows=rows,
        figure=seen.columns[seen.head(columns[0])][0] if one else "",
        chart=chart_of(release, drawn, confidence) if drawn else None,
        columns=tuple(columns),
        printed=_is_printed(release),
        column=drawn,
        holds=seen.holds,
        definitions=tuple(seen.definitions.items()),
    )


def _is_own(session: Session, receipt: Receipt) -> bool:
    return alike(receipt.analyst or "") == alike(session.analyst or "")


def _is_printed(release: Release) -> bool:
    """Whether there is something to draw, and not more than a picture holds."""
    return release.table.num_rows <= _PRINTED and bool(drawable(release))


def _paid(receipt: Receipt) -> str:
    """What a debit cost, in words."""
    memo = receipt.purpose
    if memo.epsilon is None:
        return ", ".join(f"{unit} {amount(part)}" for unit, part in receipt.price.items() if part)
    return f"epsilon {amount(memo.epsilon)}" + (f", delta {amount(memo.delta)}" if memo.delta else "")
