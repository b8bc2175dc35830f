"""What is counted of a model's predictions, or of decisions, in one group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.numeric.estimates import (
    UNKNOWN,
    Bin,
    Estimate,
    bins_of,
    calibration,
    gap,
    mean,
    paired,
    r2,
    share,
    spread,
)

__all__ = ["Answers", "answers_of", "figures", "gaps", "largest_gaps", "lost"]

Floats: TypeAlias = NDArray[np.float64]
Truths: TypeAlias = NDArray[np.bool_]


class Answers(NamedTuple):
    """What a model, or anybody, said about each row, beside what is true.

    Attributes:
        right: Whether the class is right; None for numbers, and where nobody knows.
        chosen: Whether the row is given the class that is asked about; None: there is none.
        deserved: Whether it has that class in truth; None: nobody knows.
        sure: The probability that calibration is about; None: the model gives none.
        came: Whether what the probability is of came true.
        errors: The prediction less the truth, of numbers.
        truth: The true numbers.
    """

    right: Truths | None = None
    chosen: Truths | None = None
    deserved: Truths | None = None
    sure: Floats | None = None
    came: Truths | None = None
    errors: Floats | None = None
    truth: Floats | None = None


def answers_of(model: Any, X: Any, y: Any, positive: Any, size: int) -> Answers:
    """What a fitted model says of these rows.

    Raises:
        InvalidParameter: if the model has no such class, or y does not fit the rows.
    """
    truth = np.asarray(y)
    if truth.shape != (size,):
        raise InvalidParameter("y must have one value for each row of X.")
    said = np.asarray(model.predict(X))
    if not hasattr(model, "classes_"):
        numbers = truth.astype(np.float64)
        return Answers(errors=np.asarray(said, np.float64) - numbers, truth=numbers)
    classes = list(model.classes_)
    if positive is None and len(classes) == 2:
        positive = classes[-1]
    if positive is not None and positive not in classes:
        raise InvalidParameter("positive must be one of the model's classes.")
    right = said == truth
    chances = np.asarray(model.predict_proba(X), np.float64) if hasattr(model, "predict_proba") else None
    if positive is None:
        sure = None if chances is None else chances.max(axis=1)
        return Answers(right=right, sure=sure, came=None if sure is None else right)
    deserved = truth == positive
    sure = None if chances is None else chances[:, classes.index(positive)]
    return Answers(
        right=right,
        chosen=said == positive,
        deserved=deserved,
        sure=sure,
        came=None if sure is None else deserved,
    )


def figures(
    answers: Answers, inside: Truths, confidence: float, bins: int
) -> tuple[dict[str, Estimate], list[Bin]]:
    """The figures of a group by name, and its calibration table."""
    found = dict[str, Estimate]()
    table = list[Bin]()
    rows = int(inside.sum())
    if answers.right is not None:
        found["accuracy"] = share(int(answers.right[inside].sum()), rows, confidence)
    if answers.chosen is not None:
        chosen = answers.chosen[inside]
        found["selected"] = share(int(chosen.sum()), rows, confidence)
        if answers.deserved is not None:
            deserved = answers.deserved[inside]
            wrongly, missed = int((chosen & ~deserved).sum()), int((~chosen & deserved).sum())
            found["false positive"] = share(wrongly, int((~deserved).sum()), confidence)
            found["false negative"] = share(missed, int(deserved.sum()), confidence)
    if answers.sure is not None and answers.came is not None:
        table = bins_of(answers.sure[inside], answers.came[inside], bins, confidence)
        found["calibration error"] = calibration(table, confidence)
    if answers.errors is not None and answers.truth is not None:
        errors = answers.errors[inside]
        found["mean error"] = mean(errors, confidence)
        found["absolute error"] = mean(np.abs(errors), confidence)
        found["R²"] = r2(answers.truth[inside], errors, confidence)
    return found, table


def lost(model: Answers, plain: Answers, inside: Truths, confidence: float) -> Estimate:
    """What the model lost beside the plain one: accuracy, or how much farther off its numbers are."""
    if model.right is not None and plain.right is not None:
        mine, theirs = model.right[inside], plain.right[inside]
        return paired(int((theirs & ~mine).sum()), int((mine & ~theirs).sum()), len(mine), confidence)
    if model.errors is not None and plain.errors is not None:
        return mean(np.abs(model.errors[inside]) - np.abs(plain.errors[inside]), confidence)
    return UNKNOWN


def gaps(answers: Answers, inside: Truths, confidence: float) -> dict[str, Estimate]:
    """How a group fares beside everybody else: the share selected, and the share of those who deserve it."""
    if answers.chosen is None or inside.all():
        return {}
    found = {"parity": _beside(answers.chosen, inside, np.ones_like(inside), confidence)}
    if answers.deserved is not None:
        found["opportunity"] = _beside(answers.chosen, inside, answers.deserved, confidence)
    return found


def _beside(chosen: Truths, inside: Truths, among: Truths, confidence: float) -> Estimate:
    mine, theirs = inside & among, ~inside & among
    return gap(
        int(chosen[mine].sum()), int(mine.sum()), int(chosen[theirs].sum()), int(theirs.sum()), confidence
    )


def largest_gaps(answers: Answers, groups: Mapping[str, Truths], confidence: float) -> dict[str, Estimate]:
    """The largest difference between two groups: in the share selected, and among those who deserve it."""
    if answers.chosen is None:
        return {}
    chosen = answers.chosen
    among = {"parity": np.ones(len(chosen), bool)}
    if answers.deserved is not None:
        among["opportunity"] = answers.deserved
    return {
        name: spread(
            [(int(chosen[inside & some].sum()), int((inside & some).sum())) for inside in groups.values()],
            confidence,
        )
        for name, some in among.items()
    }
