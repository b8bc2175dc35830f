"""Record what meets noise on one table, and replay a neighbour with the noisy outputs frozen.

Differential privacy speaks of what is drawn. Everything else that an observer can see must be a function of
what was drawn before and of public facts: which mechanisms are called, with which parameters, on arrays of
which shape and type, what is raised, printed, logged and kept. `compare` runs a program on one input and
writes down each call in which private values meet noise. Then it runs the program on a neighbouring input and
gives back, call by call, the noisy outputs of the first run. Two honest runs are then alike to the last bit,
and the values that met noise differ by no more than the mechanism's sensitivity.

The idea is the grey-box audit of Cebere, Bellet, Papernot and others (2026): bugs of private libraries are
mostly not in the noise, but beside it.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import pkgutil
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.samplers.wholes import Wholes
from sfumato.testing.stream import require_test, seeded
from sfumato.testing.told import form, told

__all__ = ["Meeting", "Tape", "compare", "lost", "record", "replay"]

_VERBS = ("release", "release_whole", "select", "select_many", "first", "above", "add", "encode")
_DRAWS = (
    "add_discrete_gaussian",
    "add_discrete_laplace",
    "add_gaussian",
    "add_laplace",
    "bernoulli",
    "bernoulli_exp",
    "choose",
    "discrete_gaussian",
    "discrete_laplace",
    "flip",
    "geometric",
    "integers",
    "permutation",
)
_PRIVATE = {  # which arguments of a draw are private; all others are parameters
    "add_discrete_gaussian": 1,
    "add_discrete_laplace": 1,
    "add_gaussian": 2,
    "add_laplace": 2,
    "choose": 1,
    "flip": 1,
}
_NORMS = {
    **dict.fromkeys(("Laplace", "Geometric", "Staircase", "TruncatedLaplace", "BoundedLaplace"), 1),
    **dict.fromkeys(("Gaussian", "DiscreteGaussian"), 2),
    **dict.fromkeys(("Exponential", "NoisyMax", "PermuteAndFlip", "TopK"), 0),
    **dict.fromkeys(("NestedQuantiles", "Quantiles"), 1),
}
"""In which norm a mechanism's sensitivity bounds its argument: L1, L2, or 0 for the largest coordinate."""


class _Diverged(BaseException):
    """The second run asked for noise that the first did not ask for."""


@dataclass(frozen=True, slots=True, eq=False)
class Meeting:
    """One call in which noise was added to private values.

    Attributes:
        name: The mechanism and its verb, or the draw.
        public: Everything about it that may not depend on the data.
        values: The private arguments.
        output: What it gave, or what it raised.
        mechanism: Which one, with its sensitivity; None for a draw.
        parameter: Of a draw that takes a value.
    """

    name: str
    public: str
    values: tuple[Any, ...]
    output: Any
    mechanism: Any = None
    parameter: Fraction = Fraction(0)


@dataclass(slots=True, eq=False)
class Tape:
    """A run: what met noise, and what could be seen from outside.

    Attributes:
        meetings: In order.
        seen: What the run gave or raised, and all that it printed, logged or warned of, as text.
        outline: The same with the type and shape of what it gave in place of its values.
        findings: What differs from the tape that was replayed, in sentences.
    """

    meetings: list[Meeting] = field(default_factory=list)
    seen: str = ""
    outline: str = ""
    findings: list[str] = field(default_factory=list)


class _Deck:
    """Takes the place of every verb and draw while a program runs."""

    def __init__(self, first: Tape | None, *, inside: bool) -> None:
        self.tape, self._first, self._inside = Tape(), first, inside
        self._depth = threading.local()

    @contextlib.contextmanager
    def patched(self) -> Iterator[None]:
        from sfumato import random

        with contextlib.ExitStack() as stack:
            for owner, verb in [] if self._inside else _verbs():
                stack.enter_context(_replaced(owner, verb, self._verb(verb, vars(owner)[verb])))
            for name in _DRAWS:
                stack.enter_context(_replaced(random, name, self._draw(name, getattr(random, name))))
            for place in () if self._inside else ("noise", "answering"):
                module = importlib.import_module(f"sfumato.session.{place}")
                stack.enter_context(_replaced(module, "select", self._selection()))
                stack.enter_context(_replaced(module, "select_in_rounds", self._rounds()))
            yield

    def _verb(self, verb: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(mechanism: Any, *values: Any, **options: Any) -> Any:
            name = f"{type(mechanism).__name__}.{verb}"
            parts = [repr(mechanism), *map(form, values), told(options)]
            return self._met(
                name, "; ".join(parts), values, lambda: original(mechanism, *values, **options), mechanism
            )

        return call

    def _draw(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        private = _PRIVATE.get(name, 0)

        def call(*values: Any, **options: Any) -> Any:
            parts = [*map(form, values[:private]), *map(told, values[private:]), told(options)]
            parameter = Fraction(values[private]) if private else Fraction(0)
            return self._met(
                name,
                "; ".join(parts),
                values[:private],
                lambda: original(*values, **options),
                parameter=parameter,
            )

        return call

    def _selection(self) -> Callable[..., Any]:
        """The groups that are found are private by themselves: those of two units or more are selected."""

        def select(reading: Any, selection: Any) -> Any:
            exact = dict(zip(reading.groups, reading.units.tolist(), strict=True))
            groups = self._met("groups", repr(selection), (exact,), lambda: _shared(reading), selection)
            return _columns_of(reading, groups), np.arange(100, 100 + len(groups), dtype=np.int64)

        return select

    def _rounds(self) -> Callable[..., Any]:
        """The same in two rounds: half of those groups are found in the first, the others in the second."""
        from sfumato.plan.questions.spread import Spread

        def select_in_rounds(read: Any, selection: Any) -> Any:
            reading = read(Spread(selection.steps))
            weights = dict(zip(reading.groups, reading.weights.tolist(), strict=True))
            shared = _shared(reading)
            first = self._met(
                "groups", repr(selection), (weights,), lambda: shared[: (len(shared) + 1) // 2], selection
            )
            again = read(Spread(selection.steps, first))
            weights = dict(zip(again.groups, again.weights.tolist(), strict=True))
            rest = [group for group in shared if group not in first]
            second = self._met("groups", repr(selection), (weights,), lambda: tuple(rest), selection)
            return _columns_of(reading, (*first, *second))

        return select_in_rounds

    def _met(
        self,
        name: str,
        public: str,
        values: tuple[Any, ...],
        call: Callable[[], Any],
        mechanism: Any = None,
        parameter: Fraction = Fraction(0),
    ) -> Any:
        if getattr(self._depth, "value", 0):
            return call()
        self._depth.value = 1
        try:
            output: Any = call()
        except Exception as error:
            output = error
        finally:
            self._depth.value = 0
        mine = Meeting(name, public, _kept(values), output, mechanism, parameter)
        self.tape.meetings.append(mine)
        if self._first is not None:
            output = self._frozen(mine)
        if isinstance(output, Exception):
            raise output
        return output

    def _frozen(self, mine: Meeting) -> Any:
        """What the first run drew here, after a look at how the two calls differ."""
        assert self._first is not None
        place = len(self.tape.meetings) - 1
        if place >= len(self._first.meetings):
            self.tape.findings.append(f"call {place} of {mine.name} is made on one side alone")
            raise _Diverged
        other = self._first.meetings[place]
        if (mine.name, mine.public) != (other.name, other.public):
            calls = [f"{meeting.name}({meeting.public})" for meeting in (other, mine)]
            self.tape.findings.append(f"call {place} is {calls[0]} on one side, {calls[1]} on the other")
            raise _Diverged
        raised = [
            meeting.output if isinstance(meeting.output, Exception) else None for meeting in (other, mine)
        ]
        if told(raised[0]) != told(raised[1]):
            self.tape.findings.append(
                f"{mine.name} ends with {raised[0]!r} on one side, {raised[1]!r} on the other"
            )
        elif form(other.output) != form(mine.output) and mine.name != "groups":
            forms = f"{form(other.output)} on one side, {form(mine.output)} on the other"
            self.tape.findings.append(f"{mine.name} gives {forms}")
        far = _too_far(other, mine)
        if far is not None:
            self.tape.findings.append(far)
        return other.output


def _shared(reading: Any) -> tuple[Any, ...]:
    """The groups of two units or more."""
    return tuple(group for group, units in zip(reading.groups, reading.units, strict=True) if units > 1)


def _columns_of(reading: Any, groups: tuple[Any, ...]) -> Any:
    """What was read of these groups, 0 where that is nothing."""
    from sfumato.session.reading import Reading

    place = {group: at for at, group in enumerate(reading.groups)}
    columns = tuple(
        np.array([column[place[group]] if group in place else 0 for group in groups], dtype=column.dtype)
        for column in reading.columns
    )
    return Reading(groups, columns)


def _kept(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A copy: a program may go on to change its arrays."""
    return tuple(value.copy() if isinstance(value, np.ndarray) else value for value in values)


def _verbs() -> Iterator[tuple[type, str]]:
    """All verbs of all mechanisms and clients, where each is written."""
    from sfumato.local.base import Randomizer
    from sfumato.mechanisms.base import Mechanism

    for package in ("mechanisms", "local"):
        root = importlib.import_module(f"sfumato.{package}")
        for module in pkgutil.iter_modules(root.__path__):
            importlib.import_module(f"sfumato.{package}.{module.name}")
    todo: list[type] = [Mechanism, Randomizer]
    while todo:
        owner = todo.pop()
        todo += owner.__subclasses__()
        if owner.__module__.startswith("sfumato."):
            yield from ((owner, verb) for verb in _VERBS if callable(vars(owner).get(verb)))


@contextlib.contextmanager
def _replaced(owner: Any, name: str, new: Any) -> Iterator[None]:
    old = vars(owner)[name]
    setattr(owner, name, new)
    try:
        yield
    finally:
        setattr(owner, name, old)


def _too_far(first: Meeting, second: Meeting) -> str | None:
    """How far apart the values are that met the same noise, if that is further than the mechanism allows."""
    kind, mechanism = type(second.mechanism).__name__, second.mechanism
    if kind in ("PartitionSelection", "GaussianSelection"):
        before, after = first.values[0], second.values[0]
        moves = [abs(before.get(key, 0) - after.get(key, 0)) for key in before.keys() | after.keys()]
        most = mechanism.groups * (2 if mechanism.exchange else 1)
        if sum(moves) > most:
            return f"groups: {sum(moves)} numbers of units move, and {most} may"
        return None
    if kind == "AdaptiveSelection":
        before, after = first.values[0], second.values[0]
        moved = [Fraction(before.get(key, 0) - after.get(key, 0)) for key in before.keys() | after.keys()]
        most = mechanism.squared_sensitivity
        distance = sum((move * move for move in moved), Fraction(0))
        return f"groups: weights move by {distance} squared, and {most} may" if distance > most else None
    norm = _NORMS.get(kind)
    if norm is None:
        return None
    moved = [abs(a - b) for a, b in zip(_numbers(first.values[0]), _numbers(second.values[0]), strict=True)]
    if norm == 2:
        square = getattr(mechanism, "squared_sensitivity", None)
        limit = Fraction(mechanism.sensitivity) ** 2 if square is None else Fraction(square)
        distance = sum((move * move for move in moved), Fraction(0))
    else:
        limit = Fraction(mechanism.sensitivity) * (2 if getattr(mechanism, "exchange", False) else 1)
        distance = sum(moved, Fraction(0)) if norm else max(moved, default=Fraction(0))
    if distance > limit:
        return f"{second.name}: values at distance {float(distance):.6g} meet noise for {float(limit):.6g}"
    return None


def _numbers(values: Any) -> list[Fraction]:
    given = values.tolist() if isinstance(values, Wholes) else values
    flat = np.ravel(np.asarray(given, dtype=object)).tolist()
    return [Fraction(number) if np.isfinite(float(number)) else Fraction(0) for number in flat]


def record(program: Callable[[], Any], *, inside: bool = False, seed: int | str = 0) -> Tape:
    """Run a program and write down what met noise, and what could be seen.

    Args:
        program: Gives whatever an observer sees of it; what it raises is seen as well.
        inside: Whether to look inside mechanisms: their calls of `sfumato.random` are written down then, and
            not those of their verbs.
        seed: Of salts and names, which are the same on both sides.

    Raises:
        SfumatoError: outside a test process.
    """
    return _run(program, None, inside, seed)


def replay(
    program: Callable[[], Any],
    tape: Tape,
    *,
    inside: bool = False,
    outline: bool = False,
    seed: int | str = 0,
) -> Tape:
    """Run a program on a neighbouring input, with the noisy outputs of a tape; `findings` says what differs.

    Args:
        program: The same program on a neighbouring input.
        tape: Of the first run.
        inside: As for `record`.
        outline: Whether what the program gives need only have the same type and shape: for mechanisms that
            add a value to its noise after the draw, as in `value + discrete_laplace(scale)`.
        seed: As for `record`.

    Raises:
        SfumatoError: outside a test process.
    """
    second = _run(program, tape, inside, seed)
    if not second.findings:
        if len(second.meetings) < len(tape.meetings):
            rest = tape.meetings[len(second.meetings)]
            second.findings.append(f"call {len(second.meetings)} of {rest.name} is made on one side alone")
        elif outline and second.outline != tape.outline:
            second.findings.append(_first_difference(tape.outline, second.outline))
        elif not outline and second.seen != tape.seen:
            second.findings.append(_first_difference(tape.seen, second.seen))
    return second


def lost(first: Tape, second: Tape) -> tuple[Fraction, Fraction]:
    """The epsilon and the rho that draws which take a value lose between two tapes, by their own laws.

    Discrete and continuous Laplace noise lose |a − b| / scale, Gaussian noise (a − b)² / 2σ² of rho, and
    `choose` and `flip` the rate times the range of a − b (McSherry, Talwar 2007; McKenna, Sheldon 2020).
    """
    epsilon = rho = Fraction(0)
    for mine, other in zip(first.meetings, second.meetings, strict=True):
        moved = [a - b for a, b in zip(_units(mine), _units(other), strict=True)]
        if mine.name in ("add_laplace", "add_discrete_laplace"):
            epsilon += sum(map(abs, moved), Fraction(0)) / mine.parameter
        elif mine.name in ("add_gaussian", "add_discrete_gaussian"):
            rho += sum((move * move for move in moved), Fraction(0)) / (2 * mine.parameter)
        elif mine.name in ("choose", "flip"):
            epsilon += mine.parameter * (max(moved) - min(moved))
    return epsilon, rho


def _units(meeting: Meeting) -> list[Fraction]:
    """The values of a draw as exact numbers: a whole and 64 bits after the point, or integers."""
    if not meeting.values:
        return []
    given = meeting.values[0]
    listed = given.tolist() if isinstance(given, Wholes) else np.ravel(np.asarray(given, dtype=object))
    whole = [Fraction(int(number)) for number in listed]
    if len(meeting.values) == 1:
        return whole
    below = [Fraction(int(word), 2**64) for word in np.ravel(np.asarray(meeting.values[1], dtype=object))]
    return [a + b for a, b in zip(whole, below, strict=True)]


def compare(
    left: Callable[[], Any],
    right: Callable[[], Any],
    *,
    inside: bool = False,
    outline: bool = False,
    seed: int | str = 0,
) -> list[str]:
    """How two runs on neighbouring inputs differ outside the noise; empty: not at all.

    The arguments are those of `record` and `replay`.

    Raises:
        SfumatoError: outside a test process.
    """
    tape = record(left, inside=inside, seed=seed)
    return replay(right, tape, inside=inside, outline=outline, seed=seed).findings


def _run(program: Callable[[], Any], first: Tape | None, inside: bool, seed: int | str) -> Tape:
    require_test("replay")
    deck, lines = _Deck(first, inside=inside), _Lines()
    out, told_off = io.StringIO(), io.StringIO()
    result: Any = None
    logging.getLogger().addHandler(lines)
    try:
        with (
            seeded(seed),
            deck.patched(),
            warnings.catch_warnings(record=True) as warned,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(told_off),
        ):
            warnings.simplefilter("always")
            try:
                result = program()
            except _Diverged:
                result = None
            except Exception as error:
                result = error
    finally:
        logging.getLogger().removeHandler(lines)
    spoken = [
        out.getvalue(),
        told_off.getvalue(),
        *lines.lines,
        *(str(warning.message) for warning in warned),
    ]
    deck.tape.seen = told([result, spoken])
    deck.tape.outline = told([result if isinstance(result, Exception) else form(result), spoken])
    return deck.tape


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def _first_difference(first: str, second: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
    start = max(0, at - 60)
    return f"what is seen differs: …{first[start : at + 60]}… and …{second[start : at + 60]}…"
