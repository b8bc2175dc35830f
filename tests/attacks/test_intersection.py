"""Tables that meet in one value: as printed, of many people, wrong ones, and private ones."""

import numpy as np
import pyarrow as pa
import pytest

from crowds import DOMAINS, crowd, marginal_table
from sfumato.anonymity import Hierarchy, measure, mondrian
from sfumato.attacks.intersection import intersection
from sfumato.attacks.printed import company_z, table_1, table_2
from sfumato.errors import InvalidParameter
from sfumato.random import simulation
from sfumato.testing import seeded
from verdicts import sure

QUASI = ["zip", "age"]
BOTH = {"quasi": QUASI, "sensitive": "score"}


def test_marcia_has_613():
    tables = [table_2(), company_z()]
    assert all(measure(each, QUASI).k == 4 for each in tables)
    found = intersection(tables, people={"age": 31}, quasi="age", sensitive="score")
    assert found.candidates == ((613,),)
    assert found.alone == ((4, 4),)
    assert found.outcome.detail["one table alone"] == 0.25
    assert found.outcome.reached.hits == 1
    assert found.outcome.works is None  # nobody said that it is the right one
    # As the text has it, in 30***; by her real zip code she is in neither table.
    told = {"zip": "30000", "age": 31, "name": "Marcia"}
    assert intersection(tables, people=told, **BOTH).candidates == ((613,),)
    marcia = table_1().slice(6, 1)
    assert intersection(tables, people=marcia, **BOTH).candidates == ((),)


def hospitals(seed):
    """Two crowds of patients, 60 of whom were in both hospitals, and strangers; 400 secrets."""
    draw = simulation(seed)
    everybody = crowd(1000, seed)
    everybody = everybody.append_column("secret", pa.array(draw.integers(0, 400, 1000)))
    order = draw.permutation(1000)
    first, second = order[:400], order[340:740]
    return tuple(everybody.take(pa.array(each)) for each in (first, second, order[340:400], order[740:]))


ONE, TWO, SHARED, STRANGERS = hospitals(3)
ASKED = {"quasi": ["zip", "age", "sex"], "sensitive": "secret", "truth": "secret"}
GONE = ["id", "name", "ill", "income"]


def test_two_tables_of_five_alike_betray_many_who_are_in_both():
    tables = [mondrian(each.drop_columns(GONE), ASKED["quasi"], 5).table for each in (ONE, TWO)]
    found = intersection(tables, people=SHARED, **ASKED)
    assert found.outcome.works
    assert found.outcome.rate > 0.4
    assert found.outcome.baseline < 0.25
    assert all(own in left for own, left in zip(SHARED["secret"].to_pylist(), found.candidates, strict=True))
    assert intersection(tables, people=SHARED, **ASKED, control=STRANGERS).outcome.works


def test_two_private_tables_betray_strangers_as_often():
    domains = {name: DOMAINS[name] for name in ("age", "ill")}
    with seeded("hospitals"):  # epsilon 1 each, 2 together
        tables = [marginal_table(each, domains, 1.0, seed=at) for at, each in enumerate((ONE, TWO))]
    known = {"quasi": "age", "sensitive": "ill", "truth": "ill"}
    found = intersection(tables, people=SHARED, **known, control=STRANGERS).outcome
    assert sure(found).within
    assert found.detail["one remains"] >= 5


# ── a guess that is scored against the truth


def test_rows_as_they_are_are_caught_though_one_table_alone_tells_more():
    # A table of rows, and copies of some of them: where there is no copy, nothing remains.
    draw = simulation(5)
    copies = ONE.take(pa.array(draw.integers(0, 400, 400)))
    found = intersection([ONE, copies], people=ONE, **ASKED).outcome
    assert found.works
    assert found.detail["one table alone"] > found.rate
    assert found.baseline < 0.05


def test_a_rare_secret_in_rows_as_they_are_is_caught_too():
    ill = pa.array(np.where(np.arange(400) % 40 == 0, "yes", "no"))
    rows = ONE.set_column(ONE.column_names.index("secret"), "secret", ill)
    found = intersection([rows, rows], people=rows, **ASKED).outcome
    assert found.works
    assert found.baseline > 0.7


def test_wrong_values_and_shuffled_columns_are_no_better_than_a_guess():
    draw = simulation(6)
    known = {"quasi": ["age"], "sensitive": "job", "truth": "job"}

    def rows():
        return pa.table({"age": draw.integers(0, 300, 900), "job": draw.integers(0, 9, 900)})

    found = intersection([rows(), rows()], people=rows(), **known).outcome
    assert found.detail["one remains"] > 100
    assert sure(found).within
    # True values that occur nowhere: nobody is right, and a guess neither.
    nowhere = rows().set_column(1, "job", pa.array(np.full(900, 77)))
    found = intersection([rows(), rows()], people=nowhere, **known).outcome
    assert (found.reached.hits, found.baseline, found.works) == (0, 0, False)
    assert found.detail["one table alone"] == 0


def test_without_the_truth_there_is_no_verdict():
    found = intersection([ONE, ONE], people=ONE, quasi=ASKED["quasi"], sensitive="secret").outcome
    assert found.rate > 0.5
    assert found.works is found.within is None
    assert "give truth" in str(found)


def test_the_names_of_a_tree_are_understood():
    tree = Hierarchy.tree({"alone": ["Divorced", "Widowed"], "couple": ["Married"]})
    people = pa.table({"status": ["Divorced", "Widowed", "Married", "Married"], "ill": ["a", "a", "b", "c"]})
    released = pa.table({"status": ["alone", "alone", "couple", "couple"], "ill": ["a", "a", "b", "c"]})
    both = intersection(
        [released, released.slice(1)],
        people=people,
        quasi="status",
        sensitive="ill",
        hierarchies={"status": tree},
    )
    assert both.candidates == (("a",), ("a",), ("b", "c"), ("b", "c"))


def test_secrets_of_different_types_meet_as_numbers():
    one = pa.table({"age": ["30-40"] * 2, "score": pa.array([613.0, 650.0])})
    found = intersection([one, company_z()], people={"age": 31}, quasi="age", sensitive="score")
    assert found.candidates == ((613.0,),)


def test_more_people_and_classes_than_a_minute_has_room_for_are_refused():
    many = pa.table({"age": np.arange(60_000), "job": np.zeros(60_000, dtype=np.int64)})
    with pytest.raises(InvalidParameter, match="give fewer people"):
        intersection([many, many], people=many, quasi="age", sensitive="job")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: intersection([table_2()], people=table_1(), **BOTH), "at least two"),
        (lambda: intersection(table_2(), people=table_1(), **BOTH), "at least two"),
        (lambda: intersection([table_2()] * 2, people=table_1(), control=table_1(), **BOTH), "needs truth"),
        (lambda: intersection([table_2()] * 2, people={"age": 31}, **BOTH), 'person in "zip"'),
        (lambda: intersection([table_2(), table_1()], people=table_1(), **BOTH), 'no column "score"'),
        (
            lambda: intersection([ONE, TWO], people=SHARED, control=SHARED, **ASKED),
            "holds rows of the people",
        ),
    ],
)
def test_what_cannot_be_attacked_is_refused(make, words):
    with pytest.raises(InvalidParameter, match=words):
        make()
