"""The package as a whole: its public names, what importing it costs in modules, and what it may contain."""

import ast
import importlib
import pickle
import re
import subprocess
import sys
import types
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from tracked import tracked

ROOT = Path(__file__).parent.parent
TEXTS = {".py", ".md", ".toml", ".txt", ".in", ".sh", ".json", ".yml", ".cff", ""}
SOURCES = sorted((ROOT / "src" / "sfumato").rglob("*.py"))


LAZY = [
    ".".join(("sfumato", *path.parent.relative_to(ROOT / "src/sfumato").parts))
    for path in SOURCES
    if path.name == "__init__.py" and "lazy(globals()" in path.read_text()
]


def test_the_root_and_its_packages_load_their_names_on_first_use():
    assert len(LAZY) >= 8
    assert {"sfumato", "sfumato.games", "sfumato.testing"} <= set(LAZY)


@pytest.mark.parametrize("package", LAZY)
def test_every_public_name_resolves_and_is_listed_once(package):
    module = importlib.import_module(package)
    assert len(module.__all__) == len(set(module.__all__))
    assert sorted(module.__all__) == dir(module)
    for name in module.__all__:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("package", LAZY)
def test_an_unknown_name_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Laplac'"):
        _ = importlib.import_module(package).Laplac


@pytest.mark.parametrize("package", LAZY)
def test_type_checkers_see_the_same_objects_as_the_loader(package):
    module = importlib.import_module(package)
    seen = {}  # every import of the file: those that type checkers alone run, and those that always run
    for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("sfumato"):
            seen |= {name.name: node.module for name in node.names}
    for name in set(module.__all__) & set(seen):
        home = importlib.import_module(seen[name])
        assert getattr(module, name) is getattr(home, name), name
    defined = {"__version__", "examples", "modules"}
    assert set(module.__all__) - defined <= set(seen) <= set(module.__all__) | {"lazy", "MissingExtra"}


@pytest.mark.parametrize("package", LAZY)
def test_what_a_package_exports_can_be_imported_and_pickled_by_reference(package):
    module = importlib.import_module(package)
    for name in module.__all__:
        scope = {}
        exec(f"from {package} import {name} as found", scope)
        value = getattr(module, name)
        assert scope["found"] is value
        if isinstance(value, type | types.FunctionType):
            assert pickle.loads(pickle.dumps(value)) is value


def _modules_after(statement: str) -> set[str]:
    code = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return {name.split(".")[0] for name in out.split()}


def test_the_core_imports_only_its_dependencies():
    third_party = _modules_after(f"import sfumato as sf; [getattr(sf, n) for n in {sf.__all__!r}]")
    third_party -= set(sys.stdlib_module_names) | {"sfumato", "__mp_main__"}
    ours = {"numpy", "scipy", "cryptography", "flint", "sqlglot", "duckdb", "pyarrow"}
    # numpy tries charset_normalizer, which a tester of HTTP APIs brings
    brought_along = {
        "charset_normalizer",
        "_cffi_backend",
        "cffi",
        "pycparser",
        "cython_runtime",
        "mypy_extensions",
        "cloudpickle",
    }
    assert {name for name in third_party if not name.startswith("_")} <= ours | brought_along


def test_importing_the_root_loads_no_numerical_library():
    assert not _modules_after("import sfumato") & {
        "numpy", "scipy", "flint", "cryptography", "duckdb", "pyarrow", "sqlglot", "matplotlib", "rich",
    }  # fmt: skip


_FIRST_ANSWER = """
import sfumato as sf
sf.Session
session = set(sys.modules)
with open("rows.csv", "w") as file:
    file.write("id,city,x\\n1,a,1\\n2,b,2\\n")
schema = {"city": sf.Enum("a", "b"), "x": sf.Int(0, 2)}
rows = sf.PrivateTable("rows", source="rows.csv", unit=sf.PrivacyUnit("id", max_groups=1), schema=schema)
opened = sf.Session(rows, budget=sf.Budget(epsilon=2, delta=1e-6), ledger="rows.ledger")
str(opened.sql("SELECT city, COUNT(*) AS n, SUM(x) AS s FROM rows GROUP BY city").release(epsilon=0.3))
rows = sf.PrivateTable("rows", source="rows.parquet", unit=sf.PrivacyUnit.row(), schema={"x": sf.Int(0, 2)})
str(sf.Session(rows, budget=sf.Budget(epsilon=2)).sql("SELECT COUNT(*) AS n FROM rows").release(epsilon=0.3))
print(*session & heavy, *(set(sys.modules) & heavy))
"""


def test_neither_a_session_nor_its_first_answer_loads_what_it_does_not_need(tmp_path):
    # Each of these takes a quarter of the time of all other imports, or more.
    heavy = {"scipy", "pandas", "matplotlib", "rich", "polars", "psycopg", "pyarrow.compute", "numpy.f2py"}
    heavy |= {"pyarrow.parquet", "pyarrow.fs", "pyarrow.dataset", "pydantic", "typer", "ssl", "asyncio"}
    beside = "anonymity attacks audit book catalog cli demo dossier explain games lab local plots validation"
    heavy |= {f"sfumato.{name}" for name in beside.split()}
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "rows.parquet")
    code = f"import sys; heavy = {heavy!r}\n{_FIRST_ANSWER}"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert loaded.stdout.split() == []
    assert importlib.import_module("pandas")  # or that it is not loaded would say nothing


def test_dataclasses_are_those_that_are_made_quickly():
    made = {
        path
        for path in SOURCES
        if re.search(r"^from dataclasses import.*\bdataclass\b", path.read_text(), re.M)
    }
    assert {path.name for path in made} <= {"_lattice.py"}  # which is ordered


def test_nothing_in_the_package_reaches_for_the_test_helpers():
    # The seeded stream replaces the cryptographic one: a release path that reached it would be predictable.
    for path in SOURCES:
        if "testing" in path.parts:
            continue
        text = path.read_text()
        assert "sfumato.testing" not in re.sub(r'""".*?"""|#.*', "", text, flags=re.S), path
        if path.name != "random.py":
            assert "random._replace" not in text, path


def test_tracked_text_names_no_machine_path_and_no_registry():
    pattern = re.compile(r"/(work|root|farm|home/[a-z]+)/|pypi\.org|pythonhosted|registry\.npmjs|deb\.debian")
    for name in tracked():
        path = ROOT / name
        if path.suffix in TEXTS and path.is_file():
            if path == Path(__file__):
                continue
            assert not pattern.search(path.read_text()), name


def test_no_pattern_is_possessive():
    """Python before 3.11.5 mistakes possessive forms that hold others: CSV quotes went unseen there."""
    possessive = re.compile(r"(?:\]|\)|\\.|\.|')(?:\*|\+|\?|\{\d*,?\d*\})\+(?!\+)")
    lines = [
        f"{path.name}: {line.strip()}"
        for path in SOURCES
        for line in path.read_text().splitlines()
        if re.search(r"\br?[bf]?r?[\"']", line) and "compile" in path.read_text() and possessive.search(line)
    ]
    assert lines == []
