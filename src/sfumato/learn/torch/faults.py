"""Passes that fail: no record decides an error, neither in the model nor in the objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import nn

from sfumato.errors import EngineFailed
from sfumato.learn.torch.engine import Engine
from sfumato.learn.torch.forgetting import forgetting
from sfumato.learn.torch.records import Batch
from sfumato.learn.torch.surveying import made_up

__all__ = ["summed"]

Tensor: TypeAlias = torch.Tensor
Sums: TypeAlias = Callable[[Tensor, Tensor, Tensor], list[Tensor]]


def summed(engine: Engine, batch: Batch, example: tuple[Tensor, Tensor], model: nn.Module) -> list[Tensor]:
    """The sums of a batch, where a record on which the model or the objective raises counts as none.

    Args:
        engine: What makes the sums.
        batch: Records.
        example: What a record is like.
        model: Whose layers forget each pass, whether it fails or not.

    Raises:
        Exception: what made-up records raise, too.
        EngineFailed: if records raise together and none of them does alone.

    Privacy:
        Claim: whether a record is left out follows from that record alone, and what an error says of it is
        not shown. Proof: after a pass that fails each record passes among made-up ones; those that fail are
        replaced by made-up ones, which do not count. No pass leaves anything in the model for the next one.
        Condition: a model computes with each record by itself, and tosses the same coins in all of these
        passes (`coins.Once`).
    """

    def sums(given: Tensor, target: Tensor, mask: Tensor) -> list[Tensor]:
        with forgetting(model):
            return engine.sums(given, target, mask)

    found = _tried(sums, *batch)
    if found is not None:
        return found
    blank = [
        value[0].to(like.device).expand(like.shape).contiguous()
        for value, like in zip(made_up(example, 1), batch[:2], strict=True)
    ]
    sums(blank[0], blank[1], torch.zeros_like(batch.mask))
    keep = torch.tensor(
        [bool(counts) and _passes(sums, batch, blank, at) for at, counts in enumerate(batch.mask.tolist())],
        device=batch.mask.device,
    )
    given, target = (
        torch.where(keep.view(-1, *[1] * (value.dim() - 1)), value, other)
        for value, other in zip(batch[:2], blank, strict=True)
    )
    found = _tried(sums, given, target, batch.mask * keep)
    if found is None:
        raise EngineFailed(
            "The model or the objective fails on records together, and on none of them alone: it must "
            "compute with each record by itself."
        )
    return found


def _tried(sums: Sums, given: Tensor, target: Tensor, mask: Tensor) -> list[Tensor] | None:
    """The sums, unless something is raised: what that says may be of a record, and is forgotten."""
    try:
        return sums(given, target, mask)
    except Exception:
        return None


def _passes(sums: Sums, batch: Batch, blank: list[Tensor], at: int) -> bool:
    """Whether one record among made-up ones raises nothing."""
    lines = [value.clone() for value in blank]
    for value, own in zip(lines, batch[:2], strict=True):
        value[at] = own[at]
    mask = torch.zeros_like(batch.mask)
    mask[at] = 1
    return _tried(sums, lines[0], lines[1], mask) is not None
