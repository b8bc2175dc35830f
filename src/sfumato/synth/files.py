"""Files of synthesizers: all that is public of one, as an Arrow file that nothing is run from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato._files import write_whole
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.synth._rules.tables import TooMuch
from sfumato.synth.columns.fine import Fine
from sfumato.synth.columns.ids import Id
from sfumato.synth.constraints import Constraints
from sfumato.synth.linked_tables import LinkedReleased, SyntheticTables
from sfumato.synth.linking import Link
from sfumato.synth.released import Released
from sfumato.synth.stored import check_columns, check_ids, check_linked, check_released, price_of
from sfumato.synth.synthesizer import Synthesizer

__all__ = ["load", "load_any", "load_tables", "save"]

_FORMAT, _LINKED, _VERSION = "sfumato synthesizer", "sfumato synthesizer of two tables", 1
_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("shape", pa.list_(pa.int64())),
        ("floats", pa.list_(pa.float64())),
        ("integers", pa.list_(pa.int64())),
    ]
)


def save(synthesizer: Synthesizer | SyntheticTables, path: str | os.PathLike[str]) -> None:
    """Write a synthesizer to an Arrow file, with facts as JSON, that `load` or `load_tables` reads back.

    It holds what is declared of each column, the price, and all that the fit released: no row, no key and no
    budget. The file is written whole or not at all.

    Args:
        synthesizer: What to write.
        path: Where; what is there is replaced.

    Raises:
        InvalidParameter: if it is no synthesizer, or the file cannot be written.
    """
    if not isinstance(synthesizer, Synthesizer | SyntheticTables):
        raise InvalidParameter(f"save takes a Synthesizer, not {type(synthesizer).__name__}.")
    facts: dict[str, Any] = {
        "version": _VERSION,
        "method": synthesizer.method,
        "epsilon": str(synthesizer.epsilon),
        "delta": str(synthesizer.delta),
        "receipt": None if synthesizer.receipt is None else synthesizer.receipt.number,
    }
    if isinstance(synthesizer, SyntheticTables):
        facts |= {"format": _LINKED, "link": synthesizer.link.to_dict()}
    else:
        facts |= {
            "format": _FORMAT,
            "table": synthesizer.table,
            "columns": [column.to_dict() for column in synthesizer.columns],
            "unit": synthesizer.unit,
            "ids": [list(one) for one in synthesizer.ids],
            "constraints": synthesizer.constraints.to_data(),
            "whole": synthesizer.asked == (synthesizer.table, None),
        }
    _write(path, facts, synthesizer.released.to_arrays())


def load(path: str | os.PathLike[str]) -> Synthesizer:
    """The synthesizer that `save` wrote.

    A file is data: it is read and checked, and nothing in it is run. What it says of its price is as good as
    where the file comes from; the proof is the receipt in the ledger.

    Raises:
        InvalidValue: if the file is no synthesizer, or one of another version.
    """
    with _reading(path, _FORMAT) as (facts, arrays):
        epsilon, delta = price_of(facts)
        columns = tuple(Fine.from_dict(column) for column in facts["columns"])
        check_columns(columns)
        released = Released.from_arrays(tuple(column.name for column in columns), arrays)
        constraints = Constraints.from_data(columns, facts["constraints"])
        check_released(released, columns, constraints)
        ids = [Id(*one) for one in facts.get("ids", [])]
        check_ids(ids, columns)
        table = str(facts["table"])
        return Synthesizer(
            table=table,
            columns=columns,
            method=str(facts["method"]),
            epsilon=epsilon,
            delta=delta,
            released=released,
            unit=str(facts["unit"]),
            receipt=None,
            constraints=constraints,
            ids=ids,
            asked=(table, None) if facts.get("whole") is True else None,
        )


def load_tables(path: str | os.PathLike[str]) -> SyntheticTables:
    """The synthesizer of two tables that `save` wrote; see `load`.

    Raises:
        InvalidValue: if the file holds none, or one of another version.
    """
    with _reading(path, _LINKED) as (facts, arrays):
        epsilon, delta = price_of(facts)
        link = Link.from_dict(facts["link"])
        released = LinkedReleased.from_arrays(link, arrays)
        check_linked(released, link)
        return SyntheticTables(
            link=link,
            method=str(facts["method"]),
            epsilon=epsilon,
            delta=delta,
            released=released,
            receipt=None,
        )


def load_any(path: str | os.PathLike[str]) -> Synthesizer | SyntheticTables:
    """What `save` wrote, of one table or of two.

    Raises:
        InvalidValue: if the file holds neither.
    """
    try:
        return load(path)
    except InvalidValue as refused:
        with suppress(InvalidValue):
            return load_tables(path)
        raise refused from None


def _write(path: str | os.PathLike[str], facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write facts and arrays, whole or not at all."""
    lines = [_line(name, array) for name, array in arrays.items()]
    schema = _SCHEMA.with_metadata({"sfumato": json.dumps(facts)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as file:
        file.write_table(pa.Table.from_pylist(lines, schema))
    try:
        write_whole(path, sink.getvalue().to_pybytes())
    except OSError:
        raise InvalidParameter(
            f"{Path(path)} cannot be written: it must be a file in an existing folder."
        ) from None


@contextmanager
def _reading(
    path: str | os.PathLike[str], format_: str
) -> Iterator[tuple[dict[str, Any], dict[str, NDArray[Any]]]]:
    """The facts and arrays of a file; whatever is wrong with them is said in one way."""
    place = Path(path)
    try:
        with pa.OSFile(str(place), "rb") as stream:
            table = pa.ipc.open_file(stream).read_all()
        table.validate(full=True)  # else broken offsets would be read as they are
        facts = json.loads((table.schema.metadata or {})[b"sfumato"])
        if facts["format"] != format_ or facts["version"] != _VERSION:
            raise ValueError("another format")
        yield facts, {line["name"]: _array(line) for line in table.to_pylist()}
    except OSError:
        raise InvalidValue(f"{place} cannot be read: no such file.") from None
    except TooMuch as refused:
        raise InvalidValue(f"{place} cannot be read. {refused}") from None
    except Exception:  # a file may hold anything, and whatever is wrong with it is said in one way
        raise InvalidValue(f"{place} holds no synthesizer of this version of Sfumato.") from None


def _line(name: str, array: NDArray[Any]) -> dict[str, Any]:
    """An array as a line of the file: bits stay as they are."""
    flat = np.ravel(array)
    whole = flat.dtype.kind != "f"
    return {
        "name": name,
        "shape": list(array.shape),
        "floats": None if whole else flat.astype(np.float64),
        "integers": flat.astype(np.int64) if whole else None,
    }


def _array(line: dict[str, Any]) -> NDArray[Any]:
    whole = line["integers"] is not None
    flat = np.array(line["integers" if whole else "floats"], np.int64 if whole else np.float64)
    return flat.reshape(line["shape"])
