"""A small text model to attack: how often each character follows the few before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer

__all__ = ["CharacterModel", "character_counts"]

_MOST_CELLS = 2**26


def character_counts(
    documents: Sequence[str], *, alphabet: str, order: int, most: int | None = None
) -> NDArray[np.int64]:
    """How often each sequence of `order` characters occurs: one axis a character, in the alphabet's order.

    Args:
        documents: The texts. Characters that are not in the alphabet are left out.
        alphabet: All characters that are counted: public, not read off the documents.
        order: How many characters a sequence has.
        most: How many sequences a document counts for at most: its first ones.

    Privacy:
        Claim: one document more or less changes the counts by at most `most` in all (L1), each by a whole
        number. Proof: a document's sequences are its own, and the first `most` of them are counted. They are
        exact: add noise for that sensitivity before a model is made of them.

    Raises:
        InvalidParameter: if the alphabet repeats a character or the table would not fit in memory.
    """
    symbols = len(alphabet)
    if symbols < 2 or len(set(alphabet)) < symbols:
        raise InvalidParameter("alphabet must hold at least two characters, each once.")
    if symbols ** as_integer(order, "order", least=2) > _MOST_CELLS:
        raise InvalidParameter("The table of counts is too large: take a smaller alphabet or order.")
    limit = None if most is None else as_integer(most, "most")
    cells, owners = _sequences(documents, alphabet, order)
    if limit is not None:
        # Owners come in order, so that a sequence's place in its document is how far it is from the first.
        kept = np.arange(len(owners)) - np.searchsorted(owners, owners) < limit
        cells = cells[kept]
    return np.bincount(cells, minlength=symbols**order).reshape((symbols,) * order).astype(np.int64)


def _sequences(
    texts: Sequence[str], alphabet: str, order: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every sequence of characters as its place in the table of counts, and the text that it is from."""
    points = _points("".join(texts))
    listed = _points(alphabet)
    ranks = np.argsort(listed)
    near = np.minimum(np.searchsorted(listed[ranks], points), len(listed) - 1)
    codes = ranks[near].astype(np.int64)
    known = listed[codes] == points
    owners = np.repeat(np.arange(len(texts)), [len(text) for text in texts])[known]
    line = codes[known]
    if len(line) < order:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    places = len(alphabet) ** np.arange(order - 1, -1, -1, dtype=np.int64)
    cells = np.lib.stride_tricks.sliding_window_view(line, order) @ places
    whole = owners[: len(cells)] == owners[order - 1 :]  # not across the end of a text
    return cells[whole], owners[: len(cells)][whole]


def _points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


@dataclass(frozen=True, slots=True)
class CharacterModel:
    """The probability of each character after the few before it, from counts that may hold noise.

    Attributes:
        alphabet: The characters, in the order of the axes of the counts.
        chances: P(last character | those before), one axis a character.
    """

    alphabet: str
    chances: NDArray[np.float64]

    @classmethod
    def of_counts(cls, counts: NDArray[np.int64], *, alphabet: str, smoothing: float = 0.1) -> CharacterModel:
        """The model of a table of counts; what is below zero counts as zero, and everything is possible.

        Privacy:
            Post-processing of the counts.
        """
        if counts.shape != (len(alphabet),) * counts.ndim or not smoothing > 0:
            raise InvalidParameter(
                "counts must have one place a character on each axis, and smoothing be > 0."
            )
        held = np.maximum(counts, 0) + smoothing
        return cls(alphabet, held / held.sum(axis=-1, keepdims=True))

    @classmethod
    def of_documents(
        cls,
        documents: Sequence[str],
        *,
        alphabet: str,
        order: int,
        most: int | None = None,
        release: Callable[[NDArray[np.int64]], NDArray[np.int64]] | None = None,
    ) -> CharacterModel:
        """The model of documents: plain, or private where `release` adds the noise.

        ```python
        sf.Geometric(epsilon=1, sensitivity=20).release   # with most=20: epsilon 1 for a document
        ```

        Privacy:
            That of `release`, as a mechanism of L1 sensitivity `most` for one document more or less; none
            without it.
        """
        counts = character_counts(documents, alphabet=alphabet, order=order, most=most)
        return cls.of_counts(counts if release is None else release(counts), alphabet=alphabet)

    def log_likelihood(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The log-probability of each text, from the first character with enough characters before it."""
        cells, owners = _sequences(texts, self.alphabet, self.chances.ndim)
        logs = np.log(self.chances).ravel()[cells]
        return np.bincount(owners, weights=logs, minlength=len(texts)).astype(np.float64)
