"""Files of synthesizers that somebody has changed: one readable error, whatever they hold."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidValue
from sfumato.synth._rules import tables
from sfumato.synth.files import _SCHEMA

VALUES = [
    None,
    -1,
    10**18,
    10**40,
    1.5,
    float("nan"),
    "",
    "1/0",
    "1e30000",
    "1e999999999",
    [],
    {},
    [[]],
    True,
]
NUMBERS = [-1, 2**62, float("nan"), float("-inf")]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = pa.table({"age": np.arange(60), "sex": ["F", "M"] * 30, "stage": [0, 1, 2] * 20})
    columns = {"age": sf.Int(0, 99), "sex": sf.Enum("F", "M", nullable=False), "stage": sf.Int(0, 2)}
    table = sf.PrivateTable("people", source=rows, unit=sf.PrivacyUnit.row(), schema=columns)
    rules = [
        "age >= 18",
        sf.synth.Determines("stage", "sex", {0: "F"}),
        sf.synth.Totals("sex", {"F": 40, "M": 20}),
    ]
    path = tmp_path_factory.mktemp("files") / "people.arrow"
    with sf.Session(table, budget=sf.Budget(2, 1e-6)) as session:
        made = sf.synth.fit(session, epsilon=1, delta=1e-9, method="mst", constraints=rules)
        sf.synth.save(made, path)
    return path


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    people = pa.table({"who": np.arange(40), "age": np.arange(40) * 2, "sex": ["F", "M"] * 20})
    visits = pa.table({"who": np.arange(60) // 2, "kind": ["a", "b", "c"] * 20})
    tables = (
        sf.PrivateTable(
            "people",
            source=people,
            unit=sf.PrivacyUnit("who", max_rows=1),
            schema={"who": sf.Int(), "age": sf.Int(0, 99), "sex": sf.Enum("F", "M", nullable=False)},
        ),
        sf.PrivateTable(
            "visits",
            source=visits,
            unit=sf.PrivacyUnit.via("people", on="who", max_rows=3),
            schema={"who": sf.Int(), "kind": sf.Enum("a", "b", "c", nullable=False)},
        ),
    )
    path = tmp_path_factory.mktemp("files") / "clinic.arrow"
    with sf.Session(*tables, budget=sf.Budget(2, 1e-6)) as session:
        sf.synth.save(
            sf.synth.tables(session, ["people", "visits"], epsilon=1, delta=1e-9, method="mst"), path
        )
    return path


def parts(path: Path) -> tuple[Any, list[dict[str, Any]]]:
    table = pa.ipc.open_file(path.read_bytes()).read_all()
    return json.loads(table.schema.metadata[b"sfumato"]), table.to_pylist()


def write(path: Path, facts: str, lines: pa.Table) -> None:
    schema = _SCHEMA.with_metadata({"sfumato": facts})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_table(lines.cast(schema))


def use(path: Path) -> None:
    """Load it and do what one does with it; what is refused is refused while it is loaded."""
    try:
        made = sf.synth.load(path)
    except InvalidValue:
        return
    repr(made)
    assert made.sample(5, seed=1).num_rows == 5
    for column in made.columns:
        made.marginal([column.name])


def use_linked(path: Path) -> None:
    """The same for two tables."""
    try:
        made = sf.synth.load_tables(path)
    except InvalidValue:
        return
    repr(made)
    assert made.sample(5, seed=1)[made.link.parent].num_rows == 5
    for column in made.link.columns:
        made.marginal([column.name])


def changed(data: Any) -> Iterator[Any]:
    """The same with one thing anywhere in it another one."""
    yield from VALUES
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, one in inside:
        for other in changed(one):
            whole = copy.copy(data)
            whole[key] = other
            yield whole


@pytest.mark.parametrize(("kind", "trying"), [("saved", use), ("linked", use_linked)])
def test_changed_facts_are_refused_or_make_sense(
    kind: str, trying: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    facts, lines = parts(request.getfixturevalue(kind))
    every, path = list(changed(facts)), tmp_path / "changed.arrow"
    lined = pa.Table.from_pylist(lines, _SCHEMA)
    for other in random.Random(2).sample(every, 60):
        write(path, json.dumps(other), lined)
        trying(path)
    for text in ("[" * 100_000, "{", "", "null"):
        write(path, text, lined)
        for load in (sf.synth.load, sf.synth.load_tables):
            with pytest.raises(InvalidValue):
                load(path)


@pytest.mark.parametrize(
    "price", [("1e999999999", "1/2"), ("1/0", "1/2"), ("1", "2"), ("-1", "1/2"), ("1", "0")]
)
def test_a_price_that_is_none_is_refused(saved: Path, tmp_path: Path, price: tuple[str, str]) -> None:
    facts, lines = parts(saved)
    other = facts | dict(zip(("epsilon", "delta"), price, strict=True))
    write(tmp_path / "price.arrow", json.dumps(other), pa.Table.from_pylist(lines, _SCHEMA))
    with pytest.raises(InvalidValue):
        sf.synth.load(tmp_path / "price.arrow")


def test_more_constraints_than_can_be_tried_are_refused_in_a_sentence(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts, lines = parts(saved)
    one, lined, path = facts["constraints"][0], pa.Table.from_pylist(lines, _SCHEMA), tmp_path / "many"
    for many in (501, 100_000):
        write(path, json.dumps(facts | {"constraints": [one] * many}), lined)
        with pytest.raises(InvalidValue, match=f"There are {many:,} constraints, and at most 500 are kept"):
            sf.synth.load(path)
    monkeypatch.setattr(tables, "_MOST_STEPS", 2**19)
    sf.synth.load(saved)
    long = [one[0], one[1], ["call", "and", *[one[2]] * 700]]  # 701 operations for each of 101 values
    write(path, json.dumps(facts | {"constraints": [long] * 9}), lined)
    with pytest.raises(InvalidValue, match=r"would take \d\d\d,\d\d\d steps .* at most 524,288 are made"):
        sf.synth.load(path)


@pytest.mark.parametrize(("kind", "trying"), [("saved", use), ("linked", use_linked)])
def test_changed_numbers_are_refused_or_make_sense(
    kind: str, trying: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    facts, lines = parts(request.getfixturevalue(kind))
    path = tmp_path / "changed.arrow"
    for place, line in enumerate(lines):
        kind = "floats" if line["integers"] is None else "integers"
        for number in NUMBERS:
            if not line[kind] or (kind == "integers" and not isinstance(number, int)):
                continue
            own = [number if kind == "integers" else float(number), *line[kind][1:]]
            others = [*lines[:place], line | {kind: own}, *lines[place + 1 :]]
            write(path, json.dumps(facts), pa.Table.from_pylist(others, _SCHEMA))
            trying(path)
            if number != number:
                with pytest.raises(InvalidValue):
                    (sf.synth.load if kind == "saved" else sf.synth.load_tables)(path)


def test_broken_bytes_are_never_read_as_they_are(saved: Path, tmp_path: Path) -> None:
    whole, chance, path = saved.read_bytes(), random.Random(3), tmp_path / "broken.arrow"
    for _ in range(40):
        broken = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        path.write_bytes(bytes(broken))
        use(path)


def test_offsets_beyond_their_numbers_are_refused(saved: Path, tmp_path: Path) -> None:
    """Arrow reads offsets without a look unless it is asked to look."""
    facts, lines = parts(saved)
    table = pa.Table.from_pylist(lines, _SCHEMA)
    column = table["floats"].combine_chunks()
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1).copy()
    offsets[1:-1] = 2**30
    far = pa.ListArray.from_buffers(
        column.type, len(column), [None, pa.py_buffer(offsets)], children=[column.values]
    )
    path = tmp_path / "far.arrow"
    schema = _SCHEMA.with_metadata({"sfumato": json.dumps(facts)})
    batch = pa.RecordBatch.from_arrays(
        [*(table[at].combine_chunks() for at in (0, 1)), far, table[3].combine_chunks()], schema=schema
    )
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(batch)
    with pytest.raises(InvalidValue):
        sf.synth.load(path)


def _literal(value: int | str) -> list[Any]:
    return ["literal", "text" if isinstance(value, str) else "integer", value]


_SEX, _AGE = ["column", "sex"], ["column", "age"]
_WRONG_RULES: dict[str, list[Any]] = {
    "a pattern that takes for ever": [
        "condition", "x", ["call", "like", _SEX, _literal("%a" * 400 + "%b")],
    ],
    "a text that grows without end": [
        "condition",
        "x",
        ["call", "equal", ["call", "replace", _SEX, _literal("M"), _literal("M" * 10)], _literal("M")],
    ],
    "a text": ["condition", "x", ["call", "concat", _SEX, _SEX]],
    "a number": ["condition", "x", ["call", "add", _AGE, _AGE]],
    "a constant": ["condition", "x", _literal(1)],
    "other kinds": ["condition", "x", ["call", "equal", _AGE, _literal("F")]],
    "no value": ["follows", "x", "age", "sex", [[_literal(3), _literal("Q")]]],
    "itself": ["follows", "x", "stage", "stage", [[_literal(1), _literal(2)]]],
    "totals beyond 64 bits": ["totals", 1, [2**62 + 3, 2**62]],
    "totals of too many rows": ["totals", 1, [10**18, 5]],
}  # fmt: skip


@pytest.mark.parametrize("rule", _WRONG_RULES)
def test_constraints_that_nobody_can_declare_are_refused(saved: Path, tmp_path: Path, rule: str) -> None:
    facts, lines = parts(saved)
    other = facts | {"constraints": [_WRONG_RULES[rule]]}
    write(tmp_path / "rule.arrow", json.dumps(other), pa.Table.from_pylist(lines, _SCHEMA))
    with pytest.raises(InvalidValue):
        sf.synth.load(tmp_path / "rule.arrow")


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("saved", {"ids": [["age", "integer", 0]]}),
        ("saved", {"ids": [["n", "integer", 0], ["n", "text", 1]]}),
        ("saved", {"ids": [["n", "integer", 0.5]]}),
        ("linked", {"parent": "visits"}),
        ("linked", {"key": ["age"]}),
        ("linked", {"key": []}),
        ("linked", {"pointer": ["kind", "who"]}),
        ("linked", {"most": 2}),
    ],
)
def test_names_that_collide_are_refused(
    kind: str, change: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    facts, lines = parts(request.getfixturevalue(kind))
    facts = facts | change if kind == "saved" else facts | {"link": facts["link"] | change}
    write(tmp_path / "names.arrow", json.dumps(facts), pa.Table.from_pylist(lines, _SCHEMA))
    with pytest.raises(InvalidValue):
        (sf.synth.load if kind == "saved" else sf.synth.load_tables)(tmp_path / "names.arrow")


def test_two_models_of_parents_have_the_same_cells(linked: Path, tmp_path: Path) -> None:
    """Parents without children in more cells than those with some: none of them could be drawn."""
    facts, lines = parts(linked)
    held = {line["name"]: dict(line) for line in lines}
    fine = len(held["childless place 0"]["integers"])
    held["childless place 0"]["integers"] = list(range(fine))
    held["childless measured"]["integers"] = [0]
    left = [
        line
        for name, line in held.items()
        if not name.startswith(("childless clique", "childless counts", "childless model clique"))
        and not name.startswith("childless model potential")
    ]
    write(tmp_path / "cells.arrow", json.dumps(facts), pa.Table.from_pylist(left, _SCHEMA))
    with pytest.raises(InvalidValue):
        sf.synth.load_tables(tmp_path / "cells.arrow")
