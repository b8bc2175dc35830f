"""How the values of a column are spread over the classes: one group-by, and all that is measured on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato.anonymity._keys import key_of
from sfumato.anonymity.tables import Grouped

__all__ = ["Counts", "Spread", "spread"]

Counts: TypeAlias = npt.NDArray[np.int64]

_ORDERED = frozenset({"integer", "float", "date", "timestamp"})


@dataclass(frozen=True, slots=True)
class Spread:
    """The counts of the values of one column in each class, those of a class side by side.

    Attributes:
        starts: Where each class begins in `counts`; a last entry says where the last one ends.
        counts: How often a value occurs in its class, from 1 on.
        values: Which value it is: a number from 0 on, in the order of the values where they have one. A
            missing value comes before all others, NaN after them.
        totals: How often each value occurs in the whole table.
        ordered: Whether the values have an order: numbers, days and times.
    """

    starts: Counts
    counts: Counts
    values: Counts
    totals: Counts
    ordered: bool

    @property
    def distinct(self) -> Counts:
        """The number of different values in each class."""
        return np.diff(self.starts)

    @property
    def sizes(self) -> Counts:
        """The number of rows of each class."""
        return np.add.reduceat(self.counts, self.starts[:-1])

    @property
    def owners(self) -> Counts:
        """The class of each count."""
        return np.repeat(np.arange(len(self.starts) - 1), self.distinct)


def spread(table: Grouped, sensitive: str) -> Spread:
    """How the values of a column are spread over the classes.

    Raises:
        InvalidParameter: if there is no row.
    """
    rows = table.rows
    given = ", ".join(f"{key} AS q{i}" for i, key in enumerate(table.keys))
    found = rows.fetch(
        f"SELECT {given}, {rows.scalar(sensitive)} AS v, count(*) AS n FROM {rows.relation} GROUP BY ALL"
    )
    rows.checked(found.num_rows)
    keys = key_of([found.column(i) for i in range(len(table.keys))])
    assert keys is not None  # no nested values are left
    order = np.argsort(keys, kind="stable")
    begins = np.flatnonzero(np.diff(keys[order], prepend=keys[order[0]] - 1))
    counts = found.column("n").to_numpy().astype(np.int64)[order]
    values = _ranks(found.column("v").combine_chunks())[order]
    return Spread(
        np.append(begins, len(counts)).astype(np.int64),
        counts,
        values,
        np.bincount(values, weights=counts).astype(np.int64),
        rows.kinds[sensitive] in _ORDERED,
    )


def _ranks(values: Any) -> Counts:
    """The place of each value among the different ones: a missing value is the first, NaN the last."""
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = values.dictionary_encode(null_encoding="encode")
    different = coded.dictionary
    if pa.types.is_floating(
        different.type
    ):  # Arrow puts NaN beside what is missing, numpy last
        known = different.is_valid().to_numpy(zero_copy_only=False)
        order = np.lexsort((different.fill_null(0.0).to_numpy(), known))
    else:
        order = pc.sort_indices(different, sort_keys=[("", "ascending", "at_start")]).to_numpy()
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    ranks: Counts = places[coded.indices.cast(pa.int64()).to_numpy()]
    return ranks
