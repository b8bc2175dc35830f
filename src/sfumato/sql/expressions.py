"""Scalar SQL to expressions of the closed list, and from these to a statement generated afresh.

Nothing of the analyst's text or syntax tree is reused: what is parsed becomes our own values, and what is generated
is built from the templates of `plan.functions`, with constants and names as nodes of their own.
"""

from __future__ import annotations

import datetime
import difflib
import functools
import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import sqlglot
from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.plan.expressions import Call, Column, Expression, Literal, call, literal
from sfumato.plan.facts import Facts, column_facts, resolve
from sfumato.plan.functions import FUNCTIONS
from sfumato.schema import ColumnType

__all__ = ["lower_expression", "parse_expression"]

_DEPTH = 100  # levels of nesting
_NODES = 50_000  # of a generated tree
_LENGTH = 10_000  # characters of a text constant

# Marks that say how sqlglot read a function, not what it means in this dialect.
_FLAGS = {"typed", "safe", "ignore_nulls", "coalesce", "date_part_boundary", "big_int"}


def parse_expression(
    node: exp.Expression, columns: Collection[str] | Mapping[str, ColumnType] | Mapping[str, Facts]
) -> Expression:
    """The expression that a sqlglot node of DuckDB's dialect denotes.

    Args:
        node: A scalar expression. Aggregates must have been replaced by columns before.
        columns: The names it may use. Given with their types or facts, overloaded functions are told apart too
            (`day + 1`), as `plan.facts.resolve` does.

    Raises:
        QueryRefused: for everything that has no proven rule, with the nearest thing that would work.
    """
    parsed = _Parser(columns).parse(node, 0)
    if isinstance(columns, Mapping) and columns:
        known = {
            name: each if isinstance(each, Facts) else column_facts(each)
            for name, each in columns.items()
            if isinstance(each, Facts | ColumnType)
        }
        return resolve(parsed, known)
    return parsed


class _Parser:
    """Reads one tree; every handler gives an expression or refuses."""

    def __init__(self, columns: Collection[str]) -> None:
        self.columns = tuple(columns)
        self.folded = {name.lower(): name for name in columns}

    def parse(self, node: Any, depth: int) -> Expression:
        if depth > _DEPTH:
            raise QueryRefused(
                "The expression is nested too deeply.", f"At most {_DEPTH} levels are supported."
            )
        name = type(node).__name__
        if (handler := _HANDLERS.get(name)) is not None:
            return handler(self, node, depth + 1)
        if (known := _NODES_TO_FUNCTIONS.get(name)) is not None:
            function, names = known
            return Call(function, tuple(self.parse(each, depth + 1) for each in _arguments(node, names)))
        raise _unknown(node)

    def column(self, node: exp.Column) -> Column:
        name = node.name
        found = name if name in self.columns else None
        if found is None and not node.this.args.get("quoted"):
            found = self.folded.get(name.lower())
        if found is None:
            near = difflib.get_close_matches(name.lower(), self.folded, 1)
            fix = (
                f"Did you mean {self.folded[near[0]]!r}?"
                if near
                else f"The columns are {', '.join(self.columns[:20])}."
                if self.columns
                else ""
            )
            raise QueryRefused(f"There is no column {name[:60]!r}.", fix)
        return Column(found)


def _arguments(node: exp.Expression, names: tuple[str, ...]) -> list[exp.Expression]:
    _closed(node, {name.lstrip("*") for name in names})
    found: list[exp.Expression] = []
    for name in names:
        value = node.args.get(name.lstrip("*"))
        found += value if isinstance(value, list) else [] if value is None else [value]
    return found


def _closed(node: exp.Expression, allowed: Collection[str]) -> None:
    """Refuse a node with parts that we do not read."""
    for name, value in node.args.items():
        if name not in allowed and name not in _FLAGS and value not in (None, False, []):
            raise QueryRefused(f"{_shown(node)} is not supported in this form.", "Use its plain form.")


def _shown(node: exp.Expression) -> str:
    if isinstance(node, exp.Anonymous):
        return str(node.this)[:60].upper()
    if isinstance(node, exp.Func):
        return node.sql_name()[:60]
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__)


def _unknown(node: Any) -> QueryRefused:
    if not isinstance(node, exp.Expression):
        return QueryRefused("This part of the expression is not understood.")
    if isinstance(node, exp.AggFunc):
        return QueryRefused(
            f"{_shown(node)} is an aggregate and cannot stand here.", "Move it to SELECT or HAVING."
        )
    if isinstance(node, exp.Query | exp.Subquery):
        return QueryRefused("A subquery inside an expression is not supported.", "Write its values out.")
    known = {name.upper() for each in FUNCTIONS.values() for name in (each.name, *each.names)}
    name = _shown(node)
    near = difflib.get_close_matches(name.upper(), sorted(known), 1, 0.5)
    return QueryRefused(
        f"{name} is not a supported function.",
        f"The nearest supported one is {near[0]}." if near else "The SQL guide lists the supported ones.",
    )


def _literal(_: _Parser, node: exp.Literal, depth: int) -> Expression:
    if node.is_string:
        return _text(node.this)
    return _number(node.this)


def _text(text: str) -> Literal:
    _check_text(text)
    return literal(text)


def _check_text(text: str) -> None:
    if len(text) > _LENGTH:
        raise QueryRefused(f"A text constant is longer than {_LENGTH} characters.", "Shorten it.")
    if "\x00" in text or any("\ud800" <= each <= "\udfff" for each in text):
        raise QueryRefused("A text constant holds a character that no text can hold.", "Leave it out.")


def _number(text: str) -> Literal:
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


def _negative(parser: _Parser, node: exp.Neg, depth: int) -> Expression:
    inner = parser.parse(node.this, depth)
    if isinstance(inner, Literal) and isinstance(inner.value, int | float) and inner.kind != "boolean":
        return literal(-inner.value)
    return call("negate", inner)


def _is(parser: _Parser, node: exp.Is, depth: int) -> Expression:
    value = parser.parse(node.this, depth)
    if isinstance(node.expression, exp.Null):
        return call("is_null", value)
    if isinstance(node.expression, exp.Boolean):
        return call("is_not_distinct", value, literal(bool(node.expression.this)))
    raise QueryRefused("IS takes NULL, TRUE or FALSE.", "Write IS NOT DISTINCT FROM to compare values.")


def _between(parser: _Parser, node: exp.Between, depth: int) -> Expression:
    _closed(node, ("this", "low", "high"))
    value, low, high = (parser.parse(node.args[name], depth) for name in ("this", "low", "high"))
    return call("and", call("greater_equal", value, low), call("less_equal", value, high))


def _in(parser: _Parser, node: exp.In, depth: int) -> Expression:
    if node.args.get("query") is not None or node.args.get("unnest") is not None:
        raise QueryRefused("IN takes a list of constants, not a subquery.", "Write the values out.")
    _closed(node, ("this", "expressions"))
    value = parser.parse(node.this, depth)
    options = [parser.parse(each, depth) for each in node.expressions]
    if not options or not all(isinstance(each, Literal) and each.value is not None for each in options):
        raise QueryRefused("IN takes a list of constants other than NULL.", "Write x = a OR x = b.")
    return Call("in", (value, *options))


def _chain(function: str, kind: type[exp.Expression]) -> Callable[[_Parser, Any, int], Expression]:
    def handler(parser: _Parser, node: exp.Expression, depth: int) -> Expression:
        parts, waiting = [], [node]
        while waiting:  # a chain of a thousand conditions is no deeper than one
            each = waiting.pop()
            while isinstance(each, exp.Paren):
                each = each.this
            if isinstance(each, kind):
                waiting += [each.expression, each.this]
            else:
                parts.append(parser.parse(each, depth))
        return Call(function, tuple(parts))

    return handler


def _case(parser: _Parser, node: exp.Case, depth: int) -> Expression:
    _closed(node, ("this", "ifs", "default"))
    subject = None if node.this is None else parser.parse(node.this, depth)
    parts: list[Expression] = []
    for branch in node.args["ifs"]:
        condition = parser.parse(branch.this, depth)
        parts.append(condition if subject is None else call("equal", subject, condition))
        parts.append(parser.parse(branch.args["true"], depth))
    default = node.args.get("default")
    parts.append(Literal(None, None) if default is None else parser.parse(default, depth))
    return Call("case", tuple(parts))


def _if(parser: _Parser, node: exp.If, depth: int) -> Expression:
    _closed(node, ("this", "true", "false"))
    default = node.args.get("false")
    return call(
        "case",
        parser.parse(node.this, depth),
        parser.parse(node.args["true"], depth),
        Literal(None, None) if default is None else parser.parse(default, depth),
    )


def _column(parser: _Parser, node: exp.Column, depth: int) -> Expression:
    if node.args.get("db") is not None or not isinstance(node.this, exp.Identifier):
        raise QueryRefused("A column is written as name or table.name.", "Leave out the schema.")
    return parser.column(node)


def _paren(parser: _Parser, node: exp.Paren, depth: int) -> Expression:
    return parser.parse(node.this, depth)


def _boolean(parser: _Parser, node: exp.Boolean, depth: int) -> Expression:
    return literal(bool(node.this))


def _null(parser: _Parser, node: exp.Null, depth: int) -> Expression:
    return Literal(None, None)


_HANDLERS: dict[str, Callable[[_Parser, Any, int], Expression]] = {
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
    node: (each.name, names) for each in FUNCTIONS.values() for node, names in each.nodes.items()
}


def lower_expression(
    expression: Expression,
    dialect: str = "duckdb",
    *,
    columns: Mapping[str, ColumnType] | Mapping[str, Facts] | None = None,
) -> exp.Expression:
    """A fresh sqlglot tree for the expression, total on every row.

    Args:
        expression: What to compute; its columns must exist in the statement, and `facts_of` must accept it.
        dialect: The engine's dialect.
        columns: Their types or facts, if overloaded functions were not resolved yet.

    Raises:
        QueryRefused: where the dialect has no proven form of a function, or the statement would be too large.
    """
    if columns is not None:
        known = {
            name: each if isinstance(each, Facts) else column_facts(each) for name, each in columns.items()
        }
        expression = resolve(expression, known)
    lowered, _ = _lower(expression, dialect)
    return lowered


def _lower(expression: Expression, dialect: str) -> tuple[exp.Expression, int]:
    if isinstance(expression, Column):
        return exp.Column(this=exp.Identifier(this=expression.name, quoted=True)), 1
    if isinstance(expression, Literal):
        return _constant(expression.value), 1
    function = FUNCTIONS.get(expression.function)
    if function is None:
        raise QueryRefused(f"There is no function {expression.function[:60].upper()}.")
    template, uses = _template(function.template(len(expression.arguments), dialect), dialect)
    lowered = [_lower(each, dialect) for each in expression.arguments]
    size = 1 + sum(uses.get(position, 0) * count for position, (_, count) in enumerate(lowered))
    if size > _NODES:
        raise QueryRefused("The expression is too large.", "Ask for less in one question.")
    return _filled(template, [_atom(node) for node, _ in lowered]), size


def _filled(template: exp.Expression, arguments: list[exp.Expression]) -> exp.Expression:
    def fill(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Column) and (found := _HOLE.fullmatch(node.name)):
            return arguments[int(found[1])].copy()
        return node

    return template.copy().transform(fill, copy=False)


_HOLE = re.compile(r"hole_(\d+)")


@functools.lru_cache(maxsize=1024)
def _template(text: str, dialect: str) -> tuple[exp.Expression, dict[int, int]]:
    """The parsed template, and how often each argument is used in it."""
    parsed = sqlglot.parse_one(re.sub(r"\{(\d+)\}", r"hole_\1", text), dialect=dialect)
    uses: dict[int, int] = {}
    for node in parsed.find_all(exp.Column):
        if found := _HOLE.fullmatch(node.name):
            uses[int(found[1])] = uses.get(int(found[1]), 0) + 1
    return parsed, uses


_ATOMS = (exp.Column, exp.Literal, exp.Func, exp.Paren, exp.Boolean, exp.Null)
_OPEN = (exp.And, exp.Or, exp.Xor, exp.Case)  # functions to sqlglot, but written with words between


def _atom(node: exp.Expression) -> exp.Expression:
    if isinstance(node, _ATOMS) and not isinstance(node, exp.Binary | exp.Connector | exp.Unary):
        return node
    return exp.Paren(this=node)


def _constant(value: Any) -> exp.Expression:
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int():
            if abs(value) >= 2**63:
                raise QueryRefused(
                    "A whole number must fit in 64 bits.", "Write it as a fraction, such as 1e20."
                )
            return _signed(str(abs(value)), value < 0)
        case float():
            if not math.isfinite(value):
                raise QueryRefused("A constant must be finite.", "Use a large number instead.")
            shown = repr(abs(value))  # with an exponent it is a double; without, a decimal of few digits
            return _signed(shown if "e" in shown else f"{shown}e0", math.copysign(1, value) < 0)
        case str():
            _check_text(value)
            return exp.Literal.string(value)
        case datetime.date():
            return exp.Cast(this=exp.Literal.string(value.isoformat()), to=exp.DataType.build("date"))
    raise QueryRefused("A constant must be a number, text, date or truth value.")


def _signed(digits: str, negative: bool) -> exp.Expression:
    number = exp.Literal.number(digits)
    return exp.Paren(this=exp.Neg(this=number)) if negative else number
