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
    from sfumato.games.auction import Outcome, PriceAuction, PriceGrid, Promise, optimal_grid_step, price_grid
    from sfumato.games.congestion import CongestionGame, Latency
    from sfumato.games.daily import DailyReserve
    from sfumato.games.equilibrium import Advice, PrivateAdvice, correlated_advice, measured_gain
    from sfumato.games.facility import FacilityLocation
    from sfumato.games.mixture import Placement, TruthfulMixture, balanced_mixture
    from sfumato.games.models import ModelSelection, RandomStopping
    from sfumato.games.normal import Correlated, Nash, NormalForm, best_correlated, incentive, nash
    from sfumato.games.pac import (
        PrivateLearner,
        conjunctions,
        decision_stumps,
        error_promised,
        examples_needed,
        parities,
        thresholds,
    )
    from sfumato.games.reserve import BidLog, ReservePrice
    from sfumato.games.routing import braess, grid_roads, pigou, routing_game
    from sfumato.games.segmented import SegmentedAuction, SegmentedOutcome
    from sfumato.games.truthful import Gain, gain, promised_gain, sampled_gain, textbook_gain

# Loaded on first use; every module listed here is asked for its `EXAMPLES`.
_HOMES = {
    "Advice": "equilibrium",
    "Allocation": "allocation",
    "AllocationRule": "allocation",
    "BidLog": "reserve",
    "CongestionGame": "congestion",
    "Correlated": "normal",
    "DailyReserve": "daily",
    "FacilityLocation": "facility",
    "Gain": "truthful",
    "Latency": "congestion",
    "ModelSelection": "models",
    "Nash": "normal",
    "NormalForm": "normal",
    "Outcome": "auction",
    "Placement": "mixture",
    "PriceAuction": "auction",
    "PriceGrid": "auction",
    "PrivateAdvice": "equilibrium",
    "PrivateLearner": "pac",
    "Promise": "auction",
    "RandomStopping": "models",
    "Request": "allocation",
    "ReservePrice": "reserve",
    "SegmentedAuction": "segmented",
    "SegmentedOutcome": "segmented",
    "TruthfulMixture": "mixture",
    "allocate": "allocation",
    "balanced_mixture": "mixture",
    "best_correlated": "normal",
    "braess": "routing",
    "conjunctions": "pac",
    "correlated_advice": "equilibrium",
    "decision_stumps": "pac",
    "error_promised": "pac",
    "examples_needed": "pac",
    "gain": "truthful",
    "grid_roads": "routing",
    "incentive": "normal",
    "measured_gain": "equilibrium",
    "nash": "normal",
    "optimal_grid_step": "auction",
    "parities": "pac",
    "pigou": "routing",
    "price_grid": "auction",
    "promised_gain": "truthful",
    "routing_game": "routing",
    "sampled_gain": "truthful",
    "textbook_gain": "truthful",
    "thresholds": "pac",
}

__all__ = [
    "Advice",
    "Allocation",
    "AllocationRule",
    "BidLog",
    "CongestionGame",
    "Correlated",
    "DailyReserve",
    "FacilityLocation",
    "Gain",
    "Grants",
    "Latency",
    "ModelSelection",
    "Nash",
    "NormalForm",
    "Outcome",
    "Placement",
    "PriceAuction",
    "PriceGrid",
    "PrivateAdvice",
    "PrivateLearner",
    "Promise",
    "RandomStopping",
    "Request",
    "ReservePrice",
    "SegmentedAuction",
    "SegmentedOutcome",
    "TruthfulMixture",
    "allocate",
    "balanced_mixture",
    "best_correlated",
    "braess",
    "conjunctions",
    "correlated_advice",
    "decision_stumps",
    "error_promised",
    "examples_needed",
    "gain",
    "grants",
    "grid_roads",
    "incentive",
    "measured_gain",
    "nash",
    "optimal_grid_step",
    "parities",
    "pigou",
    "price_grid",
    "promised_gain",
    "routing_game",
    "sampled_gain",
    "textbook_gain",
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
