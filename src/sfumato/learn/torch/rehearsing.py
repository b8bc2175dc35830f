"""What fails on made-up records, said in a sentence before anything is paid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import nn

from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.learn.torch.checking import kind_of, short
from sfumato.learn.torch.coins import Coins
from sfumato.learn.torch.forgetting import forgetting
from sfumato.learn.torch.surveying import made_up

__all__ = ["readable"]

Tensor: TypeAlias = torch.Tensor


@contextmanager
def readable(
    model: nn.Module, example: tuple[Tensor, Tensor], objective: Callable[[Any, Tensor], Any]
) -> Iterator[None]:
    """Says in a sentence why something fails on made-up records.

    Raises:
        InvalidParameter: naming what does not fit.

    Privacy:
        Claim: nothing of a private record is said. Condition: inside, only made-up records are computed with.
    """
    try:
        yield
    except Warning:
        raise
    except Exception as error:
        at_fault = error.__cause__ if isinstance(error, SfumatoError) else error
        why = None if at_fault is None else _why(model, example, objective)
        if why is not None:
            raise InvalidParameter(why) from at_fault
        if isinstance(error, SfumatoError):
            raise
        raise InvalidParameter(
            f"The gradients of each record cannot be computed: {_line(error)} Made-up records show it, and "
            "nothing was paid: leave out what fails, or put layers that are known in its place."
        ) from error


def _why(model: nn.Module, example: tuple[Tensor, Tensor], objective: Any) -> str | None:
    """What is wrong, by an ordinary pass over two made-up records."""
    first = next(model.parameters())
    given, target = (each.to(first.device) for each in made_up(example, 2))
    with Coins(first.device), forgetting(model, objective), torch.enable_grad():
        try:
            out = model(given)
        except Exception as failed:
            return (
                f"The model fails on inputs like those of the data, {_told(given)}: {_line(failed)} "
                f"{_kind_wanted(first, given)}Give inputs that it takes, or another model."
            )
        try:
            losses = objective(out, target)
        except Exception as failed:
            return (
                f"The objective fails on what the model gives, {_told(out)}, and targets like those of the "
                f"data, {_told(target)}: {_line(failed)} Give targets that fit, or "
                "objective=lambda out, target: …, which takes from both what it needs."
            )
    if not isinstance(losses, torch.Tensor):
        return f"The objective must give a tensor with one loss for each record, not {kind_of(losses)}."
    if losses.shape != (2,):
        return "The objective must give one loss for each record: leave the mean to the step."
    if not losses.requires_grad:
        return (
            "The losses have no gradient: the objective must compute them from what the model gives, by "
            "PyTorch and without detach(), and the model must use the parameters that are trained."
        )
    return None


def _kind_wanted(first: Tensor, given: Tensor) -> str:
    if not given.is_floating_point() or given.dtype == first.dtype:
        return ""
    wanted, other = (str(each.dtype).removeprefix("torch.") for each in (first, given))
    return f"It computes in {wanted}, and they are {other}: convert them with .to(torch.{wanted}). "


def _told(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return kind_of(value)
    shape = " × ".join(map(str, value.shape[1:])) or "1"
    return f"{str(value.dtype).removeprefix('torch.')} of {shape} a record"


def _line(error: Exception) -> str:
    """The first line of what an error says, as a sentence."""
    said = short((str(error).strip().splitlines() or [""])[0]).rstrip(".")
    return f"{type(error).__name__}{f', {said}' if said else ''}."
