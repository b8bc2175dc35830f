"""Coins that models and data sets toss in a step, as for dropout: nobody knows them, none is left over."""

from __future__ import annotations

import random as pythons
from functools import cache
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.random import mtrand
from numpy.typing import NDArray

from sfumato import random
from sfumato.learn.torch.engine import Engine

__all__ = ["Coins", "Once"]

Tensor: TypeAlias = torch.Tensor
_TWISTER = 624  # words of a Mersenne twister, whose seed would be 32 bits in PyTorch
_KEY = 8  # words of a secret
_AT = slice(24, 24 + 8 * _TWISTER)  # where a state of PyTorch has them, in 64 bits each


class Coins:
    """Generators of PyTorch, numpy and Python whose state is new and secret, until they are put back.

    ```python
    with Coins(device) as coins:
        ...
    ```

    Args:
        device: Where the model is.

    Privacy:
        Claim: a step whose layers or data sets toss coins costs what one without coins costs, and nothing
        that is tossed after it hangs on how many it tossed. Proof: each record of a step has coins of its
        own, independent, with one law for all places, and of nothing that is public or private. Take a draw
        with and without one record, and give every other record the same coins in both, wherever it stands:
        each of the two steps keeps its law. Given these coins the two sums are apart by the cut gradient of
        that record, as without coins; what is shown is the mixture over them, with equal weights on both
        sides, and a mixture of pairs is no further apart than what all of them are within (joint convexity of
        hockey-stick divergences). That holds only while the coins are secret: where a seed is known, a record
        that takes another's place shows by the coins it finds there. So states come from `sfumato.random`,
        anew for each pass and each client, and generators are put back to where they were before it.
        Conditions: PyTorch's generators are as good as uniform bits for whoever does not know their state
        (19,937 bits on a processor, 64 on an accelerator). Coins are tossed by the generators that PyTorch,
        numpy's functions and Python's `random` use by themselves: one of your own, in a layer or a data set,
        is as public as its seed. Coins that all records of a pass share, such as one mask for a whole batch,
        are independent of the data, but who shares them is not where a draw takes several passes: one record
        more makes others pass together. So they are covered where a draw is one pass, as a client's are.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def __enter__(self) -> Coins:
        """Sets aside what the generators are, and tosses anew."""
        self._before, self._numpy = _states(self._device), mtrand.get_bit_generator()
        self._pythons = pythons.getstate()
        mtrand.set_bit_generator(_spare())  # numpy's states are slow to read and write
        self.anew()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Puts the generators back."""
        for generator, state in self._before:
            generator.set_state(state)
        mtrand.set_bit_generator(self._numpy)
        pythons.setstate(self._pythons)

    def anew(self) -> None:
        """From here on other coins, independent of all before."""
        self._seeds = _seeds()
        self.again()

    def again(self) -> None:
        """From here on the coins that were tossed since they were last made anew."""
        for generator, _ in self._before:
            if generator.device.type == "cpu":
                generator.set_state(self._seeds.state)
            else:
                generator.manual_seed(self._seeds.key)
        np.random.seed(self._seeds.numpys)
        pythons.seed(self._seeds.pythons)


class _Seeds(NamedTuple):
    """What coins follow from.

    Attributes:
        state: Of PyTorch's generator on a processor.
        key: Of those on accelerators.
        numpys: Of numpy's functions.
        pythons: Of Python's.
    """

    state: Tensor
    key: int
    numpys: NDArray[np.uint32]
    pythons: int


def _seeds() -> _Seeds:
    stream = random.current()
    state = _plain().clone()
    state.numpy()[_AT].view(np.uint64)[:] = stream.words32(_TWISTER)
    return _Seeds(state, stream.bits(63), stream.words32(_KEY), stream.bits(32 * _KEY))


@cache
def _plain() -> Tensor:
    """A state of PyTorch's generator that has given nothing yet."""
    return torch.Generator().get_state()


@cache
def _spare() -> Any:
    """What numpy's functions draw from in the meantime."""
    return np.random.MT19937(0)


def _states(device: torch.device) -> list[tuple[Any, Tensor]]:
    """The generators of a processor and of accelerators in use, and what they are now."""
    found: list[Any] = [torch.default_generator]
    if device.type == "cuda" or torch.cuda.is_initialized():
        found += torch.cuda.default_generators
    elif device.type != "cpu":
        found.append(_Other(torch.get_device_module(device), device))
    return [(each, each.get_state()) for each in found]


class _Other:
    """The generator of another kind of accelerator, as its module has it."""

    def __init__(self, module: Any, device: torch.device) -> None:
        self.device = device
        self.get_state, self.set_state, self.manual_seed = (
            module.get_rng_state,
            module.set_rng_state,
            module.manual_seed,
        )


class Once:
    """An engine that tosses the same coins however often it tries a batch.

    Privacy:
        Claim: whether a record on which something is raised is left out follows from that record and its
        coins (`faults.summed`), and what all others toss does not hang on it.
    """

    def __init__(self, engine: Engine, coins: Coins) -> None:
        self._engine, self._coins, self._tossed = engine, coins, False
        self.compiled = getattr(engine, "compiled", False)

    def sums(self, given: Tensor, target: Tensor, mask: Tensor) -> list[Tensor]:
        """What the engine gives."""
        if self._tossed:
            self._coins.again()
        else:
            self._coins.anew()
        self._tossed = True
        return self._engine.sums(given, target, mask)
