from __future__ import annotations

import math

import pytest

from sfumato.errors import NotCertified
from sfumato.numeric.bracket import Bracket


def test_a_bracket_knows_its_width_and_whether_it_is_narrow() -> None:
    assert Bracket(1.0, 1.5).width == 0.5
    assert Bracket(math.inf, math.inf).width == 0.0
    assert Bracket(1.0, 1.0 + 5e-7).meets()
    assert not Bracket(1.0, 1.0 + 2e-6).meets()
    assert Bracket(0.0, 1e-9).meets()
    assert not Bracket(0.0, math.inf).meets()


def test_join_is_the_bracket_of_the_larger_and_clip_of_the_clamped() -> None:
    assert Bracket(1.0, 4.0).join(Bracket(2.0, 3.0)) == Bracket(2.0, 4.0)
    assert Bracket(-1.0, 2.0).clip(0.0, 1.0) == Bracket(0.0, 1.0)


@pytest.mark.parametrize("ends", [(2.0, 1.0), (math.nan, 1.0), (0.0, math.nan)])
def test_ends_that_contradict_each_other_are_no_figure(ends: tuple[float, float]) -> None:
    with pytest.raises(NotCertified):
        Bracket(*ends)
