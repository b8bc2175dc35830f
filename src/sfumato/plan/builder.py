"""Questions written in Python: the same plans as SQL gives, from columns, aggregates and keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Generic, Literal, TypeVar

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.assemble import Assembly, check_groups, settled
from sfumato.plan.bins import Bins
from sfumato.plan.expressions.deduce import domain_of, facts_of
from sfumato.plan.expressions.names import NotAList, nearest, no_column, no_method
from sfumato.plan.expressions.normal import conjunction
from sfumato.plan.expressions.tree import Call, Column, Expression, columns_of, literal, only_column
from sfumato.plan.expressions.tree import Literal as Constant
from sfumato.plan.habits import ROWS, TABLE_HABITS
from sfumato.plan.outputs import Outputs, first_of
from sfumato.plan.questions.aggregates import functions
from sfumato.plan.questions.aggregates.count import count
from sfumato.plan.questions.existing import in_rows
from sfumato.plan.questions.nodes import AggregateCall, OrderItem, Output, Report
from sfumato.plan.questions.relations import Rows, as_rows, substituted
from sfumato.plan.questions.terms import Agg, Col, col
from sfumato.plan.views import Join, TableView, View
from sfumato.schema import Keys, PrivateTable

__all__ = ["FIGURES", "Agg", "Col", "Selection", "col"]

Q = TypeVar("Q")


def __getattr__(name: str) -> Callable[..., Agg]:
    """The aggregates: each is written where what it measures is."""
    if name not in functions():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return functions()[name]


@dataclass(frozen=True, slots=True, repr=False)
class Selection(NotAList, Generic[Q]):
    """Rows of one table on their way to an aggregate: `s.table("visits").filter(…).group_by(…).agg(…)`.

    Attributes:
        table: The private table.
        make: What turns a finished plan into a query.
        predicates: What rows must satisfy, over the columns of the source.
        groupings: What they are grouped by, under which names.
        keys: The public values of some of them, where the question lists them.
        defined: What `with_columns` calls its columns, with what they mean.
        joins: The tables that are joined.
        related: Gives the view of these joins; None: the table stands alone.
    """

    _not_a_list = ROWS
    table: PrivateTable
    make: Callable[[Report], Q]
    predicates: tuple[Expression, ...] = ()
    groupings: tuple[tuple[str, Expression], ...] = ()
    keys: tuple[Keys, ...] = ()
    defined: tuple[tuple[str, Expression], ...] = ()
    joins: tuple[Join, ...] = ()
    related: Callable[[tuple[Join, ...]], View] | None = None

    def __repr__(self) -> str:
        """Such as `<visits: columns age, city; grouped by city>`."""
        said = [f"columns {', '.join(self.table.schema)}"]
        if self.predicates:
            said.append("filtered")
        if self.groupings:
            said.append(f"grouped by {', '.join(name for name, _ in self.groupings)}")
        return f"<{self.table.name}: {'; '.join(said)}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in TABLE_HABITS:
            raise no_method(self, "A table", name, TABLE_HABITS)
        raise no_column(self, name, [*self.table.schema, *dict(self.defined)])

    def __getitem__(self, name: object) -> Any:
        if not isinstance(name, str):
            raise InvalidParameter('Conditions go into filter: .filter(sf.col("age") >= 18).')
        raise no_column(self, name, [*self.table.schema, *dict(self.defined)])

    def __len__(self) -> int:
        raise InvalidParameter(
            "How many rows there are is private. Ask for it: .agg(n=sf.count()).release(epsilon=0.5)."
        )

    # ── rows ──

    def filter(self, *predicates: Col) -> Selection[Q]:
        """Only the rows for which all of these hold."""
        if not all(isinstance(predicate, Col) for predicate in predicates):
            raise InvalidParameter('filter takes conditions such as col("age") >= 18.')
        meant = tuple(self._meant(predicate.expression) for predicate in predicates)
        return replace(self, predicates=self.predicates + meant)

    def with_columns(self, *columns: Col, **named: Col) -> Selection[Q]:
        """The same rows with further columns, or others in their place: `with_columns(old=col("age") >= 65)`.

        Raises:
            InvalidParameter: for an expression without a name.
        """
        added = [(_name(column, "with_columns"), self._meant(column.expression)) for column in columns]
        added += [
            (name, self._meant(_column(term, "with_columns").expression)) for name, term in named.items()
        ]
        return replace(self, defined=tuple((dict(self.defined) | dict(added)).items()))

    def join(
        self,
        other: str,
        on: str | Sequence[str] | None = None,
        *,
        left_on: str | Sequence[str] | None = None,
        right_on: str | Sequence[str] | None = None,
        how: Literal["inner", "left"] = "inner",
    ) -> Selection[Q]:
        """The rows with those of another table that have the same values in these columns, as SQL joins them.

        A public table is joined on its declared key, a private one on the privacy unit. Columns of the other
        table whose names are taken get `_right` after them.

        Args:
            other: The name of the other table.
            on: The columns that are equal, where both tables call them alike.
            left_on: What they are called here, where they are called differently.
            right_on: What they are called there.
            how: "inner", or "left": rows without a partner stay.

        Raises:
            QueryRefused: if people would meet others' rows, or rows could be multiplied.
        """
        if self.related is None or not isinstance(other, str):
            raise InvalidParameter(
                'join takes the name of a table of the session: .join("cities", on="city").'
            )
        if how not in ("inner", "left"):
            raise InvalidParameter(f"how must be inner or left, not {str(how)[:20]!r}.")
        here, there = (_names(on if side is None else side) for side in (left_on, right_on))
        if not here or len(here) != len(there):
            raise InvalidParameter(
                'Say which columns are equal: on="city", or left_on="city", right_on="name".'
            )
        for name in here:
            if name in dict(self.defined):
                raise QueryRefused(f"{name} was made by with_columns.", "Join on a column of a table.")
        joins = (*self.joins, Join(other, tuple(zip(here, there, strict=True)), how == "left"))
        view = self.related(joins)
        hidden = (set(view.names) - set(self._view.names)) & set(dict(self.defined))
        if hidden:
            raise QueryRefused(f"{other} has a column {min(hidden)}, too.", "Call with_columns after join.")
        return replace(self, joins=joins)

    def group_by(self, *columns: str | Keys | Col, **expressions: Col) -> Selection[Q]:
        """One result row for each public key: columns, `Keys` with their values, or expressions.

        An expression has the name that it is given or, without one, that of its only column.
        """
        added: list[tuple[str, Expression]] = []
        for column in columns:
            if isinstance(column, Col):
                added.append((_name(column, "group_by"), self._meant(column.expression)))
                continue
            names = column.columns if isinstance(column, Keys) else (column,)
            added += [(name, self._meant(Column(name))) for name in names]
        added += [
            (name, self._meant(_column(term, "group_by").expression)) for name, term in expressions.items()
        ]
        listed = tuple(column for column in columns if isinstance(column, Keys))
        return replace(self, groupings=self.groupings + tuple(added), keys=self.keys + listed)

    # ── questions ──

    def agg(self, *aliased: Agg, **aggregates: Agg) -> Q:
        """The question: one named aggregate for each column of the result.

        Raises:
            InvalidParameter: for an aggregate without a name.
        """
        named = {str(aggregate.name): aggregate for aggregate in aliased if isinstance(aggregate, Agg)}
        given = [*aliased, *aggregates.values()]
        if "None" in named or not given or not all(isinstance(aggregate, Agg) for aggregate in given):
            raise InvalidParameter('agg takes named aggregates: agg(n=sf.count(), spend=sf.mean("amount")).')
        return self._asked(lambda question: question.results(named | aggregates))

    def value_counts(self, *columns: str | Col, sort: bool = True, name: str = "count") -> Q:
        """How many rows have each value, the most first unless `sort` says otherwise."""
        return self.group_by(*columns)._asked(
            lambda question: question.results({name: count()}), order=name if sort else None
        )

    def crosstab(self, first: str | Col, second: str | Col, *, name: str = "count") -> Q:
        """How many rows have each pair of values, one row of the result for each."""
        return self.group_by(first, second).agg(**{name: count()})

    def histogram(self, column: str | Col, bins: int | Sequence[float] = 10, *, name: str = "count") -> Q:
        """How many rows are in each bin of a number, between its declared bounds or these edges.

        Values are held within the declared bounds, as everywhere else, and then count in the bin in which
        they lie: what lies in no bin counts nowhere. Whole numbers have bins of whole widths, so there may be
        fewer and the last one may be narrower; each is told by its first and its last number.

        Args:
            column: A column or expression.
            bins: How many of one width, or their edges in ascending order; the last one belongs to its bin.
            name: What the number of rows is called.

        Raises:
            QueryRefused: if it is no number, or has no declared bounds and no edges are given.
        """
        term = col(column) if isinstance(column, str) else _column(column, "histogram")
        called = _name(term, "histogram")
        rows, left = self._view.rows(self._condition(), [])
        value = settled(self._meant(term.expression), rows)
        made = Bins.of(
            called, value, facts_of(value, rows.where(left)), bins, Column(f"k{len(self.groupings)}")
        )
        place = (called, made.place)
        grouped = replace(self, groupings=(*self.groupings, place))

        def edges(question: Outputs) -> list[tuple[str, Expression]]:
            keys = question.keys[:-1]
            ends = [(f"{called}_from", made.start), (f"{called}_to", made.end)]
            return [*keys, *ends, *question.results({name: count()})[len(keys) + 1 :]]

        return grouped._asked(edges)

    def unique(self, *columns: str | Col) -> Q:
        """The values that enough units share, found in the data for a price; never the exact list.

        Raises:
            QueryRefused: if the values are declared, and so public already.
        """
        grouped = self.group_by(*columns)
        units = AggregateCall("count") if self.table.unit.is_row else AggregateCall("count_distinct")

        def found(question: Outputs) -> list[tuple[str, Expression]]:
            question.check_open()
            question.assembly.aggregate(units)
            return question.keys

        return grouped._asked(found, order_by_first=True)

    def describe(self, *columns: str) -> Q:
        """Count, mean, standard deviation, least, median and greatest value of each column, for one price.

        Without names, all numbers of the table that have declared bounds.

        Raises:
            QueryRefused: if there is none.
        """
        rows = as_rows(self.table)
        bounded = [
            name
            for name in self.table.schema
            if (known := rows.columns[name]).kind in ("integer", "float") and known.lower is not None
            if name not in self._view.units and known.values is None
        ]
        asked = columns or tuple(bounded)
        if not asked:
            raise QueryRefused(
                f"{self.table.name} has no numbers with declared bounds.", 'Name some: .describe("age").'
            )
        figures = {f"{name}_{word}": make(col(name)) for name in asked for word, make in FIGURES.items()}
        return self.agg(rows=count(), **figures)

    def chosen_rows(self) -> tuple[Rows, Expression | None, tuple[tuple[str, Expression], ...]]:
        """The rows themselves, for a fit: where they come from, what they satisfy, and what columns mean.

        Columns that say whose a row is are not among them.

        Raises:
            QueryRefused: if they are grouped.
        """
        if self.groupings:
            raise QueryRefused("A fit reads single rows, and these are grouped.", "Leave group_by out.")
        view = self._view
        base, _ = view.rows(None, [])
        names = {name: meant for name, meant in view.names.items() if name not in view.units}
        columns = [(name, settled(meant, base)) for name, meant in {**names, **dict(self.defined)}.items()]
        rows, left = view.rows(self._condition(), [])
        return rows, left, tuple(columns)

    # ── what rows do not have ──

    def sort(self, *columns: object, descending: object = False) -> Q:
        """Refused: rows are never shown, so they have no order. Sort the released groups."""
        del columns, descending
        raise _no_rows("sorted", '.sort("n", descending=True)')

    def head(self, n: int = 5) -> Q:
        """Refused: the first rows would show single rows. Take the first of the released groups."""
        raise _no_rows("shown", f".head({int(n)})")

    def limit(self, n: int = 5) -> Q:
        """Refused: a limit would show single rows. Take the first of the released groups."""
        raise _no_rows("shown", f".limit({int(n)})")

    # ── how a plan is made ──

    @property
    def _view(self) -> View:
        if not self.joins or self.related is None:
            return TableView(self.table)
        return self.related(self.joins)

    def _meant(self, expression: Expression) -> Expression:
        """An expression over names as one over the columns of the source.

        Raises:
            QueryRefused: for a name that means nothing, with the nearest that does.
        """
        view = self._view
        names = {**view.names, **dict(self.defined)}
        for name in columns_of(expression):
            if name not in names:
                if name in view.units:
                    raise QueryRefused(
                        f"{name} says whose the rows are and has no declared type.",
                        f"Count units by it: sf.count_distinct({name!r}).",
                    )
                raise QueryRefused(
                    f"There is no column {name[:60]!r}.", nearest(name, list(names), "Columns")
                )
        return substituted(expression, names)

    def _condition(self, listed: Sequence[Expression] = ()) -> Expression | None:
        """What rows must satisfy, as one condition over the columns of the source."""
        rows, _ = self._view.rows(None, [])
        asked = [settled(predicate, rows) for predicate in (*self.predicates, *listed)]
        for condition in asked:
            rows.where(condition)  # a condition that normalises to nothing must still be one
        return conjunction(asked) if asked else None

    def _asked(
        self,
        outputs: Callable[[Outputs], list[tuple[str, Expression]]],
        *,
        order: str | None = None,
        order_by_first: bool = False,
    ) -> Q:
        """The query with these columns; the greatest first, by one of them or by the first aggregate."""
        view = self._view
        base, _ = view.rows(None, [])
        for one in self.keys:
            check_groups(len(one.rows))
        listed = [
            settled(Call("in", (dict(self.groupings)[name], *_constants(one, place))), base)
            for one in self.keys
            for place, name in enumerate(one.columns)
        ]
        for condition in listed:
            _check_declared(condition, base)
        keys = [settled(expression, base) for _, expression in self.groupings]
        rows, left = view.rows(self._condition(listed), keys)
        question = Outputs(
            Assembly(rows, [] if left is None else [left], keys),
            tuple(name for name, _ in self.groupings),
            self._meant,
            view.units - set(dict(self.defined)),
        )
        columns = outputs(question)
        _check_names([name for name, _ in columns])
        combinations = self._combinations(question.assembly, len(keys))
        shown = tuple(Output(name, question.assembly.over_results(value)) for name, value in columns)
        by = Column("a0") if order_by_first else next((o.expression for o in shown if o.name == order), None)
        items = () if by is None else (OrderItem(by, descending=True),)
        plan = view.finished(question.assembly.plan(shown, order=items, combinations=combinations))
        plan.check()
        return self.make(plan.report)

    def _combinations(self, assembly: Assembly, count: int) -> tuple[tuple[Any, ...], ...] | None:
        """Only the combinations that `Keys.of` lists; None where all are meant."""
        names = [name for name, _ in self.groupings]
        own = [{value: value for value in assembly.values(f"k{i}")} for i in range(count)]
        parts: list[tuple[tuple[int, ...], list[tuple[Any, ...]]]] = []
        for one in self.keys:
            if len(one.rows) == math.prod(len(set(values)) for values in zip(*one.rows, strict=True)):
                continue  # every combination
            places = tuple(map(names.index, one.columns))
            known = [row for row in one.rows if all(v in own[at] for v, at in zip(row, places, strict=True))]
            parts.append(
                (places, [tuple(own[at][v] for v, at in zip(row, places, strict=True)) for row in known])
            )
        if not parts:
            return None
        taken = {place for places, _ in parts for place in places}
        parts += [((at,), [(value,) for value in own[at]]) for at in range(count) if at not in taken]
        check_groups(math.prod(len(rows) for _, rows in parts))
        return in_rows([[*values] for values in own], parts)


def _constants(keys: Keys, place: int) -> list[Constant]:
    """The values of one of their columns, each once."""
    return [*dict.fromkeys(literal(row[place]) for row in keys.rows)]


def _column(term: object, method: str) -> Col:
    if not isinstance(term, Col):
        raise InvalidParameter(f'{method} takes expressions such as col("age") >= 65.')
    return term


def _name(term: object, method: str) -> str:
    """What an expression is called: its alias, or its only column."""
    column = _column(term, method)
    own = only_column(column.expression)
    if column.name is None and own is None:
        raise InvalidParameter(f'Give the expression in {method} a name: (…).alias("name").')
    return column.name or str(own.name if own else "")


def _names(columns: str | Sequence[str] | None) -> list[str]:
    return [] if columns is None else [columns] if isinstance(columns, str) else list(columns)


def _check_names(names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InvalidParameter(f"Two columns of the result are called {name[:60]!r}: rename one.")


def _no_rows(done: str, instead: str) -> QueryRefused:
    return QueryRefused(
        f"Single rows are never {done}; only released groups can be.",
        f'Group first: .group_by("x").agg(n=sf.count()){instead}.',
    )


FIGURES: dict[str, Callable[[Col], Agg]] = {
    "count": Col.count,
    "mean": Col.mean,
    "std": Col.std,
    "min": Col.min,
    "median": Col.median,
    "max": Col.max,
}


def _check_declared(listed: Expression, rows: Rows) -> None:
    """Refuse a list with a value that its column is declared never to have."""
    if not isinstance(listed, Call) or not isinstance(listed.arguments[0], Column):
        return
    name = listed.arguments[0].name
    known = domain_of(rows.columns[name])
    if known is None:
        return
    declared = frozenset(known)
    for constant in listed.arguments[1:]:
        value = constant.value if isinstance(constant, Constant) else None
        if value is not None and value not in declared:
            raise QueryRefused(
                f"{name} is declared without the value {str(value)[:60]!r}.", f"Values: {first_of(known)}."
            )
