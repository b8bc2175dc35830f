"""Whole numbers and texts as rows of symbols, for prefix trees."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local.domain import as_list, wholes_of
from sfumato.numeric.exact import as_integer

__all__ = ["Symbols"]

Digits = NDArray[np.uint16]

_NIBBLE = 4
_MOST = 64
_SHORT = 64  # characters of an alphabet that a message lists


@dataclass(frozen=True, slots=True)
class Symbols:
    """Values as rows of `length` symbols of a base: four bits each, or the places of characters.

    A text ends with symbols 0, which mean no character.

    Attributes:
        base: How many symbols there are.
        length: How many a value has.
        bits: Of the numbers; None for texts.
        alphabet: The characters in the order of their symbols; None for numbers.
    """

    base: int
    length: int
    bits: int | None
    alphabet: str | None

    @classmethod
    def of(cls, bits: int | None, length: int, alphabet: str | None) -> Self:
        """The symbols of numbers of so many bits, or of texts of up to so many characters of an alphabet.

        Raises:
            InvalidParameter: for no or too many bits or characters, or an alphabet that repeats itself.
        """
        if bits is not None:
            count = as_integer(bits, "bits")
            if count > _MOST:
                raise InvalidParameter("bits must be at most 64.")
            return cls(1 << min(_NIBBLE, count), -(-count // _NIBBLE), count, None)
        size = as_integer(length, "length")
        if size > _MOST:
            raise InvalidParameter("length must be at most 64.")
        if not isinstance(alphabet, str) or not 0 < len(alphabet) < 2000 or "\0" in alphabet:
            raise InvalidParameter(
                "alphabet is a text of the characters that values consist of, at most 1999."
            )
        if len(set(alphabet)) < len(alphabet):
            raise InvalidParameter("alphabet has a character more than once.")
        return cls(len(alphabet) + 1, size, None, alphabet)

    def digits(self, values: Any) -> Digits:
        """A row of symbols for each value, the most significant first.

        Raises:
            InvalidValue: if one cannot be such a value; it is not shown.
        """
        return self._of_numbers(values) if self.alphabet is None else self._of_texts(values, self.alphabet)

    def values(self, digits: Digits) -> tuple[Any, ...]:
        """The values that have these rows."""
        if self.alphabet is None:
            shifts = [_NIBBLE * (self.length - 1 - place) for place in range(self.length)]
            return tuple(sum(int(d) << s for d, s in zip(row, shifts, strict=True)) for row in digits)
        letters = ["", *self.alphabet]
        return tuple("".join(letters[symbol] for symbol in row) for row in digits)

    def continued(self, prefixes: Digits, length: int) -> Digits:
        """All continuations of prefixes to so many symbols that begin a value."""
        for place in range(prefixes.shape[1], length):
            symbols = np.arange(self.base, dtype=np.uint16)
            tiled = np.tile(symbols, len(prefixes))
            prefixes = np.column_stack([np.repeat(prefixes, self.base, axis=0), tiled])
            prefixes = prefixes[self._begins(prefixes, place)]
        return prefixes

    def _begins(self, prefixes: Digits, place: int) -> NDArray[np.bool_]:
        """Whether the last symbol can be there: no text goes on after its end, no number is too large."""
        if self.alphabet is not None:
            ended = prefixes[:, place - 1] == 0 if place else np.zeros(len(prefixes), np.bool_)
            begins: NDArray[np.bool_] = ~ended | (prefixes[:, place] == 0)
        else:
            first = (self.bits or 0) - _NIBBLE * (self.length - 1)
            begins = prefixes[:, place] < (1 << first if place == 0 else self.base)
        return begins

    def _of_numbers(self, values: Any) -> Digits:
        if isinstance(values, np.ma.MaskedArray):
            raise InvalidValue(self._refusal)
        try:
            array = wholes_of(values, 0, (1 << (self.bits or 0)) - 1)
        except (TypeError, ValueError, OverflowError):
            raise InvalidValue(self._refusal) from None
        if array.ndim != 1:
            raise InvalidValue(self._refusal)
        numbers = array.astype(np.uint64)
        out = np.empty((numbers.size, self.length), np.uint16)
        for place in range(self.length):
            out[:, self.length - 1 - place] = (numbers >> np.uint64(_NIBBLE * place)) & np.uint64(15)
        return out

    def _of_texts(self, values: Any, alphabet: str) -> Digits:
        listed = as_list(values)
        if not all(
            isinstance(text, str) and len(text) <= self.length and "\0" not in text for text in listed
        ):
            raise InvalidValue(self._refusal)
        # Characters as numbers, a row for each text, ended by zeros, and the symbol of each number.
        codes = np.array(listed, f"U{self.length}").view(np.uint32).reshape(len(listed), self.length)
        letters = np.array(["", *alphabet], "U1").view(np.uint32)
        symbols = np.full(int(letters.max()) + 2, letters.size, np.uint16)
        symbols[letters] = np.arange(letters.size)
        digits: Digits = symbols[np.minimum(codes, symbols.size - 1)]
        if np.any(digits == letters.size):
            raise InvalidValue(self._refusal)
        return digits

    @property
    def _refusal(self) -> str:
        """What a value should have been, without the value; bits and alphabet are public."""
        if self.alphabet is None:
            return f"A value is not a whole number of {self.bits} bits; leave it out before it is randomised."
        shown = f" ({self.alphabet})" if len(self.alphabet) <= _SHORT and self.alphabet.isprintable() else ""
        return (
            f"A value is not a text of at most {self.length} characters of the alphabet{shown}; change it "
            "before it is randomised."
        )
