"""Kill -9 at named points of the data path: never an unaccounted release, never an overdraft."""

import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.ledger import Ledger

SCRIPT = Path(__file__).parent / "killed.py"
TIMES = 20


def run(folder: Path, point: str, times: int) -> list[str]:
    command = [sys.executable, "-W", "ignore", str(SCRIPT), str(folder), point, str(times)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    lines = done.stdout.splitlines()
    assert not [line for line in lines if line.startswith("error")], lines
    return lines


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "debits", "answers", "releases"),
    [
        ("never", TIMES, TIMES, TIMES),
        ("before debit", 0, 0, 0),
        ("after commit", TIMES, 0, 0),
        ("mid-read", TIMES, 0, 0),
        ("after read", TIMES, 0, 0),
        ("after noise", TIMES, 0, 0),
        ("before reply", TIMES, 0, TIMES),
    ],
)
def test_a_kill_leaves_every_release_paid_for(tmp_path, point, debits, answers, releases):
    lines = run(tmp_path, point, TIMES)
    assert len(lines) == answers
    with Ledger.open(tmp_path / "people.ledger") as ledger:
        kinds = [receipt.kind for receipt in ledger.entries("people")] if debits or ledger.datasets() else []
        assert kinds.count("debit") == debits
        assert kinds.count("release") == releases
        assert ledger.balance("people").spent == debits
        assert ledger.verify().ok


@pytest.mark.stats
@pytest.mark.parametrize("point", ["after commit", "mid-read", "after noise", "before reply"])
def test_a_kill_by_the_hundred(tmp_path, point):
    assert run(tmp_path, point, 300) == []
    with Ledger.open(tmp_path / "people.ledger") as ledger:
        assert ledger.balance("people").spent == 300
        assert ledger.verify().ok
