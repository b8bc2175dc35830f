"""Was this record in the training set? Membership inference against any model that gives probabilities.

A model that has memorised its rows is surer of them than of rows it has not seen. Both attacks train models
of their own, *shadows*, by the same procedure, to learn how much surer: `shadow` one threshold for all
records, `likelihood_ratio` what to expect of each record by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from scipy.stats import norm, rankdata

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.attacks._calls import Chance, called
from sfumato.attacks._power import leak_given, one_in, stated, tried
from sfumato.attacks._shown import epsilon_shown
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer

__all__ = ["Confidence", "Train", "likelihood_ratio", "shadow"]

Train: TypeAlias = Callable[[NDArray[Any], NDArray[Any], int], Any]
"""Rows, labels and a seed in, a model out: any object that `Confidence` understands."""

Confidence: TypeAlias = Callable[[Any, NDArray[Any], NDArray[Any]], ArrayLike]
"""A model, rows and labels in; out comes the probability that the model gives to each row's own label."""

Floats: TypeAlias = NDArray[np.float64]

_SUCCESS = "a record is told to be in the training set or not, rightly"
_GUESSING = "a coin: half of the records are in it"
_OWN_SPREAD = 64  # so many shadows that a record's own deviation is better than that of all records together
_LEAK = 0.5  # of the records: what a hundred of them can show beside a coin
_BY_HEART = 8.0  # logits above the others: what a model knows by heart
_EDGE = 1e-15  # probabilities are held so far from 0 and 1 before the logarithm


def shadow(
    train: Train,
    confidence: Confidence,
    data: ArrayLike,
    labels: ArrayLike,
    *,
    members: ArrayLike,
    others: ArrayLike,
    shadows: int = 8,
    model: Any = None,
    leak: float = _LEAK,
    target: str = "",
    seed: int | None = None,
) -> Outcome:
    """How often a threshold on confidence, learned from shadow models, tells members from others.

    Steward-only on real data: the outcome counts against the truth, and nothing pays for it.

    The attacker has rows of the same population (all rows of `data` that are in neither list), trains shadow
    models on halves of them, and takes the threshold that separates best what those were trained on from what
    they were not (Shokri, Stronati, Song, Shmatikov 2017, with one threshold in place of their learned
    attack model; Yeom, Giacomelli, Fredrikson, Jha 2018).

    The baseline is a coin, and is exact: members and others are from one population and equally many, so
    that whoever knows nothing of who was drawn is right half of the time, however the model treats that
    population. An (epsilon, delta)-private model bounds the probability of being right by
    (e^epsilon + delta) / (e^epsilon + 1), since TPR − FPR ≤ (e^epsilon − 1 + 2·delta) / (e^epsilon + 1): with
    the epsilon of one row more or less where a coin was tossed for each record, and with that of one row
    exchanged for another, at most twice as much, where the number of members is fixed.

    Power: the leak is a model that knows a share `leak` of its records by heart and treats all others alike;
    the attack, shadows and all, has to notice it with as many records. Nothing is trained for that.

    Args:
        train: (rows, labels, seed) → model.
        confidence: (model, rows, labels) → the probability given to each row's own label.
        data: One row a record.
        labels: One label a record.
        members: The indices of the rows that the attacked model was trained on.
        others: The indices of rows that it was not; drawn at random beside the members.
        shadows: How many shadow models.
        model: The attacked model, if it exists already; otherwise it is trained on the members.
        leak: The share of records that are known by heart in the leak that has to be noticed (power).
        target: What is attacked, in words.
        seed: Of the attacker's choices.

    Returns:
        An outcome over equally many members and others. Detail: `advantage` (TPR − FPR), `auc`, `tpr at 1%
        fpr`, `tpr at 0.1% fpr` (with fewer than 1,000 others, the TPR at no false positive at all), `epsilon
        at least` (see Privacy) and `shadows`.

    Privacy:
        `epsilon at least` is a lower bound on the epsilon of `train`, under exchange of one row for another,
        at 99 % confidence, if the members were drawn uniformly from the members and others: each member is
        paired with an other, and the surer one of each pair is named. Given the pairs, which one is in is a
        fair coin for each, and right names prove epsilon (Steinke, Nasr, Jagielski 2023). Where train has a
        delta, the confidence is less by at most 2·pairs·delta. An epsilon for rows added and removed is at
        least half of it.

    Raises:
        InvalidParameter: if the arrays, the indices or what a function gives cannot be used.
    """
    case = _case(train, confidence, data, labels, members, others, seed)
    if len(case.rest) < 4:
        raise InvalidParameter(
            "The attacker needs rows of the population for shadow models: leave at least four of data out of "
            "both members and others."
        )
    count, share = as_integer(shadows, "shadows"), leak_given(leak)

    def attack(some: _Case, attacked: Any) -> Outcome:
        inside: list[Floats] = []
        outside: list[Floats] = []
        for _ in range(count):
            order = some.generator.permutation(some.rest)
            half = min(some.size, len(order) // 2)
            trained = some.trained(order[:half])
            inside.append(some.scores(trained, order[:half]))
            outside.append(some.scores(trained, order[half : 2 * half]))
        threshold = _best_threshold(np.concatenate(inside), np.concatenate(outside))
        scores = some.scores(some.attacked(attacked), some.records)
        return _outcome("shadow models", some, scores, threshold, count, target)

    return _with_power(attack(case, model), case, attack, share)


def likelihood_ratio(
    train: Train,
    confidence: Confidence,
    data: ArrayLike,
    labels: ArrayLike,
    *,
    members: ArrayLike,
    others: ArrayLike,
    shadows: int = 32,
    online: bool = True,
    model: Any = None,
    leak: float = _LEAK,
    target: str = "",
    seed: int | None = None,
) -> Outcome:
    """How often a likelihood ratio for each record tells members from others: the strongest known attack.

    Steward-only on real data: the outcome counts against the truth, and nothing pays for it.

    The attacker has all the records, but not who was drawn. Each pair of shadow models is trained on one
    random half of them and on the other half, so that every record is in half of the shadows. The logit of a
    record's confidence is normal with one mean where it is in and another where it is out; the attacked
    model's logit is weighed between the two (LiRA: Carlini, Chien, Nasr, Song, Terzis, Tramèr 2022).
    With `online=False` only the shadows without the record are used, as where a record comes up after they
    were trained; those half of the records that are most out of line are then named.

    The baseline, the bound by epsilon, the arguments and the detail are those of `shadow`; the shadows are an
    even number, at least 4. Below 64 of them one deviation is shared by all records, as in the paper.

    Privacy:
        As `shadow`.

    Raises:
        InvalidParameter: if the arrays, the indices or what a function gives cannot be used.
    """
    case = _case(train, confidence, data, labels, members, others, seed)
    count = as_integer(shadows, "shadows", least=4)
    if count % 2:
        raise InvalidParameter("shadows must be even: they come in pairs, one for either half.")
    share = leak_given(leak)

    def attack(some: _Case, attacked: Any) -> Outcome:
        records, half = some.records, len(some.records) // 2
        logits = np.empty((count, len(records)))
        within = np.empty((count, len(records)), dtype=bool)
        for first in range(0, count, 2):
            chosen = np.zeros(len(records), dtype=bool)
            chosen[some.generator.permutation(len(records))[:half]] = True
            for at, mask in ((first, chosen), (first + 1, ~chosen)):
                # As many rows as the attacked model had: of those that are not on trial, where it takes more.
                more = some.generator.permutation(some.rest)[: max(0, some.size - half)]
                logits[at] = some.scores(some.trained(np.concatenate([records[mask], more])), records)
                within[at] = mask
        observed = some.scores(some.attacked(attacked), records)
        out_mean, out_spread = _normals(logits, ~within)
        if online:
            in_mean, in_spread = _normals(logits, within)
            scores = norm.logpdf(observed, in_mean, in_spread) - norm.logpdf(observed, out_mean, out_spread)
            threshold = 0.0
        else:
            scores = (observed - out_mean) / out_spread
            threshold = float(np.median(scores))
        name = "likelihood ratio" if online else "likelihood ratio, offline"
        return _outcome(name, some, np.asarray(scores), threshold, count, target)

    return _with_power(attack(case, model), case, attack, share)


def _with_power(
    outcome: Outcome, case: _Case, attack: Callable[[_Case, Any], Outcome], share: float
) -> Outcome:
    """The outcome beside a model that knows some records by heart, of as many records."""

    def twin(chance: Chance) -> Outcome:
        known = chance.random(len(case.data)) < share

        def train(rows: NDArray[Any], _labels: NDArray[Any], _seed: int) -> Any:
            logits = chance.normal(size=len(known))
            logits[rows[known[rows]]] += _BY_HEART
            return logits

        def confidence(logits: Any, rows: NDArray[Any], _labels: NDArray[Any]) -> Floats:
            return np.asarray(expit(logits[rows]))

        places = np.arange(len(case.data))
        return attack(replace(case, train=train, confidence=confidence, data=places, labels=places), None)

    words = f"a model that knows {one_in(share, 'record')} by heart"
    cells = float(len(case.data) * outcome.detail["shadows"])
    return stated(
        outcome,
        lambda: tried(words, twin, case.generator, cells=cells),
        advice="give more records, or a larger leak",
    )


@dataclass(frozen=True, slots=True)
class _Case:
    """The records on trial, first the members and then as many others, and the two functions, guarded."""

    train: Train
    confidence: Confidence
    data: NDArray[Any]
    labels: NDArray[Any]
    members: NDArray[np.int64]
    records: NDArray[np.int64]
    rest: NDArray[np.int64]
    generator: Chance

    @property
    def size(self) -> int:
        return len(self.members)

    def attacked(self, model: Any) -> Any:
        return self.trained(self.members) if model is None else model

    def trained(self, rows: NDArray[np.int64]) -> Any:
        seed = int(self.generator.integers(2**31))
        return called("train", self.train, self.data[rows], self.labels[rows], seed)

    def scores(self, model: Any, rows: NDArray[np.int64]) -> Floats:
        """The logit of the confidence in each row's label."""
        given = called("confidence", self.confidence, model, self.data[rows], self.labels[rows])
        try:
            shares = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            shares = np.empty(0)
        if shares.shape != rows.shape or not np.all((shares >= 0) & (shares <= 1)):
            raise InvalidParameter(
                "confidence must give one probability, from 0 to 1, for each row: that of its own label."
            )
        held = np.clip(shares, _EDGE, 1 - _EDGE)
        return np.asarray(np.log(held) - np.log1p(-held))


def _case(
    train: Train,
    confidence: Confidence,
    data: ArrayLike,
    labels: ArrayLike,
    members: ArrayLike,
    others: ArrayLike,
    seed: int | None,
) -> _Case:
    rows, marks = np.asarray(data), np.asarray(labels)
    if rows.ndim < 1 or marks.ndim < 1 or len(rows) != len(marks):
        raise InvalidParameter("data and labels must have one row each for every record.")
    if any(array.dtype.kind == "f" and not np.isfinite(array).all() for array in (rows, marks)):
        raise InvalidParameter("data and labels must be finite: replace NaN and infinity first.")
    taken, free = (
        _indices(indices, len(rows), name) for indices, name in ((members, "members"), (others, "others"))
    )
    if np.intersect1d(taken, free).size:
        raise InvalidParameter("members and others must not share a row.")
    generator = random.simulation(seed)
    trials = min(len(taken), len(free))
    records = np.concatenate([generator.permutation(indices)[:trials] for indices in (taken, free)])
    rest = np.setdiff1d(np.arange(len(rows)), np.concatenate([taken, free]))
    return _Case(train, confidence, rows, marks, taken, records, rest, generator)


def _indices(given: ArrayLike, rows: int, name: str) -> NDArray[np.int64]:
    indices = np.asarray(given)
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or not indices.size:
        raise InvalidParameter(f"{name} must be the indices of at least one row of data.")
    if indices.min() < 0 or indices.max() >= rows or np.unique(indices).size != indices.size:
        raise InvalidParameter(f"{name} must be indices of rows of data, each once.")
    return indices.astype(np.int64)


def _best_threshold(inside: Floats, outside: Floats) -> float:
    """The score above which to say "member", best in balanced accuracy over the shadows."""
    values = np.unique(np.concatenate([inside, outside]))
    cuts = np.concatenate([[values[0] - 1], (values[1:] + values[:-1]) / 2])
    hits = 1 - np.searchsorted(np.sort(inside), cuts, side="right") / len(inside)
    alarms = 1 - np.searchsorted(np.sort(outside), cuts, side="right") / len(outside)
    return float(cuts[np.argmax(hits - alarms)])


def _normals(logits: Floats, chosen: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Mean and deviation of each record's logits over the chosen half of the shadows."""
    many = chosen.sum(axis=0)
    mean = np.where(chosen, logits, 0.0).sum(axis=0) / many
    squares = np.where(chosen, (logits - mean) ** 2, 0.0).sum(axis=0) / (many - 1)
    if len(logits) < _OWN_SPREAD:
        squares = np.full_like(squares, squares.mean())
    return mean, np.sqrt(np.maximum(squares, 1e-12))


def _outcome(
    attack: str, case: _Case, scores: Floats, threshold: float, shadows: int, target: str
) -> Outcome:
    half = len(scores) // 2
    inside, outside = scores[:half], scores[half:]
    hits, alarms = int(np.sum(inside > threshold)), int(np.sum(outside > threshold))
    return Outcome(
        attack=f"membership by {attack}",
        success=_SUCCESS,
        reached=Tally(hits + half - alarms, 2 * half),
        guess=0.5,
        guessing=_GUESSING,
        target=target,
        detail={
            "advantage": (hits - alarms) / half,
            "auc": _area(inside, outside),
            "tpr at 1% fpr": _found_at(inside, outside, 0.01),
            "tpr at 0.1% fpr": _found_at(inside, outside, 0.001),
            "epsilon at least": epsilon_shown(_pairs_won(inside, outside, case.generator), half, 0.5),
            "shadows": shadows,
        },
    )


def _area(inside: Floats, outside: Floats) -> float:
    """The probability that a member scores above an other, ties for half."""
    ranks = rankdata(np.concatenate([inside, outside]))[: len(inside)]
    return float((ranks.sum() - len(inside) * (len(inside) + 1) / 2) / (len(inside) * len(outside)))


def _found_at(inside: Floats, outside: Floats, rate: float) -> float:
    """The share of members above the score that at most this share of the others is above."""
    allowed = math.floor(rate * len(outside))
    return float(np.mean(inside > np.sort(outside)[len(outside) - 1 - allowed]))


def _pairs_won(inside: Floats, outside: Floats, generator: Chance) -> int:
    """In how many random pairs of a member and an other the member scores higher; a coin where they tie."""
    against = generator.permutation(outside)
    ties = generator.random(len(inside)) < 0.5
    return int(np.sum((inside > against) | ((inside == against) & ties)))
