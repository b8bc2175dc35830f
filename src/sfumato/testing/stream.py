"""A stream of bits that repeats itself, for tests: the same seed gives the same words on every machine."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter, SfumatoError

__all__ = ["SeededStream", "require_test", "seeded"]


def require_test(what: str) -> None:
    """Refuse to go on unless pytest runs this process.

    Both marks are asked for: an environment variable alone survives into programs that a test starts, and
    an imported pytest alone proves nothing.

    Raises:
        SfumatoError: if this process is not a test run.
    """
    marked = "PYTEST_CURRENT_TEST" in os.environ or "PYTEST_VERSION" in os.environ
    if not (marked and "pytest" in sys.modules):
        raise SfumatoError(
            f"{what} makes noise predictable and works inside pytest only; releases draw from sfumato.random."
        )


class SeededStream:
    """AES-256 in counter mode under a key derived from a seed: the `Stream` protocol, made repeatable.

    Predictable noise protects nobody, so it refuses to be built outside a test process.

    Args:
        seed: any integer or text; equal seeds give equal words.
    """

    def __init__(self, seed: int | str) -> None:
        require_test("SeededStream")
        if isinstance(seed, bool) or not isinstance(seed, int | str):
            raise InvalidParameter("seed must be an integer or a text.")
        self.seed = seed
        key = hashlib.sha256(f"sfumato.testing/{type(seed).__name__}/{seed}".encode()).digest()
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def __repr__(self) -> str:
        return f"SeededStream({self.seed!r})"

    def _bytes(self, length: int) -> bytearray:
        return bytearray(self._encryptor.update(bytes(length)))

    def words32(self, n: int) -> NDArray[np.uint32]:
        """The next `n` uniform 32-bit words."""
        return np.frombuffer(self._bytes(4 * n), dtype="<u4").astype(np.uint32, copy=False)

    def words64(self, n: int) -> NDArray[np.uint64]:
        """The next `n` uniform 64-bit words."""
        return np.frombuffer(self._bytes(8 * n), dtype="<u8").astype(np.uint64, copy=False)

    def bits(self, k: int) -> int:
        """A uniform integer of `k` bits."""
        length = (k + 7) // 8
        return int.from_bytes(self._bytes(length), "little") >> (8 * length - k)


@contextmanager
def seeded(seed: int | str) -> Iterator[SeededStream]:
    """Make this thread's releases repeatable inside the block, and put its own stream back afterwards.

    Args:
        seed: any integer or text; equal seeds give equal releases.

    Raises:
        SfumatoError: outside a test process.
    """
    from sfumato.random import (
        _replace,
    )  # here, so that the samplers can be tested without the generator above them

    stream = SeededStream(seed)
    previous = _replace(stream)
    try:
        yield stream
    finally:
        _replace(previous)
