"""The bars of quantiles on many tables: they hold the truth as often as they say, and are not much wider."""

from __future__ import annotations

import numpy as np
import pytest

from quantile_bars import KINDS, SMOOTH, drawn, table
from sfumato.testing.statistics import bernoulli_finding

RISK, ANSWERS, CELLS = 0.05, 1_000, 1024
LEVELS = {
    "one": ("1/2",),
    "outer": ("0", "1"),
    "quartiles": ("1/4", "1/2", "3/4"),
    "deciles": tuple(f"{k}/10" for k in range(1, 10)),
}


@pytest.mark.stats
@pytest.mark.parametrize("exchange", [False, True], ids=["add-remove", "exchange"])
@pytest.mark.parametrize("rows", [50, 300, 2_000, 100_000])
@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("kind", KINDS)
def test_bars_hold_the_quantile_of_every_table(kind: str, levels: str, rows: int, exchange: bool) -> None:
    asked = LEVELS[levels]
    answers = drawn(table(kind, rows, CELLS), asked, 0.5, ANSWERS, exchange=exchange)
    for place in range(len(asked)):
        for held in answers.held(place, RISK):
            finding = bernoulli_finding(int(held.sum()), ANSWERS, 1 - RISK, 1.0, f"level {asked[place]}")
            finding.require(1e-9)


@pytest.mark.stats
@pytest.mark.parametrize(
    ("levels", "rows"), [("one", 300), ("one", 20_000), ("quartiles", 2_000), ("deciles", 20_000)]
)
def test_on_smooth_data_bars_are_about_the_size_of_errors(levels: str, rows: int) -> None:
    asked, held, ratios = LEVELS[levels], [], []
    for kind in SMOOTH:
        if kind == "two bumps" and "1/2" in asked:
            continue  # the median lies at the edge of an empty range, which errors and bars reach across
        answers = drawn(table(kind, rows, 4 * CELLS), asked, 0.5, 200)
        held += [answers.held(place, RISK).mean() for place in range(len(asked))]
        ratios += [answers.ratio(place, RISK) for place in range(len(asked))]
    assert 0.95 <= np.mean(held) <= 0.995
    assert np.mean(ratios) <= 2.2
    assert np.max(ratios) <= 4
