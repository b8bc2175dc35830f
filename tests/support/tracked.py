"""Which files are the project's: what git tracks, or all that was unpacked where there is no git."""

from __future__ import annotations

import os
import subprocess
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tracked(*options: str) -> set[str]:
    """The files of the project, from its root; `options` are those of `git ls-files`."""
    if not (ROOT / ".git").exists():
        return _unpacked()
    out = subprocess.run(
        ["git", "ls-files", "-z", *options], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name for name in out.stdout.split("\0") if (ROOT / name).is_file()}


def _unpacked() -> set[str]:
    """Everything but what .gitignore names, all of whose lines are names of files or folders."""
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text().splitlines()]
    files: set[str] = set()
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not any(fnmatch(name, each) for each in ignored)]
        kept = (Path(folder, name) for name in names if not any(fnmatch(name, each) for each in ignored))
        files |= {path.relative_to(ROOT).as_posix() for path in kept}
    return files - {"PKG-INFO"}  # the one file that a source distribution adds
