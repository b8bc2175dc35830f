import math

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.games.auction import PriceAuction
from sfumato.games.segmented import SegmentedAuction, examples
from sfumato.testing import assert_discrete, seeded

SLACK = 1e-9


def ratio(left, right):
    """The largest log-ratio of two laws."""
    return float(np.max(np.abs(np.log(left) - np.log(right))))


def markets(**more):
    return SegmentedAuction(1, {"FR": [1, 100], "DE": ["0.5", 1, 50]}, **more)


def test_segments_are_priced_each_by_its_own_bids():
    bids = np.array([1.0, 100.0, 1.0, 50.0, 0.5])
    where = np.array(["FR", "FR", "FR", "DE", "DE"])
    market = markets(supply={"FR": 2})
    apart = {"DE": PriceAuction(1, ["0.5", 1, 50]), "FR": PriceAuction(1, [1, 100], supply=2)}
    for name, auction in apart.items():
        assert np.array_equal(market.law(bids, where)[name], auction.law(bids[where == name]))
        assert np.array_equal(market.revenue(bids, where)[name], auction.revenue(bids[where == name]))
    with seeded(2):
        chosen = market.select(bids, where.astype(object))
    assert set(chosen) == {"DE", "FR"}
    assert all(chosen[name] in apart[name].prices for name in chosen)
    assert sum(a.guarantee("0.975") for a in apart.values()) == pytest.approx(market.guarantee("0.95"))


def test_public_segments_cost_one_price_and_private_ones_two():
    assert markets().loss.pure == 1
    assert markets().loss.adjacency == "add-remove"
    hidden = markets(public_segments=False).loss
    assert (hidden.pure, hidden.adjacency) == (2, "exchange")
    # One who moves to the other country makes two rare prices likelier at once, the high one where most are
    # poor and the low one where most are rich: more than 1, and no more than 2.
    market = markets(public_segments=False)
    crowd, where = [1.0] * 600 + [50.0] * 8, ["FR"] * 600 + ["DE"] * 8
    laws = [
        np.multiply.outer(*market.law([*crowd, bid], [*where, place]).values())
        for bid, place in ((100.0, "FR"), (50.0, "DE"))
    ]
    assert 1.9 < ratio(*laws) <= 2 + SLACK


def test_unequal_columns_and_segments_of_another_type_are_refused_unquoted():
    for segments in (
        ["FR", "FR"],
        np.array([["FR"]]),
        np.array([7]),
        b"FR",
        "FR",
        np.ma.array(["FR"], mask=[1]),
    ):
        with pytest.raises(InvalidValue) as caught:
            markets().select([1.0], segments)
        assert "FR" not in str(caught.value)
    assert set(markets().select([], [])) == {"DE", "FR"}


@pytest.mark.parametrize(
    "odd", ["Atlantis", None, 7, b"FR", ["FR"], pd.NA, math.nan, "FR\0", "\ud800", 1j], ids=repr
)
def test_whoever_names_no_segment_is_left_out(odd):
    for container in (list, tuple, lambda given: pd.Series(given, dtype=object)):
        here = markets().revenue([100.0, 50.0, 9.0], container(["FR", "DE", odd]))
        assert {name: found.tolist() for name, found in here.items()} == {
            "FR": [1.0, 100.0],
            "DE": [0.5, 1.0, 50.0],
        }


def test_the_outcome_has_a_price_for_each_segment_and_says_who_buys():
    market = SegmentedAuction(50, {"FR": [4], "DE": [2]}, supply={"FR": 1})
    bids, where = [4.0, 2.0, 5.0, 1.0, 9.0, 4.0], ["FR", "DE", "FR", "DE", "nowhere", "FR"]
    with seeded(4):
        drawn = [market.outcome(bids, where) for _ in range(900)]
    first = drawn[0]
    assert dict(first.prices) == {"DE": 2.0, "FR": 4.0}
    assert first.revenue == {"DE": 2.0, "FR": 4.0}
    assert first.places.tolist() == [1, 0, 1, 0, -1, 1]
    assert all(each.buys[[1, 3, 4]].tolist() == [True, False, False] for each in drawn)
    winners = [int(np.flatnonzero(each.buys[[0, 2, 5]])[0]) for each in drawn]
    assert_discrete(winners, dict.fromkeys(range(3), 1 / 3))
    empty = market.outcome([], [])
    assert empty.revenue == {"DE": 0.0, "FR": 0.0}
    assert empty.buys.shape == (0,)


def test_prices_of_an_outcome_follow_the_law_of_the_choice():
    market, bids, where = markets(), [100.0] + [1.0] * 98, ["FR"] * 99
    with seeded(5):
        prices = [market.outcome(bids, where).prices["FR"] for _ in range(2000)]
    law = market.law(bids, where)["FR"]
    assert_discrete(prices, dict(zip([1.0, 100.0], law.tolist(), strict=True)))


@pytest.mark.parametrize("prices", [{}, [1, 2], {7: [1]}, {"FR": []}, {"FR": [1], "FR\0": [1]}])
def test_segments_without_grids_are_refused(prices):
    with pytest.raises(InvalidParameter):
        SegmentedAuction(1, prices)


def test_a_supply_names_segments_and_it_prints_how_many():
    assert "segments=2" in repr(markets())
    with pytest.raises(InvalidParameter, match="supply names"):
        SegmentedAuction(1, {"FR": [1]}, supply={"DE": 3})


@pytest.mark.parametrize("example", examples(), ids=lambda each: each.name)
def test_what_the_auditor_draws_follows_its_law_and_comes_close_to_the_claim(example):
    laws = [example.pmf(side) for side in ("left", "right")]
    widest = max(abs(math.log(laws[0][key] / laws[1][key])) for key in laws[0])
    assert 0.8 * example.loss.pure < widest <= example.loss.pure + SLACK
    with seeded(7):
        for side, law in zip(("left", "right"), laws, strict=True):
            assert_discrete(example.draw(side, 1500).tolist(), law)
