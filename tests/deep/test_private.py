"""Private runs: what they cost, what they read when, and what is left of them after a crash."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from torch import nn

import sfumato as sf
from deep import keeping, made, objective, torch
from sfumato.accounting import noise_multiplier
from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerMismatch
from sfumato.learn.torch import descent, faults, law
from sfumato.learn.torch.noise import Drawn
from sfumato.learn.torch.objectives import cross_entropy, squared_error
from sfumato.learn.torch.recording import Recorder
from sfumato.learn.torch.runs import private
from sfumato.learn.torch.sampling import Poisson

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")


class Watched(torch.optim.SGD):
    """An optimizer that keeps the gradients that it is given."""

    def step(self, closure=None):
        self.given = [each.grad.clone() for group in self.param_groups for each in group["params"]]
        return super().step(closure)


def _run(name="dense", records=200, rate=0.1, **more):
    model, given, target = made(name, records, torch.float32)
    settings = {"epsilon": 1, "delta": 1e-5, "size": 200, "batch": 20, "steps": 10, "physical": 16}
    return private(
        model, Watched(model.parameters(), rate), (given, target), objective=objective, **settings | more
    )


def _silent(run):
    """The same run without noise: for what lies below it."""
    run._descent.noise.draw = lambda count: Drawn(lambda: torch.zeros(count, dtype=torch.int32))
    return run


def test_the_price_is_that_of_the_accountant():
    run = _run(steps=30)
    missing = law.missing((1, Fraction(1, 100_000)), run._descent.numbers * 30)
    assert run.noise_multiplier == noise_multiplier(1, Fraction(1, 100_000) - missing, Fraction(1, 10), 30)
    steps = run.sampler.loss(run.noise_multiplier)
    assert 0.98 < steps.epsilon(run.delta - missing) <= 1
    assert run.loss.approximate == (1, Fraction(1, 100_000))
    assert run.sampler == Poisson(Fraction(1, 10), 30)
    assert 0 < missing < 1e-20


def test_steps_and_rate_are_those_of_the_declared_size():
    few, many = _run(records=50, steps=None, epochs=3), _run(records=400, steps=None, epochs=3)
    assert few.sampler == many.sampler == Poisson(Fraction(1, 10), 30)
    assert few.noise_multiplier == many.noise_multiplier


def test_noise_has_the_size_that_was_paid_for():
    run = _run("image", steps=40, clip=0.5)
    seen = []
    while run.left:
        run.step()
        seen.append(torch.cat([each.flatten() for each in run._descent.optimizer.given]))
    noise = torch.stack(seen).std(0).mean() * 20
    assert abs(noise / (run.noise_multiplier * 0.5) - 1) < 0.05


def test_a_draw_larger_than_a_pass_is_not_cut():
    found = []
    for physical in (4, 7, 64):
        run = _silent(_run(physical=physical))
        run._descent.sampler = _Always(run._descent.sampler)
        run.step()
        found.append(torch.cat([each.flatten() for each in run._descent.optimizer.given]))
    assert torch.allclose(found[0], found[2], rtol=1e-3, atol=1e-7)
    assert torch.allclose(found[1], found[2], rtol=1e-3, atol=1e-7)


class _Always:
    """A sampler that draws the same 50 records."""

    def __init__(self, sampler):
        self.steps, self.rate = sampler.steps, sampler.rate

    def draw(self, records):
        return np.arange(50)


def test_no_record_moves_a_step_by_more_than_the_clip():
    model, given, target = made("image", 60, torch.float32)
    moved = []
    for without in range(0, 60, 9):
        sums = []
        for left_out in (None, without):
            kept = [at for at in range(60) if at != left_out]
            run = _silent(
                private(
                    model, Watched(model.parameters(), 0.0), (given[kept], target[kept]), epsilon=1,
                    delta=1e-5, size=60, batch=60, steps=1, physical=64, clip=0.01, objective=objective,
                )
            )  # fmt: skip
            run.step()
            sums.append(torch.cat([each.flatten().double() for each in run._descent.optimizer.given]) * 60)
        moved.append(float((sums[0] - sums[1]).norm()))
    assert 0.005 < max(moved) <= 0.01 * (1 + 1e-6)


def test_samples_are_poisson():
    sampler = Poisson(Fraction(1, 5), 1)
    drawn = [sampler.draw(100) for _ in range(400)]
    counts = np.bincount(np.concatenate(drawn), minlength=100)
    assert abs(np.var([len(each) for each in drawn]) - 16) < 6
    assert counts.min() > 40
    assert counts.max() < 125
    firsts = [each[0] for each in drawn if len(each)]
    assert np.mean(firsts) > 35, "the order is that of the records"


def test_an_empty_draw_is_noise_alone():
    run = _run(records=0)
    run.step()
    assert all(torch.isfinite(each).all() and (each != 0).any() for each in run._descent.optimizer.given)


@pytest.mark.parametrize("label", [-1, 4, 10**12])
def test_a_label_that_is_none_counts_for_nothing(label):
    model, given, target = made("dense", 6, torch.float32)
    wrong = target.clone()
    wrong[2] = label
    one = private(
        model,
        Watched(model.parameters(), 0.0),
        (given, wrong),
        epsilon=1,
        delta=1e-5,
        size=6,
        batch=6,
        steps=1,
    )
    _silent(one).step()
    kept = [0, 1, 3, 4, 5]
    other = private(
        model, Watched(model.parameters(), 0.0), (given[kept], target[kept]), epsilon=1, delta=1e-5,
        size=6, batch=6, steps=1,
    )  # fmt: skip
    _silent(other).step()
    for a, b in zip(one._descent.optimizer.given, other._descent.optimizer.given, strict=True):
        assert torch.allclose(a, b, atol=1e-6)


class _Faulty:
    """A data set of which some records cannot be read, or are of another kind."""

    def __init__(self, given, target):
        self.given, self.target = given, target

    def __len__(self):
        return len(self.given)

    def __getitem__(self, place):
        if place == 1:
            raise OSError("this file is broken")
        if place == 2:
            return torch.ones(3), self.target[place]
        return self.given[place], self.target[place]


def test_records_that_cannot_be_read_are_none():
    model, given, target = made("dense", 8, torch.float32)
    settings = {"epsilon": 1, "delta": 1e-5, "size": 8, "batch": 8, "steps": 1, "physical": 4}
    example = (torch.zeros(7), torch.tensor(0))
    one = private(
        model, Watched(model.parameters(), 0.0), _Faulty(given, target), example=example, **settings
    )
    _silent(one).step()
    kept = [0, 3, 4, 5, 6, 7]
    other = private(model, Watched(model.parameters(), 0.0), (given[kept], target[kept]), **settings)
    _silent(other).step()
    for a, b in zip(one._descent.optimizer.given, other._descent.optimizer.given, strict=True):
        assert torch.allclose(a, b, atol=1e-6)


class _Keeping(nn.Module):
    """A layer that keeps a running sum of what it is given, and the last of it."""

    def __init__(self):
        super().__init__()
        self.map = nn.Linear(7, 4)
        self.register_buffer("sum", torch.zeros(7))
        self.register_buffer("last", torch.zeros(7))

    def forward(self, x):
        with torch.no_grad():
            self.sum += x.sum(0)
            self.last = x[-1].clone()
        return self.map(x)


def _kept(monkeypatch=None):
    if monkeypatch is not None:
        monkeypatch.setattr(faults, "forgetting", keeping)
    model, (_, given, target) = _Keeping(), made("dense", 200, torch.float32)
    run = private(
        model,
        Watched(model.parameters(), 0.1),
        (given, target),
        epsilon=1,
        delta=1e-5,
        size=200,
        batch=20,
        steps=2,
    )
    before = {name: each.clone() for name, each in model.named_buffers()}
    run.step()
    return [name for name, each in model.named_buffers() if not torch.equal(each, before[name])]


def test_what_layers_keep_of_records_is_put_back():
    assert _kept() == []


def test_otherwise_it_would_be_shown(monkeypatch):
    assert _kept(monkeypatch) == ["sum", "last"]


class _Mixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.map = nn.Linear(7, 4)

    def forward(self, x):
        return self.map(x - x.mean(0))


class _Folded(nn.Module):
    """A layer that is given several lines for each record."""

    def __init__(self):
        super().__init__()
        self.map, self.end = nn.Linear(7, 5), nn.Linear(10, 4)

    def forward(self, x):
        both = torch.stack([x, x * x], 1).view(-1, 7)
        return self.end(torch.tanh(self.map(both)).view(len(x), 10))


class _Positions(nn.Module):
    """A table that is looked up without records: as long as a batch, now and then."""

    def __init__(self):
        super().__init__()
        self.words, self.places, self.end = nn.Embedding(9, 5), nn.Embedding(4, 5), nn.Linear(5, 3)

    def forward(self, tokens):
        return self.end(torch.tanh(self.words(tokens) + self.places(torch.arange(4))).mean(1))


def test_a_model_that_mixes_records_is_refused():
    with pytest.raises(InvalidParameter, match="mixes"):
        Recorder(_Mixing()).survey((torch.zeros(7), torch.tensor(0)), objective)


@pytest.mark.parametrize("records", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["folded", "positions"])
def test_which_line_belongs_to_which_record_is_known(kind, records):
    torch.manual_seed(0)
    model = (_Folded() if kind == "folded" else _Positions()).double()
    shape = (
        (torch.zeros(7).double(), torch.tensor(0))
        if kind == "folded"
        else (torch.zeros(4).long(), torch.tensor(0))
    )
    given = torch.randn(records, 7).double() if kind == "folded" else torch.randint(0, 9, (records, 4))
    target, weights = torch.randint(0, 3, (records,)), torch.rand(records).double() + 0.5
    recorder = Recorder(model)
    recorder.survey(shape, objective)
    found = recorder.gradients(given, target, objective)
    wanted = torch.autograd.grad((objective(model(given), target) * weights).sum(), list(model.parameters()))
    for (name, _), value in zip(model.named_parameters(), wanted, strict=True):
        assert torch.allclose(found[name].summed(weights), value, rtol=1e-9)
        alone = [
            torch.autograd.grad(
                objective(model(given[at : at + 1]), target[at : at + 1]).sum(), list(model.parameters())
            )
            for at in range(records)
        ]
    norms = [math.sqrt(sum(float(part.square().sum()) for part in each)) for each in alone]
    squares = sum(form.settled(lambda _: 1).norms().square for form in found.values())
    assert torch.allclose(squares.sqrt(), torch.tensor(norms).double(), rtol=1e-6)


# The ledger.


def _paid(tmp_path, **more):
    ledger = sf.Ledger.open(tmp_path / "deep.ledger")
    if "photos" not in ledger.datasets():
        ledger.register("photos", {"unit": "row", "version": 1}, sf.Budget(epsilon=2.5, delta=1e-4))
    return ledger, _run(ledger=ledger, dataset="photos", block=4, **more)


def test_the_whole_run_is_debited_before_a_record_is_read(tmp_path, monkeypatch):
    ledger, run = _paid(tmp_path)
    assert ledger.balance("photos").spent == 0
    seen = []
    monkeypatch.setattr(run._descent, "step", lambda: seen.append(ledger.balance("photos").spent))
    run.step()
    assert seen == [1]
    run.fit()
    assert seen == [1] * 10
    assert ledger.verify().ok


def test_steps_are_taken_once_whatever_dies(tmp_path):
    ledger, run = _paid(tmp_path)
    for _ in range(5):
        run.step()
    kept = run.state_dict()  # two blocks of four are taken, five steps were run
    _, again = _paid(tmp_path)
    again.load_state_dict(kept)
    again.step()
    assert (again.taken, again.left) == (6, 1), "what the process that died had taken is gone"
    again.step()
    with pytest.raises(BudgetExceeded):
        again.step()
    assert ledger.balance("photos").spent == 1
    _, last = _paid(tmp_path)
    last.step()  # nothing of the first run is left: this is another one, and paid
    assert ledger.balance("photos").spent == 2
    _, beyond = _paid(tmp_path, epsilon=2)
    before = [each.clone() for each in beyond._descent.model.parameters()]
    with pytest.raises(BudgetExceeded):
        beyond.step()
    assert all(torch.equal(a, b) for a, b in zip(before, beyond._descent.model.parameters(), strict=True))
    assert ledger.verify().ok


def test_a_run_ends_where_its_steps_end():
    run = _run(steps=3)
    run.fit()
    with pytest.raises(BudgetExceeded, match="All 3 steps"):
        run.step()


def test_a_checkpoint_of_another_run_is_refused():
    kept = _run(steps=3).state_dict()
    with pytest.raises(LedgerMismatch):
        _run(steps=4).load_state_dict(kept)
    same = _run(steps=3)
    same.load_state_dict({**kept, "taken": 3})
    with pytest.raises(BudgetExceeded):
        same.step()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"steps": None}, "epochs or steps"),
        ({"batch": 201}, "larger than the declared"),
        ({"delta": 1e-26}, "delta must be at least"),
        ({"ledger": object(), "dataset": ""}, "whose budget"),
    ],
)
def test_bad_settings_are_refused(more, words):
    with pytest.raises(InvalidParameter, match=words):
        _run(**more)


def test_an_optimizer_of_other_parameters_is_refused():
    model, given, target = made("dense", 6, torch.float32)
    optimizer = torch.optim.SGD(model[0].parameters(), 0.1)
    with pytest.raises(InvalidParameter, match="exactly the parameters"):
        private(model, optimizer, (given, target), epsilon=1, delta=1e-5, size=6, batch=6, steps=1)


def test_a_large_delta_is_warned_of():
    with pytest.warns(UserWarning, match="more than one in the 200 records"):
        _run(delta=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _run()


def test_objectives_give_a_number_a_record():
    out, target = torch.randn(5, 3, 4), torch.randint(0, 4, (5, 3))
    target[0, 0] = -100
    assert cross_entropy(out, target).shape == (5,)
    wanted = nn.functional.cross_entropy(out[0, 1:], target[0, 1:])
    assert torch.allclose(cross_entropy(out, target)[0], wanted)
    assert squared_error(torch.ones(4, 1), torch.zeros(4)).tolist() == [0.5] * 4


def test_it_learns():
    torch.manual_seed(2)
    given = torch.randn(2000, 5)
    target = (given[:, 0] + given[:, 1] > 0).long()
    model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 2))
    run = private(model, torch.optim.Adam(model.parameters(), 0.02), (given, target), epsilon=3, delta=1e-5,
                  size=2000, batch=400, epochs=12)  # fmt: skip
    run.fit()
    assert (model(given).argmax(1) == target).float().mean() > 0.9


def test_rounding_to_the_grid_takes_nobody_beyond_the_clip(monkeypatch):
    """All numbers are rounded alike: a record can move each by nearly a step more than its gradient."""
    numbers, model = 100, nn.Linear(100, 1, bias=False)
    given, moved = torch.ones(2, numbers), []
    price = Fraction(30), Fraction(1, 100_000)
    sigma = Poisson(1, 1).sigma(price[0], price[1] - law.missing(price, numbers))
    monkeypatch.setattr(descent, "SIGMA", 9.5 * sigma * math.sqrt(numbers))  # a coarse grid
    run = private(
        model, torch.optim.SGD(model.parameters(), 0.1), (given, torch.zeros(2)),
        epsilon=30, delta=1e-5, size=2, batch=2, steps=1, objective=lambda out, _: out[:, 0],
    )  # fmt: skip
    step = run._descent.step_of_grid
    for part in range(20):
        given[0] = step * part / 20
        one, both = (run._descent.sums(np.array(drawn))[0].clone() for drawn in ([0], [0, 1]))
        moved.append(float((both - one).double().norm()) * step)
    assert min(moved) < max(moved) <= 1
