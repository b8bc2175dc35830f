"""The vault: the one place that reads private rows, and only for a receipt."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sfumato.errors import AccessDenied, Cancelled, EngineFailed
from sfumato.plan.prices.bundle import fingerprint_of
from sfumato.session.reading import Reading, reading
from sfumato.sql.write.lower import lower
from sfumato.sql.write.ranks import guard

if TYPE_CHECKING:
    from sfumato.engines.base import Engine
    from sfumato.ledger import Receipt
    from sfumato.plan.questions.nodes import Measured

__all__ = ["Vault"]

_LONGEST = 1000


class Vault:
    """Holds the engine and the tables; a receipt opens it once.

    Privacy:
        Claim: every read of private rows on a release path is preceded by a durable debit for exactly the
        question that is read. Condition: `read` is the only caller of the engine, it takes each receipt once,
        and a receipt exists only after its debit was committed and anchored.
    """

    def __init__(
        self, engine: Engine, tables: Mapping[str, Any], salts: Mapping[str, int] | None = None
    ) -> None:
        self._engine, self._tables = engine, tables
        self._salts = {} if salts is None else salts
        self._used: set[tuple[int, str, int]] = set()
        self._made: dict[int, tuple[Measured, Any]] = {}
        self._lock = threading.Lock()

    def check(self, questions: Sequence[Measured]) -> None:
        """Make the statements without running them: what cannot be asked is refused before it is paid.

        Raises:
            QueryRefused: if something has no form in the engine's language.
        """
        self._made = {place: (each, self._statement(each)) for place, each in enumerate(questions)}

    def read(
        self,
        questions: Sequence[Measured],
        receipt: Receipt,
        *,
        place: int = 0,
        over: tuple[tuple[Any, ...], ...] | None = None,
    ) -> Reading:
        """The exact integers of one of the questions that a receipt was paid for.

        Args:
            questions: All that was paid for together.
            receipt: What paid for it.
            place: Which of them to read; each can be read once.
            over: The groups that were selected, for a question whose groups are not public.

        Raises:
            AccessDenied: for a receipt of other questions, or one that was used for this before.
            EngineFailed: if the engine cannot finish; the price stays paid.
        """
        if receipt.kind != "debit" or receipt.fingerprint != fingerprint_of(questions):
            raise AccessDenied("This receipt was not paid for this question.")
        with self._lock:
            mark = (receipt.number, receipt.mac, place)
            if mark in self._used:
                raise AccessDenied("This receipt was used before: every read is paid for by itself.")
            self._used.add(mark)
        measured = questions[place]
        if over is None:
            return self._read(measured, place)
        # Keys that were found in the data are constants of the statement where they can be written; where one
        # cannot, all groups are read and those that were not selected are dropped.
        closed = _closed(measured, over)
        return self._read(closed if _can_be_written(over) else measured, place, closed)

    def _statement(self, measured: Measured) -> Any:
        salt = self._salts.get(measured.table, 0)
        return lower(measured, self._tables, dialect=self._engine.dialect, salt=salt)

    def _fetch(self, measured: Measured) -> tuple[list[int], ...]:
        return self._read(measured, 0).columns

    def _read(self, measured: Measured, place: int, wanted: Measured | None = None) -> Reading:
        """The answer to one question, put in the order of its groups, or of another's."""
        made = self._made.get(place)  # what `check` made, if this is what it was made for
        # Whatever an engine raises or returns, nothing of it may travel in a message or in the chain of an
        # exception: the refusal is made here and raised once the handlers are left.
        try:
            known = made is not None and made[0] is measured
            statement = made[1] if made is not None and known else self._statement(measured)
            held = guard(measured, self._tables, self._engine.dialect)
            found = self._engine.fetch(statement, guard=held) if held else self._engine.fetch(statement)
            return reading(found, wanted or measured)
        except EngineFailed as known:
            refusal = type(known)(*known.args)
        except KeyboardInterrupt:
            refusal = Cancelled("The read was interrupted; it was paid for before it began, and stays paid.")
        except Exception:
            refusal = EngineFailed("The engine could not finish the read; the price stays paid.")
        raise refusal


def _can_be_written(groups: tuple[tuple[Any, ...], ...]) -> bool:
    texts = [value for row in groups for value in row if isinstance(value, str)]
    return all(len(text) <= _LONGEST and text.isprintable() for text in texts)


def _closed(measured: Measured, over: tuple[tuple[Any, ...], ...]) -> Measured:
    """A question about groups that are public now."""
    keys = tuple(
        replace(key, values=tuple(dict.fromkeys(row[i] for row in over)), found=True)
        for i, key in enumerate(measured.keys)
    )
    return replace(measured, keys=keys, combinations=over)
