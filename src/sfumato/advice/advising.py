"""`advise`: which function to use for a task, from what is said of it."""

from __future__ import annotations

from collections.abc import Callable

from sfumato.advice import devices, fits, groups, numbers, questions, streams
from sfumato.advice.result import Advice
from sfumato.advice.said import Said, check
from sfumato.numeric.exact import Rational

__all__ = ["advise"]

_YOURS: dict[str, Callable[[Said], Advice]] = {
    "count": numbers.count,
    "sum": numbers.sum_,
    "mean": numbers.mean,
    "median": numbers.median,
    "most common": groups.most_common,
    "histogram": groups.histogram,
    "groups": groups.table_of_groups,
    "stream": streams.daily,
    "model": fits.model,
    "synthetic": fits.synthetic,
    "questions": questions.many,
}
_THEIRS: dict[str, Callable[[Said], Advice]] = {
    "count": devices.count,
    "sum": devices.sum_,
    "mean": devices.mean,
    "median": devices.median,
    "most common": devices.most_common,
    "histogram": devices.values,
    "devices": devices.values,
    "stream": devices.again,
    "model": devices.model,
}


def advise(
    publish: str,
    *,
    epsilon: Rational,
    people: int | None = None,
    delta: Rational = 0,
    holder: str | None = None,
    rows: int | None = None,
    lower: Rational | None = None,
    upper: Rational | None = None,
    groups: int | None = None,
    known: bool | None = None,
    steps: int | None = None,
    columns: int | None = None,
    questions: int | None = None,
    confidence: Rational = 0.95,
) -> Advice:
    """Which function to use for what you want to publish, its price, its expected error and the next best.

    Where several mechanisms would do, the one with the least error is taken, worked out for the numbers that
    you give.

    Args:
        publish: "count", "sum", "mean", "median", "most common", "histogram", "groups", "stream", "model",
            "synthetic", "devices" or "questions".
        epsilon: The privacy budget there is for it.
        people: About how many people are in the data.
        delta: The other half of the budget; 0: pure.
        holder: Who has the data: "you", or "people", each their own.
        rows: The most rows that one person has, 1 unless said; for a stream, days.
        lower: The least that a value can be, known without the data.
        upper: The greatest.
        groups: About how many groups or different values there are.
        known: Whether everybody knows which ones, as unless said; False: they are found in the data.
        steps: How many days are published, for a stream.
        columns: How many columns, for a model or a synthetic table.
        questions: How many questions will be asked.
        confidence: How often the error must hold.

    Privacy:
        Claim: it reads no data: the advice is a function of the arguments.

    Raises:
        InvalidParameter: in one sentence with the fix, if something is missing or cannot be.
    """
    said = check(
        publish,
        holder,
        epsilon,
        delta,
        confidence,
        people=people,
        rows=rows,
        lower=lower,
        upper=upper,
        groups=groups,
        known=known,
        steps=steps,
        columns=columns,
        questions=questions,
    )
    return (_THEIRS if said.holder == "people" else _YOURS)[said.want](said)
