"""The nearest query that could be answered, for one that asks for rows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from sfumato.engines.trees import nodes_of
from sfumato.plan.expressions.facts import Facts, domain_of, size_of
from sfumato.sql.read.aggregates import is_aggregate
from sfumato.sql.read.clauses import has_aggregate
from sfumato.sql.read.expressions import unknown_function
from sfumato.sql.read.scope import Scope
from sfumato.sql.refusals import refuse
from sfumato.sql.text.statement import LANGUAGE

__all__ = ["check_aggregated"]

_LONGEST = 180
_KEYS = 3
_DROPPED = ("distinct", "having", "order", "limit", "offset")


def check_aggregated(
    select: exp.Select,
    columns: Sequence[tuple[str, exp.Expr]],
    scope: Scope,
    accepted: Callable[[str], bool],
) -> None:
    """Refuse a query without an aggregate, with one that has the same columns as groups.

    Args:
        select: The query.
        columns: What it selects, resolved.
        scope: What names mean.
        accepted: Whether a text would be answered: nothing else is advised.

    Raises:
        QueryRefused: if nothing is aggregated anywhere.
    """
    clauses = [select.args.get(name) for name in ("having", "order")]
    asked = [tree for _, tree in columns] + [
        scope.resolved(clause, alias_first=True) for clause in clauses if clause
    ]
    windows = [node for tree in asked for node in nodes_of(tree) if isinstance(node, exp.Window)]
    if any(map(has_aggregate, asked)) or any(map(_ranks_aggregate, windows)):
        return
    trees = [tree for _, tree in columns]
    for node in (column for tree in trees for column in tree.find_all(exp.Column)):
        if (unknown := unknown_function(node)) is not None:
            raise unknown
    example = None
    with contextlib.suppress(Exception):  # an example is not worth a failure
        examples = (text for text in _examples(select, trees, scope) if len(text) <= _LONGEST)
        example = next(filter(accepted, examples), None)
    advice = f"Write {example}." if example else "Add one, such as COUNT(*), with GROUP BY where needed."
    raise refuse("The query has no aggregate, and single rows are never shown.", advice)


def _ranks_aggregate(window: exp.Window) -> bool:
    """Whether an aggregate is inside a window function: what it sums, or its order."""
    inner = [node for node in window.walk() if node is not window.this]
    return any(is_aggregate(node) for node in inner)


def _examples(select: exp.Select, trees: Sequence[exp.Expr], scope: Scope) -> Iterator[str]:
    """The same query with its columns as keys and a figure, then with fewer keys, at last with a count."""
    pairs = list(zip(select.expressions, trees, strict=True))
    units = [expression.unalias() for expression, tree in pairs if scope.is_unit(tree)]
    known = [
        (expression.unalias(), tree, scope.facts[tree.name])
        for expression, tree in pairs
        if isinstance(tree, exp.Column) and tree.name in scope.facts
    ]
    keys = [
        expression
        for expression, tree, facts in known
        if not _is_figure(facts) and not scope.relation.tells_unit([scope.scalar(tree)])
    ]
    numbers = [expression for expression, _, facts in known if _is_figure(facts) and facts.lower is not None]
    for count in range(min(len(keys), _KEYS), -1, -1):
        figure: exp.Expr = exp.Count(this=exp.Star())
        if numbers:
            figure = exp.Avg(this=numbers[0].copy())
        elif not count and units:
            figure = exp.Count(this=exp.Distinct(expressions=[units[0].copy()]))
        yield _grouped(select, keys[:count], figure)
    yield _grouped(select, [], exp.Count(this=exp.Star()))


def _is_figure(facts: Facts) -> bool:
    """Whether a column is to be averaged rather than grouped by: fractions, and numbers of a wide range."""
    return facts.kind == "float" or (
        facts.kind == "integer" and domain_of(facts) is None and size_of(facts) is not None
    )


def _grouped(select: exp.Select, keys: Sequence[exp.Expr], figure: exp.Expr) -> str:
    query = select.copy()
    for clause in _DROPPED:
        query.set(clause, None)
    query.set("expressions", [*(key.copy() for key in keys), figure])
    query.set("group", exp.Group(expressions=[key.copy() for key in keys]) if keys else None)
    return query.sql(LANGUAGE, comments=False)
