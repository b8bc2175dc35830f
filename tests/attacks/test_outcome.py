"""An attack's rate beside a guess's: the two ranges, and the verdict between them."""

import pytest
from scipy.stats import binom

import sfumato as sf
from sfumato.attacks import Outcome, Tally
from sfumato.errors import InvalidParameter
from sfumato.numeric.shares import count_range


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
