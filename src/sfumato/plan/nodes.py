"""The nodes of a plan: few kinds, each with a proven rule, and the part of it that reads data.

```
Report(columns, having, order, limit)         post-processing: free
└── Aggregate(keys, aggregates)               measured: priced
    └── Filter(predicate)                     a row passes or not, by itself: stability 1
        └── Scan(table)
```
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from sfumato.plan.expressions import Expression, to_wire

__all__ = [
    "Aggregate",
    "AggregateCall",
    "AggregateName",
    "Filter",
    "Key",
    "Measured",
    "Measurement",
    "OrderItem",
    "Output",
    "Report",
    "Scan",
]

AggregateName: TypeAlias = Literal[
    "count", "count_distinct", "sum", "mean", "var_samp", "var_pop", "std_samp", "std_pop"
]


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of one private table."""

    table: str


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which the predicate is true: each row is judged by itself, so a unit only loses rows."""

    child: Scan
    predicate: Expression


@dataclass(frozen=True, slots=True)
class Key:
    """One grouping expression with its public values, in the order in which they are reported."""

    expression: Expression
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregate over the rows of a group.

    `count` without an argument counts rows, with one the rows where it is present; `count_distinct` counts
    units and has no argument.
    """

    function: AggregateName
    argument: Expression | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Aggregates over groups of public keys. `combinations`: only these tuples of key values, else all."""

    child: Scan | Filter
    keys: tuple[Key, ...]
    aggregates: tuple[AggregateCall, ...]
    combinations: tuple[tuple[Any, ...], ...] | None = None

    @property
    def table(self) -> str:
        """The name of the table that is read."""
        return self.child.table if isinstance(self.child, Scan) else self.child.child.table

    @property
    def predicate(self) -> Expression | None:
        """What a row must satisfy, if anything."""
        return None if isinstance(self.child, Scan) else self.child.predicate


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the result: an expression over the keys (`k0`, …) and aggregates (`a0`, …)."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One ORDER BY item over keys and aggregates."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What the analyst sees: post-processing of the aggregates, at no cost."""

    child: Aggregate
    columns: tuple[Output, ...]
    having: Expression | None = None
    order: tuple[OrderItem, ...] = ()
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Measurement:
    """One integer that is read for each group: the only thing that leaves the engine.

    Attributes:
        kind: `rows` (rows of the group), `present` (rows where the argument is neither NULL nor NaN), `sum`
            (of the argument in fixed point), `units` (distinct privacy units).
        argument: What is summed or must be present.
        lower: The least value of one row in units of 2**-bits, enforced by a clamp; 0 for counts.
        upper: The greatest one; 1 for counts.
        bits: A unit is 2**-bits.
        whole: Whether the argument is a whole number, so that the answer is rounded to one.
    """

    kind: Literal["rows", "present", "sum", "units"]
    argument: Expression | None = None
    lower: int = 0
    upper: int = 1
    bits: int = 0
    whole: bool = True

    @property
    def magnitude(self) -> int:
        """The most that one row of full weight moves it, in units."""
        return max(abs(self.lower), abs(self.upper))

    def to_wire(self) -> list[Any]:
        """Plain data, the same for equal measurements."""
        argument = None if self.argument is None else to_wire(self.argument)
        return [self.kind, argument, self.lower, self.upper, self.bits, self.whole]


@dataclass(frozen=True, slots=True)
class Measured:
    """The part of a plan that reads data, normalised: what makes two queries the same question.

    Attributes:
        table: The table's name.
        version: The declared version of its data.
        unit: The privacy unit as plain data, since it decides the weights.
        predicate: What a row must satisfy, if anything.
        keys: The grouping expressions with their public values, sorted.
        combinations: Which combinations of key values are reported, in order: the rows of the answer.
        measurements: What is read for each of them, sorted and without repetitions.
    """

    table: str
    version: str
    unit: tuple[tuple[str, Any], ...]
    predicate: Expression | None
    keys: tuple[Key, ...]
    combinations: tuple[tuple[Any, ...], ...]
    measurements: tuple[Measurement, ...]

    def to_wire(self) -> dict[str, Any]:
        """Plain data, the same for equal questions."""
        return {
            "table": self.table,
            "version": self.version,
            "unit": [list(item) for item in self.unit],
            "predicate": None if self.predicate is None else to_wire(self.predicate),
            "keys": [to_wire(key.expression) for key in self.keys],
            "combinations": [[_shown(value) for value in row] for row in self.combinations],
            "measurements": [each.to_wire() for each in self.measurements],
        }

    @property
    def fingerprint(self) -> str:
        """A digest of the question: equal exactly for the same question about the same declared data."""
        text = json.dumps(self.to_wire(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


def _shown(value: Any) -> Any:
    return value if isinstance(value, bool | int | str) else str(value)
