"""What a client may send as a question in Python: calls of a list, and whatever else comes is refused."""

import json
import random

import pytest

import sfumato as sf
from served import client_of, house
from sfumato.errors import QueryRefused, SfumatoError
from sfumato.session.carried.calls import pack_calls, replayed

COUNT = ["agg", [], {"n": {"agg": [["count", [], None]], "of": [["column", "a0"]], "as": None}}]
PATHS = ("/api/session/quote", "/api/session/release")


@pytest.fixture(scope="module")
def place():
    with house(epsilon=1000) as made:
        yield made


def col(*parts, name=None):
    return {"col": [*parts], "as": name}


X = ["column", "amount"]
DEEP = [X, *(["call", "negate", [place]] for place in range(5000))]
WIDE = [X, *(["call", "add", [place, place]] for place in range(60))]
HOSTILE = [
    [],
    [["agg", [], {}]],
    [["__class__", [], {}]],
    [["make", [], {}]],
    [["_asked", [], {}]],
    [["__getattr__", ["table"], {}]],
    [["chosen_rows", [], {}]],
    [["agg", [], {"n": {"agg": [["count", [], None]], "of": [["column", "a1"]], "as": None}}]],
    [["agg", [], {"n": {"agg": [["profile", [[X]], None]], "of": [["column", "a0"]], "as": None}}]],
    [["agg", [], {"n": {"agg": [["sum", [[X], [X]], None]], "of": [["column", "a0"]], "as": None}}]],
    [
        [
            "agg",
            [],
            {"n": {"agg": [["sum", [[X]], None, ["row", "0", "1"]]], "of": [["column", "a0"]], "as": None}},
        ]
    ],
    [["agg", [], {"n": {"agg": [["quantile", [[X]], "2"]], "of": [["column", "a0"]], "as": None}}]],
    [["agg", [], {"n": {"agg": [["quantile", [[X]], "1/0"]], "of": [["column", "a0"]], "as": None}}]],
    [["agg", [], {"n": {"agg": [], "of": [["literal", 1, "integer"]], "as": None}}]],
    [["agg", [], {"self": COUNT[2]["n"]}]],
    [["filter", [col(["call", "greater", [0, 1]])], {}], COUNT],
    [["filter", [col(X, ["call", "greater", [0, -1]])], {}], COUNT],
    [["filter", [col(X, ["call", "greater", [True, 0]])], {}], COUNT],
    [["filter", [col(X, ["call", "__import__", [0]])], {}], COUNT],
    [["filter", [col(X, ["call", "greater", [0, 0, 0, 0]])], {}], COUNT],
    [["filter", [col(X, ["call", "case", [0]])], {}], COUNT],
    [["filter", [col(X, ["literal", {"date": "no"}, "date"])], {}], COUNT],
    [["filter", [col(X, ["literal", {"pickle": "x"}, None])], {}], COUNT],
    [["filter", [col(X, ["literal", [1], "integer"])], {}], COUNT],
    [["filter", [col(*DEEP)], {}], COUNT],
    [["filter", [col(*WIDE)], {}], COUNT],
    [["filter", [{"col": [X], "as": None, "more": 1}], {}], COUNT],
    [["filter", [{"of": "Report", "with": []}], {}], COUNT],
    [["filter", [[[[[]]]]], {}], COUNT],
    [["filter", [None], {}], COUNT],
    [["with_columns", [3], {}], COUNT],
    [["join", ["visits"], {"on": "country"}], COUNT],
    [["join", [{"keys": ["x"], "rows": []}], {}], COUNT],
    [["join", ["visits", "country"], {"how": "outer"}], COUNT],
    [["group_by", [{"keys": ["country", "city"], "rows": [["FR"]]}], {}], COUNT],
    [["group_by", [{"keys": [3], "rows": [[3]]}], {}], COUNT],
    [["group_by", [{"keys": ["country"], "rows": 3}], {}], COUNT],
    [["group_by", [3], {}], COUNT],
    [["group_by", [{"float": "nan"}], {}], COUNT],
    [["histogram", ["amount", 10**12], {}]],
    [["histogram", ["amount", [3, 2, 1]], {}]],
    [["histogram", ["amount", ["a", "b"]], {}]],
    [["describe", ["nothing"], {}]],
    [["describe", [[]], {}]],
    [COUNT, COUNT],
    [COUNT, ["head", [], {"m": 3}]],
    [COUNT, ["head", ["x"], {}]],
    [COUNT, ["sort", ["n"], {"descending": [True, False]}]],
    [COUNT, ["release", [], {"epsilon": 1}]],
    [COUNT, ["belongs_to", [None], {}]],
    ["agg"],
    [["agg"]],
    [[1, 2, 3]],
    [None],
    [["filter", [col(X, ["literal", 1, None], ["call", "greater", [0, 1]])], {}]] * 200 + [COUNT],
    [["value_counts", ["country"], {"name": 3}]],
    [["value_counts", [], {"name": "\ud800"}]],
    [["crosstab", ["country"], {}]],
    [["unique", [], {}]],
]


@pytest.mark.parametrize("calls", HOSTILE, ids=range(len(HOSTILE)))
def test_what_no_builder_offers_is_refused_unpaid(place, calls):
    ask, before = client_of(place), place.session("ada").balance().spent
    body = {"table": "visits", "calls": calls, "epsilon": "1"}
    for path in PATHS:
        found = ask(
            "POST", path, content=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
        )
        assert found.status_code == 422, found.text
        assert len(found.json()["error"]["message"]) > 10
    assert place.session("ada").balance().spent == before


def test_deep_and_wide_expressions_are_refused_by_their_size(place):
    table = place.session("ada").table("visits")
    for parts in (DEEP, WIDE):
        with pytest.raises(QueryRefused, match="too large"):
            replayed(table, [["filter", [col(*parts)], {}], COUNT])
    many = sf.col("amount") > 1
    for _ in range(200):
        many = many & (sf.col("amount") > 1)
    calls = pack_calls([("filter", (many,), {}), ("agg", (), {"n": sf.count()})])
    assert replayed(table, calls).quote(1).epsilon == 1


@pytest.mark.parametrize(
    "change",
    [
        {"sql": "SELECT COUNT(*) AS n FROM visits"},
        {"table": None},
        {"table": "nothing"},
        {"parameters": [[1]], "table": None, "sql": "SELECT COUNT(*) AS n FROM visits"},
        {"parameters": {"by": 3}, "table": None, "sql": "SELECT COUNT(*) AS n FROM visits"},
        {"parameters": {"date": "x"}, "table": None, "sql": "SELECT COUNT(*) AS n FROM visits"},
        {"error": [3], "epsilon": None},
        {"error": {"by": {"n": []}}, "epsilon": None},
        {"error": {"fraction": "1/0"}, "epsilon": None},
        {"epsilon": "x"},
        {"epsilon": 1},
        {"epsilon": "9" * 3000},
        {"mechanism": "cauchy"},
        {"at": "2026"},
        {"calls": {}},
        {"more": 1},
    ],
)
def test_what_is_no_question_is_refused_unpaid(place, change):
    ask, before = client_of(place), place.session("ada").balance().spent
    for path in PATHS:
        found = ask("POST", path, json={"table": "visits", "calls": [COUNT], "epsilon": "1"} | change)
        assert found.status_code == 422, found.text
    assert place.session("ada").balance().spent == before


def test_bodies_at_random_are_refused_or_answered_but_never_fail(place):
    """Parts of good questions, put together anew."""
    draw, ask = random.Random(24), client_of(place)
    session = place.session("ada")
    good = pack_calls(
        [
            ("filter", ((sf.col("amount") > 5) & sf.col("city").is_in(["a", "b"]),), {}),
            ("group_by", (sf.Keys(country=["FR"]),), {"big": sf.col("amount") > 2}),
            ("agg", (), {"n": sf.count(), "m": sf.sum("amount") / sf.count() + 1}),
            ("sort", ("n",), {"descending": True}),
            ("head", (3,), {}),
        ]
    )
    assert replayed(session.table("visits"), good).quote(1).epsilon == 1
    pieces = list(_pieces(good))
    seen = set()
    for _ in range(200):
        calls = json.loads(json.dumps(good))
        for _ in range(draw.randint(1, 3)):
            _mutate(calls, pieces, draw)
        body = {"table": "visits", "calls": calls, "epsilon": "1"}
        try:
            replayed(session.table("visits"), calls).quote(1)
            seen.add("answered")
        except SfumatoError:
            seen.add("refused")
        if draw.random() < 0.1:
            assert ask("POST", "/api/session/quote", json=body).status_code in (200, 422)
    assert seen == {"answered", "refused"}


def _pieces(data):
    yield data
    for part in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _pieces(part)


def _mutate(data, pieces, draw):
    places = [part for part in _pieces(data) if isinstance(part, dict | list) and part]
    where = draw.choice(places)
    key = draw.choice([*where]) if isinstance(where, dict) else draw.randrange(len(where))
    odd = [None, -1, 2**70, "", "x", [], {}, {"float": "inf"}, {"date": "2026-01-01"}, True, {"int": "1"}]
    where[key] = draw.choice([json.loads(json.dumps(draw.choice(pieces))), draw.choice(odd)])


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "body",
    [
        '{"table": "visits", "calls": [%s]}' % ("[" * 300 + "]" * 300),
        '{"sql": "SELECT COUNT(*) AS n FROM visits", "parameters": %s}' % ("[" * 900 + "]" * 900),
        '{"sql": "SELECT COUNT(*) AS n FROM visits", "parameters": ["\\ud800"]}',
        '{"sql": "SELECT COUNT(*) AS n FROM visits", "parameters": [{"fraction": "1e999999999"}]}',
        '{"sql": "SELECT COUNT(*) AS n FROM visits", "error": {"fraction": "1e-999999999"}}',
        '{"table": "visits", "calls": [["filter", [{"fraction": "1e999999999"}], {}]]}',
    ],
    ids=range(6),
)
def test_what_is_deep_or_huge_is_refused_with_a_key_as_without(place, path, body):
    ask = client_of(place)
    for key in ({}, {"Idempotency-Key": "once"}):
        headers = {"Content-Type": "application/json", **key}
        assert ask("POST", path, "token-of-ada", content=body, headers=headers).status_code == 422
