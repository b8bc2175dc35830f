"""One pass through a model that keeps what the gradients of each record are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import nn

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.forms import Form, merged
from sfumato.learn.torch.layers import RULES, Gradients, has_finite_gradient
from sfumato.learn.torch.precision import precision_of
from sfumato.learn.torch.unknown import gradients_of_unknown

__all__ = ["Recorder", "Use"]

Tensor: TypeAlias = torch.Tensor
Objective: TypeAlias = Callable[[Any, Tensor], Tensor]


class Use(NamedTuple):
    """One use of a layer in a pass.

    Attributes:
        layer: Which.
        name: Where it is in the model.
        given: What went in.
        edge: Where in the graph the gradient of what came out is found.
    """

    layer: nn.Module
    name: str
    given: tuple[Tensor, ...]
    edge: Any


class Recorder:
    """Watches a model's layers while it records, and leaves them alone otherwise.

    Only layers with parameters that are trained are watched: what is frozen costs nothing.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._uses: list[Use] | None = None
        self._records = 0
        self.names = _names(model)
        self.trained = [name for name, each in model.named_parameters() if each.requires_grad]
        self._handles = list[Any]()
        for name, layer in model.named_modules():
            _refuse(layer, name)
            if any(parameter.requires_grad for parameter in layer.parameters(recurse=False)):
                self._handles.append(layer.register_forward_pre_hook(self._before))
                self._handles.append(layer.register_forward_hook(self._after(name)))

    def gradients(self, given: Tensor, target: Tensor, objective: Objective) -> dict[str, Form]:
        """The gradients of each trained parameter, of each record, in the form in which they were found."""
        with self._recording(given.shape[0]) as uses:
            losses = objective(self.model(given), target)
            if losses.shape != (given.shape[0],):
                raise InvalidParameter(
                    "The objective must give one loss for each record: leave the mean to the step."
                )
            found = torch.autograd.grad(losses.sum(), [use.edge for use in uses], allow_unused=True)
        listed = dict[str, list[Form]]()
        with torch.no_grad():
            for use, gradient in zip(uses, found, strict=True):
                if gradient is not None:
                    for name, form in self._of(use, gradient).items():
                        listed.setdefault(self.names[f"{use.name}.{name}" if use.name else name], []).append(
                            form
                        )
            return {name: merged(listed[name]) for name in self.trained if name in listed}

    def remove(self) -> None:
        """Leaves the model as it was."""
        for handle in self._handles:
            handle.remove()

    def _of(self, use: Use, gradient: Tensor) -> Gradients:
        precision = precision_of(gradient.dtype, gradient.device)
        rule = RULES.get(type(use.layer))
        if rule is None:
            return gradients_of_unknown(use.layer, use.given, gradient)
        return rule(use.layer, use.given[0], gradient, precision)

    def _before(self, layer: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if self._uses is None:
            return None
        each = tuple(self._each(value) for value in given)
        return tuple(map(_finite, each)) if isinstance(layer, nn.Linear) else each

    def _each(self, value: Any) -> Any:
        """One for each record, where a layer is given something that is the same for all of them."""
        if not isinstance(value, torch.Tensor) or value.dim() == 0 or value.shape[0] == self._records:
            return value
        if value.shape[0] == 1:
            return value.expand(self._records, *value.shape[1:])
        return value.expand(self._records, *value.shape)

    def _after(self, name: str) -> Callable[[nn.Module, tuple[Any, ...], Any], Any]:
        def hook(layer: nn.Module, given: tuple[Any, ...], out: Any) -> Any:
            if self._uses is None:
                return None
            if not isinstance(out, torch.Tensor):
                raise InvalidParameter(f"{_told(layer, name)} gives something that is no tensor.")
            shown = out
            if not out.requires_grad:
                out = out.detach().requires_grad_()
                shown = out.clone()  # a leaf must not be changed in place
            if has_finite_gradient(layer):
                out.register_hook(torch.nan_to_num)
            edge = torch.autograd.graph.get_gradient_edge(out)
            kept = tuple(each.detach() if isinstance(each, torch.Tensor) else each for each in given)
            self._uses.append(Use(layer, name, kept, edge))
            return shown

        return hook

    @contextmanager
    def _recording(self, records: int) -> Iterator[list[Use]]:
        self._uses, self._records = list[Use](), records
        trained = [each for each in self.model.parameters() if each.requires_grad]
        for each in trained:
            each.requires_grad_(False)
        try:
            with torch.enable_grad():
                yield self._uses
        finally:
            self._uses = None
            for each in trained:
                each.requires_grad_(True)


def _finite(value: Any) -> Any:
    return _Finite.apply(value) if isinstance(value, torch.Tensor) else value


class _Finite(torch.autograd.Function):
    """Values that are finite: 0 for what is no number, the largest for what is infinite."""

    @staticmethod
    def forward(_: Any, value: Tensor) -> Tensor:
        return torch.nan_to_num(value)

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> Tensor:
        return gradient


def _names(model: nn.Module) -> dict[str, str]:
    """From each name of a parameter to the first name of the same one: tied parameters have several."""
    first = dict[int, str]()
    return {
        name: first.setdefault(id(parameter), name)
        for name, parameter in model.named_parameters(remove_duplicate=False)
    }


def _told(layer: nn.Module, name: str) -> str:
    return f"The layer {name or 'itself'!r} ({type(layer).__name__})"


def _refuse(layer: nn.Module, name: str) -> None:
    if isinstance(layer, nn.modules.batchnorm._BatchNorm):
        raise InvalidParameter(
            f"{_told(layer, name)} mixes the records of a batch, and none has a gradient of its own: "
            "put nn.GroupNorm or nn.LayerNorm in its place."
        )
    if isinstance(layer, nn.Embedding) and (
        layer.max_norm is not None or layer.scale_grad_by_freq or layer.sparse
    ):
        raise InvalidParameter(
            f"{_told(layer, name)} must have none of max_norm, scale_grad_by_freq and sparse."
        )
