"""scikit-learn's own checks of every estimator, with public bounds and classes given."""

from __future__ import annotations

import inspect
from copy import copy

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from sfumato import learn
from sfumato.learn.base import PrivateEstimator
from sfumato.learn.kinds import PrivateClassifier

PRICE = {"epsilon": 10**6, "delta": 1e-6}
WIDE = (-100, 100)


def knowing(kind):
    """The same classifier of somebody who knows which classes there are."""

    class Knowing(kind):
        def fit(self, X, y=None, **given):
            labels = [] if y is None else np.unique(np.asarray(y)).tolist()
            known = [label for label in labels if isinstance(label, str) or np.isfinite(label)]
            self._known = (
                known
                if len(known) > 1
                else [*(known or [0]), "b" if known and isinstance(known[0], str) else 99]
            )
            return super().fit(X, y, **given)

        def _listed(self):
            declared = copy(self)
            declared.classes = self._known if self.classes is None else self.classes
            return kind._listed(declared)

    Knowing.__init__ = kind.__init__
    Knowing.__name__ = Knowing.__qualname__ = kind.__name__
    globals()[kind.__name__] = Knowing  # where a pickle looks for it
    return Knowing


# How each is constructed; what is not listed here is constructed with a price and bounds.
GIVEN = {
    "Pipeline": {"steps": [("scale", learn.StandardScaler(bounds=WIDE)), ("turn", learn.PCA())], **PRICE},
    "MinMaxScaler": {"bounds": WIDE},
    "OneHotEncoder": {"bounds": WIDE},
    "PoissonRegression": {**PRICE, "bounds": WIDE, "target_bounds": (0, 300)},
}


# What scikit-learn's checks cannot hand anything to.
APART = {
    "CoxRegression": "it learns from two columns, a time and an event",
    "KaplanMeier": "it learns from two columns, a time and an event, and has no rows to predict for",
    "NoisyGradientDescent": "it takes two classes, and most checks fit three",
    "FederatedAveraging": "it takes two classes, and most checks fit three",
}


def is_estimator(name):
    kind = getattr(learn, name)
    return inspect.isclass(kind) and issubclass(kind, PrivateEstimator) and name not in APART


NAMES = list({getattr(learn, name): name for name in learn.__all__ if is_estimator(name)}.values())
SMALL = {"rounds": 3, "interactions": 0, "bins": 24}


def made(name):
    kind = getattr(learn, name)
    takes = inspect.signature(kind).parameters
    given = {**PRICE, "bounds": (-6, 6) if "bins" in takes else WIDE} | (
        {"target_bounds": (-300, 300)} if "target_bounds" in takes else {}
    )
    given = GIVEN.get(name, given | {key: value for key, value in SMALL.items() if key in takes})
    return (knowing(kind) if issubclass(kind, PrivateClassifier) else kind)(**given)


NOISE = "each fit draws its own noise, which nobody can seed: two fits on the same rows differ"
DECLARED = (
    "classes are declared, so that labels of whatever type are those, and none is guessed from the rows"
)
IN_PLACE = "as scikit-learn's own pipeline, it fits its steps where they are"
EXPECTED = {
    "check_fit_idempotent": NOISE,
    "check_regressor_data_not_an_array": NOISE,
    "check_supervised_y_2d": NOISE,
    "check_regressors_int": NOISE,
    "check_classifier_data_not_an_array": NOISE,
    "check_classifiers_regression_target": DECLARED,
}
UNPAID = "labels_ would say of each row where it is, and no row's own part of the answer is released"
BELOW = "half of the check's targets are below 0, and those of counts are clamped to 0 or more"
MORE = {
    "KMeans": {"check_clustering": UNPAID},
    "PoissonRegression": {"check_regressors_train": BELOW},
    "Pipeline": {"check_estimators_overwrite_params": IN_PLACE},
}


@pytest.mark.filterwarnings("ignore::sfumato.learn.FittedAgain")
@pytest.mark.parametrize("name", NAMES)
def test_scikit_learns_checks_pass(name):
    expected = EXPECTED | MORE.get(name, {})
    assert len(expected) <= 10
    results = check_estimator(made(name), expected_failed_checks=expected, on_skip=None, on_fail=None)
    failed = [
        f"{result['check_name']}: {result['exception']}" for result in results if result["status"] == "failed"
    ]
    assert not failed, "\n".join(failed)
    assert sum(result["status"] == "passed" for result in results) > 30
