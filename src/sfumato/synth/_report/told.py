"""A report of a synthetic table as sentences and tables, at the width of a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.numeric.estimates import Estimate
from sfumato.synth._report.attacked import Attack
from sfumato.synth._report.learned import EVERYBODY
from sfumato.synth._report.marginals import Errors

if TYPE_CHECKING:
    from sfumato.synth.report import Report

__all__ = ["STEWARD", "attack_name", "caption", "tables_of", "verdict"]

STEWARD = "It reads the truth and nothing pays for that: for the steward alone."
Columns = Mapping[str, Sequence[object]]
_WORST = 5
_LONG = 34


def caption(report: Report) -> list[str]:
    """What a reader must know first, in sentences."""
    lines = [
        f"How true a synthetic table is, and what it gives away. {STEWARD}",
        f"{report.about} Error bars hold {report.confidence:.0%} of the time, those of attacks and nearest "
        "records 99%; each by itself.",
    ]
    hit = report.hardest_hit
    if hit is not None and hit.lost.low > 0:
        whole = next(task for task in report.tasks if task.target == hit.target and task.group == EVERYBODY)
        lines.append(
            f"Lost most: {hit.group}, {hit.rows:,} of {whole.rows:,} test rows: {hit.lost.shown(100)} points "
            f"of {hit.figure} for {hit.target}, where everybody lost {whole.lost.shown(100)}."
        )
    caught = [attack.outcome.attack for attack in report.attacks if attack.outcome.works]
    if report.nearest is not None and report.nearest.is_near:
        caught.append("nearest records")
    if caught:
        lines.append(f"It gives people away: {', '.join(caught)}.")
    return [*lines, *report.missing]


def tables_of(report: Report) -> dict[str, Columns]:
    """The tables with a head each."""
    sets = [errors for errors in (report.pairs, report.triples) if errors is not None]
    tables: dict[str, Columns] = {
        "Errors of counts (total variation, in %): of the synthetic rows; of as many rows drawn again from "
        "the real ones (luck); of the noisy counts that the fit measured (noise), where it did; and of all "
        "such counts asked at the same price without a model (asked):": {
            "sets of columns": [_sets(errors) for errors in sets],
            "synthetic": [_percent(errors.mean) for errors in sets],
            "worst": [_percent(errors.worst[1]) for errors in sets],
            "luck": [_percent(float(errors.sampling.mean())) for errors in sets],
            "noise": [_noise(errors) for errors in sets],
            "asked": [_percent(_mean(errors.asked)) for errors in sets],
        }
    }
    worst = np.argsort(-report.pairs.synthetic, kind="stable")[:_WORST]
    tables["The worst of them, in %:"] = {
        "columns": [_joined(report.pairs.columns[at]) for at in worst],
        "synthetic": [_percent(report.pairs.synthetic[at]) for at in worst],
        "luck": [_percent(report.pairs.sampling[at]) for at in worst],
        "noise": [_percent(report.pairs.measured[at]) for at in worst],
    }
    if report.groups:
        tables["Errors of pairs within groups, in %, the smallest group first:"] = {
            "group": [_short(line.group) for line in report.groups],
            "real rows": [line.real for line in report.groups],
            "synthetic rows": [line.synthetic for line in report.groups],
            "error": [_percent(line.error) for line in report.groups],
            "luck": [_percent(line.sampling) for line in report.groups],
        }
    for target in dict.fromkeys(task.target for task in report.tasks):
        tasks = [task for task in report.tasks if task.target == target]
        head = f"{tasks[0].figure} (in %) of boosted trees that tell {target[:40]}, tested on real rows:"
        tables[head] = {
            "group": [_short(task.group) for task in tasks],
            "rows": [task.rows for task in tasks],
            "from synthetic": [task.synthetic.shown(100) for task in tasks],
            "from real": [task.real.shown(100) for task in tasks],
            "lost": [task.lost.shown(100) for task in tasks],
        }
    if report.nearest is not None:
        near = report.nearest
        tables[f"The real records nearest to {len(near.inside):,} synthetic rows, of people:"] = {
            "": ["nearer to these, in %", "the same as one of them, in %", "median distance, in %"],
            "behind the table": [
                near.nearer.shown(100),
                near.copies.shown(100),
                _percent(float(np.median(near.inside))),
            ],
            "not behind it": [
                Estimate(*(1 - near.nearer[at] for at in (0, 2, 1))).shown(100),
                near.copies_outside.shown(100),
                _percent(float(np.median(near.outside))),
            ],
        }
    if report.attacks:
        head = "Attacks: how often they succeed, in %, beside a guess and beside what the price allows:"
        tables[head] = {
            "attack": [attack_name(attack) for attack in report.attacks],
            "reached": [_rate(attack) for attack in report.attacks],
            "a guess": [_percent(attack.outcome.baseline) for attack in report.attacks],
            "allowed": [_percent(attack.allowed) for attack in report.attacks],
            "verdict": [verdict(attack) for attack in report.attacks],
        }
    return tables


def verdict(attack: Attack) -> str:
    """What an outcome says, in a few words."""
    works = attack.outcome.works
    if works and attack.keeps is False:
        return "beyond the price"
    return "no verdict" if works is None else "it works" if works else "no better"


def attack_name(attack: Attack) -> str:
    """What was tried, in a few words."""
    outcome = attack.outcome
    secret = f" of {outcome.target}" if outcome.attack == "inference" else ""
    return _short(f"{outcome.attack}{secret}")


def _rate(attack: Attack) -> str:
    return Estimate(attack.outcome.rate, *attack.outcome.interval).shown(100)


def _sets(errors: Errors) -> str:
    width, looked_at = len(errors.columns[0]), len(errors.columns)
    many = f"{looked_at:,}" if looked_at == errors.of else f"{looked_at:,} of {errors.of:,}"
    word = {1: "column", 2: "pair", 3: "triple"}[width]
    return f"{many} {word}{'' if errors.of == 1 else 's'}"


def _noise(errors: Errors) -> str:
    many = int(errors.is_measured.sum())
    if not many:
        return ""
    own = _percent(_mean(errors.measured))
    return own if many == len(errors.measured) else f"{own} of {many:,} sets"


def _mean(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _percent(value: float | None) -> str:
    """In per cent, as wide as 100.0, so that points stand below each other."""
    return "" if value is None or math.isnan(value) else f"{100 * value:5.1f}"


def _joined(names: Sequence[str]) -> str:
    return " × ".join(name if len(name) <= 20 else f"{name[:19]}…" for name in names)


def _short(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"
