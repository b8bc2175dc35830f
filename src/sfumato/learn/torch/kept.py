"""What a model holds beside its weights, at every depth: as it is now, and how to put it back."""

from __future__ import annotations

import pickle
import sys
import types
from collections import OrderedDict, deque
from collections.abc import Iterable
from functools import lru_cache, partial
from operator import is_
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

__all__ = ["Kept"]

Tensor: TypeAlias = torch.Tensor
_OWN = frozenset(vars(nn.Module()))  # what every module has
_DEEPEST, _MOST = 12, 20_000
_PLAIN = frozenset(
    {
        *(bool, int, float, complex, str, bytes, type(None), type, range, torch.Size, torch.Generator),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format, types.ModuleType),
        *(types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType),
    }
)
"""What cannot change. The state of a generator is of how many passes there were, and of no record."""
_CLASS = (torch.Tensor, np.ndarray, list, dict, set, deque)
_RUNNING = frozenset(
    {"logging", "threading", "_thread", "concurrent", "multiprocessing", "asyncio", "weakref"}
)
_OTHERS = frozenset({"torch", "numpy", "builtins", *_RUNNING})
_NONE = object()


class Kept:
    """What the layers of a model hold now: buffers, attributes, and what is inside them.

    Args:
        model: Whose layers.

    Attributes:
        sealed: What was found and cannot be put back.

    Privacy:
        Claim: after `put_back` the layers hold what they held before: the same objects, and in tensors,
        arrays, lists, dictionaries, sets, queues and the attributes of objects the same values, at every
        depth. Conditions: what is in `sealed` does not change; layers keep nothing in files, in globals, or
        in what functions enclose.
    """

    def __init__(self, model: nn.Module) -> None:
        self._layers = [(layer, dict(vars(layer)), dict(layer._buffers)) for layer in model.modules()]
        self._seen = {id(layer) for layer, *_ in self._layers}
        self._tensors, self._arrays = list[tuple[Tensor, Tensor]](), list[tuple[Any, Any]]()
        self._several, self._slots = list[tuple[Any, Any]](), list[tuple[Any, str, Any]]()
        self._kinds = list[tuple[type, dict[str, Any]]]()
        self.sealed = list[Any]()
        own = {id(each): each for layer, *_ in self._layers for each in layer._parameters.values()}
        self._parameters = [(each, dict(each.__dict__)) for each in own.values() if each is not None]
        self._seen.update(own)
        for _, held in self._parameters:
            if held:
                self._among(held.values(), 0)
        for _, held, buffers in self._layers:
            if buffers:
                self._among(buffers.values(), 0)
            for name, value in held.items():
                if type(value) not in _PLAIN and name not in _OWN:
                    self._walk(value, 0)
        for kind in dict.fromkeys(each for layer, *_ in self._layers for each in type(layer).__mro__):
            if _root(kind) not in _OTHERS:
                self._kinds.append((kind, dict(vars(kind))))
                self._among(
                    [
                        value
                        for name, value in vars(kind).items()
                        if isinstance(value, _CLASS) and not name.startswith("__")
                    ],
                    0,
                )

    def put_back(self) -> None:
        """Makes all of it what it was."""
        for layer, held, buffers in self._layers:
            _put_back(vars(layer), held)
            if layer._buffers or buffers:
                _put_back(layer._buffers, buffers)
        for parameter, held in self._parameters:
            if parameter.__dict__ or held:
                _put_back(parameter.__dict__, held)
        for kind, names in self._kinds:
            _put_back_class(kind, names)
        for several, before in self._several:
            _refill(several, before)
        for owner, name, value in self._slots:
            object.__setattr__(owner, name, value)
        for array, values in self._arrays:
            if array.shape != values.shape:
                array.resize(values.shape, refcheck=False)
            array[...] = values
        for tensor, value in self._tensors:
            if tensor.shape != value.shape:
                tensor.data = value
        if self._tensors:
            pairs = [_once(tensor, value) for tensor, value in self._tensors]
            with torch.no_grad():
                torch._foreach_copy_([tensor for tensor, _ in pairs], [value for _, value in pairs])

    def printed(self) -> list[Any]:
        """Of each thing that cannot be put back, something that is another one after nearly all changes."""
        return [_print(value) for value in self.sealed]

    def _among(self, values: Iterable[Any], depth: int) -> None:
        for value in values:
            if type(value) not in _PLAIN:
                self._walk(value, depth)

    def _walk(self, value: Any, depth: int) -> None:
        """Notes what a value holds, and what is inside it."""
        if id(value) in self._seen or isinstance(value, type):
            return
        self._seen.add(id(value))
        if depth > _DEEPEST or len(self._seen) > _MOST:
            self.sealed.append(value)
        elif isinstance(value, torch.Tensor):
            self._tensor(value)
        elif isinstance(value, np.ndarray):
            self._array(value, depth)
        elif isinstance(value, list | tuple | dict | set | deque | bytearray):
            self._container(value, depth)
        else:
            self._object(value, depth)

    def _tensor(self, value: Tensor) -> None:
        if isinstance(value, nn.Parameter) or value.is_inference():
            self.sealed.append(value)  # weights, of whatever size: they are not to change
        else:
            self._tensors.append((value, value.detach().clone()))
        if value.__dict__:
            self._walk(value.__dict__, 1)

    def _array(self, value: Any, depth: int) -> None:
        if value.flags.writeable:
            self._arrays.append((value, value.copy()))
        if value.dtype.hasobject:
            self._among(value.ravel().tolist(), depth + 1)

    def _container(self, value: Any, depth: int) -> None:
        inner = _inside(value)
        if not isinstance(value, tuple):
            self._several.append((value, inner))
        values = inner.values() if isinstance(inner, dict) else inner
        if not _PLAIN.issuperset(map(type, values)):
            self._among(values, depth + 1)
        if getattr(value, "__dict__", None):
            self._walk(vars(value), depth + 1)

    def _object(self, value: Any, depth: int) -> None:
        """Attributes of an object that is of nobody's machinery; any other one is sealed."""
        if _root(type(value)) in _OTHERS and not isinstance(value, nn.Module):
            self.sealed.append(value)
            return
        if isinstance(value, partial):
            self._among((*value.args, *value.keywords.values()), depth + 1)
        slots = [name for name in _slots(type(value)) if hasattr(value, name)]
        kind: Any = type(value)
        if _compiled(kind) or not (slots or hasattr(value, "__dict__")):
            self.sealed.append(value)
        for name in slots:
            self._slots.append((value, name, getattr(value, name)))
            self._among((getattr(value, name),), depth + 1)
        if hasattr(value, "__dict__"):
            self._walk(vars(value), depth + 1)


def _root(kind: type) -> str:
    return kind.__module__.partition(".")[0]


@lru_cache(maxsize=4096)
def _compiled(kind: Any) -> bool:
    """Whether objects of a kind may hold more than attributes, as those that are not written in Python do."""
    modules = {each.__module__ for each in kind.__mro__[:-1]} - {"__main__"}  # which has no file in notebooks
    files = [getattr(sys.modules.get(each), "__file__", None) or "" for each in modules]
    return not all(file.endswith((".py", ".pyc")) for file in files)


def _slots(kind: type) -> list[str]:
    named = [vars(each).get("__slots__", ()) for each in kind.__mro__]
    names = [name for each in named for name in ((each,) if isinstance(each, str) else each)]
    return [name for name in names if name not in ("__dict__", "__weakref__") and not name.startswith("__")]


def _inside(value: Any) -> Any:
    """What a container holds, in order, past whatever a subclass makes of it."""
    if isinstance(value, dict):
        return dict(OrderedDict.items(value) if isinstance(value, OrderedDict) else dict.items(value))
    kinds: tuple[Any, ...] = (list, tuple, set, deque)
    for kind in kinds:
        if isinstance(value, kind):
            return list(kind.__iter__(value))
    return list(value)


def _put_back(now: dict[str, Any], before: dict[str, Any]) -> None:
    if _same(now, before) and _same(now.values(), before.values()):
        return
    for name in now.keys() - before.keys():
        del now[name]
    now.update(before)


def _put_back_class(kind: type, before: dict[str, Any]) -> None:
    now = vars(kind)
    if _same(now, before) and _same(now.values(), before.values()):
        return
    for name in [each for each in now if each not in before and not each.startswith("__")]:
        delattr(kind, name)
    for name, value in before.items():
        if now.get(name, _NONE) is not value and not name.startswith("__"):
            setattr(kind, name, value)


def _refill(several: Any, before: Any) -> None:
    """Gives a container what it held, if it holds something else."""
    now = _inside(several)
    if isinstance(before, dict):
        if not (_same(now, before) and _same(now.values(), before.values())):
            base = OrderedDict if isinstance(several, OrderedDict) else dict
            base.clear(several)
            for key, value in before.items():
                base.__setitem__(several, key, value)
    elif not _same(now, before):
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


def _same(now: Any, before: Any) -> bool:
    return len(now) == len(before) and all(map(is_, now, before))


def _once(tensor: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Both without the places that are the same number again, as `expand` leaves them."""
    if tensor.layout != torch.strided or tensor.is_nested or 0 not in tensor.stride():
        return tensor, value
    at = tuple(slice(0, 1) if not step else slice(None) for step in tensor.stride())
    return tensor[at], value[at]


def _print(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return int(value.detach().contiguous().view(-1).view(torch.uint8).sum(dtype=torch.int64))
    try:
        return pickle.dumps(value)
    except Exception:  # what cannot be written, such as a lock, is taken as it is
        return None
