"""Facts and arrays as bytes: a line of JSON, and behind it the bytes of arrays that are too long for text.

```
{"format":4,…,"noisy":[{"of":"<i8","at":0,"count":2000}]}⏎ bytes of the first array, bytes of the second, …
```

An array lies at `at` bytes after the line, in the byte order that `of` says; each begins at a multiple of 8.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.numeric.columns import from_parts, to_parts
from sfumato.plan.questions.found import Found

__all__ = ["Stored", "Writing", "key_of_plain", "plain_key"]

_WORD = 8
_TYPES = {"<i8", "<f8", "<i4", "|u1", "|b1"}
_PLAIN_KEYS = {str, int, bool, type(None)}


class Writing:
    """Arrays that are written, and what stands for each of them in the line of JSON.

    Attributes:
        many: Whether they are written as bytes; else the line has all numbers, as it always had.
    """

    def __init__(self, many: bool) -> None:
        """Begin with nothing behind the line."""
        self.many = many
        self._parts: list[bytes] = []
        self._end = 0

    def array(self, array: NDArray[Any]) -> dict[str, Any]:
        """One row of whole numbers or floats."""
        if self.many:
            return self._raw(array)
        if array.dtype.kind == "i":
            return {"whole": array.tolist()}
        return {"float": [value.hex() for value in array.tolist()]}

    def table(self, array: NDArray[Any]) -> dict[str, Any]:
        """An array of any shape."""
        return {"shape": list(array.shape), **self.array(array.reshape(-1))}

    def units(self, array: NDArray[Any]) -> Any:
        """Whole numbers, which text has without their type."""
        return self._raw(array) if self.many else array.tolist()

    def keys(self, groups: Sequence[tuple[Any, ...]]) -> Any:
        """The keys of groups: as columns, or as rows of plain data."""
        if self.many and isinstance(groups, Found):
            columns = [to_parts(column) for column in groups.columns]
            if all(columns):
                return [
                    {"holds": holds} | {name: self._raw(part) for name, part in parts.items()}
                    for holds, parts in filter(None, columns)
                ]
        rows = tuple(groups)
        plain = {*map(type, chain.from_iterable(rows))} <= _PLAIN_KEYS
        return rows if plain else [list(map(plain_key, row)) for row in rows]

    def to_bytes(self, facts: dict[str, Any]) -> bytes:
        """The line, and what is behind it."""
        line = json.dumps(facts, separators=(",", ":")).encode()
        if not self.many:
            return line
        blank = b" " * (-(len(line) + 1) % _WORD)
        return b"".join([line, blank, b"\n", *self._parts])

    def _raw(self, array: NDArray[Any]) -> dict[str, Any]:
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        said = {"of": plain.dtype.str, "at": self._end, "count": plain.size}
        self._parts += [plain.tobytes(), bytes(-plain.nbytes % _WORD)]
        self._end += plain.nbytes + -plain.nbytes % _WORD
        return said


class Stored:
    """What `Writing` wrote, or an earlier version, which had no more than the line.

    Attributes:
        facts: The line.
    """

    def __init__(self, data: bytes) -> None:
        """Read the line.

        Raises:
            ValueError: if it is none.
        """
        end = data.find(b"\n")
        self.facts: dict[str, Any] = json.loads(data if end < 0 else data[:end])
        self._behind = memoryview(data)[end + 1 :] if end >= 0 else memoryview(b"")

    def array(self, said: dict[str, Any]) -> NDArray[Any]:
        """One row of numbers."""
        if "of" in said:
            return self._raw(said)
        if "whole" in said:
            return np.array(said["whole"], dtype=np.int64)
        return np.array([float.fromhex(text) for text in said["float"]], dtype=np.float64)

    def table(self, said: dict[str, Any]) -> NDArray[Any]:
        """An array of any shape."""
        return self.array(said).reshape(said["shape"])

    def units(self, said: Any) -> NDArray[Any]:
        """Whole numbers."""
        return self._raw(said) if isinstance(said, dict) else np.array(said, dtype=np.int64)

    def keys(self, said: Sequence[Any]) -> Sequence[tuple[Any, ...]]:
        """The keys of groups."""
        if said and isinstance(said[0], dict):
            parts = [{name: self._raw(one) for name, one in each.items() if name != "holds"} for each in said]
            return Found([from_parts(each["holds"], part) for each, part in zip(said, parts, strict=True)])
        if dict in {*map(type, chain.from_iterable(said))}:
            return tuple(tuple(map(key_of_plain, row)) for row in said)
        return tuple(map(tuple, said))

    def _raw(self, said: dict[str, Any]) -> NDArray[Any]:
        if said["of"] not in _TYPES or said["at"] < 0 or said["count"] < 0:
            raise ValueError("no such array")
        kind = np.dtype(said["of"])
        some = self._behind[said["at"] : said["at"] + said["count"] * kind.itemsize]
        array = np.frombuffer(some, kind).astype(kind.newbyteorder("="))  # a copy, which may be written to
        if array.size != said["count"]:
            raise ValueError("an array was cut off")
        return array


_TIMES: dict[str, Any] = {
    "moment": datetime.datetime,  # which is a date, too
    "date": datetime.date,
    "clock": datetime.time,
}


def plain_key(value: Any) -> Any:
    """A key as plain data: dates, times and floats are marked, everything else is itself."""
    for name, kind in _TIMES.items():
        if isinstance(value, kind):
            return {name: value.isoformat()}
    return {"float": value.hex()} if isinstance(value, float) else value


def key_of_plain(value: Any) -> Any:
    """The key that `plain_key` wrote."""
    if isinstance(value, dict):
        name, text = next(iter(value.items()))
        return _TIMES[name].fromisoformat(text) if name in _TIMES else float.fromhex(text)
    return value
