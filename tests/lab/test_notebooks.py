"""The notebooks in the docs are the scenes: the same cells, run once."""

import json
from pathlib import Path

import pytest

from sfumato.lab import notebook, scenes

FOLDER = Path(__file__).parents[2] / "docs" / "lab"


def test_there_is_a_notebook_for_each_scene_and_no_other():
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == {each.name for each in scenes()}


@pytest.mark.parametrize("told", scenes(), ids=lambda each: each.name)
def test_a_notebook_has_the_cells_of_its_scene(told):
    kept = json.loads((FOLDER / f"{told.name}.ipynb").read_text(encoding="utf-8"))
    made = notebook(told, run=False)
    assert [cell["source"] for cell in kept["cells"]] == [cell["source"] for cell in made["cells"]]
    assert {key: kept[key] for key in ("nbformat", "nbformat_minor", "metadata")} == {
        key: made[key] for key in ("nbformat", "nbformat_minor", "metadata")
    }
    assert any(cell.get("outputs") for cell in kept["cells"])
