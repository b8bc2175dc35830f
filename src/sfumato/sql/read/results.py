"""What a query makes of its keys and aggregates: post-processing, which reads no data and costs nothing."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sfumato.engines.trees import copied, nodes_of
from sfumato.errors import QueryRefused
from sfumato.plan.assemble import Assembly
from sfumato.plan.expressions.facts import facts_of
from sfumato.plan.expressions.names import in_sql
from sfumato.plan.expressions.tree import Expression
from sfumato.plan.questions.relations import Rows
from sfumato.sql.read.aggregates import is_aggregate, parse_aggregate
from sfumato.sql.read.expressions import parse_expression, unknown_function
from sfumato.sql.read.over import read_over
from sfumato.sql.read.scope import Scope
from sfumato.sql.refusals import refuse, shown

__all__ = ["Results"]

_MOST, _MOST_BITS = 64, 30
_GROUPING = (exp.Grouping, exp.GroupingId)


class Results:
    """The keys and aggregates of a query, as they are found in SELECT, HAVING and ORDER BY.

    Attributes:
        scope: What names mean.
        assembly: The plan as far as it is known.
    """

    def __init__(
        self, scope: Scope, rows: Rows, predicate: Expression | None, keys: Sequence[Expression]
    ) -> None:
        self.scope = scope
        self._clause = ""
        self.assembly = Assembly(rows, [] if predicate is None else [predicate], keys)

    def expression(self, tree: exp.Expr) -> Expression:
        """An expression over keys and aggregates from a resolved tree over the table's columns.

        Raises:
            QueryRefused: if a column is in it that is neither grouped by nor aggregated, or it is ill-typed.
        """
        return self.assembly.over_results(self._over_results(tree))

    def condition(self, tree: exp.Expr) -> Expression:
        """The same for HAVING."""
        self._clause = "having"
        return self.assembly.condition(self._over_results(tree))

    def _over_results(self, tree: exp.Expr) -> Expression:
        if is_aggregate(tree) and not isinstance(tree, _GROUPING):
            alone = exp.Column(this=exp.Identifier(this=self._meaning(tree), quoted=True))
            return parse_expression(alone, self.assembly.known)
        holder = exp.Paren(this=copied(tree))
        self._name_parts(holder.this)
        return parse_expression(holder.this, self.assembly.known)

    def _name_parts(self, node: exp.Expr) -> None:
        if isinstance(node, _GROUPING):
            node.replace(self._left_out(node))
            return
        if isinstance(node, exp.Window):
            node.replace(exp.column(exp.to_identifier(self._window(node), quoted=True)))
            return
        name = self._meaning(node)
        if name is not None:
            node.replace(exp.column(exp.to_identifier(name, quoted=True)))
            return
        for child in list(node.iter_expressions()):
            self._name_parts(child)

    def _window(self, node: exp.Window) -> str:
        """The name of a window function over the groups that HAVING leaves."""
        if self._clause == "having":
            raise refuse("HAVING comes before window functions.", "Rank or share what is released.")
        over = read_over(node, self.expression)
        facts = facts_of(over.value, self.assembly.known)
        if facts.kind not in ("integer", "float", "boolean"):
            raise refuse("Released groups are summed and ranked by numbers.", "Name an aggregate.")
        return self.assembly.window(over)

    def _left_out(self, node: exp.Expr) -> exp.Expr:
        """GROUPING(a, b): a bit for each key, 1 where a row's level leaves it out; the last counts one."""
        names = [self.assembly.names.get(self.scope.scalar(argument)) for argument in node.expressions]
        if not names or any(name is None for name in names) or len(names) > _MOST_BITS:
            raise refuse(
                "GROUPING is about what GROUP BY names.", "Write GROUPING(a) for GROUP BY ROLLUP (a, b)."
            )
        bits = [exp.column(exp.to_identifier(f"g{str(name)[1:]}", quoted=True)) for name in names]
        total: exp.Expr = bits[0]
        for bit in bits[1:]:
            total = exp.Add(
                this=exp.Mul(this=exp.Paren(this=total), expression=exp.Literal.number(2)), expression=bit
            )
        return exp.Paren(this=total) if len(bits) > 1 else total

    def _meaning(self, node: exp.Expr) -> str | None:
        """The name of the key or aggregate that a node is."""
        if is_aggregate(node):
            name = self.assembly.aggregate(parse_aggregate(node, self.scope))
            if int(name[1:]) >= _MOST:
                raise refuse(
                    f"The query has more than {_MOST} different aggregates.", "Ask for them in parts."
                )
            return name
        nodes = nodes_of(node)
        if any(map(is_aggregate, nodes)) or not any(isinstance(inner, exp.Column) for inner in nodes):
            return None
        names = self.assembly.names
        if names and (key_name := names.get(self.scope.scalar(node))) is not None:
            return key_name
        if isinstance(node, exp.Column):
            self.scope.scalar(node)
            if (unknown := unknown_function(node)) is not None:
                raise unknown
            raise self._ungrouped(node)
        return None

    def _ungrouped(self, node: exp.Column) -> QueryRefused:
        """The refusal of a column that has no one value in a group, with what can be done about it here."""
        column, facts = self.scope.columns[node.name], self.scope.facts[node.name]
        spelt = in_sql(node.name) if node.name == column.name else column.written
        example = f"{'AVG' if facts.kind in ('integer', 'float') else 'COUNT'}({spelt})"
        add = f"Add {spelt} to GROUP BY" if self.assembly.names else f"Add GROUP BY {spelt}"
        if self._clause == "having":
            add = "HAVING judges groups: put conditions on rows into WHERE"
        fix = f"{add}, or aggregate it, as in {example}."
        if facts.kind == "float" and self._clause != "having":
            fix = f"Aggregate it, as in {example}; or group by FLOOR({spelt} / 10) * 10."
        return refuse(f"Column {shown(column.name)} is neither aggregated nor in GROUP BY.", fix)
