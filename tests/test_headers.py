"""Which first lines are taken for the names of columns: never a row, and the usual headers."""

import itertools
import random

import pytest

from sfumato.schema.classify import words_of
from sfumato.schema.headers import _KNOWN, doubt_about, unique_names

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
    "姓名,城市,年龄",
    "userid",
    "city,city,cost,age",
    # of data that many know
    "PassengerId,Survived,Name,Sex,Age,SibSp,Fare,Cabin",
    "Id,SepalLength,SepalWidth,PetalLength,PetalWidth,Species",
    "customerId,firstName,lastName,birthDate",
    "Order ID,Order Date,Customer ID,Customer Name,City,Postal Code",
    "CUSTOMER_ID,GENDER,AGE,INCOME",
    "patient_id,diagnosis",
    "Name,Vorname,Straße,PLZ,Ort,Geburtsdatum",
    "Kundennummer;Kunden-Nr;Anzahl;Bestelldatum;Datum".replace(";", ","),
    "identifiant,sexe,date_naissance,ville,montant",
    "nombre,apellido,fecha,importe",
    "id,city,cost",
    "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country",
    "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,trip_distance,fare_amount",
    "userId,movieId,rating,timestamp",
    "encounter_id,patient_nbr,race,gender,age,weight,admission_type_id,time_in_hospital",
    "id,name,host_id,host_name,neighbourhood,latitude,longitude,room_type,price,number_of_reviews",
    "person_id,gender_concept_id,year_of_birth,month_of_birth,race_concept_id",
    "employee_id,department,salary,hire_date",
    "Patientennummer,Alter,Geschlecht,Diagnose,Aufnahmedatum,Entlassungsdatum",
    "numero_client,nom,prenom,date_naissance,code_postal,ville",
    "Nom,Prénom,Âge,Sexe,Salaire",
]
# Those that are taken for a row: the steward says --header.
DOUBTED = [
    "id",
    "age",
    "city,city,cost",
    "Country,Region,Happiness Score",
    "survived,pclass,sibsp,parch",
    "mpg,cylinders,displacement,horsepower",
    "symptom,ward,price",
    "age,sex,bmi,children,smoker,region,charges",
    "name,email,phone",
    "Date,Open,High,Low,Close,Volume",
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


# What else may stand in a row, each also in small and in capital letters. Many are words of columns too.
VALUES = {
    "first name": """
        Mary, Katie, Nino, Rut, Vin, Nir, Rok, Rue, Job, Gene, Åge, Jean-Luc, Mary Ann, Christian, Day,
        Cookie, Mac
    """,
    "last name": """
        Price, Ward, Street, Day, Marks, Weeks, Key, Long, Land, Born, Driver, Reader, Rank, Alter,
        Wahl, Date, McDonald, De La Rue, Van Der Land, DeWitt, O'Neill, Nie, Sin, Dia, Coste, Grade,
        Child, Guest, Page, Katie Price, Le Ward
    """,
    "city": """
        London, Canton, New York, new_york, Stadt, Ort, Bath, Reading, Nice, Split, Orange, Saint-Denis,
        Salt Lake City, City
    """,
    "ward": """
        Surgical Ward, Ward, Day Ward, Room, Clinic, Intensive Care, Emergency, Day Clinic, Hospital,
        City Hospital
    """,
    "disease": """
        heart disease, Illness, Condition, HIV, Depression, Weight loss, Weight gain, Blood pressure,
        Type 2 diabetes, heart_disease, Mental illness, Heart condition, Alcohol, Pregnancy, Flu, STD,
        Kidney stone, Loss of weight
    """,
    "street": """
        Baker Street, Rue de la Paix, Street, Day Street, Calle Mayor, Price Street, Rue, Ulica Long,
        High Street
    """,
    "drug": """
        Aspirin, Insulin, Hash, Alcohol, Drug, Blood Thinner, Beta-blocker, Vitamin D, Medication
    """,
    "sex": """
        Male, Female, M, F, Other, Man, Woman, Divers, Weiblich, Homme, Femme
    """,
    "answer": """
        Yes, No, True, False, Ja, Nein, Oui, Non, Married, Smoker, Smoker no, Smoker_no, Is married,
        Up-to-date, up_to_date
    """,
    "country": """
        Germany, France, Land, United States, united_states, Canada, ID, NO, IS, LA, Georgia, Country,
        State
    """,
    "month": """
        January, May, Month, Mai, Year, Day, Week, Two year, Month-to-month, Quarter, Mois
    """,
    "work": """
        Driver, Student, Doctor, Education, Never-married, Adm-clerical, State-gov, Own-child,
        Prof-school, Employee, Class, Low income, Low_income, Low-cost, First class, Email, Phone,
        Credit card, CreditCard, iPhone, Passport, Race, Loss
    """,
}
WORDS = [
    cast(word.strip())
    for kind in VALUES.values()
    for word in kind.split(",")
    for cast in (str, str.lower, str.upper, str.title)
]


@pytest.mark.parametrize("line", HEADERS)
def test_a_usual_header_is_taken_for_one(line):
    assert doubt_about(line.split(",")) is None


@pytest.mark.parametrize("line", DOUBTED)
def test_in_doubt_it_is_a_row(line):
    assert doubt_about(line.split(",")) is not None


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


def rows_of_words(seed=5, count=1500):
    """Rows of one cell, each there is, and of two to six in one manner of writing or in several."""
    draw = random.Random(seed)
    yield from ([word] for word in WORDS)
    for place in range(count):
        start, step = draw.randrange(4), 4 if place % 2 else 1
        yield draw.choices(WORDS[start::step], k=draw.randint(2, 6))


def test_no_row_of_words_is_taken_for_a_header():
    assert [cells for cells in rows_of_words() if doubt_about(cells) is None] == []


def test_the_search_finds_a_rule_that_is_content_with_any_known_word():
    """Where one known word makes a cell a name, and more than half of such cells a header."""

    def by_any_word(cells):
        return None if 2 * sum(bool(_KNOWN & set(words_of(cell))) for cell in cells) > len(cells) else "doubt"

    found = [cells for cells in rows_of_words(count=300) if by_any_word(cells) is None]
    assert len(found) > 30
    for line in ("Mary,heart disease,Surgical Ward", "Katie Price,Baker Street", "Nino,Ward,London"):
        assert by_any_word(line.split(",")) is None
        assert doubt_about(line.split(",")) is not None


def test_a_value_beside_one_sure_word_is_a_row():
    """No single word decides: a value that is a sure word by chance needs a second one beside it."""
    values = [word for word in WORDS if word not in ("id", "Id")]
    for sure, word in itertools.product(("Date", "age", "salary", "id", "income tax"), values):
        assert doubt_about([sure, word]) is not None, (sure, word)


def test_no_line_is_an_error():
    draw = random.Random(11)
    letters = [
        "id",
        "no",
        "date",
        "Ward",
        "_",
        "-",
        " ",
        ".",
        "'",
        "Å",
        "ß",
        "İ",
        "ﬁ",
        "番号",
        "A",
        "b",
        "7",
        "\x00",
    ]
    for _ in range(1500):
        cells = ["".join(draw.choices(letters, k=draw.randint(0, 5))) for _ in range(draw.randint(0, 4))]
        doubt_about(cells)


def test_the_reason_holds_nothing_of_the_line():
    for cells in rows(7, 500):
        doubt = doubt_about(cells)
        assert doubt is not None
        assert not [cell for cell in cells if len(cell) > 3 and cell in doubt]


def test_many_of_the_same_name_are_numbered_in_one_go():
    """With a look through all of them for each, it would not end."""
    assert unique_names(["a"] * 20_000)[-1] == "a_20000"
    assert unique_names(["a", *(f"a_{number}" for number in range(2, 10_000)), *"aaA"])[-1] == "A_10002"


def test_names_are_made_unique():
    assert unique_names(["city", "", "City", "city_2", " a "]) == ("city", "c2", "City_3", "city_2", "a")
    assert unique_names(["", "c1"]) == ("c1_2", "c1")
    draw = random.Random(3)
    for _ in range(300):
        cells = [draw.choice(["", "a", "A", "a_2", "c1", "c2", " b"]) for _ in range(draw.randint(1, 7))]
        made = unique_names(cells)
        assert len({name.casefold() for name in made}) == len(cells)
        assert all(name == name.strip() != "" for name in made)
