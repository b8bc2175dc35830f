"""Local privacy: reports made and added up a second, bytes a report, and errors beside their theory."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.harness import Report, Timing, peer, race, seconds
from sfumato import local

EPSILON = 1
DOMAIN = 1024
PEOPLE = 1_000_000
# The peers take one value at a time, and their time is linear, so they get a part.
FEW = {"encode": 20_000, "aggregate": 400}
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
    theirs = _pure()
    for case, made in _short().items():
        contenders: dict[str, Callable[[], object]] = {"sfumato": lambda made=made: made.encode(values)}
        few = FEW["encode"]
        if theirs is not None:
            client = theirs[case][0]
            part = values[:few].tolist()
            contenders["pure-ldp"] = lambda client=client, part=part: [client.privatise(v) for v in part]
        timing = race(contenders, repeats=5)
        rate = _row(report, case, "sfumato", timing["sfumato"], PEOPLE, _bytes(made))
        cpu = PEOPLE / timing["sfumato"].cpu
        if "pure-ldp" in timing:
            sent = len(pickle.dumps(theirs[case][0].privatise(0)))  # type: ignore[index]
            other = _row(report, case, "pure-ldp", timing["pure-ldp"], few, sent)
            ratios = rate / other, cpu * timing["pure-ldp"].cpu / few
        else:
            other = _cited(report, case, "pure-ldp", "encode")
            ratios = rate / other, cpu / other
        who = "pure-ldp" if theirs is not None else "pure-ldp (cited)"
        report.figure(f"encode, {case}, over {who}", ratios[0], ">=", 20, unit=" ×", cpu=ratios[1])


def aggregate(report: Report) -> None:
    """Reports of local hashing added up a second: each may support any value of the domain."""
    report.heading(f"aggregate, {DOMAIN} values, epsilon {EPSILON}", "wall a report", "CPU", "reports/s")
    values = people(PEOPLE, DOMAIN)
    shown = {**_short(), "count-mean sketch": local.CountMeanSketch(EPSILON, DOMAIN)}
    sent = {case: made.encode(values) for case, made in shown.items()}
    size = {case: 200_000 if case == "local hashing" else PEOPLE for case in shown}
    timing = race(
        {case: lambda m=made, c=case: m.aggregate(sent[c][: size[c]]) for case, made in shown.items()},
        repeats=3,
    )
    for case in shown:
        _row(report, case, "sfumato", timing[case], size[case], _bytes(shown[case]))
    rate, cpu = (
        size["local hashing"] / timing["local hashing"].wall,
        size["local hashing"] / timing["local hashing"].cpu,
    )
    few = FEW["aggregate"]
    for who, call in _peers_aggregate(values[:few].tolist()).items():
        if call is None:
            other = cpu_other = _cited(report, "local hashing", who, "aggregate")
        else:
            theirs = race({who: call}, repeats=3)[who]
            other, cpu_other = _row(report, "local hashing", who, theirs, few), few / theirs.cpu
        label = who if call is not None else f"{who} (cited)"
        report.figure(
            f"aggregate, local hashing, over {label}", rate / other, ">=", 20, unit=" ×", cpu=cpu / cpu_other
        )


def unary(report: Report) -> None:
    """Unary encoding with packed bits: both ways, and the size of a report."""
    size = PEOPLE // 10
    report.heading(f"unary encoding, {DOMAIN} values", "wall a report", "CPU", "reports/s", "bytes")
    values, made = people(size, DOMAIN), local.UnaryEncoding(EPSILON, DOMAIN)
    reports = made.encode(values)
    timing = race(
        {"encode": lambda: made.encode(values), "aggregate": lambda: made.aggregate(reports)}, repeats=3
    )
    rate = _row(report, "unary, encode", "sfumato", timing["encode"], size, _bytes(made))
    _row(report, "unary, aggregate", "sfumato", timing["aggregate"], size, _bytes(made))
    who, found = "multi-freq-ldpy", peer("multi_freq_ldpy.pure_frequency_oracles.UE")
    cpu = size / timing["encode"].cpu
    if found is None:
        other = cpu_other = _cited(report, "unary, encode", who, "unary")
        who += " (cited)"
    else:
        part = values[: FEW["encode"]].tolist()
        theirs = race({who: lambda: [found.UE_Client(v, DOMAIN, EPSILON, True) for v in part]}, repeats=3)[
            who
        ]
        other, cpu_other = _row(report, "unary, encode", who, theirs, len(part)), len(part) / theirs.cpu
    report.figure(f"encode, unary, over {who}", rate / other, ">=", 5, unit=" ×", cpu=cpu / cpu_other)
    report.figure("bytes of a unary report", _bytes(made), "<=", 128)


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


def _row(report: Report, case: str, who: str, timing: Timing, count: int, size: int | None = None) -> float:
    rate = count / timing.wall
    cells = (seconds(timing.wall / count), seconds(timing.cpu / count), f"{rate:,.0f}")
    more = () if size is None else (str(size),)
    report.row(case, who, *cells, *more, timing=timing, reports=count, bytes=size)
    return rate


def _cited(report: Report, case: str, who: str, what: str) -> float:
    """The rate that was measured before, shown as such."""
    report.missing(case, who)
    rate = CITED[who][what]
    report.row(case, who, "cited", "", f"{rate:,.0f}", cited=True, rate=rate)
    return rate


def _bytes(made: Any) -> int:
    return int(made.report_dtype.itemsize) * math.prod(made.report_shape)


def _pure() -> dict[str, tuple[Any, Any]] | None:
    """Clients and servers of pure-ldp, where it is installed."""
    found = peer("pure_ldp.frequency_oracles")
    if found is None:
        return None
    hadamard = peer("pure_ldp.frequency_oracles.hadamard_response")
    keywords = {"index_mapper": lambda index: index}
    server = hadamard.HadamardResponseServer(EPSILON, DOMAIN, **keywords)
    hashes = server.get_hash_funcs() if hasattr(server, "get_hash_funcs") else None
    return {
        "k-ary response": (
            found.DEClient(EPSILON, DOMAIN, **keywords),
            found.DEServer(EPSILON, DOMAIN, **keywords),
        ),
        "local hashing": (
            found.LHClient(EPSILON, DOMAIN, use_olh=True, **keywords),
            found.LHServer(EPSILON, DOMAIN, use_olh=True, **keywords),
        ),
        "Hadamard response": (
            hadamard.HadamardResponseClient(EPSILON, DOMAIN, hashes, **keywords),
            server,
        ),
    }


def _peers_aggregate(values: list[int]) -> dict[str, Callable[[], object] | None]:
    """Adding up reports of local hashing in the peers; None for one that is not installed."""
    calls: dict[str, Callable[[], object] | None] = {"pure-ldp": None, "multi-freq-ldpy": None}
    theirs = _pure()
    if theirs is not None:
        client, server = theirs["local hashing"]
        sent = [client.privatise(value) for value in values]
        calls["pure-ldp"] = lambda: [server.aggregate(each) for each in sent]
    other = peer("multi_freq_ldpy.pure_frequency_oracles.LH")
    if other is not None:
        made = [other.LH_Client(value, DOMAIN, EPSILON, True) for value in values]
        calls["multi-freq-ldpy"] = lambda: other.LH_Aggregator_MI(made, DOMAIN, EPSILON, True)
    return calls


PARTS = (encode, aggregate, unary, errors, heavy)
