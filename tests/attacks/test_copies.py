"""One row in ten that is copied is seen by singling out, and nothing is seen where nothing was copied."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from sfumato.attacks import _power as planting
from sfumato.attacks import singling_out
from sfumato.attacks._likeness import Likeness, telling
from sfumato.attacks._mixed import mixed
from sfumato.random import simulation

PEOPLE = 800
SIZES = (40, 25, 12, 8, 6, 5, 4, 3, 3, 2, 2, 2, 2, 2, 2)


def categories(people, columns, draw):
    """Categories alone, some of them rare: three columns have 12,000 combinations."""
    made = {}
    for place, size in enumerate(SIZES[:columns]):
        shares = 1 / np.sqrt(np.arange(1, size + 1))
        values = np.array([f"v{value}" for value in range(size)])
        made[f"c{place}"] = values[draw.choice(size, size=people, p=shares / shares.sum())]
    return pa.table(made)


def numbers(people, columns, draw):
    """Rounded numbers alone, which have to do with each other."""
    common = draw.normal(size=people)
    return pa.table({f"n{i}": (common / 2 + draw.normal(size=people)).round(1) for i in range(columns)})


def fine_numbers(people, columns, draw):
    """Numbers that nobody shares."""
    return pa.table({f"n{i}": draw.normal(size=people) for i in range(columns)})


def both(people, columns, draw):
    """Ages, categories and incomes by hundreds, some missing, one after the other."""
    made = {}
    for place in range(columns):
        if place % 3 == 0:
            made[f"age{place}"] = pa.array(draw.integers(18, 91, people), mask=draw.random(people) < 0.05)
        elif place % 3 == 1:
            made[f"job{place}"] = np.array(list("abcdefgh"))[draw.integers(0, 8, people)]
        else:
            made[f"income{place}"] = np.exp(draw.normal(10, 0.6, people)).round(-2)
    return pa.table(made)


def three_tables(make, columns, seed, people=PEOPLE):
    """Those behind a table, others, and a table with as many rows that is nobody's."""
    draw = simulation(seed)
    return *(make(people, columns, draw) for _ in range(3)), draw


def leaking(released, own, draw, share=0.1):
    return planting.planted(released, own, own.column_names, share, draw)[0]


def noticed(make, columns, seeds):
    """In how many tables with one row in ten copied the copies are found."""
    found = 0
    for seed in seeds:
        own, others, released, draw = three_tables(make, columns, seed)
        found += bool(singling_out(own, leaking(released, own, draw), others, seed=seed).works)
    return found


SHAPES = [(make, columns) for make in (categories, numbers, fine_numbers, both) for columns in (3, 5, 9, 15)]


@pytest.mark.parametrize(("make", "columns"), [shape for shape in SHAPES if shape[1] in (3, 15)])
def test_one_row_in_ten_that_is_copied_is_seen(make, columns):
    assert noticed(make, columns, [0]) == 1


@pytest.mark.stats
@pytest.mark.parametrize(("make", "columns"), SHAPES)
def test_one_row_in_ten_that_is_copied_is_seen_nine_times_in_ten(make, columns):
    assert noticed(make, columns, range(100, 160)) >= 54


def small(people, columns, draw):
    """A number of twenty values and categories: many rows are like somebody by chance."""
    made = {f"c{place}": draw.integers(0, 3, people).astype(str) for place in range(columns - 1)}
    return pa.table({**made, "n": draw.integers(0, 20, people)})


@pytest.fixture
def without_power(monkeypatch):
    """One twin instead of 20: what vouches for an all-clear takes long, and raises no alarm."""
    monkeypatch.setattr(planting, "_TWINS", 1)
    monkeypatch.setattr(planting, "_LONG_TWINS", 1)


def alarms(make, columns, seeds, people, **given):
    """How often something is seen where nothing was copied."""
    found = 0
    for seed in seeds:
        own, others, released, _ = three_tables(make, columns, seed, people)
        found += bool(singling_out(own, released, others, seed=seed, confidence=0.8, **given).works)
    return found


# One side of 80 % leaves 10 % of false alarms, so that few tables tell whether it is no more.
@pytest.mark.parametrize(
    ("make", "columns", "given"),
    [
        (small, 3, {}),
        (fine_numbers, 3, {"width": 2, "attacks": 50}),
    ],
)
@pytest.mark.usefixtures("without_power")
def test_false_alarms_are_as_rare_as_claimed(make, columns, given):
    seeds = range(25)
    assert alarms(make, columns, seeds, 80, **given) <= binom.isf(1e-4, len(seeds), 0.1)


@pytest.mark.stats
@pytest.mark.parametrize("make", [small, categories, numbers, fine_numbers, both])
@pytest.mark.parametrize("given", [{}, {"width": 3, "attacks": 100}])
@pytest.mark.usefixtures("without_power")
def test_false_alarms_are_as_rare_as_claimed_in_many_tables(make, given):
    seeds = range(1000, 1300)
    assert alarms(make, 3, seeds, 120, **given) <= binom.isf(1e-6, len(seeds), 0.1)


@pytest.mark.usefixtures("without_power")
def test_alarms_would_be_counted_if_those_behind_the_table_were_looked_at_first(monkeypatch):
    described = Likeness.described

    def only_the_first(self, kept, own):
        found = np.full(len(self.people), 10**9)
        first = np.unique(self.people, return_index=True)[1]
        found[first] = described(self, kept, own)[first]
        return found

    monkeypatch.setattr(Likeness, "described", only_the_first)
    seeds = range(25)
    assert alarms(small, 3, seeds, 80) > binom.isf(1e-4, len(seeds), 0.1)


# ── where nobody could see it


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_in_a_small_domain_there_is_no_verdict(columns):
    draw = simulation(columns)
    own, others, released = (
        pa.table({f"c{place}": draw.integers(0, 3, PEOPLE).astype(str) for place in range(columns)})
        for _ in range(3)
    )
    for table in (released, leaking(released, own, draw)):
        found = singling_out(own, table, others, seed=columns)
        assert found.works is None
        assert "would notice a planted leak (one person in ten copied into the table) in 0 of 5" in (
            found.undecided
        )


# ── rows that are nearly copied


def near(table, own, draw):
    """One row in ten is a person's, with numbers off by one in a hundred and one category changed."""
    mixed_in, kept, whose = planting.planted(table, own, own.column_names, 0.1, draw)
    made = {}
    for place, name in enumerate(own.column_names):
        values = mixed_in[name].to_numpy().copy()
        if values.dtype.kind == "f":
            values[len(kept) :] *= 1 + draw.normal(0, 0.01, len(whose))
        elif place == len(own.column_names) - 1:
            values[len(kept) :] = own[name].to_numpy()[draw.integers(0, own.num_rows, len(whose))]
        made[name] = values
    return pa.table(made)


@pytest.mark.parametrize(
    ("make", "columns"), [(fine_numbers, 3), (fine_numbers, 8), (categories, 15), (both, 6)]
)
def test_rows_that_are_nearly_copied_are_seen_too(make, columns):
    own, others, released, draw = three_tables(make, columns, 5)
    assert singling_out(own, near(released, own, draw), others, seed=5).works


# ── the parts


def test_likeness_is_that_of_the_slow_definition():
    for seed in range(8):
        draw = simulation(seed)
        people = pa.table(
            {
                "c": draw.integers(0, 4, 40).astype(str),
                "n": draw.integers(0, 30, 40),
                "m": draw.random(40).round(1),
            }
        )
        table = people.take(draw.integers(0, 40, 30))
        table = table.set_column(1, "n", pa.array(table["n"].to_numpy() + 3 * (draw.random(30) < 0.6)))
        columns = mixed([people, table], people.column_names)
        looked_at = draw.permutation(30)[:25]
        kept, own = np.sort(draw.permutation(30)[:20]), draw.permutation(40)[:2]
        found = Likeness.of(columns, people=0, table=1, looked_at=looked_at).described(kept, own)
        extents = [column.extent(0) for column in columns]

        def apart(one, other, extents=extents):
            gaps = [one[0] != other[0], *(abs(one[i] - other[i]) / extents[i] for i in (1, 2))]
            return sum(min(1.0, gap) for gap in gaps)

        rows, crowd = ([tuple(each.values()) for each in some.to_pylist()] for some in (table, people))
        expected = [10**9] * 40
        for row, is_looked_at in [
            *((rows[i], i in looked_at) for i in kept.tolist()),
            *((crowd[i], False) for i in own.tolist()),
        ]:
            far = sorted((apart(row, person), who) for who, person in enumerate(crowd))
            same = [who for distance, who in far if distance == 0]
            described = same
            if not same and is_looked_at:
                sizes = [size for size in range(1, 5) if 8 * far[size - 1][0] <= far[size][0]]
                described = [who for _, who in far[: sizes[0]]] if sizes else []
            for who in described:
                expected[who] = min(expected[who], len(described))
        assert np.minimum(found, 10**9).tolist() == expected


def test_the_crowd_that_is_counted_shows_copies_best():
    nobody = 10**9
    alike = np.array([1] * 50 + [2] * 50)
    # Of those alone few are described, of the pairs nearly all: pairs would only blur what is seen.
    described = np.array([1] * 5 + [nobody] * 45 + [2] * 48 + [nobody] * 2)
    assert telling(described, alike) == 1
    # Where most people stand in pairs and few are described, pairs count.
    assert telling(np.array([1] + [nobody] * 9 + [2] * 6 + [nobody] * 84), np.array([1] * 10 + [2] * 90)) == 2
    # Between equals the smaller crowd.
    assert telling(np.full(100, nobody), np.ones(100, dtype=int)) == 1
