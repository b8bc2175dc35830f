"""Groups that come later: which of those that a step has join a series, by noise that can be drawn again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.session.columnar import plain_key

if TYPE_CHECKING:
    from sfumato.plan.prices.selecting import Counting
    from sfumato.session.reading import Reading

__all__ = ["Finding", "Group", "name_of", "placed"]

Group = tuple[Any, ...]
"""The values of the keys of a group but for its time."""


@dataclass(frozen=True, slots=True)
class Finding:
    """How groups are found.

    Attributes:
        selection: What decides on each group in each step, by the number of its units there.
        time: Which key of the question is time.
    """

    selection: Counting
    time: int

    def groups(self, reading: Reading) -> list[Group]:
        """The groups of one step, without its time."""
        return [(*group[: self.time], *group[self.time + 1 :]) for group in reading.groups]

    def with_time(self, groups: Sequence[Group], time: Any) -> tuple[Group, ...]:
        """Groups of a step as its question has them."""
        return tuple((*group[: self.time], time, *group[self.time :]) for group in groups)

    def joining(
        self, names: Sequence[str], units: NDArray[Any], known: Mapping[str, int], key: bytes
    ) -> NDArray[np.int64]:
        """The places of the groups that join a series in a step, of those that are not in it.

        Args:
            names: Of the groups that the step has, in a canonical order.
            units: How many units each has in this step.
            known: The groups that are in the series.
            key: What the noise follows from: of this step of this series, and of nothing else.

        Privacy:
            Claim: what joins in all steps carries the loss of `selection`, which is made for as many pairs of
            a step and a group as one unit can be in (`plan.prices.bundle`). Pairs of groups that are known
            may be thought tested, too, with what came of it thrown away. Nothing but `units` of this step
            decides.
        """
        rows = np.array([row for row, name in enumerate(names) if name not in known], np.int64)
        if not rows.size:
            return rows
        with random.drawing_from(random.Keyed(key)):
            kept, _ = self.selection.release(np.asarray(units[rows], np.int64))
        return rows[kept]


def name_of(group: Group) -> str:
    """A group's keys as text, the same for the same keys alone."""
    return json.dumps([plain_key(value) for value in group])


def placed(column: NDArray[Any], names: Sequence[str], known: Mapping[str, int]) -> NDArray[Any]:
    """A column of what a step has, in the order of the groups of the series; 0 for those that it has not."""
    values = np.zeros(len(known), column.dtype)
    places = np.array([known.get(name, -1) for name in names], np.int64)
    values[places[places >= 0]] = column[places >= 0]
    return values
