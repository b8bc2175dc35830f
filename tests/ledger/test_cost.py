"""What is written out for speed says the same as what it stands for."""

from __future__ import annotations

import hmac
import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.ledger import Budget, Ledger
from sfumato.ledger.chain import Chain, Row, canonical
from sfumato.ledger.receipt import fraction, loss_text
from sfumato.loss import GaussianLoss, LaplaceLoss, PureLoss

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
LOSSES = (
    PureLoss("0.1"),
    LaplaceLoss("0.3").under("exchange"),
    GaussianLoss("0.2").sampled("0.01"),
    sf.compose([PureLoss("1/3"), GaussianLoss("0.1"), LaplaceLoss("0.2") * 7]),
    sf.Exponential(epsilon=1, sensitivity=1).loss,
)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**62), TEXTS, TEXTS, st.one_of(st.none(), TEXTS), st.one_of(st.none(), TEXTS), TEXTS)
def test_a_mac_covers_the_canonical_list_of_the_columns(number, kind, dataset, analyst, fingerprint, body):
    row = Row(number, kind, dataset, analyst, fingerprint, body)
    columns = [number, kind, dataset, analyst, fingerprint, body]
    assert row.content() == canonical(columns).encode("ascii")


@settings(max_examples=30, deadline=None)
@given(st.fractions())
def test_a_number_is_read_as_it_was_written(number):
    assert fraction(str(number)) == number


def test_numbers_of_other_forms_are_read_as_before():
    assert fraction("0.25") == Fraction(1, 4)
    for wrong in ("", "x", "1/", "/2", "1/2/3"):
        with pytest.raises(ValueError, match=r"."):
            fraction(wrong)


@pytest.mark.parametrize("memo", [{}, {"loss": 1, "text": ',"memo":{"loss":'}, {"a": {"memo": 1}}])
def test_the_loss_of_a_debit_is_found_in_its_body(memo):
    with Ledger.open() as ledger:
        ledger.register("visits", {"unit": "row"}, Budget(100, "0.1"))
        for loss in LOSSES[:2]:
            ledger.register("visits", {"unit": "row"}, None)
            ledger.debit("visits", loss, fingerprint="q", memo=memo)
        rows = [row for row in ledger._journal.store.walk(1) if row.kind == "debit"]
        assert [loss_text(row) for row in rows] == [canonical(loss.to_dict()) for loss in LOSSES[:2]]
    for loss in LOSSES:
        body = canonical({"adjacency": None, "loss": loss.to_dict(), "memo": memo, "time": "now"})
        assert loss_text(Row(1, "debit", "d", None, None, body)) == canonical(loss.to_dict())
    body = canonical({"loss": LOSSES[0].to_dict()})  # without a memo
    assert loss_text(Row(1, "debit", "d", None, None, body)) == canonical(LOSSES[0].to_dict())


def test_receipts_of_one_kind_after_one(place):
    with place.made(Budget(1)) as ledger:
        ledger.register("other", {"unit": "row"}, Budget(1))
        for at in range(6):
            ledger.debit("other" if at % 2 else "visits", PureLoss("0.1"), fingerprint="q", analyst=f"a{at}")
        numbers = [receipt.number for receipt in ledger.entries() if receipt.dataset == "visits"]
        assert [receipt.number for receipt in ledger.entries("visits")] == numbers
        debits = [receipt.number for receipt in ledger.entries("visits", kind="debit")]
        assert debits == numbers[2:]
        assert [receipt.number for receipt in ledger.entries("visits", kind="debit", after=debits[0])] == (
            debits[1:]
        )
        with pytest.raises(InvalidParameter, match="say which"):
            list(ledger.entries(kind="debit"))


def test_the_retrospective_of_repeated_losses_is_that_of_their_composition():
    losses = [PureLoss("0.01")] * 150 + [PureLoss("0.02")] * 60
    with Ledger.open() as ledger:
        ledger.register("visits", {"unit": "row"}, Budget(9, "1e-6"))
        for loss in losses:
            ledger.debit("visits", loss, fingerprint="q")
        assert ledger.balance("visits").retrospective == sf.compose(losses).epsilon("1e-6")


def test_verifying_says_how_far_it_is(sqlite_place):
    sqlite_place.made(Budget(1)).close()
    told = []
    assert Ledger.inspect(
        sqlite_place.where, state=sqlite_place.state, progress=lambda *args: told.append(args)
    ).ok
    assert told == [(0, "receipt 1 of 2")]


@pytest.mark.parametrize("length", [0, 1, 31, 32, 63, 64, 65, 200])
def test_a_mac_is_the_hmac_of_the_standard_library(length):
    rng = random.Random(length)
    key, content = rng.randbytes(length), rng.randbytes(3 * length + 1)
    assert Chain(key, "ledger")._mac(content) == hmac.digest(key, content, "sha256")
