"""Local privacy: reports made and added up a second, bytes a report, and errors beside their theory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import remote
from benchmarks.harness import Report, Timing, race, seconds
from sfumato import local

EPSILON = 1
DOMAIN = 1024
PEOPLE = 1_000_000
# The peers take one value at a time, and their time is linear, so they get a part.
FEW = {"encode": 20_000, "unary": 5_000, "aggregate": 400}
# Reports a second, for a peer that is not installed: measured separately, not in the same run, and labelled
# "cited". Of a range, the quickest end.
CITED = {
    "pure-ldp": {"encode": 0.7e6, "aggregate": 1.2e3},
    "multi-freq-ldpy": {"unary": 44e3, "aggregate": 0.7e3},
}
# The mean squared error over theory of values that a figure averages is off by √(2/values) by chance.
VALUES = 4096


def people(size: int, domain: int) -> np.ndarray:
    """Values by Zipf's law: few frequent ones, many rare."""
    shares = 1 / np.arange(1, domain + 1) ** 1.1
    return np.random.default_rng(1).choice(domain, size, p=shares / shares.sum())


def encode(report: Report) -> None:
    """Reports a second, for the randomizers whose reports are short."""
    values = people(PEOPLE, DOMAIN)
    report.heading(
        f"encode, {DOMAIN} values, epsilon {EPSILON}", "wall a report", "CPU", "reports/s", "bytes"
    )
    for case, made in _short().items():
        theirs = _peers(case, ("pure-ldp",), values[: FEW["encode"]])
        timing = remote.race(
            {"sfumato": lambda made=made: made.encode(values)}, _installed(theirs), repeats=5
        )
        _row(report, case, "sfumato", timing["sfumato"], PEOPLE, _bytes(made))
        _over(report, f"encode, {case}", case, timing, theirs, PEOPLE, cited="encode", target=20)


def aggregate(report: Report) -> None:
    """Reports of local hashing added up a second: each may support any value of the domain."""
    report.heading(f"aggregate, {DOMAIN} values, epsilon {EPSILON}", "wall a report", "CPU", "reports/s")
    values = people(PEOPLE, DOMAIN)
    shown = {**_short(), "count-mean sketch": local.CountMeanSketch(EPSILON, DOMAIN)}
    sent = {case: made.encode(values) for case, made in shown.items()}
    size = {case: 200_000 if case == "local hashing" else PEOPLE for case in shown}
    hashing = "local hashing"
    theirs = _peers("aggregate", ("pure-ldp", "multi-freq-ldpy"), values[: FEW["aggregate"]])
    calls = {case: lambda m=made, c=case: m.aggregate(sent[c][: size[c]]) for case, made in shown.items()}
    timing = race({case: call for case, call in calls.items() if case != hashing}, repeats=3)
    raced = remote.race({"sfumato": calls[hashing]}, _installed(theirs), repeats=5)
    for case in shown:
        one = raced["sfumato"] if case == hashing else timing[case]
        _row(report, case, "sfumato", one, size[case], _bytes(shown[case]))
    what = "aggregate, local hashing"
    _over(report, what, hashing, raced, theirs, size[hashing], cited="aggregate", target=20)


def unary(report: Report) -> None:
    """Unary encoding with packed bits: both ways, and the size of a report."""
    size = PEOPLE // 10
    report.heading(f"unary encoding, {DOMAIN} values", "wall a report", "CPU", "reports/s", "bytes")
    values, made = people(size, DOMAIN), local.UnaryEncoding(EPSILON, DOMAIN)
    reports = made.encode(values)
    theirs = _peers("unary encoding", ("multi-freq-ldpy", "pure-ldp"), values[: FEW["unary"]])
    timing = remote.race({"sfumato": lambda: made.encode(values)}, _installed(theirs), repeats=5)
    back = race({"aggregate": lambda: made.aggregate(reports)}, repeats=3)["aggregate"]
    _row(report, "unary, encode", "sfumato", timing["sfumato"], size, _bytes(made))
    _row(report, "unary, aggregate", "sfumato", back, size, _bytes(made))
    _over(report, "encode, unary", "unary, encode", timing, theirs, size, cited="unary", target=5)
    sizes = {who: work.bytes for who, work in _installed(theirs).items()}
    report.figure("bytes of a unary report", _bytes(made), "<=", 128, peers=sizes)


def errors(report: Report) -> None:
    """Mean squared errors of counts over the variance that theory gives them, each value by its own."""
    report.heading(f"errors, {PEOPLE:,} people, epsilon {EPSILON}", "MSE/theory", "chance", "95 % cover")
    for case, made in _frequencies().items():
        domain = made.domain.size
        rounds = math.ceil(VALUES / domain) if domain > 2 else 1
        ratio, held, number = _squares(made, rounds)
        _error(report, case, ratio, math.sqrt(2 / number), held, domain=domain, rounds=rounds)
    numbers = np.random.default_rng(1).beta(2, 5, PEOPLE)
    for case, kind in (
        ("Duchi", local.DuchiMean),
        ("piecewise", local.PiecewiseMean),
        ("hybrid", local.HybridMean),
    ):
        mean = kind(EPSILON, 0, 1)
        # A million people in groups: as many errors as groups.
        groups = np.array_split(numbers, VALUES)
        found = [mean.aggregate(mean.encode(group)).estimate() for group in groups]
        grid = np.linspace(0, 1, 1001)
        curve = [mean.variance_at(float(x)) for x in grid]
        theory = [float(np.interp(group, grid, curve).mean()) / group.size for group in groups]
        squares = [
            (each.value - group.mean()) ** 2 / expected
            for each, group, expected in zip(found, groups, theory, strict=True)
        ]
        inside = [each.low <= group.mean() <= each.high for each, group in zip(found, groups, strict=True)]
        _error(
            report, f"mean, {case}", float(np.mean(squares)), math.sqrt(2 / VALUES), float(np.mean(inside))
        )


def heavy(report: Report) -> None:
    """Frequent values among 2**32: how many are found, and how long that takes."""
    report.heading(f"heavy hitters, {PEOPLE:,} people, 32 bits, epsilon {EPSILON}", "wall", "CPU")
    generator = np.random.default_rng(2)
    frequent = generator.integers(0, 2**32, 8)
    values = np.where(
        generator.random(PEOPLE) < 0.6, frequent[np.arange(PEOPLE) % 8], generator.integers(0, 2**32, PEOPLE)
    )
    made = local.HeavyHitters(EPSILON, bits=32)
    reports = made.encode(values)
    total = made.aggregate(reports)
    timing = race(
        {
            "encode": lambda: made.encode(values),
            "aggregate": lambda: made.aggregate(reports),
            "estimate": lambda: made.aggregate(reports).estimate(),
        },
        repeats=2,
        warm=0,
    )
    for step, taken in timing.items():
        report.row(step, "sfumato", seconds(taken.wall), seconds(taken.cpu), timing=taken, people=PEOPLE)
    found = total.estimate()
    report.row(
        "found", "sfumato", f"{len(set(found.values) & set(frequent.tolist()))} of 8",
        false=len(set(found.values) - set(frequent.tolist())), resolution=found.resolution,
    )  # fmt: skip


def _short() -> dict[str, Any]:
    return {
        "k-ary response": local.KaryResponse(EPSILON, DOMAIN),
        "local hashing": local.LocalHashing(EPSILON, DOMAIN),
        "Hadamard response": local.HadamardResponse(EPSILON, DOMAIN),
    }


def _frequencies() -> dict[str, Any]:
    """All randomizers of counts; domains are smaller where a report costs as much as the domain is large."""
    return {
        "binary response": local.BinaryResponse(EPSILON, 2),
        **_short(),
        "unary, optimised": local.UnaryEncoding(EPSILON, 256),
        "unary, symmetric": local.UnaryEncoding(EPSILON, 256, optimised=False),
        "RAPPOR": local.Rappor(EPSILON, 256),
        "subset selection": local.SubsetSelection(EPSILON, 256),
        "count-mean sketch": local.CountMeanSketch(EPSILON, DOMAIN),
    }


def _squares(made: Any, rounds: int) -> tuple[float, float, int]:
    """The mean of squared errors over their variances, the part of intervals that hold, and how many."""
    ratios, held = [], []
    for values in _rounds(made.domain.size, rounds):
        real = np.bincount(values, minlength=made.domain.size).astype(float)
        found = made.aggregate(
            made.encode(part) for part in np.array_split(values, _parts(made, values))
        ).estimate()
        own = made.p * (1 - made.p) / made.gap**2
        theory = (values.size - real) * made.variance + real * own
        if isinstance(made, local.CountMeanSketch):
            # People of one value collide together in each row of the table.
            squares = float((real * real).sum()) - real * real
            theory = theory + squares / made.rows / made.width
        ratios.append((found.counts - real) ** 2 / theory)
        held.append((found.low <= real) & (real <= found.high))
    every = np.concatenate(ratios)
    # The two counts of a pair have one error.
    number = every.size // 2 if made.domain.size == 2 else every.size
    return float(every.mean()), float(np.concatenate(held).mean()), number


def _rounds(domain: int, rounds: int) -> Iterator[np.ndarray]:
    values = people(PEOPLE, domain)
    if domain == 2:
        yield from np.array_split(values, VALUES)  # one error is no mean: groups of people, each with one
    else:
        for _ in range(rounds):
            yield values


def _parts(made: Any, values: np.ndarray) -> int:
    """Batches of at most 64 MB of reports."""
    return max(1, _bytes(made) * values.size >> 26)


def _error(report: Report, case: str, ratio: float, chance: float, held: float, **more: Any) -> None:
    report.row(
        case, "sfumato", f"{ratio:.3f}", f"± {chance:.3f}", f"{held:.3f}", ratio=ratio, coverage=held, **more
    )
    report.figure(
        f"|MSE/theory − 1|, {case}", abs(ratio - 1), "<=", 0.1, ratio=ratio, chance=chance, coverage=held
    )


def _row(
    report: Report,
    case: str,
    who: str,
    timing: Timing,
    count: int,
    size: int | None = None,
    **more: Any,
) -> None:
    cells = (seconds(timing.wall / count), seconds(timing.cpu / count), f"{count / timing.wall:,.0f}")
    last = () if size is None else (str(size),)
    report.row(case, who, *cells, *last, timing=timing, reports=count, bytes=size, **more)


def _peers(task: str, names: tuple[str, ...], values: np.ndarray) -> dict[str, remote.Work | None]:
    """Each peer, ready to take the values; None for one that is not installed."""
    given = {"values": values.tolist(), "epsilon": EPSILON, "domain": DOMAIN}
    return {who: remote.prepare(who, task, **given) for who in names}


def _installed(theirs: dict[str, remote.Work | None]) -> dict[str, remote.Work]:
    return {who: work for who, work in theirs.items() if work is not None}


def _over(
    report: Report,
    what: str,
    case: str,
    timing: dict[str, Timing],
    theirs: dict[str, remote.Work | None],
    count: int,
    *,
    cited: str,
    target: float,
) -> None:
    """Our rate over that of each peer: of this run, or cited; a peer that has no target gets a row alone."""
    ours = timing["sfumato"]
    for who, work in theirs.items():
        if work is None:
            if cited in CITED[who]:
                rate = _cited(report, case, who, cited)
                ratios = count / ours.wall / rate, count / ours.cpu / rate
                more = {"cpu": ratios[1], "peer": "cited"}
                report.figure(f"{what}, over {who} (cited)", ratios[0], ">=", target, unit=" ×", **more)
            else:
                report.missing(case, who)
            continue
        one = timing[who]
        _row(report, case, who, one, work.count, work.bytes, **work.facts)
        ratio = (one.wall / work.count) / (ours.wall / count)
        cpu = (one.cpu / work.count) / (ours.cpu / count)
        if cited in CITED[who]:
            report.figure(f"{what}, over {who}", ratio, ">=", target, unit=" ×", cpu=cpu, **work.facts)


def _cited(report: Report, case: str, who: str, what: str) -> float:
    """The rate that was measured before, shown as such."""
    report.missing(case, who)
    rate = CITED[who][what]
    report.row(case, who, "cited", "", f"{rate:,.0f}", cited=True, rate=rate)
    return rate


def _bytes(made: Any) -> int:
    return int(made.report_dtype.itemsize) * math.prod(made.report_shape)


PARTS = (remote.note, encode, aggregate, unary, errors, heavy)
