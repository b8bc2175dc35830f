"""sfumato.toml for several tables: owners that are named in another one, and tables about no one."""

import pytest

from sfumato.catalog import Catalog, DraftTable, draft
from sfumato.errors import CatalogUnusable
from sfumato.schema import Enum, Int, PrivacyUnit


def read(folder, text):
    (folder / "sfumato.toml").write_text(text, encoding="utf-8")
    return Catalog.read(folder / "sfumato.toml", environ={})


LINKED = """
[datasets.shop]
epsilon = 1

[tables.lineitem]
source = "l.parquet"
unit = { via = "orders", on = { l_orderkey = "o_orderkey" }, max_groups = 3, max_rows = 5 }
columns = { l_orderkey = "int", price = { type = "float", lower = 0, upper = 9 } }

[tables.orders]
source = "o.parquet"
unit = { via = "customer", on = "custkey" }
max_groups = 2
columns = { o_orderkey = "int", custkey = "int" }

[tables.customer]
source = "c.parquet"
unit = "custkey"
dataset = "shop"
columns = { custkey = "int", regionkey = "int" }

[tables.region]
public = true
source = "r.csv"
key = "regionkey"
version = 3
columns = { regionkey = "int", name = { type = "enum", values = ["N", "S"], role = "plain" } }

[tables.calendar]
public = true
source = "d.csv"
key = ["year", "week"]
columns = { year = "int", week = "int" }
"""


def test_owners_in_other_tables_and_public_tables_are_read(tmp_path):
    catalog = read(tmp_path, LINKED)
    lineitem, orders, customer = catalog.tables
    assert lineitem.unit == PrivacyUnit.via(
        "orders", on={"l_orderkey": "o_orderkey"}, max_groups=3, max_rows=5
    )
    assert orders.unit == PrivacyUnit.via("customer", on={"custkey": "custkey"}, max_groups=2)
    assert customer.unit == PrivacyUnit("custkey")
    # The budget is the owner's, and so every table of it is opened with it.
    assert {table.dataset for table in catalog.tables} == {"shop"}
    assert catalog.members("shop") == catalog.tables
    region, calendar = catalog.public
    assert (region.name, region.key, region.version) == ("region", ("regionkey",), "3")
    assert region.source == str(tmp_path / "r.csv")
    assert region.schema == {"regionkey": Int(), "name": Enum("N", "S")}
    assert calendar.key == ("year", "week")
    assert catalog.roles["region"]["name"] == "plain"
    assert read(tmp_path, LINKED.replace('key = "regionkey"\n', "")).public[0].key == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('via = "orders"', 'via = "order"'), r"tables\.lineitem: .* via 'order', which is not a table"),
        (('via = "orders"', 'through = "orders"'), r"tables\.lineitem\.unit: there is no setting 'through'"),
        (('via = "customer", ', ""), r"tables\.orders\.unit is a column, \"row\", or the owner"),
        ((', on = "custkey"', ""), r"tables\.orders\.unit is a column"),
        (('on = "custkey"', "on = 3"), r"tables\.orders: on says which column"),
        (('via = "customer"', "via = 3"), r"tables\.orders\.unit: via must be text"),
        (('via = "customer"', 'via = "region"'), "which is public and has no owners"),
        (("max_groups = 2", 'max_groups = 2\ndataset = "other"'), "must share its dataset 'shop'"),
        (('unit = "custkey"', 'unit = "row"'), "whose unit is the row"),
        (('unit = "custkey"', 'unit = "custkey"\nadjacency = "exchange"'), "declare the same for both"),
        ((', on = "custkey" }', ', on = "custkey", max_groups = 2 }'), "max_groups is given twice"),
        (('o_orderkey = "int"', 'o_orderkey = "text"'), "both must be of one kind"),
        (('dataset = "shop"', ""), r"tables\.(lineitem|customer): there is no dataset 'customer'"),
        (("public = true", 'public = "yes"'), r"tables\.region: public is true or false"),
        (("public = true", 'public = true\nunit = "row"'), "unit has no meaning with public = true"),
        (("public = true", "public = true\nmax_groups = 1"), "max_groups has no meaning with public"),
        (("public = true", 'public = false\nunit = "row"'), "key is for a table with public = true"),
        (('key = "regionkey"', "key = 1"), "key is a column or a list of columns"),
        (('key = "regionkey"', 'key = "region"'), "'region' is not a column of the schema"),
        (('source = "r.csv"', ""), "leaves this to decide: source of tables.region"),
        (("public = true", "publik = true"), "Did you mean 'public'"),
    ],
)
def test_mistakes_about_owners_and_public_tables_are_named(tmp_path, change, message):
    assert change[0] in LINKED
    with pytest.raises(CatalogUnusable, match=message):
        read(tmp_path, LINKED.replace(change[0], change[1], 1))


def test_a_file_of_public_tables_alone_has_nothing_to_ask(tmp_path):
    with pytest.raises(CatalogUnusable, match="has no private table"):
        read(tmp_path, LINKED[LINKED.index("[tables.region]") :])


def test_a_fresh_file_of_several_tables_says_how_they_hang_together(tmp_path):
    """What its comments suggest is a catalog once it is written in place of the open decisions."""
    one = DraftTable("orders", "o.parquet", {"customer_id": "integer", "order_id": "integer", "day": "date"})
    two = DraftTable("lines", "l.parquet", {"order_id": "integer", "price": "float"})
    three = DraftTable("regions", "r.parquet", {"region_id": "integer", "title": "text"})
    text = draft([one, two, three], epsilon="1")
    via, *public = (line.removeprefix("#   ") for line in text.splitlines() if line.startswith("#   "))
    for unit in ('unit = "customer_id"', via, "\n".join(public)):  # one table after the other
        text = text.replace('unit = "?"', unit, 1)
    before, regions = text.split("[tables.regions]")
    text = before + "[tables.regions]" + regions.replace('max_rows = "auto"', "")
    catalog = read(
        tmp_path, text.replace("# order_id =", "order_id =").replace("# region_id =", "region_id =")
    )
    assert {table.name: table.dataset for table in catalog.tables} == {"orders": "orders", "lines": "orders"}
    assert catalog.public[0].key == ("region_id",)
