"""`Kept`: the answers that were read from a ledger lately, for when the same question is asked again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TypeAlias

from sfumato.errors import LedgerTampered
from sfumato.ledger.chain import Row
from sfumato.ledger.store import Store

__all__ = ["Kept", "KeptAnswer"]

Question: TypeAlias = tuple[str, str]

_MOST = 1024  # questions
_BYTES = 2**24  # of all their answers together
_LARGEST = 2**20  # bytes of one; a larger one is read each time


class KeptAnswer:
    """One answer on record.

    Attributes:
        debit: The receipt that paid for it, checked.
    """

    __slots__ = ("_digest", "_dropped", "_payload", "_release", "debit")

    def __init__(self, debit: Row, release: int, digest: str) -> None:
        self.debit, self._release, self._digest = debit, release, digest
        self._payload: bytes | None = None
        self._dropped = False


class Kept:
    """The last questions with their answers; for the one thread that looks at the book.

    What is kept was checked when it was read and never changes: a receipt is not written twice, nor is the
    answer of a debit. What may come is another answer to the same question, and that begins with a receipt
    (see `follow`). Who may read an answer is no part of this, and is asked each time.
    """

    def __init__(self, store: Store, row: Callable[[int], Row]) -> None:
        """Begin with nothing.

        Args:
            store: Where answers are.
            row: Gives the receipt of a number, its mac checked.
        """
        self._store, self._row = store, row
        self._questions: dict[Question, tuple[KeptAnswer, ...]] = {}
        self._bytes = 0

    def about(self, dataset: str, fingerprint: str) -> tuple[KeptAnswer, ...]:
        """The answers to a question, newest first.

        Raises:
            LedgerTampered: if a receipt is not what was written.
        """
        question = dataset, fingerprint
        found = self._questions.pop(question, None)
        if found is None:
            found = tuple(
                self._answer(release.number) for release in self._store.about(dataset, fingerprint, "release")
            )
        self._questions[question] = found  # now the last
        if len(self._questions) > _MOST:
            self._drop(next(iter(self._questions)))
        return found

    def payload(self, answer: KeptAnswer) -> bytes:
        """What was recorded.

        Raises:
            LedgerTampered: if it is not what was written.
        """
        if answer._payload is not None:
            return answer._payload
        payload = self._store.payload(answer.debit.number)
        if payload is None or hashlib.sha256(payload).hexdigest() != answer._digest:
            raise LedgerTampered(
                f"The answer recorded by receipt {answer._release} is not what was written. "
                "Restore the ledger from a copy that is whole."
            )
        if len(payload) <= _LARGEST and not answer._dropped:
            answer._payload = payload
            self._bytes += len(payload)
            while self._bytes > _BYTES:
                self._drop(next(iter(self._questions)))
        return payload

    def follow(self, rows: Iterable[Row]) -> None:
        """Forget the questions that new receipts bring an answer to."""
        for row in rows:
            if row.kind == "release" and row.fingerprint is not None:
                self._drop((row.dataset, row.fingerprint))

    def clear(self) -> None:
        """Forget everything."""
        self._questions, self._bytes = {}, 0

    def _answer(self, number: int) -> KeptAnswer:
        facts = self._row(number).facts
        return KeptAnswer(self._row(facts["debit"]), number, facts["digest"])

    def _drop(self, question: Question) -> None:
        for answer in self._questions.pop(question, ()):
            self._bytes -= len(answer._payload or b"")
            answer._payload, answer._dropped = None, True
