"""What functions and classes of a user's own reach beside their arguments, and what nobody can look into."""

from __future__ import annotations

import dis
import functools
import io
import pickle
import sys
import types
import weakref
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch

from sfumato.errors import InvalidParameter

__all__ = [
    "NONE",
    "OTHERS",
    "PLAIN",
    "inner_functions",
    "is_compiled",
    "is_own",
    "names_in",
    "print_of",
    "root",
]

NONE = object()
PLAIN = frozenset(
    {
        *(bool, int, float, complex, str, bytes, type(None), range, torch.Size, torch.Generator),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format, types.ModuleType, types.CodeType),
        *(types.WrapperDescriptorType, types.MethodDescriptorType),
        *(types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType),
        *(types.GenericAlias, types.UnionType, types.EllipsisType, types.NotImplementedType),
    }
)
"""What cannot change. The state of a generator is of how many passes there were, and of no record."""
_RUNNING = frozenset(
    {"logging", "threading", "_thread", "concurrent", "multiprocessing", "asyncio", "weakref"}
)
OTHERS = frozenset({"torch", "numpy", "builtins", *_RUNNING})
"""Whose objects are not walked into."""
_UNREADABLE = OTHERS - {"builtins"}
_STORED = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_INSTALLED = ("site-packages", "dist-packages")


def root(kind: type) -> str:
    """The package that a kind of objects is of."""
    return kind.__module__.partition(".")[0] if isinstance(kind.__module__, str) else ""


@lru_cache(maxsize=4096)
def is_own(module: str) -> bool:
    """Whether a module is neither Python's nor installed: what its functions and classes hold is watched."""
    first = module.partition(".")[0]
    if first == "sfumato" or first in OTHERS or first in sys.stdlib_module_names:
        return first == "__main__"
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return not any(each in file for each in _INSTALLED)


@lru_cache(maxsize=4096)
def is_compiled(kind: Any) -> bool:
    """Whether objects of a kind may hold more than attributes, as those that are not written in Python do."""
    modules = {each.__module__ for each in kind.__mro__[:-1]} - {"__main__"}  # which has no file in notebooks
    files = [getattr(sys.modules.get(each), "__file__", None) or "" for each in modules]
    return not all(file.endswith((".py", ".pyc")) for file in files)


@lru_cache(maxsize=4096)
def names_in(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The global names that a function reads, and those that it sets, in functions inside it, too."""
    read, stored = set[str](), set[str]()
    for each in dis.get_instructions(code):
        if each.opname in _STORED:
            stored.add(each.argval)
        elif each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            read.add(each.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            more, others = names_in(inner)
            read, stored = read | more, stored | others
    return frozenset(read), frozenset(stored)


def inner_functions(value: Any) -> Iterator[Any]:
    """The functions inside what a class makes of them."""
    if isinstance(value, property):
        yield from (each for each in (value.fget, value.fset, value.fdel) if each is not None)
    elif isinstance(value, staticmethod | classmethod):
        yield value.__func__
    elif isinstance(value, functools.cached_property):
        yield value.func
    elif isinstance(value, types.FunctionType | functools._lru_cache_wrapper):
        yield value


def print_of(value: Any) -> Any:
    """Something that is another one after nearly all changes of a value.

    Raises:
        InvalidParameter: for what nobody can look into, so that it might keep records.
    """
    if isinstance(value, torch.Tensor):
        return int(value.detach().contiguous().view(-1).view(torch.uint8).sum(dtype=torch.int64))
    try:
        return pickle.dumps(value)
    except Exception as error:  # what cannot be written
        kinds = (io.IOBase, types.FunctionType, weakref.ReferenceType)
        if root(type(value)) in _UNREADABLE or isinstance(value, kinds):
            return None  # such as a lock, a stream of a device, a file on disk: taken as it is
        raise InvalidParameter(
            f"The model or the objective holds what cannot be looked into ({type(value).__name__}), and "
            "might keep something of what it is given: keep that in a buffer, a list or a dictionary, or "
            "leave it out."
        ) from error
