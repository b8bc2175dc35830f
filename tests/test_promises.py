"""Every sentence of the threat model that promises something has a test, and each named test exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
_ROW = re.compile(r"^\| (?P<words>.+?) \| (?P<tests>`tests/.+`) \|$", re.MULTILINE)


def plain(text: str) -> str:
    """On one line, and links as their words."""
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", " ".join(text.split()))


def section(text: str, title: str) -> str:
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


def bullets(text: str) -> list[tuple[str, str]]:
    """Each bullet: its bold beginning, and what follows."""
    found = [plain(each) for each in re.split(r"^- ", text, flags=re.MULTILINE)[1:]]
    return [
        (lead, rest.strip())
        for lead, rest in (re.match(r"(\*\*.+?\*\*)(.*)", each).groups() for each in found)
    ]


def sentences(text: str) -> list[str]:
    return [each for each in re.split(r"(?<=\.) (?=[A-Z])", text) if each]


def rows(text: str) -> list[tuple[str, str, list[str]]]:
    """Each row: its bold beginning, the words it quotes, the tests it names."""
    found = []
    for row in _ROW.finditer(text):
        lead, words = re.match(r"(\*\*.+?\*\*):? ?(.*)", row["words"]).groups()
        found.append((lead, words, re.findall(r"`(tests/[^`]+)`", row["tests"])))
    return found


def unproven(security: str, promises: str) -> list[str]:
    """Sentences of the promises that no row quotes, and rows that quote what is not there."""
    known = rows(promises)
    promised = bullets(section(security, "What is promised"))
    missing = [
        f"{lead} {sentence}"
        for lead, rest in promised
        for sentence in sentences(rest)
        if not any(own == lead and sentence in words for own, words, _ in known)
    ]
    all_words = plain(security)
    return missing + [f"{lead} {words}" for lead, words, _ in known if words not in all_words]


@cache
def defined(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def gone(promises: str) -> list[str]:
    """Tests that are named and do not exist."""
    found = []
    for _, _, tests in rows(promises):
        for test in tests:
            file, _, name = test.partition("::")
            if not (ROOT / file).is_file() or (name and name not in defined(ROOT / file)):
                found.append(test)
    return found


@pytest.fixture(scope="module")
def security() -> str:
    return (ROOT / "SECURITY.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def promises() -> str:
    return (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")


def test_every_promise_has_a_row_with_tests(security, promises):
    assert len(bullets(section(security, "What is promised"))) >= 8
    assert unproven(security, promises) == []


def test_every_test_that_is_named_exists(promises):
    assert sum(len(tests) for _, _, tests in rows(promises)) >= 50
    assert gone(promises) == []


def test_a_new_promise_a_changed_one_and_a_lost_test_are_noticed(security, promises):
    new = security.replace("## What is not promised", "- **More.** It flies.\n\n## What is not promised", 1)
    assert unproven(new, promises) == ["**More.** It flies."]
    changed = security.replace("never below the truth", "rarely below the truth")
    assert len(unproven(changed, promises)) == 2
    assert gone(promises.replace("::test_what_was_read_is_erased", "::test_of_nothing"))
