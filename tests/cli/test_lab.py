"""`sfumato lab` lists scenes, tells them and writes notebooks."""

import json

import pytest

from commands import invoke as run
from sfumato.cli.app import app


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


def told(shown):
    assert "unexpected" not in shown.output
    return shown.exit_code, " ".join(shown.output.split())


@pytest.mark.parametrize("more", [[], ["--notebook"]])
@pytest.mark.parametrize("folder", ["notes.txt", "notes.txt/inside", "nowhere"])
def test_what_is_no_folder_is_told_in_a_sentence(tmp_path, folder, more):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone" / "further")
    code, text = told(run(app, ["lab", "delta", "--folder", str(tmp_path / folder), *more]))
    assert code == 2
    assert "--folder" in text
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert "Why delta must be tiny" not in text  # told before a scene is


@pytest.mark.parametrize("folder", ["/proc/sys", "/proc/sys/further"])  # shut for the superuser, too
def test_a_folder_that_is_shut_is_told_in_a_sentence(folder):
    code, text = told(run(app, ["lab", "delta", "--folder", folder]))
    assert code == 2
    assert "cannot be written to" in text


def test_a_picture_that_cannot_be_written_is_told_in_a_sentence(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "portrait-1.png").mkdir()
    code, text = told(run(app, ["lab", "portrait", "--folder", str(tmp_path)]))
    assert code == 2
    assert "The picture portrait-1.png cannot be written there" in text


def test_no_notebook_is_written_where_one_is_in_the_way(tmp_path):
    (tmp_path / "delta.ipynb").write_text("mine")
    code, text = told(run(app, ["lab", "crowd", "delta", "--notebook", "--folder", str(tmp_path)]))
    assert code == 2
    assert "delta.ipynb is there already" in text
    assert [path.name for path in tmp_path.iterdir()] == ["delta.ipynb"]
    assert (tmp_path / "delta.ipynb").read_text() == "mine"


def test_a_scene_named_twice_is_written_once(tmp_path):
    given = ["lab", "delta", "delta", "--notebook", "--folder", str(tmp_path), "--json"]
    assert json.loads(run(app, given).output) == {"written": [str(tmp_path / "delta.ipynb")]}
