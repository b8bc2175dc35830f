"""The HTTP API over a `House`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from sfumato import __version__
from sfumato.errors import SfumatoError
from sfumato.ledger import Receipt
from sfumato.render import plain_json
from sfumato.server.access import Account, Accounts, Act
from sfumato.server.deadlines import Overrun
from sfumato.server.house import House
from sfumato.server.http import failures
from sfumato.server.http.acts import Acts
from sfumato.server.http.answers import lasts, released, wants_arrow
from sfumato.server.http.asking import Key, Name, Threads, Who, on_busy
from sfumato.server.http.bodies import Question
from sfumato.server.http.books import Books
from sfumato.server.http.described import Described
from sfumato.server.http.guard import App, Guard, Known
from sfumato.server.http.jobs import JobRoutes
from sfumato.server.http.lasting import Lasting, lasting
from sfumato.server.http.operations import Operations
from sfumato.server.http.parted import Parted
from sfumato.server.http.people import People
from sfumato.server.http.repeats import Repeats
from sfumato.server.http.rereads import Rereads
from sfumato.server.http.segments import Segments
from sfumato.server.http.sessions import Sessions
from sfumato.server.http.watching import Watched
from sfumato.server.turns import TooBusy
from sfumato.server.ways import Ways

__all__ = ["make_app"]

_AT_ONCE, _AT_ONCE_KEPT = 16, 64
_ASIDE = 4  # acts of stewards and looks of auditors at the same time
_PAGE = 1_000


def make_app(
    house: House,
    known: Known,
    *,
    accounts: Accounts | None = None,
    at_once: int | None = None,
    ways: Ways | None = None,
    page: Callable[[Threads, Threads], App] | None = None,
) -> App:
    """The application, with its guard.

    Args:
        house: What is asked.
        known: Whose a token is.
        accounts: What stewards add analysts to; None: nobody is added over HTTP.
        at_once: How many questions are answered at the same time; the others wait. None: 16, and 64
            where reads are kept to deadlines, which wait most of the time.
        ways: How it runs; None: in the usual ones.
        page: What people see in a browser, made for what runs questions in threads, and acts and
            audits aside of them; None: nothing.
    """
    ways = ways or Ways()
    at_once = at_once or (_AT_ONCE_KEPT if ways.deadlines else _AT_ONCE)
    app = Described(
        title="Sfumato",
        version=__version__,
        description="Private answers with error bars, each paid from a budget.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        redirect_slashes=False,
    )
    app.add_exception_handler(SfumatoError, failures.on_error)
    app.add_exception_handler(RequestValidationError, failures.on_invalid)
    app.add_exception_handler(HTTPException, failures.on_missing)
    app.add_exception_handler(Overrun, failures.on_overrun)
    app.add_exception_handler(TooBusy, on_busy)
    app.add_exception_handler(Exception, failures.on_unforeseen)
    run = Threads(at_once, house.working, ways.deadlines)
    aside = Threads(_ASIDE, house.working)  # which questions cannot take
    repeats = Repeats()  # one, so that a word for one address is known at the others
    _Routes(house, run, aside, repeats).add_to(app)
    Acts(house, aside).add_to(app)
    Books(house, aside).add_to(app)
    Rereads(house, run).add_to(app)
    Sessions(house, run, repeats).add_to(app)
    JobRoutes(house, run, repeats, None if accounts is None else accounts.named).add_to(app)
    Operations(house, ways.metrics).add_to(app)
    if accounts is not None:
        People(house, accounts, aside).add_to(app)
    recent = (lambda _: None) if accounts is None else accounts.recent
    api = Segments(Guard(Lasting(app, house.ledger.end), known, recent, ways.rates))
    return Watched(api if page is None else Parted(api, page(run, aside)), ways.watch)


class _Routes:
    """What each address does."""

    def __init__(self, house: House, run: Threads, aside: Threads, repeats: Repeats) -> None:
        self._house, self._run, self._aside, self._repeats = house, run, aside, repeats

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        for method, path, run, what in (
            ("GET", "/health", self.health, "Whether the server runs."),
            ("GET", "/api/me", self.me, "Whose token this is."),
            ("GET", "/api/datasets", self.datasets, "The names of what may be asked."),
            ("GET", "/api/datasets/{name}", self.dataset, "Tables, columns, bounds and unit of a dataset."),
            ("GET", "/api/datasets/{name}/balance", self.balance, "What is spent and left."),
            ("POST", "/api/quote", self.quote, "What an answer would cost: free, no row is read."),
            ("POST", "/api/release", self.release, "The private answer, paid from the budget."),
            ("GET", "/api/receipts", self.receipts, "What was paid, oldest first, a page at a time."),
            ("GET", "/api/receipts/{number}", self.receipt, "One receipt."),
        ):
            app.add_api_route(path, run, methods=[method], summary=what, response_model=None)

    async def health(self) -> Response:
        """No token is needed."""
        return failures.answered({"status": "ok"})

    async def me(self, who: Who) -> Response:
        """The name and the role."""
        return failures.answered({"name": who.name, "role": who.role.value})

    async def datasets(self, who: Who) -> Response:  # noqa: ARG002
        """A list of names."""
        return failures.answered(self._house.datasets)

    async def dataset(self, name: Name, who: Who) -> Response:  # noqa: ARG002
        """What was declared; nothing of it is read off the data."""
        return failures.answered(plain_json(self._declared(name)))

    async def balance(self, name: Name, who: Who) -> Response:
        """Of the asker's own share, where they have a limit."""
        self._declared(name)
        found = await self._run(lambda: self._house.session(who.name).balance(name))
        return failures.answered(plain_json(found.to_dict()))

    async def quote(self, question: Question, who: Who) -> Response:
        """The price and the expected errors."""

        def work() -> dict[str, Any]:
            session = self._house.session(who.name)
            query = session.sql(question.sql, question.parameters)
            quote = query.quote(**question.terms())
            balance = session.balance(session.dataset_of(quote.report).name, window=query.windows)
            return {"quote": quote.to_dict(), "left": balance.left()}

        return failures.answered(plain_json(await self._run(work)))

    async def release(self, question: Question, request: Request, who: Who, key: Key = None) -> Response:
        """JSON, or the columns as an Arrow stream where the header Accept asks for it.

        The same question again, also by another process after a crash, is given from the ledger, free.
        """
        who.needs(Act.SPEND)
        if key is not None:
            self._repeats.check(who.name, key, request.url.path, question.model_dump_json())
        arrow = wants_arrow(request)

        def work() -> tuple[Response, bool]:
            given = released(self._house, question, who.name)
            return given.written(arrow=arrow), lasts(given.release)

        return lasting(request, *await self._run(work))

    async def receipts(
        self,
        who: Who,
        after: Annotated[int, Query(ge=0, le=2**62, description="Only those after this number.")] = 0,
        most: Annotated[int, Query(ge=1, le=_PAGE)] = 100,
    ) -> Response:
        """Of an analyst the own ones."""
        run = self._aside if who.may(Act.AUDIT) else self._run
        found = await run(lambda: list(islice(self._receipts(who, after), most)))
        return failures.answered([_told(each) for each in found])

    async def receipt(self, number: Annotated[int, Path(ge=1, le=2**62)], who: Who) -> Response:
        """Whether it is another one's, or is not there, is not told apart."""
        run = self._aside if who.may(Act.AUDIT) else self._run
        found = await run(lambda: self._house.one_of(None if who.may(Act.AUDIT) else who.name, number))
        if found is None:
            raise HTTPException(404)
        return failures.answered(_told(found))

    def _receipts(self, who: Account, after: int) -> Iterator[Receipt]:
        """All of them for a steward and an auditor; of an analyst what they paid themselves."""
        return self._house.record(None if who.may(Act.AUDIT) else who.name, after=after)

    def _declared(self, name: str) -> dict[str, Any]:
        found = self._house.declared(name)
        if found is None:
            raise HTTPException(404)
        return found


def _told(receipt: Receipt) -> dict[str, Any]:
    told: dict[str, Any] = plain_json(receipt.to_dict())
    return told
