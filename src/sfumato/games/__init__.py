"""Privacy as a design tool: markets, places, advice and budgets in which lying does not pay.

```python
from sfumato import games

auction = games.PriceAuction(epsilon=1, prices=games.price_grid(top=100, step=1))
auction.select([20.0, 35.0, 80.0])              # one price for everybody, chosen privately
```
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Now, and not on first use: the name is the function's, and no longer its module's.
from sfumato.games.grants import Grants, grants

if TYPE_CHECKING:
    from sfumato.games.allocation import Allocation, AllocationRule, Request, allocate
    from sfumato.games.models import ModelSelection, RandomStopping
    from sfumato.games.pac import (
        PrivateLearner,
        conjunctions,
        decision_stumps,
        error_promised,
        examples_needed,
        parities,
        thresholds,
    )

# Loaded on first use; every module listed here is asked for its `EXAMPLES`.
_HOMES = {
    "Allocation": "allocation",
    "AllocationRule": "allocation",
    "ModelSelection": "models",
    "PrivateLearner": "pac",
    "RandomStopping": "models",
    "Request": "allocation",
    "allocate": "allocation",
    "conjunctions": "pac",
    "decision_stumps": "pac",
    "error_promised": "pac",
    "examples_needed": "pac",
    "parities": "pac",
    "thresholds": "pac",
}

__all__ = [
    "Allocation",
    "AllocationRule",
    "Grants",
    "ModelSelection",
    "PrivateLearner",
    "RandomStopping",
    "Request",
    "allocate",
    "conjunctions",
    "decision_stumps",
    "error_promised",
    "examples_needed",
    "grants",
    "parities",
    "thresholds",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato.games' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"sfumato.games.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
