"""`Deadlines`: how long a paid read takes, whatever it reads; and a caller who is not kept waiting longer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self, TypeVar

from sfumato.errors import InvalidParameter
from sfumato.purchase.pacing import paced

__all__ = ["Deadlines", "Gone", "Overrun"]

T = TypeVar("T")
_LEAST, _MOST = 0.001, 3600.0


class Overrun(Exception):
    """A read was not over at its deadline."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The answer was not there at the deadline of {seconds:g} seconds. It is charged; ask again "
            "later: once it is on record, the same question is free."
        )


class Gone(Exception):
    """The caller gave up."""


class Deadlines:
    """The public time that a paid read takes, for each dataset.

    Privacy:
        Claim: when an answer, or the failure of a read, leaves and is on record does not depend on the rows,
        as long as the read ends before its deadline; one that does not gives one failure, the same for all,
        and its end shows once two, four, eight, … times its deadline have passed since it began, nowhere
        before: not by the answer on record, the turn of whoever asked the same, a job's state, counts, the
        log, nor a place that is free again. So all that is told is how often the time was doubled.
        Answers that were on record, and what is refused before it is paid, read no row and are given at once.
        Not covered: that number, 0 where a deadline was met, and how busy a read keeps the machine meanwhile.

    Args:
        usual: In seconds, for every dataset that has none of its own; None: these have none.
        named: In seconds, by dataset.
        sleep: Waits.
        ticks: A time that never goes back, by which reads are measured.
    """

    def __init__(
        self,
        usual: float | None = None,
        named: Mapping[str, float] | None = None,
        *,
        sleep: Callable[[float], object] = time.sleep,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._usual, self._named, self._sleep, self.ticks = usual, dict(named or {}), sleep, ticks
        self._behind: set[asyncio.Future[Any]] = set()

    @classmethod
    def read(cls, written: Iterable[str], datasets: Collection[str]) -> Self:
        """From what a steward wrote: `2`, or `visits=5` for one dataset.

        Raises:
            InvalidParameter: if one cannot be understood.
        """
        usual, named = None, dict[str, float]()
        for text in written:
            name, sign, number = text.rpartition("=")
            try:
                seconds = float(number)
            except ValueError:
                seconds = -1.0
            if not _LEAST <= seconds <= _MOST or (sign and name not in datasets):
                raise InvalidParameter(
                    f"--deadline is a number of seconds from {_LEAST:g} to {_MOST:g}, or DATASET=SECONDS of "
                    f"a dataset that is served ({', '.join(sorted(datasets))})."
                )
            if sign:
                named[name] = seconds
            else:
                usual = seconds
        return cls(usual, named)

    def __bool__(self) -> bool:
        return self._usual is not None or bool(self._named)

    def of(self, dataset: str) -> float | None:
        """In seconds; None: there is none."""
        return self._named.get(dataset, self._usual)

    def wait(self, seconds: float) -> None:
        """Lets time pass."""
        self._sleep(seconds)

    def keeping(self) -> AbstractContextManager[None]:
        """Keeps the reads of this thread to their deadlines where nobody is told that one has passed."""
        return paced(_Clock(self, None)) if self else nullcontext()

    async def met(
        self,
        work: Callable[[], T],
        run: Callable[[Callable[[], T]], Awaitable[T]],
        gone: asyncio.Future[None] | None = None,
    ) -> T:
        """What work in a thread gives, its reads kept to their deadlines.

        Args:
            work: What is done.
            run: Does it in a thread.
            gone: Done once the caller gives up. The read is not stopped: whether it was over by then must
                not show.

        Raises:
            Overrun: if a read is not over at its deadline. The work goes on to its end.
            Gone: if the caller gave up.
        """
        if not self:
            return await run(work)
        clock = _Clock(self, asyncio.get_running_loop())

        def kept() -> T:
            with paced(clock):
                return work()

        task = asyncio.ensure_future(run(kept))
        self._behind.add(task)
        task.add_done_callback(self._over)
        ends = [future for future in (task, clock.late, gone) if future is not None]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if gone is not None and gone.done():
            raise Gone
        if not task.done():
            raise Overrun(clock.seconds)
        return task.result()

    def _over(self, task: asyncio.Future[Any]) -> None:
        self._behind.discard(task)
        if not task.cancelled():
            task.exception()  # seen, if nobody waits for it any more


class _Clock:
    """The clock of one caller: set in the thread that reads, looked at by the event loop."""

    def __init__(self, deadlines: Deadlines, loop: asyncio.AbstractEventLoop | None) -> None:
        self._deadlines, self._loop = deadlines, loop
        self.late: asyncio.Future[None] | None = None if loop is None else loop.create_future()
        self.seconds = 0.0
        self._reads, self._begun, self._reading = 0, 0.0, False

    def begin(self, dataset: str) -> None:
        seconds = self._deadlines.of(dataset)
        if seconds is None:
            return
        self._reads += 1
        self.seconds, self._begun, self._reading = seconds, self._deadlines.ticks(), True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.call_later, seconds, self._due, self._reads)

    def end(self) -> None:
        if not self._reading:
            return
        took = self._deadlines.ticks() - self._begun
        if took <= self.seconds:
            self._reading = False  # in time: nobody is told otherwise
        left = _shown_after(took, self.seconds) - took
        if left > 0:
            self._deadlines.wait(left)
        self._reading = False

    def _due(self, read: int) -> None:
        late = self.late
        if late is not None and self._reading and self._reads == read and not late.done():
            late.set_result(None)


def _shown_after(took: float, deadline: float) -> float:
    """After how many seconds the end of a read shows: at its deadline, or that doubled until it is enough."""
    while deadline < took:
        deadline *= 2
    return deadline
