"""Passes that fail: no record decides an error, neither in the model nor in the objective."""

from __future__ import annotations

from typing import TypeAlias

import torch

from sfumato.errors import EngineFailed
from sfumato.learn.torch.engine import Engine
from sfumato.learn.torch.records import Batch
from sfumato.learn.torch.surveying import made_up

__all__ = ["summed"]

Tensor: TypeAlias = torch.Tensor


def summed(engine: Engine, batch: Batch, example: tuple[Tensor, Tensor]) -> list[Tensor]:
    """The sums of a batch, where a record on which the model or the objective raises counts as none.

    Args:
        engine: What makes the sums.
        batch: Records.
        example: What a record is like.

    Raises:
        Exception: what made-up records raise, too.
        EngineFailed: if records raise together and none of them does alone.

    Privacy:
        Claim: whether a record is left out follows from that record alone, and what an error says of it is
        not shown. Proof: after a pass that fails each record passes among made-up ones; those that fail are
        replaced by made-up ones, which do not count. Condition: a model computes with each record by itself.
    """
    found = _tried(engine, *batch)
    if found is not None:
        return found
    blank = [
        value[0].to(like.device).expand(like.shape).contiguous()
        for value, like in zip(made_up(example, 1), batch[:2], strict=True)
    ]
    engine.sums(blank[0], blank[1], torch.zeros_like(batch.mask))
    keep = torch.tensor(
        [bool(counts) and _passes(engine, batch, blank, at) for at, counts in enumerate(batch.mask.tolist())],
        device=batch.mask.device,
    )
    given, target = (
        torch.where(keep.view(-1, *[1] * (value.dim() - 1)), value, other)
        for value, other in zip(batch[:2], blank, strict=True)
    )
    found = _tried(engine, given, target, batch.mask * keep)
    if found is None:
        raise EngineFailed(
            "The model or the objective fails on records together, and on none of them alone: it must "
            "compute with each record by itself."
        )
    return found


def _tried(engine: Engine, given: Tensor, target: Tensor, mask: Tensor) -> list[Tensor] | None:
    """The sums, unless something is raised: what that says may be of a record, and is forgotten."""
    try:
        return engine.sums(given, target, mask)
    except Exception:
        return None


def _passes(engine: Engine, batch: Batch, blank: list[Tensor], at: int) -> bool:
    """Whether one record among made-up ones raises nothing."""
    lines = [value.clone() for value in blank]
    for value, own in zip(lines, batch[:2], strict=True):
        value[at] = own[at]
    mask = torch.zeros_like(batch.mask)
    mask[at] = 1
    return _tried(engine, lines[0], lines[1], mask) is not None
