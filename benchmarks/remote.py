"""Peers that need an environment of their own: asked over a pipe, timed where they run, in turns with ours.

pure-ldp, multi-freq-ldpy, pycanon and anjana need other versions of numpy, pandas and xxhash than the rest of
the peers. `benchmarks/install_peers.sh` puts them into a second environment beside the first, whose name ends
in `-local` (`$PEERS_LOCAL` names another folder); its interpreter runs `remote_peers.py` for as long as the
benchmark runs. Only the work itself is timed, by the clocks of the process that does it: what the pipe takes
falls on nobody, and while one side works the other waits.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.harness import Report, Timing
from benchmarks.harness import race as race_here

SERVER = Path(__file__).with_name("remote_peers.py")
PEERS = ("pure-ldp", "multi-freq-ldpy", "pycanon", "anjana")


@dataclass(frozen=True, slots=True)
class Work:
    """One thing that a peer stands ready to do.

    Attributes:
        who: The peer.
        key: Under which the process knows it.
        count: How many reports or rows one call takes.
        operation: What is called, in words.
        bytes: Of one report, where it makes reports.
    """

    who: str
    key: int
    count: int
    operation: str
    bytes: int | None

    def run(self) -> tuple[float, float]:
        """Do it once: wall seconds and CPU seconds."""
        made = _ask(do="run", key=self.key)
        return made["wall"], made["cpu"]

    @property
    def answer(self) -> Any:
        """What came out when it was done last, for tasks that answer something."""
        return _ask(do="answer", key=self.key)["answer"]

    @property
    def facts(self) -> dict[str, Any]:
        """What to keep with a figure that refers to this peer."""
        return {
            "peer": "same run",
            "peer_version": versions().get(self.who),
            "peer_operation": self.operation,
            "peer_count": self.count,
        }


def prepare(who: str, task: str, **given: Any) -> Work | None:
    """Make a peer ready for a task of `remote_peers.TASKS`; None where it is not installed.

    Args:
        who: The peer.
        task: What it shall do.
        given: What the task takes, in plain types.

    Raises:
        RuntimeError: if the peer is there and fails.
    """
    if _process() is None:
        return None
    made = _ask(do="prepare", who=who, task=task, given=given)
    if "missing" in made:
        return None
    return Work(who, made["key"], made["count"], made["operation"], made["bytes"])


def race(
    ours: Mapping[str, Callable[[], object]],
    theirs: Mapping[str, Work],
    *,
    repeats: int = 5,
    warm: int = 1,
    budget: float = 20.0,
) -> dict[str, Timing]:
    """Time contenders here and there in turns and give each one's best repetition.

    Args:
        ours: What to call in this process.
        theirs: What to have done in the other.
        repeats: Rounds in which each contender has one turn.
        warm: Untimed calls of ours before the first round. (Theirs compile when they are prepared.)
        budget: Seconds after which a contender, once it has had a turn, gets no more.
    """

    def here(name: str) -> tuple[float, float]:
        one = race_here({name: ours[name]}, repeats=1, warm=0)[name]
        return one.wall, one.cpu

    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in (*ours, *theirs)}
    for call in ours.values():
        for _ in range(warm):
            call()
    for _ in range(repeats):
        for name, taken in runs.items():
            if sum(wall for wall, _ in taken) <= budget:
                taken.append(here(name) if name in ours else theirs[name].run())
    return {name: _best(taken) for name, taken in runs.items()}


@cache
def versions() -> dict[str, str]:
    """The versions in the other environment, of the peers and of what they stand on; empty without it."""
    return {} if _process() is None else dict(_ask(do="versions"))


def note(report: Report) -> None:
    """Print and keep which peers run in the other environment, and on what."""
    report.heading("peers in an environment of their own", "version")
    found = versions()
    for who in PEERS:
        if found.get(who, "not installed") == "not installed":
            report.missing("version", who)
    for who, version in found.items():
        if version != "not installed":
            report.row("version", who, version, version=version)


def _best(taken: list[tuple[float, float]]) -> Timing:
    wall, cpu = min(taken)
    return Timing(wall, cpu, 1, tuple(each for each, _ in taken), tuple(each for _, each in taken))


@cache
def _process() -> subprocess.Popen[str] | None:
    folder = os.environ.get("PEERS_LOCAL") or f"{sys.prefix}-local"
    python = Path(folder) / "bin" / "python"
    if not python.exists():
        return None
    # Isolated: neither this folder, whose modules have common names, nor PYTHONPATH shall be seen there.
    process = subprocess.Popen(
        [str(python), "-I", str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(_close, process)
    return process


def _close(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=60)


def _ask(**request: Any) -> dict[str, Any]:
    process = _process()
    assert process is not None
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"the peers' process ended with {process.wait()}")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise RuntimeError(f"in the peers' process: {answer['error']}")
    return answer
