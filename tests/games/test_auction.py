import importlib.util
import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import random
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.games.auction import PriceAuction, examples, optimal_grid_step, price_grid
from sfumato.mechanisms import Exponential
from sfumato.testing import assert_discrete, seeded

THREE = [1.00, 1.01, 3.01]
GRID = ["0.5", 1, 2, "3.5", 4]
BIDS = st.lists(st.sampled_from([0.0, 0.5, 0.75, 1.0, 2.0, 3.0, 3.5, 4.0, 9.0]), max_size=8)
BID = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.5, 4.0, 9.0])
SUPPLY = st.sampled_from([None, 1, 3])
SLACK = 1e-9


def ratio(left, right):
    """The largest log-ratio of two laws."""
    return float(np.max(np.abs(np.log(left) - np.log(right))))


# ── revenue


@given(BIDS, SUPPLY)
def test_revenue_is_price_times_buyers(bids, supply):
    auction = PriceAuction(1, GRID, supply=supply)
    naive = []
    for price in map(Fraction, GRID):
        buyers = sum(bid >= price for bid in bids)
        naive.append(float(price * min(buyers, supply or buyers)))
    assert auction.revenue(bids).tolist() == naive
    # No other price up to the top does better than the best bid does.
    capped = [min(bid, 4.0) for bid in bids]
    best = max((b * min(sum(c >= b for c in capped), supply or 99) for b in capped), default=0.0)
    assert auction.optimum(bids) == best


def test_the_chosen_price_is_one_of_the_grid_and_nobody_bidding_is_allowed():
    auction = PriceAuction(1, ["0.1", "0.2", "0.3"])
    with seeded(1):
        drawn = [auction.select([]) for _ in range(3000)]
    assert_discrete(drawn, dict.fromkeys([0.1, 0.2, 0.3], 1 / 3))
    assert auction.optimum([]) == 0.0


# ── privacy


@given(BIDS, BID, BID, SUPPLY)
def test_one_bid_moves_all_scores_one_way_by_at_most_the_top_price(bids, old, new, supply):
    auction = PriceAuction(1, GRID, supply=supply)
    for left, right in (([*bids, old], [*bids, new]), (bids, [*bids, new])):
        moves = auction._scores(np.array(right)) - auction._scores(np.array(left, dtype=float))
        assert moves.min() >= 0 or moves.max() <= 0
        assert np.abs(moves).max() <= auction.prices.ticks[-1]


@given(BIDS, BID, BID, SUPPLY)
def test_the_law_keeps_its_claim_for_a_bid_replaced_or_added(bids, old, new, supply):
    auction = PriceAuction(2, GRID, supply=supply)
    assert ratio(auction.law([*bids, old]), auction.law([*bids, new])) <= 2 + SLACK
    assert ratio(auction.law(bids), auction.law([*bids, new])) <= 2 + SLACK


def test_the_type_of_one_bid_does_not_decide_how_all_others_are_compared():
    # A list of single-precision numbers becomes an array of doubles as soon as one of them is a double.
    auction, crowd = PriceAuction(1, [1, "1.01"]), [np.float32(1.01)] * 50
    assert ratio(auction.law(crowd), auction.law([*crowd, np.float64(0)])) <= 1 + SLACK


def test_the_claim_is_nearly_reached_and_a_sensitivity_of_the_median_price_breaks_it():
    left, right = [1.0] * 600, [1.0] * 599 + [100.0]
    auction = PriceAuction(1, [1, 10, 100])
    honest = ratio(auction.law(left), auction.law(right))
    assert 0.98 < honest <= 1 + SLACK
    # The planted bug: the median price of the grid instead of its top.
    careless = Exponential(1, auction.prices.ticks[1], monotone=True)
    laws = [careless.probabilities(auction._scores(np.array(bids))) for bids in (left, right)]
    assert ratio(*laws) > 9


@pytest.mark.parametrize("example", examples(), ids=lambda each: each.name)
def test_what_the_auditor_draws_follows_its_law_and_comes_close_to_the_claim(example):
    laws = [example.pmf(side) for side in ("left", "right")]
    widest = max(abs(math.log(laws[0][key] / laws[1][key])) for key in laws[0])
    assert 0.85 * example.loss.pure < widest <= example.loss.pure + SLACK
    with seeded(7):
        for side, law in zip(("left", "right"), laws, strict=True):
            assert_discrete(example.draw(side, 2000).tolist(), law)


# ── the three buyers, and why not to add noise to bids


def test_three_buyers_and_the_trap_of_noisy_bids():
    auction = PriceAuction(1, price_grid(top="3.01", step="0.01"))
    earns = dict(zip(auction.prices, auction.revenue(THREE), strict=True))
    assert earns[3.01] == pytest.approx(3.01)
    assert auction.optimum(THREE) == pytest.approx(3.01)
    # A hair above the right price, as any noise makes it, sells nothing, or a third.
    assert PriceAuction(1, ["3.02"]).revenue(THREE).tolist() == [0.0]
    assert earns[1.02] == pytest.approx(1.02)
    # The best price for bids with Laplace noise of a bid's own scale: often nobody buys at it.
    simulated, nothing = random.simulation(3), 0
    for _ in range(400):
        noisy = np.sort(THREE + simulated.laplace(scale=3.01, size=3))[::-1]
        price = max(noisy, key=lambda each: each * np.sum(noisy >= each))
        nothing += price > max(THREE)
    assert nothing > 120
    # The private price sells nothing with far smaller probability: here never, as 3.01 is the top.
    law = auction.law(THREE)
    assert law[auction.revenue(THREE) == 0].sum() == 0
    assert float(law @ auction.revenue(THREE)) > 1.4


def test_for_three_buyers_the_promise_is_vacuous_and_says_so():
    auction = PriceAuction(1, price_grid(top="3.01", step="0.01"))
    promise = auction.promise(3)
    assert promise.vacuous
    assert promise.least == 0
    assert promise.to_privacy > promise.most == pytest.approx(9.03)
    assert "Vacuous: there is no more than 9.03 to earn at all." in str(promise)
    many = auction.promise(100_000)
    assert not many.vacuous
    assert "Vacuous" not in str(many)
    assert many.to_grid == pytest.approx(1000)
    # Without the optimum it is known what is lost, not what is earned.
    assert many.least == 0
    assert f"if the best price earns more than {1000 + many.to_privacy:,.2f}" in str(many)
    known = auction.promise(100_000, optimum=200_000)
    assert known.least == pytest.approx(200_000 - 1000 - many.to_privacy)
    assert f"at least {known.least:,.2f} of 200,000.00" in str(known)
    # Three thousand buyers of whom the best price is thought to get 30: vacuous again.
    assert auction.promise(3000, optimum=20).vacuous
    assert auction.promise(0).vacuous


# ── the guarantee


@given(st.lists(st.floats(0, 12), min_size=1, max_size=40), SUPPLY, st.sampled_from(["0.5", "0.9", "0.99"]))
@settings(max_examples=60)
def test_the_promise_holds_with_its_confidence(bids, supply, confidence):
    for grid in (price_grid(top=10, step="0.5"), price_grid(low=1, top=10, ratio="1.3")):
        auction = PriceAuction(4, grid, supply=supply)
        revenue, law = auction.revenue(bids), auction.law(bids)
        promise = auction.promise(len(bids), confidence)
        below_grid = revenue < revenue.max() - promise.to_privacy
        assert law[below_grid].sum() <= 1 - float(confidence) + SLACK
        optimum = auction.optimum(bids)
        assert revenue.max() >= optimum - promise.to_grid - SLACK
        assert revenue.max() >= optimum - auction.promise(len(bids), optimum=max(optimum, 1)).to_grid - SLACK


def test_the_guarantee_is_that_of_the_textbook_or_better_and_is_reached():
    auction = PriceAuction("0.5", price_grid(top=10, step=1))
    assert 0 < auction.guarantee(0.9) <= 10 / 0.5 * math.log(10 / 0.1)
    assert auction.guarantee(0.99) > auction.guarantee(0.9)
    assert PriceAuction(1, [3]).guarantee(0.99) == 0.0


def test_the_loss_in_revenue_grows_with_the_logarithm_of_the_buyers_only():
    top, epsilon, shares = 10, 1, []
    sizes = (100, 1000, 10_000, 100_000)
    for size in sizes:
        bids = random.simulation(size).uniform(0, top, size).round(4)
        step = optimal_grid_step(size, top, epsilon, tick="0.0001")
        assert step == max(Fraction(top, size), Fraction(1, 10_000))
        auction = PriceAuction(epsilon, price_grid(top=top, step=step, tick="0.0001"))
        lost = auction.optimum(bids) - float(auction.law(bids) @ auction.revenue(bids))
        bound = top / epsilon * (1 + math.log(epsilon * size) + math.log(1 / 0.05))
        promise = auction.promise(size)
        assert promise.to_privacy + promise.to_grid <= bound + 1
        assert 0 <= lost <= promise.to_privacy + promise.to_grid
        shares.append(lost / math.log(size))
    assert max(shares) < top / epsilon
    assert max(shares[2:]) < 2 * max(shares[:2])


@pytest.mark.parametrize("tick", [None, "0.01", "0.25"])
@pytest.mark.parametrize("epsilon", ["0.01", 1, 3])
@pytest.mark.parametrize("top", [1, "7.5", 100])
@pytest.mark.parametrize("buyers", [1, 3, 40, 999, 20_000])
def test_the_step_is_the_best_of_all(buyers, top, epsilon, tick):
    def lost(steps):
        return buyers * steps + float(Fraction(top) / Fraction(epsilon)) * np.log(float(top) / steps)

    step = optimal_grid_step(buyers, top, epsilon, tick=tick)
    if tick is None:
        tried = float(top) * np.geomspace(1e-7, 1, 4001)
    else:
        assert step % Fraction(tick) == 0
        tried = float(tick) * np.arange(1, int(Fraction(top) / Fraction(tick)) + 1)
    assert 0 < step <= Fraction(top)
    assert lost(float(step)) <= lost(tried).min() * (1 + 1e-12)


def test_no_coin_is_taken_for_granted():
    assert optimal_grid_step(20_000, 1, 1) == Fraction(1, 20_000)
    assert optimal_grid_step(20_000, 1, 1, tick="0.01") == Fraction(1, 100)  # a coin is the least step
    grid = price_grid(top=1, step=Fraction(1, 20_000), tick=Fraction(1, 20_000))
    assert len(grid) == 20_000


# ── truthfulness


@pytest.mark.parametrize("commit", [False, True])
@pytest.mark.parametrize("supply", [None, 1])
@pytest.mark.parametrize("epsilon", ["0.5", 2])
def test_nobody_gains_more_by_lying_than_the_loss_allows(epsilon, supply, commit):
    auction = PriceAuction(epsilon, [1, 2, 3], supply=supply, commit=commit)
    types, most = [0.0, 1.0, 2.0, 3.0], 0.0
    low, high = auction.utilities
    for others in itertools.product(types, repeat=2):
        for truth in types:
            honest = auction.payoff([truth, *others], 0, truth)
            for lie in types:
                lying = auction.payoff([lie, *others], 0, truth)
                assert low <= lying <= high
                most = max(most, lying - honest)
    # Given the price, an honest report is never worse, whoever decides when; so utilities of range 1 count.
    assert 0 < most <= auction.loss.delta(0.0) <= math.tanh(auction.epsilon / 2)


def test_payoff_is_the_expectation_over_price_and_lottery():
    auction = PriceAuction(1, [1, 2, 4], supply=1)
    law = auction.law([4.0, 2.0, 1.0])
    # Worth 4: at price 1 three want it, at 2 two, at 4 only the agent.
    by_hand = (law[0] * 3 / 3 + law[1] * 2 / 2 + law[2] * 0) / 4
    assert auction.payoff([4.0, 2.0, 1.0], 0, 4.0) == pytest.approx(by_hand, abs=1e-12)
    # Somebody who bid 4 but to whom it is worth 1 buys at 4 only where bids are orders.
    assert auction.payoff([4.0, 2.0, 1.0], 0, 1.0) == 0
    committed = PriceAuction(1, [1, 2, 4], supply=1, commit=True)
    by_hand = (law[1] * -1 / 2 + law[2] * -3) / 4
    assert committed.payoff([4.0, 2.0, 1.0], 0, 1.0) == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize(
    ("agent", "truth"), [(2, 1.0), (-1, 1.0), (0, -1.0), (0, 5.0), (0, math.nan), (0, "31337x"), (0, None)]
)
def test_payoffs_of_nobody_or_of_other_values_are_refused(agent, truth):
    with pytest.raises(InvalidParameter) as caught:
        PriceAuction(1, [1, 4]).payoff([1.0, 2.0], agent, truth)
    assert "31337" not in str(caught.value)


# ── who buys


def test_everybody_who_bid_the_price_buys_and_scarce_goods_go_by_lot():
    bids = [4.0, 4.0, 4.0, 0.5, 4.0]
    with seeded(5):
        plenty = [PriceAuction(9, [4]).outcome(bids) for _ in range(3)]
        lone = PriceAuction(9, [4], supply=1)
        scarce = [lone.outcome(bids) for _ in range(2000)]
        spare = PriceAuction(9, [4], supply=7).outcome(bids)
    assert all(each.buys.tolist() == [True, True, True, False, True] for each in [*plenty, spare])
    assert plenty[0].revenue == 16
    assert all(each.buys.sum() == 1 for each in scarce)
    winners = [int(np.flatnonzero(each.buys)[0]) for each in scarce]
    assert_discrete(winners, dict.fromkeys([0, 1, 2, 4], 0.25))


def test_nobody_buys_from_an_empty_market():
    assert PriceAuction(1, [1, 2], supply=3).outcome([]).revenue == 0
    assert PriceAuction(1, [1, 2], supply=2**63).revenue([2.0]).tolist() == [1.0, 2.0]


# ── bad input


@pytest.mark.parametrize(
    ("epsilon", "prices", "supply"),
    [(0, [1], None), (-1, [1], None), (1, [], None), (1, [1], 0), (1, [1], 1.5)],
)
def test_unusable_parameters_are_refused(epsilon, prices, supply):
    with pytest.raises(InvalidParameter):
        PriceAuction(epsilon, prices, supply=supply)


@pytest.mark.parametrize("method", ["select", "outcome", "revenue", "optimum", "law"])
@pytest.mark.parametrize("bids", [np.array([[1.0]]), np.array(["1"]), 1.0, np.ma.array([1.0], mask=[1])])
def test_bids_of_another_type_or_shape_are_refused_everywhere(method, bids):
    with pytest.raises(InvalidValue):
        getattr(PriceAuction(1, [1, 2]), method)(bids)


def test_it_is_a_value_that_prints_its_public_parameters():
    auction = PriceAuction("0.5", [1, 2], supply=3)
    assert repr(auction) == "PriceAuction(epsilon=0.5, prices=PriceGrid([1.0, 2.0]), supply=3)"
    assert auction == PriceAuction(0.5, ["1", "2.0"], supply=3)
    assert auction != PriceAuction(0.5, [1, 2])


def test_a_million_bids_on_ten_thousand_prices_give_the_plain_counts():
    bids = random.simulation(9).uniform(0, 100, 1_000_000)
    auction = PriceAuction(1, price_grid(top=100, step="0.01"))
    ordered = np.sort(bids)
    at = np.array(auction.prices)
    plain = (len(bids) - np.searchsorted(ordered, at)) * auction.prices.whole
    assert np.array_equal(auction._scores(bids), plain)


def test_the_script_tells_its_story_and_draws_its_picture(capsys, tmp_path):
    place = Path(__file__).parents[2] / "examples" / "games" / "auction.py"
    spec = importlib.util.spec_from_file_location("auction_script", place)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main([str(tmp_path / "revenue.png")], sizes=(100, 3000))
    told = capsys.readouterr().out
    assert "Vacuous" in told
    assert "3,000" in told
    assert max(map(len, told.replace(str(tmp_path), "").splitlines())) <= 80
    assert (tmp_path / "revenue.png").stat().st_size > 10_000
