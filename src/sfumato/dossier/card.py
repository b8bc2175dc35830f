"""The release dossier: a one-page privacy label, an entry for a registry, a paragraph of methods."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.dossier.facts import Facts, many
from sfumato.dossier.yaml import written
from sfumato.explain import compare, delta_advice, words
from sfumato.ledger.budget import amount
from sfumato.loss import Adjacency, PrivacyLoss
from sfumato.render import text_table
from sfumato.schema import PrivateTable

__all__ = ["Card", "card"]

_WIDTH = 80
_LAWS = {
    "GDPR, Article 35 and Recital 26": "whose data, what for, and whether a person can be singled out",
    "HIPAA, expert determination": "how small the risk of re-identification is, and how that was shown",
    "CCPA, deidentified information": "whether anything can reasonably be linked to a consumer",
    "Title 13 and its like": "whether a respondent can be identified from what is published",
}
_NO_CLAIM = "Which law applies, and whether it is met, is for counsel to say; nothing here is a legal claim."


def card(facts: Facts) -> Card:
    """The dossier of what is on record."""
    return Card(facts)


@dataclass(frozen=True, slots=True)
class Card:
    """The dossier of a dataset: `str` is the label, `yaml` a registry's entry, `methods` a paragraph."""

    facts: Facts

    @property
    def adjacency(self) -> str:
        """Which tables are neighbours, in words."""
        one = str(self.facts.unit)
        if self.facts.unit.adjacency == "exchange":
            return f"{one} exchanged for another"
        return one if self.facts.unit.is_row else f"{one} with all its rows, added or removed"

    @property
    def meaning(self) -> str:
        """What the epsilon spent so far lets an attacker learn."""
        if self.facts.loss is None:
            return "Nothing has been released yet."
        return _meaning(self.facts.loss, self._unit, self.facts.unit.adjacency)

    @property
    def _unit(self) -> str:
        return "row" if self.facts.unit.is_row else "person"

    @property
    def given(self) -> str:
        """What the guarantee is conditional on, in words; empty: nothing but the declarations."""
        said: dict[str, list[str]] = {}
        for release in self.facts.paid:
            if release.given:
                said.setdefault(release.given, []).append(f"#{release.number}")
        if not said:
            return ""
        listed = "; ".join(f"{given} ({', '.join(numbers)})" for given, numbers in said.items())
        return (
            f"The guarantee is conditional on {listed}: declared public and published exactly, so that "
            "whatever they tell of a person is not covered."
        )

    @property
    def few_steps(self) -> str:
        """In which series a unit counts in few steps, in words; empty: in none."""
        return " ".join(
            f"In series #{release.number} a unit counts in the first {many(release.max_steps, 'step')} in "
            f"which it has rows, and in none after (max_steps = {release.max_steps})."
            for release in self.facts.paid
            if release.max_steps is not None
        )

    @property
    def bounds(self) -> dict[str, str]:
        """What one unit may weigh, and the declared bounds of numbers, by table and column."""
        bounds = {}
        for table in self.facts.tables:
            unit = table.unit
            if not unit.is_row:
                bounds[f"{table.name}, each unit"] = (
                    f"at most {many(unit.max_rows, 'row')} in {many(unit.max_groups, 'group')}"
                )
            bounds |= {f"{table.name}.{name}": told for name, told in _ranges(table)}
        return bounds

    @property
    def spent_delta(self) -> Fraction:
        """The delta at which the epsilon that is spent is told: what losses spent of it, or the budget's."""
        facts = self.facts
        return facts.balance.spent_delta if facts.budget.accountant == "basic" else facts.budget.delta

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for `--json` and the registry."""
        facts, balance = self.facts, self.facts.balance
        spenders = Counter[str]()
        for release in facts.paid:
            spenders[release.analyst or "nobody in particular"] += 1
        return {
            "dataset": facts.dataset,
            "model": "central",
            "unit": str(facts.unit),
            "adjacency": facts.unit.adjacency,
            "budget": _price(facts.budget.epsilon, facts.budget.delta)
            | {"accountant": facts.budget.accountant}
            | ({} if facts.budget.each is None else {"each": facts.budget.each, "windows": facts.windows}),
            "spent": _price(Fraction(balance.spent), self.spent_delta),
            "in_hindsight": {"epsilon": facts.hindsight, "delta": float(facts.budget.delta)},
            "size": facts.size,
            "mechanisms": dict(Counter(release.mechanism for release in facts.paid)),
            "bounds": self.bounds,
            "conditional_on": self.given,
            "releases": [
                {
                    "receipt": release.number,
                    "time": release.time.isoformat(timespec="seconds"),
                    "analyst": release.analyst,
                    "question": release.question,
                    "mechanism": release.mechanism,
                    **_price(release.epsilon, release.delta),
                    "error": dict(release.errors),
                }
                | ({"state": release.state} if release.state else {})
                | ({} if release.max_steps is None else {"max_steps": release.max_steps})
                for release in facts.paid
            ],
            "paid_by": dict(spenders),
            "acts": [f"{act.kind}: {act.memo.get('reason', '')}" for act in facts.acts],
            "ledger": {"receipts": facts.entries, "head": facts.head, "verified": True},
        }

    @property
    def yaml(self) -> str:
        """The entry for a registry of deployments, as YAML.

        The fields follow the proposals for a public registry of epsilons (Dwork, Kohli, Mulligan 2019).
        """
        return written(
            {
                **self.to_dict(),
                "epsilon_in_words": " ".join(self.meaning.split()),
            }
        )

    @property
    def methods(self) -> str:
        """The paragraph for a data-protection officer, or the methods section of a report."""
        facts, balance = self.facts, self.facts.balance
        laws = sorted({release.mechanism for release in facts.paid if release.mechanism})
        drawn = f" by {' and '.join(laws)} noise" if laws else ""
        spent = f"{amount(balance.spent)} of epsilon = {amount(facts.budget.epsilon)}"
        if facts.budget.delta:
            spent += f" (delta {amount(self.spent_delta)} of {amount(facts.budget.delta)})"
        one = len(facts.paid) == 1
        subject = "The one release was" if one else f"The {len(facts.paid):,} releases were"
        text = (
            f"Statistics about the dataset {facts.dataset} were released under differential privacy in the "
            f"central model, protecting {self.adjacency}. {subject} made "
            f"private{drawn}, drawn exactly from a cryptographic generator on values that were "
            f"clamped to declared bounds. {'It' if one else 'Together they'} spent {spent}, added up by the "
            f"{facts.budget.accountant} accountant, which is valid for questions that depend on earlier "
            f"answers. Every price was debited before a row was read; the {facts.entries:,} receipts of the "
            f"ledger are chained and verified (head {facts.head[:16]}). Every number has an error bar."
        )
        said = filter(None, (text, facts.lifetime, self.few_steps, self.given))
        return textwrap.fill(" ".join(said), _WIDTH)

    def __str__(self) -> str:
        """The label: one page of at most 80 columns."""
        facts, balance = self.facts, self.facts.balance
        spent = f"epsilon {amount(balance.spent)}, delta {amount(self.spent_delta)}"
        whole = f"epsilon {amount(facts.budget.epsilon)}, delta {amount(facts.budget.delta)}"
        span = f" for {facts.budget.span}" if facts.budget.each is not None else ""
        at = f", the most in {balance.window}" if balance.window and facts.paid else ""
        lines = [f"Privacy label: {facts.dataset}", "=" * (15 + len(facts.dataset)), ""]
        lines += _pairs(
            {
                "protects": self.adjacency,
                "spent": f"{spent} in {many(len(facts.paid), 'release')}{at}",
                "of a budget of": f"{whole} ({facts.budget.accountant}){span}",
                "in hindsight": f"epsilon {facts.hindsight:.4g} in all, had they been fixed before the first",
                "units": f"about {facts.size:,}" if facts.size else "not declared",
                "ledger": f"{facts.entries:,} receipts, verified; head {facts.head[:16]}",
            }
        )
        lines += ["", self.meaning]
        lines += ["", textwrap.fill(facts.lifetime, _WIDTH)] if facts.lifetime else []
        lines += ["", textwrap.fill(self.few_steps, _WIDTH)] if self.few_steps else []
        lines += ["", textwrap.fill(self.given, _WIDTH)] if self.given else []
        if facts.size and facts.budget.delta:
            lines += ["", textwrap.fill(str(delta_advice(facts.budget.delta, facts.size)), _WIDTH)]
        if facts.paid and balance.spent:
            standing = compare(balance.spent, self.spent_delta, "record" if facts.unit.is_row else "person")
            lines += ["", textwrap.fill(standing.summary, _WIDTH)]
        lines += ["", "Bounds", *_pairs(self.bounds)]
        if facts.paid:
            lines += ["", "Releases", _released(facts)]
        lines += ["", "What reviewers ask", *_pairs(_LAWS), textwrap.fill(_NO_CLAIM, _WIDTH)]
        return "\n".join(lines)


@lru_cache(maxsize=16)
def _meaning(loss: PrivacyLoss, unit: str, adjacency: Adjacency) -> str:
    """What a loss means: a curve is computed for it, of which a card and a dossier tell the same."""
    return words(loss, unit=unit, adjacency=adjacency)


def _released(facts: Facts) -> str:
    columns: dict[str, list[str]] = {"": [], "who": [], "epsilon": [], "noise": [], "error at 95 %": []}
    for release in facts.paid:
        columns[""].append(f"#{release.number}")
        columns["who"].append(release.analyst or "–")
        columns["epsilon"].append("–" if release.epsilon is None else amount(release.epsilon))
        columns["noise"].append(release.mechanism)
        columns["error at 95 %"].append("; ".join(f"{name} {told}" for name, told in release.errors.items()))
    if any(release.state for release in facts.paid):
        columns["data of"] = [release.state or "–" for release in facts.paid]
    return text_table(columns, width=_WIDTH)


def _ranges(table: PrivateTable) -> list[tuple[str, str]]:
    ranges = []
    for name, kind in table.schema.items():
        ends = [getattr(kind, side, None) for side in ("lower", "upper")]
        if ends[0] is None:
            ends = [getattr(kind, side, None) for side in ("start", "end")]
        if ends[0] is not None:
            ranges.append((name, f"{ends[0]} to {ends[1]}"))
    return ranges


def _pairs(pairs: Mapping[str, str]) -> list[str]:
    """Names and what is told about them, in two columns."""
    widest = max((len(name) for name in pairs), default=0)
    hang = " " * (widest + 4)
    return [
        line
        for name, told in pairs.items()
        for line in textwrap.wrap(
            told, _WIDTH, initial_indent=f"  {name:<{widest}}  ", subsequent_indent=hang
        )
    ]


def _price(epsilon: Fraction | None, delta: Fraction | None) -> dict[str, float | None]:
    return {
        "epsilon": None if epsilon is None else float(epsilon),
        "delta": None if delta is None else float(delta),
    }
