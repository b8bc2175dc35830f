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
def forgetting(model: nn.Module, objective: Any = None, known: Kept | None = None) -> Iterator[Kept]:
    """Puts back what layers keep of what they are given: buffers, such as running means, and attributes.

    Args:
        model: Whose layers.
        objective: What is minimised, which may keep something, too.
        known: What they hold, if it was looked up a moment ago.

    Privacy:
        Claim: after it a model's layers and the objective hold what they held before, at every depth
        (`kept.Kept`). Conditions: they keep nothing elsewhere, change nothing that cannot be put back
        (`surveying.unmoved`), and change no weights (`weights.Weights`; `Built.check`, for layers and which
        parameters there are).
    """
    kept = Kept(model, objective) if known is None else known
    if known is not None:
        known.copy()
    try:
        yield kept
    finally:
        kept.put_back()
        kept.settle()


class Built:
    """How a model and an objective were when they were looked at: layers, parameters, and all they hold.

    Args:
        model: Which.
        look: Looks at the model in its present modes, and refuses what cannot be trained; it is told whether
            something else changed, so that nothing holds any more of what was found before.
        objective: What is minimised.

    Privacy:
        Claim: no step is run in a state in which the model and the objective were not looked at. Proof: what
        they hold is compared with what it was then, at the depth to which it is put back (`kept.Kept`); what
        passes themselves change has been put back. Conditions: those of `Kept`; large tensors, and those on
        accelerators, are not changed past PyTorch's count of changes, as by `.data`.
    """

    def __init__(self, model: nn.Module, look: Callable[[bool], None], objective: Any = None) -> None:
        self._model, self._held, self._look, self._objective = model, _parts(model), look, objective
        self._modes: tuple[bool | str, ...] | None = None
        self._kept: Kept | None = None
        self._fresh = False

    def check(self) -> None:
        """Refuses a model that was rebuilt since, and looks at one that is in other modes or holds others.

        Raises:
            InvalidParameter: if layers or parameters are others, or others are trained; if the model cannot
                be trained as it is now; if PyTorch would tell which records have gradients that are none.
        """
        if torch.is_anomaly_enabled():
            raise InvalidParameter(
                "The detection of anomalies warns of single records: turn it off with "
                "torch.autograd.set_detect_anomaly(False), and look for anomalies on made-up records."
            )
        now = _parts(self._model)
        if len(now) != len(self._held) or any(
            one is not other for one, other in zip(now, self._held, strict=True)
        ):
            raise InvalidParameter(
                "The model has other layers or parameters than when the run was made, or others are trained: "
                "make the run anew, for the steps that are left."
            )
        modes, anew = modes_of(self._model), self._kept is not None and self._kept.changed()
        if anew or modes != self._modes:
            self._look(anew)
            self._modes, self._kept = modes, Kept(self._model, self._objective, copies=False)
        self._fresh = True

    def taken(self) -> Kept | None:
        """What they hold, once after each check: passes that follow need not look it up again."""
        fresh, self._fresh = self._fresh, False
        return self._kept if fresh else None

    def settle(self) -> None:
        """After passes: what they changed was put back, and does not count as a change."""
        if self._kept is not None:
            self._kept.settle()


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
