"""Aggregates of SQL as those of a plan."""

from __future__ import annotations

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.plan.expressions import Expression, Literal, call, literal
from sfumato.plan.names import in_sql
from sfumato.plan.nodes import AggregateCall, AggregateName
from sfumato.sql.refusals import AGGREGATES, refuse, shown
from sfumato.sql.scope import Scope

__all__ = ["is_aggregate", "parse_aggregate"]

_NAMES: dict[str, AggregateName] = {
    "avg": "mean",
    "mean": "mean",
    "stddev": "std_samp",
    "stddevpop": "std_pop",
    "stddevsamp": "std_samp",
    "sum": "sum",
    "variance": "var_samp",
    "variancepop": "var_pop",
}
_UNKNOWN = {
    "approx_quantile", "arbitrary", "entropy", "fsum", "geomean", "geometric_mean", "histogram", "kahan_sum",
    "list", "mad", "product", "reservoir_quantile", "std", "string_agg", "var", "sum_no_overflow", "sumkahan",
}  # fmt: skip
_FLAGS = {"this", "big_int"}
_WORKS = "COUNT, SUM, AVG, VARIANCE and STDDEV work, with FILTER too."


def is_aggregate(node: exp.Expr) -> bool:
    """Whether this reduces rows to one value, supported or not."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in _UNKNOWN | {"mean"}
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls)


def parse_aggregate(node: exp.Expr, scope: Scope) -> AggregateCall:
    """The aggregate of a plan that this node asks for; FILTER becomes CASE.

    Raises:
        QueryRefused: if it is not supported, with what would work.
    """
    condition: Expression | None = None
    if isinstance(node, exp.Filter):
        where = node.expression.this
        _check_flat(where)
        condition = scope.scalar(where)
        node = node.this
        if not is_aggregate(node) or isinstance(node, exp.Filter):
            raise refuse("FILTER stands after an aggregate.", "Write COUNT(*) FILTER (WHERE condition).")
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        raise _unsupported(node.this, type(node.this).__name__.lower())
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else type(node).__name__.lower()
    for each in _inner(node):
        _check_flat(each)
    if name == "count":
        return _count(node, condition, scope)
    if name == "countif":
        return AggregateCall("count", _only_where(scope.scalar(_argument(node)), literal(1)))
    if name not in _NAMES:
        raise _unsupported(node, name)
    if isinstance(node.this, exp.Distinct):
        raise refuse(
            f"{_shown(node)} with DISTINCT is not supported: it would depend on which rows share a value.",
            "Leave DISTINCT out.",
        )
    argument = scope.scalar(_argument(node))
    return AggregateCall(_NAMES[name], argument if condition is None else _only_where(condition, argument))


def _count(node: exp.Expr, condition: Expression | None, scope: Scope) -> AggregateCall:
    if isinstance(node.this, exp.Distinct):
        return _count_distinct(node.this, condition, scope)
    counted: Expression | None = None
    if node.this is not None and not isinstance(node.this, exp.Star):
        inner = _argument(node)
        if not scope.is_unit(inner):  # rows without a unit are left out anyway
            counted = scope.scalar(inner)
            if isinstance(counted, Literal):
                if counted.value is None:
                    raise refuse("COUNT(NULL) counts nothing.", "Write COUNT(*).")
                counted = None
    elif node.expressions:
        raise _unsupported(node, "count")
    if condition is not None:
        counted = _only_where(condition, literal(1) if counted is None else counted)
    return AggregateCall("count", counted)


def _count_distinct(distinct: exp.Distinct, condition: Expression | None, scope: Scope) -> AggregateCall:
    unit = scope.table.unit.column
    values = distinct.expressions
    if len(values) == 1 and scope.is_unit(values[0]):
        if condition is not None:
            raise refuse("COUNT(DISTINCT …) with FILTER is not supported.", "Put the condition into WHERE.")
        return AggregateCall("count_distinct")
    works = "COUNT(*) with GROUP BY over public keys works."
    if unit is not None:
        works = f"COUNT(DISTINCT {in_sql(unit)}) and COUNT(*) with GROUP BY work."
    raise refuse("COUNT(DISTINCT …) is supported for the privacy unit alone.", works)


def _argument(node: exp.Expr) -> exp.Expr:
    arguments = _inner(node)
    extra = [name for name, value in node.args.items() if value and name not in _FLAGS]
    if isinstance(node, exp.Anonymous):
        extra = []
    if (
        len(arguments) != 1
        or extra
        or isinstance(arguments[0], exp.Order | exp.Star | exp.HavingMax | exp.Distinct)
    ):
        raise refuse(f"{_shown(node)} takes one expression and nothing else.", f"Write {_shown(node)}(x).")
    return arguments[0]


def _inner(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    return [each for each in (node.this, *node.expressions) if isinstance(each, exp.Expr)]


def _check_flat(node: exp.Expr) -> None:
    if any(is_aggregate(each) for each in node.walk()):
        raise refuse("An aggregate stands inside another.", "Aggregate a plain expression of the row.")


def _only_where(condition: Expression, value: Expression) -> Expression:
    return call("case", condition, value, Literal(None, None))


def _unsupported(node: exp.Expr, name: str) -> QueryRefused:
    if name in AGGREGATES:
        return refuse(*AGGREGATES[name])
    return refuse(f"{_shown(node)} is not a supported aggregate.", _WORKS)


def _shown(node: exp.Expr) -> str:
    if typed := node.meta.get("typed"):
        return str(typed)[:40]
    if isinstance(node, exp.Anonymous):
        return shown(str(node.this)).strip("'").upper()
    return node.sql_name()[:40] if isinstance(node, exp.Func) else type(node).__name__.upper()
