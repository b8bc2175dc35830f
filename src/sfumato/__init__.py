"""Differential privacy with exact noise, honest error bars and a budget that cannot be overdrawn.

```python
import sfumato as sf

m = sf.Laplace(epsilon=1.0, sensitivity=1.0)
m.release(42.0)                     # a private number
m.error(0.95)                       # the noise stays within this half-width 95 times in 100
total = sf.compose([m.loss] * 100)  # what a hundred releases cost together
total.epsilon(delta=1e-6)
```

Names load on first use, so `import sfumato` itself costs next to nothing.
"""

from __future__ import annotations

from sfumato._lazy import lazy

TYPE_CHECKING = False  # as typing's, without loading it

__version__ = "0.1.0"

_MODULES = (
    "accounting anonymity attacks audit book dossier engines errors explain games "
    "lab learn local loss mechanisms numeric plots random synth"
)
_HOMES = {
    "advice": "advise",
    "catalog": "Catalog",
    "client": "connect",
    "engines": "Csv",
    "ledger": "Budget Ledger Steward",
    "loss": "PrivacyLoss compose",
    "mechanisms": (
        "AboveThreshold AdaptiveSelection BoundedLaplace DiscreteGaussian Exponential Gaussian "
        "GaussianSelection Geometric Laplace Mechanism NoisyMax NumericSparseVector PartitionSelection "
        "PermuteAndFlip ProposeTestRelease RandomizedResponse SampleAndAggregate SmoothSensitivity "
        "SparseVector Staircase TopK TreeCounter TruncatedLaplace"
    ),
    "plan.builder": (
        "col corr count count_distinct count_if covar geometric_mean harmonic_mean max mean median min "
        "quantile std sum var"
    ),
    "schema": "Bool Date Enum Float Int Keys PrivacyUnit PrivateTable PublicTable State Text Time Timestamp",
    "session": "Session",
    "validation": "Validation validate",
}

if TYPE_CHECKING:
    from sfumato import (
        accounting,
        anonymity,
        attacks,
        audit,
        book,
        dossier,
        engines,
        errors,
        explain,
        games,
        lab,
        learn,
        local,
        loss,
        mechanisms,
        numeric,
        plots,
        random,
        synth,
    )
    from sfumato.advice import advise
    from sfumato.catalog import Catalog
    from sfumato.client import connect
    from sfumato.engines import Csv
    from sfumato.ledger import Budget, Ledger, Steward
    from sfumato.loss import PrivacyLoss, compose
    from sfumato.mechanisms import (
        AboveThreshold,
        AdaptiveSelection,
        BoundedLaplace,
        DiscreteGaussian,
        Exponential,
        Gaussian,
        GaussianSelection,
        Geometric,
        Laplace,
        Mechanism,
        NoisyMax,
        NumericSparseVector,
        PartitionSelection,
        PermuteAndFlip,
        ProposeTestRelease,
        RandomizedResponse,
        SampleAndAggregate,
        SmoothSensitivity,
        SparseVector,
        Staircase,
        TopK,
        TreeCounter,
        TruncatedLaplace,
    )
    from sfumato.plan.questions.aggregates.correlation import corr
    from sfumato.plan.questions.aggregates.count import count, count_distinct, count_if
    from sfumato.plan.questions.aggregates.covariance import covar
    from sfumato.plan.questions.aggregates.geometric_mean import geometric_mean
    from sfumato.plan.questions.aggregates.harmonic_mean import harmonic_mean
    from sfumato.plan.questions.aggregates.mean import mean
    from sfumato.plan.questions.aggregates.quantile import max, median, min, quantile
    from sfumato.plan.questions.aggregates.spread import std, var
    from sfumato.plan.questions.aggregates.sum import sum
    from sfumato.plan.questions.terms import col
    from sfumato.schema import (
        Bool,
        Date,
        Enum,
        Float,
        Int,
        Keys,
        PrivacyUnit,
        PrivateTable,
        PublicTable,
        State,
        Text,
        Time,
        Timestamp,
    )
    from sfumato.session import Session
    from sfumato.validation import Validation, validate

__all__ = [
    "AboveThreshold",
    "AdaptiveSelection",
    "Bool",
    "BoundedLaplace",
    "Budget",
    "Catalog",
    "Csv",
    "Date",
    "DiscreteGaussian",
    "Enum",
    "Exponential",
    "Float",
    "Gaussian",
    "GaussianSelection",
    "Geometric",
    "Int",
    "Keys",
    "Laplace",
    "Ledger",
    "Mechanism",
    "NoisyMax",
    "NumericSparseVector",
    "PartitionSelection",
    "PermuteAndFlip",
    "PrivacyLoss",
    "PrivacyUnit",
    "PrivateTable",
    "ProposeTestRelease",
    "PublicTable",
    "RandomizedResponse",
    "SampleAndAggregate",
    "Session",
    "SmoothSensitivity",
    "SparseVector",
    "Staircase",
    "State",
    "Steward",
    "Text",
    "Time",
    "Timestamp",
    "TopK",
    "TreeCounter",
    "TruncatedLaplace",
    "Validation",
    "__version__",
    "accounting",
    "advise",
    "anonymity",
    "attacks",
    "audit",
    "book",
    "col",
    "compose",
    "connect",
    "corr",
    "count",
    "count_distinct",
    "count_if",
    "covar",
    "dossier",
    "engines",
    "errors",
    "explain",
    "games",
    "geometric_mean",
    "harmonic_mean",
    "lab",
    "learn",
    "local",
    "loss",
    "max",
    "mean",
    "mechanisms",
    "median",
    "min",
    "numeric",
    "plots",
    "quantile",
    "random",
    "std",
    "sum",
    "synth",
    "validate",
    "var",
]

__getattr__, __dir__ = lazy(globals(), _HOMES, modules=_MODULES)
