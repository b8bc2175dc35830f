"""What no honest client or server sends: refused with one sentence, and nothing is changed by it."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato import local
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local.base import aggregate_from
from sfumato.local.examples import examples
from sfumato.testing import seeded

MADE = {repr(each.randomizer): each for each in examples()}
TEXTS = {
    "domain": local.KaryResponse(1, ["tea", "coffee"]),
    "prefixes": local.HeavyHitters(1, length=6),
}


@pytest.mark.parametrize("made", TEXTS.values(), ids=list(TEXTS))
def test_one_text_is_not_a_list_of_its_characters(made):
    # Each character would be a report of its own, and the person would pay for all of them.
    for one in ("tea", b"tea", 5, None):
        with pytest.raises(InvalidValue):
            made.encode(one)


@pytest.mark.parametrize("made", TEXTS.values(), ids=list(TEXTS))
def test_columns_of_texts_are_what_their_lists_are(made):
    listed = ["tea", "coffee", "tea"]
    columns = [
        np.array(listed),
        np.array(listed, object),
        pd.Series(listed),
        pd.Series(listed, dtype="category"),
        pd.Series(listed, dtype="string"),
        pa.array(listed),
        pa.array(listed).dictionary_encode(),
        pa.chunked_array([listed[:1], listed[1:]]),
        tuple(listed),
    ]
    with seeded("columns"):
        wanted = made.encode(listed)
    for column in columns:
        with seeded("columns"):
            assert np.array_equal(made.encode(column), wanted)


@pytest.mark.parametrize("made", TEXTS.values(), ids=list(TEXTS))
def test_a_missing_text_is_refused_and_no_value_is_told(made):
    private = "zebra9"
    for column in (
        pa.array(["tea", None]),
        pd.Series(["tea", None]),
        pd.Series(["tea", pd.NA], dtype="string"),
        np.ma.array(["tea", "tea"], mask=[True, False]),
        ["tea", private + "é"],
        [["tea"]],
    ):
        with pytest.raises(InvalidValue) as refused:
            made.encode(column)
        assert private not in str(refused.value)
        assert refused.value.__cause__ is None


def test_a_refusal_says_what_is_public_and_no_more():
    with pytest.raises(
        InvalidValue, match=r"at most 6 characters of the alphabet \(abc.*-\); change"
    ) as refused:
        TEXTS["prefixes"].encode(["TEA"])
    assert "TEA" not in str(refused.value)
    with pytest.raises(InvalidValue, match="whole number of 8 bits"):
        local.HeavyHitters(1, bits=8).encode([256])


@pytest.mark.parametrize(
    "made",
    [
        local.KaryResponse(1, 4),
        local.HeavyHitters(1, bits=8),
        local.HybridMean(1, 0, 10),
        local.LocalQuantiles(1, 0, 10, bins=16),
    ],
    ids=repr,
)
def test_numbers_behind_a_mask_are_not_reported(made):
    with pytest.raises(InvalidValue):
        made.encode(np.ma.array([1, 2], mask=[True, False]))
    for column in (pd.Series([1, 2], dtype="Int64"), pa.array([1, 2]), pa.chunked_array([[1], [2]])):
        assert len(made.encode(column)) == 2
    for column in (
        pd.Series([1, None], dtype="Int64"),
        pa.array([1, None]),
        [1, float("nan")],
        np.array([True]),
    ):
        with pytest.raises(InvalidValue):
            made.encode(column)


@pytest.mark.parametrize("example", MADE.values(), ids=list(MADE))
@pytest.mark.parametrize(
    "state",
    [[[1], [1, 2]], [-(2**63)] * 4, [2**63] * 4, [2**70] * 4, [1.0] * 4, [True] * 4, {}, None],
    ids=str,
)
def test_sums_that_cannot_be_are_not_read(example, state):
    with seeded("sums"):
        data = example.randomizer.aggregate(example.randomizer.encode([example.left] * 2)).to_dict()
    with pytest.raises(InvalidValue):
        aggregate_from({**data, "state": state})
    if isinstance(data["state"], list) and isinstance(data["state"][0], dict):  # levels, with states within
        for inner in ([[1], [1, 2]], [2**63] * len(data["state"][0]["state"])):
            changed = [{**data["state"][0], "state": inner}, *data["state"][1:]]
            with pytest.raises(InvalidValue):
                aggregate_from({**data, "state": changed})
    elif isinstance(data["state"], list) and isinstance(data["state"][0], list):
        with pytest.raises(InvalidValue):
            aggregate_from({**data, "state": [[[1], [1, 2]], *data["state"][1:]]})


def test_hadamard_sums_whose_size_overflows_are_not_read():
    made = local.HadamardResponse(1, 4)
    data = made.start().to_dict()
    for state in ([-(2**63)] * 4, [2**63] * 4, [2**63, 2**63, 0, 0]):  # their sizes add up to 0 in 64 bits
        with pytest.raises(InvalidValue):
            aggregate_from({**data, "count": 2, "state": state})


def test_sums_beyond_what_is_exact_are_refused():
    data = local.KaryResponse(1, 2).start().to_dict()
    half = {**data, "count": 2**52 + 1, "state": [2**52, 1]}
    with pytest.raises(InvalidParameter, match=r"2\*\*53"):
        aggregate_from(half) + aggregate_from(half)
    assert (aggregate_from(half) + aggregate_from(data)).count == 2**52 + 1
    with pytest.raises(InvalidValue, match=r"2\*\*53"):
        aggregate_from({**half, "count": 2**53 + 1})


@pytest.mark.parametrize(
    "example", [each for each in MADE.values() if "heavy" not in each.name], ids=lambda each: each.name
)
def test_batches_of_any_size_say_the_same(example):
    made = example.randomizer
    with seeded("stream"):
        reports = made.encode([example.left, example.right] * 6)
    whole = made.aggregate(reports)
    for size in (1, 5):
        parts = [reports[start : start + size] for start in range(0, len(reports), size)]
        merged = sum((made.aggregate(each) for each in parts[1:]), made.aggregate(parts[0]))
        again = local.aggregate_from_json(local.aggregate_to_json(merged))
        assert json.dumps(whole.to_dict()) == json.dumps(made.aggregate(parts).to_dict())
        assert whole.to_dict() == merged.to_dict() == again.to_dict()


@pytest.mark.parametrize(
    "made",
    [
        local.KaryResponse(1, 4),
        local.CountMeanSketch(1, 100, rows=4, width=16),
        local.HeavyHitters(1, bits=8),
        local.DuchiMean(1, 0, 1),
        local.HybridMean(1, 0, 1),
        local.LocalQuantiles(1, 0, 1, bins=16),
    ],
    ids=repr,
)
def test_a_confidence_that_leaves_nothing_to_chance_is_refused(made):
    with seeded("sure"):
        total = made.aggregate(made.encode([1] * 200))
    for sure in ("0." + "9" * 20, 1 - 1e-12, 1, 0, float("nan"), True, None):
        with pytest.raises(InvalidParameter, match="confidence"):
            total.estimate(sure)
    found = total.estimate("0.999999999")
    ends = (found.low, found.high)
    assert np.all(np.isfinite(ends))


@pytest.mark.parametrize("kind", [local.KaryResponse, local.UnaryEncoding, local.SubsetSelection,
                                  local.LocalHashing, local.HadamardResponse, local.CountMeanSketch,
                                  local.Rappor])  # fmt: skip
def test_the_least_and_the_greatest_epsilon(kind):
    for epsilon in ("1e-50", "700"):
        made = kind(epsilon, 5)
        with seeded(epsilon):
            found = made.aggregate(made.encode([0, 1, 2, 3, 4, 0])).estimate()
        assert np.all(np.isfinite([found.counts, found.low, found.high]))
        assert np.all((found.low >= 0) & (found.high <= 6))
        assert made.variance >= 0
    with pytest.raises(InvalidParameter, match="1e-50"):
        kind("1e-51", 5)


def test_numbers_at_the_least_epsilon():
    for kind in (local.DuchiMean, local.PiecewiseMean, local.HybridMean, local.LocalQuantiles):
        made = kind("1e-50", 0, 1)
        with seeded(kind.__name__):
            found = made.aggregate(made.encode([0.5] * 400)).estimate()
        assert np.all(np.isfinite((found.low, found.high)))
        with pytest.raises(InvalidParameter, match="1e-50"):
            kind("1e-51", 0, 1)


def test_a_hybrid_without_a_mixture_has_reports_of_one_kind():
    ends, places = local.HybridMean("0.5", 0, 1), local.HybridMean(50, 0, 1)
    assert (ends._law.share, places._law.share) == (0, 1)
    for made, wrong in ((ends, 0), (places, places._law.window.places)):
        with pytest.raises(InvalidValue):
            made.start().add(np.array([wrong], np.uint16))


def test_a_table_that_fills_the_memory_is_refused():
    with pytest.raises(InvalidParameter, match="cells"):
        local.CountMeanSketch(1, 100, rows=2**16, width=2**16)
