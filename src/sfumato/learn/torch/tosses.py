"""Coins that are chosen: what a model does by chance, seen however rarely it does it."""

from __future__ import annotations

import random as pythons
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.random import mtrand
from torch.overrides import TorchFunctionMode

__all__ = ["EVERY", "ONE", "Toss", "chosen", "states"]

Tensor: TypeAlias = torch.Tensor
_WORDS = 624  # of a Mersenne twister
_FULL = 0x12DD9BB3  # the word of its state that it gives as 32 ones
_NEAR = 2.0**-20  # how near to its ends a number between 0 and 1 is put
_FAR = 8.0  # likewise a Gaussian one
_UNIFORM = frozenset({"rand", "rand_like", "random_sample"})
_NORMAL = frozenset({"randn", "randn_like", "normal", "normal_"})


class Toss(NamedTuple):
    """One choice of all coins.

    Attributes:
        seed: What they follow from.
        end: To which end they are put: -1 for almost 0, 1 for almost 1, 0 where they fall as the seed says.
    """

    seed: int
    end: int = 0


ONE = Toss(0)
EVERY = (Toss(1, -1), Toss(2, 1), Toss(3), Toss(4, -1), Toss(5, 1), Toss(6), Toss(7))
"""What a model that tosses coins is tried with: every coin at both ends, whatever else is left to chance."""


@contextmanager
def chosen(toss: Toss) -> Iterator[None]:
    """Coins of PyTorch, numpy and Python as they are chosen; numpy's and Python's are put back.

    Those of PyTorch are whatever they were made: whoever looks at a model puts them back (`unmoved`).
    """
    theirs, own = mtrand.get_bit_generator(), pythons.getstate()
    _seed(toss.seed)
    with ExitStack() as stack:
        stack.callback(mtrand.set_bit_generator, theirs)
        stack.callback(pythons.setstate, own)
        mtrand.set_bit_generator(np.random.MT19937(0))
        words, listed = _words(toss)
        np.random.set_state(("MT19937", words, 0, 0, 0.0))
        pythons.setstate((3, listed, None))
        if toss.end:
            stack.enter_context(_AtAnEnd(toss.end))
        yield


def states() -> tuple[Any, ...]:
    """Where all generators are: the same again, if no coin was tossed in between."""
    torchs = [torch.default_generator.get_state()]
    if torch.cuda.is_initialized():
        torchs += [each.get_state() for each in torch.cuda.default_generators]
    _, words, at, *_ = np.random.get_state(legacy=True)
    return *(each.numpy().tobytes() for each in torchs), words.tobytes(), at, pythons.getstate()  # type: ignore[union-attr]


def _seed(seed: int) -> None:
    """What `torch.manual_seed` does, without its look at the whole stack."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        for each in torch.cuda.default_generators:
            each.manual_seed(seed)
    elif torch.accelerator.is_available():
        torch.manual_seed(seed)


@lru_cache(maxsize=16)
def _words(toss: Toss) -> tuple[Any, tuple[int, ...]]:
    """The state of a twister of which three words in four are at an end, for numpy and for Python.

    Not all of them are: whoever draws until something fits would draw for ever.
    """
    words = np.random.RandomState(toss.seed).randint(0, 2**32, _WORDS, np.uint32)
    if toss.end:
        words[np.arange(_WORDS) // 2 % 4 != 3] = _FULL if toss.end > 0 else 0
    return words, (*words.tolist(), 0)


class _AtAnEnd(TorchFunctionMode):
    """Puts what PyTorch's functions toss to one of its ends; masks of dropout fall as the seed says."""

    def __init__(self, end: int) -> None:
        super().__init__()
        self._high = end > 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        _: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """What a function gives, or an end of it."""
        named = kwargs or {}
        out = func(*args, **named)
        value = self._value(getattr(func, "__name__", ""), args, named)
        if value is not None and isinstance(out, torch.Tensor):
            with torch.no_grad():
                out.fill_(value)
        return out

    def _value(self, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> float | None:
        if name in _UNIFORM:
            return 1 - _NEAR if self._high else _NEAR
        if name in ("bernoulli", "bernoulli_"):
            return float(not self._high)
        if name in _NORMAL:
            return _FAR if self._high else -_FAR
        if name == "uniform_":
            least, most = named.get("from", 0.0), named.get("to", 1.0)
            least, most = (*args[1:3], *(least, most)[len(args[1:3]) :])
            return float(least + (most - least) * (1 - _NEAR if self._high else _NEAR))
        if name == "randint":
            ends = [each for each in args[:2] if isinstance(each, int)]
            most = named.get("high", ends[-1] if ends else None)
            least = named.get("low", ends[0] if len(ends) > 1 else 0)
            return None if most is None else most - 1 if self._high else least
        return None
