"""Sums of gradients that no record moves by more than a bound, whatever its gradient and its floats do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import torch

from sfumato._dataclasses import dataclass
from sfumato.learn.torch.forms import Form, Norms

__all__ = ["Bound", "Clipped", "clipped"]

Tensor: TypeAlias = torch.Tensor
_SHORTEST = 2.0**-100  # what a factor must be above: smaller ones have fewer bits in 32
_SLACK = 2.0**-10  # more than sums of a few records in 32 bits, and all in 64, can be off


@dataclass(frozen=True, slots=True)
class Bound:
    """What one record may move the sum by, and what of that its floats are left.

    Attributes:
        clip: In all: the norm of the difference that a record makes.
        spread: How far above the clip a record's gradient may be before anything in it cancels, in clips.
        room: The part of the clip that is left for how sums in blocks are off.
        grid: The part that is left for rounding to a grid.
    """

    clip: float
    spread: float = 16.0
    room: float = 0.04
    grid: float = 0.0

    @property
    def length(self) -> float:
        """What a record's own gradient is cut to."""
        return self.clip * (1 - self.room - self.grid - _SLACK)

    def block(self, records: int, places: int, added: float) -> int:
        """How many records are summed in one product, which is then off by no more than `room`.

        It divides the number of all records. A product of n terms is off by at most n·added times the sum of
        the terms' sizes, in any order; a block
        of b records has n = b·places and sizes of at most b·spread clips. A record that joins changes two
        blocks, each twice: what it is with and without.
        """
        most = math.isqrt(int(self.room / (4 * added * places * self.spread)))
        if most < 1:
            raise AssertionError("not one record")
        return max(each for each in range(1, min(most, records) + 1) if records % each == 0)


@dataclass(frozen=True, slots=True)
class Clipped:
    """The sums of all parameters.

    Attributes:
        sums: In 64-bit floats, by name.
        factors: What each record's gradient was multiplied with; never to be shown.
    """

    sums: Mapping[str, Tensor]
    factors: Tensor


def clipped(forms: Mapping[str, Form], mask: Tensor, bound: Bound, given: float, added: float) -> Clipped:
    """The sums of gradients, each cut to the bound.

    Args:
        forms: The gradients of each parameter, of each record.
        mask: Which records count; the others fill the batch up.
        bound: What one record may move.
        given: By how much a factor is off that is cut short for a product.
        added: By how much an addition is off in a product.

    Privacy:
        Claim: for any records and any order of summation, taking one record in or out, and with it another
        one from a block to another, moves the sums together by at most `bound.clip` less `bound.grid` of it,
        in L2. Condition: the other record's gradient is the same to the last bit at both places, and so are
        those of all that stay: a last bit can turn the sign of an absolute error (`places.check_places`).
        Proof: a record's own part is its factor c times the sum of its terms as they are stored, whose norm
        is at most √square; what products make of it is off by at most 2·c·given·turned, and c·(√square +
        2·given·turned) is at most `length`. The sums of blocks are off by at most n·added times the sizes of
        their terms (`Bound.block`), where c·spread is at most `spread` clips for each record. Sums of
        `forms.IN_TURN` = 32 records are added up in 32-bit floats, off by less than 33·2⁻²⁴ times 32 clips;
        two such sums change, each with and without, and that is below `_SLACK`, with what sums in 64 bits are
        off. All of these are in proportion to sizes, down to numbers that 32 bits lose: what inner products
        lose of them is in `square` (`forms._LEAST`), and a record whose factor, times `forms._MOST`, could
        lose something has the factor 0, as has one with a norm that is no number: nothing of it is added.
    """
    settled = {
        name: form.settled(lambda places: bound.block(mask.shape[0], places, added))
        for name, form in forms.items()
    }
    norms = Norms.together([form.norms() for form in settled.values()])
    zero, widest = torch.zeros_like(norms.square), bound.spread * bound.clip
    spread, turned = (zero if each is None else each for each in (norms.spread, norms.turned))
    length = (norms.square.sqrt() + 2 * given * turned).clamp(min=bound.length)
    factors = torch.minimum(bound.length / length, widest / spread.clamp(min=widest))
    sound = torch.isfinite(norms.square) & torch.isfinite(spread) & torch.isfinite(turned)
    sound &= factors > _SHORTEST
    factors = torch.where(sound & (mask > 0), factors, 0.0)
    return Clipped({name: form.summed(factors) for name, form in settled.items()}, factors)
