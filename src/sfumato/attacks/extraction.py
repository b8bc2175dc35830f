"""Secrets that a text model has learned by heart: canaries, their exposure, and whether they come out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato.attacks._calls import called
from sfumato.attacks._power import LEAK, counted_power, leak_given, one_in, stated
from sfumato.attacks._shown import epsilon_shown
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer

__all__ = ["Score", "TrainText", "exposure", "extraction"]

TrainText: TypeAlias = Callable[[Sequence[str], int], Any]
"""Documents and a seed in, a model out: any object that `Score` understands."""

Score: TypeAlias = Callable[[Any, Sequence[str]], ArrayLike]
"""A model and texts in; out comes how likely the model finds each: greater is likelier (a log-likelihood)."""

Floats: TypeAlias = NDArray[np.float64]


def exposure(score: Callable[[Sequence[str]], ArrayLike], canary: str, candidates: Sequence[str]) -> float:
    """The bits by which a model gives a canary away: log2 of the candidates less log2 of its rank.

    Steward-only where the canary is somebody's: the figure tells of the training text, and nothing pays for
    it.

    It is 0 for the least likely candidate, 1 for a middle one, about 1.44 on average for a model that never
    saw the canary, and log2 of their number where the canary comes first, so that whoever asks for the
    likeliest candidate reads it (Carlini, Liu, Erlingsson, Kos, Song 2019, "The Secret Sharer").
    Equal scores share their places: the rank is the middle one.

    Args:
        score: How likely the model finds each of some texts; greater is likelier.
        canary: The text that was trained on.
        candidates: All that the canary could have been; it may be among them.

    Raises:
        InvalidParameter: if there is no other candidate, or the scores cannot be used.
    """
    texts = [canary, *(candidate for candidate in candidates if candidate != canary)]
    if len(texts) < 2:
        raise InvalidParameter(
            "exposure is a rank among candidates: give at least one other than the canary."
        )
    scores = _numbers(called("score", score, texts), len(texts))
    rank = 1 + np.sum(scores > scores[0]) + (np.sum(scores == scores[0]) - 1) / 2
    return math.log2(len(texts)) - math.log2(rank)


def extraction(
    train: TrainText,
    score: Score,
    text: Sequence[str],
    canaries: Sequence[str],
    *,
    candidates: Sequence[str],
    copies: int = 1,
    top: int = 1,
    leak: float = LEAK,
    target: str = "",
    seed: int | None = None,
) -> Outcome:
    """How often the model completes the beginning of a secret that was in the training text once.

    Steward-only on real text: the outcome counts against the truth, and nothing pays for it.

    Each canary is a beginning that names somebody ("the code of ada is "). A secret is drawn for it from
    `candidates`, and one document more, beginning and secret, is trained on. The attacker knows the
    beginnings and the list, ranks all completions by the model, and names the first (Carlini et al. 2019).

    The baseline is exact: each secret is drawn uniformly and by itself, apart from all else, so that a
    model which does not know a secret has it among the first `top` of its list with probability
    `top` / candidates. If training is (epsilon, delta)-private for one document more or less, a secret
    is hit with probability at most e^epsilon times that, plus delta: compare with the model trained without
    that document.

    Power: the leak is a model that names a share `leak` of what is hidden, at least one, whatever the others.

    Args:
        train: (documents, seed) → model.
        score: (model, texts) → how likely each is.
        text: The other documents.
        canaries: One beginning for each secret to hide; all different.
        candidates: All that a secret may be; all different.
        copies: How often a canary's document says it, separated by blanks: it stays one document.
        top: How far down its list a secret counts as named.
        leak: The share of what is hidden in the leak that has to be noticed (power).
        target: What is attacked, in words.
        seed: Of what is hidden, of its places among the documents, and of the order of equal scores.

    Returns:
        An outcome over all canaries. Detail: `exposure` (the mean, in bits), `exposure of a guess` (the mean
        that a model without the canaries has), `most` (the greatest possible), `epsilon at least` (what the
        hits prove of training, under exchange of one document, at 99 % confidence and delta 0; half of it for
        one document more or less) and `candidates` (how many).

    Raises:
        InvalidParameter: if there is nothing to hide or to choose from, or a function gives what cannot be
            used.
    """
    begins, choices = _distinct(canaries, "canaries", 1), _distinct(candidates, "candidates", 2)
    documents = _texts(text, "text")
    limit, times, share = as_integer(top, "top"), as_integer(copies, "copies"), leak_given(leak)
    if limit >= len(choices):
        raise InvalidParameter("top must be less than the number of candidates, or every guess is a hit.")
    generator = random.simulation(seed)
    drawn = generator.integers(len(choices), size=len(begins))
    hidden = [" ".join([begin + choices[at]] * times) for begin, at in zip(begins, drawn, strict=True)]
    together = [*documents, *hidden]
    order = generator.permutation(len(together))
    model = called("train", train, [together[at] for at in order], int(generator.integers(2**31)))
    ranks = []
    for begin, at in zip(begins, drawn, strict=True):
        given = called("score", score, model, [begin + choice for choice in choices])
        scores = _numbers(given, len(choices))
        equal = int(np.sum(scores == scores[at]))
        ranks.append(1 + int(np.sum(scores > scores[at])) + int(generator.integers(equal)))
    hits = int(np.sum(np.array(ranks) <= limit))
    every = math.log2(len(choices)) - np.log2(np.arange(1, len(choices) + 1))
    outcome = Outcome(
        attack="extraction of canaries",
        success="a secret is "
        + ("what the model completes first" if limit == 1 else f"among its first {limit:,}"),
        reached=Tally(hits, len(begins)),
        guess=limit / len(choices),
        guessing=f"{limit:,} of {len(choices):,} candidates at random",
        target=target,
        detail={
            "exposure": float(np.mean(every[np.array(ranks) - 1])),
            "exposure of a guess": float(np.mean(every)),
            "most": math.log2(len(choices)),
            "epsilon at least": epsilon_shown(hits, len(begins), limit / len(choices)),
            "candidates": len(choices),
        },
    )
    words = f"a model that has learned {one_in(share, 'secret')} by heart"
    return stated(
        outcome,
        lambda: counted_power(outcome, share, words),
        advice="hide more of them, among more candidates",
    )


def _numbers(given: Any, count: int) -> Floats:
    try:
        scores = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        scores = np.empty(0)
    if scores.shape != (count,) or np.isnan(scores).any():
        raise InvalidParameter("score must give one number for each text, and no NaN.")
    return scores


def _texts(given: Sequence[str], name: str) -> list[str]:
    texts = [] if isinstance(given, str) else list(given)
    if isinstance(given, str) or not all(isinstance(text, str) for text in texts):
        raise InvalidParameter(f"{name} must be a list of texts.")
    return texts


def _distinct(given: Sequence[str], name: str, least: int) -> list[str]:
    texts = _texts(given, name)
    if len(texts) < least or len(set(texts)) < len(texts):
        raise InvalidParameter(f"{name} must be at least {least} different texts.")
    return texts
