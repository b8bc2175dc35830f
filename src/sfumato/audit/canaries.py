"""Audits of training: records made up for the purpose, and how well their presence can be guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato.audit.blackbox import LEAST, lower_bound
from sfumato.audit.bounds import Bound, asked_at, familywise
from sfumato.audit.onerun import (
    FAMILIES,
    Family,
    OneRun,
    check_family,
    one_run,
    one_run_fdp,
    one_run_p_value,
)
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer

__all__ = [
    "FAMILIES",
    "Family",
    "OneRun",
    "canary_audit",
    "many_runs",
    "one_run",
    "one_run_fdp",
    "one_run_p_value",
]

Canary = TypeVar("Canary")
Model = TypeVar("Model")


def canary_audit(
    train: Callable[[list[Canary]], Model],
    score: Callable[[Model, Canary], float],
    canaries: Sequence[Canary],
    *,
    guesses: int | Sequence[int] | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    family: str | None = None,
) -> OneRun:
    """The epsilon that one training run with canaries proves.

    Each canary is put in by a fair coin, the model is trained once on those that are in (beside whatever
    data `train` adds by itself), and each is given a score. Half of the guesses say "in" about the highest
    scores, half say "out" about the lowest, and about those between nothing is said.

    Args:
        train: what is audited: takes the canaries that are in, gives a model.
        score: how much a model looks as if a canary were in: the loss before minus the loss after, say.
        canaries: the records, made up so that training on one should show; hundreds are a good number.
        guesses: how many to make, or several numbers to try, for which the confidence is split; None: all.
        delta: the delta at which epsilon is asked for.
        confidence: the probability that the bound is true, over coins and training.
        family: None, which assumes nothing of the mechanism, or the family of curves for `one_run_fdp`.

    Privacy:
        The claim of `one_run`, or of `one_run_fdp` where a family is named; the coins come from
        `sfumato.random` and reach nothing but `train` and the count of right guesses. Real records that sit
        beside the canaries are touched by `train` alone, and what the audit shows of the model is not paid
        for: for the steward.

    Raises:
        InvalidParameter: if there are fewer than 2 canaries, a number of guesses does not fit them, or
            another parameter is out of range: before anything is trained; after it, if a score is NaN.
    """
    records = list(canaries)
    total = len(records)
    if total < 2:
        raise InvalidParameter("An audit in one run needs at least 2 canaries, better some hundred.")
    _check_functions(train, score)
    sizes = _sizes(guesses, total)
    delta, confidence = asked_at(delta, confidence)
    if family is not None:
        check_family(family, delta)
    share = familywise(confidence, len(sizes))
    coins = random.bernoulli(Fraction(1, 2), total)
    model = train([canary for canary, inside in zip(records, coins.tolist(), strict=True) if inside])
    scores = _scores(score, model, records)
    order = np.argsort(-scores, kind="stable")

    def proven(size: int) -> OneRun:
        right = _right(coins[order], size)
        if family is None:
            return one_run(right, size, total, delta=delta, confidence=share)
        return one_run_fdp(right, size, total, delta=delta, confidence=share, family=family)

    best = max((proven(size) for size in sizes), key=lambda run: run.epsilon)
    return replace(best, confidence=confidence)


def _check_functions(train: object, score: object) -> None:
    if not callable(train) or not callable(score):
        raise InvalidParameter("train and score must be functions: of canaries, and of a model and a canary.")


def _sizes(guesses: int | Sequence[int] | None, total: int) -> list[int]:
    """How many guesses to make, one number for each try."""
    tried = [total] if guesses is None else guesses if isinstance(guesses, Iterable) else [guesses]
    sizes = [as_integer(number, "guesses") for number in tried]
    if not sizes or max(sizes) > total:
        raise InvalidParameter("guesses must be between 1 and the number of canaries.")
    return sizes


def _scores(
    score: Callable[[Any, Canary], float], model: Any, canaries: Sequence[Canary]
) -> NDArray[np.float64]:
    given = [score(model, canary) for canary in canaries]
    try:
        scores = np.array(given, dtype=np.float64).reshape(len(given))
    except (TypeError, ValueError):
        scores = np.array([np.nan])
    if np.isnan(scores).any():
        raise InvalidParameter("A score is not a number; let score give a float for every canary.")
    return scores


def _right(ranked: NDArray[np.bool_], size: int) -> int:
    """How many are right if the first half of the guesses says "in" and the rest, from the end, "out"."""
    most = (size + 1) // 2
    outs = ranked[len(ranked) - (size - most) :]
    return int(np.count_nonzero(ranked[:most]) + np.count_nonzero(~outs))


def many_runs(
    train: Callable[[list[Canary]], Any],
    score: Callable[[Any, Canary], float],
    canary: Canary,
    *,
    runs: int = 1000,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> Bound:
    """The epsilon that many training runs prove, half with one canary and half without: the classical audit.

    It assumes nothing about the mechanism and has no interference between canaries, at the price of
    `2·runs` runs.

    Args:
        train: what is audited: takes the canaries that are in (here one or none), gives a model.
        score: how much a model looks as if the canary were in.
        canary: the record.
        runs: how many runs a side, at least 100.
        delta: the delta at which epsilon is asked for.
        confidence: the probability that the bound is true, over all runs.

    Privacy:
        The claim of `lower_bound`: runs must be independent (Jagielski, Ullman and Oprea 2020).

    Raises:
        InvalidParameter: if a parameter is out of range: before anything is trained.
    """
    _check_functions(train, score)
    count = as_integer(runs, "runs", least=LEAST)

    def scores(inside: list[Canary]) -> Callable[[int], NDArray[np.float64]]:
        return lambda count: np.array([score(train(list(inside)), canary) for _ in range(count)], float)

    return lower_bound(scores([canary]), scores([]), delta=delta, confidence=confidence, samples=count)
