"""How a price is shared, and what is debited for its parts."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from quotes import make_quote
from sfumato.errors import QueryRefused
from sfumato.loss import NO_LOSS
from sfumato.plan.prices.bundle import NOTHING, Bundle, fingerprint_of, loss_of
from sfumato.plan.prices.recipe import recipe
from sfumato.sql.read.parse import parse

UNIT = sf.PrivacyUnit("u", max_groups=3, max_rows=6)
AGGREGATES = (
    "COUNT(*)",
    "SUM(x)",
    "AVG(x)",
    "COUNT(DISTINCT u)",
    "MEDIAN(x)",
    "MAX(y)",
    "MIN(x)",
    "COUNT(DISTINCT x)",
)
KEYS = ("", "k", "g", "g, k")


def table_of(unit=UNIT):
    schema = {"k": sf.Enum("a", "b"), "g": sf.Text(), "x": sf.Int(0, 50), "y": sf.Float(0, 1)}
    return sf.PrivateTable("t", source=None, unit=unit, schema=schema)


def report_of(aggregates, keys, *, touched=False, unit=UNIT):
    shown = ", ".join(f"{each} AS a{i}" for i, each in enumerate(aggregates))
    text = f"SELECT {shown} FROM t" + (f" GROUP BY {keys}" if keys else "")
    report = parse(text, {"t": table_of(unit)})
    return replace(report, child=replace(report.child, touched=touched))


questions = st.builds(
    report_of,
    st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=5),
    st.sampled_from(KEYS),
    touched=st.booleans(),
)


@settings(max_examples=40)
@given(questions)
def test_shares_are_a_partition_of_the_price(report):
    bundle = Bundle.of(recipe(report, table_of()))
    assert bundle.main + sum(bundle.extras) + bundle.selection == 1
    assert min((bundle.main, bundle.selection, *bundle.extras)) >= 0
    assert (bundle.main > 0) == bool(bundle.found.measured.measurements)
    assert (bundle.selection > 0) == bundle.found.measured.is_open
    assert all(share > 0 for share in bundle.extras)
    assert bundle.is_plain == (not bundle.found.extras and not bundle.found.measured.is_open)


@given(
    questions,
    st.sampled_from(["laplace", "gaussian"]),
    st.fractions(Fraction(1, 100), 3, max_denominator=100),
)
def test_what_is_debited_is_the_price_exactly(report, mechanism, epsilon):
    delta = Fraction(1, 10**6)
    quote = make_quote(report, table_of(), epsilon=epsilon, delta=delta, mechanism=mechanism)
    uses = quote.selection is not None or (mechanism == "gaussian" and quote.mechanisms)
    assert (quote.epsilon, quote.delta) == (epsilon, delta if uses else 0)
    assert sf.Budget(10, "1e-3").filter().price(quote.loss) == (quote.epsilon, quote.delta)


def test_equal_claims():
    found = Bundle.of(
        recipe(report_of(["SUM(x)", "MEDIAN(x)", "MIN(x)", "COUNT(DISTINCT x)"], "g"), table_of())
    )
    assert (found.main, found.extras, found.selection) == (
        Fraction(1, 5), (Fraction(2, 5), Fraction(1, 5)), Fraction(1, 5),
    )  # fmt: skip
    diagnosed = Bundle.of(recipe(report_of(["SUM(x)"], "k", touched=True), table_of()))
    assert (diagnosed.main, diagnosed.extras) == (Fraction(19, 20), (Fraction(1, 20),))
    reused = Bundle.of(recipe(report_of(["COUNT(DISTINCT u)"], "g"), table_of()))
    assert (reused.main, reused.extras, reused.selection) == (0, (), 1)


def test_a_count_of_rows_is_reused_only_where_a_unit_has_one_row_a_group():
    one = sf.PrivacyUnit("u", max_groups=3)
    assert Bundle.of(recipe(report_of(["COUNT(*)"], "g", unit=one), table_of(one))).selection == 1
    assert Bundle.of(recipe(report_of(["COUNT(*)"], "g"), table_of())).main == Fraction(1, 2)
    row = sf.PrivacyUnit.row()
    assert Bundle.of(recipe(report_of(["COUNT(*)"], "g", unit=row), table_of(row))).selection == 1
    assert Bundle.of(recipe(report_of(["COUNT(x)"], "g", unit=row), table_of(row))).main == Fraction(1, 2)


def test_a_selection_divides_by_the_groups_of_a_unit():
    for unit, groups in ((UNIT, 3), (sf.PrivacyUnit.row(), 1)):
        quote = make_quote(report_of(["SUM(x)"], "g", unit=unit), table_of(unit), epsilon=1, delta="1e-6")
        assert quote.selection.groups == groups
        assert quote.selection.per_group == (Fraction(1, 2 * groups), quote.selection.delta / groups)
    other = sf.PrivacyUnit("u", max_groups=3, adjacency="exchange")
    quote = make_quote(report_of(["SUM(x)"], "g", unit=other), table_of(other), epsilon=1, delta="1e-6")
    assert quote.selection == sf.AdaptiveSelection("0.5", "1e-6", groups=3, exchange=True)
    few = sf.PrivacyUnit("u", max_groups=1, adjacency="exchange")
    quote = make_quote(report_of(["SUM(x)"], "g", unit=few), table_of(few), epsilon=1, delta="1e-6")
    assert quote.selection.per_group[0] == Fraction(1, 4)


def test_groups_need_a_delta_and_errors_cannot_be_wanted():
    with pytest.raises(QueryRefused, match="delta"):
        make_quote(report_of(["SUM(x)"], "g"), table_of(), epsilon=1)
    for aggregates, keys in (
        (["SUM(x)"], "g"),
        (["MEDIAN(x)"], ""),
        (["COUNT(*)", "COUNT(DISTINCT x)"], "k"),
    ):
        with pytest.raises(QueryRefused, match="error"):
            make_quote(report_of(aggregates, keys), table_of(), error=5, delta="1e-6")


def test_the_loss_of_parts():
    quote = make_quote(
        report_of(["SUM(x)", "MEDIAN(x)"], "g"), table_of(), epsilon=1, delta="1e-6", mechanism="laplace"
    )
    assert quote.loss.delta(1) == pytest.approx(1e-6)
    assert loss_of(NOTHING, (), ()) == NO_LOSS
    gate = sf.Budget(10, "1e-3").filter()
    for extras, chosen in (((), quote.selections), (quote.extras, ()), (quote.extras, quote.selections)):
        wanted = sum((each.epsilon for each in (*extras, *chosen)), Fraction(0))
        found = gate.price(loss_of(NOTHING, extras, chosen))
        assert found == (wanted, sum(each.delta for each in chosen))


def test_a_fingerprint_is_of_all_questions_in_order():
    found = recipe(report_of(["SUM(x)", "MEDIAN(x)", "COUNT(DISTINCT x)"], "k"), table_of())
    asked = found.questions
    assert len(asked) == 3
    digests = {
        fingerprint_of(asked),
        fingerprint_of(asked[::-1]),
        fingerprint_of(asked[:2]),
        fingerprint_of(asked[1:]),
    }
    assert len(digests) == 4
    assert fingerprint_of(asked[:1]) == asked[0].fingerprint


@settings(max_examples=40)
@given(questions)
def test_the_order_of_aggregates_and_keys_does_not_matter(report):
    turned = replace(
        report,
        child=replace(report.child, aggregates=report.child.aggregates[::-1], keys=report.child.keys[::-1]),
        columns=(),
    )
    one, other = (fingerprint_of(recipe(each, table_of()).questions) for each in (report, turned))
    assert one == other
