"""Whatever is declared goes in: every kind of column, by every method, also of hardly any rows."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli import app
from sfumato.errors import InvalidParameter, InvalidValue, QueryRefused
from sfumato.synth import METHODS
from synthetic import session_of

DAY = datetime.date(2024, 2, 29)
MADE = {  # a declaration, and values that the source has
    "int": (sf.Int(-3, 10**9), [5, -(2**60), None]),
    "one int": (sf.Int(7, 7, nullable=False), [7, 8, None]),
    "float": (sf.Float(0, 1), [0.5, float("nan"), float("inf"), -1e300, None]),
    "one float": (sf.Float(2, 2), [2.0, None]),
    "decimal": (sf.Float("0.1", "0.9"), pa.array([1, None], pa.decimal128(10, 2))),
    "bool": (sf.Bool(), [True, None]),
    "sure": (sf.Bool(nullable=False), [False, None]),
    "date": (sf.Date("2024-01-01", "2024-12-31"), [DAY, datetime.date(1, 1, 1), None]),
    "days": (sf.Date("1900-01-01", "2100-12-31", nullable=False), [DAY, None]),
    "times": (sf.Date("2024-01-01", "2024-12-31"), pa.array([0, None], pa.timestamp("us"))),
    "moments": (sf.Timestamp("2024-01-01", "2024-12-31"), [datetime.datetime(2024, 2, 29, 8, 30), None]),
    "instant": (sf.Timestamp("2024-01-01", "2024-01-01T00:00:00", nullable=False), [None]),
    "clocks": (sf.Time("08:00", "18:00"), [datetime.time(8), datetime.time(23, 59, 59), None]),
    "enum": (sf.Enum("a", "b"), ["a", "c", None]),
    "numbers": (sf.Enum(1, 2, nullable=False), [1, 9, None]),
    "many": (sf.Enum(*map(str, range(1500))), ["3", "x", None]),
    "text": (sf.Text(), ["a", "", "a\0", "é" * 1000, "\U0001f600", None]),
    "always": (sf.Text(nullable=False), ["b", None]),
    "whole as text": (sf.Text(), [1, 2, None]),
}


def source(kind: str, many: int) -> pa.Table:
    """So many rows of a column: none, one, some, or (−1) nothing but NULL."""
    values = pa.array(MADE[kind][1])
    held = pa.nulls(3, values.type) if many < 0 else values.take(pa.array(np.arange(many) % len(values)))
    return pa.table({"who": np.arange(len(held)), "x": held})


@pytest.mark.parametrize("kind", MADE)
def test_every_kind_of_column_goes_in(kind: str) -> None:
    for at, many in enumerate((0, -1, 6)):
        with session_of(source(kind, many), columns={"x": MADE[kind][0]}) as session:
            method = list(METHODS)[(at + list(MADE).index(kind)) % len(METHODS)]
            made = sf.synth.fit(session, epsilon=1, delta="1e-6", method=method)
            rows = made.sample(20, seed=0)
            assert rows.num_rows == 20
            assert MADE[kind][0].nullable or not rows["x"].null_count


@pytest.mark.parametrize("method", METHODS)
def test_kinds_go_in_together_by_every_method(method: str) -> None:
    columns = {name: MADE[name][0] for name in ("sure", "numbers", "date", "text", "always")}
    for many in (0, 12):
        rows = pa.table({"who": np.arange(many)} | {name: source(name, many)["x"] for name in columns})
        with session_of(rows, columns=columns) as session:
            made = sf.synth.fit(session, epsilon=1, delta="1e-6", method=method)
            assert made.sample(3).column_names == ["who", *columns]
            assert session.balance().spent == 1


# ── identifiers


def orders(many: int = 60) -> pa.Table:
    return pa.table(
        {
            "who": np.arange(many),
            "order": np.arange(many) + 70_000,
            "age": np.arange(many) % 50,
            "code": [f"secret {at}" for at in range(many)],
            "share": np.arange(many) / many,
        }
    )


COLUMNS = {"order": sf.Int(), "age": sf.Int(0, 99), "code": sf.Text(), "share": sf.Float(0, 1)}


def test_ids_are_made_anew_in_their_place_and_kept_in_files(tmp_path: Path) -> None:
    with session_of(orders(), columns=COLUMNS) as session:
        made = sf.synth.fit(session, epsilon=1, delta="1e-6", ids=["code", "order"])
        assert session.balance().spent == 1
        rows = made.sample(40, seed=0)
        assert rows.column_names == ["who", "order", "age", "code", "share"]
        assert rows["order"].to_pylist() == list(range(1, 41))
        assert rows["code"].to_pylist() == [str(at) for at in range(1, 41)]
        assert [column.name for column in made.columns] == ["age", "share"]
        same = sf.synth.fit(session, epsilon=1, delta="1e-6", columns=["age", "share"])
        assert session.balance().spent == 1  # nothing else was read
        assert same.sample(5).column_names == ["who", "age", "share"]
        sf.synth.save(made, tmp_path / "made")
        assert sf.synth.load(tmp_path / "made").sample(40, seed=0).equals(rows)
        few = sf.synth.fit(session, epsilon=1, delta="1e-6", columns=["share", "age"], ids="order")
        assert few.sample(2).column_names == ["who", "share", "age", "order"]


@pytest.mark.parametrize(
    ("ids", "kind", "said"),
    [
        (["share"], InvalidParameter, "neither"),
        (["ordre"], QueryRefused, "order"),
        (["order", "age", "code"], InvalidParameter, "nothing is left"),
    ],
)
def test_wrong_ids_are_refused(ids: Any, kind: Any, said: str) -> None:
    columns = None if len(ids) == 1 else ids
    with session_of(orders(3), columns=COLUMNS) as session:
        with pytest.raises(kind, match=said):
            sf.synth.fit(session, epsilon=1, delta="1e-6", ids=ids, columns=columns)
        assert session.balance().spent == 0
        with pytest.raises(InvalidParameter, match=r"ids=\['order'\]"):
            sf.synth.fit(session, epsilon=1, delta="1e-6")


def test_a_file_with_wrong_ids_is_refused(tmp_path: Path) -> None:
    with session_of(orders(3), columns=COLUMNS) as session:
        made = sf.synth.fit(session, epsilon=1, delta="1e-6", columns=["age"], ids=["order"])
    made.ids = (sf.synth.columns.ids.Id("order", "date", 0),)  # type: ignore[arg-type]
    sf.synth.save(made, tmp_path / "made")
    with pytest.raises(InvalidValue):
        sf.synth.load(tmp_path / "made")


def test_a_column_that_is_called_like_the_unit_is_refused_before_it_is_paid() -> None:
    with session_of(orders(3), columns=COLUMNS) as session:
        for asked, ids in (
            ("SELECT age AS who, share FROM people", ()),
            ('SELECT age, share AS "WHO" FROM people', ()),
            ('SELECT age, "order" AS who FROM people', ["who"]),
        ):
            with pytest.raises(InvalidParameter, match=r"A column is called 'who', .* AS who_2"):
                sf.synth.fit(session, asked, epsilon=1, delta="1e-6", ids=ids)
        assert session.balance().spent == 0
        rows = "SELECT who, age AS who_2 FROM people"
        made = sf.synth.fit(session, rows, epsilon=1, delta="1e-6")
        assert made.sample(2).column_names == ["who", "who_2"]


# ── the command


def test_the_command_takes_texts_and_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{at},{at + 900},{'Bonn' if at % 2 else 'a ' + str(at)}" for at in range(300)]
    Path("shop.csv").write_text("who,order,city\n" + "\n".join(lines))
    Path("sfumato.toml").write_text(
        "[datasets.shop]\nepsilon = 9\ndelta = 1e-6\n"
        '[tables.shop]\nsource = "shop.csv"\nunit = "who"\nmax_rows = 1\n'
        'columns = { order = { type = "int" }, city = { type = "text" } }\n'
    )
    command = ["synth", "shop", "--epsilon", "8", "--delta", "1e-7", "--id", "order", "-o", "out.csv"]
    done = CliRunner().invoke(app, [*command, "--json", "--rows", "50", "--seed", "1"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["columns"] == ["who", "order", "city"]
    written = Path("out.csv").read_text().splitlines()
    assert {line.split(",")[-1] for line in written[1:]} <= {'"Bonn"', '"others"', ""}
    assert CliRunner().invoke(app, command).exit_code == 0
