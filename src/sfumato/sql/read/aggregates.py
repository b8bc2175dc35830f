"""Aggregates of SQL as those of a plan."""

from __future__ import annotations

import functools
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from sfumato.engines.trees import nodes_of
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.numeric.exact import as_fraction
from sfumato.plan.expressions.names import in_sql
from sfumato.plan.expressions.tree import Expression, Literal, call, literal
from sfumato.plan.questions.aggregates import Statistic, statistic, statistics
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.plan.questions.terms import shorter_level
from sfumato.sql.read.expressions import constant_of
from sfumato.sql.read.scope import Scope
from sfumato.sql.refusals import AGGREGATES, refuse, shown

__all__ = ["is_aggregate", "parse_aggregate"]

_QUANTILES = {"approxquantile", "median", "percentilecont", "percentiledisc", "quantile"}
_READ_APART = {"count", "quantile"}  # whose arguments are written in several ways
_SAME_WITH_DISTINCT = {"max", "min"}
_UNKNOWN = {
    "approx_quantile", "arbitrary", "average", "count_distinct", "countdistinct", "covariance_pop",
    "covariance_samp", "entropy", "fsum", "histogram", "kahan_sum", "list",
    "mad", "nunique", "percentile", "percentile_approx", "product", "reservoir_quantile", "std",
    "stdevp", "string_agg", "sum_no_overflow", "sumkahan", "total", "var",
}  # fmt: skip
_FLAGS = {"this", "big_int"}
_REDUCING = (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_WORKS = (
    "COUNT, SUM, AVG, VARIANCE, STDDEV, MIN, MAX, MEDIAN, QUANTILE, CORR and COVAR_SAMP work, with FILTER."
)


_NESTED = (
    "An aggregate is inside another.",
    "Aggregate a plain expression, or the figures of each person: SELECT AVG(m) FROM (SELECT {unit}, MAX(x) "
    "AS m FROM … GROUP BY {unit}).",
)


@functools.cache
def _named() -> dict[str, Statistic]:
    """The aggregates that are called like functions, by what sqlglot makes of their names."""
    return {
        _node(name): kind
        for kind in statistics().values()
        if kind.name not in _READ_APART
        for name in kind.spelled
    }


def _node(name: str) -> str:
    known = exp.FUNCTION_BY_NAME.get(name)
    return name.lower() if known is None else known.__name__.lower()


def is_aggregate(node: exp.Expr) -> bool:
    """Whether this reduces rows to one value, supported or not."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in _UNKNOWN | _named().keys()
    return isinstance(node, _REDUCING)


def parse_aggregate(node: exp.Expr, scope: Scope) -> AggregateCall:
    """The aggregate of a plan that this node asks for; FILTER becomes CASE.

    Bounds that the reader of a dialect found beside the node (`node.meta["bounds"]`) go with it.

    Raises:
        QueryRefused: if it is not supported, with what would work.
    """
    condition: Expression | None = None
    if isinstance(node, exp.Filter):
        where = node.expression.this
        _check_flat(where, scope)
        condition = scope.scalar(where)
        node = node.this
        if not is_aggregate(node) or isinstance(node, exp.Filter):
            raise refuse("FILTER goes after an aggregate.", "Write COUNT(*) FILTER (WHERE condition).")
    order: exp.Expr | None = None
    if isinstance(node, exp.WithinGroup):
        node, order = node.this, node.expression
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        raise _unsupported(node.this, type(node.this).__name__.lower())
    return _bounded(_read(node, order, condition, scope), node)


def _read(
    node: exp.Expr, order: exp.Expr | None, condition: Expression | None, scope: Scope
) -> AggregateCall:
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else type(node).__name__.lower()
    for argument in _inner(node):
        _check_flat(argument, scope)
    if order is not None and name not in _QUANTILES - {"median"}:
        raise refuse(f"WITHIN GROUP does not go with {_shown(node)}.", _WITHIN)
    if name == "count":
        return _count(node, condition, scope)
    if name == "countif":
        holds = scope.scalar(_argument(node))
        return AggregateCall("count", _only(condition, _only(holds, literal(1))))
    if name == "approxdistinct":
        return AggregateCall("count_values", _only(condition, scope.scalar(_argument(node))))
    if name in _QUANTILES:
        inner, level = _quantile(node, name, order, scope)
        return AggregateCall("quantile", _only(condition, scope.scalar(inner)), level=level)
    if name not in _named():
        raise _unsupported(node, name)
    function = _named()[name].name
    if _named()[name].arity > 1:
        first, second = _two(node)
        return AggregateCall(function, _only(condition, scope.scalar(first)), scope.scalar(second))
    if isinstance(node.this, exp.Distinct):
        if name not in _SAME_WITH_DISTINCT or len(node.this.expressions) != 1:
            raise refuse(
                f"{_shown(node)} with DISTINCT is not supported: it depends on which rows share a value.",
                "Leave DISTINCT out.",
            )
        return AggregateCall(function, _only(condition, scope.scalar(node.this.expressions[0])))
    return AggregateCall(function, _only(condition, scope.scalar(_argument(node))))


def _bounded(asked: AggregateCall, node: exp.Expr) -> AggregateCall:
    bounds = node.meta.get("bounds")
    if bounds is None:
        return asked
    kind, lower, upper = bounds
    if statistic(asked.function).bounds is None:
        raise refuse(f"{_shown(node)} takes no contribution bounds.", "Leave them out.")
    if lower > upper:
        raise refuse(
            f"The contribution bounds of {_shown(node)} are in the wrong order.", "Write the lower first."
        )
    return replace(asked, bounds=(kind, Fraction(lower), Fraction(upper)))


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
        counted = _only(condition, literal(1) if counted is None else counted)
    return AggregateCall("count", counted)


def _count_distinct(distinct: exp.Distinct, condition: Expression | None, scope: Scope) -> AggregateCall:
    values = distinct.expressions
    if len(values) != 1 or isinstance(values[0], exp.Tuple | exp.Star):
        names = [in_sql(value.name) for value in values if isinstance(value, exp.Column)]
        parts = names if len(names) == len(values) > 1 else ["a", "b"]
        example = " || '/' || ".join(parts)
        raise refuse(
            "COUNT(DISTINCT …) takes one expression.", f"Put them together: COUNT(DISTINCT {example})."
        )
    if scope.is_unit(values[0]):
        if condition is not None:
            raise refuse(
                "COUNT(DISTINCT …) of the privacy unit with FILTER is not supported.",
                "Put the condition into WHERE.",
            )
        return AggregateCall("count_distinct")
    counted = scope.scalar(values[0])
    if isinstance(counted, Literal):
        raise refuse("COUNT(DISTINCT …) of a constant counts nothing.", "Name a column.")
    return AggregateCall("count_values", _only(condition, counted))


# ── quantiles ──

_WITHIN = "Write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)."


def _quantile(node: exp.Expr, name: str, order: exp.Expr | None, scope: Scope) -> tuple[exp.Expr, Fraction]:
    """The argument of a quantile and its level."""
    if name == "median":
        return _argument(node), Fraction(1, 2)
    second = "expression" if name.startswith("percentile") else "quantile"
    level = node.args.get(second)
    extra = [given for given, value in node.args.items() if value and given not in {"this", second}]
    if order is None:
        if level is None or extra or _is_odd(node.this):
            raise refuse(
                f"{_shown(node)} takes an expression and a level between 0 and 1.",
                f"Write QUANTILE_CONT(x, 0.5), or {_WITHIN[6:]}",
            )
        return node.this, _level(level)
    if level is not None or extra:
        raise refuse(f"With WITHIN GROUP, {_shown(node)} takes the level alone.", _WITHIN)
    ordered = order.expressions[0] if len(order.expressions) == 1 else None
    if not isinstance(ordered, exp.Ordered) or ordered.args.get("with_fill"):
        raise refuse("WITHIN GROUP takes one expression to order by.", _WITHIN)
    _check_flat(ordered.this, scope)
    asked_level = _level(node.this)
    return ordered.this, 1 - asked_level if ordered.args.get("desc") else asked_level


def _level(node: exp.Expr) -> Fraction:
    if isinstance(node, exp.Array | exp.Tuple | exp.List):
        raise refuse(
            "A list of levels is not supported.",
            "Ask for one column each, QUANTILE_CONT(x, 0.25) and so on; they are measured together.",
        )
    level = _number(node)
    if level is None or not 0 <= level <= 1:
        raise refuse("The level of a quantile must be a number between 0 and 1.", "Write 0.5 for the median.")
    if (nearest := shorter_level(level)) is not None:
        raise refuse("The level of a quantile has at most nine digits.", f"Write {nearest}.")
    return level


def _number(node: exp.Expr) -> Fraction | None:
    """The exact value of a constant as it is written; None for anything else."""
    if isinstance(node, exp.Paren):
        return _number(node.this)
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Div):
        above, below = _number(node.this), _number(node.expression)
        return None if above is None or not below else above / below
    if isinstance(node, exp.Cast):
        constant = constant_of(node)
        number = None if constant is None or constant.kind not in ("integer", "float") else constant.value
        return None if number is None else as_fraction(str(number), "level")
    if not isinstance(node, exp.Literal) or node.is_string or len(node.this) > 40:
        return None
    try:
        return as_fraction(node.this, "level")
    except InvalidParameter:
        return None


# ── the parts of a call ──


def _argument(node: exp.Expr) -> exp.Expr:
    arguments = _inner(node)
    extra = [name for name, value in node.args.items() if value and name not in _FLAGS]
    if isinstance(node, exp.Anonymous):
        extra = []
    if len(arguments) != 1 or extra or _is_odd(arguments[0]):
        first = next(
            (in_sql(argument.name) for argument in arguments if isinstance(argument, exp.Column)), "x"
        )
        raise refuse(
            f"{_shown(node)} takes one expression and nothing else.", f"Write {_shown(node)}({first})."
        )
    return arguments[0]


def _two(node: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    first, second = node.this, node.args.get("expression")
    extra = [name for name, value in node.args.items() if value and name not in {"this", "expression"}]
    if second is None or extra or _is_odd(first) or _is_odd(second):
        raise refuse(f"{_shown(node)} takes two expressions.", f"Write {_shown(node)}(y, x).")
    return first, second


def _is_odd(node: exp.Expr | None) -> bool:
    return node is None or isinstance(node, exp.Order | exp.Star | exp.HavingMax | exp.Distinct)


def _inner(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    listed = (node.this, node.args.get("expression"), *node.expressions)
    return [part for part in listed if isinstance(part, exp.Expr)]


def _check_flat(node: exp.Expr, scope: Scope) -> None:
    if any(map(is_aggregate, nodes_of(node))):
        raise scope.relation.refused(_NESTED)


def _only(condition: Expression | None, value: Expression) -> Expression:
    """The value where the condition holds, else NULL, which no aggregate counts."""
    return value if condition is None else call("case", condition, value, Literal(None, None))


def _unsupported(node: exp.Expr, name: str) -> QueryRefused:
    if name not in AGGREGATES:
        return refuse(f"{_shown(node)} is not a supported aggregate.", _WORKS)
    reason, fix = AGGREGATES[name]
    first, second = [*_inner(node), None, None][:2]
    names = {"y": first, "x": second} if "{y}" in fix else {"x": first}
    columns = {
        name: in_sql(argument.name) for name, argument in names.items() if isinstance(argument, exp.Column)
    }
    level = _number(second) if second is not None else None
    if level is not None and 1 < level <= 100:
        level /= 100
    share = f"{float(level):.6g}" if level is not None and 0 <= level <= 1 else "0.95"
    known = columns if len(columns) == len(names) else {}
    return QueryRefused(reason, fix, **{"x": "x", "y": "y"} | known, level=share)


def _shown(node: exp.Expr) -> str:
    if typed := node.meta.get("typed"):
        return str(typed)[:40]
    if isinstance(node, exp.Anonymous):
        return shown(str(node.this)).strip("'").upper()
    return node.sql_name()[:40] if isinstance(node, exp.Func) else type(node).__name__.upper()
