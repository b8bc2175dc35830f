"""What a scalar function is: how it is typed, bounded, written in SQL and computed over results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.engines.dialect import Dialect, Template
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.ranges import Facts
from sfumato.plan.expressions.tree import Expression
from sfumato.schema import Kind

__all__ = ["Function", "Rule", "Template", "Vector", "aligned", "need", "refused", "strict", "unify"]

Array: TypeAlias = npt.NDArray[Any]
Rule: TypeAlias = Callable[..., Facts]

_WORDS: dict[Kind | None, str] = {
    "integer": "a whole number",
    "float": "a number",
    "boolean": "a truth value",
    "text": "text",
    "date": "a date",
    "timestamp": "a timestamp",
    "time": "a time of day",
    None: "NULL",
}


@dataclass(frozen=True, slots=True)
class Vector:
    """A column of results: values, and where they are valid; elsewhere they are NULL.

    Numbers are float64, truth values bool, text object (str), dates datetime64[D], timestamps datetime64[s],
    times of day timedelta64[s] since midnight.
    """

    values: Array
    valid: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Function:
    """One entry of the closed list of scalar functions.

    Attributes:
        name: What plans call it.
        arity: The least and greatest number of arguments; None is any.
        rule: Facts of the arguments to facts of the result; refuses arguments of the wrong kind. Sound: the
            result of arguments within their facts lies within it.
        sql: The common template, `{0}` is the first argument; or what gives one for a number of arguments. A
            dialect says whether it holds there. Total: no row can make the engine raise.
        compute: The same over results, on vectors.
        nodes: The sqlglot classes it is parsed from, each with the names of its arguments in order; a star
            marks a list.
        names: What else SQL calls it.
        literals: Which arguments must be constants.
        ascii: Whether `compute` agrees with the engine only on ASCII text.
        listed: Whether `compute` may list the results of listed arguments.
        guard: A template that is put around arguments where their results could harm the engine: dates beyond
            the years 1 to 9999, text that is very long.
        guards: Which arguments it is put around.
        guarded: Whether results need no guard of their kind.
        normal: The arguments in the one form that reaches an engine, if they have several.
        doc: What it gives, in one sentence.
    """

    name: str
    arity: tuple[int, int | None]
    rule: Rule
    sql: Template
    compute: Callable[..., Vector] | None = None
    nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    literals: tuple[int, ...] = ()
    ascii: bool = False
    listed: bool = True
    guard: str = ""
    guards: tuple[int, ...] = ()
    guarded: bool = False
    normal: Callable[[tuple[Expression, ...]], tuple[Expression, ...]] | None = None
    doc: str = ""

    def arranged(self, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
        """The arguments in normal form."""
        return arguments if self.normal is None else self.normal(arguments)

    def template(self, count: int, dialect: Dialect) -> str:
        """The template for so many arguments.

        Raises:
            QueryRefused: where this dialect has none.
        """
        chosen = dialect.form(self.name, self.sql)
        if chosen is None:
            reason = dialect.why_refused(self.name)
            said = f"{self.name.upper()} has no proven form in {dialect.name}"
            raise QueryRefused(f"{said}: {reason}." if reason else f"{said}.", "Leave it out.")
        return chosen if isinstance(chosen, str) else chosen(count)

    def common(self, count: int) -> str:
        """The common template for so many arguments, by which sizes are judged."""
        return self.sql if isinstance(self.sql, str) else self.sql(count)


def refused(name: str, wanted: str, facts: Facts, fix: str = "") -> QueryRefused:
    """The refusal of an argument of the wrong kind."""
    return QueryRefused(f"{name.upper()} needs {wanted}, not {_WORDS[facts.kind]}.", fix)


def need(name: str, kinds: tuple[Kind, ...], *arguments: Facts) -> None:
    """Refuse arguments that are of none of these kinds; NULL passes."""
    for argument in arguments:
        if argument.kind is not None and argument.kind not in kinds:
            wanted = (
                "numbers" if kinds == ("integer", "float") else " or ".join(_WORDS[kind] for kind in kinds)
            )
            to = "DOUBLE" if "float" in kinds else {"text": "TEXT", "date": "DATE"}.get(kinds[0], "")
            choice = "OR is written out; " if name == "||" else ""
            raise refused(name, wanted, argument, f"{choice}CAST(… AS {to}) may help." if to else "")


def unify(name: str, *arguments: Facts) -> Kind | None:
    """The kind that all of them share; whole numbers among numbers count as numbers."""
    kinds = {argument.kind for argument in arguments} - {None}
    if len(kinds) <= 1:
        return next(iter(kinds), None)
    if kinds == {"integer", "float"}:
        return "float"
    shown = " and ".join(sorted(_WORDS[kind] for kind in kinds))
    raise QueryRefused(f"{name.upper()} mixes {shown}.", _to_one(kinds))


def _to_one(kinds: Collection[Kind | None]) -> str:
    """How values of different kinds are brought together."""
    if "boolean" in kinds:
        return "Compare a truth value with TRUE or FALSE, or write it alone."
    if "timestamp" in kinds:
        return "Write timestamps as TIMESTAMP '2024-01-31 08:30:00'; CAST(x AS DATE) takes the day of one."
    if "time" in kinds:
        return "Write times of day as TIME '08:30'."
    if "date" in kinds:
        return "Write days as DATE '2024-01-31'."
    if "text" in kinds:
        return "Write numbers without quotes; CAST(x AS DOUBLE) reads a text as a number."
    return "Cast them to one type."


def aligned(*vectors: Vector) -> list[Vector]:
    """The same with one dtype: a bare NULL has none of its own and takes that of the others."""
    typed = [vector for vector in vectors if vector.valid.any()]
    dtype = (typed or list(vectors))[0].values.dtype
    if any(vector.values.dtype != dtype for vector in typed):
        raise QueryRefused("An expression over results mixes types.", "Cast them to one type.")
    return [
        vector if vector.values.dtype == dtype else Vector(np.zeros(len(vector.values), dtype), vector.valid)
        for vector in vectors
    ]


def strict(operation: Callable[..., Any]) -> Callable[..., Vector]:
    """What computes with NULL as soon as an argument is NULL, or the result is NaN.

    The operation is given plain arrays (fillers where NULL) and gives one, or a pair with a mask of validity.
    """

    def compute(*vectors: Vector) -> Vector:
        valid = np.logical_and.reduce([vector.valid for vector in vectors])
        with np.errstate(all="ignore"):
            values = operation(*(vector.values for vector in vectors))
        if isinstance(values, tuple):
            values, sound = values
            valid = valid & sound
        if values.dtype.kind == "f":
            valid = valid & ~np.isnan(values)
        return Vector(values, valid)

    return compute
