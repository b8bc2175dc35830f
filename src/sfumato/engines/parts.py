"""A result that stays where it is: its parts are worked on there, and each is written to a file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from sfumato import random
from sfumato._dataclasses import dataclass

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

__all__ = ["InParts", "Part", "Work", "digest_of", "write_part"]

_ROWS = 100_000
_BLOCK = 1 << 20

Work: TypeAlias = "Callable[[int, Iterator[pa.RecordBatch]], Iterator[pa.Table]]"
"""What is done with one part, by its number: its lines in order, some at a time, to what may be written.

It can be pickled, and does the same each time: a part may be worked on again, or twice at once.
"""


@dataclass(frozen=True, slots=True)
class Part:
    """A file that was written.

    Attributes:
        number: Of the part, from 0.
        name: Of the file.
        rows: How many it has.
        digest: SHA-256 of its bytes, in hexadecimal digits.
    """

    number: int
    name: str
    rows: int
    digest: str


@runtime_checkable
class InParts(Protocol):
    """An engine whose results can stay where they are.

    Privacy:
        As for `Engine`. Nothing of a part is left but what `work` made of it: neither in files nor in
        messages. How many files there are follows from settings alone, how one is divided from what it
        shows.
    """

    def in_parts(
        self,
        statement: exp.Expression,
        work: Work,
        schema: pa.Schema,
        folder: Path,
        *,
        order: Sequence[str],
        guard: exp.Expression | None = None,
    ) -> tuple[Part, ...]:
        """Run one SELECT over attached tables, and work on each part of its result where it is.

        Args:
            statement: The SELECT.
            work: What is done with a part.
            schema: Of what is written.
            folder: Where: seen by all that work, and by this process.
            order: The columns by which the lines of a part are sorted before anything is done with them.
            guard: A SELECT of one number over the same tables that must be 0, or nothing is worked on: as for
                `Engine.fetch`.

        Returns:
            One file for each part, also for those without lines: as many as the engine's settings say,
            whatever the rows. A part that was tried again, or worked on twice at once, has one; of others
            nothing is left.

        Raises:
            EngineFailed: if it cannot be finished, or the guard is not 0; `TimedOut` and `Cancelled` say
                which way.
        """


def write_part(
    work: Work, schema: pa.Schema, folder: Path, number: int, batches: Iterator[pa.RecordBatch]
) -> Part:
    """Write what is made of a part to a file whose name no other try has.

    Privacy:
        How the file is divided follows from what it shows: all groups of rows but the last have the same
        number. Were they as the lines came, they would tell how many lines were left out between two rows.
    """
    import pyarrow.parquet as pq

    name = f"{number:05d}-{random.token()}.parquet"
    rows = 0
    with (folder / name).open("wb") as file:
        with pq.ParquetWriter(file, schema) as writer:
            for table in _even(work(number, batches), schema):
                writer.write_table(table, row_group_size=_ROWS)
                rows += table.num_rows
        file.flush()
        os.fsync(file.fileno())
    return Part(number, name, rows, digest_of(folder / name))


def _even(tables: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """The same rows, as many at a time as are written together."""
    import pyarrow as pa

    waiting = schema.empty_table()
    for table in tables:
        waiting = pa.concat_tables([waiting, table.cast(schema)])
        while waiting.num_rows >= _ROWS:
            yield waiting.slice(0, _ROWS)
            waiting = waiting.slice(_ROWS)
    if waiting.num_rows:
        yield waiting


def digest_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return found.hexdigest()
