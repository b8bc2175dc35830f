"""Ids as 64-bit words: a function of the id and a public salt alone, many at a time."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.numeric.private_ids import Ids, Key

__all__ = ["Words", "mix", "words_of"]

Words: TypeAlias = NDArray[np.uint64]

_CHARACTERS = 1 << 20  # worked on at once
_MASK = 2**64 - 1


def words_of(ids: Ids, salt: str) -> Words:
    """A 64-bit word for each distinct id.

    Whole numbers go through a bijection; text through a sum of its characters, each spread over 64 bits,
    times powers of an odd number, modulo 2**64. The salt decides all constants. Equal words of
    different ids do no harm to what is claimed of them: they follow from the ids and the salt.
    """
    digest = hashlib.blake2b(_bytes(salt), digest_size=32).digest()
    key = np.frombuffer(digest, "<u8").astype(np.uint64)
    if isinstance(ids.distinct, np.ndarray):
        return mix(ids.distinct.astype(np.uint64) + key[0])
    if {str}.issuperset(map(type, ids.distinct)):
        return _text_words([str(ident) for ident in ids.distinct], key)
    words = np.empty(len(ids), np.uint64)
    numbers = [place for place, ident in enumerate(ids.distinct) if _fits(ident)]
    texts = [place for place, ident in enumerate(ids.distinct) if not _fits(ident)]
    whole = [ident & _MASK for ident in ids.distinct if isinstance(ident, int) and _fits(ident)]
    words[numbers] = mix(np.array(whole, np.uint64) + key[0])
    words[texts] = _text_words([_text(ids.distinct[place]) for place in texts], key)
    return words


def _fits(key: Key) -> bool:
    return isinstance(key, int) and -(2**63) <= key < 2**64


def _text(key: Key) -> str:
    """Keys as text, those of different kinds differently."""
    if isinstance(key, str):
        return key
    if isinstance(key, bytes):
        return "\x01" + key.decode("latin-1")
    return f"\x02{key}" if isinstance(key, int) else "\x03" + "\0".join(key)


def _text_words(texts: list[str], key: Words) -> Words:
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    words, step = lengths.astype(np.uint64) * key[2] + key[0], key[1] | np.uint64(1)
    # Runs of texts of about so many characters together; a longer one is alone.
    runs = np.flatnonzero(np.diff((np.cumsum(lengths) - lengths) // _CHARACTERS)) + 1
    for start, stop in pairwise([0, *runs.tolist(), len(texts)]):
        sizes = lengths[start:stop]
        filled, starts, total = sizes > 0, np.cumsum(sizes) - sizes, int(sizes.sum())
        if not total:
            continue
        letters = np.frombuffer("".join(texts[start:stop]).encode("utf-32-le", "surrogatepass"), "<u4")
        powers = np.multiply.accumulate(np.full(int(sizes.max()), step))
        places = np.arange(total) - np.repeat(starts, sizes)
        terms = mix(letters.astype(np.uint64) + key[3]) * powers[places]
        words[start:stop][filled] += np.add.reduceat(terms, starts[filled])
    return mix(words)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # a salt with half a character in it is a salt, too


def mix(words: Words) -> Words:
    """The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection that spreads every bit."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)
