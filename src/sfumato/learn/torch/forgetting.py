"""What a pass leaves in a model beside gradients: none of it has noise, and all of it is put back."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn.utils.parametrize import ParametrizationList

from sfumato.errors import InvalidParameter

__all__ = ["Built", "check_model", "check_optimizer", "forgetting"]

Tensor: TypeAlias = torch.Tensor
_OWN = frozenset(vars(nn.Module()))  # what every module has


@contextmanager
def forgetting(model: nn.Module) -> Iterator[None]:
    """Puts back what layers keep of what they are given: buffers, such as running means, and attributes.

    Privacy:
        Claim: after it a model's layers hold what they held before, in buffers, in attributes, and in lists,
        dictionaries and sets that are attributes. Condition: layers keep nothing elsewhere, and change no
        weights (`Built.check`, for layers and which parameters there are).
    """
    layers = [(layer, dict(vars(layer)), dict(layer._buffers)) for layer in model.modules()]
    values = [(value, value.clone()) for *_, held in layers for value in held.values() if value is not None]
    several = [
        (value, value.copy())
        for _, held, _ in layers
        for name, value in held.items()
        if name not in _OWN and type(value) in (list, dict, set)
    ]
    try:
        yield
    finally:
        for layer, held, buffers in layers:
            _put_back(vars(layer), held)
            _put_back(layer._buffers, buffers)
        for value, before in several:
            value.clear()
            (value.extend if isinstance(value, list) else value.update)(before)
        with torch.no_grad():
            for value, before in values:
                value.copy_(before)


def _put_back(now: dict[str, Any], before: dict[str, Any]) -> None:
    for name in now.keys() - before.keys():
        del now[name]
    now.update(before)


class Built:
    """How a model was built when it was looked at: its layers, its parameters, and which are trained."""

    def __init__(self, model: nn.Module) -> None:
        self._model, self._held = model, _parts(model)

    def check(self) -> None:
        """Refuses a model that was changed since.

        Raises:
            InvalidParameter: if layers or parameters are others, or others are trained.
        """
        now = _parts(self._model)
        if len(now) != len(self._held) or any(
            one is not other for one, other in zip(now, self._held, strict=True)
        ):
            raise InvalidParameter(
                "The model has other layers or parameters than when the run was made, or others are trained: "
                "make the run anew, for the steps that are left."
            )


def _parts(model: nn.Module) -> list[Any]:
    parts: list[Any] = list(model.modules())
    for each in model.parameters():
        parts += (each, each.requires_grad)
    return parts


def check_model(model: nn.Module) -> None:
    """Refuses models of which it is not known what is trained.

    Raises:
        InvalidParameter: if nothing is, or some parameters have no values yet, or are made of others.
    """
    parameters = list(model.parameters())
    if any(nn.parameter.is_lazy(each) for each in parameters):
        raise InvalidParameter(
            "Lazy layers have no parameters before they are called: call the model once on made-up records."
        )
    if not any(each.requires_grad for each in parameters):
        raise InvalidParameter(
            "The model has no parameters that are trained: requires_grad_() says which are."
        )
    for name, layer in model.named_modules():
        if isinstance(layer, ParametrizationList) and any(each.requires_grad for each in layer.parameters()):
            raise InvalidParameter(
                f"The weights of {name.split('.parametrizations')[0]!r} are made of others, such as by "
                "weight_norm: take that off with torch.nn.utils.parametrize.remove_parametrizations."
            )


def check_optimizer(optimizer: torch.optim.Optimizer) -> None:
    """Refuses optimizers that a noisy gradient is not enough for.

    Raises:
        InvalidParameter: for one that needs a closure, or sparse gradients.
    """
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise InvalidParameter(
            f"{type(optimizer).__name__} asks for losses and gradients several times a step, each of which "
            "would have to be paid: take SGD or Adam."
        )
    if isinstance(optimizer, torch.optim.SparseAdam):
        raise InvalidParameter("Noise leaves no gradient sparse: take Adam in place of SparseAdam.")
