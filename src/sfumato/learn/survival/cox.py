"""`CoxRegression`: by what each column multiplies the hazard, over a public grid of times."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import InvalidParameter, NotCertified
from sfumato.fits.meter import Meter
from sfumato.learn._core.rows import Rows
from sfumato.learn._weights.descent import WIDEST
from sfumato.learn._weights.told import Summarised
from sfumato.learn.base import Learned
from sfumato.learn.examples import Example, Given
from sfumato.learn.survival._grid import pair
from sfumato.learn.survival._steps import fitted
from sfumato.learn.survival._timed import Timed
from sfumato.numeric.exact import Rational
from sfumato.random import simulation

__all__ = ["CoxRegression"]

Floats: TypeAlias = NDArray[np.float64]

_FARTHEST = 50.0  # a risk is not taken to be beyond e^±50
_WITHHELD = (
    "No intervals for hazard ratios: cut gradients and few steps move them by what no noisy answer here "
    "tells; for two groups, KaplanMeier gives a hazard ratio and bands that are shown to hold."
)


class CoxRegression(Summarised, Timed):
    """Cox's model of the hazard, on a public grid of times.

    ```python
    model = CoxRegression(epsilon=1, delta=1e-6, bounds={"age": (20, 90), "arm": ["old", "new"]}, horizon=10)
    model.fit(X, (years, died))
    model.fit(session, "SELECT age, arm, years, died FROM patients", target=("years", "died"))
    model.hazard_ratios_; model.predict_survival(X, [1, 5]); model.concordance(X, (years, died))
    ```

    The baseline hazard is constant within each cell of the grid: a Poisson model of events over person-time,
    which is Cox's model with the events of a cell as ties. A partial likelihood compares each row with all
    others, and is not a sum over rows; this likelihood is. Noisy counts of events and of who left give the
    hazard of everybody. Columns are standardised, and the second moments of rows with an event, which are the
    model's information, make them vary alike. Then five steps, or eight where there is plenty, go along noisy
    gradients of the weights and of three smooth terms that bend the baseline; the weights are the average of
    the last three. Durations beyond the horizon count as seen up to it.

    Args:
        epsilon: What the whole fit costs.
        delta: Likewise.
        bounds: What is public about each column.
        times: Where the cells of time end, in rising order.
        horizon: Instead of `times`: where the last of equal cells ends.
        bins: How many equal cells there are.

    Attributes:
        coef_: By what the logarithm of the hazard grows for each column's 1 more; a column of categories has
            one number for each of them (`coefficient_names_`), of which only differences mean something.
        hazard_ratios_: By what the hazard is multiplied for each column's 1 more; of a category, compared
            with the first that is listed.
        times_: Where the cells end.
        baseline_hazard_: The hazard in each cell, for each 1 of time, of somebody at `centre_`.
        centre_: About the mean of each column, or the share of each category.
        events_: About how many events there are up to the horizon, or as many as the noise can hide.

    Privacy:
        Claim: that of `PrivateEstimator`. Proof: that of `fitted`; all else is made of what it gives.
    """

    widest = WIDEST

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        bounds: Any = None,
        times: Any = None,
        horizon: Any = None,
        bins: Any = 20,
    ) -> None:
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds
        self.times, self.horizon, self.bins = times, horizon, bins

    def _target(self, y: Any, size: int) -> NDArray[Any]:
        return self._grid().coded(*pair(y, size))

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        found = fitted(rows, meter, self._grid())
        return {
            "weights": found.weights,
            "centre": found.centre,
            "baseline": found.baseline,
            "events": np.array([found.events]),
        }

    def _set(self, learned: Learned) -> None:
        design, self.times_ = self.design_, self._grid().edges
        self._weights, self._middle = np.asarray(learned["weights"]), np.asarray(learned["centre"])
        self._baseline = np.asarray(learned["baseline"])
        self.coef_ = design.own_scale(np.append(self._weights, 0.0))[0]
        self.coefficient_names_ = [coordinate.name for coordinate in design.coordinates]
        first = {each.column: at for at, each in reversed(list(enumerate(design.coordinates)))}
        less = [
            0.0 if each.category is None else self.coef_[first[each.column]] for each in design.coordinates
        ]
        with np.errstate(over="ignore"):
            self.hazard_ratios_ = np.exp(self.coef_ - np.array(less))
        ends = [design.columns[each.column] for each in design.coordinates]
        lower = np.array([float(getattr(column, "lower", 0)) for column in ends])
        upper = np.array([float(getattr(column, "upper", 1)) for column in ends])
        self.centre_ = lower + self._middle * (upper - lower)
        self.baseline_hazard_ = self._baseline / np.diff(self.times_, prepend=0.0)
        self.events_ = float(learned["events"][0])

    def predict_risk(self, X: Any) -> Floats:
        """How many times each row's hazard is that of somebody at `centre_`."""
        margins = (self._coordinates(X)[:, :-1] - self._middle) @ self._weights
        return np.asarray(np.exp(np.clip(margins, -_FARTHEST, _FARTHEST)))

    def predict_survival(self, X: Any, times: Any) -> Floats:
        """The share of people like each row that survive to each of these times: rows × times.

        Raises:
            InvalidParameter: for times beyond the horizon, of which nothing is learned.
        """
        at = np.atleast_1d(np.asarray(times, np.float64))
        risk = self.predict_risk(X)
        if at.ndim != 1 or not ((at >= 0) & (at <= self.times_[-1])).all():
            raise InvalidParameter("times must be numbers from 0 to the horizon: nothing is learned beyond.")
        total = np.concatenate([[0.0], np.cumsum(self._baseline)])
        hazard = np.interp(at, np.concatenate([[0.0], self.times_]), total)
        return np.asarray(np.exp(-np.outer(risk, hazard)))

    def concordance(self, X: Any, y: Any) -> float:
        """The share of pairs, one of whom is known to have an event first, that the model orders rightly.

        Harrell's figure, on rows of one's own: it is about those rows as they are, and so not private. Equal
        risks count for a half; 0.5 is chance, and what is given where no pair can be compared.

        Args:
            X: Rows as for `fit`.
            y: Their durations and events.
        """
        risk = self.predict_risk(X)
        time, event = pair(y, len(risk))
        order = np.lexsort((~event, time))
        time, event, risk = time[order], event[order], risk[order]
        right = pairs = 0.0
        for place in np.flatnonzero(event):
            after = int(np.searchsorted(time, time[place], side="right"))
            same = risk[place + 1 : after][~event[place + 1 : after]]  # who left at that very time
            later = np.concatenate([same, risk[after:]])
            right += float((later < risk[place]).sum()) + float((later == risk[place]).sum()) / 2
            pairs += len(later)
        return right / pairs if pairs else 0.5

    def _weights_told(self) -> dict[str, list[Any]]:
        columns = {"weight": self.coef_, "hazard ratio": self.hazard_ratios_}
        told = {head: [float(f"{value:.4g}") for value in values] for head, values in columns.items()}
        return {"column": list(self.coefficient_names_), **told}

    def _ends_told(self, level: float) -> tuple[Any, Any]:  # noqa: ARG002 - as others take it
        raise NotCertified(_WITHHELD)

    def confidence_intervals(self, level: float = 0.95) -> Floats:  # noqa: ARG002 - as others take it
        """There are none, for weights or for hazard ratios.

        Raises:
            NotCertified: always, with the reason.
        """
        check_is_fitted(self, "coef_")
        raise NotCertified(_WITHHELD)


def examples() -> tuple[Example, ...]:
    """Neighbours that come close to the claim."""
    chance = simulation(0)
    few, times, events = chance.uniform(-1, 1, (40, 2)), chance.uniform(0, 5, 40), np.arange(40) % 3 == 0

    def more(rows: list[list[float]], time: list[float], event: list[int]) -> tuple[Floats, Any]:
        return np.vstack([few, rows]), (np.append(times, time), np.append(events, event))

    return (
        Example(
            "Cox: an event at the corner",
            lambda: CoxRegression(epsilon=1, delta="1e-5", bounds=(-1, 1), horizon=4),
            Given(few, (times, events)),
            Given(*more([[1.0, -1.0]], [0.1], [1])),
        ),
        Example(
            "Cox: somebody with many rows",
            lambda: CoxRegression(epsilon=2, delta="1e-5", bounds=(-1, 1), times=[1, 3]),
            Given(few, (times, events), units=np.arange(40)),
            Given(*more([[1.0, 1.0]] * 5, [3.0] * 5, [1] * 5), units=np.append(np.arange(40), [40] * 5)),
        ),
    )
