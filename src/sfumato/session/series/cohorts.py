"""Groups that joined a series together, and releases in which each has the intervals of its own noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from sfumato._dataclasses import dataclass
from sfumato.plan.answers.estimate import Estimates
from sfumato.plan.answers.joined import joined
from sfumato.plan.intervals.noise import Noise
from sfumato.session.release import Release
from sfumato.session.series.finding import Group

__all__ = ["Cohort", "OfCohorts"]


@dataclass(frozen=True, slots=True)
class Cohort:
    """Groups that joined a series with the same step, and so have noise of the same law.

    Attributes:
        since: The step.
        begin: The place of the first of them among all groups.
        end: The place after the last.
        groups: Their keys, where groups are found.
    """

    since: int
    begin: int
    end: int
    groups: tuple[Group, ...] = ()


class OfCohorts(Release):
    """A release of several cohorts: one that joined late has less noise, and narrower intervals."""

    def __init__(self, whole: Release, cohorts: Sequence[Cohort], laws: Sequence[tuple[Noise, ...]]) -> None:
        """Of a release with all groups, those of the first cohort before those of the second.

        Args:
            whole: It.
            cohorts: Their places; the first begins with the first group, and the last ends with the last.
            laws: The noise of each cohort, for each measurement.
        """
        super().__init__(
            whole.quote,
            whole._answer,
            whole.receipt,
            free=whole.free,
            bounds=whole.bounds,
            signed=whole.signed,
        )
        self._parts = tuple(zip(cohorts, laws, strict=True))

    @cached_property
    def _estimates(self) -> Estimates:
        answer = self._answer
        assert answer.groups is not None
        return joined(
            self._estimated(answer),
            [
                self._estimated(
                    replace(
                        answer,
                        noisy=tuple(column[cohort.begin : cohort.end] for column in answer.noisy),
                        noises=laws,
                        groups=answer.groups[cohort.begin : cohort.end],
                    )
                )
                for cohort, laws in self._parts
            ],
        )
