"""Every function of the package that takes plain private values, ready for one odd value among them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import sfumato as sf
from odd_values import Target, outline_of
from sfumato import book, games
from sfumato.games.congestion import CongestionGame
from sfumato.games.equilibrium import PrivateAdvice
from sfumato.local.examples import examples as clients
from sfumato.loss import NO_LOSS
from sfumato.mechanisms import median_of
from sfumato.mechanisms.quantiles import Quantiles

__all__ = ["book_targets", "game_targets", "local_targets", "mechanism_targets"]

Base = Callable[[random.Random, int], list[Any]]


def _ints(draw: random.Random, size: int) -> list[Any]:
    return [draw.choice((0, 1, 1, 5, 2**31)) for _ in range(size)]


def _numbers(draw: random.Random, size: int) -> list[Any]:
    pool = draw.choice(((0, 1, 7), (0.5, 2.25, 1e-3), (1, 0.25, 3), (2**60 + 1, 2**62, 5), (2**60, 0.5)))
    return [draw.choice(pool) for _ in range(size)]


def _bits(draw: random.Random, size: int) -> list[Any]:
    pool = draw.choice(((0, 1), (True, False)))
    return [draw.choice(pool) for _ in range(size)]


def _of(*pool: Any) -> Base:
    return lambda draw, size: [draw.choice(pool) for _ in range(size)]


def _ids(draw: random.Random, size: int) -> list[Any]:
    pool = draw.choice(((2**60, 2**60 + 1, 7), ("a", "b", "ab"), (1, 2, 3)))
    return [draw.choice(pool) for _ in range(size)]


def _kind(_: Any) -> str:
    return "an answer"


def _seen(answer: tuple[float, Any]) -> Any:
    return type(answer[0]).__name__, answer[1]


# ── mechanisms


def _parts(column: Any, **more: Any) -> Any:
    """A release, and what types of parts the function saw."""
    seen = set()

    def spy(part: np.ndarray) -> float:
        seen.add((part.dtype.str, part.ndim))
        return float(part.sum())

    return sf.SampleAndAggregate(1, 0, upper=1, chunks=2).release(spy, column, **more), sorted(seen)


def _whose(column: Any) -> Any:
    rows = np.ones(len(column)) if hasattr(column, "__len__") else np.ones(3)
    return sf.SampleAndAggregate(1, 0, upper=1, chunks=2).release(len, rows, units=column)


def mechanism_targets() -> list[Target]:
    """Noise on numbers, choices, thresholds, counters, responses, medians and samples."""
    noise = {
        "laplace": (sf.Laplace(1, 1).release, _numbers),
        "gaussian": (sf.Gaussian(rho=1, sensitivity=1).release, _numbers),
        "staircase": (sf.Staircase(1, 1, coordinates=3).release, _numbers),
        "truncated": (sf.TruncatedLaplace(1, "0.01", sensitivity=1, coordinates=3).release, _numbers),
        "bounded": (sf.BoundedLaplace(1, 1, lower=0, upper=9, coordinates=3).release, _numbers),
        "geometric": (sf.Geometric(1, 1).release, _ints),
        "discrete gaussian": (sf.DiscreteGaussian(rho=1, sensitivity=1).release, _ints),
        "exponential": (sf.Exponential(1, 1).select, _numbers),
        "permute and flip": (sf.PermuteAndFlip(1, 1).select, _numbers),
        "noisy max": (sf.NoisyMax(1, 1).select, _numbers),
        "top k": (sf.TopK(1, 1, count=2).select, _numbers),
        "partition selection": (sf.PartitionSelection(1, "0.01").release, _ints),
        "quantiles": (Quantiles(1, ["1/2"], sensitivity=1).select, _ints),
        "tree counter": (lambda values: sf.TreeCounter(16, 1, sensitivity=1).release(values), _ints),
        "response of two": (sf.RandomizedResponse(1).release, _bits),
        "response of five": (sf.RandomizedResponse(1, 5).release, _of(0, 1, 4)),
    }
    docs = {"tree counter": sf.TreeCounter.release}
    found = [
        Target(name, call, base, total=False, grows=False, docs=(docs.get(name, call),))
        for name, (call, base) in noise.items()
    ]
    gates = {
        "above threshold": sf.AboveThreshold(9, 2**80, sensitivity=1).first,
        "sparse vector": sf.SparseVector(9, 2**80, count=2, sensitivity=1).above,
        "numeric sparse vector": sf.NumericSparseVector(9, 2**80, count=2, sensitivity=1).above,
    }
    found += [
        Target(name, call, _numbers, total=False, grows=False, outline=_kind, docs=(call,))
        for name, call in gates.items()
    ]
    return [
        *found,
        Target("median", lambda values: median_of(values, 0, upper=9).value, _numbers),
        Target("sample and aggregate", _parts, _numbers, outline=_seen),
        Target(
            "sample and aggregate: int", lambda values: _parts(values, dtype=int), _numbers, outline=_seen
        ),
        Target(
            "sample and aggregate: object", lambda values: _parts(values, dtype=object), _ids, outline=_seen
        ),
        Target("sample and aggregate: units", _whose, _ids),
    ]


# ── games


def _learner(ready: Any, **more: Any) -> Callable[[Any], Any]:
    learner = games.PrivateLearner(1, ready, **more)

    def choose(column: Any) -> Any:
        labels = [1] * (len(column) if hasattr(column, "__len__") else 3)
        return learner.select(column, labels), outline_of(learner.errors(column, labels))

    return choose


def _labels(column: Any) -> Any:
    rows = np.ones(len(column) if hasattr(column, "__len__") else 3)
    return games.PrivateLearner(1, games.thresholds([1, 2])).select(rows, column)


class _Predicting:
    def __len__(self) -> int:
        return 2

    def predict(self, features: Any) -> Any:
        return np.stack([features > 1, features < 1])


def _rules() -> list[Any]:
    seen = np.dtype(np.float64)
    return [lambda x: x >= 0.7, lambda x: x * x > 0, lambda x: np.full(len(x), x.dtype == seen)]


def _models(column: Any) -> Any:
    chosen = games.ModelSelection(1, [NO_LOSS] * 2, holdout="same")
    size = len(column) if hasattr(column, "__len__") else 3
    return chosen.select([column, [1] * size], [1] * size), chosen.select([[1] * size, [0] * size], column)


def _log(place: int) -> Callable[[Any], Any]:
    reserve = games.ReservePrice(1, [1, 2], max_auctions=1)

    def learn(column: Any) -> Any:
        size = len(column) if hasattr(column, "__len__") else 3
        columns: list[Any] = [list(range(size)), list(range(size)), [1.0] * size]
        columns[place] = column
        return reserve.select(*columns)

    return learn


def _market(column: Any, *, named: bool) -> Any:
    market = games.SegmentedAuction(1, {"FR": [1, 2], "DE": [1]})
    size = len(column) if hasattr(column, "__len__") else 3
    given = ([1.0] * size, column) if named else (column, ["FR"] * size)
    outcome = market.outcome(*given)
    return market.select(*given), dict(outcome.prices), outcome.buys


def game_targets() -> list[Target]:
    """Prices, reserves, places, advice, learners and models."""
    line, plane = games.FacilityLocation(1, [0, 1, 5]), games.FacilityLocation(1, [(0, 0), (1, 2)])
    roads = {"left": [["left"]], "right": [["right"]], "any": [["left"], ["right"]]}
    game = CongestionGame(["left", "right"], roads, players=4, latency=[(1 / 4, 0.0), (1 / 4, 0.0)])
    advice = PrivateAdvice(game, epsilon=4, delta="0.01", rounds=1)
    pairs = _of((0, 0), (1, 2), [0.5, 0.5])
    return [
        Target("price", games.PriceAuction(1, [1, 2]).select, _numbers),
        Target("sale", games.PriceAuction(1, [1, 2], supply=2).outcome, _numbers),
        Target("segments: bids", lambda column: _market(column, named=False), _numbers),
        Target("segments: names", lambda column: _market(column, named=True), _of("FR", "DE")),
        Target("reserve: auctions", _log(0), _ids),
        Target("reserve: bidders", _log(1), _ids),
        Target("reserve: bids", _log(2), _numbers),
        Target("places on the line", line.select, _of(0, 1, 5, 0.5), grows=False),
        Target("places in the plane", plane.select, pairs, grows=False),
        Target("truthful places", games.TruthfulMixture(line).select, _of(0, 1, 5), grows=False),
        Target("learner: labels", _labels, _bits),
        Target("learner: thresholds", _learner(games.thresholds([1, 2])), _numbers),
        Target("learner: rules", _learner(_rules()), _numbers),
        Target("learner: predictor", _learner(_Predicting()), _numbers),
        Target("learner: parities", _learner(games.parities(2)), _of([0, 1], (1, 1))),
        Target("learner: stumps", _learner(games.decision_stumps([[1], [2]])), _of([0, 1.5], (1, 3))),
        Target("models", _models, _numbers),
        Target(
            "advice",
            lambda column: advice.advise(column).billboard,
            lambda draw, _: [draw.choice(("left", "any", "right")) for _ in range(4)],
            total=False,
            grows=False,
            docs=(PrivateAdvice.advise,),
        ),
    ]


# ── clients and the book


def local_targets() -> list[Target]:
    """Every client, for values of its own domain."""
    found = []
    for example in clients():
        if example.encode is None:
            made = example.randomizer
            values = (example.left, example.right)
            docs = (type(made), sf.local.Randomizer)
            found.append(Target(example.name, made.encode, _of(*values), total=False, docs=docs))
    return found


def _descent(column: Any) -> Any:
    rows = np.ones((len(column) if hasattr(column, "__len__") else 3, 2))
    return book.noisy_gradient_descent(1, 1, 1e-5, X=rows, y=column)


def book_targets() -> list[Target]:
    """The textbook's functions of a column."""
    options = ["a", "b", 1]
    bounds = range(1, 20, 5)
    return [
        Target("gs_avg", lambda column: book.gs_avg(column, 10, 1), _numbers),
        Target("auto_avg", lambda column: book.auto_avg(column, 1, bs=bounds), _numbers),
        Target("ptr_avg", lambda column: book.ptr_avg(column, 10, 9, 1, 1e-3), _numbers, outline=_kind),
        Target("saa_avg_age", lambda column: book.saa_avg_age(2, 1, df=column), _numbers),
        Target("age_sum_query", lambda column: book.age_sum_query(column, 10), _numbers),
        Target("age_range_query", lambda column: book.age_range_query(column, 0, 9), _numbers),
        Target("range_query", lambda column: book.range_query(column, "Age", 0, 9), _numbers),
        Target("create_query", lambda column: book.create_query(3)(column), _numbers),
        Target("dist_to_high_ls", lambda column: book.dist_to_high_ls(column, 10, 1), _numbers),
        Target(
            "exponential",
            lambda column: book.exponential(column, options, book.score, 1, 1),
            _of("a", "b"),
            outline=_kind,
        ),
        Target(
            "report_noisy_max",
            lambda column: book.report_noisy_max(column, options, book.score, 1, 1),
            _of(1, 2),
            outline=_kind,
        ),
        Target("rand_resp_sales", book.rand_resp_sales, _of("Sales", "Farming")),
        Target(
            "laplace_mech_vec",
            lambda column: book.laplace_mech_vec(column, 1, 1),
            _numbers,
            total=False,
            grows=False,
            docs=(sf.Laplace.release,),
        ),
    ]
