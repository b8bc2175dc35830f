"""Every mechanism has a page of one form: its parts in their order, its picture, the tests that hold it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import sfumato as sf

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PARTS = ["Use it", "What it costs", "Why it is private", "What it costs to compute", "The trap"]
SHARED = {"NumericSparseVector": "sparse-vector"}
NAMES = [
    name
    for name in sf.mechanisms.__all__
    if isinstance(getattr(sf.mechanisms, name), type) and name not in {"Mechanism", "Example", "Median"}
]


def slug(name: str) -> str:
    """The file name of a mechanism's page: DiscreteGaussian is discrete-gaussian."""
    return SHARED.get(name, re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower())


PAGES = {name: DOCS / f"mechanisms/{slug(name)}.md" for name in [*NAMES, "Continual"]}


@cache
def defined(file: str) -> frozenset[str]:
    """The test functions of a file that pytest collects."""
    path = ROOT / file
    text = path.read_text() if path.is_file() and path.name.startswith("test_") else ""
    return frozenset(re.findall(r"^def (test_\w+)\(", text, flags=re.M))


def faults(name: str, text: str) -> list[str]:
    """What the page of a mechanism lacks."""
    plain = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    parts = {part.partition("\n")[0]: part for part in re.split(r"^## ", plain, flags=re.M)[1:]}
    ids = re.findall(r"`(tests/[\w/]+\.py)::(\w+)", text)
    picture = re.findall(r"^!\[(.{40,})\]\(\.\./(pictures/mechanisms/[\w-]+)\.svg\)$", plain, flags=re.M)
    drawn = [path for _, path in picture if path == f"pictures/mechanisms/{slug(name)}"]
    files = [DOCS / f"{path}{kind}.svg" for path in drawn for kind in ("", "-dark")]
    marks = rf"^<!-- measured: {slug(name)} -->\n.*^<!-- end -->$"
    held = {
        "its name as the title": name in plain.partition("\n")[0].split(),
        "its parts in their order": [part for part in parts if part in PARTS] == PARTS,
        "something to run": "\n```python\n" in text,
        "a picture with words": len(drawn) == 1,
        "the files of the picture": all(file.is_file() for file in files),
        "a place for what was measured": re.search(marks, parts.get(PARTS[3], ""), re.S | re.M) is not None,
        "a test beside its proof": "`tests/" in parts.get("Why it is private", ""),
        "tests that are there": all(test in defined(file) for file, test in ids),
    }
    return [what for what, is_held in held.items() if not is_held]


@pytest.mark.parametrize("name", PAGES)
def test_a_mechanism_has_its_page(name):
    assert PAGES[name].is_file()
    assert faults(name, PAGES[name].read_text()) == []


def test_every_page_is_that_of_a_mechanism():
    assert sorted((DOCS / "mechanisms").iterdir()) == sorted(set(PAGES.values()))


def test_the_guide_leads_to_every_page():
    table = (DOCS / "mechanisms.md").read_text().split("## Which one?")[1].split("\n## ")[0]
    links = dict(re.findall(r"\[`(?:continual\.)?(\w+)`\]\(mechanisms/([\w-]+)\.md\)", table))
    assert links == {name: page.stem for name, page in PAGES.items()}


def test_what_a_page_lacks_is_noticed():
    text = PAGES["Laplace"].read_text()
    planted = {
        "its name as the title": text.replace("# Laplace", "# Noise", 1),
        "its parts in their order": text.replace("## The trap", "## Mistakes"),
        "something to run": text.replace("```python", "```py"),
        "a picture with words": text.replace("mechanisms/laplace.svg", "mechanisms/geometric.svg"),
        "a place for what was measured": text.replace("<!-- end -->", ""),
        "a test beside its proof": text.replace("`tests/", "`test/"),
        "tests that are there": text.replace("::test_neighbouring", "::test_distant"),
    }
    assert [faults("Laplace", page) for page in planted.values()] == [[what] for what in planted]
    assert faults("Gaussian", text.replace("# Laplace", "# Gaussian", 1))  # the picture of another
