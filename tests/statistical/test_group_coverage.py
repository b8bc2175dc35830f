"""How often intervals cover all rows and units where groups are chosen, by profiles of rows and groups."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.plan.expressions.tree import Column
from sfumato.plan.questions.profile import Profile
from sfumato.session import profile as profiles
from sfumato.session.answering import answered
from sfumato.session.release import Release
from sfumato.testing import seeded

CEILING = 1000
GROUPS = [f"g{at}" for at in range(12)]
TEXT = "SELECT g, COUNT(*) AS n, COUNT(DISTINCT u) AS u, COUNT(*) + COUNT(DISTINCT u) AS b FROM t GROUP BY g"
# Of each unit, its rows in the first groups.
TABLES = {
    "few in many groups": [[1]] * 300 + [[1] * 12] * 9,
    "heavy in one group": [[2]] * 200 + [[400]] * 5 + [[30] * 3] * 2,
    "one at the ceiling in all groups": [[3]] * 200 + [[83] * 12],
    "all in two groups": [[1, 1]] * 150,
    "nobody but one": [[83] * 12],
}


class Drawn:
    """A table asked again and again: what the engine reads for a question is read once."""

    def __init__(self, name, adjacency="add-remove"):
        units = TABLES[name]
        rows = [
            (who, GROUPS[at])
            for who, own in enumerate(units)
            for at, many in enumerate(own)
            for _ in range(many)
        ]
        source = pa.table({"u": [row[0] for row in rows], "g": [row[1] for row in rows]})
        unit = sf.PrivacyUnit("u", max_groups=1, max_rows=10, adjacency=adjacency, ceiling=CEILING)
        table = sf.PrivateTable("t", source=source, unit=unit, schema={"g": sf.Enum(*GROUPS)})
        self.session = sf.Session(table, budget=sf.Budget(10**9))
        self.purchases = [
            profiles.profile_purchase(self.session, table, Fraction(1, 2), keys)
            for keys in ((), (Column("g"),))
        ]
        self.quote = self.session.sql(TEXT).quote(epsilon=1, bounding="choose")
        self.known, self.vault = {}, self.session.vault
        self.session.vault = SimpleNamespace(read=lambda those, right: self._read(those[0]))
        self.truth = {}
        for at, g in enumerate(GROUPS):
            own = [unit[at] for unit in units if len(unit) > at]
            self.truth[g] = {"n": sum(own), "u": len(own), "b": sum(own) + len(own)}

    def _read(self, question):
        if question.fingerprint not in self.known:
            self.known[question.fingerprint] = self.vault._read(question, 0)
        return self.known[question.fingerprint]

    def release(self):
        """One answer with profiles of its own; nothing is debited, and nothing leaves this test."""
        rows, groups = (
            Profile.of(ceiling, *bought.noisy, bought.noises)
            for ceiling, bought in zip(
                (CEILING, len(GROUPS)), (purchase.answer(None) for purchase in self.purchases), strict=True
            )
        )
        answer = answered(self.quote, lambda place, over: self._read(self.quote.recipe.questions[place]))
        return Release(self.quote, answer, None, free=False, profile=rows, groups=groups)


def missed(drawn, times):
    """How often an interval misses, in the column and group where it does so most often; the usual width."""
    count, widths = {}, []
    for _ in range(times):
        for row in drawn.release().interval(0.95).to_pylist():
            widths.append(row["u_high"] - row["u_low"])
            for name, value in drawn.truth[row["g"]].items():
                held = row[f"{name}_low"] - 1e-6 <= value <= row[f"{name}_high"] + 1e-6
                count[name, row["g"]] = count.get((name, row["g"]), 0) + (not held)
    return max(count.values()) / times, float(np.median(widths))


def test_rows_and_units_of_chosen_groups_are_covered():
    with seeded("groups"):
        found, wide = missed(Drawn("few in many groups"), 12)
    assert found <= 0.35  # beyond it with probability 1e-4 at most
    assert wide < 1000  # of people: a profile of rows alone gives several thousand


@pytest.mark.stats
@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_covered_where_groups_are_chosen(name, adjacency):
    with seeded(f"{name} {adjacency}"):
        found, _ = missed(Drawn(name, adjacency), 500)
    assert found <= 0.06
