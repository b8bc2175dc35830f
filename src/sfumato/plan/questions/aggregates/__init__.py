"""The aggregates, one file each, found by looking: for each, what is measured and how its value follows."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FunctionType, ModuleType

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.questions.aggregates.base import Estimator, Linear, Part, Statistic, argument_of, as_whole
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.plan.questions.terms import Agg

__all__ = [
    "Estimator",
    "Linear",
    "Part",
    "Statistic",
    "argument_of",
    "as_whole",
    "functions",
    "statistic",
    "statistics",
    "ways_of",
]


@functools.cache
def _modules() -> tuple[ModuleType, ...]:
    names = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(import_module(f"{__name__}.{name}") for name in names if name != "base" and name[0] != "_")


@functools.cache
def statistics() -> Mapping[str, Statistic]:
    """Every aggregate by its name in plans."""
    return {kind.name: kind for module in _modules() for kind in module.STATISTICS}


@functools.cache
def functions() -> Mapping[str, Callable[..., Agg]]:
    """What Python calls them: `mean("age")`."""
    named = {name: getattr(module, name) for module in _modules() for name in module.__all__}
    return {name: value for name, value in named.items() if isinstance(value, FunctionType)}


def statistic(name: str) -> Statistic:
    """The aggregate of this name.

    Raises:
        QueryRefused: if there is none.
    """
    known = statistics().get(name)
    if known is None:
        raise QueryRefused(f"There is no aggregate {name[:60].upper()}.")
    return known


def ways_of(call: AggregateCall, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
    """The ways to measure an aggregate by sums and counts, the one that is best alone first.

    Raises:
        QueryRefused: if an argument has no range, or it is not measured by sums and counts.
    """
    if call.bounds is not None and call.bounds[0] == "group":
        raise QueryRefused("Bounds for a unit's total in each group are not supported here.")
    return statistic(call.function).ways(call, columns)
