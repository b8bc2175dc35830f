"""Accountants side by side: textbook numbers, order among them, which of them may gate a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sfumato.accounting import ACCOUNTANTS, advanced, basic, compare, gaussian_sigma, optimal
from sfumato.errors import InvalidParameter, UnsupportedLoss
from sfumato.loss import (
    ApproximateLoss,
    BoundedRangeLoss,
    ConcentratedLoss,
    DiscreteGaussianLoss,
    GaussianLoss,
    LaplaceLoss,
    PureLoss,
    RenyiLoss,
    compose,
)
from sfumato.testing.accountants import faults

F = Fraction
DELTA = F(1, 10**6)
NO_SHRINK = (Phase.explicit, Phase.generate)


# ── the worked numbers
# ───────────────────────────────────────────────────────────────────────────────────────────────


def test_advanced_is_worse_than_basic_for_large_epsilon():
    # Trap: k = 500 at ε = 1. Basic gives 500; the textbook's advanced composition 966.
    epsilon, delta = advanced(1, 0, 500, "1e-5")
    assert epsilon == pytest.approx(966.44, abs=0.01)
    assert delta == 1e-5
    assert basic([PureLoss(1)] * 500, "1e-5") == 500
    shown = compare([PureLoss(1)] * 500, "1e-5")
    assert shown["advanced"] > shown["basic"] > shown["numerical"]


def test_advanced_is_better_than_basic_for_many_small_losses():
    epsilon, _ = advanced("0.01", 0, 10000, "1e-5")
    assert epsilon < 10 < basic([PureLoss("0.01")] * 10000, 0) + 1e-9
    assert epsilon == pytest.approx(0.01 * math.sqrt(2e4 * math.log(1e5)) + 100 * math.expm1(0.01), rel=1e-12)


def test_advanced_adds_the_deltas():
    epsilon, delta = advanced("0.1", "1e-7", 100, "1e-6")
    assert delta == pytest.approx(1.1e-5)
    found = ACCOUNTANTS["advanced"].epsilon(ApproximateLoss("0.1", "1e-7") * 100, "1.1e-5")
    assert found == epsilon
    assert ACCOUNTANTS["advanced"].epsilon(ApproximateLoss("0.1", "1e-7") * 100, "1e-5") == math.inf


def test_advanced_inverts():
    losses = [PureLoss("0.1")] * 50
    rule = ACCOUNTANTS["advanced"]
    assert rule.delta(losses, rule.epsilon(losses, "1e-4")) == pytest.approx(1e-4, rel=1e-6)
    assert rule.delta(losses, "0.1") == 1.0


def test_basic_sums_are_exact():
    assert basic([PureLoss(0.1)] * 10, 0) == 1.0
    assert basic([], 0) == 0.0
    calibrated = GaussianLoss(1 / (2 * gaussian_sigma(1, DELTA) ** 2), (1, DELTA))
    # Its own curve, a hair below the point because sigma was rounded up, may be the better price.
    assert basic([calibrated], DELTA) == pytest.approx(1.0, rel=1e-11)
    assert basic([calibrated] * 3, 3 * DELTA) == pytest.approx(3.0, rel=1e-11)


def test_basic_splits_what_is_left_of_delta_equally():
    a, b = GaussianLoss(F(1, 8)), GaussianLoss(F(1, 2))
    expected = 1 + a.epsilon(DELTA / 2) + b.epsilon(DELTA / 2)
    assert basic([PureLoss(1), a, b], DELTA) == pytest.approx(expected, rel=1e-14)
    # A point that needs more δ than there is: the curve is read instead, and a bare (ε, δ) cannot be.
    calibrated = GaussianLoss(1 / (2 * gaussian_sigma(1, DELTA) ** 2), (1, DELTA))
    assert basic([calibrated] * 2, DELTA) == pytest.approx(2 * calibrated.epsilon(DELTA / 2))
    assert basic([ApproximateLoss(1, DELTA)] * 2, DELTA) == math.inf


def test_basic_delta():
    rule = ACCOUNTANTS["basic"]
    assert rule.delta([PureLoss(1), PureLoss(2)], 3) == 0.0
    assert rule.delta([PureLoss(1), PureLoss(2)], 2) == 1.0
    assert rule.delta([ApproximateLoss(1, DELTA)] * 5, 5) == float(5 * DELTA)
    a = GaussianLoss(F(1, 8))
    assert rule.delta([PureLoss(1), a], 2) == pytest.approx(a.delta(1))


@pytest.mark.parametrize(
    "losses",
    [
        [GaussianLoss(F(k, 100)) for k in range(1, 8)],
        [PureLoss(1), GaussianLoss(F(1, 8)), GaussianLoss(F(1, 2)), ApproximateLoss("0.1", "1e-8")],
        [GaussianLoss(F(1, 8), (4, "1e-8"))] * 2 + [LaplaceLoss("0.5")],
        [DiscreteGaussianLoss(9, F(1), False), ConcentratedLoss(F(1, 50))],
    ],
)
def test_basic_delta_is_no_worse_than_its_inverse(losses):
    rule = ACCOUNTANTS["basic"]
    for delta in (1e-6, 1e-3):
        assert rule.delta(losses, rule.epsilon(losses, delta)) <= delta * (1 + 2e-6)


def test_basic_delta_takes_curves_where_points_ask_for_too_much():
    # The two points add up to ε = 2; at 1.5 the curves still give a δ, and the present rule said 1.
    calibrated = GaussianLoss(1 / (2 * gaussian_sigma(1, DELTA) ** 2), (1, DELTA))
    found = ACCOUNTANTS["basic"].delta([calibrated] * 2, "1.5")
    assert calibrated.delta("0.75") <= found <= 2 * calibrated.delta("0.75") * (1 + 1e-9)
    # Sound: never below the exact curve of the composition.
    assert found >= (calibrated * 2).delta("1.5")


def test_optimal_names_the_first_that_does_not_fit():
    rule = ACCOUNTANTS["optimal"]
    for losses, name in (
        ([PureLoss(1), LaplaceLoss(1), GaussianLoss(1)], "GaussianLoss"),
        ([PureLoss(1), BoundedRangeLoss(2), LaplaceLoss(1)], "BoundedRangeLoss"),
        ([GaussianLoss(1), PureLoss(1)], "GaussianLoss"),
    ):
        with pytest.raises(UnsupportedLoss, match=f"no rule for {name}"):
            rule.epsilon(losses, DELTA)


@dataclass(frozen=True)
class Blaming:
    """Numerical, but it blames the first loss whatever the reason."""

    name: str = "blaming"
    adaptive: bool = False

    def epsilon(self, losses, delta):
        return self._of("epsilon", losses, delta)

    def delta(self, losses, epsilon):
        return self._of("delta", losses, epsilon)

    def _of(self, what, losses, at):
        try:
            return getattr(ACCOUNTANTS["numerical"], what)(losses, at)
        except UnsupportedLoss:
            raise UnsupportedLoss(f"no rule for {type(losses[0]).__name__}") from None


def test_planted_bug_a_refusal_that_blames_another_loss_is_seen_by_the_kit():
    assert {fault.split(":")[0] for fault in faults(Blaming())} == {"refusal"}


def test_optimal_pure_composition():
    assert optimal(1, 30, 0) == 30
    assert optimal(1, 10, DELTA, each="1e-7") < 10 + 1e-9
    assert optimal(0, 10, DELTA) == 0.0
    assert optimal(0, 10, DELTA, each="1e-6") == math.inf
    losses = [PureLoss("0.5")] * 40
    assert compare(losses, DELTA)["optimal"] == pytest.approx(compare(losses, DELTA)["numerical"], rel=1e-6)


def test_gaussians_add_their_squared_mu():
    losses = [GaussianLoss(F(1, 8)), GaussianLoss(F(1, 2)), GaussianLoss(F(3, 8))]
    assert ACCOUNTANTS["gdp"].epsilon(losses, DELTA) == GaussianLoss(1).epsilon(DELTA)
    assert ACCOUNTANTS["gdp"].delta(losses, 1) == GaussianLoss(1).delta(1)
    with pytest.raises(UnsupportedLoss, match="μ"):
        ACCOUNTANTS["gdp"].epsilon([DiscreteGaussianLoss(1, F(1))], DELTA)


def test_concentrated_sums():
    losses = [PureLoss("0.1")] * 10 + [BoundedRangeLoss("0.4")] + [GaussianLoss("0.03")]
    assert ACCOUNTANTS["zcdp"].epsilon(losses, DELTA) == ConcentratedLoss("0.1").epsilon(DELTA)
    # zCDP of the exponential mechanism is a quarter of that of plain pure privacy.
    ranged, plain = [BoundedRangeLoss("0.1")] * 100, [PureLoss("0.1")] * 100
    assert ACCOUNTANTS["zcdp"].epsilon(ranged, DELTA) < ACCOUNTANTS["zcdp"].epsilon(plain, DELTA) * 0.6


def test_renyi_sums_at_the_best_order():
    losses = [LaplaceLoss("0.1")] * 100
    found = ACCOUNTANTS["rdp"].epsilon(losses, DELTA)
    assert (
        ACCOUNTANTS["numerical"].epsilon(losses, DELTA) < found < ACCOUNTANTS["zcdp"].epsilon(losses, DELTA)
    )
    assert ACCOUNTANTS["rdp"].delta(losses, found) == pytest.approx(1e-6, rel=1e-6)
    assert ACCOUNTANTS["rdp"].epsilon([PureLoss(1)], 0) == 1.0
    mixed = [RenyiLoss([2, 32], ["0.1", "1.6"]), GaussianLoss(F(1, 8)), ConcentratedLoss(F(1, 8), "1e-9")]
    assert math.isfinite(ACCOUNTANTS["rdp"].epsilon(mixed, DELTA))
    assert ACCOUNTANTS["rdp"].epsilon(mixed, "1e-9") == math.inf


# ── which may gate
# ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_proven_filters_are_adaptive():
    adaptive = {name for name, rule in ACCOUNTANTS.items() if rule.adaptive}
    assert adaptive == {"zcdp", "gdp"}
    assert set(ACCOUNTANTS) == {"basic", "advanced", "optimal", "zcdp", "rdp", "gdp", "numerical"}


# ── side by side
# ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_compare_names_what_does_not_apply():
    shown = compare([GaussianLoss(F(1, 8)), LaplaceLoss("0.1")], DELTA)
    assert shown["gdp"] is None
    assert shown["advanced"] is None
    assert shown["optimal"] is None
    assert min(v for v in shown.values() if v is not None) == shown["numerical"]
    shown = compare([ConcentratedLoss(1)], DELTA)
    assert shown["numerical"] is None
    assert shown["zcdp"] == pytest.approx(shown["rdp"], rel=1e-9)
    assert compare(iter([PureLoss(1), PureLoss(1)]), DELTA)["basic"] == 2


def test_one_call_shows_every_way_of_adding_up_the_same_releases():
    shown = compare([LaplaceLoss("0.1")] * 100, DELTA)
    assert list(shown) == list(ACCOUNTANTS)
    assert shown["gdp"] is None  # Laplace noise has no μ
    assert shown["basic"] == 10
    assert shown["numerical"] < shown["rdp"] < shown["zcdp"] < shown["basic"]
    assert shown["numerical"] < shown["optimal"] < shown["advanced"] < shown["basic"]


def test_compare_of_nothing():
    assert compare([], DELTA)["numerical"] == 0.0


kinds = st.sampled_from(
    [
        PureLoss("0.2"),
        PureLoss(1),
        LaplaceLoss("0.3"),
        GaussianLoss(F(1, 50)),
        GaussianLoss(F(1, 2), (4, "0.01")),
        BoundedRangeLoss("0.5"),
    ]
)


def test_numerical_is_below_renyi_for_samples():
    shown = compare(GaussianLoss(F(1, 2)).sampled("0.01") * 500, DELTA)
    assert shown["numerical"] < shown["rdp"] < shown["zcdp"]


@settings(max_examples=8, phases=NO_SHRINK)
@given(
    st.lists(st.tuples(kinds, st.integers(1, 12)), min_size=1, max_size=3),
    st.sampled_from([F(1, 1000), DELTA]),
)
def test_numerical_is_never_above_another_accountant(counted, delta):
    losses = [loss for loss, count in counted for _ in range(count)]
    shown = compare(losses, delta)
    for name, epsilon in shown.items():
        if epsilon is not None:
            assert shown["numerical"] <= epsilon * (1 + 2e-6) + 2e-9, name


@settings(max_examples=8, phases=NO_SHRINK)
@given(st.lists(kinds, min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_epsilon_does_not_depend_on_order_or_nesting_and_grows(losses, shuffle):
    mixed = list(losses)
    shuffle.shuffle(mixed)
    total = compose(losses).epsilon(DELTA)
    assert compose(mixed).epsilon(DELTA) == pytest.approx(total, rel=2e-6)
    assert (compose(losses[:1]) + compose(losses[1:])).epsilon(DELTA) == pytest.approx(total, rel=2e-6)
    assert compose(losses[1:]).epsilon(DELTA) <= total * (1 + 2e-6) + 2e-9
    assert compose(losses).epsilon(F(1, 1000)) <= total * (1 + 2e-6)


@pytest.mark.parametrize("name", sorted(ACCOUNTANTS))
def test_planted_bug_a_forgotten_release_is_seen_by_every_accountant(name):
    loss = GaussianLoss(F(1, 50), (1, DELTA)) if name == "gdp" else PureLoss("0.5")
    rule = ACCOUNTANTS[name]
    assert rule.epsilon([loss] * 9, F(1, 1000)) < rule.epsilon([loss] * 10, F(1, 1000))


def test_parameters_are_checked():
    for wrong in (1, -1, math.nan):
        with pytest.raises(InvalidParameter):
            basic([PureLoss(1)], wrong)
    with pytest.raises(InvalidParameter):
        advanced(1, 0, 0, "1e-5")
    with pytest.raises(InvalidParameter):
        advanced(1, 0, 5, 0)
