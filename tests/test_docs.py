"""Documentation cannot drift: its Python blocks run, its links lead somewhere, its commands exist."""

import contextlib
import io
import pkgutil
import re
from pathlib import Path

import pytest

import sfumato as sf
from typed import TYPED

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob(".github/**/*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("benchmarks/*.md"),
        *ROOT.glob("examples/**/*.md"),
    ]
)
IDS = [str(page.relative_to(ROOT)) for page in PAGES]


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.S | re.M)


UNTYPED = [page for page in PAGES if blocks(page) and page not in TYPED]  # the others: test_typed.py


@pytest.mark.parametrize("page", UNTYPED, ids=lambda page: page.name)
def test_python_blocks_run(page, monkeypatch, tmp_path):
    if page.name in {"deep.md", "opacus.md"}:
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": page.stem}
    with contextlib.redirect_stdout(io.StringIO()):
        for number, block in enumerate(blocks(page)):
            exec(compile(block, f"{page.name}, block {number}", "exec"), namespace)


def test_the_docstring_of_the_package_runs():
    namespace: dict[str, object] = {}
    (block,) = re.findall(r"```python\n(.*?)```", sf.__doc__, flags=re.S)
    exec(block, namespace)


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_make_commands_exist(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    assert set(re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+)", page.read_text(), flags=re.M)) <= {
        pair for name in targets for pair in ((name, ""), ("", name))
    }


def test_every_public_mechanism_is_in_the_guide():
    guide = (ROOT / "docs/mechanisms.md").read_text()
    for name in sf.mechanisms.__all__:
        if isinstance(getattr(sf.mechanisms, name), type) and name not in {"Mechanism", "Example", "Median"}:
            assert f"`{name}" in guide or f"sf.{name}(" in guide, name


def test_every_accountant_is_in_the_guide():
    guide = (ROOT / "docs/accounting.md").read_text()
    for name in sf.accounting.ACCOUNTANTS:
        assert f"`{name}`" in guide, name


def test_the_glossary_lists_each_word_once_and_says_where_it_is():
    page = (ROOT / "docs/internals.md").read_text().split("## Glossary")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([a-z]+) \| (.+) \| `([\w.]+)` \|$", page, flags=re.M)
    words = [word for word, _, _ in rows]
    assert words == sorted(set(words))
    assert len(words) == page.count("\n| ") - 2  # every row but the heading is understood
    for _, _, path in rows:
        pkgutil.resolve_name(f"sfumato.{path}")


def test_the_picture_of_the_records_names_real_functions_and_classes():
    page = (ROOT / "docs/internals.md").read_text().split("## From text to table")[1].split("\n## ")[0]
    named = re.findall(r"\b(?:sql|plan|purchase|session|ledger)(?:\.\w+)+", page)
    assert len(named) >= 14
    for path in named:
        pkgutil.resolve_name(f"sfumato.{path}")
    # Each function on a line gives, or is a way to, the record below it: the records are classes of the code.
    records = set(re.findall(r"^ ([A-Z][a-z]+) ", page, flags=re.M))
    source = "".join(path.read_text() for path in (ROOT / "src/sfumato").rglob("*.py"))
    assert len(records) == 14
    assert [name for name in records if f"\nclass {name}" not in source] == []
