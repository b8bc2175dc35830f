"""Checkpoints: what is killed, resumed or extended is paid once, and nothing runs that was not paid."""

import contextlib
import copy
import io
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import sfumato as sf
from deep import made, objective, torch
from deep_kills import STEPS
from sfumato.errors import AccessDenied, BudgetExceeded, InvalidParameter, LedgerMismatch
from sfumato.learn.torch import paying
from sfumato.learn.torch.runs import Private, private
from sfumato.ledger import Right

SCRIPT = Path(__file__).parent.parent / "support" / "deep_kills.py"
MOMENTS = ["before a step", "after a step", "before the checkpoint", "after the checkpoint"]


def _lives(folder, moments, kills):
    """How lives ended, and how many steps all of them have run."""
    done = subprocess.run(
        [sys.executable, SCRIPT, folder, json.dumps(moments), str(kills)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found["ends"], found["untouched"], len((folder / "steps").read_text())


def _kept(folder):
    return torch.load(folder / "kept.pt", weights_only=True)


def _after(folder, ends, untouched, run):
    ledger = sf.Ledger.open(folder / "deep.ledger")
    assert run <= STEPS, "no step is run that was not paid"
    assert _kept(folder)["taken"] <= run
    assert ends[-1] == 3, "nothing is left, and another run does not fit into the budget"
    assert untouched, "a run that is refused leaves the checkpoint"
    assert ledger.balance("photos").spent == 1
    assert ledger.verify().ok


def test_a_run_that_is_killed_is_paid_once(tmp_path):
    ends, untouched, run = _lives(tmp_path, MOMENTS, 0)
    assert ends[:4] == [9] * 4
    assert ends[4] == 0
    # Each life took a block of two steps and died in its first; the last one has what is left.
    assert run == STEPS - 4 - 1
    assert _kept(tmp_path)["taken"] == STEPS - 8 + 1
    _after(tmp_path, ends, untouched, run)


@pytest.mark.stats
def test_a_run_that_is_killed_often_is_paid_once(tmp_path):
    for turn in range(4):
        folder = tmp_path / str(turn)
        folder.mkdir()
        ends, untouched, run = _lives(folder, [], 12)
        _after(folder, ends, untouched, run)


def _run(ledger=None, **more):
    model, given, target = made("dense", 20, torch.float32)
    paid = {} if ledger is None else {"ledger": ledger, "dataset": "photos", "block": 2}
    settings = {"epsilon": 1, "delta": 1e-5, "size": 20, "batch": 20, "steps": 8}
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    return private(model, optimizer, (given, target), objective=objective, **settings | paid | more)


@pytest.fixture
def ledger(tmp_path):
    """With a budget for one run and a half."""
    opened = sf.Ledger.open(tmp_path / "deep.ledger")
    opened.register("photos", {"unit": "row", "version": 1}, sf.Budget(epsilon=1.5, delta=1e-4))
    return opened


def _saved(run):
    """A checkpoint, as it is in a file."""
    file = io.BytesIO()
    torch.save(run.state_dict(), file)
    return file.getvalue()


def _load(file):
    return torch.load(io.BytesIO(file), weights_only=True)


def _resumed_twice(ledger):
    first = _run(ledger)
    first.step()
    first.step()
    kept = _load(_saved(first))
    both, steps = [_run(ledger), _run(ledger)], 2
    for run in both:
        run.load_state_dict(kept)
    for run in both * 4:
        try:
            run.step()
            steps += 1
        except BudgetExceeded:
            continue
    return steps


def test_two_that_resume_one_checkpoint_share_what_is_left(ledger):
    assert _resumed_twice(ledger) == 8
    assert ledger.balance("photos").spent == 1


def test_if_a_resume_were_not_on_record_steps_would_be_run_twice(ledger, monkeypatch):
    def careless(self, declared, loss, words):
        if self._right is None:
            self._right = self._begun(declared, loss, words)
        return declared["steps"] - 2, 0

    monkeypatch.setattr(paying.Payer, "take", careless)
    assert _resumed_twice(ledger) > 8


def test_if_blocks_were_not_taken_from_the_ledger_steps_would_be_run_twice(ledger, monkeypatch):
    monkeypatch.setattr(Right, "block", lambda *_: None)
    assert _resumed_twice(ledger) > 8
    run = _run(ledger)
    with pytest.raises(BudgetExceeded):  # and not for ever: an object never runs more than the whole
        run.fit()
    assert run.taken == 8


def _forked(run):
    """How many steps a child runs of what its parent took, or 99 for an error that it should not end in."""
    child = os.fork()
    if not child:
        ran = 0
        try:
            for _ in range(3):
                run.step()
                ran += 1
        except AccessDenied:
            os._exit(ran)
        except BaseException:
            os._exit(99)
        os._exit(ran)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("sampling", ["poisson", "allocation"])
def test_a_fork_runs_no_step_that_its_parent_took(ledger, sampling):
    run = _run(ledger, block=8, batch=5, sampling=sampling)
    run.step()
    assert _forked(run) == 0
    run.fit()
    assert run.taken == 8


def test_otherwise_both_would_run_them(ledger, monkeypatch):
    monkeypatch.setattr(Private, "_check", lambda _: None)
    run = _run(ledger, block=8)
    run.step()
    assert _forked(run) == 3


def test_a_run_cannot_be_copied(ledger):
    run = _run(ledger, block=8)
    run.step()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidParameter, match="cannot be copied"):
            copied(run)


def test_threads_take_each_step_once(ledger):
    run, ran, inside = _run(ledger, block=3), [], []

    def slow():
        inside.append(1)
        assert len(inside) == 1
        time.sleep(0.002)
        inside.pop()

    run._descent.step = slow

    def work():
        with contextlib.suppress(BudgetExceeded):
            for _ in range(8):
                run.step()
                ran.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ran) == run.taken == 8
    assert run.left == 0


def test_a_checkpoint_goes_on_to_the_same_total(ledger):
    run = _run(ledger)
    for _ in range(4):
        run.step()
    file = _saved(run)
    again = _run(ledger)
    again.load_state_dict(_load(file))
    for one, other in zip(run._descent.model.parameters(), again._descent.model.parameters(), strict=True):
        assert torch.equal(one, other)
    again.fit()
    assert again.taken == 8
    assert ledger.balance("photos").spent == 1
    with pytest.raises(BudgetExceeded):
        run.step()


def test_extending_a_run_is_a_debit_of_its_own(ledger):
    run = _run(ledger)
    run.fit()
    file = _saved(run)
    more = _run(ledger, steps=3, epsilon=0.4)
    with pytest.raises(LedgerMismatch):
        more.load_state_dict(_load(file))
    more.extend(_load(file))
    ends = [each.clone() for each in run._descent.model.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(ends, more._descent.model.parameters(), strict=True))
    more.fit()
    assert more.taken == 3
    assert float(ledger.balance("photos").spent) == pytest.approx(1.4)
    beyond = _run(ledger, steps=3, epsilon=0.3)
    beyond.extend(_load(file))
    with pytest.raises(BudgetExceeded):
        beyond.fit()
    assert all(torch.equal(a, b) for a, b in zip(ends, beyond._descent.model.parameters(), strict=True))
    assert float(ledger.balance("photos").spent) == pytest.approx(1.4)


def test_without_a_ledger_a_checkpoint_gives_no_steps_back():
    run = _run()
    kept = run.state_dict()
    for _ in range(8):
        run.step()
    run.load_state_dict(kept)
    with pytest.raises(BudgetExceeded):
        run.step()
    again = _run()
    again.step()
    again.load_state_dict({**kept, "taken": 7})
    again.step()
    with pytest.raises(BudgetExceeded):
        again.step()
