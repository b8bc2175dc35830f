"""Canaries in a deep run: records that each have a mark of their own, looked for in the noisy gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from sfumato.audit.canaries import canary_audit
from sfumato.audit.onerun import OneRun
from sfumato.errors import InvalidParameter
from sfumato.learn.torch.objectives import cross_entropy
from sfumato.learn.torch.recording import Objective
from sfumato.learn.torch.runs import Private
from sfumato.numeric.exact import as_integer

__all__ = ["Make", "audit_run", "scores_of_run"]

Tensor: TypeAlias = torch.Tensor
Floats: TypeAlias = NDArray[np.float64]
Make: TypeAlias = Callable[[nn.Module, tuple[Tensor, Tensor], Objective], Private]
"""From a model, records and an objective to the run that is audited."""

_FIRST = 2  # of the numbers in the last column; what a survey makes up is below
_WHOLE = 0.2  # clips: with any more noise, what is left of whole clips is spread evenly, with 0.29
_LEAST = 0.05
_MANY = 100  # numbers of one step that tell of its noise
_PULL = 2.0**20  # the length of a canary's gradient, before it is cut


class _Marked(nn.Module):  # type: ignore[misc]
    """A model with a table beside it, of which each canary has one number."""

    def __init__(self, model: nn.Module, given: Tensor, canaries: int) -> None:
        super().__init__()
        first = next(model.parameters())
        self.model, self.shape, self.kind = model, given.shape[1:], given.dtype
        self.marks = nn.Embedding(canaries + 1, 1, device=first.device, dtype=first.dtype)
        nn.init.zeros_(self.marks.weight)

    def forward(self, packed: Tensor) -> tuple[Any, Tensor, Tensor]:
        """What the model gives, each record's mark, and whether it is a canary."""
        which = (packed[:, -1].nan_to_num() - (_FIRST - 1)).clamp(0).long()
        given = packed[:, :-1].to(self.kind).reshape(-1, *self.shape)
        return self.model(given), self.marks(which)[:, 0], which > 0


def _objective(inner: Objective) -> Objective:
    def objective(out: Any, target: Tensor) -> Tensor:
        given, mark, canary = out
        return torch.where(canary, -_PULL * mark, inner(given, target))

    return objective


def _packed(data: tuple[Tensor, Tensor], inside: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Records as lines with one column more, and the canaries, which hold nothing but that."""
    given, target = data
    lines = given.flatten(1) if given.dim() > 1 else given[:, None]
    if lines.is_floating_point():
        lines = lines.to(torch.promote_types(lines.dtype, torch.float32))
    real = torch.cat([lines, lines.new_zeros(len(lines), 1)], 1)
    marked = real.new_zeros(len(inside), real.shape[1])
    marked[:, -1] = torch.tensor(list(inside), device=real.device).to(real.dtype) + _FIRST
    return torch.cat([real, marked]), torch.cat([target, target.new_zeros(len(inside), *target.shape[1:])])


def scores_of_run(
    make: Make,
    model: nn.Module,
    data: tuple[Tensor, Tensor],
    inside: Sequence[int],
    *,
    canaries: int,
    objective: Objective = cross_entropy,
) -> Floats:
    """How much one run looks as if each canary were in it: a log-likelihood ratio over all steps.

    Args:
        make: Gives the run.
        model: A copy of it is trained.
        data: The other records, inputs and targets.
        inside: Which canaries are in, of 0, 1, ….
        canaries: How many there are.
        objective: That of the other records.
    """
    marked = _Marked(copy.deepcopy(model), data[0], canaries)
    run = make(marked, _packed(data, inside), _objective(objective))
    rate, sigma, scale = float(run.sampler.rate), run.noise_multiplier, run.batch / run.clip
    scores = np.zeros(canaries)

    def seen(*_: Any) -> None:
        gradient = marked.marks.weight.grad
        assert gradient is not None
        moved = -gradient[1:, 0].double().cpu().numpy() * scale
        likelier = (2 * moved - 1) / (2 * _noise_seen(moved, sigma) ** 2)
        scores.__iadd__(np.logaddexp(np.log1p(-rate), np.log(rate) + likelier) if rate < 1 else likelier)

    handle = run.optimizer.register_step_pre_hook(seen)
    try:
        run.fit()
    finally:
        handle.remove()
    return scores


def _noise_seen(moved: Floats, sigma: float) -> float:
    """The noise that was claimed; far less where numbers are as good as whole clips."""
    off = float(np.sqrt(np.mean((moved - np.rint(moved)) ** 2)))
    return min(sigma, max(off, _LEAST)) if off < _WHOLE and len(moved) >= _MANY else sigma


def audit_run(
    make: Make,
    model: nn.Module,
    data: tuple[Tensor, Tensor],
    *,
    canaries: int = 1000,
    objective: Objective = cross_entropy,
    guesses: int | Sequence[int] | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    family: str | None = None,
) -> OneRun:
    """The epsilon that one deep run with canaries proves, with its real sampling, clipping and noise.

    ```python
    def make(model, data, objective):
        optimizer = torch.optim.SGD(model.parameters(), 0.5)
        return private(model, optimizer, data, objective=objective, epsilon=2, delta=1e-5, size=2_000,
                       batch=500, epochs=10)

    print(audit_run(make, model, (x, y), canaries=2_000, guesses=100, delta=1e-5, family="gaussian"))
    ```

    Each canary is a record that a fair coin puts in, with a gradient that moves one number of its own in a
    table beside the model, as far as a record may move anything at all: nothing is easier to find, and
    what is found is what the run's sampling, cutting and noise let through. The auditor sees every noisy
    gradient, and the other records learn as they would.

    Args:
        make: From a model, records and an objective to the run: the settings under audit, with a `size` that
            counts half of the canaries.
        model: A copy of it is trained.
        data: The other records, inputs and targets.
        canaries: How many.
        objective: That of the other records.
        guesses: As in `canary_audit`; a twentieth of the canaries is a good number.
        delta: The delta at which epsilon is asked for.
        confidence: The probability that the bound is true.
        family: As in `canary_audit`; steps of noisy gradients are close to "gaussian".

    Privacy:
        The claim of `canary_audit`. The other records cost what the run costs, and what the auditor sees
        beyond that is of canaries, which are nobody's.

    Raises:
        InvalidParameter: if data are no pair of tensors, or a parameter is out of range.
    """
    if not (
        isinstance(data, tuple) and len(data) == 2 and all(isinstance(each, torch.Tensor) for each in data)
    ):
        raise InvalidParameter("data must be a pair of tensors, inputs and targets.")
    many = as_integer(canaries, "canaries", least=2)

    def train(inside: list[int]) -> Floats:
        return scores_of_run(make, model, data, inside, canaries=many, objective=objective)

    return canary_audit(
        train,
        lambda scores, which: float(scores[which]),
        range(many),
        guesses=guesses,
        delta=delta,
        confidence=confidence,
        family=family,
    )
