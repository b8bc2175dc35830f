"""Filters: exact sums, nothing spent on refusal, losses without a proven rule refused."""

from __future__ import annotations

import pickle
import re
from dataclasses import FrozenInstanceError
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting import (
    BasicFilter,
    ConcentratedFilter,
    GaussianFilter,
    RenyiFilter,
    discrete_gaussian_variance,
    gaussian_sigma,
)
from sfumato.errors import BudgetExceeded, InvalidParameter, UnsupportedLoss
from sfumato.loss import (
    NO_LOSS,
    ApproximateLoss,
    BoundedRangeLoss,
    ConcentratedLoss,
    DiscreteGaussianLoss,
    GaussianLoss,
    LaplaceLoss,
    PureLoss,
    RenyiLoss,
)
from sfumato.mechanisms import Laplace

F = Fraction


def test_ten_tenths_are_one():
    budget = BasicFilter(1)
    for _ in range(10):
        budget = budget.after(PureLoss(0.1))
    assert budget.spent == (1, 0)
    assert budget.remaining == (0, 0)
    with pytest.raises(BudgetExceeded):
        budget.after(PureLoss("1e-200"))
    assert budget.admits(NO_LOSS)


def test_a_fresh_budget_admits_exactly_one_release_at_its_own_price():
    epsilon, delta = F(1), F(1, 10**6)
    sigma = gaussian_sigma(epsilon, delta)
    loss = GaussianLoss(1 / (2 * sigma * sigma), (epsilon, delta))
    budget = BasicFilter(epsilon, delta)
    assert budget.admits(loss)
    assert not budget.after(loss).admits(loss)
    assert budget.after(loss).remaining == (0, 0)


def test_refusal_changes_nothing_and_says_how_much():
    budget = BasicFilter(1, "1e-6").after(PureLoss("0.7"))
    with pytest.raises(BudgetExceeded, match=r"1\.1.*budget of 1"):
        budget.after(PureLoss("0.4"))
    with pytest.raises(BudgetExceeded, match="delta"):
        budget.after(ApproximateLoss("0.1", "1e-5"))
    assert budget.spent == (F("0.7"), 0)
    with pytest.raises(BudgetExceeded, match=r"0\.3 is left and nothing was spent\.$"):
        budget.after(PureLoss("0.4"))


FILTERS = [
    BasicFilter(epsilon=3, delta="1e-6"),
    ConcentratedFilter(rho=1, delta="1e-6"),
    GaussianFilter(mu=2),
    RenyiFilter(order=8, budget=2),
]


@pytest.mark.parametrize("budget", FILTERS, ids=lambda budget: type(budget).__name__)
def test_only_losses_are_admitted(budget):
    for wrong in (Laplace(epsilon=1, sensitivity=1), 0.5, [PureLoss(1)], None):
        message = f"A filter admits losses, not {type(wrong).__name__}; pass mechanism.loss."
        for ask in (budget.after, budget.admits):
            with pytest.raises(InvalidParameter, match=re.escape(message)):
                ask(wrong)


@pytest.mark.parametrize("budget", FILTERS, ids=lambda budget: type(budget).__name__)
def test_what_was_spent_is_set_by_after_alone(budget):
    with pytest.raises(FrozenInstanceError):
        budget.spent = 0
    with pytest.raises(TypeError):
        type(budget)(1, 2, 3)
    later = budget.after(GaussianLoss("0.005", ("0.5", "1e-7")))
    assert later != budget
    assert type(budget).__name__ in repr(later)
    assert pickle.loads(pickle.dumps(later)) == later
    fresh = FILTERS[FILTERS.index(budget)]
    assert fresh.spent in (0, (0, 0))
    assert later.remaining != budget.remaining == fresh.budget


def test_natural_keywords():
    assert BasicFilter(epsilon=3, delta=1e-6) == BasicFilter(3, F(1, 10**6))
    assert ConcentratedFilter(rho="0.5", delta="1e-6").remaining == (F(1, 2), F(1, 10**6))
    assert GaussianFilter(mu=2) == GaussianFilter(rho=2) == GaussianFilter(2)
    assert RenyiFilter(order=8, budget=2) == RenyiFilter(8, 2)
    for wrong in ({}, {"rho": 1, "mu": 1}):
        with pytest.raises(InvalidParameter, match="not both"):
            GaussianFilter(**wrong)


def test_a_calibrated_discrete_gaussian_fits_a_fresh_budget():
    variance = discrete_gaussian_variance(1, "1e-6")
    loss = DiscreteGaussianLoss(variance, F(1), True, (F(1), F(1, 10**6)))
    budget = BasicFilter(1, "1e-6").after(loss)
    assert budget.remaining == (0, 0)


def test_basic_prices_a_curve_at_a_given_delta():
    loss = GaussianLoss(F(1, 100))
    with pytest.raises(UnsupportedLoss, match="calibrate"):
        BasicFilter(5, "1e-5").after(loss)
    budget = BasicFilter(5, "1e-5").after(loss, delta="1e-6")
    # Not below the figure, whether a float is read as its binary value or as the decimal that it shows.
    figure = loss.epsilon("1e-6")
    assert budget.spent == (max(F(figure), F(repr(figure))), F(1, 10**6))
    assert BasicFilter(5, "1e-5").admits(loss, delta="1e-6")
    assert not BasicFilter("0.1", "1e-5").admits(loss, delta="1e-6")
    calibrated = GaussianLoss(F(1, 100), (F("0.3"), F("0.1")))
    assert BasicFilter(5, "0.2").after(calibrated, delta="0.1").spent[0] <= F("0.3")
    with pytest.raises(UnsupportedLoss):
        BasicFilter(5).after(loss, delta=0)


def test_concentrated_sums_rho_and_delta():
    budget = ConcentratedFilter(1, "1e-6")
    for loss in (
        GaussianLoss("0.2"),
        PureLoss("0.2"),
        BoundedRangeLoss("0.4"),
        DiscreteGaussianLoss(5, F(1), False),
    ):
        budget = budget.after(loss)
    assert budget.spent == (F("0.34"), 0)
    budget = budget.after(ConcentratedLoss("0.1", "1e-6"))
    assert budget.remaining == (F("0.56"), 0)
    with pytest.raises(BudgetExceeded, match="delta"):
        budget.after(ApproximateLoss("0.1", "1e-9"))
    with pytest.raises(UnsupportedLoss):
        budget.after(RenyiLoss([2], [1]))
    assert budget.epsilon("2e-6") == pytest.approx(ConcentratedLoss(1).epsilon("1e-6"))


def test_gaussian_admits_only_losses_with_a_mu():
    budget = GaussianFilter(1).after(GaussianLoss("0.3")).after(GaussianLoss("0.3") * 2)
    assert budget.spent == F("0.9")
    assert budget.remaining == F("0.1")
    assert budget.after(NO_LOSS) == budget
    # A discrete Gaussian has the same ρ, but it is not dominated by that μ.
    for loss in (
        DiscreteGaussianLoss(100, F(1)),
        ConcentratedLoss("0.01"),
        PureLoss("0.01"),
        GaussianLoss("0.01").sampled("0.5"),
    ):
        with pytest.raises(UnsupportedLoss, match="μ"):
            budget.after(loss)
    with pytest.raises(BudgetExceeded):
        budget.after(GaussianLoss("0.11"))
    assert budget.epsilon("1e-6") == GaussianLoss(1).epsilon("1e-6")


def test_renyi_commits_to_one_order():
    budget = RenyiFilter(8, 2).after(GaussianLoss("0.1"))
    assert budget.spent == F("0.8")
    laplace = LaplaceLoss("0.5")
    assert budget.price(laplace) >= F(laplace.rdp(8)) * (1 - F(1, 2**50))
    assert budget.price(laplace * 3) == 3 * budget.price(laplace)
    assert budget.price(GaussianLoss("0.1").sampled("0.1")) < F("0.8") / 10
    with pytest.raises(BudgetExceeded, match="order 8"):
        budget.after(GaussianLoss("0.2"))
    with pytest.raises(UnsupportedLoss):
        budget.after(ApproximateLoss(1, "1e-6"))
    with pytest.raises(UnsupportedLoss):
        budget.after(RenyiLoss([2], ["0.1"]))
    with pytest.raises(InvalidParameter):
        RenyiFilter(1, 2)
    assert budget.epsilon("1e-6") == RenyiLoss([8], [2]).epsilon("1e-6")


@given(st.lists(st.fractions(F(1, 100), F(1, 2), max_denominator=1000), max_size=12))
def test_what_was_spent_never_passes_the_budget(prices):
    budget = BasicFilter(1)
    for price in prices:
        before = budget.spent[0]
        if budget.admits(PureLoss(price)):
            budget = budget.after(PureLoss(price))
            assert budget.spent[0] == before + price <= 1
        else:
            assert before + price > 1
    assert sum(budget.spent) + sum(budget.remaining) == 1


def test_planted_bug_a_float_sum_would_refuse_or_overspend():
    # Three times 0.1 in floats is 0.30000000000000004: a budget of 0.3 would refuse its own third release.
    assert 0.1 + 0.1 + 0.1 > 0.3
    budget = BasicFilter(0.3)
    for _ in range(3):
        budget = budget.after(PureLoss(0.1))
    assert budget.remaining == (0, 0)


@pytest.mark.parametrize(
    "budget",
    [BasicFilter(10, "1e-2"), ConcentratedFilter(100), RenyiFilter(2, 100)],
    ids=["basic", "concentrated", "renyi"],
)
def test_a_budget_keeps_to_one_kind_of_neighbours(budget):
    assert budget.adaptive
    assert budget.adjacency is None
    plain, other = PureLoss(1), PureLoss(1).parallel(PureLoss(1), adjacency="exchange")
    sampled = plain.sampled("1/2")
    after = budget.after(plain).after(sampled)
    assert after.adjacency == "add-remove"
    for mixed in (other, plain.sampled("1/2", scheme="fixed")):
        with pytest.raises(UnsupportedLoss, match="neighbours"):
            after.after(mixed)
    assert budget.after(other).after(plain).adjacency == "exchange"


LOSSES = [
    GaussianLoss(F(1, 50), point=(F(2), F(1, 10**7))),
    GaussianLoss(F(1, 1000), point=(F(1), F(1, 10**8))),
]


@pytest.mark.parametrize("budget", FILTERS, ids=lambda budget: type(budget).__name__)
def test_a_filter_resumed_from_its_sums_is_the_filter(budget):
    later = budget
    for loss in LOSSES:
        later = later.after(loss)
    assert later.spent != budget.spent
    assert budget.resumed(later.spent, later.adjacency) == later
    assert later.resumed(budget.spent) == budget


@pytest.mark.parametrize("budget", FILTERS, ids=lambda budget: type(budget).__name__)
def test_a_price_is_what_is_added(budget):
    later = budget.after(LOSSES[0])
    price = budget.price(LOSSES[1])
    spent = later.after(LOSSES[1]).spent
    if isinstance(price, tuple):
        assert spent == tuple(a + b for a, b in zip(later.spent, price, strict=True))
    else:
        assert spent == later.spent + price


def test_a_resumed_filter_keeps_its_neighbours_and_may_be_overdrawn_already():
    budget = BasicFilter(1).resumed((F(2), F(0)), "exchange")
    assert budget.adjacency == "exchange"
    with pytest.raises(BudgetExceeded):
        budget.after(PureLoss("0.1"))


@pytest.mark.parametrize("budget", FILTERS, ids=lambda budget: type(budget).__name__)
@pytest.mark.parametrize(
    "spent", [(F(-1), F(0)), F(-1), (F(0),), 0.5, (0.5, 0.0), None, (F(0), F(0), F(0)), "1/2"]
)
def test_sums_that_no_such_filter_keeps_are_refused(budget, spent):
    with pytest.raises(InvalidParameter):
        budget.resumed(spent)
    with pytest.raises(InvalidParameter):
        budget.resumed(budget.spent, "neither")
