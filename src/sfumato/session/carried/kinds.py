"""Whether values that came from elsewhere are of the kinds that a class declares for its fields.

A frozen class takes whatever it is given, and what it was given shows much later, where somebody prints it.
What another process sent is checked when it is made.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

__all__ = ["checked", "checked_fields"]

T = TypeVar("T")
_LARGEST = 10**300  # what can still be a float


def checked(made: T, names: Sequence[str] | None = None) -> T:
    """The same value, whose fields hold what its class declares.

    Args:
        made: Of a class with declared fields.
        names: Which of them; by default all.

    Raises:
        TypeError: if one holds something else; the message says which.
    """
    kind: Any = type(made)
    hints = _hints(kind)
    checked_fields(kind, {name: getattr(made, name) for name in (hints if names is None else names)})
    return made


def checked_fields(declaring: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Refuse values that a class or a function does not declare for these names.

    Raises:
        TypeError: if there is one; the message says which.
    """
    hints = _hints(declaring)
    for name, value in values.items():
        if not _is(value, hints[name]):
            raise TypeError(f"{declaring.__name__} has no such {name}")


@lru_cache(maxsize=256)
def _hints(declaring: Callable[..., Any]) -> Mapping[str, Any]:
    return get_type_hints(declaring)


def _is(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared kind; parts of sequences and mappings, too."""
    kind, of = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if kind in (Union, types.UnionType):
        return any(_is(value, one) for one in of)
    if kind is Literal:
        return any(type(value) is type(one) and value == one for one in of)
    if kind is tuple:
        if not isinstance(value, tuple):
            return False
        if len(of) == 2 and of[1] is Ellipsis:
            return all(_is(one, of[0]) for one in value)
        return len(value) == len(of) and all(map(_is, value, of))
    if kind is not None and issubclass(kind, Mapping):
        return isinstance(value, Mapping) and all(
            _is(name, of[0]) and _is(one, of[1]) for name, one in value.items()
        )
    if kind is not None:  # arrays, sequences of groups, functions: what they hold is known to their readers
        return isinstance(value, kind)
    if hint is int or hint is float:
        number = isinstance(value, int | float if hint is float else int) and not isinstance(value, bool)
        return number and (isinstance(value, float) or abs(value) <= _LARGEST)
    return value is None if hint is type(None) else isinstance(value, hint)
