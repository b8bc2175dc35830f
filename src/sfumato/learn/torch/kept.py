"""What a model holds beside its weights, at every depth: as it is now, and how to put it back."""

from __future__ import annotations

import io
import threading
import types
import weakref
from collections import deque
from collections.abc import Iterable
from functools import _lru_cache_wrapper, partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

from sfumato.learn.torch.reach import (
    NONE,
    OTHERS,
    PLAIN,
    inner_functions,
    is_compiled,
    is_own,
    names_in,
    print_of,
    root,
)
from sfumato.learn.torch.refilling import (
    alike,
    content,
    differs,
    fill,
    inside,
    once,
    peek,
    put_back,
    put_back_class,
    refill,
    same_bits,
    slots,
)

__all__ = ["Kept"]

Tensor: TypeAlias = torch.Tensor
_NEW = vars(nn.Module())
_OWN = frozenset(_NEW)  # what every module has
_HOOKS = [
    name
    for name, value in _NEW.items()
    if isinstance(value, dict) and name not in ("_parameters", "_buffers", "_modules")
]
_FOR_ALL = [
    value
    for name, value in vars(nn.modules.module).items()
    if isinstance(value, dict) and name.startswith("_global")
]
"""The hooks of a module, and those of all modules."""
_DEEPEST, _MOST = 24, 20_000
_CLASS = (torch.Tensor, np.ndarray, list, dict, set, deque)
_FEW = 1024  # numbers that are compared one by one
_WEAK: Any = (weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)


class Kept:
    """What the layers of a model and an objective hold now: buffers, attributes, and what is inside them.

    Args:
        model: Whose layers.
        objective: What else.
        copies: Whether to copy tensors, so that they can be put back.

    Attributes:
        sealed: What was found and cannot be put back.

    Privacy:
        Claim: after `put_back` the layers and the objective hold what they held before: the same objects,
        and in tensors, arrays, lists, dictionaries, sets, queues and the attributes of objects the same
        values, at every depth. So do what methods are bound to, hooks, and of functions and classes that are
        neither Python's nor installed: defaults, attributes, what they enclose, and the global names that
        they use; a cache of calls is emptied. Conditions: what is in `sealed` does not change; nothing is
        kept in files, in attributes of modules or in libraries.
    """

    def __init__(self, model: nn.Module, objective: Any = None, *, copies: bool = True) -> None:
        self._copies = copies
        layers = list(model.modules())
        if isinstance(objective, nn.Module):
            layers += [each for each in objective.modules() if all(each is not other for other in layers)]
        self._layers = [
            (layer, *map(dict, (vars(layer), layer._buffers, layer._parameters, layer._modules)))
            for layer in layers
        ]
        self._seen = {id(layer) for layer in layers}
        self._tensors, self._arrays = list[tuple[Tensor, Any]](), list[tuple[Any, Any]]()
        self._several, self._slots = list[tuple[Any, Any]](), list[tuple[Any, str, Any]]()
        self._kinds, self._empty = list[tuple[type, dict[str, Any]]](), list[Any]()
        self._cells, self._names = list[tuple[Any, Any]](), list[tuple[dict[str, Any], str, Any]]()
        self._read, self._alive = list[tuple[dict[str, Any], str, Any]](), list[Any]()
        self._caches, self._known = list[tuple[Any, Any]](), set[type]()
        self.sealed = list[Any]()
        own = {id(each): each for layer in layers for each in layer._parameters.values()}
        self._parameters = [(each, dict(each.__dict__)) for each in own.values() if each is not None]
        self._seen.update(own)
        for _, held in self._parameters:
            if held:
                self._among(held.values(), 0)
        for _, held, buffers, *_ in self._layers:
            if buffers:
                self._among(buffers.values(), 0)
            for name, value in held.items():
                if type(value) not in PLAIN and name not in _OWN:
                    self._walk(value, 0)
        for hooks in (*_FOR_ALL, *(layer.__dict__.get(name, {}) for layer in layers for name in _HOOKS)):
            if hooks:
                self._several.append((hooks, dict(hooks)))
                self._among((each for each in hooks.values() if not _is_ours(each)), 0)
            else:
                self._empty.append(hooks)
        for kind in dict.fromkeys(type(layer) for layer in layers):
            self._class(kind)
        if objective is not None:
            self._walk(objective, 0)
        self.settle()

    def copy(self) -> None:
        """Takes the numbers in tensors as they are now, to put them back."""
        self._tensors = [(tensor, tensor.detach().clone()) for tensor, _ in self._tensors]

    def settle(self) -> None:
        """Takes the numbers in tensors as they are now, for `changed`, and lets go of copies."""
        if not self._copies:
            self._tensors = [(each, copy if _few(each) else None) for each, copy in self._tensors]
        self._versions = [tensor._version for tensor, _ in self._tensors]

    def changed(self) -> bool:
        """Whether anything is another thing now, but for switches and words of layers (`modes_of`).

        Of large tensors, and of those on accelerators, PyTorch's count of changes is asked.
        """
        tensors = zip(self._tensors, self._versions, strict=True)
        return (
            any(differs(vars(layer), held, modes=False) for layer, held, *_ in self._layers)
            or any(
                differs(now, before)
                for layer, _, *inner in self._layers
                for now, before in zip(
                    (layer._buffers, layer._parameters, layer._modules), inner, strict=True
                )
            )
            or any(differs(each.__dict__, held) for each, held in self._parameters)
            or any(differs(vars(kind), held) for kind, held in self._kinds)
            or any(self._empty)
            or any(not alike(content(cell), before) for cell, before in self._cells)
            or any(not alike(names.get(name, NONE), before) for names, name, before in self._read)
            or any(differs(peek(several), before) for several, before in self._several)
            or any(not alike(getattr(owner, name, NONE), before) for owner, name, before in self._slots)
            or any(not same_bits(array, before) for array, before in self._arrays)
            or any(
                tensor._version != version or (few is not None and not same_bits(tensor, few))
                for (tensor, few), version in tensors
            )
        )

    def put_back(self) -> None:
        """Makes all of it what it was."""
        for layer, held, *inner in self._layers:
            put_back(vars(layer), held)
            for now, before in zip((layer._buffers, layer._parameters, layer._modules), inner, strict=True):
                if now or before:
                    put_back(now, before)
        for parameter, held in self._parameters:
            if parameter.__dict__ or held:
                put_back(parameter.__dict__, held)
        for kind, names in self._kinds:
            put_back_class(kind, names)
        for hooks in self._empty:
            if hooks:
                hooks.clear()
        for cell, before in self._cells:
            if content(cell) is not before:
                fill(cell, before)
        for names, name, before in self._names:
            if before is NONE:
                names.pop(name, None)
            else:
                names[name] = before
        for cache, before in self._caches:
            if cache.cache_info() != before:
                cache.cache_clear()
        for several, before in self._several:
            refill(several, before)
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
            pairs = [once(tensor, value) for tensor, value in self._tensors]
            with torch.no_grad():
                torch._foreach_copy_([tensor for tensor, _ in pairs], [value for _, value in pairs])

    def printed(self) -> list[Any]:
        """Of each thing that cannot be put back, something that is another one after nearly all changes.

        Raises:
            InvalidParameter: for what nobody can look into.
        """
        return [print_of(value) for value in self.sealed]

    @property
    def weights(self) -> list[Tensor]:
        """Weights that no layer names, such as those in a list: they are not put back here."""
        return [each for each in self.sealed if isinstance(each, nn.Parameter) and not each.is_inference()]

    def _among(self, values: Iterable[Any], depth: int) -> None:
        for value in values:
            if type(value) not in PLAIN:
                self._walk(value, depth)

    def _walk(self, value: Any, depth: int) -> None:
        """Notes what a value holds, and what is inside it."""
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, type):
            self._class(value, walked=is_own(value.__module__))
            return
        if depth > _DEEPEST or len(self._seen) > _MOST:
            self.sealed.append(value)
        elif isinstance(value, torch.Tensor):
            self._tensor(value)
        elif isinstance(value, np.ndarray):
            self._array(value, depth)
        elif isinstance(value, list | tuple | dict | set | deque | bytearray):
            self._container(value, depth)
        elif not self._called(value, depth):
            self._object(value, depth)

    def _tensor(self, value: Tensor) -> None:
        if isinstance(value, nn.Parameter) or value.is_inference():
            self.sealed.append(value)  # weights, of whatever size: they are not to change
        else:
            self._tensors.append((value, value.detach().clone() if self._copies or _few(value) else None))
        if value.__dict__:
            self._walk(value.__dict__, 1)

    def _array(self, value: Any, depth: int) -> None:
        if value.flags.writeable:
            self._arrays.append((value, value.copy()))
        if value.dtype.hasobject:
            self._among(value.ravel().tolist(), depth + 1)

    def _container(self, value: Any, depth: int) -> None:
        inner = inside(value)
        if not isinstance(value, tuple):
            self._several.append((value, inner))
        values = inner.values() if isinstance(inner, dict) else inner
        if not PLAIN.issuperset(map(type, values)):
            self._among(values, depth + 1)
        if getattr(value, "__dict__", None):
            self._walk(vars(value), depth + 1)

    def _called(self, value: Any, depth: int) -> bool:
        """Whether a value is a function or a method, or what refers to another value: that is walked."""
        inner: Iterable[Any] | None = None
        if isinstance(value, types.FunctionType):
            inner = self._function(value)
        elif isinstance(value, types.MethodType):
            inner = value.__self__, value.__func__
        elif isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType):
            inner = () if isinstance(value.__self__, types.ModuleType | type) else (value.__self__,)
        elif isinstance(value, _lru_cache_wrapper):
            self._caches.append((value, value.cache_info()))
            inner = value.__wrapped__, vars(value)
        elif isinstance(value, property | staticmethod | classmethod):
            inner = inner_functions(value)
        elif isinstance(value, types.MappingProxyType):
            inner = list(value.values())
        elif type(value) in (weakref.ReferenceType, weakref.WeakMethod):
            inner = (value(),)
            self._alive.append(inner)  # or another object might get its place in memory
        elif isinstance(value, weakref.ProxyTypes):
            inner = (value.__repr__.__self__,)
        elif isinstance(value, _WEAK):
            inner = (value.data,)
        elif isinstance(value, threading.local):
            inner = (vars(value),)  # of this thread, which runs the passes
        if inner is not None:
            self._among(inner, depth + 1)
        return inner is not None

    def _function(self, function: types.FunctionType) -> list[Any]:
        """What a function holds and uses beside its arguments: of one from a library, the one it wraps."""
        names = function.__globals__
        if not is_own(str(names.get("__name__", ""))):
            return [function.__dict__["__wrapped__"]] if "__wrapped__" in function.__dict__ else []
        inner: list[Any] = [function.__defaults__, function.__kwdefaults__, function.__dict__]
        for cell in function.__closure__ or ():
            self._cells.append((cell, content(cell)))
            inner.append(content(cell))
        read, stored = names_in(function.__code__)
        inner += [names[name] for name in read if name in names]
        self._names += [(names, name, names.get(name, NONE)) for name in stored]
        self._read += [(names, name, names.get(name, NONE)) for name in read]
        return [each for each in inner if each is not NONE]

    def _class(self, kind: type, *, walked: bool = True) -> None:
        """Attributes of a class and of those it is made of, and their functions where they are its user's."""
        for each in kind.__mro__ if walked else ():
            self._seen.add(id(each))
            if root(each) in OTHERS or root(each) == "sfumato" or each in self._known:
                continue
            self._known.add(each)
            held = dict(vars(each))
            self._kinds.append((each, held))
            for name, value in held.items():
                if isinstance(value, _CLASS) and not name.startswith("__"):
                    self._walk(value, 0)
                elif is_own(each.__module__):
                    self._among(inner_functions(value), 0)
                    if root(type(value)) not in OTHERS and is_own(type(value).__module__):
                        self._walk(value, 0)

    def _object(self, value: Any, depth: int) -> None:
        """Attributes of an object that is of nobody's machinery; any other one is sealed."""
        if root(type(value)) == "sfumato" and not isinstance(value, nn.Module):
            return
        if isinstance(value, io.IOBase) and not isinstance(value, io.BytesIO | io.StringIO):
            return  # a file
        if root(type(value)) in OTHERS and not isinstance(value, nn.Module):
            self.sealed.append(value)
            return
        if is_own(type(value).__module__):
            self._class(type(value))
        if isinstance(value, partial):
            self._among((value.func, *value.args, *value.keywords.values()), depth + 1)
        kind: Any = type(value)
        named = [name for name in slots(kind) if hasattr(value, name)]
        if is_compiled(kind) or not (named or hasattr(value, "__dict__")):
            self.sealed.append(value)
        for name in named:
            self._slots.append((value, name, getattr(value, name)))
            self._among((getattr(value, name),), depth + 1)
        if hasattr(value, "__dict__"):
            self._walk(vars(value), depth + 1)


def _few(value: Tensor) -> bool:
    """Whether a tensor is compared number by number."""
    return bool(value.device.type == "cpu" and value.numel() <= _FEW and value.layout == torch.strided)


def _is_ours(hook: Any) -> bool:
    names = getattr(hook, "__globals__", None)
    return names is not None and str(names.get("__name__", "")).startswith("sfumato.")
