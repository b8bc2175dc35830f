"""A house that begins empty and gets tables while it runs; what was asked before ends on the old session."""

import threading

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import engine as open_engine
from sfumato.errors import AccessDenied, CatalogUnusable, LedgerMismatch, SourceUnusable
from sfumato.ledger import Ledger
from sfumato.server.house import House

ROWS = 300


def table(name, **more):
    source = pa.table({"user_id": [*range(ROWS)], "country": ["FR", "DE"] * (ROWS // 2)})
    more = {"source": source, "unit": sf.PrivacyUnit("user_id", max_rows=1), **more}
    return sf.PrivateTable(name, schema={"country": sf.Enum("FR", "DE")}, **more)


def budget(epsilon=100):
    return sf.Budget(epsilon=epsilon)


def counted(session, name):
    release = session.sql(f"SELECT COUNT(*) AS n FROM {name}").release(epsilon=20)
    return round(release.table["n"][0].as_py(), -1)


@pytest.fixture
def house():
    with Ledger.open(None) as ledger, open_engine("duckdb") as engine:
        yield House.empty(ledger, engine)


def test_an_empty_house_says_so_and_breaks_nothing(house):
    assert (house.datasets, dict(house.tables), house.receipts()) == ([], {}, [])
    assert house.declared("visits") is None
    assert not house.is_ready()
    for ask in (lambda: house.session("ada"), lambda: house.answer(1)):
        with pytest.raises(AccessDenied, match="nothing to ask yet"):
            ask()
    house.wait()


def test_what_comes_later_can_be_asked_and_what_was_open_goes_on(house):
    house.widen([table("visits")], budgets={"visits": budget()})
    assert house.is_ready()
    before = house.session("ada")
    assert counted(before, "visits") == ROWS
    house.widen([table("sales")], budgets={"sales": budget()})
    after = house.session("ada")
    assert after is not before
    assert house.datasets == ["sales", "visits"]
    assert counted(after, "sales") == ROWS
    assert (
        round(
            before.sql("SELECT COUNT(*) AS n FROM visits WHERE country = 'FR'")
            .release(epsilon=20)
            .table["n"][0]
            .as_py(),
            -1,
        )
        == ROWS // 2
    )
    with pytest.raises(sf.errors.QueryRefused):
        before.sql("SELECT COUNT(*) AS n FROM sales")


def test_a_table_that_cannot_be_used_changes_nothing(house, tmp_path):
    house.widen([table("visits")], budgets={"visits": budget()})
    kept = []
    torn = tmp_path / "torn.csv"
    torn.write_text('user_id,country\n1,"FR\n')
    for source in (str(tmp_path / "gone.csv"), str(torn), pa.table({"user_id": [1]})):
        with pytest.raises(SourceUnusable):
            house.widen(
                [table("sales", source=source)], budgets={"sales": budget()}, keep=lambda: kept.append(1)
            )
    assert kept == []
    assert house.datasets == ["visits"]
    assert [each.name for each in house.ledger.datasets()] == ["visits"]
    assert counted(house.session("ada"), "visits") == ROWS


def test_a_ledger_that_has_another_budget_on_record_changes_nothing(house):
    house.widen([table("visits")], budgets={"visits": budget()})
    counted(house.session("ada"), "visits")
    kept = []
    with pytest.raises(LedgerMismatch):
        house.widen(
            [table("sales", dataset="visits")], budgets={"visits": budget(200)}, keep=lambda: kept.append(1)
        )
    assert kept == []
    assert house.datasets == ["visits"]
    assert [*house.tables] == ["visits"]


def test_what_cannot_be_kept_is_not_served(house):
    def keep():
        raise CatalogUnusable("It cannot be written.")

    with pytest.raises(CatalogUnusable):
        house.widen([table("visits")], budgets={"visits": budget()}, keep=keep)
    assert not house.is_ready()
    assert house.datasets == []


def test_a_session_that_is_opened_meanwhile_is_one_of_the_new_house(house, monkeypatch):
    house.widen([table("visits")], budgets={"visits": budget()})
    as_analyst, widened = sf.Session.as_analyst, threading.Event()

    def slow(session, name):
        made = as_analyst(session, name)
        if not widened.is_set():
            widened.set()
            house.widen([table("sales")], budgets={"sales": budget()})
        return made

    monkeypatch.setattr(sf.Session, "as_analyst", slow)
    assert "sales" in house.session("ada").tables
    assert house.session("ada") is house.session("ada")
