"""A stream on its way: the noise of each step from the secret, released once, saved and gone on with."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato.continual.base import Words
from sfumato.continual.factorisation import SCALE_BITS
from sfumato.errors import InvalidParameter, InvalidValue, Spent
from sfumato.mechanisms._grid import bounded_sum
from sfumato.numeric.exact import as_integer

if TYPE_CHECKING:
    from sfumato.continual.mechanism import Continual

__all__ = ["Course", "course_of_state"]

_SECRET, _TAG = 32, 32
_LABEL = b"sfumato continual 1 "
_NEAR = 2**60  # noise beyond is held in Python's integers
_ROOM = 2**61  # values beyond this many grid steps are held there
_FAR = 2**63 - 1
_WRONG = "The values of a step must be integers, one a group."


class Course:
    """The steps of one stream, in their order.

    Privacy:
        Claim: that of `Continual`, for all that one secret and measure ever release. The noise of a step is a
        function of the secret, the measure, the step, its salt and the group alone: whoever computes a step
        again gets the same noise, and no two steps, groups or measures share any. A refusal (horizon, order,
        shape) changes nothing and does not depend on a value. Groups that are added on the way must be chosen
        by what was released, here or by mechanisms that are paid for beside it.
    """

    __slots__ = ("_at", "_lock", "_measure", "_process", "_secret", "mechanism")

    def __init__(self, mechanism: Continual, secret: bytes, *, measure: int = 0) -> None:
        """Begin before the first step; `Continual.start` is the usual way.

        Raises:
            InvalidParameter: for a secret that is not 32 bytes.
        """
        if not isinstance(secret, bytes) or len(secret) != _SECRET:
            raise InvalidParameter("A stream's secret must be 32 bytes: make one with Continual.secret().")
        self.mechanism = mechanism
        self._secret = secret
        self._measure = as_integer(measure, "measure", least=0)
        # In one place, so that an interrupt finds both or neither changed.
        self._at: tuple[int, Words] = 0, np.zeros((mechanism.plan.factor.words, mechanism.groups), np.int64)
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"<a stream after {self.time} of {self.mechanism.horizon} steps>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A course cannot be pickled or copied: save it and resume it, as one stream.")

    @property
    def time(self) -> int:
        """How many steps were released."""
        return self._at[0]

    @property
    def groups(self) -> int:
        """How many numbers the next step has."""
        return int(self._at[1].shape[1])

    def widen(self, groups: int) -> None:
        """Go on with so many groups: new ones come after the others, and their noise begins with this step.

        Raises:
            InvalidParameter: for fewer than there are, or a stream whose groups were fixed when it was made.
        """
        if self.mechanism.groups:
            raise InvalidParameter("The groups of this stream are fixed: make it with groups=0 and moved=.")
        self._own()
        with self._lock:
            time, state = self._at
            more = as_integer(groups, "groups", least=state.shape[1]) - state.shape[1]
            new = np.zeros((state.shape[0], more), state.dtype)
            self._at = time, np.concatenate([state, new], axis=1)

    def release(
        self, values: Sequence[int] | NDArray[Any], *, at: int | None = None, salt: bytes = b""
    ) -> NDArray[np.int64]:
        """The numbers of the next step with their noise, as whole multiples of the grid.

        Args:
            values: Whole numbers, one a group. Where the grid is coarser than 1 they are rounded to it.
            at: The step that this is meant to be, counted from 0: refused unless it is the next one.
            salt: What the noise of this step follows from beside the secret. A keyed digest of the values has
                the effect that a step which is computed again has the same noise only if it has the same
                values. It must be given to `skip` for this step then.

        Raises:
            InvalidValue: for anything but so many integers; outside the claim.
            InvalidParameter: for a step out of order.
            Spent: beyond the horizon, or in a forked process.
        """
        units = self._units(values)
        self._own()
        with self._lock:
            self._check(at)
            noise = self._advance(salt)
            return bounded_sum(units, noise)

    def skip(self, *, salt: bytes = b"") -> None:
        """Go on by one step without a release: its noise goes into the state, and is shown to nobody."""
        self._own()
        with self._lock:
            self._check(None)
            self._advance(salt)

    def save(self) -> bytes:
        """The state after the steps so far, with a digest. It is as secret as the secret."""
        with self._lock:
            time, state = self._at
            wide = state.dtype == object
            header = {
                "groups": state.shape[1],
                "measure": self._measure,
                "stream": self.mechanism.fingerprint,
                "time": time,
                "wide": wide,
            }
            flat = state.reshape(-1)
            body = (
                json.dumps([int(value) for value in flat.tolist()]).encode()
                if wide
                else flat.astype("<i8").tobytes()
            )
            whole = json.dumps(header, sort_keys=True).encode() + b"\n" + body
            return whole + _tag(self._secret, whole)

    def _own(self) -> None:
        """Refuse to go on in a forked copy: two futures of one stream would share noise."""
        if os.getpid() != self._process:
            raise Spent("The stream belongs to the process that opened it: resume it there from its state.")

    def _check(self, at: int | None) -> None:
        if self.time >= self.mechanism.horizon:
            raise Spent("The stream has reached its horizon: start another one, at its own price.")
        if at is not None and at != self.time:
            raise InvalidParameter(
                f"Step {at} is out of order and was not released: the stream's next step is {self.time}."
            )

    def _units(self, values: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
        """Values of any size in grid steps, each by itself: rounded if these are coarser, within ±2**61."""
        exponent, groups = self.mechanism.exponent, self.groups
        if isinstance(values, np.ndarray) and values.dtype.kind == "i":
            array = values.astype(np.int64)
            if array.shape != (groups,):
                raise InvalidValue(_WRONG)
            if exponent <= 0:
                shift = min(-exponent, 62)
                return np.asarray(np.clip(array, -(_ROOM >> shift), _ROOM >> shift) << shift)
            if exponent < 62 and not (np.abs(array) > _ROOM).any():
                return np.asarray((array + (1 << (exponent - 1))) >> exponent)
        listed = _integers(values)
        if len(listed) != groups:
            raise InvalidValue(_WRONG)
        units = [
            value << -exponent if exponent <= 0 else (value + (1 << (exponent - 1))) >> exponent
            for value in listed
        ]
        return np.array([max(-_ROOM, min(_ROOM, unit)) for unit in units], np.int64)

    def _advance(self, salt: bytes) -> NDArray[np.int64]:
        """The noise of the next step in grid steps; the state and the time go on."""
        mechanism, (time, state) = self.mechanism, self._at
        factor = mechanism.plan.factor
        fresh = step_noise(
            self._secret,
            mechanism.variance,
            state.shape[1],
            time=time,
            measure=self._measure,
            salt=salt,
        )
        noise = fresh - factor.carried(state, time)
        self._at = time + 1, factor.advanced(state, time, noise)
        # floor(noise / (2**fine · d) + 1/2): a function of the scaled value with its noise.
        unit = mechanism.plan.scale(time) << (mechanism.fine - SCALE_BITS)
        rounded: Words = (2 * noise + unit) // (2 * unit)
        if rounded.dtype == object:
            rounded = np.array([max(-_FAR, min(_FAR, int(value))) for value in rounded.tolist()], np.int64)
        return rounded


def _integers(values: Sequence[int] | NDArray[Any]) -> list[int]:
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    if not isinstance(listed, Sequence) or isinstance(listed, str | bytes):
        raise InvalidValue(_WRONG)
    for value in listed:
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
            raise InvalidValue(_WRONG)
    return [int(value) for value in listed]


def step_noise(
    secret: bytes, variance: int, groups: int, *, time: int, measure: int, salt: bytes = b""
) -> Words:
    """The independent noise z of one step: exact draws that secret, measure, step and salt decide."""
    if not groups:
        return np.zeros(0, np.int64)
    label = _LABEL + measure.to_bytes(8, "big") + time.to_bytes(8, "big") + salt
    key = hmac.new(secret, label, hashlib.sha256).digest()
    drawn = random.gaussian_of_key(key, variance, groups)
    if not drawn.within(_NEAR).far:
        return drawn.near
    return np.array(drawn.tolist(), dtype=object)


def course_of_state(mechanism: Continual, secret: bytes, state: bytes, *, measure: int) -> Course:
    """The course that saved a state.

    Raises:
        InvalidParameter: if it was not saved with this secret by this stream, or was changed.
    """
    course = Course(mechanism, secret, measure=measure)
    if not isinstance(state, bytes):
        raise InvalidParameter("A state must be the bytes that Course.save gave.")
    whole, tag = state[:-_TAG], state[-_TAG:]
    if not hmac.compare_digest(tag, _tag(secret, whole)):
        raise InvalidParameter(
            "This state is damaged or belongs to another secret: resume with the one that it was saved by."
        )
    first, _, body = whole.partition(b"\n")
    header = json.loads(first)
    if header["stream"] != mechanism.fingerprint or header["measure"] != course._measure:
        raise InvalidParameter(
            "This state was saved by another stream: resume with the plan, price and groups of that one."
        )
    words, groups = course._at[1].shape
    flat = (
        np.array(json.loads(body), dtype=object)
        if header["wide"]
        else np.frombuffer(body, "<i8").astype(np.int64)
    )
    course._at = int(header["time"]), flat.reshape(words, header.get("groups", groups))
    return course


def _tag(secret: bytes, whole: bytes) -> bytes:
    return hmac.new(secret, _LABEL + b"state" + whole, hashlib.sha256).digest()
