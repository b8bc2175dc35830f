"""What one answer of each mechanism costs to compute, and whether it grows as docs/mechanisms.md says.

CPU seconds, the median of several turns, with all that can be made before an answer made before. A size grows
and all else stays; the exponent is fitted over the three largest sizes, where what does not grow matters
little. The other parts are about what should *not* matter: the private value, and the scale of the noise.
Memory that is freed stays with the process, so that the system's clearing of pages is not what grows.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping
from fractions import Fraction
from statistics import median
from typing import Any

import numpy as np

from benchmarks import mechanism_answers as answers
from benchmarks import mechanism_cases as cases
from benchmarks.harness import Report, Timing, no_collection, race, seconds, times
from benchmarks.mechanism_answers import Answer
from benchmarks.mechanism_cases import MANY, SCALES, Growth
from sfumato.errors import InvalidParameter, InvalidValue

FITTED = 3  # sizes, the largest ones
OFF = 0.15  # how far from 1 an exponent may be; a logarithm is within
SLACK = 1.5  # of slow growth: log T doubles from 2**10 to 2**20, and a step may take three times as long
APART = 1.25  # the time for one private value over that for another
WIDE = 4.0  # the time at one scale of the noise over that at another
REPEATS, TURN, BUDGET = 9, 0.01, 1.0
FRESH = 15  # mechanisms, each at a new scale
_TRIM, _MAP = -1, -3  # of glibc's mallopt: from which size on memory goes back, or is asked for by itself


def who(name: str) -> str:
    """How a mechanism is called."""
    return f"sf.continual.{name}" if name == "Continual" else f"sf.{name}"


def keep_memory() -> None:
    """Let glibc keep what is freed; elsewhere nothing is done."""
    change = getattr(ctypes.CDLL(None), "mallopt", None)
    for option in (_TRIM, _MAP) if change else ():
        change(option, 2**30)


def timed(calls: Mapping[str, Answer]) -> dict[str, Timing]:
    """All of them in turns, as many calls in a turn as it takes for the clock."""
    counts = {name: _calls(call) for name, call in calls.items()}
    return race(calls, repeats=REPEATS, calls=counts, budget=BUDGET)


def _calls(call: Answer) -> int:
    call()
    start = time.process_time()
    call()
    return max(1, min(2_000, round(TURN / max(time.process_time() - start, 1e-6))))


def exponent(sizes: list[int], medians: list[float]) -> float:
    """The slope of the line through the logarithms, over the largest sizes."""
    x, y = np.log(sizes[-FITTED:]), np.log(medians[-FITTED:])
    return float(np.polyfit(x, y, 1)[0])


def growth(report: Report) -> None:
    """Each size that the order of a mechanism names."""
    keep_memory()
    report.heading("one answer, median CPU", "time", "of one", "exponent")
    for case in cases.GROWTHS:
        _grown(report, case)


def _grown(report: Report, case: Growth) -> None:
    timing = timed({str(size): case.ready(size) for size in case.sizes})
    found = [median(timing[str(size)].cpus) / case.steps for size in case.sizes]
    fitted = exponent(list(case.sizes), found)
    for size, cpu in zip(case.sizes, found, strict=True):
        last = size == case.sizes[-1]
        report.row(
            f"{size:,} {case.unit[size > 1]}" + (f", {case.how}" if case.how else ""),
            who(case.name),
            seconds(cpu),
            seconds(cpu / size) if case.law == "linear" else "",
            f"{fitted:.3f}" if last else "",
            timing=timing[str(size)],
            mechanism=case.name,
            how=case.how,
            over=case.over,
            unit=list(case.unit),
            size=size,
            law=case.law,
            median=cpu,
            **({"each": cpu / size} if case.law == "linear" else {}),
            **({"exponent": fitted} if last else {}),
        )
    _judged(report, case, found, fitted)


def _judged(report: Report, case: Growth, found: list[float], fitted: float) -> None:
    """Whether the times agree with the order, as a figure."""
    kept: dict[str, Any] = {"mechanism": case.name, "how": case.how, "grown": case.unit[1]}
    what = f"{case.name}, {case.unit[1]}" + (f" ({case.how})" if case.how else "")
    if case.law == "linear":
        report.figure(f"{what}: exponent, off 1 by", abs(fitted - 1), "<=", OFF, exponent=fitted, **kept)
    elif case.law == "slow":
        few, many = case.sizes[0], case.sizes[-1]
        reach = SLACK * case.count(many) / case.count(few)
        said = f"{what}: time at {many:,} over {few:,}"
        report.figure(said, found[-1] / found[0], "<=", reach, unit=" ×", **kept)


def values(report: Report) -> None:
    """The same for private values that are far apart."""
    report.heading("two private values, median CPU", "time", "over the first")
    for pair in cases.values():
        calls = dict([pair.one, pair.other])
        timing = timed(calls)
        found = {said: median(timing[said].cpus) for said in calls}
        first, second = found.values()
        for said, cpu in found.items():
            report.row(
                said,
                who(pair.name),
                seconds(cpu),
                times(cpu / first),
                timing=timing[said],
                mechanism=pair.name,
                median=cpu,
                over_first=cpu / first,
            )
        what = f"{pair.name}, {pair.one[0]}, or {pair.other[0]}: slower over faster"
        apart = max(first, second) / min(first, second)
        report.figure(what, apart, "<=", APART, unit=" ×", mechanism=pair.name)


def scales(report: Report) -> None:
    """The same at scales of the noise that are far apart: they are public, but time should not grow."""
    report.heading(f"{MANY:,} numbers or candidates by scale or 1/ε, median CPU", "time")
    for name in (*answers.ADDITIVE, *answers.CHOICES):
        timing = timed(_at_scales(name))
        for scale in SCALES:
            case = f"scale {scale:,}" if name in answers.ADDITIVE else f"1/ε = {scale:,}"
            if (one := timing.get(str(scale))) is None:
                report.row(case, who(name), "refused", mechanism=name, scale=scale, refused=True)
                continue
            cpu = median(one.cpus)
            report.row(case, who(name), seconds(cpu), timing=one, mechanism=name, scale=scale, median=cpu)
        found = [median(one.cpus) for one in timing.values()]
        what = f"{name}, scales up to {int(max(timing, key=int)):,}: slowest over fastest"
        report.figure(what, max(found) / min(found), "<=", WIDE, unit=" ×", mechanism=name)


def _at_scales(name: str) -> dict[str, Answer]:
    ready = answers.added if name in answers.ADDITIVE else answers.chosen
    found = {}
    for scale in SCALES:
        try:
            call = ready(name, MANY, scale=Fraction(scale))
            call()
        except (InvalidParameter, InvalidValue):  # so much noise does not fit, or so many numbers beside it
            continue
        found[str(scale)] = call
    return found


def made(report: Report) -> None:
    """Making a mechanism at a scale that nobody had before, and its first small answer."""
    report.heading("made, with its first small answer, median CPU", "time")
    for name, make in answers.first_answers().items():
        found = []
        with no_collection():
            for i in range(FRESH):
                start = time.process_time()
                make(1 + Fraction(i, 997))()
                found.append(time.process_time() - start)
        cpu = median(found)
        report.row(
            "made and first used", who(name), seconds(cpu), mechanism=name, median=cpu, cpu_repetitions=found
        )


PARTS = (growth, values, scales, made)
