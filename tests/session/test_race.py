"""Many processes on one ledger: exactly what fits is answered."""

import subprocess
import sys
from pathlib import Path

from sfumato.ledger import Ledger

SCRIPT = Path(__file__).parent / "raced.py"
PROCESSES = 6


def test_a_race_of_processes_never_overdraws(tmp_path):
    ledger = tmp_path / "people.ledger"
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", str(SCRIPT), str(ledger), str(mine), str(PROCESSES)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for mine in range(PROCESSES)
    ]
    lines = []
    for process in running:
        out, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        lines += out.splitlines()
    assert sum(line.startswith("answer") for line in lines) == 12
    assert lines.count("refused") == PROCESSES
    with Ledger.open(ledger) as opened:
        assert opened.balance("people").remaining == 0
        assert opened.verify().ok
