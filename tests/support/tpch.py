"""Data like that of TPC-H, small and seeded: customers are the units, suppliers and parts are public."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    *(("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0)),
    *(("FRANCE", 3), ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2)),
    *(("JORDAN", 4), ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2)),
    *(("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3)),
    ("UNITED STATES", 1),
)
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
MODES = ("AIR", "AIR REG", "FOB", "MAIL", "RAIL", "SHIP", "TRUCK")
INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
COLOURS = ("almond", "azure", "blue", "forest", "green", "ivory", "navy", "peru", "rose", "white")
NOTES = ("carefully final", "special packages requests", "quickly ironic", "special deposits", "requests nag")

FIRST, LAST = np.datetime64("1992-01-01"), np.datetime64("1998-08-02")
TODAY = np.datetime64("1995-06-17")
MANY = 160
"""So many orders and lines that no customer here has more: nothing is weighted down."""

Rows = dict[str, pa.Table]


def tpch(customers: int = 300, seed: int = 22) -> Rows:
    """The eight tables by name; a third of the customers never order, the others about ten times."""
    draw = np.random.default_rng(seed)
    suppliers, parts = 40, 120
    made = {
        "region": pa.table({"r_regionkey": range(5), "r_name": REGIONS}),
        "nation": pa.table(
            {
                "n_nationkey": range(25),
                "n_name": [name for name, _ in NATIONS],
                "n_regionkey": [region for _, region in NATIONS],
            }
        ),
        "supplier": _supplier(draw, suppliers),
        "part": _part(draw, parts),
        "partsupp": _partsupp(draw, parts, suppliers),
        "customer": _customer(draw, customers),
    }
    orders = _orders(draw, customers)
    made["lineitem"] = _lineitem(draw, orders, made["part"], suppliers)
    return made | {"orders": pa.table(orders)}


def _cents(values: np.ndarray) -> np.ndarray:
    return np.round(values, 2)


def _supplier(draw: np.random.Generator, count: int) -> pa.Table:
    keys = np.arange(1, count + 1)
    return pa.table(
        {
            "s_suppkey": keys,
            "s_name": [f"Supplier#{key:09d}" for key in keys],
            "s_nationkey": keys % 25,
            "s_acctbal": _cents(draw.uniform(-999.99, 9999.99, count)),
            "s_comment": ["Customer Complaints" if key % 13 == 0 else "fluffily even" for key in keys],
        }
    )


def _part(draw: np.random.Generator, count: int) -> pa.Table:
    keys = np.arange(1, count + 1)
    finish = draw.choice(["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"], count)
    coat = draw.choice(["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"], count)
    metal = draw.choice(["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"], count)
    names = [" ".join(draw.choice(COLOURS, 3, replace=False)) for _ in keys]
    return pa.table(
        {
            "p_partkey": keys,
            "p_name": names,
            "p_mfgr": [f"Manufacturer#{1 + key % 5}" for key in keys],
            "p_brand": draw.choice(["Brand#12", "Brand#23", "Brand#34", "Brand#45"], count),
            "p_type": [" ".join(each) for each in zip(finish, coat, metal, strict=True)],
            "p_size": draw.integers(1, 51, count),
            "p_container": [
                " ".join(each)
                for each in zip(
                    draw.choice(["SM", "MED", "LG"], count),
                    draw.choice(["CASE", "BOX", "PACK", "BAG"], count),
                    strict=True,
                )
            ],
            "p_retailprice": _cents(900 + keys / 10 + 100 * (keys % 10)),
        }
    )


def _suppliers_of(part: np.ndarray, which: np.ndarray, suppliers: int) -> np.ndarray:
    """Four suppliers sell each part."""
    return 1 + (part + which * (suppliers // 4)) % suppliers


def _partsupp(draw: np.random.Generator, parts: int, suppliers: int) -> pa.Table:
    part, which = np.repeat(np.arange(1, parts + 1), 4), np.tile(np.arange(4), parts)
    return pa.table(
        {
            "ps_partkey": part,
            "ps_suppkey": _suppliers_of(part, which, suppliers),
            "ps_availqty": draw.integers(1, 10_000, len(part)),
            "ps_supplycost": _cents(draw.uniform(1, 1000, len(part))),
        }
    )


def _customer(draw: np.random.Generator, count: int) -> pa.Table:
    nation = draw.integers(0, 25, count)
    digits = draw.integers(100, 1000, (count, 2))
    return pa.table(
        {
            "c_custkey": np.arange(1, count + 1),
            "c_name": [f"Customer#{key:09d}" for key in range(1, count + 1)],
            "c_nationkey": nation,
            "c_phone": [f"{10 + n}-{a}-{b}" for n, (a, b) in zip(nation, digits, strict=True)],
            "c_acctbal": _cents(draw.uniform(-999.99, 9999.99, count)),
            "c_mktsegment": draw.choice(SEGMENTS, count),
        }
    )


def _orders(draw: np.random.Generator, customers: int) -> dict[str, Any]:
    buyers = np.arange(1, customers + 1)
    buyers = buyers[buyers % 3 != 0]
    custkey = np.repeat(buyers, draw.integers(1, 20, len(buyers)))
    count = len(custkey)
    return {
        "o_orderkey": 1 + 4 * draw.permutation(count),
        "o_custkey": custkey,
        "o_totalprice": _cents(draw.uniform(900, 400_000, count)),
        "o_orderdate": FIRST + draw.integers(0, (LAST - FIRST).astype(int) + 1, count),
        "o_orderpriority": draw.choice(PRIORITIES, count),
        "o_shippriority": np.zeros(count, dtype=np.int64),
        "o_comment": draw.choice(NOTES, count),
        "o_orderstatus": draw.choice(["F", "O", "P"], count, p=[0.49, 0.49, 0.02]),
    }


def _lineitem(draw: np.random.Generator, orders: dict[str, Any], parts: pa.Table, suppliers: int) -> pa.Table:
    lines = draw.integers(1, 8, len(orders["o_orderkey"]))
    order = np.repeat(np.arange(len(lines)), lines)
    count = len(order)
    ordered = orders["o_orderdate"][order]
    shipped = ordered + draw.integers(1, 122, count)
    due = ordered + draw.integers(30, 91, count)
    received = shipped + draw.integers(1, 31, count)
    part = draw.integers(1, len(parts) + 1, count)
    quantity = draw.integers(1, 51, count)
    returned = np.where(received <= TODAY, draw.choice(["R", "A"], count), "N")
    return pa.table(
        {
            "l_orderkey": orders["o_orderkey"][order],
            "l_partkey": part,
            "l_suppkey": _suppliers_of(part, draw.integers(0, 4, count), suppliers),
            "l_linenumber": np.concatenate([np.arange(1, n + 1) for n in lines]),
            "l_quantity": quantity,
            "l_extendedprice": _cents(quantity * parts["p_retailprice"].to_numpy()[part - 1]),
            "l_discount": draw.integers(0, 11, count) / 100,
            "l_tax": draw.integers(0, 9, count) / 100,
            "l_returnflag": returned,
            "l_linestatus": np.where(shipped > TODAY, "O", "F"),
            "l_shipdate": shipped,
            "l_commitdate": due,
            "l_receiptdate": received,
            "l_shipinstruct": draw.choice(INSTRUCTIONS, count),
            "l_shipmode": draw.choice(MODES, count),
        }
    )


def declared(rows: Rows, *, limit: int = MANY) -> list[sf.PrivateTable | sf.PublicTable]:
    """The eight tables as a steward declares them; a customer has one row, and so many orders and lines."""
    days = sf.Date("1992-01-01", "1998-12-31")
    key = sf.Int()
    customer = sf.PrivateTable(
        "customer",
        source=rows["customer"],
        unit=sf.PrivacyUnit("c_custkey"),
        schema={
            "c_custkey": key,
            "c_name": sf.Text(),
            "c_nationkey": key,
            "c_phone": sf.Text(),
            "c_acctbal": sf.Float(-1_000, 10_000),
            "c_mktsegment": sf.Enum(*SEGMENTS),
        },
    )
    orders = sf.PrivateTable(
        "orders",
        source=rows["orders"],
        unit=sf.PrivacyUnit.via("customer", on={"o_custkey": "c_custkey"}, max_groups=limit),
        schema={
            "o_orderkey": key,
            "o_custkey": key,
            "o_orderstatus": sf.Enum("F", "O", "P"),
            "o_totalprice": sf.Float(0, 500_000),
            "o_orderdate": days,
            "o_orderpriority": sf.Enum(*PRIORITIES),
            "o_shippriority": sf.Int(0, 0),
            "o_comment": sf.Text(),
        },
    )
    lineitem = sf.PrivateTable(
        "lineitem",
        source=rows["lineitem"],
        unit=sf.PrivacyUnit.via("orders", on={"l_orderkey": "o_orderkey"}, max_groups=limit),
        schema={
            "l_orderkey": key,
            "l_partkey": key,
            "l_suppkey": key,
            "l_linenumber": sf.Int(1, 7),
            "l_quantity": sf.Int(1, 50),
            "l_extendedprice": sf.Float(0, 100_000),
            "l_discount": sf.Float(0, "0.1"),
            "l_tax": sf.Float(0, "0.08"),
            "l_returnflag": sf.Enum("A", "N", "R"),
            "l_linestatus": sf.Enum("F", "O"),
            "l_shipdate": days,
            "l_commitdate": days,
            "l_receiptdate": days,
            "l_shipinstruct": sf.Enum(*INSTRUCTIONS),
            "l_shipmode": sf.Enum(*MODES),
        },
    )
    return [customer, orders, lineitem, *_public(rows)]


def _public(rows: Rows) -> list[sf.PublicTable]:
    text, key = sf.Text(), sf.Int()
    parts, suppliers = rows["part"].num_rows, rows["supplier"].num_rows
    schemas: dict[str, tuple[Any, dict[str, Any]]] = {
        "region": ("r_regionkey", {"r_regionkey": key, "r_name": text}),
        "nation": ("n_nationkey", {"n_nationkey": key, "n_name": text, "n_regionkey": key}),
        "supplier": (
            "s_suppkey",
            {
                "s_suppkey": sf.Int(1, suppliers),
                "s_name": text,
                "s_nationkey": key,
                "s_acctbal": sf.Float(-1_000, 10_000),
                "s_comment": text,
            },
        ),
        "part": (
            "p_partkey",
            {
                "p_partkey": sf.Int(1, parts),
                "p_name": text,
                "p_mfgr": text,
                "p_brand": text,
                "p_type": text,
                "p_size": sf.Int(1, 50),
                "p_container": text,
                "p_retailprice": sf.Float(0, 2_500),
            },
        ),
        "partsupp": (
            ["ps_partkey", "ps_suppkey"],
            {
                "ps_partkey": key,
                "ps_suppkey": key,
                "ps_availqty": sf.Int(0, 10_000),
                "ps_supplycost": sf.Float(0, 1_000),
            },
        ),
    }
    return [
        sf.PublicTable(name, source=rows[name], key=unique, schema=schema)
        for name, (unique, schema) in schemas.items()
    ]


def session(rows: Rows, *more: sf.PublicTable, limit: int = MANY, ledger: Any = None) -> sf.Session:
    """A session on the eight tables, and perhaps more, with a budget that tests cannot use up."""
    budget = sf.Budget(epsilon=10**30, delta="0.5")
    return sf.Session(*declared(rows, limit=limit), *more, budget=budget, ledger=ledger)
