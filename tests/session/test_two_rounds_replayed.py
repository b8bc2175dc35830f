"""Random questions whose groups are found in two rounds: nothing but noise shows of them."""

from __future__ import annotations

import pytest

import sfumato as sf
from replayed import replay_forms
from sfumato.plan.prices import bundle

FORMS = ("open keys", "grouped", "google", "quantiles", "distinct")


@pytest.fixture
def asked(monkeypatch):
    """Two rounds wherever weights can be read, also where they would find less; and how many there were."""
    right, many = bundle.selection_of, []

    def in_rounds(epsilon, delta, *, groups, exchange, counted, rounds):
        if not rounds or counted:
            return right(epsilon, delta, groups=groups, exchange=exchange, counted=counted)
        many.append(groups)
        return sf.AdaptiveSelection(epsilon, delta, groups=groups, exchange=exchange)

    monkeypatch.setattr(bundle, "selection_of", in_rounds)
    return many


@pytest.mark.stats
@pytest.mark.parametrize("form", FORMS)
def test_many_questions_in_two_rounds_show_nothing_but_noise(asked, form):
    outcome = replay_forms([form], "many rounds", worlds=6, queries=10)
    assert not outcome.broken, "\n".join(outcome.broken)
    assert outcome.answered >= 20
    assert asked
