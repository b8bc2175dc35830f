"""A fit that is paid once and spent step by step: never beyond what was paid, never on record."""

from __future__ import annotations

import copy
import pickle
import random
from fractions import Fraction

import pytest

from sfumato import random as noise
from sfumato.accounting import BasicFilter, ConcentratedFilter, GaussianFilter, RenyiFilter
from sfumato.errors import AccessDenied, BudgetExceeded, InvalidParameter, UnsupportedLoss
from sfumato.games.models import RandomStopping
from sfumato.ledger import Budget, Ledger, Memo, Steps
from sfumato.loss import ApproximateLoss, ConcentratedLoss, GaussianLoss, PureLoss
from sfumato.purchase import Purchase, buy
from sfumato.testing import seeded

F = Fraction
GATES = {
    "pure": (lambda: BasicFilter(1), Budget(100), lambda part: PureLoss(part)),
    "approximate": (
        lambda: BasicFilter(1, "1e-3"),
        Budget(100, "1e-1"),
        lambda part: ApproximateLoss(part, part * F("1e-3")),
    ),
    "zcdp": (
        lambda: ConcentratedFilter("0.01"),
        Budget(10, "1e-6", "zcdp"),
        lambda part: ConcentratedLoss(part * F("0.01")),
    ),
    "gaussian": (
        lambda: GaussianFilter("0.01"),
        Budget(10, "1e-6", "gaussian"),
        lambda part: GaussianLoss(part * F("0.01")),
    ),
    "rdp": (
        lambda: RenyiFilter(8, F(8, 100)),
        Budget(10, "1e-6", "rdp", order=8),
        lambda part: GaussianLoss(part * F("0.01")),
    ),
}


@pytest.fixture(params=GATES)
def fit(request):
    gate, budget, step = GATES[request.param]
    with Ledger.open() as ledger:
        ledger.register("visits", {"unit": "row"}, budget)
        yield ledger, gate, step


def paid(ledger, gate):
    return ledger.debit("visits", gate.loss, fingerprint="fit")


def exhaust(ledger, gate, step, draws):
    """Steps of prices that chance picks, until one is refused; what was taken, in parts of the price."""
    steps, taken = paid(ledger, gate()).steps(gate()), F(0)
    while True:
        part = F(draws.randint(1, 40), 100)
        if taken + part > 1:
            with pytest.raises(BudgetExceeded, match="beyond what was paid"):
                steps.take(step(part))
            break
        steps.take(step(part))
        taken += part
        if draws.random() < 0.1:
            break
    rest = 1 - taken
    if rest:
        steps.take(step(rest))  # a refusal took nothing, and the last bit is there
    with pytest.raises(BudgetExceeded):
        steps.take(step(F(1, 10**6)))
    return taken


def test_any_steps_fit_exactly_and_none_beyond(fit):
    ledger, gate, step = fit
    draws = random.Random(7)
    for _ in range(20):
        exhaust(ledger, gate, step, draws)
    assert [each.kind for each in ledger.entries()].count("debit") == 20
    assert ledger.verify().ok


def test_steps_that_are_not_counted_do_not_pass(fit, monkeypatch):
    ledger, gate, step = fit

    def uncounted(self, loss, read=None):
        self._gate.after(loss)

    monkeypatch.setattr(Steps, "take", uncounted)
    with pytest.raises((pytest.fail.Exception, BudgetExceeded)):
        exhaust(ledger, gate, step, random.Random(3))


def test_a_filter_that_promises_more_than_was_paid_is_refused(fit):
    ledger, gate, _ = fit
    for name, (other, _, _) in GATES.items():
        if other().loss != gate().loss and other().loss.approximate:
            with pytest.raises(AccessDenied, match="a loss other than its filter allows"):
                paid(ledger, gate()).steps(other())
        assert name


def test_a_fit_begins_once_with_an_unspent_filter(fit):
    ledger, gate, step = fit
    right = paid(ledger, gate())
    with pytest.raises(InvalidParameter, match="spent nothing"):
        right.steps(gate().after(step(F(1, 2))))
    steps = right.steps(gate())
    with pytest.raises(AccessDenied, match="used before"):
        right.steps(gate())
    for carry in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="pickled or copied"):
            carry(steps)


def test_a_step_reads_what_it_names_once(fit):
    ledger, gate, step = fit
    steps = paid(ledger, gate()).steps(gate())
    right = steps.take(step(F(1, 2)), "a marginal")
    right.use("a marginal")
    with pytest.raises(AccessDenied):
        right.use("a marginal")
    with pytest.raises(AccessDenied):
        steps.take(step(F(1, 4))).use("a marginal")


def test_steps_for_other_neighbours_are_refused():
    with Ledger.open() as ledger:
        ledger.register("visits", {"unit": "row"}, Budget(1))
        right = ledger.debit("visits", PureLoss(1).under("exchange"), fingerprint="fit")
        steps = right.steps(BasicFilter(1))
        with pytest.raises(UnsupportedLoss, match="exchange"):
            steps.take(PureLoss("0.1").under("add-remove"))
        steps.take(PureLoss("0.1").under("exchange"))


def test_a_hidden_number_of_runs_leaves_no_record():
    """However many runs there were, the ledger has one debit and one answer of the same form."""
    stopping, runs, shapes = RandomStopping("0.1", "0.2"), [], set()
    with Ledger.open() as ledger, seeded("hidden runs"):
        ledger.register("visits", {"unit": "row"}, Budget(100))
        for number in range(40):

            def answer(right):
                right.use(right.receipt.fingerprint)
                made = []

                def run():
                    made.append(1)
                    return float(noise.integers(5)), 1

                best = stopping.select(run)
                runs.append(len(made))
                return int(best[0])

            before = len(ledger.export())
            wanted = Purchase(
                dataset="visits",
                loss=stopping.loss,
                fingerprint=f"fit {number:02}",
                memo=Memo("tuning", "best of a hidden number of runs"),
                answer=answer,
                write=lambda score: f"{score}".encode(),
                read_back=int,
            )
            buy(ledger, wanted)
            debit, release = ledger.export()[before:]
            shapes.add((debit["kind"], str(debit["loss"]), str(debit["memo"]), release["memo"]["size"]))
    assert len(set(runs)) > 3
    assert len(shapes) == 1
