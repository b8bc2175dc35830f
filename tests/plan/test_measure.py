import itertools
import math
from fractions import Fraction

import pytest

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.tree import Column, call, literal
from sfumato.plan.prices.recipe import measured_of, recipe
from sfumato.plan.questions.nodes import (
    Aggregate,
    AggregateCall,
    Key,
    Measurement,
    Output,
    Report,
    Scan,
    Where,
)
from sfumato.plan.questions.relations import as_rows
from sfumato.plan.questions.sensitivity import WEIGHT, Sensitivity, sensitivities, sensitivity, step
from sfumato.schema import Bool, Date, Enum, Float, Int, PrivacyUnit, PrivateTable, Text

OUTSIDE = -1  # a key that is not listed
A, B = Column("a"), Column("b")


def table(unit=None, **settings):
    schema = {
        "a": Float(0, 200),
        "b": Int(-5, 10, nullable=False),
        "sym": Float(-1, 1),
        "city": Enum("Lyon", "Nice", "Metz"),
        "sex": Enum("F", "M"),
        "open": Float(),
        "note": Text(),
        "day": Date("2020-01-01", "2020-12-31"),
        "ok": Bool(),
    }
    return PrivateTable("t", source=None, unit=unit or PrivacyUnit.row(), schema=schema, **settings)


def report(*aggregates, keys=(), where=None, combinations=None):
    child = Scan("t") if where is None else Where(Scan("t"), where)
    node = Aggregate(child, tuple(keys), tuple(aggregates), combinations)
    columns = tuple(Output(f"c{i}", Column(f"a{i}")) for i in range(len(aggregates)))
    return Report(node, columns)


COUNT = AggregateCall("count")
CITY = Key(Column("city"), ("Lyon", "Nice", "Metz"))
SEX = Key(Column("sex"), ("F", "M"))


# ── sensitivities, by brute force over everything that one unit can have ──


def contribution(rows, measurement, unit, groups, keyed):
    """What one unit adds to each group: clamps and weights as the statement applies them."""
    added = [0] * groups
    counted = [(group, value) for group, value in rows if group != OUTSIDE]
    if not counted:
        return tuple(added)
    if measurement.kind == "units":
        present = {group for group, _ in counted}
        for group in present:
            size = WEIGHT * unit.max_groups // max(len(present), unit.max_groups)
            added[group] += size if keyed else 1
        return tuple(added)
    weight = 1 if unit.column is None else WEIGHT * unit.max_rows // max(len(counted), unit.max_rows)
    for group, value in counted:
        if measurement.kind == "rows":
            added[group] += weight
        elif value is not None:
            held = (
                1 if measurement.kind == "present" else min(max(value, measurement.lower), measurement.upper)
            )
            added[group] += weight * held
    return tuple(added)


def all_contributions(measurement, unit, groups, keyed):
    row = list(itertools.product([*range(groups), OUTSIDE], [None, -99, 0, 99]))
    sizes = [1] if unit.column is None else range(4)
    lists = itertools.chain.from_iterable(itertools.combinations_with_replacement(row, n) for n in sizes)
    return {contribution(rows, measurement, unit, groups, keyed) for rows in lists}


def attained(measurement, unit, groups, keyed):
    found = all_contributions(measurement, unit, groups, keyed)
    if unit.adjacency == "add-remove":
        changes = found
    else:
        changes = {tuple(x - y for x, y in zip(one, other, strict=True)) for one in found for other in found}
    l1 = max(sum(abs(x) for x in change) for change in changes)
    return l1, max(sum(x * x for x in change) for change in changes)


MEASUREMENTS = {
    "rows": Measurement("rows"),
    "present": Measurement("present", A),
    "positive": Measurement("sum", A, 0, 3),
    "away from zero": Measurement("sum", A, 2, 3),
    "negative": Measurement("sum", A, -3, -1),
    "both signs": Measurement("sum", A, -2, 3),
    "symmetric": Measurement("sum", A, -3, 3),
    "units": Measurement("units"),
}


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
@pytest.mark.parametrize(("groups", "keyed"), [(1, False), (1, True), (3, True)])
@pytest.mark.parametrize("name", MEASUREMENTS)
def test_sensitivities_are_attained_and_never_exceeded(name, groups, keyed, adjacency):
    measurement = MEASUREMENTS[name]
    units = [
        PrivacyUnit("u", max_groups=k, max_rows=m, adjacency=adjacency)
        for k, m in ((1, 1), (2, 2), (2, 1), (1, 3))
    ]
    if measurement.kind != "units":
        units.append(PrivacyUnit.row(adjacency=adjacency))
    for unit in units:
        claimed = sensitivity(measurement, unit, groups=groups, keyed=keyed)
        assert (claimed.l1, claimed.l2_squared) == attained(measurement, unit, groups, keyed), unit


def test_l2_is_the_root_rounded_up():
    assert Sensitivity(2, 2).l2 ** 2 > 2
    assert Sensitivity(2, 2).l2 ** 2 - 2 < Fraction(1, 2**60)
    assert Sensitivity(6, 36).l2 == 6


def test_a_histogram_costs_one_or_two_in_l1_and_one_or_root_two_in_l2():
    for adjacency, l1, l2_squared in (("add-remove", 1, 1), ("exchange", 2, 2)):
        asked = measured_of(report(COUNT, keys=[CITY]), table(PrivacyUnit.row(adjacency=adjacency)))
        assert sensitivities(asked) == (Sensitivity(l1, l2_squared),)


def test_k_counts_over_the_same_rows_cost_k_in_l1_and_root_k_in_l2():
    counts = [AggregateCall("count", Column(name)) for name in ("a", "sym", "city", "sex", "open")]
    found = sensitivities(measured_of(report(*counts), table()))
    assert sum(each.l1 for each in found) == 5
    assert sum(each.l2_squared for each in found) == 5


def test_an_integer_is_worth_its_bits_and_its_weight():
    user = PrivacyUnit("u")
    assert step(Measurement("rows"), PrivacyUnit.row()) == 1
    assert step(Measurement("sum", A, 0, 1, 7, False), PrivacyUnit.row()) == Fraction(1, 128)
    assert step(Measurement("rows"), user) == Fraction(1, WEIGHT)
    assert step(Measurement("sum", A, 0, 1, 1, False), user) == Fraction(1, 2 * WEIGHT)
    assert step(Measurement("units"), user) == Fraction(1, WEIGHT)
    assert step(Measurement("units"), user, keyed=False) == 1


# ── the normal form of a question ──


def test_order_of_keys_values_and_aggregates_is_no_part_of_the_question():
    mean, total = AggregateCall("mean", A), AggregateCall("sum", B)
    backwards = Key(Column("city"), ("Metz", "Nice", "Lyon"))
    one = measured_of(report(COUNT, mean, total, keys=[CITY, SEX]), table())
    other = measured_of(report(total, mean, COUNT, COUNT, keys=[SEX, backwards]), table())
    assert one.fingerprint == other.fingerprint
    assert one == measured_of(report(COUNT, total, mean, keys=[CITY, SEX]), table())


def test_neither_order_nor_repetition_changes_how_things_are_measured():
    calls = [COUNT, *(AggregateCall(name, each) for name in ("sum", "mean") for each in (A, B))]
    found = {
        measured_of(report(*order, *again), table()).fingerprint
        for order in itertools.permutations(calls)
        for again in ((), (COUNT, COUNT), (calls[1],) * 3)
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    "other",
    [
        report(COUNT, keys=[SEX]),
        report(COUNT, AggregateCall("mean", A), keys=[CITY]),
        report(COUNT, keys=[Key(Column("city"), ("Lyon", "Nice"))]),
        report(COUNT, keys=[CITY], where=call("greater", B, literal(0))),
        report(COUNT, keys=[CITY], combinations=(("Lyon",),)),
    ],
)
def test_another_question_has_another_fingerprint(other):
    assert (
        measured_of(other, table()).fingerprint
        != measured_of(report(COUNT, keys=[CITY]), table()).fingerprint
    )


def test_version_and_unit_are_part_of_the_question():
    asked = report(COUNT, keys=[CITY])
    tables = (table(), table(version="2"), table(PrivacyUnit("u")), table(PrivacyUnit("u", max_groups=2)))
    assert len({measured_of(asked, each).fingerprint for each in tables}) == 4


def test_the_report_finds_its_own_keys_and_rows_again():
    city = Key(Column("city"), ("Nice", "Lyon"))
    found = recipe(report(COUNT, keys=[SEX, city]), table())
    keys, rows = found.measured.keys, found.measured.combinations
    assert [keys[i].expression for i in found.key_order] == [Column("sex"), Column("city")]
    shown = [tuple(rows[place][i] for i in found.key_order) for place in found.row_order]
    assert shown == list(itertools.product(("F", "M"), ("Nice", "Lyon")))
    assert rows == tuple(sorted(rows))


def test_three_keys_find_their_places():
    keys = [Key(Column(name), (0, 1)) for name in ("sex", "b", "city")]
    found = recipe(report(COUNT, keys=keys), table())
    assert [found.measured.keys[i] for i in found.key_order] == keys
    assert found.key_order == (2, 0, 1)


def test_listed_combinations_are_kept_and_a_repeated_one_is_measured_once():
    listed = (("Nice", "F"), ("Lyon", "M"), ("Nice", "F"))
    found = recipe(report(COUNT, keys=[CITY, SEX], combinations=listed), table())
    assert sorted(found.measured.combinations) == [("Lyon", "M"), ("Nice", "F")]
    assert [found.measured.combinations[place] for place in found.row_order] == list(listed)


def test_equal_keys_of_different_types_are_one_group():
    found = recipe(report(COUNT, keys=[Key(B, (0, 1, 1.0, True))]), table())
    assert found.measured.combinations == ((0,), (1,))
    assert found.row_order == (0, 1, 1, 1)


def test_values_of_several_types_have_one_order():
    one = measured_of(report(COUNT, keys=[Key(B, (None, "x", 3))]), table())
    other = measured_of(report(COUNT, keys=[Key(B, (3, None, "x"))]), table())
    assert one.combinations == other.combinations
    assert set(one.combinations) == {(None,), ("x",), (3,)}


def test_nan_is_no_key():
    with pytest.raises(QueryRefused, match="NaN"):
        recipe(report(COUNT, keys=[Key(A, (1.0, math.nan))]), table())


def test_too_many_groups_are_refused():
    keys = [Key(Column(name), tuple(range(1001))) for name in ("city", "sex")]
    with pytest.raises(QueryRefused, match="1,002,001 groups"):
        recipe(report(COUNT, keys=keys), table())


def test_nothing_to_measure_is_refused():
    with pytest.raises(QueryRefused, match="aggregate"):
        recipe(report(), table())


# ── sharing measurements ──


def kinds(found):
    return sorted(each.kind for each in found.measured.measurements)


def test_an_average_shares_the_row_count_where_nothing_can_be_missing():
    assert kinds(recipe(report(COUNT, AggregateCall("mean", B)), table())) == ["rows", "sum"]
    assert kinds(recipe(report(COUNT, AggregateCall("mean", A)), table())) == ["present", "rows", "sum"]
    present = call("not", call("is_null", A))
    assert kinds(recipe(report(COUNT, AggregateCall("mean", A), where=present), table())) == ["rows", "sum"]


def test_all_moments_of_one_column_take_three_measurements():
    names = ("mean", "var_samp", "var_pop", "std_samp", "std_pop")
    found = recipe(report(COUNT, *(AggregateCall(name, B) for name in names)), table())
    assert kinds(found) == ["rows", "sum", "sum"]


def test_a_sum_is_measured_directly_alone_and_through_the_centre_beside_a_count_and_an_average():
    alone = recipe(report(AggregateCall("sum", A)), table())
    assert [each.argument for each in alone.measured.measurements] == [A]
    assert alone.aggregates[0].parts == (0,)
    beside = recipe(report(AggregateCall("sum", A), AggregateCall("mean", A)), table())
    assert kinds(beside) == ["present", "sum"]
    assert beside.aggregates[0].parts == beside.aggregates[1].parts
    assert beside.aggregates[0].weights == (1, 100)


def test_a_symmetric_range_needs_no_centre():
    found = recipe(report(AggregateCall("sum", Column("sym")), AggregateCall("mean", Column("sym"))), table())
    assert kinds(found) == ["present", "sum"]
    assert found.aggregates[0].parts == found.aggregates[1].parts[:1]


def test_a_row_unit_counts_its_units_as_rows():
    assert kinds(recipe(report(AggregateCall("count_distinct")), table())) == ["rows"]
    assert kinds(recipe(report(AggregateCall("count_distinct")), table(PrivacyUnit("id")))) == ["units"]
    named = report(AggregateCall("count_distinct", Column("id")))
    assert kinds(recipe(named, table(PrivacyUnit("id")))) == ["units"]


def test_only_units_are_counted_distinctly():
    for unit in (None, PrivacyUnit("id")):
        with pytest.raises(QueryRefused, match="privacy units"):
            recipe(report(AggregateCall("count_distinct", Column("city"))), table(unit))


def test_a_unit_that_could_overflow_sums_of_128_bits_is_refused():
    table = PrivateTable(
        "t",
        source=None,
        unit=PrivacyUnit("u", max_rows=2**20),
        schema={"x": Int(0, 2**53), "y": Int(0, 100)},
    )
    heavy, light = (
        Report(Aggregate(Scan("t"), (), (AggregateCall("sum", Column(name)),)), (Output("s", Column("a0")),))
        for name in "xy"
    )
    with pytest.raises(QueryRefused, match="128 bits"):
        recipe(heavy, table)
    assert recipe(light, table).measured.measurements[0].magnitude == 100


def test_what_rows_hold_is_known_for_each_condition_by_itself() -> None:
    table = PrivateTable("t", source=None, unit=PrivacyUnit.row(), schema={"x": Int(0, 100)})
    rows = as_rows(table)
    conditions = [call("less", Column("x"), literal(end)) for end in (10, 50, 10)]
    assert [rows.where(each)["x"].upper for each in (*conditions, *conditions)] == [9, 49, 9] * 2
    assert rows.where(None)["x"].upper == rows.columns["x"].upper == 100
