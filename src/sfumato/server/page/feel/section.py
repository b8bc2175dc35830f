"""`/feel`: what an epsilon does to an answer and to an attacker, before anything is spent."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from sfumato.errors import InvalidParameter, QueryRefused, SfumatoError
from sfumato.explain import NOT_PROMISED, source
from sfumato.plan.expressions.names import in_sql
from sfumato.schema import PrivateTable, Windows
from sfumato.schema.windows import Each
from sfumato.server.http.failures import STATUS
from sfumato.server.page.common import Common
from sfumato.server.page.drawing import gauge
from sfumato.server.page.feel import meaning
from sfumato.server.page.feel.mock import mock, noisy
from sfumato.server.page.forms import said
from sfumato.server.page.looks import asker, is_part
from sfumato.server.page.rest import how_many, price_of_quote
from sfumato.server.troubles import is_told
from sfumato.session import Session

__all__ = ["Feel"]

_FIRST = "0.5"
_LEAST, _MOST, _TEXT, _NUMBER = 0.001, 100, 20_000, 64


class Feel:
    """One page, and the part of it that is drawn again for each epsilon. It quotes, and never pays."""

    def __init__(self, common: Common) -> None:
        self._house, self._run, self._looks = common.house, common.run, common.looks

    def add_to(self, app: FastAPI) -> None:
        """Makes the address known."""
        app.add_api_route("/feel", self.shown, methods=["GET", "POST"], response_model=None)

    async def shown(self, request: Request) -> Response:
        """The page, or the part of it that is drawn again, for an epsilon and a question."""
        sent = await said(request)
        name = asker(request).name
        wanted = {
            word: sent.get(word, "").strip() for word in ("dataset", "sql", "epsilon", "column", "about")
        }
        wanted["epsilon"] = wanted["epsilon"] or _FIRST
        status, refused, felt = 200, None, None
        try:
            felt = await self._run(lambda: self._felt(self._house.session(name), wanted))
        except SfumatoError as error:
            if not is_told(error, steward=False):
                raise
            status = STATUS.get(error.code, 500)
            refused = str(error), ""
            if isinstance(error, QueryRefused):
                refused = error.reason, error.fix
        template = "feel_part.html" if is_part(request) else "feel.html"
        values = {"felt": felt, "refused": refused, "wanted": wanted, "datasets": self._house.datasets}
        ends = {"lowest": meaning.LOWEST, "highest": meaning.HIGHEST, "least": _LEAST, "most": _MOST}
        return await self._looks.made(request, template, status, **values, **ends)

    def _felt(self, session: Session, wanted: Mapping[str, str]) -> dict[str, Any]:
        """All that is drawn.

        Privacy:
            It reads declarations, a quote and the asker's own balance: no row, and nothing is written.
        """
        epsilon = _number(wanted["epsilon"], "The epsilon")
        about = (
            float(_number(wanted["about"], "The size of the mock", 1e-9, 1e15)) if wanted["about"] else None
        )
        if len(wanted["sql"]) > _TEXT:
            raise InvalidParameter(f"A question has at most {_TEXT:,} characters here.")
        text = wanted["sql"] or self._first(session, wanted["dataset"])
        query = session.sql(text)
        quote = query.quote(epsilon=epsilon)
        table = session.tables[quote.measured.table]
        dataset = session.dataset_of(quote.report)
        balance = session.balance(dataset.name, window=query.windows)
        price, whole = quote.epsilon + quote.first, float(balance.epsilon)
        shares = 1 - float(balance.remaining) / whole, float(price) / whole
        standing = meaning.stands(price, quote.delta, table.unit)
        return {
            "text": text,
            "quote": quote,
            "price": float(price),
            "columns": noisy(quote),
            "mock": mock(quote, size=table.size, name=wanted["column"], about=about),
            "attack": meaning.attack(quote.loss, table.unit),
            "balance": balance,
            "share": shares[1],
            "gauge": gauge(shares[0], more=shares[1], title=_spent(*shares)),
            "many": how_many(balance, price_of_quote(dataset.budget, quote)) or 0,
            "standing": standing,
            "marks": meaning.marks(standing),
            "source": source(),
            "not_promised": NOT_PROMISED,
        }

    def _first(self, session: Session, dataset: str) -> str:
        """A count of the first table, of a dataset if it is named."""
        known = dataset if dataset in self._house.datasets else self._house.datasets[0]
        tables = [one for one in session.tables.values() if isinstance(one, PrivateTable)]
        first = next(one for one in tables if session.dataset_with(one).name == known)
        text = f"SELECT COUNT(*) AS answer FROM {in_sql(first.name)}"
        each = session.dataset_with(first).budget.each
        return text if each is None else f"{text} WHERE {_now(first, each)}"


def _now(table: PrivateTable, each: Each) -> str:
    """That rows are of the last window that there may be: where each has a budget, a question names some."""
    time = str(table.unit.time)
    days = [datetime.datetime.now(datetime.UTC).date()]
    last = getattr(table.schema[time], "end", None)
    if last is not None:
        days.append(last.date() if isinstance(last, datetime.datetime) else last)
    begin, end = Windows.of_days(each, min(days), min(days)).days()
    name, after = in_sql(time), end + datetime.timedelta(days=1)
    return f"{name} >= DATE '{begin}' AND {name} < DATE '{after}'"


def _number(text: str, what: str, least: float = _LEAST, most: float = _MOST) -> str:
    """A number between two, as it was written."""
    try:
        value = float(text) if len(text) <= _NUMBER else math.nan
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise InvalidParameter(f"{what} must be a number from {least:g} to {most:g}.")
    return text


def _spent(used: float, more: float) -> str:
    return f"{used:.1%} of the budget is spent; this would take {more:.1%}"
