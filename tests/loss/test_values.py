"""Losses as values: shortcuts, algebra, equality without order, the wire."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting import discrete_gaussian_variance, gaussian_sigma
from sfumato.errors import InvalidParameter, UnsupportedLoss
from sfumato.loss import (
    NO_LOSS,
    ApproximateLoss,
    BoundedRangeLoss,
    ComposedLoss,
    ConcentratedLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
    PureLoss,
    RenyiLoss,
    ResponseLoss,
    compose,
)
from sfumato.mechanisms import Laplace

F = Fraction
small = st.fractions(F(1, 1000), F(5), max_denominator=1000)
deltas = st.fractions(F(1, 10**9), F(1, 10), max_denominator=10**9)
simple = st.one_of(
    small.map(PureLoss),
    small.map(LaplaceLoss),
    small.map(GaussianLoss),
    small.map(BoundedRangeLoss),
    small.map(ConcentratedLoss),
    st.builds(ConcentratedLoss, small, deltas),
    st.builds(ApproximateLoss, small, deltas),
    st.builds(DiscreteLaplaceLoss, small, st.integers(1, 9)),
    st.builds(ResponseLoss, small, st.integers(2, 9)),
    st.builds(lambda variance, shift: DiscreteGaussianLoss(variance, F(shift)), small, st.integers(1, 4)),
    st.builds(lambda variance: DiscreteGaussianLoss(variance, F(3, 2), False), small),
    st.just(DiscreteGaussianLoss(100, F(1), True, (F(1), F(1, 10)))),
    st.just(DiscreteGaussianLoss(100, F(3, 2), False, (F(1), F(1, 10)))),
    st.just(ConcentratedLoss(F(1, 100), F(1, 100), (F(1), F(1, 10)))),
    st.builds(lambda delta: GaussianLoss(F(1, 10**6), (F(1, 2), max(delta, F(1, 10**9)))), deltas),
    st.just(RenyiLoss([2, "2.5", 8], ["0.1", "0.2", 1])),
    st.just(RenyiLoss([2, 8], ["0.1", "0.2"], (3, "1e-3"))),
)
nested = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map(compose),
        st.lists(inner, min_size=1, max_size=4).map(lambda parts: parts[0].parallel(*parts[1:])),
        st.tuples(inner, st.integers(2, 4)).map(lambda pair: pair[0].group(pair[1])),
    ),
    max_leaves=6,
)


@given(nested)
def test_wire_round_trip(loss):
    stored = json.loads(json.dumps(loss.to_dict()))
    again = PrivacyLoss.from_dict(stored)
    assert again == loss
    assert hash(again) == hash(loss)
    assert again.to_dict() == loss.to_dict()


def test_wire_round_trip_of_samples():
    for loss in (
        LaplaceLoss("0.3").sampled("0.01"),
        GaussianLoss(1).sampled("0.5", "fixed") * 7,
        (LaplaceLoss(1) + GaussianLoss(2)).sampled("0.1"),
    ):
        assert PrivacyLoss.from_dict(json.loads(json.dumps(loss.to_dict()))) == loss


def test_wire_numbers_are_exact_text():
    assert LaplaceLoss(0.1).to_dict() == {"loss": "laplace.1", "pure": "1/10"}
    assert PrivacyLoss.from_dict({"loss": "laplace.1", "pure": "1/10"}).pure == F(1, 10)


def test_unknown_wire_names_are_refused_by_name():
    with pytest.raises(UnsupportedLoss, match=r"quantum\.3"):
        PrivacyLoss.from_dict({"loss": "quantum.3", "pure": "1/2"})
    inside = {"loss": "composed.1", "parts": [[{"loss": "quantum.3"}, 2]]}
    with pytest.raises(UnsupportedLoss, match=r"quantum\.3"):
        PrivacyLoss.from_dict(inside)


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"pure": "1/2"},
        {"loss": 3},
        {"loss": "pure.1"},
        {"loss": "pure.1", "pure": "-1/2"},
        {"loss": "pure.1", "pure": "1/0"},
        {"loss": "pure.1", "pure": "1/2", "extra": 1},
        {"loss": "composed.1", "parts": [["pure.1", 1]]},
        {"loss": "composed.1", "parts": [[{"loss": "pure.1", "pure": "1/2"}, -1]]},
        {"loss": "sampled.1", "inner": {"loss": "pure.1", "pure": "1/2"}, "rate": "3/2", "scheme": "poisson"},
        {"loss": "gaussian.1", "rho": "1/2", "point": ["1/1"]},
        {"loss": "composed.1", "parts": []},
        {"loss": "composed.1", "parts": [[{"loss": "pure.1", "pure": "1/2"}, 10**100]]},
        {"loss": "composed.1", "parts": [[{"loss": "pure.1", "pure": "1/2"}, 10**9]] * 1001},
        {"loss": "composed.1", "parts": [[{"loss": "pure.1", "pure": "1/2"}, "2/1"]]},
        {"loss": "group.1", "inner": {"loss": "pure.1", "pure": "1/2"}, "size": 10**400},
        {"loss": "group.1", "inner": "pure.1", "size": 2},
        {"loss": "pure.1", "pure": "1e999999999"},
        {"loss": "pure.1", "pure": "1e999999999/1"},
        {"loss": "pure.1", "pure": "9" * 100000 + "/1"},
        {"loss": "pure.1", "pure": 10**400},
        {"loss": "pure.1", "pure": math.inf},
        {"loss": "pure.1", "pure": True},
        {"loss": "pure.1", "pure": None},
        {"loss": "pure.1", "pure": {"loss": "pure.1", "pure": "1/2"}},
        {"loss": "concentrated.1", "concentrated": ["-1/2", "0/1"]},
        {"loss": "concentrated.1", "concentrated": 7},
        {"loss": "concentrated.1", "concentrated": ["1/2", "0/1"], "point": ["9/1", "1/2"]},
        {"loss": "concentrated.2", "concentrated": ["1/2", "0/1"]},
        {"loss": "concentrated.2", "concentrated": ["1/2", "0/1"], "point": None},
        {"loss": "concentrated.2", "concentrated": ["1/2", "0/1"], "point": ["1/10", "1/100"]},
        {"loss": "concentrated.2", "concentrated": ["1/2", "0/1"], "point": "1/10"},
        {
            "loss": "discrete-gaussian.2",
            "variance": f"1/{10**300}",
            "sensitivity": "1/1",
            "scalar": True,
            "point": ["1/1", "1/10"],
        },
        {"loss": "renyi.1", "orders": 3, "values": []},
        {"loss": "parallel.1", "parts": "pure", "adjacency": "add-remove"},
        {"loss": "parallel.1", "parts": [], "adjacency": ["add-remove"]},
    ],
    ids=lambda broken: str(broken)[:60],
)
def test_broken_wire_data_is_refused(broken):
    with pytest.raises(InvalidParameter):
        PrivacyLoss.from_dict(broken)


def test_deep_wire_data_is_refused_and_sane_depth_is_read():
    deep = {"loss": "pure.1", "pure": "1/2"}
    for _ in range(10_000):
        deep = {"loss": "group.1", "inner": deep, "size": 2}
    lists = []
    for _ in range(10_000):
        lists = [lists]
    for hostile in (deep, {"loss": "renyi.1", "orders": lists, "values": lists}):
        with pytest.raises(InvalidParameter, match="deep"):
            PrivacyLoss.from_dict(hostile)
    loss = GaussianLoss(1).sampled("0.1")
    for k in range(20):
        loss = (loss + PureLoss(k + 1)).parallel(LaplaceLoss(1))
    assert PrivacyLoss.from_dict(json.loads(json.dumps(loss.to_dict()))) == loss


def test_reading_a_sample_of_something_costly_computes_nothing():
    approximate = {"loss": "approximate.1", "point": ["1/2", "1/1000000"]}
    inner = {"loss": "composed.1", "parts": [[approximate, 2], [{"loss": "laplace.1", "pure": "1/3"}, 5]]}
    stored = {
        "loss": "sampled.1",
        "inner": {"loss": "group.1", "inner": inner, "size": 3},
        "rate": "1/2",
        "scheme": "poisson",
    }
    assert PrivacyLoss.from_dict(stored).adjacency == "add-remove"


def test_losses_from_before_they_had_a_point_are_read_and_written_as_before():
    old = {"loss": "discrete-gaussian.1", "variance": "4/1", "sensitivity": "1/1", "scalar": True}
    loss = PrivacyLoss.from_dict(old)
    assert loss == DiscreteGaussianLoss(4, F(1))
    assert loss.to_dict() == old
    old = {"loss": "concentrated.1", "concentrated": ["1/2", "0/1"]}
    assert PrivacyLoss.from_dict(old) == ConcentratedLoss("0.5")
    assert ConcentratedLoss("0.5").to_dict() == old
    assert ConcentratedLoss("0.5", point=(9, "0.5")).to_dict()["loss"] == "concentrated.2"


def test_a_claimed_point_must_follow_from_the_curve():
    variance = discrete_gaussian_variance(1, "1e-6")
    point = (F(1), F(1, 10**6))
    loss = DiscreteGaussianLoss(variance, F(1), True, point)
    assert loss.approximate == point
    assert loss.epsilon("1e-6") <= 1
    assert loss.group(2).approximate is None
    for make in (
        lambda: DiscreteGaussianLoss(variance * F(99, 100), F(1), True, point),
        lambda: DiscreteGaussianLoss(variance, F(1), False, point),  # ρ alone gives less
        lambda: ConcentratedLoss(1 / (2 * variance), point=point),
        lambda: ConcentratedLoss(F(1, 10**6), "1e-5", point),  # more than δ was set aside
        lambda: ConcentratedLoss(1, point=(1, 0)),
        lambda: ConcentratedLoss(1, point=(1, 2, 3)),
    ):
        with pytest.raises(InvalidParameter):
            make()
    rho = F(1, 100)
    epsilon = F(str(ConcentratedLoss(rho).epsilon("1e-6"))) + F(1, 10**9)
    assert ConcentratedLoss(rho, point=(epsilon, "1e-6")).approximate == (epsilon, F(1, 10**6))
    assert ConcentratedLoss(0).approximate == (0, 0)


def test_sums_and_what_they_refuse():
    loss, mechanism = PureLoss("0.5"), Laplace(epsilon=1, sensitivity=1)
    assert sum([loss, loss]) == loss * 2
    assert sum([loss]) is loss
    for wrong in (lambda: loss + mechanism, lambda: mechanism + loss, lambda: loss + 1.0, lambda: 1 + loss):
        with pytest.raises(InvalidParameter, match=r"pass mechanism\.loss"):
            wrong()
    for wrong in (loss, mechanism, 3):
        with pytest.raises(InvalidParameter, match=r"compose takes a list of losses: compose\(\[a\.loss, b"):
            compose(wrong)
    with pytest.raises(InvalidParameter, match=r"not Laplace; pass mechanism\.loss"):
        compose([loss, mechanism])


def test_wire_names_are_never_reused():
    from sfumato.loss.base import _WIRES

    # This list only grows. A changed meaning needs a new name.
    bounds = "approximate bounded-range concentrated pure renyi"
    laws = "discrete-gaussian discrete-laplace gaussian laplace response"
    made = "composed group parallel sampled"
    assert set(_WIRES) >= {f"{name}.1" for name in f"{bounds} {laws} {made}".split()}
    assert set(_WIRES) >= {"concentrated.2", "discrete-gaussian.2"}


@given(st.lists(simple, min_size=2, max_size=8), st.randoms(use_true_random=False))
def test_composition_is_canonical(losses, shuffle):
    total = compose(losses)
    mixed = list(losses)
    shuffle.shuffle(mixed)
    assert compose(mixed) == total
    assert hash(compose(mixed)) == hash(total)
    assert compose(mixed).to_dict() == total.to_dict()
    # Nesting leaves no trace: ((a + b) + c) and (a + (b + c)) are one value.
    assert compose([compose(losses[:1]), compose(losses[1:])]) == total
    assert compose([compose(losses[:-1]), losses[-1]]) == total


def test_equal_parts_are_counted():
    a, b = LaplaceLoss("0.1"), PureLoss(1)
    total = a + b + a * 3 + 2 * b
    assert isinstance(total, ComposedLoss)
    assert dict(total.parts) == {a: 4, b: 3}
    assert compose([a]) is a
    assert compose([]) == NO_LOSS == a * 0
    assert a + NO_LOSS == a
    assert total.pure == F("3.4")


def test_exact_sums():
    assert (PureLoss(0.1) * 10).pure == 1
    assert (PureLoss(0.1) * 10).epsilon(0) == 1.0
    assert compose([GaussianLoss("0.1")] * 10).rho == 1


@pytest.mark.parametrize(
    ("loss", "pure", "rho", "point"),
    [
        (PureLoss("0.5"), F(1, 2), F(1, 8), (F(1, 2), 0)),
        (PureLoss(4), F(4), F(4), (F(4), 0)),  # min(ε²/2, ε): every divergence is at most ε
        (LaplaceLoss("0.5"), F(1, 2), F(1, 8), (F(1, 2), 0)),
        (BoundedRangeLoss("0.5"), F(1, 2), F(1, 32), (F(1, 2), 0)),
        (DiscreteLaplaceLoss("0.25", 2), F(1, 2), F(1, 8), (F(1, 2), 0)),
        (ResponseLoss("0.5", 4), F(1, 2), F(1, 8), (F(1, 2), 0)),
        (GaussianLoss("0.5"), None, F(1, 2), None),
        (GaussianLoss("0.5", (5, "1e-6")), None, F(1, 2), (F(5), F(1, 10**6))),
        (DiscreteGaussianLoss(2, F(3)), None, F(9, 4), None),
        (ConcentratedLoss("0.5"), None, F(1, 2), None),
        (ConcentratedLoss("0.5", "1e-6"), None, None, None),
        (ApproximateLoss(1, "1e-6"), None, None, (F(1), F(1, 10**6))),
        (ApproximateLoss(1, 0), F(1), F(1, 2), (F(1), 0)),
    ],
)
def test_shortcuts(loss, pure, rho, point):
    assert (loss.pure, loss.rho, loss.approximate) == (pure, rho, point)


def test_mu_belongs_to_the_continuous_gaussian_alone():
    assert GaussianLoss(F(1, 2)).mu == 1.0
    assert GaussianLoss(1).mu >= math.sqrt(2)
    assert compose([GaussianLoss(F(9, 2)), GaussianLoss(8)]).mu == 5.0
    # A discrete Gaussian is not dominated by the Gaussian of its σ, so it has a ρ and no μ.
    assert DiscreteGaussianLoss(1, F(1)).mu is None
    assert DiscreteGaussianLoss(1, F(1)).rho == F(1, 2)
    assert compose([GaussianLoss(1), LaplaceLoss(1)]).mu is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: PureLoss(-1),
        lambda: PureLoss(math.nan),
        lambda: LaplaceLoss(0),
        lambda: GaussianLoss(0),
        lambda: GaussianLoss(1, (1, 0)),
        lambda: ApproximateLoss(1, 1),
        lambda: ConcentratedLoss(math.inf),
        lambda: DiscreteGaussianLoss(1, F(1, 2)),
        lambda: DiscreteLaplaceLoss(1, 0),
        lambda: ResponseLoss(1, 1),
        lambda: PureLoss(1) * -1,
        lambda: PureLoss(1) * 10**100,
        lambda: PureLoss(1).group(10**100),
        lambda: PureLoss(1).group(0),
        lambda: PureLoss(1).epsilon(1),
        lambda: PureLoss(1).epsilon(-0.1),
        lambda: compose([1.0]),
    ],
)
def test_unusable_parameters_are_refused(make):
    with pytest.raises(InvalidParameter):
        make()


def test_losses_of_different_adjacency_do_not_compose():
    poisson, fixed = LaplaceLoss(1).sampled("0.1"), LaplaceLoss(1).sampled("0.1", "fixed")
    assert (poisson.adjacency, fixed.adjacency) == ("add-remove", "exchange")
    with pytest.raises(UnsupportedLoss, match="exchange"):
        poisson + fixed
    assert (poisson + LaplaceLoss(1)).adjacency == "add-remove"


def test_composing_many_losses_keeps_them_cheap_to_compare():
    source = random.Random(7)
    losses = [LaplaceLoss(F(source.randrange(1, 10**6), 10**6)) for _ in range(1000)]
    total = compose(losses)
    source.shuffle(losses)
    assert compose(losses) == total
    assert total.pure == sum((loss.pure for loss in losses), F(0))


def test_a_gaussian_point_is_proven_or_refused():
    sigma = gaussian_sigma(1, "1e-6")
    loss = GaussianLoss(1 / (2 * sigma * sigma), (Fraction(1), Fraction("1e-6")))
    assert PrivacyLoss.from_dict(loss.to_dict()) == loss
    false = {"loss": "gaussian.1", "rho": "100/1", "point": ["1/1000", "1/1000000"]}
    with pytest.raises(InvalidParameter, match="does not meet the point"):
        PrivacyLoss.from_dict(false)
    # A hair less noise, and the point no longer holds.
    with pytest.raises(InvalidParameter, match="does not meet the point"):
        GaussianLoss(loss.rho * (1 + Fraction(1, 10**11)), loss.point)
