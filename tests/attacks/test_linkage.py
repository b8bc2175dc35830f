"""Linkage finds people in rows without names, and not in private counts of them."""

import datetime
import math

import pyarrow as pa
import pyarrow.csv
import pytest

from crowds import DOMAINS, counted_table, crowd, marginal_table
from sfumato.anonymity import Hierarchy
from sfumato.attacks.linkage import linkage, narrowing
from sfumato.attacks.printed import table_1, table_1_anonymized
from sfumato.errors import InvalidParameter
from sfumato.testing import seeded
from verdicts import sure

ON = ["zip", "age", "sex"]
KNOWN = {name: DOMAINS[name] for name in ON}
PEOPLE = crowd(600, 1)
OTHERS = crowd(600, 2, start=600)
RECORDS = PEOPLE.drop_columns(["name"]).take(pa.array(list(reversed(range(600)))))


def test_names_come_back_by_zip_code_age_and_sex():
    found = linkage(PEOPLE, RECORDS, on=ON, truth="id", target="rows without names")
    assert found.works
    assert found.baseline == 1 / 600
    # Whoever is alone in their class is found, and nobody else: the classes, counted by hand.
    keys = list(zip(*(PEOPLE[name].to_pylist() for name in ON), strict=True))
    assert found.reached.hits == sum(keys.count(key) == 1 for key in keys) > 400
    assert found.detail["matched one"] + found.detail["matched several"] == 600
    assert linkage(PEOPLE, RECORDS, on=ON).reached == found.reached


def test_a_wrong_owner_is_no_hit():
    moved = RECORDS.set_column(0, "id", pa.array([i + 1 for i in RECORDS["id"].to_pylist()]))
    assert linkage(PEOPLE, moved, on=ON, truth="id").reached.hits == 0
    matches = linkage(PEOPLE, moved, on=ON)  # though of the wrong people
    assert matches.rate > 0.5
    assert matches.works is None


def test_lone_matches_of_strangers_get_no_verdict():
    found = linkage(OTHERS, RECORDS.drop_columns(["id"]), on=ON)
    assert found.reached.hits > 10
    assert found.works is found.within is None
    assert found.to_dict()["baseline"] is None
    assert "give truth" in str(found)
    assert "works" not in str(found)


def test_strangers_match_a_table_of_rows_less_often():
    found = linkage(PEOPLE, RECORDS, on=ON, control=OTHERS)
    assert found.works
    assert found.guess.trials == 600


def test_a_private_table_fits_members_as_often_as_strangers():
    # Three one-way counts at epsilon 1 together: no cell has a person alone in it.
    with seeded("linkage"):
        private = marginal_table(PEOPLE, KNOWN, 1.0)
    found = linkage(PEOPLE, private, on=ON, control=OTHERS, target="a private table at epsilon 1")
    assert sure(found).within
    assert not found.works
    assert found.reached.hits > 10  # there are matches; they are as good as nobody's


def test_all_cells_at_epsilon_1_tell_members_apart_by_no_more_than_e():
    # 4,380 cells for 600 people: hardly any other noise is as telling, and a factor of e is what it may tell.
    with seeded("cells"):
        cells = counted_table(PEOPLE, KNOWN, 1.0)
    found = linkage(PEOPLE, cells, on=ON, control=OTHERS)
    assert found.works
    assert found.interval[0] <= math.e * found.guess.interval(0.99)[1]
    # At a tenth of it the factor is 1.105, which 600 people cannot show.
    with seeded("cells"):
        small = counted_table(PEOPLE, KNOWN, 0.1)
    assert sure(linkage(PEOPLE, small, on=ON, control=OTHERS)).within


def test_the_governor_is_one_of_six_then_three_then_one():
    born = datetime.date(1945, 7, 31)
    rows = [(born, "m", "02138"), (born, "m", "02139"), (born, "m", "02140")]
    rows += [(born, "f", zip_code) for zip_code in ("02138", "02139", "02141")]
    rows += [(datetime.date(1945, 7, 1 + i % 28), "fm"[i % 2], "02138") for i in range(100)]
    birth, sex, zip_code = zip(*rows, strict=True)
    cambridge = pa.table({"birth": birth, "sex": sex, "zip": zip_code})
    governor = {"birth": born, "sex": "m", "zip": "02138", "office": "governor"}
    assert narrowing(cambridge, governor, on=["birth", "sex", "zip"]) == [6, 3, 1]
    assert narrowing(cambridge, governor, on=["zip", "birth", "sex"])[1:] == [2, 1]
    assert narrowing(cambridge, governor | {"birth": "1945-07-31"}, on="birth") == [6]


def test_labels_narrow_too_and_the_printed_table_has_lost_one_person():
    rick, marcia = table_1().to_pylist()[0], table_1().to_pylist()[6]
    assert narrowing(table_1_anonymized(), rick, on=["zip", "age"]) == [4, 4]
    assert narrowing(table_1_anonymized(), marcia, on=["age", "zip"]) == [4, 0]
    found = linkage(table_1(), table_1_anonymized(), on=["zip", "age"], labels=True)
    assert (found.reached.hits, found.detail["matched several"], found.detail["matched none"]) == (0, 7, 1)
    # Without labels, texts and numbers are compared as they are written, and none agrees.
    assert linkage(table_1(), table_1_anonymized(), on=["zip", "age"]).detail["matched none"] == 8
    # The names alone dropped, six of eight are alone.
    assert linkage(table_1(), table_1().drop_columns(["name"]), on=["zip", "age"]).reached.hits == 6


def test_labels_and_values_find_the_same_where_labels_are_values():
    exact = linkage(PEOPLE, RECORDS, on=ON, truth="id")
    assert linkage(PEOPLE, RECORDS, on=ON, truth="id", labels=True).to_dict() == exact.to_dict()


def test_the_names_of_a_tree_are_understood():
    tree = {"town": Hierarchy.tree({"north": ["a", "b"], "south": ["c"]})}
    people = pa.table({"town": ["a", "b", "c"], "id": [1, 2, 3]})
    told = pa.table({"town": ["north", "north", "south"], "id": [1, 2, 3]})
    assert linkage(people, told, on="town", labels=True).reached.hits == 0
    assert linkage(people, told, on="town", truth="id", hierarchies=tree).reached.hits == 1
    assert narrowing(told, {"town": "a", "id": 2}, on=["town", "id"], hierarchies=tree) == [2, 1]


def test_any_source_and_mixed_types_will_do(tmp_path):
    path = tmp_path / "records.csv"
    pyarrow.csv.write_csv(RECORDS, path)
    exact = linkage(PEOPLE, RECORDS, on=ON, truth="id").reached
    assert linkage(PEOPLE.to_pandas(), path, on=ON, truth="id").reached == exact
    floats = RECORDS.set_column(2, "age", RECORDS["age"].cast(pa.float64()))
    assert linkage(PEOPLE, floats, on=ON, truth="id").reached == exact
    texts = RECORDS.set_column(2, "age", RECORDS["age"].cast(pa.string()))
    assert linkage(PEOPLE, texts, on=ON, truth="id").reached == exact
    coded = RECORDS.set_column(1, "zip", RECORDS["zip"].dictionary_encode())
    assert linkage(PEOPLE, coded, on=ON, truth="id").reached == exact


def test_a_missing_value_is_a_value():
    one = pa.table({"zip": ["1", None], "id": [1, 2]})
    assert linkage(one, one, on="zip", truth="id").reached.hits == 2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: linkage(PEOPLE, RECORDS, on=[]), "at least one column"),
        (lambda: linkage(PEOPLE, RECORDS, on=["zipp"]), 'did you mean "zip"'),
        (lambda: linkage(PEOPLE.slice(0, 0), RECORDS, on=ON), "no rows"),
        (lambda: linkage(PEOPLE, RECORDS, on=ON, truth="id", control=OTHERS), "not both"),
        (lambda: linkage(PEOPLE, RECORDS, on=ON, truth="zip"), "must not be among on"),
        (lambda: linkage(PEOPLE, RECORDS, on=ON, control=RECORDS), "holds rows of the people"),
        (lambda: linkage(PEOPLE, RECORDS, on=ON, truth="name"), 'no column "name"'),
        (lambda: linkage(PEOPLE, RECORDS, on=ON, truth=3), "truth must be the name"),
        (
            lambda: linkage(PEOPLE, RECORDS, on=ON, hierarchies={"ill": Hierarchy.flat()}),
            "columns that are known",
        ),
        (lambda: linkage(PEOPLE, RECORDS, on=ON, hierarchies={"zip": "flat"}), "must give a Hierarchy"),
        (lambda: linkage(PEOPLE, RECORDS, on=ON, confidence=1), "strictly between"),
        (lambda: narrowing(RECORDS, {"zip": "02100"}, on=["zip", "age"]), "Nothing is said of the person"),
        (lambda: narrowing(RECORDS, {"zip": object()}, on="zip"), "text, a number, a day"),
    ],
)
def test_what_cannot_be_attacked_is_refused(make, words):
    with pytest.raises(InvalidParameter, match=words):
        make()


def twice(table):
    return pa.concat_tables([table, table])


@pytest.mark.parametrize("on", [ON, ["zip", "age"]])
def test_to_write_each_row_twice_hides_nobody(on):
    rows = RECORDS.drop_columns(["id"])
    for given in ({}, {"control": OTHERS}):
        once, doubled = (linkage(PEOPLE, each, on=on, **given) for each in (rows, twice(rows)))
        assert doubled.works is (True if given else None)
        assert doubled.to_dict() == once.to_dict() | {"detail": once.detail | {"rows": 1200}}
    assert linkage(PEOPLE, twice(RECORDS), on=on, truth="id").reached == linkage(PEOPLE, rows, on=on).reached
    # Nothing but what is known: strangers tell that these are copies, and without them nothing does.
    assert linkage(PEOPLE, twice(rows).select(on), on=on, control=OTHERS).works
    assert linkage(PEOPLE, twice(rows).select(on), on=on).reached.hits == 0


def test_copies_of_some_rows_and_of_rows_with_lists_hide_nobody():
    rows = RECORDS.drop_columns(["id"])
    more = pa.concat_tables([twice(rows), rows.slice(0, 50)])
    assert linkage(PEOPLE, more.slice(3), on=ON).rate > 0.7
    listed = rows.append_column("visits", pa.array([[i, i + 1] for i in range(600)]))
    assert linkage(PEOPLE, twice(listed), on=ON).reached == linkage(PEOPLE, rows, on=ON).reached


def test_two_people_alike_in_all_columns_are_still_two():
    alike = pa.table({"zip": ["1", "1", "2", "3"], "ill": ["a", "a", "b", "a"]})
    assert linkage(alike, alike, on="zip").reached.hits == 2


def test_a_private_table_written_twice_fits_members_as_often_as_strangers():
    with seeded("linkage"):
        private = marginal_table(PEOPLE, KNOWN, 1.0)
    found = linkage(PEOPLE, twice(private), on=ON, control=OTHERS)
    assert sure(found).within
    assert found.reached.hits > 10
