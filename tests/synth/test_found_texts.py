"""Texts that nobody listed: the common ones are found, the rest is folded, and nothing of one unit shows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidParameter, UnsupportedLoss
from sfumato.fits import meter as meters
from sfumato.fits.meter import Meter, price
from sfumato.fits.searching import SearchFilter, Sought, gate_of, lone_loss, search_price, threshold
from sfumato.loss import GaussianLoss
from sfumato.random import simulation
from sfumato.testing.fits import check_lone
from sfumato.testing.stream import seeded
from synthetic import session_of

WORDS = ["", "Zürich", "a\0b", "x" * 300, "others", " ", "ﬀ\u202e"]


def table(many: int = 400) -> pa.Table:
    """A text of each kind that many have, some that one has, some that nobody has."""
    rng = simulation(0)
    note = [WORDS[at % len(WORDS)] if at % 10 else None for at in range(many)]
    note[1], note[2] = "only one has this", "x" * 299 + "y"
    return pa.table({"who": np.arange(many), "note": note, "age": rng.integers(0, 90, many)})


COLUMNS = {"note": sf.Text(), "age": sf.Int(0, 99)}


def fitted(session: sf.Session, **options: Any) -> sf.synth.Synthesizer:
    return sf.synth.fit(session, **({"epsilon": 50, "delta": "1e-6"} | options))


# ── what is found


@pytest.fixture(scope="module")
def made() -> Any:
    with session_of(table(), columns=COLUMNS) as session:
        yield fitted(session)


def test_common_texts_are_found_and_the_rest_is_folded(made: sf.synth.Synthesizer) -> None:
    common = sorted(word for word in WORDS if len(word) <= 200)
    assert made.columns[0].values == (*common, "all others")
    rows = made.sample(2000, seed=0)
    seen = set(rows["note"].to_pylist())
    assert seen == {*common, "all others", None}
    assert abs(rows["note"].null_count / 2000 - 0.1) < 0.05
    assert made.marginal(["note"])["note"].to_pylist() == [*common, "all others", None]


def test_a_text_of_one_unit_is_nowhere(made: sf.synth.Synthesizer, tmp_path: Any) -> None:
    sf.synth.save(made, tmp_path / "model")
    written = (tmp_path / "model").read_bytes() + repr(made).encode() + repr(made.released).encode()
    for secret in (b"only one", b"xxxy"):
        assert secret not in written
    again = sf.synth.load(tmp_path / "model")
    assert again.columns == made.columns
    assert again.sample(50, seed=1).equals(made.sample(50, seed=1))


def test_a_quote_says_how_common_a_text_must_be() -> None:
    for times, found in ((2, True), (Fraction(1, 2), False)):
        with session_of(table(5), columns=COLUMNS) as session:
            quoted = sf.synth.quote(session, epsilon=5, delta="1e-6")
            assert quoted.least_units is not None
            assert f"from about {quoted.least_units:,.0f} units on" in " ".join(str(quoted).split())
            many = int(quoted.least_units * times)
        rows = pa.table({"who": np.arange(many), "note": ["same"] * many, "age": [1] * many})
        with session_of(rows, columns=COLUMNS) as session:
            values = fitted(session, epsilon=5, delta="1e-6").columns[0].values
            assert values is not None
            assert ("same" in values) == found
            assert sf.synth.quote(session, epsilon=5, delta="1e-6", columns=["age"]).least_units is None


def test_what_is_paid_is_what_was_named_and_the_same_fit_is_free() -> None:
    with session_of(table(50), columns=COLUMNS) as session:
        quoted = sf.synth.quote(session, epsilon=2, delta="1e-6")
        first = fitted(session, epsilon=2, delta="1e-6")
        assert (session.balance().spent, session.balance().spent_delta) == (2, Fraction("1e-6"))
        assert quoted.loss.approximate == (2, Fraction("1e-6")) == (first.epsilon, first.delta)
        assert quoted.loss.epsilon("1e-6") <= 2
        again = fitted(session, epsilon=2, delta="1e-6")
        assert session.balance().spent == 2
        assert again.sample(20, seed=0).equals(first.sample(20, seed=0))


@pytest.mark.parametrize(
    "budget", [{"accountant": "zcdp"}, {"accountant": "gaussian"}, {"accountant": "rdp"}]
)
def test_a_budget_that_has_no_delta_for_a_search_refuses_it_with_a_way_out(budget: dict[str, Any]) -> None:
    with session_of(table(20), columns=COLUMNS, budget=sf.Budget(9, "1e-5", **budget)) as session:
        with pytest.raises(InvalidParameter, match=r"'note'.*Enum.*columns="):
            fitted(session, epsilon=1)
        assert session.balance().spent == 0
        fitted(session, epsilon=1, columns=["age"])
    with session_of(table(20), columns=COLUMNS, budget=sf.Budget(9, "1e-5", "zcdp", aside="1e-6")) as session:
        fitted(session, epsilon=1)
        assert session.balance().spent_delta == Fraction("1e-7")


def test_constraints_on_texts_that_nobody_listed_are_refused() -> None:
    with session_of(table(5), columns=COLUMNS) as session:
        for wrong in ("note = 'a'", sf.synth.Never({"note": "a"}), "note <> 'b' or age > 3"):
            with pytest.raises(InvalidParameter, match=r"note.*sf\.Enum"):
                fitted(session, constraints=[wrong])
        assert fitted(session, constraints=["age < 50"]).sample(50)["age"].drop_null().to_numpy().max() < 50


# ── the search keeps its claim


def searching(most: int, risk: Fraction, count: int = 1) -> Any:
    """Searches through values that one unit has, beside others."""
    sought = Sought(tuple(f"{at:02}" for at in range(most + 2)), np.array([count] * most + [9, 40]), most)

    def search() -> dict[str, float]:
        return Meter.alone(GaussianLoss(Fraction(1)), risk=risk).shown(sought, 1, risk)

    return search, sought.values[:most]


@pytest.mark.parametrize("most", [1, 5])
def test_what_one_unit_has_is_hardly_ever_shown(most: int) -> None:
    search, lone = searching(most, Fraction(1, 4))
    with seeded(f"lone {most}"):
        check_lone(search, lone, 0.25)


@pytest.mark.parametrize(
    "bug",
    [
        lambda mechanism, most, risk: threshold(mechanism, most, risk) - 1.5,
        lambda mechanism, most, risk: threshold(mechanism, most, 4 * risk),
        lambda mechanism, most, risk: threshold(mechanism, 1, 2 * risk),
        lambda mechanism, *_: 1 + mechanism.sigma,
    ],
)
def test_a_threshold_that_is_too_low_is_seen(bug: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    search, lone = searching(5, Fraction(1, 5))
    monkeypatch.setattr(meters, "threshold", bug)
    with seeded("too low"), pytest.raises(AssertionError):
        check_lone(search, lone, 0.2)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-9"), ("0.01", "1e-3"), (30, "0.3")])
def test_noise_and_risk_add_up_to_the_price(epsilon: Any, delta: Any) -> None:
    noise, rest, risk = search_price(epsilon, delta)
    gate = gate_of(price(noise, rest), risk)
    assert gate.loss.approximate == (Fraction(epsilon), Fraction(delta))
    assert gate.loss.epsilon(delta) <= float(Fraction(epsilon))


def test_a_search_takes_no_more_than_was_paid() -> None:
    gate = SearchFilter(gate_of(GaussianLoss(Fraction(1)), Fraction(0)), Fraction(1, 100))  # type: ignore[arg-type]
    half = gate.after(lone_loss(Fraction(1, 200))).after(GaussianLoss(Fraction(1, 2)))
    assert half.spent == (Fraction(1, 2), Fraction(1, 200))
    assert half.price(lone_loss(Fraction(1, 300))) == (0, Fraction(1, 300))
    assert half.admits(GaussianLoss(Fraction(1, 2)))
    assert not half.admits(GaussianLoss(Fraction(2, 3)))
    assert not half.admits(lone_loss(Fraction(1, 199)))
    assert gate.resumed(half.spent).spent == half.spent
    with pytest.raises(UnsupportedLoss):
        half.after(sf.Laplace(1, sensitivity=1).loss)
    found = Sought(("a",), np.array([5]), 1)
    with pytest.raises(UnsupportedLoss):
        Meter.alone(GaussianLoss(Fraction(1))).shown(found, 1, Fraction(1, 10**6))
    with pytest.raises(BudgetExceeded):
        Meter.alone(GaussianLoss(Fraction(1)), risk=Fraction(1, 10)).shown(found, 1, Fraction(1, 9))


# ── long lists


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("kind", ["text", "integer"])
def test_a_long_list_of_values_fits_like_a_short_one(kind: str, nullable: bool) -> None:
    values: list[Any] = [f"v{at}" if kind == "text" else at * 2**40 - 5 for at in range(1200)]
    held = [*values[:3] * 100, "none" if kind == "text" else 1, None]
    rows = pa.table({"who": np.arange(len(held)), "code": held})
    with session_of(rows, columns={"code": sf.Enum(*values, nullable=nullable)}) as session:
        made = fitted(session)
        drawn = made.sample(300, seed=0)["code"]
    counts = {pair["values"]: pair["counts"] for pair in drawn.value_counts().to_pylist()}
    assert all(70 < counts[value] < 130 for value in values[:3])
    assert nullable or drawn.null_count == 0
