"""Hierarchies of the Adult census table for a peer that generalises whole columns, level by level.

The usual ones: ages by 5, 10 and 20 years, education by stage, marital status by whether a spouse is present,
countries by region, and `*` at the top of each.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

STAGES = {
    "primary": ("Preschool", "1st-4th", "5th-6th", "7th-8th"),
    "secondary": ("9th", "10th", "11th", "12th", "HS-grad"),
    "college": ("Some-college", "Assoc-acdm", "Assoc-voc"),
    "degree": ("Bachelors", "Masters", "Prof-school", "Doctorate"),
}
SCHOOL = {"primary": "school", "secondary": "school", "college": "higher", "degree": "higher"}
SPOUSES = {
    "spouse present": ("Married-civ-spouse", "Married-AF-spouse"),
    "no spouse present": ("Never-married", "Divorced", "Separated", "Widowed", "Married-spouse-absent"),
}
REGIONS = {
    "North America": ("United-States", "Canada", "Mexico", "Puerto-Rico", "Outlying-US(Guam-USVI-etc)"),
    "Latin America": (
        "El-Salvador", "Cuba", "Jamaica", "Dominican-Republic", "Guatemala", "Columbia", "Haiti", "Nicaragua",
        "Peru", "Ecuador", "Trinadad&Tobago", "Honduras",
    ),
    "Asia": (
        "Philippines", "India", "China", "Vietnam", "Japan", "Taiwan", "Iran", "Hong", "Cambodia", "Thailand",
        "Laos", "South",
    ),
    "Europe": (
        "Germany", "England", "Italy", "Poland", "Portugal", "Greece", "France", "Ireland", "Yugoslavia",
        "Hungary", "Scotland", "Holand-Netherlands",
    ),
    "unknown": ("?",),
}  # fmt: skip


def levels(table: pa.Table, columns: list[str]) -> dict[str, list[list[Any]]]:
    """For each column its values, and beside them what they are at each level, up to `*`."""
    made = {}
    for name in columns:
        values = sorted(table[name].unique().to_pylist())
        made[name] = [values, *_between(name, values), ["*"] * len(values)]
    return made


def _between(name: str, values: list[Any]) -> list[list[str]]:
    if name == "age":
        return [[_interval(age, width) for age in values] for width in (5, 10, 20)]
    if name == "education":
        stages = _groups(STAGES, values)
        return [stages, [SCHOOL[stage] for stage in stages]]
    if name == "marital-status":
        return [_groups(SPOUSES, values)]
    if name == "native-country":
        return [_groups(REGIONS, values)]
    return []


def _interval(age: int, width: int) -> str:
    low = age // width * width
    return f"[{low}, {low + width})"


def _groups(groups: dict[str, tuple[str, ...]], values: list[str]) -> list[str]:
    of = {value: name for name, held in groups.items() for value in held}
    return [of[value] for value in values]
