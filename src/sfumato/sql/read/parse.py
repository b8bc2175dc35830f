"""From SQL text to a plan: what has a proven rule is read, everything else is refused with advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import domain_of, facts_of, refine
from sfumato.plan.expressions.names import in_sql
from sfumato.plan.expressions.tree import Column, Expression, Literal, columns_of
from sfumato.plan.prices.plan import Plan
from sfumato.plan.questions.nodes import OrderItem, Output, Report, Where
from sfumato.plan.questions.relations import rows_of
from sfumato.plan.questions.sources import Public, Scan
from sfumato.schema import PrivateTable
from sfumato.sql.read.clauses import by_ordinal, check, condition, key_trees, selected
from sfumato.sql.read.example import check_aggregated
from sfumato.sql.read.expressions import constant_of
from sfumato.sql.read.from_clause import Known, read_from
from sfumato.sql.read.levels import Levels, take_levels
from sfumato.sql.read.results import Results
from sfumato.sql.read.scope import Scope
from sfumato.sql.read.settle import pruned, pushed
from sfumato.sql.read.subqueries import names_of, with_views
from sfumato.sql.refusals import ANY_UNIT, refuse, refused
from sfumato.sql.shape_refusals import SUBQUERIES
from sfumato.sql.text.statement import read

__all__ = ["only_used", "parse", "parse_tree"]

_READ = {
    *("expressions", "from_", "joins", "with_", "where", "group", "having", "order", "limit", "offset"),
    *("distinct", "hint"),
}
_MOST, _BEYOND = 2**53, 10**16


def parse(text: str, tables: Known) -> Report:
    """The plan of one SELECT over these tables.

    Args:
        text: SQL as DuckDB writes it; common spellings of PostgreSQL are understood too.
        tables: The private and public tables by name.

    Raises:
        QueryRefused: if the text is anything else, with the reason and the nearest thing that would work. The
            message depends on the text and on what is declared, never on data.
    """
    return parse_tree(read(text), tables).report


def parse_tree(select: exp.Select, tables: Known, *, strict: bool = True) -> Plan:
    """The same for a text that was read already; unless `strict`, also where numbers have no bounds yet."""
    try:
        return _parse(select, tables, strict=strict)
    except RecursionError:
        raise refuse("The query is nested too deeply to be checked.", "Split it in two.") from None
    except QueryRefused as refusal:
        if refusal.slots.get("unit") is ANY_UNIT and (unit := _own_unit(select, tables)) is not None:
            refusal.slots["unit"] = in_sql(unit)
        raise


def _own_unit(select: exp.Select, tables: Known) -> str | None:
    """What the unit is called in the first table that the query names, or in all tables."""
    units = {
        table.name.lower(): table.unit.column
        for table in tables.values()
        if isinstance(table, PrivateTable) and not table.unit.is_via and table.unit.column
    }
    named = [
        units[source.name.lower()] for source in select.find_all(exp.Table) if source.name.lower() in units
    ]
    every = set(units.values())
    return named[0] if named else every.pop() if len(every) == 1 else None


def _parse(select: exp.Select, tables: Known, *, strict: bool) -> Plan:
    levels, select = take_levels(select)
    check(select, _READ, groups=True)
    names = with_views(select, names_of(tables))
    select, relation = read_from(select, names)
    scope = Scope(relation)
    if scope.relation.is_public:
        raise refused(SUBQUERIES["public"])
    with scope.relation.in_words():
        columns = selected(select, scope)
    check_aggregated(select, columns, scope, lambda text: _is_accepted(text, tables))
    with scope.relation.in_words():
        plan = only_used(_plan(select, columns, scope, levels), tables)
        plan.check(strict=strict)
        return plan


def _is_accepted(text: str, tables: Known) -> bool:
    try:
        parse(text, tables)
    except QueryRefused:
        return False
    return True


def _plan(select: exp.Select, columns: list[tuple[str, exp.Expr]], scope: Scope, levels: Levels) -> Plan:
    relation = scope.relation.where(condition(select.args.get("where"), scope))
    assert not isinstance(relation.source, Public)
    source, predicate = pushed(relation.source, relation.predicate)
    trees = key_trees(select.args.get("group"), [tree for _, tree in columns], scope)
    if any((unit := scope.column(tree)) and unit.is_unit and unit.meaning is None for tree in trees):
        raise scope.relation.refused(SUBQUERIES["persons"])
    scalars = list(map(scope.scalar, trees))
    keys = list(dict.fromkeys(scalars))
    _check_crowds(trees, keys, scope, relation.predicate)
    results = Results(scope, rows_of(source, relation.known), predicate, keys)
    outputs = tuple(Output(name, results.expression(tree)) for name, tree in columns)
    _check_distinct(select.args.get("distinct"), outputs, len(keys))
    having = select.args.get("having")
    kept = None if having is None else results.condition(scope.resolved(having.this))
    order = _order(select.args.get("order"), outputs, results)
    limit, offset = _limit(select.args.get("limit")), _count(select.args.get("offset"), "OFFSET")
    return results.assembly.plan(
        outputs,
        having=kept,
        order=order,
        limit=limit,
        offset=offset or 0,
        levels=_levels(levels, scalars, keys),
    )


def _levels(levels: Levels, scalars: list[Expression], keys: list[Expression]) -> tuple[tuple[int, ...], ...]:
    """The grouping sets over the keys; an expression that is listed twice is one key."""
    if levels and max((place for level in levels for place in level), default=-1) >= len(scalars):
        raise refuse("A constant cannot be in ROLLUP or CUBE.", "Leave it out.")
    places = [keys.index(scalar) for scalar in scalars]
    return tuple(dict.fromkeys(tuple(sorted({places[place] for place in level})) for level in levels))


def _check_crowds(
    trees: Sequence[exp.Expr], keys: Sequence[Expression], scope: Scope, predicate: Expression | None
) -> None:
    """Refuse groups of one unit each that would have to be found in the data: none of them could be shown."""
    if not (any(map(scope.is_unit, trees)) or scope.relation.tells_unit(keys)):
        return
    facts = scope.relation.facts if predicate is None else refine(predicate, scope.relation.facts)
    if any(domain_of(facts_of(key, facts)) is None for key in keys):
        raise scope.relation.refused(SUBQUERIES["persons"])


def only_used(plan: Plan, tables: Known) -> Plan:
    """The same with only those columns of the source that the question looks at."""
    node = plan.report.child
    if isinstance(node.source, Scan):
        return plan
    arguments = [part for call in node.aggregates for part in (call.argument, call.other)]
    read = (node.predicate, *arguments, *(key.expression for key in node.keys))
    source = pruned(
        node.source,
        [name for expression in read if expression is not None for name in columns_of(expression)],
    )
    child = source if node.predicate is None else Where(source, node.predicate)
    return Plan.of(replace(plan.report, child=replace(node, child=child)), tables)


def _check_distinct(distinct: exp.Expr | None, outputs: tuple[Output, ...], keys: int) -> None:
    """DISTINCT changes nothing where all keys are shown; elsewhere it is refused."""
    if distinct is None:
        return
    plain = {output.expression.name for output in outputs if isinstance(output.expression, Column)}
    if distinct.args.get("on") or not {f"k{i}" for i in range(keys)} <= plain:
        raise refuse(
            "DISTINCT is not supported here.", "GROUP BY gives one row for each key; leave DISTINCT out."
        )


def _order(order: exp.Expr | None, outputs: tuple[Output, ...], results: Results) -> tuple[OrderItem, ...]:
    if order is None:
        return ()
    items: list[OrderItem] = []
    for item in order.expressions:
        if not isinstance(item, exp.Ordered) or item.args.get("with_fill"):
            raise refuse("This form of ORDER BY is not supported.", "Write ORDER BY n DESC.")
        every = isinstance(item.this, exp.Var) and item.this.name.upper() == "ALL"
        expressions = (
            [output.expression for output in outputs] if every else [_ordered(item.this, outputs, results)]
        )
        flags = bool(item.args.get("desc")), bool(item.args.get("nulls_first"))
        items += [OrderItem(expression, *flags) for expression in expressions]
    return tuple(items)


def _ordered(node: exp.Expr, outputs: tuple[Output, ...], results: Results) -> Expression:
    numbered: list[exp.Expr] = [exp.Literal.number(i) for i in range(len(outputs))]
    place = by_ordinal(node, numbered, "ORDER BY")
    if place is not None:
        return outputs[int(place.name)].expression
    return results.expression(results.scope.resolved(node, alias_first=True))


def _limit(limit: exp.Expr | None) -> int | None:
    if limit is None:
        return None
    options = limit.args.get("limit_options")
    if limit.args.get("offset") or (
        options and (options.args.get("percent") or options.args.get("with_ties"))
    ):
        raise refuse("This form of LIMIT is not supported.", "Write LIMIT 10 OFFSET 20.")
    return _count(limit, "LIMIT")


def _count(clause: exp.Expr | None, word: str) -> int | None:
    if clause is None:
        return None
    value = clause.args.get("count") if isinstance(clause, exp.Fetch) else clause.args.get("expression")
    if isinstance(value, exp.Null) or (isinstance(value, exp.Var) and value.name.upper() == "ALL"):
        return None
    constant = constant_of(value)
    if constant is not None and constant.kind == "integer" and isinstance(constant.value, int):
        if 0 <= constant.value < _BEYOND:
            return min(constant.value, _MOST)
    elif isinstance(value, exp.Cast) and constant_of(value.this) == Literal(None, None):
        return None
    raise refuse(f"{word} takes a whole number.", f"Write {word} 10.")
