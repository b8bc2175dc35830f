"""The standard `dataclass` at a fraction of its cost: a package has hundreds, and a process uses few of them.

The standard decorator writes six functions as text for each class, and compiles them while the module loads.
Here each is written when a class first uses it, and those that print and guard fields are no text at all.

What comes out is a dataclass: `fields`, `replace`, `asdict`, `match` and pickling work. Type checkers read
the standard decorator in its place. `tests/test_dataclasses.py` holds the two against each other.
"""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import MISSING, FrozenInstanceError
from reprlib import recursive_repr
from types import FunctionType

TYPE_CHECKING = False  # as typing's, without loading it
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["dataclass"]


def _dataclass(
    *,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
    weakref_slot: bool = False,
    kw_only: bool = False,
) -> Callable[[type], type]:
    """What `dataclasses.dataclass` makes of a class; without `order`, `unsafe_hash` and `InitVar`."""
    shape = {"slots": slots, "weakref_slot": weakref_slot, "kw_only": kw_only}

    def make(plain: type) -> type:
        given = frozenset(plain.__dict__)
        # The standard guard of fields is text too. Below a frozen base, the standard decorator insists on it.
        guarded = frozen and any(hasattr(base, "__dataclass_fields__") for base in plain.__mro__[1:])
        bare = dataclasses.dataclass(init=False, repr=False, eq=False, frozen=guarded, **shape)
        explicit_hash = "__hash__" in given and not (plain.__hash__ is None and "__eq__" in given)
        made: type = bare(plain)
        if slots:
            _move_super(plain, made)
        params: Any = made.__dict__["__dataclass_params__"]
        params.init, params.repr, params.eq, params.frozen = init, repr, eq, frozen
        methods: dict[str, Any] = {}
        if init:
            methods["__init__"] = _Late(_init, made, frozen)
        if repr:
            methods["__repr__"] = _Late(_repr, made, frozen)
        if eq:
            methods["__eq__"] = _Late(_eq, made, frozen)
            if not explicit_hash:
                made.__hash__ = _Late(_hash, made, frozen) if frozen else None  # type: ignore[assignment]
        if frozen and not guarded:
            if not given.isdisjoint(("__setattr__", "__delattr__")):
                raise TypeError(
                    f"The frozen dataclass {made.__name__} guards its fields itself; leave this to it."
                )
            methods["__setattr__"] = _Late(_setattr, made, frozen)
            methods["__delattr__"] = _Late(_delattr, made, frozen)
            if slots:
                methods |= {"__getstate__": _get_state, "__setstate__": _set_state}
        for name, method in methods.items():
            if name not in given:
                setattr(made, name, method)
        return made

    return make


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass


def _move_super(plain: type, made: type) -> None:
    """Let `super()` in methods mean the class with slots, not the one that it was made from.

    The standard decorator does this from Python 3.14. All methods share the one cell that holds the class.
    """
    for value in plain.__dict__.values():
        if isinstance(value, property):
            value = value.fget
        elif isinstance(value, classmethod | staticmethod):
            value = value.__func__
        while isinstance(value, FunctionType):
            if value.__closure__ and "__class__" in value.__code__.co_freevars:
                cell = value.__closure__[value.__code__.co_freevars.index("__class__")]
                if cell.cell_contents is plain:
                    cell.cell_contents = made
                    return
            value = value.__dict__.get("__wrapped__")


class _Late:
    """A method that is written when it is first looked up, and then stands in the class itself."""

    __slots__ = ("cls", "frozen", "write")

    def __init__(self, write: Callable[[Any, bool], Any], cls: type, frozen: bool) -> None:
        self.write, self.cls, self.frozen = write, cls, frozen

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        written = self.write(self.cls, self.frozen)
        written.__qualname__ = f"{self.cls.__qualname__}.{written.__name__}"
        type.__setattr__(self.cls, written.__name__, written)
        return written.__get__(instance, owner)


class _Factory:
    """The default of a field that a factory makes, as a signature shows it."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _init(cls: Any, frozen: bool) -> FunctionType:
    """`__init__`: sets each field in turn, then calls `__post_init__` where there is one."""
    fields = dataclasses.fields(cls)
    scope: dict[str, Any] = {"_set": object.__setattr__, "_factory": _FACTORY}
    places: dict[bool, list[str]] = {False: ["self"], True: []}  # the arguments, and those by keyword only
    lines = []
    for field in fields:
        name = value = field.name
        default = f"_default_{name}"
        made = field.default_factory is not MISSING
        if made or field.default is not MISSING:
            scope[default] = field.default_factory if made else field.default
        if field.init:
            start = "_factory" if made else default
            places[bool(field.kw_only)].append(f"{name}={start}" if default in scope else name)
            value = f"{default}() if {name} is _factory else {name}" if made else name
        elif made or (default in scope and "__slots__" in cls.__dict__):
            value = f"{default}()" if made else default
        else:
            continue  # read from the class, or set later
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    arguments = [*places[False], *(["*", *places[True]] if places[True] else ())]
    written = _written(cls, "__init__", arguments, lines or ["pass"], scope)
    written.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    return written


def _eq(cls: Any, _frozen: bool) -> FunctionType:
    """`__eq__`: whether the other is of the same class, with equal fields."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    lines = [
        "if other.__class__ is self.__class__:",
        f" return {_tuple('self', names)} == {_tuple('other', names)}",
        "return NotImplemented",
    ]
    return _written(cls, "__eq__", ["self", "other"], lines, {})


def _hash(cls: Any, _frozen: bool) -> FunctionType:
    """`__hash__`: of the fields that are compared, unless they say otherwise."""
    fields = dataclasses.fields(cls)
    names = [field.name for field in fields if (field.compare if field.hash is None else field.hash)]
    return _written(cls, "__hash__", ["self"], [f"return _hash({_tuple('self', names)})"], {"_hash": hash})


def _tuple(value: str, names: list[str]) -> str:
    return f"({' '.join(f'{value}.{name},' for name in names)})"


def _written(
    cls: Any, name: str, arguments: list[str], lines: list[str], scope: dict[str, Any]
) -> FunctionType:
    """A function from its text, in the module of the class, with some values in reach."""
    head = f"def write({', '.join(scope)}):\n def {name}({', '.join(arguments)}):\n  "
    module = sys.modules.get(cls.__module__)
    made: dict[str, Any] = {}
    exec(head + "\n  ".join(lines) + f"\n return {name}", module.__dict__ if module else {}, made)
    function: FunctionType = made["write"](**scope)
    return function


def _repr(cls: Any, _frozen: bool) -> Callable[..., Any]:
    """`__repr__`: the class with its fields by name, less those that are not to be shown."""
    names = tuple(field.name for field in dataclasses.fields(cls) if field.repr)

    def __repr__(self: Any) -> str:  # noqa: N807
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return recursive_repr()(__repr__)


def _setattr(cls: Any, _frozen: bool) -> Callable[..., Any]:
    """`__setattr__` of a frozen dataclass: no field can be set, nor anything else but in a class below it."""
    names = frozenset(field.name for field in dataclasses.fields(cls))

    def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    return __setattr__


def _delattr(cls: Any, _frozen: bool) -> Callable[..., Any]:
    """`__delattr__` of a frozen dataclass, likewise."""
    names = frozenset(field.name for field in dataclasses.fields(cls))

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __delattr__


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
