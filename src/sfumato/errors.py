"""The one tree of exceptions that Sfumato raises on purpose.

```
SfumatoError
├── InvalidParameter      a public parameter is unusable (also a ValueError)
├── InvalidValue          a private value cannot be used: shape, NaN, infinity, overflow (also a ValueError)
├── UnsupportedLoss       this accountant, filter or operation has no proven rule for that loss
├── NotCertified          a figure could not be computed with a proven error bound, so none is given
├── BudgetExceeded        admitting the loss would overdraw the budget; nothing was spent
├── Spent                 a one-shot object (an interactive mechanism) has already given its answer
└── MissingExtra          an optional dependency is not installed (also an ImportError)
```

A message is one readable sentence that says what to do. It may quote public parameters; it never quotes a
private value, so that an error cannot carry data to whoever reads the log.
"""

from __future__ import annotations

__all__ = [
    "BudgetExceeded",
    "InvalidParameter",
    "InvalidValue",
    "MissingExtra",
    "NotCertified",
    "SfumatoError",
    "Spent",
    "UnsupportedLoss",
]


class SfumatoError(Exception):
    """Root of the tree: catch this to catch everything Sfumato raises on purpose."""


class InvalidParameter(SfumatoError, ValueError):
    """A public parameter is unusable; the message names it and says what would work."""


class InvalidValue(SfumatoError, ValueError):
    """A private value cannot be used; the message says why without showing the value."""


class UnsupportedLoss(SfumatoError):
    """No proven rule covers this loss here; the message names the loss and what does support it."""


class NotCertified(SfumatoError):
    """A figure could not be computed with a proven error bound."""


class BudgetExceeded(SfumatoError):
    """Admitting the loss would overdraw the budget. Nothing was spent."""


class Spent(SfumatoError):
    """A one-shot object has already given its answer and refuses a second one."""


class MissingExtra(SfumatoError, ImportError):
    """An optional dependency is missing; the message names the extra that installs it."""
