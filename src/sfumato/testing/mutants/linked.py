"""Fits of two linked tables with planted bugs: what the kit for fits must see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np

from sfumato.fits.meter import Total
from sfumato.synth import linked
from sfumato.synth._private.cells import WHOLE, Cells
from sfumato.synth._private.families import Families
from sfumato.synth.released import Released

__all__ = ["LINKED_MUTANTS", "planted_in_linked"]

Patch: TypeAlias = tuple[Any, str, Callable[..., Any]]

_JOINED, _NUMBERS = Families.joined, Families.numbers


def _whole_children(families: Families, *given: Any) -> Cells:
    """Each child weighs as much as a unit may."""
    families._weights = np.full_like(families._weights, WHOLE)
    return _JOINED(families, *given)


def _few_siblings(families: Families, *given: Any) -> Cells:
    """A child weighs as if its parent never had more than two."""
    families._weights = np.maximum(families._weights, WHOLE // 2)
    return _JOINED(families, *given)


def _children_for_units(families: Families) -> Total:
    """Counts children where it claims to count parents."""
    total = _NUMBERS(families)
    return total._replace(values=total.values * np.arange(len(total.values)))


def _exact_parents() -> tuple[Patch, ...]:
    """How many parents have no children is released as it is."""
    last = [0]

    def numbers(families: Families) -> Total:
        total = _NUMBERS(families)
        last[0] = int(total.values[0])
        return total

    def released(domain: Any, cuts: Any, learned: Any, sizes: Any, fine: Any) -> Released:
        return Released(domain, cuts, learned, np.concatenate([[float(last[0])], sizes[1:]]), fine)

    return (Families, "numbers", numbers), (linked, "Released", released)


LINKED_MUTANTS: Mapping[str, Callable[[], Sequence[Patch]]] = MappingProxyType(
    {
        "children as if each were a unit": lambda: [(Families, "joined", _whole_children)],
        "children as if there were two at most": lambda: [(Families, "joined", _few_siblings)],
        "children counted for parents": lambda: [(Families, "numbers", _children_for_units)],
        "the exact number of parents": _exact_parents,
    }
)
"""What is wrong, in words, and what is put in its place."""


@contextmanager
def planted_in_linked(name: str) -> Iterator[None]:
    """Runs what is inside with the bug of that name in fits of two linked tables."""
    with ExitStack() as stack:
        for home, attribute, bug in LINKED_MUTANTS[name]():
            stack.enter_context(patch.object(home, attribute, bug))
        yield
