"""What one statement gives: a setting, a quote, rows of the catalog, or a private answer.

Privacy:
    A statement goes to the catalog, which has no data, or to the session, which pays before it reads; never
    to both. Nothing is paid unless the analyst named a price, by `SET sfumato.epsilon` or in the text.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from sfumato._dataclasses import dataclass
from sfumato.errors import AccessDenied
from sfumato.schema import ColumnType, Date, Enum, Int
from sfumato.server.events import Event, Watch, nobody
from sfumato.server.wire.catalog_tables import catalog_oids
from sfumato.server.wire.copying import Layout, layout_of
from sfumato.server.wire.kept import Cursor, Kept, Prepared, arguments, types_of, weight_of
from sfumato.server.wire.replies import Field
from sfumato.server.wire.rewriting import Asker, settings_in, tree_of
from sfumato.server.wire.settings import shown_name
from sfumato.server.wire.shapes import (
    answer_fields,
    answer_table,
    field_of,
    parameter_columns,
    parameter_oids,
)
from sfumato.server.wire.sqlstates import WireError, state_of
from sfumato.server.wire.statements import CHAIN, Statement, statements
from sfumato.server.wire.types import TEXT, oid_of, sample

if TYPE_CHECKING:
    from sqlglot import exp

    from sfumato.server.wire.catalog import Catalog
    from sfumato.server.wire.room import Room
    from sfumato.server.wire.settings import Settings
    from sfumato.session import Query, Session

__all__ = ["Desk", "Outcome"]

VERSION = "PostgreSQL 16.0 (sfumato: private answers; no row leaves)"
_EXAMPLE = "0.1"
_HOW = (
    f"SET sfumato.epsilon = {_EXAMPLE}; sets the price of each question after it, and EXPLAIN SELECT … gives "
    "the quote, free; or write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = …) … into the text."
)
_PLAN = [field_of("QUERY PLAN", TEXT)]
_PLAINLY = re.compile(
    r"""(?P<kept>'(?:[^']|'')*'|--[^\n]*|/\*.*?(?:\*/|\Z))|(?<![\w."])(?:"public"|public)\s*\.\s*(?=["\w])"""
    r"""|(?<![\w."])TO_(?P<kind>DATE|TIMESTAMP)\((?P<day>'[-0-9:. T]{8,30}'),\s?'YYYY-MM-DD[^']{0,20}'\)""",
    re.DOTALL | re.IGNORECASE,
)
_PREPARED = ("select", "explain")
Fits = Callable[[Sequence[Field]], object]


def _said_plainly(match: re.Match[str]) -> str:
    """Tables without their schema, and days and times as SQL writes them, where tools call functions."""
    return match["kept"] or (f"{match['kind'].upper()} {match['day']}" if match["kind"] else "")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a statement gave: what the client is told, columns and rows if it has any, notices, a receipt.

    With a layout the rows are sent as a copy; `opens` is a cursor that `Desk.settle` keeps, `sets` is what it
    sets; `dataset` is what was asked, where that was one.
    """

    tag: str
    fields: list[Field] | None = None
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    notices: tuple[str, ...] = ()
    layout: Layout | None = None
    receipt: int | None = None
    free: bool = False
    opens: tuple[str, Cursor] | None = None
    dataset: str = ""
    sets: tuple[tuple[str, str | None, bool], ...] = ()


def _fit(fields: Sequence[Field]) -> None:
    """All columns can be sent as text."""


class Desk:
    """Where the statements of one connection are answered, one at a time.

    Attributes:
        kept: What the connection has prepared, and its cursors.
        status: I outside a transaction, T inside one, E inside one that failed.
    """

    def __init__(
        self,
        session: Session,
        catalog: Callable[[], Catalog],
        settings: Settings,
        *,
        user: str,
        database: str,
        watch: Watch = nobody,
        address: str = "",
        within: Room | None = None,
    ) -> None:
        self._session, self._catalog, self.settings = session, catalog, settings
        self.status, self.kept = "I", Kept(within)
        self._watch, self._address = watch, address
        self._constants: dict[str, str | None] = {
            "version": VERSION,
            **dict.fromkeys(("current_database", "current_catalog"), database),
            **dict.fromkeys(("current_user", "session_user", "user", "current_role"), user),
            "current_schema": "public",
        }
        declared = [pair for table in session.tables.values() for pair in table.schema.items()]
        self._kinds = {name.lower(): oid_of(str(column.kind)) for name, column in declared}
        self._likely = {
            name.lower(): value for name, column in declared if (value := _likely(column)) is not None
        }

    def failed(self) -> None:
        """Note that a statement failed: a transaction that it was in cannot go on.

        What was set by the statements before it is undone then, also where nobody sent BEGIN.
        """
        if self.status == "T":
            self.status = "E"
        elif self.status == "I":
            self.settings.end(undo=True)

    def ended(self) -> None:
        """Note that a message is over, or a row of them: with it ends a transaction that nobody began."""
        if self.status == "I":
            self.settings.end(undo=False)

    def oids(self, statement: Statement, given: Sequence[int]) -> tuple[int, ...]:
        """The types of a statement's parameters."""
        if statement.kind not in ("select", "explain", "declare", "copy"):
            return tuple(given)
        tree = self._about_catalog(statement)
        return parameter_oids(statement.text, given, self._kinds if tree is None else catalog_oids())

    def fields(
        self, statement: Statement, oids: Sequence[int], values: Sequence[Any] | None = None
    ) -> list[Field] | None:
        """The columns that a statement will give, if any; nothing is paid for that.

        Args:
            statement: The statement.
            oids: The types of its parameters.
            values: Their values, once they are known.

        Raises:
            QueryRefused: as running it would.
        """
        self.check_alive(statement)
        if statement.kind == "explain":
            return _PLAN
        if statement.kind == "show":
            return self._shown(statement).fields
        if statement.kind == "fetch":
            return self.kept.cursors[statement.name].fields
        if statement.kind == "execute":
            prepared = self._meant(statement)
            return self.fields(
                prepared.statement, prepared.oids, arguments(statement.value or "", prepared.oids)
            )
        if statement.kind != "select":
            return None
        tree = self._about_catalog(statement)
        if tree is not None:
            return self._catalog().ask(tree, self._asker(), values or [None] * len(oids))[0]
        query = self._asked(statement.text, self._samples(statement, oids) if values is None else values)
        return _PLAN if query.explain else answer_fields(query, intervals=self.settings.intervals)

    def _samples(self, statement: Statement, oids: Sequence[int]) -> list[Any]:
        """Values that the parameters could have, where only their types are known yet."""
        if not oids:
            return []
        columns = parameter_columns(statement.text)
        return [self._likely.get(columns.get(n, ""), sample(oid)) for n, oid in enumerate(oids, start=1)]

    def run(self, statement: Statement, values: Sequence[Any] = (), *, fits: Fits = _fit) -> Outcome:
        """Do what a statement says.

        Args:
            statement: The statement.
            values: Of its parameters.
            fits: Raises if the columns of an answer cannot be sent; asked before anything is paid.

        Raises:
            SfumatoError: as the session does.
            WireError: for what is of PostgreSQL's manners alone.
        """
        begun, status, outcome = time.monotonic(), "00000", None
        self.settings.begin()
        try:
            outcome = self._run(statement, values, fits)
            return outcome
        except Exception as error:
            status = state_of(error)
            raise
        finally:
            self._watch(
                Event(
                    front="postgresql",
                    act=statement.kind,
                    status=status,
                    who=self._session.analyst or "",
                    address=self._address,
                    receipt=None if outcome is None else outcome.receipt,
                    free=outcome is not None and outcome.free,
                    seconds=time.monotonic() - begun,
                )
            )

    def _run(self, statement: Statement, values: Sequence[Any], fits: Fits) -> Outcome:
        self.check_alive(statement)
        match statement.kind:
            case "select":
                return self._select(statement, values, fits)
            case "explain":
                return self._explained(self._asked(statement.text, values))
            case "show":
                return self._shown(statement)
            case "set":
                self.settings.set(statement.name, statement.value, local=statement.local)
            case "reset" if statement.name == "all":
                self.settings.reset()
            case "reset":
                self.settings.set(statement.name, None)
            case "begin" | "commit" | "rollback":
                return self._transaction(statement)
            case "savepoint" | "release" | "back":
                self._point(statement)
            case "forget":
                if statement.tag == "DISCARD ALL":
                    self.settings.reset()
                    self.kept.close("")
                self.kept.forget(statement.name)
            case "prepare" | "execute":
                return self._prepared(statement, fits)
            case "declare" | "fetch" | "move" | "close":
                return self._cursor(statement, values)
            case "copy":
                layout = layout_of(statement.value or "")
                copied = self._select(statement, values)
                return replace(copied, tag=f"COPY {len(copied.rows)}", layout=layout)
            case _:
                pass
        return Outcome(statement.tag)

    def _prepared(self, statement: Statement, fits: Fits) -> Outcome:
        if statement.kind == "execute":
            prepared = self._meant(statement)
            return self._run(prepared.statement, arguments(statement.value or "", prepared.oids), fits)
        inner = statements(statement.text)
        if len(inner) != 1 or inner[0].kind not in _PREPARED:
            raise WireError("42601", "PREPARE takes one SELECT.")
        oids = self.oids(inner[0], types_of(statement.value or ""))
        self.kept.prepare(statement.name, Prepared(inner[0], oids))
        return Outcome(statement.tag)

    def _meant(self, statement: Statement) -> Prepared:
        """What an EXECUTE names: never another EXECUTE, which could name the first one."""
        prepared = self.kept.statements[statement.name]
        if prepared.statement.kind not in _PREPARED:
            raise WireError("42601", "EXECUTE takes a prepared SELECT.")
        return prepared

    def _cursor(self, statement: Statement, values: Sequence[Any]) -> Outcome:
        """What is done with a cursor: its answer is paid for when it is declared, and read from then on."""
        if statement.kind == "close":
            self.kept.close(statement.name)
            return Outcome(statement.tag)
        if statement.kind == "declare":
            return self._declared(statement, values)
        cursor = self.kept.cursors[statement.name]
        self._check_open(cursor.dataset)
        found = cursor.fetch(statement.value or "")
        tag = f"{statement.tag} {len(found)}"
        if statement.kind == "move":
            return Outcome(tag)
        return Outcome(tag, cursor.fields, found, dataset=cursor.dataset)

    def _declared(self, statement: Statement, values: Sequence[Any]) -> Outcome:
        hold = (statement.value or "").upper() == "WITH"
        if self.status == "I" and not hold:
            raise WireError("25P01", "A cursor lasts as long as a transaction.", hint="Send BEGIN first.")
        if statement.name in self.kept.cursors:
            raise WireError("42P03", "There is a cursor of this name.")
        self.kept.cursors.check()
        found = self._select(statement, values)
        size = weight_of(found.fields, found.rows)
        cursor = Cursor(found.fields or [], found.rows, hold, size, found.dataset)
        self.kept.room.check(cursor.size)
        return replace(found, tag=statement.tag, fields=None, rows=[], opens=(statement.name, cursor))

    def settle(self, outcome: Outcome) -> None:
        """Keep the cursor that a statement declared, and what it set by a function, where the client waited.

        Whoever was let go before, at a deadline or on a cancel, has neither: when it came would tell when its
        read was over.

        Raises:
            WireError: if there is no room.
        """
        for name, value, local in outcome.sets:
            self.settings.set(name, value, local=local)
        if outcome.opens is not None:
            self.kept.open(*outcome.opens)

    def check_more(self, statement: Statement, outcome: Outcome) -> None:
        """Refuse to give more of what a statement gave.

        Raises:
            WireError: if its transaction failed since.
            AccessDenied: if the analyst may be given nothing more.
        """
        self.check_alive(statement)
        self._check_open(outcome.dataset)

    def _check_open(self, dataset: str) -> None:
        """Refuse whoever may be given nothing more by now, answers from before included.

        Args:
            dataset: That was asked; empty: none.

        Raises:
            AccessDenied: if its budget was closed, or the analyst revoked.
        """
        if dataset and not self._session.ledger.is_open(dataset):
            raise AccessDenied("Nothing more is given: the budget is closed, or the steward has revoked you.")

    def check_alive(self, statement: Statement) -> None:
        """Refuse what a transaction that failed does not take.

        Raises:
            WireError: if the statement is not its end.
        """
        ends = statement.kind in ("commit", "rollback", "back")
        if self.status == "E" and not ends:
            raise WireError(
                "25P02", "The transaction failed, and is ignored until it ends.", hint="Send ROLLBACK."
            )

    def _point(self, statement: Statement) -> None:
        """What is done with a savepoint.

        Raises:
            WireError: outside a transaction, or if there is none of its name, or there are too many.
        """
        if self.status == "I":
            raise WireError("25P01", "A savepoint is one of a transaction.", hint="Send BEGIN first.")
        match statement.kind:
            case "savepoint":
                self.settings.save(statement.name)
            case "release":
                self.settings.release(statement.name)
            case _:
                self.settings.back(statement.name)
                self.status = "T"  # what failed was after it

    def _transaction(self, statement: Statement) -> Outcome:
        if statement.kind == "begin":
            self.status = "T"
            return Outcome(statement.tag)
        chained = statement.value == CHAIN
        if chained and self.status == "I":
            raise WireError("25P01", "There is no transaction after which one could begin.")
        undo = statement.kind == "rollback" or self.status == "E"
        self.settings.end(undo=undo)
        self.kept.end()
        self.status = "T" if chained else "I"
        if chained:
            self.settings.begin()
        said = () if not undo else ("What was paid for in a transaction stays paid.",)
        return Outcome(
            "ROLLBACK" if undo else statement.tag, notices=said if statement.kind == "commit" else ()
        )

    def _shown(self, statement: Statement) -> Outcome:
        if statement.name == "all":
            fields = [field_of(name, TEXT) for name in ("name", "setting", "description")]
            return Outcome("SHOW", fields, [(*pair, "") for pair in self.settings.all().items()])
        value = self.settings.get(statement.name)
        return Outcome("SHOW", [field_of(shown_name(statement.name), TEXT)], [(value or "",)])

    def asks_catalog(self, statement: Statement) -> bool:
        """Whether the catalog answers a statement, or what it executes: then it waits for its like."""
        if statement.kind == "execute" and statement.name in self.kept.statements:
            return self.kept.statements[statement.name].statement.catalog
        return statement.catalog

    def _about_catalog(self, statement: Statement) -> exp.Expr | None:
        return tree_of(statement.text) if statement.catalog else None

    def _asker(self) -> Asker:
        return Asker(self._constants, self.settings.all())

    def _asked(self, text: str, values: Sequence[Any]) -> Query:
        """The question that a text is, also where it names tables with their schema."""
        plain = _PLAINLY.sub(_said_plainly, text)
        return self._session.sql(plain, list(values) or None)

    def _select(self, statement: Statement, values: Sequence[Any], fits: Fits = _fit) -> Outcome:
        tree = self._about_catalog(statement)
        if tree is not None:
            sets = settings_in(tree, values)
            fields, rows = self._catalog().ask(tree, self._asker(), values)
            if not rows:
                sets = []  # nothing was called
            for name, value, _ in sets:
                self.settings.check(name, value)
            return Outcome(f"SELECT {len(rows)}", fields, rows, sets=tuple(sets))
        query = self._asked(statement.text, values)
        return self._explained(query) if query.explain else self._released(query, fits)

    def _terms(self, query: Query) -> dict[str, Any]:
        """The price that the analyst named: that of the text goes before that of the settings."""
        settings = self.settings
        return {
            "epsilon": None if query.priced else settings.epsilon,
            "delta": None if query.names_delta else settings.delta,
            "confidence": settings.confidence,
        }

    def _released(self, query: Query, fits: Fits) -> Outcome:
        settings = self.settings
        if settings.epsilon is None and not query.priced:
            quote = query.quote(**{**self._terms(query), "epsilon": _EXAMPLE})
            raise WireError(
                "55000",
                "The question has no price, so nothing was spent and nothing was read.",
                detail=f"At epsilon {_EXAMPLE}, for example:\n{quote}",
                hint=_HOW,
            )
        fields = answer_fields(query, intervals=settings.intervals)
        fits(fields)
        release = query.release(**self._terms(query))
        table = answer_table(release, fields, settings.confidence, intervals=settings.intervals)
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        return Outcome(
            f"SELECT {len(rows)}",
            fields,
            rows,
            notices=(release.paid,),
            receipt=release.receipt.number,
            free=release.free,
            dataset=self._session.dataset_of(query.report).name,
        )

    def _explained(self, query: Query) -> Outcome:
        terms = self._terms(query)
        told: list[str] = []
        if terms["epsilon"] is None and not query.priced:
            terms["epsilon"] = _EXAMPLE
            told = [f"No price is set; at epsilon {_EXAMPLE}, for example:", ""]
        lines = [*told, *str(query.quote(**terms)).split("\n"), "", "A quote is free."]
        return Outcome("EXPLAIN", list(_PLAN), [(line,) for line in lines])


def _likely(column: ColumnType) -> Any:
    """A value that a declared column may have; None where nothing is declared of its values."""
    match column:
        case Enum():
            return column.values[0]
        case Int():
            return column.lower
        case Date():
            return column.start
    return None
