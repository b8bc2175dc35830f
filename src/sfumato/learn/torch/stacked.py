"""Gradients of a parameter whose rows are used apart, as attention uses its packed projections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

from sfumato._dataclasses import dataclass
from sfumato.learn.torch.forms import Form, Looked, Norms, Outer, Stored, merged

__all__ = ["Stacked", "of_all_uses"]

Tensor: TypeAlias = torch.Tensor


@dataclass(frozen=True, slots=True)
class Stacked:
    """Gradients of blocks of rows, one below the other.

    Attributes:
        parts: The gradients of each block.
    """

    parts: tuple[Form, ...]

    def settled(self, block: Callable[[int], int]) -> Stacked:
        """Each block in the form that costs least."""
        return Stacked(tuple(part.settled(block) for part in self.parts))

    def norms(self) -> Norms:
        """Squares add up, since no two blocks share a number."""
        return Norms.together([part.norms() for part in self.parts])

    def summed(self, factors: Tensor) -> Tensor:
        """The sums of all blocks."""
        return torch.cat([part.summed(factors) for part in self.parts])

    def made(self) -> Stored:
        """The same, stored."""
        return Stored(torch.cat([_stored(part).straight() for part in self.parts], 1))


def _stored(form: Form) -> Stored:
    if isinstance(form, Stored):
        return form
    assert isinstance(form, Outer | Looked | Stacked)
    return form.made()


def of_all_uses(uses: Sequence[Form]) -> Form:
    """The gradients of a parameter that is used several times, in rows or whole."""
    stacked = [each for each in uses if isinstance(each, Stacked)]
    if not stacked or len(uses) == 1:
        return merged(uses)
    if len(stacked) == len(uses) and len({len(each.parts) for each in stacked}) == 1:
        return Stacked(tuple(merged(parts) for parts in zip(*(each.parts for each in stacked), strict=True)))
    return merged([each.made() if isinstance(each, Stacked) else each for each in uses])
