"""The ways of bounding, one file each, found by looking: how a unit is held within its limits, with proof."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Mapping
from importlib import import_module

from sfumato.errors import InvalidParameter
from sfumato.plan.questions.bounding.base import Bounding, Needs, Scope, Shape

__all__ = ["Bounding", "Needs", "Scope", "Shape", "asked_for", "boundings"]


@functools.cache
def boundings() -> Mapping[str, Bounding]:
    """Every way of bounding by its name, in their order."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    modules = [import_module(f"{__name__}.{name}") for name in names if name != "base" and name[0] != "_"]
    ways = [getattr(module, name)() for module in modules for name in module.__all__]
    return {way.name: way for way in sorted(ways, key=lambda way: way.order)}


def asked_for(name: object) -> Bounding:
    """The way of bounding that a question asks for by this name.

    Raises:
        InvalidParameter: if there is none, or none that may be asked for.
    """
    known = [way for way in boundings().values() if way.asked]
    for way in known:
        if isinstance(name, str) and way.name == name:
            return way
    listed = " or ".join(f'"{way.name}"' for way in known)
    raise InvalidParameter(f"bounding is {listed}, not {str(name)[:40]!r}.")
