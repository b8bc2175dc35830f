"""The three risks of synthetic tables: a copy with a little noise is caught, a private table is not."""

import numpy as np
import pyarrow as pa
import pytest

from crowds import DOMAINS, crowd, marginal_table
from sfumato.attacks._described import by_several_columns
from sfumato.attacks._mixed import mixed, nearest
from sfumato.attacks.singling import inference, linkability, singling_out
from sfumato.errors import InvalidParameter
from sfumato.random import simulation
from sfumato.testing import seeded
from verdicts import sure

NAMES = ["zip", "age", "sex", "ill"]
PEOPLE = crowd(800, 1).select([*NAMES, "income"])
OTHERS = crowd(800, 2).select([*NAMES, "income"])


def copied(table, seed):
    """An overfitted synthesiser: rows drawn again, numbers off by a little."""
    draw = simulation(seed)
    rows = table.take(pa.array(draw.integers(0, table.num_rows, table.num_rows)))
    near = rows["income"].to_numpy() * (1 + draw.normal(0, 0.01, table.num_rows))
    return rows.set_column(rows.column_names.index("income"), "income", pa.array(near))


def private(table, name, *, together=None):
    """The table at epsilon 1, incomes by ten thousands."""
    rounded = table.set_column(4, "income", pa.array(np.round(table["income"].to_numpy(), -4)))
    domains = DOMAINS | {"income": [10_000.0 * i for i in range(15)]}
    with seeded(name):
        return marginal_table(rounded, domains, 1.0, together=together)


COPY = copied(PEOPLE, 3)
PRIVATE = private(PEOPLE, "synthetic", together=[["zip"], ["sex"], ["age", "ill"], ["income"]])
KNOWN = {"known": ["zip", "age", "sex"], "secret": "income", "tolerance": 0.01}
HALVES = {"left": ["zip", "age"], "right": ["sex", "ill", "income"]}


@pytest.mark.parametrize("seed", [0, 1])
def test_a_copy_is_caught_by_descriptions_of_several_columns(seed):
    found = singling_out(PEOPLE, COPY, OTHERS, width=4, seed=seed, target="a copy")
    assert found.works
    assert found.detail["descriptions"] == 500
    assert found.reached.trials == found.guess.trials == 800
    rows = singling_out(PEOPLE, COPY, OTHERS, seed=seed, target="a copy")
    assert rows.works
    assert rows.rate > 2 * found.rate


@pytest.mark.parametrize(("width", "least"), [(2, 5), (3, 20), (4, 20), (None, 5)])
def test_descriptions_from_a_private_table_fit_strangers_as_often(width, least):
    found = singling_out(PEOPLE, PRIVATE, OTHERS, width=width, seed=0, target="epsilon 1")
    assert sure(found).within
    assert found.reached.hits + found.guess.hits > least


def test_one_column_is_enough_where_values_are_ones_own():
    exact = PEOPLE.take(pa.array(np.arange(400)))  # rows themselves, incomes and all
    found = singling_out(PEOPLE, exact, OTHERS, width=1, seed=0)
    assert found.works
    assert found.rate > 0.45  # of everybody, half of whom are in the table
    assert sure(singling_out(PEOPLE, OTHERS, crowd(800, 5), columns=["income"], width=1, seed=0)).within


@pytest.mark.parametrize("width", [4, None])
def test_the_size_of_a_crowd_does_not_pass_for_a_risk(width):
    # Made from nobody here, and the original is twenty times the control.
    apart = crowd(800, 6).select([*NAMES, "income"])
    found = singling_out(crowd(4000, 8), apart, crowd(200, 7), width=width, seed=0)
    assert sure(found).within
    assert (found.reached.trials, found.guess.trials) == (4000, 200)
    assert found.reached.hits > 10


def test_a_description_is_equal_at_least_or_at_most_and_fits_one_synthetic_row():
    columns = mixed([PEOPLE, COPY, OTHERS], ["zip", "age", "income"])
    draw = simulation(1)
    chosen = np.array([[0, 1], [2, 0], [1, 2]])[draw.integers(0, 3, 1000)]
    found = by_several_columns(columns, 1, draw.integers(0, 800, 1000), chosen, 50)
    assert len(found.columns) > 30
    synthetic = [column.parts[1] for column in columns]
    signs = set()
    for chosen, low, high in zip(found.columns, found.low, found.high, strict=True):
        fits = np.ones(len(synthetic[0]), dtype=bool)
        for place, least, most in zip(chosen, low, high, strict=True):
            middle = np.median(synthetic[place])
            if least == most:
                signs.add("=")
                fits &= synthetic[place] == least
            elif most > 1e300:
                signs.add("≥")
                assert least > middle
                fits &= synthetic[place] >= least
            else:
                signs.add("≤")
                assert least < -1e300
                assert most <= middle
                fits &= synthetic[place] <= most
            assert (least == most) == (columns[place].name == "zip")
        assert fits.sum() == 1
    assert signs == {"=", "≥", "≤"}


@pytest.mark.parametrize("seed", [0, 1])
def test_the_nearest_row_of_a_copy_tells_a_secret(seed):
    found = inference(PEOPLE, COPY, OTHERS, **KNOWN, seed=seed, target="a copy")
    assert found.works
    assert found.reached.trials == found.guess.trials == 500
    words = inference(PEOPLE, COPY, OTHERS, known=["zip", "age", "income"], secret="ill", seed=seed)
    assert words.works


def test_the_nearest_row_of_a_private_table_tells_as_much_about_strangers():
    assert sure(inference(PEOPLE, PRIVATE, OTHERS, **KNOWN | {"tolerance": 0.05}, seed=0, attacks=800)).within
    # Age tells of the heart, of anybody: far above one in six, and no harm.
    ill = inference(PEOPLE, PRIVATE, OTHERS, known="age", secret="ill", seed=0, attacks=800)
    assert sure(ill).within
    assert ill.rate > 0.25


def test_two_halves_meet_in_a_copy_and_not_in_a_private_table():
    assert linkability(PEOPLE, COPY, OTHERS, **HALVES, seed=0, attacks=300).works
    assert linkability(PEOPLE, COPY, OTHERS, **HALVES, seed=0, attacks=300, neighbours=5).works
    assert sure(linkability(PEOPLE, PRIVATE, OTHERS, **HALVES, seed=0, attacks=800, neighbours=5)).within


def test_nearest_is_that_of_the_slow_formula():
    draw = simulation(9)
    tables = [
        pa.table(
            {
                "n": [None if draw.random() < 0.1 else float(x) for x in draw.integers(0, 9, rows)],
                "c": [None if draw.random() < 0.1 else "abc"[i] for i in draw.integers(0, 3, rows)],
            }
        )
        for rows in (30, 40)
    ]
    columns = mixed(tables, ["n", "c"])
    numbers = [x for x in tables[1]["n"].to_pylist() if x is not None]
    extent = max(numbers) - min(numbers)

    def apart(one, other):
        gap = 0 if one["n"] == other["n"] else 1
        if gap and None not in (one["n"], other["n"]):
            gap = min(1, abs(one["n"] - other["n"]) / extent)
        return gap + (one["c"] != other["c"])

    mine, theirs = (each.to_pylist() for each in tables)
    for row, found in zip(mine, nearest(columns, 0, 1, 3).tolist(), strict=True):
        order = sorted(range(len(theirs)), key=lambda i: apart(row, theirs[i]))
        assert [apart(row, theirs[i]) for i in found] == pytest.approx(
            [apart(row, theirs[i]) for i in order[:3]]
        )
    assert (nearest(columns, 0, 1)[:, 0] == nearest(columns, 0, 1, 3)[:, 0]).all()


def test_seeds_repeat():
    one, same, other = (singling_out(PEOPLE, COPY, OTHERS, seed=seed).to_dict() for seed in (4, 4, 5))
    assert one == same
    assert one != other


def test_missing_values_are_described_and_compared():
    some = [None if i % 3 == 0 else float(i) for i in range(60)]
    table = pa.table({"a": some, "b": ["x" if i % 2 else None for i in range(60)]})
    # The same people under other numbers, since nobody may be their own control.
    others = table.append_column("id", pa.array(range(60, 120)))
    people = table.append_column("id", pa.array(range(60)))
    assert sure(inference(people, table, others, known="b", secret="a")).within
    # Whoever has the same values stands on both sides, and nobody stands out.
    found = singling_out(people, table, others, columns=["a", "b"], seed=0)
    assert found.rate == found.baseline
    assert found.works is None
    # Beside strangers, a number with None beside it is one person's, too.
    apart = others.set_column(0, "a", pa.array([None if x is None else x + 0.5 for x in some]))
    assert singling_out(people, table, apart, columns=["a", "b"], seed=0).reached.hits == 40
    assert singling_out(people, table, apart, columns=["a", "b"], width=2, seed=0).reached.hits > 0


def test_numbers_beside_text_are_refused_and_a_column_without_values_is_not():
    texts = COPY.set_column(
        COPY.column_names.index("income"), "income", pa.array([str(i) for i in range(COPY.num_rows)])
    )
    with pytest.raises(InvalidParameter, match='"income" holds numbers in one table and text in another'):
        inference(PEOPLE, texts, OTHERS, known="age", secret="income")
    gone = COPY.set_column(
        COPY.column_names.index("income"), "income", pa.array([None] * COPY.num_rows, pa.string())
    )
    assert inference(PEOPLE, gone, OTHERS, known="age", secret="income").reached.hits == 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: singling_out(PEOPLE, COPY, OTHERS, width=0), "width must be at least 1"),
        (lambda: singling_out(PEOPLE, COPY, OTHERS, attacks=2.5), "attacks must be a whole number"),
        (lambda: singling_out(PEOPLE, COPY, OTHERS, columns=[]), "at least one column"),
        (lambda: singling_out(PEOPLE, COPY, OTHERS, attacks=10**9), "at most 100,000"),
        (lambda: singling_out(PEOPLE, COPY, OTHERS, columns=["sex"], width=1), "No description"),
        (lambda: singling_out(PEOPLE.drop_columns(["zip"]), COPY, OTHERS), 'no column "zip"'),
        (lambda: singling_out(PEOPLE, COPY, OTHERS.slice(0, 0)), "no rows"),
        (lambda: inference(PEOPLE, COPY, OTHERS, known="age", secret="age"), "what is known is not a secret"),
        (lambda: inference(PEOPLE, COPY, OTHERS, known="age", secret="ill", tolerance=2), "from 0 to 1"),
        (lambda: linkability(PEOPLE, COPY, OTHERS, left="age", right=["age", "zip"]), "no column in common"),
        (lambda: linkability(PEOPLE, COPY, OTHERS, left="age", right="zip", neighbours=0), "at least 1"),
    ],
)
def test_what_cannot_be_attacked_is_refused(make, words):
    with pytest.raises(InvalidParameter, match=words):
        make()


@pytest.mark.parametrize("width", [1, 4])
def test_to_write_each_row_twice_hides_nobody(width):
    exact = PEOPLE.slice(0, 400)
    once, doubled = (
        singling_out(PEOPLE, each, OTHERS, width=width, seed=0)
        for each in (exact, pa.concat_tables([exact, exact]))
    )
    assert doubled.works
    assert doubled.reached == once.reached
    assert (doubled.detail["synthetic rows"], doubled.detail["different rows"]) == (800, 400)


def test_a_private_table_written_twice_describes_strangers_as_often():
    found = singling_out(PEOPLE, pa.concat_tables([PRIVATE, PRIVATE]), OTHERS, width=3, seed=0)
    assert sure(found).within
    assert found.reached.hits > 10
