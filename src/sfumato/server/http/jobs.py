"""Long reads over HTTP: a question is taken, and its answer fetched when it is there."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from sfumato.server.access import Account, Act
from sfumato.server.house import House
from sfumato.server.http import failures
from sfumato.server.http.answers import Given, released, wants_arrow
from sfumato.server.http.asking import Key, Name, Spender, Threads, Who
from sfumato.server.http.bodies import Question
from sfumato.server.http.repeats import Repeats
from sfumato.server.http.watching import PAID
from sfumato.server.jobs import Job, Jobs, TooManyJobs

__all__ = ["JobRoutes"]


class JobRoutes:
    """Addresses of jobs; others' are not told from none.

    Args:
        house: What is asked.
        run: How.
        repeats: What the words of requests were for.
        named: The account of a name, as it is when a job's turn comes: who was removed, or may no longer pay,
            has no job begin any more. None: accounts last as long as the server.
    """

    def __init__(
        self, house: House, run: Threads, repeats: Repeats, named: Callable[[str], Account] | None = None
    ) -> None:
        self._house, self._run, self._repeats, self._named = house, run, repeats, named
        self._jobs: Jobs[Given] = Jobs(during=house.working, deadlines=run.deadlines)
        house.at_end(self._jobs.end)

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        one = "/api/jobs/{name}"
        for method, path, run, what in (
            ("POST", "/api/jobs", self.begin, "Have a question answered, paid from the budget, meanwhile."),
            ("GET", "/api/jobs", self.all, "The own jobs."),
            ("GET", one, self.job, "Whether a job waits, runs, is done or has failed."),
            ("GET", f"{one}/result", self.result, "The answer of a job that is done."),
            ("DELETE", one, self.cancel, "Cancel a job; a read that has begun stays paid."),
        ):
            app.add_api_route(path, run, methods=[method], summary=what, response_model=None)

    async def begin(self, question: Question, request: Request, who: Spender, key: Key = None) -> Response:
        """Refused at once is what would be refused from declarations; the rest is told by the result."""
        if key is not None:
            self._repeats.check(who.name, key, request.url.path, question.model_dump_json())

        def check() -> None:
            self._house.session(who.name).sql(question.sql, question.parameters).quote(**question.terms())

        await self._run(check)
        try:
            job = self._jobs.begin(who.name, lambda: self._released(question, who.name), word=key)
        except TooManyJobs as error:
            return failures.refusal(429, "too_many_jobs", str(error), {"Retry-After": "5"})
        told = _told(job)
        return failures.answered(told, 202, {"Location": told["address"]})

    def _released(self, question: Question, name: str) -> Given:
        if self._named is not None:
            self._named(name).needs(Act.SPEND)
        return released(self._house, question, name)

    async def all(self, who: Who) -> Response:
        """Oldest first; those that ended long ago are gone."""
        return failures.answered([_told(job) for job in self._jobs.of(who.name)])

    async def job(self, name: Name, who: Who) -> Response:
        """Nothing of how far it has come: that would tell of the rows."""
        return failures.answered(_told(self._found(name, who.name)))

    async def result(self, name: Name, request: Request, who: Who) -> Response:
        """As `POST /api/release` would have answered: JSON, or an Arrow stream; or how it failed."""
        job = self._found(name, who.name)
        if job.live:
            return failures.refusal(
                409, "not_done", f"The job is {job.state}: ask again later.", {"Retry-After": "1"}
            )
        if job.failure is not None:
            raise job.failure.with_traceback(None)
        given, arrow = job.result, wants_arrow(request)
        assert given is not None

        def work() -> Response:
            given.refuse_closed()
            told = given.written(arrow=arrow)
            if job.fetched:
                told.headers[PAID] = "no"  # it was told of once
            job.fetched = True
            return told

        return await self._run(work)

    async def cancel(self, name: Name, who: Who) -> Response:
        """One that waits costs nothing; one that is over is forgotten."""
        job = self._found(name, who.name)
        self._jobs.cancel(job)
        return failures.answered(_told(job))

    def _found(self, name: str, analyst: str) -> Job[Given]:
        job = self._jobs.find(analyst, name)
        if job is None:
            raise HTTPException(404)
        return job


def _told(job: Job[Given]) -> dict[str, str]:
    address = f"/api/jobs/{job.id}"
    return {
        "id": job.id,
        "state": job.state,
        "created": job.created.isoformat(),
        "address": address,
        "result": f"{address}/result",
    }
