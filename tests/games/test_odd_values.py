"""One odd bid, id, place, feature or label decides no type, no shape and no refusal of another's."""

from __future__ import annotations

import numpy as np
import pytest

from odd_targets import game_targets
from odd_values import search
from sfumato.errors import InvalidValue
from sfumato.games import _prices, hypotheses, models, reserve
from sfumato.numeric.private_ids import Ids
from sfumato.numeric.private_values import Column


def test_no_value_decides_for_others_in_any_game():
    found = search(game_targets())
    assert found.findings == []
    assert found.pairs > 1500
    assert found.answered > 1200


def _column(values, flat):
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidValue(flat) from None
    if array.dtype.kind == "O":
        raise InvalidValue(flat)
    return Column(array.dtype.kind, array)


def _table(values, columns, *, flat, other):
    return _column(values, flat).data


def _ids(values, *, rows, uneven, kinds, other):
    array = _column(values, uneven).data
    distinct, codes = np.unique(array, return_inverse=True)
    return Ids(codes, distinct)


@pytest.mark.parametrize(
    ("module", "name", "planted", "caught"),
    [
        (_prices, "column_of", _column, "price"),
        (hypotheses, "table_of", _table, "learner: rules"),
        (models, "same", lambda value, other: bool(value == other), "models"),
        (reserve, "ids_of", _ids, "reserve: bidders"),
    ],
    ids=["bids", "features", "labels", "ids"],
)
def test_the_old_conversions_are_caught(monkeypatch, module, name, planted, caught):
    monkeypatch.setattr(module, name, planted)
    assert search([each for each in game_targets() if each.name == caught]).findings
