"""`sfumato explain`: what an epsilon lets an attacker do."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

import typer

from sfumato.cli.failures import reported
from sfumato.cli.options import JsonOption
from sfumato.cli.output import emit_json, paragraph, say, table

__all__ = ["explain"]

_RATES = (0.001, 0.01, 0.05, 0.1)
_PRIORS = ("0.01", "0.1", "0.5")


@reported
def explain(
    epsilon: Annotated[str, typer.Argument(metavar="EPSILON", help="The epsilon to explain.")],
    delta: Annotated[
        str, typer.Option("--delta", metavar="NUMBER", help="The delta that goes with it.")
    ] = "0",
    unit: Annotated[str, typer.Option("--unit", help="What is protected, in a word.")] = "person",
    deployments: Annotated[
        bool, typer.Option("--deployments", help="List the published deployments it is compared with.")
    ] = False,
    json_: JsonOption = False,
) -> None:
    """What an epsilon means: what an attacker could learn."""
    from sfumato.explain import advantage, compare, posterior, tradeoff, words
    from sfumato.explain.figures import percent_down, percent_given, percent_up
    from sfumato.loss import ApproximateLoss, PureLoss
    from sfumato.numeric.exact import delta_of, positive

    price, slack = positive(epsilon, "epsilon"), delta_of(delta)
    loss = ApproximateLoss(price, slack) if slack else PureLoss(price)
    rates = [float(rate) for rate in tradeoff(loss, list(_RATES))]
    # What (epsilon, delta) says about beliefs needs more room than delta itself: see `posterior`.
    aside = min(10 * slack, Fraction(1, 2))
    beliefs = [posterior(loss, prior, failure=aside) for prior in _PRIORS]
    told = words(loss, unit=unit, delta=aside)
    standing = compare(price, slack, unit)
    if json_:
        emit_json(
            {
                "epsilon": price,
                "delta": slack,
                "unit": unit,
                "words": told,
                "advantage": advantage(loss),
                "tradeoff": [
                    {"false_positive_rate": rate, "true_positive_rate": best}
                    for rate, best in zip(_RATES, rates, strict=True)
                ],
                "beliefs": [
                    {
                        "prior": float(prior),
                        "smallest": belief.smallest,
                        "largest": belief.largest,
                        "failure": belief.failure,
                    }
                    for prior, belief in zip(_PRIORS, beliefs, strict=True)
                ],
                "deployments": {
                    "summary": standing.summary,
                    "smaller": standing.smaller,
                    "larger": standing.larger,
                    "near": [one.name for one in standing.near],
                },
            }
        )
        return
    say(told)
    say()
    table(
        {
            "false alarms": [f"1 in {round(1 / rate):,}" for rate in _RATES],
            "found at most": [percent_up(best) for best in rates],
        }
    )
    say()
    table(
        {
            "belief before": [percent_given(float(prior)) for prior in _PRIORS],
            "after, at least": [percent_down(belief.smallest) for belief in beliefs],
            "after, at most": [percent_up(belief.largest) for belief in beliefs],
        }
    )
    say()
    if deployments:
        say(str(standing))
    else:
        paragraph(f"{standing.summary} They are listed by --deployments.")
