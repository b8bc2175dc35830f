"""`NoisyGradientDescent`: the textbook's descent, with all of its steps in one price."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter, Total
from sfumato.learn._core.design import Design
from sfumato.learn._core.records import Records
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import MOST_COLUMNS, RESIDUAL_BITS, gradients
from sfumato.learn._weights.curves import logistic
from sfumato.learn.base import Learned
from sfumato.learn.examples import Example, Given
from sfumato.learn.kinds import PrivateClassifier
from sfumato.numeric.exact import Rational, as_integer, positive

__all__ = ["NoisyGradientDescent", "TwoClasses", "units_in"]

Floats: TypeAlias = NDArray[np.float64]


class TwoClasses(PrivateClassifier):
    """What models of the chance of the second of two classes share, once they have weights."""

    def _check(self) -> None:
        super()._check()
        if len(self._listed()) != 2:
            raise InvalidParameter("This model takes two classes; LogisticRegression takes more.")

    def _set(self, learned: Learned) -> None:
        self._set_classes()
        self._weights = np.asarray(learned["weights"])
        slopes, start = self.design_.own_scale(self._weights)
        self.coef_, self.intercept_ = slopes[None, :], np.atleast_1d(start)

    def decision_function(self, X: Any) -> Floats:
        """The margin of each row: above 0 for the second class."""
        return np.asarray(self._coordinates(X) @ self._weights)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier class of each row."""
        second = self.decision_function(X) > 0
        return np.asarray(self.classes_[second.astype(np.intp)])

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, one line for each row."""
        second = 1 / (1 + np.exp(-np.clip(self.decision_function(X), -500, 500)))
        return np.column_stack([1 - second, second])


class NoisyGradientDescent(TwoClasses):
    """The textbook's gradient descent with noise in every step, for two classes.

    Each step goes against the sum of all rows' gradients, each of them cut to a length, with noise, divided
    by a noisy count. `LogisticRegression` is better at the same price; this one is to be read.

    Args:
        epsilon: What all steps cost together.
        delta: Likewise.
        bounds: What is public about each column.
        classes: The two labels.
        steps: How many; each sees all rows, and more of them mean more noise in each.
        clip: The L2 norm that a unit's gradient is cut to.
        rate: The length of a step.
        objective: "logistic", or "squared": half the squared distance of the margin from −1 or 1.

    Attributes:
        classes_: The labels, sorted.
        coef_: Weights in the columns' own scale.
        intercept_: What is added.

    Privacy:
        Claim: that of `PrivateEstimator`: `steps` Gaussian measurements of `gradients` cut to `clip`, and one
        of the count, each for 1/(steps + 1) of the price, so that the sum over all of them is the price.
    """

    signed: ClassVar[bool] = True

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        bounds: Any = None,
        classes: Any = None,
        *,
        steps: int = 40,
        clip: Rational = 1,
        rate: float = 2.0,
        objective: str = "logistic",
    ) -> None:
        super().__init__(epsilon, delta, bounds, classes)
        self.steps, self.clip, self.rate, self.objective = steps, clip, rate, objective

    def _check(self) -> None:
        super()._check()
        as_integer(self.steps, "steps")
        if positive(self.clip, "clip") > 64:
            raise InvalidParameter("clip must be at most 64.")
        if not 0 < self.rate <= 1000:
            raise InvalidParameter("rate must be above 0 and at most 1000.")
        if self.objective not in ("logistic", "squared"):
            raise InvalidParameter('objective must be "logistic" or "squared".')

    def _design_of(self, bounds: Any, names: list[str]) -> Design:
        design = super()._design_of(bounds, names)
        if design.most > MOST_COLUMNS:
            raise InvalidParameter(f"Gradient descent takes at most {MOST_COLUMNS - 1:,} columns.")
        return design

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        share = Fraction(1, self.steps + 1)
        noise = meter.sigma(1, share)
        count = max(float(meter.noisy(units_in(rows), share)[0]), noise)
        residuals = _residuals(rows, self.objective)
        weights = np.zeros(rows.design.width)
        for _ in range(self.steps):
            noisy = meter.noisy(gradients(rows, weights, residuals, self.clip), share)
            weights = np.clip(weights - self.rate * noisy / count, -1000, 1000)
        return {"weights": weights}


def units_in(rows: Rows | Records) -> Total:
    """How many units there are.

    Privacy:
        Claim: adding or removing a unit moves the number by 1.
    """
    many = len(rows) if rows.units is None else len(np.unique(rows.units))
    return Total(np.array([many], np.int64), Fraction(1), Fraction(1))


def _residuals(rows: Rows, objective: str) -> Any:
    target, whole = rows.target, 2.0**RESIDUAL_BITS
    assert target is not None

    def by_chance(place: slice, margins: Floats) -> Floats:
        return np.asarray(logistic(margins) - target[place, None] * whole)

    def by_distance(place: slice, margins: Floats) -> Floats:
        aim = (2.0 * target[place, None] - 1) * whole
        return np.asarray(np.clip(np.rint(margins * whole) - aim, -(2.0**24), 2.0**24))

    return by_chance if objective == "logistic" else by_distance


def examples() -> tuple[Example, ...]:
    """Neighbours that come close to the claim."""
    few, labels = np.zeros((4, 2)), [0, 1, 0, 1]
    return (
        Example(
            "noisy gradient descent: a row at the corner",
            lambda: NoisyGradientDescent(1, "1e-5", bounds=(-1, 1), classes=[0, 1], steps=3),
            Given(few, labels),
            Given(np.vstack([few, [[1.0, 1.0]]]), [*labels, 1]),
        ),
        Example(
            "noisy gradient descent: somebody with many rows",
            lambda: NoisyGradientDescent(
                1, "1e-5", bounds=(-1, 1), classes=[0, 1], steps=3, objective="squared"
            ),
            Given(few, labels, [0, 1, 2, 3]),
            Given(np.vstack([few, np.ones((5, 2))]), [*labels, *[1] * 5], [0, 1, 2, 3, *[4] * 5]),
        ),
    )
