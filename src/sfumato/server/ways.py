"""`Ways`: how a server runs, beside what it serves and who may ask."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from sfumato._dataclasses import dataclass
from sfumato.server.access.issuers import Issuer
from sfumato.server.crowds import Rates
from sfumato.server.deadlines import Deadlines
from sfumato.server.events import Watch, all_of
from sfumato.server.log import Log
from sfumato.server.metrics import Metrics

__all__ = ["MOST_UPLOAD", "Ways"]

MOST_UPLOAD = 2 << 30


@dataclass(frozen=True, slots=True)
class Ways:
    """What both fronts share.

    Attributes:
        metrics: Counts what happens.
        log: Writes it down; None: nobody does.
        deadlines: How long paid reads take.
        rates: How often an account may ask.
        per_address: How many connections to a front an address may have; None: as many as it likes.
        most_upload: How many bytes a file may have that a steward sends; 0: none is taken.
        issuer: Whose signed tokens are taken over HTTP, beside our own; None: nobody's.
        shelf: The folder of releases that anybody may see, as files; None: nothing is published.
        audits: The file of the last audit, which may not be there; None: nobody keeps one.
    """

    metrics: Metrics = field(default_factory=Metrics)
    log: Log | None = None
    deadlines: Deadlines = field(default_factory=Deadlines)
    rates: Rates = field(default_factory=Rates)
    per_address: int | None = None
    most_upload: int = MOST_UPLOAD
    issuer: Issuer | None = None
    shelf: Path | None = None
    audits: Path | None = None

    @property
    def watch(self) -> Watch:
        """Whom events are told to."""
        return self.metrics if self.log is None else all_of(self.metrics, self.log)
