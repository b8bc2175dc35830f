"""A private step beside the plain one and Opacus's, on a CPU: the same model, batch and weights in one run.

Ours is a whole step of a run, records drawn and noise included, as it is and compiled; Opacus's is its best
mode of three (hooks, functorch, ghost clipping), without drawing. Each has one thread. The widest net has
a smaller batch: two of Opacus's modes keep the gradients of each of its records. `COMPILED=1` compiles ours,
too, which takes minutes.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from dataclasses import replace

import torch

from benchmarks import deep_steps
from benchmarks.deep_models import ON_CPU, Case
from benchmarks.harness import Report, Timing, peer, race, seconds, times

MODES = ("hooks", "functorch", "ghost")
NARROW, WIDEST, FEWER = "MLP 512", "MLP 2048", 64
MOST = 3.0
"""Seconds of a step beyond which it is not repeated often."""


def steps(report: Report) -> None:
    """Four models."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    report.heading("One step on a CPU", "time", "of the plain step", "of Opacus's best")
    cases = [replace(case, batch=FEWER) if case.name == WIDEST else case for case in ON_CPU]
    ratios = {case.name: _raced(report, case) for case in cases}
    for name, found in ratios.items():
        report.figure(f"{name}: private over plain step", found[0], "<=", 4.0, unit=" ×", cpu=found[1])
    for name, found in ratios.items():
        if math.isfinite(found[2]):
            report.figure(f"{name}: ours over Opacus's best", found[2], "<=", 1.0, unit=" ×", cpu=found[3])


def wide(report: Report) -> None:
    """A wide layer must not cost more of a plain step than a narrow one does, at the same batch."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    report.heading("Narrow and wide layers", "time", "of the plain step")
    ratios = list[tuple[float, float]]()
    for case in ON_CPU:
        if case.name in (NARROW, WIDEST):
            found = race(
                {
                    "plain": deep_steps.plain(case, "cpu", False),
                    "sfumato": deep_steps.ours(case, "cpu", False, compiled=False),
                },
                repeats=5,
            )
            plain, ours = found["plain"], found["sfumato"]
            for who, time in found.items():
                report.row(case.name, who, seconds(time.wall), times(time.wall / plain.wall), timing=time)
            ratios.append((ours.wall / plain.wall, ours.cpu / plain.cpu))
    (narrow, narrow_cpu), (widest, widest_cpu) = ratios
    report.figure(
        "a wide layer's private over plain step, over a narrow one's",
        widest / narrow, "<=", 1.5, unit=" ×", cpu=widest_cpu / narrow_cpu,
    )  # fmt: skip


def _raced(report: Report, case: Case) -> tuple[float, float, float, float]:
    """Ours over the plain step, by wall and CPU seconds, and over the best of Opacus's."""
    made: dict[str, Callable[[], object]] = {
        "plain": deep_steps.plain(case, "cpu", False),
        "sfumato": deep_steps.ours(case, "cpu", False, compiled=False),
    }
    compiled = _compiled(case)
    if compiled is not None:
        made["sfumato, compiled"] = compiled
    if peer("opacus") is not None:
        made |= {f"opacus, {mode}": deep_steps.opacus(case, "cpu", False, mode) for mode in MODES}
    found = race(made, repeats=5, calls=1, budget=MOST)
    plain = found["plain"]
    ours = min((found[who] for who in found if who.startswith("sfumato")), key=lambda time: time.wall)
    others = [found[who] for who in found if who.startswith("opacus")]
    theirs = min(others, key=lambda time: time.wall, default=Timing(math.nan, math.nan, 0, (), ()))
    for who, time in found.items():
        _told(report, case.name, who, time, plain.wall, theirs.wall)
    if not others:
        report.missing(case.name, "opacus")
    return ours.wall / plain.wall, ours.cpu / plain.cpu, ours.wall / theirs.wall, ours.cpu / theirs.cpu


def _compiled(case: Case) -> Callable[[], object] | None:
    """The compiled step, where it is asked for and this machine has a compiler."""
    if not os.environ.get("COMPILED"):
        return None
    try:
        step = deep_steps.ours(case, "cpu", False, compiled=True)
        step()
    except Exception:
        return None
    return step


def _told(report: Report, case: str, who: str, time: Timing, plain: float, theirs: float) -> None:
    over = "" if math.isnan(theirs) else times(time.wall / theirs)
    report.row(
        case, who, seconds(time.wall), times(time.wall / plain), over, timing=time, of_plain=time.wall / plain
    )


PARTS = [steps, wide]
