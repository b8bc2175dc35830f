"""Groups that nobody knew: found in the step that has enough units, then in the series, and never twice."""

from __future__ import annotations

import datetime
import math
from datetime import UTC, date, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.ledger import Ledger
from sfumato.ledger.series import SeriesOf
from sfumato.mechanisms import GaussianSelection, PartitionSelection
from sfumato.session.series import cohorts, points, published
from sfumato.session.series.finding import Finding, name_of
from sfumato.session.series.points import Courses, Point
from sfumato.session.vault import Vault

START = date(2026, 1, 1)
DAILY = "SELECT day, shop, COUNT(*) AS n, SUM(amount) AS total FROM visits GROUP BY day, shop"
SURE, FEW = 90, 3


def rows_of(plan, days=12):
    """Rows of {shop: (first day, rows a day)}."""
    found = {"day": [], "shop": [], "amount": []}
    for day in range(days):
        for shop, (first, many) in plan.items():
            count = many if day >= first else 0
            found["day"] += [START + timedelta(days=day)] * count
            found["shop"] += [shop] * count
            found["amount"] += [place % 11 for place in range(count)]
    return pa.table(
        {
            "user": np.arange(len(found["day"])),
            "day": pa.array(found["day"], pa.date32()),
            "shop": found["shop"],
            "amount": pa.array(found["amount"], pa.int64()),
        }
    )


PLAN = {"north": (0, SURE), "south": (0, SURE), "new": (5, SURE), "tiny": (0, FEW)}


def session_of(source, ledger=None, unit=None, shop=None):
    schema = {
        "day": sf.Date("2026-01-01", "2026-12-31"),
        "shop": shop or sf.Text(),
        "amount": sf.Int(0, 10),
    }
    table = sf.PrivateTable("visits", source=source, schema=schema, unit=unit or sf.PrivacyUnit.row())
    return sf.Session(table, budget=sf.Budget(epsilon=100, delta="0.01"), ledger=ledger)


def at(day):
    return datetime.datetime.combine(START + timedelta(days=day), datetime.time(), UTC)


def daily(session, horizon=12, epsilon=2, delta="1e-6", text=DAILY, **more):
    return session.stream(text, start=START, horizon=horizon, epsilon=epsilon, delta=delta, **more)


# ── what there is of them


def check_late():
    """A shop that opens on the sixth day, and one that has too few for ever."""
    with session_of(rows_of(PLAN)) as session:
        series = daily(session)
        series.advance(now=at(12))
        for of, window in (("running", None), ("steps", None), ("window", 3)):
            shown = series.table(of, window=window, confidence=1 - 1e-9).to_pylist()
            days = {
                shop: [(row["day"] - START).days for row in shown if row["shop"] == shop] for shop in PLAN
            }
            assert days == {
                "north": [*range(12)],
                "south": [*range(12)],
                "new": [*range(5, 12)],
                "tiny": [],
            }
            for row in shown:
                day, first = (row["day"] - START).days, PLAN[row["shop"]][0]
                begin = {"running": first, "steps": day}.get(of, max(first, day - 2))
                each = sum(place % 11 for place in range(SURE))
                for name, one in (("n", SURE), ("total", each)):
                    assert row[f"{name}_low"] <= one * (day - begin + 1) <= row[f"{name}_high"]
    return series


def test_a_group_has_points_from_the_step_on_that_finds_it():
    series = check_late()
    assert series.point(4).table["shop"].to_pylist() == ["north", "south"]
    assert series.point(5).table["shop"].to_pylist() == ["new", "north", "south"]
    assert series.difference(2, -1).table["shop"].to_pylist() == ["north", "south"]
    change = series.difference(6, -1).table.to_pydict()
    assert change["shop"] == ["new", "north", "south"]
    assert change["n"] == pytest.approx([5 * SURE] * 3, abs=100)
    assert "A group is counted from the step on that found it." in " ".join(str(series.point(-1)).split())


def test_intervals_of_late_groups_are_their_own():
    """The same in a point as in the table, each in its own row, and narrower than those of older groups."""
    series = check_late()
    for of, window in (("running", None), ("steps", None), ("window", 3)):
        for step in (3, 6, 11):
            day = START + timedelta(step)
            for kind in ("noise", "covering"):
                table = series.table(of, window=window, kind=kind).to_pylist()
                expected = {row["shop"]: row for row in table if row["day"] == day}
                point = series.point(step, of, window=window).to_arrow(errors=True, kind=kind)
                assert point["shop"].to_pylist() == sorted(expected)
                for row in point.to_pylist():
                    assert [*row.values()][2:] == pytest.approx([*expected[row["shop"]].values()][2:])
    last = {row["shop"]: row["n_error"] for row in series.point(-1).to_arrow(errors=True).to_pylist()}
    assert last["new"] < min(last["north"], last["south"])
    first = [row for row in series.table().to_pylist() if row["shop"] == "north"]
    assert last["new"] <= first[6]["n_error"]  # seven steps of noise, late in the series
    change = {row["shop"]: row for row in series.difference(5, 6).to_arrow(errors=True).to_pylist()}
    assert change["new"]["total_error"] <= change["north"]["total_error"]


SINCE, EACH, HELD = {"old": 0, "later": 6, "new": 8}, 300, 0.68


def covered():
    """Of groups that joined in several steps, how many intervals hold what there is."""
    plan = {f"{place % 7} {age} {place}": (day, SURE) for age, day in SINCE.items() for place in range(EACH)}
    each = sum(place % 11 for place in range(SURE))
    text = "SELECT day, shop, SUM(amount) AS total FROM visits GROUP BY day, shop"
    with pytest.MonkeyPatch.context() as patch, session_of(rows_of(plan, 9)) as session:
        patch.setattr(SeriesOf, "secret", lambda *_: b"c" * 32)  # the same noise each time
        series = daily(session, 9, text=text)
        series.advance(now=at(9))
        shown = {"point": series.point(-1), "difference": series.difference(6, 8)}
        found = {}
        for name, release in shown.items():
            ends = release.interval(HELD, "noise").to_pylist()
            for age in {"point": SINCE, "difference": ("old", "later")}[name]:
                exact = each * (9 - SINCE[age] if name == "point" else 2)
                rows = [row for row in ends if age in row["shop"]]
                held = [row["total_low"] <= exact <= row["total_high"] for row in rows]
                found[name, age] = sum(held), len(held)
    return found


def problems_of_coverage():
    return [
        (which, held, many)
        for which, (held, many) in covered().items()
        if many < EACH - 5 or not binom.ppf(1e-9, many, HELD) <= held <= binom.isf(1e-9, many, HELD)
    ]


def test_intervals_of_groups_that_came_early_and_late_hold_as_often_as_they_say():
    assert problems_of_coverage() == []


@pytest.mark.parametrize("bug", ["of the youngest", "in another order"])
def test_intervals_of_other_groups_are_noticed(bug, monkeypatch):
    real = cohorts.OfCohorts.__init__

    def planted(self, whole, parts, laws):
        real(self, whole, parts, [laws[-1]] * len(laws) if bug == "of the youngest" else laws[::-1])

    monkeypatch.setattr(cohorts.OfCohorts, "__init__", planted)
    assert problems_of_coverage()


def test_groups_that_are_gone_stay_and_are_noise_around_zero():
    gone = {"north": (0, SURE), "closed": (0, SURE)}
    with Ledger.open() as ledger:
        with session_of(rows_of(gone), ledger) as session:
            daily(session).advance(now=at(3))
        with session_of(rows_of({"north": (0, SURE)}), ledger) as session:  # erased
            series = daily(session)
            series.advance(now=at(12))
            shown = series.table("steps").to_pylist()
    closed = [row["n"] for row in shown if row["shop"] == "closed"]
    assert closed[:3] == pytest.approx([SURE] * 3, abs=60)
    assert closed[3:] == pytest.approx([0] * 9, abs=60)
    assert len(set(closed[3:])) > 3


def test_a_series_may_begin_with_nothing():
    with session_of(rows_of({"new": (2, SURE)})) as session:
        series = daily(session)
        series.advance(now=at(2))
        assert series.table().num_rows == 0
        assert series.table().column_names[:3] == ["day", "shop", "n"]
        assert "No group is shown" in str(series.point(0))
        series.advance(now=at(4))
        assert series.table()["shop"].to_pylist() == ["new"] * 2
        assert series.difference(0, 3).table.num_rows == 0


def test_a_picture_has_a_line_for_each_group_from_where_it_begins(tmp_path):
    series = check_late()
    series.plot(tmp_path / "late.svg", "n")
    assert (tmp_path / "late.svg").stat().st_size > 1000


KEYS = {
    "text": (sf.Text(), ["a", "b", "é"]),
    "whole": (sf.Int(), [3, 4, -(10**12)]),
    "nothing": (sf.Text(nullable=True), ["a", None, "b"]),
    "moment": (
        sf.Timestamp(),
        [
            datetime.datetime(2020, 1, 1, 5, 6, 7),
            datetime.datetime(2020, 1, 2),
            datetime.datetime(2021, 1, 1),
        ],
    ),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_any_kind_are_the_same_when_the_series_goes_on(kind, tmp_path):
    declared, values = KEYS[kind]
    rows = rows_of({"0": (0, SURE), "1": (0, SURE), "2": (3, SURE)})
    listed = [values[int(place)] for place in rows["shop"].to_pylist()]
    rows = rows.set_column(2, "shop", pa.array(listed))
    with session_of(rows, tmp_path / "l", shop=declared) as session:
        series = daily(session)
        series.advance(now=at(4))
        before = series.table()
    with session_of(rows, tmp_path / "l", shop=declared) as session:
        series = daily(session)
        assert series.table().equals(before)
        series.advance(now=at(6))
        assert series.table().slice(0, before.num_rows).equals(before)
        last = [row["shop"] for row in series.table().to_pylist() if row["day"] == START + timedelta(5)]
        assert len(last) == len(set(last)) == len(set(values))
        assert set(last) == set(values)
        assert [group for point in series._points for group in point.found] == [(shop,) for shop in last]


def test_public_keys_beside_those_that_are_found():
    rows = rows_of(PLAN)
    rows = rows.append_column("region", pa.array(["x" if n % 2 else "y" for n in range(rows.num_rows)]))
    schema = {
        "day": sf.Date("2026-01-01", "2026-12-31"),
        "shop": sf.Text(),
        "region": sf.Enum(["x", "y"]),
    }
    table = sf.PrivateTable("visits", source=rows, schema=schema, unit=sf.PrivacyUnit.row())
    text = "SELECT shop, COUNT(*) AS n, region FROM visits GROUP BY region, shop, day"
    with sf.Session(table, budget=sf.Budget(epsilon=100, delta="0.01")) as session:
        series = daily(session, text=text, epsilon=5)
        series.advance(now=at(7))
        last = series.point(-1, "steps").table.to_pylist()
        assert {(row["shop"], row["region"]) for row in last} == {
            (shop, region) for shop in ("north", "south", "new") for region in "xy"
        }
        assert all(abs(row["n"] - SURE / 2) < 30 for row in last)


def test_people_are_counted_once_each_and_found_by_their_number():
    rows = rows_of({"north": (0, 300), "south": (0, 300), "one": (0, 300)}, days=6)
    users = [n % 200 if shop != "one" else 0 for n, shop in enumerate(rows["shop"].to_pylist())]
    rows = rows.set_column(0, "user", pa.array(users, pa.int64()))
    unit = sf.PrivacyUnit("user", max_rows=4, max_groups=2, window="day", time="day")
    text = "SELECT day, shop, COUNT(DISTINCT user) AS people FROM visits GROUP BY day, shop"
    with session_of(rows, unit=unit) as session:
        series = daily(session, horizon=6, epsilon=8, text=text)
        series.advance(now=at(6))
        assert {*series.table()["shop"].to_pylist()} == {"north", "south"}  # a crowd of one is none
        assert series.point(-1, "steps").table["people"].to_pylist() == pytest.approx([200] * 2, abs=40)


# ── what it costs


def test_a_quarter_of_the_price_finds_groups_and_the_quote_says_what_is_enough():
    with session_of(rows_of(PLAN)) as session:
        series = daily(session)
        selection = series.pricing.finding.selection
        assert isinstance(selection, PartitionSelection)
        assert (selection.epsilon, selection.groups) == (Fraction(1, 2), 1)
        assert selection.delta == Fraction("5e-7")
        (numbers, _), (groups, _) = series.loss.parts
        assert numbers.approximate == (Fraction(3, 2), Fraction("5e-7"))
        assert groups == selection.loss
        assert series.delta == Fraction("1e-6")
        told = " ".join(str(series).split())
        about = selection.least("0.5")
        assert f"one appears once about {about} units (row) are in it in one step" in told
        assert "finding them takes 1/4 of the price" in told
        series.advance(now=at(1))
        assert session.balance().spent == 2


def test_the_selection_is_for_all_steps_that_a_unit_can_be_in():
    found = {}
    for window, adjacency in (
        ("day", "add-remove"),
        ("week", "add-remove"),
        ("week", "exchange"),
        (None, "exchange"),
    ):
        unit = sf.PrivacyUnit(
            "user",
            max_rows=2,
            max_groups=2,
            window=window,
            time=None if window is None else "day",
            adjacency=adjacency,
        )
        with session_of(rows_of(PLAN), unit=unit) as session:
            series = daily(session)
            selection = series.pricing.finding.selection
            found[window, adjacency] = selection.groups, selection.exchange, series.pricing.noises[0].moved
    assert found == {
        ("day", "add-remove"): (2, False, 2),
        ("week", "add-remove"): (14, False, 14),
        ("week", "exchange"): (14, True, 28),
        (None, "exchange"): (24, True, 48),
    }


def test_what_cannot_be_found_in_a_series_is_refused_unpaid():
    with session_of(rows_of(PLAN)) as session:
        for text in (
            "SELECT day, shop, MEDIAN(amount) AS m FROM visits GROUP BY day, shop",
            "SELECT day, shop, COUNT(*) AS n FROM visits GROUP BY ROLLUP (day, shop)",
            DAILY + " HAVING n > 3",
        ):
            with pytest.raises(QueryRefused):
                daily(session, text=text)
        assert session.balance().spent == 0


# ── the law


def slow_keep(epsilon, delta, count):
    """The largest probability with which a group of so many units can be kept: the recursion of the paper."""
    kept = 0.0
    for _ in range(count):
        kept = min(math.exp(epsilon) * kept + delta, 1 - math.exp(-epsilon) * (1 - kept - delta), 1.0)
    return kept


COUNTS, TIMES = (1, 4, 5, 9), 40_000


def problems_of_law(key=b"k"):
    """How many of many groups join in each step, against the law of one that is tested until it is found."""
    finding = Finding(PartitionSelection(1, "0.05"), 0)
    known, left, wrong = {}, 1.0, []
    names = [name_of((place,)) for place in range(TIMES)]
    for step, count in enumerate(COUNTS):
        units = np.full(TIMES, count)
        joined = finding.joining(names, units, known, bytes([step]) + key * 31)
        known |= {names[place]: len(known) + at for at, place in enumerate(joined.tolist())}
        chance = left * slow_keep(1, 0.05, count)
        left -= chance
        least, most = binom.ppf(1e-9, TIMES, chance), binom.isf(1e-9, TIMES, chance)
        wrong += [] if least <= len(joined) <= most else [(step, len(joined), chance)]
    return wrong


def test_groups_join_with_exactly_the_probability_that_is_paid_for():
    assert problems_of_law() == []


def test_a_test_without_noise_is_found(monkeypatch):
    """Planted: the exact number of units is held against the threshold."""

    def exact(self, counts):
        return np.asarray(counts) > self.threshold, counts

    monkeypatch.setattr(PartitionSelection, "release", exact)
    assert problems_of_law()


def test_a_second_chance_in_each_step_is_found(monkeypatch):
    """Planted: each group is tested twice a step."""
    real = Finding.joining

    def twice(self, names, units, known, key):
        first = real(self, names, units, known, key)
        return np.union1d(first, real(self, names, units, known, key[::-1]))

    monkeypatch.setattr(Finding, "joining", twice)
    assert problems_of_law()


@pytest.mark.parametrize("law", [PartitionSelection, GaussianSelection])
@pytest.mark.parametrize("exchange", [False, True])
def test_a_unit_alone_in_all_its_groups_is_seen_with_no_more_than_delta(law, exchange):
    for steps, groups in ((1, 1), (7, 1), (7, 3), (365, 2)):
        selection = law("0.5", "1e-5", groups=steps * groups, exchange=exchange)
        seen = 1 - (1 - selection.keep_probability(1)) ** (steps * groups)
        assert 0 < seen <= 1e-5 * (1 + 1e-9)
        once = law("0.5", "1e-5", groups=groups, exchange=exchange)  # planted: paid for one step
        assert steps == 1 or 1 - (1 - once.keep_probability(1)) ** (steps * groups) > 2e-5


# ── its own step alone


def check_own_step(days=12):
    """A third of what is enough, each day: never found."""
    with session_of(rows_of({"north": (0, SURE), "slow": (0, 6)}, days)) as session:
        series = daily(session, horizon=days)
        assert series.pricing.finding.selection.keep_probability(6) < 1e-4
        series.advance(now=at(days))
        assert {*series.table()["shop"].to_pylist()} == {"north"}


def test_a_group_is_found_by_the_units_of_one_step():
    check_own_step()


def test_groups_found_by_what_came_before_are_noticed(monkeypatch):
    """Planted: units of all steps so far are counted."""
    real, total = Finding.joining, {}

    def summed(self, names, units, known, key):
        for name, many in zip(names, units.tolist(), strict=True):
            total[name] = total.get(name, 0) + many
        return real(self, names, np.array([total[name] for name in names]), known, key)

    monkeypatch.setattr(Finding, "joining", summed)
    with pytest.raises(AssertionError):
        check_own_step()


def test_points_before_a_group_was_found_are_noticed(monkeypatch):
    """Planted: every group has points from the first step on, zeros until it was found."""
    real, sums = published.Published._cohorts, published.Published._sums

    def padded(self, of, length):
        most = self._size(len(self) - 1)
        for totals in sums(self, of, length):
            yield [np.concatenate([total, np.zeros(most - total.size, object)]) for total in totals]

    monkeypatch.setattr(
        published.Published,
        "_cohorts",
        lambda self: [published.Cohort(0, cohort.begin, cohort.end, cohort.groups) for cohort in real(self)],
    )
    monkeypatch.setattr(published.Published, "_sums", padded)
    with pytest.raises(AssertionError):
        check_late()


# ── again


HALF = {f"shop {place}": (place % 4, 27) for place in range(80)}


class Cut(BaseException):
    """The process ends here."""


def cut_off(ledger, source, *, after):
    """The point that was never recorded, after some that were."""
    seen = []
    with session_of(source, ledger) as session, pytest.MonkeyPatch.context() as patch:
        series = daily(session)
        if after > len(series):
            series.advance(now=at(after))

        def record(self, right, point, payload):
            seen.append(Point.from_bytes(payload))
            raise Cut

        patch.setattr(SeriesOf, "record", record)
        with pytest.raises(Cut):
            series.advance(now=at(after + 1))
    return seen[0]


def check_again(after=2):
    """A point that is computed again: the same groups and numbers for the same rows, others for others."""
    other = {shop: (first, many + 1) for shop, (first, many) in HALF.items()}
    with Ledger.open() as ledger:
        first = cut_off(ledger, rows_of(HALF), after=after)
        again = cut_off(ledger, rows_of(HALF), after=after)
        assert again.found == first.found
        assert [units.tolist() for units in again.units] == [units.tolist() for units in first.units]
        changed = cut_off(ledger, rows_of(other), after=after)
        assert changed.found != first.found
        with session_of(rows_of(HALF), ledger) as session:
            series = daily(session)
            assert 0 < len(first.found) < len(HALF) - len(series._points[-1].units[0])
            series.advance(now=at(12))
            assert series._points[after].found == first.found
            names = [group for point in series._points for group in point.found]
            assert len(names) == len({*names})
            whole = Courses(
                series.pricing.noises,
                ledger.series.secret(series.receipt),
                daily(session)._points,
                series.pricing.finding,
            )
            assert [course.save() for course in whole._courses] == [
                course.save() for course in series._courses._courses
            ]


@pytest.mark.parametrize("every", [3, 64])
def test_a_step_that_is_computed_again_finds_the_same_groups(every, monkeypatch):
    monkeypatch.setattr(points, "_EVERY", every)  # states are sealed on the way, or not
    check_again()


@pytest.mark.parametrize("bug", ["fresh", "of the step alone"])
def test_noise_of_a_selection_that_does_not_come_back_is_noticed(bug, monkeypatch):
    real = Finding.joining

    def planted(self, names, units, known, key):
        return real(
            self, names, units, known, np.random.default_rng().bytes(32) if bug == "fresh" else b"k" * 32
        )

    monkeypatch.setattr(Finding, "joining", planted)
    if bug == "fresh":
        with pytest.raises(AssertionError):
            check_again()
    else:
        with pytest.raises(AssertionError):
            check_shared()


def check_shared():
    """No two steps draw the same noise: groups of the same size that are tested in both."""
    with (
        session_of(rows_of({f"shop {place}": (0, 10) for place in range(200)}, 2)) as session,
        pytest.MonkeyPatch.context() as patch,
    ):
        real, drawn = Finding.joining, []

        def watched(self, names, units, known, key):
            joined = real(self, names, units, {}, key)
            drawn.append({names[place] for place in joined.tolist()})
            return joined[:0]

        patch.setattr(Finding, "joining", watched)
        daily(session, horizon=2, delta="0.005").advance(now=at(2))
    first, second = drawn
    assert first
    assert first != second


def test_two_steps_share_no_noise_of_the_selection():
    check_shared()


# ── a ledger that is put back


def check_put_back():
    """Other rows in one step, the same in the next: the noise of both is new."""
    rows = rows_of(PLAN)
    more = rows.slice(0, 1).set_column(1, "day", pa.array([START + timedelta(2)]))
    salts = []
    for source in (rows, pa.concat_tables([rows, more])):
        with (
            Ledger.open() as ledger,
            session_of(source, ledger) as session,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr(SeriesOf, "secret", lambda *_: b"s" * 32)  # as on two copies of one ledger
            series = daily(session)
            series.advance(now=at(4))
            salts.append([point.salt for point in series._points])
    same = [mine == other for mine, other in zip(*salts, strict=True)]
    assert same == [True, True, False, False]


def test_after_other_rows_all_later_noise_is_new():
    check_put_back()


def test_salts_that_do_not_hang_together_are_noticed(monkeypatch):
    """Planted: the salt of a step follows from its own rows alone."""
    real = Courses._salt

    def alone(self, step, exact):
        self._before = b""
        return real(self, step, exact)

    monkeypatch.setattr(Courses, "_salt", alone)
    with pytest.raises(AssertionError):
        check_put_back()


def test_each_step_reads_its_own_rows_once(monkeypatch):
    reads, real = [], Vault.read

    def read(self, questions, right, **more):
        reads.append(questions[0].fingerprint)
        return real(self, questions, right, **more)

    monkeypatch.setattr(Vault, "read", read)
    with session_of(rows_of(PLAN)) as session:
        daily(session).advance(now=at(12))
    assert len(reads) == len({*reads}) == 12
