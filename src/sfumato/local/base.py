"""What all clients of local privacy share: randomise a value, add up reports, estimate with intervals.

A person runs `encode` on their own value and sends the report. Whoever collects reports adds them up, in
batches of any size and on any number of machines, and estimates: nobody but the person ever has the value.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.loss import PrivacyLoss

__all__ = ["Aggregate", "Randomizer", "aggregate_from", "listed_numbers", "randomizer_from", "register"]

_R = TypeVar("_R", bound="type[Randomizer[Any]]")
_E = TypeVar("_E")
_KNOWN: dict[str, type[Randomizer[Any]]] = {}
_MOST = 2**53
"""Reports that can be added up: all sums stay exact, as whole numbers and as floats."""


def register(cls: _R) -> _R:
    """Make a randomizer known by its wire name, which never gets another meaning."""
    if cls.wire in _KNOWN and _KNOWN[cls.wire] is not cls:
        raise InvalidParameter(f"The wire name {cls.wire!r} is taken.")
    _KNOWN[cls.wire] = cls
    return cls


def randomizer_from(data: Mapping[str, Any]) -> Randomizer[Any]:
    """The randomizer that `to_dict` wrote down.

    Raises:
        InvalidParameter: for a kind or a version that is not known here, or unusable parameters.
    """
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if isinstance(kind, str) and kind not in _KNOWN:
        _load()
    known = _KNOWN.get(kind) if isinstance(kind, str) else None
    if known is None:
        raise InvalidParameter("These are reports of a kind or version that this version does not know.")
    return known.from_dict(data)


def _load() -> None:
    """Load every module of this package, so that all randomizers are known."""
    root = importlib.import_module("sfumato.local")
    for home in sorted(root._HOMES):
        importlib.import_module(f"sfumato.local.{home}")


def aggregate_from(data: Mapping[str, Any]) -> Aggregate[Any]:
    """The aggregate that `Aggregate.to_dict` wrote down.

    Raises:
        InvalidParameter: for a randomizer that is not known here.
        InvalidValue: for anything else that cannot be an aggregate of it.
    """
    if not isinstance(data, Mapping) or set(data) != {"randomizer", "count", "state"}:
        raise InvalidValue("This is not an aggregate of reports.")
    total, count = randomizer_from(data["randomizer"]).start(), data["count"]
    if type(count) is not int or not 0 <= count <= _MOST:
        raise InvalidValue("An aggregate counts its reports, at most 2**53.")
    total.count = count
    total._restore(data["state"])
    return total


def listed_numbers(state: Any, size: int) -> NDArray[np.int64]:
    """So many whole numbers from a list of them, as JSON has it; sums of their sizes stay within 64 bits.

    Raises:
        InvalidValue: for anything else.
    """
    whole = isinstance(state, list) and len(state) == size and set(map(type, state)) <= {int}
    if not whole or sum(map(abs, state)) >= 2**62:
        raise InvalidValue("These are not sums of reports of this randomizer.")
    return np.array(state, np.int64)


class Randomizer(ABC, Generic[_E]):
    """Turns private values into reports, and reports into estimates of type `_E`.

    Subclasses are frozen, slotted dataclasses whose fields are public parameters. Randomness comes from
    `sfumato.random` alone, and each probability is drawn exactly.

    Privacy:
        `loss` bounds what one report tells about which of any two values it was made from, whoever reads it:
        the local model (Kasiviswanathan et al. 2011). Each element of an array is the value of another
        person, and is read by itself. A person who reports again pays again, unless the randomizer says
        otherwise. That `encode` refuses a value outside the domain is outside the claim: whoever has such a
        value must not send anything, or an agreed value in its place.
    """

    __slots__ = ()
    wire: ClassVar[str]
    """The name and version in the wire format, such as `"kary.1"`."""

    epsilon: Fraction

    @property
    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """What one report costs the one who gives it."""

    @abstractmethod
    def encode(self, values: Any) -> NDArray[Any]:
        """One report for each value: an array of `report_dtype` and shape `(number, *report_shape)`.

        Raises:
            InvalidValue: for a value outside the domain, which is not shown; nothing was randomised then.
        """

    @property
    @abstractmethod
    def report_dtype(self) -> np.dtype[Any]:
        """The type of the elements of a report."""

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The shape of one report; a report of one element has none."""
        return ()

    @abstractmethod
    def start(self) -> Aggregate[_E]:
        """An aggregate without reports."""

    def aggregate(self, reports: NDArray[Any] | Iterable[NDArray[Any]]) -> Aggregate[_E]:
        """The aggregate of reports: one array, or batches of any size as they come.

        An array does not say what made it: reports of another epsilon or domain that happen to be possible
        ones here are added up unnoticed. Files of reports (`write_reports`) carry a label and are refused.
        """
        total = self.start()
        for batch in [reports] if isinstance(reports, np.ndarray) else reports:
            total.add(batch)
        return total

    def to_dict(self) -> dict[str, Any]:
        """Plain data with the public parameters: what a client must know, and what reports tell of."""
        return {"kind": self.wire, "epsilon": str(self.epsilon), **self._parameters()}

    @abstractmethod
    def _parameters(self) -> dict[str, Any]:
        """The parameters beside epsilon, as JSON has them."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """What `to_dict` wrote down."""

    @property
    def fingerprint(self) -> str:
        """A digest of kind, version and all parameters: reports of one fingerprint can be added up."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def _checked(self, reports: NDArray[Any]) -> NDArray[Any]:
        """A batch of reports of the type, shape and range that this randomizer makes.

        Raises:
            InvalidValue: for others.
        """
        batch = np.asarray(reports)
        fits = batch.dtype == self.report_dtype and batch.shape[1:] == self.report_shape and batch.ndim
        if not fits:
            raise InvalidValue(
                f"Reports of {type(self).__name__} are arrays of {self.report_dtype} with the shape (number"
                f"{''.join(f', {n}' for n in self.report_shape)}{',' if not self.report_shape else ''})."
            )
        self._refuse_others(batch)
        return batch

    @abstractmethod
    def _refuse_others(self, batch: NDArray[Any]) -> None:
        """Refuse what has the type and shape of reports but is not one: no file or sum ever holds it.

        Raises:
            InvalidValue: if there is one.
        """


class Aggregate(ABC, Generic[_E]):
    """Reports added up. It holds no report, and its size does not grow with their number.

    `add` changes it, or raises and leaves it as it was; `+` makes a new one.
    """

    __slots__ = ("count", "randomizer")

    def __init__(self, randomizer: Randomizer[_E]) -> None:
        self.randomizer = randomizer
        self.count = 0

    def add(self, reports: NDArray[Any]) -> Self:
        """Add a batch.

        Raises:
            InvalidValue: for reports of another type, shape or range; nothing was added.
        """
        batch = self.randomizer._checked(reports)
        self._add(batch)
        self.count += len(batch)
        return self

    def __add__(self, other: Aggregate[_E]) -> Self:
        """Both together.

        Raises:
            InvalidParameter: if they come from different randomizers.
        """
        if not isinstance(other, Aggregate):
            return NotImplemented
        if self.randomizer.fingerprint != other.randomizer.fingerprint:
            raise InvalidParameter(
                "Reports of another epsilon, domain or kind cannot be added to these; estimate each apart."
            )
        if not isinstance(other, type(self)):  # not reached: one fingerprint has one kind of aggregate
            return NotImplemented
        if self.count + other.count > _MOST:
            raise InvalidParameter("More than 2**53 reports cannot be added up exactly.")
        total = self._merged(other)
        total.count = self.count + other.count
        return total

    def to_dict(self) -> dict[str, Any]:
        """Plain data, to be merged elsewhere."""
        return {"randomizer": self.randomizer.to_dict(), "count": self.count, "state": self._state()}

    @abstractmethod
    def estimate(self, confidence: float = 0.95) -> _E:
        """What the reports say about the values, with intervals of this confidence.

        Raises:
            InvalidValue: without reports.
        """

    @abstractmethod
    def _add(self, batch: NDArray[Any]) -> None:
        """Add a batch of the right type, shape and range."""

    @abstractmethod
    def _merged(self, other: Self) -> Self:
        """Both together, but for the count."""

    @abstractmethod
    def _state(self) -> Any:
        """What has been added up, as JSON has it."""

    def _restore(self, state: Any) -> None:  # noqa: ARG002
        """Take over what `_state` gave; the count is there already.

        Raises:
            InvalidValue: if it cannot be such a state.
        """
        raise InvalidValue(f"Aggregates of {type(self.randomizer).__name__} cannot be read back.")
