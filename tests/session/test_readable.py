"""What a newcomer sees: what things are called, and slips that are refused in a sentence with the fix."""

from __future__ import annotations

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import AccessDenied, InvalidParameter, LedgerUnusable, QueryRefused, UnsupportedLoss

COUNT = "SELECT COUNT(*) AS n FROM people"


def people():
    rows = pa.table({"age": [30, 40], "city": ["a", "b"], "size": [1.5, 2.5]})
    schema = {"age": sf.Int(0, 110), "city": sf.Text(), "size": sf.Float(0, 10)}
    return sf.PrivateTable("people", source=rows, unit=sf.PrivacyUnit.row(), schema=schema)


@pytest.fixture
def session():
    with sf.Session(people(), budget=sf.Budget(2, "1e-6"), engine="duckdb") as opened:
        yield opened


def test_things_say_in_words_what_they_are(session):
    session.sql(COUNT).release(epsilon="0.5")
    ada, steward = session.as_analyst("ada"), sf.Steward(session.ledger)
    told = {
        repr(session): "<Session of people: epsilon 1.5 of 2 left>",
        repr(ada): "<Session of people, as 'ada': epsilon 1.5 of 2 left>",
        repr(session.ledger): "<Ledger in memory: people>",
        repr(ada.ledger): "<Counter in memory, of 'ada': people>",
        repr(steward): "<Steward of the ledger in memory: people>",
        repr(session.table("people")): "<people: columns age, city, size>",
        repr(session.table("people").filter(sf.col("age") > 3).group_by("age")): (
            "<people: columns age, city, size; filtered; grouped by age>"
        ),
        repr(session.balance()): (
            "people: epsilon 0.5 of 2 spent in 1 debit, 1.5 left; delta 0 of 1e-06 spent"
        ),
    }
    for shown, wanted in told.items():
        assert shown == wanted
    steward.revoke("people", "ada", reason="left")
    assert "nothing left, since they are revoked" in repr(ada.balance())
    session.close()
    assert repr(session) == "<Session of people: closed>"
    assert repr(session.ledger) == "<Ledger in memory: closed, or not to be read>"


@pytest.mark.parametrize(
    ("slip", "kind", "message"),
    [
        (lambda s: sf.Session(people(), budget=sf.Budget(1), engine="duckbd"), InvalidParameter, "no engine"),
        (
            lambda s: sf.Session(people(), budget=sf.Budget(1), engine=3),
            InvalidParameter,
            "or its name, not int",
        ),
        (lambda s: s.buy(1), InvalidParameter, "buy takes a Purchase, not int"),
        (lambda s: s.most_common(3, epsilon=1), InvalidParameter, "a column's name"),
        (lambda s: s.most_common("age", epsilon=1, among=[[1]]), InvalidParameter, "single values"),
        (lambda s: s.most_common("age", epsilon=1, among=[]), InvalidParameter, "one or more"),
        (lambda s: s.most_common("age", epsilon=1, among=["x"]), QueryRefused, r"among=\[1, 2\]"),
        (lambda s: s.most_common("city", epsilon=1, among=[1]), QueryRefused, r"among=\['a', 'b'\]"),
        (lambda s: s.most_common("size", epsilon=1), QueryRefused, "List them: among="),
        (lambda s: s.most_common("city", epsilon=1), QueryRefused, "List them: among="),
    ],
)
def test_slips_are_refused_in_a_sentence(session, slip, kind, message):
    with pytest.raises(kind, match=message) as refused:
        slip(session)
    assert "WHERE" not in str(refused.value)
    assert "GROUP BY" not in str(refused.value)
    assert session.balance().entries == 0


def test_the_most_common_step_is_told_by_its_words(session):
    assert session.most_common(sf.col("age") // 10, epsilon=1).value in range(12)
    assert str(session.releases()[0].purpose) == "most common: age // 10 of people"


def test_a_gaussian_budget_says_what_it_admits():
    with sf.Session(people(), budget=sf.Budget(1, "1e-6", "gaussian")) as session:
        with pytest.raises(UnsupportedLoss, match="admits Gaussian noise alone") as refused:
            session.most_common("age", epsilon=1)
        assert "mechanism='gaussian'" in str(refused.value)
        assert "'zcdp'" in str(refused.value)


def test_closed_and_revoked_are_told_apart(session):
    ada, steward = session.as_analyst("ada"), sf.Steward(session.ledger)
    steward.revoke("people", "ada", reason="left")
    for ask in (lambda: ada.sql(COUNT).release(epsilon=1), lambda: ada.ledger.recall("people", "q")):
        with pytest.raises(AccessDenied, match="'ada' may no longer ask about 'people'"):
            ask()
    steward.close_budget("people", reason="over")
    with pytest.raises(AccessDenied, match="budget of 'people' is closed"):
        session.sql(COUNT).release(epsilon=1)


def test_a_name_like_another_is_not_revoked_by_a_slip(session):
    steward = sf.Steward(session.ledger)
    steward.limit("people", "margaret", sf.Budget(1), reason="a course")
    with pytest.raises(InvalidParameter, match=r"never seen 'margret'\. Did you mean 'margaret'\?"):
        steward.revoke("people", "margret", reason="left")
    steward.revoke("people", "margret", reason="left", force=True)
    steward.revoke("people", "bob", reason="like nobody")
    receipt = steward.revoke("people", "Margaret", reason="left")
    assert str(receipt) == f"#{receipt.number} revoke on people for margaret"


def test_a_ledger_in_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(LedgerUnusable, match="There is no folder"):
        sf.Session(people(), budget=sf.Budget(1), ledger=tmp_path / "slip" / "people.ledger")
    assert list(tmp_path.iterdir()) == []
