"""Errors as PostgreSQL has them: a code of five characters, a message, a detail and a hint.

The sentences are those of the command line. Nothing of the data is in them, since nothing of it is in ours;
where it lies is told to stewards alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from sfumato import errors
from sfumato._dataclasses import dataclass
from sfumato.server.troubles import hidden, is_told

__all__ = ["STATES", "WireError", "fields_of", "state_of"]

STATES: Mapping[type, str] = {
    errors.SfumatoError: "58000",  # system error
    errors.InvalidParameter: "22023",  # invalid parameter value
    errors.UnknownName: "42704",  # undefined object
    errors.InvalidValue: "22000",  # data exception
    errors.UnsupportedLoss: "0A000",  # feature not supported
    errors.NotCertified: "0A000",
    errors.BudgetExceeded: "53400",  # configuration limit exceeded
    errors.Spent: "55000",  # object not in prerequisite state
    errors.QueryRefused: "0A000",
    errors.SourceUnusable: "58030",  # I/O error
    errors.CatalogUnusable: "F0000",  # configuration file error
    errors.LedgerUnusable: "58030",
    errors.LedgerTampered: "XX001",  # data corrupted
    errors.LedgerMismatch: "55000",
    errors.AccessDenied: "42501",  # insufficient privilege
    errors.LoginFailed: "28P01",  # invalid password
    errors.EngineFailed: "58000",
    errors.TimedOut: "57014",  # query canceled
    errors.Cancelled: "57014",
    errors.ServerUnreachable: "58000",
    errors.MissingExtra: "58000",
}
"""The code of each class of our errors."""

_SUBJECTS = {"text": "42601", "table": "42P01", "column": "42703", "function": "42883"}
"""The codes of refusals that are about a text that cannot be read, or a name that is not there."""


@dataclass(frozen=True, slots=True)
class _Said:
    state: str
    message: str
    detail: str = ""
    hint: str = ""
    severity: str = "ERROR"


class WireError(Exception):
    """An error that is told to the client as it is.

    Attributes:
        state: PostgreSQL's code of it.
        fatal: Whether the connection ends with it.
    """

    def __init__(
        self, state: str, message: str, *, detail: str = "", hint: str = "", fatal: bool = False
    ) -> None:
        super().__init__(message)
        self.state, self.fatal = state, fatal
        self._said = _Said(state, message, detail, hint, "FATAL" if fatal else "ERROR")

    def fields(self) -> dict[str, str]:
        """Its fields, by PostgreSQL's letters."""
        return _letters(self._said)


def state_of(error: BaseException) -> str:
    """PostgreSQL's code of an error."""
    if isinstance(error, WireError):
        return error.state
    if isinstance(error, errors.QueryRefused) and not error.shell and error.subject in _SUBJECTS:
        return _SUBJECTS[error.subject]
    return next((STATES[kind] for kind in type(error).__mro__ if kind in STATES), "XX000")


def fields_of(error: BaseException, *, steward: bool = False) -> dict[str, str]:
    """What is told about an error, by PostgreSQL's letters.

    Args:
        error: Of one that nobody foresaw nothing is told but an id: its text may hold data.
        steward: Whether a steward is told: nobody else is where something is wrong at the server itself.
    """
    if isinstance(error, WireError):
        return error.fields()
    state = state_of(error)
    if not isinstance(error, errors.SfumatoError):
        return _letters(_Said(state, hidden(error)))
    detail = f"Sfumato's code of this error is {error.code}."
    if not is_told(error, steward=steward):
        return _letters(_Said(state, hidden(error), detail))
    if isinstance(error, errors.QueryRefused) and not error.shell:
        return _letters(_Said(state, error.reason, detail, error.fix))
    return _letters(_Said(state, error.shell or str(error), detail))


def _letters(said: _Said) -> dict[str, str]:
    return {
        "S": said.severity,
        "V": said.severity,
        "C": said.state,
        "M": said.message,
        "D": said.detail,
        "H": said.hint,
    }
