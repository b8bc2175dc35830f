"""k-means: how far rows are from the nearest centre, beside diffprivlib's and scikit-learn's without noise.

Figures are inertias (sums of squared distances) over scikit-learn's best of ten starts on the same rows: on
made-up rows around centres, and on the numbers of the Adult census table, which lie in no clusters.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import Report, peer
from benchmarks.learn_adult import DELTA, EPSILONS, NUMBERS, SEEDS, Floats, adult

CLUSTERS = 8


class _Table(NamedTuple):
    """Rows, and the bounds that all of their columns have."""

    X: Floats
    bounds: tuple[float, float]


def clusters(report: Report) -> None:
    """Mean inertias over that without noise, at each epsilon."""
    report.heading(
        f"{CLUSTERS} clusters: inertia over scikit-learn's", *(f"{epsilon:g}" for epsilon in EPSILONS)
    )
    tables = {"50,000 x 10": _around()}
    data = adult()
    if data is None:
        report.row("adult", "data", "not there", installed=False)
    else:
        tables["Adult's numbers"] = _Table(np.ascontiguousarray(data.X[:, : len(NUMBERS)]), (0.0, 1.0))
    for case, table in tables.items():
        _compared(report, case, table)


def _around() -> _Table:
    rng = np.random.default_rng(0)
    centres = rng.uniform(-3, 3, (CLUSTERS, 10))
    near = centres[rng.integers(0, CLUSTERS, 50_000)]
    return _Table(np.clip(near + rng.normal(0, 0.7, near.shape), -5, 5), (-5.0, 5.0))


def _compared(report: Report, case: str, table: _Table) -> None:
    from sklearn.cluster import KMeans

    from sfumato import learn

    plain = float(KMeans(CLUSTERS, n_init=10, random_state=0).fit(table.X).inertia_)

    def measured(who: str, model: Callable[[float, int], Any]) -> list[float]:
        found = []
        for epsilon in EPSILONS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fits = [model(epsilon, seed).fit(table.X).cluster_centers_ for seed in range(SEEDS)]
            found.append(float(np.mean([_inertia(table.X, centres) for centres in fits])) / plain)
        report.row(case, who, *(f"{each:.3f}" for each in found), epsilons=EPSILONS, inertia_over_plain=found)
        return found

    def ours(epsilon: float, seed: int) -> Any:
        return learn.KMeans(epsilon, DELTA, table.bounds, n_clusters=CLUSTERS, random_state=seed)

    mine = measured("sfumato", ours)
    private = peer("diffprivlib.models")
    if private is None:
        report.missing(case, "diffprivlib")
    else:

        def theirs(epsilon: float, seed: int) -> Any:
            return private.KMeans(CLUSTERS, epsilon=epsilon, bounds=table.bounds, random_state=seed)

        other = measured("diffprivlib", theirs)
        for at, epsilon in enumerate(EPSILONS):
            report.figure(
                f"{case}: inertia over diffprivlib's, epsilon {epsilon:g}", mine[at] / other[at], "<=", 1
            )
    report.row(case, "not private", "1.000", inertia=plain)


def _inertia(X: Floats, centres: Floats) -> float:
    return float(np.min([((X - centre) ** 2).sum(axis=1) for centre in centres], axis=0).sum())
