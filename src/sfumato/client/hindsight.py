"""What a server says was paid, weighed before a figure is made of it.

A few bytes can name losses whose composition takes gigabytes, or hours: one of an epsilon beyond all use, a
million million of them, or hundreds that each have a sample. A ledger may hold such losses, so they are no
error. In hindsight they cost what the budget's gate charged: that is also told where nothing better can be
certified.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sfumato.ledger import Balance
from sfumato.loss import ComposedLoss, GroupLoss, PrivacyLoss, PureLoss

__all__ = ["looking_back", "paid_of"]

_MOST_RELEASES = 10**6
"""How many releases are composed."""
_LEAST_DELTA, _MOST_DELTA = Fraction(1, 10**30), Fraction(1, 2)
"""Between which deltas they are; at 0 their epsilons are simply added."""
_REACH = 4_096
"""The largest epsilon, rho or group of one release that is composed: as far as the numerics lay a grid."""
_CURVES, _EVENTS = 64, 16
"""How many curves are read point by point, and of how many releases one of them may be a composition."""
_BITS = 1 << 17
"""How long the common denominator of all figures may be: exact sums are written over it."""
_GAUSSIAN, _STATED, _COMPOSED, _PARALLEL = "gaussian.1", "adjacent.1", "composed.1", "parallel.1"

_SPENT = PureLoss(Fraction(10**300))
"""A loss above every budget, so that the lesser of it and of what is spent is what is spent."""


def paid_of(document: Any) -> Any:
    """The losses that a server says were paid, as it sent them.

    In their place is one above every budget, where they have too many releases, curves or digits.

    Raises:
        ValueError, TypeError or LookupError: if they are none.
    """
    few = sum(_releases(loss) * count for loss, count in document) <= _MOST_RELEASES
    fine = few and sum(_curves(loss) for loss, _ in document) <= _CURVES and _is_short(document)
    return document if fine else [[_SPENT.to_dict(), 1]]


def looking_back(balance: Balance) -> Balance:
    """The same balance, which composes no loss in hindsight that reaches too far."""

    def losses() -> list[tuple[PrivacyLoss, int]]:
        paid = balance._losses()
        usual = balance.delta == 0 or _LEAST_DELTA <= balance.delta <= _MOST_DELTA
        return paid if usual and all(_reaches(loss) <= _REACH for loss, _ in paid) else [(_SPENT, 1)]

    return replace(balance, _losses=losses)


def _releases(data: Any) -> int:
    """How many releases a loss is composed of, as it is written."""
    if data["loss"] != _COMPOSED:
        return 1
    return sum(_releases(part) * count for part, count in data["parts"])


def _curves(data: Any, *, within: bool = False) -> float:
    """How many curves are read for a loss, as it is written; within another one, each part has its own."""
    kind = data["loss"]
    if kind == _STATED:
        return _curves(data["inner"], within=within)
    if kind == _COMPOSED:
        if within and not _is_gaussian(data) and sum(count for _, count in data["parts"]) > _EVENTS:
            return math.inf  # each point of its curve is a composition
        return sum(_curves(part, within=within) for part, _ in data["parts"])
    if kind == _PARALLEL:
        parts = sum(_curves(part, within=True) for part in data["parts"])
        return parts if data["adjacency"] == "add-remove" else parts * parts
    return _curves(data["inner"], within=True) if "inner" in data else float(within)


def _is_gaussian(data: Any) -> bool:
    """Whether it is a composition of Gaussian noise alone, which is one Gaussian."""
    return all(_bare(part)["loss"] == _GAUSSIAN for part, _ in data["parts"])


def _bare(data: Any) -> Any:
    return data["inner"] if data["loss"] == _STATED else data


def _is_short(document: Any) -> bool:
    """Whether the figures of a document have a common denominator that is not too long."""
    common = 1
    for denominator in set(_denominators(document)):
        common = math.lcm(common, denominator)
        if common.bit_length() > _BITS:
            return False
    return True


def _denominators(data: Any) -> Iterator[int]:
    if isinstance(data, str):
        ratio, slash, denominator = data.partition("/")
        if slash and ratio:
            yield int(denominator)
    elif isinstance(data, dict | list):
        for one in data.values() if isinstance(data, dict) else data:
            yield from _denominators(one)


def _reaches(loss: PrivacyLoss) -> Fraction | float:
    """The largest epsilon, rho or group of one release in a loss; infinite for a group without a curve."""
    parts: Any = getattr(loss, "parts", ())
    inside = [*(part for part, _ in parts), *([loss.inner] if hasattr(loss, "inner") else ())]
    sizes: list[Fraction | float] = [_reaches(part) for part in inside]
    if isinstance(loss, GroupLoss):
        sizes.append(loss.size if loss._paired else math.inf)
    pure, known = loss.pure, loss.concentrated
    if not isinstance(loss, ComposedLoss) and (pure is not None or known is not None):
        sizes.append(known[0] if pure is None and known is not None else pure or 0)
    return max(sizes, default=0)
