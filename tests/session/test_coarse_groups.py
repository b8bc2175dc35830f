"""Groups of coarse levels, found by themselves: how often, at which price, and never for one unit's sake."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.plan.prices import bundle as bundling
from sfumato.plan.prices import quoting
from sfumato.session import answering
from sfumato.session.noise import select_on_levels
from sfumato.testing import assert_bernoulli, seeded

MANY = 1_000
ROLLUP = "SELECT country, city, COUNT(*) AS n FROM t GROUP BY ROLLUP (country, city)"
SCHEMA = {"country": sf.Text(), "city": sf.Text(), "day": sf.Int()}


def session(
    rows: list[tuple[Any, ...]], unit: sf.PrivacyUnit | None = None, budget: sf.Budget | None = None
) -> sf.Session:
    columns = zip(*rows, strict=True)
    table = pa.table(dict(zip(("u", "country", "city", "day"), map(list, columns), strict=True)))
    made = sf.PrivateTable("t", source=table, unit=unit or sf.PrivacyUnit("u"), schema=SCHEMA)
    return sf.Session(made, budget=budget or sf.Budget(1_000, "1e-6"))


def scattered() -> list[tuple[Any, ...]]:
    """A country of 1,000 people in 1,000 cities, one of 600 in one city, and one of a single person."""
    rows = [(i, "IT", f"city {i}", 1) for i in range(MANY)]
    rows += [(10_000 + i, "FR", "Paris", 1) for i in range(600)]
    return [*rows, (-1, "SM", "San Marino", 1)]


@pytest.mark.parametrize("unit", [sf.PrivacyUnit("u"), sf.PrivacyUnit.row()])
@pytest.mark.parametrize("seed", range(4))
def test_a_coarse_group_of_many_small_parts_is_found(unit: sf.PrivacyUnit, seed: int) -> None:
    with session(scattered(), unit) as asked, seeded(f"scattered {seed}"):
        released = asked.sql(ROLLUP).release(epsilon=1)
    rows = released.table.to_pylist()
    assert [(row["country"], row["city"], row["level"]) for row in rows] == [
        ("FR", "Paris", "country, city"),
        ("FR", None, "country, other city"),
        ("IT", None, "country, other city"),
        (None, None, "other country, other city"),
        ("FR", None, "country"),
        ("IT", None, "country"),
        (None, None, "other country"),
        (None, None, "all rows"),
    ]
    n = {(row["country"], row["city"], row["level"]): row["n"] for row in rows}
    wide = dict(zip(n, released.error("0.999999")["n"].to_pylist(), strict=True))
    italy = ("IT", None, "country")
    assert abs(n[italy] - MANY) <= wide[italy]
    assert n[italy] == n["IT", None, "country, other city"]
    assert (
        n["FR", None, "country"] == n["FR", "Paris", "country, city"] + n["FR", None, "country, other city"]
    )
    assert n[None, None, "other country"] == n[None, None, "other country, other city"]
    countries = [n[key] for key in n if key[2] in ("country", "other country")]
    assert n[None, None, "all rows"] == sum(countries)


def test_it_is_found_with_near_certainty_and_one_of_a_single_unit_hardly_ever() -> None:
    with session(scattered()) as asked:
        quote = asked.sql(ROLLUP).quote(epsilon=1)
    fine, coarse = quote.selections
    assert coarse.keep_probability(MANY) > 1 - 1e-9
    assert fine.keep_probability(1) + coarse.keep_probability(1) <= float(quote.delta)
    assert sum(each.keep_probability(1) for each in quote.selections) == pytest.approx(float(quote.delta))


ALONE, DELTA = 4_000, Fraction(3, 10)


def check_those_who_are_alone(seed: str) -> None:
    """People who are alone in their country, and another 4,000 alone in their cities, at a large delta."""
    rows: list[tuple[Any, ...]] = [(i, f"country {i}", "city", 1) for i in range(ALONE)]
    budget = sf.Budget(1_000, "0.9")
    with session(rows, budget=budget) as asked, seeded(seed):
        released = asked.sql(ROLLUP).release(epsilon="0.5", delta=DELTA, mechanism="laplace")
    picks = released._answer.groups
    assert picks is not None
    debited = sf.Budget(1_000, "0.9").filter().price(released.quote.loss)
    assert debited == (Fraction(1, 2), DELTA)
    for level, share in enumerate((Fraction(2, 3), Fraction(1, 3))):
        found = sum(pick[0] == level for pick in picks)
        assert_bernoulli(found, ALONE, float(DELTA * share))


def test_a_single_unit_is_found_as_often_as_delta_says_on_both_levels_together() -> None:
    check_those_who_are_alone("alone")


def _all_for_each(ranks: Any) -> tuple[Fraction, ...]:
    return tuple(Fraction(1) for _ in ranks)


def _paid_once(main: Any, extras: Any, selections: Any) -> Any:
    return bundling.loss_of(main, extras, selections[:1])


def _at_the_first_price(found: Any, more: Any, quote: Any) -> Any:
    whole = sf.PartitionSelection(*quote.selection_price, groups=quote.selection.groups)
    return select_on_levels(found, more, replace(quote, selections=(whole,) * len(quote.selections)))


@pytest.mark.parametrize(
    ("module", "name", "planted"),
    [
        (bundling, "shares_of", _all_for_each),
        (quoting, "loss_of", _paid_once),
        (answering, "select_on_levels", _at_the_first_price),
    ],
)
def test_a_coarse_level_that_is_not_paid_for_is_noticed(
    module: Any, name: str, planted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, planted)
    with pytest.raises(AssertionError):
        check_those_who_are_alone("planted")


def test_a_unit_counts_once_in_each_of_few_groups_of_every_level() -> None:
    """Somebody in nine cities of six countries on three days, at limits of two groups."""
    unit = sf.PrivacyUnit("u", max_groups=2, max_rows=8)
    crowd = [(i, f"country {i % 5}", f"city {i % 7}", i % 3) for i in range(60)]
    somebody = [(-1, f"country {i % 6}", f"city {i}", i % 3) for i in range(9)]
    text = "SELECT COUNT(*) AS n FROM t GROUP BY CUBE (country, city, day)"

    def counts(rows: list[tuple[Any, ...]]) -> tuple[Any, list[dict[Any, int]]]:
        with session(rows, unit) as asked:
            quote = asked.sql(text).quote(epsilon=1)
            reads = [asked.vault._read(each, 0) for each in quote.recipe.questions]
        return quote, [dict(zip(read.groups, read.units.tolist(), strict=True)) for read in reads]

    quote, base = counts(crowd + somebody)
    _, less = counts(crowd)
    assert [each.groups for each in quote.selections] == [2, 3 * 2, 3 * 2]
    moved = [
        [abs(mine.get(key, 0) - other.get(key, 0)) for key in mine.keys() | other.keys()]
        for mine, other in zip(base, less, strict=True)
    ]
    assert len(moved) == 7
    assert all(max(level) == 1 and sum(level) == 2 for level in moved)
    assert quote.selection_price == (Fraction(1, 2), quote.delta)
    assert (sum(each.epsilon for each in quote.selections), sum(each.delta for each in quote.selections)) == (
        Fraction(1, 2),
        quote.delta,
    )


def test_questions_of_one_such_level_are_what_they_were() -> None:
    """Their selection has the whole price, and nothing else is read for them."""
    with session(scattered()) as asked:
        for text in (
            "SELECT country, COUNT(*) AS n FROM t GROUP BY country",
            "SELECT country, city, COUNT(*) AS n FROM t GROUP BY country, city",
            "SELECT country, COUNT(*) AS n FROM t GROUP BY ROLLUP (country)",
            "SELECT country, city, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((country, city), ())",
        ):
            quote = asked.sql(text).quote(epsilon=1)
            assert len(quote.selections) == len(quote.recipe.questions) == 1
            assert quote.selection_price == (quote.selections[0].epsilon, quote.selections[0].delta)


def test_the_quote_says_what_it_takes_on_each_level() -> None:
    with session(scattered()) as asked:
        quote = asked.sql(ROLLUP).quote(epsilon=1)
    fine, coarse = quote.selections
    told = " ".join(quote.notes)
    assert f"more than {fine.threshold} units share" in told
    assert f"For groups by country it is {coarse.threshold}, and always {coarse.certain}" in told
    assert [(each.told, round(each.share, 3)) for each in quote.measurements] == [
        ("number of rows", 0.5),
        ("groups by country and city that enough units share", 0.333),
        ("groups by country that enough units share", 0.167),
    ]
