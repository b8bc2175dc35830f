"""Mechanisms: one file each, every one with its loss, its error and the theorem behind its price.

`modules()` finds the mechanism files and `examples()` the checkable examples in them, so that adding one
file is enough for the conformance kit to run over it.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from sfumato._lazy import lazy
from sfumato.mechanisms.base import Example, Mechanism

if TYPE_CHECKING:
    from sfumato.mechanisms.above_threshold import AboveThreshold
    from sfumato.mechanisms.adaptive_selection import AdaptiveSelection
    from sfumato.mechanisms.bounded_laplace import BoundedLaplace
    from sfumato.mechanisms.discrete_gaussian import DiscreteGaussian
    from sfumato.mechanisms.exponential import Exponential
    from sfumato.mechanisms.gaussian import Gaussian
    from sfumato.mechanisms.gaussian_selection import GaussianSelection
    from sfumato.mechanisms.geometric import Geometric
    from sfumato.mechanisms.laplace import Laplace
    from sfumato.mechanisms.nested_quantiles import NestedQuantiles
    from sfumato.mechanisms.noisy_max import NoisyMax
    from sfumato.mechanisms.partition_selection import PartitionSelection
    from sfumato.mechanisms.permute_and_flip import PermuteAndFlip
    from sfumato.mechanisms.propose_test_release import ProposeTestRelease
    from sfumato.mechanisms.quantiles import Quantiles
    from sfumato.mechanisms.randomized_response import RandomizedResponse
    from sfumato.mechanisms.sample_and_aggregate import SampleAndAggregate
    from sfumato.mechanisms.smooth_sensitivity import Median, SmoothSensitivity, median_of
    from sfumato.mechanisms.sparse_vector import NumericSparseVector, SparseVector
    from sfumato.mechanisms.staircase import Staircase
    from sfumato.mechanisms.top_k import TopK
    from sfumato.mechanisms.tree_counter import TreeCounter
    from sfumato.mechanisms.truncated_laplace import TruncatedLaplace

__all__ = [
    "AboveThreshold",
    "AdaptiveSelection",
    "BoundedLaplace",
    "DiscreteGaussian",
    "Example",
    "Exponential",
    "Gaussian",
    "GaussianSelection",
    "Geometric",
    "Laplace",
    "Mechanism",
    "Median",
    "NestedQuantiles",
    "NoisyMax",
    "NumericSparseVector",
    "PartitionSelection",
    "PermuteAndFlip",
    "ProposeTestRelease",
    "Quantiles",
    "RandomizedResponse",
    "SampleAndAggregate",
    "SmoothSensitivity",
    "SparseVector",
    "Staircase",
    "TopK",
    "TreeCounter",
    "TruncatedLaplace",
    "examples",
    "median_of",
    "modules",
]

# Loaded on first use: importing the package should not compile tables for mechanisms that nobody asked for.
_HOMES = {
    "above_threshold": "AboveThreshold",
    "adaptive_selection": "AdaptiveSelection",
    "bounded_laplace": "BoundedLaplace",
    "discrete_gaussian": "DiscreteGaussian",
    "exponential": "Exponential",
    "gaussian": "Gaussian",
    "gaussian_selection": "GaussianSelection",
    "geometric": "Geometric",
    "laplace": "Laplace",
    "nested_quantiles": "NestedQuantiles",
    "noisy_max": "NoisyMax",
    "partition_selection": "PartitionSelection",
    "permute_and_flip": "PermuteAndFlip",
    "propose_test_release": "ProposeTestRelease",
    "quantiles": "Quantiles",
    "randomized_response": "RandomizedResponse",
    "sample_and_aggregate": "SampleAndAggregate",
    "smooth_sensitivity": "Median SmoothSensitivity median_of",
    "sparse_vector": "NumericSparseVector SparseVector",
    "staircase": "Staircase",
    "top_k": "TopK",
    "tree_counter": "TreeCounter",
    "truncated_laplace": "TruncatedLaplace",
}


def modules() -> tuple[ModuleType, ...]:
    """Every mechanism module in this package, found by looking: public file names other than `base`."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return tuple(
        importlib.import_module(f"{__name__}.{name}")
        for name in names
        if not name.startswith("_") and name != "base"
    )


@cache
def examples() -> tuple[Example, ...]:
    """The examples of every mechanism module: what the conformance kit runs over."""
    return tuple(example for module in modules() for example in module.examples())


__getattr__, __dir__ = lazy(globals(), _HOMES)
