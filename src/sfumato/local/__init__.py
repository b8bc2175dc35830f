"""Local privacy: people randomise their own values, and a server that never sees one estimates.

```python
from sfumato import local

client = local.KaryResponse(epsilon=1, domain=["tea", "coffee", "water"])
reports = client.encode(["tea", "tea", "water"])    # each person, on their own device
client.aggregate(reports).estimate(confidence=0.95).table
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import lazy

# Now, and not on first use: the name is the function's, and no longer its module's.
from sfumato.local.recommend import Recommendation, recommend

# One line a name, each in its alphabetical place.
if TYPE_CHECKING:
    from sfumato.local.base import Aggregate, Randomizer, aggregate_from, randomizer_from
    from sfumato.local.domain import Domain
    from sfumato.local.estimates import Frequencies, Mean
    from sfumato.local.hadamard import HadamardResponse
    from sfumato.local.hashing import LocalHashing
    from sfumato.local.heavy import Found, HeavyHitters
    from sfumato.local.means import DuchiMean, HybridMean, PiecewiseMean
    from sfumato.local.quantiles import Distribution, LocalQuantiles, Quantile
    from sfumato.local.rappor import Rappor
    from sfumato.local.rates import Minimax, minimax_frequencies, minimax_mean
    from sfumato.local.response import BinaryResponse, KaryResponse
    from sfumato.local.shuffle import shuffled
    from sfumato.local.sketch import CountMeanSketch
    from sfumato.local.subset import SubsetSelection
    from sfumato.local.survey import Survey, design
    from sfumato.local.unary import UnaryEncoding
    from sfumato.local.wire import (
        Reports,
        aggregate_from_json,
        aggregate_reports,
        aggregate_to_json,
        read_reports,
        write_reports,
    )

# Loaded on first use; every module listed here is asked for its randomizers and its `examples`.
_HOMES = {
    "base": "Aggregate Randomizer aggregate_from randomizer_from",
    "domain": "Domain",
    "estimates": "Frequencies Mean",
    "hadamard": "HadamardResponse",
    "hashing": "LocalHashing",
    "heavy": "Found HeavyHitters",
    "means": "DuchiMean HybridMean PiecewiseMean",
    "quantiles": "Distribution LocalQuantiles Quantile",
    "rappor": "Rappor",
    "rates": "Minimax minimax_frequencies minimax_mean",
    "recommend": "Recommendation recommend",
    "response": "BinaryResponse KaryResponse",
    "shuffle": "shuffled",
    "sketch": "CountMeanSketch",
    "subset": "SubsetSelection",
    "survey": "Survey design",
    "unary": "UnaryEncoding",
    "wire": "Reports aggregate_from_json aggregate_reports aggregate_to_json read_reports write_reports",
}

__all__ = [
    "Aggregate",
    "BinaryResponse",
    "CountMeanSketch",
    "Distribution",
    "Domain",
    "DuchiMean",
    "Found",
    "Frequencies",
    "HadamardResponse",
    "HeavyHitters",
    "HybridMean",
    "KaryResponse",
    "LocalHashing",
    "LocalQuantiles",
    "Mean",
    "Minimax",
    "PiecewiseMean",
    "Quantile",
    "Randomizer",
    "Rappor",
    "Recommendation",
    "Reports",
    "SubsetSelection",
    "Survey",
    "UnaryEncoding",
    "aggregate_from",
    "aggregate_from_json",
    "aggregate_reports",
    "aggregate_to_json",
    "design",
    "minimax_frequencies",
    "minimax_mean",
    "randomizer_from",
    "read_reports",
    "recommend",
    "shuffled",
    "write_reports",
]

__getattr__, __dir__ = lazy(globals(), _HOMES)
