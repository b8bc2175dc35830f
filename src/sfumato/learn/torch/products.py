"""Whether products on this processor keep lines apart: one that holds no number must not reach another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import product
from typing import TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812

from sfumato.errors import InvalidParameter

__all__ = ["check_products", "reaches_others"]

Tensor: TypeAlias = torch.Tensor
_LINES = 33  # two tiles of 16, and a tail
_TERMS = (3, 5, 15, 33, 40, 63)  # none fills the tiles of a processor
_WIDTHS = (15, 16, 64)


def check_products(kind: torch.dtype, device: torch.device) -> None:
    """Refuses numbers of a type whose products mix lines here.

    Raises:
        InvalidParameter: then.

    Privacy:
        Claim: in the products that were tried, lines of infinite numbers or of none change no bit of any
        other line. On processors with AMX, oneDNN (its issue 5717) reads the beginning of the next line with
        the end of one, times 0, which is no number where the next line holds none: one record then makes
        others count as zero, and which ones hangs on the places of all of them.
        Condition: products of other sizes are computed in the same ways.
    """
    if device.type == "cpu" and reaches_others(kind):
        name = str(kind).removeprefix("torch.")
        raise InvalidParameter(
            f"On this processor PyTorch's products of {name} mix records: where one has no number, so has "
            "the one before it (issue 5717 of oneDNN). Leave amp out and train in 32-bit floats, or "
            "start Python with ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in its environment."
        )


@lru_cache
def reaches_others(kind: torch.dtype) -> bool:
    """Whether a line with no number changes others in some product of this type."""
    generator = torch.Generator().manual_seed(0)
    for given, multiply in _products(kind, generator):
        want = multiply(given)
        for turn in (0, 1):
            for value in (float("nan"), float("inf")):
                changed = given.clone()
                changed[turn::2] = value
                if not torch.equal(multiply(changed)[1 - turn :: 2], want[1 - turn :: 2]):
                    return True
    return False


def _products(
    kind: torch.dtype, generator: torch.Generator
) -> Iterator[tuple[Tensor, Callable[[Tensor], Tensor]]]:
    """Lines, and what is made of each of them."""

    def some(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(kind)

    for terms, width in product(_TERMS, _WIDTHS):
        weight, across, bias = some(width, terms), some(terms, width), some(width)
        yield some(_LINES, terms), partial(F.linear, weight=weight, bias=bias)
        yield some(_LINES, terms), partial(_times, across)
    for terms in _TERMS:
        yield some(_LINES, 16, terms), partial(_times, some(_LINES, terms, 16))
        yield some(_LINES, terms, 8), partial(F.conv1d, weight=some(16, terms, 3))


def _times(across: Tensor, given: Tensor) -> Tensor:
    return given @ across
