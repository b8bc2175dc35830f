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


def changed(data: Any) -> Iterator[Any]:
    """The same with one thing anywhere in it another one."""
    yield from VALUES
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, one in inside:
        for other in changed(one):
            whole = copy.copy(data)
            whole[key] = other
            yield whole


def test_changed_facts_are_refused_or_make_sense(saved: Path, tmp_path: Path) -> None:
    facts, lines = parts(saved)
    every, path = list(changed(facts)), tmp_path / "changed.arrow"
    lined = pa.Table.from_pylist(lines, _SCHEMA)
    for other in random.Random(2).sample(every, 60):
        write(path, json.dumps(other), lined)
        use(path)
    for text in ("[" * 100_000, "{", "", "null"):
        write(path, text, lined)
        with pytest.raises(InvalidValue):
            sf.synth.load(path)


@pytest.mark.parametrize(
    "price", [("1e999999999", "1/2"), ("1/0", "1/2"), ("1", "2"), ("-1", "1/2"), ("1", "0")]
)
def test_a_price_that_is_none_is_refused(saved: Path, tmp_path: Path, price: tuple[str, str]) -> None:
    facts, lines = parts(saved)
    other = facts | dict(zip(("epsilon", "delta"), price, strict=True))
    write(tmp_path / "price.arrow", json.dumps(other), pa.Table.from_pylist(lines, _SCHEMA))
    with pytest.raises(InvalidValue):
        sf.synth.load(tmp_path / "price.arrow")


def test_changed_numbers_are_refused_or_make_sense(saved: Path, tmp_path: Path) -> None:
    facts, lines = parts(saved)
    path = tmp_path / "changed.arrow"
    for place, line in enumerate(lines):
        kind = "floats" if line["integers"] is None else "integers"
        for number in NUMBERS:
            if not line[kind] or (kind == "integers" and not isinstance(number, int)):
                continue
            own = [number if kind == "integers" else float(number), *line[kind][1:]]
            others = [*lines[:place], line | {kind: own}, *lines[place + 1 :]]
            write(path, json.dumps(facts), pa.Table.from_pylist(others, _SCHEMA))
            use(path)
            if number != number:
                with pytest.raises(InvalidValue):
                    sf.synth.load(path)


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
