"""`KBinsDiscretizer`: numbers as one of a few bins."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

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

__all__ = ["KBinsDiscretizer"]

Floats: TypeAlias = NDArray[np.float64]

_MOST_BINS = 1000
_CELLS = 256


class KBinsDiscretizer(PrivateTransformer):
    """Numbers as one of a few bins: equally wide ones, which are free, or equally full ones, which are paid.

    Args:
        epsilon: What bins with strategy "quantile" cost; None with "uniform".
        delta: Likewise.
        bounds: What each column is clamped to.
        n_bins: How many bins a column has.
        encode: "onehot-dense", a column of 0 and 1 for each bin, or "ordinal", the bin's number from 0.
        strategy: "quantile", bins that hold about as many rows each, or "uniform", equally wide ones.

    Attributes:
        bin_edges_: Of each column, from its lower bound to its upper one.
        n_bins_: How many bins each column has: fewer than asked for where edges fell together.

    Privacy:
        Claim: that of `PrivateEstimator`: nothing is read, or one Gaussian measurement of `counts`.
    """

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        bounds: Any = None,
        *,
        n_bins: int = 5,
        encode: str = "onehot-dense",
        strategy: str = "quantile",
    ) -> None:
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds
        self.n_bins, self.encode, self.strategy = n_bins, encode, strategy

    def _is_free(self) -> bool:
        return self.strategy == "uniform"

    def _check(self) -> None:
        super()._check()
        if not 2 <= as_integer(self.n_bins, "n_bins") <= _MOST_BINS:
            raise InvalidParameter(f"n_bins must be 2 to {_MOST_BINS}.")
        if self.encode not in ("onehot-dense", "ordinal"):
            raise InvalidParameter('encode must be "onehot-dense" or "ordinal".')
        if self.strategy not in ("quantile", "uniform"):
            raise InvalidParameter(
                'strategy must be "quantile", which buys bins, or "uniform", which is free.'
            )

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        return {"counts": meter.noisy(counts(rows, self._changing(rows.design), _CELLS), 1)}

    def _set(self, learned: Learned) -> None:
        columns, changed = self.design_.columns, self._changing(self.design_)
        wanted = np.linspace(0, 1, self.n_bins + 1)
        found = (
            by_column(learned["counts"], self.design_, changed, _CELLS) if learned else [None] * len(changed)
        )
        edges = [np.array([0.0, 1.0])] * len(columns)
        for place, noisy in zip(changed, found, strict=True):
            lower, upper = float(columns[place].lower), float(columns[place].upper)  # type: ignore[union-attr]
            line = lower + wanted * (upper - lower)
            if noisy is not None:
                line[1:-1] = levels(noisy, wanted[1:-1], lower, upper)
            distinct = np.unique(line)
            edges[place] = distinct if len(distinct) > 1 else np.array([lower, lower])
        self.bin_edges_ = np.array([*edges, None], dtype=object)[:-1]
        self.n_bins_ = np.array([len(line) - 1 for line in edges])

    def _rule(self, place: int, held: Floats) -> list[Floats]:
        codes = np.searchsorted(self.bin_edges_[place][1:-1], held, side="right").astype(np.float64)
        if self.encode == "ordinal":
            return [codes]
        return [(codes == bin_).astype(np.float64) for bin_ in range(self.n_bins_[place])]

    def _outputs(self, column: Declared, place: int) -> list[Number]:
        if isinstance(column, Number) and column.one_of:
            return [column]
        bins = int(self.n_bins_[place])
        if self.encode == "ordinal":
            return [number(column.name, 0, bins - 1)]
        zero, one = Fraction(0), Fraction(1)
        return [Number(f"{column.name}_{float(bin_)}", zero, one, column.name) for bin_ in range(bins)]

    def _back(self, place: int, part: Floats) -> Floats:
        column = self.design_.columns[place]
        if isinstance(column, Number) and column.one_of:
            return part[:, 0]
        edges = self.bin_edges_[place]
        codes = part[:, 0] if self.encode == "ordinal" else np.argmax(part, axis=1)
        middles = (edges[1:] + edges[:-1]) / 2
        return np.asarray(middles[np.clip(codes.astype(np.int64), 0, len(middles) - 1)])


def examples() -> tuple[Example, ...]:
    """Neighbours that come close to the claim."""
    few = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.3]])
    return (
        Example(
            "bins: a row more",
            lambda: KBinsDiscretizer(1, "1e-5", (0, 1), n_bins=2),
            Given(few),
            Given(np.vstack([few, [[1.0, 0.0]]])),
        ),
    )
