"""A report of a synthetic table as one page of pictures."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from sfumato.plots.fidelity import Curves, Rates, Whiskers, fidelity_page
from sfumato.synth._report.learned import EVERYBODY, Task
from sfumato.synth._report.marginals import Errors
from sfumato.synth._report.told import STEWARD, attack_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfumato.synth.report import Report

__all__ = ["drawn"]

_MOST = 12  # groups of one target
_WHISKERS = "Whiskers: {:.0%} intervals, of attacks and guesses 99%."


def drawn(report: Report, path: str | os.PathLike[str] | None) -> Figure:
    """The page, also written to `path` if one is given."""
    panels: list[Curves | Whiskers | Rates] = [_errors(report.pairs)]
    if report.tasks:
        panels.append(_tasks(report.tasks))
    elif report.triples is not None:
        panels.append(_errors(report.triples))
    if report.nearest is not None:
        near = report.nearest
        panels.append(
            Curves(
                f"Nearest real record of {len(near.inside):,} synthetic rows",
                "distance, as a share of the columns",
                "rows",
                {"to those behind the table": near.inside, "to as many other people": near.outside},
            )
        )
    if report.attacks:
        outcomes = [attack.outcome for attack in report.attacks]
        panels.append(
            Rates(
                "Attacks on people behind the table",
                [attack_name(attack) for attack in report.attacks],
                [outcome.rate for outcome in outcomes],
                [outcome.interval for outcome in outcomes],
                [None if outcome.undecided else outcome.baseline_interval for outcome in outcomes],
                [attack.allowed for attack in report.attacks],
            )
        )
    said = [*report.missing] if not report.attacks else []
    return fidelity_page(
        panels,
        title="How true a synthetic table is, and what it gives away: for the steward alone",
        note=" ".join([report.about, STEWARD, _WHISKERS.format(report.confidence), *said]),
        path=path,
    )


def _errors(errors: Errors) -> Curves:
    width, many = len(errors.columns[0]), len(errors.columns)
    what = {1: "columns", 2: "pairs", 3: "triples"}[width]
    curves = {"synthetic rows": errors.synthetic}
    if not np.isnan(errors.asked).all():
        curves["all asked with noise"] = errors.asked
    curves["luck: real rows drawn again"] = errors.sampling
    measured = int(errors.is_measured.sum())
    if measured:
        curves[f"noise of the {measured:,} measured"] = errors.measured
    return Curves(
        f"Errors of counts over {many:,} {what} of columns" if many > 1 else "Errors of counts",
        "total variation from the real counts",
        what,
        curves,
        is_percent=True,
    )


def _tasks(tasks: tuple[Task, ...]) -> Whiskers:
    """Everybody, then the smallest groups, for each target."""
    targets = list(dict.fromkeys(task.target for task in tasks))
    most = max(1, _MOST // len(targets))
    shown = list[Task]()
    for target in targets:
        own = [task for task in tasks if task.target == target and task.real.value == task.real.value]
        whole = [task for task in own if task.group == EVERYBODY]
        groups = sorted((task for task in own if task.group != EVERYBODY), key=lambda task: task.rows)
        shown += [*whole, *groups[: most - 1]]
    shown = shown[:_MOST]
    figures = " or ".join(dict.fromkeys(task.figure for task in shown))
    alone = len(targets) == 1
    return Whiskers(
        f"Boosted trees that tell {targets[0]}" if alone else f"Boosted trees for {len(targets)} columns",
        f"{figures} on real test rows (how many: behind the group)",
        [task.group if alone else f"{task.target}: {task.group}" for task in shown],
        [task.rows for task in shown],
        ("trained on synthetic rows", [task.synthetic for task in shown]),
        ("trained on real rows", [task.real for task in shown]),
    )
