"""Noise: exact draws over numpy's insecure, vectors and scalars beside peers, and what time gives away."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

import sfumato as sf
from benchmarks.harness import Report, Timing, no_collection, once, peer, race, seconds, times

COUNT = 1_000_000
SCALES = (
    Fraction(1, 1000),
    Fraction(1, 10),
    Fraction(1),
    Fraction(22, 7),
    Fraction(10),
    Fraction(100),
    Fraction(10**4),
    Fraction(10**6),
    Fraction(10**9),
    Fraction(10**12),
)
# OpenDP takes up to a minute for a million values; its time is linear, so it gets a part of the same vector.
PEER_COUNT = 20_000


def draws(report: Report) -> None:
    """Exact discrete Laplace and Gaussian draws, a million at a time, over numpy's float generators."""
    generator = np.random.default_rng()
    report.heading(f"{COUNT:,} exact discrete draws over numpy's float draws", "wall", "CPU", "over numpy")
    worst = dict.fromkeys(("small", "small by CPU", "any", "any by CPU"), 0.0)
    laws: tuple[tuple[str, Callable[[Fraction], object], Callable[..., object]], ...] = (
        ("Laplace", lambda scale: sf.random.discrete_laplace(scale, COUNT), generator.laplace),
        ("Gaussian", lambda scale: sf.random.discrete_gaussian(scale * scale, COUNT), generator.normal),
    )
    for law, ours, theirs in laws:
        for scale in SCALES:
            case = f"discrete {law}, scale {float(scale):.4g}"
            first = once(lambda ours=ours, scale=scale: ours(scale))
            timing = race(
                {
                    "sfumato": lambda ours=ours, scale=scale: ours(scale),
                    "numpy": lambda theirs=theirs, scale=scale: theirs(0.0, float(scale), COUNT),
                },
                repeats=15,
            )
            ratio = timing["sfumato"].wall / timing["numpy"].wall
            cpu_ratio = timing["sfumato"].cpu / timing["numpy"].cpu
            report.row(case, "numpy (float)", *_clock(timing["numpy"]), timing=timing["numpy"])
            report.row(
                case,
                "sfumato (exact)",
                *_clock(timing["sfumato"]),
                times(ratio),
                timing=timing["sfumato"],
                over_numpy=ratio,
                over_numpy_cpu=cpu_ratio,
                first_call_seconds=first.wall,
            )
            for which in ("small", "any") if scale <= 10 else ("any",):
                worst[which] = max(worst[which], ratio)
                worst[f"{which} by CPU"] = max(worst[f"{which} by CPU"], cpu_ratio)
    report.figure(
        "exact draws over numpy, scale <= 10, worst",
        worst["small"],
        "<=",
        0.5,
        unit=" ×",
        cpu=worst["small by CPU"],
    )
    report.figure(
        "exact draws over numpy, any scale, worst",
        worst["any"],
        "<=",
        1.3,
        unit=" ×",
        cpu=worst["any by CPU"],
    )


def integer_vectors(report: Report) -> None:
    """The integer mechanisms on vectors of a million, beside OpenDP's."""
    report.heading("integer vectors, time per value", "wall", "CPU", "peer over ours")
    values = np.zeros(COUNT, dtype=np.int64)
    geometric = sf.Geometric(epsilon=1, sensitivity=1)
    gaussian = sf.DiscreteGaussian(sigma=1, sensitivity=1)
    opendp = _opendp()
    for case, ours, theirs in (
        ("Geometric, scale 1", geometric, opendp and opendp["integer vector Laplace"]),
        ("DiscreteGaussian, sigma 1", gaussian, opendp and opendp["integer vector Gaussian"]),
    ):
        _vectors(report, case, lambda ours=ours: ours.release(values), theirs, [0] * PEER_COUNT)


def float_vectors(report: Report) -> None:
    """The float mechanisms on vectors of a million, beside OpenDP's float vectors."""
    report.heading("float vectors, time per value", "wall", "CPU", "peer over ours")
    values = np.random.default_rng(1).uniform(-1000.0, 1000.0, COUNT)
    laplace = sf.Laplace(epsilon=1, sensitivity=1)
    gaussian = sf.Gaussian(sigma=1, sensitivity=1)
    opendp = _opendp()
    for case, ours, theirs in (
        ("Laplace, scale 1", laplace, opendp and opendp["float vector Laplace"]),
        ("Gaussian, sigma 1", gaussian, opendp and opendp["float vector Gaussian"]),
    ):
        part = values[:PEER_COUNT].tolist()
        ratio, cpu = _vectors(report, case, lambda ours=ours: ours.release(values), theirs, part)
        report.figure(f"float vector {case}: OpenDP over ours", ratio, ">=", 2000, unit=" ×", cpu=cpu)


def _vectors(
    report: Report,
    case: str,
    ours: Callable[[], object],
    theirs: Callable[[Any], object] | None,
    part: list[Any],
) -> tuple[float, float]:
    contenders: dict[str, Callable[[], object]] = {"sfumato": ours}
    if theirs is not None:
        contenders["opendp"] = lambda: theirs(part)
    timing = race(contenders, repeats=9, budget=5.0)
    mine = timing["sfumato"]
    report.row(case, "sfumato", *_clock(mine, COUNT), timing=mine, values=COUNT)
    if theirs is None:
        report.missing(case, "opendp")
        return math.nan, math.nan
    other = timing["opendp"]
    ratio = (other.wall / len(part)) / (mine.wall / COUNT)
    cpu_ratio = (other.cpu / len(part)) / (mine.cpu / COUNT)
    report.row(
        case,
        "opendp",
        *_clock(other, len(part)),
        times(ratio),
        timing=other,
        values=len(part),
        over_ours=ratio,
        over_ours_cpu=cpu_ratio,
    )
    return ratio, cpu_ratio


def scalars(report: Report) -> None:
    """One scalar release of each additive mechanism, ours and the peers' in turns."""
    report.heading("one scalar release", "wall", "CPU", "peer over ours")
    worst = worst_cpu = 0.0
    for case, contenders in _scalar_contenders().items():
        present = {who: call for who, call in contenders.items() if call is not None}
        # A turn of ours spans several refills of the pool of bits, so the refills are in the average.
        calls = {who: 20_000 if who == "sfumato" else 1_000 for who in present}
        timing = race(present, repeats=9, calls=calls, warm=200)
        ours = timing["sfumato"].wall
        worst, worst_cpu = max(worst, ours), max(worst_cpu, timing["sfumato"].cpu)
        for who in contenders:
            if who not in timing:
                report.missing(case, who)
                continue
            ratio = timing[who].wall / ours
            cells = () if who == "sfumato" else (times(ratio),)
            report.row(case, who, *_clock(timing[who]), *cells, timing=timing[who], over_ours=ratio)
    report.figure(
        "one scalar release, slowest mechanism", worst * 1e6, "<=", 5, unit=" µs", cpu=worst_cpu * 1e6
    )


def _scalar_contenders() -> dict[str, dict[str, Callable[[], object] | None]]:
    opendp = _opendp()
    diffprivlib = peer("diffprivlib.mechanisms")
    google = peer("pydp.algorithms.numerical_mechanisms")

    def bind(release: Callable[[Any], object], value: float) -> Callable[[], object]:
        return lambda: release(value)

    found: dict[str, dict[str, Callable[[], object] | None]] = {}
    for case, ours, value, make in (
        (
            "Laplace",
            sf.Laplace(epsilon=1, sensitivity=1),
            42.0,
            lambda m: m.Laplace(epsilon=1, sensitivity=1),
        ),
        (
            "Gaussian",
            sf.Gaussian(epsilon=1, delta=1e-6, sensitivity=1),
            42.0,
            lambda m: m.GaussianAnalytic(epsilon=1, delta=1e-6, sensitivity=1),
        ),
        (
            "Geometric",
            sf.Geometric(epsilon=1, sensitivity=1),
            42,
            lambda m: m.Geometric(epsilon=1, sensitivity=1),
        ),
        (
            "DiscreteGaussian",
            sf.DiscreteGaussian(epsilon=1, delta=1e-6, sensitivity=1),
            42,
            lambda m: m.GaussianDiscrete(epsilon=1, delta=1e-6, sensitivity=1),
        ),
    ):
        found[f"{case}, epsilon 1"] = {
            "sfumato": bind(ours.release, value),
            "opendp": opendp and bind(opendp[case], value),
            "diffprivlib": diffprivlib and bind(make(diffprivlib).randomise, value),
        }
    found["Laplace, epsilon 1"]["Google C++ (PyDP)"] = google and bind(
        google.LaplaceMechanism(1.0, 1.0).add_noise, 42.0
    )
    found["Gaussian, epsilon 1"]["Google C++ (PyDP)"] = google and bind(
        google.GaussianMechanism(1.0, 1e-6, 1.0).add_noise, 42.0
    )
    return found


def timing_channel(report: Report) -> None:
    """Rank correlation of the time of a scalar release with the magnitude of its noise.

    Spearman's coefficient is taken twice: over all calls, and within blocks of 500 calls and averaged, which
    keeps slow drifts of the machine from hiding a dependence; the larger magnitude counts. The noise is drawn
    independently for each call, so without dependence the pairing is exchangeable and either has a standard
    deviation of about 1/sqrt(calls), whatever the clock does. The figure is the upper end of a 99.9 %
    interval for the worst mechanism.
    """
    report.heading(
        "rank correlation of time with |noise|, garbage collector off",
        "correlation",
        "99.9 % within",
        "calls",
    )
    opendp = _opendp()
    worst = {"floats": 0.0, "integers": 0.0, "integers near 0": 0.0}
    # The same scales as OpenDP's here: 1, and the sigma of epsilon 1 and delta 1e-6.
    laplace = sf.Laplace(epsilon=1, sensitivity=1)
    gaussian = sf.Gaussian(epsilon=1, delta=1e-6, sensitivity=1)
    geometric = sf.Geometric(epsilon=1, sensitivity=1)
    discrete = sf.DiscreteGaussian(epsilon=1, delta=1e-6, sensitivity=1)
    # At 0 the answer is as small as the noise, and at 1000 it is not: integers change length at other places.
    for law, ours, value in (
        ("Laplace", laplace, 0.0),
        ("Laplace", laplace, 1000.0),
        ("Gaussian", gaussian, 0.0),
        ("Gaussian", gaussian, 1000.0),
        ("Geometric", geometric, 0),
        ("Geometric", geometric, 1000),
        ("DiscreteGaussian", discrete, 0),
        ("DiscreteGaussian", discrete, 1000),
    ):
        case = f"{law} of {value:g}"
        bound = _correlation(report, case, "sfumato", ours.release, value, calls=200_000)
        # The interpreter keeps integers from -5 to 256 ready: there time follows what is released.
        kind = "floats" if isinstance(value, float) else "integers near 0" if value == 0 else "integers"
        worst[kind] = max(worst[kind], bound)
        if opendp is None:
            report.missing(case, "opendp")
        elif value == 0:
            _correlation(report, case, "opendp", opendp[law], value, calls=20_000)
    for kind, bound in worst.items():
        report.figure(f"rank correlation of time with |noise|, upper end, {kind}", bound, "<", 0.02)


def _correlation(
    report: Report,
    case: str,
    who: str,
    release: Callable[[Any], Any],
    value: float,
    *,
    calls: int,
    block: int = 500,
) -> float:
    clock = time.perf_counter_ns
    elapsed = np.empty(calls, dtype=np.int64)
    noise = np.empty(calls)
    for _ in range(1_000):
        release(value)
    with no_collection():
        for i in range(calls):
            start = clock()
            answer = release(value)
            elapsed[i] = clock() - start
            noise[i] = answer
    magnitude = np.abs(noise - value)
    whole = float(stats.spearmanr(elapsed, magnitude).statistic)
    blocks = [
        float(stats.spearmanr(elapsed[at : at + block], magnitude[at : at + block]).statistic)
        for at in range(0, calls, block)
    ]
    within = float(np.mean(blocks))
    largest = max(whole, within, key=abs)
    # Two looks at 99.95 % each; a block of b calls has variance 1/(b - 1), hence the small correction.
    half = stats.norm.isf(0.0005 / 2) * math.sqrt((1 + largest**2 / 2) / (calls * (block - 1) / block - 3))
    bound = abs(largest) + half
    report.row(
        case,
        who,
        f"{largest:+.4f}",
        f"± {half:.4f}",
        f"{calls:,}",
        correlation=largest,
        over_all_calls=whole,
        within_blocks=within,
        half_width=half,
        calls=calls,
        block=block,
        median_nanoseconds=float(np.median(elapsed)),
    )
    return bound


def _clock(timing: Timing, values: int = 1) -> tuple[str, str]:
    return seconds(timing.wall / values), seconds(timing.cpu / values)


def _opendp() -> dict[str, Callable[[Any], Any]] | None:
    """Give OpenDP's additive noise at scale 1 (scalar Gaussians: epsilon 1, delta 1e-6), by name."""
    dp = peer("opendp.prelude")
    if dp is None:
        return None
    dp.enable_features("contrib")
    real = dp.atom_domain(T=float, nan=False)
    whole = dp.atom_domain(T=int)
    laplace, gaussian = dp.m.make_laplace, dp.m.make_gaussian
    near, step = dp.absolute_distance(T=float), dp.absolute_distance(T=int)
    return {
        "Laplace": laplace(real, near, scale=1.0),
        "Gaussian": gaussian(real, near, scale=4.2247),
        "Geometric": laplace(whole, step, scale=1.0),
        "DiscreteGaussian": gaussian(whole, near, scale=4.2247),
        "float vector Laplace": laplace(dp.vector_domain(real), dp.l1_distance(T=float), scale=1.0),
        "float vector Gaussian": gaussian(dp.vector_domain(real), dp.l2_distance(T=float), scale=1.0),
        "integer vector Laplace": laplace(dp.vector_domain(whole), dp.l1_distance(T=int), scale=1.0),
        "integer vector Gaussian": gaussian(dp.vector_domain(whole), dp.l2_distance(T=float), scale=1.0),
    }


PARTS = (draws, integer_vectors, float_vectors, scalars, timing_channel)
