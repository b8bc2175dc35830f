"""Values for the parameters of a query: `?`, `$1`, `$name`, `:name` and `@name`.

A value becomes a node of the tree, after the text was parsed; nothing is ever spliced into text, so no value
can be read as SQL.
"""

from __future__ import annotations

import datetime
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from sqlglot import Token, TokenType, exp

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.numeric.moments import as_clock, as_moment
from sfumato.plan.expressions.names import nearest
from sfumato.plan.expressions.size import check_text
from sfumato.sql.refusals import refuse, shown
from sfumato.sql.text.tokens import Constant, adjacent, ends_operand, is_word, number_of, retyped

__all__ = ["Parameters", "Values"]

_Value: TypeAlias = int | float | str | bool | datetime.date | datetime.time | None

Values: TypeAlias = Sequence[Any] | Mapping[str, Any] | None
"""Parameters as a caller gives them: in order, by name, or none."""

_PASS = "Give parameters=[…] for ? and $1, {…} for $name, :name and @name; on the command line, --param."
_KINDS = "an int, a float, a str, a bool, a date, a datetime, a time or None"
_MARKS = {TokenType.PLACEHOLDER, TokenType.PARAMETER, TokenType.COLON}
_NAMES = (exp.Table, exp.TableAlias, exp.TableSample, exp.CTE, exp.DataType, exp.DataTypeParam)
_MOST = 2**63


class Parameters:
    """The values of one query's parameters, and which of them it has used."""

    def __init__(self, values: Values) -> None:
        self._marks = 0
        self._used: set[str] = set()
        self._named = isinstance(values, Mapping)
        self._given = values is not None
        self._values = {name: _checked(value, name) for name, value in _by_name(values).items()}

    def prepared(self, tokens: list[Token], *, google: bool) -> list[Token]:
        """The tokens with `?` numbered from 1, and with keywords that follow a mark as plain names.

        `@x` is a parameter in GoogleSQL (`google`), and elsewhere if a value of that name was given; without
        one it is DuckDB's operator for the absolute value.

        Raises:
            QueryRefused: if `?` and `$1` are in the same query.
        """
        if not any(token.token_type in _MARKS for token in tokens):
            return tokens
        prepared: list[Token] = []
        numbered = False
        for at, token in enumerate(tokens):
            before, kind = tokens[at - 1] if at else None, token.token_type
            if kind == TokenType.PLACEHOLDER:
                self._marks += 1
                prepared += [
                    retyped(token, TokenType.PARAMETER, "$"),
                    retyped(token, TokenType.NUMBER, str(self._marks)),
                ]
                continue
            if before is not None and before.token_type in _MARKS and adjacent(before, token):
                numbered |= before.text == "$" and kind == TokenType.NUMBER
                first = at < 2 or not ends_operand(tokens[at - 2])
                if is_word(token) and (first or before.token_type == TokenType.PARAMETER):
                    token = retyped(token, TokenType.VAR)
            if token.text == "@" and kind == TokenType.PARAMETER and self._is_name(tokens, at, google):
                token = retyped(token, TokenType.PARAMETER, "$")
            prepared.append(token)
        if self._marks and numbered:
            raise refuse("The query mixes ? and $1.", "Write ? everywhere, or number all parameters.")
        return prepared

    def _is_name(self, tokens: list[Token], at: int, google: bool) -> bool:
        if not (at + 1 < len(tokens) and is_word(tokens[at + 1]) and adjacent(tokens[at], tokens[at + 1])):
            return False
        return google or (self._named and tokens[at + 1].text in self._values)

    def constant(self, name: str) -> Constant:
        """The value of this parameter for an option or a bound; numbers are exact."""
        value = self.value(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return number_of(repr(value))
        return value

    def value(self, name: str) -> _Value:
        """The value of this parameter, which is used from now on.

        Raises:
            QueryRefused: if no values were given.
            InvalidParameter: if there is no value for this one.
        """
        if name in self._values and self._named != name.isdigit():
            self._used.add(name)
            return self._values[name]
        raise self._missing(name)

    def _missing(self, name: str) -> InvalidParameter | QueryRefused:
        positional = name.isdigit()
        written = ("?" if self._marks else f"${name[:9]}") if positional else shown(name)
        if not self._given:
            return refuse(f"The query has a parameter, {written}, and no values were given.", _PASS)
        if positional and self._named:
            return InvalidParameter(
                f"The query has the parameter {written}: give its values in order, as a list."
            )
        if not positional and not self._named:
            return InvalidParameter(f"The query names the parameter {written}: give its values as a dict.")
        if positional:
            count = len(self._values)
            return InvalidParameter(
                f"The query has a parameter number {name[:9]}, counted from 1, and {count} values were given."
            )
        fix = nearest(name, list(self._values), "Parameters")
        return InvalidParameter(f"There is no value for the parameter {written}. {fix}".strip())

    def fill(self, tree: exp.Expr) -> None:
        """Put the values into the tree.

        Raises:
            QueryRefused: if a parameter is where no value can be, or no values were given.
            InvalidParameter: if there is no value for it.
        """
        for node in list(tree.find_all(exp.Placeholder, exp.Parameter)):
            name = node.name
            _check_place(node)
            node.replace(_node(self.value(name)))

    def check_used(self) -> None:
        """Refuse values that the query has no parameter for.

        Raises:
            InvalidParameter: if there are some.
        """
        unused = [name for name in self._values if name not in self._used]
        if not unused:
            return
        if self._named:
            raise InvalidParameter(
                f"The query has no parameter {shown(unused[0])}: write ${unused[0][:40]}, or leave it out."
            )
        raise InvalidParameter(
            f"{len(self._values)} values were given, and the query uses {len(self._used)} of them:"
            " give one for each parameter."
        )


def _by_name(values: Values) -> dict[str, Any]:
    if values is None:
        return {}
    if isinstance(values, Mapping):
        if not all(isinstance(name, str) and name.isidentifier() for name in values):
            raise InvalidParameter("The names of parameters must be plain words, such as 'country'.")
        return dict(values)
    if isinstance(values, str | bytes | bytearray) or not isinstance(values, Sequence):
        raise InvalidParameter("The parameters must be a list of values, or a dict of values by name.")
    return {str(place): value for place, value in enumerate(values, start=1)}


def _checked(value: Any, name: str) -> _Value:
    place = f"The parameter {shown(name)}"
    match value:
        case None | bool():
            return value
        case numbers.Integral():
            return _whole(int(value), place)
        case float():
            return _finite(float(value), place)
        case str():
            return _text(str(value), place)
        case datetime.datetime() | datetime.time():
            return _seconds(value, place)
        case datetime.date():
            return value
    more = " Give one value for each ?, as in IN (?, ?)." if isinstance(value, list | tuple | set) else ""
    raise InvalidParameter(f"{place} must be {_KINDS}, not {type(value).__name__[:40]}.{more}")


def _seconds(value: datetime.datetime | datetime.time, place: str) -> _Value:
    try:
        return as_moment(value) if isinstance(value, datetime.datetime) else as_clock(value)
    except ValueError:
        raise InvalidParameter(
            f"{place} must be in whole seconds, and a time of day without a zone."
        ) from None


def _whole(value: int, place: str) -> int:
    if abs(value) >= _MOST:
        raise InvalidParameter(f"{place} must fit in 64 bits.")
    return value


def _finite(value: float, place: str) -> float:
    if not math.isfinite(value):
        raise InvalidParameter(f"{place} must be finite.")
    return value


def _text(value: str, place: str) -> str:
    try:
        check_text(value)
    except QueryRefused as error:
        raise InvalidParameter(f"{place} cannot be used. {error}") from None
    return value


def _check_place(node: exp.Expr) -> None:
    outer = node.parent
    while isinstance(outer, exp.Paren):
        outer = outer.parent
    if isinstance(outer, exp.Group | exp.Ordered):
        raise refuse(
            "A parameter stands for a value, and cannot choose what to group or order by.",
            "Write the column's name or its number into the query.",
        )
    if isinstance(node.parent, exp.In) and node.arg_key == "field":
        raise refuse("IN takes a list in parentheses.", "Write IN (?, ?) with one parameter for each value.")
    if isinstance(node.parent, _NAMES) or node.arg_key in ("alias", "unit", "table", "db", "catalog"):
        raise refuse("A parameter stands for a value, not for a name.", "Write the name into the query.")


def _node(value: _Value) -> exp.Expr:
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int | float):
        number = exp.Literal.number(repr(abs(value)))
        return exp.Paren(this=exp.Neg(this=number)) if math.copysign(1, value) < 0 else number
    if isinstance(value, str):
        return exp.Literal.string(value)
    kind = next(word for known, word in _TIMES.items() if isinstance(value, known))
    return exp.Cast(this=exp.Literal.string(value.isoformat()), to=exp.DataType.build(kind))


_TIMES = {datetime.datetime: "timestamp", datetime.date: "date", datetime.time: "time"}  # in this order
