"""Profiles of how many rows units have: what is measured, its price, what is kept and what is chosen."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit import registry
from sfumato.audit.choices import CHOICES
from sfumato.errors import BudgetExceeded, InvalidParameter, QueryRefused
from sfumato.plan.prices.price import instruments
from sfumato.plan.questions.profile import WEIGHT, ladder, profile_question
from sfumato.plan.questions.sensitivity import Sensitivity
from sfumato.session import profile as profiles
from sfumato.testing import seeded

COUNT = "SELECT COUNT(*) AS n FROM t"
MANY = 2**15  # of epsilon: no noise to speak of


def table_of(rows, *, adjacency="add-remove", ceiling=1000, auto=True, missing=0):
    ids = [*np.repeat(np.arange(len(rows)), rows).tolist(), *[None] * missing]
    source = pa.table(
        {"u": pa.array(ids, pa.int64()), "k": pa.array(["a", "b"] * len(ids), pa.string())[: len(ids)]}
    )
    unit = sf.PrivacyUnit("u", max_rows="auto" if auto else None, adjacency=adjacency, ceiling=ceiling)
    return sf.PrivateTable("t", source=source, unit=unit, schema={"k": sf.Enum("a", "b")})


def session_of(rows, *, epsilon=10**10, delta=0, **more):
    return sf.Session(table_of(rows, **more), budget=sf.Budget(epsilon, delta))


def figures(rows, ceiling):
    """Units and rows of each cell, counted by hand."""
    rungs, held = ladder(ceiling), np.minimum(rows, ceiling)
    cells = np.searchsorted(rungs, held)
    units = np.bincount(cells, minlength=len(rungs))
    return units, np.bincount(cells, weights=held, minlength=len(rungs))


def test_a_ladder_ends_at_its_ceiling():
    assert ladder(1000) == (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
    assert ladder(1) == (1,)
    assert ladder(7) == (1, 2, 5, 7)
    assert ladder(10) == (1, 2, 5, 10)
    for ceiling in range(1, 400):
        rungs = ladder(ceiling)
        assert rungs == tuple(sorted(set(rungs)))
        assert rungs[-1] == ceiling


@pytest.mark.parametrize("seed", range(6))
def test_units_and_their_rows_are_counted_in_one_cell_each(seed):
    draw = np.random.default_rng(seed)
    ceiling = int(draw.choice([1, 2, 7, 60, 1000]))
    rows = draw.choice([1, 2, 3, 5, 6, 9, 10, 11, 40, 70], size=30)
    with session_of(rows, ceiling=ceiling, missing=5) as session:
        found = session.profile("t", MANY)
    units, sums = figures(rows, ceiling)
    assert np.allclose(found.units, units)
    assert np.allclose(found.rows, sums, rtol=0, atol=ceiling / 100)
    assert found.ceiling == ceiling


@pytest.mark.parametrize(
    ("adjacency", "changes"),
    [("add-remove", [(50, None), (1, None), (99, None)]), ("exchange", [(50, 1), (99, 20), (2, 1)])],
)
def test_a_unit_moves_both_measurements_by_what_is_claimed(adjacency, changes):
    table = table_of([1], adjacency=adjacency, ceiling=50)
    claims = [tool.sensitivity.l1 for tool in instruments(profile_question(table, 50))]
    weights = np.array([WEIGHT // rung for rung in ladder(50)])
    most = np.zeros(2)
    for before, after in changes:
        sides = []
        for rows in ([3, 9, before], [3, 9, *([] if after is None else [after])]):
            with session_of(rows, adjacency=adjacency, ceiling=50) as session:
                found = session.profile("t", MANY)
            sides.append(np.array([np.rint(found.units), found.rows * weights]))
        moved = np.abs(sides[0] - sides[1]).sum(axis=1)
        assert (moved <= np.array(claims) * 1.01).all()  # a little of the noise is left
        most = np.maximum(most, moved)
    assert (most >= np.array(claims) * 0.99).all()


def test_the_noise_is_what_the_price_says():
    with session_of([1] * 10) as session, seeded("profile"):
        found = session.profile("t", 1)
        ((receipt, payload),) = session.ledger.recall("t", session.releases()[0].fingerprint)
        assert receipt.loss.pure == 1
        assert receipt.purpose.spender == "profile"
        kept = profiles.Answer.from_bytes(payload)
    assert [noise.scale for noise in kept.noises] == [4.0, pytest.approx(WEIGHT * 4 / 3)]
    assert found.noise[1].scale == pytest.approx(4 / 3, rel=1e-5)


def test_an_audit_sees_a_sensitivity_that_is_too_small(monkeypatch):
    honest = profiles.instruments

    def bent(question):
        units, rows = honest(question)
        return units, replace(rows, sensitivity=Sensitivity(WEIGHT // 12, (WEIGHT // 12) ** 2))

    monkeypatch.setattr(profiles, "instruments", bent)
    example = next(each for each in CHOICES if each.name == "profile: rows")
    subject = registry.Subject(example.name, "query", registry._asked(example.pair))
    with seeded("profile"):
        (found,) = registry.examined(subject, samples=300, share=0.9999)
    assert found.verdict == "broken"


def test_it_is_bought_once_and_a_better_one_can_be_had():
    with session_of([1, 2, 3], epsilon=10) as session:
        first = session.profile("t", 1)
        assert np.array_equal(session.profile("t", 1).rows, first.rows)
        assert np.array_equal(session.profile("t", "0.5").rows, first.rows)
        assert session.balance().spent == 1
        better = session.profile("t", 5)
        assert better.noise[1].scale < first.noise[1].scale
        assert np.array_equal(session.profile("t", 1).rows, better.rows)
        assert session.balance().spent == 6


def test_a_tiny_profile_does_not_bind_later_questions():
    with session_of([40] * 300, epsilon=10) as session, seeded("tiny"):
        session.sql(COUNT).release(epsilon="1e-5")
        whole = session.sql(COUNT).release(epsilon=4)
        assert 50 <= whole.quote.measured.unit.max_rows <= 100
        assert session.balance().spent == 4 + Fraction("1e-5")
        assert session.sql(COUNT).release(epsilon=4).free
        session.profile("t", 5)
        assert session.sql(COUNT).release(epsilon=4).free  # a better one later changes nothing here


def test_an_error_is_met_whatever_price_was_asked_before():
    with session_of([3] * 100, epsilon=10, auto=False) as session:
        price = session.sql(COUNT).release(epsilon=1, profile=True)
        wanted = price.error()["n"][0].as_py() * 0.9
        assert session.sql(COUNT).release(error=wanted).error()["n"][0].as_py() <= wanted


def test_a_question_buys_it_with_a_fifth_and_is_free_again_at_the_price_that_was_asked():
    with session_of([3] * 4_000, epsilon=10) as session, seeded("a fifth"):
        quote = session.sql(COUNT).quote(epsilon=1)
        assert (quote.first, quote.epsilon) == (Fraction(1, 5), Fraction(4, 5))
        assert "0.2 for a profile, once, and 0.8 for the answer" in " ".join(str(quote).split())
        assert session.balance().spent == 0
        # The limit is still to be chosen: so is the error, in figures as in words, at any confidence.
        for confidence in (None, "0.5", "0.95"):
            assert quote.error(confidence) == {"n": None}
        assert quote.to_dict()["columns"][0]["error"] is None
        first = session.sql(COUNT).release(epsilon=1)
        assert session.balance().spent == 1
        again = session.sql(COUNT).release(epsilon=1)
        assert again.free
        assert again.table == first.table
        assert session.balance().spent == 1
        assert session.sql(COUNT).release(epsilon="0.5").free
        assert not session.sql(COUNT).release(epsilon=2).free
        assert session.balance().spent == 3  # the whole price is for the answer by now
        known = session.sql(COUNT).quote(epsilon=1)
        assert known.first == 0
        assert known.error("0.95")["n"] > known.error("0.5")["n"] > 0


def test_nothing_is_bought_unless_it_is_wanted():
    with session_of([3] * 50, auto=False, epsilon=10) as session:
        released = session.sql(COUNT).release(epsilon=1)
        assert released.profile is None
        assert [receipt.purpose.spender for receipt in session.releases()] == ["sql"]
        assert session.sql(COUNT).release(epsilon=2, profile=True).profile is not None
        assert session.sql(COUNT).quote(epsilon=1).measured.unit.max_rows == 1  # fixed limits stay fixed
    with session_of([3] * 50, epsilon=10) as session:
        released = session.sql(COUNT).release(epsilon=1, profile=False)
        assert released.profile is None
        assert released.quote.epsilon == 1
        assert released.quote.measured.unit.max_rows == 1


def test_limits_that_are_left_to_it_follow_the_data():
    with session_of([40] * 300) as session, seeded("often"):
        chosen = session.sql(COUNT).release(epsilon=4).quote.measured.unit
        assert chosen.max_rows == 50
        assert not chosen.auto
    with session_of([1] * 300) as session, seeded("once"):
        assert session.sql(COUNT).release(epsilon=4).quote.measured.unit.max_rows <= 2


def test_the_limit_that_is_chosen_is_told_where_it_matters():
    with session_of([1] * 50) as session:
        session.profile("t", epsilon=1000)
        (told,) = session.sql(COUNT).quote(epsilon=1).notes[-1:]
        assert told == "At most 1 row of each u counts, chosen by the profile."
        units = session.sql("SELECT COUNT(DISTINCT u) AS n FROM t").quote(epsilon=1)
        assert "chosen by the profile" not in str(units)
    named = table_of([1] * 50)
    named = sf.PrivateTable("t", source=named.source, unit=named.unit, schema={"k": sf.Text()})
    with sf.Session(named, budget=sf.Budget(10**4, "1e-3")) as session:
        session.profile("t", epsilon=1000)
        found = session.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k").quote(epsilon=1, delta="1e-6")
        assert "distinct u, not rows" in str(found)
        assert found.notes[-1].endswith(
            "chosen by the profile: so COUNT(*) counts each u once, not its rows."
        )


@pytest.mark.parametrize(
    ("more", "advised"), [({}, True), ({"ceiling": 1000}, True), ({"ceiling": 50}, False)]
)
def test_a_ceiling_that_nobody_declared_is_named_with_the_way_to_a_narrower_bound(more, advised):
    with session_of([40] * 300, **more) as session:
        shown = " ".join(str(session.sql(COUNT).release(epsilon=4)).split())
        most = more.get("ceiling", 1000)
        assert f"where no u has more than {most:,} rows" in shown
        assert ("rows (declare a smaller ceiling if you know one)" in shown) == advised


def test_a_question_may_keep_limits_of_its_own():
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, max_rows_contributed=1, privacy_unit_column=u) "
        "COUNT(*) AS n FROM t"
    )
    with session_of([40] * 300) as session:
        session.profile("t", 1)
        assert session.sql(text).quote().measured.unit.max_rows == 1


def test_an_error_is_answered_once_there_is_a_profile():
    with session_of([3] * 100) as session:
        with pytest.raises(InvalidParameter, match="ask for an epsilon first"):
            session.sql(COUNT).release(error=10)
        assert session.balance().spent == 0
        session.profile("t", 1)
        assert session.sql(COUNT).release(error=10).error()["n"][0].as_py() <= 10


def test_what_does_not_fit_is_refused_before_the_profile_is_bought():
    with session_of([3] * 100, epsilon=Fraction(9, 10)) as session:
        with pytest.raises(BudgetExceeded):
            session.sql(COUNT).release(epsilon=1)
        assert session.balance().spent == 0
        assert session.releases() == []


def test_rows_that_meet_others_have_no_profile():
    text = "SELECT COUNT(*) AS n FROM (SELECT k FROM t UNION ALL SELECT k FROM t)"
    with session_of([3] * 100) as session:
        assert session.sql(text).release(epsilon=1).profile is None
        joined = "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.u = b.u"
        assert session.sql(joined).release(epsilon=1).profile is None


@pytest.mark.parametrize("name", ["nothing", "public"])
def test_what_cannot_be_profiled_is_refused(name):
    with session_of([1]) as session, pytest.raises(QueryRefused, match="nothing to profile"):
        session.profile(name, 1)


def test_max_rows_is_a_number_or_auto():
    with pytest.raises(InvalidParameter, match='or "auto"'):
        sf.PrivacyUnit("u", max_rows="many")
    unit = sf.PrivacyUnit("u", max_groups=3, max_rows="auto", ceiling=50)
    assert (unit.auto, unit.max_rows, unit.ceiling) == (True, 3, 50)
    assert sf.PrivacyUnit.from_dict(unit.to_dict()) == unit
