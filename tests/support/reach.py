"""What can be reached from an object: by attributes, dictionaries, closures, copies and pickles."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from sfumato.ledger import Ledger, Steward

_ENDS = (type, ModuleType, CodeType, FrameType, str, bytes, int, float, complex, type(None))


def reached(starts: Iterable[Any]) -> Iterator[Any]:
    """Every object that these hold, however deep and however private; classes and modules end the way."""
    waiting, seen = list(starts), dict[int, Any]()
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, _ENDS):
            continue
        seen[id(thing)] = thing  # kept, so that no later object has the same number
        yield thing
        if isinstance(thing, FunctionType):  # what it closes over, and not the names of its module
            waiting += [thing.__closure__, thing.__defaults__, thing.__kwdefaults__, thing.__dict__]
        else:
            waiting += gc.get_referents(thing)


def _again(thing: Any) -> Iterator[Any]:
    """Its copies, as far as it lets itself be copied."""
    for made in (copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))):
        try:
            yield made(thing)
        except (TypeError, AttributeError, pickle.PicklingError):
            continue


def powers(*held: Any) -> list[str]:
    """What of the steward's somebody has in hand who was given these."""
    everything = [*held, *(other for thing in held for other in _again(thing))]
    return sorted(
        {type(thing).__name__ for thing in reached(everything) if isinstance(thing, Ledger | Steward)}
    )
