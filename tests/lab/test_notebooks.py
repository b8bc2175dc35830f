"""The notebooks in the docs are the scenes, run: they are valid, and any viewer shows all of them."""

import base64
import json
import re
from pathlib import Path

import pytest

from sfumato.lab import notebook, scenes

FOLDER = Path(__file__).parents[2] / "docs" / "lab"
PLACE = re.compile(r"(/(home|root|tmp|usr|work|Users)/|[A-Z]:\\\\|site-packages|Traceback)")


def kept(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))


def faults(found):
    """What the format (nbformat 4.5) and a reader without Python would miss in a notebook."""
    cells = found["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    if (found["nbformat"], found["nbformat_minor"]) != (4, 5) or {*found} != {
        "cells",
        "metadata",
        "nbformat",
        "nbformat_minor",
    }:
        yield "format"
    names = [cell["id"] for cell in cells]
    if len({*names}) < len(names) or not all(re.fullmatch(r"[\w-]{1,64}", name) for name in names):
        yield "ids"
    needed = {"cell_type", "id", "metadata", "source"}
    for cell in cells:
        runs = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        if {*cell} != needed | runs or not all(isinstance(line, str) for line in cell["source"]):
            yield "cell"
    if [cell["execution_count"] for cell in code] != [*range(1, len(code) + 1)]:
        yield "not run in order"
    for output in (output for cell in code for output in cell["outputs"]):
        if output["output_type"] == "stream":
            if output["name"] != "stdout" or not output["text"]:
                yield "stream"
        elif output["output_type"] != "display_data":
            yield "output"
        elif not base64.b64decode(output["data"]["image/png"]).startswith(b"\x89PNG"):
            yield "picture"
        elif not output["metadata"].get("image/png", {}).get("alt", "").removeprefix("Picture: "):
            yield "a picture without words"
    if PLACE.search(re.sub(r'"image/png": "[^"]*"', "", json.dumps(found, ensure_ascii=False))):
        yield "place"
    if cells[-1]["cell_type"] != "markdown" or not re.search(
        r"^To think about: [^?]*[?]", "".join(cells[-1]["source"]), re.MULTILINE
    ):
        yield "no question"
    if "pip install" not in "".join(cells[0]["source"]):
        yield "how to run"


def test_there_is_a_notebook_for_each_scene_and_no_other():
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == {each.name for each in scenes()}


@pytest.mark.parametrize("told", scenes(), ids=lambda each: each.name)
def test_a_notebook_has_the_cells_of_its_scene(told):
    found, made = kept(told.name), notebook(told, run=False)
    assert [cell["source"] for cell in found["cells"]] == [cell["source"] for cell in made["cells"]]
    assert {key: found[key] for key in ("nbformat", "nbformat_minor", "metadata")} == {
        key: made[key] for key in ("nbformat", "nbformat_minor", "metadata")
    }
    assert any(cell.get("outputs") for cell in found["cells"])


@pytest.mark.parametrize("told", scenes(), ids=lambda each: each.name)
def test_a_notebook_is_valid_was_run_and_can_be_read_by_itself(told):
    assert list(faults(kept(told.name))) == []


def test_a_faulty_notebook_is_noticed():
    def spoiled(change):
        found = kept("crowd")
        code = [cell for cell in found["cells"] if cell["cell_type"] == "code"]
        change(found, code)
        return list(faults(found))

    picture = {"output_type": "display_data", "data": {"image/png": "AAAA"}, "metadata": {}}
    assert spoiled(lambda found, _: found.update(nbformat_minor=4)) == ["format"]
    assert spoiled(lambda found, _: found["cells"][1].update(id="title")) == ["ids"]
    assert spoiled(lambda found, _: found["cells"][1].update(outputs=[])) == ["cell"]
    assert spoiled(lambda _, code: code[0].update(execution_count=None)) == ["not run in order"]
    assert spoiled(lambda _, code: code[0]["outputs"].append(picture)) == ["picture"]
    assert spoiled(lambda _, code: code[1]["outputs"][0].update(metadata={})) == ["a picture without words"]
    assert spoiled(lambda _, code: code[0]["outputs"][0].update(text=["/Users/ada/x"])) == ["place"]
    assert spoiled(lambda found, _: found["cells"].pop()) == ["no question"]
    assert spoiled(lambda found, _: found["cells"][0].update(source=["# With"])) == ["how to run"]
