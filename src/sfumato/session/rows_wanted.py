"""Rows for a fit: what a text or a selection of rows reads, what is public of it, and the read itself.

```python
wanted = rows_wanted(session, "SELECT age, sex FROM people WHERE age >= 18")
taken = wanted.taking({"age": Scaled(18, 90, 2**14), "sex": Coded(["F", "M"])})
taken.check()                                          # before the debit, whose `reads` has taken.fingerprint
taken.read(right).columns                              # integers, and where they are missing
```
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.builder import Selection
from sfumato.plan.expressions.facts import Facts, domain_of, facts_of
from sfumato.plan.expressions.names import nearest
from sfumato.plan.expressions.size import check_sizes
from sfumato.plan.expressions.tree import Expression
from sfumato.plan.prices.recipe import rows_question
from sfumato.plan.questions.nodes import Measured, Measurement
from sfumato.plan.questions.relations import Rows
from sfumato.plan.questions.sensitivity import WEIGHT
from sfumato.schema import Kind
from sfumato.session.row_ways import LONGEST, Coded, Plain, Scaled, Taking, Texts, days, measurement
from sfumato.session.vault import moments_fingerprint, rows_fingerprint
from sfumato.sql.asking_rows import ask_rows
from sfumato.sql.text.parameters import Values
from sfumato.sql.write.moments import Term

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sfumato.ledger import Right
    from sfumato.session.reading import RowsRead
    from sfumato.session.session import Session

__all__ = [
    "LONGEST",
    "Coded",
    "MomentsTaken",
    "Plain",
    "RowsTaken",
    "RowsWanted",
    "Scaled",
    "Taking",
    "Term",
    "Texts",
    "WantedColumn",
    "days",
    "rows_wanted",
]


@dataclass(frozen=True, slots=True)
class WantedColumn:
    """A column of the rows that are wanted, with what is public of it.

    Attributes:
        name: What the text calls it.
        kind: Whether it is a number or a category, as it is declared: days count as numbers.
        lower: Nothing lies below, by the declarations; None: nothing is declared. Of a date the days since
            1970-01-01, of a timestamp the seconds since then, of a time of day those since midnight.
        upper: Nothing lies above.
        values: All its values, where they are declared; None: they are not.
        is_date: Whether its numbers are days.
        type: As what it is declared; None: as NULL alone.
        nullable: Whether it is declared to be missing in some rows.
    """

    name: str
    kind: Literal["number", "category"]
    lower: Fraction | None
    upper: Fraction | None
    values: tuple[Any, ...] | None
    is_date: bool = False
    type: Kind | None = None
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class RowsTaken:
    """Rows as integers: what is paid for, and how it is read.

    Attributes:
        measured: The question whose clamped values are read row by row.
        complete: The places of the columns without which a row is left out.
    """

    measured: Measured
    complete: tuple[int, ...]
    _session: Session

    @property
    def fingerprint(self) -> str:
        """What is read, as `reads` of a debit names it: table and version, rows, columns, bounds and units.

        Two of them agree only if their rows are the same function of the same data.
        """
        return rows_fingerprint(self.measured, self.complete)

    def check(self) -> None:
        """Make the statement without running it: what cannot be read is refused before it is paid.

        Raises:
            QueryRefused: if something has no form in the engine's language, or is too large.
        """
        arguments = [measurement.argument for measurement in self.measured.measurements]
        asked = [self.measured.predicate, *arguments]
        check_sizes(expression for expression in asked if expression is not None)
        self._session.vault.check_rows(self.measured, self.complete)

    def read(self, right: Right) -> RowsRead:
        """The rows, for a right to `fingerprint`, once; see `Vault.rows`.

        Privacy:
            Claim: neighbours differ in the rows of one unit, at most `max_rows` of them. Each column is a
            function of its own row and of what is public: an integer between 0 and its last step or code, a
            number as it is, or a text. No row raises: what is NULL, NaN or not listed is missing.
        """
        return self._session.vault.rows(self.measured, right, self.complete)

    def moments(self, terms: Sequence[Term]) -> MomentsTaken:
        """Sums of products of these coordinates of each row, computed in the engine: no row is read."""
        return MomentsTaken(self, tuple(terms))


@dataclass(frozen=True, slots=True)
class MomentsTaken:
    """The second moments of coordinates of rows: what is paid for, and how it is read.

    Attributes:
        taken: The rows.
        terms: The coordinates, over the places of their columns.
    """

    taken: RowsTaken
    terms: tuple[Term, ...]

    @property
    def fingerprint(self) -> str:
        """What is read, as `reads` of a debit names it."""
        return moments_fingerprint(self.taken.measured, self.terms, self.taken.complete)

    @property
    def weight(self) -> int:
        """What a row of full weight counts as: 1, or 2**30 where units have several rows."""
        return 1 if self.taken.measured.unit.column is None else WEIGHT

    @property
    def most_rows(self) -> int:
        """How many rows of full weight a unit counts as, at most."""
        unit = self.taken.measured.unit
        return 1 if unit.column is None else unit.max_rows

    def check(self) -> None:
        """Make the statement without running it.

        Raises:
            QueryRefused: if something has no form in the engine's language, or is too large.
            InvalidParameter: for coordinates beyond 2**14.
        """
        self.taken.check()
        self.taken._session.vault.check_moments(self.taken.measured, self.terms, self.taken.complete)

    def read(self, right: Right) -> NDArray[Any]:
        """The sums, row by row of the upper triangle, for a right to `fingerprint`, once.

        Privacy:
            Claim: adding or removing a unit moves the sums by those of at most `most_rows` rows, each of
            them `weight` times the products of its own coordinates: see `sql.write.moments.lower_moments`.
        """
        taken = self.taken
        return taken._session.vault.moments(taken.measured, self.terms, right, taken.complete)


@dataclass(frozen=True, slots=True)
class RowsWanted:
    """The rows that a fit asks for, and all that is public of them.

    Attributes:
        table: The first private table that is read.
        dataset: Whose budget pays.
        columns: The columns in the order of the text, without those that say whose a row is.
        max_rows: How many rows of one unit are read, at most.
        has_units: Whether units can have several rows; if not, each row is one.
        exchange: Whether neighbours have one unit exchanged: then what a unit can move counts twice.
    """

    table: str
    dataset: str
    columns: tuple[WantedColumn, ...]
    max_rows: int
    has_units: bool
    exchange: bool
    _rows: Rows
    _question: Measured
    _meanings: Mapping[str, Expression]
    _session: Session

    def column(self, name: str) -> WantedColumn:
        """The column of that name.

        Raises:
            QueryRefused: if there is none, with the nearest.
        """
        named = next((column for column in self.columns if column.name == name), None)
        if named is None:
            names = [column.name for column in self.columns]
            raise QueryRefused(
                f"The rows have no column {str(name)[:60]!r}.", nearest(name, names, "Columns")
            )
        return named

    def taking(self, ways: Mapping[str, Taking], complete: Collection[str] = ()) -> RowsTaken:
        """These columns as integers, in this order.

        Args:
            ways: By column, between which bounds its numbers are held, or which categories it has. They may
                differ from the declared ones.
            complete: Columns without which a row is left out, each by itself, before the rows of a unit are
                chosen.

        Raises:
            QueryRefused: if a column does not exist or cannot be read so.
            InvalidParameter: if bounds are not finite, or no categories are given.
        """
        measurements = tuple(self._measurement(name, way) for name, way in ways.items())
        if not measurements:
            raise InvalidParameter("Name at least one column to read.")
        needed = tuple(place for place, name in enumerate(ways) if name in complete)
        return RowsTaken(replace(self._question, measurements=measurements), needed, self._session)

    def _measurement(self, name: str, way: Taking) -> Measurement:
        self.column(name)
        return measurement(name, self._meanings[name], way, self._rows.columns)


def rows_wanted(session: Session, asked: str | Selection[Any], parameters: Values = None) -> RowsWanted:
    """The rows that a text, the name of a table or `session.table(…).filter(…)` asks for; nothing is read.

    A row may be anything that a subquery in FROM may give: columns and expressions of tables joined on the
    privacy unit or with public ones, one row for each unit (GROUP BY the unit), windows over a unit's rows.

    Args:
        session: Whose tables are read.
        asked: A SELECT of columns, without LIMIT and ORDER BY.
        parameters: Values for `?`, `$1`, `$name`, `:name` and `@name` of a text.

    Raises:
        QueryRefused: with the reason and what would work.
    """
    if isinstance(asked, Selection):
        rows, predicate, columns = asked.chosen_rows()
    elif isinstance(asked, str):
        found = ask_rows(asked, session.tables, parameters)
        rows, predicate, columns = found.rows, found.predicate, found.columns
    else:
        raise InvalidParameter(
            'Rows are asked for by text, "SELECT age, income FROM people", or as s.table("people").filter(…).'
        )
    question = rows_question(rows, predicate)
    known, unit = rows.where(predicate), question.unit
    return RowsWanted(
        table=rows.name,
        dataset=session.dataset_with(session.tables[rows.name]).name,
        columns=tuple(
            _column(name, facts_of(meaning, rows.columns), facts_of(meaning, known))
            for name, meaning in columns
        ),
        max_rows=1 if unit.column is None else unit.max_rows,
        has_units=unit.column is not None,
        exchange=unit.adjacency == "exchange",
        _rows=rows,
        _question=question,
        _meanings=dict(columns),
        _session=session,
    )


def _column(name: str, declared: Facts, known: Facts) -> WantedColumn:
    """What is public of a column: its kind as it is declared, its range in the rows that are wanted."""
    kind, nullable = declared.kind, known.nullable
    if kind in ("text", "boolean") or declared.values is not None:
        return WantedColumn(name, "category", None, None, domain_of(known), type=kind, nullable=nullable)
    return WantedColumn(
        name,
        "number",
        known.lower,
        known.upper,
        None,
        is_date=kind == "date",
        type=kind,
        nullable=nullable,
    )
