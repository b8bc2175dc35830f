"""What a question takes of delta where it names none: never all, never too much, whatever came before."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import gaussian_sigma
from sfumato.errors import BudgetExceeded
from sfumato.ledger import Budget, Counter, Ledger, Steward, account
from sfumato.ledger.spare import Spare, spared
from sfumato.loss import ApproximateLoss

MILLIONTH = Fraction(1, 10**6)
TINY = Fraction(1, 10**9)
DELTAS = st.builds(
    lambda digits, exponent: Fraction(digits, 10**exponent), st.integers(1, 9), st.integers(1, 150)
)


def after(total: Fraction, count: int, rule=spared) -> Fraction:
    """What is left after so many questions that name no delta."""
    left = total
    for _ in range(count):
        taken = rule(total, left, "the budget's").delta
        assert 0 < taken <= left / 50
        left -= taken
    return left


@given(DELTAS, st.integers(1, 400))
@settings(max_examples=20, deadline=None)
def test_any_number_of_questions_leaves_some(total, count):
    assert after(total, count) >= total * 50 / (count + 50) / 2


@pytest.mark.parametrize(("count", "part"), [(50, 2), (150, 4), (350, 8), (750, 16)])
def test_so_many_questions_leave_so_much(count, part):
    assert after(MILLIONTH, count) == MILLIONTH / part


def test_the_thousandth_has_little_more_noise():
    left = after(MILLIONTH, 999)
    first, last = (spared(MILLIONTH, each, "").delta for each in (MILLIONTH, left))
    wider = gaussian_sigma(Fraction(1), last) / gaussian_sigma(Fraction(1), first)
    assert math.isclose(wider, 1.18, abs_tol=0.005)


@pytest.mark.parametrize(("count", "ratio"), [(1, 0.30), (5, 0.67), (20, 1.34), (100, 3.0)])
def test_laplace_noise_beside_gaussian_noise(count, ratio):
    """The half-widths at 95 % of counts that share epsilon 1, by the first question's delta."""
    laplace = -math.log(0.05) * count
    gaussian = 1.959964 * float(gaussian_sigma(Fraction(1), MILLIONTH / 100)) * math.sqrt(count)
    assert math.isclose(laplace / gaussian, ratio, abs_tol=0.005)


@given(DELTAS, DELTAS)
@settings(max_examples=50, deadline=None)
def test_it_falls_with_what_is_left_and_is_told(total, part):
    left = total * part
    spare, whole = spared(total, left, "the budget's"), spared(total, total, "the budget's")
    assert spare.delta <= whole.delta == total / 100
    assert "the budget's" in spare.told
    assert len(spare.told) < 80


# ── through the gates


def pay(counter: Counter, delta: Fraction, number: int) -> None:
    counter.debit("visits", ApproximateLoss(TINY, delta), fingerprint=f"question {number}")


def opened(budget: Budget) -> Ledger:
    ledger = Ledger.open(None)
    ledger.register("visits", {"unit": {"adjacency": "remove"}, "version": "1"}, budget)
    return ledger


def ask(budget: Budget, limit: Budget | None, steps: list[tuple[bool, int]]) -> None:
    """Questions of the steward and of an analyst; some name the part of delta that they take."""
    with opened(budget) as ledger:
        if limit is not None:
            Steward(ledger).limit("visits", "ada", limit, reason="a project")
        ada = Counter(ledger, "ada")
        for number, (hers, part) in enumerate(steps):
            payer = ada if hers else ledger
            spare, left = payer.spare("visits"), payer.balance("visits", payer.analyst)
            assert left.next_delta == spare.delta <= left.remaining_delta
            named = left.remaining_delta * Fraction(part, 10) if part else spare.delta
            pay(payer, named, number)
            assert ledger.balance("visits").remaining_delta >= 0
        assert ledger.verify().ok


STEPS = st.tuples(st.booleans(), st.sampled_from([0] * 8 + [1, 5, 9, 10]))
EPSILON = Fraction(10)


@given(DELTAS, st.one_of(st.none(), DELTAS), st.lists(STEPS, max_size=10))
@settings(max_examples=8, deadline=None)
def test_no_sequence_is_refused_for_delta(delta, share, steps):
    ask(Budget(EPSILON, delta), share and Budget(EPSILON, delta * share), steps)


@pytest.mark.stats
@given(DELTAS, st.one_of(st.none(), DELTAS), st.lists(STEPS, min_size=1000, max_size=1100))
@settings(max_examples=15, deadline=None)
def test_a_thousand_questions_are_not_refused_for_delta(delta, share, steps):
    ask(Budget(EPSILON, delta), share and Budget(EPSILON, delta * share), steps)


def test_a_part_of_the_whole_is_found(monkeypatch):
    """The rule of before, planted: the budget is not overdrawn, and the search above sees the refusal."""

    def hundredth(total, left, whose):
        del left
        return Spare(total / 100, f"a hundredth of {whose}")

    with pytest.raises(AssertionError):
        after(MILLIONTH, 100, hundredth)
    monkeypatch.setattr(account, "spared", hundredth)
    with pytest.raises((AssertionError, BudgetExceeded)):
        ask(Budget(EPSILON, MILLIONTH), None, [(False, 9), *[(False, 0)] * 11])


def test_a_stale_share_is_refused_and_not_overdrawn():
    with opened(Budget(EPSILON, MILLIONTH)) as ledger:
        stale = ledger.spare("visits").delta
        pay(ledger, MILLIONTH - stale / 2, 1)
        with pytest.raises(BudgetExceeded, match="ask for less delta, or name none: then a small part"):
            pay(ledger, stale, 2)
        assert ledger.balance("visits").remaining_delta == stale / 2
        pay(ledger, ledger.spare("visits").delta, 3)
        pay(ledger, ledger.balance("visits").remaining_delta, 4)
        with pytest.raises(BudgetExceeded, match="list the groups and take Laplace noise"):
            pay(ledger, stale, 5)


def test_a_limit_is_not_emptied_by_a_budget_that_is_larger():
    with opened(Budget(EPSILON, MILLIONTH)) as ledger:
        Steward(ledger).limit("visits", "ada", Budget(EPSILON, MILLIONTH / 10), reason="a project")
        ada = Counter(ledger, "ada")
        assert ledger.spare("visits") == Spare(MILLIONTH / 100, "a hundredth of the budget's")
        assert ada.spare("visits") == Spare(MILLIONTH / 1000, "a hundredth of your limit's")
        Steward(ledger).limit("visits", "ada", Budget(EPSILON), reason="pure noise alone")
        assert ada.spare("visits").delta == 0


def test_accountants_that_add_up_rho_tell_epsilon_at_one_delta():
    """It is not used up there, but for what is aside for finding groups."""
    aside = MILLIONTH / 2
    with opened(Budget(EPSILON, MILLIONTH, "zcdp", aside=aside)) as ledger:
        assert ledger.spare("visits").delta == MILLIONTH / 100
        told = "a hundredth of what is aside of the budget's"
        assert ledger.spare("visits", finds=True) == Spare(aside / 100, told)
        assert ledger.balance("visits").next_delta == aside / 100
    with opened(Budget(EPSILON, MILLIONTH, "gaussian")) as ledger:
        assert ledger.spare("visits", finds=True).delta == MILLIONTH / 100
        assert ledger.balance("visits").questions == "is not used up by questions"


def test_a_balance_says_how_many_questions_delta_is_enough_for():
    with opened(Budget(EPSILON, MILLIONTH)) as ledger:
        enough = "  delta   is enough for any number of questions; the next takes at most 1e-08"
        assert str(ledger.balance("visits")).splitlines()[-1] == enough
        pay(ledger, MILLIONTH, 1)
        said = str(ledger.balance("visits"))
        assert "  delta   is used up: questions over listed groups still have Laplace noise" in said
        assert max(map(len, said.splitlines())) <= 80
    with opened(Budget(EPSILON)) as ledger:
        assert "enough" not in str(ledger.balance("visits"))
