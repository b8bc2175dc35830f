"""How a released answer is kept in the ledger: the noisy measurements and the law of their noise."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import LedgerUnusable
from sfumato.plan.intervals.noise import Noise

if TYPE_CHECKING:
    from sfumato.plan.prices.quoting import Quote

__all__ = ["Answer"]

# What could be answered before a format came is written in the one before it.
_GAUSSIAN, _FORMAT, _PLAIN = 3, 2, 1
_SMALL = 2**16  # bytes: answers up to this are kept as they were read
_PLAIN_KEYS = {str, int, bool, type(None)}


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Noisy measurements, one array each over the public keys, with what they cost and how noisy they are.

    Attributes:
        noisy: In natural units; whole numbers as int64.
        noises: The public law of each one's noise.
        epsilon: The price.
        delta: The price.
        mechanism: Which noise.
        groups: The keys of the groups that were selected, where they are not public; None otherwise. On
            several levels, each begins with the number of the level that it was selected on
            (`plan.questions.others`).
        units: Their noisy numbers of units; None where they were found by weight.
        extras: What was released for each extra question, and its part of the price.
        selection: Epsilon and delta of what selected the groups.
        gaussian: Whether that had Gaussian noise (`mechanisms.gaussian_selection`).
    """

    noisy: tuple[NDArray[Any], ...]
    noises: tuple[Noise, ...]
    epsilon: Fraction
    delta: Fraction
    mechanism: str
    groups: tuple[tuple[Any, ...], ...] | None = None
    units: NDArray[Any] | None = None
    extras: tuple[tuple[Fraction, tuple[NDArray[Any], ...]], ...] = ()
    selection: tuple[Fraction, Fraction] | None = None
    gaussian: bool = False

    def has_all(self, quote: Quote) -> bool:
        """Whether it holds all that a quote would show: groups found by weight have no numbers of units."""
        return self.units is not None or not quote.recipe.counts_found

    def as_good_as(self, quote: Quote) -> bool:
        """Whether no measurement is noisier, and no part had a lower price, than this quote would have."""
        pairs = zip(self.noises, quote.noises, strict=True)
        level = quote.confidence
        if not all(mine.quantile(level) <= other.quantile(level) for mine, other in pairs):
            return False
        asked = quote.selection_price
        if asked is not None and (
            self.selection is None or self.selection[0] < asked[0] or self.selection[1] < asked[1]
        ):
            return False
        extras = zip(self.extras, quote.extras, strict=True)
        return all(mine[0] >= other.epsilon for mine, other in extras)

    def to_bytes(self) -> bytes:
        """Text that `from_bytes` reads back to the last bit."""
        more: dict[str, Any] = {}
        if self.groups is not None or self.extras:
            more = {
                "groups": None if self.groups is None else _written_keys(self.groups),
                "units": None if self.units is None else self.units.tolist(),
                "selection": None if self.selection is None else list(map(str, self.selection)),
                "extras": [
                    [str(price), [_table(array) for array in arrays]] for price, arrays in self.extras
                ],
            }
        return json.dumps(
            {
                "format": _GAUSSIAN if self.gaussian else _FORMAT if more else _PLAIN,
                **more,
                "epsilon": str(self.epsilon),
                "delta": str(self.delta),
                "mechanism": self.mechanism,
                "noises": [_law(noise) for noise in self.noises],
                "noisy": [_written(array) for array in self.noisy],
            },
            separators=(",", ":"),
        ).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Answer:
        """The answer that `to_bytes` wrote; of the same bytes the same object, where they were read lately.

        Raises:
            LedgerUnusable: for a format of another version.
        """
        return _read_lately(data) if len(data) <= _SMALL else cls._from_bytes(data)

    @classmethod
    def _from_bytes(cls, data: bytes) -> Answer:
        try:
            stored = json.loads(data)
            if stored["format"] not in (_GAUSSIAN, _FORMAT, _PLAIN):
                raise ValueError("another format")
            groups, units, selection = (stored.get(name) for name in ("groups", "units", "selection"))
            return cls(
                tuple(_read(array) for array in stored["noisy"]),
                tuple(
                    Noise(law, float.fromhex(scale), float.fromhex(slack), whole, float.fromhex(rounding))
                    for law, scale, slack, whole, rounding in stored["noises"]
                ),
                Fraction(stored["epsilon"]),
                Fraction(stored["delta"]),
                stored["mechanism"],
                None if groups is None else _read_keys(groups),
                None if units is None else np.array(units, dtype=np.int64),
                tuple(
                    (Fraction(price), tuple(_untable(array) for array in arrays))
                    for price, arrays in stored.get("extras", ())
                ),
                None if selection is None else (Fraction(selection[0]), Fraction(selection[1])),
                stored["format"] == _GAUSSIAN,
            )
        except (ValueError, KeyError, TypeError):
            raise LedgerUnusable(
                "A stored answer was written by another version of Sfumato; upgrade to read it."
            ) from None


@lru_cache(maxsize=256)
def _read_lately(data: bytes) -> Answer:
    answer = Answer._from_bytes(data)
    arrays = [*answer.noisy, *(array for _, each in answer.extras for array in each)]
    for array in (*arrays, *(() if answer.units is None else (answer.units,))):
        array.flags.writeable = False  # whoever reads it next is given the same
    return answer


def _law(noise: Noise) -> list[Any]:
    return [noise.law, noise.scale.hex(), noise.slack.hex(), noise.whole, noise.rounding.hex()]


def _written(array: NDArray[Any]) -> dict[str, Any]:
    if array.dtype.kind == "i":
        return {"whole": array.tolist()}
    return {"float": [value.hex() for value in array.tolist()]}


def _read(stored: dict[str, Sequence[Any]]) -> NDArray[Any]:
    if "whole" in stored:
        return np.array(stored["whole"], dtype=np.int64)
    return np.array([float.fromhex(text) for text in stored["float"]], dtype=np.float64)


def _table(array: NDArray[Any]) -> dict[str, Any]:
    return {"shape": list(array.shape), **_written(array.reshape(-1))}


def _untable(stored: dict[str, Any]) -> NDArray[Any]:
    return _read(stored).reshape(stored["shape"])


def _written_keys(groups: Sequence[tuple[Any, ...]]) -> Sequence[Sequence[Any]]:
    """The keys of groups as plain data; tuples are written as lists are."""
    if {*map(type, chain.from_iterable(groups))} <= _PLAIN_KEYS:
        return groups
    return [list(map(_key, row)) for row in groups]


def _read_keys(stored: Sequence[Sequence[Any]]) -> tuple[tuple[Any, ...], ...]:
    if dict in {*map(type, chain.from_iterable(stored))}:
        return tuple(tuple(map(_unkey, row)) for row in stored)
    return tuple(map(tuple, stored))


def _key(value: Any) -> Any:
    """A key as plain data: dates and floats are marked, everything else is itself."""
    if isinstance(value, datetime.date):
        return {"date": value.isoformat()}
    return {"float": value.hex()} if isinstance(value, float) else value


def _unkey(value: Any) -> Any:
    if isinstance(value, dict):
        day = value.get("date")
        return float.fromhex(value["float"]) if day is None else datetime.date.fromisoformat(day)
    return value
