"""An attack's rate beside a guess's: the two ranges, and the verdict between them."""

import math

import pytest
from scipy.stats import binom, hypergeom

import sfumato as sf
from sfumato.attacks import Outcome, Tally
from sfumato.errors import InvalidParameter
from sfumato.numeric.shares import count_range, dealt_range


def _outcome(hits, guess, trials=200, **given):
    return Outcome("test", "a hit", Tally(hits, trials), guess, "a coin", **given)


@pytest.mark.parametrize("p", [0.0, 0.01, 0.5, 0.93, 1.0])
@pytest.mark.parametrize("trials", [1, 7, 200])
def test_a_guess_leaves_its_range_with_the_probability_that_is_left(p, trials):
    alpha = 0.005
    low, high = count_range(p, p, trials, alpha)
    assert binom.cdf(low - 1, trials, p) <= alpha
    assert binom.sf(high, trials, p) <= alpha
    # … and it is the narrowest such range: one count less on either side would be wrong too often.
    assert binom.cdf(low, trials, p) > alpha
    assert binom.sf(high - 1, trials, p) > alpha


def test_a_measured_guess_is_less_certain_than_a_known_one():
    known, measured = _outcome(100, 0.5), _outcome(100, Tally(100, 200))
    assert measured.baseline_interval[0] < known.baseline_interval[0]
    assert measured.baseline_interval[1] > known.baseline_interval[1]
    assert measured.baseline == known.baseline == 0.5


def test_a_measured_guess_by_the_same_coin_is_seldom_beaten():
    # Both tallies from one coin: over all pairs of counts, "works" is wrong with at most half of 1 %.
    trials, p = 40, 0.3
    wrong = sum(
        binom.pmf(a, trials, p) * binom.pmf(b, trials, p)
        for a in range(trials + 1)
        for b in range(trials + 1)
        if _outcome(a, Tally(b, trials), trials).works
    )
    assert wrong <= 0.005


@pytest.mark.parametrize(("trials", "others"), [(12, 12), (5, 20), (30, 8), (1, 1)])
def test_people_who_are_dealt_out_leave_their_range_as_seldom_as_claimed_and_no_more_seldom(trials, others):
    alpha, both = 0.05, trials + others
    for hits in range(both + 1):
        law = hypergeom(both, hits, others)
        counts = range(max(0, hits - trials), min(hits, others) + 1)
        ranges = {count: dealt_range(hits - count, trials, others, alpha) for count in counts}
        above = [count for count in counts if count > ranges[count][1]]
        below = [count for count in counts if count < ranges[count][0]]
        assert sum(law.pmf(above)) <= alpha
        assert sum(law.pmf(below)) <= alpha
        # Fisher's test itself: whatever it finds too large or too small is out of the range.
        assert above == [count for count in counts if law.sf(count - 1) <= alpha]
        assert below == [count for count in counts if law.cdf(count) <= alpha]


def test_people_who_are_dealt_out_are_compared_more_sharply():
    plain, dealt = (_outcome(60, Tally(36, 200), dealt=each) for each in (False, True))
    assert not plain.works
    assert dealt.works
    assert _outcome(36, Tally(36, 200), dealt=True).within
    with pytest.raises(InvalidParameter, match="two tallies"):
        _outcome(60, 0.5, dealt=True)
    # As large as tables get.
    low, high = dealt_range(1_000_000, 9_000_000, 9_000_000, 0.005)
    assert low == pytest.approx(1_000_000 - 2.576 * math.sqrt(2 * 1_000_000 * 8 / 9), rel=1e-3)
    assert high == pytest.approx(1_000_000 + 2.576 * math.sqrt(2 * 1_000_000 * 8 / 9), rel=1e-3)


def test_works_and_within_say_which_side_of_the_range_a_rate_is_on():
    high = round(_outcome(0, 0.5).baseline_interval[1] * 200)
    assert _outcome(high + 1, 0.5).works
    assert not _outcome(high + 1, 0.5).within
    assert _outcome(high, 0.5).within
    assert not _outcome(high, 0.5).works
    assert not _outcome(0, 0.5).within  # worse than a guess is not what a guess reaches, either


def test_an_outcome_reads_as_a_few_lines_of_80_columns():
    text = str(_outcome(190, 0.5, target="exact counts"))
    assert text.startswith("test against exact counts: a hit in 190 of 200 (95.0%")
    assert max(map(len, text.splitlines())) <= 80
    assert text.splitlines()[-1] == "It works."
    assert "0.011%" in str(_outcome(0, 0.00011))
    assert str(_outcome(100, 0.5)).endswith("No better than a guess.")


def test_without_a_guess_there_is_no_verdict():
    found = _outcome(190, None, undecided="give more.")
    assert found.works is found.within is found.allowed(1) is found.keeps(1) is None
    assert str(found).endswith("What a guess would reach is not known.\nNo verdict: give more.")
    plain = found.to_dict()
    assert plain["baseline"] is plain["baseline_interval"] is plain["works"] is None
    # With one that too little was given to judge by, it is told.
    open_ = _outcome(1, 0.02, undecided="give more.")
    assert open_.works is None
    assert "reaches 2.0%" in str(open_)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("guess", [0.0, 0.05, 0.5, 0.9, 1.0])
def test_what_epsilon_allows_is_what_randomised_response_reaches_at_most(epsilon, guess):
    # By hand: both sides of the definition, for the event of a hit and for its complement.
    delta = 1e-3
    most = max(
        p
        for p in (i / 10_000 for i in range(10_001))
        if p <= math.exp(epsilon) * guess + delta + 1e-12
        and 1 - guess <= math.exp(epsilon) * (1 - p) + delta + 1e-12
    )
    assert _outcome(0, guess).allowed(epsilon, delta=delta) == pytest.approx(most, abs=1.01e-4)


def test_a_rate_beyond_what_epsilon_allows_is_seen_but_for_luck():
    assert _outcome(60, 0.1).keeps(1)  # 30 % where e times as often is 27 %: luck
    assert not _outcome(100, 0.1).keeps(1)
    assert _outcome(100, 0.1).keeps(2)
    measured = _outcome(100, Tally(20, 200))
    assert measured.allowed(1) > _outcome(100, 0.1).allowed(1)  # the guess may have been unlucky


def test_a_guess_that_was_counted_says_why_its_range_is_wide():
    assert "in as many trials, both counts being samples," in " ".join(str(_outcome(1, Tally(3, 9))).split())
    assert "in as many trials 0.0% to" in " ".join(str(_outcome(1, 0.01)).split())


def test_an_outcome_as_plain_values_is_json():
    import json

    found = _outcome(190, Tally(3, 9), detail={"epsilon": 1.0})
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["rate"] == 0.95
    assert plain["works"] is True
    assert plain["detail"] == {"epsilon": 1.0}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Tally(3, 2), "no more hits than trials"),
        (lambda: Tally(0, 0), "at least one trial"),
        (lambda: _outcome(1, 1.5), "from 0 to 1"),
        (lambda: _outcome(1, None), "say in undecided why"),
        (lambda: _outcome(1, 0.5, confidence=1.0), "strictly between"),
        (lambda: sf.attacks.compare([]), "at least one"),
    ],
)
def test_what_cannot_be_counted_is_refused(make, words):
    with pytest.raises(InvalidParameter, match=words):
        make()


def test_a_picture_has_a_row_for_each_outcome(tmp_path):
    figure = sf.attacks.compare(
        [_outcome(190, 0.5, target="exact"), _outcome(101, Tally(99, 200), target="private")],
        path=tmp_path / "a.png",
    )
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["exact", "private"]
    assert (tmp_path / "a.png").stat().st_size > 5_000


def test_what_has_no_verdict_is_drawn_without_a_band():
    open_ = _outcome(190, None, undecided="give more.", target="rows")
    figure = sf.attacks.compare([open_, _outcome(101, 0.5, target="private")])
    assert [each.get_text() for each in figure.axes[0].get_legend().get_texts()] == [
        "what a guess reaches",
        "attack, no better",
        "no verdict",
    ]
    assert len(figure.axes[0].patches) == 1
