"""What a pass leaves behind: where the gradients of outputs are found, and what is made of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.utils.checkpoint import CheckpointFunction

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.forms import Form
from sfumato.learn.torch.lines import Followed, Key, Layout

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

    Args:
        records: How many records pass.
        layout: Where they are in each part of a layer; by default on the first axis, a line each.
        followed: In a survey, what is made of records; nothing is held to a layout then.

    Attributes:
        records: How many records pass.
        uses: What was recorded, in order.
        shapes: In a survey, those of all parts.
    """

    def __init__(self, records: int, layout: Layout | None = None, followed: Followed | None = None) -> None:
        self.records, self.uses, self.shapes = records, list[Use](), dict[Key, torch.Size]()
        self._layout, self._followed = layout, followed
        self._bounded, self._outs, self._open = dict[int, Tensor](), dict[str, int](), True

    def given(self, key: Key, value: Tensor) -> int | None:
        """Which axis of what goes in is that of records; none: it is the same for all of them."""
        self._check_open(key[0])
        if self._followed is not None:
            self.shapes[key] = value.shape
            return 0
        if self._layout is not None:
            return self._layout.check(key, value.shape, self.records)
        return 0 if value.shape[0] == self.records else None

    def axis(self, key: Key) -> int:
        """Which axis of what went in is that of records: the first, where each was given the same."""
        if self._layout is None or self._followed is not None:
            return 0
        return self._layout.axis(key) or 0

    def ends(self, name: str, outs: tuple[Tensor, ...]) -> tuple[int, ...]:
        """Which axis of each thing that comes out is that of records; asked once for each use."""
        self._check_open(name)
        call = self._outs[name] = self._outs.get(name, -1) + 1
        keys: list[Key] = [(name, call, f"out {at}") for at in range(len(outs))]
        if self._followed is not None:
            self._followed.check(name, outs)
            self.shapes |= {key: out.shape for key, out in zip(keys, outs, strict=True)}
            return (0,) * len(outs)
        if self._layout is not None:
            layout = self._layout
            return tuple(
                layout.check_out(key, out.shape, self.records) for key, out in zip(keys, outs, strict=True)
            )
        if any(not out.dim() or out.shape[0] % self.records for out in outs):
            raise _shared(name)
        return (0,) * len(outs)

    def watch(
        self,
        name: str,
        outs: tuple[Tensor, ...],
        of: Callable[..., Gradients],
        *,
        ends: tuple[int, ...] | None = None,
        bound: bool = False,
        apart: bool = False,
    ) -> tuple[Tensor, ...]:
        """What came out, to be used from here on, so that its gradient can be asked for.

        Args:
            name: Where the layer is in the model.
            outs: What came out.
            of: From the gradients of all of it to those of the layer's parameters.
            ends: What `ends` said of it; by default it is asked, and must be the first axis.
            bound: Whether the gradient of the first is made numbers, whatever the records hold.
            apart: Whether one may be made of another: the gradient of each is then that of its own use.
        """
        if ends is None and any(self.ends(name, outs)):
            raise _shared(name)
        edges, shown = list[Any](), list[Tensor]()
        for out in outs:
            seen = out
            if not out.requires_grad:
                out = out.detach().requires_grad_()
                seen = out.clone()  # a leaf must not be changed in place
            elif apart and len(outs) > 1:
                out = seen = out.clone()
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
        self._open = False
        found = iter(torch.autograd.grad(loss, edges, allow_unused=True) if edges else ())
        listed: list[list[Tensor | None]] = [[next(found) for _ in use.edges] for use in self.uses]
        for place in list(self._bounded):
            listed[place][0] = self._bounded.pop(place)
        return listed

    def _check_open(self, name: str) -> None:
        if not self._open or (not torch.is_grad_enabled() and _to_come_again()):
            raise InvalidParameter(
                f"The layer {name or 'itself'!r} is computed again in the backward pass, where it cannot be "
                "watched: turn gradient checkpointing off, and give a smaller physical batch."
            )

    def first(self, value: Any, axis: int) -> Any:
        """With records as the first axis, and their lines as the second where a record has several."""
        if not isinstance(value, torch.Tensor) or not value.dim():
            return value
        value = value.movedim(axis, 0)
        if value.shape[0] == self.records:
            return value
        return value.reshape(self.records, -1, *value.shape[1:])


def _to_come_again() -> bool:
    """Whether this is in a block that is computed again in the backward pass, and has no gradient before."""
    code, frame = CheckpointFunction.forward.__code__, sys._getframe()
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _shared(name: str) -> InvalidParameter:
    return InvalidParameter(
        f"The layer {name or 'itself'!r} must give each record its own part of what comes out."
    )


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
