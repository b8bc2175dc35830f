"""`private`: three lines that make an ordinary loop private, and a ledger that pays for it."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import warnings
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from sfumato.errors import AccessDenied, InvalidParameter, LedgerMismatch
from sfumato.learn.torch.cards import RunCard, card_of
from sfumato.learn.torch.checking import Placed, check_amp, check_kinds
from sfumato.learn.torch.checkpoints import check_keys, check_parts, check_taken
from sfumato.learn.torch.descent import Descent
from sfumato.learn.torch.forgetting import check_model
from sfumato.learn.torch.law import missing
from sfumato.learn.torch.objectives import cross_entropy
from sfumato.learn.torch.paying import Payer, all_taken
from sfumato.learn.torch.places import places_of, usual
from sfumato.learn.torch.processes import Processes
from sfumato.learn.torch.quantile import Quantile
from sfumato.learn.torch.recording import Objective
from sfumato.learn.torch.records import Records
from sfumato.learn.torch.rehearsing import readable
from sfumato.learn.torch.sampling import Allocation, Sampler, sampler_of
from sfumato.learn.torch.users import Users
from sfumato.ledger import Counter
from sfumato.loss import ApproximateLoss, PrivacyLoss
from sfumato.numeric.exact import Rational, as_integer, positive, probability, show

__all__ = ["Private", "private"]

Tensor: TypeAlias = torch.Tensor
_PARTS = 50  # a run is taken from the ledger in so many blocks, unless something else is said


def private(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: Any,
    *,
    epsilon: Rational,
    delta: Rational,
    size: int,
    batch: int,
    epochs: Rational | None = None,
    steps: int | None = None,
    sampling: str = "poisson",
    clip: Rational | Quantile = 1,
    objective: Objective = cross_entropy,
    physical: int | None = None,
    example: tuple[Tensor, Tensor] | None = None,
    users: Any = None,
    records_each: int | None = None,
    amp: torch.dtype | None = None,
    compiled: bool | None = None,
    group: Any = None,
    ledger: Counter | None = None,
    dataset: str = "",
    analyst: str | None = None,
    block: int | None = None,
) -> Private:
    """A run of private steps over a model that is trained as usual.

    ```python
    run = private(model, optimizer, (x, y), epsilon=2, delta=1e-6, size=60_000, batch=1_000, epochs=10)
    run.fit()                                        # or run.step() in a loop of your own
    ```

    Args:
        model: What is trained.
        optimizer: An ordinary one, of the model's parameters.
        data: `(inputs, targets)` as tensors, or a data set that gives such pairs by number.
        epsilon: What all steps cost together, for adding or removing one record, or one user.
        delta: Likewise.
        size: How many records there are about, as a public number: the rate of sampling and the number of
            steps follow from it and never from the data.
        batch: The expected number of records of a step.
        epochs: How often each record is seen, on average; or `steps`.
        steps: How many steps.
        sampling: Who is in a step: "poisson", each by a coin in each step, or "allocation", each in one step
            of each epoch by a die (balls and bins). Allocation needs a little less noise; its steps are taken
            in whole epochs.
        clip: What one record's gradient is cut to, in L2; a `Quantile` learns it, for the same price.
        objective: From outputs and targets to a loss for each record.
        physical: How many records pass at once; a draw of more takes several passes. By default few draws do.
            On a processor it is made a multiple of 32, unless it is 1 (`places`).
        example: For a data set, one made-up record.
        users: Whose each record is: ids in the order of the records, or a function from a record's number to
            its id. What is protected is then a user with all of its records; `size` and `batch` are users.
        records_each: How many records of a user a step sees, at most; chosen anew in each step.
        amp: The short type that layers compute in, such as `torch.bfloat16`.
        compiled: Whether a pass is compiled; by default on accelerators.
        group: For several processes that learn together, each from records of its own: a group of
            `torch.distributed`, or True for all of them. A model in `DistributedDataParallel` brings its own.
        ledger: Which ledger pays; of several processes, the first one's. Without one nothing keeps count of
            what was spent.
        dataset: Whose budget pays.
        analyst: In whose name.
        block: How many steps are taken from the ledger at once, durably, before they are run: what a process
            that dies has not run of them is lost.

    Returns:
        The run. Nothing is debited or read before its first step.
    """
    if isinstance(model, DistributedDataParallel):
        model, group = model.module, model.process_group if group is None else group
    check_kinds(model, optimizer, objective)
    check_amp(amp)
    check_model(model)
    many, expected = as_integer(size, "size"), as_integer(batch, "batch")
    sampler = sampler_of(sampling, many, expected, epochs, steps)
    count = sampler.steps
    unit = "records" if users is None else "users"
    price = positive(epsilon, "epsilon"), probability(delta, "delta")
    if price[1] * many > 1:
        warnings.warn(
            f"delta {show(price[1])} is more than one in the {many:,} {unit}: that allows to publish one.",
            stacklevel=2,
        )
    numbers = sum(each.numel() for each in model.parameters() if each.requires_grad)
    quantile = clip if isinstance(clip, Quantile) else None
    lost = missing(price, (numbers + (quantile is not None)) * count)
    sigma = _calibrated(replace(sampler), price[0], price[1] - lost)
    device = next(model.parameters()).device
    processes = None if group is None else Processes(group, device)
    own = expected if processes is None else -(-expected // processes.many)
    places = usual(own, sampler.rate) if physical is None else as_integer(physical, "physical")
    places, records = places_of(places, device), _records(data, example, users, records_each)
    with readable(model, records.example, objective):
        descent = Descent(
            model,
            optimizer,
            records,
            sampler,
            sigma=sigma,
            clip=float(positive(clip.first if isinstance(clip, Quantile) else clip, "clip")),
            batch=expected,
            physical=places,
            objective=objective,
            amp=amp,
            compiled=device.type != "cpu" if compiled is None else compiled,
            processes=processes,
            quantile=quantile,
        )
    steps_at_once = _whole(as_integer(max(1, count // _PARTS) if block is None else block, "block"), sampler)
    pays = ledger is not None and (processes is None or processes.first)
    payer = Payer(ledger, dataset, analyst, steps_at_once) if pays and ledger is not None else None
    return Private(descent, sigma, price, lost, payer)


def _whole(steps: int, sampler: Sampler) -> int:
    """So many steps, and those that are lost with them."""
    return -(-steps // sampler.together) * sampler.together


def _records(
    data: Any, example: tuple[Tensor, Tensor] | None, users: Any, records_each: int | None
) -> Records:
    if (users is None) != (records_each is None):
        raise InvalidParameter("Give users and records_each, or neither.")
    return Records(data, example) if records_each is None else Users(data, example, users, records_each)


class Private:
    """A run of private steps.

    Attributes:
        epsilon: What all steps cost together.
        delta: Likewise.
        sampler: Which records a step sees.
        noise_multiplier: The noise that a step is paid with, in clips.
        taken: How many steps this object has run, those of a checkpoint included.

    Privacy:
        Claim: all that is ever shown of a run, the model after each step, is (epsilon, delta)-differentially
        private for adding or removing one record, or one user with all of its records: that is what its
        steps cost (`descent`, `sampling`; `processes`, where there are several), with (1 + e^epsilon) times
        `law.DISTANCE` for each number and step as a part of delta (`law.missing`). The ledger is told that
        point and nothing finer, so that its gate assumes no more of the run than holds. With a ledger the
        whole is debited before the first record is read, and of the steps that it paid for each is taken
        once: blocks of them are on record before they are run, whatever is killed or resumed how often. What
        was taken is run by the process and the object that took it, one step at a time: a fork is refused, a
        copy cannot be made.
    """

    def __init__(
        self,
        descent: Descent,
        sigma: float,
        price: tuple[Fraction, Fraction],
        missing: Fraction,
        payer: Payer | None,
    ) -> None:
        self._descent, self._payer, self._missing = descent, payer, missing
        self.sampler, self.noise_multiplier = descent.sampler, sigma
        self.epsilon, self.delta = price
        self.taken, self._ahead, self._ever = 0, 0, 0
        self._behind: int | None = None  # of the ledger's steps, once it was asked
        self._counted = payer is not None
        self._process, self._turn = os.getpid(), threading.Lock()
        self._placed = Placed(descent.model)
        if descent.processes is not None:
            descent.processes.begin(descent.tensors(), {**self._declared(), "batch": descent.batch})
            self._counted = bool(descent.processes.agreed(lambda: (int(self._counted), None), [])[0])

    @property
    def loss(self) -> PrivacyLoss:
        """What the whole run costs: epsilon and delta, of which the tables of the noise have their part."""
        return ApproximateLoss(self.epsilon, self.delta)

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """The optimizer that gets the noisy gradients."""
        return self._descent.optimizer

    @property
    def batch(self) -> int:
        """The expected number of records of a step."""
        return self._descent.batch

    @property
    def steps(self) -> int:
        """How many steps are paid for in all."""
        return self.sampler.steps

    @property
    def left(self) -> int:
        """How many steps can still be run."""
        return self.steps - self._ever if self._behind is None else self._ahead + self._behind

    @property
    def clip(self) -> float:
        """How far one record may move the next step's sum; where it is learned, the price includes that."""
        return self._descent.clip

    def step(self) -> None:
        """One step, paid for.

        Raises:
            BudgetExceeded: if all steps were taken; the model stays as it is.
            InvalidParameter: if the model was built, converted or moved otherwise since, or made-up records
                cannot be trained on; nothing is debited, and no step is lost.
            AccessDenied: in a process that was forked since: the steps are those of the one that took them.
        """
        with self._turn:
            self._check()
            if self._ahead <= 0:
                self._take()
            self._ahead -= 1
            self._ever += 1
            self._descent.step()
            self.taken += 1
            if self._payer is not None and not self.left:
                self._payer.end(self.taken)

    def fit(self) -> nn.Module:
        """All steps that are left."""
        with self._turn:
            self._check()
            if self._counted and self._behind is None:
                self._take()
        while self.left:
            self.step()
        return self._descent.model

    def state_dict(self) -> dict[str, Any]:
        """A checkpoint: the model, the optimizer, how far the run is, and what it was declared to be."""
        return {**self._descent.state(), "taken": self.taken, "run": self._declared()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from a checkpoint. The ledger, not the file, decides how many steps are left.

        What is refused changes nothing.

        Raises:
            InvalidParameter: for what is no checkpoint of this model and optimizer.
            LedgerMismatch: for a checkpoint of another run.
        """
        check_keys(state, ("run", "taken", "model", "optimizer"))
        if state["run"] != self._declared():
            raise LedgerMismatch("This checkpoint is of a run with other steps, noise or parameters.")
        check_taken(state["taken"], self.steps)
        self._load(state)
        self.taken = int(state["taken"])
        if not self._counted:
            self._ever = max(self._ever, _whole(self.taken, self.sampler))
            self._ahead = 0

    def extend(self, state: dict[str, Any]) -> None:
        """Begins where another run ended, with its model and its optimizer.

        The steps of this run are its own: the first one debits all of them, and where they do not fit into
        the budget it is refused, and the checkpoint is as good as before.

        Raises:
            InvalidParameter: for what is no checkpoint of this model and optimizer; nothing is changed.
        """
        self._load(state)

    def _load(self, state: dict[str, Any]) -> None:
        descent = self._descent
        check_parts(descent.model, descent.optimizer, state, clip=descent.adaptive is not None)
        descent.load(state)

    def __reduce__(self) -> NoReturn:
        raise InvalidParameter(
            "A run cannot be copied, as its steps are taken once: make it anew, and load a checkpoint."
        )

    def card(self) -> RunCard:
        """The model card: what was paid, for whom, how it was trained, and what is not protected."""
        return card_of(self)

    def __repr__(self) -> str:
        """In a sentence."""
        units = "users" if isinstance(self._descent.records, Users) else "records"
        counted = "" if self._counted else " No ledger counts what is spent."
        return (
            f"{self.steps:,} private steps for epsilon {show(self.epsilon)}, delta {float(self.delta):.3g}; "
            f"{units} {self.sampler}, noise {self.noise_multiplier:.4g} clips."
            f"{counted}"
        )

    def _check(self) -> None:
        """What must hold before a step is taken, or paid for."""
        if self._process != os.getpid():
            raise AccessDenied("The steps of a run belong to one process: make the run anew in this one.")
        self._placed.check()
        self._descent.built.check()

    def _take(self) -> None:
        processes = self._descent.processes
        self._ahead, self._behind = (
            self._more() if processes is None else processes.agreed(self._more, self._descent.tensors())
        )

    def _more(self) -> tuple[int, int | None]:
        """How many steps may be run now, and how many the ledger has after those."""
        if self._ever >= self.steps:
            raise all_taken(self.steps)
        if self._payer is not None:
            return self._payer.take(self._declared(), self.loss, str(self))
        return 1, None

    def _declared(self) -> dict[str, Any]:
        shapes = {name: list(each.shape) for name, each in self._descent.model.named_parameters()}
        bound, records = self._descent.engine.bound, self._descent.records
        more: dict[str, Any] = {"records_each": records.each} if isinstance(records, Users) else {}
        if self._descent.adaptive is not None:
            more["quantile"] = self._descent.adaptive.declared()
        if isinstance(self.sampler, Allocation):
            more["sampling"] = "allocation"
        return {
            **more,
            "steps": self.steps,
            "rate": str(self.sampler.rate),
            "sigma": self.noise_multiplier,
            "clip": bound.clip,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "parameters": hashlib.sha256(json.dumps(shapes).encode()).hexdigest(),
        }


@lru_cache(maxsize=64)
def _calibrated(sampler: Sampler, epsilon: Fraction, delta: Fraction) -> float:
    return sampler.sigma(epsilon, delta)
