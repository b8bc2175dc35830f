"""One person, found step by step; and names that were split off and come back."""

import datetime

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter

PEOPLE = pa.table(
    {
        "name": ["Rick", "Nathan", "Yani", "Xiao", "Luciana", "Anastasia", "Marcia", "Yuki"],
        "zip": ["19456", "30309", "19445", "30457", "19456", "30271", "19456", "19456"],
        "age": [67, 33, 64, 35, 67, 38, 31, 62],
    }
)


def governor(birth):
    return pa.table(
        {
            "birth": birth,
            "Sex": ["m", "m", "m", "f", "f", "f", "m", "m", "f", "f"],
            "zip": ["02138", "02139", "02139", "02138", "02138", "02139"] + ["02138"] * 4,
        }
    )


DAYS = [datetime.date(1945, 7, 31)] * 6 + [datetime.date(1950, 1, 1)] * 4


@pytest.mark.parametrize("birth", [DAYS, [str(day) for day in DAYS]])
@pytest.mark.parametrize("known", ["1945-07-31", datetime.date(1945, 7, 31)])
def test_six_have_his_birth_date_three_are_men_one_lives_there(birth, known, tmp_path):
    import pyarrow.csv

    pyarrow.csv.write_csv(governor(birth), tmp_path / "voters.csv")
    for source in (governor(birth), tmp_path / "voters.csv"):
        found = sf.anonymity.crowds(source, {"birth": known, "sex": "m", "zip": "02138"})
        assert list(found.items()) == [("birth", 6), ("Sex", 3), ("zip", 1)]


def test_values_are_compared_as_the_table_shows_them():
    table = pa.table(
        {"x": [67.0, 67.5, float("nan"), None], "n": [1, 1, 2, None], "b": [True, False, None, None]}
    )
    for known, left in [
        ({"x": 67}, 1),
        ({"x": "67"}, 1),
        ({"x": float("nan")}, 1),
        ({"x": None}, 1),
        ({"n": 1.0}, 2),
        ({"n": 1.5}, 0),
        ({"b": True}, 1),
        ({"b": None, "x": None}, 1),
        ({"n": "SECRET", "x": 67}, 0),
    ]:
        assert list(sf.anonymity.crowds(table, known).values())[-1] == left


def test_what_is_wrong_is_said():
    for known, text in [
        ({}, "at least one column"),
        (["zip"], "at least one column"),
        ({"zipp": 1}, "did you mean"),
    ]:
        with pytest.raises(InvalidParameter, match=text):
            sf.anonymity.crowds(PEOPLE, known)
    with pytest.raises(InvalidParameter, match="no rows"):
        sf.anonymity.crowds(PEOPLE.slice(0, 0), {"zip": "19456"})


def test_names_that_were_split_off_come_back():
    nameless = sf.anonymity.deidentify(PEOPLE).table
    found = sf.anonymity.measure(nameless, ["zip", "age"], population=PEOPLE)
    assert (found.k_map, found.reidentified) == (1, 6 / 8)
    assert found.to_dict()["reidentified"] == 6 / 8
    assert "re-identified" in str(found)
    # In a larger population nobody's name is certain.
    twice = pa.concat_tables([PEOPLE, PEOPLE])
    assert sf.anonymity.measure(nameless, ["zip", "age"], population=twice).reidentified == 0
    # A row is named where one person fits and only then: two people of one kind may have swapped rows.
    some = sf.anonymity.measure(nameless.slice(0, 2), ["zip", "age"], population=PEOPLE)
    assert (some.k_map, some.reidentified) == (1, 1 / 2)
    assert sf.anonymity.measure(nameless, ["zip", "age"]).reidentified is None
