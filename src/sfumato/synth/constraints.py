"""Constraints: declared conditions that hold in every drawn row. All public; nothing is read from a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.expressions.facts import facts_of
from sfumato.plan.expressions.names import in_sql, nearest
from sfumato.plan.expressions.size import check_size
from sfumato.plan.expressions.tree import Call, Column, Expression, call, literal
from sfumato.random import Simulation
from sfumato.sql.read.expressions import parse_expression
from sfumato.sql.text.dialects import understand
from sfumato.sql.text.quiet import quiet
from sfumato.synth._model.domain import Clique
from sfumato.synth._rules.rules import Condition, Follows, Rule, rule_from_data
from sfumato.synth._rules.settling import Drawing
from sfumato.synth._rules.tables import (
    MOST_TRIED,
    check_number,
    check_steps,
    combined,
    groups_of,
    merged,
    room,
)
from sfumato.synth._rules.values import Points, facts_of_columns, points
from sfumato.synth.columns.coarse import WIDE, Coarse, as_it_is
from sfumato.synth.columns.fine import Fine
from sfumato.synth.totals import MOST_ROWS, ColumnTotals, Totals, counted

__all__ = ["Constraint", "Constraints", "Determines", "Never", "Totals"]

Bools: TypeAlias = NDArray[np.bool_]
_FORM = 'A constraint is a condition over columns, such as "age >= 18".'


@dataclass(frozen=True, slots=True)
class Determines:
    """A column's value follows from another's, by a mapping that is public.

    ```python
    synth.Determines("zip", "city", {"10115": "Berlin", "20095": "Hamburg"})
    ```

    Attributes:
        by: The column that decides.
        column: The column that follows.
        mapping: From values of `by` to values of `column`. A value that is not among them goes with any, and
            so does one that is missing.
    """

    by: str
    column: str
    mapping: Mapping[Any, Any]


@dataclass(frozen=True, slots=True)
class Never:
    """Values that no row has together: a structural zero.

    ```python
    synth.Never({"age": 0, "job": ["nurse", "pilot"]})
    ```

    Attributes:
        together: For each column a value, or a list of values; None is a value that is missing.
    """

    together: Mapping[str, Any]


Constraint: TypeAlias = str | Determines | Never | Totals


class Constraints:
    """What holds in every row that is drawn.

    Attributes:
        columns: The columns of the table, as cells.
        rules: One condition each.
        totals: For some columns, how many rows have each value.
    """

    def __init__(
        self, columns: Sequence[Fine], rules: Sequence[Rule] = (), totals: ColumnTotals | None = None
    ) -> None:
        self.columns, self.rules = tuple(columns), tuple(rules)
        self.totals = ColumnTotals({}) if totals is None else totals

    @classmethod
    def read(cls, columns: Sequence[Fine], given: Any) -> Constraints:
        """The constraints that were declared, checked: nothing is read of any table.

        Args:
            columns: The columns of the table.
            given: Conditions as SQL, `Determines`, `Never` and `Totals`; None: there are none.

        Raises:
            QueryRefused: for a text that is no condition over these columns.
            InvalidParameter: if they contradict each other or have too many cells.
        """
        listed = [given] if not isinstance(given, Iterable) or isinstance(given, str) else list(given)
        listed = [] if given is None else listed
        rules = [rule for one in listed if not isinstance(one, Totals) for rule in _read(one, columns)]
        found = cls(columns, rules, _totals([one for one in listed if isinstance(one, Totals)], columns))
        for rule in found.rules:
            for name in rule.names:
                _column(name, columns)
        found.check()
        return found

    @property
    def said(self) -> tuple[str, ...]:
        """The constraints as they were given, each once."""
        return tuple(dict.fromkeys(rule.text for rule in self.rules))

    def check(self) -> None:
        """Refuse what cannot be kept.

        Raises:
            InvalidParameter: if they contradict each other or have too many cells.
        """
        check_number(self.rules)
        for rule in self.rules:
            many = math.prod(len(self._points[name].cells) for name in rule.names)
            if many > MOST_TRIED:
                raise InvalidParameter(
                    f"The constraint {rule.text[:80]} has {many:,} combinations of values, and at most "
                    f"{MOST_TRIED:,} are tried: name fewer columns in it, or declare fewer values."
                )
        check_steps(self.rules, self._points)
        for names, rules in groups_of(self.rules):
            every = {name: np.arange(len(self._points[name].cells)) for name in names}
            for name in names:  # one that could only be missing is a contradiction, though NULL passes
                known = np.flatnonzero(~np.ma.getmaskarray(self._points[name].values))
                if not len(combined(names, rules, self._points, every | {name: known})[0]):
                    texts = "; ".join(dict.fromkeys(rule.text[:80] for rule in rules))
                    raise InvalidParameter(
                        f"No values of {in_sql(name)} were found that satisfy all of: {texts}."
                    )
        sizes = [column.size for column in self.columns]
        zeros = self.zeros([as_it_is(column) for column in self.columns]) if self.totals.counts else {}
        few = {clique: table for clique, table in zeros.items() if max(table.shape) <= WIDE}
        self.totals.check(sizes, few)

    def allowed(self, place: int) -> Bools | None:
        """Which fine cells of a column conditions on it alone leave; None: all."""
        tables = [room for rule, room in self._rooms if rule.names == (self.columns[place].name,)]
        found = np.logical_and.reduce(tables) if tables else np.ones(1, bool)
        return None if found.all() else np.asarray(found, bool)

    @property
    def cliques(self) -> list[Clique]:
        """The columns that constraints hold together."""
        every = (tuple(sorted(self._place[name] for name in rule.names)) for rule in self.rules)
        return sorted({clique for clique in every if len(clique) > 1})

    def zeros(self, cuts: Sequence[Coarse]) -> dict[Clique, Bools]:
        """For some columns, True for each combination of coarse cells that no row can be in."""
        found = dict[Clique, Bools]()
        for rule, fine in self._rooms:
            places = [self._place[name] for name in rule.names]
            table = ~merged(fine, [cuts[place].place for place in places])
            table = table.transpose(np.argsort(places))
            clique = tuple(sorted(places))
            found[clique] = found[clique] | table if clique in found else table
        return {clique: table for clique, table in sorted(found.items()) if table.any()}

    def drawn(self, cuts: Sequence[Coarse], codes: NDArray[Any], rng: Simulation) -> dict[str, pa.Array]:
        """Values in coarse cells that a model drew, so that each row keeps to all constraints.

        Args:
            cuts: The coarse cells of each column.
            codes: Those of each row.
            rng: Draws.
        """
        drawing = Drawing(self.columns, cuts, codes, rng)
        held = [self.columns[place].name for place in self.totals.counts]
        for names, rules in groups_of(self.rules):
            drawing.settle(names, rules, self._points, held)
        return drawing.found

    def to_data(self) -> list[Any]:
        """Plain data that `from_data` reads back."""
        totals = [["totals", place, counts.tolist()] for place, counts in self.totals.counts.items()]
        return [*(rule.to_data() for rule in self.rules), *totals]

    @classmethod
    def from_data(cls, columns: Sequence[Fine], data: Sequence[Any]) -> Constraints:
        """What `to_data` wrote, checked again: a file may hold anything.

        Raises:
            InvalidParameter: if it holds something else.
        """
        check_number(data)
        rules, totals = list[Rule](), dict[int, NDArray[np.int64]]()
        for one in data:
            match one:
                case ["totals", int(place), list(counts)] if 0 <= place < len(columns):
                    totals[int(place)] = np.array(counts, np.int64)
                case _:
                    rules.append(_read_back(rule_from_data(one), columns))
        if any(
            counts.shape != (columns[place].size,) or (counts < 0).any() or (counts > MOST_ROWS).any()
            for place, counts in totals.items()
        ):
            raise InvalidParameter("This is not a stored constraint.")
        found = cls(columns, rules, ColumnTotals(totals))
        found.check()
        return found

    @cached_property
    def _place(self) -> dict[str, int]:
        return {column.name: at for at, column in enumerate(self.columns)}

    @cached_property
    def _points(self) -> dict[str, Points]:
        """Of each column that a rule names."""
        constants = dict[str, list[Any]]()
        for rule in self.rules:
            for name in rule.names:
                constants.setdefault(name, []).extend(rule.constants)
        return {name: points(self.columns[self._place[name]], own) for name, own in constants.items()}

    @cached_property
    def _rooms(self) -> list[tuple[Rule, Bools]]:
        """The fine cells in which each rule can hold."""
        return [(rule, room(rule, self._points)) for rule in self.rules]


def _read(given: Any, columns: Sequence[Fine]) -> Iterator[Rule]:
    """The rules that one constraint means: those of AND are one each."""
    if isinstance(given, Determines):
        yield _followed(given, columns)
        return
    if isinstance(given, Never):
        text, expression = _never(given, columns)
    elif isinstance(given, str) and given.strip():
        text, expression = " ".join(given.split()), condition(given, columns)
    else:
        raise InvalidParameter(
            f"{_FORM} Others are synth.Determines(…), synth.Never(…) and synth.Totals(…), not "
            f"{type(given).__name__}."
        )
    for part in _parts(expression):
        rule = Condition(text, part)
        if not rule.names:
            raise InvalidParameter(f"The constraint {text[:80]} names no column. {_FORM}")
        yield rule


def _totals(given: Sequence[Totals], columns: Sequence[Fine]) -> ColumnTotals:
    found = dict[int, NDArray[np.int64]]()
    for one in given:
        column = _column(one.column, columns)
        place = columns.index(column)
        if place in found:
            raise InvalidParameter(f"The totals of {column.name[:60]!r} are given twice.")
        found[place] = counted(one, column)
    return ColumnTotals(found)


def condition(text: str, columns: Sequence[Fine]) -> Expression:
    """A condition as SQL writes it, over columns.

    Raises:
        QueryRefused: if it is none, with what would work.
    """
    with quiet():
        try:
            select = understand(f"SELECT COUNT(*) FROM rows WHERE (\n{text}\n)").select
        except QueryRefused:  # it tells places in a text that nobody wrote
            raise QueryRefused(f"{text[:80]!r} cannot be read as a condition. {_FORM}") from None
        clauses = {name for name, value in select.args.items() if value}
        if not clauses <= {"kind", "expressions", "from_", "from", "where"}:
            raise InvalidParameter(f"{text[:80]!r} is more than a condition. {_FORM}")
        expression = parse_expression(select.args["where"].this, facts_of_columns(columns))
    _check_condition(text, expression, columns)
    return expression


def _check_condition(text: str, expression: Expression, columns: Sequence[Fine]) -> None:
    """Refuse what is neither true nor false, or too large to be tried.

    Raises:
        QueryRefused: if a function does not take what it is given, or the whole is too large.
        InvalidParameter: if it is no condition.
    """
    check_size(expression)
    if facts_of(expression, facts_of_columns(columns)).kind not in ("boolean", None):
        raise InvalidParameter(f"{text[:80]!r} is neither true nor false. {_FORM}")


def _read_back(rule: Rule, columns: Sequence[Fine]) -> Rule:
    """A rule that was read from a file, held to what can be declared.

    Raises:
        QueryRefused: if it is no condition over these columns.
        InvalidParameter: likewise.
    """
    for name in rule.names:
        _column(name, columns)
    if isinstance(rule, Follows):
        _followed(Determines(rule.by, rule.column, dict(rule.mapping)), columns)
    elif isinstance(rule, Condition):
        _check_condition(rule.text, rule.expression, columns)
    if not rule.names:
        raise InvalidParameter("This is not a stored constraint.")
    return rule


def _parts(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Call) and expression.function == "and":
        for argument in expression.arguments:
            yield from _parts(argument)
    else:
        yield expression


def _column(name: Any, columns: Sequence[Fine]) -> Fine:
    found = next((column for column in columns if column.name == name), None)
    if found is None:
        near = nearest(str(name), [column.name for column in columns], "Columns")
        raise InvalidParameter(f"A constraint names {str(name)[:60]!r}, which is no column. {near}")
    if found.is_open:
        raise InvalidParameter(
            f"A constraint names {found.name[:60]!r}, whose values nobody listed: declare them, "
            f'"{found.name[:60]}": sf.Enum("a", "b").'
        )
    return found


def _followed(given: Determines, columns: Sequence[Fine]) -> Follows:
    by, column = _column(given.by, columns), _column(given.column, columns)
    for own in (by, column):
        if own.values is None and not own.has_whole_steps:
            raise InvalidParameter(
                f"Determines takes columns with one value a cell, and {own.name[:60]!r} has too many numbers."
            )
    if by is column or not isinstance(given.mapping, Mapping) or not given.mapping:
        raise InvalidParameter(
            'Determines takes two columns and a mapping: ("zip", "city", {"10115": "Berlin"}).'
        )
    pairs = [(one, other) for one, other in given.mapping.items() if _has(by, one)]
    for one, other in pairs:
        if not _has(column, other):
            raise InvalidParameter(
                f"Determines maps {str(one)[:40]!r} to {str(other)[:40]!r}, which is no value of "
                f"{column.name[:60]!r}."
            )
    if not pairs:
        raise InvalidParameter(f"Determines maps no value that {by.name[:60]!r} can have.")
    return Follows(f"{in_sql(by.name)} determines {in_sql(column.name)}", by.name, column.name, tuple(pairs))


def _has(column: Fine, value: Any) -> bool:
    """Whether a column with one value a cell can be that, and not only something equal in Python."""
    known = points(column).values
    if isinstance(value, bool) != (column.kind == "boolean"):
        return False
    return value in known[~np.ma.getmaskarray(known)].tolist()


def _never(given: Never, columns: Sequence[Fine]) -> tuple[str, Expression]:
    together = given.together
    if not isinstance(together, Mapping) or not together:
        raise InvalidParameter('Never takes values by column: Never({"sex": "M", "pregnant": True}).')
    parts, said = list[Expression](), list[str]()
    for name, value in together.items():
        column = Column(_column(name, columns).name)
        listed = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
        if not listed:
            raise InvalidParameter(f"Never names no value of {str(name)[:60]!r}.")
        values = [literal(one) for one in listed if one is not None]
        tests = [call("in", column, *values)] if values else []
        tests += [call("is_null", column)] if None in listed else []
        parts.append(tests[0] if len(tests) == 1 else call("or", *tests))
        said.append(f"{in_sql(column.name)} {', '.join(str(one)[:30] for one in listed[:3])}")
    every = parts[0] if len(parts) == 1 else call("and", *parts)
    expression = call("not", every)
    facts_of(expression, facts_of_columns(columns))  # the kinds must fit
    return f"never {' with '.join(said)}", expression
