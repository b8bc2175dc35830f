"""Audits of answers that are written part by part, where the groups are: on DuckDB, which keeps the parts."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from sfumato import random
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.parts import Part, Work, write_part
from sfumato.ledger import Budget, Ledger
from sfumato.session import Session
from sfumato.session.drawing import Drawing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sfumato.loss import PrivacyLoss
    from sfumato.mechanisms.base import Side
    from sfumato.schema import PrivateTable

__all__ = ["WrittenPair", "written_pair"]

_SEED = 32


class _Parted(DuckDB):
    """DuckDB with a part for each group of the first key, which keeps what it worked on, and how."""

    lines: pa.Table
    drawing: Drawing

    def in_parts(
        self,
        statement: Any,
        work: Work,
        schema: pa.Schema,
        folder: Path,
        *,
        order: Sequence[str],
        guard: Any = None,
    ) -> tuple[Part, ...]:
        """See `engines.parts.InParts`."""
        self.lines = self.fetch(statement, guard=guard).sort_by([(name, "ascending") for name in order])
        self.drawing = cast("Drawing", work)
        return tuple(
            write_part(work, schema, folder, at, iter(self.lines.slice(at, 1).to_batches()))
            for at in range(self.lines.num_rows)
        )


class WrittenPair:
    """An answer about each of two neighbouring tables, paid for and read once, drawn again at will.

    Attributes:
        loss: The claim.
    """

    def __init__(self, left: _Parted, right: _Parted) -> None:
        self.loss: PrivacyLoss = left.drawing.quote.loss
        self._sides: dict[Side, _Parted] = {"left": left, "right": right}
        keys = [*left.lines.column("k0").to_pylist(), *right.lines.column("k0").to_pylist()]
        self._places = {key: place for place, key in enumerate(dict.fromkeys(keys))}

    def draw(self, side: Side, count: int) -> NDArray[Any]:
        """That many answers: for each group whether the files show it, and the number that they have."""
        rows = np.zeros((count, 2, len(self._places)))
        for row in rows:
            for key, value in self._files(self._sides[side]):
                row[:, self._places[key]] = 1, value
        return rows.reshape(count, -1)

    @staticmethod
    def _files(engine: _Parted) -> list[tuple[Any, float]]:
        """The rows of all files, as an answer of its own has them: each has a seed of its own."""
        work = replace(engine.drawing, seed=random.salt(_SEED))
        lots = [work(at, iter(engine.lines.slice(at, 1).to_batches())) for at in range(engine.lines.num_rows)]
        return [tuple(row.values()) for lot in lots for table in lot for row in table.to_pylist()]


def written_pair(
    left: PrivateTable, right: PrivateTable, sql: str, *, epsilon: float, delta: float
) -> WrittenPair:
    """The answer to a question with one key and one number, written about each of two neighbouring tables.

    Args:
        left: one table.
        right: the same declaration with a neighbouring source.
        sql: the question, whose groups are found.
        epsilon: its price.
        delta: what of delta it may use.
    """
    engines = []
    with closing(Ledger.open(None)) as ledger:  # one for both: neighbours share the salt that chooses groups
        for table in (left, right):
            engine, budget = _Parted(), Budget(10 * epsilon, 10 * delta)
            with (
                tempfile.TemporaryDirectory() as folder,
                closing(engine),
                Session(table, budget=budget, ledger=ledger, engine=engine) as session,
            ):
                session.sql(sql).write(Path(folder, "files"), epsilon=epsilon, delta=delta)
                engines.append(engine)
    return WrittenPair(*engines)
