"""Private learning on tables: estimators that fit like scikit-learn's (extra `learn`).

```python
from sfumato import learn

model = learn.LogisticRegression(epsilon=1, delta=1e-6, bounds={"age": (17, 90)}, classes=[0, 1])
model.fit(X, y).predict_proba(X)
```

The whole fit is one release with one price; columns and classes are declared, never read off the data.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from sfumato._lazy import lazy
from sfumato.errors import MissingExtra

if find_spec("sklearn") is None:
    raise MissingExtra("Learning needs scikit-learn: pip install 'sfumato[learn]'.")

if TYPE_CHECKING:
    from sfumato.learn._core.habits import FittedAgain
    from sfumato.learn.binning import KBinsDiscretizer
    from sfumato.learn.boosting import (
        ColumnShape,
        GradientBoosting,
        GradientBoostingClassifier,
        GradientBoostingRegressor,
        PairShape,
    )
    from sfumato.learn.encoding import OneHotEncoder
    from sfumato.learn.federated import FederatedAveraging, Guarantee
    from sfumato.learn.files import load, save
    from sfumato.learn.folds import CrossValidation, cross_val_quote, cross_val_score
    from sfumato.learn.gradient import NoisyGradientDescent
    from sfumato.learn.kmeans import KMeans
    from sfumato.learn.linear import LinearRegression, Ridge
    from sfumato.learn.logistic import LogisticRegression
    from sfumato.learn.moments import Moments
    from sfumato.learn.pca import PCA
    from sfumato.learn.pipeline import Pipeline
    from sfumato.learn.poisson import PoissonRegression
    from sfumato.learn.quantiles import QuantileTransformer
    from sfumato.learn.reports import Report, report, report_selection
    from sfumato.learn.scaling import MinMaxScaler, StandardScaler
    from sfumato.learn.search import HoldoutSearch, RandomSearch, SearchQuote
    from sfumato.learn.survival.cox import CoxRegression
    from sfumato.learn.survival.kaplan_meier import HazardRatio, KaplanMeier, LogRank

# Loaded on first use; every module listed here is asked for its `examples`.
_HOMES = {
    "_core.habits": "FittedAgain",
    "binning": "KBinsDiscretizer",
    "boosting": "ColumnShape GradientBoosting GradientBoostingClassifier GradientBoostingRegressor PairShape",
    "encoding": "OneHotEncoder",
    "federated": "FederatedAveraging Guarantee",
    "files": "load save",
    "folds": "CrossValidation cross_val_quote cross_val_score",
    "gradient": "NoisyGradientDescent",
    "kmeans": "KMeans",
    "linear": "LinearRegression Ridge",
    "logistic": "LogisticRegression",
    "moments": "Moments",
    "pca": "PCA",
    "pipeline": "Pipeline",
    "poisson": "PoissonRegression",
    "quantiles": "QuantileTransformer",
    "reports": "Report report report_selection",
    "scaling": "MinMaxScaler StandardScaler",
    "search": "HoldoutSearch RandomSearch SearchQuote",
    "survival.cox": "CoxRegression",
    "survival.kaplan_meier": "HazardRatio KaplanMeier LogRank",
}

__all__ = [
    "PCA",
    "ColumnShape",
    "CoxRegression",
    "CrossValidation",
    "FederatedAveraging",
    "FittedAgain",
    "GradientBoosting",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "Guarantee",
    "HazardRatio",
    "HoldoutSearch",
    "KBinsDiscretizer",
    "KMeans",
    "KaplanMeier",
    "LinearRegression",
    "LogRank",
    "LogisticRegression",
    "MinMaxScaler",
    "Moments",
    "NoisyGradientDescent",
    "OneHotEncoder",
    "PairShape",
    "Pipeline",
    "PoissonRegression",
    "QuantileTransformer",
    "RandomSearch",
    "Report",
    "Ridge",
    "SearchQuote",
    "StandardScaler",
    "cross_val_quote",
    "cross_val_score",
    "load",
    "report",
    "report_selection",
    "save",
]

__getattr__, __dir__ = lazy(globals(), _HOMES, modules="torch")
