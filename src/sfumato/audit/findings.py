"""What an audit found: a claim beside what samples prove, and many of them as a table."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.audit.bounds import Bound, below
from sfumato.render import text_table

__all__ = ["Audit", "Finding", "Kind", "Verdict"]

Kind: TypeAlias = Literal["mechanism", "client", "game", "query", "fit", "floats"]
Verdict: TypeAlias = Literal["holds", "broken"]
_WIDTH = 80


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim, held against samples.

    Attributes:
        name: what was audited.
        kind: "mechanism", "client" (local privacy), "game", "query" (a whole session), "fit" (a model) or
            "floats" (low bits).
        claimed: the epsilon that is claimed at `delta`.
        delta: the delta at which the claim came closest to falling, or fell.
        proven: epsilon is at least this, at `confidence`.
        confidence: the probability that this one bound is true.
        event: what was counted, in words.
        samples: how many outputs a side were drawn.
    """

    name: str
    kind: Kind
    claimed: float
    delta: float
    proven: float
    confidence: float
    event: str
    samples: int

    @classmethod
    def of(cls, name: str, kind: Kind, claimed: float, bound: Bound, *, samples: int) -> Finding:
        """A claim and the bound that it was held against."""
        event = f"{bound.event} ({bound.direction})"
        return cls(name, kind, claimed, bound.delta, bound.epsilon, bound.confidence, event, samples)

    @property
    def verdict(self) -> Verdict:
        """Whether the claim is proven false; "holds" means only that it is not."""
        return "broken" if self.proven > self.claimed else "holds"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "name": self.name,
            "kind": self.kind,
            "claimed": self.claimed,
            "delta": self.delta,
            "proven": self.proven,
            "confidence": self.confidence,
            "verdict": self.verdict,
            "event": self.event,
            "samples": self.samples,
        }

    def __str__(self) -> str:
        return textwrap.fill(
            f"{self.name}: claims epsilon {self.claimed:.4g} at delta {self.delta:g}; "
            f"at least {self.proven:.4g} is proven with confidence {below(self.confidence)} "
            f"by {self.event}: {self.verdict}",
            _WIDTH,
        )


@dataclass(frozen=True, slots=True)
class Audit:
    """Many findings that hold together.

    Attributes:
        findings: one or two for each thing that was audited.
        confidence: the probability, before anything was drawn, that no honest claim is called broken.
    """

    findings: tuple[Finding, ...]
    confidence: float

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The claims that samples refute."""
        return tuple(finding for finding in self.findings if finding.verdict == "broken")

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "holds": not self.broken,
            "confidence": self.confidence,
            "broken": [finding.name for finding in self.broken],
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def columns(self) -> dict[str, list[str]]:
        """The table's cells, column by column."""
        return {
            "what": [finding.name for finding in self.findings],
            "kind": [finding.kind for finding in self.findings],
            "delta": [f"{finding.delta:g}" for finding in self.findings],
            "claimed": [f"{finding.claimed:.4f}" for finding in self.findings],
            "at least": [f"{finding.proven:.4f}" for finding in self.findings],
            "claim": [finding.verdict for finding in self.findings],
        }

    @property
    def words(self) -> str:
        """What the table says, in a few sentences."""
        sure = f"{below(self.confidence * 100, 100)} %"
        if not self.broken:
            held = f"All {len(self)} claims hold: with so many samples none is"
            if len(self) == 1:
                held = "The claim holds: with so many samples it is not"
            return (
                f"{held} refuted. A lower bound proves what is not private; that it is low proves nothing. "
                f"The chance that no honest claim at all is called broken is at least {sure}."
            )
        told = " ".join(f"{finding.name}: by {finding.event}." for finding in self.broken)
        return (
            f"{len(self.broken)} of {len(self)} claims {'is' if len(self.broken) == 1 else 'are'} broken. "
            f"The chance that no honest claim at all is "
            f"called so is at least {sure}. {told}"
        )

    def __str__(self) -> str:
        return f"{text_table(self.columns(), width=_WIDTH)}\n\n{textwrap.fill(self.words, _WIDTH)}"
