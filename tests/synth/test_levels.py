"""Counts on levels of a session's table: one purchase, noise for each marginal, public totals kept."""

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2

import sfumato as sf
from sfumato.audit.registry import Subject, examined
from sfumato.catalog import Catalog
from sfumato.dossier import card, facts
from sfumato.errors import BudgetExceeded, EngineFailed, InvalidParameter, QueryRefused
from sfumato.fits.meter import Meter, price
from sfumato.ledger import Ledger
from sfumato.random import simulation
from sfumato.synth._levels.counting import counted
from sfumato.synth._levels.grid import Grid
from sfumato.synth._levels.linear import best
from sfumato.synth._levels.measuring import Design, design_of
from sfumato.synth._levels.totals import public_totals
from sfumato.synth._levels.tree import tree_of
from sfumato.synth._private.places import Places
from sfumato.synth.examples import examples
from sfumato.testing import seeded

PLACES = {"state": ["n", "n", "n", "s"], "county": ["n1", "n1", "n2", "s1"], "tract": ["a", "b", "c", "d"]}
SCHEMA = {"tract": sf.Text(), "age": sf.Int(0, 89), "sex": sf.Enum("F", "M")}
ASKED = {
    "geography": ["state", "county", "tract"],
    "places": PLACES,
    "by": ["sex", sf.col("age") // 30],
    "epsilon": 1,
    "delta": 1e-9,
}


def rows_of(size, seed=1):
    draw = simulation(seed)
    return pa.table(
        {
            "who": draw.integers(0, max(1, size // 2), size),
            "tract": np.array(list("aabcd"))[draw.integers(0, 5, size)].tolist(),
            "age": draw.integers(0, 90, size),
            "sex": np.array(["F", "M"])[draw.integers(0, 2, size)].tolist(),
        },
        schema=pa.schema({"who": pa.int64(), "tract": pa.string(), "age": pa.int64(), "sex": pa.string()}),
    )


def session_of(rows, *, unit=None, budget=None, **more):
    table = sf.PrivateTable("people", source=rows, unit=unit or sf.PrivacyUnit.row(), schema=SCHEMA)
    return sf.Session(table, budget=budget or sf.Budget(2, "1e-6", "gaussian"), **more)


@pytest.fixture(scope="module")
def session():
    """One whose budget no test spends."""
    return session_of(rows_of(50))


def sums(table, *names):
    """The counts of a released table, added up by some of its columns."""
    found = {}
    for row in table.to_pylist():
        key = tuple(row[name] for name in names)
        found[key] = found.get(key, 0) + row["count"]
    return found


@pytest.mark.parametrize("size", [0, 1, 4000])
@pytest.mark.parametrize("unit", [sf.PrivacyUnit.row(), sf.PrivacyUnit("who", max_groups=2)])
def test_counts_are_whole_agree_and_become_rows(size, unit):
    session = session_of(rows_of(size), unit=unit)
    with seeded(size):
        release = sf.synth.levels(session, "people", **ASKED)
    tables = {level: release.table(level) for level in release.levels}
    assert [table.num_rows for table in tables.values()] == [6, 12, 18, 24]
    assert tables["county"].column_names == ["state", "county", "sex", "age", "count", "lower", "upper"]
    for table in tables.values():
        assert table["count"].type == pa.int64()
        assert min(table["count"].to_pylist()) >= 0
    assert sums(tables["tract"], "county", "sex", "age") == sums(tables["county"], "county", "sex", "age")
    assert sums(tables["county"], "state", "sex", "age") == sums(tables["state"], "state", "sex", "age")
    assert sums(tables["state"], "sex", "age") == sums(tables["all"], "sex", "age")
    assert sums(release.table("county", by=["age"]), "county", "age") == sums(
        tables["county"], "county", "age"
    )
    rows = release.microdata()
    assert rows.column_names == ["state", "county", "tract", "sex", "age"]
    assert rows.num_rows == sum(tables["all"]["count"].to_pylist())
    kept = sums(tables["tract"], "tract", "sex", "age")
    counted_rows = rows.group_by(["tract", "sex", "age"]).aggregate([([], "count_all")]).to_pylist()
    assert {(row["tract"], row["sex"], row["age"]): row["count_all"] for row in counted_rows} == {
        key: count for key, count in kept.items() if count
    }


def test_counts_are_those_of_the_table_but_for_noise():
    rows = rows_of(30_000)
    session = session_of(rows, budget=sf.Budget(2_000, "1e-6", "gaussian"))
    release = sf.synth.levels(session, "people", **{**ASKED, "epsilon": 1000})
    wide = rows.append_column("decade", pa.array([age // 30 for age in rows["age"].to_pylist()]))
    exact = wide.group_by(["tract", "sex", "decade"]).aggregate([([], "count_all")]).to_pylist()
    found = sums(release.table("tract"), "tract", "sex", "age")
    for row in exact:
        assert abs(found[row["tract"], row["sex"], row["decade"]] - row["count_all"]) <= 1


def test_one_purchase_and_the_same_again_is_free(tmp_path):
    session = session_of(rows_of(500), ledger=str(tmp_path / "ledger"))
    quote = sf.synth.quote_levels(session, "people", **ASKED)
    assert session.balance().spent == 0
    assert quote.loss.point == (1, Fraction(1, 10**9))
    assert quote.errors["all"][()] > 0
    first = sf.synth.levels(session, "people", **ASKED)
    spent = session.balance().spent
    assert len(session.releases()) == 1
    assert "free" in sf.synth.quote_levels(session, "people", **ASKED).note
    again = sf.synth.levels(session, "people", **ASKED)
    cheaper = sf.synth.levels(session, "people", **{**ASKED, "epsilon": "0.5"})
    assert again.free
    assert cheaper.free
    assert not first.free
    assert session.balance().spent == spent
    assert again.table("tract").equals(first.table("tract"))
    assert cheaper.loss == first.loss
    other = sf.synth.levels(session, "people", **{**ASKED, "invariants": {"all": 500}, "epsilon": "0.1"})
    assert not other.free
    assert other.receipt.number > first.receipt.number


def test_nothing_is_read_before_it_is_paid(monkeypatch):
    session = session_of(rows_of(50), budget=sf.Budget("0.5", "1e-6", "gaussian"))
    monkeypatch.setattr(session.vault._engine, "fetch", lambda *_, **__: pytest.fail("read"))
    with pytest.raises(BudgetExceeded):
        sf.synth.levels(session, "people", **ASKED)
    assert "more than what is left" in sf.synth.quote_levels(session, "people", **ASKED).note
    assert session.balance().spent == 0


def test_a_failure_after_the_debit_stays_paid_and_says_nothing(monkeypatch):
    session = session_of(rows_of(50))
    monkeypatch.setattr(Design, "measured", lambda *_: 1 / 0)
    with pytest.raises(EngineFailed, match="stays paid") as failed:
        sf.synth.levels(session, "people", **ASKED)
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    assert session.balance().spent > 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"by": ["sex", "sex"]}, "taken"),
        ({"by": [sf.col("sex").alias("county")]}, "taken"),
        ({"by": ["tract"]}, "taken"),
        ({"by": ["income"]}, "no column 'income'"),
        ({"by": [sf.col("tract").alias("other")]}, "by= names tract"),
        ({"places": "regions"}, "no public table"),
        ({"geography": ["state", "county", "block"], "places": {**PLACES, "block": [1, 2, 3, 4]}}, "'block'"),
        ({"epsilon": 0}, "epsilon"),
        ({"invariants": {"state": {"n": 5}, "all": 3}}, "contradict"),
        ({"shares": {"state": 1}}, "leaves out tract"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_spent(session, change, said):
    with pytest.raises((InvalidParameter, QueryRefused), match=said):
        sf.synth.levels(session, "people", **{**ASKED, **change})
    assert session.balance().spent == 0


def test_places_may_be_those_of_a_public_table():
    tracts = sf.PublicTable(
        "tracts", source=pa.table(PLACES), schema=dict.fromkeys(PLACES, sf.Text()), key="tract"
    )
    people = sf.PrivateTable("people", source=rows_of(50), unit=sf.PrivacyUnit.row(), schema=SCHEMA)
    session = sf.Session(people, tracts, budget=sf.Budget(2, "1e-6", "gaussian"))
    release = sf.synth.levels(session, "people", **{**ASKED, "places": "tracts"})
    assert sorted(set(release.table("county")["county"].to_pylist())) == ["n1", "n2", "s1"]
    asked = session.table("people").filter(sf.col("age") >= 18)
    assert sf.synth.levels(session, asked, **{**ASKED, "places": tracts, "by": "sex", "epsilon": 0.5}).levels


# ── public totals ──


def test_public_totals_are_kept_whatever_the_table_has():
    """None is read from the table: these contradict it, and are kept."""
    invariants = {"all": 90, "state": {"n": 70}, "tract": {"a": 12}}
    release = sf.synth.levels(session_of(rows_of(4000)), "people", **ASKED, invariants=invariants)
    check_public(release, invariants)


def check_public(release, invariants):
    assert sums(release.table("all", []))[()] == invariants["all"]
    for level in ("state", "tract"):
        found = sums(release.table(level), level)
        assert all(found[(place,)] == total for place, total in invariants[level].items())
    exact = release.table("tract", []).to_pylist()[0]
    assert (exact["lower"], exact["upper"]) == (12, 12)


def test_a_total_read_from_the_table_is_seen(monkeypatch):
    """The planted bug: the invariant is looked up in the rows."""
    invariants = {"all": 90, "state": {"n": 70}, "tract": {"a": 12}}
    session, honest = session_of(rows_of(4000)), Design.measured

    def planted(self, places, meter):
        for level, fixed in enumerate(self.public.fixed):
            self.public.least[level][fixed] = places.total(level, ()).values.reshape(-1)[fixed]
        return honest(self, places, meter)

    monkeypatch.setattr(Design, "measured", planted)
    with pytest.raises(AssertionError):
        check_public(sf.synth.levels(session, "people", **ASKED, invariants=invariants), invariants)


def test_the_card_says_that_the_guarantee_is_conditional(tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(rows_of(200), tmp_path / "people.parquet")
    (tmp_path / "sfumato.toml").write_text(
        '[datasets.people]\nepsilon = 3\ndelta = "1e-6"\naccountant = "gaussian"\n'
        '[tables.people]\nsource = "people.parquet"\nunit = "row"\n'
        '[tables.people.columns]\ntract = { type = "text" }\nage = { type = "int", lower = 0, upper = 89 }\n'
        'sex = { type = "enum", values = ["F", "M"] }\n'
    )
    catalog = Catalog.read(tmp_path / "sfumato.toml")

    def told():
        with Ledger.open(catalog.ledger, create=False) as book:
            return card(facts(catalog, book, "people"))

    with sf.Session(*catalog.tables, budget=catalog.budgets["people"], ledger=str(catalog.ledger)) as session:
        plain = sf.synth.levels(session, "people", **ASKED)
    assert plain.given == ""
    assert "conditional" not in str(told()) + told().methods + told().yaml.replace("conditional_on", "")
    with sf.Session(*catalog.tables, budget=catalog.budgets["people"], ledger=str(catalog.ledger)) as session:
        asked = {**ASKED, "invariants": {"state": {"n": 150, "s": 50}}}
        assert "conditional on the totals of state (2 places)" in " ".join(
            str(sf.synth.quote_levels(session, "people", **asked)).split()
        )
        release = sf.synth.levels(session, "people", **asked)
    assert "given the totals of state" in str(release.receipt.purpose)
    assert release.given in repr(release)
    label = told()
    for said in (str(label), label.methods, json.dumps(label.to_dict()), label.yaml):
        assert f"the totals of state (2 places) (#{release.receipt.number})" in " ".join(said.split())


# ── noise ──


def small(seed=0):
    draw = simulation(seed)
    tree = tree_of(["county", "tract"], {"county": [n // 20 for n in range(200)], "tract": list(range(200))})
    grid = Grid(("age", "sex"), (6, 2))
    return tree, grid, draw.poisson(3.0, (200, 6, 2)).astype(np.int64)


def check_noise(design, places, epsilon="0.1"):
    """Each marginal has the noise that it pays for, apart from all others'."""
    paid = price(epsilon, "1e-9")
    released = design.measured(places, Meter.alone(paid))
    sigma = design.sigmas(paid.rho, Fraction(1))
    noise = []
    for (level, part), values in zip(design.shares, released.values(), strict=True):
        total = places.total(level, part)
        exact = np.array([float(value * total.step) for value in total.values.tolist()])
        noise.append((values - exact) / sigma[level, part])
    for own in noise:  # 6 standard deviations, of a normal sum and of a sum of squares
        assert np.abs(own).max() < 8
        assert abs(own.sum()) < 6 * own.size**0.5
        if own.size >= 100:
            assert abs((own**2).mean() - 1) < 6 * (2 / own.size) ** 0.5
    for at, one in enumerate(noise):
        for other in noise[:at]:
            if one.size == other.size >= 100:
                assert abs((one * other).mean()) < 6 / one.size**0.5
    # What is added up from below has noise of its own, too.
    level, full = len(design.tree) - 1, design.grid.parts[-1]
    keys = list(design.shares)
    below, above = (noise[keys.index((at, full))] for at in (level, level - 1))
    added = design.tree.added_up(level - 1, below.reshape(200, -1)).reshape(-1) / 20**0.5
    assert abs((added * above).mean()) < 6 / above.size**0.5


def test_each_marginal_of_each_level_has_its_own_noise(monkeypatch):
    tree, grid, counts = small()
    design, places = (
        design_of(tree, grid, public_totals(tree, None), None),
        Places(tree, grid, counts, Fraction(1)),
    )
    with seeded(5):
        check_noise(design, places)
    honest = Design.measured

    def shared(self, places, meter):
        """The planted bug: the noise of a level is that of the one below, added up."""
        released = honest(self, places, meter)
        last, full = len(tree) - 1, grid.parts[-1]
        names = dict(zip(self.shares, released, strict=True))
        fine = np.asarray(released[names[last, full]]).reshape(counts.shape)
        released[names[last - 1, full]] = tree.added_up(last - 1, fine).reshape(-1)
        return released

    def rooted(self, places, meter):
        """The planted bug: the true total is the root."""
        released = honest(self, places, meter)
        names = dict(zip(self.shares, released, strict=True))
        return released | {names[0, ()]: places.total(0, ()).values.astype(float)}

    monkeypatch.setattr(Design, "measured", shared)
    with seeded(5), pytest.raises(AssertionError):
        check_noise(design, places)
    monkeypatch.setattr(Design, "measured", rooted)
    with seeded(5), pytest.raises(AssertionError):
        check_root(design, places)
    monkeypatch.setattr(Design, "measured", honest)
    with seeded(5):
        check_root(design, places)
    known = Design.known

    def told(self, noisy):
        """The same bug once more: the root's estimate is what the table has."""
        found = known(self, noisy)
        found[0].parts[()][:] = places.total(0, ()).values / grid.cells
        return found

    monkeypatch.setattr(Design, "known", told)
    with seeded(5), pytest.raises(AssertionError):
        check_root(design, places)


def check_root(design, places):
    """Both what is measured of all places together and what is released are off by as much as noise says."""
    paid, draws = price("0.01", "1e-9"), 8
    sigma, exact = design.sigmas(paid.rho, Fraction(1)), float(places.total(0, ()).values.sum())
    measured, released = [], []
    for _ in range(draws):
        noisy = design.levels(design.measured(places, Meter.alone(paid)), sigma)
        known = design.known(noisy)
        measured.append((noisy[0][()][0].item() - exact) / sigma[0, ()])
        released.append((known[0].parts[()].item() * design.grid.cells - exact) / design.widest(sigma)[0][()])
    least, most = chi2.ppf([1e-9, 1 - 1e-9], draws)
    for off in (measured, released):
        assert least < sum(each**2 for each in off) < most
    top = counted(design.tree, design.grid, known, design.public)[0]
    assert int(top.sum()) == max(0, round(known[0].parts[()].item() * design.grid.cells))


def test_counts_of_any_size_are_measured():
    """Weights of units are wide integers: beyond 64 bits they are Python's."""
    tree, grid, counts = small()
    wide = counts.astype(object) * 2**70
    places = Places(tree, grid, wide, Fraction(2**70), Fraction(1, 2**70))
    with seeded(5):
        check_noise(design_of(tree, grid, public_totals(tree, None), None), places)


@pytest.mark.stats
def test_an_audit_finds_the_true_total_in_the_root(monkeypatch):
    honest = Design.measured
    example = next(each for each in examples() if each.name == "levels: one more in a tract")
    subject = Subject(example.name, "fit", lambda: (example.loss, example.draw))
    with seeded("audit"):
        assert [found.verdict for found in examined(subject, samples=500, share=0.9999)] == ["holds"]

    def rooted(self, places, meter):
        released = honest(self, places, meter)
        names = dict(zip(self.shares, released, strict=True))
        return released | {names[0, ()]: places.total(0, ()).values.astype(float)}

    monkeypatch.setattr(Design, "measured", rooted)
    with seeded("audit"):
        assert "broken" in [found.verdict for found in examined(subject, samples=500, share=0.9999)]


def test_tables_are_better_than_cells_alone_and_than_the_plain_hierarchy():
    tree, grid, _ = small()
    draw = simulation(2)
    counts = draw.poisson(draw.exponential(6.0, (200, 1, 1)) * np.ones((6, 2))).astype(np.int64)
    places, public = Places(tree, grid, counts, Fraction(1)), public_totals(tree, None)
    design, full = design_of(tree, grid, public, None), grid.parts[-1]
    plain = Design(tree, grid, public, {(level, full): Fraction(1, 3) for level in range(3)})
    alone = Design(tree, grid, public, {(2, full): Fraction(1)})
    paid, errors = price(1, "1e-9"), {}
    with seeded(1):
        for name, each in {"ours": design, "plain": plain, "alone": alone}.items():
            known = each.known(
                each.levels(each.measured(places, Meter.alone(paid)), each.sigmas(paid.rho, Fraction(1)))
            )
            linear = [grid.joined(one.parts, len(one.parts[()])) for one in best(tree, grid, known)]
            tables = counted(tree, grid, known, public) if name == "ours" else linear
            errors[name] = [
                np.mean(
                    [
                        np.abs(grid.marginal(table, part).reshape(-1) - places.total(at, part).values).mean()
                        for part in grid.parts
                    ]
                )
                for at, table in enumerate(tables)
            ]
    for other in ("plain", "alone"):
        assert all(np.array(errors["ours"])[1:] < np.array(errors[other])[1:])  # the root is one draw


# ── what a unit moves ──


@pytest.mark.parametrize("exchange", [False, True])
@pytest.mark.parametrize(("column", "seed"), [(None, 0), ("who", 0), ("who", 1)])
def test_a_unit_moves_each_marginal_by_no_more_than_is_claimed(monkeypatch, column, seed, exchange):
    adjacency = "exchange" if exchange else "add-remove"
    unit = (
        sf.PrivacyUnit.row(adjacency=adjacency)
        if column is None
        else sf.PrivacyUnit("who", max_groups=2, max_rows=3, adjacency=adjacency)
    )
    base = rows_of(40, seed).set_column(0, "who", pa.array(range(40)))
    draw = simulation(seed)
    size = 1 if column is None else 6

    def someone(tract):
        rows = {
            "who": [99] * size,
            "tract": [tract] * size,
            "age": draw.integers(0, 90, size),
            "sex": ["F"] * size,
        }
        return pa.table(rows).cast(base.schema)

    many = someone("a")
    if seed:
        many = many.set_column(1, "tract", pa.array(draw.choice(list("abcd"), size).tolist()))
    left = pa.concat_tables([base, many])
    right = pa.concat_tables([base, someone("d")]) if exchange else base
    seen = []
    honest = Design.measured

    def looked(self, places, meter):
        seen.append([places.total(level, part) for level, part in self.shares])
        return honest(self, places, meter)

    monkeypatch.setattr(Design, "measured", looked)
    for rows in (left, right):
        sf.synth.levels(session_of(rows, unit=unit), "people", **ASKED)
    worst = Fraction(0)
    for one, other in zip(*seen, strict=True):
        assert one.sensitivity == other.sensitivity
        squares = sum(
            int(d) ** 2 for d in (one.values.astype(object) - other.values.astype(object)).reshape(-1)
        )
        worst = max(worst, Fraction(squares) / one.sensitivity**2)
    assert worst <= 1
    if not seed:  # and the claim is reached, so that half of it would be seen
        assert worst > Fraction(1, 2)
