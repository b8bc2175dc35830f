"""What is refused before anything is paid: arguments of another kind, each with what to give instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import torch
from torch import nn

from sfumato.errors import InvalidParameter

__all__ = [
    "Placed",
    "as_rate",
    "check_amp",
    "check_data",
    "check_example",
    "check_kinds",
    "check_pair",
    "kind_of",
    "short",
]

Tensor: TypeAlias = torch.Tensor
_SHORT = (None, torch.bfloat16, torch.float16, torch.float32)
_LONGEST = 300


def check_kinds(model: Any, optimizer: Any, objective: Any) -> None:
    """Refuses what is no model, optimizer or objective.

    Raises:
        InvalidParameter: naming what to give.
    """
    if not isinstance(model, nn.Module):
        raise InvalidParameter(
            f"model must be a torch.nn.Module, not {kind_of(model)}: put functions into a module whose "
            "parameters are trained."
        )
    if any(each.is_meta for each in (*model.parameters(), *model.buffers())):
        raise InvalidParameter(
            "The model is on the device 'meta' and has no values: call model.to_empty(device='cpu') and load "
            "or initialise its weights first."
        )
    for name, each in model.named_parameters():
        if each.is_complex() and each.requires_grad:
            raise InvalidParameter(
                f"The parameter {name!r} is complex, and noise would reach its real part alone: keep "
                "torch.view_as_real of it as the parameter, and call torch.view_as_complex where it is used."
            )
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InvalidParameter(
            "optimizer must be one of PyTorch's, such as torch.optim.SGD(model.parameters(), lr=0.1), not "
            f"{kind_of(optimizer)}."
        )
    if not callable(objective):
        raise InvalidParameter(
            "objective must be a function from outputs and targets to a loss for each record, such as "
            f"sfumato.learn.torch.squared_error, not {kind_of(objective)}."
        )


def check_amp(amp: Any) -> None:
    """Refuses types that layers cannot compute in."""
    if not any(amp is each for each in _SHORT):
        raise InvalidParameter(f"amp must be torch.bfloat16, torch.float16 or None, not {short(repr(amp))}.")


def check_data(data: Any, name: str = "data", records: str = "such pairs") -> None:
    """Refuses what does not give records by number; nothing of it is read.

    Raises:
        InvalidParameter: naming what to give.
    """
    by_number = hasattr(data, "__len__") and hasattr(data, "__getitem__")
    if not by_number or isinstance(data, Mapping | str | bytes):
        pair = " a pair of tensors (inputs, targets), or" if name == "data" else ""
        raise InvalidParameter(
            f"{name} must be{pair} a data set that has a length and gives {records} by number, not "
            f"{kind_of(data)}."
        )


def check_pair(inputs: Tensor, targets: Tensor) -> None:
    """Refuses tensors that have no line for each record."""
    for name, each in (("inputs", inputs), ("targets", targets)):
        if not each.dim():
            raise InvalidParameter(
                f"The {name} are a single number: give a tensor with one line for each record."
            )
        if each.is_nested or each.layout != torch.strided:
            raise InvalidParameter(
                f"The {name} are not stored in full: give a dense tensor, such as by to_dense()."
            )
    if len(inputs) != len(targets):
        raise InvalidParameter("Inputs and targets must be as many.")


def check_example(example: Any) -> None:
    """Refuses what is no made-up record."""
    pair = isinstance(example, tuple | list) and len(example) == 2
    if not pair or not all(isinstance(each, torch.Tensor) for each in example):
        raise InvalidParameter(
            "example must be (input, target): one made-up record, as two tensors of the shapes and types "
            f"that records have, not {kind_of(example)}{_kinds_in(example)}."
        )


def _kinds_in(example: Any) -> str:
    if not isinstance(example, tuple | list):
        return ""
    return f" of {', '.join(type(each).__name__ for each in example[:3]) or 'nothing'}"


def as_rate(value: Any, name: str, *, least: float = 0.0, most: float = float("inf")) -> float:
    """A number above `least` and below `most`."""
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise InvalidParameter(f"{name} must be a number, such as 0.1, not {kind_of(value)}.")
    if not least < (number := float(value)) < most:
        end = "" if most == float("inf") else f" and below {most:g}"
        raise InvalidParameter(f"{name} must be a finite number above {least:g}{end}.")
    return number


def short(text: str) -> str:
    """As much of a text as a sentence may quote."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def kind_of(value: Any) -> str:
    """What a value is, with its article."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


class Placed:
    """Where a model's numbers are and of which type, when it was looked at."""

    def __init__(self, model: nn.Module) -> None:
        self._model, self._held = model, _places(model)

    def check(self) -> None:
        """Refuses a model that was moved or converted since.

        Raises:
            InvalidParameter: naming what it was and what it is.
        """
        now = _places(self._model)
        for name, before in self._held.items():
            if now.get(name, before) != before:
                was, is_now = (" on ".join(map(str, each[:2])) for each in (before, now[name]))
                raise InvalidParameter(
                    f"{name!r} of the model was {was} when the run was made, and is {is_now} now: convert it "
                    "back, or make the run anew, for the steps that are left."
                )


def _places(model: nn.Module) -> dict[str, tuple[Any, ...]]:
    places: dict[str, tuple[Any, ...]] = {
        name: (each.dtype, each.device, each.shape) for name, each in model.named_parameters()
    }
    return places | {name: (each.dtype, each.device) for name, each in model.named_buffers()}
