"""Groups found in two rounds, from SQL to the answer: what is shown, what is read, what neighbours see."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines.prepare import prepare
from sfumato.errors import AccessDenied
from sfumato.mechanisms import adaptive_selection
from sfumato.plan.prices import bundle
from sfumato.plan.questions.spread import Spread
from sfumato.session import answering, noise
from sfumato.session.payload import Answer
from sfumato.session.texts import Texts
from sfumato.sql.write import choice
from sfumato.testing import compare, record, replay, seeded
from sfumato.testing.replaying import lost
from two_rounds import slowly

PRICE, DELTA = Fraction(3), Fraction(1, 500)
SCHEMA = {"a": sf.Text(), "b": sf.Int(), "x": sf.Float(0, 8)}
UNITS = {
    kind: sf.PrivacyUnit("u", max_groups=6, max_rows=18, adjacency=kind)
    for kind in ("add-remove", "exchange")
}
QUERIES = {
    "one key": ("SELECT a, SUM(x) AS s FROM t GROUP BY a", ("a",), lambda row: True),
    "a condition": ("SELECT a, SUM(x) AS s FROM t WHERE x > 3 GROUP BY a", ("a",), lambda row: row["x"] > 3),
    "two keys": ("SELECT b, a, SUM(x) AS s FROM t GROUP BY a, b", ("b", "a"), lambda row: True),
}
ODD = "two\nlines"  # which no statement names


def some_rows(seed, units=160):
    """Units with up to six groups, of which some are in nearly all and some in few; NULL is one."""
    draw, names = random.Random(seed), ["p", "q", None, ODD, "r", "s", "t", "v"]
    rows = []
    for unit in [None, *range(units)]:
        own = [name for place, name in enumerate(names) if draw.random() < 0.9 / (1 + place / 2)][:6]
        for name in own:
            x = draw.uniform(0, 8)
            rows += [{"u": unit, "a": name, "b": None if name == "q" else 1, "x": x}] * draw.randint(1, 2)
    return rows


def opened(rows, unit="add-remove", **options):
    kinds = {"u": pa.int64(), "a": pa.string(), "b": pa.int64(), "x": pa.float64()}
    source = pa.Table.from_pylist(rows, schema=pa.schema(list(kinds.items())))
    table = sf.PrivateTable("t", source=source, unit=UNITS[unit], schema=SCHEMA)
    return sf.Session(table, budget=sf.Budget(10**6, Fraction(9, 10)), **options)


def groups_of_units(rows, keys, passes):
    units = {}
    for row in rows:
        if row["u"] is not None and passes(row):
            units.setdefault(row["u"], set()).add(tuple(row[key] for key in keys))
    return list(units.values())


@pytest.mark.parametrize(
    ("kind", "unit"), [("one key", "add-remove"), ("a condition", "exchange"), ("two keys", "add-remove")]
)
def test_without_noise_the_groups_are_those_of_a_slow_reading(kind, unit, monkeypatch):
    monkeypatch.setattr(adaptive_selection, "with_gaussian", lambda numbers, _: numbers)
    (text, keys, passes), rows = QUERIES[kind], some_rows(kind)
    with opened(rows, unit) as session:
        release = session.sql(text).release(epsilon=PRICE, delta=DELTA)
    selection = release.quote.selection
    assert isinstance(selection, sf.AdaptiveSelection)
    assert (selection.exchange, selection.groups) == (unit == "exchange", 6)
    first, second = slowly(selection, groups_of_units(rows, keys, passes), ({}, {}))
    shown = list(zip(*(release.table[key].to_pylist() for key in keys), strict=True))
    if (None,) in first or (ODD,) in first:  # nothing of it is in the statement of the second round
        assert len(first) > 1
    assert set(shown) == first | second
    assert len(shown) == len(set(shown))
    assert first
    assert second - first


def neighbours(kind):
    """A table, and the same without one unit that has groups of its own; or with another in its place."""
    rows = some_rows("neighbours", 40)
    own = [{"u": 99, "a": name, "b": 1, "x": 5.0} for name in ("p", "q", None, "alone", "apart", "away")]
    other = [{"u": 99, "a": name, "b": 1, "x": 1.0} for name in ("q", "r", "beside", "behind")]
    return rows + own, rows + (other if kind == "exchange" else [])


def seen(rows, kind, text):
    with opened(rows, kind) as session:
        release = session.sql(text).release(epsilon=PRICE, delta=DELTA)
        return release.table.to_pylist(), str(release.quote)


def differences(kind, text=QUERIES["one key"][0]):
    left, right = neighbours(kind)
    return compare(lambda: seen(left, kind, text), lambda: seen(right, kind, text))


@pytest.mark.parametrize(("kind", "name"), [("exchange", "one key"), ("add-remove", "two keys")])
def test_neighbours_differ_in_no_more_than_the_noise_is_for(kind, name):
    assert differences(kind, QUERIES[name][0]) == []


def _degree_of_one(pairs, parts, spread):
    return _spread(pairs, parts, replace(spread, steps=((10**6, spread.steps[0][1]),)))


def _degree_of_the_group(pairs, parts, spread):
    made = _spread(pairs, parts, spread)
    for window in made.find_all(choice.exp.Window):
        if isinstance(window.this, choice.exp.Count):
            window.set("partition_by", [choice.column("k0")])
    return made


_spread = choice.weighed


@pytest.mark.parametrize("bug", [_degree_of_one, _degree_of_the_group])
def test_weights_that_are_not_a_units_own_are_noticed(bug, monkeypatch):
    monkeypatch.setattr(choice, "weighed", bug)
    assert any("weights move" in finding for finding in differences("add-remove"))


def at_the_threshold():
    """Neighbours with the same groups, one of which is above the first threshold on one side alone.

    Five small ones are far below it, so that the second round has groups whatever noise the first one draws:
    engines take different numbers from the stream before it.
    """
    selection = sf.AdaptiveSelection(PRICE / 2, DELTA / 2, groups=6)
    many = selection._thresholds[0] // adaptive_selection.WHOLE
    rows = [{"u": unit, "a": "p", "b": 1, "x": 1.0} for unit in range(many)]
    rows += [{"u": unit, "a": "qrstv"[unit % 5], "b": 1, "x": 1.0} for unit in range(1000, 1030)]
    return [*rows, {"u": 999, "a": "p", "b": 1, "x": 1.0}], rows, selection


def spent(monkeypatch, planted=None):
    """What differs outside the noise, and the rho of both rounds, with noise frozen draw by draw."""
    left, right, selection = at_the_threshold()
    if planted is not None:
        monkeypatch.setattr(answering, "select_in_rounds", planted)
    text = QUERIES["one key"][0]
    tape = record(lambda: seen(left, "add-remove", text), inside=True)
    other = replay(lambda: seen(right, "add-remove", text), tape, inside=True)
    if other.findings:
        return other.findings, None, selection
    rounds = [index for index, meeting in enumerate(tape.meetings) if meeting.name == "add_gaussian"][:2]
    for each in (tape, other):
        each.meetings[:] = [each.meetings[index] for index in rounds]
    return [], lost(tape, other)[1], selection


def test_both_rounds_lose_what_they_say(monkeypatch):
    findings, rho, selection = spent(monkeypatch)
    assert findings == []
    assert 0 < rho <= selection.rho


def _turned_by_exact_weights(read, selection):
    """Units turn from the groups whose weights, not noisy ones, are large."""

    def exactly(spread):
        if spread.without is None:
            return read(spread)
        reading = read(Spread(spread.steps, ()))
        large = [w > selection._thresholds[0] for w in reading.weights]
        kept = [place for place, one in enumerate(large) if not one]
        return replace(
            reading,
            groups=tuple(reading.groups[place] for place in kept),
            weights=reading.weights[kept] * (2 if any(large) else 1),
        )

    return noise.select_in_rounds(exactly, selection)


def test_turning_by_what_was_not_shown_is_noticed(monkeypatch):
    findings, rho, selection = spent(monkeypatch, _turned_by_exact_weights)
    assert findings or rho > selection.rho


def test_a_table_prepared_for_the_grouping_is_weighed_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(adaptive_selection, "with_gaussian", lambda numbers, _: numbers)
    (text, keys, passes), rows = QUERIES["two keys"], some_rows("two keys")
    with opened(rows) as session:
        table = session.tables["t"]
    path = prepare(table, tmp_path / "t.duckdb", group_by=("a", "b")).path
    with sf.Session(replace(table, source=path), budget=sf.Budget(10**6, Fraction(9, 10))) as session:
        release = session.sql(text).release(epsilon=PRICE, delta=DELTA)
    assert release.quote.measured.bounding.name == "grouped"
    first, second = slowly(release.quote.selection, groups_of_units(rows, keys, passes), ({}, {}))
    shown = set(zip(*(release.table[key].to_pylist() for key in keys), strict=True))
    assert shown == first | second
    assert second - first


def test_a_debit_pays_for_one_reading_in_each_round():
    with opened(some_rows("reads")) as session:
        asked = session.sql(QUERIES["one key"][0])
        quote = asked.quote(epsilon=PRICE, delta=DELTA)
        questions, vault = quote.recipe.questions, session.vault

        def probed(right):
            first = vault.read(questions, right, spread=quote.spread)
            second = vault.read(questions, right, spread=Spread(quote.spread.steps, (("p",), (ODD,))))
            assert ("p",) in first.groups
            assert ("p",) not in second.groups
            assert (ODD,) in second.groups  # it cannot be named, and keeps its weight
            assert second.columns == ()
            for spread in (quote.spread, None, Spread(quote.spread.steps, ())):
                with pytest.raises(AccessDenied, match="used before"):
                    vault.read(questions, right, spread=spread)
            raise KeyError("enough")

        with pytest.raises(KeyError, match="enough"):
            session.buy(replace(asked.purchase(quote), answer=probed))
        assert session.balance().spent == PRICE
        session.sql(QUERIES["one key"][0]).release(epsilon=PRICE, delta=DELTA)
        assert session.balance().spent == 2 * PRICE


@pytest.mark.parametrize("profile", [None, True])
def test_answers_are_kept_without_counts_and_serve_what_needs_none(profile):
    text, price = QUERIES["one key"][0], {"epsilon": PRICE, "delta": DELTA, "profile": profile}
    with opened(some_rows("kept")) as session, seeded("kept"):
        release = session.sql(text).release(**price)
        again = session.sql(text).release(**price)
        both = text.replace("SUM(x) AS s", "SUM(x) AS s, COUNT(DISTINCT u) AS n")
        counted = session.sql(both).release(**price)
        after = session.sql(text).release(**price)
    assert not release.free
    assert again.free
    assert again.table.equals(release.table)
    assert not counted.free  # it shows the numbers of units, which were not measured before
    assert after.free
    assert release._answer.units is None
    back = Answer.from_bytes(release._answer.to_bytes())
    assert back.units is None
    assert back.to_bytes() == release._answer.to_bytes()
    assert release.interval(0.9, kind="noise").num_rows == release.table.num_rows


def test_answers_of_one_round_stay_free(monkeypatch):
    text = QUERIES["one key"][0]
    right = bundle.selection_of
    with opened(some_rows("earlier")) as session:
        with monkeypatch.context() as before:
            before.setattr(bundle, "selection_of", lambda *a, rounds, **more: right(*a, **more))
            earlier = session.sql(text).release(epsilon=PRICE, delta=DELTA)
        session.texts = Texts(session.tables)  # as a later process, which has kept no quote
        again = session.sql(text).release(epsilon=PRICE, delta=DELTA)
    assert not isinstance(earlier.quote.selection, sf.AdaptiveSelection)
    assert isinstance(again.quote.selection, sf.AdaptiveSelection)
    assert again.free
    assert again.table.equals(earlier.table)
    assert again.quote.fingerprint == earlier.quote.fingerprint
    assert again.quote.estimands == earlier.quote.estimands
    assert again.quote.loss == earlier.quote.loss


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, COUNT(DISTINCT u) AS n FROM t GROUP BY a",
        "SELECT a, b, SUM(x) AS s FROM t GROUP BY ROLLUP (a, b)",
        "SELECT a, SUM(x) AS s FROM t WHERE a IN ('p', 'q') GROUP BY a",
    ],
)
def test_counts_levels_and_public_keys_are_asked_as_before(text):
    with opened([]) as session:
        quote = session.sql(text).quote(epsilon=PRICE, delta=DELTA)
        assert not isinstance(quote.selection, sf.AdaptiveSelection)
        assert quote.spread is None


def test_the_quote_says_how_units_weigh():
    with opened([]) as session:
        quote = session.sql(QUERIES["one key"][0]).quote(epsilon=PRICE, delta=DELTA)
    alone, all_six = quote.selection.least("0.999", degree=1), quote.selection.least("0.999")
    assert f"{alone} units in one group each, and for {all_six} in 6 each" in " ".join(quote.notes)
    assert quote.measurements[-1].noise == f"kept above {quote.selection.threshold:.5g}"
