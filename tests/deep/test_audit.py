"""What canaries in a run prove is below its price, and above it where the run has a bug."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from torch import nn

from deep import torch
from sfumato.audit import Audit, run
from sfumato.audit.deep import audit_run
from sfumato.audit.deep_examples import examples
from sfumato.audit.registry import Subject, examined
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import engine, noise, runs
from sfumato.learn.torch.objectives import squared_error
from sfumato.learn.torch.runs import private
from sfumato.learn.torch.sampling import Poisson
from sfumato.testing import seeded

CANARIES = 20_000
CONFIDENT = 0.99  # bounds are so far below the truth that honest runs are in no danger
SIZE = 300 + CANARIES // 2


def _make(epsilon=1, batch=SIZE, steps=2):
    def make(model, data, objective):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        return private(
            model, optimizer, data, objective=objective, epsilon=epsilon, delta=1e-6, size=SIZE, batch=batch,
            steps=steps,
        )  # fmt: skip

    return make


def _proven(name, *, confidence=CONFIDENT, **settings):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2))
    given = torch.randn(300, 5)
    with seeded(f"deep audit {name}"):
        return audit_run(
            _make(**settings), model, (given, (given[:, 0] > 0).long()), canaries=CANARIES,
            guesses=CANARIES // 20, delta=1e-6, confidence=confidence, family="gaussian",
        )  # fmt: skip


def _no_clipping(monkeypatch):
    cut = engine.clipped
    monkeypatch.setattr(
        engine, "clipped", lambda forms, mask, bound, *off: cut(forms, mask, replace(bound, clip=100), *off)
    )


def _half_the_noise(monkeypatch):
    made = runs.Descent
    monkeypatch.setattr(runs, "Descent", lambda *given, sigma, **more: made(*given, sigma=sigma / 2, **more))


def _every_record_drawn(monkeypatch):
    monkeypatch.setattr(Poisson, "draw", lambda _, records: np.random.default_rng(0).permutation(records))


def _a_sum_without_noise(monkeypatch):
    """As of processes of which one adds no noise before its sums leave it."""
    made, turns = noise.Noise.draw, itertools.count()

    def draw(own, count):
        drawn = made(own, count)
        return drawn if next(turns) % 2 else noise.Drawn(lambda: torch.zeros_like(drawn.values()))

    monkeypatch.setattr(noise.Noise, "draw", draw)


SETTINGS = {"all records": {}, "drawn batches": {"batch": SIZE // 10, "steps": 5, "epsilon": 2}}
BUGS = {
    "no clipping": (_no_clipping, "all records"),
    "half the noise": (_half_the_noise, "all records"),
    "every record drawn": (_every_record_drawn, "drawn batches"),
    "a sum without noise": (_a_sum_without_noise, "all records"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_what_an_honest_run_shows_is_below_its_price(name):
    found = _proven(name, **SETTINGS[name])
    assert not found.refutes(SETTINGS[name].get("epsilon", 1))
    assert found.epsilon > 0.2


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_shows_more_than_was_paid_for(bug, monkeypatch):
    plant, name = BUGS[bug]
    plant(monkeypatch)
    assert _proven(bug, **SETTINGS[name]).refutes(SETTINGS[name].get("epsilon", 1))


def test_canaries_leave_the_other_records_alone(monkeypatch):
    """The model learns the same with canaries and without, up to noise: here there is none."""
    monkeypatch.setattr(
        noise.Noise, "draw", lambda _, count: noise.Drawn(lambda: torch.zeros(count, dtype=torch.int32))
    )
    kept = []
    given = torch.randn(40, 3)

    def make(model, data, objective):
        run = private(
            model, torch.optim.SGD(model.parameters(), 0.5), data, objective=objective, epsilon=1,
            delta=1e-6, size=60, batch=60, steps=3,
        )  # fmt: skip
        kept.append(model.model)
        return run

    model = nn.Linear(3, 1)
    for canaries in (2, 40):
        audit_run(make, model, (given, given[:, :1]), canaries=canaries, objective=squared_error)
    assert torch.allclose(kept[0].weight, kept[1].weight, atol=1e-5)
    assert (kept[0].weight - model.weight).abs().max() > 0.05


def test_tokens_have_canaries_too():
    model = nn.Sequential(nn.Embedding(7, 4), nn.Flatten(), nn.Linear(12, 7))
    data = torch.randint(0, 7, (30, 3)), torch.randint(0, 7, (30,))
    found = audit_run(_make(epsilon=1), model, data, canaries=50, delta=1e-6, family="gaussian")
    assert found.canaries == 50


def test_records_that_are_no_tensors_are_refused():
    with pytest.raises(InvalidParameter, match="pair of tensors"):
        audit_run(_make(), nn.Linear(2, 2), [[1, 2]])


# Many runs, each with one canary or none: nothing is assumed of the run.


def _examined(example, count, name):
    subject = Subject(example.name, "fit", lambda: (example.loss, example.draw))
    with seeded(f"deep audit {example.name} {name}"):
        return Audit(examined(subject, samples=count, share=CONFIDENT), CONFIDENT)


@pytest.mark.stats
@pytest.mark.parametrize("example", examples(), ids=lambda each: each.name)
def test_many_runs_prove_less_than_the_price(example):
    drawn = example.rate < 1  # what one canary does is less clear then, and takes more runs to be seen
    audit = _examined(example, 4000 if drawn else 1000, "honest")
    assert not audit.broken
    assert audit.findings[0].proven > 0.1 * audit.findings[0].claimed


@pytest.mark.stats
def test_deep_runs_are_registered():
    with seeded("deep audit registered"):
        audit = run(["deep run"], samples=500)
    assert not audit.broken
    assert {each.name for each in audit.findings} == {each.name for each in examples()}


@pytest.mark.stats
def test_many_runs_notice_that_one_process_of_four_adds_its_part_of_the_noise(monkeypatch):
    _half_the_noise(monkeypatch)
    assert _examined(examples()[1], 2000, "shard").broken
