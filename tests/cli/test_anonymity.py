"""`sfumato anonymity`: figures, checks, and a table that is more anonymous."""

import json

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

PEOPLE = """name,zip,age,score
Rick,19456,67,797
Nathan,30309,33,650
Yani,19445,64,755
Xiao,30457,35,590
Luciana,19456,67,767
Anastasia,30271,38,597
Marcia,19456,31,613
Yuki,19456,62,775
"""
ASK = ("anonymity", "people.csv", "--quasi", "zip,age")


@pytest.fixture
def people(tmp_path):
    (tmp_path / "people.csv").write_text(PEOPLE)
    return tmp_path


def test_json_has_the_figures(cli, people):
    found = cli(*ASK, "--sensitive", "score", "--json")
    assert found.code == 0
    assert {name: found.json[name] for name in ("rows", "classes", "k", "l", "unique")} == {
        "rows": 8,
        "classes": 7,
        "k": 1,
        "l": 1,
        "unique": 0.75,
    }
    assert found.json["t"] == found.json["sensitive"]["score"]["t"] == pytest.approx(0.5)
    assert "holds" not in found.json


def test_text_says_who_may_read_it_and_what_it_does_not_say(cli, people):
    found = cli(*ASK, "--sensitive", "score")
    assert found.code == 0
    assert max(map(len, found.out.splitlines())) <= 80
    said = " ".join(found.out.split())
    assert "for the steward, not for analysts" in said
    assert "somebody is alone" in said
    assert "may not be so together" in said
    assert not any(name in found.out for name in ("Rick", "19456", "797"))


def test_a_check_that_fails_has_exit_code_4(cli, people):
    assert cli(*ASK, "--k", "1").code == 0
    short = cli(*ASK, "--k", "2", "--json")
    assert (short.code, short.json["holds"], short.json["k"]) == (4, False, 1)
    text = cli(*ASK, "--sensitive", "score", "-k", "2", "--l", "2", "--t", "0.1")
    assert text.code == 4
    assert "It falls short: k is 1, not 2; l is 1, not 2; t is 0.5, above 0.1." in " ".join(text.out.split())


def test_options_may_be_repeated_instead_of_commas(cli, people):
    found = cli("anonymity", "people.csv", "--quasi", "zip", "--quasi", " age ", "--json")
    assert found.json["quasi"] == ["zip", "age"]


def test_a_population_gives_presence(cli, people):
    (people / "everybody.csv").write_text(PEOPLE + PEOPLE.partition("\n")[2])
    found = cli(*ASK, "--population", "everybody.csv", "--json")
    assert (found.json["delta_presence"], found.json["k_map"]) == ([0.5, 0.5], 2)
    assert found.json["reidentified"] == 0
    register = cli(*ASK, "--population", "people.csv")
    assert "re-identified" in register.out
    assert "75.0 %" in register.out


def test_every_set_of_columns_is_told_on_request(cli, people):
    found = cli(*ASK, "--sets", "--json")
    assert [(each["columns"], each["unique"]) for each in found.json["sets"]] == [
        (["age"], 0.75),
        (["zip"], 0.5),
        (["zip", "age"], 0.75),
    ]
    text = cli(*ASK, "--sets")
    assert "zip, age  7        1  75.0 %  1.2" in text.out
    assert text.out.count("for the steward") == 1
    assert max(map(len, text.out.splitlines())) <= 80
    assert "sets" not in cli(*ASK, "--json").json


def test_a_name_with_a_comma_stands_in_quotes(cli, people):
    (people / "odd.csv").write_text('"Last, First","a\nb",x"y, zip\nx,1,2,3\nx,1,2,3\n')
    found = cli(
        "anonymity", "odd.csv", "--quasi", '"Last, First",zip', "--quasi", "a\nb", "--quasi", 'x"y', "--json"
    )
    assert (found.code, found.json["quasi"]) == (0, ["Last, First", " zip", "a\nb", 'x"y'])


def test_a_distance_just_above_the_limit_is_told_in_enough_digits(cli, people):
    rows = ["0,a"] * 5000 + ["0,b"] * 5000 + ["1,a"] * 7501 + ["1,b"] * 2499
    (people / "near.csv").write_text("q,v\n" + "\n".join(rows) + "\n")
    found = cli("anonymity", "near.csv", "--quasi", "q", "--sensitive", "v", "--t", "0.125")
    assert found.code == 4
    assert "t is 0.12505, above 0.125." in found.out


def test_what_a_file_has_no_place_for_is_said_and_nothing_is_written(cli, people):
    pq.write_table(pyarrow.table({"q": [1, 1], "n": [["SECRET"], ["x"]]}), people / "nested.parquet")
    make = ("anonymity", "nested.parquet", "--quasi", "q", "-k", "2", "--anonymize", "mondrian", "-o")
    found = cli(*make, "out.csv")
    assert found.code == 2
    assert "a .csv file has no place" in " ".join(found.err.split())
    assert "SECRET" not in found.err
    assert sorted(each.name for each in people.iterdir()) == ["nested.parquet", "people.csv"]
    assert cli(*make, "out.parquet").code == 0


@pytest.mark.parametrize("way", ["mondrian", "generalize"])
@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.arrow"])
def test_an_anonymous_table_is_written_without_names(cli, people, way, name):
    found = cli(*ASK, "--sensitive", "score", "-k", "4", "--anonymize", way, "-o", name, "--json")
    assert found.code == 0, found.err
    assert (found.json["k"], found.json["before"]["k"], found.json["dropped"]) == (4, 1, ["name"])
    assert found.json["written"] == str(people / name)
    again = cli("anonymity", name, "--quasi", "zip,age", "--sensitive", "score", "--json", "-k", "4")
    assert again.code == 0
    assert again.json["rows"] == 8
    assert sorted(each.name for each in people.iterdir()) == sorted([name, "people.csv"])
    text = cli(*ASK, "-k", "4", "--anonymize", way, "-o", name, "--force")
    assert text.code == 0
    assert "Left out, since their names point at one person: name." in text.out
    assert max(map(len, text.out.splitlines())) <= max(80, len(str(people)) + 20)


def test_the_columns_of_the_table_stay(cli, people):
    cli(*ASK, "-k", "2", "--anonymize", "mondrian", "-o", "out.parquet")
    assert pq.read_table(people / "out.parquet").column_names == ["zip", "age", "score"]
    cli(*ASK, "-k", "2", "--anonymize", "mondrian", "-o", "out.csv")
    assert pyarrow.csv.read_csv(people / "out.csv").column("score").to_pylist() == [
        797, 650, 755, 590, 767, 597, 613, 775,
    ]  # fmt: skip


def test_columns_that_were_not_named_and_may_be_known_are_pointed_out(cli, people):
    made = (
        "anonymity",
        "people.csv",
        "--quasi",
        "age",
        "-k",
        "2",
        "--anonymize",
        "mondrian",
        "-o",
        "out.csv",
    )
    found = cli(*made)
    assert "others may know them: zip. Name them as quasi-identifiers too" in " ".join(found.out.split())
    again = cli(*made, "--force", "--json")
    assert (again.json["overlooked"], again.json["dropped"]) == (["zip"], ["name"])
    assert cli(*ASK, "-k", "2", "--anonymize", "mondrian", "-o", "o.csv", "--json").json["overlooked"] == []
    assert again.json["emptied"] == []
    hidden = cli(*made, "--force", "--sensitive", "zip")
    assert "others may know" not in hidden.out


def test_a_folder_is_not_written_over(cli, people):
    (people / "out.csv").mkdir()
    for more in ((), ("--force",)):
        found = cli(*ASK, "-k", "2", *MAKE, *more)
        assert found.code == 2
        assert "exists and is not a file" in " ".join(found.err.split())


MAKE = ("--anonymize", "mondrian", "-o", "out.csv")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ((*ASK[:2], "--quasi", "zipp"), 2, 'did you mean "zip"?'),
        ((*ASK, "--sensitive", "zip"), 2, "both quasi and sensitive"),
        ((*ASK, "--k", "0"), 2, "--k must be"),
        ((*ASK, "--l", "0", "--sensitive", "score"), 2, "--l must be"),
        ((*ASK, "--t", "1.5", "--sensitive", "score"), 2, "--t must be"),
        ((*ASK, "--t", "nan", "--sensitive", "score"), 2, "--t must be"),
        ((*ASK, "--l", "2"), 2, "name one with --sensitive"),
        ((*ASK, "-k", "9", *MAKE), 2, ""),
        ((*ASK, *MAKE), 2, "needs --k"),
        ((*ASK, "-k", "2", "--anonymize", "swap", "-o", "out.csv"), 2, "knows mondrian and generalize"),
        ((*ASK, "-k", "2", "--anonymize", "mondrian"), 2, "needs --output"),
        ((*ASK, "-o", "out.csv"), 2, "--output is where --anonymize writes"),
        ((*ASK, "-k", "2", *MAKE[:3], "out.xls"), 2, "ends in .csv, .parquet or .arrow"),
        ((*ASK, "-k", "2", *MAKE[:3], "no/out.csv"), 2, "no folder"),
        ((*ASK, "-k", "2", *MAKE, "--suppress", "0.1"), 2, "mondrian leaves out no row"),
        ((*ASK, "--suppress", "0.1"), 2, "--suppress is for --anonymize generalize"),
        ((*ASK, "-k", "2", *MAKE, "--sets"), 2, "--sets is about the table as it is"),
        ((*ASK, "-k", "2", *MAKE[:3], "people.csv", "--force"), 2, "read from that file"),
        (("anonymity", "nothing.csv", "--quasi", "zip"), 1, "does not exist"),
        (("anonymity", "people.csv"), 2, ""),
        (("anonymity", "people.csv", "--quasi", " , "), 2, "at least one column"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(cli, people, arguments, code, text):
    for more in ((), ("--json",)):
        found = cli(*arguments, *more)
        assert found.code == code
        said = json.loads(found.err)["error"]["message"] if more else " ".join(found.err.split())
        assert text in said
        assert found.out == ""
    assert [each.name for each in people.iterdir()] == ["people.csv"]


def test_an_existing_file_is_left_as_it_is(cli, people):
    (people / "out.csv").write_text("mine")
    found = cli(*ASK, "-k", "2", *MAKE)
    assert found.code == 2
    assert "--force" in found.err
    assert (people / "out.csv").read_text() == "mine"
    assert cli(*ASK, "-k", "2", *MAKE, "--force").code == 0


def test_what_was_left_out_and_what_is_left_of_nothing_is_told(cli, people):
    made = ("--sensitive", "score", "--anonymize", "generalize", "-o", "out.csv", "--force")
    found = cli(*ASK, "-k", "3", "--suppress", "0.125", *made)
    assert "Left out: 1 row (12.5 %)." in found.out
    assert "Nothing is left" not in found.out
    nothing = cli(*ASK, "-k", "2", "--t", "0.05", *made)
    assert nothing.code == 0
    assert "Nothing is left of zip, age but *" in " ".join(nothing.out.split())
    assert cli(*ASK, "-k", "2", "--t", "0.05", *made, "--json").json["emptied"] == ["zip", "age"]
