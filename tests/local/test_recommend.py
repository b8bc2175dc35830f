"""The recommender: what it takes has the least error that can be had, and it says why."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.hashing import LocalHashing
from sfumato.local.heavy import HeavyHitters
from sfumato.local.recommend import percent, recommend
from sfumato.local.response import KaryResponse
from sfumato.testing import seeded


@pytest.mark.parametrize(
    ("epsilon", "domain", "people", "kind"),
    [
        (1, 3, 10_000, KaryResponse),
        (8, 1024, 10_000, KaryResponse),
        (1, 1024, 1_000_000, HadamardResponse),
        (1, 1 << 20, 1_000_000, HadamardResponse),
        (7, 30_000, 100_000, LocalHashing),
        (1, 2**32, 1_000_000, HeavyHitters),
    ],
)
def test_the_choice_suits_price_and_domain(epsilon: int, domain: int, people: int, kind: type) -> None:
    found = recommend(epsilon, domain, people)
    assert isinstance(found.randomizer, kind)
    assert found.alternatives[0].randomizer is found.randomizer
    assert found.alternatives[0].obstacle is None


@pytest.mark.parametrize("epsilon", ["0.1", 1, 3, 6, 10])
@pytest.mark.parametrize("domain", [2, 5, 20, 100, 1000, 10_000])
def test_no_usable_alternative_errs_much_less(epsilon: str | int, domain: int) -> None:
    found = recommend(epsilon, domain, 50_000)
    best = found.alternatives[0]
    for other in found.alternatives[1:]:
        assert other.obstacle is not None or best.error <= 1.05 * other.error
        if other.obstacle is None and other.error <= best.error:
            assert (best.bytes, best.seconds) <= (other.bytes, other.seconds)
    assert [each.error for each in found.alternatives[1:]] == sorted(
        each.error for each in found.alternatives[1:]
    )
    rule = 3 * math.exp(float(epsilon)) + 2  # where k-ary response is the better one (Wang et al. 2017)
    if domain < rule / 1.1:
        assert type(found.randomizer).__name__ in ("KaryResponse", "BinaryResponse", "SubsetSelection")
    if domain > rule * 1.1:
        assert type(found.randomizer).__name__ not in ("KaryResponse", "BinaryResponse")


def test_the_error_is_what_is_measured() -> None:
    found = recommend(1, 200, 20_000)
    truth = np.zeros(20_000, np.int64)
    with seeded(1):
        seen = found.randomizer.aggregate(found.randomizer.encode(truth)).estimate()
    beyond = np.abs(seen.counts[1:]) > found.alternatives[0].error
    assert 0.005 < beyond.mean() < 0.12
    assert found.alternatives[0].bytes == found.randomizer.encode([0]).nbytes


def test_sizes_are_those_of_reports() -> None:
    for each in recommend(1, 1000, 1000).alternatives:
        assert each.randomizer.encode(np.zeros(3, np.int64)).nbytes == 3 * each.bytes, each.name


def test_reasons_and_table() -> None:
    found = recommend(1, ["tea", "coffee"] + [str(i) for i in range(1022)], 1_000_000)
    assert "Hadamard response" in found.why
    assert "4 bytes a report" in found.why
    assert "Not unary encoding: about the same error, but 128 bytes a report." in found.why
    assert "Not k-ary response: it errs" in found.why
    assert str(found) == found.why
    table = found.table
    assert table.num_rows == len(found.alternatives) == 6
    assert table.column("bytes").to_pylist()[0] == 4
    few = recommend("0.01", 1000, 100)
    assert "So few people" in few.why
    slow = recommend(1, 1 << 20, 100_000_000)
    assert "more than an hour" in slow.why
    with pytest.raises(AttributeError):
        found.people = 3  # type: ignore[misc]


def test_ties_are_told_as_ties() -> None:
    why = recommend(1, 2, 1000).why
    assert "Not k-ary response: about the same in every way; it would do as well." in why
    assert "but less than a second" not in why
    slower = recommend(1, 2, 500_000_000).why
    assert "Not subset selection: about the same error, but about " in slower
    assert slower.count("to add up and estimate.") >= 2


def test_errors_that_nobody_sees_are_alike() -> None:
    found = recommend(700, 4, 10)
    assert found.alternatives[0].name == "k-ary response"
    assert "nan" not in found.why
    assert "inf" not in found.why


def test_too_many_people_are_told_as_such() -> None:
    with pytest.raises(InvalidParameter, match="more than an hour: ask fewer people"):
        recommend(1, 4, 10**15)


def test_the_package_has_the_function_and_not_its_module() -> None:
    from sfumato import local

    assert local.recommend is recommend
    assert local.recommend(1, 10, 100).randomizer is not None


def test_others_are_refused() -> None:
    for epsilon, domain, people in ((0, 10, 10), (1, 1, 10), (1, 10, 0), ("x", 10, 10)):
        with pytest.raises(InvalidParameter):
            recommend(epsilon, domain, people)


def test_the_time_has_what_it_takes_to_estimate() -> None:
    found = {each.name: each for each in recommend(1, 1_000_000, 20_000).alternatives}
    sketch = found["count-mean sketch"]
    assert sketch.aggregate < 0.01
    # A million values with a cell in each of 1024 rows: a billion look-ups.
    assert 1 < sketch.estimate < 60
    assert sketch.seconds == sketch.aggregate + sketch.estimate
    assert found["Hadamard response"].estimate < 1
    why = recommend(1, 1_000_000, 20_000).why
    assert "with 4 bytes a report and about 6 s to add up and estimate." in why


def test_shares_are_written_out() -> None:
    assert "(392 %, 95 % confidence)" in recommend("0.1", 40, 100).why
    assert [percent(each) for each in (0.00123, 0.027, 0.5, 3.921)] == ["0.12 %", "2.7 %", "50 %", "392 %"]
