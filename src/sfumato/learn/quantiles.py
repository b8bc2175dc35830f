"""`QuantileTransformer`: columns that are spread evenly, or like the normal law."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.learn._core.declared import Declared, Number, number
from sfumato.learn._core.rows import Rows
from sfumato.learn._steps.counts import by_column, counts
from sfumato.learn._steps.quantiles import levels
from sfumato.learn.base import Learned
from sfumato.learn.examples import Example, Given
from sfumato.learn.transforming import PrivateTransformer
from sfumato.numeric.exact import Rational, as_integer

__all__ = ["QuantileTransformer"]

Floats: TypeAlias = NDArray[np.float64]

_END = -float(ndtri(1e-7))  # where the normal law is cut off, as in scikit-learn
_MOST_CELLS = 1 << 14


class QuantileTransformer(PrivateTransformer):
    """Each number as the part of the rows below it, by a noisy histogram of each column.

    Args:
        epsilon: What the fit costs.
        delta: Likewise.
        bounds: What each column is clamped to.
        n_quantiles: How many quantiles are kept of a column.
        output_distribution: "uniform", from 0 to 1, or "normal", from −5.2 to 5.2.
        cells: In how many equally wide cells the range of a column is counted: more see more, and have more
            noise between them.

    Attributes:
        quantiles_: The quantiles of each column, ascending.
        references_: Of which parts of the rows they are.

    Privacy:
        Claim: that of `PrivateEstimator`: one Gaussian measurement of `counts`.
    """

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        bounds: Any = None,
        *,
        n_quantiles: int = 100,
        output_distribution: str = "uniform",
        cells: int = 256,
    ) -> None:
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds
        self.n_quantiles, self.output_distribution, self.cells = n_quantiles, output_distribution, cells

    def _check(self) -> None:
        super()._check()
        if not 2 <= as_integer(self.n_quantiles, "n_quantiles") <= _MOST_CELLS:
            raise InvalidParameter(f"n_quantiles must be 2 to {_MOST_CELLS}.")
        if not 2 <= as_integer(self.cells, "cells") <= _MOST_CELLS:
            raise InvalidParameter(f"cells must be 2 to {_MOST_CELLS}.")
        if self.output_distribution not in ("uniform", "normal"):
            raise InvalidParameter('output_distribution must be "uniform" or "normal".')

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        return {"counts": meter.noisy(counts(rows, self._changing(rows.design), self.cells), 1)}

    def _set(self, learned: Learned) -> None:
        columns, changed = self.design_.columns, self._changing(self.design_)
        self.references_ = np.linspace(0, 1, self.n_quantiles)
        self.quantiles_ = np.tile(self.references_[:, None], len(columns))
        for place, noisy in zip(
            changed, by_column(learned["counts"], self.design_, changed, self.cells), strict=True
        ):
            lower, upper = float(columns[place].lower), float(columns[place].upper)  # type: ignore[union-attr]
            self.quantiles_[:, place] = levels(noisy, self.references_, lower, upper)

    def _rule(self, place: int, held: Floats) -> list[Floats]:
        parts = np.interp(held, self.quantiles_[:, place], self.references_)
        if self.output_distribution == "uniform":
            return [parts]
        return [np.clip(ndtri(parts), -_END, _END)]

    def _outputs(self, column: Declared, place: int) -> list[Number]:  # noqa: ARG002 - all columns alike
        if isinstance(column, Number) and column.one_of:
            return [column]
        return [
            number(column.name, 0, 1)
            if self.output_distribution == "uniform"
            else number(column.name, -_END, _END)
        ]

    def _back(self, place: int, part: Floats) -> Floats:
        column, values = self.design_.columns[place], part[:, 0]
        if isinstance(column, Number) and column.one_of:
            return values
        parts = values if self.output_distribution == "uniform" else ndtr(values)
        return np.asarray(np.interp(parts, self.references_, self.quantiles_[:, place]))


def examples() -> tuple[Example, ...]:
    """Neighbours that come close to the claim."""
    few = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.3]])
    return (
        Example(
            "quantile transformer: a row more",
            lambda: QuantileTransformer(1, "1e-5", (0, 1), cells=4),
            Given(few),
            Given(np.vstack([few, [[1.0, 0.0]]])),
        ),
        Example(
            "quantile transformer: somebody with many rows",
            lambda: QuantileTransformer(1, "1e-5", (0, 1), cells=4),
            Given(few, units=[0, 1, 2]),
            Given(np.vstack([few, np.ones((7, 2))]), units=[0, 1, 2, *[3] * 7]),
        ),
    )
