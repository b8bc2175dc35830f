"""`Jobs`: questions that are answered while nobody waits at the door; each belongs to who asked."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from datetime import UTC, datetime
from typing import Generic, Literal, TypeAlias, TypeVar

from sfumato._dataclasses import dataclass
from sfumato.engines.running import stoppable
from sfumato.errors import Cancelled, InvalidParameter
from sfumato.ledger.names import alike
from sfumato.random import token
from sfumato.server.deadlines import Deadlines
from sfumato.server.troubles import kept

__all__ = ["LIVE", "Job", "Jobs", "State", "TooManyJobs"]

T = TypeVar("T")
State: TypeAlias = Literal["waiting", "running", "done", "failed"]
LIVE = 8  # jobs of one analyst that wait or run
_KEPT, _SECONDS = 32, 3600.0  # how many of one analyst that are over are kept, and for how long
_AT_ONCE, _EACH = 4, 2  # jobs that run at the same time, in all and of one analyst


class TooManyJobs(InvalidParameter):
    """This analyst has as many jobs as one may have; nothing was spent."""


@dataclass(slots=True, eq=False)
class Job(Generic[T]):
    """A question on its way.

    Attributes:
        id: 128 random bits or more, by which its owner finds it.
        owner: Whose it is, in the form that all spellings of the name share.
        created: When it was asked for.
        state: `waiting` for its turn, `running` from there on, whatever is done, `done` or `failed`.
        result: What was given, once it is done.
        failure: Why there is none, once it failed.

    Privacy:
        Claim: a job says no more of the data than the same question asked at the door: whether it has ended,
        and its answer. There is no stage between the turn that it got and its end, no share that is done, no
        time but the one at which it was asked for. When it ends is the channel that SECURITY.md names.
    """

    id: str
    owner: str
    work: Callable[[], T] = field(repr=False)
    created: datetime
    state: State = "waiting"
    result: T | None = field(default=None, repr=False)
    failure: Exception | None = field(default=None, repr=False)
    stop: threading.Event = field(default_factory=threading.Event, repr=False)
    over: float = 0.0
    fetched: bool = False

    @property
    def live(self) -> bool:
        """Whether it waits or runs."""
        return self.state in ("waiting", "running")


class Jobs(Generic[T]):
    """All jobs of a server process. They are gone with it; what was paid is on the ledger, free to ask again.

    Args:
        during: Entered around each job, before it is known which, in its thread.
        deadlines: Of paid reads. Where there are some, no read is stopped: whether it was over when it was
            cancelled must not show.
        at_once: How many run at the same time, of one analyst at most two; the others wait.
        ticks: A time that never goes back.
    """

    def __init__(
        self,
        *,
        during: Callable[[], AbstractContextManager[object]] = nullcontext,
        deadlines: Deadlines | None = None,
        at_once: int = _AT_ONCE,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._during, self._ticks = during, ticks
        self._ended, self._deadlines = False, deadlines or Deadlines()
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="sfumato-job")
        self._jobs: dict[str, Job[T]] = {}
        self._words: dict[tuple[str, str], str] = {}
        self._busy = Counter[str]()  # turns that somebody's work takes, also of jobs that were cancelled
        self._lock = threading.Lock()

    def begin(self, analyst: str, work: Callable[[], T], *, word: str | None = None) -> Job[T]:
        """A new job; or the one that this analyst began with the same word, while it is there.

        Raises:
            TooManyJobs: if too many of this analyst's wait or run, or the server is ending.
        """
        owner = alike(analyst)
        with self._lock:
            self._forget(owner)
            known = None if word is None else self._jobs.get(self._words.get((owner, word), ""))
            if known is not None:
                return known
            if self._ended:
                raise TooManyJobs("The server is ending: ask again in a moment.")
            if sum(job.live for job in self._of(owner)) >= LIVE:
                raise TooManyJobs(f"{LIVE} jobs of yours wait or run: let one end, or cancel one.")
            job = Job(token(), owner, work, datetime.now(UTC))
            self._jobs[job.id] = job
            if word is not None:
                self._words[owner, word] = job.id
            self._pool.submit(self._work)
        return job

    def find(self, analyst: str, id: str) -> Job[T] | None:
        """A job by its id, if it is this analyst's; None, too, if it is somebody else's."""
        with self._lock:
            job = self._jobs.get(id)
            return job if job is not None and job.owner == alike(analyst) else None

    def of(self, analyst: str) -> list[Job[T]]:
        """All of an analyst, oldest first."""
        with self._lock:
            self._forget(alike(analyst))
            return self._of(alike(analyst))

    def cancel(self, job: Job[T]) -> None:
        """Ends a job, or forgets one that is over.

        One that waits costs nothing; one whose read has begun stays paid.
        """
        with self._lock:
            job.stop.set()
            if job.state == "waiting":
                self._end(job, None, Cancelled("Cancelled before it began; nothing was spent."))
            elif not job.live:
                self._drop(job)
            elif self._deadlines:
                self._end(
                    job, None, Cancelled("Cancelled. What has begun goes on to its end, and is charged.")
                )

    def end(self) -> None:
        """Lets nothing begin any more: what waits costs nothing, what runs goes on."""
        with self._lock:
            self._ended = True
            for job in self._jobs.values():
                if job.state == "waiting":
                    self._end(job, None, Cancelled("The server ended before it began; nothing was spent."))

    def _work(self) -> None:
        """Runs what waits, until nothing may begin; whoever keeps it from that goes on with it."""
        while self._step():
            pass

    def _step(self) -> bool:
        with self._during():  # so that nothing has begun once all that was entered is left, after `end`
            job = self._next()
            if job is not None:
                self._run(job)
            return job is not None

    def _next(self) -> Job[T] | None:
        """The oldest that waits, of an analyst with few that run: nobody takes all the turns."""
        with self._lock:
            running = self._busy
            waiting = [job for job in self._jobs.values() if job.state == "waiting"]
            able = [job for job in waiting if running[job.owner] < _EACH]
            job = min(able, key=lambda job: running[job.owner], default=None)
            if job is not None:
                job.state = "running"
                self._busy[job.owner] += 1
            return job

    def _run(self, job: Job[T]) -> None:
        result: T | None = None
        failure: Exception | None = None
        try:
            with self._deadlines.keeping() if self._deadlines else stoppable(job.stop):
                result = job.work()
        except BaseException as error:
            failure = kept(error)
        with self._lock:
            self._busy[job.owner] -= 1
            self._busy += Counter()  # without those who have none
            if job.live:
                self._end(job, result, failure)

    def _end(self, job: Job[T], result: T | None, failure: Exception | None) -> None:
        job.result, job.failure, job.over = result, failure, self._ticks()
        job.state = "done" if failure is None else "failed"

    def _of(self, owner: str) -> list[Job[T]]:
        return [job for job in self._jobs.values() if job.owner == owner]

    def _forget(self, owner: str) -> None:
        """Drops what was over long ago, of anybody, and what is too much of one."""
        for job in list(self._jobs.values()):
            if not job.live and self._ticks() - job.over > _SECONDS:
                self._drop(job)
        over = [job for job in self._of(owner) if not job.live]
        for job in over[: max(len(over) - _KEPT, 0)]:
            self._drop(job)

    def _drop(self, job: Job[T]) -> None:
        self._jobs.pop(job.id, None)
        self._words = {word: id for word, id in self._words.items() if id != job.id}
