"""ROLLUP, CUBE and GROUPING SETS over keys that are found in the data, end to end."""

from __future__ import annotations

import datetime
import functools
import json
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.plan.prices.price import instruments
from sfumato.plan.questions.others import lines_of, picks_of
from sfumato.plan.questions.sensitivity import sensitivities
from sfumato.session.answering import answered
from sfumato.session.payload import Answer
from sfumato.session.reading import on_lines
from sfumato.session.release import Release
from sfumato.testing import exact, seeded

ROLLUP = (
    "SELECT country, city, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m FROM t GROUP BY ROLLUP (country, city)"
)
SCHEMA = {
    "country": sf.Text(),
    "city": sf.Text(),
    "x": sf.Int(0, 9, nullable=False),
    "sex": sf.Enum("F", "M"),
    "day": sf.Date(),
    "age": sf.Int(),
}
CITIES = {
    "FR": {"Paris": 40, "Lyon": 20, "Nice": 1, "Metz": 1},
    "DE": {"Ulm": 25, "Bonn": 1, None: 30},
    "IT": {"Rimini": 1},
    None: {"Paris": 18},
}
"""How many people are in each city; those of one are not found."""

SURE = 2_000  # an epsilon at which noise is far below one half, and groups of two or more are certain


def rows() -> pa.Table:
    """Each person is in two cities, with two rows in one of them."""
    places = [
        (country, city)
        for country, cities in CITIES.items()
        for city, count in cities.items()
        for _ in range(count)
    ]
    draw = np.random.default_rng(1)
    made = [(unit, *place) for unit, place in enumerate(places)]
    made += [(unit, *places[(unit + 40) % 60]) for unit in range(60)]
    made += made[::3]
    draw.shuffle(made)
    units, countries, cities = (list(column) for column in zip(*made, strict=True))
    units = [int(unit) for unit in units]
    return pa.table(
        {
            "u": units,
            "country": countries,
            "city": cities,
            "x": draw.integers(0, 10, len(made)),
            "sex": [("F", "M")[unit % 2] for unit in units],
            "day": [datetime.date(2024, 1, 1 + unit % 2) for unit in units],
            "age": [20 + unit % 3 for unit in units],
        }
    )


def session(
    table: pa.Table | None = None,
    unit: sf.PrivacyUnit | None = None,
    budget: sf.Budget | None = None,
    **more: Any,
) -> sf.Session:
    unit = sf.PrivacyUnit("u", max_groups=4, max_rows=16) if unit is None else unit
    made = sf.PrivateTable("t", source=rows() if table is None else table, unit=unit, schema=SCHEMA)
    return sf.Session(made, budget=budget or sf.Budget(epsilon=10**6, delta="1e-6"), **more)


def listed(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def plain(text: str) -> list[tuple[Any, ...]]:
    import duckdb

    t = rows()
    assert t is not None
    return duckdb.sql(text).fetchall()


def test_found_groups_others_and_totals_are_what_they_should_be() -> None:
    with session() as asked, seeded("values"):
        released = asked.sql(ROLLUP).release(epsilon=SURE, mechanism="laplace").table
    cells = {
        (a, b): row for a, b, *row in plain("SELECT country, city, COUNT(*), SUM(x) FROM t GROUP BY ALL")
    }
    small = {(a, b) for a, cities in CITIES.items() for b, count in cities.items() if count == 1}
    small = {pair for pair in small if plain(_people(*pair))[0][0] == 1}
    assert small  # somebody is alone there

    def total(*pairs: Any) -> tuple[int, int]:
        return tuple(sum(int(cells[pair][i]) for pair in pairs) for i in (0, 1))  # type: ignore[return-value]

    found = sorted(set(cells) - small, key=_nulls_last)
    countries = sorted({(a,) for a, _ in found}, key=_nulls_last)
    wanted: list[tuple[Any, ...]] = []
    for (a,) in countries:
        wanted += [(a, b, *total((a, b)), "country, city") for c, b in found if c == a]
        wanted.append((a, None, *total(*(p for p in small if p[0] == a)), "country, other city"))
    lost = [pair for pair in cells if (pair[0],) not in countries]
    wanted.append((None, None, *total(*lost), "other country, other city"))
    wanted += [(a, None, *total(*(p for p in cells if p[0] == a)), "country") for (a,) in countries]
    wanted.append((None, None, *total(*lost), "other country"))
    wanted.append((None, None, *total(*cells), "all rows"))
    assert released.column_names == ["country", "city", "n", "s", "m", "level"]
    assert [(*row[:3], row[5]) for row in listed(released)] == [(*row[:3], row[4]) for row in wanted]
    assert released["s"].to_pylist() == pytest.approx([row[3] for row in wanted], abs=8)
    for *_, n, s, m, _ in listed(released):
        if n:
            assert m == pytest.approx(s / n, abs=0.2 + 1 / n)  # s is rounded, m is not


def _people(country: str | None, city: str | None) -> str:
    told = [
        f"{k} IS NOT DISTINCT FROM {v!r}" if v else f"{k} IS NULL"
        for k, v in (("country", country), ("city", city))
    ]
    return f"SELECT COUNT(DISTINCT u) FROM t WHERE {' AND '.join(told)}"


def _nulls_last(row: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    return [(value is None, value or "") for value in row]


@pytest.mark.parametrize(
    "grouping",
    ["ROLLUP (country, city)", "CUBE (sex, city)", "GROUPING SETS ((city), (country))", "sex, ROLLUP (city)",
     "CUBE (day, age, city)", "ROLLUP (age)", "GROUPING SETS ((day))"],
)  # fmt: skip
@pytest.mark.parametrize("row", [False, True])
def test_before_noise_every_level_has_all_that_counts(grouping: str, row: bool) -> None:
    unit = sf.PrivacyUnit.row() if row else None
    with session(unit=unit) as asked:
        query = asked.sql(f"SELECT COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY {grouping}")
        quote = query.quote(epsilon=1)
        read = asked.vault._read(quote.measured, 0)
        picks = picks_of(quote.measured, read.groups)
        for few in (picks, picks[1:4], ()):
            lines = lines_of(quote.measured, few)
            for column, added in zip(read.columns, on_lines(read, lines), strict=True):
                for level in quote.measured.levels:
                    on = [value for value, line in zip(added, lines, strict=True) if line.level == level]
                    assert sum(on) == sum(column)
        told = exact(query).table
        assert told.num_rows == len(lines_of(quote.measured, picks))
        others = [
            n
            for n, level in zip(told["n"].to_pylist(), told["level"].to_pylist(), strict=True)
            if "other" in level
        ]
        assert not any(others)  # all that is found is as if selected


def test_rows_of_other_keys_are_there_whether_or_not_anything_is_in_them() -> None:
    full = rows()
    only = full.filter(pa.compute.equal(full["city"], "Paris"))
    only = only.filter(pa.compute.equal(only["country"], "FR"))
    with session(only) as asked, seeded("empty"):
        released = asked.sql(ROLLUP).release(epsilon=SURE, mechanism="laplace").table
    assert [(row[2] > 0, row[5]) for row in listed(released)] == [
        (True, "country, city"),
        (False, "country, other city"),
        (False, "other country, other city"),
        (True, "country"),
        (False, "other country"),
        (True, "all rows"),
    ]
    with session(full.slice(0, 0)) as asked:
        released = asked.sql(ROLLUP).release(epsilon=1).table
    assert released["level"].to_pylist() == ["other country, other city", "other country", "all rows"]
    assert [released.schema.field(name).type for name in ("country", "n")] == [pa.string(), pa.int64()]


def test_rows_do_not_depend_on_the_order_of_the_data() -> None:
    table = rows()
    turned = table.take(list(range(len(table)))[::-1])
    found = []
    for each in (table, turned):
        with session(each) as asked, seeded("order"):
            found.append(asked.sql(ROLLUP).release(epsilon=SURE).table)
    assert [column.to_pylist() for column in found[0].select(["country", "city", "level"]).columns] == [
        column.to_pylist() for column in found[1].select(["country", "city", "level"]).columns
    ]


def test_public_keys_are_all_there() -> None:
    with session() as asked, seeded("public"):
        text = "SELECT sex, day, COUNT(*) AS n FROM t WHERE age = 20 GROUP BY ROLLUP (sex, day)"
        released = asked.sql(text).release(epsilon=SURE).table
    told = [(row[0], row[3]) for row in listed(released)]
    assert [each for each in told if each[1] == "sex"] == [("F", "sex"), ("M", "sex")]
    assert [each for each in told if each[1] == "sex, other day"] == [
        ("F", "sex, other day"), ("M", "sex, other day")
    ]  # fmt: skip
    assert "other sex" not in dict(map(reversed, told))  # type: ignore[arg-type]
    assert released["day"].type == pa.date32()


@pytest.mark.parametrize("grouping", ["GROUPING SETS (country, city)", "GROUPING SETS ((city, sex), age)"])
def test_a_unit_counts_in_as_many_groups_as_the_selection_is_told(grouping: str) -> None:
    unit = sf.PrivacyUnit("u", max_groups=3, max_rows=9)
    crowd = rows()
    table = pa.concat_tables([crowd, *(somewhere(-1, 9, country=f"country {i}", age=i) for i in range(4))])

    def counts(table: pa.Table) -> tuple[Any, dict[Any, int]]:
        with session(table, unit) as asked:
            quote = asked.sql(f"SELECT COUNT(*) AS n FROM t GROUP BY {grouping}").quote(epsilon=1)
            parts = [asked.vault._read(each, 0) for each in quote.recipe.finding]
        numbers = [dict(zip(part.groups, part.units.tolist(), strict=True)) for part in parts]
        return quote.selection, {(i, g): n for i, part in enumerate(numbers) for g, n in part.items()}

    selection, base = counts(table)
    _, other = counts(crowd)
    moved = [abs(base.get(key, 0) - other.get(key, 0)) for key in base.keys() | other.keys()]
    assert max(moved) == 1
    assert sum(moved) == selection.groups == 6


def somewhere(unit: int, count: int, country: str = "FR", age: int = 20) -> pa.Table:
    """Somebody with a row in each of so many cities where nobody else is."""
    return pa.table(
        {
            "u": [unit] * count,
            "country": [country] * count,
            "city": [f"city {i}" for i in range(count)],
            "x": [9] * count,
            "sex": ["F"] * count,
            "day": [datetime.date(2024, 1, 1)] * count,
            "age": [age] * count,
        }
    )


def test_sets_without_a_common_one_are_searched_each_by_itself() -> None:
    """The day has many units, though hardly any of its pairs with an age has two."""
    table = rows()
    table = table.set_column(5, "day", pa.array([datetime.date(2024, 1, 1)] * len(table)))
    many = table.set_column(6, "age", pa.array([1_000 + i // 2 for i in range(len(table))]))
    text = "SELECT day, age, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((day), (age), ())"
    unit = sf.PrivacyUnit("u", max_groups=16, max_rows=32)
    with session(many, unit) as asked, seeded("apart"):
        query = asked.sql(text)
        quote = query.quote(epsilon=SURE)
        assert quote.selection is not None
        assert quote.selection.groups == 2 * 16  # a unit is in so many groups of both sets together
        assert len(quote.recipe.questions) == 3
        assert "groups by day, and groups by age" in " ".join(quote.notes)
        released = query.release(epsilon=SURE, mechanism="laplace")
        assert query.release(epsilon=SURE, mechanism="laplace").free
        touched = query.release(epsilon=SURE, mechanism="laplace", touched=True)
        assert touched.table["level"].to_pylist() == released.table["level"].to_pylist()
        assert touched.touched() is not None
    found = {row[3]: row for row in listed(released.table)}
    assert found["day"][:3] == (datetime.date(2024, 1, 1), None, len(table))
    assert found["other day"][2] == 0
    assert found["all rows"][2] == len(table)
    ages = [row for row in listed(released.table) if "age" in row[3]]
    assert sum(row[2] for row in ages) == len(table)
    assert found["other age"][2] > 0
    with session(table, sf.PrivacyUnit.row()) as asked:
        assert asked.sql(text).quote(epsilon=1).selection.groups == 2  # type: ignore[union-attr]


@functools.cache
def readings(adjacency: Any) -> tuple[Any, Any, list[Any]]:
    """A question about all levels, what is read of a table, and of some that differ in one unit."""
    unit = sf.PrivacyUnit("u", max_groups=3, max_rows=3, adjacency=adjacency)
    text = "SELECT country, city, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY CUBE (country, city)"
    table = pa.concat_tables([rows(), somewhere(-1, 9)])

    def measured(table: pa.Table) -> tuple[Any, Any]:
        with session(table, unit) as asked:
            question = asked.sql(text).quote(epsilon=1).measured
            return question, asked.vault._read(question, 0)

    near = []
    for gone in (-1, 0, 5, 60):
        kept = table.filter(pa.compute.not_equal(table["u"], gone))
        if adjacency == "exchange":
            other = table.filter(pa.compute.equal(table["u"], gone + 1))
            kept = pa.concat_tables([kept, other.set_column(0, "u", pa.array([gone] * len(other)))])
        near.append(measured(kept))
    question, base = measured(table)
    return question, base, near


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
@pytest.mark.parametrize("selected", [0, 3, 100])
def test_a_unit_moves_all_levels_by_what_is_claimed(adjacency: Any, selected: int) -> None:
    """Whatever list of groups is fixed; and somebody reaches the claim in L2, on lines of other keys."""
    question, read, near = readings(adjacency)
    few = [each for each in picks_of(question, read.groups) if "city" not in str(each)][:selected]
    base, claims = on_lines(read, lines_of(question, few)), sensitivities(question)
    most = 0.0
    for same, other in near:
        moved = on_lines(other, lines_of(same, few))
        for claim, mine, new in zip(claims, base, moved, strict=True):
            moves = [abs(a - b) for a, b in zip(mine.tolist(), new.tolist(), strict=True)]
            assert sum(moves) <= claim.l1
            assert sum(move * move for move in moves) <= claim.l2_squared
            most = max(most, sum(move * move for move in moves) / claim.l2_squared)
    assert most == 1 if adjacency == "add-remove" else most > 0.3


def test_what_was_released_is_given_again_free_and_read_back_to_the_last_bit() -> None:
    with session(budget=sf.Budget(epsilon=3, delta="1e-6")) as asked:
        first = asked.sql(ROLLUP).release(epsilon=2)
        again = asked.sql(ROLLUP + " ORDER BY n DESC LIMIT 3").release(epsilon=2)
        assert again.free
        assert not first.free
        ranked = sorted(first.table["n"].to_pylist(), reverse=True)
        assert again.table["n"].to_pylist() == ranked[:3]
        answer = first._answer
        read = Answer.from_bytes(answer.to_bytes())
        assert read.groups == answer.groups
        assert all((a == b).all() for a, b in zip(read.noisy, answer.noisy, strict=True))
        stored = json.loads(answer.to_bytes())
        assert stored["format"] == 2


def test_the_same_question_is_recognised_and_another_order_of_keys_is_another() -> None:
    def asked_for(grouping: str) -> str:
        return f"SELECT COUNT(*) AS n FROM t GROUP BY {grouping}"

    with session() as asked:
        prints = [
            asked.sql(asked_for(grouping)).quote(epsilon=1).fingerprint
            for grouping in (
                "ROLLUP (country, city)",
                "GROUPING SETS ((country, city), country, ())",
                "ROLLUP (city, country)",
                "CUBE (country, city)",
                "CUBE (city, country)",
            )
        ]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 4


def test_order_having_and_limit_are_as_ever() -> None:
    with session() as asked, seeded("post"):
        released = asked.sql(f"{ROLLUP} HAVING COUNT(*) > 60 ORDER BY country DESC NULLS LAST, n LIMIT 4")
        table = released.release(epsilon=SURE).table
    assert [row[0] for row in listed(table)] == ["FR", "FR", "DE", None]
    assert all(n > 60 for n in table["n"].to_pylist())


def test_other_keys_are_no_total() -> None:
    with session() as asked:
        text = (
            f"{ROLLUP.replace('COUNT', 'GROUPING(city, country) AS g, COUNT')} HAVING GROUPING(country) = 0"
        )
        table = asked.sql(text).release(epsilon=SURE).table
    assert set(zip(table["g"].to_pylist(), table["level"].to_pylist(), strict=True)) == {
        (0, "country, city"),
        (0, "country, other city"),
        (0, "other country, other city"),
        (2, "country"),
        (2, "other country"),
    }


def test_the_column_that_says_what_a_row_is_about_takes_a_free_name() -> None:
    with session() as asked:
        text = "SELECT city AS level, UPPER(country) AS level_2, COUNT(*) AS n FROM t "
        released = asked.sql(text + "GROUP BY ROLLUP (city, UPPER(country))").release(epsilon=1)
        assert released.table.column_names == ["level", "level_2", "n", "level_3"]
        assert released.table["level_3"].to_pylist()[-2:] == ["other level", "all rows"]
        hidden = asked.sql("SELECT COUNT(*) AS n FROM t GROUP BY ROLLUP (UPPER(country))").release(epsilon=1)
        assert hidden.table["level"].to_pylist()[-2:] == ['other "upper(country)"', "all rows"]
        public = asked.sql("SELECT sex, COUNT(*) AS n FROM t GROUP BY ROLLUP (sex)").release(epsilon=1)
        assert public.table.column_names == ["sex", "n"]


def drawn(mechanism: str) -> tuple[Any, list[tuple[Any, list[float]]]]:
    """A quote, and many answers at its price, each with its numbers before noise."""
    with session(budget=sf.Budget(epsilon=10, delta="0.01")) as asked, seeded(mechanism):
        text = "SELECT country, city, COUNT(*) AS n FROM t GROUP BY ROLLUP (country, city)"
        quote = asked.sql(text).quote(epsilon=4, delta="1e-3", mechanism=mechanism)
        read = asked.vault._read(quote.measured, 0)
    (tool,) = instruments(quote.measured)
    answers = []
    for number in range(120):
        with seeded(f"{mechanism} {number}"):
            answer = answered(quote, lambda place, over: read)
        (exact_ones,) = on_lines(read, lines_of(quote.measured, answer.groups or ()))
        answers.append((answer, [float(true * tool.unit) for true in exact_ones]))
    return quote, answers


def missed(quote: Any, answers: list[tuple[Any, list[float]]], shrunk: float = 1.0) -> float:
    """How often the number before noise is outside its 90% bars, over all rows of many answers."""
    outside: list[bool] = []
    for answer, exact_ones in answers:
        noises = tuple(replace(each, scale=each.scale * shrunk) for each in answer.noises)
        release = Release(quote, replace(answer, noises=noises), cast(Any, None), free=True)
        ends = release.interval(0.9, "noise")
        bars = zip(exact_ones, ends["n_low"].to_pylist(), ends["n_high"].to_pylist(), strict=True)
        outside += [not low <= true <= high for true, low, high in bars]
    return float(np.mean(outside))


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_bars_of_all_rows_hold(mechanism: str) -> None:
    """Rows of other keys have no bias of selection, and found ones none in their sums."""
    quote, answers = drawn(mechanism)
    assert missed(quote, answers) < 0.15  # 0.1, and four times how much the mean of 120 answers spreads
    assert missed(quote, answers, shrunk=0.4) > 0.15


def test_the_quote_says_what_there_will_be_and_an_error_cannot_be_asked_for() -> None:
    with session() as asked:
        quote = asked.sql(ROLLUP).quote(epsilon=1)
        told = str(quote)
        assert "those that are found, by city, country" in told
        assert any("rows of other keys" in note for note in quote.notes)
        assert quote.to_dict()["groups"] is None
        assert quote.error()["level"] == 0
        assert quote.columns[2].half_width is not None
        with pytest.raises(QueryRefused, match="depends on the data"):
            asked.sql(ROLLUP).quote(error={"n": 50})
        with pytest.raises(QueryRefused, match="delta above 0"):
            asked.sql(ROLLUP).quote(epsilon=1, delta=0)


def test_the_share_of_units_that_were_cut_can_be_asked_for_too() -> None:
    unit = sf.PrivacyUnit("u", max_groups=1, max_rows=1)
    with session(unit=unit) as asked, seeded("touched"):
        released = asked.sql(ROLLUP).release(epsilon=1_000, touched=True)
    share = released.touched()
    assert share is not None
    cut = plain("SELECT AVG(CAST(n > 1 AS INTEGER)) FROM (SELECT COUNT(*) AS n FROM t GROUP BY u)")[0][0]
    assert share.share == pytest.approx(cut, abs=0.01)


def test_it_reads_well() -> None:
    with session() as asked, seeded("text"):
        released = asked.sql(ROLLUP).release(epsilon=SURE)
    text = str(released)
    assert "FR       Paris" in text
    assert "country, other city" in text
    assert "other country, other city" in released._repr_html_()
    assert released.error().column_names == ["country", "city", "n", "s", "m", "level"]
    assert released.error()["level"].to_pylist() == released.table["level"].to_pylist()
    assert released.interval().column_names[-1] == "level"
