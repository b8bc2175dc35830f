"""Answers with many groups: kept as bytes behind a line, and shown as if each group came by itself."""

from __future__ import annotations

import datetime
import itertools
import json
import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import LedgerUnusable
from sfumato.numeric import columns
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.questions.found import Found
from sfumato.session import payload, reading
from sfumato.session.payload import Answer
from sfumato.testing import seeded

POOLS = {
    "text": (pa.string(), ["", "a", "Zürich", "two\nlines", None]),
    "whole": (pa.int64(), [0, -5, 2**63 - 1, None]),
    "day": (pa.date32(), [datetime.date(2020, 2, 29), datetime.date(1, 1, 1), None]),
    "truth": (pa.bool_(), [True, False, None]),
    "float": (pa.float64(), [0.5, -0.0, None]),
}


def answers():
    """Every kind of key, alone and beside another; with extras and without; found in any way."""
    draw = random.Random("answers")
    for one, other in itertools.product(POOLS, POOLS):
        size = draw.randint(1, 20)
        names = [one] if one == other else [one, other]
        keys = [[draw.choice(POOLS[name][1]) for _ in range(size)] for name in names]
        groups = Found([pa.array(key, POOLS[name][0]) for key, name in zip(keys, names, strict=True)])
        noisy = (
            np.array([draw.randrange(-(2**62), 2**62) for _ in range(size)], np.int64),
            np.array([draw.choice([0.1, -0.0, np.inf, 5e-324]) for _ in range(size)]),
        )
        units = None if draw.random() < 0.3 else np.array(range(size), np.int64)
        table = np.array([draw.random() for _ in range(3 * size)]).reshape(size, 3)
        extras = ((Fraction(1, 3), (table, np.arange(size))),) if draw.random() < 0.5 else ()
        gaussian = draw.random() < 0.5
        law = (Noise("laplace", 0.3, 0.0, True, 0.0), Noise("gaussian", 0.1, 0.0, False, 0.0))
        selection = (Fraction(1, 2), Fraction(1, 100))
        yield Answer(
            noisy, law, Fraction(1), Fraction(1, 10), "laplace", groups, units, extras, selection, gaussian
        )
    picks = ((0, "a", 1), (1, "a"), (1, None))  # on several levels, groups have keys of their own
    yield Answer((np.arange(4),), law[:1], Fraction(1), Fraction(0), "laplace", picks, np.arange(3))
    yield Answer((np.arange(4),), law[:1], Fraction(1), Fraction(0), "laplace")  # public groups


def facts(answer):
    """All that it holds, as text."""
    return repr(
        (
            [(array.dtype, array.tolist()) for array in answer.noisy],
            None if answer.groups is None else [*answer.groups],
            None if answer.units is None else answer.units.tolist(),
            [
                (price, [(one.shape, one.dtype, one.tolist()) for one in arrays])
                for price, arrays in answer.extras
            ],
            (
                answer.noises,
                answer.epsilon,
                answer.delta,
                answer.mechanism,
                answer.selection,
                answer.gaussian,
            ),
        )
    )


def test_long_answers_hold_what_short_ones_do(monkeypatch):
    for answer in answers():
        short = answer.to_bytes()
        with monkeypatch.context() as all_long:
            all_long.setattr(payload, "_MANY", 0)
            long = answer.to_bytes()
        assert b"\n" not in short
        assert json.loads(short)["format"] in (1, 2, 3)
        assert json.loads(long[: long.index(b"\n")])["format"] == 4
        assert facts(Answer.from_bytes(short)) == facts(Answer.from_bytes(long)) == facts(answer)


def test_a_long_answer_that_was_cut_or_changed_is_refused(monkeypatch):
    monkeypatch.setattr(payload, "_MANY", 0)
    whole = next(answers()).to_bytes()
    line, behind = whole.split(b"\n", 1)
    broken = [
        whole[:-8],
        line,
        line.replace(b'"<i8"', b'"<O8"') + b"\n" + behind,
        line.replace(b'"at":0', b'"at":-8') + b"\n" + behind,
        line.replace(b'"format":4', b'"format":5') + b"\n" + behind,
        b"",
    ]
    for data in broken:
        assert data != whole
        with pytest.raises(LedgerUnusable):
            Answer.from_bytes(data)


def table():
    draw = random.Random("table")
    kinds = {name: [draw.choice(pool) for _ in range(300)] for name, (_, pool) in POOLS.items()}
    source = pa.table(
        {name: pa.array(values, POOLS[name][0]) for name, values in kinds.items()}
        | {"u": [row // 3 for row in range(300)], "x": [draw.random() for _ in range(300)]}
    )
    schema = {"text": sf.Text(), "whole": sf.Int(), "day": sf.Date(), "truth": sf.Bool(), "x": sf.Float(0, 1)}
    return sf.PrivateTable("t", source=source, unit=sf.PrivacyUnit("u", max_groups=3), schema=schema)


TEXTS = [
    "SELECT text, COUNT(DISTINCT u) AS n FROM t GROUP BY text",
    "SELECT whole, day, SUM(x) AS s FROM t GROUP BY whole, day ORDER BY day DESC, whole",
    "SELECT UPPER(text) AS k, COUNT(*) AS n FROM t GROUP BY text ORDER BY 1 DESC NULLS FIRST LIMIT 4",
    "SELECT truth, text, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r FROM t GROUP BY truth, text "
    "HAVING COUNT(*) > 5",
    "SELECT text, MEDIAN(x) AS m FROM t GROUP BY text",
    "SELECT text, whole, COUNT(*) AS n FROM t GROUP BY ROLLUP (text, whole)",
]


def test_many_groups_are_answered_as_few_are(monkeypatch):
    """The same noise gives the same table, now and again, whatever number of groups is taken for many."""
    seen = []
    for many in (0, 10**9):
        monkeypatch.setattr(payload, "_MANY", many)
        monkeypatch.setattr(columns, "_MANY", many)
        with seeded("session"):
            session = sf.Session(table(), budget=sf.Budget(10**6, "0.5"))
        for text in TEXTS:
            with seeded(text):
                first = session.sql(text).release(epsilon=100, delta="1e-3")
            again = session.sql(text).release(epsilon=100, delta="1e-3")
            assert again.free
            assert again.table.equals(first.table)
            seen.append(first.table)
        session.close()
    half = len(TEXTS)
    assert seen[:half] == seen[half:]
    assert all(table.num_rows > 1 for table in seen)


@pytest.mark.parametrize("value", [2**62, -(2**62), 2**61 + 1, 3])
def test_sums_of_a_group_are_exact_beyond_64_bits(value):
    rows = np.array([0, 1, 0, -1, 0, 0], np.int64)
    assert reading._added(np.array([value] * 6), rows, 2).tolist() == [4 * value, value]
