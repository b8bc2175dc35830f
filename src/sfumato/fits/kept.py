"""What a fit released, as bytes for the ledger; and what it depends on, as plain data for its fingerprint."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter, LedgerUnusable
from sfumato.numeric.exact import read_fraction
from sfumato.session.columnar import Stored, Writing

__all__ = ["Kept", "Learned", "plain"]

_FORMAT = 1

Learned: TypeAlias = Mapping[str, NDArray[Any]]
"""What a fit releases: arrays by name, all of them noisy or public."""


class Kept(NamedTuple):
    """What a fit leaves on record: the released arrays by name, and the price.

    Attributes:
        learned: All of them noisy or public.
        epsilon: As asked for.
        delta: Likewise.
        bounds: Those that the fit bought, by column.
    """

    learned: Learned
    epsilon: Fraction
    delta: Fraction
    bounds: Mapping[str, tuple[Fraction, Fraction]] = {}

    def to_bytes(self) -> bytes:
        """What `from_bytes` reads back to the last bit."""
        kept = Writing(many=True)
        arrays = {name: kept.table(_stored(array)) for name, array in self.learned.items()}
        facts = {"format": _FORMAT, "epsilon": str(self.epsilon), "delta": str(self.delta)}
        bounds = {name: list(map(str, pair)) for name, pair in self.bounds.items()}
        return kept.to_bytes({**facts, "bounds": bounds, "learned": arrays})

    @classmethod
    def from_bytes(cls, data: bytes) -> Kept:
        """What `to_bytes` wrote.

        Raises:
            LedgerUnusable: for a format of another version.
        """
        try:
            stored = Stored(data)
            facts = stored.facts
            if facts["format"] != _FORMAT:
                raise ValueError("another format")
            learned = {name: stored.table(said) for name, said in facts["learned"].items()}
            bounds = {
                name: (read_fraction(lower), read_fraction(upper))
                for name, (lower, upper) in facts["bounds"].items()
            }
            return cls(learned, read_fraction(facts["epsilon"]), read_fraction(facts["delta"]), bounds)
        except (ValueError, KeyError, TypeError):
            raise LedgerUnusable(
                "A stored model was written by another version of Sfumato; upgrade to read it."
            ) from None


def _stored(array: Any) -> NDArray[Any]:
    """An array of numbers in one of the types that are written."""
    found = np.asarray(array)
    wide = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}
    return found.astype(wide[found.dtype.kind])  # a family that releases anything else is wrong


def plain(value: Any, name: str = "") -> Any:
    """A parameter as plain data, the same for equal ones and different for different ones.

    Args:
        value: Numbers, texts, dates, lists and dictionaries of them, declared types, models.
        name: What messages call it.

    Raises:
        InvalidParameter: if it is anything else, of which nobody can say when it is the same.
    """
    match value:
        case None | bool() | str():
            return value
        case np.generic():
            return plain(value.item(), name)
        case np.ndarray():
            return ["array", plain(value.tolist(), name)]
        case numbers.Integral():
            return int(value)
        case float():
            return ["float", value.hex()]
        case Fraction() | Decimal():
            return ["number", str(Fraction(value))]
        case datetime.datetime():
            return ["moment", value.isoformat()]
        case datetime.time():
            return ["clock", value.isoformat()]
        case datetime.date():
            return ["day", value.isoformat()]
        case list() | tuple():
            return [type(value).__name__, *(plain(one, name) for one in value)]
        case Mapping():
            pairs = [[plain(key, name), plain(one, name)] for key, one in value.items()]
            return ["by name", *sorted(pairs, key=repr)]
    if hasattr(value, "get_params"):
        return [_name(type(value)), plain(value.get_params(deep=False), name)]
    if isinstance(value, type):
        return ["type", _name(value)]
    if is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        return [_name(type(value)), plain(parts, name)]
    raise InvalidParameter(
        f"{name[:60]} cannot be put on record: give numbers, texts, lists or dictionaries of them."
    )


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
