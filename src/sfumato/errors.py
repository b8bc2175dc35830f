"""The one tree of exceptions that Sfumato raises on purpose.

```
SfumatoError
├── InvalidParameter      a public parameter is unusable (also a ValueError)
│   └── UnknownName       there is no method, function or name like this one (also an AttributeError)
├── InvalidValue          a private value cannot be used: shape, NaN, infinity, overflow (also a ValueError)
├── UnsupportedLoss       this accountant, filter or operation has no proven rule for that loss
├── NotCertified          a figure could not be computed with a proven error bound, so none is given
├── BudgetExceeded        admitting the loss would overdraw the budget; nothing was spent
├── Spent                 a one-shot object (an interactive mechanism) has already given its answer
├── QueryRefused          the question has no proven rule; the reason and the nearest thing that works
├── SourceUnusable        a data source cannot be opened or lacks a declared column
├── CatalogUnusable       sfumato.toml is missing, unreadable or incomplete
├── LedgerUnusable        a ledger cannot be opened, reached or understood
│   ├── LedgerTampered    the chain of receipts is broken, or older than its anchor
│   └── LedgerMismatch    what is declared now is not what the ledger has on record
├── AccessDenied          this analyst may not ask: revoked, or the budget is closed
│   └── LoginFailed       a name, token or password is not valid; which of them is not said
│       └── TooManyTries  … too often: nothing was checked, try again later
├── EngineFailed          the engine could not finish the read; the price stays paid
│   ├── TimedOut          … because it took longer than the limit
│   └── Cancelled         … because it was interrupted
├── ServerUnreachable     a server does not answer, or not as Sfumato's does (also a ConnectionError)
└── MissingExtra          an optional dependency is not installed (also an ImportError)
```

A message is one readable sentence that says what to do. It may quote public parameters; it never quotes a
private value, so that an error cannot carry data to whoever reads the log. Every class has a `code`, short
text that programs can rely on; the set of codes is closed, and which one is raised never depends on a row.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal, Self

__all__ = [
    "AccessDenied",
    "BudgetExceeded",
    "Cancelled",
    "CatalogUnusable",
    "EngineFailed",
    "InvalidParameter",
    "InvalidValue",
    "LedgerMismatch",
    "LedgerTampered",
    "LedgerUnusable",
    "LoginFailed",
    "MissingExtra",
    "NotCertified",
    "QueryRefused",
    "ServerUnreachable",
    "SfumatoError",
    "SourceUnusable",
    "Spent",
    "TimedOut",
    "TooManyTries",
    "UnknownName",
    "UnsupportedLoss",
]


class SfumatoError(Exception):
    """Root of the tree: catch this to catch everything Sfumato raises on purpose.

    Attributes:
        shell: The message in the words of the command line, where its advice is Python; else empty.
    """

    code: ClassVar[str] = "error"
    shell: str = ""

    def in_shell(self, text: str) -> Self:
        """The same error with what the command line says instead."""
        self.shell = text
        return self


class InvalidParameter(SfumatoError, ValueError):
    """A public parameter is unusable; the message names it and says what would work."""

    code = "invalid_parameter"


class UnknownName(InvalidParameter, AttributeError):
    """There is no such method, function or name; the message gives the nearest one."""

    code = "unknown_name"


class InvalidValue(SfumatoError, ValueError):
    """A private value cannot be used; the message says why without showing the value."""

    code = "invalid_value"


class UnsupportedLoss(SfumatoError):
    """No proven rule covers this loss here; the message names the loss and what does support it."""

    code = "unsupported_loss"


class NotCertified(SfumatoError):
    """A figure could not be computed with a proven error bound."""

    code = "not_certified"


class BudgetExceeded(SfumatoError):
    """Admitting the loss would overdraw the budget. Nothing was spent."""

    code = "budget_exceeded"


class Spent(SfumatoError):
    """A one-shot object has already given its answer and refuses a second one."""

    code = "spent"


class QueryRefused(SfumatoError):
    """The question has no proven rule. Nothing was spent; the message gives the reason and what would work.

    Attributes:
        slots: What the sentences speak of, by name, such as `column` and `unit`: a caller that has better
            words for it changes these, and the sentences follow. Without slots they are plain text.
        subject: What cannot be read, `text`, or what of it is not there: a `table`, `column` or `function`;
            else empty.
    """

    code = "query_refused"
    subject: Literal["", "text", "table", "column", "function"] = ""

    def __init__(self, reason: str, fix: str = "", **slots: object) -> None:
        super().__init__(reason, fix)
        self.slots = slots

    @property
    def reason(self) -> str:
        """Why, in one sentence."""
        return self._filled(self.args[0])

    @property
    def fix(self) -> str:
        """The nearest thing that would work, in one sentence."""
        return self._filled(self.args[1])

    def about(self, subject: Literal["text", "table", "column", "function"]) -> Self:
        """The same refusal with its subject."""
        self.subject = subject
        return self

    def _filled(self, text: str) -> str:
        return text.format_map(self.slots) if self.slots else text

    def __str__(self) -> str:
        return f"{self.reason} {self.fix}".strip()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class SourceUnusable(SfumatoError):
    """A data source cannot be opened, or a declared column is missing or of another type."""

    code = "source_unusable"


class CatalogUnusable(SfumatoError):
    """sfumato.toml is missing, unreadable or leaves something undecided."""

    code = "catalog_unusable"


class LedgerUnusable(SfumatoError):
    """A ledger cannot be opened, reached or understood."""

    code = "ledger_unusable"


class LedgerTampered(LedgerUnusable):
    """The chain of receipts is broken, or the database is older than its anchor."""

    code = "ledger_tampered"


class LedgerMismatch(LedgerUnusable):
    """What is declared now (budget, unit, bounds) is not what the ledger has on record."""

    code = "ledger_mismatch"


class AccessDenied(SfumatoError):
    """This analyst may not ask: revoked, or the budget is closed. Nothing was spent."""

    code = "access_denied"


class LoginFailed(AccessDenied):
    """A login is not valid; the message never says which part of it."""

    code = "login_failed"


class TooManyTries(LoginFailed):
    """Too many wrong logins came from this address: this one was not checked.

    Attributes:
        wait: Seconds after which another try is looked at.
    """

    code = "too_many_tries"

    def __init__(self, wait: float) -> None:
        super().__init__(f"Too many wrong logins: try again in {max(1, math.ceil(wait))} s.")
        self.wait = wait

    def __reduce__(self) -> tuple[type[Self], tuple[float]]:
        return type(self), (self.wait,)


class EngineFailed(SfumatoError):
    """The engine could not finish the read. The price was paid before it began and stays paid."""

    code = "engine_failed"


class TimedOut(EngineFailed):
    """The read took longer than the time limit. The price stays paid."""

    code = "timed_out"


class Cancelled(EngineFailed):
    """The read was interrupted. The price stays paid."""

    code = "cancelled"


class ServerUnreachable(SfumatoError, ConnectionError):
    """A server does not answer, or speaks another version; asking again is free if it was paid."""

    code = "server_unreachable"


class MissingExtra(SfumatoError, ImportError):
    """An optional dependency is missing; the message names the extra that installs it."""

    code = "missing_extra"
