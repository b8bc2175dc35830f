"""Units that are users: however many records one has, it is drawn whole and moves a step by one clip."""

import math

import numpy as np
import pytest

from deep import MODELS, made, objective, torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch.clipping import Bound
from sfumato.learn.torch.engine import Engine
from sfumato.learn.torch.noise import Drawn
from sfumato.learn.torch.runs import private
from sfumato.learn.torch.users import OfUsers, Users

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")
CPU = torch.device("cpu")


def _of_users(model, given, target, length):
    """Sums of cut gradients, by the loss of each user's records in a loop."""
    trained = [each for each in model.parameters() if each.requires_grad]
    sums = [torch.zeros_like(each) for each in trained]
    for one, wanted in zip(given, target, strict=True):
        loss = objective(model(one), wanted).mean()
        found = torch.autograd.grad(loss, trained)
        norm = math.sqrt(sum(float(part.square().sum()) for part in found))
        sums = [total + part * min(1, length / norm) for total, part in zip(sums, found, strict=True)]
    return sums


@pytest.mark.parametrize("name", MODELS)
def test_a_user_has_the_gradient_of_its_mean_loss_cut_once(name):
    model, given, target = made(name, 12)
    given, target = given.unflatten(0, (4, 3)), target.unflatten(0, (4, 3))
    bound = Bound(0.4, spread=1e6, room=1e-4)
    found = OfUsers(model, objective, bound).sums(given, target, torch.ones(4))
    wanted = _of_users(model, given, target, bound.length)
    largest = max(float(value.abs().max()) for value in wanted)
    for one, other in zip(found, wanted, strict=True):
        assert (one - other).abs().max() <= 1e-12 * largest


def _moved(user_records):
    """How far a user with many long gradients moves a step, in clips."""
    model, given, target = made("image", 40, torch.float32)
    ids = np.r_[np.repeat(np.arange(8), 4), np.full(8, 99)]
    given[32:], target[32:] = given[32] * 50, target[32]
    sums = []
    for kept in (slice(0, 40), slice(0, 32)):
        optimizer = torch.optim.SGD(model.parameters(), 0.0)
        run = private(
            model, optimizer, (given[kept], target[kept]), users=ids[kept], records_each=user_records,
            epsilon=1, delta=1e-5, size=9, batch=9, steps=1, physical=12, clip=0.01, objective=objective,
        )  # fmt: skip
        run._descent.noise.draw = lambda count: Drawn(lambda: torch.zeros(count, dtype=torch.int32))
        seen = []
        optimizer.step = lambda seen=seen: seen.extend(
            each.grad.double().flatten() * 9 for each in model.parameters()
        )
        run.step()
        sums.append(torch.cat(seen))
    return float((sums[0] - sums[1]).norm()) / 0.01


def test_a_user_moves_a_step_by_one_clip_at_most():
    assert 0.5 < _moved(8) <= 1 + 1e-6


def test_if_each_record_were_cut_a_user_would_move_several(monkeypatch):
    monkeypatch.setattr("sfumato.learn.torch.descent.check_places", lambda *_: None)

    def by_record(self, given, target, mask):
        each = given.shape[1]
        return Engine.sums(self, given.flatten(0, 1), target.flatten(0, 1), mask.repeat_interleave(each))

    monkeypatch.setattr(OfUsers, "forms", Engine.forms)
    monkeypatch.setattr(OfUsers, "sums", by_record)
    assert _moved(8) > 4


def test_users_are_drawn_and_not_records():
    _, given, target = made("dense", 30, torch.float32)
    given[:, 0] = torch.arange(30)
    ids = [f"user {at % 3}" for at in range(30)]
    records = Users((given, target), None, ids, 4)
    assert len(records) == 3
    (batch,) = records.batches(np.array([2, 0]), 5, CPU)
    assert batch.given.shape == (5, 4, 7)
    assert batch.mask.tolist() == [1, 1, 0, 0, 0]
    whose = batch.given[:2, :, 0] % 3
    assert (whose == whose[:, :1]).all()
    assert len(set(batch.given[0, :, 0].tolist())) == 4, "no record twice where there are enough"
    seen = [
        set(next(iter(records.batches(np.array([0]), 1, CPU))).given[0, :, 0].tolist()) for _ in range(60)
    ]
    assert set.union(*seen) == {float(at) for at in range(0, 30, 3)}, "chosen anew, and none is never chosen"


def test_a_user_of_few_records_is_seen_by_the_same_ones_again():
    _, given, target = made("dense", 5, torch.float32)
    records = Users((given, target), None, torch.tensor([7, 7, 7, 7, 1]), 4)
    (batch,) = records.batches(np.array([0]), 1, CPU)
    assert torch.equal(batch.given[0], given[4].expand(4, -1))


class _Faulty:
    def __init__(self, given, target):
        self.given, self.target = given, target

    def __len__(self):
        return len(self.given)

    def __getitem__(self, place):
        if place in (1, 4, 5):
            raise OSError("this file is broken")
        return self.given[place], self.target[place]


def _no_owner(place):
    return {0: 1, 1: 1, 2: math.nan, 3: "b", 4: [], 5: 9}[place]


def test_records_without_owner_or_content_are_left_out():
    _, given, target = made("dense", 6, torch.float32)
    records = Users(_Faulty(given, target), (torch.zeros(7), torch.tensor(0)), _no_owner, 3)
    assert len(records) == 3  # 1, 9 and b; one of NaN, one of a list
    (batch,) = records.batches(np.arange(3), 4, CPU)
    assert batch.mask.tolist() == [1, 0, 1, 0]
    assert torch.equal(batch.given[0], given[0].expand(3, -1))
    assert torch.equal(batch.given[2], given[3].expand(3, -1))
    broken = Users((given, target), None, lambda place: 1 // 0, 3)
    assert len(broken) == 0
    (batch,) = broken.batches(np.arange(0), 4, CPU)
    assert batch.given.shape == (4, 3, 7)


def test_ids_are_read_when_a_step_is_paid():
    _, given, target = made("dense", 6, torch.float32)
    read = []
    model = made("dense", 1, torch.float32)[0]
    run = private(
        model, torch.optim.SGD(model.parameters(), 0.1), (given, target), users=lambda at: read.append(at),
        records_each=2, epsilon=1, delta=1e-5, size=6, batch=3, steps=2,
    )  # fmt: skip
    assert not read
    assert "users by chance" in repr(run)
    run.step()
    assert read == list(range(6))
    other = private(
        model, torch.optim.SGD(model.parameters(), 0.1), (given, target), epsilon=1, delta=1e-5, size=6,
        batch=3, steps=2,
    )  # fmt: skip
    assert other._declared() != run._declared(), "a run of users is not paid as one of records"


@pytest.mark.parametrize("users", [5, "aaaaaa", [1, 2], torch.zeros(6, 1)])
def test_what_is_no_list_of_owners_is_refused(users):
    _, given, target = made("dense", 6, torch.float32)
    with pytest.raises(InvalidParameter, match="users must"):
        Users((given, target), None, users, 2)


def test_how_many_records_must_be_said():
    model, given, target = made("dense", 6, torch.float32)
    with pytest.raises(InvalidParameter, match="records_each"):
        private(
            model, torch.optim.SGD(model.parameters(), 0.1), (given, target), users=[1] * 6, epsilon=1,
            delta=1e-5, size=6, batch=3, steps=2,
        )  # fmt: skip
