"""Qrlew and SmartNoise, which need an environment of their own, asked about a table of purchases.

`benchmarks/install_peers.sh` makes it beside the first one, with a name that ends in `-limits`
(`$PEERS_LIMITS` names another folder); its interpreter runs `limit_peers.py` once for each table.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv

from benchmarks.harness import Timing, best

__all__ = ["NAMES", "ask", "timed"]

NAMES = ("Qrlew", "SmartNoise")
_SERVER = Path(__file__).with_name("limit_peers.py")


def ask(rows: pa.Table, asks: Sequence[dict[str, Any]]) -> tuple[list[list[Any] | None], dict[str, str]]:
    """Answers to each of the requests, None where the peer is not installed; and the versions there.

    Raises:
        RuntimeError: if a peer is there and fails.
    """
    found, versions = _asked(rows, asks)
    return [each.get("answers") for each in found], versions


def timed(rows: pa.Table, asks: Sequence[dict[str, Any]]) -> list[Timing | None]:
    """How long each of the requests takes there, asked whole each time; None where the peer is missing.

    Raises:
        RuntimeError: if a peer is there and fails.
    """
    found, _ = _asked(rows, [{**each, "timed": True} for each in asks])
    return [best(each["walls"], each["cpus"]) if "walls" in each else None for each in found]


def _asked(rows: pa.Table, asks: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    folder = os.environ.get("PEERS_LIMITS") or f"{sys.prefix}-limits"
    python = Path(folder) / "bin" / "python"
    if not python.exists():
        return [{}] * len(asks), {}
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "rows.csv"
        csv.write_csv(rows, path)
        # Isolated: neither this folder nor PYTHONPATH shall be seen there.
        done = subprocess.run(
            [str(python), "-I", str(_SERVER)],
            input=json.dumps({"rows": str(path), "asks": list(asks)}),
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"in the peers' process: {done.stderr[-2000:]}")
    found = json.loads(done.stdout)
    return found["made"], found["versions"]
