"""Privacy as a design tool: markets, places, advice and budgets in which lying does not pay.

```python
from sfumato import games

auction = games.PriceAuction(epsilon=1, prices=games.price_grid(top=100, step=1))
auction.select([20.0, 35.0, 80.0])              # one price for everybody, chosen privately
```
"""

from __future__ import annotations

import importlib
from typing import Any

# Loaded on first use; every module listed here is asked for its `EXAMPLES`.
_HOMES: dict[str, str] = {}

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato.games' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"sfumato.games.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
