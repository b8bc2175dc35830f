"""What a newcomer finds: the map in CONTRIBUTING.md, templates, hosted checks, support, how to cite."""

import re
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement

from sfumato.engines.postgres.asking import OLDEST
from tracked import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = [line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if "Python :: 3." in line]
ASKED_FOR = (
    "a mechanism",
    "a function of SQL",
    "an engine",
    "a kind of column",
    "an attack",
    "an audit",
    "a section of the page",
    "a page of the docs",
    "a benchmark",
)


def text(name: str) -> str:
    return (ROOT / name).read_text()


def cells(page: str) -> dict[str, list[str]]:
    """Rows of the tables of a page, by their first cell."""
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    return {first: others for first, *others in rows}


def targets(cell: str) -> list[str]:
    return re.findall(r"\]\(([^)#]+)[^)]*\)", cell)


@pytest.fixture(scope="module")
def rows() -> dict[str, list[str]]:
    return cells(text("CONTRIBUTING.md").partition("## I want to add …")[2].partition("\n## ")[0])


@pytest.mark.parametrize("thing", ASKED_FOR)
def test_the_map_leads_to_files_and_tests(rows, thing):
    first, then, tests = rows[thing]
    for place in [*targets(first), *targets(then), *targets(tests)]:
        assert (ROOT / place).exists(), place
    assert targets(first)
    assert [place for place in targets(tests) if place.startswith("tests/")] == targets(tests) != []


def test_every_row_of_the_map_is_looked_at(rows):
    assert set(rows) == {*ASKED_FOR, "I want to add …", "---", "an aggregate of SQL"}


def workflow() -> dict[str, object]:
    return yaml.safe_load(text(".github/workflows/test.yml"))


def test_hosted_checks_run_the_two_commands_on_every_python():
    (job,) = workflow()["jobs"].values()
    assert job["strategy"]["matrix"]["python"] == PYTHONS
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == ["make demo PYTHON=python", "make test PYTHON=python"]


def test_hosted_checks_may_only_read_and_run_what_is_pinned():
    assert workflow()["permissions"] == {"contents": "read"}
    assert "secrets" not in text(".github/workflows/test.yml").partition("name: test")[2]
    (job,) = workflow()["jobs"].values()
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", each) for each in used)


def test_templates_are_named_and_ask_for_no_real_data():
    templates = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.md"))
    assert [path.stem for path in templates] == ["bug", "idea", "question"]
    for path in templates:
        _, front, body = path.read_text().split("---\n", 2)
        assert set(yaml.safe_load(front)) == {"name", "about", "labels"}
        assert body.count("```") % 2 == 0
    assert "Made-up data only" in templates[0].read_text()
    assert "SECURITY.md" in templates[0].read_text()
    assert "make test" in text(".github/pull_request_template.md")


def oldest(name: str) -> str:
    """The oldest version of a dependency that pyproject.toml allows."""
    lines = [
        *PROJECT["dependencies"],
        *(line for part in PROJECT["optional-dependencies"].values() for line in part),
    ]
    (found,) = {str(each.specifier) for line in lines if (each := Requirement(line)).name == name}
    return found.removeprefix(">=")


def test_the_support_policy_says_what_is_declared():
    table = cells(text("SUPPORT.md"))
    assert table["Python"][0] == ", ".join(PYTHONS)
    least, most = re.fullmatch(r">=(3\.\d+),<3\.(\d+)", PROJECT["requires-python"]).groups()
    assert PYTHONS[0] == least
    assert PYTHONS[-1] == f"3.{int(most) - 1}"
    assert table["DuckDB"][0] == f"{oldest('duckdb')} or later"
    assert table["Spark"][0] == f"PySpark {oldest('pyspark')} or later, with Java 17 or later"
    assert table["Delta tables"][0] == f"deltalake {oldest('deltalake')} or later"
    assert table["PyTorch"][0] == f"{oldest('torch')} or later"
    assert table["PostgreSQL"][0] == f"{OLDEST // 10000} or later, in UTF8"
    guide = text("docs/engines.md")
    assert f"PostgreSQL {OLDEST // 10000} or later, a database in UTF8" in guide
    assert f"PySpark {oldest('pyspark').split('.')[0]} with Java 17 or newer" in guide


def test_how_to_cite_agrees_with_the_package():
    found = yaml.safe_load(text("CITATION.cff"))
    assert found["authors"] == [{"name": "The Sfumato developers"}]
    assert found["license"] == PROJECT["license"]
    assert found["abstract"] == PROJECT["description"]
    assert found["keywords"] == PROJECT["keywords"]
    assert "version" not in found  # it is written once, in the package


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "SUPPORT.md"])
def test_contacts_are_the_code_host_and_no_address_is_made_up(name):
    page = text(name)
    assert "@" not in page
    assert "in private" in page
    assert "Report a vulnerability" in text("SECURITY.md")
