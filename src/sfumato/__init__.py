"""Differential privacy with exact noise, tight accounting and honest error bars.

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

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_SUBPACKAGES = ("accounting", "audit", "errors", "loss", "mechanisms", "numeric", "random")

_HOMES = {
    "mechanisms": (
        "AboveThreshold",
        "BoundedLaplace",
        "DiscreteGaussian",
        "Exponential",
        "Gaussian",
        "Geometric",
        "Laplace",
        "Mechanism",
        "NoisyMax",
        "NumericSparseVector",
        "PermuteAndFlip",
        "ProposeTestRelease",
        "RandomizedResponse",
        "SampleAndAggregate",
        "SmoothSensitivity",
        "SparseVector",
        "Staircase",
        "TopK",
        "TreeCounter",
        "TruncatedLaplace",
    ),
    "loss": ("PrivacyLoss", "compose"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from sfumato import accounting, audit, errors, loss, mechanisms, numeric, random
    from sfumato.loss import PrivacyLoss, compose
    from sfumato.mechanisms import (
        AboveThreshold,
        BoundedLaplace,
        DiscreteGaussian,
        Exponential,
        Gaussian,
        Geometric,
        Laplace,
        Mechanism,
        NoisyMax,
        NumericSparseVector,
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

__all__ = [
    "AboveThreshold",
    "BoundedLaplace",
    "DiscreteGaussian",
    "Exponential",
    "Gaussian",
    "Geometric",
    "Laplace",
    "Mechanism",
    "NoisyMax",
    "NumericSparseVector",
    "PermuteAndFlip",
    "PrivacyLoss",
    "ProposeTestRelease",
    "RandomizedResponse",
    "SampleAndAggregate",
    "SmoothSensitivity",
    "SparseVector",
    "Staircase",
    "TopK",
    "TreeCounter",
    "TruncatedLaplace",
    "__version__",
    "accounting",
    "audit",
    "compose",
    "errors",
    "loss",
    "mechanisms",
    "numeric",
    "random",
]


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return import_module(f"sfumato.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    value = getattr(import_module(f"sfumato.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
