"""`python -m benchmarks.deep_picture PATH`: accuracy against epsilon, from the results of `deep_accuracy`."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from benchmarks.harness import RESULTS
from sfumato.plots._figure import ACCENT, DOT, GREY, INK, LABEL, NOTE, finish, new_figure, plain_axes

CASES = {
    "digits, linear": "Digits, linear over fixed filters",
    "digits, net": "Digits, convolutional net",
    "shapes, linear": "Shapes, linear over fixed filters",
}


def main(path: str) -> None:
    """Three panels: all records and the rare kind, with bands of one deviation over seeds."""
    rows = json.loads((RESULTS / "deep_accuracy.json").read_text())["rows"]
    figure = new_figure(10.2, 4.1)
    panels = figure.subplots(1, len(CASES), sharey=True)
    for axes, (case, title) in zip(panels, CASES.items(), strict=True):
        own = [row for row in rows if row["case"] == case]
        axes.set_title(title, fontsize=LABEL, color=INK, loc="left")
        for name, color in (("overall", DOT), ("rare", ACCENT)):
            _drawn(axes, own, name, color)
        axes.text(8, 8, "rare: " + own[0]["rare_kind"], fontsize=NOTE, color=ACCENT, ha="right")
    panels[0].set_ylabel("right, in percent", fontsize=LABEL, color=INK)
    runs = [len(row["overall"]) for row in rows]
    finish(
        figure,
        title="What privacy costs, and whom",
        note=f"Lines: means; bands: one standard deviation over {max(runs)} runs (the net: {min(runs)}). "
        "Dashed: without privacy. Blue: all records; orange: the rare kind. delta 1e-5. Digits: "
        f"{own_records(rows, 'digits, linear'):,} pictures of scikit-learn's; shapes: "
        f"{own_records(rows, 'shapes, linear'):,} generated ones.",
        path=path,
    )


def own_records(rows: list[dict[str, Any]], case: str) -> int:
    """How many records a case learned from."""
    return int(next(row["records"] for row in rows if row["case"] == case))


def _drawn(axes: Any, rows: list[dict[str, Any]], name: str, color: str) -> None:
    priced = [row for row in rows if row["epsilon"] is not None]
    at = [row["epsilon"] for row in priced]
    mean, off = (100 * np.array([function(row[name]) for row in priced]) for function in (np.mean, np.std))
    axes.fill_between(at, mean - off, mean + off, color=color, alpha=0.2, linewidth=0)
    axes.plot(at, mean, "o-", color=color, markersize=4, linewidth=1.4)
    plain = next(row for row in rows if row["epsilon"] is None)
    axes.axhline(100 * np.mean(plain[name]), color=color, linewidth=1, linestyle="--")
    axes.set_xscale("log")
    axes.set_xticks(at, [f"{each:g}" for each in at])
    axes.minorticks_off()
    axes.set_xlabel("epsilon", fontsize=LABEL, color=INK)
    axes.set_ylim(0, 101)
    plain_axes(axes, values="y")
    axes.spines["bottom"].set_visible(True)
    axes.spines["bottom"].set_color(GREY)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures/deep.png")
