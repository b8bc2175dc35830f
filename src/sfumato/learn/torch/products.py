"""Whether products on this processor keep lines apart, and factors as long as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from typing import TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.precision import in_full

__all__ = ["check_precision", "check_products", "reaches_others", "shortens"]

Tensor: TypeAlias = torch.Tensor
_LINES = 33  # two tiles of 16, and a tail
_TERMS = (3, 5, 15, 33, 40, 63)  # none fills the tiles of a processor
_WIDTHS = (15, 16, 64)
_OFF = 1e-5  # a tenth of what factors of 11 bits are off by, ten times what those of 24 are


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


def check_precision(kind: torch.dtype, device: torch.device) -> None:
    """Refuses 32-bit floats where they are multiplied as shorter ones.

    Raises:
        InvalidParameter: then.

    Privacy:
        Claim: in the products that were tried, factors on a processor are as long as `precision` says, which
        is what norms and sums are bounded by; what PyTorch was told is set aside in each pass
        (`precision.as_said`), what other libraries were told is not. Condition: products of other sizes are
        computed in the same ways.
    """
    if device.type == "cpu" and kind == torch.float32 and shortens():
        raise InvalidParameter(
            "On this processor products of 32-bit floats are those of shorter ones, and records would move "
            "sums by more than their clip: leave ONEDNN_DEFAULT_FPMATH_MODE and DNNL_DEFAULT_FPMATH_MODE "
            "out of Python's environment, or train in torch.float64."
        )


@lru_cache
def reaches_others(kind: torch.dtype) -> bool:
    """Whether a line with no number changes others in some product of this type."""
    for given, more, multiply in _products(kind):
        want = multiply(given, *more)
        for turn in (0, 1):
            for value in (float("nan"), float("inf")):
                changed = given.clone()
                changed[turn::2] = value
                if not torch.equal(multiply(changed, *more)[1 - turn :: 2], want[1 - turn :: 2]):
                    return True
    return False


@lru_cache
def shortens() -> bool:
    """Whether some product of 32-bit floats is one of shorter ones, whatever PyTorch was told."""
    with in_full(torch.device("cpu")):
        for given, more, multiply in _products(torch.float32):
            want = multiply(given.double(), *(each.double() for each in more))
            if float((multiply(given, *more) - want).abs().max()) > _OFF * float(want.abs().max()):
                return True
    return False


def _products(kind: torch.dtype) -> Iterator[tuple[Tensor, tuple[Tensor, ...], Callable[..., Tensor]]]:
    """Lines, and what is made of each of them, and how."""
    generator = torch.Generator().manual_seed(0)

    def some(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(kind)

    for terms, width in product(_TERMS, _WIDTHS):
        yield some(_LINES, terms), (some(width, terms), some(width)), F.linear
        yield some(_LINES, terms), (some(terms, width),), torch.matmul
    for terms in _TERMS:
        yield some(_LINES, 16, terms), (some(_LINES, terms, 16),), torch.matmul
        yield some(_LINES, terms, 8), (some(16, terms, 3),), F.conv1d
        yield some(_LINES, terms, 8, 8), (some(16, terms, 3, 3),), F.conv2d
