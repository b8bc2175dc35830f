"""Whether the checkout is ready for a release: `make release-check`. Nothing is published.

It looks at the version and the changelog, builds the wheel and the source distribution, installs the wheel in
an empty environment, and runs the demonstration there. What was checked lands in dist/, with release notes.
Each line says `ok`, or `no` and what to do; all are looked at before it ends.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
_PART = re.compile(
    r"^## \[(?P<name>[^]]+)\](?: - (?P<day>\d{4}-\d{2}-\d{2}))?\n(?P<text>.*?)(?=^## |\Z)", re.M | re.S
)


class Unready(Exception):
    """What is not ready, in one sentence with the fix."""


def version(root: Path = ROOT) -> str:
    """The version of the package, from the one place where it is written.

    Raises:
        Unready: if it is not of the form 1.2.3.
    """
    text = (root / "src/sfumato/__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, flags=re.M)
    if found is None or not re.fullmatch(r"\d+\.\d+\.\d+", found[1]):
        raise Unready('Write __version__ = "1.2.3" in src/sfumato/__init__.py: three numbers.')
    return found[1]


def written_once(root: Path, number: str) -> None:
    """Raises Unready if a file that describes the project has a version of its own."""
    for name in ("pyproject.toml", "CITATION.cff"):
        if re.search(r"^version\b", (root / name).read_text(encoding="utf-8"), flags=re.M):
            raise Unready(
                f"{name} has a version of its own; {number} belongs in src/sfumato/__init__.py alone."
            )


def notes(changelog: str, number: str) -> str:
    """The release notes: what the changelog says of the version.

    Raises:
        Unready: if the version has no part with a date, or an empty one, or changes are still unreleased.
    """
    parts = {part["name"]: part for part in _PART.finditer(changelog)}
    if number not in parts or parts[number]["day"] is None:
        raise Unready(
            f"CHANGELOG.md has no part for it; write ## [{number}] - YYYY-MM-DD below ## [Unreleased]."
        )
    if not parts[number]["text"].strip():
        raise Unready(f"The part of {number} in CHANGELOG.md is empty; say what changed.")
    if "Unreleased" in parts and "- " in parts["Unreleased"]["text"]:
        raise Unready(
            f"Changes are left under Unreleased in CHANGELOG.md; move them to the part of {number}."
        )
    return parts[number]["text"].strip() + "\n"


def committed(root: Path) -> None:
    """Raises Unready if files differ from the last commit: what is built must be what is tagged."""
    if (root / ".git").exists():
        command = ["git", "status", "--porcelain", "--untracked-files=normal"]
        changed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
        names = [line[3:] for line in changed.splitlines()]
        if names:
            raise Unready(f"Not committed: {', '.join(names[:5])}; commit or remove it.")


def run(command: list[str | Path], where: Path, **environment: str) -> str:
    """What a command prints.

    Raises:
        Unready: if it fails, with the last lines of what it said.
    """
    bare = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, env=bare | environment)
    if done.returncode != 0:
        last = " ".join((done.stderr or done.stdout).split())[-500:]
        raise Unready(f"{Path(command[0]).name} {' '.join(map(str, command[1:4]))} failed: {last}")
    return done.stdout


def build(source: Path, folder: Path, *kinds: str) -> list[Path]:
    """The distributions that are built of a checkout, or of an unpacked source distribution."""
    targets = [option for kind in kinds for option in ("-t", kind)]
    run([sys.executable, "-m", "hatchling", "build", *targets, "-d", folder], source)
    return sorted(folder.iterdir())


def holds(wheel: Path, number: str) -> None:
    """Raises Unready if the wheel lacks its types, its license, or says another version."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        about = f"sfumato-{number}.dist-info"
        for name in ("sfumato/py.typed", f"{about}/METADATA", f"{about}/licenses/LICENSE"):
            if name not in names:
                raise Unready(f"{wheel.name} has no {name}; see [tool.hatch] in pyproject.toml.")
        if f"\nVersion: {number}\n" not in archive.read(f"{about}/METADATA").decode():
            raise Unready(f"{wheel.name} does not say that it is {number}.")


def made_again(sdist: Path, wheel: Path, folder: Path) -> None:
    """Raises Unready if the source distribution does not give the same wheel, byte by byte."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (source,) = (folder / "unpacked").iterdir()
    (again,) = build(source, folder / "again", "wheel")
    if again.read_bytes() != wheel.read_bytes():
        raise Unready("The source distribution gives another wheel; see what [tool.hatch.build] leaves out.")


def works_alone(wheel: Path, number: str, folder: Path) -> None:
    """Raises Unready if the wheel does not install in an empty environment, or its demonstration fails."""
    home, empty = folder / "environment", folder / "empty"
    empty.mkdir()
    venv.create(home, with_pip=True)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    python, command = scripts / "python", scripts / "sfumato"
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel], empty)
    if run([command, "--version"], empty).split() != ["sfumato", number]:
        raise Unready(f"The installed command does not say that it is {number}.")
    place = run([python, "-c", "import sfumato; print(sfumato.__file__)"], empty).strip()
    if home.resolve() not in Path(place).resolve().parents:
        raise Unready(f"The installed package was not the one that ran: {place}.")
    said = run([command, "demo"], empty, TMPDIR=str(folder))
    if "± noise" not in said:
        raise Unready("The demonstration ran and showed no answer with its noise.")


def check(what: str, act: Callable[[], object]) -> bool:
    """Say how one thing stands."""
    try:
        act()
    except Unready as problem:
        print(f"no  {what}: {problem}", flush=True)
        return False
    print(f"ok  {what}", flush=True)
    return True


def main() -> int:
    """Look at all; 0 if it is ready."""
    try:
        number = version()
    except Unready as problem:
        print(f"no  version: {problem}")
        return 1
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    ready = [
        check(f"version {number}, written once", lambda: written_once(ROOT, number)),
        check(f"changelog of {number}", lambda: notes(changelog, number)),
        check("all committed", lambda: committed(ROOT)),
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = check("wheel and source distribution build", lambda: build(ROOT, folder / "dist"))
        ready.append(built)
        if built:
            wheel = folder / "dist" / f"sfumato-{number}-py3-none-any.whl"
            sdist = folder / "dist" / f"sfumato-{number}.tar.gz"
            ready += [
                check("types, license and version in the wheel", lambda: holds(wheel, number)),
                check(
                    "the same wheel from the source distribution", lambda: made_again(sdist, wheel, folder)
                ),
                check(
                    "demo from the wheel in an empty environment", lambda: works_alone(wheel, number, folder)
                ),
            ]
        if not all(ready):
            print("Not ready for a release; nothing was written.")
            return 1
        target = ROOT / "dist"
        target.mkdir(exist_ok=True)
        for file in (wheel, sdist):
            shutil.copy(file, target)
        (target / f"notes-{number}.md").write_text(notes(changelog, number), encoding="utf-8")
    print(f"Ready: {wheel.name}, {sdist.name} and notes-{number}.md are in dist/. Nothing was published.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
