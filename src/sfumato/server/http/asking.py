"""What the addresses of the API share: who asks, names in a path, and threads for work that takes long."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Header, Path, Request

from sfumato.server.access import Account, Act
from sfumato.server.deadlines import Deadlines

__all__ = ["Auditor", "Governor", "Key", "Name", "Spender", "Threads", "Who"]

T = TypeVar("T")
Name = Annotated[str, Path(max_length=200)]
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
    """Runs work in threads, so that others are served meanwhile.

    Args:
        most: How many at the same time; the others wait.
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

    async def __call__(self, work: Callable[[], T]) -> T:
        """What the work gives.

        Raises:
            Overrun: if a read is not over at its deadline; it goes on.
        """
        return await self.deadlines.met(work, self._in_thread)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._limiter is None:
            self._limiter = CapacityLimiter(self._most)

        def run() -> T:
            with self._during():
                return work()

        return await to_thread.run_sync(run, limiter=self._limiter)
