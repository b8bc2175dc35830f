"""The eight people of Table 1: what the printed table claims, and what honest generalisation gives.

The rows are those of the state employees in an introduction to differential privacy (Table 1, left, and the
credit scores of Table 2); its right-hand one says that `19***` and `30***` with ages by ten are 4-anonymous.
"""

import pyarrow as pa
import pytest

from sfumato.anonymity import Hierarchy, deidentify, generalize, measure, mondrian
from sfumato.attacks.printed import table_1, table_1_anonymized, table_2

PEOPLE = table_1().append_column("score", table_2()["score"])
NAMES = PEOPLE["name"].to_pylist()
PRINTED = table_1_anonymized()
QUASI = ["zip", "age"]
STEPS = {"zip": Hierarchy.prefixes(5), "age": Hierarchy.intervals(5, 10, 20)}


def test_names_are_dropped_and_six_of_eight_are_still_one_of_a_kind():
    left = deidentify(PEOPLE)
    assert left.dropped == ("name",)
    assert left.table.column_names == ["zip", "age", "score"]
    assert left.quasi == ("zip", "age")
    found = measure(left.table, quasi=QUASI, sensitive="score")
    assert (found.k, found.classes) == (1, 7)  # not all are unique: two people share zip code and age
    assert found.unique == 6 / 8


def test_the_printed_table_is_4_anonymous_only_because_one_person_moved():
    assert measure(PRINTED, quasi=QUASI).k == 4
    honest = pa.table(
        {
            "zip": STEPS["zip"].labels(PEOPLE["zip"].to_pylist(), 3),
            "age": STEPS["age"].labels(PEOPLE["age"].to_pylist(), 2),
        }
    )
    assert measure(honest, quasi=QUASI).k == 1
    moved = [
        name
        for name, said, is_so in zip(
            NAMES, PRINTED["zip"].to_pylist(), honest["zip"].to_pylist(), strict=True
        )
        if said != is_so
    ]
    assert moved == ["Marcia"]


def test_the_least_generalisation_that_is_4_anonymous_gives_up_the_zip_code():
    done = generalize(PEOPLE, STEPS, 4, suppress=0)
    assert done.levels == {"zip": "*", "age": "intervals of 10"}
    assert done.table["zip"].to_pylist() == ["*"] * 8
    assert done.table["age"].to_pylist() == [
        "[60, 70)" if age >= 60 else "[30, 40)" for age in PEOPLE["age"].to_pylist()
    ]
    assert done.table.column_names == PEOPLE.column_names
    assert done.table["name"].to_pylist() == NAMES  # only quasi-identifiers change, and rows keep their order
    assert measure(done.table, quasi=QUASI).k == done.k == 4
    assert done.classes == 2
    assert done.discernibility == 32
    assert done.ncp == pytest.approx((1 + 10 / 36) / 2)
    # The hierarchies that are made from the columns lead to the same table.
    assert generalize(PEOPLE, QUASI, 4, suppress=0).table.equals(done.table)


def test_leaving_one_person_out_does_not_save_the_zip_code():
    # Without Marcia, 19*** has four people and 30*** three.
    done = generalize(PEOPLE, STEPS, 4, suppress=0.125)
    assert (done.suppressed, done.levels["zip"]) == (0, "*")
    # What remains of the printed table without her is 3-anonymous, and nothing cheaper is.
    three = generalize(PEOPLE, STEPS, 3, suppress=0.125)
    assert (three.suppressed, three.k) == (1, 3)
    assert three.levels == {"zip": "first 2 of 5", "age": "intervals of 10"}
    assert three.table["name"].to_pylist() == [name for name in NAMES if name != "Marcia"]
    printed = [
        zip_code for name, zip_code in zip(NAMES, PRINTED["zip"].to_pylist(), strict=True) if name != "Marcia"
    ]
    assert three.table["zip"].to_pylist() == printed


def test_mondrian_may_tell_people_apart_where_one_level_for_all_cannot():
    done = mondrian(PEOPLE, QUASI, 4)
    assert set(done.table["age"].to_pylist()) == {"[31, 38]", "[62, 67]"}
    assert set(done.table["zip"].to_pylist()) == {"{19445, 19456}", "{19456, 30271, 30309, 30457}"}
    assert done.ncp < generalize(PEOPLE, STEPS, 4, suppress=0).ncp


def test_4_anonymous_is_not_enough_once_scores_are_banded():
    banded = PEOPLE.append_column(
        "band", pa.array(["Fair" if score < 670 else "Good" for score in PEOPLE["score"].to_pylist()])
    )
    done = generalize(banded, STEPS, 4, suppress=0)
    assert measure(done.table, quasi=QUASI, sensitive="band").l == 1
    diverse = generalize(banded, STEPS, 4, l=2, sensitive="band", suppress=0)
    assert measure(diverse.table, quasi=QUASI, sensitive="band").l == 2
