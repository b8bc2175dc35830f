"""What is minimised, a number a record; targets that are none harm nobody."""

from __future__ import annotations

from typing import TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812

__all__ = ["cross_entropy", "next_token", "squared_error"]

Tensor: TypeAlias = torch.Tensor


def cross_entropy(out: Tensor, target: Tensor) -> Tensor:
    """The cross-entropy of classes, the last axis of the output; the mean over a record's positions.

    A label that is none of the classes counts for nothing: such a place has no gradient.
    """
    classes = out.shape[-1]
    known = (target >= 0) & (target < classes)
    each = F.cross_entropy(
        out.reshape(-1, classes).float()
        if out.dtype in (torch.bfloat16, torch.float16)
        else out.reshape(-1, classes),
        torch.where(known, target, 0).reshape(-1).long(),
        reduction="none",
    ).reshape(target.shape)
    each = torch.where(known, each, 0)
    return each if each.dim() == 1 else each.flatten(1).sum(1) / known.flatten(1).sum(1).clamp(min=1)


def squared_error(out: Tensor, target: Tensor) -> Tensor:
    """Half the squared distance, summed over the outputs of a record."""
    apart = (out.reshape(target.shape) - target).square() / 2
    return apart if apart.dim() == 1 else apart.flatten(1).sum(1)


def next_token(out: Tensor, target: Tensor) -> Tensor:
    """The loss of a causal language model: logits at each position against the label at the next."""
    return cross_entropy(out[:, :-1], target[:, 1:])
