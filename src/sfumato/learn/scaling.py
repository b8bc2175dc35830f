"""`StandardScaler` and `MinMaxScaler`: columns to a common scale."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.learn._core.declared import Declared, Number, number
from sfumato.learn._core.rows import Rows
from sfumato.learn._steps.counts import by_column, counts
from sfumato.learn._steps.quantiles import levels
from sfumato.learn._steps.spreads import spreads
from sfumato.learn.base import Learned
from sfumato.learn.examples import Example, Given
from sfumato.learn.transforming import PrivateTransformer
from sfumato.numeric.exact import Rational, positive

__all__ = ["MinMaxScaler", "StandardScaler"]

Floats: TypeAlias = NDArray[np.float64]

_CELLS = 256
_NARROWEST = 2.0**-24


class _Linear(PrivateTransformer):
    """A step that moves and stretches each column, within bounds."""

    def _line(self, place: int) -> tuple[float, float, float, float]:
        """What is taken off, what it is multiplied with then, and the ends of what comes out."""
        raise NotImplementedError

    def _rule(self, place: int, held: Floats) -> list[Floats]:
        start, rate, lower, upper = self._line(place)
        return [np.clip((held - start) * rate, lower, upper)]

    def _outputs(self, column: Declared, place: int) -> list[Number]:
        if not isinstance(column, Number) or column.one_of:
            return [column] if isinstance(column, Number) else []
        start, rate, lower, upper = self._line(place)
        ends = [(float(end) - start) * rate for end in (column.lower, column.upper)]
        return [number(column.name, max(ends[0], lower), min(ends[1], upper))]

    def _back(self, place: int, part: Floats) -> Floats:
        column = self.design_.columns[place]
        if isinstance(column, Number) and column.one_of:
            return part[:, 0]
        start, rate, _, _ = self._line(place)
        return np.asarray(part[:, 0] / rate + start)


class StandardScaler(_Linear):
    """Columns with mean 0 and standard deviation 1, by noisy means and variances.

    Args:
        epsilon: What the fit costs.
        delta: Likewise.
        bounds: What each column is clamped to.
        with_mean: Whether the mean is taken off.
        with_std: Whether columns are divided by their standard deviation.
        clip: With both, how many standard deviations away what comes out ends: the bounds that a later step
            works with. None: where the declared bounds end.

    Attributes:
        count_: About how many rows there are.
        mean_: Of each column.
        var_: Likewise; where the noise hides it, as much as the noise is.
        scale_: What each column is divided by.

    Privacy:
        Claim: that of `PrivateEstimator`: one Gaussian measurement of `spreads`.
    """

    signed = True

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        bounds: Any = None,
        *,
        with_mean: bool = True,
        with_std: bool = True,
        clip: float | None = 5.0,
    ) -> None:
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds
        self.with_mean, self.with_std, self.clip = with_mean, with_std, clip

    def _check(self) -> None:
        super()._check()
        if self.clip is not None and not 0.1 <= positive(self.clip, "clip") <= 1000:
            raise InvalidParameter("clip must be 0.1 to 1000 standard deviations, or None.")

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        total = spreads(rows, self._changing(rows.design))
        noise = meter.sigma(total.sensitivity * total.step, 1)
        return {"sums": meter.noisy(total, 1), "noise": np.array(noise)}

    def _set(self, learned: Learned) -> None:
        columns = self.design_.columns
        changed = self._changing(self.design_)
        sums, size = learned["sums"], len(changed)
        self.count_ = max(1.0, float(sums[0]))
        means = np.clip(sums[1 : 1 + size] / self.count_, -1, 1)
        spread = 1 - sums[1 + size :] / self.count_ - means**2
        # A spread below what the noise can do is not told from the noise.
        floor = np.clip(2 * float(learned["noise"]) / self.count_, _NARROWEST, 1.0)
        spread = np.clip(spread, floor, 1.0)
        self.mean_, self.var_ = np.zeros(len(columns)), np.ones(len(columns))
        for at, place in enumerate(changed):
            lower, upper = (float(end) for end in (columns[place].lower, columns[place].upper))  # type: ignore[union-attr]
            half = (upper - lower) / 2
            self.mean_[place] = lower + half * (1 + means[at])
            self.var_[place] = spread[at] * half**2 if half > 0 else 1.0
        self.scale_ = np.sqrt(self.var_)

    def _line(self, place: int) -> tuple[float, float, float, float]:
        start = float(self.mean_[place]) if self.with_mean else 0.0
        rate = 1 / float(self.scale_[place]) if self.with_std else 1.0
        end = float(self.clip) if self.clip is not None and self.with_mean and self.with_std else np.inf
        return start, rate, -end, end


class MinMaxScaler(_Linear):
    """Columns from their bounds to a common range: free with declared bounds.

    Args:
        epsilon: What `quantile_range` costs; None without one.
        delta: Likewise.
        bounds: What each column is clamped to.
        feature_range: Where what comes out begins and ends.
        quantile_range: Narrower bounds are bought within the declared ones: the numbers below which these
            percentages of the rows are, such as (1, 99). None: the declared ones, for nothing.

    Attributes:
        data_min_: What goes to the lower end of the range.
        data_max_: What goes to the upper end.
        scale_: What each column is multiplied with.
        min_: What is added then.

    Privacy:
        Claim: that of `PrivateEstimator`: nothing is read, or one Gaussian measurement of `counts`.
    """

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        bounds: Any = None,
        *,
        feature_range: tuple[float, float] = (0, 1),
        quantile_range: tuple[float, float] | None = None,
    ) -> None:
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds
        self.feature_range, self.quantile_range = feature_range, quantile_range

    def _is_free(self) -> bool:
        return self.quantile_range is None

    def _check(self) -> None:
        super()._check()
        if not _ascending(self.feature_range):
            raise InvalidParameter("feature_range must be a pair (lower, upper) with lower below upper.")
        number("feature_range", *self.feature_range)
        wanted = self.quantile_range
        if wanted is not None and not (_ascending(wanted) and wanted[0] >= 0 and wanted[1] <= 100):
            raise InvalidParameter("quantile_range must be two percentages such as (1, 99), or None.")

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        return {"counts": meter.noisy(counts(rows, self._changing(rows.design), _CELLS), 1)}

    def _set(self, learned: Learned) -> None:
        columns, changed = self.design_.columns, self._changing(self.design_)
        self.data_min_, self.data_max_ = np.zeros(len(columns)), np.ones(len(columns))
        found = (
            by_column(learned["counts"], self.design_, changed, _CELLS) if learned else [None] * len(changed)
        )
        for place, noisy in zip(changed, found, strict=True):
            ends = np.array([float(columns[place].lower), float(columns[place].upper)])  # type: ignore[union-attr]
            if noisy is not None and self.quantile_range is not None:
                ends = levels(noisy, np.array(self.quantile_range) / 100, *ends)
            self.data_min_[place], self.data_max_[place] = ends
        lower, upper = self.feature_range
        self.data_range_ = self.data_max_ - self.data_min_
        span = np.where(self.data_range_ > 0, self.data_range_, 1.0)
        self.scale_ = (upper - lower) / span
        self.min_ = lower - self.data_min_ * self.scale_

    def _line(self, place: int) -> tuple[float, float, float, float]:
        rate, (lower, upper) = float(self.scale_[place]), self.feature_range
        return float(self.data_min_[place]) - lower / rate, rate, float(lower), float(upper)


def _ascending(pair: Any) -> bool:
    try:
        lower, upper = pair
        return bool(np.isfinite([lower, upper]).all() and lower < upper)
    except (TypeError, ValueError):
        return False


def examples() -> tuple[Example, ...]:
    """Neighbours that come close to the claim."""
    few = np.full((3, 2), 0.5)
    far = np.vstack([few, [[1.0, -1.0]]])
    many = np.vstack([few, np.ones((4, 2))])
    return (
        Example(
            "standard scaler: a row at the corner",
            lambda: StandardScaler(1, "1e-5", (-1, 1)),
            Given(few),
            Given(far),
        ),
        Example(
            "standard scaler: somebody with many rows",
            lambda: StandardScaler(1, "1e-5", (-1, 1)),
            Given(few, units=[0, 1, 2]),
            Given(many, units=[0, 1, 2, 3, 3, 3, 3]),
        ),
        Example(
            "min-max scaler: bounds that are bought",
            lambda: MinMaxScaler(1, "1e-5", (-1, 1), quantile_range=(5, 95)),
            Given(few),
            Given(far),
        ),
    )
