"""The twelve steps to a deployment, each with the evidence that can be had without reading a row."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.dossier.facts import Facts, many
from sfumato.engines.sources import locate
from sfumato.errors import SfumatoError
from sfumato.explain import delta_advice
from sfumato.schema import ColumnType, PrivateTable
from sfumato.schema.classify import role_of
from sfumato.schema.states import folder_of

__all__ = ["Step", "Verdict", "check"]

Verdict: TypeAlias = Literal["done", "open", "by hand", "not yet"]

_LARGE = 10  # an epsilon above which a belief of 1 % may rise to near certainty


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the checklist.

    Attributes:
        number: From 1 to 12.
        name: As the checklist has it.
        verdict: "done" where the evidence shows it, "open" where it shows a gap, "by hand" where no machine
            can tell, "not yet" where there is nothing on record to look at before the first question.
        evidence: What was found, in sentences.
        fix: What to do about a gap, or what to look at by hand; empty where nothing.
    """

    number: int
    name: str
    verdict: Verdict
    evidence: str
    fix: str = ""

    def __str__(self) -> str:
        """The verdict, what was found, and what to do."""
        fix = f" {self.fix}" if self.fix else ""
        return f"{self.number}. {self.name} ({self.verdict}): {self.evidence}{fix}"


def check(facts: Facts, *, audited: Callable[[], tuple[int, list[str]]] | None = None) -> tuple[Step, ...]:
    """The twelve steps for a dataset, machine-checked where they can be.

    Args:
        facts: what is on record.
        audited: runs the audits; gives how many claims were tried and which were broken. Without it step 7
            is left to do.
    """
    steps = (
        ("Data classification", _classification),
        ("Data preparation", _preparation),
        ("Define privacy budget", _budget),
        ("Data analysis requirements", _requirements),
        ("Implement differential privacy", _implementation),
        ("Noise generation", _noise),
        ("Testing and verification", lambda known: _testing(known, audited)),
        ("Performance evaluation", _performance),
        ("Documentation and compliance", _documentation),
        ("Additional security measures", _security),
        ("User education", _education),
        ("Continuous monitoring and maintenance", _monitoring),
    )
    return tuple(Step(place, name, *look(facts)) for place, (name, look) in enumerate(steps, 1))


Found: TypeAlias = tuple[Verdict, str, str]

_FIRST = "The first query puts the dataset on record"


def _classification(facts: Facts) -> Found:
    columns = [
        (
            f"{table.name}.{name}",
            facts.roles.get(table.name, {}).get(name, "plain"),
            role_of(name, _kind(kind)),
        )
        for table in facts.tables
        for name, kind in table.schema.items()
    ]
    links = {
        f"{owned}.{name}"
        for table in facts.tables
        if table.unit.is_via
        for here, there in table.unit.on
        for owned, name in ((table.name, here), (table.unit.table, there))
    }
    exposed = [place for place, role, _ in columns if role == "identifier" and place not in links]
    if exposed:
        return (
            "open",
            "A column that may be asked for is an identifier."
            if len(exposed) == 1
            else f"{len(exposed)} columns that may be asked for are identifiers.",
            f"Take {_some(exposed)} out of the columns of sfumato.toml.",
        )
    doubtful = [place for place, role, likely in columns if role == "plain" and likely != "plain"]
    if doubtful:
        told = f"{len(doubtful)} of {len(columns)} columns are called plain, and their names say otherwise."
        if len(doubtful) == 1:
            told = f"One of {len(columns)} columns is called plain, and its name says otherwise."
        return "open", told, f"Give {_some(doubtful)} a role in sfumato.toml."
    return "done", f"All {len(columns)} columns that may be asked for have a role; none is an identifier.", ""


def _kind(kind: ColumnType) -> str:
    names = {"Int": "integer", "Float": "float", "Bool": "boolean", "Date": "date", "Timestamp": "timestamp"}
    return names.get(type(kind).__name__, "time" if kind.kind == "time" else "text")


def _weight(table: PrivateTable) -> str:
    """How much a unit counts for in a table."""
    groups = many(table.unit.max_groups, "group")
    if table.unit.auto:
        return f"as many rows of {table.name} as a noisy profile chooses, in at most {groups}"
    return f"at most {many(table.unit.max_rows, 'row')} of {table.name} in {groups}"


def _moved(tables: Iterable[PrivateTable]) -> list[str]:
    """Files of states that are gone, or have another size than when the state was declared."""
    found = []
    for table in tables:
        for name, state in table.states.items():
            if state.snapshot is not None:
                found += _left(table.at(name))
            sizes = state.sizes or (None,) * len(state.files)
            for path, size in zip(state.files, sizes, strict=True):
                try:
                    now = os.stat(Path(folder_of(table.source), path)).st_size
                except OSError:
                    found.append(f"{path} of {table.name} at {name} is gone")
                else:
                    if size not in (None, now):
                        found.append(f"{path} of {table.name} at {name} has another size")
    return found


def _left(table: PrivateTable) -> list[str]:
    """What is wrong with a snapshot: its log or some of its files may be gone."""
    try:
        locate(table.reads)
    except SfumatoError:
        return [f"{table.name} at {table.version} cannot be opened"]
    return []


def _preparation(facts: Facts) -> Found:
    if moved := _moved(facts.tables):
        return (
            "open",
            f"{_some(moved)}: its answers on record stay, and new ones would be about other data.",
            "Put the files back, or take the state out of sfumato.toml and declare another.",
        )
    open_text = [
        f"{table.name}.{name}"
        for table in facts.tables
        for name, kind in table.schema.items()
        if type(kind).__name__ in ("Int", "Float", "Date", "Timestamp")
        and getattr(kind, "lower", getattr(kind, "start", None)) is None
    ]
    weights = " and ".join(map(_weight, facts.tables))
    what = "Each row is a unit of its own" if facts.unit.is_row else f"A unit counts with {weights}"
    if open_text:
        return (
            "open",
            f"{what}; {many(len(open_text), 'number')} without bounds.",
            f"Declare bounds of {_some(open_text)}.",
        )
    return "done", f"{what}, and every number that may be asked for has declared bounds.", ""


def _budget(facts: Facts) -> Found:
    budget = facts.budget
    told = (
        f"Epsilon {float(budget.epsilon):g}, delta {float(budget.delta):g}, {budget.accountant} accountant."
    )
    if budget.epsilon > _LARGE:
        return (
            "open",
            told,
            f"An epsilon above {_LARGE} protects little: `sfumato explain {float(budget.epsilon):g}`.",
        )
    if budget.each is not None:
        return (
            "by hand",
            f"{told} {facts.lifetime}",
            "Is that what people were promised? Else leave each out.",
        )
    if budget.delta and facts.size is None:
        return "by hand", told, "Declare the size of the table, so that delta can be held against it."
    if budget.delta and facts.size is not None:
        advice = delta_advice(budget.delta, facts.size)
        if advice.verdict not in ("small", "none"):
            told += f" Publishing each record with probability delta shows somebody's record {advice.odds}."
            far = f"1/{100 * facts.size:,}, far below one over the number of units"
            if advice.verdict == "usual":
                return "by hand", f"{told} It meets the usual rule n^-1.1.", f"Enough? Better is {far}."
            return "open", told, f"Lower delta, best to {far}."
        told += f" Delta is at most 1/{100 * facts.size:,}, far below 1/{facts.size:,}."
    return "done", told, ""


def _requirements(facts: Facts) -> Found:
    asked = {release.question for release in facts.paid if release.question}
    if not asked:
        return (
            "by hand",
            "Nothing has been asked yet.",
            "Write down which questions must be answered, and how well.",
        )
    return (
        "by hand",
        "One question has been answered."
        if len(asked) == 1
        else f"{len(asked)} different questions have been answered.",
        "Is it the one that was needed?" if len(asked) == 1 else "Are these the ones that were needed?",
    )


def _implementation(facts: Facts) -> Found:
    if not facts.begun:
        return "not yet", f"{_FIRST}, and is debited before a row is read.", ""
    lost = [release for release in facts.paid if not release.kept]
    if lost:
        have = f"{len(lost)} of {len(facts.paid)} debits {'has' if len(lost) == 1 else 'have'}"
        return (
            "open",
            f"{have} no kept answer: a read failed after it was paid.",
            "See their receipts with `sfumato ledger show`; asking again pays again.",
        )
    if not facts.paid:
        return "done", "Nothing has been released, and nothing was debited.", ""
    if len(facts.paid) == 1:
        return "done", "The one release was debited before it was read, and is kept.", ""
    return "done", f"All {len(facts.paid)} releases were debited before they were read, and are kept.", ""


def _noise(facts: Facts) -> Found:
    from sfumato.random import integers

    words = integers(2**32, (4096,))
    ones = sum(int(word).bit_count() for word in words)
    # 131,072 fair bits: six standard deviations are 1,087; a stuck or biased source is far outside.
    if abs(ones - 65_536) > 1_087:
        return (
            "open",
            "The source of randomness of this machine is biased.",
            "Do not release anything from it.",
        )
    laws = sorted({release.mechanism for release in facts.paid if release.mechanism})
    drawn = f"; so far {' and '.join(laws)}" if laws else ""
    return "done", f"Exact integer samplers on a keystream of the operating system{drawn}.", ""


def _testing(facts: Facts, audited: Callable[[], tuple[int, list[str]]] | None) -> Found:
    chained = f"The ledger's {many(facts.entries, 'receipt')} verify."
    if not facts.entries:
        chained = "There is no ledger to verify: the first query makes it."
    if audited is None:
        verdict: Verdict = "by hand" if facts.entries else "not yet"
        return verdict, chained, "Run the audits: `sfumato check --audit`."
    tried, broken = audited()
    if broken:
        return (
            "open",
            f"{chained} {len(broken)} of {tried} claims are broken.",
            f"Do not use {_some(broken)}.",
        )
    shown = f"{chained} {tried} claims were audited; none is broken."
    return ("done" if facts.entries else "not yet"), shown, ""


def _performance(facts: Facts) -> Found:
    told = [release for release in facts.paid if release.errors]
    if not facts.paid:
        return "by hand", "Nothing has been released yet.", "Quote the questions: `sfumato quote`."
    if not told:
        return "by hand", "The errors of past releases cannot be quoted again.", "Look at their error bars."
    one = told[-1]
    shown = "; ".join(f"{name} {error}" for name, error in one.errors.items())
    return "by hand", f"Receipt #{one.number}: {shown} at 95 %.", "Is that accurate enough for its use?"


def _documentation(facts: Facts) -> Found:
    if not facts.begun:
        return "not yet", f"{_FIRST}, and a dossier tells that.", "Then write it: `sfumato card`."
    bare, acts = sum(not act.memo.get("reason") for act in facts.acts), len(facts.acts)
    if bare:
        told = "One act of the steward gives" if bare == 1 else f"{bare} acts of the steward give"
        return "open", f"{told} no reason.", "Note the reasons elsewhere."
    told = f"{acts} acts of the steward are on record, each with a reason."
    if acts < 2:
        told = "One act of the steward is on record, with a reason." if acts else "No act of the steward yet."
    return "by hand", told, "Write the dossier with `sfumato card`, and give it to the reviewer."


def _security(facts: Facts) -> Found:
    if facts.catalog.ledger.startswith(("postgresql://", "postgres://")):
        return (
            "by hand",
            "The ledger is in PostgreSQL.",
            "Let only the steward's role write to it, and keep the key and the anchor elsewhere.",
        )
    ledger = Path(facts.catalog.ledger)
    state = facts.catalog.state
    if not facts.entries:
        place = "in a place of their own" if state else "in the same folder"
        return (
            "not yet",
            f"The first query makes the ledger {ledger.name}, and its key and anchor {place}.",
            "" if state else "Whoever can replace the folder can roll it back: set `state` in sfumato.toml.",
        )
    secret = [ledger, *(Path(f"{ledger}.{end}") for end in ("key", "anchor"))]
    if state is not None:
        secret += [path for path in state.glob("*") if path.is_file()]
    wide = [path.name for path in secret if path.exists() and _readable_by_others(path)]
    if wide:
        return (
            "open",
            f"{many(len(wide), 'file')} of the ledger can be read by others.",
            f"chmod 600 {' '.join(wide)}",
        )
    if state is None:
        return (
            "by hand",
            "Ledger, key and anchor are in one folder, readable by their owner alone.",
            "Whoever can replace the folder can roll it back: set `state` in sfumato.toml to another place.",
        )
    return "done", "Only their owner can read the ledger, its key and its anchor; the anchor is apart.", ""


def _readable_by_others(path: Path) -> bool:
    if os.name != "posix":
        return False
    return bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def _education(_: Facts) -> Found:
    return (
        "by hand",
        "`sfumato lab` tells in scenes what can go wrong, `sfumato explain` what an epsilon means.",
        "Have those who ask and those who decide seen them?",
    )


def _monitoring(facts: Facts) -> Found:
    if not facts.begun:
        return "not yet", f"{_FIRST}; then there is something to watch.", ""
    balance = facts.balance
    left = f"epsilon {float(balance.remaining):.4g} of {float(balance.epsilon):g} is left"
    last = max((release.time for release in facts.paid), default=None)
    when = "nothing released yet" if last is None else f"last release {_ago(last)}"
    if not balance.open:
        return "done", f"The ledger holds; the budget is closed; {when}.", ""
    if not balance.remaining:
        return "open", f"The budget is used up; {when}.", "Close it with `sfumato ledger close`, or raise it."
    return "done", f"The ledger holds; {left}; {when}.", ""


def _ago(moment: datetime) -> str:
    days = (datetime.now(UTC) - moment).days
    return "today" if days < 1 else "yesterday" if days == 1 else f"{days} days ago"


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
