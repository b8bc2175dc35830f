"""Fits of Adult, ours and mbi's, each in a process of its own: its memory and its CPU seconds are its own.

mbi has an environment of its own beside this one, whose name ends in `-synth` (`$PEERS_SYNTH` names another
folder). A fit that fails or takes too long is told as such, and the others go on. `$RUNS` names a folder that
keeps each finished fit: a benchmark that was cut off goes on there where it stopped. `$JOBS` fits run at a
time; with 1, which is the default, ours and theirs take turns seed by seed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.synth_adult import Adult, area, variation

__all__ = ["DELTA", "Case", "runs"]

DELTA = 1e-9
SEEDS, SECONDS = 5, 1_800  # how many fits are averaged, and how long one may take by the clock
_PEERS = Path(__file__).with_name("synth_peers.py")

Case: TypeAlias = tuple[str, str, float]
"""Whose fit it is, the method and epsilon."""


def runs(data: Adult, cases: Sequence[Case]) -> dict[Case, list[dict[str, Any]]]:
    """What each fit took and how good it is, by case; a fit that failed has `failed` with the reason."""
    ours = int(os.environ.get("SEEDS", SEEDS))
    theirs = int(os.environ.get("PEER_SEEDS", ours))
    found: dict[Case, list[dict[str, Any]]] = {case: [] for case in cases}
    turns = [
        (case, seed)
        for seed in range(max(ours, theirs))
        for case in cases
        if seed < (theirs if case[0] == "mbi" else ours)
    ]
    with tempfile.TemporaryDirectory() as place:
        rows = Path(place) / "rows.npz"
        np.savez(rows, rows=data.train, names=np.array(data.names), sizes=np.array(data.sizes))
        with ThreadPoolExecutor(int(os.environ.get("JOBS", "1"))) as workers:
            waiting = [(case, workers.submit(_kept, data, case, seed, rows)) for case, seed in turns]
            for case, run in waiting:
                found[case].append(run.result())
    return found


def _kept(data: Adult, case: Case, seed: int, rows: Path) -> dict[str, Any]:
    """A fit, or what is kept of it."""
    folder = os.environ.get("RUNS")
    path = Path(folder or rows.parent) / f"{'-'.join(map(str, case))}-{seed}.json"
    if folder and path.exists():
        return dict(json.loads(path.read_text()))
    made = _theirs(data, case, seed, rows) if case[0] == "mbi" else _ours(case)
    if folder and "failed" not in made:
        Path(folder).mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(made))
    print(f"    {' '.join(map(str, case))}, seed {seed}: {_told(made)}", flush=True)
    return made


def _told(made: dict[str, Any]) -> str:
    if "failed" in made:
        return str(made["failed"])
    return f"{made['cpu']:.1f} CPU s, variation {made['variation']:.4f}, AUC {made['auc']:.3f}"


def _ours(case: Case) -> dict[str, Any]:
    _, method, epsilon = case
    return _asked([sys.executable, "-m", "benchmarks.synth", method, str(epsilon)])


def _theirs(data: Adult, case: Case, seed: int, rows: Path) -> dict[str, Any]:
    """A fit of mbi, whose rows are scored here as ours are."""
    _, method, epsilon = case
    python = Path(os.environ.get("PEERS_SYNTH") or f"{sys.prefix}-synth") / "bin" / "python"
    if not python.exists():
        return {"failed": "not installed"}
    out = rows.with_name(f"{method}-{epsilon}-{seed}.npy")
    # Isolated: neither this folder nor PYTHONPATH shall be seen there.
    asked = [str(python), "-I", str(_PEERS), method, str(epsilon), str(DELTA), str(seed), str(rows), str(out)]
    made = _asked(asked)
    if "failed" in made:
        return made
    cells = np.load(out)
    return made | {"variation": variation(data, cells), "auc": area(data, cells)}


def _asked(command: Sequence[str]) -> dict[str, Any]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {"failed": f"not done in {SECONDS} s"}
    if done.returncode or not done.stdout.strip():
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        return {"failed": f"failed: {last[:200]}"}
    return dict(json.loads(done.stdout.splitlines()[-1]))
