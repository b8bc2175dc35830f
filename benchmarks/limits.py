"""Qrlew and SmartNoise, which need an environment of their own, asked about a skewed table.

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

__all__ = ["NAMES", "ask"]

NAMES = ("Qrlew", "SmartNoise")
_SERVER = Path(__file__).with_name("limit_peers.py")


def ask(rows: pa.Table, asks: Sequence[dict[str, Any]]) -> tuple[list[list[Any] | None], dict[str, str]]:
    """Answers to each of the requests, None where the peer is not installed; and the versions there.

    Raises:
        RuntimeError: if a peer is there and fails.
    """
    folder = os.environ.get("PEERS_LIMITS") or f"{sys.prefix}-limits"
    python = Path(folder) / "bin" / "python"
    if not python.exists():
        return [None] * len(asks), {}
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
    return [each.get("answers") for each in found["made"]], found["versions"]
