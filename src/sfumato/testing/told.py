"""Values as text that two runs can be compared by: everything an observer could see, and no addresses."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from sfumato.samplers.wholes import Wholes

__all__ = ["form", "told"]

_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def told(value: Any) -> str:
    """The value with its types, to the last bit; equal texts mean that nobody can tell two values apart."""
    return "".join(_told(value))


def _told(value: Any) -> Iterator[str]:
    yield type(value).__name__
    if isinstance(value, np.ndarray):
        yield f"[{value.dtype} {value.shape}]"
        yield from _told(value.tolist())
    elif isinstance(value, float):
        yield f"({value.hex()})"
    elif isinstance(value, BaseException):
        yield f"({getattr(value, 'code', '')}, {_plain(value)})"
        for linked in (value.__cause__, value.__context__):
            yield " from " if linked is not None else ""
            yield from _told(linked) if linked is not None else ()
    elif hasattr(value, "schema") and hasattr(value, "to_pylist"):  # an Arrow table
        yield f"[{value.schema.to_string(show_field_metadata=False)}]"
        yield from _told(value.to_pylist())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value)]
        yield from _told({name: getattr(value, name) for name in fields})
    elif isinstance(value, Mapping):
        yield "{"
        for key, entry in value.items():
            yield from (*_told(key), ": ", *_told(entry), ", ")
        yield "}"
    elif isinstance(value, Set):
        yield from _told(sorted(map(told, value)))
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        yield "["
        for entry in value:
            yield from (*_told(entry), ", ")
        yield "]"
    else:
        yield f"({_plain(value)})"


def _plain(value: Any) -> str:
    return _ADDRESS.sub("0x", repr(value))


def form(value: Any) -> str:
    """What must not depend on the data: type, shape and element types, without the values themselves."""
    if isinstance(value, np.ndarray):
        return f"array of {value.dtype}, {value.shape}"
    if isinstance(value, Wholes):  # where each number is held is a matter of speed
        return f"array of whole numbers, {value.size}"
    if isinstance(value, list | tuple):
        kinds = sorted({form(entry) for entry in value})
        return f"{type(value).__name__} of {len(value)}: {', '.join(kinds)}"
    if callable(value):
        return "function"
    return type(value).__name__
