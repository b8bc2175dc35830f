"""What is shipped: extras for code that exists, one version, a full sdist, the package alone in the wheel."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import sfumato as sf
from tracked import ROOT, tracked

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
BROUGHT = {"pandas", "polars", "triton", "markupsafe"}  # by whoever has the library; by PyTorch; by Jinja
TOOLS = {"test", "lint", "docs"}
APART = {
    "spark",
    "delta",
    "torch",
    "transformers",
}  # half a gigabyte or more, or Java; a reader of logs: asked for by name
LOADED = {"httptools", "python-multipart"}  # by uvicorn and Starlette, where they are there
NOT_SHIPPED = {".ci/run"}


def requirements(lines: list[str]) -> list[Requirement]:
    """What the lines ask for, with the package's own extras taken apart."""
    found = [Requirement(line) for line in lines]
    own = [
        line for each in found if each.name == "sfumato" for extra in each.extras for line in EXTRAS[extra]
    ]
    others = [each for each in found if each.name != "sfumato"]
    return others + (requirements(own) if own else [])


def names(lines: list[str]) -> set[str]:
    return {canonicalize_name(each.name) for each in requirements(lines)}


def imported() -> set[str]:
    """The distributions of all modules that the package imports anywhere."""
    modules: set[str] = set()
    for path in (ROOT / "src" / "sfumato").rglob("*.py"):
        # One import a line, as the linter has it; to parse all files would take seconds.
        found = re.findall(
            r"^ *(?:from (\w+)[\w.]* import |import (\w+)[\w.]*(?: as \w+)?$)", path.read_text(), re.M
        )
        modules |= {name for pair in found for name in pair if name}
    homes = packages_distributions()
    return {
        canonicalize_name(home)
        for module in modules - set(sys.stdlib_module_names) - {"sfumato"}
        for home in homes.get(module, [module])
    }


def test_the_package_imports_what_it_requires_and_nothing_else():
    optional = [line for extra, lines in EXTRAS.items() if extra not in TOOLS for line in lines]
    assert (imported() - BROUGHT) | LOADED == names(PROJECT["dependencies"]) | names(optional)


def test_the_extra_for_everything_is_everything_but_tools_and_what_is_apart():
    assert names(EXTRAS["all"]) == names(
        [line for extra, lines in EXTRAS.items() if extra not in TOOLS | APART | {"all"} for line in lines]
    )


def test_every_extra_that_is_named_exists():
    for name in tracked():
        if name.endswith((".py", ".md", ".ipynb", ".sh", "Makefile")):
            found = re.findall(r"sfumato\\?\[([a-z, ]+)\\?\]|'\.\[([a-z, ]+)\]'", (ROOT / name).read_text())
            assert {extra.strip() for pair in found for extra in "".join(pair).split(",")} <= set(EXTRAS), (
                name
            )


@pytest.mark.parametrize(
    ("lock", "extras"), [("core", ["plots"]), ("test", ["test", "lint"]), ("docs", ["docs"])]
)
def test_what_is_pinned_is_what_is_required(lock, extras):
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    pins: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==([^ ]+)", text, flags=re.M):
        pins.setdefault(name, set()).add(version)
    required = [*PROJECT["dependencies"], *(line for extra in extras for line in EXTRAS[extra])]
    for each in requirements(required):
        pinned = pins[canonicalize_name(each.name)]
        assert all(each.specifier.contains(version) for version in pinned), f"run make lock: {each}"
        assert any(part.operator in {">=", "=="} for part in each.specifier), f"{each} has no oldest version"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return folder


def test_the_version_is_written_once(built):
    assert "version" not in PROJECT
    assert PROJECT["dynamic"] == ["version"]
    names = {path.name for path in built.iterdir()}
    assert names == {f"sfumato-{sf.__version__}.tar.gz", f"sfumato-{sf.__version__}-py3-none-any.whl"}


def test_the_source_distribution_holds_all_that_is_tracked(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert tracked() - held == NOT_SHIPPED & tracked()
    assert held - tracked("--cached", "--others", "--exclude-standard") == {"PKG-INFO"}


def test_the_wheel_holds_the_package_alone(built):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        held = set(archive.namelist())
    about = {name for name in held if name.startswith(f"sfumato-{sf.__version__}.dist-info/")}
    ours = {name.removeprefix("src/") for name in tracked("--cached", "--others", "--exclude-standard")}
    assert held - about == {name for name in ours if name.startswith("sfumato/")}
    assert "sfumato/py.typed" in held  # type checkers of others believe our annotations
    assert "Typing :: Typed" in PROJECT["classifiers"]
