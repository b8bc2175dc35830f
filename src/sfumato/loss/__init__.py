"""The vocabulary of privacy losses: inert, versioned values that know their own curve.

| known about a release | class |
| --- | --- |
| an ε, an (ε, δ), a ρ, a Rényi curve | `PureLoss`, `ApproximateLoss`, `ConcentratedLoss`, `RenyiLoss` |
| its exact law | `LaplaceLoss`, `DiscreteLaplaceLoss`, `GaussianLoss`, `DiscreteGaussianLoss`,
`ResponseLoss`, `BoundedRangeLoss` |
| how it was put together | `ComposedLoss`, `SampledLoss`, `ExchangedSampleLoss`, `AllocatedLoss`,
`ParallelLoss`, `GroupLoss` |
| whom it holds for | `AdjacentLoss` |
"""

from __future__ import annotations

from sfumato.loss.adjacent import AdjacentLoss
from sfumato.loss.allocated import AllocatedLoss
from sfumato.loss.approximate import ApproximateLoss, ConcentratedLoss, RenyiLoss
from sfumato.loss.base import Adjacency, PrivacyLoss, Scheme
from sfumato.loss.composed import NO_LOSS, ComposedLoss, compose
from sfumato.loss.exchanged import ExchangedSampleLoss
from sfumato.loss.gaussian import DiscreteGaussianLoss, GaussianLoss
from sfumato.loss.group import GroupLoss, textbook_group
from sfumato.loss.law import LossLaw
from sfumato.loss.parallel import ParallelLoss
from sfumato.loss.pure import BoundedRangeLoss, DiscreteLaplaceLoss, LaplaceLoss, PureLoss, ResponseLoss
from sfumato.loss.sampled import SampledLoss

__all__ = [
    "NO_LOSS",
    "Adjacency",
    "AdjacentLoss",
    "AllocatedLoss",
    "ApproximateLoss",
    "BoundedRangeLoss",
    "ComposedLoss",
    "ConcentratedLoss",
    "DiscreteGaussianLoss",
    "DiscreteLaplaceLoss",
    "ExchangedSampleLoss",
    "GaussianLoss",
    "GroupLoss",
    "LaplaceLoss",
    "LossLaw",
    "ParallelLoss",
    "PrivacyLoss",
    "PureLoss",
    "RenyiLoss",
    "ResponseLoss",
    "SampledLoss",
    "Scheme",
    "compose",
    "textbook_group",
]
