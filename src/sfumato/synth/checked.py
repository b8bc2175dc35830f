"""`SynthCheck`: how far a synthetic table is from the private one, as it was bought. All public."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import ndtri

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.fits.paying import units_told
from sfumato.numeric.exact import show
from sfumato.render import text_table

if TYPE_CHECKING:
    from sfumato.ledger import Receipt
    from sfumato.loss import GaussianLoss

__all__ = ["CheckQuote", "Noisy", "SynthCheck", "half_width"]

_WIDTH = 80


class Noisy(NamedTuple):
    """A mean, over sets of columns, of the rows that counts are off by; with noise.

    Attributes:
        value: Σ |count − expected| over all cells of a set, its mean over the sets.
        sigma: The standard deviation of the noise.
        rounded: What it is off by at most since expected counts were rounded.
    """

    value: float
    sigma: float
    rounded: float

    def reach(self, level: float) -> float:
        """How far off it is at most, at this level."""
        return float(ndtri((1 + level) / 2)) * self.sigma + self.rounded


def half_width(rows: float, counting: float, mean: Noisy, level: float) -> float:
    """How far a mean total variation may be off, if the number of rows is known up to noise of a size.

    Let p be the model's chances, n the true number of rows, m the noisy one and D = Σ |count − m·p|, which
    was bought. Since Σ count = n, ½Σ |count/n − p| differs from D/2m by at most ½Σ count·|1/n − 1/m|, which
    is |n − m|/2m. Both D and n are within their reach at a level that leaves half of the misses to each.

    Args:
        rows: The noisy number of rows, above 0.
        counting: The standard deviation of its noise.
        mean: The mean of D.
        level: How often the interval holds the truth.
    """
    each = (1 + level) / 2
    return (mean.reach(each) + float(ndtri((1 + each) / 2)) * counting) / (2 * rows)


@dataclass(frozen=True, slots=True, repr=False)
class SynthCheck:
    """How far a model is from the rows that were read, with noise: anyone may have it.

    Attributes:
        table: Whose rows it was held against.
        sets: How many sets of columns were compared.
        rows: About how many rows there are.
        counting: The standard deviation of the noise of that.
        mean: What counts are off by, on average over the sets.
        columns: The same over the sets with one column, for each of them.
        total: How many rows the model's own counts add up to.
        model: Which model it is: a fingerprint of what its fit released.
        luck: About what the mean total variation would be if so many rows were drawn from the model itself:
            it is no better than that where cells are many and rows few.
        epsilon: What it cost.
        delta: Its other half.
        receipt: Of the debit that paid for it.
    """

    table: str
    sets: int
    rows: float
    counting: float
    mean: Noisy
    columns: Mapping[str, Noisy]
    total: float
    model: str
    luck: float
    epsilon: Fraction
    delta: Fraction
    receipt: Receipt

    @property
    def error(self) -> float:
        """The total variation between the model and the rows, on average over the sets: from 0 to 1."""
        return self._variation(self.mean)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Where the mean total variation lies.

        Args:
            level: How often the interval holds it.

        Raises:
            InvalidParameter: if the level is not between 0 and 1.
        """
        return self._interval(self.mean, level)

    def by_column(self, level: float = 0.95) -> pa.Table:
        """For each column the mean total variation over the sets that it is in, the largest first.

        Args:
            level: How often each interval, from `low` to `high`, holds it.

        Raises:
            InvalidParameter: if the level is not between 0 and 1.
        """
        found = [
            {"column": name, "error": self._variation(mean)}
            | dict(zip(("low", "high"), self._interval(mean, level), strict=True))
            for name, mean in self.columns.items()
        ]
        order = sorted(found, key=lambda line: -line["error"])  # type: ignore[operator]
        kinds = [("column", pa.string()), *((name, pa.float64()) for name in ("error", "low", "high"))]
        return pa.Table.from_pylist(order, pa.schema(kinds))

    def misfit(self, level: float = 0.95) -> float:
        """How many rows the model's own counts of a set are off by at most, over all its cells together.

        It is a mean over the sets. Where one set was checked alone, no count of rows by these columns that
        the model gives, whatever it adds up, is off by more.

        Args:
            level: How often that is so.

        Raises:
            InvalidParameter: if the level is not between 0 and 1.
        """
        # The model's counts are its chances times its own total; what was bought is about `_scale` of them.
        return max(self.mean.value, 0.0) + self.mean.reach(_checked(level)) + abs(self.total - self._scale)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with intervals at 95 %."""
        return {
            "table": self.table,
            "sets": self.sets,
            "rows": self.rows,
            "error": self.error,
            "interval": list(self.interval()),
            "luck": self.luck,
            "columns": self.by_column().to_pylist(),
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "receipt": self.receipt.number,
        }

    def __str__(self) -> str:
        """The error with its interval, then column by column."""
        low, high = self.interval()
        said = (
            f"Over {self.sets} set{'s' * (self.sets > 1)} of columns of {self.table}, the total variation "
            f"between model and rows is {self.error:.4f} on average, {low:.4f} to {high:.4f} with 95 % "
            f"confidence; of rows drawn from the model itself it would be about {self.luck:.4f}. It cost "
            f"epsilon {show(self.epsilon)}, delta {float(self.delta):.4g}."
        )
        told = {
            name: [value if name == "column" else f"{value:.4f}" for value in column.to_pylist()]
            for name, column in zip(self.by_column().column_names, self.by_column().columns, strict=True)
        }
        return f"{textwrap.fill(said, _WIDTH)}\n\n{text_table(told, width=_WIDTH)}"

    def __repr__(self) -> str:
        return str(self)

    @property
    def _scale(self) -> float:
        """The number of rows that the model was held against: the noisy one, or 1."""
        return max(self.rows, 1.0)

    def _variation(self, mean: Noisy) -> float:
        return float(np.clip(mean.value / (2 * self._scale), 0.0, 1.0))

    def _interval(self, mean: Noisy, level: float) -> tuple[float, float]:
        half = half_width(self._scale, self.counting, mean, _checked(level))
        half += (self._scale - self.rows) / (2 * self._scale)
        middle = mean.value / (2 * self._scale)
        low, high = np.clip([middle - half, middle + half], 0.0, 1.0)
        return float(low), float(high)


@dataclass(frozen=True, slots=True, repr=False)
class CheckQuote:
    """What a check will cost and how much it will tell, before it is paid; making one reads nothing.

    Attributes:
        table: Whose rows the model is held against.
        sets: How many sets of columns are compared.
        epsilon: The price.
        delta: Its other half.
        loss: What the ledger is charged.
        half_width: About how far off the mean total variation will be, at 95 %.
        max_rows: How many rows of a unit are read, at most; None: each row is a unit.
        note: What the ledger says: that it is on record, or more than what is left; else empty.
        delta_told: Where delta comes from, if nobody named it.
    """

    table: str
    sets: int
    epsilon: Fraction
    delta: Fraction
    loss: GaussianLoss
    half_width: float
    max_rows: int | None
    note: str
    delta_told: str = ""

    def __str__(self) -> str:
        """Such as `A check of a synthetic people, 6 sets of columns: epsilon 0.1, delta 1e-09.`."""
        told = f" ({self.delta_told})" if self.delta_told else ""
        said = (
            f"A check of a synthetic {self.table}, {self.sets} set{'s' * (self.sets > 1)} of columns: "
            f"epsilon {show(self.epsilon)}, delta {float(self.delta):.4g}{told}. The mean total variation "
            f"will be known to about ±{self.half_width:.2g}."
        )
        parts: Sequence[str] = (said, units_told(self.max_rows), self.note)
        return textwrap.fill(" ".join(filter(None, parts)), _WIDTH)

    def __repr__(self) -> str:
        return str(self)


def _checked(level: float) -> float:
    if not 0 < level < 1:
        raise InvalidParameter("level must be between 0 and 1.")
    return level
