"""Private steps on an accelerator, beside those of plain learning and of Opacus, in one run.

A step is whole: records drawn, gradients of each cut, noise, update. Contenders have the same model, batch
and 16-bit layers; each is measured alone, since what it holds is measured, too.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from benchmarks import deep_steps
from benchmarks.deep_models import CASES, Case
from benchmarks.harness import Report, Timing, best, race

STEPS, ROUNDS = 5, 5
OPACUS = {"CIFAR CNN": ("hooks", "ghost")}


@dataclass(frozen=True, slots=True)
class Measured:
    """The seconds of a step, and the bytes that it holds on the device."""

    timing: Timing
    held: float


def cifar(report: Report) -> None:
    """Six convolutions with GroupNorm."""
    found = _compared(report, CASES["CIFAR CNN"], 0.80)
    theirs = min((found[name].timing.wall for name in found if name.startswith("Opacus")), default=None)
    if theirs is not None:
        report.figure(
            "CIFAR CNN: Opacus's best step over ours",
            theirs / found["sfumato"].timing.wall,
            ">=",
            2.5,
            unit=" x",
        )


def wide(report: Report) -> None:
    """WideResNet 16-4."""
    _compared(report, CASES["WideResNet 16-4"], 0.90)


def vision(report: Report) -> None:
    """A vision transformer."""
    _compared(report, CASES["ViT-S/16"], 0.85)


def text(report: Report) -> None:
    """A language model of GPT-2's size."""
    found = _compared(report, CASES["GPT-2 size"], 0.88)
    held = found["sfumato"].held / found["plain"].held
    report.figure("GPT-2 size: memory over the plain step's", held, "<=", 1, unit=" x")


PARTS = (text, vision, wide, cifar)


def _compared(report: Report, case: Case, reach: float) -> dict[str, Measured]:
    if not torch.cuda.is_available():
        raise RuntimeError("This subject needs an accelerator.")
    report.heading(
        f"{case.name}, batch {case.batch}, {torch.cuda.get_device_name()}, bf16", "a step", "records/s", "GB",
        "over plain", "over compiled",
    )  # fmt: skip
    ways: dict[str, Callable[[], Any]] = {
        "plain": partial(deep_steps.plain, case, "cuda", True),
        "plain, compiled": partial(deep_steps.plain, case, "cuda", True, compiled=True),
        "sfumato": partial(deep_steps.ours, case, "cuda", True),
    }
    for mode in OPACUS.get(case.name, ("ghost",)):
        ways[f"Opacus {mode}"] = partial(deep_steps.opacus, case, "cuda", True, mode)
    found = dict[str, Measured]()
    for who, made in ways.items():
        try:
            found[who] = _alone(made, partial(_share, report, case) if who == "sfumato" else None)
        except (ModuleNotFoundError, torch.cuda.OutOfMemoryError) as error:
            print(f"    {who}: {type(error).__name__}")
            continue
        taken, plain = found[who], found["plain"]
        compiled = found.get("plain, compiled", plain).timing.wall
        report.row(
            case.name, who, f"{taken.timing.wall * 1e3:.1f} ms", f"{case.batch / taken.timing.wall:,.0f}",
            f"{taken.held / 1e9:.1f}", f"{taken.timing.wall / plain.timing.wall:.3f}",
            f"{taken.timing.wall / compiled:.3f}", timing=taken.timing, held_bytes=taken.held,
            over_plain=taken.timing.wall / plain.timing.wall, over_compiled=taken.timing.wall / compiled,
            device=torch.cuda.get_device_name(),
        )  # fmt: skip
    ours = found["sfumato"].timing.wall
    report.figure(
        f"{case.name}: private step over the plain one",
        ours / found["plain"].timing.wall,
        "<=",
        reach,
        unit=" x",
    )
    return found


def _alone(made: Callable[[], Any], then: Callable[[Any], None] | None) -> Measured:
    _forget()
    before = torch.cuda.mem_get_info()[0]
    taken = _timed(made(), before, then)
    _forget()
    return taken


def _timed(step: Any, before: int, then: Callable[[Any], None] | None) -> Measured:
    def several() -> None:
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()

    timing = race({"step": several}, repeats=ROUNDS, warm=1, budget=60)["step"]
    held = before - torch.cuda.mem_get_info()[0]
    if then is not None:
        then(step)
    walls, cpus = ([each / STEPS for each in times] for times in (timing.walls, timing.cpus))
    return Measured(best(walls, cpus, STEPS), held)


def _forget() -> None:
    torch._dynamo.reset()
    gc.collect()
    torch.cuda.empty_cache()


def _share(report: Report, case: Case, step: Any) -> None:
    """What of a step is noise, if it were drawn alone."""
    descent = step.run._descent

    def drawn() -> None:
        for _ in range(STEPS):
            descent.noise.draw(descent.numbers).values()
        torch.cuda.synchronize()

    wall = race({"noise": drawn}, repeats=ROUNDS, warm=1)["noise"].wall / STEPS
    report.row(case.name, "noise alone", f"{wall * 1e3:.2f} ms", numbers=descent.numbers, seconds=wall)
