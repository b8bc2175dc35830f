"""`Session`: tables that may be asked, the budget that pays, the ledger that remembers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.engines.base import UNIT_COLUMN, check_address, pointer_column
from sfumato.engines.base import engine as open_engine
from sfumato.engines.public import some_rows
from sfumato.errors import InvalidParameter, LedgerMismatch, QueryRefused, SourceUnusable
from sfumato.ledger import Balance, Budget, Counter, Dataset, Ledger, Receipt
from sfumato.ledger.names import spelled
from sfumato.numeric.exact import Rational
from sfumato.plan.builder import Selection
from sfumato.purchase import Bought, Purchase, buy
from sfumato.schema import (
    ColumnType,
    Enum,
    Int,
    PrivateTable,
    PublicTable,
    Text,
    dataset_of,
    owners,
    pointers_of,
)
from sfumato.session.choices import Choice, Crossing, first_above, most_common
from sfumato.session.query import Query
from sfumato.session.release import Release
from sfumato.session.vault import Vault
from sfumato.sql.asking import ask
from sfumato.sql.text.parameters import Values
from sfumato.sql.write.sources import id_types

if TYPE_CHECKING:
    from sfumato.engines.base import Engine
    from sfumato.plan.questions.nodes import Report

__all__ = ["Session", "declaration_of"]

T = TypeVar("T")

_MOST_VALUES = 10_000


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
        ledger: Where every answer is paid from; without the steward's acts if an analyst asks.
        vault: What reads, for what a debit gave.
        prepared: The tables whose rows have ranks, so that a filter bounds them; by name the columns of the
            grouping that they were prepared for, if any.
        analyst: In whose name it asks; None: the steward's own.
    """

    def __init__(
        self,
        *tables: PrivateTable | PublicTable,
        budget: Budget | None = None,
        ledger: str | Path | Ledger | None = None,
        engine: Engine | None = None,
        analyst: str | None = None,
    ) -> None:
        """Attach the sources, open the ledger, and find or open the budget of each table's dataset.

        Sources come first, so that one that cannot be used leaves nothing on record.

        Args:
            *tables: At least one private one, and any public ones, with different names.
            budget: What may be spent on each dataset in all. May be left out for a ledger that has it.
            ledger: A path (SQLite), a `postgresql://` address, an open ledger, or None: it lives and dies
                with the session.
            engine: What runs the reads; by default the one inside this process.
            analyst: In whose name to ask, where the steward has set limits.

        Raises:
            LedgerMismatch: if the ledger has another budget, unit or bounds on record.
            AccessDenied: if an analyst is named and the ledger has no budget on record yet, or other
                declarations: what to open and declare is the steward's.
            SourceUnusable: if a source cannot be opened or lacks a declared column; in the steward's own
                session also if a CSV file would lose rows to a quote or to text that is not UTF-8.
        """
        private = [table for table in tables if isinstance(table, PrivateTable)]
        if not private or not all(isinstance(table, PrivateTable | PublicTable) for table in tables):
            raise InvalidParameter("A session takes one or more PrivateTable: Session(visits, budget=…).")
        self.tables: dict[str, Any] = {table.name: table for table in tables}
        if len({name.lower() for name in self.tables}) != len(tables):
            raise InvalidParameter("Two tables of a session have the same name.")
        self.analyst = analyst
        self._own_ledger = not isinstance(ledger, Ledger)
        self._own_engine = engine is None
        members_of = _by_dataset(private)
        self._engine = engine if engine is not None else open_engine()
        try:
            pointers = pointers_of(private)
            for table in tables:  # all of them before the first read, which shuts the engine's doors
                _attach(self._engine, table, pointers.get(table.name, ()))
            for table in tables:
                if isinstance(table, PublicTable):
                    self.tables[table.name] = _listed(self._engine, table)
            if analyst is None:
                _check_whole(self._engine, tables)
            for members in members_of.values():
                _check_ids(self._engine, members)
            opened = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
            self.ledger = opened if analyst is None else Counter(opened)
            _unambiguous(self.ledger, set(members_of))
            self._datasets = {
                name: self.ledger.register(name, declaration_of(members), budget)
                for name, members in members_of.items()
            }
        except BaseException:
            self.close()
            raise
        self.prepared = _prepared(self._engine, private)
        self.vault = Vault(self._engine, self.tables, self._salts())

    def sql(self, text: str, parameters: Values = None) -> Query:
        """A question in SQL, also in GoogleSQL's or Snowflake's words.

        Args:
            text: One SELECT.
            parameters: Values for `?` and `$1` in order, or for `$name`, `:name` and `@name` by name.

        Raises:
            QueryRefused: with the reason and the nearest thing that would work.
        """
        return Query(self, ask(text, self.tables, parameters), text)

    def table(self, name: str) -> Selection[Query]:
        """A question in Python: `s.table("visits").group_by("country").agg(n=sf.count())`."""
        known = {each.lower(): each for each in self.tables}
        if str(name).lower() not in known:
            raise QueryRefused(f"There is no table {str(name)[:60]!r}.", f"Tables: {', '.join(self.tables)}.")
        table = self.tables[known[name.lower()]]
        if not isinstance(table, PrivateTable):
            raise QueryRefused(f"{table.name} is public: read it directly.", "Ask a private table.")
        return Selection(table, lambda report: Query(self, report))

    def most_common(
        self,
        column: str,
        epsilon: Rational,
        *,
        table: str | None = None,
        among: Iterable[Any] | Release | None = None,
        count: int = 1,
    ) -> Choice:
        """The most common value of a column, or the first few; see `choices.most_common`."""
        return most_common(self, column, epsilon, table=table, among=among, count=count)

    def first_above(
        self, questions: Sequence[Query | str], threshold: Rational, epsilon: Rational
    ) -> Crossing:
        """The first of several questions whose answer reaches a threshold; see `choices.first_above`."""
        return first_above(self, questions, threshold, epsilon)

    def dataset_of(self, report: Report) -> Dataset:
        """Whose budget a plan draws on."""
        private = [table for table in self.tables.values() if isinstance(table, PrivateTable)]
        return self._datasets[dataset_of(self.tables[report.child.table], private)]

    def _salts(self) -> dict[str, int]:
        """The key of the hash that chooses groups, for each private table: that of its dataset."""
        private = [table for table in self.tables.values() if isinstance(table, PrivateTable)]
        return {table.name: _salt(self._datasets[dataset_of(table, private)].salt) for table in private}

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

    def buy(self, wanted: Purchase[T]) -> Bought[T]:
        """An answer in this session's name: from the ledger, or paid for, read and kept (see `purchase`)."""
        return buy(self.ledger, wanted, self.analyst)

    def close(self) -> None:
        """Give back the engine and the ledger, unless they were handed in."""
        if self._own_engine:
            self._engine.close()
        if self._own_ledger and hasattr(self, "ledger"):
            self.ledger.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _unambiguous(ledger: Ledger, names: set[str]) -> None:
    """Refuse new datasets whose names are spellings of another's: each would open a second budget."""
    known = {each.name for each in ledger.datasets()}
    for name in names - known:
        other = spelled(name, (known | names) - {name})
        if other is not None:
            raise LedgerMismatch(
                f"The datasets {name!r} and {other!r} are one name in another case or spelling; write them "
                "alike, or they would have a budget each."
            )


def _salt(minted: bytes) -> int:
    """63 bits that belong to a dataset and are not part of its fingerprints."""
    return int.from_bytes(hashlib.sha256(b"choice of groups" + minted).digest()[:8], "big") >> 1


def _by_dataset(tables: Sequence[PrivateTable]) -> dict[str, list[PrivateTable]]:
    members: dict[str, list[PrivateTable]] = {}
    for table in tables:
        members.setdefault(dataset_of(table, tables), []).append(table)
    return members


def declaration_of(members: Sequence[PrivateTable]) -> dict[str, Any]:
    """What the ledger keeps on record: whose privacy, which bounds, which state of the data."""
    roots = [owners(table, members)[-1] for table in members]
    units = {(root.unit.column, root.unit.adjacency) for root in roots}
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
                **(
                    {"via": {"table": table.unit.table, "on": [list(pair) for pair in table.unit.on]}}
                    if table.unit.is_via
                    else {}
                ),
            }
            for table in members
        },
        "version": {table.name: table.version for table in members},
    }


def _prepared(engine: Engine, tables: Sequence[PrivateTable]) -> dict[str, tuple[str, ...]]:
    """Which tables have ranks, and for which grouping."""
    return {table.name: engine.grouping(table.name) for table in tables if engine.is_prepared(table.name)}


def _fits(values: list[Any]) -> bool:
    """Whether values can be an enum's: whole numbers beyond 2**53 cannot."""
    return all(isinstance(value, str) or abs(value) <= 2**53 for value in values)


def _check_ids(engine: Engine, members: Sequence[PrivateTable]) -> None:
    """Refuse tables of one dataset whose ids have different types, and pointers with different ends.

    Put together, two people could be one, or rows could reach owners that they do not point to.
    """
    named = [table.name for table in members if not (table.unit.is_row or table.unit.is_via)]
    links = [(table.name, a, str(table.unit.table), b) for table in members for a, b in table.unit.on]
    columns = [(name, UNIT_COLUMN) for name in named]
    columns += [(name, pointer_column(each)) for a, b, c, d in links for name, each in ((a, b), (c, d))]
    if len(columns) < 2:
        return
    (row,) = engine.fetch(id_types(columns, engine.dialect)).to_pylist()
    types = dict(zip(columns, row.values(), strict=True))
    for here, a, there, b in links:
        if _differ(types[here, pointer_column(a)], types[there, pointer_column(b)]):
            raise SourceUnusable(
                f"{here}.{a} and {there}.{b} have different types in their sources, and rows would not find "
                "their owners. Write both as one type (a CSV file has text)."
            )
    if _differ(*(types[name, UNIT_COLUMN] for name in named)):
        raise SourceUnusable(
            f"The ids of {', '.join(named)} have different types in their sources, and rows of one person "
            "would not be recognised. Write both as one type (a CSV file has text), or declare the owner: "
            'unit = { via = "people", on = "person_id" }.'
        )


def _differ(*types: str) -> bool:
    """Whether columns of these types cannot be compared as they are; one of nothing but NULL always can."""
    return len(set(types) - {'"NULL"', "NULL"}) > 1


def _check_whole(engine: Engine, tables: Sequence[PrivateTable | PublicTable]) -> None:
    """Tell the steward of rows that would be lost; no row may decide what an analyst is told."""
    for table in tables:
        engine.check_whole(table.source)


def _attach(engine: Engine, table: PrivateTable | PublicTable, pointers: Sequence[str]) -> None:
    check_address(table.source, engine.schemes)
    kinds = {name: kind.kind for name, kind in table.schema.items()}
    unit = table.unit.column if isinstance(table, PrivateTable) and not table.unit.is_via else None
    engine.attach(table.name, table.source, kinds, unit=unit, pointers=pointers)


def _listed(engine: Engine, table: PublicTable) -> PublicTable:
    """A public table with the values of its columns, which anyone may know."""
    if table.key and not engine.is_unique(table.name, table.key):
        raise SourceUnusable(f"The key of the public table {table.name} is not unique; declare one that is.")
    schema = dict(table.schema)
    for name, kind in table.schema.items():
        listed = isinstance(kind, Text) or (isinstance(kind, Int) and kind.lower is None)
        if listed and (values := engine.values(table.name, name, _MOST_VALUES)):
            schema[name] = Enum(*values) if _fits(values) else kind
    together = _combinations(engine, table.name, schema)
    return PublicTable(
        table.name,
        source=table.source,
        schema=schema,
        key=table.key or None,
        version=table.version,
        listed=together,
    )


def _combinations(
    engine: Engine, table: str, schema: Mapping[str, ColumnType]
) -> tuple[tuple[str, ...], frozenset[tuple[Any, ...]]] | None:
    """Which values of listed columns are together in a row of a public table; None if there are too many."""
    columns = tuple(name for name, kind in schema.items() if isinstance(kind, Enum) and kind.kind != "float")
    if len(columns) < 2:
        return None
    found = engine.fetch(some_rows(table, columns, _MOST_VALUES))
    if found.num_rows > _MOST_VALUES:
        return None
    return columns, frozenset(tuple(row.values()) for row in found.to_pylist())
