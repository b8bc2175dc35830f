"""What the addresses of the API share: who asks, names in a path, and threads for work that takes long."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Header, Path, Request
from pydantic import AfterValidator
from starlette.responses import Response

from sfumato.ledger.names import alike
from sfumato.server.access import Account, Act
from sfumato.server.deadlines import Deadlines
from sfumato.server.http.failures import refusal
from sfumato.server.http.guard import ASKING
from sfumato.server.http.segments import whole
from sfumato.server.turns import Turns

__all__ = ["Auditor", "Governor", "Key", "Name", "Spender", "Threads", "Who", "on_busy"]

T = TypeVar("T")
Name = Annotated[str, Path(max_length=200), AfterValidator(whole)]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        description="A word of yours for this request: sent again after a lost connection, the question "
        "must be the same one.",
    ),
]


def _asker(request: Request) -> Account:
    found: Account = request.state.asker
    return found


def _with(act: Act) -> Callable[[Request], Account]:
    def asker(request: Request) -> Account:
        found = _asker(request)
        found.needs(act)
        return found

    return asker


Who = Annotated[Account, Depends(_asker)]
"""Whoever asks; the guard knows them."""
Spender = Annotated[Account, Depends(_with(Act.SPEND))]
"""Whoever asks, if they may have answers that are paid: decided before a body is looked at."""
Governor = Annotated[Account, Depends(_with(Act.GOVERN))]
"""Whoever asks, if they may act as a steward: decided before a body is looked at."""
Auditor = Annotated[Account, Depends(_with(Act.AUDIT))]
"""Whoever asks, if they may read the whole ledger."""


class Threads:
    """Runs work in threads, so that others are served meanwhile, whoever asks for how much.

    Args:
        most: How many at the same time, of one account half of them; the others wait.
        during: Entered around each work, in its thread.
        deadlines: Of paid reads.

    Attributes:
        deadlines: The same.
    """

    def __init__(
        self,
        most: int,
        during: Callable[[], AbstractContextManager[object]] = nullcontext,
        deadlines: Deadlines | None = None,
    ) -> None:
        self._most, self._during = most, during
        self.deadlines = deadlines or Deadlines()
        self._limiter: CapacityLimiter | None = None
        self._turns = Turns(most)

    async def __call__(self, work: Callable[[], T]) -> T:
        """What the work gives, in the turn of whoever asks.

        Raises:
            Overrun: if a read is not over at its deadline; it goes on.
            TooBusy: if too much of this account waits.
        """
        who = ASKING.get()
        name = "" if who is None else alike(who.name)
        return await self.deadlines.met(work, lambda begun: self._in_thread(begun, name))

    async def _in_thread(self, work: Callable[[], T], name: str) -> T:
        if self._limiter is None:
            self._limiter = CapacityLimiter(self._most)

        def run() -> T:
            with self._during():
                return work()

        await self._turns.enter(name)
        try:
            return await to_thread.run_sync(run, limiter=self._limiter)
        finally:
            self._turns.leave(name)


async def on_busy(_: Request, error: Exception) -> Response:
    """Of an account of which too much waits."""
    return refusal(429, "too_many_requests", str(error), {"Retry-After": "1"})
