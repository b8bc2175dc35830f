"""Many processes on one ledger: exactly what fits is answered."""

from pathlib import Path

from commands import forked
from sfumato.ledger import Ledger

SCRIPT = Path(__file__).parent / "raced.py"
PROCESSES = 6


def race(ledger, starting, said):
    """What so many processes print that are started at once, each told the number `said`."""
    programs = [[str(ledger), str(mine), str(said)] for mine in range(starting)]
    done = forked(*programs, folder=ledger.parent, script=SCRIPT)
    assert [code for code, _ in done] == [0] * starting
    return [out.splitlines() for _, out in done]


def test_processes_with_one_question_pay_once_and_agree(tmp_path):
    ledger = tmp_path / "people.ledger"
    given, paid = zip(*race(ledger, 3, 0), strict=True)
    assert len(set(given)) == 1
    assert sum(line.split().count("paid") for line in paid) == 2  # the question once, the choice once
    with Ledger.open(ledger) as opened:
        spenders = [each.purpose.spender for each in opened.entries() if each.kind == "debit"]
        assert sorted(spenders) == ["most common", "sql"]
        assert opened.balance("people").spent == 2
        assert opened.verify().ok


def test_a_race_of_processes_never_overdraws(tmp_path):
    ledger = tmp_path / "people.ledger"
    lines = [line for said in race(ledger, PROCESSES, PROCESSES) for line in said]
    assert sum(line.startswith("answer") for line in lines) == 12
    assert lines.count("refused") == PROCESSES
    with Ledger.open(ledger) as opened:
        assert opened.balance("people").remaining == 0
        assert opened.verify().ok
