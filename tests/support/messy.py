"""A hospital's export as people meet it: 30 columns, and everything in it that a reader may stumble over."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Messy", "write_messy"]

MONTHS = np.arange("2024-01", "2025-01", dtype="datetime64[M]")
UNREADABLE = 6  # the month, counted from 1, of whose days three in ten are not readable
_TOWNS = ["Köln", "Düsseldorf", "Münster", "Aachen", "Essen"]
_WARDS = ["Chirurgie", "Geburtshilfe", "Innere", "Notaufnahme", "Augen"]
_NOTHING = ["NA", "NULL", "-", "n/a", ""]


@dataclass(frozen=True, slots=True)
class Messy:
    """What is true of the file, before anything was written badly.

    Attributes:
        path: The file.
        columns: Its columns by their names, as numbers, days and words.
        lost: Which rows have a day of admission that nobody can read.
    """

    path: Path
    columns: dict[str, Any]
    lost: Any

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.columns["patient_id"])

    def count(self, name: str, value: object) -> int:
        """How many rows have this value."""
        return int(np.count_nonzero(self.columns[name] == value))

    @property
    def words(self) -> set[str]:
        """Words of the first hundred rows, which nobody may see before they are declared."""
        cells = self.path.read_text(encoding="latin-1").replace("\n", ";").split(";")
        trimmed = (cell.strip(' "') for cell in cells[30:3030])
        return {cell for cell in trimmed if len(cell) > 3 and any(map(str.isalpha, cell))}

    def readable(self, number: int) -> int:
        """How many rows were admitted in a month, on a day that can be read."""
        return int(np.count_nonzero(self._in(number) & ~self.lost))

    def admitted(self, number: int) -> int:
        """How many rows were admitted in a month, whether or not its day can be read."""
        return int(np.count_nonzero(self._in(number)))

    def _in(self, number: int) -> Any:
        return self.columns["admitted"].astype("datetime64[M]") == MONTHS[number - 1]


def write_messy(folder: Path, rows: int, seed: int = 17) -> Messy:
    """Write `visits.csv`: semicolons with blanks after them, Latin-1, decimal commas, two formats of dates.

    Three in ten days of June are not readable, two columns are called `cost`, some ids look alike ("P0017"
    and "p0017"), nothing is spelled in five ways, and a few patients come very often.
    """
    draw = np.random.default_rng(seed)
    patients = max(rows // 10, 50)
    often = np.minimum(draw.zipf(1.8, patients), 300)
    owner = draw.choice(patients, rows, p=often / often.sum())
    born = draw.integers(0, 100, patients)
    sexes = draw.choice(["F", "M"], patients, p=[0.54, 0.46])
    town = draw.choice(_TOWNS, patients, p=[0.4, 0.25, 0.15, 0.12, 0.08])
    day = np.datetime64("2024-01-01") + draw.integers(0, 366, rows)
    stay = draw.poisson(3, rows)
    truth: dict[str, Any] = {
        "patient_id": owner,
        "age": born[owner],
        "sex": sexes[owner],
        "town": town[owner],
        "ward": draw.choice(_WARDS, rows, p=[0.3, 0.1, 0.3, 0.2, 0.1]),
        "admitted": day,
        "discharged": day + stay,
        "stay": stay,
        "cost": np.round(draw.gamma(2, 400, rows), 2),
        "cost_2": np.round(draw.gamma(1, 100, rows), 2),
        "bp_sys": draw.normal(130, 18, rows).round().astype(int),
        "bp_dia": draw.normal(80, 10, rows).round().astype(int),
        "weight": draw.normal(75, 15, rows).round(1),
        "height": draw.normal(170, 10, rows).round(1),
        "temp": draw.normal(37, 0.7, rows).round(1),
        "glucose": draw.gamma(5, 20, rows).round(1),
        "triage": draw.integers(1, 6, rows),
        "score": draw.integers(0, 101, rows),
        "urgent": draw.choice(["ja", "nein"], rows),
        "smoker": draw.choice(["yes", "no"], rows, p=[0.25, 0.75]),
        "insurer": draw.choice(["AOK", "TK", "Barmer"], rows, p=[0.5, 0.3, 0.2]),
        "diagnosis": _codes(draw, rows),
        "room": draw.integers(1, 400, rows),
        "doctor": draw.integers(1, 80, rows),
        "zip": owner * 37 % 90_000 + 10_000,
        "readmitted": draw.choice(["0", "1"], rows, p=[0.85, 0.15]),
        "drug": draw.choice(["Aspirin", "Ibuprofen", "Metformin"], rows),
        "visit_no": np.arange(rows),
        "note": draw.choice(["ok", 'siehe "Akte"', "Rückruf; morgen", ""], rows),
        "media": draw.integers(0, 9, rows),
    }
    written = {name: [str(value) for value in values.tolist()] for name, values in truth.items()}
    june = day.astype("datetime64[M]") == MONTHS[UNREADABLE - 1]
    lost = june & (draw.random(rows) < 0.3)
    cells = _messed(written, lost, draw)
    return Messy(_write(folder / "visits.csv", cells), truth, lost)


def _codes(draw: np.random.Generator, rows: int) -> Any:
    """Diagnoses, of which few are common."""
    codes = np.array([f"{letter}{number:02d}" for letter in "ABCDE" for number in range(20)])
    weights = 1 / np.arange(1, len(codes) + 1) ** 1.1
    return draw.choice(codes, rows, p=weights / weights.sum())


def _messed(cells: dict[str, list[str]], lost: Any, draw: np.random.Generator) -> dict[str, list[str]]:
    """The cells of each column as they are written."""
    rows = len(cells["age"])
    odd = draw.random((6, rows))
    mixed = np.where(odd[0] < 0.05, "p", "P")
    cells["patient_id"] = [
        f"{start}{int(cell):06d}" for start, cell in zip(mixed, cells["patient_id"], strict=True)
    ]
    for name in ("cost", "cost_2", "weight", "height", "temp", "glucose"):
        cells[name] = [cell.replace(".", ",") for cell in cells[name]]
    for name, part in (("bp_sys", odd[1]), ("bp_dia", odd[1]), ("smoker", odd[2])):
        words = draw.choice(_NOTHING, rows)
        cells[name] = [
            word if lost < 0.1 else cell for cell, word, lost in zip(cells[name], words, part, strict=True)
        ]
    cells["sex"] = [
        cell.lower() if low < 0.2 else cell for cell, low in zip(cells["sex"], odd[3], strict=True)
    ]
    cells["score"] = [
        f"{cell} Pkt" if unit < 0.03 else cell for cell, unit in zip(cells["score"], odd[4], strict=True)
    ]
    cells["doctor"] = [f"Dr. {cell}" for cell in cells["doctor"]]
    cells["room"] = [f"{int(cell):03d}" for cell in cells["room"]]
    german = odd[5] < 0.4
    days = zip(cells["admitted"], lost, german, strict=True)
    cells["admitted"] = [
        "??.06.24" if is_lost else ".".join(reversed(day.split("-"))) if is_german else day
        for day, is_lost, is_german in days
    ]
    return cells


def _write(path: Path, cells: dict[str, list[str]]) -> Path:
    """Semicolons with a blank after them, but before quotes; Latin-1; `cost` is the name of two columns."""
    header = ["cost" if name == "cost_2" else name for name in cells]
    rows = zip(*cells.values(), strict=True)
    lines = (";".join(_field(cell, place) for place, cell in enumerate(row)) for row in rows)
    path.write_text("\n".join((";".join(header), *lines)) + "\n", encoding="latin-1")
    return path


def _field(cell: str, place: int) -> str:
    if ";" in cell or '"' in cell:
        return '"' + cell.replace('"', '""') + '"'
    return f" {cell}" if place % 3 == 2 else cell
