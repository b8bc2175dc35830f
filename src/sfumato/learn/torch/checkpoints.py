"""Checkpoints: what is wrong with one is said before anything is loaded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.checking import kind_of

__all__ = ["check_keys", "check_parts", "check_taken"]

_OURS = "Give what run.state_dict() gave."


def check_keys(state: Any, names: tuple[str, ...]) -> None:
    """Refuses what is no checkpoint.

    Raises:
        InvalidParameter: naming what it lacks.
    """
    if not isinstance(state, Mapping):
        raise InvalidParameter(f"A checkpoint is a dictionary, not {kind_of(state)}. {_OURS}")
    missing = [name for name in names if name not in state]
    if missing:
        raise InvalidParameter(f"This is no checkpoint of a run: it has no {_listed(missing)}. {_OURS}")


def check_taken(taken: Any, steps: int) -> None:
    """Refuses a number of steps that no run of so many can have taken."""
    if isinstance(taken, bool) or not isinstance(taken, int) or not 0 <= taken <= steps:
        raise InvalidParameter(
            f"'taken' of a checkpoint must be a whole number between 0 and the run's {steps:,} steps. {_OURS}"
        )


def check_parts(
    model: nn.Module, optimizer: torch.optim.Optimizer, state: Mapping[str, Any], *, clip: bool
) -> None:
    """Refuses the state of another model or optimizer; both stay as they are, whatever is found.

    Args:
        model: What is trained.
        optimizer: Its optimizer.
        state: A checkpoint.
        clip: Whether the clip is learned.

    Raises:
        InvalidParameter: naming what does not fit.
    """
    check_keys(state, ("model", "optimizer", *(("clip",) if clip else ())))
    if clip and not (isinstance(state["clip"], int | float) and 0 < state["clip"] < math.inf):
        raise InvalidParameter(f"'clip' of a checkpoint must be a number above 0. {_OURS}")
    _check_model(model.state_dict(), state["model"])
    _check_optimizer(optimizer, state["optimizer"])


def _check_model(here: Mapping[str, Any], there: Any) -> None:
    if not isinstance(there, Mapping):
        raise InvalidParameter(f"'model' of a checkpoint is a dictionary, not {kind_of(there)}. {_OURS}")
    lost, more = (
        [each for each in one if each not in other] for one, other in ((here, there), (there, here))
    )
    wrong = [f"lacks {_listed(lost)}"] if lost else []
    wrong += [f"has {_listed(more)} besides"] if more else []
    for name, value in here.items():
        if name not in there or not isinstance(value, torch.Tensor):
            continue
        kept = there[name]
        if not isinstance(kept, torch.Tensor) or kept.is_meta or kept.layout != value.layout:
            wrong.append(f"has no values for {name!r}")
        elif kept.shape != value.shape or kept.is_complex() != value.is_complex():
            wrong.append(f"has {name!r} of shape {tuple(kept.shape)} and not {tuple(value.shape)}")
    if wrong:
        raise InvalidParameter(
            f"This checkpoint is of another model: it {'; it '.join(wrong[:3])}. Build the model that it was "
            "made of."
        )


def _check_optimizer(optimizer: torch.optim.Optimizer, there: Any) -> None:
    """By loading it, and taking that back."""
    held = optimizer.state, optimizer.param_groups
    names = [set(group) for group in optimizer.param_groups]
    wrong = "is no state of an optimizer"
    try:
        optimizer.load_state_dict(there)
        wrong = _apart(optimizer, names)
    except Exception:  # what it says is of no use: the sentence below names what to do
        pass
    finally:
        optimizer.state, optimizer.param_groups = held
    if wrong:
        raise InvalidParameter(
            f"'optimizer' of this checkpoint {wrong}: make the optimizer that it was made with, "
            f"here a {type(optimizer).__name__} of the same parameters."
        )


def _apart(optimizer: torch.optim.Optimizer, names: list[set[str]]) -> str:
    """What a state has too few of, or in another shape, now that it is loaded."""
    for group, before in zip(optimizer.param_groups, names, strict=True):
        if missing := sorted(before - set(group)):
            return f"has no {_listed(missing)}"
    ours = type(optimizer).__module__.startswith(("torch.optim", "sfumato."))
    for parameter, held in optimizer.state.items() if ours else ():
        for name, value in held.items():
            if isinstance(value, torch.Tensor) and not _fits(value, parameter):
                return f"has {name!r} of shape {tuple(value.shape)} for numbers of {tuple(parameter.shape)}"
    return ""


def _fits(value: torch.Tensor, parameter: torch.Tensor) -> bool:
    """Whether it is one number for each of a parameter's, or for each of its lines."""
    if value.dim() > parameter.dim():
        return bool(value.numel() == 1)
    pairs = zip(reversed(value.shape), reversed(parameter.shape), strict=False)
    return all(one in (1, other) for one, other in pairs)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(repr, names[:3])) + more
