"""Trials of a search: parts of the rows by each unit's own coin, and models fitted on them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sfumato import random
from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.learn._core.buying import BoundsPaid
from sfumato.learn._core.declared import Following, is_auto
from sfumato.learn._core.design import Design
from sfumato.learn._core.records import Records
from sfumato.learn.base import Learned, PrivateEstimator
from sfumato.loss import GaussianLoss, PrivacyLoss

if TYPE_CHECKING:
    from sfumato.ledger import Receipt

__all__ = [
    "Fitted",
    "Given",
    "adopt",
    "candidates_of",
    "fitted",
    "folds_of",
    "held_out",
    "model_of",
    "models_of",
    "unchecked",
]

Given: TypeAlias = Mapping[str, Any]

_PUBLIC = ("epsilon", "delta", "bounds", "classes", "target_bounds")
_MOST = 10_000


def candidates_of(candidates: Any) -> tuple[Given, ...]:
    """All parameters to choose from, as dictionaries.

    Args:
        candidates: A list of them, or a dictionary of lists: every combination is a candidate.

    Raises:
        InvalidParameter: if there is none, or one would change the price or what is declared.
    """
    if isinstance(candidates, Mapping) and all(map(_is_list, candidates.values())):
        names = [str(name) for name in candidates]
        lists = itertools.product(*(list(values) for values in candidates.values()))
        listed = [dict(zip(names, values, strict=True)) for values in itertools.islice(lists, _MOST + 1)]
    elif _is_list(candidates) and all(isinstance(given, Mapping) for given in candidates):
        listed = [dict(given) for given in candidates]
    else:
        raise InvalidParameter("candidates must be a dictionary of lists, or a list of dictionaries.")
    if not 0 < len(listed) <= _MOST:
        raise InvalidParameter(f"candidates must give 1 to {_MOST:,} combinations.")
    for name in dict.fromkeys(name for given in listed for name in given):
        if str(name).rpartition("__")[2] in _PUBLIC:  # also of a step
            raise InvalidParameter(f"{name} is the same for all candidates: leave it out of them.")
    return tuple(listed)


def model_of(estimator: Any, given: Given) -> PrivateEstimator:
    """The model with these parameters, unfitted and checked.

    Raises:
        InvalidParameter: if it has no such parameters, or they contradict each other.
    """
    model = unchecked(estimator, given)
    model._check()
    return model


def models_of(estimator: Any, given: Sequence[Given]) -> list[PrivateEstimator]:
    """The models of all candidates, which learn the same.

    Raises:
        InvalidParameter: as `model_of`; and if they do not.
    """
    models = [model_of(estimator, one) for one in given]
    if any(model._target_declared(("",)) != models[0]._target_declared(("",)) for model in models):
        raise InvalidParameter("Classes and target_bounds are the same for all candidates.")
    return models


def unchecked(estimator: Any, given: Given) -> PrivateEstimator:
    """The same, before all that is public is known.

    Raises:
        InvalidParameter: if it is no model of this package, or has no such parameters.
    """
    if not isinstance(estimator, PrivateEstimator):
        raise InvalidParameter("Give one of sf.learn's models: others would read rows unpaid.")
    if is_auto(getattr(estimator, "target_bounds", None)):
        raise InvalidParameter("Scores need one scale: declare target_bounds=(lower, upper).")
    # Of a copy that nobody counts: how many trials there were must not show, in a model or in a warning.
    model: PrivateEstimator = clone(deepcopy(estimator))
    unknown = [name for name in given if name not in estimator.get_params()]
    if unknown:
        raise InvalidParameter(f"{type(estimator).__name__} has no parameter {str(unknown[0])[:60]!r}.")
    model.set_params(**given)
    model._public = estimator._public
    return model


class Fitted(NamedTuple):
    """What one fit on some of the rows released."""

    design: Design
    learned: Learned
    bounds: BoundsPaid | None


def fitted(model: PrivateEstimator, records: Records, meter: Meter) -> Fitted:
    """Fits a model on some of the rows, with this noise."""
    columns = records.design.columns
    given = records.with_design(model._design_of(Following(columns), [column.name for column in columns]))
    design, learned = model._released(given.rows() if given.bounded else given, meter)
    found = Fitted(design, learned, model._bounds_paid)
    adopt(model, found, GaussianLoss(meter.rho))
    return found


def adopt(model: PrivateEstimator, found: Fitted, paid: PrivacyLoss, receipt: Receipt | None = None) -> None:
    """Makes it the fitted model, which says that it cost so much."""
    model._bounds_paid = found.bounds
    model.n_features_in_ = len(found.design.columns)
    model._keep(found.design, found.learned, paid, receipt)


def held_out(records: Records, share: Fraction) -> NDArray[np.bool_]:
    """Which rows are held out: each unit's own coin decides for all its rows.

    Privacy:
        Claim: given the coins, a unit that comes or goes changes one of the two parts, and no other unit's
        place. So what is released about the parts composes in parallel for each of its coin's two sides, and
        then for their mixture, since a divergence of mixtures is at most the larger one (quasi-convexity).
        Where a unit is exchanged for another, both may be given the same coin, and one part changes too.
    """
    return _by_unit(records, lambda many: random.bernoulli(share, many))


def folds_of(records: Records, folds: int) -> NDArray[np.int64]:
    """In which of so many folds each row is: drawn once for each unit; as `held_out`."""
    return _by_unit(records, lambda many: random.integers(folds, many))


def _by_unit(records: Records, draw: Callable[[int], NDArray[Any]]) -> NDArray[Any]:
    if records.units is None:
        return draw(len(records))
    whose, place = np.unique(records.units, return_inverse=True)
    return np.asarray(draw(len(whose))[place])


def _is_list(values: Any) -> bool:
    return isinstance(values, Sequence | np.ndarray) and not isinstance(values, str)
