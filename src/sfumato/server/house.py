"""`House`: the steward's session behind a door. Whoever asks, asks in their own name."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from sfumato.errors import AccessDenied, InvalidParameter
from sfumato.ledger import Budget, Ledger, Receipt, Steward
from sfumato.ledger.names import alike
from sfumato.schema import PrivateTable, PublicTable
from sfumato.server.dossiers import Dossiers
from sfumato.session.widening import opened

if TYPE_CHECKING:
    from sfumato.catalog import Catalog
    from sfumato.dossier import Facts
    from sfumato.engines.base import Engine
    from sfumato.session import Release, Session

__all__ = ["House", "NothingYet"]

_MOST_SESSIONS = 1024


class NothingYet(AccessDenied):
    """There is no table."""

    def __init__(self) -> None:
        super().__init__("There is nothing to ask yet: a steward registers a first table.")


class House:
    """What a server serves: the tables of one session, each analyst's own view of it, and what is public.

    The engine, the attached tables and the ledger's key stay with the steward's session: what is handed out
    are sessions in somebody's name, which have no way to them (`Session.as_analyst`).

    It may begin with nothing to ask, and get tables while it runs (`widen`).

    Args:
        session: The steward's.
        most: How many analysts' sessions are kept open; who was away longest is opened anew.
        catalog: The steward's file, where there is one.
    """

    def __init__(
        self, session: Session, *, most: int = _MOST_SESSIONS, catalog: Catalog | None = None
    ) -> None:
        if session.analyst is not None:
            raise InvalidParameter("A server serves the steward's session, not an analyst's.")
        assert isinstance(session.ledger, Ledger)
        self._begin(session, session.ledger, session._engine, most, catalog)

    @classmethod
    def empty(cls, ledger: Ledger, engine: Engine, *, most: int = _MOST_SESSIONS) -> Self:
        """One with nothing to ask yet.

        Args:
            ledger: Where answers will be paid from.
            engine: What will read.
            most: As above.
        """
        made = cls.__new__(cls)
        made._begin(None, ledger, engine, most, None)
        return made

    def _begin(
        self,
        session: Session | None,
        ledger: Ledger,
        engine: Engine,
        most: int,
        catalog: Catalog | None,
    ) -> None:
        self._session, self._ledger, self._engine, self._most = session, ledger, engine, most
        self.catalog = catalog
        self._open: OrderedDict[str, Session] = OrderedDict()
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._work, self._working = 0, threading.Condition()
        self._ends: list[Callable[[], object]] = []
        self._dossiers = Dossiers()

    def widen(
        self,
        tables: Sequence[PrivateTable | PublicTable],
        *,
        budgets: Mapping[str, Budget | None],
        keep: Callable[[], object] = lambda: None,
        catalog: Catalog | None = None,
    ) -> None:
        """Serves more tables from now on. Who asks already is answered by the old session.

        Args:
            tables: Those that come to it.
            budgets: Of their datasets, which are put on record; None: as it is on record.
            keep: Called once the sources are open and the budgets on record, before anybody can ask.
            catalog: The steward's file as it is then.

        Raises:
            SourceUnusable: if a source cannot be opened or lacks a declared column; nothing is changed.
            LedgerMismatch: if the ledger has something else on record; nothing is changed.
        """
        with self._turn:
            all_of_them = [*self.tables.values(), *tables]
            new = [table.name for table in tables]
            made = opened(all_of_them, new, budgets=budgets, ledger=self._ledger, engine=self._engine)
            keep()
            with self._lock:
                self._session, self.catalog = made, catalog
                self._open.clear()

    def session(self, analyst: str) -> Session:
        """The session in an analyst's name.

        Raises:
            AccessDenied: if the ledger has another version of a table by now, the name could be taken for
                another one, or there is nothing to ask yet.
        """
        key = alike(analyst)
        while True:
            with self._lock:
                steward, known = self._session, self._open.get(key)
                if known is not None:
                    self._open.move_to_end(key)
                    return known
            if steward is None:
                raise NothingYet
            made = steward.as_analyst(analyst)
            with self._lock:
                if self._session is not steward:
                    continue  # there is more to ask by now
                self._open[key] = self._open.pop(key, made)
                while len(self._open) > self._most:
                    self._open.popitem(last=False)
                return self._open[key]

    @property
    def ledger(self) -> Ledger:
        """The steward's, for what stewards and auditors may know and do: for nobody else."""
        return self._ledger

    def record(
        self, analyst: str | None, *, after: int = 0, before: int | None = None, newest: bool = False
    ) -> Iterator[Receipt]:
        """What is on record, oldest or newest first: an analyst's own receipts, or with None all there are.

        All are for stewards and auditors; what an analyst sees is read over a counter of theirs.
        """
        ledger = self.ledger if analyst is None else self.session(analyst).ledger
        return ledger.entries(analyst=analyst, after=after, before=before, newest=newest)

    def one_of(self, analyst: str | None, number: int) -> Receipt | None:
        """One receipt of `record`; None: it is not there, or another one's. No others are read for it."""
        ledger = self.ledger if analyst is None else self.session(analyst).ledger
        found = next(ledger.entries(after=max(number - 1, 0)), None)
        if found is None or found.number != number:
            return None
        own = analyst is None or (found.analyst is not None and alike(found.analyst) == alike(analyst))
        return found if own else None

    def steward(self, by: str) -> Steward:
        """The steward's acts, on record as done by somebody."""
        return Steward(self.ledger, by=by)

    def facts(self, dataset: str, *, latest: int | None = None) -> Facts:
        """All that is on record about a dataset, for stewards and auditors: no row is read.

        Args:
            dataset: Which one.
            latest: Of how many answers the error is told, the newest first; None: of all.

        Raises:
            InvalidParameter: if the tables were declared without a steward's file.
            LedgerTampered: if the ledger does not verify.
        """
        if self.catalog is None:
            raise InvalidParameter("A dossier needs a catalog: serve a sfumato.toml.")
        return self._dossiers.facts(self.catalog, self.ledger, dataset, session=self._steward, latest=latest)

    def receipts(self) -> list[Receipt]:
        """What was released before, by everybody, oldest first: for stewards and auditors."""
        return [] if self._session is None else self._session.releases()

    def answer(self, number: int) -> Release:
        """The answer that a receipt paid for, whoever paid: for stewards, who decide what is published.

        Raises:
            InvalidParameter: if there is none on record.
        """
        return self._steward().reread(number)

    @contextmanager
    def working(self) -> Iterator[None]:
        """While something is done that should end before the ledger is closed."""
        with self._working:
            self._work += 1
        try:
            yield
        finally:
            with self._working:
                self._work -= 1
                self._working.notify_all()

    def at_end(self, call: Callable[[], object]) -> None:
        """Has something called when the end comes, before what has begun is waited for."""
        self._ends.append(call)

    def wait(self) -> None:
        """Waits until all that has begun is done: what was paid is then on record."""
        for call in self._ends:
            call()
        with self._working:
            self._working.wait_for(lambda: not self._work)

    def is_ready(self) -> bool:
        """Whether questions can be answered: the session is open, and the ledger is reached."""
        session = self._session
        try:
            if session is None:
                return False
            session._check_open()
            return bool(_private(session)) and bool(self.ledger.datasets())
        except Exception:  # why is the steward's to find out: strangers may ask this
            return False

    @property
    def datasets(self) -> list[str]:
        """The names of what has a budget."""
        session = self._session
        return [] if session is None else sorted({_dataset(session, table) for table in _private(session)})

    def declared(self, dataset: str) -> dict[str, Any] | None:
        """What may be known of a dataset before anything is asked: tables, columns, bounds, unit.

        None: there is no such dataset. What is public is in each: anyone may join it.
        """
        session = self._session
        if session is None:
            return None
        members = [table for table in _private(session) if _dataset(session, table) == dataset]
        if not members:
            return None
        tables = session.tables.values()
        return {
            "name": dataset,
            "tables": [
                {**table.declaration(), "size": table.size}
                for table in sorted(members, key=lambda table: table.name)
            ],
            "public": [table.declaration() for table in tables if not isinstance(table, PrivateTable)],
        }

    def _steward(self) -> Session:
        if self._session is None:
            raise NothingYet
        return self._session

    @property
    def tables(self) -> Mapping[str, Any]:
        """All tables by name, as they are declared."""
        session = self._session
        return {} if session is None else session.tables


def _private(session: Session) -> list[PrivateTable]:
    return [table for table in session.tables.values() if isinstance(table, PrivateTable)]


def _dataset(session: Session, table: PrivateTable) -> str:
    return session.dataset_with(table).name
