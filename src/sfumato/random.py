"""The only source of randomness, and every exact draw that a release may use.

Bits come from AES-256 in counter mode, keyed by the operating system, one generator per thread. The laws in
`sfumato.samplers` are exact functions of those bits, so each function below draws from exactly the law in
its docstring: no rounding, no float noise, no truncation.
"""

from __future__ import annotations

import math
import operator
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeAlias, overload

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.numeric.exact import Rational, as_fraction, as_integer, nonnegative, positive
from sfumato.samplers import continuous, discrete, pool, scalar, selection, uniform
from sfumato.samplers.stream import Booleans, Integers, Stream, Words32, Words64
from sfumato.samplers.wholes import Wholes

__all__ = [
    "Keyed",
    "Keystream",
    "Simulation",
    "add_discrete_gaussian",
    "add_discrete_laplace",
    "add_gaussian",
    "add_laplace",
    "bernoulli",
    "bernoulli_exp",
    "choose",
    "current",
    "discrete_gaussian",
    "discrete_laplace",
    "drawing_from",
    "flip",
    "gaussian_of_key",
    "geometric",
    "integers",
    "permutation",
    "salt",
    "simulation",
    "token",
]

Shape: TypeAlias = int | tuple[int, ...]
Simulation: TypeAlias = np.random.Generator
"""What `simulation` gives."""
_KEY = 32
_PAD = 16  # the cipher wants room for one more block than it writes
_BUFFER = 1 << 15
_AHEAD = 128  # words made ahead for single draws
_CHUNK = 1 << 20  # bytes under one key
_ZEROS = bytes(_CHUNK)
_ZERO_VIEW = memoryview(_ZEROS)
_WORD = 2**64 - 1
_REST = 2**29
_BIAS = pool.BIAS - _REST


class Keystream:
    """AES-256-CTR keyed by the operating system, with fast key erasure.

    Small requests are cut from a buffer and zeroed there as they are read; single words come from a short
    list that they leave. Every refill, and every large request, uses a key of its own that is forgotten at
    once: the first bytes of a refill are the next key. So no state that exists after a read can reproduce
    what was read. A key encrypts at most 2**16 blocks.

    One belongs to one thread; it is not safe to share. A forked child starts from a fresh key. It cannot be
    pickled or copied.
    """

    __slots__ = ("__weakref__", "_buffer", "_key", "_position", "_view", "_words")

    def __init__(self) -> None:
        self._buffer = bytearray(_BUFFER + _PAD)
        self._view = memoryview(self._buffer)
        self.drop()
        _living.add(self)

    def drop(self) -> None:
        """Forgets everything and starts again from the operating system."""
        self._view[:] = bytes(_BUFFER + _PAD)
        self._words: list[int] = []
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
        if count <= 64:
            if not self._words:
                self._words = self.words64(_AHEAD).tolist()
            return self._words.pop() >> (64 - count)
        size = (count + 7) >> 3
        if size > _BUFFER // 8:
            return int.from_bytes(self._bytes(size), "little") >> (8 * size - count)
        start = self._position
        end = start + size
        if end > _BUFFER:
            start = self._take(size)
            end = start + size
        else:
            self._position = end
        part = self._view[start:end]
        value = int.from_bytes(part, "little")
        part[:] = _ZERO_VIEW[:size]
        return value >> (8 * size - count)

    def _take(self, size: int) -> int:
        """Where the next `size` bytes of the buffer begin; it is refilled if they do not fit."""
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
            view = out.data
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
        encryptor.update_into(_ZERO_VIEW[:size], view)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A keystream cannot be pickled or copied: two holders of it would draw the same noise."
        )


class Keyed(Keystream):
    """A keystream from a given key: the same calls give the same draws.

    Where a part of an answer may be computed twice, by a task that is tried again or by two at once, both
    then draw the same noise, and whichever is taken, one was drawn. A key is for one part of one answer.
    """

    __slots__ = ("_first",)

    def __init__(self, key: bytes) -> None:
        """Begin from a key of 32 unguessable bytes that is used for nothing else."""
        if len(key) != _KEY:
            raise InvalidParameter(f"A key has {_KEY} bytes.")
        self._first: bytes | None = key
        super().__init__()

    def drop(self) -> None:
        """Forgets everything; the first time it starts from its key, then from the operating system."""
        super().drop()
        if self._first is not None:
            self._key, self._first = self._first, None


_living: weakref.WeakSet[Keystream] = weakref.WeakSet()


def current() -> Stream:
    """This thread's stream of bits."""
    return _local.stream


class _Local(threading.local):
    """What a thread owns: its stream of bits and its pools of draws made ahead."""

    def __init__(self) -> None:
        self.stream: Stream = Keystream()
        self.geometric = pool.Pools("geometric", current)
        self.discrete_laplace = pool.Pools("discrete laplace", current)
        self.discrete_gaussian = pool.Pools("discrete gaussian", current)
        self.laplace = pool.Pools("laplace", current)
        self.gaussian = pool.Pools("gaussian", current)

    def clear(self) -> None:
        """Drops every draw made ahead."""
        for pools in (
            self.geometric,
            self.discrete_laplace,
            self.discrete_gaussian,
            self.laplace,
            self.gaussian,
        ):
            pools.clear()


_local = _Local()


def _after_fork() -> None:
    """In a forked child: nothing that the parent may still use is used again."""
    for stream in list(_living):
        stream.drop()
    _local.clear()
    pool.renew_lock()


os.register_at_fork(after_in_child=_after_fork)


def _replace(stream: Stream) -> Stream:
    """Swaps this thread's stream, drops its pools, gives the previous one; for tests, and `drawing_from`."""
    previous = _local.stream
    _local.stream = stream
    _local.clear()
    return previous


@contextmanager
def drawing_from(stream: Keyed) -> Iterator[None]:
    """Inside, what this thread draws comes from a stream with a key of its own."""
    previous = _replace(stream)
    try:
        yield
    finally:
        _replace(previous)


def _shape(size: Shape) -> tuple[int, ...]:
    shape = tuple(size) if isinstance(size, tuple | list) else (operator.index(size),)
    if min(shape, default=0) < 0:
        raise InvalidParameter("size must not be negative.")
    return shape


@overload
def integers(bound: int, size: None = None) -> int: ...
@overload
def integers(bound: int, size: Shape) -> Integers: ...
def integers(bound: int, size: Shape | None = None) -> int | Integers:
    """Uniform integers in 0 … bound-1, for 1 <= bound <= 2**63."""
    if type(bound) is not int:
        bound = as_integer(bound, "bound")
    if not 1 <= bound <= 2**63:
        raise InvalidParameter("bound must lie between 1 and 2**63.")
    if size is None:
        return scalar.uniform(_local.stream, bound)
    shape = _shape(size)
    return uniform.integers(_local.stream, bound, math.prod(shape)).reshape(shape)


@overload
def bernoulli(p: Rational, size: None = None) -> bool: ...
@overload
def bernoulli(p: Rational, size: Shape) -> Booleans: ...
def bernoulli(p: Rational, size: Shape | None = None) -> bool | Booleans:
    """True with probability exactly p, a rational in [0, 1]."""
    exact = as_fraction(p, "p")
    if not 0 <= exact <= 1:
        raise InvalidParameter("p must lie between 0 and 1.")
    if size is None:
        return scalar.bernoulli(_local.stream, exact)
    shape = _shape(size)
    if exact in (0, 1):
        return np.full(shape, exact == 1)
    return uniform.coins(_local.stream, exact, math.prod(shape)).reshape(shape)


@overload
def bernoulli_exp(x: Rational, size: None = None) -> bool: ...
@overload
def bernoulli_exp(x: Rational, size: Shape) -> Booleans: ...
def bernoulli_exp(x: Rational, size: Shape | None = None) -> bool | Booleans:
    """True with probability exactly exp(-x), for rational x >= 0."""
    exact = nonnegative(x, "x")
    if size is None:
        return scalar.bernoulli_exp(_local.stream, exact)
    shape = _shape(size)
    if exact == 0:
        return np.full(shape, True)
    return uniform.coins_exp(_local.stream, exact, math.prod(shape)).reshape(shape)


def _vector(pools: pool.Pools, parameter: Rational, name: str, size: Shape) -> Integers:
    shape = _shape(size)
    count = math.prod(shape)
    if count <= pool.FEW:
        draws = [pools.draw(parameter, name) - pool.BIAS for _ in range(count)]
        return np.array(draws, np.int64).reshape(shape)
    out = np.empty(count, np.int64)
    discrete.fill(_local.stream, pool.table_of(pools.kind, positive(parameter, name)), out)
    return out.reshape(shape)


@overload
def geometric(rate: Rational, size: None = None) -> int: ...
@overload
def geometric(rate: Rational, size: Shape) -> Integers: ...
def geometric(rate: Rational, size: Shape | None = None) -> int | Integers:
    """Integers k = 0, 1, … with P(k) = (1 - exp(-rate)) exp(-rate k), exactly.

    A draw beyond 2**63 - 1 is given as that; 1 / rate may be at most 2**56, so that this never happens in
    practice.
    """
    if size is not None:
        return _vector(_local.geometric, rate, "rate", size)
    return _local.geometric.draw(rate, "rate") - pool.BIAS


@overload
def discrete_laplace(scale: Rational, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: Rational, size: Shape) -> Integers: ...
def discrete_laplace(scale: Rational, size: Shape | None = None) -> int | Integers:
    """Integers with P(k) proportional to exp(-|k| / scale), exactly.

    A draw beyond ±(2**63 - 1) is given as that; the scale may be at most 2**56, so that this never happens
    in practice.
    """
    if size is not None:
        return _vector(_local.discrete_laplace, scale, "scale", size)
    return _local.discrete_laplace.draw(scale, "scale") - pool.BIAS


@overload
def discrete_gaussian(variance: Rational, size: None = None) -> int: ...
@overload
def discrete_gaussian(variance: Rational, size: Shape) -> Integers: ...
def discrete_gaussian(variance: Rational, size: Shape | None = None) -> int | Integers:
    """Integers with P(k) proportional to exp(-k² / (2 variance)), exactly.

    The parameter is the variance of the continuous law, which is rational where its root is not. A draw
    beyond ±(2**63 - 1) is given as that; the root may be at most 2**56, so that this never happens in
    practice.
    """
    if size is not None:
        return _vector(_local.discrete_gaussian, variance, "variance", size)
    return _local.discrete_gaussian.draw(variance, "variance") - pool.BIAS


def add_discrete_laplace(value: int, scale: Rational) -> int:
    """The value plus a discrete Laplace draw, of any size.

    The noise never exists as a number of its own length, so that time can follow the sum but not the noise.
    """
    # In two steps, because the interpreter is quicker to see that two long integers are equal.
    return _whole(value) + _local.discrete_laplace.draw(scale, "scale") - _BIAS - _REST


def add_discrete_gaussian(value: int, variance: Rational) -> int:
    """The value plus a discrete Gaussian draw, of any size; see `add_discrete_laplace`."""
    return _whole(value) + _local.discrete_gaussian.draw(variance, "variance") - _BIAS - _REST


def _whole(value: int) -> int:
    """An integer of any length: NumPy's would overflow."""
    if type(value) is int:
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    raise InvalidParameter("The value that noise is added to must be a whole number.")


@overload
def add_laplace(whole: int, fraction: int, scale: Rational) -> int: ...
@overload
def add_laplace(whole: Wholes, fraction: Words64, scale: Rational) -> Wholes: ...
def add_laplace(whole: int | Wholes, fraction: int | Words64, scale: Rational) -> int | Wholes:
    """floor(whole + fraction / 2**64 + X + 1/2), exactly, with X of the continuous Laplace law.

    Args:
        whole: whole parts, an integer of any size or an array of them.
        fraction: 64 bits after the point, an integer below 2**64 or a uint64 array of the same size.
        scale: of X, with density proportional to exp(-|x| / scale); at most 2**56.

    Returns:
        An integer of any size, or an array of them.

    Privacy:
        The result is a function of whole + fraction / 2**64 + X alone, with X exactly Laplace: rounding is
        post-processing, so that the analytic loss of the continuous mechanism holds for it.
    """
    if isinstance(whole, Wholes):
        return _added(_local.laplace, whole, fraction, scale, "scale")
    if type(whole) is not int or type(fraction) is not int or not 0 <= fraction <= _WORD:
        whole, fraction = _whole(whole), _low(fraction)
    return continuous.unbiased(whole, fraction, _local.laplace.draw(scale, "scale"))


@overload
def add_gaussian(whole: int, fraction: int, variance: Rational) -> int: ...
@overload
def add_gaussian(whole: Wholes, fraction: Words64, variance: Rational) -> Wholes: ...
def add_gaussian(whole: int | Wholes, fraction: int | Words64, variance: Rational) -> int | Wholes:
    """floor(whole + fraction / 2**64 + X + 1/2), exactly, with X of the continuous Gaussian law.

    Args:
        whole: whole parts, an integer of any size or an array of them.
        fraction: 64 bits after the point, an integer below 2**64 or a uint64 array of the same size.
        variance: of X, with density proportional to exp(-x² / (2 variance)); its root at most 2**56.

    Returns:
        An integer of any size, or an array of them.

    Privacy:
        The result is a function of whole + fraction / 2**64 + X alone, with X exactly Gaussian: rounding is
        post-processing, so that the analytic loss of the continuous mechanism holds for it.
    """
    if isinstance(whole, Wholes):
        return _added(_local.gaussian, whole, fraction, variance, "variance")
    if type(whole) is not int or type(fraction) is not int or not 0 <= fraction <= _WORD:
        whole, fraction = _whole(whole), _low(fraction)
    return continuous.unbiased(whole, fraction, _local.gaussian.draw(variance, "variance"))


def gaussian_of_key(key: bytes, variance: Rational, count: int) -> Wholes:
    """floor(X + 1/2) for `count` independent X of the continuous Gaussian law, all decided by a key.

    Args:
        key: 32 unguessable bytes that are used for nothing else.
        variance: of X; its root at most 2**56.
        count: how many.

    Privacy:
        For whole w, w plus a draw is a function of w + X alone, with X exactly Gaussian (`add_gaussian`).
        Whoever has the key draws the same: it is as secret as what it hides.
    """
    zeros = np.zeros(as_integer(count, "count"), np.int64)
    table = pool.table_of("gaussian", positive(variance, "variance"))
    return continuous.add(Keyed(key), table, Wholes(zeros), zeros.view(np.uint64))


def _low(fraction: int | Words64) -> int:
    low = int(fraction)
    if low >> 64:
        raise InvalidValue("fraction must be an integer of 64 bits.")
    return low


def _added(
    pools: pool.Pools, whole: Wholes, fraction: int | Words64, parameter: Rational, name: str
) -> Wholes:
    below = np.asarray(fraction)
    if whole.near.dtype != np.int64 or below.dtype != np.uint64 or whole.near.shape != below.shape:
        raise InvalidValue("whole and fraction must be int64 and uint64 arrays of the same size.")
    if whole.size <= pool.FEW:
        pairs = zip(whole.tolist(), below.tolist(), strict=True)
        return Wholes.of([continuous.unbiased(w, f, pools.draw(parameter, name)) for w, f in pairs])
    return continuous.add(_local.stream, pool.table_of(pools.kind, positive(parameter, name)), whole, below)


def choose(scores: Integers, rate: Rational) -> int:
    """An index i with P(i) proportional to exp(rate scores[i]), exactly.

    Privacy:
        With rate = epsilon / (2 sensitivity) this is the exponential mechanism (McSherry and Talwar 2007)
        without any rounding; the scores are integers and their differences are taken without overflow.
    """
    return selection.choose(_local.stream, _scores(scores), nonnegative(rate, "rate"))


def flip(scores: Integers, rate: Rational) -> Booleans:
    """Independent heads with P = exp(-rate (max - scores[i])), exactly; the maximum is always heads.

    Privacy:
        A uniform choice among the heads is permute-and-flip (McKenna and Sheldon 2020): the first heads in
        a uniform order is a uniform one.
    """
    return selection.flip(_local.stream, _scores(scores), nonnegative(rate, "rate"))


def _scores(scores: Integers) -> Integers:
    array = np.asarray(scores)
    if array.ndim != 1 or array.size == 0 or array.dtype != np.int64:
        raise InvalidValue("scores must be a non-empty one-dimensional int64 array.")
    return array


def permutation(n: int) -> Integers:
    """A uniform permutation of 0 … n-1."""
    return uniform.permutation(_local.stream, as_integer(n, "n", least=0))


def token() -> str:
    """An unguessable name of 32 hexadecimal digits."""
    return f"{_local.stream.bits(128):032x}"


def salt(length: int = 16) -> bytes:
    """Unguessable bytes."""
    size = as_integer(length, "length")
    return _local.stream.bits(8 * size).to_bytes(size, "little")


def simulation(seed: int | None = None) -> Simulation:
    """A plain NumPy generator, for simulation and post-processing only: never on a release path."""
    return np.random.default_rng(seed if seed is not None else _local.stream.bits(128))
