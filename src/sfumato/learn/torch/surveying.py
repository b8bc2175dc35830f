"""What is found out of a model before anything is paid: on made-up records, and each by itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import nn

from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.learn.torch.forgetting import forgetting
from sfumato.learn.torch.forms import Form
from sfumato.learn.torch.kept import Kept

__all__ = ["compare", "made_up", "others", "said", "still", "unmoved"]

Tensor: TypeAlias = torch.Tensor
Gradients: TypeAlias = Callable[[Tensor, Tensor], Mapping[str, Form]]
_CLOSE = 0.05
_MANY = 31  # values of whole numbers


@contextmanager
def said() -> Iterator[None]:
    """What a model or an objective raises on made-up records, in a sentence.

    Raises:
        InvalidParameter: for whatever is raised and is not said yet.
    """
    try:
        yield
    except (SfumatoError, Warning):
        raise
    except Exception as error:
        raise InvalidParameter(
            f"The model or the objective fails on made-up records: {type(error).__name__}: {error}"
        ) from error


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


def others(model: nn.Module, example: tuple[Tensor, Tensor], records: int) -> list[tuple[Tensor, Tensor]]:
    """More records that nobody has: with both signs and zeros at the end, in each another number of them.

    Whole numbers of many values only where one that a model cannot take raises, and ends no process.
    """
    given, target = made_up(example, records)
    lines = given.reshape(records, -1)
    signed = lines * 5 - 2 if given.is_floating_point() else lines
    places = torch.arange(lines.shape[1], device=given.device)
    lengths = torch.arange(records, 0, -1, device=given.device).roll(1)[
        :, None
    ]  # sorted either way they move
    kept = places[None] * (records + 1) < lines.shape[1] * lengths
    found = [(torch.where(kept, signed, torch.zeros_like(signed)).view_as(given), target)]
    if not given.is_floating_point() and given.dtype != torch.bool and given.device.type == "cpu":
        tables = [each for each in model.modules() if isinstance(each, nn.Embedding)]
        most = max((each.num_embeddings for each in tables), default=_MANY)
        named = [each.padding_idx for each in tables if each.padding_idx is not None]
        values = torch.tensor([*range(min(most, _MANY)), *named, most - 1])
        whole = values[(torch.arange(given.numel()) * 7) % len(values)].view(given.shape).to(given.dtype)
        found.append((whole, target))
    return found


def compare(
    model: nn.Module,
    gradients: Gradients,
    batches: Sequence[tuple[Tensor, Tensor]],
    objective: Callable[[Any, Tensor], Tensor],
) -> None:
    """Refuses gradients that are not those of each record by itself."""
    trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
    used = set[str]()
    for given, target in batches:
        with forgetting(model):
            found = gradients(given, target)
        sums = {name: list[Tensor]() for name in trained}
        for record in range(len(given)):
            with torch.enable_grad(), forgetting(model):
                loss = objective(model(given[record : record + 1]), target[record : record + 1]).sum()
                alone: Sequence[Tensor | None] = [None] * len(trained)
                if loss.requires_grad:
                    alone = torch.autograd.grad(loss, list(trained.values()), allow_unused=True)
            for name, value in zip(trained, alone, strict=True):
                used |= set() if value is None else {name}
                sums[name].append(torch.zeros_like(trained[name]) if value is None else value)
        _check_alike(trained, found, sums)
    idle = [name for name in trained if name not in used]
    if len(idle) == len(trained):
        raise InvalidParameter("The model uses none of the parameters that are trained: is an adapter off?")
    if idle:
        warnings.warn(
            f"The model does not use {', '.join(map(repr, idle[:5]))}: noise alone would move what has no "
            "gradient. Freeze it with requires_grad_(False).",
            stacklevel=2,
        )


def _check_alike(
    trained: Mapping[str, Tensor], found: Mapping[str, Form], sums: Mapping[str, Sequence[Tensor]]
) -> None:
    """Refuses gradients of a batch that are not the ones that records have by themselves."""
    largest = max(float(value.abs().max()) for values in sums.values() for value in values)
    for name, values in sums.items():
        weights = torch.arange(1, len(values) + 1, device=values[0].device).double()
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


@contextmanager
def unmoved(model: nn.Module, objective: Any = None) -> Iterator[None]:
    """Refuses a model that changes in a pass what is not put back: what is kept that way has no noise.

    These are its own parameters, and what attributes hold that nobody can look into.
    """
    both = nn.ModuleList(each for each in (model, objective) if isinstance(each, nn.Module))
    before, kept = _sums(both), Kept(model, objective)
    printed = kept.printed()
    devices = {each.device for each in model.parameters() if each.device.type == "cuda"}
    with torch.random.fork_rng(devices), forgetting(model, objective):
        yield
    if before != _sums(both):
        raise InvalidParameter(
            "The model changes its own parameters by what it is given, without noise: keep such values in "
            "buffers, which are put back after each step, or leave them out."
        )
    changed = [
        value for value, one, two in zip(kept.sealed, printed, kept.printed(), strict=True) if one != two
    ]
    if changed:
        raise InvalidParameter(
            f"A layer keeps something of what it is given in an attribute ({type(changed[0]).__name__}) that "
            "cannot be put back after a step: keep it in a buffer, a list or a dictionary, or leave it out."
        )


def _sums(model: nn.Module) -> list[int]:
    """A number for each parameter that is another one for nearly all other values."""
    words = [each.detach().contiguous().view(-1).view(torch.uint8) for each in model.parameters()]
    return [int(part.sum(dtype=torch.int64)) for part in words]


def _noise(parameter: Tensor) -> float:
    """How far gradients are off, of the largest one: what products of this type leave."""
    return 1e-2 if parameter.dtype in (torch.bfloat16, torch.float16) else 1e-4
