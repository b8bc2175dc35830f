"""`sfumato lab` lists scenes, tells them and writes notebooks."""

import json

import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app

run = CliRunner().invoke


def test_without_a_name_the_scenes_are_listed():
    shown = run(app, ["lab"])
    assert shown.exit_code == 0
    assert "portrait" in shown.output
    assert max(map(len, shown.output.splitlines())) <= 80
    assert {"name", "title", "summary"} == set(json.loads(run(app, ["lab", "--json"]).output)["scenes"][0])


def test_a_scene_is_told_and_its_pictures_written(tmp_path):
    shown = run(app, ["lab", "crowd", "delta", "--folder", str(tmp_path / "new")])
    assert shown.exit_code == 0
    assert "With a steward, and without\n====" in shown.output
    told = json.loads(run(app, ["lab", "delta", "--json"]).output)
    assert told["scenes"][0]["text"].startswith("Why delta must be tiny")


def test_notebooks_are_written_once(tmp_path):
    given = ["lab", "crowd", "--notebook", "--folder", str(tmp_path)]
    assert run(app, given).exit_code == 0
    assert json.loads((tmp_path / "crowd.ipynb").read_text())["nbformat"] == 4
    again = run(app, given)
    assert again.exit_code == 2
    assert "is there already" in again.output


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["lab", "nobody"], "no such scene"),
        (["lab", "crowd", "--notebook"], "needs --folder"),
        (["lab", "--code"], "Name the scenes"),
    ],
)
def test_wrong_use_is_told_in_a_sentence(given, words):
    shown = run(app, given)
    assert shown.exit_code == 2
    assert words in " ".join(shown.output.split())
