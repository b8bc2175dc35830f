"""`KaplanMeier`: survival curves of declared groups, with bands, medians and the log-rank test."""

from __future__ import annotations

import math
import os
import textwrap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.fits.meter import Meter
from sfumato.learn._core.declared import Category
from sfumato.learn._core.design import Design
from sfumato.learn._core.frames import column_of, columns_for, names_of
from sfumato.learn._core.rows import Rows
from sfumato.learn.base import Learned, units_of
from sfumato.learn.examples import Example, Given
from sfumato.learn.survival._cells import counting
from sfumato.learn.survival._curve import Curve
from sfumato.learn.survival._grid import pair
from sfumato.learn.survival._logrank import LogRank, logrank
from sfumato.learn.survival._ratio import HazardRatio, hazard_ratio
from sfumato.learn.survival._timed import Timed
from sfumato.numeric.exact import Rational
from sfumato.render import text_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Band", "HazardRatio", "KaplanMeier", "LogRank"]

Floats: TypeAlias = NDArray[np.float64]

_LEVELS = (0.5, 0.999)
_LINES = 20  # of a band that is printed, about


class Band(NamedTuple):
    """A curve between two others.

    Attributes:
        times: Where cells end.
        survival: The estimate.
        low: The lower ends.
        high: The upper ends.
        until: The time up to which enough people are at risk. Later, `low` is 0, and `high` says no more than
            that survival does not rise.
    """

    times: Floats
    survival: Floats
    low: Floats
    high: Floats
    until: float

    def __str__(self) -> str:
        """A table of about twenty times or fewer, and how far the band says something."""
        size = len(self.times)
        place = range(size - 1, -1, -math.ceil(size / _LINES))[::-1]
        low, high = np.floor(self.low * 1000) / 1000, np.ceil(self.high * 1000) / 1000
        table = text_table(
            {
                "time": [float(f"{self.times[at]:.6g}") for at in place],
                "survival": [float(f"{self.survival[at]:.3f}") for at in place],
                "between": [f"{low[at]:.3f} to {high[at]:.3f}" for at in place],
            }
        )
        some = f"{len(place)} of {size} times are shown. " if len(place) < size else ""
        until = f"Enough people are at risk up to {self.until:.6g}"
        later = "" if self.until >= self.times[-1] else "; later it is only known that survival does not rise"
        return f"{table}\n{textwrap.fill(f'{some}{until}{later}.', 80)}"

    def __repr__(self) -> str:
        return str(self)


class KaplanMeier(Timed):
    """Survival curves from counts of events, and of those who left, in public cells of time.

    ```python
    curves = KaplanMeier(epsilon=1, delta=1e-6, horizon=10, bins=20, groups=["old", "new"])
    curves.fit(arm, (years, died))
    curves.fit(session, "SELECT arm, years, died FROM patients", target=("years", "died"))
    curves.band(0.95, group="new"); curves.median_; curves.logrank()
    ```

    Durations beyond the horizon count as survivors, those below 0 as 0. Within a cell, who leaves counts as
    at risk for half of it (the life table's rule), since durations there are not told apart.

    Args:
        epsilon: What the whole fit costs: all groups, bands and tests.
        delta: Likewise.
        times: Where the cells of time end, in rising order.
        horizon: Instead of `times`: where the last of equal cells ends.
        bins: How many equal cells there are.
        groups: The values of the column that tells groups apart; None: everybody is in one. Rows with another
            value are left out.
        discrete: Whether durations are themselves edges, such as whole months: the estimate is then Kaplan
            and Meier's own, where who leaves at an edge was at risk in the cell that ends there.

    Attributes:
        times_: Where the cells end.
        survival_: The share that survives each cell; a line for each group where there are groups.
        at_risk_: About how many are at risk in each.
        events_: About how many events are in each.
        median_: When half are left, by the curve; infinity where it is not seen.

    Privacy:
        Claim: that of `PrivateEstimator`: one Gaussian measurement of `Counting.total`. Curves, bands,
        medians and tests are made of its noisy counts, and cost nothing more.
    """

    bounds = None
    needs_columns = False

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        times: Any = None,
        horizon: Any = None,
        bins: Any = 20,
        groups: Any = None,
        discrete: bool = False,
    ) -> None:
        self.epsilon, self.delta, self.times, self.horizon, self.bins = epsilon, delta, times, horizon, bins
        self.groups, self.discrete = groups, discrete

    def _check(self) -> None:
        super()._check()
        self._listed()

    def _listed(self) -> tuple[Any, ...]:
        """The declared groups; none: everybody is in one."""
        if self.groups is None:
            return ()
        if isinstance(self.groups, str) or not np.iterable(self.groups):
            raise InvalidParameter("groups must be a list of values, such as ['control', 'treated'].")
        listed = tuple(dict.fromkeys(np.asarray(list(self.groups)).tolist()))
        if not 1 <= len(listed) <= 100:
            raise InvalidParameter("groups must have 1 to 100 values.")
        return listed

    def _design_of(self, bounds: Any, names: list[str]) -> Design:  # noqa: ARG002 - groups are declared
        listed = self._listed()
        if len(names) != bool(listed):
            raise InvalidParameter(
                "Name one column beside the target, the groups'."
                if listed
                else "Name no column beside the target, or say which groups there are: groups=['a', 'b']."
            )
        return Design([Category(name, listed) for name in names], intercept=False)

    def _rows(self, X: Any, y: Any, units: Any) -> Rows:
        listed = self._listed()
        time, event = pair(y, None)
        if not listed:
            if X is not None:
                raise InvalidParameter("Without groups there is nothing to fit on but y: fit(None, y).")
            design, columns = self._design([]), None
        else:
            design, columns = self._grouped(X, len(time))
        integers = np.zeros((len(time), 0), np.int16) if columns is None else design.integers(columns)
        return Rows(design, integers, self._grid().coded(time, event), units_of(units, len(time)))

    def _grouped(self, X: Any, size: int) -> tuple[Design, list[NDArray[Any]]]:
        names = names_of(X)
        if X is None or (names is not None and len(names) != 1):
            raise InvalidParameter("fit(X, y) with groups takes one column as X: each row's group.")
        values = column_of(X, names[0]) if names is not None else np.asarray(X)
        values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        if values.shape != (size,):
            raise InvalidValue("X must have one group for each duration.")
        design = self._design([names[0] if names is not None else "group"])
        import pyarrow as pa

        column = design.columns[0]
        return design, columns_for(design, pa.table({column.name: pa.array(values.tolist())}))

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        cells, several = self._grid(), max(1, len(self._listed()))
        assert rows.target is not None
        groups = np.zeros(len(rows), np.int64)
        if self._listed():
            groups = np.where((rows.integers > 0).any(axis=1), rows.integers.argmax(axis=1), -1)
        total = counting(len(cells)).total(cells.cells(rows.target), groups, rows.units, several)
        return {
            "counts": counting(len(cells)).counts(meter.noisy(total, 1), several),
            "noise": np.array([meter.sigma(total.sensitivity * total.step, 1)]),
        }

    def _set(self, learned: Learned) -> None:
        cells = self._grid()
        spread = counting(len(cells)).spread * float(learned["noise"][0])
        counts = np.asarray(learned["counts"], np.float64)
        self._curves = [Curve(line, spread, discrete=bool(self.discrete)) for line in counts]
        self.times_, self.groups_ = cells.edges, np.array(self._listed())
        self.survival_ = self._each([curve.survival for curve in self._curves])
        self.at_risk_ = self._each([curve.at_risk for curve in self._curves])
        self.events_ = self._each([curve.events for curve in self._curves])
        self.median_ = self._each([_first(cells.edges, curve.survival <= 0.5) for curve in self._curves])

    def _each(self, values: list[Any]) -> Any:
        return np.array(values) if self._listed() else values[0]

    def _curve(self, group: Any) -> Curve:
        check_is_fitted(self, "times_")
        listed = self.groups_.tolist()
        if not listed and group is None:
            group, listed = 0, [0]
        if group not in listed:
            raise InvalidParameter("Say which of the declared groups: band(0.95, group=…).")
        found: Curve = self._curves[listed.index(group)]
        return found

    def predict(self, times: Any, group: Any = None) -> Floats:
        """The share that survives to each of these times: that of the last cell that has ended by then."""
        steps = np.concatenate([[1.0], self._curve(group).survival])
        return np.asarray(steps[np.searchsorted(self.times_, np.asarray(times, np.float64), side="right")])

    def band(
        self,
        level: float = 0.95,
        *,
        group: Any = None,
        kind: Literal["simultaneous", "pointwise"] = "simultaneous",
    ) -> Band:
        """Where the curve of the whole population lies: sampling and noise are both counted.

        Args:
            level: How often it does.
            group: Which curve.
            kind: "simultaneous": the whole curve at once; "pointwise": at each time by itself.

        Raises:
            InvalidParameter: if too few people are seen beside the noise, of which coverage is not shown.
        """
        curve, level = self._seen(group), _level(level)
        if kind not in ("simultaneous", "pointwise"):
            raise InvalidParameter("kind must be 'simultaneous' or 'pointwise'.")
        low, high = curve.simultaneous(level) if kind == "simultaneous" else curve.pointwise(level)
        return Band(self.times_, curve.survival, low, high, float(self.times_[curve.clear - 1]))

    def median_interval(self, level: float = 0.95, *, group: Any = None) -> tuple[float, float]:
        """Where the median of the population lies, between edges; infinity: it may be beyond the horizon.

        Raises:
            InvalidParameter: as `band`.
        """
        low, high = self._seen(group).pointwise(_level(level))
        edges = np.concatenate([[0.0], self.times_])
        first = int(np.argmax(low <= 0.5)) if (low <= 0.5).any() else len(low)
        above = np.flatnonzero(high >= 0.5)
        last = above[-1] + 2 if len(above) else 1
        return float(edges[first]), float(edges[last]) if last < len(edges) else float("inf")

    def _seen(self, group: Any) -> Curve:
        curve = self._curve(group)
        if not curve.clear:
            raise InvalidParameter(
                "Too few people are at risk beside the noise for a band that is shown to hold: raise "
                "epsilon, or join groups."
            )
        return curve

    def logrank(self) -> LogRank:
        """Whether the groups survive alike; free, since it is made of what was released.

        Raises:
            InvalidParameter: if there are fewer than two groups, or too few people in one.
        """
        check_is_fitted(self, "times_")
        if len(self._curves) < 2:
            raise InvalidParameter("A log-rank test needs two groups: groups=['control', 'treated'].")
        return logrank(self._curves)

    def hazard_ratio(self, group: Any, *, over: Any, level: float = 0.95) -> HazardRatio:
        """The ratio of two groups' hazards, if it is the same at all times; free, as `logrank`.

        Where they are not, it is about the ratio of their averages over time.

        Args:
            group: Whose hazard.
            over: Compared with whose.
            level: How often the interval holds the ratio of the population.

        Raises:
            InvalidParameter: if these are no two of the declared groups.
            NotCertified: if some group has too few events beside the noise.
        """
        check_is_fitted(self, "times_")
        if group == over:
            raise InvalidParameter("A hazard ratio compares two different groups: over='control'.")
        found = hazard_ratio(self._curve(group), self._curve(over), _level(level))
        return HazardRatio(*found[:3], float(self.times_[found[3] - 1]))

    def plot(self, level: float = 0.95, *, path: str | os.PathLike[str] | None = None) -> Figure:
        """The curves with their simultaneous bands, one panel a group (at most six)."""
        from sfumato.plots import noise_panels

        check_is_fitted(self, "times_")
        panels = {}
        for name in self.groups_.tolist() or [None]:
            band = self.band(level, group=name)
            shown = [np.concatenate([[1.0], line]) for line in (band.survival, band.low, band.high)]
            panels["survival" if name is None else f"survival, {name}"] = (shown[0], shown[1], shown[2])
        return noise_panels(
            [0.0, *self.times_.tolist()],
            panels,
            xlabel="time",
            note=f"Line: released. Band: the curve of the population, at {level * 100:.6g} % confidence.",
            kind="line",
            path=path,
        )


def _first(edges: Floats, reached: NDArray[np.bool_]) -> float:
    return float(edges[int(np.argmax(reached))]) if reached.any() else float("inf")


def _level(level: float) -> float:
    if not _LEVELS[0] <= level <= _LEVELS[1]:
        raise InvalidParameter(f"level must be between {_LEVELS[0]} and {_LEVELS[1]}.")
    return float(level)


def examples() -> tuple[Example, ...]:
    """Neighbours that come close to the claim."""
    times, events = np.array([1.0, 3.0, 9.0]), np.array([1, 0, 1])

    def with_more(time: list[float], event: list[int]) -> tuple[Floats, Any]:
        return np.concatenate([times, time]), np.concatenate([events, event])

    return (
        Example(
            "Kaplan-Meier: an event in the first cell",
            lambda: KaplanMeier(epsilon=1, delta="1e-5", horizon=4, bins=4),
            Given(None, (times, events)),
            Given(None, with_more([0.5], [1])),
        ),
        Example(
            "Kaplan-Meier: a survivor more in a group",
            lambda: KaplanMeier(epsilon=2, delta="1e-5", times=[1, 2, 5], groups=["a", "b"]),
            Given(["a", "b", "c"], (times, events)),
            Given(["a", "b", "c", "b"], with_more([8.0], [0])),
        ),
        Example(
            "Kaplan-Meier: somebody with many rows",
            lambda: KaplanMeier(epsilon=1, delta="1e-5", horizon=4, bins=2, discrete=True),
            Given(None, (times, events), units=[0, 1, 2]),
            Given(None, with_more([1.0, 2.0, 1.0], [1, 1, 1]), units=[0, 1, 2, 7, 7, 7]),
        ),
    )
