"""`Metrics`: counts for Prometheus, and durations for stewards alone."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest

from sfumato.server.events import Event

__all__ = ["Metrics"]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """What happened, counted.

    Privacy:
        Labels are documented addresses, kinds of statements and classes of statuses: no name, no text and no
        number of a client's. How long answers took depends on the data, and is apart: `shown` has it only
        where it is asked for, which is for stewards.
    """

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._counts, self._durations = CollectorRegistry(), CollectorRegistry()
        self._requests = Counter(
            "sfumato_requests",
            "Requests and statements that are over.",
            ("front", "act", "status"),
            registry=self._counts,
        )
        self._refused = Counter(
            "sfumato_logins_refused", "Logins that failed.", ("front",), registry=self._counts
        )
        self._answers = Counter(
            "sfumato_answers", "Private answers, paid or on record.", ("front", "kind"), registry=self._counts
        )
        self._seconds = Histogram(
            "sfumato_paid_answer_seconds",
            "How long answers took that were paid.",
            ("front",),
            buckets=_SECONDS,
            registry=self._durations,
        )

    def __call__(self, event: Event) -> None:
        """Count one."""
        self._requests.labels(event.front, event.act, _class(event.status)).inc()
        if event.refused_login:
            self._refused.labels(event.front).inc()
        if event.receipt is None:
            return
        self._answers.labels(event.front, "free" if event.free else "paid").inc()
        if not event.free and event.seconds is not None:
            self._seconds.labels(event.front).observe(event.seconds)

    def shown(self, *, durations: bool) -> bytes:
        """All of it in Prometheus' format.

        Args:
            durations: Whether with those of reads.
        """
        counts: bytes = generate_latest(self._counts)
        return counts + generate_latest(self._durations) if durations else counts


def _class(status: str) -> str:
    """The first digit of a status of HTTP, the class of one of PostgreSQL's."""
    return f"{status[0]}xx" if len(status) == 3 else status[:2]
