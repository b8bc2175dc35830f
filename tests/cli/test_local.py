"""`sfumato local`: encode, aggregate, recommend; what cannot be done is told and leaves nothing behind."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import local
from sfumato.local.wire import read_reports

PEOPLE = 6000


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A folder with a table of people: half tea, a third coffee, a sixth water."""
    monkeypatch.chdir(tmp_path)
    rows = np.arange(PEOPLE)
    table = pa.table(
        {
            "drink": np.array(["tea", "tea", "tea", "coffee", "coffee", "water"])[rows % 6],
            "page": rows % 7 * 9,
            "age": rows % 100 + 0.5,
            "gap": [None if row == 17 else 1 for row in rows.tolist()],
        }
    )
    pq.write_table(table, tmp_path / "people.parquet")
    (tmp_path / "people.csv").write_text("drink,age\n" + "tea,33.5\n" * 50 + "water,8\n" * 50)
    return tmp_path


DRINKS = ("--column", "drink", "--domain", "tea, coffee,water", "--epsilon", "2")


def encode(cli, *arguments, source="people.parquet", output="r.sfl"):
    return cli("local", "encode", source, *arguments, "-o", output)


@pytest.mark.parametrize("method", ["kary", "hashing", "rappor", "auto"])
def test_a_column_of_texts_goes_there_and_back(cli, people, method):
    made = encode(cli, *DRINKS, "--method", method)
    assert made.code == 0, made.err
    assert "Wrote 6,000 reports to r.sfl." in made.out
    assert "epsilon 2" in made.out
    assert all(len(line) <= 80 for line in made.out.splitlines())
    told = cli("local", "aggregate", "r.sfl", "--json")
    assert told.code == 0, told.err
    counts = {each["value"]: each for each in told.json["values"]}
    assert list(counts) == ["tea", "coffee", "water"]
    assert told.json["people"] == PEOPLE
    for value, true in (("tea", 3000), ("coffee", 2000), ("water", 1000)):
        # Six deviations of the worst of these randomizers.
        assert abs(counts[value]["count"] - true) < 6 * np.sqrt(PEOPLE * 2.5)
        assert counts[value]["low"] <= counts[value]["count"] <= counts[value]["high"]


def test_two_values_and_a_table_in_eighty_columns(cli, people):
    assert (
        encode(cli, "--column", "drink", "--epsilon", "1", "--domain", "tea,water", source="people.csv").code
        == 0
    )
    told = cli("local", "aggregate", "r.sfl", "--delta", "1e-6")
    assert told.code == 0
    lines = told.out.splitlines()
    assert "100 reports of" in lines[0]
    assert lines[2].split() == ["value", "people", "from", "to", "share"]
    assert "shuffler" in told.out
    assert max(map(len, lines)) <= 80


def test_numbers_have_a_mean_and_quantiles(cli, people):
    bounds = ("--column", "age", "--epsilon", "4", "--lower", "0", "--upper", "100")
    for method in ("auto", "duchi"):
        assert encode(cli, *bounds, "--method", method, output=f"{method}.sfl").code == 0
        told = cli("local", "aggregate", f"{method}.sfl", "--json").json["mean"]
        assert abs(told["value"] - 50) < 5
        assert told["low"] < told["value"] < told["high"]
        assert "mean  " in cli("local", "aggregate", f"{method}.sfl").out
    assert encode(cli, *bounds, "--method", "quantiles", output="q.sfl").code == 0
    told = cli("local", "aggregate", "q.sfl", "--json").json
    assert len(told["below"]) == 1025
    (median,) = [each for each in told["quantiles"] if each["share"] == 0.5]
    assert abs(median["value"] - 50) < 12
    shown = cli("local", "aggregate", "q.sfl").out
    assert "50 %" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_whole_numbers_and_the_most_frequent_first(cli, people):
    assert encode(cli, "--column", "page", "--epsilon", "5", "--size", "64", "--method", "kary").code == 0
    told = cli("local", "aggregate", "r.sfl", "--top", "7")
    rows = [line.split() for line in told.out.splitlines()[4:11]]
    assert sorted(int(row[0]) for row in rows) == [0, 9, 18, 27, 36, 45, 54]
    assert "57 more values" in told.out


def test_sums_are_kept_and_merged(cli, people):
    encode(cli, *DRINKS, "--method", "kary")
    encode(cli, *DRINKS, "--method", "kary", "--append")
    assert read_reports("r.sfl").people == 2 * PEOPLE
    kept = cli("local", "aggregate", "r.sfl", "--save", "sums.json")
    assert "Wrote sums.json." in kept.out
    told = cli("local", "aggregate", "r.sfl", "sums.json", "--json")
    assert told.json["people"] == 4 * PEOPLE
    assert cli("local", "aggregate", "sums.json", "--json").json["people"] == 2 * PEOPLE
    total = local.aggregate_from_json((people / "sums.json").read_text())
    assert (total + total).estimate().counts[0] == pytest.approx(told.json["values"][0]["count"])


def test_json_of_encode_names_what_was_written(cli, people):
    made = encode(cli, *DRINKS, "--method", "kary", "--json")
    assert made.json == {
        "path": "r.sfl",
        "reports": PEOPLE,
        "people": PEOPLE,
        "missing": 0,
        "bytes_per_report": 1,
        "randomizer": {"kind": "kary.1", "epsilon": "2", "name": "KaryResponse"},
    }


def test_a_picture_is_drawn(cli, people):
    pytest.importorskip("matplotlib")
    encode(cli, *DRINKS, "--method", "kary")
    named = cli("local", "aggregate", "r.sfl", "--plot", "p.svg", "--label", "preferred drink")
    assert "Wrote p.svg." in named.out
    assert "preferred drink" in (people / "p.svg").read_text()
    assert "coffee" in (people / "p.svg").read_text()
    assert cli("local", "aggregate", "r.sfl", "--plot", "p.gif").code == 2
    encode(cli, "--column", "age", "--epsilon", "1", "--lower", "0", "--upper", "100", output="m.sfl")
    assert cli("local", "aggregate", "m.sfl", "--plot", "m.png").code == 0
    assert (people / "m.png").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--column", "drink", "--epsilon", "1"), 2, "in one way"),
        (("--column", "drink", "--epsilon", "1", "--domain", "a,b", "--size", "2"), 2, "in one way"),
        (("--column", "age", "--epsilon", "1", "--lower", "0"), 2, "both --lower and --upper"),
        (
            ("--column", "age", "--epsilon", "1", "--lower", "0", "--upper", "50"),
            1,
            "not a number from 0 to 50",
        ),
        (
            ("--column", "drink", "--epsilon", "1", "--domain", "tea,milk", "--method", "kary"),
            1,
            "not in the domain",
        ),
        (("--column", "page", "--epsilon", "1", "--size", "9", "--method", "kary"), 1, "not in the domain"),
        (("--column", "gap", "--epsilon", "1", "--size", "2", "--method", "kary"), 1, "without a value"),
        (("--column", "drink", "--epsilon", "1", "--size", "2"), 1, "declared int"),
        (("--column", "none", "--epsilon", "1", "--size", "2"), 2, 'no column "none"; none of its'),
        (("--column", "drnk", "--epsilon", "1", "--domain", "a,b"), 2, 'did you mean "drink"?'),
        (
            ("--column", "drink", "--epsilon", "1", "--domain", "tea", "--domain", "a,tea"),
            2,
            "more than once",
        ),
        (("--column", "drink", "--epsilon", "1", "--domain", "@none.txt"), 2, "a value in each line"),
        (
            ("--column", "drink", "--epsilon", "1", "--size", "9", "--alphabet", "ab"),
            2,
            "give their --length",
        ),
        (("--column", "drink", "--epsilon", "1", "--length", "9", "--alphabet", "ab"), 1, "(ab); change it"),
        (("--column", "drink", "--epsilon", "1", "--length", "3"), 1, "allowed by --alphabet"),
        (("--column", "page", "--epsilon", "0", "--size", "64", "--method", "kary"), 2, "greater than 0"),
        (
            ("--column", "page", "--epsilon", "1", "--size", "64", "--method", "hybrid"),
            2,
            "one of auto, binary",
        ),
        (
            ("--column", "age", "--epsilon", "1", "--lower", "0", "--upper", "100", "--method", "kary"),
            2,
            "duchi",
        ),
        (("--column", "page", "--epsilon", "1", "--size", "64", "--method", "binary"), 2, "two values"),
    ],
)
def test_what_cannot_be_encoded_is_told_and_nothing_is_written(cli, people, arguments, code, words):
    failed = encode(cli, *arguments)
    assert (failed.code, words in " ".join(failed.err.split())) == (code, True), failed.err
    assert failed.out == ""
    assert not list(people.glob("*.sfl"))
    assert not list(people.glob(".*"))


def test_files_that_do_not_belong_together_are_refused(cli, people):
    encode(cli, *DRINKS, "--method", "kary")
    for number, (epsilon, domain) in enumerate((("1", "tea,coffee,water"), ("2", "tea,water,coffee"))):
        other = ("--column", "drink", "--epsilon", epsilon, "--domain", domain, "--method", "kary")
        assert encode(cli, *other, output=f"{number}.sfl").code == 0
        failed = cli("local", "aggregate", "r.sfl", f"{number}.sfl")
        assert (failed.code, f"{number}.sfl has reports of another" in failed.err) == (2, True)
        before = (people / "r.sfl").read_bytes()
        assert encode(cli, *other, "--append").code == 2
        assert (people / "r.sfl").read_bytes() == before
    cli("local", "aggregate", "0.sfl", "--save", "0.json")
    assert cli("local", "aggregate", "r.sfl", "0.json").code == 2
    assert encode(cli, *DRINKS, "--method", "kary").code == 2  # exists


@pytest.mark.parametrize("damage", ["cut", "flip", "text", "gone", "sums", "empty"])
def test_files_that_came_to_harm_are_told(cli, people, damage):
    encode(cli, *DRINKS, "--method", "kary")
    whole = bytearray((people / "r.sfl").read_bytes())
    if damage == "flip":
        whole[len(whole) // 2] ^= 1
    texts = {"cut": whole[:-100], "text": b"tea,coffee\n", "sums": b'{"format": "x"}'}
    (people / "r.sfl").write_bytes(texts.get(damage, whole))
    if damage == "gone":
        (people / "r.sfl").unlink()
    if damage == "empty":
        made = local.KaryResponse(1, 3)
        (people / "r.sfl").unlink()
        local.write_reports("r.sfl", made, made.encode([]))
    failed = cli("local", "aggregate", "r.sfl", "--json")
    assert failed.code == 1
    assert failed.out == ""
    assert json.loads(failed.err)["error"]["code"] == "source_unusable"


def test_a_recommendation_comes_before_anybody_reports(cli):
    told = cli("local", "recommend", "--epsilon", "1", "--size", "1024", "--people", "1000000")
    assert told.code == 0, told.err
    assert told.out.splitlines()[2].startswith("Hadamard response")
    assert "k-ary response" in told.out
    assert "trust nobody" in told.out
    assert max(map(len, told.out.splitlines())) <= 80
    found = cli("local", "recommend", "--epsilon", "1", "--size", "2", "--people", "1000", "--json").json
    assert found["randomizer"]["name"] in {"BinaryResponse", "KaryResponse"}
    assert len(found["alternatives"]) >= 3
    assert cli("local", "recommend", "--epsilon", "0", "--size", "4", "--people", "10").code == 2
    assert cli("local", "recommend", "--epsilon", "1", "--size", "1", "--people", "10").code == 2
    assert cli("local", "recommend", "--epsilon", "1", "--size", "4", "--people", "0").code == 2


def test_a_wanted_accuracy_tells_how_many_people_or_what_price(cli):
    told = cli("local", "design", "--error", "0.01", "--epsilon", "1", "--size", "2")
    assert told.code == 0, told.err
    assert told.out.startswith("35,368 people at epsilon 1 each")
    assert max(map(len, told.out.splitlines())) <= 80
    found = cli("local", "design", "--error", "0.01", "--people", "35368", "--size", "2", "--json").json
    assert found["epsilon"] == pytest.approx(1, abs=1e-4)
    assert found["randomizer"]["name"] == "BinaryResponse"
    mean = cli(
        "local", "design", "--error", "1", "--epsilon", "2", "--lower", "0", "--upper", "100", "--json"
    )
    assert mean.json["randomizer"]["name"] == "HybridMean"
    for wrong in (["--size", "2"], ["--epsilon", "1"], ["--epsilon", "1", "--people", "5", "--size", "2"]):
        told = cli("local", "design", "--error", "0.01", *wrong)
        assert told.code == 2
        assert "Give --" in told.err
    assert "'--size'" in cli("local", "design", "--error", "0.01", "--epsilon", "1", "--size", "1").err
    assert (
        "protects hardly" not in cli("local", "design", "--error", "0.1", "--epsilon", "5", "--size", "2").out
    )
    few = cli("local", "design", "--error", "0.01", "--people", "100", "--size", "2")
    assert "protects hardly anything; ask more people" in " ".join(few.out.split())
    comma = cli("local", "design", "--error", "0.01", "--epsilon", "0,3", "--size", "2")
    assert "write 0.3, with a point" in " ".join(comma.err.split())


def test_texts_that_nobody_lists_are_found(cli, people):
    words = ["tea"] * 20_000 + ["coffee"] * 15_000
    pq.write_table(pa.table({"word": words}), people / "words.parquet")
    made = encode(cli, "--column", "word", "--epsilon", "4", "--length", "6", source="words.parquet")
    assert made.code == 0, made.err
    told = cli("local", "aggregate", "r.sfl")
    assert "tea" in told.out
    assert "coffee" in told.out
    assert "none is missing" in " ".join(told.out.split())
    assert max(map(len, told.out.splitlines())) <= 80
    found = cli("local", "aggregate", "r.sfl", "--json").json
    assert [each["value"] for each in found["values"]] == ["tea", "coffee"]
    assert 0 < found["resolution"] < 0.5


def test_sums_never_take_the_place_of_reports(cli, people):
    encode(cli, *DRINKS)
    before = (people / "r.sfl").read_bytes()
    (people / "mine.json").write_text("{}")
    for place in ("r.sfl", "people.parquet", "mine.json"):
        told = cli("local", "aggregate", "r.sfl", "--save", place)
        assert told.code == 2
        assert "would destroy it" in told.err
    assert (people / "r.sfl").read_bytes() == before
    for _ in range(2):  # sums may be written anew
        assert cli("local", "aggregate", "r.sfl", "--save", "s.json").code == 0


def test_a_picture_that_cannot_be_drawn_leaves_no_sums(cli, people):
    encode(cli, *DRINKS)
    told = cli("local", "aggregate", "r.sfl", "--save", "s.json", "--plot", "x.gif")
    assert told.code == 2
    assert not (people / "s.json").exists()


def test_nobody_is_counted_twice(cli, people):
    encode(cli, *DRINKS)
    cli("local", "aggregate", "r.sfl", "--save", "s.json")
    for files in (("r.sfl", "r.sfl"), ("s.json", "./s.json")):
        told = cli("local", "aggregate", *files, "--json")
        assert told.code == 2
        assert "twice" in json.loads(told.err)["error"]["message"]


def test_sums_that_were_made_up_are_told_in_a_sentence(cli, people):
    data = local.KaryResponse(1, 3).start().to_dict() | {"format": "sfumato-local-aggregate.1", "count": 1}
    for state in ([[1], [1, 2]], [2**63] * 3, "x"):
        (people / "s.json").write_text(json.dumps(data | {"state": state}))
        told = cli("local", "aggregate", "s.json")
        assert told.code == 1
        assert "These are not sums of reports" in " ".join(told.err.split())


def test_a_recommendation_at_the_ends(cli):
    assert "± 0" in cli("local", "recommend", "--epsilon", "700", "--size", "4", "--people", "10").out
    told = cli("local", "recommend", "--epsilon", "1", "--size", "2", "--people", "1000000000000000")
    assert told.code == 2
    assert "ask fewer people" in " ".join(told.err.split())


def test_what_is_appended_is_made_by_what_made_the_file(cli, people):
    encode(cli, *DRINKS, "--method", "unary")
    more = encode(cli, *DRINKS, "--append")
    assert more.code == 0, more.err
    assert "UnaryEncoding" in more.out
    assert read_reports("r.sfl").people == 2 * PEOPLE
    for other in (("--method", "kary"), ("--epsilon", "3"), ("--domain", "tea,coffee,water,milk")):
        assert encode(cli, *DRINKS, *other, "--append").code == 2


def test_a_figure_stays_with_its_sign_and_its_percent(cli):
    told = cli("local", "recommend", "--epsilon", "0.1", "--size", "40", "--people", "100")
    assert "e+" not in told.out
    assert "server" in told.out.splitlines()[0]
    for line in told.out.splitlines():
        assert not line.startswith("%")
        assert not line.endswith("±")


def test_values_with_commas_are_quoted_or_stand_in_a_file_and_lists_add_up(cli, people):
    odd = ["Smith, John", "@home", "tea", "a b"]
    pq.write_table(pa.table({"who": odd * 50}), people / "odd.parquet")
    (people / "values.txt").write_bytes("\ufeffSmith, John\r\n@home\r\n\r\ntea\r\n".encode())
    for number, domain in enumerate(
        (
            ("--domain", '"Smith, John", tea', "--domain", '"@home",a b'),
            ("--domain", "@values.txt", "--domain", "a b"),
        )
    ):
        made = encode(
            cli, "--column", "who", "--epsilon", "8", *domain, source="odd.parquet", output=f"{number}.sfl"
        )
        assert made.code == 0, made.err
        told = cli("local", "aggregate", f"{number}.sfl", "--json")
        assert {each["value"] for each in told.json["values"]} == set(odd)


def test_rows_without_a_value_are_left_out_on_request(cli, people):
    gap = ("--column", "gap", "--epsilon", "1", "--size", "2", "--method", "kary")
    assert "--skip-missing" in encode(cli, *gap).err
    made = encode(cli, *gap, "--skip-missing")
    assert made.code == 0, made.err
    assert "Wrote 5,999 reports" in made.out
    assert "1 row without a value sent no report." in made.out
    again = encode(cli, *gap, "--skip-missing", "--json", output="again.sfl")
    assert (again.json["reports"], again.json["missing"]) == (PEOPLE - 1, 1)


@pytest.mark.parametrize(
    ("text", "words"), [("drink\n", "has no rows"), ("drink,n\n,1\n,2\n", "has a value in drink")]
)
def test_without_people_nothing_is_written(cli, people, text, words):
    (people / "nobody.csv").write_text(text)
    failed = encode(cli, *DRINKS, "--skip-missing", source="nobody.csv")
    assert failed.code == 1
    assert words in " ".join(failed.err.split())
    assert not (people / "r.sfl").exists()


def test_the_interval_of_a_mean_keeps_to_the_bounds_and_is_rounded_outwards(cli, people):
    (people / "one.csv").write_text("age\n40\n")
    bounds = ("--column", "age", "--lower", "0", "--upper", "100")
    encode(cli, *bounds, "--epsilon", "1", source="one.csv", output="one.sfl")
    alone = cli("local", "aggregate", "one.sfl", "--json").json["mean"]
    assert 0 <= alone["low"] <= alone["high"] <= 100
    encode(cli, *bounds, "--epsilon", "3")
    exact = cli("local", "aggregate", "r.sfl", "--json").json["mean"]
    lines = cli("local", "aggregate", "r.sfl").out.splitlines()
    assert lines[2].split() == ["mean", "from", "to"]
    value, low, high = map(float, lines[4].split())
    assert exact["low"] - 0.1 <= low <= exact["low"] < exact["high"] <= high <= exact["high"] + 0.1
    assert abs(value - exact["value"]) <= 0.05


def test_texts_of_another_alphabet_are_found(cli, people):
    pq.write_table(pa.table({"word": ["Ä!"] * 4000}), people / "words.parquet")
    word = ("--column", "word", "--epsilon", "4", "--length", "2", "--alphabet", "ÄÖ!")
    made = encode(cli, *word, source="words.parquet")
    assert made.code == 0, made.err
    assert [each["value"] for each in cli("local", "aggregate", "r.sfl", "--json").json["values"]] == ["Ä!"]


def test_a_picture_has_every_estimate_in_its_band(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    from sfumato import plots
    from sfumato.cli import estimates

    drawn = []
    real = plots.noise_bands
    monkeypatch.setattr(plots, "noise_bands", lambda *a, **more: drawn.append(real(*a, **more)))
    three = np.array([-50.0, 20.0, 130.0])
    found = local.Frequencies(("a", "b", "c"), three, np.zeros(3), np.full(3, 100.0), 0.95, 100)
    estimates.draw(found, tmp_path / "x.svg")
    (dots,) = (line for line in drawn[0].axes[0].lines if line.get_marker() == "o")
    assert list(dots.get_ydata()) == [0, 20, 100]
    assert "drawn at the end of its band" in drawn[0].get_supxlabel()
    estimates.draw(local.Mean(40.0, 38.0, 42.0, 0.95, 1), tmp_path / "x.svg", label="age")
    assert drawn[1].axes[0].get_ylabel() == "age"
    assert drawn[1].get_suptitle() == "Estimated from 1 randomised report"
    assert "drawn at the end" not in drawn[1].get_supxlabel()
