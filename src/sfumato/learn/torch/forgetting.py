"""What a pass leaves in a model beside gradients: none of it has noise, and all of it is put back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.utils.parametrize import ParametrizationList

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.kept import Kept

__all__ = ["Built", "check_model", "check_optimizer", "forgetting", "modes_of"]


@contextmanager
def forgetting(model: nn.Module) -> Iterator[None]:
    """Puts back what layers keep of what they are given: buffers, such as running means, and attributes.

    Privacy:
        Claim: after it a model's layers hold what they held before, at every depth (`kept.Kept`). Conditions:
        layers keep nothing elsewhere, change nothing that cannot be put back (`surveying.unmoved`), and
        change no weights (`Built.check`, for layers and which parameters there are).
    """
    kept = Kept(model)
    try:
        yield
    finally:
        kept.put_back()


class Built:
    """How a model was built when it was looked at: its layers, its parameters, and which are trained.

    Args:
        model: Which.
        look: Looks at the model in its present modes, and refuses what cannot be trained.
    """

    def __init__(self, model: nn.Module, look: Callable[[], None]) -> None:
        self._model, self._held, self._look = model, _parts(model), look
        self._modes: tuple[bool | str, ...] | None = None

    def check(self) -> None:
        """Refuses a model that was changed since, and looks at one that is in other modes.

        Raises:
            InvalidParameter: if layers or parameters are others, or others are trained; if the model cannot
                be trained in its modes.
        """
        now = _parts(self._model)
        if len(now) != len(self._held) or any(
            one is not other for one, other in zip(now, self._held, strict=True)
        ):
            raise InvalidParameter(
                "The model has other layers or parameters than when the run was made, or others are trained: "
                "make the run anew, for the steps that are left."
            )
        modes = modes_of(self._model)
        if modes != self._modes:
            self._look()
            self._modes = modes


def modes_of(model: nn.Module) -> tuple[bool | str, ...]:
    """What is on and what is off: whether each layer trains, and every other switch or word that it has."""
    return tuple(
        value
        for layer in model.modules()
        for value in vars(layer).values()
        if value is True or value is False or type(value) is str
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
