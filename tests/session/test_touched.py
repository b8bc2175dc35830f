"""The share of units that clamps, weights and the choice of groups touched: bought, noisy, and right."""

import collections
import functools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import sfumato as sf
from sfumato.session.answering import answered
from sfumato.testing import assert_discrete, seeded

EPSILON = Fraction(4)
ASKED = 400


def session_of(rows, unit=None, *, budget=None, **more):
    """Rows of (u, k, g, x)."""
    columns = list(zip(*rows, strict=True)) if rows else [[]] * 4
    kinds = (pa.int64(), pa.string(), pa.string(), pa.int64())
    source = pa.table(
        {name: pa.array(column, kind) for name, column, kind in zip("ukgx", columns, kinds, strict=True)}
    )
    table = sf.PrivateTable(
        "t",
        source=source,
        unit=unit if unit is not None else sf.PrivacyUnit("u", max_groups=2, max_rows=4),
        schema={"k": sf.Enum("a", "b", "c"), "g": sf.Text(), "x": sf.Int(0, 100)},
    )
    return sf.Session(table, budget=budget or sf.Budget(10**6, "0.1"), **more)


def two_sided_geometric(scale):
    q = math.exp(-1 / scale)
    return lambda k: (1 - q) / (1 + q) * q ** np.abs(k)


def released(seed):
    """Noise alone: two counts about a table without rows, drawn again and again as one release draws them."""
    draws = []
    with session_of([]) as session, seeded(seed):
        release = session.sql("SELECT COUNT(*) AS n FROM t").release(epsilon=EPSILON, touched=True)
        quote = release.quote

        @functools.cache
        def read(place, over):
            return session.vault._read(quote.recipe.questions[place], place)

        for _ in range(ASKED):
            answer = answered(quote, read)
            ((price, arrays),) = answer.extras
            assert price == EPSILON / 20
            draws += [int(array[0]) for array in arrays]
    assert len(draws) == 2 * ASKED
    return draws


@pytest.fixture(scope="module")
def draws():
    return released("touched")


def check(draws):
    """A twentieth of the price, half of it for each count, and a unit is in each of them once."""
    assert_discrete(draws, two_sided_geometric(1 / (float(EPSILON) / 40)))


def test_the_share_is_bought_with_the_noise_of_its_part(draws):
    check(draws)


def test_half_the_noise_would_be_noticed(draws):
    with pytest.raises(AssertionError, match="claimed"):
        check([round(each / 2) for each in draws])


def test_the_price_stays_what_it_was():
    with session_of([(1, "a", "p", 3)], budget=sf.Budget(2, "1e-6")) as session:
        query = session.sql("SELECT k, SUM(x) AS s FROM t GROUP BY k")
        plain, more = query.quote(epsilon=1), query.quote(epsilon=1, touched=True)
        assert plain.epsilon == more.epsilon == 1
        assert more.loss.pure == 1 == plain.loss.pure
        assert more.noises[0].scale == pytest.approx(plain.noises[0].scale / 0.95)
        assert plain.fingerprint != more.fingerprint
        query.release(epsilon=1, touched=True)
        assert session.balance().spent == 1
        assert not query.release(epsilon=1).free
        assert session.balance().spent == 2
        assert query.release(epsilon=1, touched=True).free


def sample(seed=2, units=400):
    """Skewed units: some with many rows, in several groups, with values beyond the declared range."""
    generator = np.random.default_rng(seed)
    rows = [
        (
            unit,
            str(generator.choice(["a", "b", "c", "other"])),
            str(generator.choice(["p", "q", "r"])),
            None if generator.random() < 0.1 else int(generator.normal(50, 30)),
        )
        for unit in range(units)
        for _ in range(1 + int(generator.pareto(1.2)))
    ]
    return [row for row in rows if row[0] or row[1] != "a"]


def by_unit(rows):
    found = collections.defaultdict(list)
    for row in rows:
        found[row[0]].append(row)
    return found.values()


def outside(mine):
    return any(x is not None and not 0 <= x <= 100 for _, _, _, x in mine)


def most_in_a_group(mine, place):
    return max(collections.Counter(row[place] for row in mine).values())


CASES = {
    "weights": ("SELECT COUNT(*) AS n FROM t", None, lambda rows: rows, lambda mine: len(mine) > 4),
    "clamps": (
        "SELECT SUM(x) AS s FROM t",
        None,
        lambda rows: rows,
        lambda mine: len(mine) > 4 or outside(mine),
    ),
    "a condition": (
        "SELECT SUM(x) AS s FROM t WHERE g = 'p'",
        None,
        lambda rows: [row for row in rows if row[2] == "p"],
        lambda mine: len(mine) > 4 or outside(mine),
    ),
    "public keys": (
        "SELECT k, COUNT(*) AS n FROM t GROUP BY k",
        None,
        lambda rows: [row for row in rows if row[1] != "other"],
        lambda mine: len(mine) > 4,
    ),
    "a choice among public keys": (
        "SELECT k, COUNT(*) AS n FROM t GROUP BY k",
        "choose",
        lambda rows: [row for row in rows if row[1] != "other"],
        lambda mine: len({row[1] for row in mine}) > 2 or most_in_a_group(mine, 1) > 2,
    ),
    "groups found in the data": (
        "SELECT g, SUM(x) AS s FROM t GROUP BY g",
        None,
        lambda rows: rows,
        lambda mine: len({row[2] for row in mine}) > 2 or most_in_a_group(mine, 2) > 2 or outside(mine),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_share_is_that_of_the_units_whose_rows_were_cut(name):
    text, bounding, counted, touched = CASES[name]
    rows = sample()
    units = list(by_unit(counted(rows)))
    expected = sum(map(touched, units)) / len(units)
    with session_of(rows) as session, seeded(name):
        release = session.sql(text).release(epsilon=1_000, delta="1e-9", bounding=bounding, touched=True)
        share = release.touched(0.9)
        assert share.share == pytest.approx(expected, abs=0.005)
        assert 0.05 < expected < 0.95
        assert share.low <= share.share <= share.high
        assert "clamped or cut" in str(release)


def test_rows_as_units_and_untouched_units():
    rows = [(unit, "a", "p", 5) for unit in range(200)]
    with session_of(rows, sf.PrivacyUnit.row()) as session:
        release = session.sql("SELECT COUNT(*) AS n FROM t").release(epsilon=2, touched=True)
        assert release.touched() is None
        assert release._answer.extras == ()
    with session_of(rows) as session, seeded("untouched"):
        share = session.sql("SELECT SUM(x) AS s FROM t").release(epsilon=1_000, touched=True).touched()
        assert share.share == 0


def test_intervals_hold_the_share():
    rows = [(unit, "a", "p", 5) for unit in range(300) for _ in range(8 if unit < 90 else 1)]
    held = []
    with session_of(rows) as session, seeded("coverage"):
        for place in range(25):
            query = session.sql(f"SELECT COUNT(*) AS n FROM t WHERE x <> {place + 10}")
            share = query.release(epsilon=8, touched=True).touched(0.9)
            held.append(share.low <= 0.3 <= share.high)
            assert 0 <= share.low <= share.share <= share.high <= 1
    assert stats.binom.cdf(sum(held), len(held), 0.9) > 1e-6


def test_an_empty_table_has_a_share_of_something():
    with session_of([]) as session, seeded("empty"):
        share = session.sql("SELECT COUNT(*) AS n FROM t").release(epsilon=1, touched=True).touched()
        assert 0 <= share.low <= share.share <= share.high <= 1


# What was found wrong.


def test_bounds_for_a_group_touch_units():
    rows = [(unit, "a", "p", 80) for unit in range(200)]
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=500) k, "
        "SUM(x, contribution_bounds_per_group => (0, 9)) AS s FROM t GROUP BY k"
    )
    with session_of(rows) as session, seeded("per group"):
        assert session.sql(text).release(touched=True).touched().share > 0.9
