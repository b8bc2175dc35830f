"""Scalar SQL to expressions of the closed list: names, constants, operators, CASE and plain functions."""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.functions import FUNCTIONS
from sfumato.plan.expressions.names import in_sql, nearest
from sfumato.plan.expressions.size import check_text
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, call, literal
from sfumato.plan.questions.aggregates import statistics
from sfumato.sql.refusals import FUNCTIONS as FOREIGN
from sfumato.sql.text.listed import Listed, listed_in

__all__ = [
    "HANDLERS",
    "Handler",
    "Parser",
    "callable_names",
    "closed",
    "exact",
    "number",
    "unknown",
    "unknown_around",
]

_DEPTH = 100  # levels of nesting
_LONGEST_TEXT = 10_000  # characters of a text constant

# Marks that say how sqlglot read a function, not what it means in this dialect.
_FLAGS = {"typed", "safe", "ignore_nulls", "coalesce", "date_part_boundary", "big_int"}

Handler: TypeAlias = Callable[["Parser", Any, int], Expression]


class Parser:
    """Reads one tree; every handler gives an expression or refuses."""

    def __init__(self, columns: Collection[str], handlers: Mapping[str, Handler]) -> None:
        self.columns = tuple(columns)
        self.handlers = handlers
        self.folded = {name.lower(): name for name in columns}

    def parse(self, node: Any, depth: int) -> Expression:
        """The expression that a node denotes."""
        if depth > _DEPTH:
            raise QueryRefused(
                "The expression is nested too deeply.", f"At most {_DEPTH} levels are supported."
            )
        name = type(node).__name__
        if (handler := self.handlers.get(name)) is not None:
            return handler(self, node, depth + 1)
        if (known := _NODES_TO_FUNCTIONS.get(name)) is not None:
            function, names = known
            arguments = tuple(self.parse(argument, depth + 1) for argument in _arguments_of(node, names))
            return exact(function, arguments) or Call(function, arguments)
        raise unknown(node)

    def column(self, node: exp.Column) -> Column:
        """The column with its declared spelling: unquoted names match in any case."""
        name = node.name
        spelling = name if name in self.columns else None
        if spelling is None and not node.this.args.get("quoted"):
            spelling = self.folded.get(name.lower())
        if spelling is None:
            fix = nearest(name, list(map(in_sql, self.columns)), "Columns")
            raise QueryRefused(f"There is no column {name[:60]!r}.", fix).about("column")
        return Column(spelling)


_ARITHMETIC = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}


def exact(function: str, arguments: tuple[Expression, ...]) -> Literal | None:
    """Arithmetic of written decimals, exact as SQL has it: 0.06 + 0.01 is 0.07; None for anything else.

    None too for a result beyond all floats: the engine works that out, as it does for columns. Texts that are
    put together are one text: patterns are often written as '%' || 'some' || '%'.
    """
    if function == "append":
        return _joined(arguments)
    numbers = [
        argument.value for argument in arguments if isinstance(argument, Literal) and argument.kind == "float"
    ]
    if function not in _ARITHMETIC or len(arguments) != 2 or not numbers:
        return None
    parts = []
    for argument in arguments:
        if not isinstance(argument, Literal) or argument.kind not in ("integer", "float"):
            return None
        parts.append(Fraction(repr(argument.value)))
    try:
        return literal(float(_ARITHMETIC[function](*parts)))
    except OverflowError:
        return None


def _joined(arguments: tuple[Expression, ...]) -> Literal | None:
    texts = [one.value for one in arguments if isinstance(one, Literal) and isinstance(one.value, str)]
    if len(texts) < len(arguments) or sum(map(len, texts)) > _LONGEST_TEXT:
        return None
    return literal("".join(texts))


def _arguments_of(node: exp.Expr, names: tuple[str, ...]) -> list[exp.Expr]:
    """The arguments of these names, in order; refuses a node with others."""
    closed(node, {name.lstrip("*") for name in names})
    arguments: list[exp.Expr] = []
    for name in names:
        value = node.args.get(name.lstrip("*"))
        arguments += value if isinstance(value, list) else [] if value is None else [value]
    return arguments


def closed(node: exp.Expr, allowed: Collection[str]) -> None:
    """Refuse a node with parts that we do not read."""
    for name, value in node.args.items():
        if name not in allowed and name not in _FLAGS and value not in (None, False, []):
            raise QueryRefused(f"{_shown(node)} is not supported in this form.", "Use its plain form.")


def _shown(node: exp.Expr) -> str:
    if typed := node.meta.get("typed"):
        return str(typed)[:60]
    if isinstance(node, exp.Anonymous):
        return str(node.this)[:60].upper()
    if isinstance(node, exp.Func):
        return node.sql_name()[:60]
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__)


def unknown(node: Any) -> QueryRefused:
    """The refusal of a node without a rule, with the nearest thing that has one."""
    if isinstance(node, exp.AggFunc):
        return QueryRefused(
            f"{_shown(node)} is an aggregate, which is not allowed here.", "Move it to SELECT."
        )
    if isinstance(node, exp.Query | exp.Subquery):
        return QueryRefused("A subquery inside an expression is not supported.", "Write its values out.")
    if not isinstance(node, exp.Func):
        name = _shown(node) if isinstance(node, exp.Expr) else "This"
        return QueryRefused(f"{name} is not supported in an expression.", _GUIDE)
    name = _shown(node)
    near = difflib.get_close_matches(name.upper(), [*_SPELT, *_AGGREGATES], 1, cutoff=_ALIKE)
    fix = f"Did you mean {near[0]}?" if near else _GUIDE
    return QueryRefused(f"{name} is not a supported function.", FOREIGN.get(name.upper(), fix)).about(
        "function"
    )


def unknown_around(node: exp.Expr, handlers: Collection[str]) -> QueryRefused | None:
    """The refusal of the innermost unknown function around a node, if there is one.

    Args:
        node: A part of a tree.
        handlers: The kinds of nodes that are read in a way of their own.
    """
    above = node.parent
    while above is not None:
        name = type(above).__name__
        named = isinstance(above, exp.Anonymous) and str(above.this).upper() not in _SPELT
        if isinstance(above, exp.Func) and (
            named or not (isinstance(above, exp.AggFunc) or name in handlers or name in _NODES_TO_FUNCTIONS)
        ):
            return unknown(above)
        above = above.parent
    return None


_AGGREGATES = sorted({"COUNT_IF"}.union(*(statistic.spelled for statistic in statistics().values())))
_ALIKE = 0.8  # as LENGHT is to LENGTH; NOW is not like POW
_GUIDE = "`sfumato functions` lists what is supported, as does docs/sql.md#functions."
# What analysts write, for suggestions; the operators have no name.
_SPELT = sorted(
    {name.upper() for function in FUNCTIONS.values() for name in function.names}
    | {
        name
        for function in FUNCTIONS.values()
        for node in function.nodes
        if issubclass(kind := getattr(exp, node), exp.Func) and not issubclass(kind, exp.Binary | exp.Unary)
        for name in kind.sql_names()
    }
    | {
        "CAST",
        "DATE_DIFF",
        "DATE_PART",
        "DATE_TRUNC",
        "EXTRACT",
        "IF",
        "LIKE",
        "LOG10",
        "LOG2",
        "LTRIM",
        "MAKE_DATE",
    }
    | {"MOD", "POWER", "RTRIM", "TRIM", "TRY_CAST"}
)


def callable_names() -> list[str]:
    """The functions and aggregates that a question may call, by the names that people write."""
    return sorted({*_SPELT, *(name.upper() for name in _AGGREGATES)})


def _literal(_: Parser, node: exp.Literal, __: int) -> Expression:
    if node.is_string:
        return _text(node.this)
    if listed_in(node) is not None:  # behind an IN that looks for no value, such as POSITION's
        raise unknown(exp.Tuple())
    return number(node.this)


def _text(text: str) -> Literal:
    check_text(text)
    return literal(text)


def number(text: str) -> Literal:
    """A number as it is written."""
    if len(text) <= 40 and text.isascii():
        if text.isdigit():
            value = int(text)
            return literal(value if value < 2**63 else float(value))
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return literal(number)
    raise QueryRefused(
        "A number is not understood.", "Write it as 12, 1.5 or 1e6, with at most 40 characters."
    )


def _negative(parser: Parser, node: exp.Neg, depth: int) -> Expression:
    inner = parser.parse(node.this, depth)
    if isinstance(inner, Literal) and isinstance(inner.value, int | float) and inner.kind != "boolean":
        return literal(-inner.value)
    return call("negate", inner)


def _is(parser: Parser, node: exp.Is, depth: int) -> Expression:
    value = parser.parse(node.this, depth)
    if isinstance(node.expression, exp.Null):
        return call("is_null", value)
    if isinstance(node.expression, exp.Boolean):
        return call("is_not_distinct", value, literal(bool(node.expression.this)))
    raise QueryRefused("IS takes NULL, TRUE or FALSE.", "Write = or <> to compare values.")


def _between(parser: Parser, node: exp.Between, depth: int) -> Expression:
    closed(node, ("this", "low", "high"))
    value, low, high = (parser.parse(node.args[name], depth) for name in ("this", "low", "high"))
    return call("and", call("greater_equal", value, low), call("less_equal", value, high))


def _in(parser: Parser, node: exp.In, depth: int) -> Expression:
    if node.args.get("query") is not None or node.args.get("unnest") is not None:
        raise QueryRefused("IN takes a list of constants, not a subquery.", "Write the values out.")
    closed(node, ("this", "expressions"))
    value = parser.parse(node.this, depth)
    options: list[Expression] = []
    for option in node.expressions:
        constants = listed_in(option)
        options += [parser.parse(option, depth)] if constants is None else _constants(constants)
    if not options or not all(isinstance(option, Literal) and option.value is not None for option in options):
        raise QueryRefused("IN takes a list of constants other than NULL.", "Write x = a OR x = b.")
    return Call("in", (value, *options))


def _constants(listed: Listed) -> list[Literal]:
    """The constants of a long list; what each of them would be alone."""
    constants = listed.constants
    if (
        "".join(constants).isdigit() and max(map(len, constants)) < 19
    ):  # the usual list, which fits in 64 bits
        return [Literal(int(written), "integer") for written in constants]
    return [_constant(written) for written in constants]


def _constant(written: str) -> Literal:
    if written[0] == "'":
        return _text(written[1:-1].replace("''", "'"))
    if written[0] != "-":
        return number(written)
    value = number(written[1:]).value
    assert isinstance(value, int | float)
    return literal(-value)


def _chain(function: str, kind: type[exp.Expr]) -> Callable[[Parser, Any, int], Expression]:
    def handler(parser: Parser, node: exp.Expr, depth: int) -> Expression:
        parts: list[Expression] = []
        waiting: list[exp.Expr] = [node]
        while waiting:  # a chain of a thousand conditions is no deeper than one
            tree = waiting.pop()
            while isinstance(tree, exp.Paren):
                tree = tree.this
            if isinstance(tree, kind):
                waiting += [tree.expression, tree.this]
                continue
            parsed = parser.parse(tree, depth)
            nested = isinstance(parsed, Call) and parsed.function == function  # BETWEEN is an AND
            parts += parsed.arguments if isinstance(parsed, Call) and nested else [parsed]
        return Call(function, tuple(parts))

    return handler


def _case(parser: Parser, node: exp.Case, depth: int) -> Expression:
    closed(node, ("this", "ifs", "default"))
    subject = None if node.this is None else parser.parse(node.this, depth)
    parts: list[Expression] = []
    for branch in node.args["ifs"]:
        condition = parser.parse(branch.this, depth)
        parts.append(condition if subject is None else call("equal", subject, condition))
        parts.append(parser.parse(branch.args["true"], depth))
    default = node.args.get("default")
    parts.append(Literal(None, None) if default is None else parser.parse(default, depth))
    return Call("case", tuple(parts))


def _if(parser: Parser, node: exp.If, depth: int) -> Expression:
    closed(node, ("this", "true", "false"))
    default = node.args.get("false")
    return call(
        "case",
        parser.parse(node.this, depth),
        parser.parse(node.args["true"], depth),
        Literal(None, None) if default is None else parser.parse(default, depth),
    )


def _column(parser: Parser, node: exp.Column, _: int) -> Expression:
    if node.args.get("db") is not None or not isinstance(node.this, exp.Identifier):
        raise QueryRefused("A column is written as name or table.name.", "Leave out the schema.")
    return parser.column(node)


def _paren(parser: Parser, node: exp.Paren, depth: int) -> Expression:
    return parser.parse(node.this, depth)


def _boolean(_: Parser, node: exp.Boolean, __: int) -> Expression:
    return literal(bool(node.this))


def _null(_: Parser, __: exp.Null, ___: int) -> Expression:
    return Literal(None, None)


HANDLERS: dict[str, Handler] = {
    "And": _chain("and", exp.And),
    "Between": _between,
    "Boolean": _boolean,
    "Case": _case,
    "Column": _column,
    "If": _if,
    "In": _in,
    "Is": _is,
    "Literal": _literal,
    "Neg": _negative,
    "Null": _null,
    "Or": _chain("or", exp.Or),
    "Paren": _paren,
}
_NODES_TO_FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    node: (function.name, names) for function in FUNCTIONS.values() for node, names in function.nodes.items()
}
