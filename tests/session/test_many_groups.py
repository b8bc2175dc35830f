"""Groups found where a unit may be in many: who is shown, what is kept, and answers of earlier days."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.plan.prices import bundle
from sfumato.session import answering
from sfumato.session.noise import select
from sfumato.session.payload import Answer
from sfumato.testing import assert_bernoulli, seeded

SIZES, EACH = (12, 18, 24), 480
PRICE, DELTA = Fraction(3), Fraction(1, 50)
UNIT = sf.PrivacyUnit("u", max_groups=24)
TEXT = "SELECT g, COUNT(DISTINCT u) AS n FROM t GROUP BY g"


def asked():
    """EACH groups of every size, and each unit in 24 of them, all of one size."""
    rows = [
        (size * 10**6 + place // 24 * 100 + member, size * 10_000 + place)
        for size in SIZES
        for place in range(EACH)
        for member in range(size)
    ]
    units, keys = zip(*rows, strict=True)
    table = sf.PrivateTable("t", source=pa.table({"u": units, "g": keys}), unit=UNIT, schema={"g": sf.Int()})
    return sf.Session(table, budget=sf.Budget(10**6, Fraction(9, 10)))


def check_survivors(seed):
    with asked() as session, seeded(seed):
        release = session.sql(TEXT).release(epsilon=PRICE, delta=DELTA)
    selection = sf.GaussianSelection(PRICE, DELTA, groups=24)
    assert release.quote.selection == selection
    found = Counter(key // 10_000 for key in release.table["g"].to_pylist())
    for size in SIZES:
        assert_bernoulli(found[size], EACH, selection.keep_probability(size))
    assert min(release.table["n"].to_pylist()) > selection.threshold
    ends = release.interval(0.9, kind="noise")
    low, high = selection.interval(release.table["n"].to_numpy(), 0.9)
    assert (ends["n_low"].to_numpy() == low).all()
    assert (ends["n_high"].to_numpy() == high).all()


def test_groups_survive_as_the_law_says_and_their_counts_have_its_bars():
    check_survivors("many groups")


def _as_if_in_one_group(reading, selection):
    return select(reading, sf.GaussianSelection(selection.epsilon, selection.delta))


def test_a_selection_for_one_group_is_noticed(monkeypatch):
    monkeypatch.setattr(answering, "select", _as_if_in_one_group)
    with pytest.raises(AssertionError):
        check_survivors("planted")


def test_answers_of_a_divided_price_stay_free_with_their_own_bars(monkeypatch):
    def divided(epsilon, delta, *, groups, exchange, **_):
        return sf.PartitionSelection(epsilon, delta, groups=groups, exchange=exchange)

    with asked() as session, seeded("earlier"):
        with monkeypatch.context() as before:
            before.setattr(bundle, "selection_of", divided)
            earlier = session.sql(TEXT).release(epsilon=9 * PRICE, delta=DELTA)
        again = session.sql(TEXT).release(epsilon=9 * PRICE, delta=DELTA)
        newer = session.sql(TEXT).release(epsilon=10 * PRICE, delta=DELTA)
        newest = session.sql(TEXT).release(epsilon=10 * PRICE, delta=DELTA)
    assert not earlier._answer.gaussian
    assert again.free
    assert again.interval(0.9, kind="noise").equals(earlier.interval(0.9, kind="noise"))
    assert newest.free
    assert newest.interval(0.9, kind="noise").equals(newer.interval(0.9, kind="noise"))
    assert newer._answer.gaussian == isinstance(newer.quote.selection, sf.GaussianSelection)


def test_what_is_kept_says_which_law_it_had():
    with asked() as session:
        answer = session.sql(TEXT).release(epsilon=PRICE, delta=DELTA)._answer
    back = Answer.from_bytes(answer.to_bytes())
    assert back.gaussian
    assert back.to_bytes() == answer.to_bytes()
    assert b'"format":3' in answer.to_bytes()


def test_the_quote_says_from_when_on_groups_are_nearly_always_shown():
    with asked() as session:
        quote = session.sql(TEXT).quote(epsilon=PRICE, delta=DELTA)
    assert f"one of {quote.selection.least('0.999')} is nearly always reported" in " ".join(quote.notes)
    assert math.isclose(quote.measurements[-1].half_width, quote.selection.error(0.95))
