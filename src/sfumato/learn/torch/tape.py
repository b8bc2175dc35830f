"""What a pass leaves behind: where the gradients of outputs are found, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import torch

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.forms import Form

__all__ = ["Tape", "Use", "bounded", "finite"]

Tensor: TypeAlias = torch.Tensor
Gradients: TypeAlias = dict[str, Form]
_LARGEST = 2.0**127  # that is still a number in short floats


class Use(NamedTuple):
    """One use of a layer in a pass.

    Attributes:
        name: Where the layer is in the model.
        edges: Where in the graph the gradients of what came out are found.
        shapes: Zeros of the shapes of what came out, for what has no gradient.
        of: From these gradients to those of the layer's parameters, of each record.
    """

    name: str
    edges: tuple[Any, ...]
    shapes: tuple[Callable[[], Tensor], ...]
    of: Callable[..., Gradients]


class Tape:
    """The uses of one pass over a number of records.

    Attributes:
        records: How many records pass.
        checked: Whether what comes out must be of each record.
        uses: What was recorded, in order.
    """

    def __init__(self, records: int, checked: bool = True) -> None:
        self.records, self.checked, self.uses = records, checked, list[Use]()
        self._bounded = dict[int, Tensor]()

    def watch(
        self,
        name: str,
        outs: tuple[Tensor, ...],
        of: Callable[..., Gradients],
        axes: tuple[int, ...] | None = None,
        *,
        bound: bool = False,
    ) -> tuple[Tensor, ...]:
        """What came out, to be used from here on, so that its gradient can be asked for.

        Args:
            name: Where the layer is in the model.
            outs: What came out.
            of: From the gradients of all of it to those of the layer's parameters.
            axes: Which axis of each is that of records; the first by default.
            bound: Whether the gradient of the first is made numbers, whatever the records hold.
        """
        edges, shown = list[Any](), list[Tensor]()
        for out, axis in zip(outs, axes or (0,) * len(outs), strict=True):
            if self.checked and (not out.dim() or out.shape[axis] % self.records):
                raise InvalidParameter(
                    f"The layer {name or 'itself'!r} must give each record its own part of what comes out."
                )
            seen = out
            if not out.requires_grad:
                out = out.detach().requires_grad_()
                seen = out.clone()  # a leaf must not be changed in place
            edges.append(torch.autograd.graph.get_gradient_edge(out))
            shown.append(seen)
        if bound:
            shown[0].register_hook(_bounding(len(self.uses), self._bounded))
        shapes = tuple(_zeros(out) for out in outs)
        self.uses.append(Use(name, tuple(edges), shapes, of))
        return tuple(shown)

    def gradients(self, loss: Tensor) -> list[list[Tensor | None]]:
        """Of what came out of each use; None for what the loss does not depend on."""
        edges = [edge for use in self.uses for edge in use.edges]
        found = iter(torch.autograd.grad(loss, edges, allow_unused=True) if edges else ())
        listed: list[list[Tensor | None]] = [[next(found) for _ in use.edges] for use in self.uses]
        for place in list(self._bounded):
            listed[place][0] = self._bounded.pop(place)
        return listed

    def first(self, value: Any, axis: int) -> Any:
        """With records as the first axis, and their lines as the second where a record has several."""
        if not isinstance(value, torch.Tensor) or not value.dim():
            return value
        value = value.movedim(axis, 0)
        if value.shape[0] == self.records:
            return value
        return value.reshape(self.records, -1, *value.shape[1:])


def _bounding(place: int, kept: dict[int, Tensor]) -> Callable[[Tensor], Tensor]:
    """Makes a gradient numbers for the layers before, and keeps it: autograd takes it as it was.

    It knows nothing of the tape: what is recorded would hold itself, and be freed late.
    """

    def hook(gradient: Tensor) -> Tensor:
        kept[place] = bounded(gradient)
        return kept[place]

    return hook


def _zeros(out: Tensor) -> Callable[[], Tensor]:
    shape, kind, device = out.shape, out.dtype, out.device
    return lambda: torch.zeros(shape, dtype=kind, device=device)


def finite(value: Any) -> Any:
    """Values that are finite, whatever the records hold: 0 for what is no number."""
    return _Finite.apply(value) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def bounded(value: Tensor) -> Tensor:
    """Numbers, whatever it held, and still numbers in shorter floats: times 0 they are 0."""
    largest = min(_LARGEST, torch.finfo(value.dtype).max)
    return torch.nan_to_num(value.clamp(-largest, largest))


class _Finite(torch.autograd.Function):
    """Values that are finite: 0 for what is no number, the largest for what is infinite."""

    @staticmethod
    def forward(_: Any, value: Tensor) -> Tensor:
        return bounded(value)

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> Tensor:
        return gradient
