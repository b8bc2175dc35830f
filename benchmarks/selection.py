"""Selection: the exponential mechanism over a million candidates, and groups that are found in the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import sfumato as sf
from benchmarks.harness import Report, peer, race, seconds, times
from sfumato.accounting import gaussian_sigma
from sfumato.plan.prices.selecting import selection_of

COUNT = 1_000_000
# The peers take seconds to minutes for a million candidates; their time is linear, so they get a part.
PEER_COUNT = 20_000
EPSILON = 1.0
FOUND_DELTA = Fraction(1, 10**5)
Pairs = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def exponential(report: Report) -> None:
    """Exact selection over numpy's argmax plus one pass of uniform draws, on scores of several shapes."""
    generator = np.random.default_rng()
    report.heading(
        f"selection among {COUNT:,} candidates, epsilon 1, sensitivity 1", "wall", "CPU", "over numpy"
    )
    mechanism = sf.Exponential(epsilon=EPSILON, sensitivity=1.0)
    worst = worst_cpu = 0.0
    for case, scores in _scores().items():
        timing = race(
            {
                "numpy": lambda scores=scores: (np.argmax(scores), generator.random(COUNT)),
                "sfumato": lambda scores=scores: mechanism.select(scores),
            },
            repeats=15,
        )
        ratio = timing["sfumato"].wall / timing["numpy"].wall
        worst = max(worst, ratio)
        worst_cpu = max(worst_cpu, timing["sfumato"].cpu / timing["numpy"].cpu)
        for who, shown in (("numpy", "argmax + uniform"), ("sfumato", "sfumato (exact)")):
            cells = (times(ratio),) if who == "sfumato" else ()
            report.row(
                case,
                shown,
                seconds(timing[who].wall),
                seconds(timing[who].cpu),
                *cells,
                timing=timing[who],
                over_numpy=timing[who].wall / timing["numpy"].wall,
                over_numpy_cpu=timing[who].cpu / timing["numpy"].cpu,
                candidates=COUNT,
            )
    report.figure(
        "exponential mechanism over argmax + uniforms, worst", worst, "<=", 3, unit=" ×", cpu=worst_cpu
    )


def peers(report: Report) -> None:
    """Time per candidate of the exponential mechanism and its relatives, ours and the peers'."""
    report.heading("selection, time per candidate", "wall", "CPU", "peer over ours")
    case = "normal scores, spread 10"
    scores = _scores()[case]
    part = scores[:PEER_COUNT].tolist()
    ours = {
        "Exponential": sf.Exponential(epsilon=EPSILON, sensitivity=1.0),
        "PermuteAndFlip": sf.PermuteAndFlip(epsilon=EPSILON, sensitivity=1.0),
        "NoisyMax": sf.NoisyMax(epsilon=EPSILON, sensitivity=1.0),
    }
    mine = race({name: lambda m=m: m.select(scores) for name, m in ours.items()}, repeats=7)
    for name, timing in mine.items():
        report.row(
            case,
            f"sf.{name}",
            seconds(timing.wall / COUNT),
            seconds(timing.cpu / COUNT),
            timing=timing,
            candidates=COUNT,
        )
    unit = mine["Exponential"].wall / COUNT
    for who, call in _peers(part).items():
        if call is None:
            report.missing(case, who)
            continue
        timing = race({who: call}, repeats=3)[who]
        report.row(
            case,
            who,
            seconds(timing.wall / PEER_COUNT),
            seconds(timing.cpu / PEER_COUNT),
            times(timing.wall / PEER_COUNT / unit),
            timing=timing,
            candidates=PEER_COUNT,
            over_ours=timing.wall / PEER_COUNT / unit,
        )


def _scores() -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    generator = np.random.default_rng(3)
    peaked = generator.normal(0.0, 1.0, COUNT)
    peaked[COUNT // 2] += 100.0
    return {
        "normal scores, spread 10": generator.normal(0.0, 10.0, COUNT),
        "all scores equal": np.zeros(COUNT),
        "one clear winner": peaked,
        "uniform on 0..1e6": generator.uniform(0.0, 1e6, COUNT),
        "counts (int64)": generator.poisson(50.0, COUNT).astype(np.int64),
    }


def _peers(scores: list[float]) -> dict[str, Callable[[], object] | None]:
    found: dict[str, Callable[[], object] | None] = {"opendp (Gumbel)": None, "diffprivlib": None}
    dp = peer("opendp.prelude")
    if dp is not None:
        dp.enable_features("contrib")
        # With Gumbel noise of scale 2Δ/ε the noisy maximum is the exponential mechanism.
        choose = dp.m.make_noisy_max(
            dp.vector_domain(dp.atom_domain(T=float, nan=False)),
            dp.linf_distance(T=float),
            dp.zero_concentrated_divergence(),
            scale=2.0 / EPSILON,
        )
        found["opendp (Gumbel)"] = lambda: choose(scores)
    diffprivlib = peer("diffprivlib.mechanisms")
    if diffprivlib is not None:
        # The scores are a parameter of its constructor, so a selection is construction and draw.
        found["diffprivlib"] = lambda: diffprivlib.Exponential(
            epsilon=EPSILON, sensitivity=1.0, utility=scores
        ).randomise()
    return found


def found(report: Report) -> None:
    """How many unknown groups are found at epsilon 1 and delta 1e-5: ours, before, and the best published.

    Where the numbers of units are part of the answer, groups are found in one round, and counted.
    """
    report.heading("unknown groups found, epsilon 1, delta 1e-5", "max_groups", "groups found")
    for case, (most, units, groups) in _tables().items():
        pairs = _few(units, groups, most)
        counts = np.bincount(pairs[1])
        divided = sf.PartitionSelection(1, FOUND_DELTA, groups=most)
        limits = {"groups": most, "exchange": False}
        chosen = selection_of(Fraction(1), FOUND_DELTA, **limits, counted=False, rounds=True)
        counted = selection_of(Fraction(1), FOUND_DELTA, **limits, counted=True, rounds=True)
        in_rounds = isinstance(chosen, sf.AdaptiveSelection)
        results = {
            "sfumato": _in_rounds(chosen, pairs) if in_rounds else _expected(chosen, counts),
            "sfumato, with numbers of units": _expected(counted, counts),
            "divided price": _expected(divided, counts),
            "weighted Gaussian (numpy)": _weighted(pairs, most),
            "MaxAdaptiveDegree, two rounds (numpy)": _adaptive(pairs, most),
        }
        for who, number in results.items():
            report.row(case, who, str(most), f"{number:,.0f}", found=number, max_groups=most)


def _tables() -> dict[str, tuple[int, Any, Any]]:
    """Units with many groups, with numbers of groups that follow a Zipf law, and with one."""
    generator, size = np.random.default_rng(1), 20_000
    degrees = {
        "20 to 80 groups a unit": (50, generator.integers(20, 81, size), 20_000),
        "Zipf numbers of groups": (50, np.minimum(generator.zipf(1.6, size), 200), 50_000),
        "one group a unit": (1, np.ones(size, int), 5_000),
    }
    tables = {}
    for case, (most, degree, number) in degrees.items():
        weights = 1 / np.arange(1, number + 1)
        units = np.repeat(np.arange(size), degree)
        pairs = np.unique(units * number + generator.choice(number, units.size, p=weights / weights.sum()))
        tables[case] = most, pairs // number, pairs % number
    return tables


def _few(units: Any, groups: Any, most: int) -> Pairs:
    """At most so many groups of each unit, drawn at random."""
    order = np.lexsort((np.random.default_rng(2).random(units.size), units))
    units, groups = units[order], groups[order]
    kept = np.arange(units.size) - np.searchsorted(units, units) < most
    return units[kept], groups[kept]


def _expected(selection: Any, counts: Any) -> float:
    """The expected number of survivors, exactly."""
    sizes, number = np.unique(counts[counts > 0], return_counts=True)
    return float(
        sum(selection.keep_probability(int(n)) * many for n, many in zip(sizes, number, strict=True))
    )


def _in_rounds(selection: Any, pairs: Pairs, rounds: int = 20) -> float:
    """Survivors of two rounds, a mean of real draws."""
    units, groups = pairs
    size, results = int(groups.max()) + 1, []
    weight = np.array([selection.weight(degree) for degree in range(selection.groups + 1)])

    def sums(left: Any) -> Any:
        own = left[groups]
        degree = np.bincount(units[own], minlength=int(units.max()) + 1)[units[own]]
        return np.bincount(groups[own], weight[degree], size).astype(np.int64)

    for _ in range(rounds):
        found, before = selection.first_round(sums(np.full(size, True)))
        found[~found] = selection.second_round(before[~found], sums(~found)[~found])[0]
        results.append(int(found.sum()))
    return float(np.mean(results))


def _noise(share: float, most: int) -> tuple[float, float]:
    """Sigma and threshold of weights of norm 1 at a share of the price, half of delta for each."""
    from scipy import stats

    part = Fraction(share).limit_denominator(100)
    risk = float(FOUND_DELTA * part / 2)
    sigma, t = float(gaussian_sigma(part, FOUND_DELTA * part / 2)), np.arange(1, most + 1)
    limits = 1 / np.sqrt(t) + sigma * stats.norm.isf(-np.expm1(math.log1p(-risk) / t))
    return sigma, float(limits.max())


def _weighted(pairs: Pairs, most: int) -> float:
    """Gopi et al. 2020: 1/√d in each of a unit's d groups; expected number of survivors."""
    from scipy import stats

    units, groups = pairs
    sigma, limit = _noise(1, most)
    weights = np.bincount(groups, 1 / np.sqrt(np.bincount(units)[units]))
    return float(stats.norm.sf((limit - weights[weights > 0]) / sigma).sum())


def _adaptive(pairs: Pairs, most: int, rounds: int = 20) -> float:
    """Chen et al. 2025, as we read it: a tenth of the price first, then without what was found; a mean."""
    generator, results = np.random.default_rng(4), []
    units, groups = pairs
    size = int(groups.max()) + 1
    (before, first), (after, second) = _noise(0.1, most), _noise(0.9, most)
    for _ in range(rounds):
        weights = _rerouted(units, groups, size, first + 2 * before)
        noisy = weights + before * generator.standard_normal(size)
        done = (weights > 0) & (noisy > first)
        left = ~done[groups]
        weights = _rerouted(units[left], groups[left], size, second + 2 * after)
        done |= (weights > 0) & (weights + after * generator.standard_normal(size) > second)
        results.append(int(done.sum()))
    return float(np.mean(results))


def _rerouted(units: Any, groups: Any, size: int, enough: float, most: int = 50) -> Any:
    """Weights of norm 1 a unit; what lies above `enough` goes back, and to the other groups of the unit."""
    degree = np.bincount(units)[units]
    share = np.where(degree <= most, 1 / degree, 0.0)
    initial = np.bincount(groups, share, size)
    excess = np.where(initial > enough, (initial - enough) / np.maximum(initial, 1e-9), 0.0)
    back = np.bincount(units, share * excess[groups])[units]
    more = np.where(degree <= most, back / most, 0.0) + 1 / np.sqrt(degree) - share
    return np.minimum(initial, enough) + np.bincount(groups, more, size)


PARTS = (exponential, peers, found)
