"""The vault: the one place that reads private rows, and only for a right that a debit gave."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.engines.base import UNIT_COLUMN
from sfumato.engines.parts import InParts
from sfumato.errors import AccessDenied, Cancelled, EngineFailed
from sfumato.ledger import Right
from sfumato.plan.expressions.facts import facts_of
from sfumato.plan.prices.bundle import fingerprint_of
from sfumato.plan.questions.relations import source_facts
from sfumato.plan.questions.sources import tables_of
from sfumato.schema import PrivateTable, owners
from sfumato.session.reading import Reading, RowsRead, moments_read, reading, reading_of_some, rows_read
from sfumato.session.unit_names import naming
from sfumato.sql.write.lower import lower
from sfumato.sql.write.moments import Term, lower_moments
from sfumato.sql.write.ranks import guard
from sfumato.sql.write.rows import lower_rows
from sfumato.sql.write.sources import id_types

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from sfumato.engines.base import Engine
    from sfumato.engines.dialect import Dialect
    from sfumato.engines.parts import Part, Work
    from sfumato.plan.questions.nodes import Measured
    from sfumato.plan.questions.relations import Rows
    from sfumato.plan.questions.spread import Spread
    from sfumato.schema import Kind, Windows
    from sfumato.session.reading import Admit

__all__ = ["Vault", "moments_fingerprint", "rows_fingerprint", "units_fingerprint"]

T = TypeVar("T")

_LONGEST = 1000
_NO_RECEIPT = "A receipt opens nothing: the right to read is given by the debit itself."


class Vault:
    """Holds the engine and the tables; a right opens it once, a receipt never.

    Privacy:
        Claim: every read of private rows on a release path is preceded by a durable debit for exactly the
        question that is read, and happens at most once. Where the debit was paid in windows of time, by its
        receipt, every statement that is run for it reads rows of these windows alone, whatever the question
        says (`sql.write.sources.in_paid_windows`). Condition: `read` is the only caller of the engine, and it
        uses up the right first (see `Right`).
    """

    def __init__(
        self,
        engine: Engine,
        tables: Mapping[str, Any],
        salts: Mapping[str, int] | None = None,
        digests: Mapping[str, str] | None = None,
    ) -> None:
        """Hold them, and what chooses rows and groups of each table: the name of a digest, and its key."""
        self._engine, self._tables = engine, tables
        self._salts = {} if salts is None else salts
        self._digests = {} if digests is None else digests
        self._made: dict[int, tuple[Measured, Spread | None, Windows | None, Any]] = {}

    def showing(self, tables: Mapping[str, Any]) -> Vault:
        """The same engine and rows, where more of their columns is declared."""
        return Vault(self._engine, tables, self._salts, self._digests)

    def check(
        self,
        questions: Sequence[Measured],
        rows: Rows | None = None,
        *,
        spread: Spread | None = None,
        windows: Windows | None = None,
    ) -> None:
        """Make the statements without running them: what cannot be asked is refused before it is paid.

        Args:
            questions: What would be read.
            rows: What is known about the rows of those that are about just these.
            spread: How units weigh where the groups of the first are found by weight.
            windows: Which windows would be paid for, where the budget is for each.

        Raises:
            QueryRefused: if something has no form in the engine's language.
        """
        weighed = [None if place else spread for place in range(len(questions))]
        self._made = {
            place: (
                question,
                weighed[place],
                windows,
                self._statement(question, rows, weighed[place], windows),
            )
            for place, question in enumerate(questions)
        }

    def read(
        self,
        questions: Sequence[Measured],
        right: Right,
        *,
        place: int = 0,
        over: Sequence[tuple[Any, ...]] | None = None,
        spread: Spread | None = None,
    ) -> Reading:
        """The exact integers of one of the questions that a debit paid for.

        Args:
            questions: All that was paid for together.
            right: What the debit gave.
            place: Which of them to read; each can be read once.
            over: The groups that were selected, for a question whose groups are not public.
            spread: How units weigh in groups that are found by weight, in two rounds: what one debit pays for
                is read once in each. The second reads the weights alone.

        Raises:
            AccessDenied: for a right to other questions, or one that was used for this before.
            EngineFailed: if the engine cannot finish; the price stays paid.
        """
        if not isinstance(right, Right):
            raise AccessDenied(_NO_RECEIPT)
        if not 0 <= place < len(questions):
            raise AccessDenied("There is no such question among those that were paid for.")
        again = spread is not None and spread.round == 2
        part: Hashable = ("second round", place) if again else place
        right.use(fingerprint_of(questions), part)
        measured, windows = questions[place], right.receipt.windows
        if spread is not None and spread.without is not None:
            # What cannot be written stays where it is, and keeps its weight.
            spread = replace(spread, without=tuple(filter(_is_constant, spread.without)))
            return self._read(replace(measured, measurements=()), place, spread=spread, windows=windows)
        if over is None:
            return self._read(measured, place, spread=spread, windows=windows)
        # Keys that were found in the data are constants of the statement where they can be written; where one
        # cannot, all groups are read and those that were not selected are dropped.
        closed = _closed(measured, over)
        return self._read(closed if _can_be_written(over) else measured, place, closed, windows=windows)

    def of_some_units(self, measured: Measured, right: Right, admit: Admit) -> Reading:
        """The exact integers of a question over some of its units: one statement, a line for each of them.

        Args:
            measured: The question.
            right: One to `units_fingerprint` of it; a right to its sums opens no lines of units.
            admit: Which units count, of those that have lines.

        Raises:
            AccessDenied: for a right to something else, or one that was used for this before.
            EngineFailed: if the engine cannot finish; the price stays paid.
        """
        if not isinstance(right, Right):
            raise AccessDenied(_NO_RECEIPT)
        right.use(units_fingerprint(measured))
        windows = right.receipt.windows

        def understood(answer: pa.Table) -> Reading:
            name = self._naming(measured)
            return reading_of_some(
                answer, measured, self.kinds(measured), lambda ids: admit([name(each) for each in ids])
            )

        return self._guarded(measured, lambda: self._units_statement(measured, windows), understood)

    def _naming(self, measured: Measured) -> Callable[[str], str]:
        """How ids are called in each state of the table, by the type that they have now."""
        owner = owners(self._tables[measured.table], self._tables)[-1]
        types = self._engine.fetch(id_types([(owner.relation, UNIT_COLUMN)], self._engine.dialect))
        return naming(str(types.column(0)[0].as_py()), in_windows=owner.unit.window is not None)

    def check_units(self, measured: Measured, windows: Windows | None = None) -> None:
        """Make the statement that reads unit by unit without running it: what cannot be is refused unpaid.

        Raises:
            QueryRefused: if something has no form in the engine's language.
        """
        self._units_statement(measured, windows)

    def in_parts(
        self, questions: Sequence[Measured], right: Right, work: Work, schema: pa.Schema, folder: Path
    ) -> tuple[Part, ...]:
        """The only question that a debit paid for, worked on where its groups are: see `engines.parts`.

        Args:
            questions: What was paid for: one question, whose groups are not public.
            right: What the debit gave.
            work: Makes of some groups what may be released.
            schema: Of that.
            folder: Where it is written.

        Raises:
            AccessDenied: for a right to another question, or one that was used before.
            EngineFailed: if the engine cannot finish; the price stays paid.
        """
        if not isinstance(right, Right):
            raise AccessDenied(_NO_RECEIPT)
        engine = self._engine
        if not isinstance(engine, InParts):
            raise EngineFailed("The engine cannot work on parts of a result where they are.")
        right.use(fingerprint_of(questions), 0)
        (measured,) = questions
        order = [f"k{place}" for place in range(len(measured.keys))]

        def parts() -> tuple[Part, ...]:
            held = guard(measured, self._tables, engine.dialect)
            more = {"guard": held} if held else {}
            statement = self._statement(measured, windows=right.receipt.windows)
            return engine.in_parts(statement, work, schema, folder, order=order, **more)

        return self._said(parts)

    def kinds(self, measured: Measured) -> tuple[Kind | None, ...]:
        """What the keys of a question hold."""
        columns = source_facts(measured.rows, self._tables) if measured.keys else {}
        return tuple(facts_of(key.expression, columns).kind for key in measured.keys)

    @property
    def takes_parts(self) -> bool:
        """Whether the engine can work on parts of a result where they are."""
        return isinstance(self._engine, InParts)

    def rows(self, measured: Measured, right: Right, complete: Sequence[int] = ()) -> RowsRead:
        """Single rows for a fit: the clamped integers that the question would sum up, few rows of each unit.

        What the fit makes of them is for its own steps to pay (`Right.steps`).

        Args:
            measured: A question of sums and counts of values, without groups.
            right: One to `rows_fingerprint` of the question; a right to its sums opens no rows.
            complete: The measurements without which a row is left out, by their places.

        Privacy:
            Claim: neighbours differ in the rows of one unit, at most max_rows of them, and in nothing else
            but their order, which says nothing (see `lower_rows`). The same conditions as for `read`.

        Raises:
            AccessDenied: for a right to something else, or one that was used for this before.
            EngineFailed: if the engine cannot finish; the price stays paid.
        """
        if not isinstance(right, Right):
            raise AccessDenied(_NO_RECEIPT)
        right.use(rows_fingerprint(measured, complete))
        windows = right.receipt.windows
        return self._guarded(measured, lambda: self._rows_statement(measured, complete, windows), rows_read)

    def moments(
        self, measured: Measured, terms: Sequence[Term], right: Right, complete: Sequence[int] = ()
    ) -> NDArray[Any]:
        """Σ a·b over all rows for each pair of coordinates, row by row of the upper triangle: exact integers.

        Where units have several rows, a row weighs a part of 2**30, as `lower_moments` says.

        Args:
            measured: A question of sums of values, without groups.
            terms: The coordinates.
            right: One to `moments_fingerprint` of the same.
            complete: The measurements without which a row is left out, by their places.

        Raises:
            AccessDenied: for a right to something else, or one that was used for this before.
            EngineFailed: if the engine cannot finish; the price stays paid.
        """
        if not isinstance(right, Right):
            raise AccessDenied(_NO_RECEIPT)
        right.use(moments_fingerprint(measured, terms, complete))
        tables = self._held_to(measured, right.receipt.windows)
        return self._guarded(
            measured,
            lambda: lower_moments(measured, terms, tables, self._dialect(measured), complete=complete),
            lambda answer: moments_read(answer, terms),
        )

    def check_rows(self, measured: Measured, complete: Sequence[int] = ()) -> None:
        """Make the statement that reads rows without running it: what cannot be read is refused unpaid.

        Raises:
            QueryRefused: if something has no form in the engine's language.
        """
        self._rows_statement(measured, complete)

    def check_moments(self, measured: Measured, terms: Sequence[Term], complete: Sequence[int] = ()) -> None:
        """The same for the statement of second moments.

        Raises:
            QueryRefused: if something has no form in the engine's language.
            InvalidParameter: for coordinates that are too large to be multiplied.
        """
        lower_moments(measured, terms, self._tables, self._dialect(measured), complete=complete)

    def _rows_statement(
        self, measured: Measured, complete: Sequence[int], windows: Windows | None = None
    ) -> Any:
        salt, dialect = self._salts.get(measured.table, 0), self._dialect(measured)
        return lower_rows(measured, self._held_to(measured, windows), dialect, salt=salt, complete=complete)

    def _held_to(self, measured: Measured, windows: Windows | None) -> Mapping[str, Any]:
        """The tables, of which those that a question reads show the rows of these windows; None: all rows."""
        if windows is None:
            return self._tables
        read = {name: self._tables[name] for name in tables_of(measured.rows)}
        held = {
            name: table.held_to(windows) for name, table in read.items() if isinstance(table, PrivateTable)
        }
        return {**self._tables, **held}

    def _statement(
        self,
        measured: Measured,
        rows: Rows | None = None,
        spread: Spread | None = None,
        windows: Windows | None = None,
    ) -> Any:
        salt = self._salts.get(measured.table, 0)
        plain = windows is None and rows is not None and rows.source == measured.rows
        known = rows if rows is not None and plain else self._held_to(measured, windows)
        return lower(measured, known, dialect=self._dialect(measured), salt=salt, spread=spread)

    def _units_statement(self, measured: Measured, windows: Windows | None) -> Any:
        salt, tables = self._salts.get(measured.table, 0), self._held_to(measured, windows)
        return lower(measured, tables, dialect=self._dialect(measured), salt=salt, by_unit=True)

    def _dialect(self, measured: Measured) -> Dialect:
        """The engine's, in which nothing chooses but what is on record."""
        dialect = self._engine.dialect
        return dialect.choosing_by(self._digests.get(measured.table, dialect.digest.name))

    def _fetch(self, measured: Measured) -> tuple[list[int], ...]:
        return tuple(column.tolist() for column in self._read(measured, 0).columns)

    def _read(
        self,
        measured: Measured,
        place: int,
        wanted: Measured | None = None,
        *,
        spread: Spread | None = None,
        windows: Windows | None = None,
    ) -> Reading:
        """The answer to one question, put in the order of its groups, or of another's."""
        checked = self._made.get(place)  # what `check` made, if this is what it was made for
        known = checked is not None and checked[0] is measured and checked[1:3] == (spread, windows)
        return self._guarded(
            measured,
            lambda: (
                checked[3]
                if checked is not None and known
                else self._statement(measured, spread=spread, windows=windows)
            ),
            lambda answer: reading(answer, wanted or measured, self.kinds(measured)),
        )

    def _guarded(
        self, measured: Measured, statement: Callable[[], Any], understood: Callable[[pa.Table], T]
    ) -> T:
        """What a statement gives, understood; or a refusal that says nothing of the data."""

        def read() -> T:
            asked, held = statement(), guard(measured, self._tables, self._engine.dialect)
            # The answer has no name here: who understands it may give it back bit by bit.
            return understood(self._engine.fetch(asked, guard=held) if held else self._engine.fetch(asked))

        return self._said(read)

    def _said(self, read: Callable[[], T]) -> T:
        """What is read; or a refusal that says nothing of the data."""
        # Whatever an engine raises or returns, nothing of it may travel in a message or in the chain of an
        # exception: the refusal is made here and raised once the handlers are left.
        try:
            return read()
        except EngineFailed as failed:
            refusal = type(failed)(*failed.args)
        except KeyboardInterrupt:
            refusal = Cancelled("The read was interrupted; it was paid for before it began, and stays paid.")
        except Exception:
            refusal = EngineFailed("The engine could not finish the read; the price stays paid.")
        raise refusal


def rows_fingerprint(measured: Measured, complete: Sequence[int] = ()) -> str:
    """What the rows of a question are paid for as, which is not what its sums are."""
    with_all = f" with all of {sorted(complete)}" if complete else ""
    return hashlib.sha256(f"rows of {measured.fingerprint}{with_all}".encode()).hexdigest()


def units_fingerprint(measured: Measured) -> str:
    """What a question is paid for as where it is read unit by unit."""
    return hashlib.sha256(f"units of {measured.fingerprint}".encode()).hexdigest()


def moments_fingerprint(measured: Measured, terms: Sequence[Term], complete: Sequence[int] = ()) -> str:
    """What the second moments of a question's coordinates are paid for as."""
    facts = f"{measured.fingerprint} with all of {sorted(complete)} as {[tuple(term) for term in terms]}"
    return hashlib.sha256(f"moments of {facts}".encode()).hexdigest()


def _can_be_written(groups: Sequence[tuple[Any, ...]]) -> bool:
    texts = [value for row in groups for value in row if isinstance(value, str)]
    return all(len(text) <= _LONGEST and text.isprintable() for text in texts)


def _is_constant(group: tuple[Any, ...]) -> bool:
    """Whether a group can be named in a statement."""
    return _can_be_written((group,)) and all(
        math.isfinite(value) for value in group if isinstance(value, float)
    )


def _closed(measured: Measured, over: Sequence[tuple[Any, ...]]) -> Measured:
    """A question about groups that are public now."""
    keys = tuple(
        replace(key, values=tuple(dict.fromkeys(row[i] for row in over)), found=True)
        for i, key in enumerate(measured.keys)
    )
    return replace(measured, keys=keys, combinations=over)
