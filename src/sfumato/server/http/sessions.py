"""What `sf.connect` asks: the same session in another process, with all that its answers are made of."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import FastAPI, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from sfumato.errors import InvalidParameter, LedgerMismatch
from sfumato.ledger import Balance
from sfumato.plan.prices.quote import Quote
from sfumato.schema import PrivateTable
from sfumato.server.access import Account, Act
from sfumato.server.house import House
from sfumato.server.http.answers import lasts
from sfumato.server.http.asking import Key, Name, Threads, Who
from sfumato.server.http.failures import answered
from sfumato.server.http.lasting import lasting
from sfumato.server.http.repeats import Repeats
from sfumato.server.http.rereads import own_receipt
from sfumato.server.http.watching import PAID, RECEIPT
from sfumato.session import Query as Question
from sfumato.session import Release, Session
from sfumato.session.carried import version_here
from sfumato.session.carried.answers import pack_quote, pack_release
from sfumato.session.carried.balances import pack_balance, pack_losses
from sfumato.session.carried.calls import replayed
from sfumato.session.carried.tables import pack_tables
from sfumato.session.carried.values import unpack_scalar
from sfumato.session.rereading import reread

__all__ = ["Sessions"]

_TEXT, _MANY = 100_000, 1_000
Number = Annotated[str, Field(max_length=2_000)]
Word = Annotated[str, Field(max_length=200)]
Constant: TypeAlias = Any
Window = Annotated[str | None, Query(max_length=40)]
_TERMS = {"epsilon", "delta", "confidence", "mechanism", "bounding", "bounds", "touched", "profile"}


class Asked(BaseModel):
    """A question, in SQL or as calls of the builder in Python, and its terms."""

    model_config = ConfigDict(extra="forbid", strict=True)

    sql: Annotated[str, Field(max_length=_TEXT)] | None = None
    parameters: Constant = Field(None, description='A list of constants, or `{"by": {…}}` by name.')
    table: Word | None = None
    calls: Annotated[list[Any], Field(max_length=_MANY)] = Field(
        default_factory=list, description="What is asked of a table, or done with the groups of a SELECT."
    )
    at: Word | None = Field(None, description="The state of the tables that grow.")
    at_table: Word | None = None
    epsilon: Number | None = None
    delta: Number | None = None
    error: Constant = Field(None, description='A number for all columns, or `{"by": {…}}` by name.')
    confidence: Number = "0.95"
    mechanism: Literal["laplace", "gaussian"] | None = None
    bounding: Literal["reweight", "choose"] | None = None
    bounds: Literal["auto"] | None = None
    touched: bool = False
    profile: bool | None = None

    def question(self, session: Session) -> Question:
        """The question over a session's tables."""
        if (self.sql is None) == (self.table is None):
            raise InvalidParameter("A question is a text, sql, or calls about a table.")
        if self.at is not None:
            session = session.at(self.at, table=self.at_table)
        if self.sql is None:
            return replayed(session.table(str(self.table)), self.calls)
        return replayed(session.sql(self.sql, _constants(self.parameters)), self.calls)

    def written(self) -> str:
        """The whole question as text: the same for the same one."""
        try:
            return json.dumps(vars(self))
        except RecursionError:
            raise InvalidParameter("The question is nested too deeply.") from None

    def terms(self) -> dict[str, Any]:
        """What `quote` and `release` take."""
        return self.model_dump(include=_TERMS) | {"error": _constants(self.error)}


def _constants(data: Any) -> Any:
    """Constants in a list or by name, or a single one."""
    try:
        if isinstance(data, list):
            return [unpack_scalar(one) for one in data]
        if isinstance(data, dict) and set(data) == {"by"} and isinstance(data["by"], dict):
            return {name: unpack_scalar(one) for name, one in data["by"].items()}
        return unpack_scalar(data)
    except (ValueError, TypeError, ArithmeticError):
        raise InvalidParameter("A parameter or an error that is asked for cannot be read.") from None


class Sessions:
    """The addresses of the Python client.

    Args:
        house: What is asked.
        run: Runs work in threads.
        repeats: What the words of requests were for.
    """

    def __init__(self, house: House, run: Threads, repeats: Repeats) -> None:
        self._house, self._run, self._repeats = house, run, repeats

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        for method, path, run, what in (
            ("GET", "/api/session", self.begin, "All that a session knows: tables as they are declared."),
            ("GET", "/api/session/balance/{name}", self.balance, "A balance to the last digit."),
            ("GET", "/api/session/balance/{name}/losses", self.losses, "What was paid, loss by loss."),
            ("POST", "/api/session/quote", self.quote, "A quote with what it is made of: free."),
            ("POST", "/api/session/release", self.release, "The private answer, as the ledger keeps it."),
            ("GET", "/api/session/receipts/{number}", self.reread, "The answer of an own receipt again."),
        ):
            app.add_api_route(path, run, methods=[method], summary=what, response_model=None)

    async def begin(self, who: Who) -> Response:
        """What was declared; nothing of it is read off the data."""

        def work() -> dict[str, Any]:
            session = self._house.session(who.name)
            private = [one for one in session.tables.values() if isinstance(one, PrivateTable)]
            paying = {table.name: session.dataset_with(table) for table in private}
            names = {table: dataset.name for table, dataset in paying.items()}
            return {
                "version": version_here(),
                "analyst": who.name,
                "tables": pack_tables(session.tables.values(), names),
                "windows": {table: dataset.budget.each for table, dataset in paying.items()},
            }

        return answered(await self._run(work))

    async def balance(self, name: Name, who: Who, window: Window = None) -> Response:
        """Of the asker's own share, where they have a limit."""
        found = await self._run(lambda: self._balance(name, who, window))
        return answered(pack_balance(found))

    async def losses(self, name: Name, who: Who, window: Window = None) -> Response:
        """What the asker has paid and read, which composes to less than it sums up to."""
        return answered(await self._run(lambda: pack_losses(self._balance(name, who, window))))

    def _balance(self, name: str, who: Account, window: str | None) -> Balance:
        if name not in self._house.datasets:
            raise LedgerMismatch(f"The ledger has no dataset {name!r}: register it first.")
        return self._house.session(who.name).balance(name, window=window)

    async def quote(self, asked: Asked, who: Who) -> Response:
        """The price, the expected errors, and the plan."""

        def work() -> dict[str, Any]:
            session = self._house.session(who.name)
            quote = asked.question(session).quote(**asked.terms())
            return pack_quote(quote, adds=_adds(session, quote))

        return answered(await self._run(work))

    async def release(self, asked: Asked, request: Request, who: Who, key: Key = None) -> Response:
        """The same question again, also by another process after a crash, is given from the ledger, free."""
        who.needs(Act.SPEND)
        if key is not None:
            self._repeats.check(who.name, key, request.url.path, asked.written())

        def work() -> tuple[Response, bool]:
            session = self._house.session(who.name)
            return _written(session, asked.question(session).release(**asked.terms()))

        return lasting(request, *await self._run(work))

    async def reread(
        self, number: Annotated[int, Path(ge=1, le=2**62)], request: Request, who: Who
    ) -> Response:
        """Whether it is another one's, or is not there, is not told apart."""

        def work() -> tuple[Response, bool]:
            session = self._house.session(who.name)
            return _written(session, reread(session, own_receipt(session, number)))

        return lasting(request, *await self._run(work))


def _written(session: Session, release: Release) -> tuple[Response, bool]:
    told = {RECEIPT: str(release.receipt.number), PAID: "no" if release.free else "yes"}
    response = answered(
        pack_release(release, adds=_adds(session, release.quote), reader=session.analyst), headers=told
    )
    return response, lasts(release)


def _adds(session: Session, quote: Quote) -> bool:
    return session.dataset_of(quote.report).budget.accountant == "basic"
