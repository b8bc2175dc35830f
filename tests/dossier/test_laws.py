"""A reviewer's questions under the laws that are named most, beside the figures, and no claim about any."""

import pytest

import sfumato as sf
from sfumato.catalog import Catalog
from sfumato.demo import prepare
from sfumato.dossier import card, facts


@pytest.fixture(scope="module")
def label(tmp_path_factory):
    catalog = Catalog.read(prepare(tmp_path_factory.mktemp("laws")))
    with sf.Ledger.open(catalog.ledger) as ledger:
        session = sf.Session(*catalog.tables, budget=catalog.budgets["visits"], ledger=ledger)
        session.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon="0.5")
        made = card(facts(catalog, ledger, "visits", session=lambda: session))
    return " ".join(str(made).split())


@pytest.mark.parametrize("law", ["GDPR", "HIPAA", "CCPA", "Title 13"])
def test_what_reviewers_ask_under_a_law_is_listed(label, law):
    assert law in label.split("What reviewers ask")[1]


def test_unit_epsilon_and_delta_are_told_and_nothing_is_claimed(label):
    for told in ("one patient_id with all its rows", "epsilon 0.5", "1e-06 for 5,000 units", "deployments"):
        assert told in label, told
    assert "nothing here is a legal claim" in label
    for claim in ("compliant", "complies", "anonymous under"):
        assert claim not in label
