"""A Census-style release is whole, non-negative and consistent, keeps public totals, and becomes rows."""

import importlib.util
from pathlib import Path

import numpy as np

from sfumato.testing import seeded

PATH = Path(__file__).parents[2] / "examples" / "census.py"
spec = importlib.util.spec_from_file_location("census", PATH)
census = importlib.util.module_from_spec(spec)
spec.loader.exec_module(census)


def test_the_example_runs_and_its_release_holds(capsys, monkeypatch):
    rows, kept = census.people(), []

    def once(given):
        assert given.equals(rows)
        kept.append(release(given))
        return kept[-1]

    release = census.census
    monkeypatch.setattr(census, "census", once)
    with seeded(3):
        census.main()
    said = capsys.readouterr().out
    assert "conditional on the totals of region (4 places)" in " ".join(said.split())
    assert f"{sum(census.REGIONS.values()):,} rows" in said
    assert np.min(kept[0].table("tract")["count"].to_numpy()) >= 0
    regions = {row["region"]: row["count"] for row in kept[0].table("region", by=[]).to_pylist()}
    assert regions == census.REGIONS
    assert census.off(rows, kept[0].microdata(), "tract") < 40
