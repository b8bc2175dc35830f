"""Texts of rows: as they are, cut where they are long, in one order; and nobody else's move with them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from datafusion_engine import DataFusion
from sfumato.errors import QueryRefused
from sfumato.ledger import Ledger
from sfumato.loss import PureLoss
from sfumato.random import simulation
from sfumato.session.rows_wanted import LONGEST, Scaled, Texts, rows_wanted

WORDS = [
    "",
    " ",
    "a",
    "a\0b",
    "A",
    "é",
    "e\u0301",
    "x" * LONGEST,
    "x" * (LONGEST + 1),
    "x" * 5000,
    "\U0001f600",
    None,
]
UNITS = [sf.PrivacyUnit.row(), sf.PrivacyUnit("who", max_rows=2)]


def read(rows: list[tuple[int, Any, int]], unit: sf.PrivacyUnit, **options: Any) -> list[tuple[Any, ...]]:
    """The lines of each unit, by what is in them."""
    kinds = {"who": pa.int64(), "word": pa.string(), "n": pa.int64()}
    columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds.values())]
    table = sf.PrivateTable(
        "people",
        source=pa.table(columns, list(kinds)),
        unit=unit,
        schema={"word": sf.Text(), "n": sf.Int(0, 9)},
    )
    with sf.Session(table, budget=sf.Budget(1000), **options) as session:
        taken = rows_wanted(session, "people").taking({"word": Texts(), "n": Scaled(0, 9, 9)})
        taken.check()
        right = session.ledger.debit("people", PureLoss(1), fingerprint="fit", reads=(taken.fingerprint,))
        found = taken.read(right)
    texts = found.texts[0]
    assert texts == tuple(sorted(set(texts)))
    assert 1 not in found.texts
    words = [None if gone else texts[at] for at, gone in zip(found.columns[0], found.missing[0], strict=True)]
    owners = range(found.size) if found.units is None else found.units.tolist()
    lines = zip(owners, words, found.columns[1].tolist(), strict=True)
    each: dict[int, list[Any]] = {}
    for owner, *line in lines:
        each.setdefault(owner, []).append(tuple(line))
    return [tuple(sorted(own, key=repr)) for own in each.values()]


@pytest.mark.parametrize("engine", [None, DataFusion])
@pytest.mark.parametrize("unit", UNITS, ids=["row", "unit"])
def test_texts_are_read_as_they_are_and_long_ones_are_cut(engine: Any, unit: sf.PrivacyUnit) -> None:
    rows = [(at, word, at % 10) for at, word in enumerate(WORDS)]
    found = read(rows, unit, **({} if engine is None else {"engine": engine()}))
    assert Counter(found) == Counter(
        ((word if word is None else word[: LONGEST + 1], at % 10),) for at, word in enumerate(WORDS)
    )


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_differ_in_the_lines_of_one_unit(seed: int) -> None:
    draw = simulation(seed)

    def rows(owners: list[int]) -> list[tuple[int, Any, int]]:
        return [(who, WORDS[draw.integers(len(WORDS))], int(draw.integers(9))) for who in owners]

    few = rows([int(draw.integers(5)) for _ in range(25)])
    more = [*rows([99] * 6), *few]
    with Ledger.open(None) as ledger:  # one ledger: neighbours share the salt
        mine, theirs = (Counter(read(each, UNITS[1], ledger=ledger)) for each in (few, more))
    assert max(map(len, theirs)) == 2
    assert mine < theirs
    assert sum((theirs - mine).values()) == 1


def test_numbers_are_no_texts() -> None:
    with (
        sf.Session(
            sf.PrivateTable(
                "people", source=pa.table({"n": [1]}), unit=sf.PrivacyUnit.row(), schema={"n": sf.Int(0, 9)}
            ),
            budget=sf.Budget(1),
        ) as session,
        pytest.raises(QueryRefused, match="no text"),
    ):
        rows_wanted(session, "people").taking({"n": Texts()})
