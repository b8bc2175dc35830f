"""Local privacy: people randomise their own values, and a server that never sees one estimates.

```python
from sfumato import local

client = local.KaryResponse(epsilon=1, domain=["tea", "coffee", "water"])
reports = client.encode(["tea", "tea", "water"])    # each person, on their own device
client.aggregate(reports).estimate(confidence=0.95).table
```
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

# One line a name, each in its alphabetical place.
if TYPE_CHECKING:
    from sfumato.local.base import Aggregate, Randomizer, aggregate_from, randomizer_from
    from sfumato.local.domain import Domain
    from sfumato.local.estimates import Frequencies, Mean
    from sfumato.local.rappor import Rappor
    from sfumato.local.response import BinaryResponse, KaryResponse
    from sfumato.local.subset import SubsetSelection
    from sfumato.local.unary import UnaryEncoding

# Loaded on first use; every module listed here is asked for its randomizers and its `EXAMPLES`.
_HOMES = {
    "Aggregate": "base",
    "BinaryResponse": "response",
    "Domain": "domain",
    "Frequencies": "estimates",
    "KaryResponse": "response",
    "Mean": "estimates",
    "Randomizer": "base",
    "Rappor": "rappor",
    "SubsetSelection": "subset",
    "UnaryEncoding": "unary",
    "aggregate_from": "base",
    "randomizer_from": "base",
}

__all__ = [
    "Aggregate",
    "BinaryResponse",
    "Domain",
    "Frequencies",
    "KaryResponse",
    "Mean",
    "Randomizer",
    "Rappor",
    "SubsetSelection",
    "UnaryEncoding",
    "aggregate_from",
    "randomizer_from",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
