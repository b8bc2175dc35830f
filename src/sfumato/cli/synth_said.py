"""What `sfumato synth` tells: prices, rows, answers, a check; for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato._dataclasses import dataclass
from sfumato.cli.ask import remainder
from sfumato.cli.output import emit_json, paragraph, say, spelled, table
from sfumato.render import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.cli.synth_options import KeepOptions
    from sfumato.ledger import Balance
    from sfumato.synth import CheckQuote, Estimated, SynthCheck

__all__ = ["Made", "say_made", "say_quote"]

_PREVIEW = 5


@dataclass(frozen=True, slots=True)
class Made:
    """A model, and what was paid for it.

    Attributes:
        model: Of one table, or of two.
        before: What was left before; None: the model was read from a file, and no ledger was opened.
        fitted: What was left after the fit.
        after: And after all.
        checked: How far it is from the rows, if that was bought.
        said: What else is to be said.
    """

    model: Any
    before: Balance | None = None
    fitted: Balance | None = None
    after: Balance | None = None
    checked: SynthCheck | None = None
    said: str = ""

    @property
    def is_two(self) -> bool:
        """Whether it is of two tables."""
        return hasattr(self.model, "link")

    @property
    def free(self) -> bool:
        """Whether nothing was paid for the model now."""
        return _same(self.before, self.fitted)

    def estimate(self, text: str) -> Estimated:
        """What the model says to a question; a check says how far off it may be."""
        found: Estimated = self.model.estimate(text, check=self.checked)
        return found

    @property
    def receipt(self) -> int | None:
        """The number of the debit that paid for it."""
        return None if self.model.receipt is None else int(self.model.receipt.number)


def _same(one: Balance | None, other: Balance | None) -> bool:
    if one is None or other is None:
        return True
    return (one.spent, one.spent_delta) == (other.spent, other.spent_delta)


def say_made(
    found: Made,
    rows: Mapping[str, pa.Table],
    answers: Sequence[Estimated],
    files: Mapping[str, Path],
    keeping: KeepOptions,
    *,
    json_: bool,
) -> None:
    """Tell what was made."""
    if json_:
        emit_json(_document(found, rows, answers, files, keeping))
        return
    for answer in answers:
        say(spelled(str(answer)))
        say()
    if files or not answers:
        for name, every in rows.items():
            few = every.slice(0, _PREVIEW)
            whose = f" of {name}" if found.is_two else ""
            table(
                {column: [_cell(value) for value in few[column].to_pylist()] for column in few.column_names},
                title=f"The first rows{whose}, all made up",
            )
            say()
    if found.checked is not None:
        say(spelled(str(found.checked)))
        say()
    paragraph(" ".join(repr(found.model).split()))
    if found.after is not None:
        paragraph(_paid(found, found.after))
    if found.said:
        paragraph(found.said)
    for name, path in files.items():
        paragraph(f"{rows[name].num_rows:,} rows are in {path}.")
    for place, what in ((keeping.model, "The model is in"), (keeping.picture, "The picture is in")):
        if place is not None:
            paragraph(f"{what} {place}.")
    if not files and not answers:
        where = "DIR/" if found.is_two else "FILE.parquet"
        paragraph(f"No rows were written: the same command with -o {where} writes them, free.")


def _cell(value: Any) -> Any:
    return shown(value) if isinstance(value, float) else value


def _paid(found: Made, after: Balance) -> str:
    model = found.model
    price = f"epsilon {shown(model.epsilon)}, delta {shown(model.delta)}"
    cost = (
        f"On record (receipt {found.receipt}): free"
        if found.free
        else f"Paid {price} (receipt {found.receipt})"
    )
    said = f"{cost}, for the model and all rows drawn from it."
    if found.checked is not None:
        number = found.checked.receipt.number
        own = f"epsilon {shown(found.checked.epsilon)}, delta {shown(found.checked.delta)}"
        same = _same(found.fitted, found.after)
        said += (
            f" The check is on record (receipt {number}): free."
            if same
            else f" Paid {own} for the check (receipt {number})."
        )
    return f"{said} Left: {remainder(after)}."


def _document(
    found: Made,
    rows: Mapping[str, pa.Table],
    answers: Sequence[Estimated],
    files: Mapping[str, Path],
    keeping: KeepOptions,
) -> dict[str, Any]:
    """All of it, for programs. The keys are a contract."""
    model = found.model
    if found.is_two:
        what: dict[str, Any] = {
            "tables": {
                name: {
                    "columns": every.column_names,
                    "rows": every.num_rows,
                    "file": str(files[name]) if name in files else None,
                }
                for name, every in rows.items()
            }
        }
        measured = sum(len(part.learned.marginals) for part in model.released)
    else:
        ((name, every),) = rows.items()
        what = {
            "table": name,
            "columns": every.column_names,
            "rows": every.num_rows,
            "file": str(files[name]) if name in files else None,
            "constraints": list(model.constraints.said),
            "answers": [_answer(text, one) for text, one in zip(keeping.ask or (), answers, strict=True)],
            "check": None if found.checked is None else found.checked.to_dict(),
        }
        measured = len(model.released.learned.marginals)
    return what | {
        "method": model.method,
        "epsilon": model.epsilon,
        "delta": model.delta,
        "free": found.free,
        "receipt": found.receipt,
        "measured": measured,
        "converged": model.converged,
        "left": None if found.after is None else found.after.left(),
        "model": None if keeping.model is None else str(keeping.model),
        "picture": None if keeping.picture is None else str(keeping.picture),
        "note": found.said,
    }


def _answer(text: str, answer: Estimated) -> dict[str, Any]:
    return {
        "sql": text,
        "estimands": answer.estimands,
        "rows": answer.to_arrow(errors=True).to_pylist(),
        "confidence": 0.95,
        "notes": answer.notes,
    }


def say_quote(
    priced: Any,
    balance: Balance,
    check: str | None,
    checking: CheckQuote | None,
    said: str,
    *,
    json_: bool,
) -> None:
    """Tell what a fit would cost, and a check of it."""
    beside = None
    if check is not None:
        beside = {
            "epsilon": _exact(check),
            "delta": priced.delta,
            "half_width": None if checking is None else checking.half_width,
            "note": "" if checking is None else checking.note,
        }
    if json_:
        two = hasattr(priced, "parent")
        quote = {
            **({"tables": [priced.parent, priced.child]} if two else {"table": priced.table}),
            "columns": list(priced.columns),
            "method": priced.method,
            "epsilon": priced.epsilon,
            "delta": priced.delta,
            "max_rows": priced.max_rows,
            "note": priced.note,
            **({} if two else {"check": beside}),
        }
        emit_json({"quote": quote, "left": balance.left(), "note": said})
        return
    paragraph(" ".join(str(priced).split()))
    if checking is not None:
        paragraph(" ".join(str(checking).split()))
    elif beside is not None:
        paragraph(
            f"A check of it, on top: epsilon {shown(beside['epsilon'])}, delta {shown(priced.delta)}. How "
            "much it will tell can be said once the model is there."
        )
    if said:
        paragraph(said)
    paragraph(f"A quote is free. Left in the budget of {balance.dataset}: {remainder(balance)}.")


def _exact(text: str) -> Any:
    from sfumato.numeric.exact import positive

    return positive(text, "--check")
