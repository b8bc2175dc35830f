"""Kill -9 at named points of the data path: never an unaccounted release, never an overdraft."""

from pathlib import Path

import pytest

from commands import forked
from sfumato.ledger import Ledger

SCRIPT = Path(__file__).parent / "killed.py"


def run(folder: Path, point: str, times: int) -> list[str]:
    ((code, out),) = forked([str(folder), point, str(times)], folder=folder, script=SCRIPT)
    assert code == 0
    lines = out.splitlines()
    assert not [line for line in lines if line.startswith("error")], lines
    return lines


@pytest.mark.parametrize("times", [5, pytest.param(20, marks=pytest.mark.stats)])
@pytest.mark.parametrize(
    ("point", "debits", "answers", "releases"),
    [
        ("never", 1, 1, 1),
        ("before debit", 0, 0, 0),
        ("after commit", 1, 0, 0),
        ("mid-read", 1, 0, 0),
        ("after read", 1, 0, 0),
        ("after noise", 1, 0, 0),
        ("before reply", 1, 0, 1),
    ],
)
def test_a_kill_leaves_every_release_paid_for(tmp_path, point, debits, answers, releases, times):
    lines = run(tmp_path, point, times)
    assert len(lines) == answers * times
    with Ledger.open(tmp_path / "people.ledger") as ledger:
        kinds = [receipt.kind for receipt in ledger.entries("people")] if debits or ledger.datasets() else []
        assert kinds.count("debit") == debits * times
        assert kinds.count("release") == releases * times
        assert ledger.balance("people").spent == debits * times
        assert ledger.verify().ok


@pytest.mark.stats
@pytest.mark.parametrize("point", ["after commit", "mid-read", "after noise", "before reply"])
def test_a_kill_by_the_hundred(tmp_path, point):
    assert run(tmp_path, point, 300) == []
    with Ledger.open(tmp_path / "people.ledger") as ledger:
        assert ledger.balance("people").spent == 300
        assert ledger.verify().ok
