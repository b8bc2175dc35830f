"""Models on the Adult census table (official split), and how long fits of a million rows take.

The table is not part of this repository: it is looked for in `$ADULT`, then in `shared/data/adult` beside the
checkout; without it that is said, and nothing of it is measured. All means are over five fits, delta is 1e-6.
What is published and installs nowhere is in `learn_peers.py`, and runs here on the same rows.
"""

from __future__ import annotations

import csv
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks import learn_peers
from benchmarks.anonymity import COLUMNS, _folder
from benchmarks.harness import Report, peer, seconds, times

Floats: TypeAlias = NDArray[np.float64]

EPSILONS, DELTA, SEEDS = (0.1, 1.0, 10.0), 1e-6, 5
NUMBERS = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 99999),
    "capital-loss": (0, 4356),
    "hours-per-week": (1, 99),
}
CATEGORIES = ("workclass", "marital-status", "occupation", "relationship", "race", "sex")
BEST = {0.1: (0.832, 0.873), 1.0: (0.845, 0.896), 10.0: (0.851, 0.902)}
"""The best accuracy and AUC of a private model in the table of targets."""
SQUARES = {0.1: 0.025, 1.0: 0.135, 10.0: 0.175}
"""AdaSSP's R² there."""
ROWS, WIDTH = 1_000_000, 50


class Adult(NamedTuple):
    """Both parts of the table: as frames, as numbers between 0 and 1, and which earn more."""

    train: pa.Table
    test: pa.Table
    bounds: dict[str, Any]
    X: Floats
    T: Floats
    y: NDArray[np.int64]
    t: NDArray[np.int64]


@cache
def adult() -> Adult | None:
    """The table, or None where it is not at hand."""
    folder = _folder()
    if folder is None:
        return None
    parts = []
    for name in ("raw_adult.data", "raw_adult.test"):
        with (folder / name).open() as lines:
            kept = [line for line in csv.reader(lines, skipinitialspace=True) if len(line) == len(COLUMNS)]
        parts.append({name: [line[at] for line in kept] for at, name in enumerate(COLUMNS)})
    listed = {name: sorted(set(parts[0][name]) - {"?"}) for name in CATEGORIES}
    frames = [
        pa.table(
            {name: np.array(part[name], float) for name in NUMBERS}
            | {name: part[name] for name in CATEGORIES}
        )
        for part in parts
    ]
    labels = [np.array([label.startswith(">50K") for label in part["income"]], np.int64) for part in parts]
    matrices = [_scaled(frame, listed) for frame in frames]
    return Adult(*frames, {**NUMBERS, **listed}, *matrices, *labels)


def _scaled(frame: pa.Table, listed: dict[str, list[str]]) -> Floats:
    columns = [
        (np.clip(frame[name].to_numpy(), low, high) - low) / (high - low)
        for name, (low, high) in NUMBERS.items()
    ]
    for name, values in listed.items():
        found = np.array(frame[name].to_pylist(), object)
        columns += [(found == value).astype(float) for value in values]
    return np.column_stack(columns)


def logistic(report: Report) -> None:
    """Accuracy and AUC of who earns more than 50K."""
    report.heading("Adult, income: accuracy / AUC by epsilon", *(f"{epsilon:g}" for epsilon in EPSILONS))
    data = adult()
    if data is None:
        report.row("adult", "data", "not there", installed=False)
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

    found = _classified(report, data, "sfumato", ours)
    _classified(report, data, "descent, 60", descent(60))
    _classified(report, data, "descent, 300", descent(300))
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

        _classified(report, data, "diffprivlib", theirs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = LogisticRegression(max_iter=2000).fit(data.X, data.y).decision_function(data.T)
    accuracy, area = _scores(data, plain)
    report.row("logistic", "not private", f"{accuracy:.3f}/{area:.3f}", accuracy=accuracy, auc=area)
    for epsilon, (accuracy, area) in zip(EPSILONS, found, strict=True):
        report.figure(f"accuracy on Adult at epsilon {epsilon:g}", accuracy, ">=", BEST[epsilon][0])
        report.figure(f"AUC on Adult at epsilon {epsilon:g}", area, ">=", BEST[epsilon][1])


def _scores(data: Adult, margins: Floats) -> tuple[float, float]:
    from sklearn.metrics import roc_auc_score

    return float(((margins > 0) == data.t).mean()), float(roc_auc_score(data.t, margins))


def _classified(
    report: Report, data: Adult, who: str, fitted: Callable[[float, int], Floats]
) -> list[tuple[float, float]]:
    found = []
    for epsilon in EPSILONS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = np.array([_scores(data, fitted(epsilon, seed)) for seed in range(SEEDS)])
        found.append((float(scores[:, 0].mean()), float(scores[:, 1].mean())))
    cells = [f"{accuracy:.3f}/{area:.3f}" for accuracy, area in found]
    report.row(
        "logistic", who, *cells, epsilons=EPSILONS, accuracy=[a for a, _ in found], auc=[a for _, a in found]
    )
    return found


def linear(report: Report) -> None:
    """R² of hours a week from the other columns."""
    report.heading("Adult, hours a week: R² by epsilon", *(f"{epsilon:g}" for epsilon in EPSILONS))
    data = adult()
    if data is None:
        report.row("adult", "data", "not there", installed=False)
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
    for at, epsilon in enumerate(EPSILONS):
        report.figure(f"R² on Adult at epsilon {epsilon:g}, over AdaSSP's", found[at], ">=", SQUARES[epsilon])
        best = max(other[at] for other in others)
        report.figure(f"R² on Adult at epsilon {epsilon:g}, less the best peer's", found[at] - best, ">=", 0)


def _r2(truth: Floats, guess: Floats) -> float:
    return float(1 - ((truth - guess) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


def speed(report: Report) -> None:
    """Fits of a million rows beside scikit-learn's without noise, each in a process of its own."""
    report.heading(f"{ROWS:,} x {WIDTH}: seconds of CPU, and memory above the rows", "seconds", "MiB")
    for model in ("LogisticRegression", "LinearRegression"):
        found = {}
        for who in ("scikit-learn", "sfumato"):
            done = subprocess.run(
                [sys.executable, "-c", "from benchmarks.learn import timed; timed()", model, who],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            cpu, memory = (float(word) for word in done.stdout.split()[-2:])
            found[who] = cpu, memory
            report.row(model, who, seconds(cpu), f"{memory:.0f}", cpu_seconds=cpu, mebibytes=memory)
        ratios = [ours / theirs for ours, theirs in zip(found["sfumato"], found["scikit-learn"], strict=True)]
        report.figure(f"{model}, times scikit-learn", ratios[0], "<=", 3, unit="x", shown=times(ratios[0]))
        report.figure(f"{model}, memory beside scikit-learn's", ratios[1], "<=", 1.5, unit="x")


def timed() -> None:
    """Fit one model and print what it took: run by `speed`."""
    from time import process_time

    import sklearn.linear_model as plain

    from sfumato import learn

    name, who = sys.argv[1:3]
    rng = np.random.default_rng(0)
    X = rng.normal(0, 1, (ROWS, WIDTH))
    margin = X @ (rng.normal(0, 1, WIDTH) / WIDTH**0.5)
    labels = (rng.random(ROWS) < 1 / (1 + np.exp(-margin))).astype(int)
    y = labels if name == "LogisticRegression" else margin + rng.normal(0, 1, ROWS)
    more = {"classes": [0, 1]} if name == "LogisticRegression" else {"target_bounds": (-8, 8)}

    def model() -> Any:
        if who == "scikit-learn":
            return getattr(plain, name)()
        return getattr(learn, name)(epsilon=1, delta=DELTA, bounds=(-5, 5), **more)

    model().fit(X[:100], y[:100])
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, process_time()
    model().fit(X, y)
    cpu = process_time() - start
    print(cpu, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


PARTS = (logistic, linear, speed)
"""Boosted trees come as a part of their own, between `linear` and `speed`."""
