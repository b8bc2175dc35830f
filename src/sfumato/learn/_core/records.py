"""`Records`: the private rows of a fit as they came, before they are integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.learn._core.declared import Unbought
from sfumato.learn._core.design import Design
from sfumato.learn._core.rows import Rows

__all__ = ["Columns", "Records"]

Columns: TypeAlias = Sequence[NDArray[Any]] | NDArray[Any]


class Records:
    """Rows that are not coordinates yet: their bounds are still to be bought, or parts of them are taken.

    Attributes:
        design: What is declared, the columns without bounds as `Unbought`; public.
        columns: Each column's floats, or the codes of its categories; or a matrix of floats; private.
        target: As in `Rows`, or floats where its bounds are to be bought too.
        units: Whose each row is, as numbers in any order; None: each row is a unit.
        exchange: As in `Rows`.
        target_column: What the target is called, where its bounds are to be bought.
    """

    def __init__(
        self,
        design: Design,
        columns: Columns,
        target: NDArray[Any] | None,
        units: NDArray[np.integer] | None,
        *,
        exchange: bool = False,
        target_column: Unbought | None = None,
    ) -> None:
        self.design, self.columns, self.target, self.units = design, columns, target, units
        self.exchange, self.target_column = exchange, target_column

    def __len__(self) -> int:
        return len(self.columns) if isinstance(self.columns, np.ndarray) else len(self.columns[0])

    def column(self, at: int) -> NDArray[Any]:
        """One column."""
        return self.columns[:, at] if isinstance(self.columns, np.ndarray) else self.columns[at]

    def taken(self, places: NDArray[Any]) -> Records:
        """Some of the rows, by their places or as a mask."""
        if isinstance(self.columns, np.ndarray):
            columns: Columns = self.columns[places]
        else:
            columns = [np.asarray(column)[places] for column in self.columns]
        target = None if self.target is None else self.target[places]
        units = None if self.units is None else self.units[places]
        return Records(
            self.design, columns, target, units, exchange=self.exchange, target_column=self.target_column
        )

    def with_design(self, design: Design) -> Records:
        """The same rows under another design of the same columns."""
        return Records(
            design,
            self.columns,
            self.target,
            self.units,
            exchange=self.exchange,
            target_column=self.target_column,
        )

    @property
    def bounded(self) -> bool:
        """Whether there are bounds for everything."""
        return not self.design.unbought and self.target_column is None

    def rows(self) -> Rows:
        """The rows as a fit takes them, once there are bounds for everything."""
        assert self.bounded
        integers = self.design.integers(self.columns)
        return Rows(self.design, integers, self.target, self.units, exchange=self.exchange)
