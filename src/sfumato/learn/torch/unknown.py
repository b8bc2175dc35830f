"""Layers that no rule knows: each record by itself, by `vmap`; slower, and exact by construction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import nn
from torch.func import functional_call, grad, vjp, vmap
from torch.utils._pytree import tree_flatten

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.forms import Form, Stored
from sfumato.learn.torch.tape import Tape

__all__ = ["Call", "gradients_of_unknown", "one_by_one"]

Tensor: TypeAlias = torch.Tensor


class Call(NamedTuple):
    """How a layer was called.

    Attributes:
        given: What went in; at the end what went in by name.
        names: Of what went in by name.
        axes: Which axis of each is that of records.
        shown: Which parts of what came out have gradients.
        shown_axes: Which axis of these is that of records.
    """

    given: tuple[Any, ...]
    names: tuple[str, ...]
    axes: tuple[int, ...]
    shown: tuple[int, ...]
    shown_axes: tuple[int, ...]


def gradients_of_unknown(
    layer: nn.Module, call: Call, gradients: Sequence[Tensor], tape: Tape
) -> dict[str, Form]:
    """The gradients of a layer's own parameters, given what went in and the gradients of what came out."""
    own = {name: each.detach() for name, each in layer.named_parameters(recurse=False)}
    seats = [at for at, each in enumerate(call.given) if isinstance(each, torch.Tensor) and each.dim()]
    tensors = [tape.first(call.given[at], call.axes[at]) for at in seats]
    ends = [tape.first(each, axis) for each, axis in zip(gradients, call.shown_axes, strict=True)]
    several = [call.given[at].shape[call.axes[at]] != tape.records for at in seats]
    several_out = [
        each.shape[axis] != tape.records for each, axis in zip(gradients, call.shown_axes, strict=True)
    ]

    def of_one(outs: list[Tensor], inputs: list[Tensor]) -> dict[str, Tensor]:
        whole = list(call.given)
        for at, value, many in zip(seats, inputs, several, strict=True):
            whole[at] = _back(value, call.axes[at], many)
        places = len(whole) - len(call.names)
        named = dict(zip(call.names, whole[places:], strict=True))

        def run(parameters: dict[str, Tensor]) -> list[Tensor]:
            flat, _ = tree_flatten(functional_call(layer, parameters, tuple(whole[:places]), named))
            return [flat[at] for at in call.shown]

        _, back = vjp(run, own)
        wanted = [_back(*each) for each in zip(outs, call.shown_axes, several_out, strict=True)]
        return back(wanted)[0]  # type: ignore[no-any-return]

    try:
        made = vmap(of_one)(ends, tensors)
    except RuntimeError as error:
        raise InvalidParameter(
            f"{type(layer).__name__} cannot be run for each record by itself (vmap): freeze it, or put "
            "layers that are known in its place."
        ) from error
    return {name: Stored(each) for name, each in made.items()}


def _back(value: Tensor, axis: int, several: bool) -> Tensor:
    """One record as the layer was given it: its axis is where it was."""
    return value.movedim(0, axis) if several else value.unsqueeze(axis)


def one_by_one(
    model: nn.Module, given: Tensor, target: Tensor, objective: Callable[[Any, Tensor], Tensor]
) -> dict[str, Tensor]:
    """The gradient of each record by itself: what every faster way is checked against."""
    trained = {name: each.detach() for name, each in model.named_parameters() if each.requires_grad}

    def of_one(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return objective(functional_call(model, parameters, (x[None],)), y[None])[0]

    made: dict[str, Tensor] = vmap(grad(of_one), in_dims=(None, 0, 0))(trained, given, target)
    return made
