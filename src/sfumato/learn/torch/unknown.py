"""Layers that no rule knows: each record by itself, by `vmap`; slower, and exact by construction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.func import functional_call, grad, vjp, vmap

from sfumato.learn.torch.forms import Form, Stored

__all__ = ["gradients_of_unknown", "one_by_one"]

Tensor: TypeAlias = torch.Tensor


def gradients_of_unknown(layer: nn.Module, given: tuple[Any, ...], gradient: Tensor) -> dict[str, Form]:
    """The gradients of a layer's own parameters, given what went in and the gradient of what came out."""
    own = {name: each.detach() for name, each in layer.named_parameters(recurse=False)}
    tensors = [each for each in given if isinstance(each, torch.Tensor)]

    def of_one(output: Tensor, *inputs: Tensor) -> dict[str, Tensor]:
        parts = iter(inputs)
        whole = [next(parts)[None] if isinstance(each, torch.Tensor) else each for each in given]

        def run(parameters: dict[str, Tensor]) -> Tensor:
            result: Tensor = functional_call(layer, parameters, tuple(whole))
            return result[0]

        _, back = vjp(run, own)
        return back(output)[0]  # type: ignore[no-any-return]

    made = vmap(of_one)(gradient, *tensors)
    return {name: Stored(each) for name, each in made.items()}


def one_by_one(
    model: nn.Module, given: Tensor, target: Tensor, objective: Callable[[Any, Tensor], Tensor]
) -> dict[str, Tensor]:
    """The gradient of each record by itself: what every faster way is checked against."""
    trained = {name: each.detach() for name, each in model.named_parameters() if each.requires_grad}

    def of_one(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return objective(functional_call(model, parameters, (x[None],)), y[None])[0]

    made: dict[str, Tensor] = vmap(grad(of_one), in_dims=(None, 0, 0))(trained, given, target)
    return made
