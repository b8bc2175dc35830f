"""What a steward declares: tables, the people in them however far away, and tables about no one."""

import itertools
import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.schema import PrivacyUnit, PrivateTable, PublicTable, dataset_of, owners

KEY = {"k": sf.Int(), "up": sf.Int()}


def linked(name, above, *, schema=KEY, on=None, dataset=None, **unit):
    """A table whose rows point with `up` to the key `k` of the table above."""
    unit = PrivacyUnit.via(above, on=on or {"up": "k"}, **unit)
    return PrivateTable(name, source="x", unit=unit, schema=schema, dataset=dataset)


CUSTOMER = PrivateTable("customer", source="c", unit=PrivacyUnit("k"), schema=KEY, dataset="shop")
ORDERS = linked("orders", "customer", max_groups=2)
LINES = linked("lines", "orders", max_groups=3, max_rows=9)
SHOP = (LINES, ORDERS, CUSTOMER)


# --- units -----------------------------------------------------------------------------------------------


def test_units_of_old_are_written_down_as_ever():
    # Ledgers and fingerprints of questions keep these: a changed form would be another declaration.
    assert PrivacyUnit("u", max_groups=3, max_rows=5).to_dict() == {
        "column": "u",
        "max_groups": 3,
        "max_rows": 5,
        "adjacency": "add-remove",
    }
    assert PrivacyUnit.row(adjacency="exchange").to_dict() == {
        "column": None,
        "max_groups": 1,
        "max_rows": 1,
        "adjacency": "exchange",
    }
    assert list(PrivacyUnit("u").to_dict()) == ["column", "max_groups", "max_rows", "adjacency"]
    assert (
        repr(PrivacyUnit("u")) == "PrivacyUnit(column='u', max_groups=1, max_rows=1, adjacency='add-remove')"
    )


UNITS = st.one_of(
    st.builds(PrivacyUnit.row, adjacency=st.sampled_from(["add-remove", "exchange"])),
    st.builds(PrivacyUnit, st.text(min_size=1), max_groups=st.integers(1, 9), max_rows=st.integers(1, 9)),
    st.builds(
        PrivacyUnit.via,
        st.text(min_size=1),
        on=st.dictionaries(st.sampled_from("abc"), st.just("x"), min_size=1, max_size=1),
        max_groups=st.integers(1, 9),
        max_rows=st.none() | st.integers(1, 9),
        adjacency=st.sampled_from(["add-remove", "exchange"]),
    ),
)


@given(UNITS)
def test_a_unit_comes_back_from_plain_data(unit):
    assert PrivacyUnit.from_dict(unit.to_dict()) == unit
    assert PrivacyUnit.from_dict(json.loads(json.dumps(unit.to_dict()))) == unit
    assert hash(PrivacyUnit.from_dict(unit.to_dict())) == hash(unit)  # questions carry it


def test_a_unit_via_a_table_is_neither_a_row_nor_a_column_of_its_table():
    unit = PrivacyUnit.via("orders", on={"l_orderkey": "o_orderkey"}, max_groups=3)
    assert (unit.is_row, unit.is_via, unit.table) == (False, True, "orders")
    assert unit.on == (("l_orderkey", "o_orderkey"),)
    assert (unit.column, str(unit)) == ("owner in orders", "one owner in orders")
    assert (unit.max_groups, unit.max_rows) == (3, 3)
    assert (PrivacyUnit.row().is_row, PrivacyUnit("u").is_row) == (True, False)
    assert (PrivacyUnit.row().is_via, PrivacyUnit("u").is_via) == (False, False)
    with pytest.raises(InvalidParameter, match="kept for the unit"):
        PrivateTable("t", source="x", unit=unit, schema={"Owner in Orders": sf.Int()})


def test_the_order_in_which_pointers_are_written_means_nothing():
    one = PrivacyUnit.via("orders", on={"b": "y", "a": "x"})
    assert one == PrivacyUnit.via("orders", on=[("a", "x"), ("b", "y")])
    assert PrivacyUnit.via("orders", on="id").on == (("id", "id"),)


@pytest.mark.parametrize(
    "on", [{}, "", [], 3, {"a": 1}, {"": "b"}, ["ab"], [("a", "b", "c")], [("a",)], None]
)
def test_a_pointer_names_columns(on):
    with pytest.raises(InvalidParameter, match="which column here equals which there"):
        PrivacyUnit.via("orders", on=on)


def test_a_pointer_names_each_column_once():
    for on in ([("a", "x"), ("b", "X")], [("a", "x"), ("A", "y")]):
        with pytest.raises(InvalidParameter, match="given twice"):
            PrivacyUnit.via("orders", on=on)
    with pytest.raises(InvalidParameter, match="takes the name of a table"):
        PrivacyUnit.via("", on="a")
    with pytest.raises(InvalidParameter, match="max_groups"):
        PrivacyUnit.via("orders", on="a", max_groups=0)
    with pytest.raises(InvalidParameter, match="adjacency is"):
        PrivacyUnit.via("orders", on="a", adjacency="both")


# --- owners ----------------------------------------------------------------------------------------------


def test_the_chain_leads_from_a_table_to_the_one_that_names_the_people():
    assert owners(LINES, SHOP) == (LINES, ORDERS, CUSTOMER)
    assert owners(LINES, {each.name: each for each in SHOP}) == (LINES, ORDERS, CUSTOMER)
    assert owners(CUSTOMER, SHOP) == (CUSTOMER,)
    row = PrivateTable("r", source="x", unit=PrivacyUnit.row(), schema=KEY)
    assert owners(row, ()) == (row,)


def test_five_tables_deep():
    tables = [CUSTOMER]
    for name in ("orders", "lines", "parcels", "trips", "stops"):
        tables.append(linked(name, tables[-1].name))
    assert [each.name for each in owners(tables[-1], reversed(tables))] == [
        each.name for each in reversed(tables)
    ]
    assert dataset_of(tables[-1], tables) == "shop"


REGIONS = PublicTable("regions", source="x", schema={"k": sf.Int(), "name": sf.Text()}, key="k")


@pytest.mark.parametrize(
    ("table", "others", "message"),
    [
        (LINES, [CUSTOMER], r"unit of lines is via 'orders', which is not a table\. Tables: customer\."),
        (LINES, [], r"via 'orders', which is not a table\.$"),
        (linked("a", "regions"), [REGIONS], "regions, which is public and has no owners"),
        (linked("a", "a"), [linked("a", "a")], "circle: a → a"),
        (linked("a", "b"), [linked("b", "c"), linked("c", "b")], "circle: a → b → c → b"),
        (
            linked("orders", "customer", on={"owner": "k"}),
            SHOP,
            "on owner = k, but the schema of orders has no column 'owner'; declare it",
        ),
        (
            linked("orders", "customer", on={"up": "id"}),
            SHOP,
            "on up = id, but the schema of customer has no column 'id'",
        ),
        (
            linked("orders", "customer", schema={"up": sf.Text()}),
            SHOP,
            r"on up \(text\) = k \(integer\); both must be of one kind",
        ),
        (
            linked("orders", "f", schema={"up": sf.Float()}),
            [PrivateTable("f", source="x", unit=PrivacyUnit("k"), schema={"k": sf.Float()})],
            "not floats",
        ),
        (
            linked("orders", "f"),
            [PrivateTable("f", source="x", unit=PrivacyUnit.row(), schema=KEY)],
            r'f, whose unit is the row; name the column of its ids instead: PrivacyUnit\("k"\)',
        ),
        (
            linked("orders", "customer", adjacency="exchange"),
            SHOP,
            "orders has adjacency 'exchange' and its owner customer 'add-remove'",
        ),
    ],
)
def test_a_chain_that_leads_nowhere_says_where_it_breaks(table, others, message):
    with pytest.raises(InvalidParameter, match=message):
        owners(table, others)


def test_kinds_are_what_is_compared_not_bounds():
    text = PrivateTable("c", source="x", unit=PrivacyUnit("k"), schema={"k": sf.Enum("a", "b")})
    assert owners(linked("o", "c", schema={"up": sf.Text()}), [text])[-1] is text


ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=5)


def pairs_of(rows):
    """Whom each row of `lines` belongs to, by the rule that `owners` claims: every id that it reaches."""
    chain = owners(LINES, SHOP)
    reached = [(index, row) for index, row in enumerate(rows["lines"])]
    for table, above in itertools.pairwise(chain):
        columns, there = list(table.schema), list(above.schema)
        reached = [
            (index, target)
            for index, row in reached
            for target in rows[above.name]
            if all(row[columns.index(a)] == target[there.index(b)] for a, b in table.unit.on)
        ]
    unit = list(chain[-1].schema).index(chain[-1].unit.column)
    return Counter((row[unit], rows["lines"][index]) for index, row in reached)


@given(st.fixed_dictionaries({"lines": ROWS, "orders": ROWS, "customer": ROWS}), st.integers(0, 2))
def test_what_one_owner_changes_is_the_pairs_of_that_owner(rows, who):
    # Removing a customer, with or without the orders and lines that nobody else reaches, changes no other's.
    before = pairs_of(rows)
    gone = {**rows, "customer": [row for row in rows["customer"] if row[0] != who]}
    kept = {row for owner, row in pairs_of(gone)}
    cleared = {
        **gone,
        "orders": [row for row in rows["orders"] if row[1] != who],
        "lines": [row for row in rows["lines"] if row in kept],
    }
    others = Counter({pair: count for pair, count in before.items() if pair[0] != who})
    assert pairs_of(gone) == others
    assert pairs_of(cleared) == others


def test_tables_of_one_owner_draw_on_one_budget():
    assert {dataset_of(each, SHOP) for each in SHOP} == {"shop"}
    alone = PrivateTable("visits", source="x", unit=PrivacyUnit("u"), schema=KEY)
    assert dataset_of(alone, SHOP) == "visits"
    assert dataset_of(linked("orders", "customer", dataset="shop"), SHOP) == "shop"
    stray = linked("orders", "customer", dataset="elsewhere")
    for table in (stray, LINES):
        with pytest.raises(InvalidParameter, match="orders is about the owners in customer and must share"):
            dataset_of(table, (LINES, stray, CUSTOMER))


def test_a_unit_via_a_table_is_another_declaration():
    plain = PrivateTable("lines", source="x", unit=PrivacyUnit("up", max_groups=3, max_rows=9), schema=KEY)
    assert set(plain.declaration()["unit"]) == {"column", "max_groups", "max_rows", "adjacency"}
    assert LINES.declaration()["unit"] == plain.declaration()["unit"] | {
        "column": "owner in orders",
        "table": "orders",
        "on": (("up", "k"),),
    }


# --- public tables ---------------------------------------------------------------------------------------


def test_a_public_table_declares_columns_and_a_key():
    assert REGIONS.key == ("k",)
    assert REGIONS.declaration() == {
        "table": "regions",
        "public": True,
        "schema": {"k": sf.Int().to_dict(), "name": sf.Text().to_dict()},
        "key": ["k"],
        "version": "1",
    }
    two = sf.PublicTable("r", source="x", schema=REGIONS.schema, key=("name", "k"), version=2)
    assert (two.key, two.version) == (("name", "k"), "2")
    assert sf.PublicTable("r", source="x", schema=REGIONS.schema).key == ()
    assert not hasattr(REGIONS, "unit")
    assert not hasattr(REGIONS, "dataset")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "two words"}, "A table's name is made of"),
        ({"key": "id"}, "'id' is not a column of the schema"),
        ({"key": ()}, "each once"),
        ({"key": ("k", "k")}, "each once"),
        ({"key": "share"}, "is a float"),
        ({"schema": {"k": int}}, "needs a type"),
        ({"schema": {"k": sf.Int(), "K": sf.Int()}}, "only in upper and lower case"),
        ({"schema": {"": sf.Int()}}, "must be text"),
    ],
)
def test_a_public_table_keeps_the_rules_of_names(changed, message):
    given = {"name": "r", "source": "x", "schema": {"k": sf.Int(), "share": sf.Float()}, **changed}
    with pytest.raises(InvalidParameter, match=message):
        PublicTable(given.pop("name"), **given)


def test_no_description_of_a_table_shows_a_row():
    pa = pytest.importorskip("pyarrow")
    rows = pa.table({"k": [424242]})
    for table in (
        PrivateTable("t", source=rows, unit=PrivacyUnit("k"), schema={"k": sf.Int()}),
        PublicTable("t", source=rows, schema={"k": sf.Int()}, key="k"),
    ):
        assert "424242" not in repr(table) + json.dumps(table.declaration())
        assert "<Table>" in repr(table)
