"""Aggregation per unit: a subquery that groups by the privacy unit, and statistics over units outside."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlglot import exp

from sfumato.engines.trees import copied, nodes_of
from sfumato.plan.expressions.tree import Column, Expression, Literal, call, to_wire
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.plan.questions.sources import PerUnit, Public
from sfumato.sql.read.aggregates import is_aggregate, parse_aggregate
from sfumato.sql.read.expressions import unknown_function
from sfumato.sql.read.relation import Named, Relation, called_after, facts_within, fresh
from sfumato.sql.read.scope import Scope
from sfumato.sql.refusals import refuse, refused, shown
from sfumato.sql.shape_refusals import PER_UNIT

__all__ = ["UnitResults", "unit_aggregate"]

_OWN = ("count", "count_values", "sum", "mean", "min", "max")
_MOST = 64


class UnitResults:
    """The keys and aggregates of units, and what a subquery makes of them.

    Attributes:
        relation: One row for each unit, or each unit and key; its columns are the keys and aggregates.
    """

    def __init__(self, scope: Scope, keys: Sequence[exp.Expr], trees: Sequence[exp.Expr]) -> None:
        """Group by the unit and the keys.

        Args:
            scope: What is read.
            keys: The resolved grouping expressions, the unit's column among them.
            trees: All resolved trees whose aggregates are needed.

        Raises:
            QueryRefused: if the unit is not among the keys, or an aggregate is not supported.
        """
        relation = scope.relation
        self._scope = scope
        if relation.is_public:
            raise refused(PER_UNIT["public"])
        others = {scope.scalar(key) for key in keys if not scope.is_unit(key)}
        if not any(map(scope.is_unit, keys)) and not relation.tells_unit(others):
            raise self._without_unit()
        calls = {unit_aggregate(node, scope) for tree in trees for node in _aggregates(tree)}
        if len(calls) > _MOST:
            raise refuse(
                f"The subquery has more than {_MOST} different aggregates.", "Ask for them in parts."
            )
        taken: list[str] = []
        self._keys: dict[Expression, str] = {}
        for key in sorted(others, key=lambda scalar: json.dumps(to_wire(scalar))):
            self._keys[key] = fresh(_key_name(key), taken)
            taken.append(self._keys[key])
        self._calls: dict[AggregateCall, str] = {}
        for aggregate in sorted(calls, key=lambda asked: json.dumps(asked.to_wire())):
            self._calls[aggregate] = fresh(_call_name(aggregate), taken)
            taken.append(self._calls[aggregate])
        names = [*self._keys.values(), *self._calls.values()]
        assert not isinstance(relation.source, Public)
        source = PerUnit(
            relation.source,
            relation.predicate,
            tuple((name, key) for key, name in self._keys.items()),
            tuple((name, aggregate) for aggregate, name in self._calls.items()),
        )
        self.relation = Relation(
            source=source,
            predicate=None,
            columns=tuple(Named(name, "", Column(name)) for name in names),
            facts=facts_within(source, names, relation.known),
            known=relation.known,
            origins={
                name: relation.origins[key.name]
                for key, name in self._keys.items()
                if isinstance(key, Column) and key.name in relation.origins
            },
        )
        self._outside = Scope(self.relation)

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the grouping columns other than the unit."""
        return tuple(self._keys.values())

    def expression(self, tree: exp.Expr) -> Expression:
        """An expression over keys and aggregates.

        Raises:
            QueryRefused: if a column is in it that is neither grouped by nor aggregated.
        """
        holder = exp.Paren(this=copied(tree))
        self._name_parts(holder.this)
        return self._outside.scalar(holder.this)

    def _name_parts(self, node: exp.Expr) -> None:
        name = self._meaning(node)
        if name is not None:
            node.replace(exp.column(exp.to_identifier(name, quoted=True)))
            return
        for child in list(node.iter_expressions()):
            self._name_parts(child)

    def _meaning(self, node: exp.Expr) -> str | None:
        if is_aggregate(node):
            return self._calls[unit_aggregate(node, self._scope)]
        nodes = nodes_of(node)
        if any(map(is_aggregate, nodes)) or not any(isinstance(inner, exp.Column) for inner in nodes):
            return None
        if self._keys and (name := self._keys.get(self._scope.scalar(node))) is not None:
            return name
        if isinstance(node, exp.Column):
            self._scope.scalar(node)
            if (unknown := unknown_function(node)) is not None:
                raise unknown
            raise refuse(
                f"Column {shown(node.name)} of the subquery is neither aggregated nor in GROUP BY.",
                f"Add it to GROUP BY, or aggregate it, as in MAX({node.name}).",
            )
        return None

    def _without_unit(self) -> Exception:
        if self._scope.table.unit.is_row:
            return refused(PER_UNIT["rows"])
        unit = self._scope.relation.unit_name
        return refuse(
            "A subquery that aggregates over several people would need noise of its own.",
            f"Ask it as a query of its own, or have it GROUP BY {unit} (and more) for figures of each one.",
        )


def _key_name(key: Expression) -> str:
    return key.name if isinstance(key, Column) else called_after("key", to_wire(key))


def _call_name(aggregate: AggregateCall) -> str:
    """What a unit's own result is called: in words, where that is short."""
    if aggregate.argument is None:
        return "number of rows"
    function = aggregate.function.replace("_", " ")
    if isinstance(aggregate.argument, Column):
        return f"{function} of {aggregate.argument.name}"
    return called_after(function, aggregate.to_wire())


def _aggregates(tree: exp.Expr) -> list[exp.Expr]:
    """The outermost aggregates."""
    if is_aggregate(tree):
        return [tree]
    return [aggregate for child in tree.iter_expressions() for aggregate in _aggregates(child)]


def unit_aggregate(node: exp.Expr, scope: Scope) -> AggregateCall:
    """An aggregate over the rows of one unit.

    No bounds are needed, and a unit's own extremes and distinct values may be taken: what it counts for is
    bounded outside.

    Raises:
        QueryRefused: if it is not supported there.
    """
    inner, condition = node, None
    if isinstance(node, exp.Filter):
        inner, condition = node.this, node.expression.this
    argument: exp.Expr | None = None
    name = ""
    if isinstance(inner, exp.Min | exp.Max) and not inner.expressions:
        name, argument = type(inner).__name__.lower(), inner.this
    elif isinstance(inner, exp.Count) and isinstance(inner.this, exp.Distinct):
        values = inner.this.expressions
        if len(values) != 1:
            raise refused(PER_UNIT["distinct"])
        if scope.is_unit(values[0]):
            raise refused(PER_UNIT["one"])
        name, argument = "count_values", values[0]
    if argument is None or isinstance(argument, exp.Distinct):
        call_ = parse_aggregate(node, scope)
        if call_.function not in _OWN or call_.bounds is not None:
            raise refused(PER_UNIT["aggregate"])
        return call_
    for part in (argument, condition):
        if part is not None and any(map(is_aggregate, nodes_of(part))):
            raise refuse("An aggregate is inside another.", "Aggregate a plain expression of the row.")
    value = scope.scalar(argument)
    if condition is not None:
        value = call("case", scope.scalar(condition), value, Literal(None, None))
    return AggregateCall(name, value)
