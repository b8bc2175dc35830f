"""How good a model is on rows that it has not seen, as an exact sum in which nobody weighs more than 1."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Total
from sfumato.learn._core.design import UNIT, coded, whole
from sfumato.learn._core.records import Records

if TYPE_CHECKING:
    from sfumato.learn.base import PrivateEstimator

__all__ = ["SCORES", "goodness", "scoring_of", "share_of"]

Integers: TypeAlias = NDArray[np.int64]

_BLOCK = 1 << 10


def goodness(model: Any, records: Records, scoring: str) -> Total:
    """How good and how bad the model's answers are, in shares of a unit: two sums.

    A row is good by 1 at most, and bad by what it lacks; somebody with several rows counts with their mean.
    The quotient of the first sum and of both together is the score.

    Privacy:
        Claim: adding or removing a unit moves the two sums by at most 1, in L2 and in L1, for a model that
        does not depend on these rows. Proof: it adds (g, 1 − g) with 0 ≤ g ≤ 1 to them, in integers. What
        the model says of a row follows from that row, the model and a coin of the row's own (`_said`).
    """
    good = _by_unit(SCORES[scoring](model, records), records.units)
    sums = np.array([int(good.sum()), UNIT * len(good) - int(good.sum())], np.int64)
    return Total(sums, Fraction(UNIT), Fraction(1, UNIT))


def share_of(sums: NDArray[np.float64]) -> float:
    """The score that two noisy sums tell."""
    good, bad = (float(number) for number in sums)
    return min(1.0, max(0.0, good / (good + bad))) if good + bad >= 1 else 0.5


def scoring_of(model: PrivateEstimator, scoring: str | None) -> str:
    """The name of a score that the model can have; without one, how often it is right or how near it is.

    Raises:
        InvalidParameter: if it has none of that name.
    """
    kind = getattr(model, "_estimator_type", None) or getattr(
        model.__sklearn_tags__(), "estimator_type", None
    )
    known = {"classifier": ["accuracy", "brier"], "regressor": ["squared_error"]}.get(str(kind), [])
    if not known:
        raise InvalidParameter(f"{type(model).__name__} predicts nothing that could be scored.")
    if scoring is None:
        return known[0]
    if scoring not in known:
        raise InvalidParameter(f"scoring must be one of {', '.join(map(repr, known))}.")
    if scoring == "brier" and not hasattr(model, "predict_proba"):
        raise InvalidParameter(f"{type(model).__name__} gives no probabilities: use scoring='accuracy'.")
    return scoring


def _accuracy(model: Any, records: Records) -> Integers:
    """Whether each row's class is the one that is said."""
    said = coded(_said(model.predict, records, ()).tolist(), model.classes_.tolist())
    return np.where(said == records.target, UNIT, 0).astype(np.int64)


def _brier(model: Any, records: Records) -> Integers:
    """1 less half the squared distance of the probabilities that are said from the class that is so."""
    classes = len(model.classes_)
    said = np.nan_to_num(_said(model.predict_proba, records, (classes,)))
    far = np.zeros(len(said))
    for place in range(classes):
        far += (said[:, place] - (records.target == place)) ** 2 / 2
    return np.floor(UNIT * (1 - np.clip(far, 0, 1))).astype(np.int64)


def _squared_error(model: Any, records: Records) -> Integers:
    """1 less the square of the distance, in widths of the target's bounds."""
    assert records.target is not None
    said = np.nan_to_num(_said(model.predict, records, ()))
    last = getattr(model, "_last", model)  # of a pipeline
    far = whole(said, last._target_column()).astype(np.int64) - records.target
    return np.asarray(UNIT - far * far // UNIT, np.int64)


SCORES: dict[str, Callable[[Any, Records], Integers]] = {
    "accuracy": _accuracy,
    "brier": _brier,
    "squared_error": _squared_error,
}
"""From a model and rows to how good each answer is, in 2**-14; by name."""


def _said(answer: Callable[[Any], Any], records: Records, shape: tuple[int, ...]) -> NDArray[Any]:
    """What a model says of each row, wherever it stands.

    Privacy:
        Claim: what is said of a row does not depend on the other rows. Libraries may round the answer for a
        row by its place in an array and by the array's shape; so all arrays have one shape, and each row
        draws its own place in one of them. Places that nobody has drawn hold any row, and are not used.
    """
    size = len(records)
    places = random.integers(_BLOCK, size)
    order = np.argsort(places, kind="stable")
    many = np.bincount(places, minlength=_BLOCK)
    nth = np.arange(size) - (np.cumsum(many) - many)[places[order]]
    found: NDArray[Any] = np.empty((0, *shape))
    for number in range(int(many.max()) if size else 0):
        here = order[nth == number]
        block = np.zeros(_BLOCK, np.int64)
        block[places[here]] = here
        said = np.asarray(answer(records.taken(block)))
        if not len(found):
            found = np.empty((size, *shape), said.dtype)
        found[here] = said[places[here]]
    return found


def _by_unit(good: Integers, units: NDArray[np.integer] | None) -> Integers:
    """The mean of each unit's rows, rounded down."""
    if units is None or not len(good):
        return good
    _, place, rows = np.unique(units, return_inverse=True, return_counts=True)
    sums = np.zeros(len(rows), np.int64)
    np.add.at(sums, place, good)
    return np.asarray(sums // rows)
