"""The card of a run: what was paid, for whom, how it was trained, and what is not protected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato._dataclasses import dataclass
from sfumato.explain import words
from sfumato.learn.torch.users import Users

if TYPE_CHECKING:
    from sfumato.learn.torch.runs import Private

__all__ = ["RunCard", "card_of"]


@dataclass(frozen=True, slots=True)
class RunCard:
    """A model card out of a run and its receipt: `str` is Markdown, `to_dict` plain values.

    Attributes:
        paid: Epsilon, delta, and who paid: the dataset and the receipt, or nobody.
        unit: What is protected.
        training: Sampler, clip, noise, steps, optimizer, numbers that were trained.
        meaning: What an attacker can learn at that price.
        not_protected: What the guarantee does not cover.

    Privacy:
        Claim: nothing of it is computed on private records. Proof: it holds settings of the run, figures of
        the accountant, how many steps were taken, and the receipt.
    """

    paid: dict[str, Any]
    unit: str
    training: dict[str, Any]
    meaning: str
    not_protected: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "paid": dict(self.paid),
            "unit": self.unit,
            "training": dict(self.training),
            "meaning": self.meaning,
            "not_protected": list(self.not_protected),
        }

    def __str__(self) -> str:
        """As Markdown, for a README."""
        rows = {"unit": self.unit, **self.paid, **self.training}
        lines = ["# Privacy", "", "| | |", "| --- | --- |"]
        lines += [f"| {name} | {_said(value)} |" for name, value in rows.items()]
        lines += ["", self.meaning, "", "Not protected:", ""]
        lines += [f"- {each}" for each in self.not_protected]
        return "\n".join(lines) + "\n"

    def _repr_markdown_(self) -> str:
        return str(self)


def card_of(run: Private) -> RunCard:
    """The card of a run, at any time: what was paid for the whole, and how far it is."""
    descent = run._descent
    users = isinstance(descent.records, Users)
    unit = "user" if users else "record"
    return RunCard(
        _paid(run),
        f"one {unit}{' with all of its records' if users else ''}, added or removed",
        _training(run, unit),
        words(run.loss, unit=unit, adjacency="add-remove"),
        _not_protected(run, users),
    )


def _paid(run: Private) -> dict[str, Any]:
    paid: dict[str, Any] = {"epsilon": float(run.epsilon), "delta": float(run.delta)}
    payer = run._payer
    if payer is None:
        return paid | {"paid by": "nobody: no ledger counts what is spent"}
    right = payer._right
    receipt = "none yet" if right is None else f"#{right.receipt.number}"
    return paid | {"paid by": f"the budget of {payer.dataset}", "receipt": receipt}


def _training(run: Private, unit: str) -> dict[str, Any]:
    descent, sampler = run._descent, run.sampler
    everything = sum(each.numel() for each in descent.model.parameters())
    more: dict[str, Any] = {}
    if isinstance(descent.records, Users):
        more["records of a user in a step"] = f"at most {descent.records.each}"
    if descent.adaptive is not None:
        more["learned clip"] = f"at the quantile {descent.adaptive.quantile.share}, paid for"
    return more | {
        "sampler": type(sampler).__name__,
        f"{unit}s declared": round(run.batch / sampler.rate),
        f"{unit}s expected in a step": run.batch,
        "clip": run.clip,
        "noise, in clips": run.noise_multiplier,
        "steps paid for": run.steps,
        "steps taken": run.taken,
        "optimizer": type(run.optimizer).__name__,
        "numbers trained": f"{descent.numbers:,} of {everything:,}",
    }


def _not_protected(run: Private, users: bool) -> tuple[str, ...]:
    frozen = any(not each.requires_grad for each in run._descent.model.parameters())
    found = [
        "What the weights were before this run, and the data they were made from.",
        "What holds for people like those in the data, whether or not one of them is in it.",
        "Settings (rate of learning, clip, steps, architecture) that were chosen by looking at these "
        "records, unless that was paid for.",
    ]
    if frozen:
        found.append("Frozen weights: this run left them as they were.")
    if users:
        found.append("A person whose records have several ids counts as several users.")
    else:
        found.append("Somebody with several records is protected less: each of them is a unit by itself.")
    if run._payer is None:
        found.append("Other runs over the same records, since no ledger adds them up.")
    return tuple(found)


def _said(value: Any) -> str:
    return (
        f"{value:.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    )
