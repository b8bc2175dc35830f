"""Averaging: the same question again and again, until the noise has cancelled.

Fresh noise for every asker does not protect at all without a ledger: k answers of noise σ are one answer of
noise σ/√k. A ledger that gives the same released answer again makes every further question worthless, and
one that charges for a new answer ends the attack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from sfumato.attacks._asking import Answer, Ask, answers_of, asked, numbers_given, trials_given
from sfumato.attacks._calls import Chance
from sfumato.attacks._power import certain_power, stated, tried
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.attacks.power import Power
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.numeric.exact import Rational, as_integer, show
from sfumato.random import simulation

__all__ = ["averaging"]


def averaging(
    ask: Ask,
    *,
    truth: Answer,
    tolerance: Rational,
    times: int,
    trials: int = 20,
    renew: Callable[[], object] | None = None,
    once: float | None = None,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How often the average of many answers to one question is near the truth, beside one answer alone.

    Steward-only: it is scored against the truth, and nothing pays for that.

    The baseline is one answer: what the release itself tells, and was meant and paid to tell. It is counted
    on the first answer of each trial, or known as `once`. Asking again is an attack only if it gives more.
    Where the ledger refuses (`BudgetExceeded`), the attacker averages the answers received until then.

    Power: where all answers of each trial are the same, their average is that answer, and nothing was missed.
    Otherwise as many answers as were asked for are drawn again from all that were given, as if each had fresh
    noise, and their averages have to be noticed.

    Args:
        ask: gives the answer, each time it is called. It may give a list: the answers to as many questions,
            each of which is a trial.
        truth: the exact answer, or the list of them.
        tolerance: how far from it an average may be and still count as a hit.
        times: how often the question is asked in a trial.
        trials: how often all of that is done.
        renew: called before each trial, to start from a new release: without it, the trials against a
            ledger that remembers are all one and the same.
        once: the probability that one answer is a hit, where its law is known; needs independent trials.
        target: what is attacked, in words.
        confidence: of all intervals.

    Example:
        A thousand draws of `sf.Laplace(epsilon=0.1, sensitivity=1)`, no ledger between them, average to
        within ±2 of a count each time; one does 18 times in 100. A session asked the same at ε = 0.1 a
        thousand times gives one answer, for 0.1 in all, and hits as often as that one does.

    Privacy:
        Claim: where the same released answer is given again, the average is that answer, and the price is
        that of one (post-processing); k fresh answers at ε cost kε. Source: Dwork, McSherry, Nissim, Smith
        2006; Dwork, Roth 2014, Prop. 2.1 and Thm. 3.14.

    Raises:
        InvalidParameter: if a function raises or gives something other than finite numbers, or is refused
            before its first answer.
    """
    values = numbers_given(truth, "truth")
    count, allowed = trials_given(trials, tolerance)
    often = as_integer(times, "times")
    if once is not None and not (isinstance(once, float | int) and 0 <= once <= 1):
        raise InvalidParameter("once must be a probability, from 0 to 1.")
    hits = first_hits = refused = distinct = 0
    seen: list[list[Fraction]] = [[] for _ in values]
    for _ in range(count):
        if renew is not None:
            asked(renew, "renew")
        answers: list[tuple[Fraction, ...]] = []
        try:
            while len(answers) < often:
                answers.append(answers_of(ask, "ask", len(values)))
        except BudgetExceeded:
            refused += 1
        if not answers:
            raise InvalidParameter("ask was refused before its first answer; give it a budget for one.")
        distinct = max(distinct, len(set(answers)))
        for place, value in enumerate(values):
            seen[place].extend(answer[place] - value for answer in answers[:_KEPT])
            mean = sum(answer[place] for answer in answers) / Fraction(len(answers))
            hits += abs(mean - value) <= allowed
            first_hits += abs(answers[0][place] - value) <= allowed
    total = count * len(values)
    outcome = Outcome(
        "averaging",
        f"the average of {often:,} answers is within ±{show(allowed)} of the truth",
        Tally(hits, total),
        Tally(first_hits, total) if once is None else float(once),
        "one answer alone",
        target,
        confidence,
        {
            "tolerance": float(allowed),
            "times": often,
            "distinct_answers": distinct,
            "refused_trials": refused,
        },
    )

    def twin(random: Chance) -> Outcome:
        near = 0
        for misses in seen:
            errors = np.array([float(max(min(miss, _FAR), -_FAR)) for miss in misses])
            for _ in range(count):
                near += abs(float(errors[random.integers(len(errors), size=often)].mean())) <= allowed
        return replace(outcome, reached=Tally(near, total))

    def power() -> Power:
        if distinct == 1 and often > 1:
            return certain_power("fresh noise in every answer", "all answers of a trial were the same")
        return tried(f"fresh noise in each of {often:,} answers", twin, simulation(None), cells=total * often)

    return stated(outcome, power, advice="take more trials, ask more often, or widen the tolerance")


_KEPT = 1_000  # answers of a trial: enough to know their noise by
_FAR = Fraction(10) ** 300  # beyond it a miss is as far as can be told
