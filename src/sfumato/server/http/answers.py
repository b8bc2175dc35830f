"""An answer that was released, and how it is written: JSON, or an Arrow stream."""

from __future__ import annotations

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from sfumato._dataclasses import dataclass
from sfumato.errors import AccessDenied
from sfumato.render import plain_json
from sfumato.server.house import House
from sfumato.server.http.bodies import Question
from sfumato.server.http.failures import answered
from sfumato.server.http.watching import PAID, RECEIPT
from sfumato.session import Query, Release, Session
from sfumato.session.documents import document_of

__all__ = ["ARROW", "Given", "lasts", "released", "stream", "wants_arrow"]

ARROW = "application/vnd.apache.arrow.stream"


@dataclass(frozen=True, slots=True)
class Given:
    """What somebody was given."""

    session: Session
    query: Query
    question: Question
    release: Release

    def refuse_closed(self) -> None:
        """Refuses whoever may be given nothing more by now, answers from before included.

        Raises:
            AccessDenied: if the budget was closed, or the analyst revoked.
        """
        if not self.session.ledger.is_open(self.session.dataset_of(self.query.report).name):
            raise AccessDenied("Nothing more is given: the budget is closed, or the steward has revoked you.")

    def written(self, *, arrow: bool) -> Response:
        """The columns as an Arrow stream with intervals, or everything about it as JSON."""
        release, confidence = self.release, self.question.confidence
        told = {RECEIPT: str(release.receipt.number), PAID: "no" if release.free else "yes"}
        if arrow:
            columns = release.to_arrow(errors=True, confidence=confidence)
            return Response(stream(columns), headers=told, media_type=ARROW)
        dataset = self.session.dataset_of(self.query.report).name
        balance = self.session.balance(dataset, window=self.query.windows)
        return answered(plain_json(document_of(release, balance, confidence)), headers=told)


def lasts(release: Release) -> bool:
    """Whether the same request gets the very same again until a receipt is added to the ledger.

    Not where something was paid or counted now, or what is left depends on the time of day.
    """
    paid_now = not release.free or release.counted or any(release.first.values())
    return not paid_now and release.receipt.windows is None


def released(house: House, question: Question, analyst: str) -> Given:
    """The private answer, paid in an analyst's name, or from the ledger."""
    session = house.session(analyst)
    query = session.sql(question.sql, question.parameters)
    return Given(session, query, question, query.release(**question.terms()))


def wants_arrow(request: Request) -> bool:
    """Whether the header Accept asks for it."""
    return ARROW in request.headers.get("accept", "")


def stream(columns: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, columns.schema) as writer:
        writer.write_table(columns)
    found: bytes = sink.getvalue().to_pybytes()
    return found
