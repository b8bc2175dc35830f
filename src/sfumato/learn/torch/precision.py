"""How far products and sums of tensors can be off, as bounds that hold in any order of summation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from sfumato._dataclasses import dataclass

__all__ = ["Precision", "as_said", "in_full", "precision_of"]


@dataclass(frozen=True, slots=True)
class Precision:
    """What a matrix product of one type keeps.

    Attributes:
        inside: The type in which factors are given to a product.
        given: By how much a factor that is not yet of that type is off, of its own size.
        added: By how much each addition is off, of the sum of absolute terms.
        stored_costs: What a value that is stored costs, beside the inner product of a pair of places.
    """

    inside: torch.dtype
    given: float
    added: float
    stored_costs: float = 0.5

    @property
    def stored(self) -> torch.dtype:
        """The type of what a product gives."""
        return torch.float64 if self.inside == torch.float64 else torch.float32


_DOUBLE = Precision(torch.float64, 2.0**-53, 2.0**-53)
_SINGLE = Precision(torch.float32, 2.0**-24, 2.0**-24)
# Tensor cores add in 32-bit floats and cut off what is beyond; a factor of two is to spare.
_SHORT = Precision(torch.bfloat16, 2.0**-8, 2.0**-22, stored_costs=0.06)
_PLACES: dict[str, tuple[Any, ...]] = {
    "cpu": (torch.backends.mkldnn.matmul, torch.backends.mkldnn.conv, torch.backends.mkldnn.rnn),
    "cuda": (torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn),
}


def precision_of(kind: torch.dtype, device: torch.device) -> Precision:
    """The precision of products of layers whose values are of that type, on that device.

    On an accelerator that may multiply 32-bit floats in shorter ones, factors are shortened before anything
    is made of them, so that norms and sums are of the very same numbers.
    """
    if kind == torch.float64:
        return _DOUBLE
    if device.type == "cpu":
        return _SINGLE
    shortened = kind in (torch.bfloat16, torch.float16) or _said() != "ieee"
    return _SHORT if shortened else _SINGLE


@contextmanager
def in_full(device: torch.device) -> Iterator[None]:
    """Without products of 32-bit floats in shorter ones on a device, whatever was chosen for them."""
    places = [each for each in _PLACES.get(device.type, ()) if each.fp32_precision not in ("ieee", "none")]
    before = [place.fp32_precision for place in places]
    try:
        for place in places:
            place.fp32_precision = "ieee"
        yield
    finally:
        for place, said in zip(places, before, strict=True):
            place.fp32_precision = "none"  # what was chosen for all, if that was it
            if place.fp32_precision != said:
                place.fp32_precision = said


def as_said(device: torch.device) -> AbstractContextManager[None]:
    """Products on a device are such as `precision_of` says."""
    return in_full(device) if device.type == "cpu" else nullcontext()


def _said() -> str:
    """What was chosen for products of 32-bit floats, for them or for all; "ieee" unless something was."""
    for place in (torch.backends.cuda.matmul, torch.backends):
        if place.fp32_precision != "none":
            return str(place.fp32_precision)
    return "ieee"
