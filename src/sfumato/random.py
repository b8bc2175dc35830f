"""The only source of randomness, and every exact draw that a release may use.

Bits come from AES-256 in counter mode, keyed by the operating system, one generator per thread. The laws in
`sfumato.samplers` are exact functions of those bits, so each function below draws from exactly the law in its docstring:
no rounding, no float noise, no truncation.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias, TypeVar, overload

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.samplers import law as laws
from sfumato.samplers import scalar
from sfumato.samplers.stream import Booleans, Integers, Stream, Words32, Words64

__all__ = [
    "Keystream",
    "add_gaussian",
    "add_laplace",
    "bernoulli",
    "bernoulli_exp",
    "choose",
    "current",
    "discrete_gaussian",
    "discrete_laplace",
    "flip",
    "geometric",
    "integers",
    "permutation",
    "salt",
    "simulation",
    "token",
]

Shape: TypeAlias = int | tuple[int, ...]
_KEY = 32
_PAD = 16  # the cipher wants room for one more block than it writes
_BUFFER = 1 << 15
_CHUNK = 1 << 20  # bytes under one key
_ZEROS = bytes(_CHUNK)
_LARGEST = 2**63 - 1
_T = TypeVar("_T")


class Keystream:
    """AES-256-CTR keyed by the operating system, with fast key erasure.

    Small requests are cut from a buffer and zeroed there as they are read. Every refill, and every large request, uses a
    key of its own that is forgotten at once: the first bytes of a refill are the next key. So no state that exists after a
    read can reproduce what was read. A key encrypts at most 2**16 blocks.

    One belongs to one thread; it is not safe to share. A forked child starts from a fresh key. It cannot be pickled or copied.
    """

    __slots__ = ("__weakref__", "_buffer", "_key", "_position", "_view")

    def __init__(self) -> None:
        self._buffer = bytearray(_BUFFER + _PAD)
        self._view = memoryview(self._buffer)
        self.drop()
        _living.add(self)

    def drop(self) -> None:
        """Forgets everything and starts again from the operating system."""
        self._view[:] = bytes(_BUFFER + _PAD)
        self._key = os.urandom(_KEY)
        self._position = _BUFFER

    def words32(self, count: int) -> Words32:
        """A fresh, writable array of `count` uniform 32-bit words."""
        return self._bytes(4 * count).view(np.uint32)

    def words64(self, count: int) -> Words64:
        """A fresh, writable array of `count` uniform 64-bit words."""
        return self._bytes(8 * count).view(np.uint64)

    def bits(self, count: int) -> int:
        """A uniform integer of `count` bits."""
        size = (count + 7) // 8
        if size > _BUFFER - _KEY:
            return int.from_bytes(self._bytes(size).tobytes(), "little") >> (8 * size - count)
        start = self._take(size)
        end = start + size
        value = int.from_bytes(self._buffer[start:end], "little")
        self._buffer[start:end] = _ZEROS[:size]
        return value >> (8 * size - count)

    def _take(self, size: int) -> int:
        """Where the next `size` bytes of the buffer begin; what is left of it is dropped if they do not fit."""
        start = self._position
        if start + size > _BUFFER:
            self._encrypt(self._key, self._view, _BUFFER)
            self._key = bytes(self._view[:_KEY])
            self._view[:_KEY] = _ZEROS[:_KEY]
            start = _KEY
        self._position = start + size
        return start

    def _bytes(self, size: int) -> NDArray[np.uint8]:
        out = np.empty(size + _PAD, np.uint8)
        if size <= _BUFFER // 8:
            start = self._take(size)
            out[:size] = np.frombuffer(self._buffer, np.uint8, size, start)
            self._buffer[start : start + size] = _ZEROS[:size]
        else:
            view = memoryview(out)
            for start in range(0, size, _CHUNK):
                key = self._take(_KEY)
                secret = bytes(self._view[key : key + _KEY])
                self._view[key : key + _KEY] = _ZEROS[:_KEY]
                self._encrypt(secret, view[start:], min(_CHUNK, size - start))
        return out[:size]

    @staticmethod
    def _encrypt(key: bytes, view: memoryview, size: int) -> None:
        # A key is used once, so that the counter may start from zero.
        encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        encryptor.update_into(_ZEROS[:size] if size < _CHUNK else _ZEROS, view)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A keystream cannot be pickled or copied: two holders of it would draw the same noise."
        )


_living: weakref.WeakSet[Keystream] = weakref.WeakSet()


class _Local(threading.local):
    """What a thread owns: its stream of bits and its pools of draws."""

    def __init__(self) -> None:
        self.stream: Stream = Keystream()


_local = _Local()


def _after_fork() -> None:
    for stream in list(_living):
        stream.drop()


os.register_at_fork(after_in_child=_after_fork)


def current() -> Stream:
    """This thread's stream of bits."""
    return _local.stream


def _replace(stream: Stream) -> Stream:
    """Swaps this thread's stream for another, drops its pools and gives the previous stream. For `sfumato.testing` alone."""
    previous = _local.stream
    _local.stream = stream
    return previous


def _filled(one: Callable[[], Any], size: Shape, dtype: type) -> Any:
    shape = (size,) if isinstance(size, int) else tuple(size)
    return np.array([one() for _ in range(math.prod(shape))], dtype).reshape(shape)


def _saturated(value: int) -> int:
    return max(-_LARGEST, min(_LARGEST, value))


@lru_cache(maxsize=64)
def _laplace(scale: Fraction, discrete: bool) -> laws.Law:
    return laws.laplace(scale, discrete=discrete)


@lru_cache(maxsize=64)
def _gaussian(variance: Fraction, discrete: bool) -> laws.Law:
    return laws.gaussian(variance, discrete=discrete)


@lru_cache(maxsize=64)
def _geometric(rate: Fraction) -> laws.Law:
    return laws.geometric(rate)


@overload
def integers(bound: int, size: None = None) -> int: ...
@overload
def integers(bound: int, size: Shape) -> Integers: ...
def integers(bound: int, size: Shape | None = None) -> int | Integers:
    """Uniform integers in 0 … bound-1, for 1 <= bound <= 2**63."""
    if not 1 <= bound <= 2**63:
        raise InvalidParameter("bound must lie between 1 and 2**63.")
    stream = current()
    if size is None:
        return scalar.uniform(stream, bound)
    out: Integers = _filled(lambda: scalar.uniform(stream, bound), size, np.int64)
    return out


@overload
def bernoulli(p: Fraction, size: None = None) -> bool: ...
@overload
def bernoulli(p: Fraction, size: Shape) -> Booleans: ...
def bernoulli(p: Fraction, size: Shape | None = None) -> bool | Booleans:
    """True with probability exactly p, a rational in [0, 1]."""
    if not 0 <= p <= 1:
        raise InvalidParameter("p must lie between 0 and 1.")
    stream = current()
    if size is None:
        return scalar.bernoulli(stream, p)
    out: Booleans = _filled(lambda: scalar.bernoulli(stream, p), size, np.bool_)
    return out


@overload
def bernoulli_exp(x: Fraction, size: None = None) -> bool: ...
@overload
def bernoulli_exp(x: Fraction, size: Shape) -> Booleans: ...
def bernoulli_exp(x: Fraction, size: Shape | None = None) -> bool | Booleans:
    """True with probability exactly exp(-x), for rational x >= 0."""
    if x < 0:
        raise InvalidParameter("x must be at least 0.")
    stream = current()
    if size is None:
        return scalar.bernoulli_exp(stream, x)
    out: Booleans = _filled(lambda: scalar.bernoulli_exp(stream, x), size, np.bool_)
    return out


def _positive(value: Fraction, name: str) -> Fraction:
    if not value > 0:
        raise InvalidParameter(f"{name} must be greater than 0.")
    return value


def _drawn(law: laws.Law, size: Shape | None) -> int | Integers:
    stream = current()
    if size is None:
        return _saturated(laws.draw(stream, law))
    out: Integers = _filled(lambda: _saturated(laws.draw(stream, law)), size, np.int64)
    return out


@overload
def geometric(rate: Fraction, size: None = None) -> int: ...
@overload
def geometric(rate: Fraction, size: Shape) -> Integers: ...
def geometric(rate: Fraction, size: Shape | None = None) -> int | Integers:
    """P(k) = (1 - exp(-rate)) exp(-rate k) for k = 0, 1, …; saturates at 2**63 - 1."""
    return _drawn(_geometric(_positive(rate, "rate")), size)


@overload
def discrete_laplace(scale: Fraction, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: Fraction, size: Shape) -> Integers: ...
def discrete_laplace(scale: Fraction, size: Shape | None = None) -> int | Integers:
    """P(k) proportional to exp(-|k| / scale); saturates at ±(2**63 - 1)."""
    return _drawn(_laplace(_positive(scale, "scale"), True), size)


@overload
def discrete_gaussian(variance: Fraction, size: None = None) -> int: ...
@overload
def discrete_gaussian(variance: Fraction, size: Shape) -> Integers: ...
def discrete_gaussian(variance: Fraction, size: Shape | None = None) -> int | Integers:
    """P(k) proportional to exp(-k² / (2 variance)); saturates at ±(2**63 - 1)."""
    return _drawn(_gaussian(_positive(variance, "variance"), True), size)


def _rounded(whole: int, fraction: int, noise: int) -> int:
    return ((whole << 64) + fraction + noise + (1 << 63)) >> 64


@overload
def add_laplace(whole: int, fraction: int, scale: Fraction) -> int: ...
@overload
def add_laplace(whole: Integers, fraction: Words64, scale: Fraction) -> Integers: ...
def add_laplace(whole: int | Integers, fraction: int | Words64, scale: Fraction) -> int | Integers:
    """floor(whole + fraction / 2**64 + X + 1/2) with X a continuous Laplace(scale); arrays saturate at ±(2**63 - 1)."""
    return _added(whole, fraction, _laplace(_positive(scale, "scale"), False))


@overload
def add_gaussian(whole: int, fraction: int, variance: Fraction) -> int: ...
@overload
def add_gaussian(whole: Integers, fraction: Words64, variance: Fraction) -> Integers: ...
def add_gaussian(whole: int | Integers, fraction: int | Words64, variance: Fraction) -> int | Integers:
    """floor(whole + fraction / 2**64 + X + 1/2) with X a continuous Gaussian; arrays saturate at ±(2**63 - 1)."""
    return _added(whole, fraction, _gaussian(_positive(variance, "variance"), False))


def _added(whole: int | Integers, fraction: int | Words64, law: laws.Law) -> int | Integers:
    stream = current()
    if not isinstance(whole, np.ndarray):
        return _rounded(int(whole), int(fraction), _noise(stream, law))
    parts = zip(whole.ravel().tolist(), np.asarray(fraction).ravel().tolist(), strict=True)
    values = [_saturated(_rounded(w, f, _noise(stream, law))) for w, f in parts]
    return np.array(values, np.int64).reshape(whole.shape)


def _noise(stream: Stream, law: laws.Law) -> int:
    noise = laws.draw(stream, law, 64)
    return noise if law.exponent >= -64 else noise >> (-64 - law.exponent)


def choose(scores: Integers, rate: Fraction) -> int:
    """An index i with P(i) proportional to exp(rate scores[i]), exactly."""
    values = _scores(scores).tolist()
    top = max(values)
    stream = current()
    while True:
        index = scalar.uniform(stream, len(values))
        if scalar.bernoulli_exp(stream, rate * (top - values[index])):
            return index


def flip(scores: Integers, rate: Fraction) -> Booleans:
    """Independent heads with probability exp(-rate (max - scores[i])), exactly; the maximum is always heads."""
    values = _scores(scores).tolist()
    top = max(values)
    stream = current()
    return np.array([scalar.bernoulli_exp(stream, rate * (top - value)) for value in values], np.bool_)


def _scores(scores: Integers) -> Integers:
    array = np.asarray(scores)
    if array.ndim != 1 or array.size == 0 or array.dtype != np.int64:
        raise InvalidValue("scores must be a non-empty one-dimensional int64 array.")
    return array


def permutation(n: int) -> Integers:
    """A uniform permutation of 0 … n-1."""
    order = list(range(n))
    stream = current()
    for i in range(n - 1, 0, -1):
        j = scalar.uniform(stream, i + 1)
        order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64)


def token() -> str:
    """An unguessable URL-safe name of 32 hexadecimal digits."""
    return f"{current().bits(128):032x}"


def salt(length: int = 16) -> bytes:
    """Unguessable bytes."""
    return current().bits(8 * length).to_bytes(length, "little")


def simulation(seed: int | None = None) -> np.random.Generator:
    """A plain NumPy generator for simulation and post-processing only, never on a release path."""
    return np.random.default_rng(seed if seed is not None else current().bits(128))
