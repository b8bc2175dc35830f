"""What a question takes and gives, before anything is paid: the columns of its answer, its parameters' types.

All of it follows from the text and from what is declared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sfumato.plan.expressions.facts import Facts, facts_of
from sfumato.plan.expressions.ranges import EXACT
from sfumato.plan.expressions.tree import columns_of
from sfumato.plan.questions.aggregates import Estimator, Linear
from sfumato.plan.questions.nodes import LEVEL
from sfumato.server.wire.replies import Field
from sfumato.server.wire.rewriting import parsed
from sfumato.server.wire.sqlstates import WireError
from sfumato.server.wire.types import FLOAT8, INT8, KINDS, TEXT, kind_of, oid_of

if TYPE_CHECKING:
    from sfumato.plan.questions.measurement import Measurement
    from sfumato.plan.questions.slots import Slot
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
_LARGEST, _KEYS, _EXACT = 2**62, Fraction(2**61), Fraction(EXACT)
_ROWS, _GROUPS = 2**40, 2**20  # that no table, and no answer, goes beyond


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
        facts = facts_of(column.expression, kinds)
        kind = facts.kind
        fields.append(field_of(column.name, FLOAT8 if _is_too_large(facts) else oid_of(str(kind))))
        if intervals and kind in ("integer", "float") and _is_noisy(column.expression):
            for end in ("low", "high"):
                name = _free(f"{column.name}_{end}", taken)
                fields.append(field_of(name, FLOAT8))
    for bar in report.bars:
        before = [column.name for column in _shown(query)][: bar.position]
        place = next((at for at, one in enumerate(fields) if before and one.name == before[-1]), -1)
        fields.insert(place + 1, field_of(bar.name, FLOAT8))
    return fields


def _is_too_large(facts: Facts) -> bool:
    """Whether whole numbers may be among them that the type of whole numbers does not hold."""
    return facts.kind == "integer" and not (facts.low > -_LARGEST and facts.high < _LARGEST)


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
        found[f"a{place}"] = _of_aggregate(aggregate, recipe.measured.measurements)
    for place, key in enumerate(report.child.keys):
        facts = facts_of(key.expression, query.plan.rows.columns)
        held = facts.kind == "integer"  # a key beyond 64 bits is refused
        found[f"k{place}"] = Facts(facts.kind, True, -_KEYS, _KEYS) if held else Facts(facts.kind)
        found[f"g{place}"] = Facts("integer", False, Fraction(0), Fraction(_GROUPS))
    for place, window in enumerate(report.windows):
        found[f"w{place}"] = _summed(window, found)
    return found


def _of_aggregate(aggregate: Estimator | Slot, measurements: Sequence[Measurement]) -> Facts:
    """What is known of an aggregate, even of a table that has as many rows as there are anywhere."""
    if not isinstance(aggregate, Estimator):
        return Facts("integer", True, -_EXACT, _EXACT) if aggregate.whole else Facts("float")
    if not aggregate.whole:
        return Facts("float", True, aggregate.lower, aggregate.upper)
    if not isinstance(aggregate, Linear):
        return Facts("integer", True, -_EXACT, _EXACT)
    most = abs(aggregate.constant)
    for weight, part in zip(aggregate.weights, aggregate.parts, strict=True):
        ends = measurements[part].lower, measurements[part].upper
        most += abs(weight) * max(1, *map(abs, ends)) * _ROWS
    return Facts("integer", True, -most, most)


def _summed(window: Any, columns: Mapping[str, Facts]) -> Facts:
    if window.function != "sum":
        return Facts("integer", True, Fraction(0), Fraction(_GROUPS))
    facts = facts_of(window.value, columns)
    if facts.kind != "integer" or facts.lower is None or facts.upper is None:
        return Facts(facts.kind)
    return Facts("integer", True, facts.lower * _GROUPS, facts.upper * _GROUPS)


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
        return _as_whole(column, field.name)
    return column.cast(pa.float64() if field.oid == FLOAT8 else pa.string(), safe=False)


def _as_whole(column: pa.ChunkedArray, name: str) -> Any:
    try:
        return pc.round(column).cast(pa.int64())
    except pa.ArrowInvalid:
        raise WireError(
            "22003",
            f"A number in {name} is larger than a bigint.",
            hint=f"Divide {name} by a constant; what was paid for is in the ledger.",
        ) from None


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
        others = _beside(node)
        column = next((other for other in others if isinstance(other, exp.Column)), None)
        if column is not None and node.name.isdecimal():
            found[int(node.name)] = column.name.lower()
    return found


def _beside(node: exp.Expr) -> list[exp.Expr]:
    """What a parameter is compared with."""
    within = node.parent
    while isinstance(within, exp.Paren | exp.Cast):  # drivers write a type behind a value
        node, within = within, within.parent
    if isinstance(within, exp.If) and node.arg_key == "this" and isinstance(within.parent, exp.Case):
        return [within.parent.this]  # CASE country WHEN $1
    return list(within.iter_expressions()) if isinstance(within, _SAME) else []


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
