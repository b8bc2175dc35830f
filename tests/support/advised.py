"""Made-up data for what a piece of advice reads, and how far an answer is from the truth of it."""

from __future__ import annotations

import csv
import datetime
from collections import Counter
from pathlib import Path

import numpy as np

__all__ = ["Made"]


class Made:
    """Files as `reads` says, for what was said; `off` says how far an answer is from the truth.

    Each person has as many rows as they may, so that limits cut nothing.
    """

    def __init__(self, said, folder: Path) -> None:
        self.said = said
        draw = np.random.default_rng(5)
        people = said.people
        if said.holder == "people":
            self._answers(draw, folder)
            return
        whose = np.repeat(np.arange(people), said.rows)
        many = len(whose)
        self.person = whose
        self.amount = np.round(draw.uniform(float(said.lower or 0), float(said.upper or 1), many), 3)
        places = draw.permuted(np.arange(many) % (said.groups or 1)) + 1
        self.kind = np.array([f"kind{place}" for place in places])
        first = datetime.date(2026, 1, 1)
        steps = said.steps or 1
        ahead = (whose + np.tile(np.arange(said.rows), people)) % steps
        self.day = np.array([str(first + datetime.timedelta(days=int(place))) for place in ahead])
        columns = {"person": whose, "amount": self.amount, "kind": self.kind, "day": self.day}
        self.x = {}
        for place in range(1, (said.columns or 0) + 1):
            if said.want == "synthetic":
                self.x[f"x{place}"] = np.array([f"v{one}" for one in draw.integers(1, said.groups + 1, many)])
            else:
                self.x[f"x{place}"] = draw.random(many).round(3)
        columns |= self.x
        if said.want == "model":
            columns["y"] = (self.x["x1"] > 0.5).astype(int)
        with open(folder / "data.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
        daily = Counter(self.day.tolist())
        (folder / "daily.txt").write_text("".join(f"{daily[day]}\n" for day in sorted(daily)))

    def _answers(self, draw, folder: Path) -> None:
        said = self.said
        match said.want:
            case "count":
                self.answers = np.where(draw.random(said.people) < 0.3, "yes", "no")
            case "sum" | "mean" | "median":
                self.answers = draw.uniform(float(said.lower), float(said.upper), said.people).round(3)
            case "model":
                x = draw.random((said.people, said.columns)).round(3)
                rows = np.column_stack([np.arange(said.people), x, x[:, 0] > 0.5])
                np.savetxt(folder / "devices.csv", rows, delimiter=",")
                return
            case _:
                self.answers = draw.integers(0, said.groups, said.people)
                if not said.known:
                    words = np.array(["tea", "coffee", "milk", "water"])
                    self.answers = words[self.answers % len(words)]
        (folder / "answers.txt").write_text("".join(f"{answer}\n" for answer in self.answers))

    def off(self, answer) -> float:
        """The greatest deviation of an answer, in the terms of the advice's error."""
        return (self._theirs if self.said.holder == "people" else self._yours)(answer)

    def stated(self, answer, confidence) -> float | None:
        """The error that an answer states of itself at a confidence, where the advice must state the same."""
        said = self.said
        if said.holder == "people" or said.want not in ("count", "sum", "histogram", "most common"):
            return None
        if hasattr(answer, "value"):
            return answer.error(confidence)
        if said.want == "most common" or not said.known:
            return None  # two counts are compared; or the bars of groups that are shown
        widths = answer.error(confidence)["n"]
        return max(widths.to_pylist())

    def _yours(self, answer) -> float:
        said, counts = self.said, Counter(self.kind.tolist())
        match said.want:
            case "count":
                return abs(_first(answer, "n") - len(self.person))
            case "sum":
                return abs(_first(answer, "n") - self.amount.sum())
            case "mean":
                return abs(_first(answer, "n") - self.amount.mean())
            case "median":
                return _ranks(self.amount, _first(answer, "n"), width=float(said.upper - said.lower) / 4096)
            case "most common":
                value = answer.value if hasattr(answer, "value") else answer.table["kind"][0].as_py()
                return max(counts.values()) - counts[value]
            case "histogram":
                return self._of_counts(answer)
            case "groups":
                if not said.known:
                    return self._of_counts(answer)
                means = zip(answer.table["kind"].to_pylist(), answer.table["m"].to_pylist(), strict=True)
                return max(abs(mean - self.amount[self.kind == kind].mean()) for kind, mean in means)
            case "stream":
                total = answer.table("running")["n"][-1].as_py() if hasattr(answer, "table") else answer
                return abs(total - len(self.day))
            case "synthetic":
                return max(self._of_marginal(answer, name) for name in self.x)
            case "questions":
                return abs(_first(answer, "n") - self.said.people)
        raise AssertionError(said.want)

    def _of_counts(self, answer) -> float:
        """Of rows, or of people where that is what was counted."""
        people = Counter(kind for _, kind in set(zip(self.person.tolist(), self.kind.tolist(), strict=True)))
        rows = Counter(self.kind.tolist())
        shown = dict(zip(answer.table["kind"].to_pylist(), answer.table["n"].to_pylist(), strict=True))
        assert set(shown) == set(rows)
        told = next(column.estimand for column in answer.quote.columns if column.name == "n")
        truth = people if "not rows" in told else rows
        return max(abs(shown[kind] - truth[kind]) for kind in shown)

    def _of_marginal(self, answer, name) -> float:
        table = answer.marginal([name])
        counts = Counter(self.x[name].tolist())
        found = dict(zip(table[name].to_pylist(), table["count"].to_pylist(), strict=True))
        return max(abs(found[value] - counts[value]) for value in counts)

    def _theirs(self, answer) -> float:
        said = self.said
        match said.want:
            case "sum":
                return abs(answer - self.answers.sum())
            case "mean":
                return abs(answer - self.answers.mean())
            case "median":
                return _ranks(self.answers, answer.value, width=float(said.upper - said.lower) / 1024)
            case "most common" if said.known:
                counts = Counter(self.answers.tolist())
                return max(counts.values()) - counts[answer]
        counts = Counter(self.answers.tolist())
        pairs = zip(answer.values, answer.counts, strict=True)
        return max((abs(count - counts[value]) for value, count in pairs), default=0.0)  # none may be found


def _first(answer, column) -> float:
    return answer.table[column][0].as_py()


def _ranks(values, answer, *, width) -> float:
    """How many values lie between an answer and the middle, give or take a cell."""
    below, upto = (values < answer - width).sum(), (values <= answer + width).sum()
    return max(0.0, below - len(values) / 2, len(values) / 2 - upto)
