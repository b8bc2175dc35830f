"""What a question takes and gives, before anything is paid: the columns of its answer, its parameters' types.

All of it follows from the text and from what is declared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sfumato.plan.expressions.facts import Facts, facts_of
from sfumato.plan.expressions.tree import columns_of
from sfumato.plan.questions.nodes import LEVEL
from sfumato.server.wire.replies import Field
from sfumato.server.wire.rewriting import parsed
from sfumato.server.wire.types import FLOAT8, INT8, KINDS, TEXT, kind_of, oid_of

if TYPE_CHECKING:
    from sfumato.session import Query, Release

__all__ = ["answer_fields", "answer_table", "field_of", "parameter_columns", "parameter_oids"]

_CASTS = {
    "INT": 23, "UINT": 26, "BIGINT": 20, "SMALLINT": 21, "DOUBLE": 701, "FLOAT": 700, "TEXT": 25,
    "VARCHAR": 1043, "BOOLEAN": 16, "DATE": 1082, "TIME": 1083, "TIMESTAMP": 1114,
    "TIMESTAMPTZ": 1184, "DECIMAL": 1700,
}  # fmt: skip
_SAME = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between, exp.Like, exp.ILike)
_NUMBERED = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?(?:\*/|\Z)|\$(?P<n>[0-9]{1,5})", re.DOTALL
)
_MOST_PARAMETERS = 65_535


def field_of(name: str, oid: int) -> Field:
    """A column of a result of this type."""
    return Field(name, oid, KINDS[oid].size if oid in KINDS else -1)


def answer_fields(query: Query, *, intervals: bool) -> list[Field]:
    """The columns that the answer to a question will have.

    Args:
        query: The question.
        intervals: Whether each noisy number is followed by the ends of its interval.
    """
    report = query.report
    kinds = _kinds(query)
    taken = {column.name for column in report.columns} | {bar.name for bar in report.bars}
    fields: list[Field] = []
    for column in report.columns:
        kind = facts_of(column.expression, kinds).kind
        fields.append(field_of(column.name, oid_of(str(kind))))
        if intervals and kind in ("integer", "float") and _is_noisy(column.expression):
            for end in ("low", "high"):
                name = _free(f"{column.name}_{end}", taken)
                fields.append(field_of(name, FLOAT8))
    for bar in report.bars:
        before = [column.name for column in _shown(query)][: bar.position]
        place = next((at for at, one in enumerate(fields) if before and one.name == before[-1]), -1)
        fields.insert(place + 1, field_of(bar.name, FLOAT8))
    return fields


def _shown(query: Query) -> list[Any]:
    """Columns and bars in the order of the answer."""
    listed: list[Any] = list(query.report.columns)
    for bar in query.report.bars:
        listed.insert(bar.position, bar)
    return listed


def _is_noisy(expression: Any) -> bool:
    return any(name[0] in "aw" for name in columns_of(expression))


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _kinds(query: Query) -> dict[str, Facts]:
    """The kinds of what columns of the result are computed from."""
    report, recipe = query.report, query.recipe()
    found = {LEVEL: Facts("text", nullable=False)}
    for place, aggregate in enumerate(recipe.aggregates):
        found[f"a{place}"] = Facts("integer" if aggregate.whole else "float")
    for place, key in enumerate(report.child.keys):
        found[f"k{place}"] = Facts(facts_of(key.expression, query.plan.rows.columns).kind)
        found[f"g{place}"] = Facts("integer", nullable=False)
    for place, window in enumerate(report.windows):
        kind = facts_of(window.value, found).kind if window.function == "sum" else "integer"
        found[f"w{place}"] = Facts(kind)
    return found


def answer_table(release: Release, fields: Sequence[Field], confidence: Any, *, intervals: bool) -> pa.Table:
    """The answer with just these columns, in the types that were told for them.

    Args:
        release: The answer.
        fields: What `answer_fields` says of the question.
        confidence: At which intervals hold.
        intervals: As for `answer_fields`.
    """
    values = {name: release.table[name] for name in release.table.column_names}
    if intervals:
        taken = set(values)
        ends = release.interval(confidence)
        for name in release.table.column_names:
            for end in ("low", "high"):
                if f"{name}_{end}" in ends.column_names and name not in ends.column_names:
                    values[_free(f"{name}_{end}", taken)] = ends[f"{name}_{end}"]
    size = release.table.num_rows
    columns = [_as(values.get(field.name), field, size) for field in fields]
    return pa.Table.from_arrays(columns, names=[field.name for field in fields])


def _as(column: pa.ChunkedArray | None, field: Field, size: int) -> Any:
    if column is None:
        return pa.nulls(size, pa.float64())
    if kind_of(column.type).oid == field.oid:
        return column
    if field.oid == INT8 and pa.types.is_floating(column.type):
        whole = pc.min_element_wise(pc.max_element_wise(pc.round(column), -float(2**62)), float(2**62))
        return whole.cast(pa.int64())
    return column.cast(pa.float64() if field.oid == FLOAT8 else pa.string())


def parameter_oids(text: str, given: Sequence[int], kinds: Mapping[str, int]) -> tuple[int, ...]:
    """The types of the parameters `$1`, `$2`, … of a text: as the client says, else as the text suggests.

    Args:
        text: One statement.
        given: What the client says, 0 where it leaves that open.
        kinds: The types of columns by name in small letters.
    """
    numbers = [int(match["n"]) for match in _NUMBERED.finditer(text) if match["n"]]
    count = max([len(given), *(number for number in numbers if number <= _MOST_PARAMETERS)], default=0)
    said = dict(enumerate(given, start=1))
    if all(said.get(number) for number in range(1, count + 1)):
        return tuple(given)
    guessed = _guessed(text, kinds)
    return tuple(said.get(n) or guessed.get(n) or TEXT for n in range(1, count + 1))


def _guessed(text: str, kinds: Mapping[str, int]) -> dict[int, int]:
    tree = parsed(text)
    if tree is None:
        return {}  # what cannot be read is refused when it is asked
    found: dict[int, int] = {}
    for node in tree.find_all(exp.Parameter):
        oid = _around(node, kinds)
        if node.name.isdecimal() and oid:
            found[int(node.name)] = oid
    return found


def parameter_columns(text: str) -> dict[int, str]:
    """The columns, by name in small letters, that the parameters of a text are compared with."""
    tree = parsed(text)
    if tree is None:
        return {}
    found: dict[int, str] = {}
    for node in tree.find_all(exp.Parameter):
        others = node.parent.iter_expressions() if isinstance(node.parent, _SAME) else ()
        column = next((other for other in others if isinstance(other, exp.Column)), None)
        if column is not None and node.name.isdecimal():
            found[int(node.name)] = column.name.lower()
    return found


def _kind(to: exp.Expr) -> str:
    return str(getattr(to.this, "value", to.this)).upper()


def _around(node: exp.Expr, kinds: Mapping[str, int]) -> int:
    parent = node.parent
    while isinstance(parent, exp.Paren | exp.Neg):
        parent = parent.parent
    if isinstance(parent, exp.Cast):
        to = parent.to
        listed = isinstance(to, exp.DataType) and to.is_type(exp.DataType.Type.ARRAY) and bool(to.expressions)
        oid = _CASTS.get(_kind(to.expressions[0] if listed else to), 0)
        return KINDS[oid].array if listed and oid else oid
    if isinstance(parent, exp.Limit | exp.Offset):
        return INT8
    if isinstance(parent, exp.Any):
        inner = _around(parent, kinds)
        return KINDS[inner].array if inner in KINDS else 0
    if not isinstance(parent, _SAME):
        return 0
    for other in parent.iter_expressions():
        if isinstance(other, exp.Count):
            return INT8
        if isinstance(other, exp.AggFunc):
            return FLOAT8
        if isinstance(other, exp.Column) and other.name.lower() in kinds:
            return kinds[other.name.lower()]
    return 0
