"""A pass over one physical batch: from records to the sums of their cut gradients, as it is or compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils import stateless

from sfumato.learn.torch.clipping import Bound, clipped
from sfumato.learn.torch.forms import Form
from sfumato.learn.torch.precision import as_said, precision_of
from sfumato.learn.torch.quantile import below
from sfumato.learn.torch.recording import Objective, Recorder
from sfumato.learn.torch.weights import check_traced

__all__ = ["Engine", "Grid"]

Tensor: TypeAlias = torch.Tensor
_OPTIONS = {"force_layout_optimization": True}


class Grid(NamedTuple):
    """The numbers that sums are rounded to.

    Attributes:
        step: The distance from one to the next.
        kind: The type in which they are counted: one that no sum of cut gradients goes beyond.
    """

    step: float
    kind: torch.dtype = torch.int64

    def whole(self, total: Tensor) -> Tensor:
        """How many steps a sum is, rounded."""
        return (total / self.step).round().to(self.kind)


class Engine:
    """Sums of cut gradients of a model, batch by batch of one size.

    Args:
        model: What is trained.
        objective: From outputs and targets to a loss for each record.
        bound: What one record may move the sums by.
        grid: What sums are rounded to, if anything.
        counted: Whether one more number is given: how many gradients are below the clip (`quantile.below`).
        amp: The short type that layers compute in, if any.
        compiled: Whether the whole pass is traced once and compiled.
    """

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        bound: Bound,
        *,
        grid: Grid | None = None,
        counted: bool = False,
        amp: torch.dtype | None = None,
        compiled: bool = False,
    ) -> None:
        self.recorder, self.objective, self.bound, self.grid = Recorder(model), objective, bound, grid
        self.amp, self.compiled, self.counted = amp, compiled, counted
        first = next(model.parameters())
        self.device, self.kind = first.device, first.dtype
        self._ready = dict[Any, Callable[..., list[Tensor]]]()

    @property
    def names(self) -> list[str]:
        """Of the parameters that are trained, in the order of the sums."""
        return self.recorder.trained

    def sums(self, given: Tensor, target: Tensor, mask: Tensor) -> list[Tensor]:
        """The sum of the cut gradients of the records that count, for each trained parameter.

        Where there is a grid, as whole steps of it. What is given is kept until the next pass.
        """
        with as_said(self.device):
            if not self.compiled:
                return self._pass(given, target, mask)
            given = _channels_last(given)
            shapes = (given.shape, given.dtype, target.shape, target.dtype, self.recorder.modes)
            if shapes not in self._ready:
                self._ready[shapes] = self._compiled(given, target, mask)
            with torch.no_grad():
                return self._ready[shapes](self.values(), given, target, mask)

    def forms(self, given: Tensor, target: Tensor) -> dict[str, Form]:
        """The gradients of each line of a batch."""
        return self.recorder.gradients(given, target, self.objective)

    def measured(self, given: Tensor, target: Tensor) -> dict[str, Form]:
        """The same in the type that layers compute in."""
        short = torch.autocast(self.device.type, self.amp, enabled=self.amp is not None)
        with as_said(self.device), short:
            return self.forms(given, target)

    def losses(self, given: Tensor, target: Tensor) -> tuple[Tensor, Any]:
        """The loss of each line of a batch, without gradients, and what the model gives."""
        quick = torch.backends.mha.get_fastpath_enabled()
        try:
            torch.backends.mha.set_fastpath_enabled(False)  # a pass with gradients has none
            short = torch.autocast(self.device.type, self.amp, enabled=self.amp is not None)
            with torch.no_grad(), as_said(self.device), short:
                return self._lost(given, target)
        finally:
            torch.backends.mha.set_fastpath_enabled(quick)

    def _lost(self, given: Tensor, target: Tensor) -> tuple[Tensor, Any]:
        out = self.recorder.model(given)
        return self.objective(out, target), out

    def _pass(self, given: Tensor, target: Tensor, mask: Tensor) -> list[Tensor]:
        forms = self.measured(given, target)
        precision = precision_of(self.amp or self.kind, self.device)
        with torch.no_grad():
            cut = clipped(forms, mask, self.bound, precision.given, precision.added)
            sums = cut.sums
            parameters = dict(self.recorder.model.named_parameters())
            found = [
                sums[name] if name in sums else torch.zeros_like(parameters[name], dtype=torch.float64)
                for name in self.names
            ]
            if self.grid is not None:
                found = [self.grid.whole(each) for each in found]
            return [*found, below(cut.factors, mask)] if self.counted else found

    def values(self) -> list[Tensor]:
        """All parameters, as a pass that is traced takes them."""
        return [each.detach() for _, each in self.recorder.model.named_parameters()]

    def functional(self) -> Callable[..., list[Tensor]]:
        """The pass as a function of the parameters, to be traced."""
        model = self.recorder.model
        names = [name for name, _ in model.named_parameters()]

        def run(values: list[Tensor], given: Tensor, target: Tensor, mask: Tensor) -> list[Tensor]:
            swapped = dict(zip(names, values, strict=True))
            with torch.enable_grad(), stateless._reparametrize_module(model, swapped, tie_weights=True):
                return self._pass(given, target, mask)

        return run

    def _compiled(self, given: Tensor, target: Tensor, mask: Tensor) -> Callable[..., list[Tensor]]:
        values = self.values()
        traced = make_fx(self.functional())(values, given, target, mask)
        check_traced(traced, len(values))
        quick: Callable[..., list[Tensor]] = torch.compile(traced, dynamic=False, options=_OPTIONS)
        return self._captured(quick, given, target, mask) if self.device.type == "cuda" else quick

    def _captured(
        self, run: Callable[..., list[Tensor]], *batch: Tensor
    ) -> Callable[[list[Tensor], Tensor, Tensor, Tensor], list[Tensor]]:
        """The same as one graph of the device, launched at once."""
        held, values, graph = [each.clone() for each in batch], self.values(), torch.cuda.CUDAGraph()
        with torch.no_grad():
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                for _ in range(2):
                    run(values, *held)
            torch.cuda.current_stream().wait_stream(aside)
            with torch.cuda.graph(graph):
                sums = run(values, *held)

        def replayed(_: list[Tensor], *batch: Tensor) -> list[Tensor]:
            for kept, each in zip(held, batch, strict=True):
                kept.copy_(each)
            graph.replay()
            return sums

        return replayed


def _channels_last(given: Tensor) -> Tensor:
    """Pictures with the channels of a place side by side, which is how accelerators compute with them."""
    if given.dim() != 4 or not given.is_floating_point():
        return given
    return given.contiguous(memory_format=torch.channels_last)
