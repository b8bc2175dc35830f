"""Selection: the exponential mechanism over a million candidates, beside the least such a choice must do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import sfumato as sf
from benchmarks.harness import Report, peer, race, seconds, times

COUNT = 1_000_000
# The peers take seconds to minutes for a million candidates; their time is linear, so they get a part.
PEER_COUNT = 20_000
EPSILON = 1.0


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


PARTS = (exponential, peers)
