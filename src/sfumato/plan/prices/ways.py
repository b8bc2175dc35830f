"""Which of several ways each aggregate is measured in, so that all together come out best."""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache

from sfumato.plan.expressions.tree import Expression
from sfumato.plan.prices.split import POWERS, Mechanics, least_cost, squares
from sfumato.plan.questions.aggregates import Part
from sfumato.plan.questions.nodes import AggregateCall, Measurement

__all__ = ["best_ways"]

_LAW: Mechanics = "laplace"
_EXPONENT = POWERS[_LAW] + 1
_CLEARLY = (
    1 - 1e-9
)  # what is not less than this part of the cost is no better: sums of floats differ by order


def best_ways(
    ways: Mapping[AggregateCall, tuple[Part, ...]], size: Callable[[Measurement], float]
) -> dict[AggregateCall, Part]:
    """For each aggregate one of the ways to measure it, so that all together come out best.

    Aggregates of the same argument are looked at together, one argument after the other in a fixed order,
    with the ways of all others as they are: only what the group measures is added up anew. The choice is made
    for Laplace noise whatever is drawn in the end: it is part of the question, not of its price.

    Args:
        ways: The ways to measure each aggregate, the one that is best alone first.
        size: The L1 sensitivity of a measurement in natural units.
    """
    calls = sorted(ways, key=lambda call: json.dumps(call.to_wire()))
    chosen = {call: ways[call][0] for call in calls}
    alike: dict[Expression | None, list[AggregateCall]] = {}
    for call in calls:
        if len(ways[call]) > 1:
            alike.setdefault(call.argument, []).append(call)
    if not alike:
        return chosen
    terms = _terms(ways, cache(size))
    # Exact, so that a measurement which only the group has is 0 without it: its root would show a rounding.
    costs: dict[Measurement, Fraction] = defaultdict(Fraction)
    for call in calls:
        _add(costs, terms[call][0])
    together = math.fsum(map(_root, costs.values()))
    for group in alike.values():
        own = dict.fromkeys(each for call in group for way in terms[call] for each in way)
        others = together - math.fsum(_root(costs[each]) for each in own)
        for call in group:
            _add(costs, terms[call][0], -1)
        rest = {each: costs[each] for each in own}
        least, best = math.inf, (0,) * len(group)
        for picks in itertools.product(
            *(range(len(terms[call])) for call in group)
        ):  # as they are comes first
            tried = dict(rest)
            for call, pick in zip(group, picks, strict=True):
                _add(tried, terms[call][pick])
            roots = others + math.fsum(map(_root, tried.values()))
            if roots**_EXPONENT < least * _CLEARLY:
                least, best, together = roots**_EXPONENT, picks, roots
        for call, pick in zip(group, best, strict=True):
            chosen[call] = ways[call][pick]
            _add(costs, terms[call][pick])
    return chosen


def _terms(
    ways: Mapping[AggregateCall, tuple[Part, ...]], size: Callable[[Measurement], float]
) -> dict[AggregateCall, list[dict[Measurement, Fraction]]]:
    """What each way adds to the cost of each measurement (`split.importance`)."""
    found = {}
    for call, parts in ways.items():
        alone = least_cost(squares(parts[0], size).values(), _LAW)
        found[call] = [
            {each: Fraction(square / alone) for each, square in squares(part, size).items()} for part in parts
        ]
    return found


def _add(costs: dict[Measurement, Fraction], terms: Mapping[Measurement, Fraction], sign: int = 1) -> None:
    for measurement, term in terms.items():
        costs[measurement] += sign * term


def _root(cost: Fraction) -> float:
    """What a measurement adds to the sum of roots that `split.least_cost` is a power of."""
    return math.pow(cost, 1 / _EXPONENT)
