"""Planted bugs by name: the auditor catches what leaks, the checker what rewards lying; honest twins pass."""

import math

import pytest

from sfumato.audit.registry import Subject, examined
from sfumato.games.truthful import gain
from sfumato.testing import seeded
from sfumato.testing.mutants.games import GAME_MUTANTS, LYING_MUTANTS


def verdict(example, name):
    if example.pmf is not None:  # the exact law says more than samples of it
        left, right = example.pmf("left"), example.pmf("right")
        worst = max(abs(math.log(left[out] / right[out])) for out in left)
        return {"broken" if worst > example.loss.epsilon(0) else "holds"}
    subject = Subject(name, "game", lambda: (example.loss, example.draw))
    with seeded(f"game {name}"):
        return {each.verdict for each in examined(subject, samples=12_000, share=0.999_999)}


@pytest.mark.parametrize("name", GAME_MUTANTS)
def test_every_leaking_game_is_caught_and_its_twin_cleared(name):
    mutant = GAME_MUTANTS[name]
    assert verdict(mutant.planted, name) == {"broken"}
    assert verdict(mutant.honest, name) == {"holds"}


@pytest.mark.parametrize("name", LYING_MUTANTS)
def test_every_mechanism_that_rewards_lying_is_caught_and_its_twin_cleared(name):
    mutant = LYING_MUTANTS[name]
    world = {"types": mutant.types, "players": mutant.players, "utilities": mutant.utilities}
    assert gain(mutant.planted, **world).low > mutant.allowed
    assert gain(mutant.honest, **world).high <= mutant.allowed + 1e-9
