"""Fits on a session: the rows of arrays, paid once from the ledger, refused before anything is read."""

from __future__ import annotations

import datetime
import math
import pickle
import random
import traceback
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone

import sfumato as sf
from sfumato.errors import BudgetExceeded, EngineFailed, InvalidParameter, LedgerUnusable, QueryRefused
from sfumato.fits.kept import Kept, plain
from sfumato.fits.meter import Meter
from sfumato.learn._core.sums import moments
from sfumato.learn.kinds import PrivateClassifier, PrivateRegressor
from sfumato.learn.moments import Moments
from sfumato.session.vault import Vault

DAY = datetime.date
SCHEMA = {
    "age": sf.Int(17, 90),
    "pay": sf.Float(-100, 100),
    "sex": sf.Enum("F", "M", "X"),
    "old": sf.Bool(),
    "day": sf.Date("2020-01-01", "2024-12-31"),
    "note": sf.Text(),
    "rich": sf.Bool(),
}
TEXT = "SELECT age, pay, sex, day FROM people"


def rows_of(seed=0, size=50):
    draws = random.Random(seed)
    return [
        {
            "id": draws.randrange(12),
            "age": draws.choice([17, 30, 64, 90, 5, 200, None]),
            "pay": draws.choice([0.0, -99.9, 33.3, 1e9, math.nan, math.inf, None, 0.1]),
            "sex": draws.choice(["F", "M", "X", "none", None]),
            "old": draws.choice([True, False, None]),
            "day": draws.choice([DAY(2020, 1, 1), DAY(2022, 2, 2), DAY(1999, 1, 1), None]),
            "note": draws.choice(["a", "b"]),
            "rich": draws.choice([True, False, None]),
        }
        for _ in range(size)
    ]


TYPES = {
    "id": pa.int64(), "age": pa.int64(), "pay": pa.float64(), "sex": pa.string(), "old": pa.bool_(),
    "day": pa.date32(), "note": pa.string(), "rich": pa.bool_(),
}  # fmt: skip


def table(rows, unit=None):
    held = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()})
    return sf.PrivateTable("people", source=held, unit=unit or sf.PrivacyUnit.row(), schema=SCHEMA)


@pytest.fixture
def session():
    with sf.Session(table(rows_of()), budget=sf.Budget(100, "0.01")) as made:
        yield made


class Seen:
    """Keeps the rows that were learned from, beside what is released of them."""

    def _learn(self, rows, meter):
        self.rows, self.sigma = rows, meter.sigma(1, 1)
        return {"moments": meter.noisy(moments(rows, target=rows.target is not None), 1)}

    def _set(self, learned):
        self.moments_ = learned["moments"]


class Alone(Seen, Moments):
    """Without a target."""


class Number(Seen, PrivateRegressor):
    """With a number as its target."""

    def __init__(self, epsilon=1, delta="1e-6", bounds=None, target_bounds=None):
        self.epsilon, self.delta, self.bounds, self.target_bounds = epsilon, delta, bounds, target_bounds


class Class(Seen, PrivateClassifier):
    """With a class as its target."""

    def __init__(self, epsilon=1, delta="1e-6", bounds=None, classes=None):
        self.epsilon, self.delta, self.bounds, self.classes = epsilon, delta, bounds, classes


def spent(session):
    return session.balance().spent, session.balance().spent_delta


# ── the same rows as arrays give


def meant(rows, names):
    """The rows that have all numbers and a target."""
    needed = [name for name in names if name in ("age", "pay", "day", "old")]
    return [row for row in rows if all(row[name] is not None and row[name] == row[name] for name in needed)]


def frame(rows, names):
    def value(row, name):
        found = row[name]
        if name == "day":
            return float((found - DAY(1970, 1, 1)).days)
        return min(max(found, -1e300), 1e300) if isinstance(found, float) else found

    return pa.table({name: [value(row, name) for row in rows] for name in names})


BOUNDS = {"age": (17, 90), "pay": (-100, 100), "sex": ["F", "M", "X"], "day": (18262, 20088)}


@pytest.mark.parametrize("model", [Alone, Number, Class])
@pytest.mark.parametrize("given", [None, BOUNDS, {"pay": (-3, 7), "day": ("2021-01-01", DAY(2023, 1, 1))}])
def test_a_session_gives_the_rows_of_arrays(session, model, given):
    names, target = ["age", "pay", "sex", "day"], {Alone: None, Number: "pay", Class: "old"}[model]
    names = [name for name in names if name != target]
    listed = ", ".join([*names, target] if target else names)
    bounds = None if given is None else {name: pair for name, pair in given.items() if name in names}
    one = model(epsilon=1, delta="1e-6", bounds=bounds)
    text = f"SELECT {listed} FROM people WHERE note = 'a' OR note = 'b'"
    one.fit(session, text, target=target)
    held = meant(rows_of(), [*names, target] if target else names)
    full = BOUNDS | dict(bounds or {})
    full["day"] = (18628, 19358) if full["day"][0] == "2021-01-01" else full["day"]
    more = {Alone: {}, Number: {"target_bounds": (-100, 100)}, Class: {"classes": [False, True]}}[model]
    other = model(epsilon=1, delta="1e-6", bounds={name: full[name] for name in names}, **more)
    y = None if target is None else frame(held, [target])[target].to_pylist()
    other.fit(frame(held, names), y)
    assert sorted(map(tuple, np.c_[one.rows.integers, _target(one)].tolist())) == sorted(
        map(tuple, np.c_[other.rows.integers, _target(other)].tolist())
    )
    assert list(one.feature_names_in_) == names
    assert one.design_.to_dict() == other.design_.to_dict()
    assert one.rows.units is None
    assert one.receipt.loss == one.loss == other.loss
    assert other.receipt is None


def _target(model):
    size = len(model.rows)
    return np.zeros((size, 0)) if model.rows.target is None else np.reshape(model.rows.target, (size, 1))


@pytest.mark.parametrize(
    ("target", "classes"),
    [
        ("age", [*range(17, 91)]),
        ("CASE WHEN age > 40 THEN 1 ELSE 0 END", [0, 1]),
        ("age * 2", None),  # more than a few
        ("pay", None),
        ("day", None),
    ],
)
def test_a_few_declared_whole_numbers_are_classes(session, target, classes):
    model, text = Class(), f"SELECT sex, {target} AS y FROM people"
    if classes is None:
        with pytest.raises(InvalidParameter, match="which classes"):
            model.fit(session, text, target="y")
        return
    model.fit(session, text, target="y")
    assert model._listed() == classes
    assert set(model.rows.target.tolist()) <= {*range(len(classes))}
    known = [row["age"] for row in rows_of() if row["age"] is not None]
    if target == "age":  # whoever lies outside has no class
        assert len(model.rows) == sum(17 <= age <= 90 for age in known)


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
def test_units_and_exchange_are_the_tables_own(adjacency):
    unit = sf.PrivacyUnit("id", max_rows=2, adjacency=adjacency)
    with sf.Session(table(rows_of(), unit), budget=sf.Budget(100, "0.01")) as session:
        model = Alone(epsilon=1, delta="1e-6").fit(session, "SELECT sex, old FROM people")
        assert np.bincount(model.rows.units).max() == 2
        assert len(set(model.rows.units.tolist())) == len({row["id"] for row in rows_of()})
        assert model.rows.exchange == (adjacency == "exchange")
        assert model.sigma == (2 if adjacency == "exchange" else 1) * Meter(model.loss.rho, print).sigma(1, 1)


@pytest.mark.parametrize("unit", [None, sf.PrivacyUnit("id", max_rows=2)])
def test_bounds_are_bought_within_the_one_price_and_kept(unit):
    with sf.Session(table(rows_of(), unit), budget=sf.Budget(1, "1e-6")) as session:
        model = Number(bounds="auto", target_bounds="auto")
        told = " ".join(str(model.quote(session, TEXT, target="pay")).split())
        assert "Bounds of 3 columns (age, day, pay) are bought with 1/10" in told
        assert ("At most 2 rows of each unit are read." in told) == (unit is not None)
        model.fit(session, TEXT, target="pay")
        assert spent(session) == (1, Fraction("1e-6"))
        assert model.bounds_paid_.columns == ("age", "day", "pay")
        assert [column.name for column in model.design_.columns] == ["age", "sex", "day"]
        again = clone(model).fit(session, TEXT, target="pay")
        assert spent(session) == (1, Fraction("1e-6"))
    assert again.design_.to_dict() == model.design_.to_dict()
    for name in ("bounds_", "target_bounds_", "bounds_paid_"):
        assert getattr(again, name) == getattr(model, name)
    np.testing.assert_array_equal(again.moments_, model.moments_)


def test_numbers_without_bounds_are_those_of_arrays(session):
    held, seen = meant(rows_of(), ["age", "pay"]), []

    class Told(Moments):
        def _released(self, rows, meter):
            seen.append(rows)
            return super()._released(rows, meter)

    model = Told(1, "1e-6", bounds={"age": "auto", "pay": "auto", "sex": ["F", "M"]})
    model.fit(session, "SELECT age, pay, sex FROM people")
    codes = {"F": 0, "M": 1}
    expected = [(row["age"], row["pay"], codes.get(row["sex"], -1)) for row in held]
    assert sorted(zip(*(column.tolist() for column in seen[0].columns), strict=True)) == sorted(expected)


class Total(Moments):
    """Keeps the exact sums."""

    def _learn(self, rows, meter):
        self.total = moments(rows)
        return super()._learn(rows, meter)


def test_moments_are_added_up_in_the_engine_to_the_last_bit(session, monkeypatch):
    monkeypatch.setattr(Vault, "rows", lambda *_: pytest.fail("rows were read"))
    names = ["age", "pay", "sex", "day"]
    text = f"SELECT {', '.join(names)} FROM people"

    class Once(Total):
        def _learn(self, rows, meter):
            self.total = moments(rows)
            return {"moments": np.zeros((rows.design.width, rows.design.width)), "noise": np.array(1.0)}

    one = Once(1, "1e-6").fit(session, text)
    other = Total(1, "1e-6", BOUNDS).fit(frame(meant(rows_of(), names), names))
    assert one.total.values.tolist() == other.total.values.tolist()
    assert one.total[1:] == other.total[1:]


def test_rows_are_read_where_the_engine_cannot_add_up(monkeypatch):
    read, real = [], Vault.rows
    monkeypatch.setattr(Vault, "rows", lambda *given: read.append(1) or real(*given))
    unit = sf.PrivacyUnit("id", max_rows=2)
    for made, text, rows in (
        (table(rows_of()), TEXT, 0),
        (table(rows_of(), unit), TEXT, 1),  # a unit's rows are shortened together
        (
            table(rows_of()),
            "SELECT " + ", ".join(f"age + {i} AS a{i}" for i in range(101)) + " FROM people",
            1,
        ),
    ):
        with sf.Session(made, budget=sf.Budget(100, "0.01")) as session:
            Moments(1, "1e-6").fit(session, text)
        assert len(read) == rows
        read.clear()


# ── one purchase


def test_it_is_paid_once_and_free_again_also_for_others(session):
    model = Moments(epsilon=1, delta="1e-6")
    quote = model.quote(session, TEXT)
    assert (quote.epsilon, quote.delta, quote.note) == (1, Fraction("1e-6"), "")
    assert spent(session) == (0, 0)
    model.fit(session, TEXT)
    assert spent(session) == (1, Fraction("1e-6"))
    (receipt,) = session.releases()
    assert receipt == model.receipt
    assert str(receipt.memo["words"]) == f"Moments: {TEXT}"
    again = clone(model).fit(session, TEXT)
    cheaper = Moments(epsilon="0.5", delta="1e-7").fit(session, TEXT)
    for other in (again, cheaper):
        np.testing.assert_array_equal(other.covariance_, model.covariance_)
        assert (other.receipt, other.loss) == (model.receipt, model.loss)
    assert spent(session) == (1, Fraction("1e-6"))
    assert "on record" in str(model.quote(session, TEXT))
    Moments(epsilon=2, delta="1e-6").fit(session, TEXT)
    assert spent(session) == (3, Fraction("2e-6"))


def test_whatever_the_model_depends_on_makes_it_another_fit(session):
    fits = [
        (Number(), TEXT, "pay"), (Number(bounds={"age": (0, 90)}), TEXT, "pay"), (Number(), TEXT, "age"),
        (Number(target_bounds=(0, 1)), TEXT, "pay"), (Number(), f"{TEXT} WHERE age > 3", "pay"),
        (Number(), "SELECT age, pay, sex FROM people", "pay"), (Class(), TEXT, "sex"),
        (Class(classes=["F", "M"]), TEXT, "sex"), (Alone(epsilon=1, delta="1e-6"), TEXT, None),
        (Moments(epsilon=1, delta="1e-6"), TEXT, None),
    ]  # fmt: skip
    for count, (model, text, target) in enumerate(fits, start=1):
        model.fit(session, text, target=target)
        assert spent(session)[0] == count
    for model, text, target in fits:
        clone(model).fit(session, text, target=target)
    assert spent(session)[0] == len(fits)


@pytest.mark.parametrize("accountant", ["basic", "zcdp", "gaussian", "rdp"])
def test_every_kind_of_budget_pays(accountant):
    budget = sf.Budget(3, "1e-4", accountant=accountant)
    with sf.Session(table(rows_of()), budget=budget) as session:
        Moments(epsilon=1, delta="1e-6").fit(session, TEXT)
        assert 0 < session.balance().spent <= 3


@pytest.mark.parametrize(("epsilon", "delta"), [("0.5", "1e-3"), (5, "1e-7"), (5, 0)])
def test_a_budget_that_cannot_pay_refuses_and_nothing_is_read(monkeypatch, epsilon, delta):
    monkeypatch.setattr(Vault, "rows", lambda *_: pytest.fail("read unpaid"))
    with sf.Session(table(rows_of()), budget=sf.Budget(epsilon, delta)) as session:
        model = Moments(epsilon=1, delta="1e-6")
        assert "more than what is left" in model.quote(session, TEXT).note
        with pytest.raises(BudgetExceeded):
            model.fit(session, TEXT)
        assert spent(session) == (0, 0)
        assert not hasattr(model, "design_")
        assert model.receipt is None


REFUSED = [
    (Moments(), TEXT, None, InvalidParameter),
    (Moments(delta="1e-6"), TEXT, None, InvalidParameter),
    (Moments(epsilon=-1, delta="1e-6"), TEXT, None, InvalidParameter),
    (Moments(epsilon="1e-12", delta="1e-12"), TEXT, None, InvalidParameter),  # no such noise can be drawn
    (Moments(1, "1e-6"), "SELECT note FROM people", None, InvalidParameter),  # nothing is declared
    (Moments(1, "1e-6", {"note": (0, 1)}), "SELECT note FROM people", None, QueryRefused),
    (Moments(1, "1e-6", {"nothing": (0, 1)}), TEXT, None, InvalidParameter),
    (Moments(1, "1e-6", {"sex": [1, 2]}), TEXT, None, InvalidParameter),
    (Moments(1, "1e-6", {"age": (9, 1)}), TEXT, None, InvalidParameter),
    (Moments(1, "1e-6", "auto"), "SELECT age, note FROM people", None, QueryRefused),
    (Moments(1, "1e-6", "some"), TEXT, None, InvalidParameter),
    (Moments(1, "1e-6"), TEXT, "pay", InvalidParameter),
    (Moments(1, "1e-6"), "SELECT AVG(pay) AS m FROM people", None, QueryRefused),
    (Moments(1, "1e-6"), f"{TEXT} LIMIT 5", None, QueryRefused),
    (Moments(1, "1e-6"), None, None, InvalidParameter),
    (Number(), TEXT, None, InvalidParameter),
    (Number(), TEXT, "nothing", QueryRefused),
    (Number(), TEXT, "sex", InvalidParameter),
    (Number(target_bounds=(1, 0)), TEXT, "pay", InvalidParameter),
    (Class(), TEXT, "pay", InvalidParameter),  # no classes
    (Class(classes=["a"]), TEXT, "sex", InvalidParameter),
    (Class(), "SELECT sex FROM people", "sex", InvalidParameter),
]


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_wrong_declarations_are_refused_before_anything_is_paid(session, place, monkeypatch):
    monkeypatch.setattr(Vault, "rows", lambda *_: pytest.fail("read unpaid"))
    model, text, target, error = REFUSED[place]
    for act in (model.fit, model.quote):
        with pytest.raises(error):
            act(session, text, target=target)
    assert spent(session) == (0, 0)
    assert not hasattr(model, "design_")


def test_units_targets_and_sessions_are_not_mixed_up(session):
    model = Moments(1, "1e-6", (0, 1))
    for wrong in (
        lambda: model.fit(session, TEXT, units=[1]),
        lambda: model.fit(np.zeros((3, 2)), target="pay"),
        lambda: model.quote(np.zeros((3, 2)), None),
    ):
        with pytest.raises(InvalidParameter):
            wrong()


SMALL = {
    "no row": [],
    "one row": rows_of()[:1],
    "no complete row": [row | {"pay": None} for row in rows_of()],
    "one class": [row | {"old": True, "age": 30} for row in rows_of()],
}


@pytest.mark.parametrize("rows", SMALL)
@pytest.mark.parametrize("unit", [None, sf.PrivacyUnit("id", max_rows=3)])
def test_whatever_the_rows_are_there_is_a_model_and_a_price(rows, unit):
    with sf.Session(table(SMALL[rows], unit), budget=sf.Budget(100, "0.01")) as session:
        assert Moments(1, "1e-6").fit(session, TEXT).receipt is not None
        Class().fit(session, "SELECT age, pay, old FROM people", target="old")
        Number().fit(session, "SELECT age, old, pay FROM people", target="pay")
        assert spent(session)[0] == 3


class Failing(Moments):
    """A model whose fit fails on a value."""

    def _learn(self, rows, meter):
        raise ZeroDivisionError(f"a row is {rows.integers[0]}")


def test_what_fails_stays_paid_and_tells_nothing(session):
    with pytest.raises(EngineFailed, match="could not be finished") as failed:
        Failing(1, "1e-6").fit(session, TEXT)
    assert "ZeroDivision" not in "".join(traceback.format_exception(failed.value))
    assert failed.value.__context__ is None
    assert spent(session)[0] == 1


def test_more_noise_than_was_paid_for_is_not_drawn(session):
    class Twice(Moments):
        def _learn(self, rows, meter):
            meter.noisy(moments(rows), 1)
            return super()._learn(rows, meter)

    with pytest.raises(EngineFailed):
        Twice(1, "1e-6").fit(session, TEXT)


def test_a_fitted_model_travels_without_rows_or_rights(session):
    model = Moments(1, "1e-6").fit(session, TEXT)
    data = pickle.dumps(model)
    np.testing.assert_array_equal(pickle.loads(data).covariance_, model.covariance_)
    assert b"vault" not in data.lower()
    assert len(data) < 10_000


def test_analysts_pay_within_their_limit():
    with sf.Session(table(rows_of()), budget=sf.Budget(100, "0.01")) as session:
        ada = session.as_analyst("ada")
        some = session.table("people").filter(sf.col("age") > 1)
        model = Moments(1, "1e-6", {"note": ["a", "b"]}).fit(ada, some)
        assert model.receipt.analyst == "ada"
        assert list(model.feature_names_in_) == list(SCHEMA)


# ── what is kept


def test_what_is_kept_reads_back_to_the_last_bit():
    learned = {
        "a": np.array([[0.1, math.nan], [-0.0, math.inf]]), "b": np.arange(6).reshape(1, 2, 3),
        "c": np.array(5), "d": np.zeros((0, 4)), "e": np.array([True, False]),
        "f": np.array([1.5], np.float32),
    }  # fmt: skip
    kept = Kept(learned, Fraction(1, 3), Fraction("1e-9"), {"x": (Fraction(1, 3), Fraction(2**70))})
    back = Kept.from_bytes(kept.to_bytes())
    assert (back.epsilon, back.delta, back.bounds) == (kept.epsilon, kept.delta, kept.bounds)
    for name, array in learned.items():
        np.testing.assert_array_equal(back.learned[name], array)
        assert back.learned[name].shape == array.shape
    for wrong in (b"", b"{}", kept.to_bytes()[:-8], kept.to_bytes().replace(b'"format":1', b'"format":9')):
        with pytest.raises(LedgerUnusable):
            Kept.from_bytes(wrong)


def test_parameters_are_the_same_exactly_if_they_are_equal():
    values = [
        None, True, 1, 1.5, "1", "a", Fraction(1, 3), np.array([1, 2]), [1, 2], (1, 2), {"a": 1}, {"a": 2},
        {"a": (1, 2)}, DAY(2020, 1, 1), sf.Int(0, 1), sf.Int(0, 2), sf.Enum("a", "b"), Number(),
        Number(epsilon=2), Class(), math.inf, [], {},
    ]  # fmt: skip
    told = [repr(plain(value)) for value in values]
    assert len(set(told)) == len(told)
    assert plain(np.int64(1)) == plain(1)
    assert plain({"a": 1, "b": 2}) == plain({"b": 2, "a": 1})
    with pytest.raises(InvalidParameter, match="weights cannot be put on record"):
        plain(object(), "weights")


def test_delta_that_nobody_names_is_what_the_budget_spares(session):
    model = Moments(epsilon=1)
    assert "delta 0.0001 (a hundredth of the budget's)" in " ".join(str(model.quote(session, TEXT)).split())
    model.fit(session, TEXT)
    assert model.receipt.loss.point == (1, Fraction(1, 10_000))
    assert model.receipt.memo["unnamed"] == "delta"
    assert session.balance().spent_delta == Fraction(1, 10_000)
    assert "on record" in str(model.quote(session, TEXT))


def test_a_budget_without_delta_pays_for_no_fit():
    with sf.Session(table(rows_of()), budget=sf.Budget(10)) as made:
        with pytest.raises(InvalidParameter, match="delta=1e-6"):
            Moments(epsilon=1).fit(made, TEXT)
        with pytest.raises(BudgetExceeded):
            Moments(epsilon=1, delta=1e-6).fit(made, TEXT)
        assert made.balance().spent == 0
