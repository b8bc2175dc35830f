"""One of several processes that learn together: run by tests, with what to do as JSON."""

import json
import os
import signal
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.learn.torch.noise import Noise
from sfumato.learn.torch.processes import Processes, Silent
from sfumato.learn.torch.quantile import Quantile
from sfumato.learn.torch.runs import private

torch.set_num_threads(1)


class Watched(torch.optim.Adam):
    """An optimizer that keeps the gradients that it is given."""

    given = ()

    def step(self, closure=None):
        own = [each.grad.flatten() for group in self.param_groups for each in group["params"]]
        self.given = (*self.given, torch.cat(own))
        return super().step(closure)


def made(seed):
    """A model and 24 records of it."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(7, 9), nn.ReLU(), nn.Linear(9, 4))
    torch.manual_seed(5)
    return model, torch.randn(24, 7), torch.randint(0, 4, (24,))


def run_of(task, rank, ranks, **more):
    """The run of one process: its share of the records."""
    model, given, target = made(seed=rank if ranks > 1 else 0)
    own = slice(rank, None, ranks)
    if task.get("wrapped"):
        model = nn.parallel.DistributedDataParallel(model)
    elif ranks > 1:
        more["group"] = True
    if task.get("learned"):
        more["clip"] = Quantile(first=0.5)
    settings = {"epsilon": 1, "delta": 1e-5, "size": 24, "batch": 24, "steps": 8, "physical": 5, "clip": 0.5}
    optimizer = Watched(model.parameters(), 0.01)
    data = (given[own], target[own]) if task.get("records", True) else (given[:0], target[:0])
    return private(model, optimizer, data, **settings | task.get("settings", {}) | more), optimizer


def plant(bug, run, rank):
    """What must be seen."""
    if bug == "noise by each":
        run._descent.noise = Noise("cpu")
    if bug == "noise by none" or bug == "silent":
        run._descent.noise = Silent(torch.device("cpu"))
    if bug == "another model" and rank == 1:
        next(run._descent.model.parameters()).data[0, 0] += 1e-6
    if bug == "noise after the sum":
        summed = Processes.summed

        def late(self, sums, noise):
            return [
                each + part.view(each.shape)
                for each, part in zip(
                    summed(self, sums, torch.zeros_like(noise)),
                    noise.split([each.numel() for each in sums]),
                    strict=True,
                )
            ]

        run._descent.processes.summed = late.__get__(run._descent.processes)


def perform(task, rank, ranks, kept):
    """What one process found."""
    paid = {}
    if task.get("ledger") and rank == 0:
        ledger = sf.Ledger.open(task["ledger"])
        if "photos" not in ledger.datasets():
            ledger.register("photos", {"unit": "row", "version": 1}, sf.Budget(epsilon=1.5, delta=1e-4))
        paid = {"ledger": ledger, "dataset": "photos", "block": 2}
    found = {"error": ""}
    try:
        run, optimizer = run_of(task, rank, ranks, **paid)
        plant(task.get("plant"), run, rank)
        if task.get("load"):
            run.load_state_dict(torch.load(task["load"], weights_only=True))
        for step in range(task.get("run", 10**9)):
            if task.get("dies") == [rank, step]:
                os.kill(os.getpid(), signal.SIGKILL)
            if not run.left:
                break
            run.step()
        if rank == 0 and task.get("save"):
            torch.save(run.state_dict(), task["save"])
        model = run._descent.model
        found |= {
            "taken": run.taken,
            "left": run.left,
            "noise": run.noise_multiplier,
            "clip": run.clip,
            "parameters": torch.cat([each.detach().flatten() for each in model.parameters()]),
            "given": torch.stack(optimizer.given) if optimizer.given else None,
        }
    except SfumatoError as error:
        found["error"] = f"{type(error).__name__}: {error}"
    kept.append(found)


if __name__ == "__main__":
    rank, ranks, meeting, out, tasks = (
        int(sys.argv[1]),
        int(sys.argv[2]),
        *sys.argv[3:5],
        json.loads(sys.argv[5]),
    )
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks, timeout=timedelta(seconds=60)
    )
    kept = []
    for task in tasks:
        perform(task, rank, ranks, kept)
        torch.save(kept, out)
