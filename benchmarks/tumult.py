"""Tumult Analytics, which needs an environment of its own, asked for sums and means and watched from outside.

`benchmarks/install_peers.sh` makes it beside the first one, with a name that ends in `-tumult`
(`$PEERS_TUMULT` names another folder); its interpreter runs `tumult_peer.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.engine_servers import find_java
from benchmarks.harness import race
from benchmarks.processes import cpu_seconds, family, peak

__all__ = ["CITED", "measured"]

CITED = {"wall": 9.0, "cpu": 17.0, "together": 2500.0}
"""Measured before on a machine with two cores, warm: seconds, CPU seconds, MB."""
_SERVER = Path(__file__).with_name("tumult_peer.py")


def measured(source: str, threads: int, memory: str, *, warm: int, repeats: int) -> dict[str, Any] | None:
    """Seconds, memory and versions of its answers, warm; None where it is not installed.

    Raises:
        RuntimeError: if it is there and fails.
    """
    folder = os.environ.get("PEERS_TUMULT") or f"{sys.prefix}-tumult"
    python = Path(folder) / "bin" / "python"
    if not python.exists():
        return None
    find_java()
    # Isolated: neither this folder, whose modules have common names, nor PYTHONPATH shall be seen there.
    command = [str(python), "-I", str(_SERVER), source, str(threads), memory]
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=said, text=True) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        tell, hear = process.stdin, process.stdout

        def line() -> Any:
            text = hear.readline()
            if not text:
                process.wait()
                said.seek(0)
                raise RuntimeError(f"in Tumult's process: {said.read().strip()[-500:]}")
            return json.loads(text)

        def asked() -> object:
            tell.write("again\n")
            tell.flush()
            return line()

        versions = line()
        clock = partial(cpu_seconds, process.pid)
        timing = race({"Tumult": asked}, repeats=repeats, warm=warm, budget=60.0, clock=clock)["Tumult"]
        return {"timing": timing, "together": sum(map(peak, family(process.pid))), "versions": versions}
