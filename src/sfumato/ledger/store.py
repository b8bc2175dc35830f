"""`Store`: what a database must offer a ledger, and the SQL that all of them share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from sfumato._dataclasses import dataclass
from sfumato.errors import LedgerUnusable
from sfumato.ledger.chain import Row

__all__ = ["MIGRATIONS", "OF_ANALYSTS", "Identity", "Store"]

# Each entry takes a ledger from the version of its position to the next; entries are only ever added.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE sfumato_ledger (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, "
        "id TEXT NOT NULL, seal TEXT NOT NULL)",
        "CREATE TABLE sfumato_receipts (number {integer} PRIMARY KEY, kind TEXT NOT NULL, "
        "dataset TEXT NOT NULL, analyst TEXT, fingerprint TEXT, body TEXT NOT NULL, mac {blob} NOT NULL)",
        "CREATE INDEX sfumato_receipts_dataset ON sfumato_receipts (dataset, number)",
        "CREATE INDEX sfumato_receipts_question ON sfumato_receipts (dataset, fingerprint, number)",
        "CREATE TABLE sfumato_payloads (debit {integer} PRIMARY KEY, payload {blob} NOT NULL)",
    ),
    # The same tables. A program that does not announce its commits in the anchor must not write here.
    (),
    # The same tables. A program that cannot read an anchor of two slots, or that refuses answers which are
    # kept behind the anchor's mark, must not write here.
    (),
)
# An index changes nothing of what is found, so that it needs no version: it is made where it is missing, and
# who may not make it, or came before it, reads the same receipts.
OF_ANALYSTS = "sfumato_receipts_analyst"

_ALL = 2**62  # more than there are
_AT_ONCE = 500  # values in one list of a statement
_COLUMNS = "number, kind, dataset, analyst, fingerprint, body, mac"


@dataclass(frozen=True, slots=True)
class Identity:
    """Which ledger this is, and the proof that it goes with a key."""

    version: int
    id: str
    seal: str


class Store(ABC):
    """A database with receipts: numbered rows that are only ever appended.

    `begin` gives the one right to append, which lasts until `commit` or `rollback`; what is read in between
    is what the append builds on. Any failure of the database is one `LedgerUnusable`.
    """

    types: ClassVar[dict[str, str]]  # of this database
    mark: ClassVar[str] = "?"  # a parameter in a statement

    # ── what differs

    @property
    @abstractmethod
    def name(self) -> str:
        """The database in words, without any secret."""

    @abstractmethod
    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of one statement."""

    @abstractmethod
    def begin(self, *, synced: bool = True) -> None:
        """Waits for the one right to append.

        Args:
            synced: Whether `commit` waits for the disk. Without, what is committed is there for everybody at
                once and outlives the process, and a power cut may undo it until the next commit that waits:
                never what came before it without what came after.
        """

    @abstractmethod
    def commit(self) -> None:
        """Makes everything since `begin` durable, unless it was to be fast: see there."""

    @abstractmethod
    def rollback(self) -> None:
        """Undoes everything since `begin`; never raises."""

    @abstractmethod
    def version(self) -> int:
        """The version of the tables, 0 if there are none."""

    @abstractmethod
    def has_index(self, name: str) -> bool:
        """Whether there is an index of this name."""

    @abstractmethod
    def close(self) -> None:
        """Lets go of the database."""

    @abstractmethod
    def another(self) -> Store | None:
        """A connection of its own to the same database, to be closed; None where there is but this one."""

    @abstractmethod
    def abandon(self) -> None:
        """Forgets a connection that belongs to the process this one was forked from."""

    @abstractmethod
    def claim(self, place: int) -> bool:
        """Takes the lock of a number against other processes; False if one of them has it.

        It lasts until `give_back`, or until this process dies. Threads of one process are kept apart before.
        """

    @abstractmethod
    def give_back(self, place: int) -> None:
        """Gives that lock back; never raises."""

    # ── what is shared

    def _run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.execute(statement.replace("?", self.mark), values)

    def migrate(self, version: int) -> None:
        """Brings the tables from a version to the newest, within a transaction."""
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                self.execute(statement.format(**self.types))
        if version:
            self._run("UPDATE sfumato_ledger SET version = ?", len(MIGRATIONS))
        else:
            self.index()

    def index(self) -> None:
        """Makes the index by which the receipts of one analyst are found, within a transaction."""
        self.execute(f"CREATE INDEX IF NOT EXISTS {OF_ANALYSTS} ON sfumato_receipts (analyst, number)")

    def create(self, identity: Identity) -> None:
        """Writes down which ledger this is."""
        self._run(
            "INSERT INTO sfumato_ledger (one, version, id, seal) VALUES (1, ?, ?, ?)",
            identity.version,
            identity.id,
            identity.seal,
        )

    def identity(self) -> Identity:
        """Which ledger this is."""
        rows = self._run("SELECT version, id, seal FROM sfumato_ledger")
        if len(rows) == 1:
            version, ledger, seal = rows[0]
            # The id becomes part of a file name.
            if isinstance(version, int) and re.fullmatch("[0-9a-f]{32}", str(ledger)):
                return Identity(version, str(ledger), str(seal))
        raise LedgerUnusable(f"{self.name} does not say which ledger it is: restore it from a backup.")

    def append(self, row: Row) -> None:
        """Adds a receipt, and reads it back so that no trigger can swallow it."""
        self._run(
            f"INSERT INTO sfumato_receipts ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
            row.number,
            row.kind,
            row.dataset,
            row.analyst,
            row.fingerprint,
            row.body,
            row.mac,
        )
        if self.rows(row.number, 2) != [row]:
            raise LedgerUnusable(f"{self.name} did not take a receipt as it was written; nothing was spent.")

    def rows(self, first: int, most: int) -> list[Row]:
        """Up to `most` receipts from a number on, in order."""
        return _rows(
            self._run(
                f"SELECT {_COLUMNS} FROM sfumato_receipts WHERE number >= ? ORDER BY number LIMIT ?",
                first,
                most,
            )
        )

    def rows_of(
        self,
        first: int,
        most: int,
        *,
        last: int = _ALL,
        dataset: str | None = None,
        analyst: str | None = None,
        kind: str | None = None,
        newest: bool = False,
    ) -> list[Row]:
        """Up to `most` receipts between two numbers, in order or newest first; None: of all.

        Args:
            first: The least number.
            most: How many at most.
            last: The largest number.
            dataset: Of which.
            analyst: Of whom, in this very spelling.
            kind: What happened.
            newest: Whether the newest come first.
        """
        columns = {"dataset": dataset, "analyst": analyst, "kind": kind}
        wanted = {name: value for name, value in columns.items() if value is not None}
        where = " AND ".join([*(f"{name} = ?" for name in wanted), "number >= ?", "number <= ?"])
        order = "number DESC" if newest else "number"
        return _rows(
            self._run(
                f"SELECT {_COLUMNS} FROM sfumato_receipts WHERE {where} ORDER BY {order} LIMIT ?",
                *wanted.values(),
                first,
                last,
                most,
            )
        )

    def analysts(self) -> list[str]:
        """All analysts on record, each in every spelling: by the index from one to the next."""
        if not self.has_index(OF_ANALYSTS):
            found = self._run("SELECT DISTINCT analyst FROM sfumato_receipts WHERE analyst IS NOT NULL")
        else:
            found = self._run(
                "WITH RECURSIVE known (analyst) AS ("
                "SELECT min(analyst) FROM sfumato_receipts WHERE analyst IS NOT NULL UNION ALL "
                "SELECT (SELECT min(r.analyst) FROM sfumato_receipts AS r WHERE r.analyst > known.analyst) "
                "FROM known WHERE known.analyst IS NOT NULL) "
                "SELECT analyst FROM known WHERE analyst IS NOT NULL"
            )
        return [str(analyst) for (analyst,) in found]

    def debits_of(self, dataset: str, first: int, most: int) -> list[tuple[Row, bytes | None]]:
        """Up to `most` debits of a dataset from a number on, each with the mac that is before it."""
        found = self._run(
            f"SELECT {_COLUMNS}, (SELECT b.mac FROM sfumato_receipts AS b WHERE b.number = r.number - 1) "
            "FROM sfumato_receipts AS r WHERE dataset = ? AND kind = 'debit' AND number >= ? "
            "ORDER BY number LIMIT ?",
            dataset,
            first,
            most,
        )
        before = [row[-1] if isinstance(row[-1], bytes) else None for row in found]
        return list(zip(_rows([row[:-1] for row in found]), before, strict=True))

    def about(
        self, dataset: str, fingerprint: str, kind: str, *, skip: int = 0, most: int = _ALL
    ) -> list[Row]:
        """The receipts of a kind that are about a question, newest first: at most so many, after some."""
        return _rows(
            self._run(
                f"SELECT {_COLUMNS} FROM sfumato_receipts WHERE dataset = ? AND fingerprint = ? "
                "AND kind = ? ORDER BY number DESC LIMIT ? OFFSET ?",
                dataset,
                fingerprint,
                kind,
                most,
                skip,
            )
        )

    def keep(self, debit: int, payload: bytes) -> None:
        """Stores the answer of a debit."""
        self._run("INSERT INTO sfumato_payloads (debit, payload) VALUES (?, ?)", debit, payload)

    def payload(self, debit: int) -> bytes | None:
        """The answer of a debit."""
        rows = self._run("SELECT payload FROM sfumato_payloads WHERE debit = ?", debit)
        return bytes(rows[0][0]) if rows else None

    def payloads(self, debits: Sequence[int], most: int = 2**24) -> Iterator[tuple[int, bytes]]:
        """The answers of debits, those that there are; of small ones several at once, up to `most` bytes."""
        for begin in range(0, len(debits), _AT_ONCE):
            some = debits[begin : begin + _AT_ONCE]
            sizes = self._run(
                f"SELECT debit, length(payload) FROM sfumato_payloads WHERE debit IN ({_marks(some)})", *some
            )
            batch, size = list[int](), 0
            for debit, length in sizes:
                if batch and size + length > most:
                    yield from self._payloads(batch)
                    batch, size = [], 0
                batch.append(debit)
                size += length
            yield from self._payloads(batch)

    def _payloads(self, debits: list[int]) -> list[tuple[int, bytes]]:
        if not debits:
            return []
        rows = self._run(
            f"SELECT debit, payload FROM sfumato_payloads WHERE debit IN ({_marks(debits)})", *debits
        )
        return [(debit, bytes(payload)) for debit, payload in rows]

    def last(self) -> int:
        """The number of the last receipt; 0 if there is none."""
        return int(self._run("SELECT coalesce(max(number), 0) FROM sfumato_receipts")[0][0])

    def pages(self, first: int, page: int = 1000) -> Iterator[list[Row]]:
        """All receipts from a number on, a page at a time."""
        while rows := self.rows(first, page):
            yield rows
            if len(rows) < page:
                return
            first = rows[-1].number + 1

    def walk(self, first: int) -> Iterator[Row]:
        """All receipts from a number on."""
        for rows in self.pages(first):
            yield from rows


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _rows(rows: list[tuple[Any, ...]]) -> list[Row]:
    # A mac of another type than bytes is not valid: such a row is read, and then refused like any forged one.
    return [
        Row(
            int(number),
            str(kind),
            str(dataset),
            None if analyst is None else str(analyst),
            None if fingerprint is None else str(fingerprint),
            str(body),
            mac if isinstance(mac, bytes) else b"",
        )
        for number, kind, dataset, analyst, fingerprint, body, mac in rows
    ]
