"""Deep learning: an ordinary training loop made private (extra `torch`).

```python
from sfumato.learn.torch import private

run = private(model, optimizer, (x, y), epsilon=2, delta=1e-6, size=60_000, batch=1_000, epochs=10)
run.fit()
```

Each record's gradient is cut to a length and summed with exact noise where the tensors are; one price, one
debit for all steps.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from sfumato._lazy import lazy
from sfumato.errors import MissingExtra

if find_spec("torch") is None:
    raise MissingExtra("Deep learning needs PyTorch: pip install 'sfumato[torch]'.")

if TYPE_CHECKING:
    from sfumato.learn.torch.adam import CorrectedAdam
    from sfumato.learn.torch.clients import Federated, federated
    from sfumato.learn.torch.datasets import cifar10, cifar100, mnist
    from sfumato.learn.torch.named import Named
    from sfumato.learn.torch.objectives import cross_entropy, next_token, squared_error
    from sfumato.learn.torch.quantile import Quantile
    from sfumato.learn.torch.runs import Private, private
    from sfumato.learn.torch.sampling import Allocation, Poisson

_HOMES = {
    "datasets": "cifar10 cifar100 mnist",
    "adam": "CorrectedAdam",
    "clients": "Federated federated",
    "named": "Named",
    "objectives": "cross_entropy next_token squared_error",
    "quantile": "Quantile",
    "runs": "Private private",
    "sampling": "Allocation Poisson",
}

__all__ = [
    "Allocation",
    "CorrectedAdam",
    "Federated",
    "Named",
    "Poisson",
    "Private",
    "Quantile",
    "cifar10",
    "cifar100",
    "cross_entropy",
    "federated",
    "mnist",
    "next_token",
    "private",
    "squared_error",
]

__getattr__, __dir__ = lazy(globals(), _HOMES)
