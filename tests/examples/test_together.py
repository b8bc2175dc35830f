"""Three columns that depend on each other only together: a workload of triples keeps them, pairs do not."""

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.testing import seeded

PATH = Path(__file__).parents[2] / "examples" / "synth" / "together.py"
spec = importlib.util.spec_from_file_location("together", PATH)
together = importlib.util.module_from_spec(spec)
spec.loader.exec_module(together)


def test_pairs_of_the_trial_say_nothing_and_its_triple_everything():
    table = together.counts(sf.lab.trial(20_000).to_pydict())
    shares = table / table.sum()
    ones = [shares.sum(axis=tuple({0, 1, 2} - {place})) for place in range(3)]
    for one, other in itertools.combinations(range(3), 2):
        pair = shares.sum(axis=3 - one - other)
        # Chance alone makes about √(cells / rows) / 2.5 of it.
        assert np.abs(pair - np.outer(ones[one], ones[other])).sum() / 2 < 0.02
    apart = np.einsum("i,j,k->ijk", *ones)
    # By design: a sixth of patients are at 0.85, the others at 0.15, and the mean is 0.267.
    assert together.variation(shares, apart) == pytest.approx(0.194, abs=0.01)
    assert sf.lab.trial(100).equals(sf.lab.trial(100))
    with pytest.raises(InvalidParameter, match="one row"):
        sf.lab.trial(0)


def test_triples_find_what_mst_and_pairs_cannot(capsys, tmp_path):
    kept = {}
    tables = together.tables

    def once():
        kept.update(tables())
        return kept

    together.tables = once
    with seeded(1):
        together.main(str(tmp_path / "together.png"))
    together.tables = tables
    real = kept.pop("real")
    far = {name: together.variation(real, table) for name, table in kept.items()}
    # What both others miss is 0.19 by design; noise of epsilon 1 leaves 0.015 of it.
    assert far["MST"] > 0.15
    assert far["adaptive, all pairs"] > 0.15
    assert far["adaptive, all triples"] < far["MST"] / 4
    assert capsys.readouterr().out.count("total variation") == 3
    assert (tmp_path / "together.png").stat().st_size > 50_000
