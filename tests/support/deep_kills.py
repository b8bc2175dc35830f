"""Lives of a run that is killed again and again: each a fork, with a checkpoint after each step."""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
from torch import nn

import sfumato as sf
from sfumato.errors import BudgetExceeded
from sfumato.learn.torch.runs import private

torch.set_num_threads(1)
STEPS = 12


def run_of(**paid):
    """A small run."""
    torch.manual_seed(0)
    model, data = nn.Linear(3, 2), (torch.ones(20, 3), torch.ones(20).long())
    return private(
        model, torch.optim.Adam(model.parameters(), 0.1), data, epsilon=1, delta=1e-5, size=20, batch=20,
        steps=STEPS, **paid,
    )  # fmt: skip


def life(folder, moment):
    """One process: goes on from the checkpoint, and dies at a moment, if one is given."""

    def dies(now):
        if moment == now:
            os.kill(os.getpid(), signal.SIGKILL)

    ledger = sf.Ledger.open(folder / "deep.ledger")
    if "photos" not in ledger.datasets():
        ledger.register("photos", {"unit": "row", "version": 1}, sf.Budget(epsilon=1.5, delta=1e-4))
    run = run_of(ledger=ledger, dataset="photos", block=2)
    kept = folder / "kept.pt"
    if kept.exists():
        run.load_state_dict(torch.load(kept, weights_only=True))
    inner = run._descent.step

    def step():
        dies("before a step")
        with (folder / "steps").open("a") as file:
            file.write("1")
        inner()
        dies("after a step")

    run._descent.step = step
    while True:
        run.step()
        torch.save(run.state_dict(), folder / "new.pt")
        dies("before the checkpoint")
        (folder / "new.pt").replace(kept)
        dies("after the checkpoint")
        if not run.left:
            return


def born(folder, moment=None, after=None):
    """How a life ended: 9 killed, 0 run to the end, 3 refused."""
    child = os.fork()
    if not child:
        try:
            life(folder, moment)
            os._exit(0)
        except BudgetExceeded:
            os._exit(3)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


if __name__ == "__main__":
    folder, moments, kills = Path(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
    run_of().fit()  # what is loaded or computed once is so before a fork
    ends = [born(folder, moment) for moment in moments]
    ends += [born(folder, after=random.random()) for _ in range(kills)]
    ends.append(born(folder))
    before = (folder / "kept.pt").read_bytes()
    ends.append(born(folder))
    print(json.dumps({"ends": ends, "untouched": before == (folder / "kept.pt").read_bytes()}))
