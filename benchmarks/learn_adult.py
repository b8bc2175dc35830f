"""The Adult census table (official split), and what models are scored by there.

The table is not part of this repository: it is looked for in `$ADULT`, then in `shared/data/adult` beside the
checkout.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.anonymity import COLUMNS, _folder
from benchmarks.harness import Report

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


def scores(data: Adult, margins: Floats) -> tuple[float, float]:
    """Accuracy and AUC of margins on the test rows."""
    from sklearn.metrics import roc_auc_score

    return float(((margins > 0) == data.t).mean()), float(roc_auc_score(data.t, margins))


def classified(
    report: Report, data: Adult, case: str, who: str, fitted: Callable[[float, int], Floats]
) -> list[tuple[float, float]]:
    """Fit at each epsilon and seed, put the means in a row and give them."""
    found = []
    for epsilon in EPSILONS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            means = np.mean([scores(data, fitted(epsilon, seed)) for seed in range(SEEDS)], axis=0)
        found.append((float(means[0]), float(means[1])))
    cells = [f"{accuracy:.3f}/{area:.3f}" for accuracy, area in found]
    report.row(
        case, who, *cells, epsilons=EPSILONS, accuracy=[a for a, _ in found], auc=[a for _, a in found]
    )
    return found


def headed(report: Report, title: str) -> Adult | None:
    """A heading with a column for each epsilon, and the table; None: it is not at hand, which is said."""
    report.heading(title, *(f"{epsilon:g}" for epsilon in EPSILONS))
    data = adult()
    if data is None:
        report.row("adult", "data", "not there", installed=False)
    return data


def judged(
    report: Report,
    data: Adult,
    case: str,
    what: str,
    plain: Floats,
    found: list[tuple[float, float]],
    areas: dict[float, float],
) -> None:
    """The row of a model without privacy, and our own means beside what is asked of them."""
    accuracy, area = scores(data, plain)
    report.row(case, "not private", f"{accuracy:.3f}/{area:.3f}", accuracy=accuracy, auc=area)
    for epsilon, (accuracy, area) in zip(EPSILONS, found, strict=True):
        report.figure(f"accuracy {what} at epsilon {epsilon:g}", accuracy, ">=", BEST[epsilon][0])
        report.figure(f"AUC {what} at epsilon {epsilon:g}", area, ">=", areas[epsilon])
