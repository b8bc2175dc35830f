"""Documents that a server sends, read with bounds on what they become in memory."""

from __future__ import annotations

import json
import math
import re
import time
from itertools import accumulate
from typing import Any, Never

from sfumato._dataclasses import dataclass

__all__ = ["MOST_BYTES_READ", "SHORT_BYTES_READ", "Allowance", "document_of"]

MOST_BYTES_READ = 1 << 28
"""How long an answer, or all pages of receipts together, may be: 256 MiB. What is longer is not read."""
SHORT_BYTES_READ = 1 << 24
"""How long any other document may be: 16 MiB."""
_MOST_VALUES, _DEEPEST = 1_000_000, 200
# Texts of JSON, without what is escaped in them, also one without an end: each letter is read once.
_ESCAPED, _TEXTS = re.compile(r"\\.", re.DOTALL), re.compile(r'"[^"]*"?')
_NO_BRACKETS = re.compile(r"[^\[\]{}]+")
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


@dataclass(slots=True)
class Allowance:
    """What the requests of one call may take, all together.

    Attributes:
        until: When the last one has to be over, on the monotonic clock.
        bytes: How much of the server's answers is still read.
    """

    until: float
    bytes: int

    @property
    def seconds(self) -> float:
        """What is left of the time."""
        return self.until - time.monotonic()


def document_of(content: bytes) -> Any:
    """The document of some bytes.

    A list costs two bytes to send and sixty to keep, so values are counted before any is made; and so are
    levels, since whatever reads the document later goes down them one by one.

    Raises:
        ValueError: if it is none, or has too many values, levels or digits.
    """
    text = content.decode("utf-8")
    bare = _TEXTS.sub("", _ESCAPED.sub("", text))
    if sum(map(bare.count, ",:[{")) > _MOST_VALUES:
        raise ValueError("too many values")
    brackets = _NO_BRACKETS.sub("", bare)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > _DEEPEST:
        raise ValueError("too many levels")
    return json.loads(text, parse_constant=_no_number, parse_float=_finite)


def _no_number(_: str) -> Never:
    raise ValueError("no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)
