"""Boosted models of who earns more in the Adult census table, beside the private trees that install."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Report, peer
from benchmarks.learn_adult import (
    BEST,
    CATEGORIES,
    DELTA,
    NUMBERS,
    Floats,
    classified,
    headed,
    judged,
)

AREAS = {0.1: BEST[0.1][1], 1.0: 0.905, 10.0: 0.920}
"""The AUC to reach: that of the best private model in the table of targets, and what is asked of boosting."""


def boosting(report: Report) -> None:
    """Accuracy and AUC of who earns more than 50K: boosting, the private EBM, a private forest."""
    data = headed(report, "Adult, income: accuracy / AUC by epsilon")
    if data is None:
        return
    from sklearn.ensemble import HistGradientBoostingClassifier

    from sfumato import learn

    def ours(epsilon: float, _: int) -> Floats:
        model = learn.GradientBoostingClassifier(
            epsilon=epsilon, delta=DELTA, bounds=data.bounds, classes=[0, 1]
        )
        return np.asarray(model.fit(data.train, data.y).decision_function(data.test))

    found = classified(report, data, "boosting", "sfumato", ours)
    additive = peer("interpret.privacy")
    if additive is None:
        report.missing("boosting", "interpret, EBM")
    else:
        train, test = data.train.to_pandas(), data.test.to_pandas()
        kinds = ["continuous"] * len(NUMBERS) + ["nominal"] * len(CATEGORIES)

        def explained(epsilon: float, seed: int) -> Floats:
            model = additive.DPExplainableBoostingClassifier(
                epsilon=epsilon, delta=DELTA, feature_types=kinds, privacy_bounds=NUMBERS,
                random_state=seed, n_jobs=1,
            )  # fmt: skip
            return np.asarray(model.fit(train, data.y).predict_proba(test)[:, 1] - 0.5)

        classified(report, data, "boosting", "interpret, EBM", explained)
    private = peer("diffprivlib.models")
    if private is None:
        report.missing("boosting", "diffprivlib")
    else:

        def forest(epsilon: float, seed: int) -> Floats:
            model = private.RandomForestClassifier(
                epsilon=epsilon, bounds=(0.0, 1.0), classes=[0, 1], random_state=seed
            )
            return np.asarray(model.fit(data.X, data.y).predict_proba(data.T)[:, 1] - 0.5)

        classified(report, data, "boosting", "diffprivlib", forest)
    plain = HistGradientBoostingClassifier(random_state=0).fit(data.X, data.y).decision_function(data.T)
    judged(report, data, "boosting", "of boosting", plain, found, AREAS)
