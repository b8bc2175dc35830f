"""Models on the Adult census table (official split), and how long fits of a million rows take.

All means are over five fits, delta is 1e-6. Boosted trees are in `learn_boosting.py`, clusters in
`learn_clusters.py`, a million rows in `learn_speed.py`. What is published and installs nowhere is in
`learn_peers.py`, and runs here on the same rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from benchmarks import learn_peers
from benchmarks.harness import Report, peer
from benchmarks.learn_adult import (
    BEST,
    CATEGORIES,
    DELTA,
    EPSILONS,
    NUMBERS,
    SEEDS,
    Floats,
    classified,
    headed,
    judged,
)
from benchmarks.learn_boosting import boosting
from benchmarks.learn_clusters import clusters
from benchmarks.learn_speed import speed

SQUARES = {0.1: 0.025, 1.0: 0.135, 10.0: 0.175}
"""AdaSSP's R² in the table of targets."""


def logistic(report: Report) -> None:
    """Accuracy and AUC of who earns more than 50K."""
    data = headed(report, "Adult, income: accuracy / AUC by epsilon")
    if data is None:
        return
    from sklearn.linear_model import LogisticRegression

    from sfumato import learn

    def ours(epsilon: float, _: int) -> Floats:
        model = learn.LogisticRegression(epsilon=epsilon, delta=DELTA, bounds=data.bounds, classes=[0, 1])
        return model.fit(data.train, data.y).decision_function(data.test)

    def descent(steps: int) -> Callable[[float, int], Floats]:
        def fitted(epsilon: float, seed: int) -> Floats:
            weights = learn_peers.gradient_descent(data.X, data.y, epsilon, DELTA, seed, steps=steps)
            return data.T @ weights[:-1] + weights[-1]

        return fitted

    found = classified(report, data, "logistic", "sfumato", ours)
    classified(report, data, "logistic", "descent, 60", descent(60))
    classified(report, data, "logistic", "descent, 300", descent(300))
    private = peer("diffprivlib.models")
    if private is None:
        report.missing("logistic", "diffprivlib")
    else:
        longest = float(np.sqrt(len(NUMBERS) + len(CATEGORIES)))

        def theirs(epsilon: float, seed: int) -> Floats:
            model = private.LogisticRegression(
                epsilon=epsilon, data_norm=longest, max_iter=1000, random_state=seed
            )
            return model.fit(data.X, data.y).decision_function(data.T)

        classified(report, data, "logistic", "diffprivlib", theirs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = LogisticRegression(max_iter=2000).fit(data.X, data.y).decision_function(data.T)
    areas = {epsilon: area for epsilon, (_, area) in BEST.items()}
    judged(report, data, "logistic", "on Adult", plain, found, areas)


def linear(report: Report) -> None:
    """R² of hours a week from the other columns."""
    data = headed(report, "Adult, hours a week: R² by epsilon")
    if data is None:
        return
    from sklearn.linear_model import LinearRegression

    from sfumato import learn

    at = list(NUMBERS).index("hours-per-week")
    low, high = NUMBERS["hours-per-week"]
    X, T = np.delete(data.X, at, axis=1), np.delete(data.T, at, axis=1)
    y, t = data.X[:, at], data.T[:, at]
    train, test = (frame.drop_columns(["hours-per-week"]) for frame in (data.train, data.test))
    bounds = {name: given for name, given in data.bounds.items() if name != "hours-per-week"}
    squares = float(len(NUMBERS) - 1 + len(CATEGORIES) + 1)

    def ours(epsilon: float, _: int) -> Floats:
        model = learn.LinearRegression(epsilon=epsilon, delta=DELTA, bounds=bounds, target_bounds=(low, high))
        model.fit(train, data.train["hours-per-week"].to_numpy())
        return (model.predict(test) - low) / (high - low)

    def adassp(epsilon: float, seed: int) -> Floats:
        weights = learn_peers.adassp(X, y, epsilon, DELTA, seed, squares=squares)
        return T @ weights[:-1] + weights[-1]

    def boosted(rounds: int) -> Callable[[float, int], Floats]:
        def fitted(epsilon: float, seed: int) -> Floats:
            weights = learn_peers.boosted_adassp(X, y, epsilon, DELTA, seed, rounds=rounds)
            return learn_peers.clipped_rows(T) @ weights

        return fitted

    def measured(who: str, fitted: Callable[[float, int], Floats]) -> list[float]:
        found = [
            float(np.mean([_r2(t, fitted(epsilon, seed)) for seed in range(SEEDS)])) for epsilon in EPSILONS
        ]
        report.row("linear", who, *(f"{value:.4g}" for value in found), epsilons=EPSILONS, r2=found)
        return found

    found = measured("sfumato", ours)
    others = [measured("AdaSSP", adassp)]
    others += [measured(f"boosted, {rounds}", boosted(rounds)) for rounds in (1, 10, 100)]
    private = peer("diffprivlib.models")
    if private is None:
        report.missing("linear", "diffprivlib")
    else:

        def theirs(epsilon: float, seed: int) -> Floats:
            model = private.LinearRegression(
                epsilon=epsilon, bounds_X=(0.0, 1.0), bounds_y=(0.0, 1.0), random_state=seed
            )
            return np.asarray(model.fit(X, y).predict(T))

        measured("diffprivlib", theirs)
    plain = _r2(t, LinearRegression().fit(X, y).predict(T))
    report.row("linear", "not private", f"{plain:.4g}", r2=plain)
    cut = LinearRegression(fit_intercept=False).fit(learn_peers.clipped_rows(X), y)
    bent = _r2(t, cut.predict(learn_peers.clipped_rows(T)))
    report.row("linear", "not private, cut", f"{bent:.4g}", r2=bent)  # what boosted AdaSSP would have
    for at, epsilon in enumerate(EPSILONS):
        report.figure(f"R² on Adult at epsilon {epsilon:g}, over AdaSSP's", found[at], ">=", SQUARES[epsilon])
        best = max(other[at] for other in others)
        report.figure(f"R² on Adult at epsilon {epsilon:g}, less the best peer's", found[at] - best, ">=", 0)


def _r2(truth: Floats, guess: Floats) -> float:
    return float(1 - ((truth - guess) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


PARTS = (logistic, linear, boosting, clusters, speed)
