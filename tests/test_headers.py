"""Which first lines are taken for the names of columns: never a row, and the usual headers."""

import itertools
import random

import pytest

from sfumato.schema.headers import doubt_about, unique_names

HEADERS = [
    "patient_id,sex,city,visit_date,cost",
    "user_id,age,city,joined_date",
    "age,workclass,education,education_num,marital_status,occupation,race,sex,hours_per_week,native_country,income",
    "sepal_length,sepal_width,petal_length,petal_width,species",
    "Kunden-Nr;PLZ;Geburtsdatum;Geschlecht;Betrag".replace(";", ","),
    "Nom,Prénom,Ville,Date de naissance,Salaire",
    ",age,sex,city",  # as pandas writes it
    "Patient ID,First Name,Length of stay,Admission date",
    "PatientID,BirthDate,ZipCode",
    "用户,城市,年龄",
    "id",
    "city,city,cost",
]
# What a person's cells may be, each kind with several.
CELLS = {
    "name": ["Anna Schmidt", "O'Neill", "McDonald", "Zoë", "schmidt", "De La Cruz, Maria"],
    "place": ["Lyon", "new_york", "Main Street 12", "12 Main Street", "75001"],
    "number": ["4711", "-3.5", "3,5", "1e6", "nan", "0", "12345678"],
    "day": ["1983-02-01", "31.12.2024", "2/3/99", "2024-01-01T00:00:00Z", "Mon 3.4.2020"],
    "address": ["anna@example.org", "10.0.0.1", "https://example.org/u/7"],
    "word": ["female", "m", "married", "student", "flu", "HIV", "depression", "smoker", "yes", "Dr."],
    "text": ["patient was admitted with chest pain and discharged after two days", "n/a", "-", ""],
    "id": ["A-7-x", "P000123", "a3f9-77bc", "x"],
}


@pytest.mark.parametrize("line", HEADERS)
def test_a_usual_header_is_taken_for_one(line):
    assert doubt_about(line.split(",")) is None


def rows(seed, count):
    """Rows of a file without a header: cells of several kinds, in any order."""
    draw = random.Random(seed)
    kinds = list(CELLS)
    for _ in range(count):
        chosen = draw.choices(kinds, k=draw.randint(1, 8))
        yield [draw.choice(CELLS[kind]) for kind in chosen]


def leaks(doubt, seed=1, count=1500):
    """Rows that would be shown as names of columns."""
    pairs = [list(pair) for pair in itertools.permutations([c for held in CELLS.values() for c in held], 2)]
    return [cells for cells in (*pairs, *rows(seed, count)) if doubt(cells) is None]


def test_no_row_is_taken_for_a_header():
    assert leaks(doubt_about) == []


def test_the_search_finds_a_rule_that_looks_at_shapes_alone():
    def by_shape(cells):
        return None if all(cell.replace("_", "").replace(" ", "").isalpha() for cell in cells) else "doubt"

    assert leaks(by_shape)


def test_the_reason_holds_nothing_of_the_line():
    for cells in rows(7, 500):
        doubt = doubt_about(cells)
        assert doubt is not None
        assert not [cell for cell in cells if len(cell) > 3 and cell in doubt]


def test_names_are_made_unique():
    assert unique_names(["city", "", "City", "city_2", " a "]) == ("city", "c2", "City_3", "city_2", "a")
    assert unique_names(["", "c1"]) == ("c1_2", "c1")
    draw = random.Random(3)
    for _ in range(300):
        cells = [draw.choice(["", "a", "A", "a_2", "c1", "c2", " b"]) for _ in range(draw.randint(1, 7))]
        made = unique_names(cells)
        assert len({name.casefold() for name in made}) == len(cells)
        assert all(name == name.strip() != "" for name in made)
