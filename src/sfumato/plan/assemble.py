"""From the parts of a question, however it was written, to one normalised plan."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from sfumato.errors import QueryRefused
from sfumato.numeric.moments import DAY, moment_at
from sfumato.plan.expressions.facts import Facts, domain_of, facts_of, resolve, size_of
from sfumato.plan.expressions.functions import FUNCTIONS
from sfumato.plan.expressions.names import unused
from sfumato.plan.expressions.normal import conjunction, normal
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, only_column
from sfumato.plan.prices.plan import Plan
from sfumato.plan.questions.aggregates import argument_of, statistic
from sfumato.plan.questions.existing import existing, existing_among_public
from sfumato.plan.questions.nodes import (
    LEVEL,
    Aggregate,
    AggregateCall,
    Key,
    OrderItem,
    Output,
    Report,
    Where,
)
from sfumato.plan.questions.over import Over
from sfumato.plan.questions.relations import Readable, Rows, as_rows

__all__ = ["Assembly", "check_groups", "settled"]

_MOST_GROUPS = 100_000
_EXAMPLE = 28  # days of moments


def settled(expression: Expression, table: Readable) -> Expression:
    """An expression over a table's columns in the one form that all spellings of it share."""
    return normal(resolve(expression, as_rows(table).columns))


class Assembly:
    """The keys `k0`, … and the aggregates `a0`, … of one question, collected as they are found.

    Attributes:
        rows: What is read.
        predicate: What rows must satisfy, normalised; None: nothing.
        columns: What is known about the table's columns in those rows.
        known: What is known about keys and aggregates by their names; and about `g0`, …, which are 1 in the
            rows of a level that leaves the key out, and 0 in others.
    """

    def __init__(self, table: Readable, predicates: Iterable[Expression], keys: Sequence[Expression]) -> None:
        """Type the condition and find the public values of each key.

        Raises:
            QueryRefused: for an ill-typed condition, or a key without a public list of values.
        """
        self.rows: Rows = as_rows(table)
        asked = [settled(predicate, self.rows) for predicate in predicates]
        self.predicate = conjunction(asked) if asked else None
        for condition in asked:
            if condition != self.predicate:
                self.rows.where(condition)  # a condition that normalises to nothing must still be one
        self.columns = self.rows.where(self.predicate)
        self.names = {key: f"k{i}" for i, key in enumerate(keys)}
        self.known = {name: facts_of(key, self.columns) for key, name in self.names.items()}
        self._keys = tuple(Key(key, self._values(key)) for key in keys)
        bit = Facts("integer", False, Fraction(0), Fraction(1), Fraction(1))
        self.known |= {f"g{i}": bit for i in range(len(keys))}
        self._calls: dict[AggregateCall, str] = {}
        self._windows: dict[Over, str] = {}

    def values(self, name: str) -> tuple[Any, ...]:
        """The public values of a key; none where they are not public."""
        return self._keys[int(name[1:])].values or ()

    def aggregate(self, call: AggregateCall) -> str:
        """The name of an aggregate, the same for the same one."""
        if call not in self._calls:
            name = f"a{len(self._calls)}"
            self._calls[call] = name
            self.known[name] = self._result(call)
        return self._calls[call]

    def window(self, over: Over) -> str:
        """The name of a window function over groups, the same for the same one."""
        if over not in self._windows:
            name = f"w{len(self._windows)}"
            self._windows[over] = name
            whole = over.function != "sum" or facts_of(over.value, self.known).kind == "integer"
            self.known[name] = Facts("integer" if whole else "float", nullable=over.function == "sum")
        return self._windows[over]

    def _result(self, call: AggregateCall) -> Facts:
        """What is known about an aggregate before it is measured."""
        argument = argument_of(call, self.columns)
        facts = None if argument is None else facts_of(argument, self.columns)
        return statistic(call.function).result(facts)

    def over_results(self, expression: Expression) -> Expression:
        """An expression over keys and aggregates, normalised.

        Raises:
            QueryRefused: if it is ill-typed, or a function in it cannot be computed over results.
        """
        normalised = normal(resolve(expression, self.known))
        facts_of(normalised, self.known)
        for function in _functions(normalised):
            if FUNCTIONS[function].compute is None:
                raise QueryRefused(
                    f"{function.upper()} cannot be computed over results.",
                    "Use it inside an aggregate or in GROUP BY.",
                )
        return normalised

    def condition(self, expression: Expression) -> Expression:
        """The same for what must be true or false."""
        condition = self.over_results(expression)
        if facts_of(condition, self.known).kind not in ("boolean", None):
            raise QueryRefused(
                "HAVING needs a condition that is true or false.", "Compare it with something."
            )
        return condition

    def plan(
        self,
        outputs: tuple[Output, ...],
        *,
        having: Expression | None = None,
        order: tuple[OrderItem, ...] = (),
        limit: int | None = None,
        offset: int = 0,
        combinations: tuple[tuple[Any, ...], ...] | None = None,
        levels: tuple[tuple[int, ...], ...] = (),
    ) -> Plan:
        """The finished plan, before it is looked at whether all of it can be measured.

        Raises:
            QueryRefused: if nothing is aggregated, or there are too many groups.
        """
        if not self._calls:
            raise QueryRefused(
                "The query has no aggregate, and single rows are never shown.",
                "Add one, such as COUNT(*) or AVG(x), with GROUP BY where needed.",
            )
        if combinations is None:
            combinations = (existing_among_public if levels else existing)(self._keys, self.rows)
        lists = [key.values for key in self._keys]
        known = [values for values in lists if values is not None]
        groups = math.prod(map(len, known)) if combinations is None else len(combinations)
        check_groups(groups)
        source = self.rows.source
        child = source if self.predicate is None else Where(source, self.predicate)
        aggregate = Aggregate(child, self._keys, tuple(self._calls), combinations, levels=levels)
        if levels and None in lists:  # NULL alone does not tell other keys from all of them
            name = unused(LEVEL, {output.name.lower(): 1 for output in outputs})
            outputs = (*outputs, Output(name, Column(LEVEL)))
        if self._windows and levels:
            raise QueryRefused(
                "Ranks and shares over several levels are not supported.",
                "Leave ROLLUP, CUBE and GROUPING SETS out, or ask for the groups alone.",
            )
        windows = tuple(self._windows)
        return Plan(Report(aggregate, outputs, having, order, limit, offset, windows=windows), self.rows)

    def _values(self, key: Expression) -> tuple[Any, ...] | None:
        """The public values of a key; None: they are in the data, and groups of enough units are reported."""
        facts = self.known[self.names[key]]
        values = domain_of(facts)
        if values is None:
            values = _listed(key, self.predicate)
        if values is None and facts.kind == "float":
            raise _endless(key, facts)
        if values is None and (many := size_of(facts)) is not None:
            raise _too_long(key, facts, many)
        return values


def check_groups(count: int) -> None:
    """Refuse more groups than a result can have.

    Raises:
        QueryRefused: for more than 100,000.
    """
    if count > _MOST_GROUPS:
        raise QueryRefused(
            f"The result would have {count:,} groups, more than {_MOST_GROUPS:,}.",
            "Group by fewer or coarser things, or narrow them in WHERE.",
        )


def _functions(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Call):
        yield expression.function
        for argument in expression.arguments:
            yield from _functions(argument)


def _listed(key: Expression, predicate: Expression | None) -> tuple[Any, ...] | None:
    """The values that the condition lists for just this expression: SUBSTRING(x, 1, 2) IN ('13', '31')."""
    together = isinstance(predicate, Call) and predicate.function == "and"
    parts = predicate.arguments if isinstance(predicate, Call) and together else (predicate,)
    for term in parts:
        if isinstance(term, Call) and term.function in ("in", "equal") and term.arguments[0] == key:
            constants = [value for value in term.arguments[1:] if isinstance(value, Literal)]
            if len(constants) == len(term.arguments) - 1 and all(one.kind != "float" for one in constants):
                return tuple(dict.fromkeys(one.value for one in constants if one.value is not None))
    return None


_FOUND = "CAST({column} AS VARCHAR) asks for the groups that are found in the data."
_SHORTER = {
    "text": "Narrow it in WHERE {column} IN ('a', 'b'), or name the values in Keys; a column that is "
    "declared as Text has the groups that are found in the data.",
    "date": "Narrow it in WHERE, name the values in Keys, or group by something coarser, such as "
    "DATE_TRUNC('month', {column}); " + _FOUND,
    "timestamp": "Narrow it in WHERE {column} >= '{first}' AND {column} < '{end}', name the values in Keys, "
    "or group by something coarser, such as CAST({column} AS DATE), DATE_TRUNC('month', {column}) or "
    "EXTRACT(HOUR FROM {column}).",
    "time": "Narrow it in WHERE, or group by something coarser, such as EXTRACT(HOUR FROM {column}).",
    "integer": "Narrow it in WHERE {column} BETWEEN 1 AND 100, name the values in Keys, or group by "
    "something coarser, such as FLOOR({column} / 1000) * 1000; " + _FOUND,
}


def _too_long(key: Expression, facts: Facts, many: int) -> QueryRefused:
    """The refusal of a key whose values are public, and too many: they are never taken for unknown ones."""
    first, end = _stretch(facts) if facts.kind == "timestamp" and facts.step else ("", "")
    return QueryRefused(
        "GROUP BY {what} has {many:,} possible values, more than the {most:,} groups that a result can have.",
        _SHORTER[str(facts.kind)],
        what=key if isinstance(key, Column) else "this expression",
        many=many,
        most=_MOST_GROUPS,
        column=only_column(key) or "x",
        first=first,
        end=end,
    )


def _stretch(facts: Facts) -> tuple[str, str]:
    """Two days between which a public range of moments has few enough values, for an example."""
    assert facts.lower is not None
    assert facts.step is not None
    first = int(facts.lower) // DAY * DAY
    days = min(_EXAMPLE, int(_MOST_GROUPS * facts.step) // DAY)  # less than the range, which has more values
    return str(moment_at(first).date()), str(moment_at(first + days * DAY).date())


def _endless(key: Expression, facts: Facts) -> QueryRefused:
    """The refusal of a key of fractions."""
    column = only_column(key) or "x"
    what = key if isinstance(key, Column) else "this expression"
    bounded = facts.lower is not None and facts.upper is not None
    if bounded and facts.step is not None:
        return QueryRefused(
            "GROUP BY {what} would have more than {most:,} groups.",
            "Narrow it in WHERE, or group by something coarser, such as FLOOR({column} / 10) * 10.",
            what=what,
            most=_MOST_GROUPS,
            column=column,
        )
    held = "{column}" if bounded else "LEAST(GREATEST({column}, LOW), HIGH)"
    return QueryRefused(
        "GROUP BY {what} has no list of values: fractions are rarely shared by two rows.",
        f"Group by steps, such as FLOOR({held} / 10) * 10, or list the values: "
        "WHERE {column} IN (1, 2, 3)."
        + ("" if bounded else " LOW and HIGH are the least and the greatest value that you expect."),
        what=what,
        column=column,
    )
