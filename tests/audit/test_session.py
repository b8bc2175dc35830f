"""Whole queries, audited through the data path: honest ones are cleared, a wrong unit is caught."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit import query_bound
from sfumato.audit.queries import QUERIES
from sfumato.audit.session import query_pair
from sfumato.engines.prepare import prepare
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.mechanisms import PartitionSelection
from sfumato.plan.prices.extras import PricedQuantiles
from sfumato.testing import seeded

SURE = 1 - 1e-7
OTHERS = [(each, ("Lyon", "Nice")[each % 2], "east") for each in range(12)]
ALICE = [(99, city, "west") for city in ("Lyon", "Nice") for _ in range(3)]  # six visits of one person
COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
PERSON, ROW = sf.PrivacyUnit("person", max_groups=2), sf.PrivacyUnit.row()


def visits(rows, unit=PERSON, **more):
    names = ("person", "city", "ward")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    schema = {"city": sf.Enum("Lyon", "Nice"), "ward": sf.Text()}
    return sf.PrivateTable("visits", source=pa.table(columns), unit=unit, schema=schema, **more)


def both(unit=PERSON):
    return visits(OTHERS + ALICE, unit), visits(OTHERS, unit)


@pytest.mark.parametrize("ask", [COUNT, BY_CITY])
def test_honest_queries_are_cleared_and_seen(ask):
    with seeded(ask):
        bound = query_bound(*both(), ask, epsilon=1, samples=20_000, confidence=SURE)
    assert 0.7 < bound.epsilon <= 1.0  # cleared because it is honest, not because the auditor is blind


@pytest.mark.parametrize("ask", [COUNT, BY_CITY])
def test_rows_declared_as_units_where_a_person_has_many_are_caught(ask):
    with seeded(ask):
        bound = query_bound(*both(ROW), ask, epsilon=1, samples=5_000, confidence=SURE)
        assert "in fixed point" in bound.event
    assert bound.refutes(1.0)


def test_one_row_of_a_row_unit_is_cleared():
    left, right = visits(OTHERS + ALICE[:1], ROW), visits(OTHERS, ROW)
    with seeded("one row"):
        bound = query_bound(left, right, COUNT, epsilon=1, samples=10_000, confidence=SURE)
    assert 0.6 < bound.epsilon <= 1.0


def test_groups_that_are_found_are_rows_of_numbers():
    ask, unit = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", sf.PrivacyUnit("person")
    pair = query_pair(visits(OTHERS + ALICE[:1], unit), visits(OTHERS, unit), ask, epsilon=1, delta="0.05")
    with seeded("found"):
        rows = {side: pair.draw(side, 300) for side in ("left", "right")}
    assert rows["left"].shape == rows["right"].shape == (300, 4)  # two wards: released or not, units
    assert rows["left"][:, 0].all()  # twelve people are enough for east
    assert not rows["right"][:, 1].any()  # a ward that nobody is in is never there
    assert np.all(rows["right"][:, 3] == 0)
    assert 0 < rows["left"][:, 1].mean() < 0.3  # one person is, now and then: that is what delta pays for
    with seeded("found"):
        bound = query_bound(
            visits(OTHERS + ALICE[:1], unit),
            visits(OTHERS, unit),
            ask,
            epsilon=1,
            delta="0.05",
            samples=400,
            confidence=SURE,
        )
    assert bound.delta == 0.05
    assert not bound.refutes(1.0)


def test_answers_without_any_group_are_rows_like_others():
    ask, unit = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", sf.PrivacyUnit("person")
    pair = query_pair(visits(OTHERS[:2], unit), visits(OTHERS[:1], unit), ask, epsilon=1, delta="0.001")
    with seeded("none"):
        rows = pair.draw("right", 50)
    assert rows.shape == (50, 2)
    assert (rows == 0).all(axis=1).sum() > 40


def test_both_sides_choose_groups_by_one_salt():
    # Everybody is in both wards and counts in one, which a keyed hash chooses: with a key for each side, the
    # tables would differ in many people and not in one.
    ask, unit = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", sf.PrivacyUnit("person")
    many = [(each, "Lyon", ward) for each in range(200) for ward in ("east", "west")]
    pair = query_pair(
        visits([*many, (999, "Lyon", "east")], unit), visits(many, unit), ask, epsilon=8, delta="0.05"
    )
    with seeded("salt"):
        left, right = (pair.draw(side, 50).mean(axis=0) for side in ("left", "right"))
    assert np.abs(left - right).max() < 1.5


def test_stacked_answers_are_drawn_as_single_ones():
    # What a release draws, and what an audit draws at once: the same numbers from the same stream of bits
    # would need the same order, so that their laws are compared, coarsely but surely.
    pair = query_pair(*both(ROW), BY_CITY, epsilon=1)
    with seeded("stacked"):
        many = pair.draw("left", 4_000)
    with sf.Session(both(ROW)[0], budget=sf.Budget(epsilon=1)) as session, seeded("single"):
        released = session.sql(BY_CITY).release(epsilon=1)
    assert many.shape == (4_000, released.table.num_rows)
    assert np.abs(many.mean(axis=0) - 9).max() < 0.2  # 6 and 3 visits to each city
    spread = many.std(axis=0)
    assert np.all((spread > 1.2) & (spread < 1.6))  # Laplace noise of scale 1 has sqrt(2)


def test_the_query_is_paid_for_and_the_builder_serves_as_well():
    receipts = []

    def ask(session):
        receipts.append(session.ledger)
        return session.table("visits").group_by("city").agg(n=sf.count())

    with seeded("builder"):
        bound = query_bound(*both(), ask, epsilon=1, samples=5_000, confidence=SURE)
    assert bound.epsilon <= 1.0
    assert receipts[0] is receipts[1]  # one ledger, so that both sides choose groups by one salt


def test_several_tables_are_a_side():
    towns = sf.PublicTable(
        "towns",
        source=pa.table({"city": ["Lyon", "Nice"], "sea": [0, 1]}),
        schema={"city": sf.Enum("Lyon", "Nice"), "sea": sf.Int(0, 1)},
        key="city",
    )
    ask = "SELECT sea, COUNT(*) AS n FROM visits JOIN towns ON visits.city = towns.city GROUP BY sea"
    left, right = both()
    with seeded("join"):
        bound = query_bound([left, towns], [right, towns], ask, epsilon=1, samples=5_000, confidence=SURE)
    assert 0.2 < bound.epsilon <= 1.0


def halved(monkeypatch):
    """The classical bug: noise for half of what one unit can change."""
    from sfumato.plan.prices import price

    true = price.sensitivity_in

    def planted(*given):
        found = true(*given)
        return replace(found, l1=found.l1 // 2, l2_squared=found.l2_squared // 4)

    monkeypatch.setattr(price, "sensitivity_in", planted)


@pytest.mark.parametrize(
    ("ask", "accountant", "delta"),
    [(COUNT, "basic", 0), (BY_CITY, "basic", 0), (COUNT, "zcdp", "0.01"), (COUNT, "rdp", "0.01")],
)
def test_half_the_sensitivity_is_caught_and_the_honest_twin_is_cleared(monkeypatch, ask, accountant, delta):
    given = {"epsilon": 1, "delta": delta, "accountant": accountant, "samples": 10_000, "confidence": SURE}
    with seeded(f"{ask} {accountant}"):
        honest = query_bound(*both(), ask, **given)
    halved(monkeypatch)
    with seeded(f"{ask} {accountant}"):
        planted = query_bound(*both(), ask, **given)
    assert not honest.refutes(1.0)
    assert honest.delta == planted.delta == float(delta)
    assert planted.refutes(1.0)


def test_quantiles_for_too_small_a_weight_are_caught_and_the_honest_twin_is_cleared(monkeypatch):
    ask = "SELECT MEDIAN(visit) AS middle FROM visits"
    given = {"epsilon": 2, "samples": 300, "confidence": SURE}
    with seeded("median"):
        honest = query_bound(*numbered(), ask, **given)
    monkeypatch.setattr(PricedQuantiles, "_weight", property(lambda self: 1))
    with seeded("median"):
        planted = query_bound(*numbered(), ask, **given)
    assert not honest.refutes(2.0)
    assert planted.refutes(2.0)


def numbered():
    unit = sf.PrivacyUnit("person", max_rows=8)
    return tuple(
        sf.PrivateTable(
            "visits",
            source=pa.table({"person": people, "visit": values}),
            unit=unit,
            schema={"visit": sf.Int(0, 7)},
        )
        for people, values in (([1, 2, *[99] * 8], [0, 0, *[7] * 8]), ([1, 2], [0, 0]))
    )


def test_groups_that_are_kept_too_readily_are_caught(monkeypatch):
    ask, unit = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", sf.PrivacyUnit("person")
    sides = visits([*OTHERS, ALICE[0]], unit), visits(OTHERS, unit)  # west is there with her alone
    given = {"epsilon": 1, "delta": "0.01", "samples": 600, "confidence": SURE}
    with seeded("kept"):
        honest = query_bound(*sides, ask, **given)
    true = PartitionSelection.release
    monkeypatch.setattr(
        PartitionSelection, "release", lambda self, units: (np.asarray(units) > 0, true(self, units)[1])
    )
    with seeded("kept"):
        planted = query_bound(*sides, ask, **given)
    assert not honest.refutes(1.0)
    assert planted.refutes(1.0)


def test_the_registered_pairs_are_neighbours():
    # Whole units: what one side has more than the other belongs to one person, or to one row.
    for each in QUERIES:
        left, right = Counter(each.left), Counter(each.right)
        more, fewer = left - right, right - left
        people = {row[0] for row in (*more, *fewer)}
        assert len(people) == 1, each.name
        if each.unit.adjacency == "exchange":
            assert more.total() > 0 < fewer.total(), each.name
        else:
            assert not fewer, each.name
        if each.unit.is_row:
            assert more.total() == 1, each.name
        else:  # all rows of that person, on a side that has any
            assert not people & {row[0] for row in left & right}, each.name


@pytest.mark.parametrize("wrong", [{"samples": 50}, {"confidence": 1}, {"samples": 1e5}])
@pytest.mark.parametrize("whole", [False, True])
def test_nothing_is_read_for_parameters_that_are_refused(wrong, whole):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        query_bound(*both(), lambda _: pytest.fail("asked"), epsilon=1, whole=whole, **wrong)


def test_prepared_sides_have_one_salt_or_are_refused(tmp_path):
    # Everybody has two rows and counts with one, which the salt chose when the file was made: with a salt for
    # each side an honest query would be called broken.
    unit = sf.PrivacyUnit("person")
    many = [(each, ("Lyon", "Nice")[at], "east") for each in range(300) for at in range(2)]
    sides = visits([*many, (999, "Lyon", "east")], unit), visits(many, unit)

    def prepared(side, salt):
        path = tmp_path / f"{side}-{salt}.duckdb"
        prepare(sides[side], path, salt=salt.encode())
        return replace(sides[side], source=str(path))

    given = {"epsilon": 1, "samples": 10_000, "confidence": SURE}
    first = prepared(0, "one")
    for other in (prepared(1, "another"), sides[1]):
        with pytest.raises(InvalidParameter, match="prepared with different salts"):
            query_bound(first, other, BY_CITY, **given)
    with seeded("prepared"):
        bound = query_bound(prepared(0, "alike"), prepared(1, "alike"), BY_CITY, **given)
    assert 0.2 < bound.epsilon <= 1.0


def test_unusable_input_is_refused():
    left, right = both()
    with pytest.raises(InvalidParameter, match="same declaration"):
        query_bound(left, visits(OTHERS, ROW), COUNT, epsilon=1)
    with pytest.raises(InvalidParameter, match="PrivateTable"):
        query_bound(OTHERS, right, COUNT, epsilon=1)
    with pytest.raises(InvalidParameter, match="PrivateTable"):
        query_bound(left, 5, COUNT, epsilon=1)
    with pytest.raises(InvalidParameter, match="ask must be SQL"):
        query_bound(left, right, lambda session: "SELECT 1", epsilon=1)
    with pytest.raises(InvalidParameter, match="epsilon"):
        query_bound(left, right, COUNT, epsilon=0)
    with pytest.raises(QueryRefused):
        query_bound(left, right, "SELECT person FROM visits", epsilon=1)
    ask = "SELECT ward, COUNT(*) AS n, COUNT(DISTINCT city) AS d FROM visits GROUP BY ward"
    with pytest.raises(InvalidParameter, match="whole=True"):
        query_bound(left, right, ask, epsilon=1, delta="0.05")


@pytest.mark.stats
def test_whole_sessions_say_the_same():
    with seeded("whole"):
        caught = query_bound(*both(ROW), COUNT, epsilon=1, samples=120, whole=True, confidence=0.99)
        honest = query_bound(*both(), COUNT, epsilon=1, samples=120, whole=True, confidence=SURE)
    assert caught.refutes(1.0)
    assert honest.epsilon <= 1.0
