"""What a gradient shows of the record it was computed from: for a linear layer with a bias, all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato.attacks._calls import Chance, called
from sfumato.attacks._power import stated, tried
from sfumato.attacks._shown import epsilon_shown
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer

__all__ = ["Gradient", "gradient_leakage", "record_of"]

Gradient: TypeAlias = Callable[[NDArray[Any], NDArray[Any]], Any]
"""Rows and labels in; out comes the gradient of a linear layer's weights, alone or as (weights, bias).

Weights are one number a feature, or one row of them a class; a bias is one number, or one a class."""

Floats: TypeAlias = NDArray[np.float64]

_EXACT = 1e-6  # a record found to within this share of its length counts as read off


def record_of(weights: ArrayLike, bias: ArrayLike) -> Floats:
    """The record behind one gradient of a linear layer: the gradient of its weights over that of its bias.

    A layer W·x + c feeds whatever comes after it, and by the chain rule its gradients are dW = e·xᵀ and
    dc = e, with the same e: their ratio is x, exactly, whatever the loss is (Phong, Aono, Hayashi, Wang,
    Moriai 2017; found by optimisation for deep networks in Zhu, Liu, Han 2019). Of several classes, the one
    with the greatest bias is read. For a batch the ratio is a weighted mean of its records.

    Raises:
        InvalidParameter: if the shapes differ or every bias is zero.
    """
    rows, slopes = _layer((weights, bias))
    if slopes is None or not slopes.any():
        raise InvalidParameter("The gradient of the bias is zero: the record cannot be read off.")
    at = int(np.argmax(np.abs(slopes)))
    return np.asarray(rows[at] / slopes[at])


def gradient_leakage(
    gradient: Gradient,
    examples: ArrayLike,
    labels: ArrayLike,
    *,
    candidates: ArrayLike | None = None,
    batch: int = 1,
    target: str = "",
    seed: int | None = None,
) -> Outcome:
    """How often a record is known among candidates by the gradient of a batch it was in.

    Steward-only on real data: the outcome counts against the truth, and nothing pays for it.

    The attacker sees what a client sends or a step of training publishes, `gradient(rows, labels)`, for one
    batch after the other, and names the `batch` candidates whose direction is nearest to any class of it.

    The baseline is exact: candidates are from one population with the records, so that who has not seen the
    gradient names `batch` of them and hits with probability `batch` / candidates. If what is sent is
    (epsilon, delta)-private under exchange of a record, a record is hit with probability at most e^epsilon
    times that, plus delta, on average over which of the candidates it was.

    Power: the leak is plain gradients of a linear layer, sums of the batch's records with random weights.

    Args:
        gradient: (rows, labels) → the gradient of a linear layer; see `Gradient`.
        examples: One row a record.
        labels: One label a record.
        candidates: Further records that were not there; the guess is then the same attack with the gradient
            of another example, since these records need not be like the examples. If None, the attacker
            chooses among the examples.
        batch: How many records one gradient is computed from.
        target: What is attacked, in words.
        seed: Of the order of the records, and of what is named where nothing tells.

    Returns:
        An outcome over all examples. Detail: `candidates` (how many); for single gradients and no further
        candidates `epsilon at least` (what the hits prove of each, under exchange of its record, at 99 %
        confidence and delta 0), and where
        they have a bias `relative error` (the median of that of `record_of`) and `read off` (how many are
        right to 1e-6).

    Raises:
        InvalidParameter: if the arrays, or what the function gives, cannot be used.
    """
    rows, marks, decoys = _records(examples, labels, candidates)
    size = as_integer(batch, "batch")
    if size > len(rows) or len(rows) % size:
        raise InvalidParameter("batch must divide the number of examples, so that every batch is full.")
    among = len(rows) if candidates is None else size + len(decoys)
    if among <= size:
        raise InvalidParameter(
            "There must be more candidates than records in a batch: give others to choose from."
        )
    generator = random.simulation(seed)
    classes: list[int] = []

    def attack(send: Gradient) -> Outcome:
        hits, missed, errors = 0, 0, []
        order = generator.permutation(len(rows)).reshape(-1, size)
        for place, chosen in enumerate(order):
            weights, bias = _layer(called("gradient", send, rows[chosen], marks[chosen]))
            if weights.shape[1] != rows.shape[1]:
                raise InvalidParameter("gradient must give one number for each feature of a record.")
            classes.append(len(weights))
            pool = rows if candidates is None else np.concatenate([rows[chosen], decoys])
            true = chosen if candidates is None else np.arange(size)
            named = _nearest(weights, pool, size, generator)
            hits += int(np.isin(true, named).sum())
            if candidates is not None:
                other = order[place - 1]  # the gradient of other records, held against these
                apart, _ = _layer(called("gradient", send, rows[other], marks[other]))
                missed += int(np.isin(true, _nearest(apart, pool, size, generator)).sum())
            if bias is not None and size == 1:
                errors.append(_error(weights, bias, rows[chosen[0]]))
        detail: dict[str, Any] = {"candidates": among}
        if size == 1 and candidates is None:
            detail["epsilon at least"] = epsilon_shown(hits, len(rows), 1 / among)
        if errors:
            detail["relative error"] = float(np.median(errors))
            detail["read off"] = int(np.sum(np.array(errors) < _EXACT))
        return Outcome(
            attack="gradient leakage",
            success="a record is known among the candidates by its gradient",
            reached=Tally(hits, len(rows)),
            guess=size / among if candidates is None else Tally(missed, len(rows)),
            guessing=f"{size} of {among:,} candidates at random"
            if candidates is None
            else "the same by the gradient of another record",
            target=target,
            detail=detail,
        )

    def twin(chance: Chance) -> Outcome:
        def plainly(records: Floats, _labels: NDArray[Any]) -> Floats:
            return np.asarray(chance.normal(size=(classes[0], len(records))) @ records)

        return attack(plainly)

    outcome = attack(gradient)
    words = f"plain gradients of {size:,} record{'' if size == 1 else 's'} each"
    cells = len(rows) * among * rows.shape[1]
    return stated(
        outcome,
        lambda: tried(words, twin, generator, cells=cells),
        advice="give more examples, or fewer records in a batch",
    )


def _nearest(weights: Floats, pool: Floats, count: int, generator: Chance) -> NDArray[np.int64]:
    """The candidates whose direction is nearest to any class's row, either way: its sign is the label's."""
    closeness = np.abs(_directions(pool) @ _directions(weights).T).max(axis=1)
    order = np.lexsort((generator.random(len(pool)), -closeness))
    return order[:count].astype(np.int64)


def _directions(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0))


def _error(weights: Floats, bias: Floats, row: Floats) -> float:
    length = float(np.linalg.norm(row))
    if not bias.any() or length == 0:
        return float("inf")
    return float(np.linalg.norm(record_of(weights, bias) - row)) / length


def _layer(given: Any) -> tuple[Floats, Floats | None]:
    """The gradient of a layer as one row of weights a class, and one bias a class if there are any."""
    pair = isinstance(given, tuple) and len(given) == 2
    try:
        weights = np.asarray(given[0] if pair else given, dtype=np.float64)
        bias = np.atleast_1d(np.asarray(given[1], dtype=np.float64)) if pair else None
    except (TypeError, ValueError):
        weights, bias = np.empty(()), None
    weights = weights[None, :] if weights.ndim == 1 else weights
    if weights.ndim != 2 or (bias is not None and bias.shape != weights.shape[:1]):
        raise InvalidParameter(
            "A gradient is one number a feature, or one row of them a class, alone or with the bias."
        )
    if not np.isfinite(weights).all() or (bias is not None and not np.isfinite(bias).all()):
        raise InvalidParameter("A gradient must be finite; take shorter steps or scale the features.")
    return weights, bias


def _records(
    examples: ArrayLike, labels: ArrayLike, candidates: ArrayLike | None
) -> tuple[Floats, NDArray[Any], Floats]:
    try:
        rows = np.asarray(examples, dtype=np.float64)
        decoys = (
            np.empty((0, rows.shape[-1])) if candidates is None else np.asarray(candidates, dtype=np.float64)
        )
    except (TypeError, ValueError, IndexError):
        raise InvalidParameter("examples and candidates must be matrices of numbers.") from None
    marks = np.asarray(labels)
    if rows.ndim != 2 or not rows.size or marks.shape[:1] != rows.shape[:1]:
        raise InvalidParameter("examples must be a matrix with one row a record, and labels one for each.")
    if decoys.ndim != 2 or decoys.shape[1] != rows.shape[1]:
        raise InvalidParameter("candidates must be a matrix with the columns of the examples.")
    if not np.isfinite(rows).all() or not np.isfinite(decoys).all():
        raise InvalidParameter("examples and candidates must be finite: replace NaN and infinity first.")
    return rows, marks, decoys
