"""Any columns, any cells of them, and answers that would break a claim if anything could."""

from __future__ import annotations

import numpy as np

import sfumato as sf

COLUMNS = {
    "few": sf.Int(0, 3, nullable=False),
    "many": sf.Int(-50, 500),
    "pay": sf.Float(0, 10, nullable=False),
    "sex": sf.Enum("F", "M"),
    "city": sf.Enum(*[f"c{at}" for at in range(80)], nullable=False),
    "only": sf.Enum("x", nullable=False),
    "fixed": sf.Int(7, 7),
    "day": sf.Date("2024-01-01", "2024-01-05"),
    "long": sf.Date("2020-01-01", "2024-12-31", nullable=False),
    "on": sf.Bool(nullable=False),
    "note": sf.Text(),
    "sure": sf.Text(nullable=False),
    "list": sf.Enum(*[f"v{at}" for at in range(1200)], nullable=False),
}
NARROW, BROAD = (
    ("few", "sex", "only", "fixed", "day", "on"),
    ("many", "pay", "city", "long", "note", "sure", "list"),
)
ANSWERS = ("noise", "nothing", "all", "none", "wild", "any size", "plenty")


def forging(kind, draw):
    """What somebody who wants the claim to break could wish that the noise says."""
    said = {
        "nothing": lambda shape, _: np.zeros(shape),
        "all": lambda shape, _: np.full(shape, 1e12),
        "none": lambda shape, _: np.full(shape, -1e12),
        "wild": lambda shape, sigma: draw.standard_normal(shape) * sigma * 100,
        "any size": lambda shape, _: draw.choice([-1.0, 1.0], shape) * 10 ** draw.uniform(-3, 12, shape),
        "plenty": lambda shape, _: np.abs(draw.standard_normal(shape)) * 1e6,
    }
    if kind == "noise":
        return None
    return lambda total, sigma: said[kind](total.values.shape, sigma)


def picking(draw):
    """The first, the last or any of the candidates, or as the scores say."""
    return (None, lambda _: 0, lambda many: many - 1, lambda many: int(draw.integers(many)))[draw.integers(4)]


def cells_of(draw, column, many):
    """Cells of one column for some rows, spread or heaped, and some of them missing."""
    if column.name in ("note", "sure", "list"):
        words = [
            *"abcab",
            "v1",
            "v7",
            "",
            "a\0",
            "é" * 300,
            str(draw.integers(10**6)),
            *[None] * column.nullable,
        ]
        return [words[draw.integers(len(words))] for _ in range(many)]
    kind = draw.integers(3)
    found = draw.integers(0, column.known, many) if kind else np.full(many, draw.integers(column.known))
    missing = draw.random(many) < (0.3 if column.nullable else 0)
    return [None if gone else int(cell) for cell, gone in zip(found, missing, strict=True)]
