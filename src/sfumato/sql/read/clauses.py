"""The clauses that a query and its subqueries share: what SELECT names, what WHERE and GROUP BY ask for."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from sfumato.engines.trees import nodes_of
from sfumato.plan.expressions.names import unused
from sfumato.plan.expressions.tree import Expression
from sfumato.sql.read.aggregates import is_aggregate
from sfumato.sql.read.over import is_over_groups
from sfumato.sql.read.rewrites import inside
from sfumato.sql.read.scope import Scope
from sfumato.sql.refusals import CLAUSES, FORM, NODES, refuse, refused
from sfumato.sql.shape_refusals import WINDOWS
from sfumato.sql.text.statement import LANGUAGE

__all__ = ["by_ordinal", "check", "condition", "derived", "has_aggregate", "key_trees", "selected"]

_REFUSED = tuple(NODES)
_FROM = {"from_", "joins", "with_"}


def check(select: exp.Select, read: Collection[str], *, windows: bool = False, groups: bool = False) -> None:
    """Refuse all clauses and kinds of nodes that are not read further on; FROM is checked where it is read.

    Args:
        select: The query or subquery.
        read: The clauses that it may have, by sqlglot's names.
        windows: Whether it may hold window functions.
        groups: Whether it may hold those over released groups.
    """
    for name, value in select.args.items():
        if value and name not in read:
            raise refused(
                CLAUSES.get(name, (f"{name.strip('_').upper()} is not supported in a query.", FORM))
            )
    parts = [value for name, value in select.args.items() if name not in _FROM]
    joins = [join.args.get("on") for join in select.args.get("joins") or ()]
    for part in (*parts, joins):
        for node in part if isinstance(part, list) else [part]:
            if isinstance(node, exp.Expr):
                _check_nodes(node, windows=windows, groups=groups)


def _check_nodes(tree: exp.Expr, *, windows: bool, groups: bool) -> None:
    for node in nodes_of(tree):
        if (refusal := inside(node)) is not None:
            raise refusal
        if isinstance(node, exp.EQ | exp.NEQ) and exp.Null in map(type, (node.this, node.expression)):
            raise refuse("A comparison with NULL is never true.", "Write IS NULL, or IS NOT NULL.")
        if not windows and isinstance(node, exp.Window) and _over_results(node):
            if groups and is_over_groups(node):
                continue
            raise refused(WINDOWS["results"])
        for kind, sentences in NODES.items() if isinstance(node, _REFUSED) else ():
            if isinstance(node, kind) and not (windows and kind is exp.Window):
                raise refused(sentences)


def _over_results(window: exp.Window) -> bool:
    """Whether a window looks at groups, not at rows."""
    around = window.find_ancestor(exp.Select)
    return around is not None and around.args.get("group") is not None


def has_aggregate(tree: exp.Expr) -> bool:
    """Whether rows are reduced somewhere in it; a window function reduces none."""
    nodes = nodes_of(tree)
    if not any(map(is_aggregate, nodes)):
        return False
    within = [node for node in nodes if isinstance(node, exp.Window)]
    inside = {id(node) for window in within for node in nodes_of(window)}
    return any(is_aggregate(node) and id(node) not in inside for node in nodes)


def selected(select: exp.Select, scope: Scope, *, star: bool = False) -> list[tuple[str, exp.Expr]]:
    """The names and resolved trees of SELECT's columns.

    Args:
        select: The query.
        scope: What names mean; learns the aliases.
        star: Whether `*` means all columns.
    """
    columns: list[tuple[str, exp.Expr]] = []
    taken: dict[str, int] = {}
    for position, expression in enumerate(select.expressions, start=1):
        inner = expression.this if isinstance(expression, exp.Alias) else expression
        if star and (table := _starred(inner)) is not None:
            columns += [(unused(name, taken), tree) for name, tree in _all(inner, table, scope)]
            continue
        if isinstance(inner, exp.Star):
            raise scope.starred()
        tree = scope.resolved(inner)
        name = expression.alias if isinstance(expression, exp.Alias) else derived(inner, position, scope)
        columns.append((unused(name, taken), tree))
        if isinstance(expression, exp.Alias):
            scope.name(expression.alias, tree)
    return columns


def _starred(node: exp.Expr) -> str | None:
    """The table whose columns `table.*` means, '' for all of them; None for anything else."""
    if isinstance(node, exp.Star):
        return ""
    return node.table if isinstance(node, exp.Column) and isinstance(node.this, exp.Star) else None


def _all(node: exp.Expr, table: str, scope: Scope) -> list[tuple[str, exp.Expr]]:
    star = node.this if isinstance(node, exp.Column) else node
    if any(star.args.values()):
        raise refuse("* takes no EXCLUDE, REPLACE or RENAME here.", "Name the columns.")
    columns = [column for column in scope.relation.columns if not column.hidden]
    if table:
        alias = scope.relation.aliases.get(table.lower())
        columns = [column for column in scope.relation.columns if column.table == alias]
        if not columns:
            reason = f"There is no table {table[:40]!r} in FROM."
            raise refuse(reason, "Write * for all columns.").about("table")
    usable = [column for column in columns if column.meaning is not None or column.is_unit]
    return [(column.name, scope.node(column)) for column in usable]


def derived(node: exp.Expr, position: int, scope: Scope) -> str:
    """What a column without AS is called."""
    if isinstance(node, exp.Column):
        declared = {column.name.lower(): column.name for column in scope.relation.columns}
        return declared.get(node.name.lower(), node.name)
    try:
        text = node.sql(LANGUAGE, normalize_functions="lower", comments=False)
    except Exception:  # a name is not worth a failure
        text = ""
    return text if 0 < len(text) <= 60 else f"column_{position}"


def condition(where: exp.Expr | None, scope: Scope) -> Expression | None:
    """What WHERE asks of single rows."""
    if where is None:
        return None
    resolved = scope.resolved(where.this)
    if has_aggregate(resolved):
        raise refuse(
            "WHERE judges single rows and cannot hold an aggregate.", "Move the condition to HAVING."
        )
    if any(isinstance(node, exp.Window) for node in nodes_of(resolved)):
        raise refuse(
            "WHERE comes before window functions.", "Put the condition on them into QUALIFY or outside."
        )
    return scope.scalar(resolved)  # that it is a condition is seen to where it is put to use


def key_trees(group: exp.Expr | None, columns: list[exp.Expr], scope: Scope) -> list[exp.Expr]:
    """The resolved grouping expressions, units among them."""
    if group is None:
        return []
    if group.args.get("totals"):
        raise refuse("WITH TOTALS is not supported.", "Ask for the total as a query of its own.")
    if not group.args.get("all") and not group.expressions:
        raise refuse("GROUP BY names nothing.", "Name columns, or write GROUP BY ALL.")
    if group.args.get("all"):
        trees = [tree for tree in columns if not has_aggregate(tree) and not tree.find(exp.Window)]
    else:
        listed = [part for item in group.expressions for part in _parts(item)]
        trees = [_key(node, columns, scope) for node in listed]
    return [tree for tree in trees if tree.find(exp.Column)]  # a constant divides nothing


def _parts(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _key(node: exp.Expr, columns: list[exp.Expr], scope: Scope) -> exp.Expr:
    tree = by_ordinal(node, columns, "GROUP BY") or scope.resolved(node)
    if has_aggregate(tree) or tree.find(exp.Window):
        raise refuse(
            "GROUP BY takes columns and expressions of a row, not aggregates.",
            "Take the aggregate out of GROUP BY.",
        )
    return tree


def by_ordinal(node: exp.Expr, columns: list[exp.Expr], clause: str) -> exp.Expr | None:
    """The column of SELECT that a number means; None if this is not a number."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not (isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit()):
        return None
    position = int(node.this) if len(node.this) < 10 else 0
    if not 1 <= position <= len(columns):
        raise refuse(
            f"{clause} {node.this[:10]} names no column: SELECT has {len(columns)}.",
            f"Write {'1' if len(columns) == 1 else f'a number from 1 to {len(columns)}'}, or a name.",
        )
    return columns[position - 1]
