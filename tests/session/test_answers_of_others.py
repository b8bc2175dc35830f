"""What another analyst has bought: free for the dataset, and counted toward the reader's own limit."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

import sfumato as sf

F = Fraction
ROWS = pa.table({"age": [30 + i % 40 for i in range(200)], "size": [float(i % 7) for i in range(200)]})
COUNT = "SELECT COUNT(*) AS n FROM people"
ASKED = {
    "sql": lambda s: s.sql(COUNT).release(epsilon=2),
    "table": lambda s: s.table("people").agg(n=sf.count()).release(epsilon=2),
    "most common": lambda s: s.most_common("age", epsilon=2, among=range(30, 40)),
    "first above": lambda s: s.first_above([COUNT], threshold=3, epsilon=2),
    "bounds": lambda s: s.sql("SELECT SUM(size) AS s FROM people").release(epsilon=2, bounds="auto"),
}


def people():
    return sf.PrivateTable(
        "people",
        source=ROWS,
        unit=sf.PrivacyUnit.row(),
        schema={"age": sf.Int(0, 110), "size": sf.Float()},
    )


@pytest.fixture
def steward(tmp_path):
    with sf.Session(people(), budget=sf.Budget(10, "1e-6"), ledger=tmp_path / "people.ledger") as session:
        yield session


def limited(steward, **limits):
    for name, epsilon in limits.items():
        sf.Steward(steward.ledger).limit("people", name, sf.Budget(epsilon, "1e-6"), reason="a course")


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("spender", ASKED)
def test_every_answer_counts_once_for_each_reader(steward, spender, plain):
    limited(steward, ada=5, bob=5, carol="0.01")
    ask = ASKED[spender]
    first = ask(steward.as_analyst("ada"))
    spent = steward.balance().spent

    def opened(name):
        if plain:
            return sf.Session(people(), ledger=steward.ledger, analyst=name)
        return steward.as_analyst(name)

    for _ in range(2):
        bob = opened("bob")
        again = ask(bob)
        assert again.free
        assert again.receipt == first.receipt
        assert bob.balance().spent == spent
        assert steward.balance().spent == spent
    carol = opened("carol")
    with pytest.raises(sf.errors.BudgetExceeded, match="counts toward your own limit on 'people'"):
        ask(carol)
    assert carol.balance().spent == 0
    debits = [receipt for receipt in steward.ledger.entries() if receipt.kind == "debit"]
    sf.Steward(steward.ledger).give("people", debits, reason="published")
    assert ask(opened("carol")).free
    assert carol.balance().spent == 0
    assert steward.ledger.verify().ok


def test_the_answer_says_what_it_counts(steward):
    ASKED["sql"](steward)  # the steward's own, in nobody's name
    told = ASKED["sql"](steward.as_analyst("bob"))
    assert told.counted == {"epsilon": 2, "delta": 0}
    assert "which somebody else paid for: epsilon 2 counts toward your limit." in " ".join(str(told).split())
    assert "counts toward" not in str(ASKED["sql"](steward.as_analyst("bob")))
    assert ASKED["sql"](steward).counted == {}


@pytest.mark.parametrize("paid", [(2,), (1, 2), (1, 4)], ids=str)
@pytest.mark.parametrize("limit", [3, "1.5", "0.05"], ids=str)
def test_a_quote_tells_what_reading_would_count(steward, paid, limit):
    """It counts what it cost, however little was asked for; where that is too much, one pays oneself."""
    limited(steward, ada=9, bob=limit)
    for price in paid:
        steward.as_analyst("ada").sql(COUNT).release(epsilon=price)
    bob = steward.as_analyst("bob")
    told = dict(bob.sql(COUNT).quote(epsilon="0.01").standing).get("record", "")
    released = bob.sql(COUNT).release(epsilon="0.01")
    counted = released.counted.get("epsilon", 0)
    assert bob.balance().spent == (counted or F("0.01"))
    assert told == (
        f"Somebody else has paid for an answer: to read it counts epsilon {counted} toward your limit alone."
        if counted
        else ""
    )


def test_a_quote_tells_no_bounds_that_somebody_else_has_bought(steward):
    limited(steward, ada=5, bob=5)
    text = "SELECT SUM(size) AS s FROM people"
    ASKED["bounds"](steward.as_analyst("ada"))
    bob = steward.as_analyst("bob")
    fresh = bob.sql(text).quote(epsilon=2, bounds="auto")
    assert fresh.first is not None
    assert "Bounds would be bought first" in str(fresh)
    assert bob.balance().spent == 0
    release = ASKED["bounds"](bob)
    assert any("bought by somebody else" in note for note in release.bounds)
    assert "Bounds would be bought first" not in str(bob.sql(text).quote(epsilon=2, bounds="auto"))


def test_bounds_and_answer_of_others_are_read_where_the_dataset_has_nothing_left(steward):
    limited(steward, ada=10, bob=2)
    ada = steward.as_analyst("ada")
    ASKED["bounds"](ada)
    ada.sql(COUNT).release(epsilon=8)
    assert steward.balance().remaining == 0
    bob = steward.as_analyst("bob")
    assert ASKED["bounds"](bob).free
    assert bob.balance().spent == 2


def test_a_profile_counts_as_everything_else(tmp_path):
    rows = pa.table({"user": [i % 50 for i in range(200)], "age": [40] * 200})
    unit = sf.PrivacyUnit("user", max_rows="auto")
    table = sf.PrivateTable("people", source=rows, unit=unit, schema={"age": sf.Int(0, 110)})
    with sf.Session(table, budget=sf.Budget(10), ledger=tmp_path / "people.ledger") as steward:
        ada, bob, carol = map(steward.as_analyst, ("ada", "bob", "carol"))
        sf.Steward(steward.ledger).limit("people", "carol", sf.Budget("0.01"), reason="a course")
        first = ada.sql(COUNT).release(epsilon=2)
        assert "would be bought first" in str(bob.sql(COUNT).quote(epsilon=2))
        again = bob.sql(COUNT).release(epsilon=2)
        assert again.receipt == first.receipt
        assert any("on record: epsilon" in note for note in again.bounds)
        spent = [session.balance().spent for session in (steward, ada, bob)]
        assert spent == [2, 2, 2]
        with pytest.raises(sf.errors.BudgetExceeded):
            carol.sql(COUNT).release(epsilon=2)
        assert carol.balance().spent == 0
