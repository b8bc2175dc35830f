"""Mechanisms with one planted bug each: an example whose claim is honest and whose draws are not."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.loss import GaussianLoss, PrivacyLoss, PureLoss
from sfumato.mechanisms import DiscreteGaussian, Exponential, Gaussian, Geometric, Laplace, NoisyMax
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.numeric.exact import probability
from sfumato.testing.mutants.sparse import VARIANTS, Variant, run

__all__ = ["Claim", "Survey", "claimed", "generator", "sparse_example"]


@dataclass(frozen=True, slots=True)
class Claim(Mechanism):
    """A price and nothing else: for algorithms that make no promise about their error."""

    price: PrivacyLoss

    @property
    def loss(self) -> PrivacyLoss:
        """The claim."""
        return self.price

    def error(self, confidence: float, *, size: int = 1) -> float:
        """Nothing is promised."""
        del confidence, size
        return math.inf

    @property
    def variance(self) -> None:
        """Nothing is promised."""
        return None

    @property
    def bias(self) -> None:
        """Nothing is promised."""
        return None


def generator() -> np.random.Generator:
    """Careless float noise that repeats with the test's stream, so that only its law can give it away."""
    return np.random.default_rng(random.current().bits(128))


def claimed(
    name: str,
    claim: Mechanism,
    left: Any,
    right: Any,
    draw: Callable[[Any, int], NDArray[Any]],
    *,
    additive: bool = False,
) -> Example:
    """An example that promises what `claim` promises and draws whatever `draw(input, count)` gives."""

    def of_side(side: Side, count: int) -> NDArray[Any]:
        return draw(left if side == "left" else right, count)

    return Example(name, claim, left, right, of_side, None, additive)


def stacked(value: Any, count: int) -> NDArray[Any]:
    """So many copies of an input, to be released at once."""
    one = np.asarray(value)
    return np.broadcast_to(one, (count, *one.shape))


def released(
    mechanism: Any, change: Callable[[NDArray[Any]], NDArray[Any]] | None = None
) -> Callable[[Any, int], NDArray[Any]]:
    """Draws from a mechanism's `release`, on inputs that something was done to before."""

    def draw(value: Any, count: int) -> NDArray[Any]:
        inputs = stacked(value, count)
        return np.asarray(mechanism.release(inputs if change is None else change(inputs)))

    return draw


def float_laplace(value: Any, count: int) -> NDArray[np.float64]:
    """Textbook noise: NumPy's float Laplace added to a float."""
    return np.asarray(value + generator().laplace(scale=1.0, size=count))


def noisy_max(scale: float) -> Callable[[Any, int], NDArray[np.int64]]:
    """Report noisy max with Laplace noise of some scale."""

    def draw(scores: Any, count: int) -> NDArray[np.int64]:
        noise = generator().laplace(scale=scale, size=(count, len(scores)))
        return np.asarray(np.argmax(np.asarray(scores) + noise, axis=1))

    return draw


def exponential_choice(rate: float) -> Callable[[Any, int], NDArray[np.int64]]:
    """The exponential mechanism at some rate, by Gumbel noise."""

    def draw(scores: Any, count: int) -> NDArray[np.int64]:
        noise = generator().gumbel(size=(count, len(scores)))
        return np.asarray(np.argmax(rate * np.asarray(scores) + noise, axis=1))

    return draw


@dataclass(frozen=True, slots=True)
class Survey(Mechanism):
    """The mean of yes/no answers that each person randomizes with two coins (truth with probability 3/4).

    Privacy:
        Each person's answer is ln 3 private (Warner 1965), and the mean is post-processing of the answers.
    """

    people: int
    as_printed: bool = False

    @property
    def loss(self) -> PrivacyLoss:
        """Ln 3, rounded up."""
        return PureLoss(Fraction(math.nextafter(math.log(3), math.inf)))

    @property
    def variance(self) -> float:
        """p(1 - p)/(n(2p - 1)²), whatever the answers."""
        return 0.75 / self.people

    @property
    def bias(self) -> float:
        """None is claimed; the printed estimator has one."""
        return 0.0

    def error(self, confidence: float, *, size: int = 1) -> float:
        """Chebyshev's inequality: a bound, not the quantile."""
        del size
        return math.sqrt(self.variance / (1 - float(probability(confidence, "confidence"))))

    def estimate(self, yes: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean from the number of yeses.

        As printed in a survey of the field the correction p - 1 is added once, outside the sum, instead of
        once a person.
        """
        p, n = 0.75, self.people
        if self.as_printed:
            return np.asarray((yes + p - 1) / ((2 * p - 1) * n))
        return np.asarray((yes / n + p - 1) / (2 * p - 1))


def _survey_example(*, as_printed: bool) -> Example:
    """Ten people of whom three, or four, say yes."""
    survey = Survey(10, as_printed)

    def draw(truth: Any, count: int) -> NDArray[np.float64]:
        said = np.arange(10) < round(10 * truth)
        answers = said ^ ~random.bernoulli(Fraction(3, 4), (count, 10))
        return survey.estimate(answers.sum(axis=1))

    return claimed("survey mean", survey, 0.3, 0.4, draw, additive=True)


def sparse_example(variant: Variant, *, against: int | None = None) -> Example:
    """A sparse-vector variant that claims epsilon 2, on the inputs that break variant `against` (or itself).

    Inputs whose first half rises and whose second half falls show every query that is paid for too little;
    variant 3 tells the number it compared, so that many refusals followed by a small number say how low the
    threshold was.
    """
    places, count = (4, 1) if (against or variant.number) == 3 else (10, 10)
    left, right = (0,) * (2 * places), (1,) * places + (-1,) * places
    if (against or variant.number) == 3:
        left, right = (0,) * places + (1,), (1,) * places + (0,)

    def draw(values: Any, runs: int) -> NDArray[np.float64]:
        rows = run(variant, values, epsilon=2.0, count=count, runs=runs, generator=generator())
        if (against or variant.number) != 3:
            return rows
        # Only what is told last, after nothing else was: a function of the output, and so no less private.
        late = (rows[:, :-1] == 0).all(axis=1) & (rows[:, -1] != 0)
        return np.where(late, rows[:, -1], 99.0)

    return claimed(f"sparse vector {variant.number}", Claim(PureLoss(Fraction(2))), left, right, draw)


ROUNDED = Fraction(3, 5)


def _lattice_law(side: Side) -> dict[int, float]:
    """The discrete Gaussian of parameter 1 around 0 or 1, listed where it is above 1e-40."""
    centre = 0 if side == "left" else 1
    weights = {k: math.exp(-((k - centre) ** 2) / 2) for k in range(-12, 14)}
    total = math.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


def pairs() -> dict[str, tuple[Example, Example]]:
    """Name → (planted, honest)."""
    one, half = Laplace(1, 1), Laplace(2, 1)
    histogram = ((5, 3, 2), (4, 4, 2))
    spread = ((0.0,) * 16, (0.25,) * 16)
    opposed = ((0, 2), (1, 1))
    lattice = Example.of_release("lattice", DiscreteGaussian(sigma=1, sensitivity=1), 0, 1, pmf=_lattice_law)
    return {
        "half the noise": (
            claimed("laplace", one, 0.0, 1.0, released(half), additive=True),
            Example.of_release("laplace", one, 0.0, 1.0),
        ),
        "twice the noise": (
            claimed("laplace", one, 0.0, 1.0, released(Laplace("0.5", 1)), additive=True),
            Example.of_release("laplace", one, 0.0, 1.0),
        ),
        "half the integer noise": (
            claimed("geometric", Geometric(1, 1), 0, 1, released(Geometric(2, 1)), additive=True),
            Example.of_release("geometric", Geometric(1, 1), 0, 1),
        ),
        "half the Gaussian noise": (
            claimed(
                "gaussian",
                Gaussian(sigma=2, sensitivity=1),
                0.0,
                1.0,
                released(Gaussian(sigma=1, sensitivity=1)),
                additive=True,
            ),
            Example.of_release("gaussian", Gaussian(sigma=2, sensitivity=1), 0.0, 1.0),
        ),
        "L2 sensitivity for Laplace noise": (
            claimed("laplace vector", Laplace(1, 4), *spread, released(Laplace(1, 1))),
            claimed("laplace vector", Laplace(1, 4), *spread, released(Laplace(1, 4))),
        ),
        "exchange histogram with sensitivity 1": (
            claimed("histogram", Geometric(1, 2), *histogram, released(Geometric(1, 1))),
            claimed("histogram", Geometric(1, 2), *histogram, released(Geometric(1, 2))),
        ),
        "float noise": (
            claimed("laplace", one, 0.0, 1.0, float_laplace, additive=True),
            Example.of_release("laplace", one, 0.0, 1.0),
        ),
        "rounding that forgets to widen": (
            claimed("rounded", Laplace(1, ROUNDED), 0.4, 1.0, released(Laplace(1, ROUNDED), np.round)),
            # On whole numbers the sensitivity 3/5 becomes floor(3/5) + 1 = 1.
            claimed("rounded", Laplace(1, ROUNDED), 0.4, 1.0, released(Laplace(1, 1), np.round)),
        ),
        "noisy max of scores that move both ways": (
            claimed("noisy max", NoisyMax(1, 1), *opposed, noisy_max(1.0)),
            claimed("noisy max", NoisyMax(1, 1), *opposed, noisy_max(2.0)),
        ),
        "exponential mechanism without its factor 2": (
            claimed("exponential", Exponential(1, 1), *opposed, exponential_choice(1.0)),
            claimed("exponential", Exponential(1, 1), *opposed, exponential_choice(0.5)),
        ),
        "discrete Gaussian with the continuous curve": (
            dataclasses.replace(lattice, mechanism=Claim(GaussianLoss(Fraction(1, 2))), additive=False),
            lattice,
        ),
        "biased survey estimator": (_survey_example(as_printed=True), _survey_example(as_printed=False)),
    } | {
        f"sparse vector {number} ({VARIANTS[number].source})": (
            sparse_example(VARIANTS[number]),
            sparse_example(VARIANTS[1], against=number),
        )
        for number in (3, 4, 5, 6)
    }
