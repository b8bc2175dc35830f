"""Rows for a fit: what a text or a selection of rows reads, what is public of it, and the read itself.

```python
wanted = rows_wanted(session, "SELECT age, sex FROM people WHERE age >= 18")
taken = wanted.taking({"age": Scaled(18, 90, 2**14), "sex": Coded(["F", "M"])})
taken.check()                                          # before the debit, whose `reads` has taken.fingerprint
taken.read(right).columns                              # integers, and where they are missing
```
"""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.numeric.exact import as_integer
from sfumato.plan.builder import Selection
from sfumato.plan.expressions.facts import Facts, domain_of, facts_of, resolve
from sfumato.plan.expressions.names import nearest
from sfumato.plan.expressions.ranges import days_of
from sfumato.plan.expressions.size import check_sizes
from sfumato.plan.expressions.tree import Expression, call, literal
from sfumato.plan.prices.recipe import rows_question
from sfumato.plan.questions.nodes import Measured, Measurement
from sfumato.plan.questions.relations import Rows
from sfumato.session.vault import rows_fingerprint
from sfumato.sql.asking_rows import ask_rows
from sfumato.sql.text.parameters import Values
from sfumato.sql.write.rows import AS_IT_IS

if TYPE_CHECKING:
    from sfumato.ledger import Right
    from sfumato.session.reading import RowsRead
    from sfumato.session.session import Session

__all__ = ["Coded", "Plain", "RowsTaken", "RowsWanted", "Scaled", "WantedColumn", "days", "rows_wanted"]

_FIRST = datetime.date(1970, 1, 1)
_MOST_VALUES = 1000
_MOST_STEPS = 2**31
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "text": ((str,), "texts, such as ['a', 'b']"),
    "integer": ((int,), "whole numbers, such as [1, 2]"),
    "float": ((int, float), "numbers, such as [0.5, 1]"),
    "boolean": ((bool,), "[False, True]"),
    "date": ((datetime.date,), "days, such as ['2024-01-31']"),
}


@dataclass(frozen=True, slots=True)
class Scaled:
    """A number as one of 0, 1, …, steps: clamped to its bounds, scaled and rounded to the nearest.

    In doubles: ⌊(x − lower)·rate + ½⌋ with rate = steps/(upper − lower), x held within the bounds.

    Attributes:
        lower: What becomes 0, and all below it.
        upper: What becomes `steps`, and all above it.
        steps: How many steps there are between them.
    """

    lower: float
    upper: float
    steps: int


@dataclass(frozen=True, slots=True)
class Coded:
    """A value as its place among public ones, from 0; missing if it is none of them."""

    values: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Plain:
    """A number as it is, as a double without bounds; NaN is missing."""


Taking: TypeAlias = Scaled | Coded | Plain
"""As what numbers a column is read."""


@dataclass(frozen=True, slots=True)
class WantedColumn:
    """A column of the rows that are wanted, with what is public of it.

    Attributes:
        name: What the text calls it.
        kind: Whether it is a number or a category, as it is declared: days count as numbers.
        lower: Nothing lies below, by the declarations; None: nothing is declared. Of a date the days since
            1970-01-01.
        upper: Nothing lies above.
        values: All its values, where they are declared; None: they are not.
        is_date: Whether its numbers are days.
    """

    name: str
    kind: Literal["number", "category"]
    lower: Fraction | None
    upper: Fraction | None
    values: tuple[Any, ...] | None
    is_date: bool = False


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
            function of its own row and of what is public: an integer between 0 and its last step or code, or
            a number as it is. No row raises: what is NULL, NaN or not listed is missing.
        """
        return self._session.vault.rows(self.measured, right, self.complete)


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
        meaning = self._meanings[name]
        kind = facts_of(meaning, self._rows.columns).kind
        if isinstance(way, Plain):
            argument = resolve(_number(meaning, kind, name), self._rows.columns)
            return Measurement("sum", argument, 0, 0, whole=False, marks=(AS_IT_IS,))
        if isinstance(way, Coded):
            argument, most = _place(meaning, kind, way, name), len(way.values) - 1
        else:
            argument, most = _step(meaning, kind, way, name)
        return Measurement("sum", resolve(argument, self._rows.columns), 0, most, whole=True)


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
    if declared.kind in ("text", "boolean") or declared.values is not None:
        return WantedColumn(name, "category", None, None, domain_of(known))
    return WantedColumn(name, "number", known.lower, known.upper, None, is_date=declared.kind == "date")


def _number(meaning: Expression, kind: str | None, name: str) -> Expression:
    """What can be computed with: days for dates, 0 and 1 for truth values."""
    if kind == "text":
        raise QueryRefused(
            f"{name[:60]} is text, and cannot be read as numbers.",
            "List its categories, or cast it in the query: CAST(x AS DOUBLE) AS x.",
        )
    if kind == "date":
        return call("days_between", meaning, literal(_FIRST))
    return _among(meaning, (False, True)) if kind == "boolean" else meaning


def _step(meaning: Expression, kind: str | None, way: Scaled, name: str) -> tuple[Expression, int]:
    """A number in steps from its lower bound, half a step too high, and how many steps there are."""
    number = _number(meaning, kind, name)
    lower, upper = float(way.lower), float(way.upper)
    steps = as_integer(way.steps, "steps")
    if not (math.isfinite(upper - lower) and lower <= upper) or not 1 <= steps <= _MOST_STEPS:
        raise InvalidParameter(f"The bounds of {name[:60]!r} must be finite numbers, the lower one first.")
    above = call("subtract", number, literal(lower))
    if lower == upper:
        return above, 0  # infinity times no step would be missing
    return call("add", call("multiply", above, literal(steps / (upper - lower))), literal(0.5)), steps


def _place(meaning: Expression, kind: str | None, way: Coded, name: str) -> Expression:
    """The place of a value among public ones; NULL where it is none of them."""
    if not 1 <= len(way.values) <= _MOST_VALUES:
        raise QueryRefused(
            f"{name[:60]} has {len(way.values):,} categories, and a fit on a session reads 1 to "
            f"{_MOST_VALUES:,} of a column.",
            "List the common ones: whatever is not listed counts as none of them.",
        )
    values = [_constant(value, kind, name) for value in way.values]
    if len(set(values)) < len(values):
        raise InvalidParameter(f"The categories of {name[:60]!r} must differ from each other.")
    return _among(meaning, values)


def _among(meaning: Expression, values: Sequence[Any]) -> Expression:
    pairs = ((call("equal", meaning, literal(value)), literal(at)) for at, value in enumerate(values))
    return call("case", *(part for pair in pairs for part in pair), literal(None))


def _constant(value: Any, kind: str | None, name: str) -> Any:
    """A category in the type of its column.

    Raises:
        InvalidParameter: if no value of the column can be it.
    """
    types, such = _KINDS[kind or "text"]
    plain = value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value
    if kind == "boolean" and type(plain) in (int, float) and plain in (0, 1):
        plain = bool(plain)
    if kind == "integer" and type(plain) is float and plain.is_integer():
        plain = int(plain)
    if kind == "date":
        plain = _day(plain)
    fits = isinstance(plain, types) and isinstance(plain, bool) == (kind == "boolean")
    if not fits or (isinstance(plain, float) and not math.isfinite(plain)):
        raise InvalidParameter(f"The categories of {name[:60]!r} must be {such}.")
    return plain


def days(bound: Any) -> Any:
    """A bound of a date as days since 1970-01-01; anything else as it is."""
    day = _day(bound)
    return days_of(day) if isinstance(day, datetime.date) else bound


def _day(value: Any) -> Any:
    """The day that a text or a time says; anything else as it is."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return datetime.date.fromisoformat(value)
    return value.date() if isinstance(value, datetime.datetime) else value
