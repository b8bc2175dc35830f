"""Draws made ahead, so that a single one costs about a microsecond; and the tables that all threads share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from sfumato.numeric.exact import Rational, positive
from sfumato.samplers import continuous, discrete
from sfumato.samplers.law import COARSE, FINE, Law, draw, gaussian, geometric, laplace
from sfumato.samplers.stream import Stream
from sfumato.samplers.table import Table

__all__ = ["BIAS", "FEW", "KINDS", "Kind", "Pool", "Pools", "table_of"]

FEW = 16
"""Vectors up to this length are served from the pools, which is faster and leaves no table behind."""

_AHEAD = 1024  # draws made at once
_PATIENCE = 16  # single draws of one law before a table is made for it
_TABLES = 48  # tables kept, of about a quarter of a megabyte each
_POOLS = 512  # laws for which a thread keeps draws

BIAS = (1 << 64) + (1 << 29)
"""Added to the integers that pools hold: all are of one length whatever the noise, and small ones of either
sign differ in their lowest digit alone (of 30 bits), so that taking the rest away takes as long for all."""

_HELD = continuous.OFFSET + (1 << 63)

Kind: TypeAlias = str
"""A family of laws with one parameter."""

KINDS: dict[Kind, Callable[[Fraction, int], Law]] = {
    "geometric": lambda rate, limit: geometric(rate, limit=limit),
    "discrete laplace": lambda scale, limit: laplace(scale, limit=limit),
    "discrete gaussian": lambda variance, limit: gaussian(variance, limit=limit),
    "laplace": lambda scale, limit: laplace(scale, discrete=False, limit=limit),
    "gaussian": lambda variance, limit: gaussian(variance, discrete=False, limit=limit),
}


_lock = threading.Lock()
_tables: OrderedDict[tuple[Kind, int, int], Table] = OrderedDict()


def table_of(kind: Kind, parameter: Fraction) -> Table:
    """The table of a law, made once and shared; the least recently used ones are forgotten."""
    key = kind, parameter.numerator, parameter.denominator
    with _lock:
        table = _tables.get(key)
        if table is not None:
            _tables.move_to_end(key)
            return table
    table = Table(KINDS[kind](parameter, FINE))  # outside the lock: a table made twice is merely wasted
    with _lock:
        _tables[key] = table
        while len(_tables) > _TABLES:
            _tables.popitem(last=False)
    return table


def renew_lock() -> None:
    """After a fork: the lock may have been held by a thread that does not exist in the child."""
    global _lock
    _lock = threading.Lock()


class Pool:
    """Draws of one law that no one has seen yet. Each leaves the pool as it is handed out."""

    __slots__ = ("_kind", "_patience", "_rough", "exact", "parameter", "values")

    def __init__(self, kind: Kind, parameter: Rational, exact: Fraction) -> None:
        self.parameter, self.exact = parameter, exact
        self.values: list[int] = []
        self._kind, self._patience = kind, _PATIENCE
        self._rough: Law | None = None

    def refill(self, stream: Stream) -> int:
        """One draw, now that none is left; after the first few, more are made with it."""
        if self._patience:
            # A law that is drawn from once, perhaps with a private parameter, leaves no table behind.
            self._patience -= 1
            if self._rough is None:
                self._rough = KINDS[self._kind](self.exact, COARSE)
            return one(stream, self._rough)
        self._rough = None
        table = table_of(self._kind, self.exact)
        if table.law.discrete:
            ahead = np.empty(_AHEAD, np.int64)
            discrete.fill(stream, table, ahead)
            self.values = [value + BIAS for value in ahead.tolist()]
        else:
            self.values = [point + _HELD for point in continuous.floors(stream, table, _AHEAD)]
        return self.values.pop()


def one(stream: Stream, law: Law) -> int:
    """A single draw in exact arithmetic, in the form that pools hand out."""
    if law.discrete:
        return continuous.saturated(draw(stream, law)) + BIAS
    return continuous.one(stream, law) + _HELD


class Pools:
    """A thread's pools of one kind of law."""

    __slots__ = ("_known", "_source", "_values", "kind")

    def __init__(self, kind: Kind, source: Callable[[], Stream]) -> None:
        self.kind, self._source = kind, source
        # By identity first: a mechanism passes the same object every time, and to hash a fraction costs
        # more than a draw.
        self._known: dict[int, Pool] = {}
        self._values: dict[tuple[int, int], Pool] = {}

    def draw(self, parameter: Rational, name: str) -> int:
        """One draw of the law with this parameter: noise plus `BIAS`, or what `continuous.unbiased` takes."""
        pool = self._known.get(id(parameter))
        if pool is None or pool.parameter is not parameter:
            pool = self._find(parameter, name)
        values = pool.values
        return values.pop() if values else pool.refill(self._source())

    def _find(self, parameter: Rational, name: str) -> Pool:
        exact = positive(parameter, name)
        key = exact.numerator, exact.denominator
        pool = self._values.get(key)
        if pool is None:
            if len(self._values) >= _POOLS:
                self.clear()
            pool = self._values[key] = Pool(self.kind, parameter, exact)
        else:
            self._known.pop(id(pool.parameter), None)
        pool.parameter = parameter  # held, so that its identity is not given to another object
        self._known[id(parameter)] = pool
        return pool

    def clear(self) -> None:
        """Drops every draw made ahead."""
        for pool in self._values.values():
            pool.values.clear()
        self._known.clear()
        self._values.clear()
