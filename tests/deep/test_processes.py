"""Several processes: one model, one noise, one debit."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato as sf
from deep import torch
from deep_processes import plant, run_of
from sfumato.errors import InvalidParameter

SCRIPT = Path(__file__).parent.parent / "support" / "deep_processes.py"
ALONE = {"records": False, "settings": {"steps": 60}}
TASKS = {
    "sums": {"plant": "silent", "run": 3},
    "wrapped": {"wrapped": True},
    "learned": {"learned": True},
    "noise": ALONE,
    "noise by each": ALONE | {"plant": "noise by each"},
    "noise by none": ALONE | {"plant": "noise by none"},
    "noise after the sum": ALONE | {"plant": "noise after the sum"},
}

pytestmark = pytest.mark.slow  # processes that all of them look at


def together(tmp_path, tasks, ranks=2):
    """What each process found at each task."""
    outs = [tmp_path / f"{rank}.pt" for rank in range(ranks)]
    meeting = tmp_path / "meeting"
    meeting.unlink(missing_ok=True)
    started = [
        subprocess.Popen(
            [sys.executable, SCRIPT, str(rank), str(ranks), meeting, out, json.dumps(tasks)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank, out in enumerate(outs)
    ]
    said = [process.communicate(timeout=300)[0] for process in started]
    assert all(out.exists() or process.returncode for out, process in zip(outs, started, strict=True)), said
    return [torch.load(out, weights_only=True) if out.exists() else [] for out in outs]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What two processes found at each of the tasks."""
    results = together(tmp_path_factory.mktemp("two"), list(TASKS.values()))
    return {name: (results[0][at], results[1][at]) for at, name in enumerate(TASKS)}


def _size(one):
    """The size of the noise, in what was paid for."""
    return float(one["given"].std()) * 24 / (one["noise"] * 0.5)


def test_sums_are_those_of_all_records(found):
    alone, optimizer = run_of({}, 0, 1)
    plant("silent", alone, 0)
    alone.step()
    for one in found["sums"]:
        assert torch.allclose(
            one["given"][0], optimizer.given[0], rtol=1e-4, atol=1e-6
        )  # steps of the grid, one a pass


def test_parameters_are_the_same_to_the_last_bit(found):
    for name in ("sums", "wrapped", "learned", "noise"):
        first, second = found[name]
        assert torch.equal(first["parameters"], second["parameters"])
        assert first["error"] == second["error"] == ""
        assert (first["given"] != 0).any()


def test_a_clip_that_is_learned_is_the_same_in_all(found):
    first, second = found["learned"]
    assert first["clip"] == second["clip"] != 0.5


def test_noise_is_added_once(found):
    for one in found["noise"]:
        assert abs(_size(one) - 1) < 0.05


@pytest.mark.parametrize("bug", ["noise by each", "noise by none"])
def test_noise_of_another_size_is_seen(found, bug):
    assert all(abs(_size(one) - 1) > 0.3 for one in found[bug])


def test_noise_in_one_process_only_is_seen(found):
    first, second = found["noise after the sum"]
    assert "not that of the first" in second["error"], "models differ after one step"
    assert "Another process is gone" in first["error"]


def test_one_debit_whoever_dies(tmp_path):
    task = {"ledger": str(tmp_path / "deep.ledger"), "save": str(tmp_path / "kept.pt")}
    first, second = together(tmp_path, [task | {"dies": [1, 3]}])
    assert "Another process is gone" in first[0]["error"]
    assert not second, "it died"
    ledger = sf.Ledger.open(tmp_path / "deep.ledger")
    assert ledger.balance("photos").spent == 1
    more = [task | {"run": 2}, task | {"load": task["save"]}, task | {"settings": {"epsilon": 1.25}}]
    more.append({"plant": "another model"})
    first, second = together(tmp_path, more)
    # Two blocks of two steps were taken when it died: four of eight are left.
    assert [(one["taken"], one["left"]) for one in (first[0], second[0])] == [(2, 2)] * 2
    assert [(one["taken"], one["left"]) for one in (first[1], second[1])] == [(4, 0)] * 2
    assert torch.equal(first[1]["parameters"], second[1]["parameters"])
    assert ledger.balance("photos").spent == 1
    assert first[2]["error"].startswith("BudgetExceeded")
    assert "first process was refused" in second[2]["error"]
    assert "not that of the first" in second[3]["error"]
    assert "Another process is gone" in first[3]["error"]
    assert ledger.verify().ok


def test_processes_that_do_not_know_each_other_are_refused():
    with pytest.raises(InvalidParameter, match="init_process_group"):
        run_of({}, 0, 1, group=True)
