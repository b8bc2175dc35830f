"""Several processes that learn one model together, each from records of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
import torch.distributed as dist

from sfumato.errors import EngineFailed, InvalidParameter
from sfumato.learn.torch.noise import Drawn

__all__ = ["Processes", "Silent"]

Tensor: TypeAlias = torch.Tensor
_REFUSED = -2
_NONE = -1


class Processes:
    """A group of processes of `torch.distributed`.

    Attributes:
        first: Whether this process is the one that pays and draws the noise.
        many: How many there are.

    Privacy:
        Claim: what processes have after `summed` is what one process with all their records would have: the
        sums of all of them with the noise of one draw, and nothing else of a record leaves the process that
        holds it. Proof: sums are whole numbers, which add up exactly in any order; the first process adds its
        noise to its own sums before they leave it, and all others have `Silent` noise. A record is in one
        process and moves the sums of that one alone. Conditions: a record (where units are users, all
        records of a user) is given to one process, and processes trust each other: the sums of one, before
        they are added up, are seen by whoever listens between them.
    """

    def __init__(self, group: Any, device: torch.device) -> None:
        if not (dist.is_available() and dist.is_initialized()):
            raise InvalidParameter(
                "Processes must know each other: call torch.distributed.init_process_group first."
            )
        self._group = None if group is True else group
        self._device, self.first = device, dist.get_rank(self._group) == 0
        self.many: int = dist.get_world_size(self._group)
        self._source = 0 if self._group is None else dist.get_global_rank(self._group, 0)

    def summed(self, sums: list[Tensor], noise: Tensor) -> list[Tensor]:
        """The sums of all processes with their noise, as 64-bit integers."""
        whole = torch.cat([each.flatten().to(torch.int64) for each in sums]) + noise
        self._run(dist.all_reduce, whole)
        parts = whole.split([each.numel() for each in sums])
        return [part.view(each.shape) for part, each in zip(parts, sums, strict=True)]

    def agreed(
        self, decide: Callable[[], tuple[int, int | None]], tensors: list[Tensor]
    ) -> tuple[int, int | None]:
        """What the first process decides; where that is refused, it is in all of them.

        Raises:
            InvalidParameter: if the first one's tensors hold something else than those of this process.
        """
        own = _digest(tensors)
        found = torch.tensor([_REFUSED, _NONE, own], device=self._device)
        refused: Exception | None = None
        if self.first:
            try:
                steps, more = decide()
                found = torch.tensor([steps, _NONE if more is None else more, own], device=self._device)
            except Exception as error:  # the others wait for a word
                refused = error
        self._run(dist.broadcast, found, self._source)
        if refused is not None:
            raise refused
        steps, more, theirs = found.tolist()
        if steps == _REFUSED:
            raise EngineFailed("The first process was refused, and says why: no step was taken.")
        if theirs != own:
            raise InvalidParameter(
                "The model of this process is not that of the first: load the same checkpoint in all of them."
            )
        return steps, None if more == _NONE else more

    def begin(self, tensors: list[Tensor], declared: dict[str, Any]) -> None:
        """Gives all processes the values that the first one has.

        Raises:
            InvalidParameter: if processes were told different things about the run.
        """
        text = hashlib.sha256(json.dumps(declared, sort_keys=True).encode()).digest()[:7]
        own = torch.tensor(int.from_bytes(text), device=self._device)
        ends = torch.stack([own, -own])
        self._run(dist.all_reduce, ends, dist.ReduceOp.MAX)
        if int(ends.sum()) != 0:
            raise InvalidParameter(
                "All processes must declare the same run: model, steps, batch, price and clip."
            )
        with torch.no_grad():
            for each in tensors:
                self._run(dist.broadcast, each, self._source)

    def _run(self, collective: Callable[..., Any], *arguments: Any) -> None:
        try:
            collective(*arguments, group=self._group)
        except RuntimeError as error:
            raise EngineFailed(
                "Another process is gone. What was paid stays paid: start all of them again, and load the "
                "last checkpoint, to run the steps that are left."
            ) from error


def _digest(tensors: list[Tensor]) -> int:
    """A number that is another one for nearly all other values."""
    bits = [each.detach().contiguous().view(-1).view(torch.uint8) for each in tensors if each.numel()]
    sums = [(part if len(part) % 4 else part.view(torch.int32)).sum(dtype=torch.int64) for part in bits]
    return sum(int(value) * (place + 1) for place, value in enumerate(sums)) % (1 << 62)


class Silent:
    """The noise of all processes but the first: none."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def draw(self, count: int) -> Drawn:
        """So many zeros."""
        return Drawn(lambda: torch.zeros(count, dtype=torch.int32, device=self._device))
