"""`Descent`: one private step after another, each a noisy sum of cut gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.adam import CorrectedAdam
from sfumato.learn.torch.clipping import Bound
from sfumato.learn.torch.coins import Coins, Once
from sfumato.learn.torch.engine import Engine, Grid
from sfumato.learn.torch.faults import bare, quiet, summed
from sfumato.learn.torch.forgetting import Built, check_optimizer
from sfumato.learn.torch.law import SIGMA
from sfumato.learn.torch.noise import Noise
from sfumato.learn.torch.places import check_places
from sfumato.learn.torch.processes import Processes, Silent
from sfumato.learn.torch.products import check_precision
from sfumato.learn.torch.quantile import Adaptive, Quantile
from sfumato.learn.torch.recording import Objective
from sfumato.learn.torch.records import Records
from sfumato.learn.torch.sampling import Sampler
from sfumato.learn.torch.surveying import made_up, said, unmoved
from sfumato.learn.torch.users import OfUsers, Users

__all__ = ["Descent"]

Tensor: TypeAlias = torch.Tensor
_MOST_FOR_GRID = 0.25
_MOST_IN_32_BITS = 2**30  # steps of a sum, with as many again for its noise


class Descent:
    """The steps of a run: a sample, the sum of its cut gradients, noise, and the optimizer's turn.

    Args:
        model: What is trained.
        optimizer: Of the model's parameters; it is given gradients that are private already.
        records: What is learned from: records, or `Users`.
        sampler: Which of them a step sees.
        sigma: The noise, in clips.
        clip: What one record may move a sum by.
        batch: The expected number of records of a step, by which sums are divided.
        physical: How many records pass at once.
        objective: A loss for each record.
        amp: The short type that layers compute in, if any.
        compiled: Whether a pass is compiled.
        processes: Those that learn together, if there are several.
        quantile: What the clip follows, if it is not to stay; it begins as `clip`.

    Privacy:
        Claim: a step shows the sum of cut gradients of the records that `sampler` draws (of users, where
        `records` are `Users`: one is then a record in what follows) with Gaussian noise of `sigma` clips,
        up to `law.DISTANCE` for each number, and post-processing of it; what layers keep of records by
        themselves is put back (`forgetting`), and the coins that they toss are secret and independent of all
        records (`coins`): what follows holds for any coins, the same with a record and without it. Proof:
        with and without a record the sums differ by (1 − `bound.grid`) clips at most (`clipping`); rounded
        to the grid, those of a pass by at most one step of it more in each of d numbers, √d steps in L2. One
        record more changes two passes at most, its own and that of the record whose place it takes:
        `bound.grid` leaves 2√d. The noise is that of a rounded Gaussian (`law`), and a rounded Gaussian added
        to whole numbers is the rounding of their sum with a Gaussian. Where the clip follows a `quantile`,
        the step shows a noisy count as well, and `sigma` is what both cost together (`quantile.Adaptive`).
        Sums are divided by the expected size of a batch, which is public. Conditions: a pass gives each
        record the same numbers to the last bit whatever the others are (`apart.check_apart`) and wherever in
        it the record is (`places.check_places`); both are tried on made-up records before anything is paid.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        records: Records,
        sampler: Sampler,
        *,
        sigma: float,
        clip: float,
        batch: int,
        physical: int,
        objective: Objective,
        amp: torch.dtype | None = None,
        compiled: bool = False,
        processes: Processes | None = None,
        quantile: Quantile | None = None,
    ) -> None:
        check_optimizer(optimizer)
        trained = {id(each) for each in model.parameters() if each.requires_grad}
        held = [each for group in optimizer.param_groups for each in group["params"] if each.requires_grad]
        if {id(each) for each in held} != trained:
            raise InvalidParameter(
                "The optimizer must have exactly the parameters of the model that are trained: those that it "
                "has besides would stand still, and those that it lacks would be paid for."
            )
        self.model, self.optimizer, self.records, self.sampler = model, optimizer, records, sampler
        self.batch, self.physical, self.objective = batch, physical, objective
        self.numbers = sum(each.numel() for each in held)
        device = next(model.parameters()).device
        self.adaptive = None if quantile is None else Adaptive(quantile, sigma, batch, device)
        if self.adaptive is not None:
            sigma, objective = self.adaptive.sigma, self.adaptive.objective(objective)
        self.sigma = sigma
        room = 2 * math.sqrt(self.numbers) * sigma / SIGMA
        if room > _MOST_FOR_GRID:
            raise InvalidParameter(
                f"{self.numbers:,} parameters are too many for noise of {sigma:.3g} clips."
            )
        self.step_of_grid = sigma * clip / SIGMA
        engine = OfUsers if isinstance(records, Users) else Engine
        short = physical * SIGMA / sigma < _MOST_IN_32_BITS
        grid = Grid(self.step_of_grid, torch.int32 if short else torch.int64)
        self.engine = engine(
            model,
            objective,
            Bound(clip, grid=room),
            grid=grid,
            counted=quantile is not None,
            amp=amp,
            compiled=compiled,
        )
        self._finished: Callable[[list[Tensor], Tensor], list[Tensor]] = self._gradients
        several = processes is not None or physical < batch
        self._usual = torch.int64 if several else grid.kind  # draws of more or fewer passes have another
        if compiled:
            self._finished = torch.compile(self._gradients, dynamic=False)
        self.processes = processes
        self.noise: Noise | Silent = Noise(self.engine.device)
        if processes is not None and not processes.first:
            self.noise = Silent(self.engine.device)
        self._tried = set[tuple[bool | str, ...] | None]()
        self.built = Built(model, self.look, self.objective)
        if compiled:  # for minutes: in the first step, for the modes that the model has then
            self._survey()
        else:
            self.built.check()

    def look(self, anew: bool = False) -> None:
        """Finds out, on made-up records, whether steps can be run in the modes that the model is in.

        Args:
            anew: Whether what was found in these modes before does not hold any more.

        Raises:
            InvalidParameter: if they cannot.
        """
        if anew:
            self.engine.recorder.forget()
            self._tried.clear()
        self._survey()
        modes = self.engine.recorder.modes
        if modes not in self._tried:
            with said(), unmoved(self.model, self.objective):
                self._try()
            self._tried.add(modes)

    def _survey(self) -> None:
        with said():
            self.engine.recorder.survey(self._example(), self.engine.objective, self.objective)

    def _example(self) -> tuple[Tensor, Tensor]:
        given, target = (each.to(self.engine.device) for each in self.records.example)
        return given, target

    def _try(self) -> None:
        """A pass of made-up records, as those of a step."""
        check_precision(self.engine.amp or self.engine.kind, self.engine.device)
        self.engine.recorder.check_gradients(self._example(), self.engine.objective)
        many = (self.physical, self.records.each) if isinstance(self.records, Users) else (self.physical,)
        given, target = (
            value[0].expand(*many, *value.shape[1:]).contiguous() for value in made_up(self._example(), 1)
        )
        self.engine.sums(given, target, torch.ones(self.physical, device=self.engine.device))
        check_places(self.engine, self._example(), *many)

    def step(self) -> None:
        """One step; nothing of it is shown but the model.

        Privacy:
            Claim: while the optimizer's code runs, and in an error of a step, no frame holds anything of
            records that has no noise. Proof: sums and draws are in the frames of `_learn` and of what it
            calls, which have ended; an error goes on without the frames it came through (`faults.bare`).
        """
        try:
            self._learn()
        except BaseException as error:
            raise bare(error)  # noqa: B904
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _learn(self) -> None:
        """Gives the parameters their private gradients."""
        numbers = self.numbers + (self.adaptive is not None)
        with quiet():
            drawn, noise = self.sampler.draw(len(self.records)), self.noise.draw(numbers)
            sums = self.sums(drawn)
        self.built.settle()
        if isinstance(self.optimizer, CorrectedAdam):
            self.optimizer.hear((self.sigma * self.clip / self.batch) ** 2)
        with torch.no_grad():
            self._set(sums, noise.values())

    def sums(self, drawn: NDArray[np.int64]) -> list[Tensor]:
        """The sums over all records that were drawn, in whole steps of the grid, pass by pass."""
        sums: list[Tensor] | None = None
        known = self.built.taken()
        passes = -(-max(len(drawn), 1) // self.physical)
        with Coins(self.engine.device) as coins:
            for batch in self.records.batches(drawn, self.physical, self.engine.device):
                once = cast("Engine", Once(self.engine, coins))
                found = summed(once, batch, self.records.example, self.model, self.objective, known)
                if passes > 1:
                    found = [each.to(torch.int64) for each in found]
                sums = found if sums is None else torch._foreach_add(sums, found)
        assert sums is not None
        return sums

    def _set(self, sums: list[Tensor], noise: Tensor) -> None:
        """Gives the parameters their gradients, and the clip its next value."""
        count, adaptive = None, self.adaptive
        if adaptive is not None:
            sums = [*sums[:-1], sums[-1].to(torch.int64) * adaptive.worth]
        if self.processes is not None:
            sums, noise = self.processes.summed(sums, noise), torch.zeros_like(noise)
        if adaptive is not None:
            sums, count = sums[:-1], int(sums[-1]) + int(noise[-1])
        parameters, clips = dict(self.model.named_parameters()), self.clip / self.engine.bound.clip
        usual = sums[0].dtype == self._usual  # others are few, and compiling for them would show
        finished = self._finished if usual else self._gradients
        for name, gradient in zip(self.engine.names, finished(sums, noise[: self.numbers]), strict=True):
            parameters[name].grad = (gradient if clips == 1 else gradient * clips).to(parameters[name].dtype)
        if adaptive is not None and count is not None:
            adaptive.follow(count)

    @property
    def clip(self) -> float:
        """What a record's gradient is cut to in the next step."""
        return self.engine.bound.clip if self.adaptive is None else self.adaptive.clip

    def _gradients(self, sums: list[Tensor], noise: Tensor) -> list[Tensor]:
        """What the optimizer is given: sums with noise, in steps of the grid, over the size of a batch."""
        scale = self.step_of_grid / self.batch
        parts = noise.split([each.numel() for each in sums])
        return [
            ((total + part.view(total.shape)).to(torch.float64) * scale).to(self.engine.kind)
            for total, part in zip(sums, parts, strict=True)
        ]

    def tensors(self) -> list[Tensor]:
        """What the model holds, trained or not."""
        return [each.data for each in (*self.model.parameters(), *self.model.buffers())]

    def state(self) -> dict[str, Any]:
        """The model, the optimizer and the clip, as they are now."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "clip": self.clip,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Goes on from there."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.adaptive is not None:
            self.adaptive.move(float(state["clip"]))
