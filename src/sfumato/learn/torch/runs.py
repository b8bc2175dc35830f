"""`private`: three lines that make an ordinary loop private, and a ledger that pays for it."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from fractions import Fraction
from typing import Any, TypeAlias

import torch
from torch import nn

from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerMismatch
from sfumato.learn.torch.descent import Descent
from sfumato.learn.torch.law import DISTANCE
from sfumato.learn.torch.objectives import cross_entropy
from sfumato.learn.torch.recording import Objective
from sfumato.learn.torch.records import Records
from sfumato.learn.torch.sampling import Poisson
from sfumato.learn.torch.users import Users
from sfumato.ledger import Counter, Memo, Right
from sfumato.loss import ApproximateLoss, PrivacyLoss
from sfumato.numeric.exact import Rational, as_integer, positive, probability, show

__all__ = ["Private", "private"]

Tensor: TypeAlias = torch.Tensor
_FULL = 32  # passes are multiples of it
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
    clip: Rational = 1,
    objective: Objective = cross_entropy,
    physical: int | None = None,
    example: tuple[Tensor, Tensor] | None = None,
    users: Any = None,
    records_each: int | None = None,
    amp: torch.dtype | None = None,
    compiled: bool | None = None,
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
        clip: What one record's gradient is cut to, in L2.
        objective: From outputs and targets to a loss for each record.
        physical: How many records pass at once; a draw of more takes several passes. By default few draws do.
        example: For a data set, one made-up record.
        users: Whose each record is: ids in the order of the records, or a function from a record's number to
            its id. What is protected is then a user with all of its records; `size` and `batch` are users.
        records_each: How many records of a user a step sees, at most; chosen anew in each step.
        amp: The short type that layers compute in, such as `torch.bfloat16`.
        compiled: Whether a pass is compiled; by default on accelerators.
        ledger: Which ledger pays. Without one nothing keeps count of what was spent.
        dataset: Whose budget pays.
        analyst: In whose name.
        block: How many steps are taken from the ledger at once, durably, before they are run: what a process
            that dies has not run of them is lost.

    Returns:
        The run. Nothing is debited or read before its first step.
    """
    many, expected = as_integer(size, "size"), as_integer(batch, "batch")
    if (epochs is None) == (steps is None):
        raise InvalidParameter("Give epochs or steps.")
    rate = Fraction(expected, many)
    count = (
        math.ceil(positive(epochs, "epochs") / rate)
        if epochs is not None
        else as_integer(steps or 0, "steps")
    )
    unit = "records" if users is None else "users"
    price = positive(epsilon, "epsilon"), probability(delta, "delta")
    if price[1] * many > 1:
        warnings.warn(
            f"delta {show(price[1])} is more than one in the {many:,} {unit}: that allows to publish one.",
            stacklevel=2,
        )
    sampler, numbers = (
        Poisson(rate, count),
        sum(each.numel() for each in model.parameters() if each.requires_grad),
    )
    missing = DISTANCE * numbers * count
    if missing * 2 > price[1]:
        raise InvalidParameter(
            f"delta must be at least {float(2 * missing):.1e} for so many numbers and steps."
        )
    sigma = sampler.sigma(price[0], price[1] - missing)
    device = next(model.parameters()).device
    descent = Descent(
        model,
        optimizer,
        _records(data, example, users, records_each),
        sampler,
        sigma=sigma,
        clip=float(positive(clip, "clip")),
        batch=expected,
        physical=as_integer(physical or _pass(expected, rate), "physical"),
        objective=objective,
        amp=amp,
        compiled=device.type != "cpu" if compiled is None else compiled,
    )
    payer = None if ledger is None else _Payer(ledger, dataset, analyst, block or max(1, count // _PARTS))
    return Private(descent, sigma, price, missing, payer)


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
        noise_multiplier: The noise, in clips.
        taken: How many steps this object has run, those of a checkpoint included.

    Privacy:
        Claim: all that is ever shown of a run, the model after each step, is (epsilon, delta)-differentially
        private for adding or removing one record, or one user with all of its records: that is what its
        steps cost (`descent`, `sampling`), with
        `law.DISTANCE` for each number and step as a part of delta. With a ledger the whole is debited
        before the first record is read, and of the steps that it paid for each is taken once: blocks of them
        are on record before they are run, whatever is killed or resumed how often.
    """

    def __init__(
        self,
        descent: Descent,
        sigma: float,
        price: tuple[Fraction, Fraction],
        missing: Fraction,
        payer: _Payer | None,
    ) -> None:
        self._descent, self._payer, self._missing = descent, payer, missing
        self.sampler, self.noise_multiplier = descent.sampler, sigma
        self.epsilon, self.delta = price
        self.taken, self._ahead, self._ever = 0, 0, 0
        self._right: Right | None = None

    @property
    def loss(self) -> PrivacyLoss:
        """What the whole run costs: what its steps do (`sampler.loss`), with that of the tables in delta."""
        return ApproximateLoss(self.epsilon, self.delta)

    @property
    def steps(self) -> int:
        """How many steps are paid for in all."""
        return self.sampler.steps

    @property
    def left(self) -> int:
        """How many steps can still be run."""
        if self._payer is None or self._right is None:
            return self.steps - self._ever
        return self._ahead + int(self._right.left * self.steps)

    def step(self) -> None:
        """One step, paid for.

        Raises:
            BudgetExceeded: if all steps were taken; the model stays as it is.
        """
        if self._ahead == 0:
            self._take()
        self._ahead -= 1
        self._ever += 1
        self._descent.step()
        self.taken += 1
        if self._right is not None and not self.left and self._payer is not None:
            self._payer.end(self._right, self.taken)

    def fit(self) -> nn.Module:
        """All steps that are left."""
        if self._right is None and self._payer is not None:
            self._take()
        while self.left:
            self.step()
        return self._descent.model

    def state_dict(self) -> dict[str, Any]:
        """A checkpoint: the model, the optimizer, how far the run is, and what it was declared to be."""
        return {**self._descent.state(), "taken": self.taken, "run": self._declared()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from a checkpoint. How many steps are left is the ledger's to say, not the file's.

        Raises:
            LedgerMismatch: for a checkpoint of another run.
        """
        if state["run"] != self._declared():
            raise LedgerMismatch("This checkpoint is of a run with other steps, noise or parameters.")
        self._descent.model.load_state_dict(state["model"])
        self._descent.optimizer.load_state_dict(state["optimizer"])
        self.taken = int(state["taken"])
        if self._payer is None:
            self._ever = max(self._ever, self.taken)

    def __repr__(self) -> str:
        """In a sentence."""
        units = "users" if isinstance(self._descent.records, Users) else "records"
        counted = "" if self._payer is not None else " No ledger counts what is spent."
        return (
            f"{self.steps:,} private steps for epsilon {show(self.epsilon)}, delta {float(self.delta):.3g}; "
            f"{units} by chance {float(self.sampler.rate):.3g}, noise {self.noise_multiplier:.4g} clips."
            f"{counted}"
        )

    def _take(self) -> None:
        if self._payer is None:
            if self._ever >= self.steps:
                raise _all_taken(self.steps)
            self._ahead = self.steps - self._ever
            return
        if self._right is None:
            self._right = self._payer.begin(
                self._declared(), ApproximateLoss(self.epsilon, self.delta), str(self)
            )
        some = min(self._payer.block, int(self._right.left * self.steps))
        if not some:
            raise _all_taken(self.steps)
        self._right.block(Fraction(some, self.steps))
        self._ahead = some

    def _declared(self) -> dict[str, Any]:
        shapes = {name: list(each.shape) for name, each in self._descent.model.named_parameters()}
        bound, records = self._descent.engine.bound, self._descent.records
        of_users = {"records_each": records.each} if isinstance(records, Users) else {}
        return {
            **of_users,
            "steps": self.steps,
            "rate": str(self.sampler.rate),
            "sigma": self.noise_multiplier,
            "clip": bound.clip,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "parameters": hashlib.sha256(json.dumps(shapes).encode()).hexdigest(),
        }


class _Payer:
    """The ledger, as far as a run needs it."""

    def __init__(self, ledger: Counter, dataset: str, analyst: str | None, block: int) -> None:
        if not dataset:
            raise InvalidParameter("Say whose budget pays: dataset='photos'.")
        self.ledger, self.dataset, self.analyst = ledger, dataset, analyst
        self.block = as_integer(block, "block")

    def begin(self, declared: dict[str, Any], loss: PrivacyLoss, words: str) -> Right:
        """The run that was paid for and has steps left, or a new debit for the whole."""
        fingerprint = hashlib.sha256(json.dumps(["deep run", declared], sort_keys=True).encode()).hexdigest()
        with self.ledger.turn(self.dataset, fingerprint):
            begun = self.ledger.resume(self.dataset, fingerprint, self.analyst)
            if begun is not None:
                return begun
            memo = Memo(
                "fit",
                words,
                epsilon=Fraction(declared["epsilon"]),
                delta=Fraction(declared["delta"]),
                mechanism="gaussian",
            )
            return self.ledger.debit(
                self.dataset, loss, fingerprint=fingerprint, analyst=self.analyst, memo=memo, resumable=True
            )

    def end(self, right: Right, taken: int) -> None:
        """Writes down that the run is over."""
        self.ledger.record(right, json.dumps({"steps": taken}).encode())


def _pass(batch: int, rate: Fraction) -> int:
    """More than nearly all draws have, and with many divisors, as blocks of records divide it."""
    most = batch + 3 * math.ceil(math.sqrt(batch * (1 - rate)))
    return math.ceil(most / _FULL) * _FULL if most > _FULL else most


def _all_taken(steps: int) -> BudgetExceeded:
    return BudgetExceeded(
        f"All {steps:,} steps that were paid for are taken: a run of more steps is paid for by itself."
    )
