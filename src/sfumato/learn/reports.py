"""What noise does to groups: accuracy, errors, calibration and selection, overall and by group.

A small group is learned from less, and the noise is the same: it suffers most. A report reads the truth. It
is for the steward, or for public test data, and nothing pays for it.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.attacks import Outcome
from sfumato.errors import AccessDenied, InvalidParameter
from sfumato.learn._report.belonging import advantage_allowed, belonging
from sfumato.learn._report.counterpart import Counterpart
from sfumato.learn._report.counting import Answers, answers_of, figures, gaps, largest_gaps, lost
from sfumato.learn._report.grouping import EVERYBODY, Group, groups_of, rows_in
from sfumato.learn._report.told import caption, tables_of
from sfumato.learn.base import PrivateEstimator
from sfumato.numeric.estimates import UNKNOWN, Bin, Estimate
from sfumato.render import html_table, shown, text_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Line", "Report", "report", "report_selection"]


@dataclass(frozen=True, slots=True)
class Line:
    """What a report says of one group.

    Attributes:
        group: Such as `sex=F`; the first one is of everybody.
        rows: How many rows it has.
        figures: By name, each with its interval: `accuracy`, `false positive`, `false negative`, `selected`,
            `calibration error`; of numbers `mean error`, `absolute error` and `R²`.
        plain: The same of the model without noise; empty: there is none.
        lost: How much accuracy the noise cost, or how much farther off numbers are; on the same rows.
        gaps: How much more often the group is selected than everybody else (`parity`), and among those who
            have the class in truth (`opportunity`).
        plain_gaps: The same without noise.
    """

    group: str
    rows: int
    figures: Mapping[str, Estimate]
    plain: Mapping[str, Estimate]
    lost: Estimate
    gaps: Mapping[str, Estimate]
    plain_gaps: Mapping[str, Estimate]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "group": self.group,
            "rows": self.rows,
            "figures": _plain_values(self.figures),
            "plain": _plain_values(self.plain),
            "lost": self.lost.to_dict(),
            "gaps": _plain_values(self.gaps),
            "plain_gaps": _plain_values(self.plain_gaps),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """What noise does to groups. It counts against the truth: for the steward, or on public test data.

    Attributes:
        about: What it is about, in words.
        lines: Everybody, then each group.
        largest: The largest difference between two groups: `parity`, `opportunity`.
        plain_largest: The same without noise.
        calibration: What came true of what was predicted, over all rows, by predicted probability.
        membership: How well training rows were told from others, of the model and of that without noise.
        allowed: The most that the price lets such an advantage be; None: the model has no price.
        confidence: Of each interval by itself.
    """

    about: str
    lines: tuple[Line, ...]
    largest: Mapping[str, Estimate]
    plain_largest: Mapping[str, Estimate]
    calibration: tuple[Bin, ...]
    membership: Mapping[str, Outcome]
    allowed: float | None
    confidence: float

    @property
    def everybody(self) -> Line:
        """The line of all rows."""
        return self.lines[0]

    def group(self, name: str) -> Line:
        """The line of one group.

        Raises:
            InvalidParameter: if there is none of that name.
        """
        for line in self.lines:
            if line.group == name:
                return line
        raise InvalidParameter(f"There is no group {name[:60]!r}; see lines.")

    @property
    def hardest_hit(self) -> Line | None:
        """The group that lost most to the noise; None without groups, or without a plain model."""
        hit = [line for line in self.lines[1:] if line.lost.value == line.lost.value]
        return max(hit, key=lambda line: line.lost.value, default=None)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values. They count against the truth."""
        return {
            "about": self.about,
            "steward_only": True,
            "confidence": self.confidence,
            "lines": [line.to_dict() for line in self.lines],
            "largest": _plain_values(self.largest),
            "plain_largest": _plain_values(self.plain_largest),
            "calibration": [
                {"rows": line.rows, "predicted": line.predicted, "seen": line.seen.to_dict()}
                for line in self.calibration
            ],
            "membership": {name: outcome.to_dict() for name, outcome in self.membership.items()},
            "allowed": self.allowed,
        }

    def text(self, width: int = 80) -> str:
        """The report as lines of at most `width`."""
        parts = [textwrap.fill(line, min(width, 80), break_on_hyphens=False) for line in caption(self)]
        for head, columns in tables_of(self).items():
            parts.append("\n" + textwrap.fill(head, min(width, 80), break_on_hyphens=False))
            parts.append(text_table(columns, width=width))
        return "\n".join(parts)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        *others, last = [html_table(columns, caption=head) for head, columns in tables_of(self).items()]
        return "".join([*others, last]) + html_table({" ": caption(self)})

    def plot(self, *, path: str | os.PathLike[str] | None = None) -> Figure:
        """Each group with noise and without, and what it lost; the largest groups above."""
        from sfumato.plots.groups import group_figures

        name = next(
            name for name in ("accuracy", "absolute error", "selected") if name in self.everybody.figures
        )
        lines = [self.everybody, *sorted(self.lines[1:], key=lambda line: -line.rows)]
        is_compared = bool(self.everybody.plain)
        is_measured = self.everybody.lost.value == self.everybody.lost.value
        return group_figures(
            [line.group for line in lines],
            [line.rows for line in lines],
            [line.figures[name] for line in lines],
            [line.plain[name] for line in lines] if is_compared else None,
            [line.lost for line in lines] if is_compared and is_measured else None,
            value=name,
            lost_value=f"lost to noise, in {name}" if name == "accuracy" else "farther off by",
            title="What noise does to groups",
            note=f"{self.about} Behind each group, how many rows it has. Whiskers: "
            f"{self.confidence:.0%} intervals.",
            path=path,
        )


def report(
    model: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    plain: Any = None,
    trained: tuple[Any, Any] | None = None,
    positive: Any = None,
    cross: bool = False,
    confidence: float = 0.95,
    bins: int = 10,
    shadows: int = 8,
    seed: int | None = None,
) -> Report:
    """What a fitted model does to groups, on rows whose truth is known.

    For the steward, or on public test data: it counts against the truth, and nothing pays for it.

    Args:
        model: A fitted model; any that predicts.
        X: Test rows, which no model was fitted on: an array, or an Arrow, pandas or Polars frame.
        y: The truth, one a row.
        groups: By what rows are grouped: the name of a column of X, several, or labels of one's own, one a
            row, as an array, a frame or a dictionary by name.
        plain: The model without noise: a fitted one; or True, which trains scikit-learn's own on `trained`,
            with the same columns and clamps.
        trained: The training rows as (X, y), for `plain=True`, and to see how well a membership attack
            tells them from the test rows, which must come from the same population.
        positive: The class that is selected: a job, a loan. Of two classes the last one, unless given.
        cross: Whether several columns make groups together, and not each by itself.
        confidence: Of each interval by itself.
        bins: How many bins of predicted probability calibration is counted in.
        shadows: How many models the membership attack trains; 0: none is made.
        seed: Of the attack's choices.

    Raises:
        AccessDenied: to an analyst's session.
        InvalidParameter: if what is given does not fit together.
    """
    _plain_rows(model, X, y, groups, plain, trained)
    _check(confidence, bins, shadows)
    size = rows_in(X)
    if not size:
        raise InvalidParameter("A report needs at least one test row.")
    found = groups_of(groups, X, size, cross=cross)
    if plain is True:
        if trained is None:
            raise InvalidParameter(
                "plain=True trains a model without noise: give the training rows, trained=(X, y)."
            )
        plain = Counterpart(model).fit(*trained)
    elif plain is False:
        plain = None
    answers = answers_of(model, X, y, positive, size)
    beside = None if plain is None else answers_of(plain, X, y, positive, size)
    attacked = {}
    if trained is not None and shadows and hasattr(model, "predict_proba"):
        models = {"with noise": model} | ({} if plain is None else {"without noise": plain})
        attacked = {
            name: belonging(each, trained, (X, y), shadows=shadows, target=name, seed=seed)
            for name, each in models.items()
        }
    about = f"{_named(model)}{'' if plain is None else ', beside one without noise'}; {size:,} test rows."
    return _made(about, found, answers, beside, attacked, advantage_allowed(model), confidence, bins)


def report_selection(
    decisions: Any,
    *,
    groups: Any,
    deserved: Any = None,
    plain: Any = None,
    cross: bool = False,
    confidence: float = 0.95,
) -> Report:
    """What a selection does to groups: who is hired, gets a loan, is elected.

    For the steward, or on public data: it counts against the truth, and nothing pays for it.

    Args:
        decisions: Whether each person was selected.
        groups: Labels, one a person: an array, a frame, or a dictionary by name.
        deserved: Whether each person qualifies in truth, for errors and equal opportunity; None: unknown.
        plain: Whether each would be selected without noise.
        cross: Whether several columns make groups together, and not each by itself.
        confidence: Of each interval by itself.

    Raises:
        AccessDenied: to an analyst's session.
        InvalidParameter: if what is given does not fit together.
    """
    _plain_rows(decisions, groups, deserved, plain)
    _check(confidence, 1, 0)
    chosen = _truths(decisions, "decisions", None)
    found = groups_of(groups, groups, len(chosen), cross=cross)
    true = None if deserved is None else _truths(deserved, "deserved", len(chosen))
    both = [
        None
        if given is None
        else Answers(right=None if true is None else given == true, chosen=given, deserved=true)
        for given in (chosen, None if plain is None else _truths(plain, "plain", len(chosen)))
    ]
    answers, beside = both
    assert answers is not None
    about = f"A selection{'' if plain is None else ', beside one without noise'}; {len(chosen):,} people."
    return _made(about, found, answers, beside, {}, None, confidence, 1)


def _made(
    about: str,
    groups: list[Group],
    answers: Answers,
    plain: Answers | None,
    attacked: Mapping[str, Outcome],
    allowed: float | None,
    confidence: float,
    bins: int,
) -> Report:
    lines = tuple(
        Line(
            group=group.name,
            rows=int(group.inside.sum()),
            figures=figures(answers, group.inside, confidence, bins)[0],
            plain={} if plain is None else figures(plain, group.inside, confidence, bins)[0],
            lost=UNKNOWN if plain is None else lost(answers, plain, group.inside, confidence),
            gaps=gaps(answers, group.inside, confidence),
            plain_gaps={} if plain is None else gaps(plain, group.inside, confidence),
        )
        for group in groups
    )
    by_name = {group.name: group.inside for group in groups if group.name != EVERYBODY}
    return Report(
        about=about,
        lines=lines,
        largest=largest_gaps(answers, by_name, confidence) if by_name else {},
        plain_largest=largest_gaps(plain, by_name, confidence) if by_name and plain is not None else {},
        calibration=tuple(figures(answers, groups[0].inside, confidence, bins)[1]),
        membership=attacked,
        allowed=allowed if attacked else None,
        confidence=confidence,
    )


def _named(model: Any) -> str:
    name = type(model).__name__
    if not isinstance(model, PrivateEstimator):
        return name
    return f"{name} at epsilon {shown(model.epsilon)}, delta {shown(model.delta)}"


def _plain_values(estimates: Mapping[str, Estimate]) -> dict[str, dict[str, float | None]]:
    return {name: estimate.to_dict() for name, estimate in estimates.items()}


def _truths(given: Any, name: str, size: int | None) -> NDArray[np.bool_]:
    values = np.asarray(given)
    if values.ndim != 1 or not len(values) or (size is not None and len(values) != size):
        raise InvalidParameter(f"{name} must be one truth value for each person.")
    if values.dtype != bool and not np.isin(values, (0, 1)).all():
        raise InvalidParameter(f"{name} must be truth values, or 0 and 1.")
    return values.astype(bool)


def _check(confidence: float, bins: int, shadows: int) -> None:
    if not 0 < confidence < 1:
        raise InvalidParameter("confidence must lie strictly between 0 and 1.")
    if bins < 1 or shadows < 0:
        raise InvalidParameter("bins must be at least 1, and shadows at least 0.")


def _plain_rows(*given: Any) -> None:
    """Refuses sessions and questions: a report reads rows that somebody holds already.

    Raises:
        AccessDenied: if a session is an analyst's.
        InvalidParameter: if it is the steward's.
    """
    from sfumato.session import Query, Session

    for each in given:
        whose = getattr(each, "analyst", None) if isinstance(each, Session) else None
        if whose:
            raise AccessDenied(
                f"Only the steward can see a report, since it counts against the truth; {whose[:40]} is an "
                "analyst."
            )
        if isinstance(each, Session | Query):
            raise InvalidParameter(
                "A report reads rows that are at hand: give arrays or frames, not a session or a question."
            )
