"""How often intervals cover the answer over all rows, for the worst tables that could be thought of.

The limit is chosen by the same noisy profile that the intervals rest on, so whole answers are drawn: profile,
limit, noise. What the engine reads for a limit is read once.
"""

from collections import defaultdict
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.plan.questions.profile import Profile
from sfumato.session import profile as profiles
from sfumato.session.answering import answered
from sfumato.session.release import Release
from sfumato.testing import seeded

CEILING = 1000
ASKED = "SELECT g, COUNT(*) AS n, SUM(x) AS s, SUM(y) AS d, AVG(x) AS m FROM t WHERE keep GROUP BY g"
SCHEMA = {
    "g": sf.Enum("a", "b", "c"),
    "x": sf.Int(0, 10, nullable=False),
    "y": sf.Int(-3, 5, nullable=False),
    "keep": sf.Bool(nullable=False),
}


def _people(rows, *, group=None, keep=None, seed=1):
    """A table in which unit i has rows[i] rows; where these are, its number of rows may decide."""
    draw = np.random.default_rng(seed)
    ids = np.repeat(np.arange(len(rows)), rows)
    many = np.asarray(rows)[ids]
    groups = draw.choice(["a", "b", "c"], len(ids)) if group is None else group(many, draw)
    return pa.table(
        {
            "u": ids,
            "g": groups,
            "x": np.where(many > 50, 10, draw.integers(0, 4, len(ids))),
            "y": np.where(many > 50, -3, draw.integers(0, 6, len(ids))),
            "keep": np.ones(len(ids), bool) if keep is None else keep(many, draw),
        }
    )


ZIPF = np.minimum(np.random.default_rng(3).zipf(1.7, 3000), CEILING)
TABLES = {
    "heavy in a group of their own": lambda: _people(
        [2] * 900 + [400] * 9, group=lambda many, draw: np.where(many > 50, "b", "a")
    ),
    "one at the ceiling in a small group": lambda: _people(
        [3] * 500 + [CEILING], group=lambda many, draw: np.where(many > 50, "c", "a")
    ),
    "Zipf": lambda: _people(ZIPF),
    "on the rungs": lambda: _people(
        np.repeat([1, 2, 5, 10, 20, 50, 100, 200, 500], [400, 200, 80, 40, 20, 8, 4, 2, 1])
    ),
    "a filter that only heavy ones pass": lambda: _people(ZIPF, keep=lambda many, draw: many > 20),
    "all at the ceiling": lambda: _people([CEILING] * 30),
    "nobody": lambda: _people([]),
}
FEW = ("heavy in a group of their own", "Zipf")


class Drawn:
    """A table asked again and again: what it reads for a limit is read once."""

    def __init__(self, name, adjacency):
        self.rows = TABLES[name]()
        unit = sf.PrivacyUnit("u", max_rows="auto", adjacency=adjacency, ceiling=CEILING)
        table = sf.PrivateTable("t", source=self.rows, unit=unit, schema=SCHEMA)
        self.session = sf.Session(table, budget=sf.Budget(10**9))
        self.purchase = profiles.profile_purchase(self.session, table, Fraction(1, 5))
        self.known, self.quotes, self.vault = {}, {}, self.session.vault
        self.session.vault = SimpleNamespace(read=lambda those, right: self._read(those[0]))
        self.truth = self._truth()

    def _truth(self):
        answers = defaultdict(lambda: dict.fromkeys("nsdm", 0.0))
        kept = self.rows.filter(self.rows["keep"]).to_pydict()
        for g in "abc":
            x, y = (
                np.array([value for value, own in zip(kept[name], kept["g"], strict=True) if own == g], float)
                for name in "xy"
            )
            answers[g] = {"n": len(x), "s": x.sum(), "d": y.sum(), "m": x.mean() if len(x) else np.nan}
        return answers

    def _read(self, question):
        if question.fingerprint not in self.known:
            self.known[question.fingerprint] = self.vault._read(question, 0)
        return self.known[question.fingerprint]

    def release(self):
        """One answer, from a profile of its own; nothing is debited, and nothing leaves this test."""
        bought = self.purchase.answer(None)
        profile = Profile.of(CEILING, *bought.noisy, bought.noises)
        terms = profiles.Terms.of(Fraction(4, 5))
        plan = self.session.sql(ASKED)._asking.plan
        limited, _ = profiles._limited(self.session, plan, terms, self.session.tables["t"], profile)
        limit = limited.report.child.limits[1]
        if limit not in self.quotes:
            self.quotes[limit] = self.session.sql(ASKED)._quoted(limited, terms)
        quote = self.quotes[limit]
        answer = answered(quote, lambda place, over: self._read(quote.recipe.questions[place]))
        return Release(quote, answer, None, free=False, profile=profile)


def missed(drawn, times, *, bent=lambda release: release):
    """How often each column's interval misses in the group where it does so most often."""
    count = defaultdict(int)
    for _ in range(times):
        ends = bent(drawn.release()).interval(0.95).to_pylist()
        for row in ends:
            for name, value in drawn.truth[row["g"]].items():
                if not np.isnan(value):
                    count[name, row["g"]] += (
                        not row[f"{name}_low"] - 1e-6 <= value <= row[f"{name}_high"] + 1e-6
                    )
    return {
        name: max((number for (own, _), number in count.items() if own == name), default=0) / times
        for name in "nsdm"
    }


@pytest.mark.parametrize("name", FEW)
def test_the_answer_over_all_rows_is_covered(name):
    with seeded(name):
        found = missed(Drawn(name, "add-remove"), 40)
    assert max(found.values()) <= 0.15, found


def test_planted_bug_a_bar_without_the_cut_is_seen():
    with seeded("planted"):
        found = missed(
            Drawn(FEW[0], "add-remove"),
            10,
            bent=lambda release: SimpleNamespace(interval=lambda c: release.interval(c, "noise")),
        )
    assert max(found.values()) > 0.5, found


@pytest.mark.stats
@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
@pytest.mark.parametrize("name", TABLES)
def test_every_table_within_the_ceiling_is_covered(name, adjacency):
    with seeded(f"{name} {adjacency}"):
        found = missed(Drawn(name, adjacency), 1000)
    assert max(found.values()) <= 0.06, found
