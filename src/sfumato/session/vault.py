"""The vault: the one place that reads private rows, and only for a receipt."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfumato.errors import AccessDenied, Cancelled, EngineFailed
from sfumato.sql.lower import lower

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.engines.base import Engine
    from sfumato.ledger import Receipt
    from sfumato.plan.nodes import Measured
    from sfumato.schema import PrivateTable

__all__ = ["Vault"]


class Vault:
    """Holds the engine and the tables; a receipt opens it once.

    Privacy:
        Claim: every read of private rows on a release path is preceded by a durable debit for exactly the
        question that is read. Condition: `read` is the only caller of the engine, it takes each receipt once,
        and a receipt exists only after its debit was committed and anchored.
    """

    def __init__(self, engine: Engine, tables: Mapping[str, PrivateTable]) -> None:
        self._engine, self._tables = engine, tables
        self._used: set[tuple[int, str]] = set()
        self._made: tuple[Measured, Any] | None = None
        self._lock = threading.Lock()

    def check(self, measured: Measured) -> None:
        """Make the statement without running it, so that what cannot be asked is refused before it is paid.

        Raises:
            QueryRefused: if something has no form in the engine's language.
        """
        self._made = measured, self._statement(measured)

    def read(self, measured: Measured, receipt: Receipt) -> tuple[list[int], ...]:
        """The exact integers of each measurement, aligned with the public keys; empty groups are 0.

        Raises:
            AccessDenied: for a receipt of another question, or one that was used before.
            EngineFailed: if the engine cannot finish; the price stays paid.
        """
        if receipt.kind != "debit" or receipt.fingerprint != measured.fingerprint:
            raise AccessDenied("This receipt was not paid for this question.")
        with self._lock:
            mark = (receipt.number, receipt.mac)
            if mark in self._used:
                raise AccessDenied("This receipt was used before: every read is paid for by itself.")
            self._used.add(mark)
        return self._fetch(measured)

    def _statement(self, measured: Measured) -> Any:
        return lower(measured, self._tables, dialect=self._engine.dialect)

    def _fetch(self, measured: Measured) -> tuple[list[int], ...]:
        made = self._made  # what `check` made, if this is what it was made for
        statement = made[1] if made is not None and made[0] is measured else self._statement(measured)
        # Whatever an engine raises or returns, nothing of it may travel in a message or in the chain of an
        # exception: the refusal is made here and raised once the handlers are left.
        try:
            return _align(self._engine.fetch(statement), measured)
        except EngineFailed as known:
            refusal = type(known)(*known.args)
        except KeyboardInterrupt:
            refusal = Cancelled("The read was interrupted; it was paid for before it began, and stays paid.")
        except Exception:
            refusal = EngineFailed("The engine could not finish the read; the price stays paid.")
        raise refusal


def _align(answer: pa.Table, measured: Measured) -> tuple[list[int], ...]:
    groups = len(measured.combinations)
    columns = [answer.column(f"m{j}").to_pylist() for j in range(len(measured.measurements))]
    if measured.keys:
        keys: list[list[Any]] = [answer.column(f"k{i}").to_pylist() for i in range(len(measured.keys))]
        place = {combination: row for row, combination in enumerate(measured.combinations)}
        rows = [place.get(key) for key in zip(*keys, strict=True)]
    else:
        rows = list(range(answer.num_rows))
    aligned = tuple([0] * groups for _ in columns)
    for source, target in zip(columns, aligned, strict=True):
        for row, value in zip(rows, source, strict=True):
            if row is not None and value is not None:
                target[row] += int(value)
    return aligned
