"""The tour: the same data everywhere, every step true, nothing wider than 80 columns."""

import json

import pyarrow.compute as pc

from sfumato.demo import PATIENTS, VISITS, generate


def test_the_data_is_made_from_a_seed_and_keeps_its_promises():
    table = generate()
    assert table.equals(generate())
    assert not table.equals(generate(seed=1))
    assert table.num_rows == VISITS
    assert pc.count_distinct(table["patient_id"]).as_py() == PATIENTS
    assert table["city"].null_count == 0
    assert 0 <= pc.min(table["age"]).as_py() <= pc.max(table["age"]).as_py() <= 105
    assert pc.min(table["cost"]).as_py() > 0
    assert str(pc.min(table["day"]).as_py()) == "2024-01-01"
    assert str(pc.max(table["day"]).as_py()) == "2024-12-31"


def test_the_story_is_told_to_its_end(cli, tmp_path):
    told = cli("demo", "--folder", "tour")
    assert told.code == 0
    assert told.err == ""
    assert max(len(line) for line in told.out.splitlines() if "/" not in line) <= 80
    text = " ".join(told.out.split())
    for step in (
        "no row is read",
        "Paid epsilon 0.8",
        "Answered again from the ledger, free",
        "for nothing",
        "Paid epsilon 0.3",
        "Refused.",
        "A refusal costs nothing.",
        "nothing was altered, removed or restored",
        "visits.png",
    ):
        assert step in text, step
    assert "\n\n\n" not in told.out
    assert (tmp_path / "tour" / "visits.png").read_bytes().startswith(b"\x89PNG")


def test_one_can_go_on_where_the_story_ends(cli, tmp_path, monkeypatch):
    made = cli("demo", "--folder", "tour", "--json").json
    assert sorted(made) == ["folder", "picture", "text"]
    monkeypatch.chdir(tmp_path / "tour")
    assert cli("query", "SELECT AVG(age) AS age FROM visits", "--epsilon", "0.1").code == 0
    assert cli("ledger", "show").code == 0
    assert cli("ledger", "verify").code == 0
    assert cli("demo", "--folder", ".").code == 2  # never into a folder that is in use


def test_without_matplotlib_it_says_how_to_get_it(cli, monkeypatch):
    from sfumato import plots
    from sfumato.errors import MissingExtra

    def missing(*_, **__):
        raise MissingExtra("Pictures need matplotlib: pip install 'sfumato[plots]'.")

    monkeypatch.setattr(plots, "noise_panels", missing)
    told = cli("demo", "--folder", "tour", "--json")
    assert told.code == 0
    assert json.loads(told.out)["picture"] is None
    assert "sfumato[plots]" in told.json["text"]


def test_it_needs_no_arguments(process, tmp_path):
    told = process("demo", env={"TMPDIR": str(tmp_path)})
    assert told.code == 0
    assert "Sfumato in a minute" in told.out
