"""Sections of sfumato.toml as plain data: what is known, what is text, what is a path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.catalog.keys import KEYS, nearest
from sfumato.errors import CatalogUnusable

__all__ = ["check_known", "named_in", "place_of", "section_of", "text_of"]


def check_known(pattern: str, data: Mapping[str, Any], where: str) -> None:
    """Refuse a setting that does not exist, naming the nearest that does."""
    for key in data:
        if key not in KEYS[pattern]:
            place = f"{where}: " if where else ""
            fix = nearest(key, KEYS[pattern])
            raise CatalogUnusable(f"{place}there is no setting {key[:40]!r}.{fix}")


def section_of(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A section with known settings; empty if it is not there."""
    section = data.get(name, {})
    if not isinstance(section, dict):
        raise CatalogUnusable(f"{name} must be a section: [{name}].")
    check_known(name, section, name)
    return section


def named_in(data: Mapping[str, Any], name: str, where: str | None = None) -> dict[str, dict[str, Any]]:
    """The named subsections of a section."""
    section = data.get(name, {})
    place = where or name
    if not isinstance(section, dict) or not all(isinstance(entry, dict) for entry in section.values()):
        raise CatalogUnusable(f"{place} must have one section each: [{place}.NAME].")
    return section


def text_of(section: Mapping[str, Any], key: str, where: str) -> str:
    """A setting that must be text."""
    value = section[key]
    if not isinstance(value, str) or not value:
        raise CatalogUnusable(f"{where}: {key} must be text.")
    return value


def place_of(source: str, folder: Path) -> str:
    """A path relative to the catalog's folder as one that holds anywhere; addresses as they are."""
    return source if "://" in source else os.path.join(folder, os.path.expanduser(source))
