"""Privacy as a design tool: markets, places, advice and budgets in which lying does not pay.

```python
from sfumato import games

auction = games.PriceAuction(epsilon=1, prices=games.price_grid(top=100, step=1))
auction.select([20.0, 35.0, 80.0])              # one price for everybody, chosen privately
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import lazy

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

# Loaded on first use; every module listed here is asked for its `examples`.
_HOMES = {
    "allocation": "Allocation AllocationRule Request allocate",
    "auction": "Outcome PriceAuction PriceGrid Promise optimal_grid_step price_grid",
    "congestion": "CongestionGame Latency",
    "daily": "DailyReserve",
    "equilibrium": "Advice PrivateAdvice correlated_advice measured_gain",
    "facility": "FacilityLocation",
    "mixture": "Placement TruthfulMixture balanced_mixture",
    "models": "ModelSelection RandomStopping",
    "normal": "Correlated Nash NormalForm best_correlated incentive nash",
    "pac": "PrivateLearner conjunctions decision_stumps error_promised examples_needed parities thresholds",
    "reserve": "BidLog ReservePrice",
    "routing": "braess grid_roads pigou routing_game",
    "segmented": "SegmentedAuction SegmentedOutcome",
    "truthful": "Gain gain promised_gain sampled_gain textbook_gain",
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

__getattr__, __dir__ = lazy(globals(), _HOMES)
