"""Budgets: exact, fixed at creation, and never worth more than the (ε, δ) they are written as."""

from __future__ import annotations

import pickle
from fractions import Fraction

import pytest

from sfumato.accounting import gaussian_sigma
from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerUnusable
from sfumato.ledger import Budget
from sfumato.loss import ApproximateLoss, ConcentratedLoss, GaussianLoss, PureLoss, RenyiLoss

F = Fraction
POINTS = [(1, "1e-6"), ("0.01", "1e-9"), (20, "1e-5"), (2, "0.1")]


@pytest.mark.parametrize(("epsilon", "delta"), POINTS)
@pytest.mark.parametrize("accountant", ["zcdp", "gaussian", "rdp"])
def test_all_that_a_gate_admits_is_within_the_point(accountant, epsilon, delta):
    budget = Budget(epsilon, delta, accountant)
    whole = {
        "zcdp": lambda: ConcentratedLoss(*budget.limits),
        "gaussian": lambda: GaussianLoss(budget.limits[0]),
        "rdp": lambda: RenyiLoss([budget.order], [budget.limits[0]]),
    }[accountant]()
    # The Gaussian limit is certified in ball arithmetic; this curve is rounded up by a hair.
    assert whole.delta(budget.epsilon) <= F(delta) * (1 + F(1, 10**10))
    # … and not by much: a thousandth more would not be.
    more = tuple(limit * F(1001, 1000) for limit in budget.limits)
    larger = {
        "zcdp": lambda: ConcentratedLoss(*more),
        "gaussian": lambda: GaussianLoss(more[0]),
        "rdp": lambda: RenyiLoss([budget.order], [more[0]]),
    }[accountant]()
    assert larger.delta(budget.epsilon) > F(delta)


def test_basic_admits_exactly_one_release_at_its_own_price():
    sigma = gaussian_sigma(1, "1e-6")
    loss = GaussianLoss(1 / (2 * sigma * sigma), point=(F(1), F(1, 10**6)))
    for accountant in ("basic", "gaussian"):
        gate = Budget(1, "1e-6", accountant).filter().after(loss)
        with pytest.raises(BudgetExceeded):
            gate.after(loss)


def test_a_float_means_its_decimal():
    assert Budget(0.1, 1e-6) == Budget("0.1", "1e-6") == Budget(F(1, 10), F(1, 10**6))
    assert Budget(0.1).limits == (F(1, 10), 0)
    assert Budget(1) != Budget(1, "1e-6")
    assert Budget(1, "1e-6") != Budget(1, "1e-6", "zcdp")


@pytest.mark.parametrize("accountant", ["basic", "zcdp", "gaussian", "rdp"])
def test_a_budget_survives_the_wire_with_its_limits(accountant):
    budget = Budget("1.5", "1e-7", accountant)
    again = Budget.from_dict(budget.to_dict())
    assert again == budget
    assert again.limits == budget.limits
    assert again.filter() == budget.filter()
    assert pickle.loads(pickle.dumps(budget)) == budget
    # Limits are those it was opened with, whatever this version would compute.
    older = budget.to_dict() | {"limits": [str(limit / 2) for limit in budget.limits]}
    assert Budget.from_dict(older).limits == tuple(limit / 2 for limit in budget.limits)
    assert Budget.from_dict(older) == budget


def test_the_order_may_be_chosen_and_aside_kept():
    budget = Budget(1, "1e-6", "rdp", order=32)
    assert budget.order == 32
    assert Budget(1, "1e-6", "rdp").at_order_of(budget) == budget
    aside = Budget(1, "1e-6", "zcdp", aside="1e-7")
    assert aside.limits[1] == F(1, 10**7)
    assert aside.limits[0] < Budget(1, "1e-6", "zcdp").limits[0]
    loss = ApproximateLoss("0.01", "1e-8")
    assert aside.filter().admits(loss)
    assert not Budget(1, "1e-6", "zcdp").filter().admits(loss)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Budget(0),
        lambda: Budget(-1),
        lambda: Budget(1, 1),
        lambda: Budget(float("nan")),
        lambda: Budget(float("inf")),
        lambda: Budget(1, "1e-6", "moments"),
        lambda: Budget(1, "1e-6", None),
        lambda: Budget(1, 0, "zcdp"),
        lambda: Budget(1, 0, "gaussian"),
        lambda: Budget(1, 0, "rdp"),
        lambda: Budget(1, "1e-6", "rdp", order=1),
        lambda: Budget(1, "1e-6", "zcdp", order=4),
        lambda: Budget(1, "1e-6", "basic", aside="1e-7"),
        lambda: Budget(1, "1e-6", "zcdp", aside="1e-6"),
        lambda: Budget("1e-200", "1e-6", "rdp", order=2),
    ],
)
def test_unusable_budgets_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        wrong()


@pytest.mark.parametrize(
    "wrong", [{}, {"accountant": "later"}, {"limits": []}, {"epsilon": None}, {"delta": "x"}]
)
def test_a_stored_budget_that_makes_no_sense_is_refused(wrong):
    data = Budget(1, "1e-6").to_dict() | wrong if wrong else {}
    with pytest.raises(LedgerUnusable):
        Budget.from_dict(data)


def test_what_sums_amount_to():
    assert Budget(1).spent_epsilon((F(1, 3), F(0))) == F(1, 3)
    for accountant in ("zcdp", "gaussian", "rdp"):
        budget = Budget(1, "1e-6", accountant)
        nothing = tuple(F(0) for _ in budget.limits)
        assert budget.spent_epsilon(nothing) == 0
        assert 0.99 < budget.spent_epsilon(budget.limits) <= 1
        half = tuple(limit / 2 for limit in budget.limits)
        assert 0 < budget.spent_epsilon(half) < 1


def test_it_reads_well():
    assert str(Budget(2, "1e-6")) == "epsilon 2, delta 1e-06 (basic)"
    assert str(Budget(1, "1e-6", "rdp", order=32)) == "epsilon 1, delta 1e-06 (rdp of order 32)"
    assert PureLoss(1).pure == 1
