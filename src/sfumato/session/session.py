"""`Session`: tables that may be asked, the budget that pays, the ledger that remembers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidParameter, LedgerMismatch, QueryRefused
from sfumato.ledger import Balance, Budget, Dataset, Ledger, Receipt
from sfumato.plan.builder import Selection
from sfumato.schema import PrivateTable
from sfumato.session.query import Query
from sfumato.session.vault import Vault
from sfumato.sql.parse import parse

if TYPE_CHECKING:
    from sfumato.engines.base import Engine
    from sfumato.plan.nodes import Report

__all__ = ["Session", "declaration_of"]


class Session:
    """Private tables with a budget. It may be used from several threads.

    ```python
    s = Session(visits, budget=Budget(epsilon=2, delta=1e-6), ledger="visits.ledger")
    q = s.sql("SELECT country, COUNT(*) AS n FROM visits GROUP BY country")
    print(q.quote(epsilon=0.3))
    r = q.release(epsilon=0.3)
    ```

    Attributes:
        tables: The private tables by name.
        ledger: Where every answer is paid from.
        vault: What reads, for a receipt.
        analyst: In whose name it asks; None: the steward's own.
    """

    def __init__(
        self,
        *tables: PrivateTable,
        budget: Budget | None = None,
        ledger: str | Path | Ledger | None = None,
        engine: Engine | None = None,
        analyst: str | None = None,
    ) -> None:
        """Open the ledger, find or open the budget of each table's dataset, and attach the sources.

        Args:
            *tables: At least one, with different names.
            budget: What may be spent on each dataset in all. May be left out for a ledger that has it.
            ledger: A path (SQLite), a `postgresql://` address, an open ledger, or None: it lives and dies
                with the session.
            engine: What runs the reads; by default DuckDB inside this process.
            analyst: In whose name to ask, where the steward has set limits.

        Raises:
            LedgerMismatch: if the ledger has another budget, unit or bounds on record.
            SourceUnusable: if a source cannot be opened or lacks a declared column.
        """
        if not tables or not all(isinstance(table, PrivateTable) for table in tables):
            raise InvalidParameter("A session takes one or more PrivateTable: Session(visits, budget=…).")
        self.tables = {table.name: table for table in tables}
        if len({name.lower() for name in self.tables}) != len(tables):
            raise InvalidParameter("Two tables of a session have the same name.")
        self.analyst = analyst
        self._own_ledger = not isinstance(ledger, Ledger)
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
        self._own_engine = engine is None
        self._questions: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        try:
            _unambiguous(self.ledger, {table.dataset for table in tables})
            self._datasets = {
                name: self.ledger.register(name, declaration_of(members), budget)
                for name, members in _by_dataset(tables).items()
            }
            self._engine = engine if engine is not None else _default_engine()
            for table in tables:
                _attach(self._engine, table)
        except BaseException:
            self.close()
            raise
        self.vault = Vault(self._engine, self.tables)

    def sql(self, text: str) -> Query:
        """A question in SQL.

        Raises:
            QueryRefused: with the reason and the nearest thing that would work.
        """
        return Query(self, parse(text, self.tables), text)

    def table(self, name: str) -> Selection[Query]:
        """A question in Python: `s.table("visits").group_by("country").agg(n=sf.count())`."""
        known = {each.lower(): each for each in self.tables}
        if str(name).lower() not in known:
            raise QueryRefused(
                f"There is no table {str(name)[:60]!r}.", f"There is {', '.join(self.tables)}."
            )
        return Selection(self.tables[known[name.lower()]], lambda report: Query(self, report))

    def dataset_of(self, report: Report) -> Dataset:
        """Whose budget a plan draws on."""
        return self._datasets[self.tables[report.child.table].dataset]

    def balance(self, dataset: str | None = None) -> Balance:
        """What is spent and left of a dataset's budget, by its own gate; for the session's analyst if any."""
        if dataset is None:
            if len(self._datasets) > 1:
                names = ", ".join(sorted(self._datasets))
                raise InvalidParameter(f"Say which dataset's balance: one of {names}.")
            dataset = next(iter(self._datasets))
        return self.ledger.balance(dataset, self.analyst)

    def releases(self) -> list[Receipt]:
        """The receipts of what was released before about this session's datasets, oldest first."""
        return [
            receipt
            for name in self._datasets
            for receipt in self.ledger.entries(name)
            if receipt.kind == "debit"
        ]

    @contextmanager
    def question(self, fingerprint: str) -> Iterator[None]:
        """One thread at a time for one question, so that asking it at once in two threads is paid once."""
        with self._lock:
            lock = self._questions.setdefault(fingerprint, threading.Lock())
        with lock:
            yield

    def close(self) -> None:
        """Give back the engine and the ledger, unless they were handed in."""
        if self._own_engine and hasattr(self, "_engine"):
            self._engine.close()
        if self._own_ledger:
            self.ledger.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _unambiguous(ledger: Ledger, names: set[str]) -> None:
    """Refuse a dataset whose name differs from another's only in case: it would open a second budget."""
    known = {each.name for each in ledger.datasets()} | names
    for name in names:
        for other in known - {name}:
            if other.casefold() == name.casefold():
                raise LedgerMismatch(
                    f"The datasets {name!r} and {other!r} differ only in upper and lower case; write them "
                    "alike, or they would have a budget each."
                )


def _by_dataset(tables: tuple[PrivateTable, ...]) -> dict[str, list[PrivateTable]]:
    members: dict[str, list[PrivateTable]] = {}
    for table in tables:
        members.setdefault(table.dataset, []).append(table)
    return members


def declaration_of(members: Sequence[PrivateTable]) -> dict[str, Any]:
    """What the ledger keeps on record: whose privacy, which bounds, which state of the data."""
    units = {(table.unit.column, table.unit.adjacency) for table in members}
    if len(units) > 1:
        raise InvalidParameter("Tables that share a dataset must protect the same unit.")
    column, adjacency = units.pop()
    return {
        "unit": {"column": column, "adjacency": adjacency},
        "schema": {
            table.name: {
                "max_groups": table.unit.max_groups,
                "max_rows": table.unit.max_rows,
                "columns": {name: kind.to_dict() for name, kind in table.schema.items()},
            }
            for table in members
        },
        "version": {table.name: table.version for table in members},
    }


def _default_engine() -> Engine:
    from sfumato.engines.duckdb import DuckDB

    return DuckDB()


def _attach(engine: Engine, table: PrivateTable) -> None:
    kinds = {name: kind.kind for name, kind in table.schema.items()}
    engine.attach(table.name, table.source, kinds, unit=table.unit.column)
