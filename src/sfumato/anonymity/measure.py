"""How anonymous a table is: k, l, t and their kin, each from one count of classes."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING

from sfumato._dataclasses import dataclass
from sfumato.anonymity._shares import percent
from sfumato.anonymity._spread import Classes, Spread, classes_of
from sfumato.anonymity.closeness import closeness
from sfumato.anonymity.diversity import distinct_l, entropy_l, recursive_ratios
from sfumato.anonymity.presence import presence
from sfumato.anonymity.tables import names_given, together
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.render import text_table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Anonymity", "Diversity", "measure"]


@dataclass(frozen=True, slots=True)
class Diversity:
    """How different the values of one sensitive column are within the classes.

    Attributes:
        l: The least number of different values in a class.
        entropy_l: The exponential of the least entropy of a class.
        t: The largest distance of a class from the whole table, between 0 and 1.
        ordered: Whether that distance respects the order of the values: it does for numbers, days and times.
        ratios: For each l from 1 on, what c has to exceed so that every class is recursively (c, l)-diverse.
    """

    l: int  # noqa: E741  # the literature's name
    entropy_l: float
    t: float
    ordered: bool
    ratios: tuple[Fraction, ...] = field(repr=False)

    def recursive(self, c: float | Fraction | Decimal) -> int:
        """The largest l for which every class is recursively (c, l)-diverse; 0 if none is.

        The paper lets l = 1 always hold; here it too has to outweigh the most frequent value.

        Raises:
            InvalidParameter: if c is not a positive number.
        """
        bound = _positive(c)
        return sum(1 for ratio in self.ratios if ratio < bound)


@dataclass(frozen=True, slots=True)
class Anonymity:
    """How anonymous a table is. Steward-only: these are exact figures of the rows, and nothing paid for them.

    Attributes:
        quasi: The columns that outsiders may know.
        rows: How many rows there are.
        classes: How many different combinations of values the quasi-identifiers have.
        k: The number of rows of the smallest class.
        unique: The share of rows that are alone in their class.
        sensitive: For each sensitive column how diverse the classes are.
        delta_presence: With a population: the least and largest share of a class of it that is in the table.
        k_map: With a population: the least number of people that a row could be.
        reidentified: With a population: the share of rows that one person alone could be, so that a list of
            names with the same quasi-identifiers names them.

    Privacy:
        None is claimed. The figures say how a table fares against somebody who knows the quasi-identifiers
        and nothing else. They do not add up over releases, say nothing of what else is known, and no
        algorithm that guarantees them guarantees differential privacy.
    """

    quasi: tuple[str, ...]
    rows: int
    classes: int
    k: int
    unique: float
    sensitive: Mapping[str, Diversity] = field(default_factory=lambda: MappingProxyType({}))
    delta_presence: tuple[float, float] | None = None
    k_map: int | None = None
    reidentified: float | None = None

    @property
    def l(self) -> int | None:  # noqa: E743  # the literature's name
        """The least number of different values of a sensitive column in a class; None without one."""
        return min((column.l for column in self.sensitive.values()), default=None)

    @property
    def entropy_l(self) -> float | None:
        """The exponential of the least entropy of a class; None without a sensitive column."""
        return min((column.entropy_l for column in self.sensitive.values()), default=None)

    @property
    def t(self) -> float | None:
        """The largest distance of a class from the table; None without a sensitive column."""
        return max((column.t for column in self.sensitive.values()), default=None)

    def recursive(self, c: float | Fraction | Decimal) -> int | None:
        """The largest l for which all is recursively (c, l)-diverse, or 0; None without a sensitive column.

        Raises:
            InvalidParameter: if c is not a positive number.
        """
        _positive(c)
        return min((column.recursive(c) for column in self.sensitive.values()), default=None)

    @property
    def table(self) -> pa.Table:
        """The figures as a table: `what`, `column` (for sensitive ones) and `value`."""
        import pyarrow as pa

        lines = self._lines()
        return pa.table(
            {
                "what": [what for what, _, _ in lines],
                "column": pa.array([column or None for _, column, _ in lines], pa.string()),
                "value": [float(value) for _, _, value in lines],
            }
        )

    def to_dict(self) -> dict[str, object]:
        """The figures in plain types."""
        figures: dict[str, object] = {
            "quasi": list(self.quasi),
            "rows": self.rows,
            "classes": self.classes,
            "k": self.k,
            "unique": self.unique,
            "l": self.l,
            "entropy_l": self.entropy_l,
            "t": self.t,
            "sensitive": {
                name: {"l": column.l, "entropy_l": column.entropy_l, "t": column.t, "ordered": column.ordered}
                for name, column in self.sensitive.items()
            },
        }
        if self.delta_presence is not None:
            figures |= {
                "delta_presence": list(self.delta_presence),
                "k_map": self.k_map,
                "reidentified": self.reidentified,
            }
        return figures

    def _lines(self) -> list[tuple[str, str, float]]:
        lines: list[tuple[str, str, float]] = [
            ("rows", "", self.rows),
            ("classes", "", self.classes),
            ("k", "", self.k),
            ("unique", "", self.unique),
        ]
        for name, column in self.sensitive.items():
            lines += [("l", name, column.l), ("entropy l", name, column.entropy_l), ("t", name, column.t)]
        if self.delta_presence is not None and self.k_map is not None and self.reidentified is not None:
            least, largest = self.delta_presence
            lines += [("delta presence, least", "", least), ("delta presence, largest", "", largest)]
            lines += [("k-map", "", self.k_map), ("re-identified", "", self.reidentified)]
        return lines

    def __str__(self) -> str:
        said = text_table(
            {
                "figure": [f"{what} of {column}" if column else what for what, column, _ in self._lines()],
                "value": [_shown(what, value) for what, _, value in self._lines()],
                "in words": [_words(what, value) for what, _, value in self._lines()],
            },
            width=80,
        )
        return f"{said}\nExact figures of the rows: for the steward's eyes."


def measure(
    table: Source,
    quasi: str | Sequence[str],
    sensitive: str | Sequence[str] = (),
    *,
    population: Source | None = None,
) -> Anonymity:
    """How anonymous a table is: k-anonymity, l-diversity, t-closeness, δ-presence and k-map.

    Rows with equal quasi-identifiers are a class; a missing value is a value like any other. The engine
    counts all classes of a file in one statement, or one for each sensitive column; a frame is counted in
    memory.

    Args:
        table: A path (CSV, Parquet, Arrow, `file.duckdb::table`), or an Arrow, pandas or Polars frame.
        quasi: The columns that an outsider may know, and no others: a table with its identifiers among them
            is always 1-anonymous.
        sensitive: The columns that an outsider wants to learn; each is looked at by itself.
        population: A table of everybody whom the rows were taken from, with the same quasi-identifiers.

    Privacy:
        None is claimed; steward-only. The result is an exact function of the rows.

    Raises:
        InvalidParameter: for a column that is not there or is both, or a table without rows, or a population
            that lacks people of the table.
        SourceUnusable: if a table cannot be read.
    """
    known, hidden = names_given(quasi, "quasi"), names_given(sensitive, "sensitive")
    if not known:
        raise InvalidParameter("quasi must name at least one column: what an outsider may know of a person.")
    folded = {name.casefold() for name in known}
    both = [name for name in hidden if name.casefold() in folded]
    if both:
        raise InvalidParameter(
            f'The column "{both[0][:100]}" is both quasi and sensitive: what is known cannot be hidden.'
        )
    with classes_of(table, known, hidden) as classes:
        counted = _counted(classes)
    if population is None:
        return counted
    with together((table, known), (population, known)) as (rows, everybody):
        present = presence(rows, everybody, list(rows.kinds))
    return replace(
        counted, delta_presence=present.delta, k_map=present.k_map, reidentified=present.reidentified
    )


def _counted(classes: Classes) -> Anonymity:
    spreads = {name: classes.spread(name) for name in classes.others}
    sizes = next((spread.sizes for spread in spreads.values()), None)
    sizes = classes.sizes() if sizes is None else sizes
    total = int(sizes.sum())
    return Anonymity(
        classes.quasi,
        total,
        len(sizes),
        int(sizes.min()),
        int((sizes == 1).sum()) / total,
        MappingProxyType({name: _diversity(spread) for name, spread in spreads.items()}),
    )


def _diversity(one: Spread) -> Diversity:
    return Diversity(distinct_l(one), entropy_l(one), closeness(one), one.ordered, recursive_ratios(one))


def _positive(c: float | Fraction | Decimal) -> Fraction:
    usable = isinstance(c, numbers.Real | Decimal) and not isinstance(c, bool)
    if not usable or not 0 < c < float("inf"):
        raise InvalidParameter("c must be a positive number.")
    return Fraction(repr(c)) if isinstance(c, float) else Fraction(c)


def _shown(what: str, value: float) -> str:
    """A figure in three digits, never better than it is."""
    if what in ("unique", "re-identified"):
        return percent(value)
    if isinstance(value, int):
        return f"{value:,}"
    is_worse_above = what in ("t", "delta presence, largest")
    way = ROUND_CEILING if is_worse_above else ROUND_FLOOR
    return str(Decimal(repr(value)).quantize(Decimal("0.001"), way))


def _words(what: str, value: float) -> str:
    if what == "k":
        return "somebody is alone" if value == 1 else f"everybody is among at least {value:,}"
    if what == "l":
        return "somebody's value is plain to see" if value == 1 else f"at least {value:,} values are possible"
    return {
        "classes": "combinations of quasi-identifiers",
        "unique": "of the rows are alone in their class",
        "entropy l": "equally likely values, at least",
        "t": "farthest a class is from the whole table",
        "delta presence, least": "surest absence: the share that is in the table",
        "delta presence, largest": "surest presence: the share that is in the table",
        "k-map": "people of the population, at least, for any row",
        "re-identified": "of the rows could be one person alone",
    }.get(what, "")
