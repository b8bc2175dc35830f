"""How private is it at most? Lower bounds on epsilon from samples, and from the last bits of floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.bounds import Bound, asked_at
from sfumato.audit.events import Feature, best_events, features_of
from sfumato.audit.outputs import Outputs, alike, gathered, is_numeric, listed, normal
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer

__all__ = ["LEAST", "Source", "lower_bound", "lower_bounds", "support_bound"]

Source: TypeAlias = Sequence[Any] | NDArray[Any] | Callable[[int], Any]
"""Independent outputs of a mechanism on one input, or a function that draws so many of them."""

LEAST = 100
"""The fewest outputs a side that are worth an audit."""


def lower_bound(
    left: Source,
    right: Source,
    *,
    delta: float = 0.0,
    confidence: float = 0.999,
    samples: int = 1_000_000,
    features: Sequence[Feature] = (),
) -> Bound:
    """The epsilon that outputs on two neighbouring inputs prove, knowing nothing about the mechanism.

    One fifth of the samples is cut into cells (values, quantile bins, projections, learned likelihood ratios,
    categories), one fifth chooses the event, in either direction, that promises the most; the remaining
    three fifths, which have had no say in the choice, are counted.

    Args:
        left: outputs on one input, or a function of a count that draws them.
        right: outputs on a neighbouring input, likewise.
        delta: the delta at which epsilon is asked for.
        confidence: the probability that the bound is true, over the draw of the samples.
        samples: how many to draw from each side where functions are given.
        features: further ways to look at an output, tried beside the built-in ones.

    Privacy:
        Claim: with probability at least `confidence` every epsilon for which the mechanism is (epsilon,
        delta)-private on this pair is at least `result.epsilon`. Conditions: outputs are independent.
        Source: an event fixed beforehand and Clopper–Pearson limits on held-out counts (Jagielski, Ullman
        and Oprea 2020; learned events as in Bichsel, Steffen, Bogunovic and Vechev 2021). A low
        bound proves nothing: it may only mean that the pair or the event was a poor one.

    Raises:
        InvalidParameter: if there are fewer than 100 outputs a side, or delta or confidence is out of range.
    """
    return lower_bounds(
        left, right, deltas=[delta], confidence=confidence, samples=samples, features=features
    )[0]


def lower_bounds(
    left: Source,
    right: Source,
    *,
    deltas: Sequence[float],
    confidence: float = 0.999,
    samples: int = 1_000_000,
    features: Sequence[Feature] = (),
) -> tuple[Bound, ...]:
    """`lower_bound` at several deltas from the same samples, in little more time than one takes.

    Each bound alone holds at `confidence`; for all of them together ask for `familywise(confidence,
    len(deltas))`.
    """
    return _bounds(left, right, deltas, confidence, samples, lambda a, b: [*features_of(a, b), *features])


def support_bound(
    left: Source,
    right: Source,
    *,
    delta: float = 0.0,
    confidence: float = 0.999,
    samples: int = 1_000_000,
) -> Bound:
    """The epsilon that the *representation* of floats proves: which low bits each input can reach.

    Float noise added to a float answer leaves gaps that depend on the answer: some outputs are possible on
    one input and impossible on the other, whatever epsilon was meant (Mironov 2012, "On significance of the
    least significant bits"). The place of the lowest set bit, alone and beside the exponent, shows them
    without knowing the generator. Outputs on a grid of a power of two that is fixed beforehand clear the
    probe.

    Args:
        left: floating-point outputs (numbers or rows) on one input, or a function of a count that draws them.
        right: outputs on a neighbouring input, likewise.
        delta: the delta at which epsilon is asked for.
        confidence: the probability that the bound is true, over the draw of the samples.
        samples: how many to draw from each side where functions are given.

    Privacy:
        The same claim as `lower_bound`, with other events.

    Raises:
        InvalidParameter: if the outputs are not numbers.
    """

    def features(first: Outputs, _: Outputs) -> list[Feature]:
        if not is_numeric(first):
            raise InvalidParameter(
                "The support probe reads the bits of numbers; use lower_bound for other outputs."
            )
        width = 1 if first.ndim == 1 else first.shape[1]
        candidates: list[Feature] = []
        for at in range(min(width, 8)):
            name = "output" if first.ndim == 1 else f"coordinate {at}"
            candidates.append(Feature(f"lowest set bit of {name}", _reading(at, _lowest_bit)))
            candidates.append(Feature(f"exponent and lowest bit of {name}", _reading(at, _both)))
        return candidates

    return _bounds(left, right, [delta], confidence, samples, features)[0]


def _reading(
    at: int, bits: Callable[[NDArray[np.float64]], NDArray[np.int64]]
) -> Callable[[Outputs], Outputs]:
    return lambda outputs: bits(
        np.asarray(outputs if outputs.ndim == 1 else outputs[:, at], dtype=np.float64)
    )


def _lowest_bit(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The power of two of the lowest set bit of each float; 5000 for zero and what is not finite."""
    usable = np.isfinite(values) & (values != 0)
    mantissa, exponent = np.frexp(np.where(usable, values, 1.0))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    zeros = np.log2((whole & -whole).astype(float)).astype(np.int64)
    return np.where(usable, exponent.astype(np.int64) - 53 + zeros, 5000)


def _both(values: NDArray[np.float64]) -> NDArray[np.int64]:
    exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))[1].astype(np.int64)
    return exponent * 8192 + _lowest_bit(values)


def _fifths(source: Source, samples: int, name: str) -> list[Any]:
    """The outputs in five parts, as they came."""
    given = gathered(source(samples) if callable(source) else source)
    if len(given) < LEAST:
        raise InvalidParameter(f"An audit needs at least {LEAST} outputs a side; {name} gave {len(given)}.")
    return [given[part::5] for part in range(5)]


def _bounds(
    left: Source,
    right: Source,
    deltas: Sequence[float],
    confidence: float,
    samples: int,
    features: Callable[[Outputs, Outputs], list[Feature]],
) -> tuple[Bound, ...]:
    if not len(deltas):
        raise InvalidParameter("Give at least one delta at which epsilon is asked for.")
    levels = [asked_at(delta, confidence)[0] for delta in deltas]
    _, confidence = asked_at(levels[0], confidence)
    count = as_integer(samples, "samples", least=LEAST) if callable(left) or callable(right) else 0
    first, second = _fifths(left, count, "left"), _fifths(right, count, "right")
    fit, choose = _learning(first, second)
    # What is counted has no say in anything before, not even in whether outputs are numbers: one that is
    # not, where those that were learned from are, lies outside of every event.
    shape = fit[0].shape[1:] if is_numeric(fit[0]) else None
    held = [[(alike(part, shape), len(part)) for part in side[2:]] for side in (first, second)]
    bounds = []
    for delta, learned in zip(
        levels,
        best_events(fit, choose, features=features(*fit), deltas=levels, alpha=1 - confidence),
        strict=True,
    ):
        counts = [
            (sum(learned.event.count(part) for part, _ in side), sum(size for _, size in side))
            for side in held
        ]
        over, under = counts if learned.direction == "left over right" else counts[::-1]
        words, way = learned.event.words, learned.direction
        bounds.append(
            Bound.of_counts(over, under, delta=delta, confidence=confidence, event=words, direction=way)
        )
    return tuple(bounds)


def _learning(
    first: Sequence[Any], second: Sequence[Any]
) -> tuple[tuple[Outputs, Outputs], tuple[Outputs, Outputs]]:
    """The two parts of each side that an event is learned from, all in one representation."""
    parts = [normal(part) for part in (first[0], second[0], first[1], second[1])]
    if len({(part.shape[1:], is_numeric(part)) for part in parts}) > 1:
        # The shape itself tells the inputs apart: compare whole outputs as categories.
        parts = [listed(part) for part in parts]
    return (parts[0], parts[1]), (parts[2], parts[3])
