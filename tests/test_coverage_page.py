"""docs/coverage.md says what is there: its tests are collected, its names import, no concept is left out."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from concepts import CONCEPTS
from sfumato import lab
from sfumato.cli.commands import COMMANDS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
TORCH = find_spec("torch") is not None
_AREA = re.compile(r"^## (?P<title>.+)\n(?P<rows>(?:(?!## ).*\n?)*)", re.MULTILINE)
_ROW = re.compile(
    r"\| \[(?P<concept>[^]]+)\]\((?P<link>[^)]+)\) \| (?P<shown>.+) \| (?P<code>.+) \| (?P<tests>.+) \|"
)


@dataclass(frozen=True)
class Row:
    """One concept: where its guide is, what is shown, by which code and which tests."""

    area: str
    concept: str
    link: str
    shown: str
    code: tuple[str, ...]
    tests: tuple[str, ...]


def rows(page: str) -> list[Row]:
    """The rows of all tables of the page; each line of a table but its head must be one."""
    found = []
    for area in _AREA.finditer(page):
        for line in [line for line in area["rows"].splitlines() if line.startswith("|")][2:]:
            row = _ROW.fullmatch(line)
            assert row, f"{area['title']}: not a row of four cells that begins with a link: {line[:100]}"
            code, tests = (tuple(re.findall(r"`([^`]+)`", row[cell])) for cell in ("code", "tests"))
            found.append(Row(area["title"], row["concept"], row["link"], row["shown"], code, tests))
    return found


@cache
def anchors(file: Path) -> frozenset[str]:
    """What the headings of a page are linked by."""
    text = re.sub(r"^```.*?^```", "", file.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)


def unlinked(page: str) -> list[str]:
    """Links that lead to no page, or to no heading of one."""
    missing = []
    for link in re.findall(r"\]\(([^)]+)\)", page):
        place, _, heading = link.partition("#")
        file = DOCS / place
        if not file.is_file() or (heading and heading not in anchors(file)):
            missing.append(link)
    return missing


def is_there(code: str) -> bool:
    """Whether a public name can be imported, a command runs, or a file is there."""
    if code.startswith("sfumato "):
        command, *scene = code.split()[1:]
        return command in COMMANDS and (not scene or scene[0] in {each.name for each in lab.scenes()})
    if "/" in code:
        return (ROOT / code).is_file()
    if any(part.startswith("_") for part in code.split(".")):
        return False
    try:
        pkgutil.resolve_name(code)
    except (ImportError, AttributeError):
        return False
    return True


@cache
def defined(file: str) -> frozenset[str]:
    """The test functions of a file."""
    path = ROOT / file
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return frozenset(f"{file}::{name}" for name in re.findall(r"^def (test_\w+)\(", text, re.MULTILINE))


def undefined(tests: list[str]) -> list[str]:
    """Ids whose function is not in its file."""
    return [test for test in tests if test.split("[")[0] not in defined(test.split("::")[0])]


def absent(tests: list[str], cases: Iterable[str]) -> list[str]:
    """Ids that are not among the cases; one without `[…]` stands for all cases of its function."""
    known = {name for case in cases for name in (case, case.split("[")[0])}
    return [test for test in tests if test not in known]


def collected(files: Iterable[str]) -> list[str]:
    """The cases that pytest collects from some files, in a process of its own."""
    run = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *sorted(files)]
    told = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout[-2000:] + told.stderr[-2000:]
    return [line for line in told.stdout.splitlines() if "::" in line]


def named_in(page: str) -> list[str]:
    return [test for row in rows(page) for test in row.tests]


@pytest.fixture(scope="module")
def page() -> str:
    return (DOCS / "coverage.md").read_text(encoding="utf-8")


def test_every_concept_has_its_row_and_no_other_has(page):
    listed: dict[str, list[str]] = {}
    for row in rows(page):
        listed.setdefault(row.area, []).append(row.concept)
    assert listed == CONCEPTS


def test_a_row_without_code_or_tests_says_what_is_missing(page):
    silent = [
        row.concept for row in rows(page) if not (row.code and row.tests) and "**Not yet:**" not in row.shown
    ]
    assert silent == []


def test_every_link_leads_to_a_heading(page):
    assert unlinked(page) == []


@pytest.mark.slow  # it loads all that is named
def test_every_name_command_and_file_is_there(page):
    named = [code for row in rows(page) for code in row.code]
    assert [code for code in named if (TORCH or ".torch" not in code) and not is_there(code)] == []


def test_every_test_is_defined(page):
    assert undefined(named_in(page)) == []


@pytest.mark.slow
def test_every_test_is_collected(page, request):
    wanted = [test for test in named_in(page) if TORCH or not test.startswith("tests/deep/")]
    left = absent(wanted, [item.nodeid for item in request.session.items])  # these are collected already
    lost = ["tests/lab/test_scenes.py::test_a_scene_is_told_in_80_columns[moon]"]
    files = {test.split("::")[0] for test in [*left, *lost]}
    assert absent([*left, *lost], collected(files)) == lost


def test_a_wrong_id_a_lost_name_and_a_lost_concept_are_noticed(page):
    wrong = page.replace("::test_marcia_has_613", "::test_marcia_has_614")
    assert undefined(named_in(wrong)) == ["tests/attacks/test_intersection.py::test_marcia_has_614"]
    for lost in (
        "sfumato.Laplas",
        "sfumato.book.none",
        "sfumato.mechanisms._grid",
        "sfumato lab moon",
        "examples/none.py",
    ):
        assert not is_there(lost), lost
    assert unlinked(page.replace("(local.md#the-coins)", "(local.md#the-dice)", 1)) == ["local.md#the-dice"]
    without = re.sub(r"^\| \[swapping\].*\n", "", page, flags=re.MULTILINE)
    assert len(rows(page)) - len(rows(without)) == 1
