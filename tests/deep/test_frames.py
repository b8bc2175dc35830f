"""What is in frames while an optimizer's code runs, and what errors and warnings carry: nothing un-noised."""

import sys
import warnings
from inspect import isgenerator

import numpy as np
import pytest
from torch import nn

from deep import torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import descent, faults, federated, private
from sfumato.learn.torch.descent import Descent

WIDTH = 3
GIVEN, TARGET = torch.randn(6, WIDTH), torch.tensor([0, 1, 0, 1, 0, 1])
EXAMPLE = (torch.zeros(WIDTH), torch.tensor(0))


class _Broken(torch.optim.SGD):
    def step(self, closure=None):
        raise OSError("disk full")


def _run(optimizer=torch.optim.SGD, data=None, model=None, **more):
    model = nn.Linear(WIDTH, 2) if model is None else model
    settings = {"epsilon": 1, "delta": 1e-5, "size": 6, "batch": 6, "steps": 2, "physical": 4} | more
    return private(
        model, optimizer(model.parameters(), lr=0.1), (GIVEN, TARGET) if data is None else data,
        example=EXAMPLE, **settings,
    )  # fmt: skip


def _inside(value, depth=0):
    yield value
    if isgenerator(value) and value.gi_frame is not None:
        value = value.gi_frame.f_locals
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple) and depth < 3:
        for each in value:
            yield from _inside(each, depth + 1)


class _Secrets:
    """All that a step makes which has no noise: what sums are given and give, and who was drawn."""

    def __init__(self, patch):
        self.held = []
        inner = Descent.sums

        def sums(itself, drawn):
            found = inner(itself, drawn)
            self.held += [drawn, found, *found]
            return found

        patch.setattr(Descent, "sums", sums)

    def seen(self, frame, tracebacks=()):
        """Names of frames that hold any of it."""
        frames = list[object]()
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        for each in tracebacks:
            while each is not None:
                frames.append(each.tb_frame)
                each = each.tb_next
        return {
            each.f_code.co_qualname
            for each in frames
            for value in _inside(list(each.f_locals.values()))
            if any(value is secret for secret in self.held) and "_Secrets" not in each.f_code.co_qualname
        }


def _all_of(error):
    while error is not None:
        yield error.__traceback__
        error = error.__cause__ or error.__context__


def _after(patch, optimizer=_Broken, hook=False):
    secrets, found = _Secrets(patch), set()
    run = _run(torch.optim.SGD if hook else optimizer)
    if hook:
        run.optimizer.register_step_pre_hook(lambda *_: found.update(secrets.seen(sys._getframe(1))))
        run.step()
    else:
        with pytest.raises(OSError, match="disk full") as caught:
            run.step()
        found = secrets.seen(None, _all_of(caught.value))
    assert secrets.held
    return found


def _as_it_was(itself):
    drawn, noise = itself.sampler.draw(len(itself.records)), itself.noise.draw(itself.numbers)
    sums = itself.sums(drawn)
    itself._set(sums, noise.values())
    itself.optimizer.step()


@pytest.mark.parametrize("hook", [False, True])
def test_no_frame_holds_sums_while_the_optimizer_runs(hook, monkeypatch):
    assert _after(monkeypatch, hook=hook) == set()
    monkeypatch.setattr(Descent, "step", _as_it_was)
    assert _after(monkeypatch, hook=hook) == {"_as_it_was"}, "otherwise one would"


@pytest.mark.parametrize("where", ["summed", "_set"])
def test_an_error_of_a_step_brings_no_frame_of_it(where, monkeypatch):
    """Such as an interrupt, which comes anywhere."""
    secrets, run = _Secrets(monkeypatch), _run()
    inner = descent.summed

    def interrupted(*given):
        if where == "summed":
            secrets.held += [*given, *given[1], *inner(*given)]
        try:
            raise ValueError("the secret")
        except ValueError:
            raise KeyboardInterrupt  # noqa: B904

    monkeypatch.setattr(*((descent, "summed") if where == "summed" else (Descent, "_set")), interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        run.step()
    assert caught.value.__context__ is None
    secrets.held = [each for each in secrets.held if each is not run and each is not run._descent.model]
    assert secrets.seen(None, _all_of(caught.value)) <= {"interrupted"} - {"interrupted"}
    assert run.taken == 0


def test_bare_forgets_all_errors_before():
    def raised():
        try:
            try:
                raise ValueError("one")
            except ValueError as error:
                raise TypeError("two") from error
        except TypeError:
            raise ExceptionGroup("three", [OSError("four")])  # noqa: B904

    with pytest.raises(ExceptionGroup) as caught:
        raised()
    error = faults.bare(caught.value)
    assert (error.__traceback__, error.__context__, error.__cause__) == (None, None, None)


class _Logs(torch.utils.data.Dataset):
    """A data set whose reading warns, prints or raises for a record with a zero."""

    def __init__(self, zero):
        self.given = np.ones((6, WIDTH))
        self.given[2] = 0 if zero else 1

    def __len__(self):
        return len(self.given)

    def __getitem__(self, place):
        return torch.from_numpy(np.log(self.given[place])).float(), TARGET[place]


class _Warns(nn.Module):
    def __init__(self):
        super().__init__()
        self.map = nn.Linear(WIDTH, 2)

    def forward(self, given):
        if bool((given == 7.25).any()):
            warnings.warn("the secret", stacklevel=2)
        return self.map(given)


def _warned():
    said = []
    for odd in (False, True):
        given = GIVEN.clone()
        given[3] = 7.25 if odd else 0
        clients = [(given[at : at + 1], TARGET[at : at + 1]) for at in range(6)]
        model = _Warns()
        runs = [
            _run(data=_Logs(odd)),
            _run(data=(given, TARGET), model=_Warns()),
            federated(
                model, torch.optim.SGD(model.parameters(), 1), clients, example=EXAMPLE, epsilon=1,
                delta=1e-5, size=6, batch=6, rounds=1,
            ),
        ]  # fmt: skip
        with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
            warnings.simplefilter("always")
            for run in runs:
                run.step()
        said.append([str(each.message) for each in caught])
    return said


def test_no_record_makes_a_warning(monkeypatch):
    assert _warned() == [[], []]
    monkeypatch.setattr(descent, "quiet", lambda: warnings.catch_warnings())
    without, with_it = _warned()
    assert without == []
    assert len(with_it) >= 3, "otherwise one would"


def test_warnings_are_what_they_were_after_a_step():
    run, filters = _run(), list(warnings.filters)
    run.step()
    assert list(warnings.filters) == filters


def test_the_detection_of_anomalies_is_refused_before_a_step():
    run = _run()
    with torch.autograd.set_detect_anomaly(True), pytest.raises(InvalidParameter, match="anomalies"):
        run.step()
    assert (run.taken, run.left) == (0, 2)
    run.fit()
