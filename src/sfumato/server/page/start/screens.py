"""What the screens of `/start` show, from names, types and what the steward said so far."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sfumato.catalog.write import Decided, DraftTable, known_bounds
from sfumato.explain import compare, source
from sfumato.explain.figures import percent_up
from sfumato.schema.classify import ROLES, units_of
from sfumato.server.grounds import Grounds
from sfumato.server.page.forms import place_in
from sfumato.server.page.start.drafting import DAYS, OUT, STEPS, TYPES, Draft

__all__ = ["digest", "screen"]

_PRESETS = (
    ("0.5", "Very careful", "Answers are coarser. For health, faith, money of few people."),
    ("1", "Careful", "A common start, and the default."),
    ("3", "Closer answers", "For data that would embarrass nobody much, or of very many people."),
)
_USUAL, _DELTA = "1", "1e-6"
_LIKELY, _LISTED = 12, 30


def screen(
    step: str, draft: Draft, grounds: Grounds, datasets: list[str], sent: Mapping[str, str]
) -> dict[str, Any]:
    """What one of them shows.

    Args:
        step: Which.
        draft: What is decided so far.
        grounds: Where it will be written.
        datasets: The budgets that there are.
        sent: What was sent, and refused.

    Raises:
        CatalogUnusable: if it cannot be written.
    """
    if step == "budget":
        return _budget(draft, datasets, sent)
    if step == "look":
        return _look(draft, grounds)
    return {"whose": _whose, "columns": _columns, "bounds": _bounds}[step](draft, sent)


def digest(text: str) -> str:
    """What a text is known by when it comes back."""
    return hashlib.sha256(text.encode()).hexdigest()


def _whose(draft: Draft, sent: Mapping[str, str]) -> dict[str, Any]:
    table = draft.table
    columns = list(table.columns)
    likely = [name for name in units_of(table.columns) if table.role(name) == "identifier"]
    order = [*likely, *(name for name in columns if name not in likely)]
    usual = draft.unit or (likely[0] if likely else "row")
    said = sent.get("unit", "")
    place = place_in(said, len(columns))
    chosen = said if said == "row" else usual if place is None else columns[place]
    listed = [(columns.index(name), name, name in likely, name == chosen) for name in order]
    return {
        "first": [each for place, each in enumerate(listed) if place < _LIKELY or each[3]],
        "others": [each for place, each in enumerate(listed) if place >= _LIKELY and not each[3]],
        "by_row": chosen == "row",
        "rows": sent.get("rows", "" if table.max_rows is None else str(table.max_rows)),
        "doubt": draft.naming.doubt,
        "header": draft.naming.header,
        "untyped": table.untyped,
    }


def _columns(draft: Draft, sent: Mapping[str, str]) -> dict[str, Any]:
    table, listed = draft.table, list[dict[str, Any]]()
    for place, name in enumerate(table.columns):
        role, decided = table.role(name), table.of(name)
        listed.append(
            {
                "place": place,
                "name": name,
                "type": table.type(name) and sent.get(f"type{place}", table.type(name)),
                "what": sent.get(f"what{place}", OUT if decided.left_out else role),
                "is_unit": name == draft.unit,
            }
        )
    semicolons = table.delimiter == ";"
    return {
        "listed": listed,
        "decimal": sent.get("decimal", table.decimal or ("," if semicolons else ".")),
        "semicolons": semicolons,
        "day": sent.get("days", _day_of(table)),
        "days": list(DAYS),
        "types": TYPES,
        "roles": (*ROLES, OUT),
        "untyped": table.untyped,
        "called": sent.get("name", table.name),
    }


def _day_of(table: DraftTable) -> str:
    """An example of how the file writes a day."""
    return next((word for word, day in DAYS.items() if day and day in table.dates), next(iter(DAYS)))


def _bounds(draft: Draft, sent: Mapping[str, str]) -> dict[str, Any]:
    table, listed, columns = draft.table, list[dict[str, Any]](), list(draft.table.columns)
    fresh = draft.reached <= STEPS.index("bounds")
    for name in draft.asked:
        word, decided, place = table.type(name), table.of(name), columns.index(name)
        known = known_bounds(name, word)
        low, high = decided.bounds or (known if fresh and known else ("", ""))
        listed.append(
            {
                "place": place,
                "name": name,
                "kind": {"int": "number", "float": "number", "text": "text"}.get(
                    word or "", "day" if word in ("date", "timestamp") else ""
                ),
                "low": sent.get(f"low{place}", low),
                "high": sent.get(f"high{place}", high),
                "values": sent.get(f"values{place}", "\n".join(decided.values)),
                "known": known is not None,
            }
        )
    return {
        "numbers": [each for each in listed if each["kind"] == "number"],
        "days": [each for each in listed if each["kind"] == "day"],
        "texts": [each for each in listed if each["kind"] == "text"],
    }


def _budget(draft: Draft, datasets: list[str], sent: Mapping[str, str]) -> dict[str, Any]:
    unit = "row" if draft.unit == "row" else "person"
    epsilon = sent.get("epsilon", draft.epsilon)
    chosen = sent.get("choice") or (draft.epsilon or _USUAL)
    near, told = _published(unit)
    return {
        "presets": [(value, name, why, *_meaning(value, unit)) for value, name, why in _PRESETS],
        "chosen": chosen if chosen in {value for value, *_ in _PRESETS} else "other",
        "epsilon": "" if epsilon in {value for value, *_ in _PRESETS} else epsilon,
        "delta": sent.get("delta", draft.delta or _DELTA),
        "unit_word": unit,
        "near": near,
        "source": told,
        "datasets": datasets,
        "dataset": sent.get("dataset", draft.dataset or ""),
    }


@lru_cache(maxsize=32)
def _meaning(epsilon: str, unit: str) -> tuple[str, int, int]:
    """How often the cleverest attacker is right, and how many published deployments are stricter or not."""
    where = compare(epsilon, 0, unit)
    return percent_up(1 / (1 + math.exp(-float(epsilon)))), where.smaller, where.larger


@lru_cache(maxsize=4)
def _published(unit: str) -> tuple[list[tuple[str, str, str]], str]:
    near = compare(1, 0, unit).near
    return [(f"{one.epsilon:g}", one.name, f"{one.curator}, {one.published[:4]}") for one in near], source()


def _look(draft: Draft, grounds: Grounds) -> dict[str, Any]:
    text, before = grounds.text(draft.wanted), grounds.before()
    table = draft.table
    unready = [name for name in draft.asked if _is_open(table.type(name), table.of(name))]
    return {
        "unready": unready[:_LISTED],
        "unready_more": max(len(unready) - _LISTED, 0),
        "day": _day_of(table),
        "text": text if before is None else text.removeprefix(before.rstrip()).lstrip(),
        "seen": digest(text),
        "file": grounds.path.name,
        "is_new": before is None,
        "asked": draft.asked[:_LISTED],
        "more": max(len(draft.asked) - _LISTED, 0),
    }


def _is_open(word: str | None, said: Decided) -> bool:
    """Whether a column has no bounds or values yet, and could use them."""
    return word in ("text", "int", "float", "date", "timestamp") and not (said.bounds or said.values)
