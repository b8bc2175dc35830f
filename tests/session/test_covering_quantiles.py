"""Quantiles over all rows: what limits left out moves their rank by as many rows, and no more."""

import random
from bisect import bisect, bisect_left

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.plan.intervals.rings import Rings

LEVELS = ("0.1", "0.5", "0.9", "0.97")
KINDS = {
    "weights": (sf.PrivacyUnit("who", max_groups=2, max_rows=6, ceiling=50), None),
    "exchange": (sf.PrivacyUnit("who", max_groups=2, max_rows=6, ceiling=50, adjacency="exchange"), None),
    "nothing cut": (sf.PrivacyUnit("who", max_groups=2, max_rows=50, ceiling=50), None),
}


def rows(seed):
    """Light units with small numbers, and heavy ones whose rows all have the same."""
    draw = random.Random(seed)
    made = []
    for who in range(300):
        heavy = who % 20 == 0
        g, x = draw.choice("AB"), draw.randint(60, 99)
        many = draw.choice([20, 50]) if heavy else draw.randint(1, 4)
        made += [{"who": who, "g": g, "x": x if heavy else draw.randint(0, 70)} for _ in range(many)]
    return made


def quantiles(values, level):
    """The least and the greatest number that is such a quantile."""
    values, rank = sorted(values), float(level) * len(values)
    fitting = [value for value in set(values) if bisect_left(values, value) <= rank <= bisect(values, value)]
    return min(fitting), max(fitting)


@pytest.fixture(scope="module")
def answers():
    made = []
    for seed, (kind, (unit, bounding)) in enumerate(KINDS.items()):
        data = rows(seed)
        schema = {"g": sf.Enum("A", "B"), "x": sf.Int(0, 100)}
        table = sf.PrivateTable("t", source=pa.Table.from_pylist(data), unit=unit, schema=schema)
        with sf.Session(table, budget=sf.Budget(10**8, "0.5")) as session:
            session.profile("t", 2**15)
            shown = ", ".join(f"QUANTILE_CONT(x, {level}) AS q{at}" for at, level in enumerate(LEVELS))
            asked = session.sql(f"SELECT g, {shown} FROM t GROUP BY g")
            made.append((kind, data, asked.release(epsilon=2000, bounding=bounding)))
    return made


def missed(release, data, kind="covering"):
    """The levels and groups whose interval leaves their quantile over all rows out."""
    found = []
    for row in release.interval(kind=kind).to_pylist():
        values = [each["x"] for each in data if each["g"] == row["g"]]
        for at, level in enumerate(LEVELS):
            least, most = quantiles(values, level)
            if not (row[f"q{at}_low"] <= most + 1 and least - 1 <= row[f"q{at}_high"]):
                found.append((level, row["g"]))
    return found


def test_quantiles_over_all_rows_are_covered(answers):
    told = 0
    for kind, data, release in answers:
        assert not missed(release, data), kind
        for row in release.interval().to_pylist():
            told += sum(row[f"q{at}_high"] - row[f"q{at}_low"] < 90 for at in range(len(LEVELS)))
        assert "q0, all rows" in str(release) or kind == "nothing cut"
    assert told > 12  # they are not simply the declared range
    assert any(missed(release, data, "noise") for _, data, release in answers)


def test_ranks_that_stay_where_they_are_are_caught(answers, monkeypatch):
    """The planted bug: rows that were left out do not move the rank."""
    honest = Rings._refuted
    monkeypatch.setattr(
        Rings, "_refuted", lambda self, aim, risk, tried, added: honest(self, aim, risk, tried, 0.0)
    )
    assert any(missed(release, data) for _, data, release in answers)


def test_added_weight_moves_ranks_as_far_as_it_can(answers):
    """For any place where it is added, the quantile of the whole lies in the interval."""
    for _, data, release in answers:
        estimates = release._estimates
        for at, level in enumerate(LEVELS):
            for added in (0, 7, 40):
                low, high = estimates._cover.ranks[f"a{at}"](1e-6, float(added))
                for row, g in enumerate("AB"):
                    counted = [each["x"] for each in data if each["g"] == g]
                    if release.quote.measured.unit.max_rows < 50:
                        continue
                    for where in (0, 50, 100):
                        least, most = quantiles(counted + [where] * added, level)
                        assert low[row] <= most + 1
                        assert least - 1 <= high[row]
