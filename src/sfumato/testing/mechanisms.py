"""The conformance kit of mechanisms: everything one claims, held against what it draws."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.audit import Bound, lower_bounds, resolution, support_bound
from sfumato.audit.outputs import is_numeric, normal
from sfumato.errors import SfumatoError
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms.base import Example, Side
from sfumato.testing.moments import coverage_finding, mean_finding, variance_finding
from sfumato.testing.statistics import ALPHA, Finding, discrete_finding
from sfumato.testing.stream import seeded

__all__ = ["CHECKS", "Check", "Examination", "Failure", "check_mechanism", "examine"]

Check: TypeAlias = Literal[
    "loss",
    "support",
    "tightness",
    "law",
    "coverage",
    "variance",
    "bias",
    "frozen",
    "source",
    "shape",
    "refusal",
    "wire",
]
CHECKS: tuple[Check, ...] = get_args(Check)

_DELTAS = (0.001, 0.01, 0.1)
_CONFIDENCES = (0.5, 0.9, 0.99)
_SHARE = 32  # every check of one example may give a false alarm: alpha is split over at most so many
_LIKELY = 0.99  # tightness asks what the auditor typically proves, not what it proves almost surely
_SECRET = 987654321.125
_SLACK = 1e-6  # exact widths may be rounded up and carry half a grid step


class Failure(NamedTuple):
    """One thing that does not hold, and which check found it."""

    check: Check
    words: str


@dataclass(frozen=True, slots=True)
class Examination:
    """What the kit found about one example.

    Attributes:
        name: the example's.
        bounds: the lower bounds on epsilon beside the claims they were held against.
        seen: the largest part of the claim that this example has, as far as samples (or listed laws) can
            show.
        failures: what does not hold; empty for an honest mechanism.
    """

    name: str
    bounds: tuple[tuple[float, Bound], ...]
    seen: float
    failures: tuple[Failure, ...]

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.seen:.0%} of the claim is there"]
        return "\n".join([*lines, *(f"  {failure.check}: {failure.words}" for failure in self.failures)])


def check_mechanism(
    example: Example,
    *,
    samples: int = 100_000,
    alpha: float = ALPHA,
    seed: int | str = 0,
    tight: float = 0.55,
    exact_error: bool = True,
) -> Examination:
    """Assert everything that a mechanism claims, on one example of it, and report what was seen.

    * loss: no lower bound on epsilon exceeds `loss.epsilon(delta)`, at delta 0 (pure losses), 0.001, 0.01,
      0.1;
    * support: nor does one from the low bits of floating-point outputs;
    * tightness: the auditor proves at least `tight` of what it would of the worst mechanism, so that a
      mechanism with half the noise would have failed, and one with twice the noise does;
    * law: where the example lists the exact law, both sides follow it;
    * coverage, variance, bias: of additive mechanisms, two-sided, at 50, 90 and 99 %;
    * frozen, source, shape, refusal, wire: parameters cannot be changed, all randomness comes from
      `sfumato.random`, shapes and types are kept, unusable values are refused in words that do not show
      them, the loss can be stored.

    Args:
        example: a mechanism with two neighbouring inputs and a way to draw.
        samples: how many outputs to draw from each side.
        alpha: bound on the probability that an honest mechanism fails (all but tightness and variance,
            which rest on the fixed seed and on normal tails).
        seed: of the repeatable stream that outputs are drawn from.
        tight: the part of the claim that must be proven; lower it where the claim is known to be loose, and
            say why.
        exact_error: whether `error` is the exact quantile or only a bound on it.

    Raises:
        AssertionError: listing all that fails.
    """
    report = examine(example, samples=samples, alpha=alpha, seed=seed, tight=tight, exact_error=exact_error)
    if report.failures:
        raise AssertionError(str(report))
    return report


def examine(
    example: Example,
    *,
    samples: int = 100_000,
    alpha: float = ALPHA,
    seed: int | str = 0,
    tight: float = 0.55,
    exact_error: bool = True,
) -> Examination:
    """What `check_mechanism` finds, as a value."""
    share = alpha / _SHARE
    with seeded(f"{seed}/{example.name}/left"):
        left = np.asarray(example.draw("left", samples))
    with seeded(f"{seed}/{example.name}/right"):
        right = np.asarray(example.draw("right", samples))
    bounds, failures = _audited(example, left, right, share)
    seen, refuted = _listed(example)
    failures += refuted
    seen = max(seen, *(_seen(claim, bound, samples) for claim, bound in bounds))
    if seen < tight:
        words = (
            f"at most {seen:.0%} of the claim is there (wanted {tight:.0%}): it is loose, or the example is"
        )
        failures.append(Failure("tightness", words))
    failures += _failed(_laws(example, "left", left, exact_error), share)
    failures += _failed(_laws(example, "right", right, exact_error), share)
    for check in (_frozen, _source, _shape, _refusals, _wire):
        failures += check(example)
    return Examination(example.name, tuple(bounds), seen, tuple(failures))


def _failed(findings: Iterator[tuple[Check, Finding]], alpha: float) -> list[Failure]:
    return [Failure(check, f"{f.words} (p = {f.p:.2g})") for check, f in findings if f.p < alpha]


def _audited(
    example: Example, left: NDArray[Any], right: NDArray[Any], alpha: float
) -> tuple[list[tuple[float, Bound]], list[Failure]]:
    """Lower bounds beside their claims, and those claims that they refute."""
    loss, confidence = example.mechanism.loss, 1 - alpha
    deltas = {0.0} if loss.pure is not None else set()
    if loss.approximate is not None:
        deltas.add(float(loss.approximate[1]))
    deltas = {delta for delta in deltas.union(_DELTAS) if delta == 0 or delta * len(left) >= 100}
    claims = {delta: loss.epsilon(delta) for delta in sorted(deltas)}
    bounds = lower_bounds(left, right, deltas=list(claims), confidence=confidence)
    audited = list(zip(claims.values(), bounds, strict=True))
    failures = [_refuted("loss", claim, bound) for claim, bound in audited if bound.refutes(claim)]
    outputs = normal(left)
    finite = [delta for delta, claim in claims.items() if math.isfinite(claim)]
    if finite and is_numeric(outputs) and outputs.dtype.kind == "f":
        bound = support_bound(left, right, delta=finite[0], confidence=confidence)
        if bound.refutes(claims[finite[0]]):
            failures.append(_refuted("support", claims[finite[0]], bound))
    return audited, failures


def _listed(example: Example) -> tuple[float, list[Failure]]:
    """Where both laws are listed, the example's loss is a sum and no estimate: its part of the claim.

    The hockey-stick divergence of the two laws must not exceed `loss.delta`, in either direction.
    """
    if example.pmf is None:
        return 0.0, []
    loss = example.mechanism.loss
    laws = example.pmf("left"), example.pmf("right")
    rest = max(0.0, *(1 - math.fsum(law.values()) for law in laws))  # what is not listed may be anything
    failures: list[Failure] = []
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
        told = loss.delta(epsilon)
        for over, under in (laws, laws[::-1]):
            exact = math.fsum(max(0.0, p - math.exp(epsilon) * under.get(y, rest)) for y, p in over.items())
            if exact > told + 1e-9:
                words = f"the listed laws have delta({epsilon}) = {exact:.6g}, claimed {told:.6g}"
                failures.append(Failure("loss", words))
    if loss.pure is None or rest > 1e-9:
        return 0.0, failures
    ratios = [abs(math.log(p / laws[1][y])) for y, p in laws[0].items() if p > 0 and laws[1].get(y, 0.0) > 0]
    return max(ratios) / float(loss.pure), failures


def _refuted(check: Check, claim: float, bound: Bound) -> Failure:
    return Failure(check, f"claimed epsilon {claim:.4g}, but {bound}")


def _seen(claim: float, bound: Bound, samples: int) -> float:
    """What the auditor proves at an everyday confidence, as a part of what it would at best."""
    if not 0 < claim < math.inf:
        return 0.0
    proven = Bound.of_counts(
        (bound.inside, bound.trials),
        (bound.inside_other, bound.trials_other),
        delta=bound.delta,
        confidence=_LIKELY,
        event=bound.event,
        direction=bound.direction,
    )
    possible = resolution(claim, samples, delta=bound.delta, confidence=_LIKELY)
    return proven.epsilon / possible if possible > 0 else 0.0


def _laws(example: Example, side: Side, drawn: NDArray[Any], exact: bool) -> Iterator[tuple[Check, Finding]]:
    """How the drawn outputs fit the listed law, the widths, the variance and the bias."""
    if example.pmf is not None:
        yield "law", discrete_finding(drawn, example.pmf(side))
    if not example.additive:
        return
    mechanism = example.mechanism
    truth = np.asarray(example.input(side), dtype=float)
    errors = drawn.astype(float) - truth
    rows = np.abs(errors.reshape(len(errors), -1)).max(axis=1)
    for confidence in _CONFIDENCES:
        width = mechanism.error(confidence, size=max(1, truth.size))
        yield "coverage", coverage_finding(rows, width, confidence, exact=exact, slack=_SLACK)
    first = errors.reshape(len(errors), -1)[:, 0]
    variance, bias = mechanism.variance, mechanism.bias
    if variance is not None and math.isfinite(variance):
        yield "variance", variance_finding(first, variance, mean=bias)
        if bias is not None:
            yield "bias", mean_finding(first, bias, deviation=math.sqrt(variance))


def _frozen(example: Example) -> list[Failure]:
    """Parameters cannot be changed after the price was told."""
    mechanism = example.mechanism
    if hasattr(mechanism, "__dict__"):
        return [Failure("frozen", f"{type(mechanism).__name__} has a __dict__: make it a slotted dataclass")]
    if not dataclasses.is_dataclass(mechanism):
        return []
    failures = []
    for field in dataclasses.fields(mechanism):
        value = getattr(mechanism, field.name)
        try:
            setattr(mechanism, field.name, value)
        except AttributeError:
            continue
        failures.append(Failure("frozen", f"{type(mechanism).__name__}.{field.name} can be assigned to"))
    return failures


def _source(example: Example) -> list[Failure]:
    """Outputs depend on the stream of `sfumato.random` and on nothing else."""

    def drawn(seed: int) -> list[Any]:
        with seeded(seed):
            return list(normal(example.draw("left", 200)).tolist())

    first = drawn(1)
    if drawn(1) != first:
        return [
            Failure("source", "equal streams give different outputs: there is another source of randomness")
        ]
    if drawn(2) == first:
        return [Failure("source", "different streams give the same 200 outputs: there is no randomness")]
    return []


def _shape(example: Example) -> list[Failure]:
    """A number gives a number, an array gives an array of its shape, integers stay integers."""
    release = getattr(example.mechanism, "release", None)
    if release is None or not example.additive:
        return []
    one = np.asarray(example.left)
    failures = []
    scalar = one.ravel()[0].item()
    with seeded("shape"):
        number, array, empty = (
            release(scalar),
            release(np.full((2, 3), scalar)),
            release(np.full((0,), scalar)),
        )
    if type(number) is not type(scalar):
        failures.append(Failure("shape", f"release of {type(scalar).__name__} gives {type(number).__name__}"))
    kind = "f" if isinstance(scalar, float) else "i"
    if not isinstance(array, np.ndarray) or array.shape != (2, 3) or array.dtype.kind != kind:
        failures.append(
            Failure("shape", "release of a (2, 3) array does not give a (2, 3) array of its kind")
        )
    if not isinstance(empty, np.ndarray) or empty.shape != (0,):
        failures.append(Failure("shape", "release of an empty array does not give an empty array"))
    return failures


def _refusals(example: Example) -> list[Failure]:
    """Unusable values and confidences raise one of Sfumato's errors, in words that show no value."""
    mechanism = example.mechanism
    nan, inf = math.nan, math.inf
    attempts: list[tuple[str, list[Any]]] = [
        ("release", [nan, None, object()]),
        ("select", [[], [_SECRET, nan], [_SECRET, inf], [[1.0, 2.0]], "12", None]),
    ]
    if example.additive:
        attempts.append(("release", [inf, -inf, "1", [_SECRET, nan], [_SECRET, inf]]))
        attempts.append(("error", [0, 1, -0.5, nan, 2]))
    failures = []
    for verb, bad in [(verb, bad) for verb, values in attempts if _unary(mechanism, verb) for bad in values]:
        name = f"{verb} of {bad!r:.24}"
        try:
            with seeded("refusal"):
                getattr(mechanism, verb)(bad)
        except SfumatoError as refusal:
            if "987654321" in str(refusal):
                failures.append(Failure("refusal", f"the message of {name} shows a private value"))
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as other:
            failures.append(Failure("refusal", f"{name} raises {type(other).__name__}, not a Sfumato error"))
        else:
            failures.append(Failure("refusal", f"{name} is accepted"))
    return failures


def _unary(mechanism: object, verb: str) -> bool:
    """Whether a mechanism has this verb and it takes one argument (others read more than the value)."""
    method = getattr(mechanism, verb, None)
    if method is None:
        return False
    needed = [p for p in inspect.signature(method).parameters.values() if p.default is p.empty]
    return len(needed) == 1


def _wire(example: Example) -> list[Failure]:
    """The price can be stored and read back."""
    loss = example.mechanism.loss
    if not isinstance(loss, PrivacyLoss):
        return [Failure("wire", f"loss is a {type(loss).__name__}, not a PrivacyLoss")]
    return (
        []
        if PrivacyLoss.from_dict(loss.to_dict()) == loss
        else [Failure("wire", "the stored loss reads back changed")]
    )
