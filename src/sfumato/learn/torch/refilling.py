"""What is inside containers, objects, classes and cells, and how they get it back."""

from __future__ import annotations

from collections import OrderedDict, deque
from functools import lru_cache
from operator import is_
from typing import Any, TypeAlias

import numpy as np
import torch

from sfumato.learn.torch.reach import NONE

__all__ = [
    "alike",
    "content",
    "differs",
    "fill",
    "inside",
    "once",
    "peek",
    "put_back",
    "put_back_class",
    "refill",
    "same_bits",
    "slots",
]

Tensor: TypeAlias = torch.Tensor
_SCALARS = frozenset({bool, int, float, complex, str, bytes})
_PLAIN = frozenset({dict, OrderedDict, list, set, deque})
_MODES = frozenset({bool, str})


@lru_cache(maxsize=4096)
def slots(kind: Any) -> list[str]:
    """The names that objects of a kind have a place for."""
    named = [vars(each).get("__slots__", ()) for each in kind.__mro__]
    names = [name for each in named for name in ((each,) if isinstance(each, str) else each)]
    return [name for name in names if name not in ("__dict__", "__weakref__") and not name.startswith("__")]


def inside(value: Any) -> Any:
    """What a container holds, in order, past whatever a subclass makes of it."""
    if isinstance(value, dict):
        return dict(OrderedDict.items(value) if isinstance(value, OrderedDict) else dict.items(value))
    kinds: tuple[Any, ...] = (list, tuple, set, deque)
    for kind in kinds:
        if isinstance(value, kind):
            return list(kind.__iter__(value))
    return list(value)


def peek(value: Any) -> Any:
    """The same, without a copy where a container has nothing of its own."""
    return value if type(value) in _PLAIN else inside(value)


def put_back(now: dict[str, Any], before: dict[str, Any]) -> None:
    """Gives names what they meant."""
    if same(now, before) and same(now.values(), before.values()):
        return
    for name in now.keys() - before.keys():
        del now[name]
    now.update(before)


def put_back_class(kind: type, before: dict[str, Any]) -> None:
    """Gives a class the attributes that it had."""
    now = vars(kind)
    if same(now, before) and same(now.values(), before.values()):
        return
    for name in [each for each in now if each not in before and not each.startswith("__")]:
        delattr(kind, name)
    for name, value in before.items():
        if now.get(name, NONE) is not value and not name.startswith("__"):
            setattr(kind, name, value)


def refill(several: Any, before: Any) -> None:
    """Gives a container what it held, if it holds something else."""
    now = peek(several)
    if isinstance(before, dict):
        if not (same(now, before) and same(now.values(), before.values())):
            base = OrderedDict if isinstance(several, OrderedDict) else dict
            base.clear(several)
            for key, value in before.items():
                base.__setitem__(several, key, value)
    elif not same(now, before):
        if isinstance(several, list):
            list.__setitem__(several, slice(None), before)
        elif isinstance(several, set):
            set.clear(several)
            set.update(several, before)
        elif isinstance(several, deque):
            deque.clear(several)
            deque.extend(several, before)
        else:
            several[:] = bytes(before)


def same(now: Any, before: Any) -> bool:
    return len(now) == len(before) and all(map(is_, now, before))


def once(tensor: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Both without the places that are the same number again, as `expand` leaves them."""
    if tensor.layout != torch.strided or tensor.is_nested or 0 not in tensor.stride():
        return tensor, value
    at = tuple(slice(0, 1) if not step else slice(None) for step in tensor.stride())
    return tensor[at], value[at]


def content(cell: Any) -> Any:
    """What a function encloses under one name."""
    try:
        return cell.cell_contents
    except ValueError:  # it has none yet
        return NONE


def fill(cell: Any, content: Any) -> None:
    """Gives a name that a function encloses its meaning."""
    if content is NONE:
        del cell.cell_contents
    else:
        cell.cell_contents = content


def alike(one: Any, other: Any) -> bool:
    """Whether two values are the same, or the same number or text."""
    return one is other or (type(one) is type(other) and type(one) in _SCALARS and bool(one == other))


def differs(now: Any, before: Any, *, modes: bool = True) -> bool:
    """Whether names or places hold other things than before.

    Args:
        now: What they hold, by name or in order.
        before: What they held.
        modes: Whether a switch or a word that is another one counts.
    """
    if isinstance(before, dict):
        if same(now, before) and same(now.values(), before.values()):
            return False
        pairs = [(now.get(name, NONE), before.get(name, NONE)) for name in {**before, **now}]
    elif len(now) != len(before):
        return True
    else:
        pairs = list(zip(now, before, strict=True))
    return any(
        not alike(one, two)
        and (modes or not {type(each) for each in (one, two) if each is not NONE} <= _MODES)
        for one, two in pairs
    )


def same_bits(now: Any, before: Any) -> bool:
    """Whether tensors or arrays are the same to the last bit."""
    if isinstance(before, np.ndarray):
        if before.dtype.hasobject:
            return bool(now.shape == before.shape) and same(now.ravel().tolist(), before.ravel().tolist())
        return bool(now.shape == before.shape and now.tobytes() == before.tobytes())
    flat = [each.detach().contiguous().view(-1).view(torch.uint8) for each in (now, before)]
    return bool(now.shape == before.shape) and torch.equal(*flat)
