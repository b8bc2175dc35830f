"""Private PAC learning: counts, prices, and measured errors under the promised ones at every size."""

import importlib.util
import itertools
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.games import pac
from sfumato.games.hypotheses import Predictor, class_of
from sfumato.games.pac import (
    PrivateLearner,
    conjunctions,
    decision_stumps,
    error_promised,
    examples,
    examples_needed,
    parities,
    thresholds,
)
from sfumato.mechanisms.exponential import Exponential
from sfumato.testing import assert_discrete, seeded

CUTS = [[-1.0, 0.5], [], [0.0, 2.0, 3.0]]


def rows_of(kind, n, seed):
    draw = np.random.default_rng(seed)
    if kind == "line":
        return np.round(draw.uniform(-2, 5, n), 1)
    return draw.integers(0, 2, (n, 4)) if kind == "bits" else np.round(draw.uniform(-2, 5, (n, 3)), 1)


@pytest.mark.parametrize(
    ("ready", "kind"),
    [
        (thresholds([-1.0, 0.0, 0.1, 2.5]), "line"),
        (parities(4), "bits"),
        (conjunctions(4), "bits"),
        (decision_stumps(CUTS), "table"),
    ],
)
@pytest.mark.parametrize("n", [0, 1, 40])
def test_ready_classes_count_as_their_own_rules_do_one_by_one(ready, kind, n):
    rows = rows_of(kind, n, 1)
    labels = np.random.default_rng(2).integers(0, 2, n).astype(bool)
    slow = [np.count_nonzero(np.asarray(ready[i](rows)) != labels) for i in range(len(ready))]
    assert PrivateLearner(1, ready).errors(rows, labels).tolist() == slow
    assert PrivateLearner(1, [ready[i] for i in range(len(ready))]).errors(rows, labels).tolist() == slow


def test_the_sizes_and_rules_are_those_of_the_textbook():
    assert [len(each) for each in (thresholds([1, 2]), parities(5), conjunctions(3))] == [3, 32, 27]
    assert len(decision_stumps(CUTS)) == 10
    rows = np.array(list(itertools.product([0, 1], repeat=3)))
    assert np.array_equal(parities(3)[0b101](rows), (rows[:, 0] + rows[:, 2]) % 2 == 1)
    # Base 3 digits 1, 0, 2: the first must be 1, the last must be 0.
    assert np.array_equal(conjunctions(3)[1 * 9 + 2](rows), (rows[:, 0] == 1) & (rows[:, 2] == 0))
    assert repr(thresholds(range(99))) == "thresholds(99 points from 0 to 98)"
    assert repr(decision_stumps(CUTS)) == "decision_stumps(10 rules on 3 columns)"
    with pytest.raises(IndexError):
        thresholds([1, 2])[3]


class Blocks:
    """Three rules on the line, which remember how many rows they saw at once."""

    def __init__(self):
        self.seen = []

    def __len__(self):
        return 3

    def predict(self, features):
        self.seen.append(len(features))
        return np.stack([features >= t for t in (0.0, 1.0, 2.0)])


def test_a_class_that_predicts_is_asked_in_blocks(monkeypatch):
    monkeypatch.setattr("sfumato.games.hypotheses._CELLS", 30)
    blocks = Blocks()
    assert isinstance(blocks, Predictor)
    rows, labels = rows_of("line", 25, 3), np.arange(25) % 2
    learner = PrivateLearner(1, blocks)
    assert np.array_equal(
        learner.errors(rows, labels), PrivateLearner(1, thresholds([0, 1, 2])).errors(rows, labels)[:3]
    )
    assert blocks.seen == [10, 10, 5]
    assert np.array_equal(learner.hypotheses[1](rows), rows >= 1.0)


def test_millions_of_thresholds_and_examples_are_learned():
    draw = np.random.default_rng(4)
    rows = draw.uniform(0, 1, 200_000)
    learner = PrivateLearner(1, thresholds(np.arange(10**6) / 10**6))
    with seeded(5):
        place = learner.select(rows, rows >= 0.3)
    wrong = learner.errors(rows, rows >= 0.3)
    assert wrong[place] - wrong.min() <= learner.guarantee(1 - 1e-9) < 50


# ── the price


def largest_ratio(law, other):
    return max(abs(math.log(law[key] / other[key])) for key in law)


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_the_exact_laws_of_the_examples_keep_to_the_price_and_are_drawn(example):
    left, right = example.pmf("left"), example.pmf("right")
    assert 0.5 * float(example.loss.pure) < largest_ratio(left, right) <= float(example.loss.pure)
    with seeded(6):
        assert_discrete(example.draw("left", 3_000), left)


labelled = st.lists(
    st.tuples(st.tuples(st.integers(0, 1), st.integers(0, 1)), st.integers(0, 1)), min_size=1, max_size=6
)


@settings(max_examples=60)
@given(labelled, st.tuples(st.tuples(st.integers(0, 1), st.integers(0, 1)), st.integers(0, 1)))
def test_every_neighbour_is_within_the_price(data, other):
    def law(learner, examples):
        rows = np.array([row for row, _ in examples], np.int64).reshape(-1, 2)
        return learner.probabilities(rows, [label for _, label in examples])

    for ready in (parities(2), conjunctions(2)):
        exchange = PrivateLearner(1, ready, adjacency="exchange")
        ratio = np.log(law(exchange, data) / law(exchange, [other, *data[1:]]))
        assert np.abs(ratio).max() <= 1 + 1e-9
        come = PrivateLearner(1, ready)
        assert np.abs(np.log(law(come, data) / law(come, data[1:]))).max() <= 1 + 1e-9


def test_a_monotone_choice_under_exchange_would_cost_more_than_it_says(monkeypatch):
    wrong = Exponential(2, 1, monotone=True)
    monkeypatch.setattr(pac, "_mechanism", lambda epsilon, adjacency: wrong)
    careless = PrivateLearner(2, thresholds([1.0]), adjacency="exchange")
    law = [careless.probabilities([1.0] * 3, labels) for labels in ([0, 0, 1], [0, 0, 0])]
    assert np.abs(np.log(law[0] / law[1])).max() > 1.5 * float(careless.loss.pure)


# ── what is promised


def line(n, draw, noise):
    """Uniform points of a grid of 64, labelled by x >= 20, a share flipped."""
    rows = draw.integers(0, 64, n)
    return rows, (rows >= 20) ^ (draw.random(n) < noise)


def true_line(noise):
    return noise + (1 - 2 * noise) * np.abs(np.minimum(np.arange(65), 64) - 20) / 64


def odd(n, draw, noise):
    rows = draw.integers(0, 2, (n, 6))
    return rows, (rows[:, [1, 4]].sum(axis=1) % 2 == 1) ^ (draw.random(n) < noise)


def true_odd(noise):
    errors = np.full(64, 0.5)
    errors[0b010010] = noise
    return errors


@pytest.mark.parametrize(
    ("ready", "world", "truth"),
    [(thresholds(range(64)), line, true_line), (parities(6), odd, true_odd)],
    ids=["thresholds", "parities"],
)
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
def test_measured_errors_stay_under_the_promise_at_every_size(ready, world, truth, noise, adjacency):
    learner = PrivateLearner("0.5", ready, adjacency=adjacency)
    draw, errors, means = np.random.default_rng(7), truth(noise), []
    with seeded(8):
        for n in (20, 80, 320, 1280, 5120):
            promised = error_promised(
                len(ready), n, beta="0.01", epsilon="0.5", realizable=noise == 0, adjacency=adjacency
            )
            excess = [errors[learner.select(*world(n, draw, noise))] - errors.min() for _ in range(40)]
            # Each exceeds it with probability at most 1/100: 8 of 40 do with less than 1e-8.
            assert np.count_nonzero(np.array(excess) > promised) < 8
            means.append((np.mean(excess), promised))
    measured, bound = np.array(means).T
    assert np.all(np.diff(bound) < 0) or bound[0] == bound[1] == 1.0
    assert bound[-1] < 0.12
    assert measured[-1] < 0.02 < 0.05 < measured[0]  # it learns, and a guess would not do


def test_the_guarantee_on_the_sample_holds_and_is_nearly_reached():
    wrong = np.array([0] + [7] * 999)
    ready = [lambda rows, k=k: np.arange(len(rows)) < k for k in wrong]
    learner = PrivateLearner(1, ready)
    assert np.array_equal(learner.errors(np.zeros(10), np.zeros(10)), wrong)
    with seeded(9):
        gaps = wrong[[learner._choice.select(-wrong) for _ in range(400)]]
    assert learner.guarantee("0.9") == 9
    # At a gap of 7 the worst case fails about half the time: no guarantee below it could hold.
    assert 0.3 < np.mean(gaps == 7) < 0.7


@pytest.mark.parametrize("realizable", [False, True])
@pytest.mark.parametrize("size", [2, 100, 2**40])
def test_sizes_and_errors_are_inverse_and_move_the_right_way(size, realizable):
    def asked(alpha="0.05", beta="0.05", epsilon="0.5", adjacency="add-remove"):
        return examples_needed(
            size, alpha=alpha, beta=beta, epsilon=epsilon, realizable=realizable, adjacency=adjacency
        )

    n = asked()
    given_n = {"beta": "0.05", "epsilon": "0.5", "realizable": realizable}
    assert error_promised(size, n, **given_n) <= 0.05 < error_promised(size, n - 1, **given_n)
    assert asked(epsilon=None) <= asked(epsilon=1) <= n < asked(epsilon="0.1")
    assert n < min(asked(alpha="0.02"), asked(beta="0.001"), asked(adjacency="exchange"))
    # The rate of the theorem, with its constants: O((ln m + ln 1/β)(1/α² + 1/(εα))).
    logs = math.log(size) + math.log(20)
    assert n <= (2 * logs / 0.05 if realizable else 2 * logs / 0.05**2) + 4 * logs / (0.5 * 0.05)
    assert error_promised(1, 1, **given_n) == 0.0


def test_the_realizable_promise_is_true_of_the_exact_binomial():
    size, n, beta = 50, 300, 0.05
    alpha = error_promised(size, n, beta=beta, epsilon=1, realizable=True)
    choice = Exponential(1, 1, monotone=True)

    def fails(share):
        allowed = math.floor(choice.error(1 - beta * share, candidates=size))
        tail = sum(math.comb(n, k) * alpha**k * (1 - alpha) ** (n - k) for k in range(allowed + 1))
        return beta * share + (size - 1) * tail

    assert min(fails(k / 64) for k in range(1, 64)) <= beta


def test_the_example_tells_its_story_in_eighty_columns(capsys, tmp_path):
    path = Path(__file__).parents[2] / "examples" / "games" / "pac.py"
    spec = importlib.util.spec_from_file_location("example_pac", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    picture = tmp_path / "curve.png"
    with seeded(10):
        found = script.measure((200, 3_200), repeats=20)
        script.main(str(picture), sizes=(200, 800), repeats=5)
    told = capsys.readouterr().out
    assert max(len(row) for row in told.splitlines()) <= 80
    assert "examples" in told
    assert picture.stat().st_size > 10_000
    assert np.all(found["private"] < found["promise"])
    assert found["private mean"][1] < found["private mean"][0] / 4


# ── bad input


@pytest.mark.parametrize("empty", [[], (), decision_stumps([[], []])])
def test_an_empty_class_is_refused(empty):
    with pytest.raises(InvalidParameter, match="empty"):
        PrivateLearner(1, empty)


@pytest.mark.parametrize(
    ("rows", "labels", "told"),
    [
        ([1.0, 2.0], np.array(["0", "7771"]), "0 or 1"),
        ([1.0, 2.0], np.array([[0], [7771]]), "flat"),
        ([1.0, 2.0], 7771, "flat"),
        ([1.0, 2.0, 7771.0], [0, 1], "same number"),
        (7771.0, [0, 1], "same number"),
        (np.array(["7771", "b"]), [0, 1], "numbers"),
        (np.array([[7771.0, 1.0]]), [1], "flat"),
        (np.ma.array([7771.0], mask=[1]), [1], "Masked"),
    ],
)
def test_examples_of_another_declared_type_or_shape_are_refused_without_being_shown(rows, labels, told):
    with pytest.raises(InvalidValue, match=told) as refused:
        PrivateLearner(1, thresholds([1.0])).select(rows, labels)
    assert "7771" not in str(refused.value)


def test_other_numbers_of_columns_are_refused():
    for ready in (parities(3), conjunctions(3), decision_stumps(CUTS)):
        with pytest.raises(InvalidValue, match="columns"):
            PrivateLearner(1, ready).select(np.array([[0, 1]]), [1])
    with pytest.raises(InvalidParameter, match="columns"):
        PrivateLearner(1, [lambda x: x > 0], columns=0)


MISSING = [None, "x", pd.NA, math.nan, [1, 2, 3], 1j, Decimal("NaN"), np.array([1, 2, 3])]


@pytest.mark.parametrize("odd", MISSING, ids=repr)
def test_an_example_with_a_gap_counts_for_no_rule(odd):
    for ready, row in (
        (thresholds([1.0, 2.0]), 1.5),
        ([lambda x: x > 1, lambda x: x > 2], 1.5),
        (parities(2), [0, 1]),
        (conjunctions(2), [0, 1]),
        (decision_stumps([[1.0], [0.5]]), [1.0, 0.0]),
    ):
        learner = PrivateLearner(1, ready)
        there = learner.errors([row] * 5, [1] * 5).tolist()
        assert learner.errors([*[row] * 5, odd], [1] * 6).tolist() == there
        assert learner.errors([row] * 6, [*[1] * 5, odd]).tolist() == there
        if isinstance(row, list):
            assert learner.errors([*[row] * 5, [0, odd]], [1] * 6).tolist() == there
            assert learner.errors([*[row] * 5, [0]], [1] * 6).tolist() == there
    assert PrivateLearner(1, parities(2)).errors([[0, 1], [0, 7]], [1, 1]).tolist() == [1, 0, 1, 0]
    assert PrivateLearner(1, thresholds([1.0])).errors([0, 1, 2], [0, 1, 7]).tolist() == [0, 1]


@pytest.mark.parametrize("row", [np.float32(0.7), 2**32, 3, True, Decimal("0.7"), 2**63, 2**70])
@pytest.mark.parametrize("odd", [0.5, None, "x", 2**70, np.float32(1), True, Fraction(1, 3)], ids=repr)
def test_one_example_moves_the_mistakes_of_own_rules_by_one(row, odd):
    """A float among float32, or among integers that overflow, used to move the mistakes of all others."""
    rules = [lambda x: x >= 0.7, lambda x: x * x > 0, lambda x: np.full(len(x), x.dtype == np.float64)]
    learner = PrivateLearner(1, rules)
    here, there = learner.errors([row] * 20, [1] * 20), learner.errors([*[row] * 20, odd], [1] * 21)
    assert np.all((there - here >= 0) & (there - here <= 1))


def test_an_answer_of_a_rule_that_is_no_label_is_a_mistake():
    rules = [
        lambda x: x + 5,
        lambda x: [1, None, "1", 2, math.nan],
        lambda x: np.array([1, None, 0, 1, 7], object),
    ]
    assert PrivateLearner(1, rules).errors([1, 2, 3, 4, 5], [1] * 5).tolist() == [5, 4, 3]


def test_no_rule_changes_what_the_next_one_sees():
    def vandal(x):
        x[:] = 0
        return x > 0

    with pytest.raises(ValueError, match="read-only"):
        PrivateLearner(1, [vandal]).errors([1.0], [1])


def test_rows_of_lists_have_the_declared_number_of_columns():
    rule = [lambda x: x[:, 0] > x[:, 1]]
    assert PrivateLearner(1, rule, columns=2).errors([[2, 1], [1, 2], [3], 4], [1] * 4).tolist() == [1]
    assert PrivateLearner(1, rule).errors(np.array([[2, 1], [1, 2]]), [1] * 2).tolist() == [1]
    frame = pd.DataFrame({"a": pd.array([2, 1, None], "Int64"), "b": [1, 2, 0]})
    assert PrivateLearner(1, rule, columns=2).errors(frame, [1] * 3).tolist() == [1]
    assert PrivateLearner(1, decision_stumps([[1.5], []])).errors(
        pl.DataFrame({"a": [2, 1], "b": [0, 0]}), [1, 1]
    ).tolist() == [1, 1]
    assert PrivateLearner(1, thresholds([1.5])).errors(pa.array([2, 1, None]), [1, 1, 1]).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: thresholds([]), "at least one"),
        (lambda: thresholds([2, 1]), "increasing"),
        (lambda: thresholds([0, math.inf]), "finite"),
        (lambda: parities(25), "at most 24"),
        (lambda: conjunctions(15), "at most 14"),
        (lambda: class_of(3), "sequence of callables"),
        (lambda: PrivateLearner(0, thresholds([1])), "greater than 0"),
        (lambda: PrivateLearner(1, thresholds([1]), adjacency="add_remove"), "add-remove"),
        (lambda: PrivateLearner(1, [lambda rows: rows[:1]]).select([1, 2], [0, 1]), "one label for each row"),
        (lambda: examples_needed(0, alpha=0.1, beta=0.1, epsilon=1), "size"),
        (lambda: examples_needed(9, alpha=0, beta=0.1, epsilon=1), "alpha"),
        (lambda: examples_needed(9, alpha="1e-200", beta=0.1, epsilon=1), "ask for less"),
    ],
)
def test_unusable_parameters_are_refused(make, told):
    with pytest.raises(InvalidParameter, match=told):
        make()


@pytest.mark.parametrize("width", [np.float16, np.float32])
def test_a_rule_says_of_narrow_numbers_what_was_counted(width):
    """0.7 is less than 0.7 once it was rounded to 32 bits."""
    rows, labels = np.array([0.1, 0.7, 0.9, 0.3], width), [0, 1, 1, 0]
    for ready, features in (
        (thresholds([0.1, 0.3, 0.7, 0.9]), rows),
        (decision_stumps([[0.1, 0.3, 0.7, 0.9]]), rows[:, None]),
    ):
        counted = PrivateLearner(1, ready).errors(features, labels)
        said = [np.count_nonzero(ready[i](features) != np.array(labels, bool)) for i in range(len(ready))]
        assert counted.tolist() == said


def test_ragged_points_and_unknown_neighbours_are_refused():
    with pytest.raises(InvalidParameter, match="flat list"):
        thresholds([[1], [1, 2]])
    with pytest.raises(InvalidParameter, match="adjacency"):
        error_promised(5, 5, beta="0.1", epsilon=None, adjacency=["exchange"])


@pytest.mark.parametrize("beta", ["0.05", "0.01"])
@pytest.mark.parametrize("n", [51, 201, 1001])
def test_the_promise_covers_a_best_rule_that_looks_worse_than_it_is(n, beta):
    """Two rules that always disagree: the sample flatters one exactly as much as it wrongs the other."""
    alpha = error_promised(2, n, beta=beta, epsilon=None)
    wrong = binom.sf(n // 2, n, (1 - alpha) / 2)  # more than half of the sample against the better rule
    assert wrong <= float(beta)
    # One deviation instead of two would not do.
    assert binom.sf(n // 2, n, (1 - math.sqrt(math.log(1 / float(beta)) / (2 * n))) / 2) > float(beta)


def test_a_rule_can_be_read():
    assert [repr(thresholds([40, 45.5])[i]) for i in range(3)] == ["x ≥ 40", "x ≥ 45.5", "never"]
    assert repr(decision_stumps([[1, 2], [3]])[5]) == "x1 < 3"
    assert [repr(parities(2)[i]) for i in range(4)] == ["never", "x1 is odd", "x0 is odd", "x0 + x1 is odd"]
    rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert parities(2)[1](rows).tolist() == [False, True, False, True]
    conjunction = conjunctions(2)[5]
    assert repr(conjunction) == "x0 = 1 and x1 = 0"
    assert conjunction(rows).tolist() == [False, False, True, False]
    assert repr(conjunctions(2)[0]) == "always"
