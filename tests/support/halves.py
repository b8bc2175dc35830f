"""How two processes share the tests: whole files, so that each one loads its own alone, and as much to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from durations import QUICK, Measured, parsed

__all__ = ["first_half"]

_SERVER = ("tests/ledger/", "tests/session/test_earlier_ledger.py")
"""What needs PostgreSQL stays together: one server for the whole run."""
_BROWSER = "tests/page/"
"""What needs a browser, likewise."""
_NOT_QUICK = (_BROWSER, "tests/deep/test_named.py", "tests/deep/test_trainer.py")
"""What `make quick` does not even load: a browser takes long to start, and `transformers` to import."""
_LOAD = 0.03
"""Seconds to load a file of tests, and of all its tests that are too fast to be listed."""


def first_half(files: Iterable[str], known: Mapping[str, Measured], *, quick: bool = False) -> frozenset[str]:
    """The files of the first process; the second one takes all others.

    Args:
        files: The files of all tests, from the root of the project.
        known: What is known of their functions.
        quick: Whether each function runs no longer than `make quick` lets it.
    """
    takes: dict[str, float] = defaultdict(float)
    for function, each in known.items():
        takes[function.split("::")[0]] += min(QUICK, each.total) if quick else each.total
    shares: dict[str, list[str]] = defaultdict(list)
    for file in sorted(files):
        together = "server" if file.startswith(_SERVER) else _BROWSER if file.startswith(_BROWSER) else file
        shares[together].append(file)
    seconds = {name: sum(_LOAD + takes[file] for file in those) for name, those in shares.items()}
    first: set[str] = set()
    ahead = 0.0  # of the first process
    for name in sorted(shares, key=lambda name: (-seconds[name], name)):
        if ahead <= 0:
            first.update(shares[name])
        ahead += seconds[name] if ahead <= 0 else -seconds[name]
    return frozenset(first)


def pytest_addoption(parser):
    parser.addoption("--half", type=int, choices=(1, 2), help="run the tests of half the files")


def pytest_configure(config):
    half = config.getoption("--half")
    if half is not None:
        config.pluginmanager.register(
            _Half(config.rootpath, half, quick="not slow" in config.option.markexpr)
        )


class _Half:
    """Leaves the files of the other half out before they are loaded."""

    def __init__(self, root: Path, half: int, *, quick: bool) -> None:
        self.root, self.half = root, half
        listed = root / "tests" / "durations.txt"
        known = parsed(listed.read_text()) if listed.exists() else {}
        files = [self._name(file) for file in (root / "tests").rglob("test_*.py")]
        self.left_out = _NOT_QUICK if quick else ()
        self.first = first_half([file for file in files if not self._is_left_out(file)], known, quick=quick)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _is_left_out(self, name: str) -> bool:
        return name.startswith(self.left_out)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if collection_path.suffix != ".py":
            return None
        name = self._name(collection_path)
        return True if self._is_left_out(name) or (name in self.first) != (self.half == 1) else None
