"""Passes that fail: no record decides an error or a warning, neither in the model nor in the objective."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

from sfumato.learn.torch.engine import Engine
from sfumato.learn.torch.forgetting import forgetting
from sfumato.learn.torch.kept import Kept
from sfumato.learn.torch.records import Batch
from sfumato.learn.torch.surveying import made_up
from sfumato.learn.torch.weights import Weights

__all__ = ["bare", "quiet", "summed"]

Tensor: TypeAlias = torch.Tensor
Sums: TypeAlias = Callable[[Tensor, Tensor, Tensor], list[Tensor]]


@contextmanager
def quiet() -> Iterator[None]:
    """No warning: what a data set, a model or numpy warns of may be one record's doing."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def bare(error: BaseException) -> BaseException:
    """An error with nothing of where it was raised, nor of others before it: frames there hold records."""
    left, seen = [error], set[int]()
    while left:
        each = left.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        inner = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
        left += [other for other in (each.__cause__, each.__context__, *inner) if other is not None]
        each.__traceback__ = each.__cause__ = each.__context__ = None
    return error


def summed(
    engine: Engine,
    batch: Batch,
    example: tuple[Tensor, Tensor],
    model: nn.Module,
    objective: Any = None,
    known: Kept | None = None,
) -> list[Tensor]:
    """The sums of a batch, where a record on which the model or the objective raises counts as none.

    Args:
        engine: What makes the sums.
        batch: Records.
        example: What a record is like.
        model: Whose layers forget each pass, whether it fails or not.
        objective: What forgets each pass, too.
        known: What both hold, if it was looked up a moment ago.

    Raises:
        Exception: what made-up records raise, too.

    Privacy:
        Claim: whether a record is left out follows from that record alone, and nothing is raised for what
        private records do. Proof: after a pass that fails, or that changes a weight (`Weights`), each record
        passes among made-up ones; those that fail are replaced by made-up ones, which do not count. If the
        others still fail together, the sums of their own passes are added up: each of these follows from one
        record. No pass leaves anything in the model or the objective for the next one. Condition: a model
        computes with each record by itself, and tosses the same coins in all of these passes (`coins.Once`).
        One that fails on records together only does not: by what the others do a record then changes how
        sums are rounded, by half a step of the grid for each record of the pass.
    """
    weights = Weights(*(() if engine.compiled else (model, objective)))

    def sums(given: Tensor, target: Tensor, mask: Tensor) -> list[Tensor]:
        with forgetting(model, objective, known) as kept, weights.taken_back(kept.weights):
            return engine.sums(given, target, mask)

    found = _tried(sums, *batch)
    if found is not None:
        return found
    blank = [
        value[0].to(like.device).expand(like.shape).contiguous()
        for value, like in zip(made_up(example, 1), batch[:2], strict=True)
    ]
    total = [each.clone() for each in sums(blank[0], blank[1], torch.zeros_like(batch.mask))]
    keep = torch.zeros_like(batch.mask, dtype=torch.bool)
    for at, counts in enumerate(batch.mask.tolist()):
        alone = _alone(sums, batch, blank, at) if counts else None
        if alone is not None:
            keep[at], total = True, torch._foreach_add(total, alone)
    given, target = (
        torch.where(keep.view(-1, *[1] * (value.dim() - 1)), value, other)
        for value, other in zip(batch[:2], blank, strict=True)
    )
    found = _tried(sums, given, target, batch.mask * keep)
    return total if found is None else found


def _tried(sums: Sums, given: Tensor, target: Tensor, mask: Tensor) -> list[Tensor] | None:
    """The sums, unless something is raised: what that says may be of a record, and is forgotten."""
    try:
        return sums(given, target, mask)
    except Exception:
        return None


def _alone(sums: Sums, batch: Batch, blank: list[Tensor], at: int) -> list[Tensor] | None:
    """The sums of one record among made-up ones, unless something is raised."""
    lines = [value.clone() for value in blank]
    for value, own in zip(lines, batch[:2], strict=True):
        value[at] = own[at]
    mask = torch.zeros_like(batch.mask)
    mask[at] = 1
    return _tried(sums, lines[0], lines[1], mask)
