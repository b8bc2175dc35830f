"""The order of the error: docs/mechanisms.md says how it grows, and the mechanisms' own figures must agree.

Each row of the table there is a law here, times a constant that the row does not name. What is measured is
how far the constant drifts while a parameter goes over decades; a wrong power, planted, must show.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import sfumato as sf
from sfumato import accounting, local
from sfumato.continual import Continual, choose

PAGE = Path(__file__).parents[2] / "docs" / "mechanisms.md"
DELTA = 1e-6
DECADES = (0.01, 0.1, 1.0)  # of epsilon
MANY = (10, 1_000, 100_000)


@dataclass(frozen=True)
class Order:
    """An error against one parameter, the law it follows, and how far their ratio may drift over all."""

    row: str
    over: str
    error: Callable[[float], float]
    law: Callable[[float], float]
    places: tuple[float, ...]
    drift: float = 1.02

    def drifts(self, power: float = 0.0) -> float:
        """The greatest ratio of error and law over the least, with another power of the parameter."""
        ratios = [self.error(at) / (self.law(at) * at**power) for at in self.places]
        return max(ratios) / min(ratios)


def spread(k: float) -> float:
    """The error of one of k counts whose L2 sensitivity is √k."""
    return sf.Gaussian(1, DELTA, sensitivity=math.sqrt(k)).error(0.95)


def advanced(k: float) -> float:
    """The error of one of k releases that cost ε = 1 together, by advanced composition."""
    low, high = 1e-12, 1.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        fits = accounting.advanced(middle, 0, int(k), DELTA)[0] <= 1
        low, high = (middle, high) if fits else (low, middle)
    return sf.Laplace(low, 1).error(0.95)


def counted(people: float, epsilon: float = 1.0) -> float:
    return local.recommend(epsilon, 1024, int(people)).alternatives[0].error


ORDERS = [
    Order("one number", "ε", lambda e: sf.Laplace(e, 1).error(0.95), lambda e: 1 / e, DECADES),
    Order("one number", "Δ", lambda d: sf.Laplace(1, d).error(0.95), lambda d: d, MANY),
    Order("one number", "β", lambda b: sf.Laplace(1, 1).error(1 - b), lambda b: math.log(1 / b), DECADES[:2]),
    Order(
        "one number", "ε, whole", lambda e: sf.Geometric(e, 1).error(0.95), lambda e: 1 / e, DECADES[:2], 1.05
    ),
    Order(
        "one number at a large ε",
        "ε",
        lambda e: sf.Staircase(e, 1).magnitude,
        lambda e: math.exp(e / 2) / math.expm1(e),
        (1, 5, 15),
    ),
    Order(
        "one number, (ε, δ)",
        "ε",
        lambda e: sf.Gaussian(e, DELTA, sensitivity=1).error(0.95),
        lambda e: 1 / e,
        DECADES,
        1.6,
    ),
    Order(
        "one number, (ε, δ)",
        "δ",
        lambda d: sf.Gaussian(1, d, sensitivity=1).error(0.95),
        lambda d: math.sqrt(math.log(1 / d)),
        (1e-5, 1e-10, 1e-20),
        1.2,
    ),
    Order(
        "d numbers, Laplace",
        "d",
        lambda d: sf.Laplace(1, d).error(0.95, size=int(d)),
        lambda d: d * math.log(d / 0.05),
        MANY,
    ),
    Order(
        "d numbers, Gaussian",
        "d",
        lambda d: sf.Gaussian(1, DELTA, sensitivity=math.sqrt(d)).error(0.95, size=int(d)),
        lambda d: math.sqrt(d * math.log(d / 0.05)),
        MANY,
        1.1,
    ),
    Order("k releases, basic", "k", lambda k: sf.Laplace(1 / k, 1).error(0.95), lambda k: k, MANY),
    Order("k releases, advanced", "k", advanced, math.sqrt, (1_000, 10_000, 100_000), 1.15),
    Order("k releases, Gaussian", "k", spread, math.sqrt, MANY),
    Order(
        "a mean of n, n public",
        "n",
        lambda n: sf.Laplace(1, 1 / n).error(0.95),
        lambda n: 1 / n,
        MANY,
    ),
    Order(
        "best of n",
        "n",
        lambda n: sf.Exponential(1, 1).error(0.95, candidates=int(n)),
        lambda n: math.log(n / 0.05),
        MANY,
        1.05,
    ),
    Order(
        "best of n", "ε", lambda e: sf.Exponential(e, 1).error(0.95, candidates=100), lambda e: 1 / e, DECADES
    ),
    Order(
        "best of n",
        "n, flips",
        lambda n: sf.PermuteAndFlip(1, 1).error(0.95, candidates=int(n)),
        lambda n: math.log(n / 0.05),
        MANY,
        1.3,
    ),
    Order(
        "first of n above a threshold",
        "n",
        lambda n: sf.AboveThreshold(1, 0, sensitivity=1).error(0.95, size=int(n)),
        lambda n: math.log(n / 0.05),
        (100, 10_000, 1_000_000),
        1.3,
    ),
    Order(
        "c of n above a threshold",
        "c",
        lambda c: sf.SparseVector(1, 0, count=int(c), sensitivity=1).error(0.95, size=10_000),
        lambda c: c,
        (10, 100, 1000),
        1.6,
    ),
    Order(
        "a running count over T steps",
        "T",
        lambda t: sf.TreeCounter(int(t), 1, sensitivity=1).error(0.95),
        lambda t: math.log2(t) ** 1.5,
        (2**10, 2**20, 2**40),
        1.3,
    ),
    Order(
        "a running count over T steps, ρ",
        "T",
        lambda t: sf.TreeCounter(int(t), rho=0.1, sensitivity=1).error(0.95),
        math.log2,
        (2**10, 2**20, 2**40),
        1.1,
    ),
    Order(
        "the same with 0.15 of the squared error",
        "T",
        lambda t: Continual(choose(int(t)), rho=0.1, sensitivity=1).deviation_running(int(t)),
        math.log2,
        (2**8, 2**12, 2**16),
        1.3,
    ),
    Order(
        "a share of n people, local",
        "n",
        lambda n: sf.RandomizedResponse(1).error(0.95, size=int(n)),
        lambda n: 1 / math.sqrt(n),
        MANY,
    ),
    Order(
        "a share of n people, local",
        "ε",
        lambda e: sf.RandomizedResponse(e).error(0.95, size=1000),
        lambda e: 1 / e,
        DECADES,
        1.1,
    ),
    Order("a count among n people, local", "n", counted, math.sqrt, (10_000, 1_000_000), 1.05),
    Order(
        "a count among n people, local",
        "ε",
        lambda e: counted(1_000_000, e),
        lambda e: 1 / e,
        (0.05, 0.2, 1.0),
        1.1,
    ),
]


@pytest.mark.parametrize("order", ORDERS, ids=[f"{each.row}: {each.over}" for each in ORDERS])
def test_the_error_grows_as_the_page_says(order):
    assert order.drifts() <= order.drift


@pytest.mark.parametrize("order", ORDERS, ids=[f"{each.row}: {each.over}" for each in ORDERS])
def test_a_wrong_power_is_noticed(order):
    """A quarter of a power of the parameter more or less."""
    assert order.drifts(0.25) > order.drift
    assert order.drifts(-0.25) > order.drift


def test_the_page_has_a_row_for_each_and_no_other():
    text = PAGE.read_text(encoding="utf-8").split("## How large the error is")[1].split("\n## ")[0]
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")][2:]
    assert rows == list(dict.fromkeys(each.row for each in ORDERS))
