"""Profiles that the steward declares, or buys at a price of their own and gives to all."""

import copy
import pickle

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.catalog import Catalog
from sfumato.errors import CatalogUnusable, InvalidParameter
from sfumato.plan.questions.declared import Declared
from sfumato.testing import seeded

COUNT = "SELECT COUNT(*) AS n FROM t"
GROUPED = "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY k"
ROWS = [1] * 60 + [4] * 30 + [18] * 9 + [40]
DECLARED = {1: 60, 5: 30, 20: 9, 40: 1}


def table_of(*, rows=ROWS, profile=None, auto=True, version="1"):
    ids = np.repeat(np.arange(len(rows)), rows)
    source = pa.table({"u": ids, "k": np.array(["a", "b"])[ids % 2], "x": ids % 4})
    return sf.PrivateTable(
        "t",
        source=source,
        unit=sf.PrivacyUnit("u", max_groups=2, max_rows="auto" if auto else 3),
        schema={"k": sf.Enum("a", "b"), "x": sf.Int(0, 3, nullable=False)},
        profile=profile,
        version=version,
    )


def cut(rows, limit):
    return sum(max(0, each - limit) for each in rows)


@pytest.mark.parametrize("seed", range(8))
def test_a_declared_profile_bounds_the_cut_of_every_table_that_keeps_it(seed):
    draw = np.random.default_rng(seed)
    rungs = np.unique(draw.integers(1, 300, 5))
    profile = Declared.of({int(rung): int(draw.integers(0, 9)) for rung in rungs})
    edges = (0, *profile.rungs)
    rows = [
        int(draw.integers(below + 1, above + 1))
        for below, above, many in zip(edges, profile.rungs, profile.units, strict=False)
        for _ in range(draw.integers(0, many + 1))
    ]
    for limit in (1, 2, *profile.rungs, 250):
        assert profile.most_cut(limit) >= cut(rows, limit)
    worst = [rung for rung, many in zip(profile.rungs, profile.units, strict=True) for _ in range(many)]
    assert all(profile.most_cut(limit) == cut(worst, limit) for limit in (1, 7, *profile.rungs))


def test_it_is_free_and_chooses_limits():
    with sf.Session(table_of(profile=DECLARED), budget=sf.Budget(100)) as session:
        quote = session.sql(COUNT).quote(epsilon=1)
        assert quote.first == 0
        assert quote.epsilon == 1
        assert "How many rows each u has is declared: no profile is bought." in quote.notes
        release = session.sql(COUNT).release(epsilon=1)
        assert session.balance().spent == 1
        assert [receipt.purpose.spender for receipt in session.releases()] == ["sql"]
        assert release.quote.measured.unit.max_rows == 20  # 1/ε a row against 9·18 + 40 rows
        assert session.sql(COUNT).release(epsilon="0.01").quote.measured.unit.max_rows == 1
        assert session.sql(COUNT).release(epsilon=1).free
        assert session.sql(COUNT).release(error=50).error()["n"][0].as_py() <= 50
        found = session.profile("t", 5)
        assert (found.rungs, found.units) == ((1, 5, 20, 40), (60, 30, 9, 1))
        assert {receipt.purpose.spender for receipt in session.releases()} == {"sql"}


@pytest.mark.parametrize("kind", ["covering", "fitted"])
def test_intervals_that_rest_on_it_hold_and_say_so(kind):
    with sf.Session(table_of(profile=DECLARED, auto=False), budget=sf.Budget(10**6)) as session, seeded(kind):
        release = session.sql(GROUPED).release(epsilon=10**4)
    ends = release.interval(0.999, kind).to_pydict()
    source = table_of().source.to_pandas().groupby("k")["x"]
    for at, name in enumerate(ends["k"]):
        assert ends["n_low"][at] <= source.size()[name] <= ends["n_high"][at] < 10**3
        assert ends["s_low"][at] <= source.sum()[name] <= ends["s_high"][at] < 10**4
    said = release.interval(kind=kind).schema.metadata[b"assumes"].decode()
    assert said == "Intervals over all rows hold where the rows of each u are no more than declared."
    assert release.to_pandas(errors=True, kind=kind).attrs["assumes"] == said
    text = " ".join(str(release).split())
    assert "over all rows holds as often where the rows of each u are no more than declared" in text
    assert "is declared: no profile is bought" in text
    assert release.interval(kind="noise").schema.metadata is None


def test_the_noise_is_as_it_was_and_the_question_is_the_same():
    """A declared profile decides on limits and intervals alone: with fixed limits, nothing else changes."""
    with sf.Session(table_of(auto=False), budget=sf.Budget(9)) as plain:
        quote = plain.sql(GROUPED).quote(epsilon=1)
    with sf.Session(table_of(auto=False, profile=DECLARED), budget=sf.Budget(9)) as declared:
        other = declared.sql(GROUPED).quote(epsilon=1)
    assert other.fingerprint == quote.fingerprint
    assert other.loss == quote.loss
    assert other.noises == quote.noises


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ({}, "how many units have up to so many rows"),
        ([5], "how many units have up to so many rows"),
        ({0: 1}, "at least 1"),
        ({1: -1}, "at least 0"),
        ({1.5: 1}, "whole number"),
        ([(1, 2), (1, 3)], "given twice"),
        ({2**21: 1}, "at most"),
    ],
)
def test_what_is_no_profile_is_refused(profile, said):
    with pytest.raises(InvalidParameter, match=said):
        table_of(profile=profile)


def test_rows_that_are_units_have_none():
    with pytest.raises(InvalidParameter, match="leave it out"):
        sf.PrivateTable("t", source="t.csv", unit=sf.PrivacyUnit.row(), schema={}, profile={1: 5})


def test_it_is_copied_with_its_table_and_read_from_the_file(tmp_path):
    table = table_of(profile=DECLARED)
    assert pickle.loads(pickle.dumps(table)).profile == copy.copy(table).profile == tuple(DECLARED.items())
    assert table.declaration()["profile"][0] == [1, 60]
    assert "profile" not in table_of().declaration()
    head = '[datasets.t]\nepsilon = 1\n[tables.t]\nsource = "t.csv"\nunit = "u"\n'
    file = tmp_path / "sfumato.toml"
    file.write_text(head + "profile = { 1 = 60, 20 = 9 }\n[tables.t.columns]\nx = { type = 'text' }\n")
    (declared,) = Catalog.read(file).tables
    assert declared.profile == ((1, 60), (20, 9))
    for wrong in ("5", "[1, 2]", "{ many = 3 }"):
        file.write_text(head + f"profile = {wrong}\n[tables.t.columns]\nx = {{ type = 'text' }}\n")
        with pytest.raises(CatalogUnusable, match=r"profile = . 1 = 8000"):
            Catalog.read(file)
    with sf.Session(table, budget=sf.Budget(3)) as session, session.rehearse() as made:
        assert made.sql(COUNT).quote(epsilon=1).first == 0


# A profile at the steward's price.


@pytest.fixture
def steward(tmp_path):
    with sf.Session(table_of(), budget=sf.Budget(10), ledger=tmp_path / "t.ledger") as session:
        for name in ("ada", "bob"):
            sf.Steward(session.ledger).limit("t", name, sf.Budget(2), reason="a course")
        yield session


def profiles(session):
    return [receipt for receipt in session.releases() if receipt.purpose.spender == "profile"]


def test_a_profile_that_is_given_serves_all_at_the_price_that_the_steward_set(steward):
    steward.profile("t", "0.05")
    ada = steward.as_analyst("ada")
    assert ada.sql(COUNT).quote(epsilon=2).first > 0  # not given: a question would buy its own
    sf.Steward(steward.ledger).give("t", profiles(steward), reason="for all")
    for analyst in (ada, steward.as_analyst("bob")):
        quote = analyst.sql(COUNT).quote(epsilon=2)
        assert (quote.first, quote.epsilon) == (0, 2)
        release = analyst.sql(COUNT).release(epsilon=1)
        assert release.profile is not None
        assert analyst.balance().spent == 1  # the answer, bought or read, and nothing for the profile
        assert dict(release.counted).get("epsilon", 0) in (0, 1)
    assert len(profiles(steward)) == 1
    assert steward.ledger.verify().ok


def test_what_is_not_given_still_counts(steward):
    """The twin: without the gift the profile is bought or counted."""
    steward.profile("t", "0.2")
    ada = steward.as_analyst("ada")
    ada.sql(COUNT).release(epsilon=1)
    assert ada.balance().spent == 1  # 0.2 for the profile that the steward paid, 0.8 for the answer
    assert [receipt.kind for receipt in steward.ledger.entries()].count("read") == 1


def test_a_gift_changes_no_question_that_was_paid_before(steward):
    ada = steward.as_analyst("ada")
    first = ada.sql(COUNT).release(epsilon=1)
    steward.profile("t", 5)
    sf.Steward(steward.ledger).give("t", profiles(steward)[-1], reason="for all")
    again = ada.sql(COUNT).release(epsilon=1)
    assert again.free
    assert again.receipt == first.receipt


def test_a_gift_of_another_version_serves_nobody(tmp_path):
    """A profile is bound to the declared version of its table."""
    place = tmp_path / "t.ledger"
    with sf.Session(table_of(), budget=sf.Budget(10), ledger=place) as session:
        session.profile("t", 1)
        sf.Steward(session.ledger).give("t", profiles(session), reason="for all")
        assert session.sql(COUNT).quote(epsilon=1).first == 0
    with sf.Session(table_of(version="2"), budget=sf.Budget(10), ledger=place) as session:
        assert session.sql(COUNT).quote(epsilon=1).first > 0
