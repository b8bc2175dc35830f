"""What whoever runs the server asks: is it ready, and what happened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from fastapi import FastAPI
from starlette.responses import Response

from sfumato.server.access import Act
from sfumato.server.house import House
from sfumato.server.http.asking import Threads, Who
from sfumato.server.http.failures import answered
from sfumato.server.metrics import Metrics

__all__ = ["Operations"]

_FRESH = 1.0  # seconds for which strangers are told the same: they must not be able to keep the ledger busy


class Operations:
    """`/ready` and `/metrics`.

    Args:
        house: What is served.
        metrics: What was counted.
        ticks: A time that never goes back.
    """

    def __init__(
        self, house: House, metrics: Metrics, *, ticks: Callable[[], float] = time.monotonic
    ) -> None:
        self._house, self._metrics, self._ticks = house, metrics, ticks
        self._run = Threads(1, house.working)  # its own, which questions cannot take
        self._ready, self._until = False, float("-inf")
        self._looking: asyncio.Task[bool] | None = None

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        for path, run, what in (
            ("/ready", self.ready, "Whether questions can be answered: the ledger, the tables."),
            ("/metrics", self.metrics, "Counts for Prometheus; for stewards durations, too."),
        ):
            app.add_api_route(path, run, methods=["GET"], summary=what, response_model=None)

    async def ready(self) -> Response:
        """One word; no token is needed."""
        if self._ticks() >= self._until:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._run(self._house.is_ready))
            self._ready = await asyncio.shield(self._looking)
            self._until = self._ticks() + _FRESH
        return answered({"status": "ready" if self._ready else "unready"}, 200 if self._ready else 503)

    async def metrics(self, who: Who) -> Response:
        """For auditors and stewards: who counts answers as they leave knows when others' reads ended."""
        who.needs(Act.AUDIT)
        text = self._metrics.shown(durations=who.may(Act.GOVERN))
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
