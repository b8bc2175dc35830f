"""How private is it at most? Lower bounds on epsilon from samples, and from the last bits of floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.bounds import Bound
from sfumato.audit.events import Feature, best_events, features_of
from sfumato.audit.outputs import Outputs, is_numeric, listed, normal
from sfumato.errors import InvalidParameter

__all__ = ["Source", "lower_bound", "lower_bounds", "support_bound"]

Source: TypeAlias = Sequence[Any] | NDArray[Any] | Callable[[int], Any]
"""Independent outputs of a mechanism on one input, or a function that draws so many of them."""

_LEAST = 100


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
    """`lower_bound` at several deltas from the same samples, at little more than the price of one.

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
                "the support probe reads the bits of numbers; use lower_bound for other outputs."
            )
        width = 1 if first.ndim == 1 else first.shape[1]
        found: list[Feature] = []
        for at in range(min(width, 8)):
            name = "output" if first.ndim == 1 else f"coordinate {at}"
            found.append(Feature(f"lowest set bit of {name}", _reading(at, _lowest_bit)))
            found.append(Feature(f"exponent and lowest bit of {name}", _reading(at, _both)))
        return found

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


def _drawn(source: Source, samples: int, name: str) -> Outputs:
    outputs = normal(source(samples) if callable(source) else source)
    if len(outputs) < _LEAST:
        raise InvalidParameter(
            f"an audit needs at least {_LEAST} outputs a side; {name} gave {len(outputs)}."
        )
    return outputs


def _bounds(
    left: Source,
    right: Source,
    deltas: Sequence[float],
    confidence: float,
    samples: int,
    features: Callable[[Outputs, Outputs], list[Feature]],
) -> tuple[Bound, ...]:
    if not deltas or not all(0 <= delta < 1 for delta in deltas):
        raise InvalidParameter("delta must be at least 0 and below 1.")
    if not 0 < confidence < 1:
        raise InvalidParameter("confidence must lie strictly between 0 and 1.")
    sides = [_drawn(left, samples, "left"), _drawn(right, samples, "right")]
    if sides[0].shape[1:] != sides[1].shape[1:] or is_numeric(sides[0]) != is_numeric(sides[1]):
        # The shape itself tells the inputs apart: compare whole outputs as categories.
        sides = [listed(side) for side in sides]
    first, second = ([side[part::5] for part in range(5)] for side in sides)
    fit = (first[0], second[0])
    found = []
    for delta, learned in zip(
        deltas,
        best_events(fit, (first[1], second[1]), features=features(*fit), deltas=deltas, alpha=1 - confidence),
        strict=True,
    ):
        counts = [
            (sum(map(learned.event.count, parts[2:])), sum(map(len, parts[2:]))) for parts in (first, second)
        ]
        over, under = counts if learned.direction == "left over right" else counts[::-1]
        words, way = learned.event.words, learned.direction
        found.append(
            Bound.of_counts(over, under, delta=delta, confidence=confidence, event=words, direction=way)
        )
    return tuple(found)
