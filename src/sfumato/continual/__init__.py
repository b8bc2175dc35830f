"""Numbers that are published step after step for one price: correlated noise for a stream of known length.

```
choose(horizon, touches=, want=) ──► Factorisation ──► Continual(plan, epsilon, delta, sensitivity=, groups=)
                                                          │ loss: one, for the whole horizon
                              secret ──► start ──► Course ── release(values) ──► one step, on a grid
                      secret, state ──► resume ──┘    └── save ──► state, as secret as the secret
```

The noise of a step takes back part of the noise of earlier steps, so that sums over many steps are far more
exact than with noise drawn anew. `Factorisation` says how (docs/proofs/continual.md), `choose` which is best
for what is wanted, from public numbers alone. All noise follows from one secret: a step that is computed
again after a crash has the same noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import lazy

if TYPE_CHECKING:
    from sfumato.continual.banded import Banded
    from sfumato.continual.buffered import Buffered
    from sfumato.continual.choosing import Choice, candidates, choose
    from sfumato.continual.course import Course
    from sfumato.continual.factorisation import Factorisation
    from sfumato.continual.mechanism import Continual
    from sfumato.continual.tree import tree_error

_HOMES = {
    "banded": "Banded",
    "buffered": "Buffered",
    "choosing": "Choice candidates choose",
    "course": "Course",
    "factorisation": "Factorisation",
    "mechanism": "Continual",
    "tree": "tree_error",
}

__all__ = [
    "Banded",
    "Buffered",
    "Choice",
    "Continual",
    "Course",
    "Factorisation",
    "candidates",
    "choose",
    "tree_error",
]

__getattr__, __dir__ = lazy(globals(), _HOMES)
