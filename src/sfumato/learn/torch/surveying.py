"""What is found out of a model before anything is paid: on made-up records, and each by itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import nn

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.forgetting import forgetting
from sfumato.learn.torch.forms import Form

__all__ = ["axis_of", "check_apart", "compare", "made_up", "still", "unmoved"]

Tensor: TypeAlias = torch.Tensor
_CLOSE = 0.05


@contextmanager
def still(model: nn.Module) -> Iterator[None]:
    """A model in which nothing is left to chance, and no weights are all zero, as those of new adapters are.

    Behind zeros nothing has a gradient, and a layer that is not watched would look like one that is.
    """
    modes = [(layer, layer.training) for layer in model.modules()]
    zeros = [each for each in model.parameters() if each.requires_grad and not each.detach().any()]
    model.eval()
    with torch.no_grad():
        for each in zeros:
            places = torch.arange(each.numel(), device=each.device).view(each.shape)
            each.copy_((places * 0.6180339887 % 1 - 0.5) / 8)
    try:
        yield
    finally:
        with torch.no_grad():
            for each in zeros:
                each.zero_()
        for layer, training in modes:
            layer.training = training


def made_up(example: tuple[Tensor, Tensor], records: int) -> tuple[Tensor, Tensor]:
    """Records that nobody has: numbers between 0 and 1, whole ones 0 or 1."""
    several = [each[None].expand(records, *each.shape) for each in example]
    places = [torch.arange(each.numel(), device=each.device).reshape(each.shape) for each in several]
    return tuple(
        ((place * 0.6180339887) % 1).to(each.dtype)
        if each.is_floating_point()
        else ((place * 5) % 7 % 2).to(each.dtype)
        for each, place in zip(several, places, strict=True)
    )


def axis_of(name: str, two: torch.Size | None, three: torch.Size) -> int | None:
    """Which axis of a layer's input or output is that of records, by two records and by three; none: shared.

    It is the one that grows with them; there may be several lines of it for each record.
    """
    if two == three:
        return None
    grows = [
        axis
        for axis, (few, more) in enumerate(zip(two or (), three, strict=False))
        if few * 3 == more * 2 and more % 3 == 0
    ]
    rest = [each for axis, each in enumerate(two or ()) if axis not in grows]
    if len(grows) == 1 and rest == [each for axis, each in enumerate(three) if axis not in grows]:
        return grows[0]
    raise InvalidParameter(
        f"The layer {name!r} is given something of a size that does not follow from the number of records."
    )


def compare(
    model: nn.Module,
    found: Mapping[str, Form],
    batch: tuple[Tensor, Tensor],
    objective: Callable[[Any, Tensor], Tensor],
) -> None:
    """Refuses gradients that are not those of each record by itself."""
    trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
    records = len(batch[0])
    sums, used = dict[str, list[Tensor]](), set[str]()
    for record in range(records):
        with torch.enable_grad(), forgetting(model):
            loss = objective(model(batch[0][record : record + 1]), batch[1][record : record + 1]).sum()
            alone: Sequence[Tensor | None] = [None] * len(trained)
            if loss.requires_grad:
                alone = torch.autograd.grad(loss, list(trained.values()), allow_unused=True)
        used |= {name for name, value in zip(trained, alone, strict=True) if value is not None}
        for name, value in zip(trained, alone, strict=True):
            sums.setdefault(name, []).append(torch.zeros_like(trained[name]) if value is None else value)
    idle = [name for name in trained if name not in used]
    if len(idle) == len(trained):
        raise InvalidParameter("The model uses none of the parameters that are trained: is an adapter off?")
    if idle:
        warnings.warn(
            f"The model does not use {', '.join(map(repr, idle[:5]))}: noise alone would move what has no "
            "gradient. Freeze it with requires_grad_(False).",
            stacklevel=2,
        )
    weights = torch.arange(1, records + 1, device=batch[0].device).double()
    largest = max(float(value.abs().max()) for values in sums.values() for value in values)
    for name, values in sums.items():
        wanted = sum(weight * value.double() for weight, value in zip(weights, values, strict=True))
        allowed = _CLOSE * float(wanted.abs().max()) + _noise(trained[name]) * (largest + 1e-30)
        if name not in found and wanted.any():
            raise InvalidParameter(
                f"The parameter {name!r} is used past the layer that has it, and would never be trained: "
                "freeze it, or call its layer."
            )
        if name in found and float((found[name].summed(weights) - wanted).abs().max()) > allowed:
            raise InvalidParameter(
                f"The gradients of {name!r} in a batch are not those of each record by itself: some layer "
                "mixes records, or is given them in an order of its own."
            )


def check_apart(
    model: nn.Module, batch: tuple[Tensor, Tensor], losses_of: Callable[[Tensor, Tensor], Tensor]
) -> None:
    """Refuses a model in whose present modes the loss of a record hangs on another one.

    What is left to chance, such as dropout, is the same in both passes.
    """
    losses = list[Tensor]()
    for values in (batch, tuple(map(_last_changed, batch))):
        torch.manual_seed(0)
        with forgetting(model):
            losses.append(losses_of(*values).detach().double())
    first, second = (each[:-1] for each in losses)
    off = max(_noise(each) for each in model.parameters())
    if (first - second).abs().max() > off * (first.abs().max() + 1e-30):
        raise InvalidParameter(
            "The loss of a record hangs on others of its batch: some layer mixes records. Put nn.GroupNorm "
            "or nn.LayerNorm in its place."
        )


def _last_changed(value: Tensor) -> Tensor:
    """The same, of another last record."""
    changed = value.clone()
    changed[-1] = 3 - 5 * value[-1] if value.is_floating_point() else (value[-1] == 0).to(value.dtype)
    return changed


@contextmanager
def unmoved(model: nn.Module) -> Iterator[None]:
    """Refuses a model that changes its own parameters in a pass: what is learned that way has no noise."""
    before = _sums(model)
    devices = {each.device for each in model.parameters() if each.device.type == "cuda"}
    with torch.random.fork_rng(devices), forgetting(model):
        yield
    if before != _sums(model):
        raise InvalidParameter(
            "The model changes its own parameters by what it is given, without noise: keep such values in "
            "buffers, which are put back after each step, or leave them out."
        )


def _sums(model: nn.Module) -> list[int]:
    """A number for each parameter that is another one for nearly all other values."""
    words = [each.detach().contiguous().view(-1).view(torch.uint8) for each in model.parameters()]
    return [int(part.sum(dtype=torch.int64)) for part in words]


def _noise(parameter: Tensor) -> float:
    """How far gradients are off, of the largest one: what products of this type leave."""
    return 1e-2 if parameter.dtype in (torch.bfloat16, torch.float16) else 1e-4
