"""A report as tables: which figures stand beside each other, under which head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sfumato.numeric.estimates import UNKNOWN, Estimate
from sfumato.render import shown

if TYPE_CHECKING:
    from sfumato.learn.reports import Line, Report

__all__ = ["caption", "tables_of"]

_SHARES = ("accuracy", "false positive", "false negative", "selected", "calibration error")
Columns = Mapping[str, Sequence[object]]


def caption(report: Report) -> list[str]:
    """What a reader must know first, in sentences."""
    lines = [
        "What noise does to groups. This reads the truth: for the steward, or on public test data; "
        "nothing of it is private.",
        f"{report.about} Error bars hold {report.confidence:.0%} of the time, each by itself.",
    ]
    hit = report.hardest_hit
    if hit is not None and hit.lost.low > 0:
        scale, unit = (100, " points") if "accuracy" in hit.figures else (1, "")
        lines.append(
            f"Lost most: {hit.group}, {hit.rows:,} of {report.everybody.rows:,} rows: "
            f"{hit.lost.shown(scale)}{unit}, where everybody lost {report.everybody.lost.shown(scale)}."
        )
    return lines


def tables_of(report: Report) -> dict[str, Columns]:
    """The tables with a head each."""
    tables = dict[str, Columns]()
    lines, names = report.lines, list(report.everybody.figures)
    first = next((name for name in ("accuracy", "absolute error") if name in names), None)
    if first is not None:
        scale, unit = (100, ", %") if first == "accuracy" else (1, "")
        columns = _keys(lines) | {f"{first}{unit}": _cells(lines, "figures", first, scale)}
        if report.everybody.plain:
            columns["without noise"] = _cells(lines, "plain", first, scale)
            columns["lost"] = [line.lost.shown(scale) for line in lines]
        tables[f"{first.capitalize()} by group:"] = columns
    rest = [name for name in names if name != first]
    if rest:
        head = "Other figures by group:" if "mean error" in rest else "Errors by group, in %:"
        tables[head] = _figures(lines, "figures", rest)
        if report.everybody.plain:
            tables["The same without noise:"] = _figures(lines, "plain", rest)
    tables |= _fairness(report)
    if report.calibration:
        tables["What came true of what was predicted, in %:"] = {
            "predicted": [round(100 * line.predicted, 1) for line in report.calibration],
            "came true": [line.seen.shown(100) for line in report.calibration],
            "rows": [line.rows for line in report.calibration],
        }
    if report.membership:
        tables[_membership_head(report)] = {
            "model": list(report.membership),
            "advantage, %": [
                _advantage(outcome.rate, *outcome.interval) for outcome in report.membership.values()
            ],
            "verdict": [
                "none" if outcome.works is None else "it works" if outcome.works else "no better than a guess"
                for outcome in report.membership.values()
            ],
        }
    return tables


def _membership_head(report: Report) -> str:
    words = "Membership attack: training rows named as such, less other rows named so."
    if report.allowed is None:
        return words
    return f"{words} The price allows at most {shown(round(100 * report.allowed, 1))} % with noise."


def _advantage(rate: float, low: float, high: float) -> str:
    """TPR − FPR, over equally many of both: twice the share that is right, less 1."""
    return Estimate(*(2 * share - 1 for share in (rate, low, high))).shown(100)


def _fairness(report: Report) -> dict[str, Columns]:
    """Each group beside everybody else; the largest gap between two groups last."""
    if not report.largest or len(report.lines) < 3:
        return {}
    head = "Selected more often than everybody else, in points, and the largest gap between two groups:"
    tables = {head: _gaps(report.lines[1:], "gaps", report.largest)}
    if report.plain_largest:
        tables["The same gaps without noise:"] = _gaps(report.lines[1:], "plain_gaps", report.plain_largest)
    return tables


def _gaps(lines: Sequence[Line], where: str, largest: Mapping[str, Estimate]) -> Columns:
    names = {"parity": "demographic parity", "opportunity": "equal opportunity"}
    columns: dict[str, Sequence[object]] = {"group": [*(line.group for line in lines), "largest gap"]}
    for name, gap in largest.items():
        columns[names[name]] = [*_cells(lines, where, name, 100), gap.shown(100)]
    return columns


def _keys(lines: Sequence[Line]) -> dict[str, Sequence[object]]:
    return {"group": [line.group for line in lines], "rows": [line.rows for line in lines]}


def _figures(lines: Sequence[Line], where: str, names: list[str]) -> Columns:
    return {"group": [line.group for line in lines]} | {
        name: _cells(lines, where, name, 100 if name in _SHARES else 1) for name in names
    }


def _cells(lines: Sequence[Line], where: str, name: str, scale: float) -> list[str]:
    return [getattr(line, where).get(name, UNKNOWN).shown(scale) for line in lines]
