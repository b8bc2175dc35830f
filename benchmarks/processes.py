"""What a process takes together with all that it started: CPU seconds, peak memory.

Spark works in a JVM and in workers of Python, PostgreSQL in a process for each connection. Linux tells of
each process what it took, and what those children took that ended and were waited for.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["TICK", "cpu_seconds", "family", "peak"]

TICK = 1 / os.sysconf("SC_CLK_TCK")
"""The least that can be told apart, in seconds."""
_PARENT, _TIMES = 1, slice(11, 15)  # of the fields behind the name: user, system, and both of ended children


def family(root: int | None = None) -> dict[int, str]:
    """A process, by default this one, and all that descend from it and run: their names.

    Raises:
        RuntimeError: on a system without /proc.
    """
    return {process: name for process, (name, _) in _stats(root).items()}


def cpu_seconds(root: int | None = None) -> float:
    """What a process and its descendants took so far, those that ended among them, to a `TICK`.

    Raises:
        RuntimeError: on a system without /proc.
    """
    return sum(sum(map(int, fields[_TIMES])) for _, fields in _stats(root).values()) * TICK


def peak(process: int | None = None) -> float:
    """The greatest memory of one process so far, in MB; 0 if it ended."""
    try:
        status = Path(f"/proc/{process or os.getpid()}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024 if "VmHWM:" in status else 0.0


def _stats(root: int | None) -> dict[int, tuple[str, list[str]]]:
    found: dict[int, tuple[str, list[str]]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        before, _, after = text.rpartition(")")
        found[int(path.parent.name)] = before.partition("(")[2], after.split()
    if not found:
        raise RuntimeError("CPU seconds of other processes are read from /proc, which this system lacks.")
    children: dict[int, list[int]] = {}
    for process, (_, fields) in found.items():
        children.setdefault(int(fields[_PARENT]), []).append(process)
    wanted, kept = [root or os.getpid()], {}
    while wanted:
        process = wanted.pop()
        if process in found:
            kept[process] = found[process]
            wanted += children.get(process, [])
    return kept
