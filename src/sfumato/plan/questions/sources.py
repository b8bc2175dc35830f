"""The sources of a plan: whatever gives rows of which each belongs to one privacy unit.

Privacy:
    The rows of a unit follow from that unit's own rows and from public tables alone: rows(D) is the disjoint
    union of rows(D_u) over the units u. So adding, removing or exchanging one unit changes that unit's rows
    and no others, however many there are; what they may weigh is bounded where they are measured
    (`plan.questions.sensitivity`). Each node says why it keeps this.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.tree import Call, Column, Expression, names_of, to_wire
from sfumato.plan.expressions.tree import Literal as Constant

__all__ = [
    "AggregateCall",
    "AggregateName",
    "Block",
    "Joined",
    "PerUnit",
    "Public",
    "Scan",
    "Source",
    "United",
    "WindowCall",
    "WindowName",
    "Windowed",
    "is_joined_below",
    "is_own",
    "source_to_wire",
    "tables_of",
]

AggregateName: TypeAlias = str
"""The name of a `Statistic`: `plan.questions.aggregates` has them all."""

WindowName: TypeAlias = Literal[
    "row_number", "rank", "dense_rank", "count", "sum", "mean", "min", "max", "lag", "lead"
]


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregate over the rows of a group.

    `count` without an argument counts rows, with one the rows where it is present; `count_distinct` counts
    units and has no argument; `count_values` counts the distinct values of its argument.

    Attributes:
        function: Which aggregate.
        argument: What is aggregated.
        other: The second column of `covar_samp`, `covar_pop` and `corr`.
        level: Of a `quantile`, between 0 and 1.
        bounds: Bounds that the question itself gives: for each `row`, or for a unit's total in each `group`.
    """

    function: AggregateName
    argument: Expression | None = None
    other: Expression | None = None
    level: Fraction | None = None
    bounds: tuple[Literal["row", "group"], Fraction, Fraction] | None = None

    def to_wire(self) -> list[Any]:
        """Plain data, the same for equal calls."""
        parts: list[Any] = [self.function, None if self.argument is None else to_wire(self.argument)]
        if self.other is not None:
            parts.append(["other", to_wire(self.other)])
        if self.level is not None:
            parts.append(["level", str(self.level)])
        if self.bounds is not None:
            parts.append(["bounds", *map(str, self.bounds)])
        return parts


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of one private table."""

    table: str


@dataclass(frozen=True, slots=True)
class Public:
    """The rows of a public table, which belong to nobody: only ever the right side of a join."""

    table: str


@dataclass(frozen=True, slots=True)
class Block:
    """Rows with named columns: of a source, those that satisfy a condition. Each row is judged by itself.

    Attributes:
        source: Where the rows come from.
        predicate: What they must satisfy, over the source's columns; None: nothing.
        columns: The names and expressions of the columns that are kept, over the source's columns.
    """

    source: Source | Public
    predicate: Expression | None
    columns: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """Two blocks side by side where columns agree; their column names are different.

    With a private right side the units must agree as well, whatever else is asked: a unit's rows meet its own
    rows only. A public right side has at most one row for each combination of the columns in `on`: it is the
    same for all neighbours, and a unit's rows are looked up in it one by one.

    Attributes:
        left: Private rows.
        right: Private rows of the same units, or those of a public table.
        on: Pairs of column names, left and right, that must be equal.
        outer: Whether a left row without a partner stays, with NULL for the right columns.
    """

    left: Block
    right: Block
    on: tuple[tuple[str, str], ...]
    outer: bool = False

    @property
    def is_public(self) -> bool:
        """Whether the right side is a public table."""
        return isinstance(self.right.source, Public)


@dataclass(frozen=True, slots=True)
class United:
    """UNION ALL of blocks with the same column names, about the same units: theirs are put together."""

    parts: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row for each unit, or for each unit and key: GROUP BY with the unit's column in it.

    Rows without a unit are left out. The aggregates are `count`, `count_values`, `sum`, `mean`, `min` and
    `max`; sums are exact integers in fixed point, so that no order of rows can show.

    Attributes:
        source: What is aggregated.
        predicate: Which of its rows; None: all.
        keys: The other grouping expressions, by name.
        aggregates: By name.
        having: What a unit's row must satisfy, over the names of keys and aggregates.
    """

    source: Source
    predicate: Expression | None
    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]
    having: Expression | None = None


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function over the rows of one unit, or of one unit and further partition keys.

    Rows that tie in `order` are told apart by all their columns, so that the result is a function of the
    unit's rows and not of the order in which they are stored.

    Attributes:
        function: Ranks and `lag`, `lead` need an order; aggregates are over the whole partition.
        argument: What is aggregated or shifted; None for ranks and for a count of rows.
        partition: What divides the unit's rows further.
        order: By which expressions, and whether descending.
        offset: How far `lag` and `lead` look.
    """

    function: WindowName
    argument: Expression | None = None
    partition: tuple[Expression, ...] = ()
    order: tuple[tuple[Expression, bool], ...] = ()
    offset: int = 1


@dataclass(frozen=True, slots=True)
class Windowed:
    """The rows of a source that satisfy a condition, with columns that look at the unit's other rows.

    Attributes:
        source: Whose columns all stay.
        predicate: Which of its rows; None: all.
        columns: The added columns by name.
    """

    source: Source
    predicate: Expression | None
    columns: tuple[tuple[str, WindowCall], ...]


Source: TypeAlias = Scan | Joined | United | PerUnit | Windowed
"""Whatever gives rows that belong to units."""


def tables_of(source: Source | Public) -> tuple[str, ...]:
    """The names of all tables that a source reads, private and public, in order and without repetitions."""
    return tuple(dict.fromkeys(_tables(source)))


def _tables(source: Source | Public) -> list[str]:
    if isinstance(source, Scan | Public):
        return [source.table]
    if isinstance(source, Joined):
        return _tables(source.left.source) + _tables(source.right.source)
    if isinstance(source, United):
        return [name for part in source.parts for name in _tables(part.source)]
    return _tables(source.source)


def is_joined_below(source: Source | Public, *, below: bool = False) -> bool:
    """Whether rows of private tables meet below something that adds up or compares a unit's rows.

    A unit's rows meet at most so many of each other (`sql.write.sources`): what is left out there can change
    what each unit's line says, not only how many there are.
    """
    match source:
        case Joined():
            sides = (source.left.source, source.right.source)
            met = below and not source.is_public
            return met or any(is_joined_below(side, below=below) for side in sides)
        case United():
            return any(is_joined_below(part.source, below=below) for part in source.parts)
        case PerUnit() | Windowed():
            return is_joined_below(source.source, below=True)
        case _:
            return False


def is_own(expression: Expression, source: Source | Public) -> bool:
    """Whether what an expression gives for a row follows from that row of one private table alone.

    What a public table adds to a row may be another value whenever that table is read again.
    """
    names = names_of(expression)
    match source:
        case Scan():
            return True
        case Joined():
            known = dict(source.left.columns)
            return all(name in known and is_own(known[name], source.left.source) for name in names)
        case United():
            return all(
                name in dict(part.columns) and is_own(dict(part.columns)[name], part.source)
                for part in source.parts
                for name in names
            )
        case _:
            return not names


def source_to_wire(node: Any) -> Any:
    """A source as plain data, the same for equal sources: names of node kinds and of their fields."""
    if isinstance(node, Column | Constant | Call):
        return to_wire(node)
    if isinstance(node, AggregateCall):
        return node.to_wire()
    if is_dataclass(node):
        return {
            type(node).__name__: {
                field.name: source_to_wire(getattr(node, field.name)) for field in fields(node)
            }
        }
    return [source_to_wire(part) for part in node] if isinstance(node, tuple) else node
