"""A question to a server: understood here, priced and answered there, and read here as if it were local."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

from sfumato.client.documents import MOST_BYTES_READ
from sfumato.errors import QueryRefused, ServerUnreachable, SfumatoError
from sfumato.numeric.exact import Rational, as_fraction
from sfumato.plan.expressions.tree import columns_of
from sfumato.plan.prices.plan import Plan
from sfumato.plan.prices.quoting import Quote
from sfumato.plan.prices.terms import Terms
from sfumato.plan.questions.nodes import Report
from sfumato.plan.questions.terms import Col
from sfumato.session.carried.calls import Recorded, pack_calls
from sfumato.session.carried.values import pack_scalar
from sfumato.session.query import Query
from sfumato.session.release import Release
from sfumato.sql.asking import Asking

if TYPE_CHECKING:
    from sfumato.client.session import RemoteSession

__all__ = ["RemoteQuery", "made_of"]

T = TypeVar("T")
_UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    RecursionError,
    MemoryError,
)
_AGGREGATE = re.compile(r"a\d+").fullmatch


def made_of(document: Any, make: Callable[[Any, Mapping[str, Any]], T], tables: Mapping[str, Any]) -> T:
    """What a server sent, as a value.

    Raises:
        ServerUnreachable: if it is none.
    """
    try:
        return make(document, tables)
    except SfumatoError:
        raise
    except _UNREADABLE:
        raise ServerUnreachable(
            "What the server sent cannot be read: connect anew; an answer that was paid meanwhile is free."
        ) from None


class RemoteQuery(Query):
    """A plan over a server's tables.

    Attributes:
        sends: What tells the server which question it is: a text, or the calls of the builder.
        calls: What was called, in the end of which groups may be sorted and chosen.
    """

    __slots__ = ("calls", "connection", "kept", "sends")

    def __init__(
        self,
        session: RemoteSession,
        asked: Report | Asking,
        text: str | None = None,
        *,
        sends: Mapping[str, Any],
        calls: tuple[Recorded, ...] = (),
    ) -> None:
        super().__init__(session, asked, text)  # type: ignore[arg-type]  # it has what a plan needs
        self.sends, self.calls = sends, calls
        self.connection, self.kept = session.connection, session.kept

    def _shaped(self, plan: Plan) -> RemoteQuery:
        session: Any = self._session
        asking = replace(self._asking, plan=plan)
        return RemoteQuery(session, asking, self.text, sends=self.sends, calls=self.calls)

    def _noting(self, shaped: Query, method: str, *given: Any, **named: Any) -> RemoteQuery:
        assert isinstance(shaped, RemoteQuery)
        shaped.calls = (*self.calls, (method, given, named))
        return shaped

    def sort(self, *columns: str, descending: bool | Sequence[bool] = False) -> RemoteQuery:
        """The same question with its groups in the order of these columns of the result. Free."""
        shaped = super().sort(*columns, descending=descending)
        return self._noting(shaped, "sort", *columns, descending=descending)

    def head(self, n: int = 5) -> RemoteQuery:
        """The same question with the first groups alone, of those that are released. Free."""
        return self._noting(super().head(n), "head", n)

    def filter(self, *conditions: Col) -> RemoteQuery:
        """The same question with those groups alone whose released values satisfy all of these. Free."""
        return self._noting(super().filter(*conditions), "filter", *conditions)

    def about(self, *_: object, **__: object) -> NoReturn:
        """Not over HTTP."""
        raise QueryRefused("Parts of questions are not asked over HTTP.", "Ask for the groups in a WHERE.")

    def quote(
        self,
        epsilon: Rational | None = None,
        *,
        delta: Rational | None = None,
        error: Mapping[str, Rational] | Rational | None = None,
        confidence: Rational = 0.95,
        mechanism: str | None = None,
        bounding: str | None = None,
        bounds: Literal["auto"] | None = None,
        touched: bool = False,
        profile: bool | None = None,
    ) -> Quote:
        """What the answer would cost and how far off it would be; the arguments of `Query.quote`."""
        body = self._body(
            Terms.of(
                epsilon,
                delta=delta,
                error=error,
                confidence=confidence,
                mechanism=mechanism,
                bounding=bounding,
                bounds=bounds,
                touched=touched,
                profile=profile,
            )
        )
        return made_of(
            self.connection.post("/api/session/quote", body), self.kept.quote, self._session.tables
        )

    def release(
        self,
        epsilon: Rational | None = None,
        *,
        delta: Rational | None = None,
        error: Mapping[str, Rational] | Rational | None = None,
        confidence: Rational = 0.95,
        mechanism: str | None = None,
        bounding: str | None = None,
        bounds: Literal["auto"] | None = None,
        touched: bool = False,
        profile: bool | None = None,
    ) -> Release:
        """The private answer, paid on the server before a row is read; the arguments are those of `quote`.

        Raises:
            ServerUnreachable: if no answer came; asked again, it is free if it was paid.
            BudgetExceeded: if it does not fit; nothing was spent.
            AccessDenied: for a revoked analyst or a closed budget; nothing was spent.
            EngineFailed: if the read fails; the price stays paid.
        """
        if self.explain:
            raise QueryRefused("EXPLAIN asks for the quote alone.", "Call quote, or leave EXPLAIN out.")
        body = self._body(
            Terms.of(
                epsilon,
                delta=delta,
                error=error,
                confidence=confidence,
                mechanism=mechanism,
                bounding=bounding,
                bounds=bounds,
                touched=touched,
                profile=profile,
            )
        )
        document = self.connection.post(
            "/api/session/release", body, within=self.connection.allowing(MOST_BYTES_READ)
        )
        return made_of(document, self.kept.release, self._session.tables)

    def write(self, folder: str | Path, *_: object, **__: object) -> NoReturn:
        """Not over HTTP: files are written where the data are."""
        del folder
        raise QueryRefused(
            "Files are written where the data are, not over HTTP.", "Call release, or ask the steward."
        )

    def _body(self, terms: Terms) -> dict[str, Any]:
        return {
            **self.sends,
            "calls": pack_calls(self.calls),
            "epsilon": None if terms.epsilon is None else str(terms.epsilon),
            "delta": None if terms.delta is None else str(terms.delta),
            "error": _error(terms.error, self.report),
            "confidence": str(terms.confidence),
            "mechanism": terms.mechanism,
            "bounding": None if terms.bounding is None else terms.bounding.name,
            "bounds": terms.bounds,
            "touched": terms.touched,
            "profile": terms.profile,
        }


def _error(error: Any, report: Report) -> Any:
    """An error that is asked for, as it is sent: by column, or one for all."""
    if isinstance(error, Mapping):
        return {"by": {str(name): _width(name, width) for name, width in error.items()}}
    noisy = (one.name for one in report.columns if any(map(_AGGREGATE, columns_of(one.expression))))
    return None if error is None else _width(next(noisy, "a column"), error)


def _width(name: object, width: Any) -> Any:
    try:
        return pack_scalar(width)
    except TypeError:
        return str(as_fraction(width, f"the error of {name}"))  # refuses what is no number
