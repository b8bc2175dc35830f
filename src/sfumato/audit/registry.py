"""Everything that makes a privacy claim, audited by name: mechanisms, clients, games, queries, models."""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from typing import Any, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.audit.blackbox import lower_bounds, support_bound
from sfumato.audit.bounds import Bound, familywise
from sfumato.audit.findings import Audit, Finding, Kind
from sfumato.audit.outputs import Outputs, gathered, is_numeric, normal
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import as_integer

__all__ = ["Audit", "Finding", "Progress", "Subject", "audit_mechanism", "run", "subjects"]

Draw: TypeAlias = Callable[[Side, int], Any]
Progress: TypeAlias = Callable[[int, int, str], None]
"""Told how many are done, of how many, and which was the last."""

_DELTAS = (0.001, 0.01, 0.1)
_TESTS = len(_DELTAS) + 3  # and delta 0, the delta of the claim, the low bits
_LEAST = 500
_SEEN = 100  # a delta of which fewer samples than this are expected shows nothing
_SLOW = 5  # mechanisms that answer one question at a time get a fifth of the samples
_FITTED = 100  # many measurements for each sample
_STEPPED = 100  # all steps of a series for each sample
_BOUGHT = 400  # a debit and a record for each sample
_FEW = 8  # fewer are done before a second interpreter has started
_TINY = 1e-9  # a claim of 0 has no ratio
_VERBS = ("release", "select", "first", "above", "encode")


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that makes a claim, by name.

    Attributes:
        name: unique among its kind.
        kind: of what sort it is.
        open: gives the claimed loss and how to draw outputs of either side.
        part: it gets one sample for so many that the quickest get.
    """

    name: str
    kind: Kind
    open: Callable[[], tuple[Any, Draw]]
    part: int = 1


def subjects() -> tuple[Subject, ...]:
    """All that is registered: examples of mechanisms, streams, clients, games, tables, models; whole queries.

    Models are among them where scikit-learn is installed (extra `learn`), deep runs where PyTorch is
    (`torch`).
    """
    from sfumato import mechanisms
    from sfumato.audit.choices import CHOICES
    from sfumato.audit.queries import QUERIES
    from sfumato.audit.series import SERIES
    from sfumato.continual.examples import examples as streams
    from sfumato.games.examples import examples as games
    from sfumato.local.examples import examples as clients
    from sfumato.synth.examples import examples as tables

    registered = [
        Subject(
            example.name,
            "mechanism",
            _opened(example.mechanism.loss, example.draw),
            1 if example.additive else _SLOW,
        )
        for example in mechanisms.examples()
    ]
    registered += [
        Subject(example.name, "mechanism", _opened(example.loss, example.draw), _SLOW)
        for example in streams()
    ]
    registered += [
        Subject(example.name, "client", _opened(example.loss, example.draw)) for example in clients()
    ]
    registered += [
        Subject(example.name, "game", _opened(example.loss, example.draw), _SLOW) for example in games()
    ]
    registered += [Subject(example.name, "query", _asked(example.pair), example.part) for example in QUERIES]
    registered += [Subject(example.name, "query", _asked(example.pair), _BOUGHT) for example in CHOICES]
    registered += [Subject(example.name, "query", _asked(example.pair), _STEPPED) for example in SERIES]
    registered += [Subject(each.name, "fit", _opened(each.loss, each.draw), _BOUGHT) for each in tables()]
    if find_spec("sklearn") is not None:
        from sfumato.learn.examples import examples as models
        from sfumato.learn.examples import searches

        registered += [Subject(each.name, "fit", _opened(each.loss, each.draw), _FITTED) for each in models()]
        registered += [
            Subject(each.name, "fit", _opened(each.loss, each.draw), _BOUGHT) for each in searches()
        ]
    if find_spec("torch") is not None:
        from sfumato.audit.deep_examples import examples as runs

        registered += [Subject(each.name, "fit", _asked(each.pair), _BOUGHT) for each in runs()]
    return tuple(registered)


def _opened(loss: Any, draw: Draw) -> Callable[[], tuple[Any, Draw]]:
    return lambda: (loss, draw)


def _asked(pair: Callable[[], Any]) -> Callable[[], tuple[Any, Draw]]:
    def opened() -> tuple[Any, Draw]:
        both = pair()
        return both.loss, both.draw

    return opened


def run(
    only: Sequence[str] | None = None,
    *,
    samples: int = 200_000,
    confidence: float = 0.999,
    processes: int = 1,
    progress: Progress | None = None,
) -> Audit:
    """Hold every registered claim against samples.

    Args:
        only: names, parts of names or kinds to audit; None: all.
        samples: how many outputs to draw a side; mechanisms that answer one question at a time get a fifth,
            and queries whose noise takes longer a smaller part, but none fewer than 500.
        confidence: the probability that no honest claim at all is called broken.
        processes: how many to work in; more than one start fresh interpreters, so that a script has to
            call this under `if __name__ == "__main__":`.
        progress: told after each one.

    Privacy:
        Claim: the verdicts hold together with probability `confidence`, by Bonferroni's inequality over all
        bounds that could have been computed. No data of anybody is read: inputs are made up.

    Raises:
        InvalidParameter: if a name is not registered, or a number is out of range.
    """
    count = as_integer(samples, "samples", least=_LEAST)
    workers = as_integer(processes, "processes")
    chosen = _chosen(subjects(), only)
    share = familywise(confidence, _TESTS * len(chosen))
    done: list[tuple[Finding, ...]] = []
    for subject, findings in zip(chosen, _worked(chosen, count, share, workers), strict=True):
        done.append(findings)
        if progress is not None:
            progress(len(done), len(chosen), subject.name)
    return Audit(tuple(finding for findings in done for finding in findings), confidence)


def _chosen(known: Sequence[Subject], only: Sequence[str] | None) -> list[Subject]:
    if not only:
        return list(known)
    names = [str(word).casefold() for word in only]
    for name in names:
        if not any(_answers_to(subject, name) for subject in known):
            raise InvalidParameter(
                f"nothing registered is called {name[:60]!r}; say a mechanism such as laplace, or one of the "
                "kinds mechanism, client, game, query and fit."
            )
    return [subject for subject in known if any(_answers_to(subject, name) for name in names)]


def _answers_to(subject: Subject, name: str) -> bool:
    return name == subject.kind or name in subject.name.casefold()


def _worked(
    chosen: Sequence[Subject], samples: int, share: float, processes: int
) -> Iterator[tuple[Finding, ...]]:
    if processes == 1 or len(chosen) < _FEW:
        yield from (examined(subject, samples=samples, share=share) for subject in chosen)
        return
    # A fresh interpreter each: a forked one would inherit the engine's threads. Subjects hold functions,
    # which do not travel; their places do.
    places = {(subject.kind, subject.name): at for at, subject in enumerate(subjects())}
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context)
    try:
        jobs = [
            pool.submit(_examined_at, places[subject.kind, subject.name], samples, share)
            for subject in chosen
        ]
        yield from (job.result() for job in jobs)
    finally:
        pool.shutdown(cancel_futures=True)


def _examined_at(place: int, samples: int, share: float) -> tuple[Finding, ...]:
    return examined(subjects()[place], samples=samples, share=share)


def examined(subject: Subject, *, samples: int, share: float) -> tuple[Finding, ...]:
    """What samples say about one subject: the claim that came closest to falling, and its low bits.

    Args:
        subject: what to audit.
        samples: how many a side for the quickest of subjects.
        share: the confidence of each single bound.
    """
    loss, draw = subject.open()
    count = max(_LEAST, samples // subject.part)
    return _held(subject.name, subject.kind, loss, [draw("left", count), draw("right", count)], share)


def _held(name: str, kind: Kind, loss: Any, drawn: Sequence[Any], share: float) -> tuple[Finding, ...]:
    """The claim against the outputs, at all deltas where they could tell, and against their low bits."""
    left, right = map(gathered, drawn)
    count = min(len(left), len(right))
    priced = {delta: float(loss.epsilon(delta)) for delta in _deltas(loss, count)}
    claims = {delta: claim for delta, claim in priced.items() if math.isfinite(claim)}
    if not claims:
        raise InvalidParameter(
            f"{name[:60]} claims no finite epsilon at a delta that {count} samples can see; draw more."
        )
    bounds = lower_bounds(left, right, deltas=list(claims), confidence=share)

    def of(claim: float, bound: Bound) -> Finding:
        return Finding.of(name, kind, claim, bound, samples=count)

    findings = [max(map(of, claims.values(), bounds), key=_worst)]
    if kind == "mechanism" and all(_are_floats(normal(side)) for side in (left, right)):
        delta = next(iter(claims))
        bits = support_bound(left, right, delta=delta, confidence=share)
        findings.append(Finding.of(name, "floats", claims[delta], bits, samples=count))
    return tuple(findings)


def _are_floats(outputs: Outputs) -> bool:
    return is_numeric(outputs) and outputs.dtype.kind == "f"


def _worst(finding: Finding) -> tuple[bool, float, float]:
    """Orders findings about one claim: broken ones at the least delta, others by how much of it is proven."""
    broken = finding.verdict == "broken"
    return broken, 0.0 if broken else finding.proven / max(finding.claimed, _TINY), -finding.delta


def _deltas(loss: Any, count: int) -> list[float]:
    """Where to look: 0 for pure claims, the delta of the claim, and some that samples can see."""
    pure, point = getattr(loss, "pure", None), getattr(loss, "approximate", None)
    wanted = set() if pure is None else {0.0}
    if point is not None:
        wanted.add(float(point[1]))
    wanted.update(_DELTAS)
    return sorted(delta for delta in wanted if delta in (0, _DELTAS[-1]) or delta * count >= _SEEN)


def audit_mechanism(
    mechanism: Any,
    left: Any,
    right: Any,
    *,
    samples: int = 100_000,
    confidence: float = 0.999,
    draw: Callable[[Any, int], Any] | None = None,
    name: str | None = None,
) -> Finding:
    """Whether the `loss` of a mechanism of your own holds, on two neighbouring inputs.

    ```python
    audit_mechanism(sf.Laplace(epsilon=1, sensitivity=1), 0.0, 1.0).verdict
    ```

    Args:
        mechanism: anything with a `loss` and one of the verbs release, select, first, above, encode.
        left: one input.
        right: a neighbouring input, as far away as the declared sensitivity allows.
        samples: how many outputs to draw a side.
        confidence: the probability that an honest claim is not called broken, over all that is looked at.
        draw: of an input and a number, so many independent outputs at once; by default the mechanism's verb
            is called so many times, which is slower.
        name: for the finding; by default the mechanism's type.

    Privacy:
        The claim of `lower_bound` at several deltas and, for floats, of `support_bound`, together at
        `confidence`. The finding is the one that came closest to breaking the claim.

    Raises:
        InvalidParameter: if it is not a mechanism, there are fewer than 500 samples, or it claims no finite
            epsilon at a delta that so many can see.
    """
    verb = next((verb for verb in _VERBS if callable(getattr(mechanism, verb, None))), None)
    loss = getattr(mechanism, "loss", None)
    if not callable(getattr(loss, "epsilon", None)) or (verb is None and draw is None):
        raise InvalidParameter(
            f"An audit needs a mechanism, and this is a {type(mechanism).__name__}: give something with a "
            f"loss (a PrivacyLoss) and one of the verbs {', '.join(_VERBS)}."
        )
    count = as_integer(samples, "samples", least=_LEAST)
    share = familywise(confidence, _TESTS)
    take = _drawing(mechanism, str(verb)) if draw is None else draw
    sides = [take(value, count) for value in (left, right)]
    called = type(mechanism).__name__ if name is None else name
    findings = _held(called, "mechanism", loss, sides, share)
    return max(findings, key=lambda finding: (finding.verdict == "broken", finding.kind == "mechanism"))


def _drawing(mechanism: Any, verb: str) -> Callable[[Any, int], Any]:
    if verb == "encode":
        return lambda value, count: mechanism.encode([value] * count)
    ask = getattr(mechanism, verb)
    return lambda value, count: [ask(value) for _ in range(count)]
