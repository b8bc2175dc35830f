"""The card of a run: what was paid and how, and nothing of the records."""

import pytest

import sfumato as sf
from deep import made, objective, torch
from sfumato.learn.torch import Quantile, private

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")


def _run(records=60, name="dense", **more):
    model, given, target = made(name, records, torch.float32)
    trained = [each for each in model.parameters() if each.requires_grad]
    settings = {"epsilon": 1, "delta": 1e-5, "size": 80, "batch": 20, "steps": 4, "objective": objective}
    return private(model, torch.optim.SGD(trained, 0.1), (given, target), **settings | more)


def test_a_card_says_what_was_paid_and_how(tmp_path):
    ledger = sf.Ledger.open(tmp_path / "deep.ledger")
    ledger.register("photos", {"unit": "row", "version": 1}, sf.Budget(epsilon=2, delta=1e-4))
    run = _run(ledger=ledger, dataset="photos", clip=0.5)
    assert run.card().paid["receipt"] == "none yet"
    run.step()
    card = run.card()
    debit = next(each for each in ledger.entries("photos") if each.kind == "debit")
    assert card.paid == {
        "epsilon": 1.0, "delta": 1e-5, "paid by": "the budget of photos", "receipt": f"#{debit.number}",
    }  # fmt: skip
    facts = card.training
    assert (facts["steps paid for"], facts["steps taken"]) == (4, 1)
    assert facts["noise, in clips"] == run.noise_multiplier
    assert (facts["clip"], facts["sampler"], facts["records declared"]) == (0.5, "Poisson", 80)
    assert facts["numbers trained"] == "112 of 112"
    text = str(card)
    for said in ("epsilon | 1", "#", "one record, added or removed", "Not protected", "several records"):
        assert said in text
    assert card.to_dict()["meaning"] == card.meaning


def test_a_card_says_what_is_missing_or_frozen():
    card = _run(name="adapted").card()
    assert card.paid["paid by"].startswith("nobody")
    assert any("no ledger" in each for each in card.not_protected)
    assert any("Frozen" in each for each in card.not_protected)
    assert card.training["numbers trained"] != "144 of 144"


def test_a_card_of_users_and_of_a_learned_clip():
    card = _run(users=torch.arange(60) // 3, records_each=2, clip=Quantile(0.5)).card()
    assert card.unit == "one user with all of its records, added or removed"
    assert card.training["records of a user in a step"] == "at most 2"
    assert "quantile" in card.training["learned clip"]
    assert any("several ids" in each for each in card.not_protected)


def test_a_card_is_the_same_whatever_the_records_are():
    cards = []
    for records in (60, 3, 0):
        run = _run(records)
        run.fit()
        cards.append(str(run.card()))
    assert cards[0] == cards[1] == cards[2]
