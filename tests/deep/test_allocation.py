"""Random allocation: each record in one step of each epoch; no file has the bins, no crash repeats them."""

import copy
import io
import pickle
from fractions import Fraction

import numpy as np
import pytest
from torch import nn

import sfumato as sf
from deep import made, objective, torch
from sfumato.accounting import allocation_multiplier
from sfumato.audit.bounds import epsilon_floor
from sfumato.audit.deep import audit_run
from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerMismatch
from sfumato.learn.torch import law, runs
from sfumato.learn.torch.runs import private
from sfumato.learn.torch.sampling import Allocation, Poisson, _Epoch, sampler_of
from sfumato.loss import GaussianLoss
from sfumato.testing import seeded


def _bins(sampler, records):
    """Which step each record is in, epoch by epoch."""
    found = np.full((sampler.epochs, records), -1)
    for epoch in range(sampler.epochs):
        for step in range(sampler.bins):
            drawn = sampler.draw(records)
            assert (found[epoch, drawn] == -1).all(), "a record is in two steps of an epoch"
            found[epoch, drawn] = step
    return found


def test_each_record_is_in_one_step_of_each_epoch():
    found = _bins(Allocation(7, 3), 500)
    assert found.min() == 0
    assert found.max() == 6


def test_bins_are_uniform_and_independent():
    found = _bins(Allocation(5, 4), 20_000)
    for epoch in found:
        counts = np.bincount(epoch, minlength=5)
        assert ((counts - 4000) ** 2 / 4000).sum() < 50, "not uniform"
    for one in range(4):
        for two in range(one):
            table = np.bincount(found[one] * 5 + found[two], minlength=25)
            assert ((table - 800) ** 2 / 800).sum() < 110, "epochs hang together"
    after = np.bincount(found[0][1:] * 5 + found[0][:-1], minlength=25)
    assert ((after - 800) ** 2 / 800).sum() < 110, "records hang together"


def test_records_come_in_random_order():
    sampler = Allocation(2, 1)
    drawn = sampler.draw(1000)
    assert (np.diff(drawn) < 0).any()
    assert abs(len(drawn) - 500) < 110


def test_batches_do_not_fill_up():
    sampler = Allocation(10, 20)
    sizes = [len(sampler.draw(1000)) for _ in range(200)]
    assert 5 < np.std(sizes) < 15, "sizes of batches are those of dice"


def test_records_that_come_in_an_epoch_draw_too():
    sampler = Allocation(4, 1)
    seen = [sampler.draw(100), *(sampler.draw(140) for _ in range(3))]
    together = np.concatenate(seen)
    assert len(set(together.tolist())) == len(together)
    assert set(range(100)) <= set(together.tolist())


# What it costs.


def _epsilon_shown(members, sigma, delta, seed=3):
    """The epsilon that the best test of noisy steps shows, of records that are in and out: an audit."""
    epochs, records = members.shape
    steps = members.max() + 1
    generator = np.random.default_rng(seed)
    noise = sigma * generator.standard_normal((2, records, epochs, steps))
    inside = noise[0] + (members.T[:, :, None] == np.arange(steps))
    scores = []
    for seen in (inside, noise[1]):
        ratio = (2 * seen - 1) / (2 * sigma**2)
        each_anew = np.log(np.exp(ratio).mean(2)).sum(1)
        always_same = np.log(np.exp(ratio.sum(1)).mean(1))
        scores.append((each_anew, always_same))
    best = 0.0
    for one, other in zip(*scores, strict=True):
        for threshold in np.quantile(one, [0.3, 0.6, 0.8]):
            hits, misses = int((one > threshold).sum()), int((other > threshold).sum())
            best = max(best, float(epsilon_floor(hits, records, misses, records, delta=delta, alpha=1e-10)))
    return best


@pytest.mark.parametrize("honest", [True, False])
def test_an_audit_stays_below_the_price_unless_bins_are_kept(honest, monkeypatch):
    sampler, records = Allocation(8, 16), 30_000
    sigma = 1.8
    claimed = sampler.loss(sigma).epsilon(1e-3)
    if not honest:
        plain = _Epoch.next

        def same(self, bins, count):
            kept = self._bin
            found = plain(self, bins, count)
            if len(kept) == count and self._step == 1:
                self._bin = kept
                found = np.flatnonzero(kept == 0)
            return found

        monkeypatch.setattr(_Epoch, "next", same)
    shown = _epsilon_shown(_bins(sampler, records), sigma, 1e-3)
    assert (shown < claimed) == honest
    assert shown > 0.1 * claimed


def test_epochs_that_are_not_paid_are_seen():
    seen = _bins(Allocation(2, 8), 20_000)
    assert _epsilon_shown(seen, 1.5, 1e-3) > Allocation(2, 1).loss(1.5).epsilon(1e-3)


def test_the_loss_is_that_of_allocation_and_never_of_poisson():
    sampler = Allocation(20, 5)
    assert sampler.loss(1.5) == GaussianLoss(Fraction(2, 9)).allocated(20) * 5
    assert sampler.loss(1.5) != Poisson(Fraction(1, 20), 100).loss(1.5)


# Runs.


def _run(records=200, **more):
    model, given, target = made("dense", records, torch.float32)
    settings = {"epsilon": 1, "delta": 1e-5, "size": 200, "batch": 50, "epochs": 3, "sampling": "allocation"}
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return private(model, optimizer, (given, target), objective=objective, **settings | more)


def _drawn(run):
    """The records that each step of a run will have seen."""
    seen, plain = [], Allocation.draw

    class Watched:
        def __getattr__(self, name):
            return getattr(run.sampler, name)

        def draw(self, records):
            seen.append(plain(run.sampler, records))
            return seen[-1]

    run._descent.sampler = Watched()
    return seen


def test_a_run_by_allocation_sees_each_record_once_an_epoch():
    run = _run()
    assert run.sampler == Allocation(4, 3)
    assert run.steps == 12
    assert "each in one of 4 steps an epoch" in str(run)
    missing = law.missing((1, Fraction(1, 100_000)), run._descent.numbers * 12)
    assert run.noise_multiplier == allocation_multiplier(1, Fraction(1, 100_000) - missing, 4, 3)
    seen = _drawn(run)
    run.fit()
    for epoch in range(3):
        assert sorted(np.concatenate(seen[4 * epoch : 4 * epoch + 4]).tolist()) == list(range(200))
    with pytest.raises(BudgetExceeded):
        run.step()


def test_steps_follow_from_the_declared_size():
    assert _run(records=30).sampler == _run(records=400).sampler == Allocation(4, 3)
    assert _run(batch=60).sampler == Allocation(4, 3)
    assert sampler_of("allocation", 200, 50, steps=8) == Allocation(4, 2)


def _paid(folder, **more):
    ledger = sf.Ledger.open(folder / "deep.ledger")
    if "photos" not in ledger.datasets():
        ledger.register("photos", {"unit": "row", "version": 1}, sf.Budget(epsilon=1, delta=1e-4))
    return ledger, _run(ledger=ledger, dataset="photos", block=1, **more)


def test_an_epoch_is_run_by_one_process_or_not_to_its_end(tmp_path):
    ledger, run = _paid(tmp_path)
    first = _drawn(run)
    for _ in range(6):
        run.step()  # an epoch and a half; then this process dies
    kept = run.state_dict()
    _, again = _paid(tmp_path)
    again.load_state_dict(kept)
    second = _drawn(again)
    again.fit()
    # Two epochs were taken: the other half of the second one is lost, whatever the checkpoint says.
    assert (len(first), len(second)) == (6, 4)
    times = np.bincount(np.concatenate(first + second), minlength=200)
    assert times.max() <= 3, "somebody is in more steps than there are epochs"
    with pytest.raises(BudgetExceeded):
        again.step()
    _, third = _paid(tmp_path)
    with pytest.raises(BudgetExceeded):
        third.step()
    assert ledger.balance("photos").spent == 1


def test_without_a_ledger_too(tmp_path):
    run = _run()
    for _ in range(5):
        run.step()
    again = _run()
    again.load_state_dict(run.state_dict())
    assert again.left == 4


def test_a_checkpoint_says_nothing_of_bins():
    run = _run()
    run.step()
    file = io.BytesIO()
    torch.save(run.state_dict(), file)
    file.seek(0)
    kept = torch.load(file, weights_only=True)
    assert set(kept) == set(_run(sampling="poisson").state_dict())
    held = [value for key, value in kept.items() if key not in ("model", "optimizer", "run")]
    assert all(isinstance(value, int | float) for value in held)
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidParameter, match="secret"):
            copied(run.sampler)


def test_a_checkpoint_of_poisson_samples_is_of_another_run():
    with pytest.raises(LedgerMismatch):
        _run().load_state_dict(_run(sampling="poisson").state_dict())


def test_users_are_allocated_whole():
    run = _run(users=list(range(40)) * 5, records_each=2, size=40, batch=10)
    seen = _drawn(run)
    run.fit()
    assert sorted(np.concatenate(seen[:4]).tolist()) == list(range(40))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"sampling": "shuffle"}, "shuffled"),
        ({"sampling": "fixed"}, "shuffled"),
        ({"epochs": None, "steps": 6}, "has 4 steps here"),
        ({"batch": 300}, "larger than the declared"),
        ({"epochs": None}, "epochs or steps"),
    ],
)
def test_other_ways_are_refused(more, words):
    with pytest.raises(InvalidParameter, match=words):
        _run(**more)


def test_one_step_an_epoch_sees_everybody():
    sampler = sampler_of("allocation", 100, 100, epochs=2)
    assert sampler == Allocation(1, 2)
    assert len(sampler.draw(100)) == 100
    assert sampler.loss(2.0) == GaussianLoss(Fraction(1, 8)) * 2


# A canary audit of whole runs.


def _proven(canaries=8_000, **settings):
    torch.manual_seed(1)
    size = 100 + canaries // 2
    given = torch.randn(100, 5)

    def make(model, data, loss):
        return private(
            model, torch.optim.SGD(model.parameters(), 0.1), data, objective=loss, epsilon=1, delta=1e-6,
            size=size, batch=size // 4, epochs=3, sampling="allocation", **settings,
        )  # fmt: skip

    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2))
    with seeded("audit of an allocation"):
        return audit_run(
            make, model, (given, (given[:, 0] > 0).long()), canaries=canaries, guesses=canaries // 20,
            delta=1e-6, confidence=0.99, family="gaussian",
        )  # fmt: skip


def test_canaries_prove_less_than_the_price_and_more_without_noise(monkeypatch):
    honest = _proven().epsilon
    assert honest < 1
    made_descent = runs.Descent
    monkeypatch.setattr(
        runs, "Descent", lambda *given, sigma, **more: made_descent(*given, sigma=sigma / 4, **more)
    )
    assert _proven().epsilon > 1
