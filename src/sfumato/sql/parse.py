"""From SQL text to a plan: what has a proven rule is read, everything else is refused with advice."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sfumato.plan.expressions import Column, Expression
from sfumato.plan.nodes import OrderItem, Output, Report
from sfumato.schema import PrivateTable
from sfumato.sql.aggregates import is_aggregate
from sfumato.sql.refusals import CLAUSES, FORM, NODES, TABLE_PARTS, nearest, refuse, shown
from sfumato.sql.results import Results
from sfumato.sql.scope import Scope
from sfumato.sql.text import read

__all__ = ["parse"]

_READ = {"expressions", "from_", "where", "group", "having", "order", "limit", "offset", "distinct", "hint"}
_MOST = 2**53


def parse(text: str, tables: Mapping[str, PrivateTable]) -> Report:
    """The plan of one SELECT over one of these tables.

    Args:
        text: SQL as DuckDB writes it; common spellings of PostgreSQL are understood too.
        tables: The private tables by name.

    Raises:
        QueryRefused: if the text is anything else, with the reason and the nearest thing that would work. The
            message depends on the text and on what is declared, never on data.
    """
    try:
        return _parse(read(text), tables)
    except RecursionError:
        raise refuse("The query is nested too deeply to be checked.", "Split it in two.") from None


def _parse(select: exp.Select, tables: Mapping[str, PrivateTable]) -> Report:
    _check(select)
    scope = _scope(select, tables)
    shown_columns = _columns(select, scope)
    where = select.args.get("where")
    predicate = None if where is None else _predicate(where.this, scope)
    keys = _keys(select.args.get("group"), [tree for _, tree in shown_columns], scope)
    results = Results(scope, predicate, keys)
    outputs = tuple(Output(name, results.expression(tree)) for name, tree in shown_columns)
    _check_distinct(select.args.get("distinct"), outputs, len(keys))
    having = select.args.get("having")
    condition = None if having is None else results.condition(scope.resolved(having.this))
    order = _order(select.args.get("order"), outputs, results)
    limit, offset = _limit(select.args.get("limit")), _count(select.args.get("offset"), "OFFSET")
    return results.assembly.report(outputs, having=condition, order=order, limit=limit, offset=offset or 0)


def _check(select: exp.Select) -> None:
    """Refuse all clauses and kinds of nodes that are not read further on."""
    for name, value in select.args.items():
        if value and name not in _READ:
            raise refuse(
                *CLAUSES.get(name, (f"{name.strip('_').upper()} is not supported in a query.", FORM))
            )
    for node in select.walk():
        for kind, (reason, fix) in NODES.items():
            if isinstance(node, kind) and node is not select:
                raise refuse(reason, fix)


def _scope(select: exp.Select, tables: Mapping[str, PrivateTable]) -> Scope:
    source = select.args.get("from_")
    if source is None:
        raise refuse("The query reads no table.", f"Add FROM and one of: {', '.join(list(tables)[:12])}.")
    table = source.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise refuse("FROM takes the name of a table.", f"There is {', '.join(list(tables)[:12])}.")
    for name, value in table.args.items():
        if value and name not in ("this", "alias"):
            raise refuse(*TABLE_PARTS.get(name, ("This form of FROM is not supported.", FORM)))
    known = {each.lower(): each for each in tables}
    if table.name.lower() not in known:
        raise refuse(f"There is no table {shown(table.name)}.", nearest(table.name, list(tables)))
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise refuse("Columns cannot be renamed in FROM.", "Use AS in SELECT.")
    found = tables[known[table.name.lower()]]
    return Scope(found, found.name if alias is None else alias.name)


def _columns(select: exp.Select, scope: Scope) -> list[tuple[str, exp.Expr]]:
    """The names and resolved trees of SELECT's columns."""
    columns: list[tuple[str, exp.Expr]] = []
    taken: set[str] = set()
    for position, each in enumerate(select.expressions, start=1):
        inner = each.this if isinstance(each, exp.Alias) else each
        if isinstance(inner, exp.Star):
            raise refuse("SELECT * would show the rows.", "Name aggregates, such as COUNT(*) or AVG(x).")
        tree = scope.resolved(inner)
        name = each.alias if isinstance(each, exp.Alias) else _derived(inner, position, scope)
        columns.append((_unused(name, taken), tree))
        if isinstance(each, exp.Alias):
            scope.name(each.alias, tree)
    return columns


def _derived(node: exp.Expr, position: int, scope: Scope) -> str:
    if isinstance(node, exp.Column):
        return {each.lower(): each for each in scope.table.schema}.get(node.name.lower(), node.name)
    try:
        text = node.sql("duckdb", normalize_functions="lower", comments=False)
    except Exception:  # a name is not worth a failure
        text = ""
    return text if 0 < len(text) <= 60 else f"column_{position}"


def _unused(name: str, taken: set[str]) -> str:
    candidate, number = name or "column", 2
    while candidate.lower() in taken:
        candidate, number = f"{name}_{number}", number + 1
    taken.add(candidate.lower())
    return candidate


def _predicate(tree: exp.Expr, scope: Scope) -> Expression:
    resolved = scope.resolved(tree)
    if any(is_aggregate(each) for each in resolved.walk()):
        raise refuse(
            "WHERE judges single rows and cannot hold an aggregate.", "Move the condition to HAVING."
        )
    return scope.scalar(resolved)


def _keys(group: exp.Expr | None, columns: list[exp.Expr], scope: Scope) -> list[Expression]:
    """The grouping expressions, without repetitions."""
    if group is None:
        return []
    if group.args.get("totals"):
        raise refuse("WITH TOTALS is not supported.", "Ask for the total as a query of its own.")
    if not group.args.get("all") and not group.expressions:
        raise refuse("GROUP BY names nothing.", "Name columns, or write GROUP BY ALL.")
    if group.args.get("all"):
        trees = [each for each in columns if not any(is_aggregate(node) for node in each.walk())]
    else:
        listed = [part for each in group.expressions for part in _parts(each)]
        trees = [_key(each, columns, scope) for each in listed]
    keys = [scope.scalar(each) for each in trees if each.find(exp.Column)]  # a constant divides nothing
    return list(dict.fromkeys(keys))


def _parts(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _key(node: exp.Expr, columns: list[exp.Expr], scope: Scope) -> exp.Expr:
    tree = _by_ordinal(node, columns, "GROUP BY") or scope.resolved(node)
    if any(is_aggregate(each) for each in tree.walk()):
        raise refuse(
            "GROUP BY takes columns and expressions of a row, not aggregates.",
            "Take the aggregate out of GROUP BY.",
        )
    return tree


def _by_ordinal(node: exp.Expr, columns: list[exp.Expr], clause: str) -> exp.Expr | None:
    while isinstance(node, exp.Paren):
        node = node.this
    if not (isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit()):
        return None
    position = int(node.this) if len(node.this) < 10 else 0
    if not 1 <= position <= len(columns):
        raise refuse(
            f"{clause} {node.this[:10]} names no column: SELECT has {len(columns)}.", "Count from 1."
        )
    return columns[position - 1]


def _check_distinct(distinct: exp.Expr | None, outputs: tuple[Output, ...], keys: int) -> None:
    """DISTINCT changes nothing where all keys are shown; elsewhere it is refused."""
    if distinct is None:
        return
    plain = {each.expression.name for each in outputs if isinstance(each.expression, Column)}
    if distinct.args.get("on") or not {f"k{i}" for i in range(keys)} <= plain:
        raise refuse(
            "DISTINCT is not supported here.", "GROUP BY gives one row for each key; leave DISTINCT out."
        )


def _order(order: exp.Expr | None, outputs: tuple[Output, ...], results: Results) -> tuple[OrderItem, ...]:
    if order is None:
        return ()
    items: list[OrderItem] = []
    for each in order.expressions:
        if not isinstance(each, exp.Ordered) or each.args.get("with_fill"):
            raise refuse("This form of ORDER BY is not supported.", "Write ORDER BY n DESC.")
        every = isinstance(each.this, exp.Var) and each.this.name.upper() == "ALL"
        expressions = (
            [output.expression for output in outputs] if every else [_ordered(each.this, outputs, results)]
        )
        flags = bool(each.args.get("desc")), bool(each.args.get("nulls_first"))
        items += [OrderItem(expression, *flags) for expression in expressions]
    return tuple(items)


def _ordered(node: exp.Expr, outputs: tuple[Output, ...], results: Results) -> Expression:
    numbered: list[exp.Expr] = [exp.Literal.number(i) for i in range(len(outputs))]
    place = _by_ordinal(node, numbered, "ORDER BY")
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
    if (
        isinstance(value, exp.Literal)
        and not value.is_string
        and value.this.isdigit()
        and len(value.this) < 17
    ):
        return min(int(value.this), _MOST)
    raise refuse(f"{word} takes a whole number.", f"Write {word} 10.")
