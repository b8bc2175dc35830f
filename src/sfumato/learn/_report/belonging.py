"""How well rows of the training set are told from others by a model's confidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from sfumato.attacks import Outcome, shadow
from sfumato.errors import InvalidParameter
from sfumato.learn._report.counterpart import Counterpart
from sfumato.learn._report.grouping import rows_in, taken
from sfumato.learn.base import PrivateEstimator
from sfumato.learn.files import public_parameters

__all__ = ["advantage_allowed", "belonging"]


def belonging(
    model: Any,
    trained: tuple[Any, Any],
    tested: tuple[Any, Any],
    *,
    shadows: int,
    target: str,
    seed: int | None,
) -> Outcome:
    """`attacks.shadow` against a fitted classifier: training rows against half of the test rows.

    The other half is the attacker's, for shadow models of the same kind.

    Raises:
        InvalidParameter: if the tables have other columns than the model, or are too small.
    """
    (X, y), (other_X, other_y) = trained, tested
    members, others = rows_in(X), rows_in(other_X)
    if len(np.asarray(y)) != members:
        raise InvalidParameter("trained must be the training rows with one label each: trained=(X, y).")
    if members < 1 or others < 8:
        raise InvalidParameter(
            "A membership attack needs training rows and at least 8 test rows; shadows=0 leaves it out."
        )
    labels = np.concatenate([np.asarray(y), np.asarray(other_y)])
    classes = list(model.classes_)

    def rows(places: Any) -> Any:
        """All of these are on one side, or the model is asked for each side by itself."""
        return taken(X, places) if places[0] < members else taken(other_X, places - members)

    def train(places: Any, marks: Any, _seed: int) -> Any:
        return _again(model).fit(rows(places), marks)

    def confidence(fitted: Any, places: Any, marks: Any) -> Any:
        found = np.empty(len(places))
        known = list(fitted.classes_)
        at = np.array([known.index(mark) if mark in known else -1 for mark in marks.tolist()])
        for side in (places < members, places >= members):
            if side.any():
                chances = np.asarray(fitted.predict_proba(rows(places[side])))
                found[side] = np.where(at[side] < 0, 0.0, chances[np.arange(len(chances)), at[side]])
        return np.clip(found, 0.0, 1.0)

    if not set(labels.tolist()) <= set(classes):
        raise InvalidParameter("The rows have labels that are not among the model's classes.")
    return shadow(
        train,
        confidence,
        np.arange(members + others),
        labels,
        members=np.arange(members),
        others=members + np.arange(others // 2),
        shadows=shadows,
        model=model,
        target=target,
        seed=seed,
    )


def _again(model: Any) -> Any:
    """An unfitted model of the same kind."""
    if isinstance(model, Counterpart):
        return Counterpart(model.of)
    made: Callable[..., Any] = clone
    return type(model)(**public_parameters(model)) if isinstance(model, PrivateEstimator) else made(model)


def advantage_allowed(model: Any) -> float | None:
    """The most that a private model's price lets any attack tell members from others by; None: no price.

    Privacy:
        Claim: TPR − FPR ≤ δ(0) of the loss under exchange of one row. Proof: pair members and others at
        random. Given the pairs, a member and its other are as likely the other way round, and the two
        tables differ by an exchange; the difference of the two rates is at most the total variation
        distance between the two models, which is δ(0). An exchange is a removal and an addition.
    """
    if not isinstance(model, PrivateEstimator):
        return None
    return float(model.loss.group(2).delta(0))
