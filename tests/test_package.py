"""The package as a whole: its public names, what importing it costs in modules, and what it may contain."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato as sf
from tracked import tracked

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "sfumato").rglob("*.py"))


def test_every_public_name_resolves_and_is_listed_once():
    assert len(sf.__all__) == len(set(sf.__all__))
    assert sorted(sf.__all__) == dir(sf)
    for name in sf.__all__:
        assert getattr(sf, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Laplac'"):
        _ = sf.Laplac


def test_type_checkers_see_the_same_names_as_the_loader():
    text = (ROOT / "src/sfumato/__init__.py").read_text()
    block = text.split("if TYPE_CHECKING:")[1].split("__all__")[0]
    seen = set(re.findall(r"\b([A-Za-z_]+)\b", block)) - {"from", "sfumato", "import"}
    assert set(sf.__all__) - {"__version__"} <= seen


def _modules_after(statement: str) -> set[str]:
    code = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return {name.split(".")[0] for name in out.split()}


def test_the_core_imports_only_its_dependencies():
    third_party = _modules_after(f"import sfumato as sf; [getattr(sf, n) for n in {sf.__all__!r}]")
    third_party -= set(sys.stdlib_module_names) | {"sfumato", "__mp_main__"}
    ours = {"numpy", "scipy", "cryptography", "flint", "sqlglot", "duckdb", "pyarrow"}
    brought_along = {"_cffi_backend", "cffi", "pycparser", "cython_runtime", "mypy_extensions", "cloudpickle"}
    assert {name for name in third_party if not name.startswith("_")} <= ours | brought_along


def test_importing_the_root_loads_no_numerical_library():
    assert not _modules_after("import sfumato") & {
        "numpy", "scipy", "flint", "cryptography", "duckdb", "pyarrow", "sqlglot", "matplotlib", "rich",
    }  # fmt: skip


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
        if path.suffix in {".py", ".md", ".toml", ".txt", ".in", ".sh", ".json", ""} and path.is_file():
            if path == Path(__file__):
                continue
            assert not pattern.search(path.read_text()), name
