"""How a released answer is kept in the ledger: the noisy measurements and the law of their noise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import LedgerUnusable
from sfumato.plan.noise import Noise

__all__ = ["Answer"]

_FORMAT = 1


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Noisy measurements, one array each over the public keys, with what they cost and how noisy they are.

    Attributes:
        noisy: In natural units; whole numbers as int64.
        noises: The public law of each one's noise.
        epsilon: The price.
        delta: The price.
        mechanism: Which noise.
    """

    noisy: tuple[NDArray[Any], ...]
    noises: tuple[Noise, ...]
    epsilon: Fraction
    delta: Fraction
    mechanism: str

    def as_good_as(self, noises: Sequence[Noise], confidence: Fraction) -> bool:
        """Whether no measurement is noisier than these."""
        pairs = zip(self.noises, noises, strict=True)
        return all(mine.quantile(confidence) <= other.quantile(confidence) for mine, other in pairs)

    def to_bytes(self) -> bytes:
        """Text that `from_bytes` reads back to the last bit."""
        return json.dumps(
            {
                "format": _FORMAT,
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
        """The answer that `to_bytes` wrote.

        Raises:
            LedgerUnusable: for a format of another version.
        """
        try:
            stored = json.loads(data)
            if stored["format"] != _FORMAT:
                raise ValueError("another format")
            return cls(
                tuple(_read(each) for each in stored["noisy"]),
                tuple(
                    Noise(law, float.fromhex(scale), float.fromhex(slack), whole, float.fromhex(rounding))
                    for law, scale, slack, whole, rounding in stored["noises"]
                ),
                Fraction(stored["epsilon"]),
                Fraction(stored["delta"]),
                stored["mechanism"],
            )
        except (ValueError, KeyError, TypeError):
            raise LedgerUnusable(
                "A stored answer was written by another version of Sfumato; upgrade to read it."
            ) from None


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
