"""The nodes of a plan: few kinds, each with a proven rule, and the part of it that reads data.

```
Report(columns, having, order, limit)         post-processing: free
└── Aggregate(keys, aggregates)               measured: priced
    └── Where(predicate)                     a row passes or not, by itself
        └── Scan · Joined · United · PerUnit · Windowed
```
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.tree import Expression, to_wire
from sfumato.plan.questions.bounding import Bounding
from sfumato.plan.questions.bounding.reweight import Reweight
from sfumato.plan.questions.measurement import Measurement
from sfumato.plan.questions.over import Over
from sfumato.plan.questions.sources import (
    AggregateCall,
    AggregateName,
    Block,
    Joined,
    PerUnit,
    Public,
    Scan,
    Source,
    United,
    Windowed,
    source_to_wire,
    tables_of,
)
from sfumato.schema import PrivacyUnit

__all__ = [
    "LEVEL",
    "Aggregate",
    "AggregateCall",
    "AggregateName",
    "Bar",
    "Block",
    "Joined",
    "Key",
    "Measured",
    "Measurement",
    "OrderItem",
    "Output",
    "PerUnit",
    "Public",
    "Report",
    "Scan",
    "Source",
    "United",
    "Where",
    "Windowed",
]

LEVEL = "level"
"""The name of what a row of several levels is about, among keys `k0`, … and aggregates `a0`, …"""

_BY_WEIGHTS = Reweight()


@dataclass(frozen=True, slots=True)
class Where:
    """The rows for which the predicate is true: each row is judged by itself, so a unit only loses rows."""

    child: Source
    predicate: Expression


@dataclass(frozen=True, slots=True)
class Key:
    """One grouping expression with its public values, in the order in which they are reported.

    `values` is None where they are not public: then groups are reported that enough units share. Those of
    such groups are `found` for the questions that follow, and have the one form that groups are found in.
    """

    expression: Expression
    values: tuple[Any, ...] | None
    found: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Aggregates over groups.

    Attributes:
        child: The rows.
        keys: What they are grouped by.
        aggregates: What is asked of each group.
        combinations: Only these tuples of the values of public keys; None: all.
        bounding: How units are held within their limits; None: as fits the keys.
        limits: The question's own limits, `max_groups` and `max_rows`; None: those of the unit.
        levels: Which of the keys each grouping set has (ROLLUP, CUBE); empty: all of them, in one level.
        touched: Whether the share of units that were clamped or cut is measured too.
        counted: Whether numbers of units are measured for themselves where groups are found by them.
        steps: Of a series, in how many of its steps a unit counts; None: in all in which it has rows.
    """

    child: Source | Where
    keys: tuple[Key, ...]
    aggregates: tuple[AggregateCall, ...]
    combinations: tuple[tuple[Any, ...], ...] | None = None
    bounding: Bounding | None = None
    limits: tuple[int | None, int | None] = (None, None)
    levels: tuple[tuple[int, ...], ...] = ()
    touched: bool = False
    counted: bool = False
    steps: int | None = None

    @property
    def source(self) -> Source:
        """Where the rows come from."""
        return self.child.child if isinstance(self.child, Where) else self.child

    @property
    def table(self) -> str:
        """The name of the first private table that is read: all of them are about the same units."""
        return tables_of(self.source)[0]

    @property
    def predicate(self) -> Expression | None:
        """What a row must satisfy, if anything."""
        return self.child.predicate if isinstance(self.child, Where) else None


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the result: an expression over keys (`k0`, …), aggregates (`a0`, …) and their levels."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One ORDER BY item over keys and aggregates."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A column of the result that holds one end of another column's intervals.

    Attributes:
        position: Its place among all columns.
        name: What it is called.
        column: Whose intervals they are.
        upper: Whether it is the upper end.
        level: At which confidence.
    """

    position: int
    name: str
    column: str
    upper: bool
    level: Fraction


@dataclass(frozen=True, slots=True)
class Report:
    """What the analyst sees: post-processing of the aggregates, at no cost.

    Columns and order may name the window functions over groups that HAVING leaves, `w0`, … in their order.
    """

    child: Aggregate
    columns: tuple[Output, ...]
    having: Expression | None = None
    order: tuple[OrderItem, ...] = ()
    limit: int | None = None
    offset: int = 0
    bars: tuple[Bar, ...] = ()
    windows: tuple[Over, ...] = ()


@dataclass(frozen=True)
class Measured:
    """The part of a plan that reads data, normalised: what makes two queries the same question.

    Attributes:
        table: The table's name.
        version: The declared version of its data, or its state with what that holds.
        unit: Whose rows they are, with the limits of this question: they decide the weights.
        predicate: What a row must satisfy, if anything.
        keys: The grouping expressions with their public values, sorted.
        combinations: Which combinations of key values are reported, in order: the rows of the answer.
        measurements: What is read for each of them, sorted and without repetitions.
        source: Where the rows come from; None: they are those of the table itself.
        bounding: How units are held within their limits.
        levels: Which of the keys each grouping set has; empty: all, in one level. A combination has None for
            the keys that its level leaves out. Where keys are not public, they are in the order of GROUP
            BY, which decides what rows of other keys there are (`plan.questions.others`).
        together: On several levels, which combinations of the values of public keys there are; None: all.
    """

    table: str
    version: str
    unit: PrivacyUnit
    predicate: Expression | None
    keys: tuple[Key, ...]
    combinations: Sequence[tuple[Any, ...]]
    measurements: tuple[Measurement, ...]
    source: Source | None = None
    bounding: Bounding = _BY_WEIGHTS
    levels: tuple[tuple[int, ...], ...] = ()
    together: tuple[tuple[Any, ...], ...] | None = None

    @property
    def rows(self) -> Source:
        """Where the rows come from."""
        return Scan(self.table) if self.source is None else self.source

    @property
    def groups(self) -> int | None:
        """How many groups there are; None: that is not public."""
        return None if self.is_open else len(self.combinations)

    @property
    def is_open(self) -> bool:
        """Whether some key has no public list of values."""
        return any(key.values is None for key in self.keys)

    def to_wire(self) -> dict[str, Any]:
        """Plain data, the same for equal questions."""
        more: dict[str, Any] = {}
        if self.source is not None:
            more["source"] = source_to_wire(self.source)
        more |= self.bounding.to_wire()
        if self.levels:
            more["levels"] = [list(level) for level in self.levels]
        if self.together is not None:
            more["together"] = _rows_shown(self.together)
        if self.is_open:
            more["open"] = [key.values is None for key in self.keys]
            listed = {i: key.values for i, key in enumerate(self.keys) if key.values is not None}
            if listed:  # combinations, which would tell them, are not known yet
                more["listed"] = {str(i): [_shown(value) for value in values] for i, values in listed.items()}
        return more | {
            "table": self.table,
            "version": self.version,
            "unit": [list(item) for item in self.unit.to_dict().items()],
            "predicate": None if self.predicate is None else to_wire(self.predicate),
            "keys": [to_wire(key.expression) for key in self.keys],
            "combinations": _rows_shown(self.combinations),
            "measurements": [measurement.to_wire() for measurement in self.measurements],
        }

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the question: equal exactly for the same question about the same declared data."""
        text = json.dumps(self.to_wire(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


_PLAIN = {bool, int, str}  # what JSON writes as it is


def _rows_shown(rows: Sequence[tuple[Any, ...]]) -> Sequence[Sequence[Any]]:
    """The rows as JSON has them, which writes tuples and lists alike."""
    if {*map(type, chain.from_iterable(rows))} <= _PLAIN:
        return rows
    return [[_shown(value) for value in row] for row in rows]


def _shown(value: Any) -> Any:
    return value if isinstance(value, bool | int | str) else str(value)
