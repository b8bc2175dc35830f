"""`federated`: clients train a model on records of their own, and a server averages what they changed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.func import functional_call

from sfumato.errors import InvalidParameter
from sfumato.learn.federated import Guarantee
from sfumato.learn.torch.checking import as_rate, check_example, check_kinds
from sfumato.learn.torch.coins import Coins
from sfumato.learn.torch.descent import Descent
from sfumato.learn.torch.forgetting import check_model, forgetting
from sfumato.learn.torch.kept import Kept
from sfumato.learn.torch.law import missing
from sfumato.learn.torch.objectives import cross_entropy
from sfumato.learn.torch.paying import Payer
from sfumato.learn.torch.recording import Objective
from sfumato.learn.torch.records import Records, alike
from sfumato.learn.torch.rehearsing import readable
from sfumato.learn.torch.runs import Private
from sfumato.learn.torch.sampling import Poisson
from sfumato.learn.torch.surveying import made_up
from sfumato.learn.torch.weights import Weights
from sfumato.ledger import Counter
from sfumato.numeric.exact import Rational, as_integer, positive, probability, show

__all__ = ["Federated", "federated"]

Tensor: TypeAlias = torch.Tensor
_SLACK = 2.0**-20  # more than a norm in 64-bit floats is off


def federated(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    clients: Sequence[tuple[Tensor, Tensor]],
    *,
    example: tuple[Tensor, Tensor],
    epsilon: Rational,
    delta: Rational,
    size: int,
    batch: int,
    rounds: int,
    local_steps: int = 5,
    local_rate: float = 0.1,
    clip: Rational = 1,
    objective: Objective = cross_entropy,
    ledger: Counter | None = None,
    dataset: str = "",
    analyst: str | None = None,
    block: int = 1,
) -> Federated:
    """A run of rounds over clients: each trains on its own, and its change is clipped and averaged.

    ```python
    run = federated(model, torch.optim.SGD(model.parameters(), lr=1), clients, example=(x[0], y[0]),
                    epsilon=4, delta=1e-6, size=5_000, batch=500, rounds=50, local_steps=5, clip=1)
    run.fit()
    ```

    Args:
        model: What is trained.
        optimizer: The server's: it is given what the clients changed, with noise, as a gradient. Plain SGD
            with a rate of 1 is federated averaging.
        clients: Of each, its inputs and targets: a list, or a sequence that reads a client when it is asked
            for. All clients are simulated here, each by its records alone.
        example: One made-up record; a client whose records are of another kind counts as none.
        epsilon: What all rounds cost together, for adding or removing one client.
        delta: Likewise.
        size: How many clients there are about, as a public number.
        batch: The expected number of clients of a round.
        rounds: How often weights go out and changes come back.
        local_steps: How many steps of gradient descent a client takes in a round, each over all its records.
        local_rate: How long these are.
        clip: What a client's change is cut to, in L2.
        objective: From outputs and targets to a loss for each record; a client's is the mean.
        ledger: Which ledger pays; see `private`.
        dataset: Whose budget pays.
        analyst: In whose name.
        block: How many rounds are taken from the ledger at once.

    Returns:
        The run. Nothing is debited or read before its first step, which is a round.
    """
    check_kinds(model, optimizer, objective)
    check_model(model)
    many, expected = as_integer(size, "size"), as_integer(batch, "batch")
    price = positive(epsilon, "epsilon"), probability(delta, "delta")
    rate, held = as_rate(local_rate, "local_rate"), Clients(clients, example)
    if price[1] * many > 1:
        warnings.warn(
            f"delta {show(price[1])} is more than one in the {many:,} clients: that allows to publish one.",
            stacklevel=2,
        )
    numbers = sum(each.numel() for each in model.parameters() if each.requires_grad)
    sampler = Poisson(positive(expected, "batch") / many, as_integer(rounds, "rounds"))
    lost = missing(price, numbers * sampler.steps)
    sigma = sampler.sigma(price[0], price[1] - lost)
    with readable(model, held.example, objective):
        descent = Rounds(
            model,
            optimizer,
            held,
            sampler,
            sigma=sigma,
            clip=float(positive(clip, "clip")),
            batch=expected,
            physical=1,
            objective=objective,
        )
    descent.train(objective, as_integer(local_steps, "local_steps"), rate)
    descent.rehearse()
    payer = None if ledger is None else Payer(ledger, dataset, analyst, block)
    return Federated(descent, sigma, price, lost, payer)


class Clients(Records):
    """Clients, each a pair of tensors; one of another kind, or without records, counts as none.

    Args:
        clients: Of each, its inputs and targets.
        example: One made-up record.
    """

    def __init__(self, clients: Sequence[tuple[Tensor, Tensor]], example: tuple[Tensor, Tensor]) -> None:
        check_example(example)
        by_number = hasattr(clients, "__getitem__") and hasattr(clients, "__len__")
        if isinstance(clients, Mapping | str | bytes) or not by_number:
            raise InvalidParameter(
                "clients must be a sequence: one pair (inputs, targets) of tensors for each, by number."
            )
        self.clients = clients  # none is read before a round draws it, nor is it asked how many there are
        self.example = tuple(torch.zeros_like(side) for side in example)

    def __len__(self) -> int:
        """How many there are: private, and never shown."""
        return len(self.clients)

    def of(self, client: int, device: torch.device) -> tuple[Tensor, Tensor] | None:
        """The records of one, if they can be trained on."""
        try:
            own = self.clients[client]
            many = len(own[0])
            sides = [
                alike(side, like, torch.Size((many, *like.shape))).to(device)
                for side, like in zip(own, self.example, strict=True)
            ]
        except Exception:  # no row decides an error
            return None
        return tuple(sides) if many else None


class Rounds(Descent):
    """The rounds of a run: the clients that are drawn train, and what they changed is summed.

    Privacy:
        Claim: that of `Descent`, a client being a record. Proof: a client's change follows from its own
        records, coins of its own (`coins`) and the weights of all, which are private already; what layers
        keep of others is put back. It is scaled to a length below the clip, in 64-bit floats with a margin
        for what they are off, and rounded towards zero to whole steps of the grid, which makes no number
        larger; whole numbers add up exactly. A change that is no number, or a client whose records cannot be
        trained on, counts as none. Conditions: clients follow the protocol and trust the server, which sees
        each change, or a secure aggregation outside this guarantee.
    """

    def train(self, objective: Objective, steps: int, rate: float) -> None:
        """Says how clients train."""
        self._how, self.weights = (objective, steps, rate), Weights(self.model, objective)

    def sums(self, drawn: NDArray[np.int64]) -> list[Tensor]:
        """The sum of the changes of all clients that were drawn, in whole steps of the grid."""
        assert isinstance(self.records, Clients)
        values, known = self._values(), self.built.taken()
        total = torch.zeros(self.numbers, dtype=torch.int64, device=self.engine.device)
        with Coins(self.engine.device) as coins:
            for client in drawn.tolist():
                coins.anew()
                records = self.records.of(client, self.engine.device)
                if records is not None:
                    total += self._cut(self._changed(values, records, known))
        parts = total.split([value.numel() for value in values.values()])
        return [part.view(value.shape) for part, value in zip(parts, values.values(), strict=True)]

    def rehearse(self) -> None:
        """Trains on a made-up client: what fails there would fail for all of them."""
        device, example = self.engine.device, self.records.example
        given, target = (each.to(device) for each in made_up(example, 2))
        with readable(self.model, example, self._how[0]), Coins(device), forgetting(self.model, self._how[0]):
            self._trained(self._values(), given, target)

    def _try(self) -> None:
        if hasattr(self, "_how"):  # once it is said how clients train
            self.rehearse()

    def _values(self) -> dict[str, Tensor]:
        return {name: each.detach() for name, each in self.model.named_parameters() if each.requires_grad}

    def _changed(
        self, values: dict[str, Tensor], records: tuple[Tensor, Tensor], known: Kept | None
    ) -> Tensor:
        """What a client took off each weight, as one vector."""
        try:  # what layers keep of one client is not for the next
            with forgetting(self.model, self._how[0], known) as kept, self.weights.taken_back(kept.weights):
                own = self._trained(values, *records)
        except Exception:  # no row decides an error; a model that cannot be trained was refused before
            own = values
        return torch.cat([(values[name].double() - own[name].double()).flatten() for name in values])

    def _trained(self, values: dict[str, Tensor], given: Tensor, target: Tensor) -> dict[str, Tensor]:
        """A client's weights after its steps."""
        (objective, steps, rate), own = self._how, values
        for _ in range(steps):
            own = {name: each.detach().requires_grad_() for name, each in own.items()}
            with torch.enable_grad():
                loss = objective(functional_call(self.model, own, (given,)), target).mean()
                slopes = torch.autograd.grad(loss, list(own.values()), allow_unused=True)
            own = {
                name: each.detach() if slope is None else each.detach() - rate * slope
                for (name, each), slope in zip(own.items(), slopes, strict=True)
            }
        return own

    def _cut(self, change: Tensor) -> Tensor:
        length = self.engine.bound.clip * (1 - _SLACK)
        norm = change.norm()
        factor = torch.where(torch.isfinite(norm), length / norm.clamp(min=length), 0.0)
        sound = torch.where(torch.isfinite(change), change, 0.0)
        return (sound * factor / self.step_of_grid).trunc().to(torch.int64)


class Federated(Private):
    """A run of rounds over clients: a `Private` whose records are clients."""

    def account(self) -> dict[str, Guarantee]:
        """What is promised to a client over all rounds: `central`, by the models; `local`, by its changes."""
        seen = "whoever sees the models of all rounds; one client added or removed"
        trusted = "the server, which sees each change, or a secure aggregation outside this guarantee"
        return {
            "central": Guarantee(seen, self.loss, float(self.epsilon), float(self.delta)),
            "local": Guarantee(trusted, None, math.inf, 0.0),
        }

    def _declared(self) -> dict[str, Any]:
        return {**super()._declared(), "clients": True}

    def __repr__(self) -> str:
        """In a sentence."""
        return super().__repr__().replace(" private steps ", " private rounds ").replace("records", "clients")
