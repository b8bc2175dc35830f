"""What a privacy loss means: the attacker's best, beliefs, plain words, and published deployments.

Everything here is a pure function of a `PrivacyLoss` or of public numbers; nothing reads data, and every
figure is rounded so that what is said stays true.
"""

from __future__ import annotations

from sfumato.explain.attacker import Posterior, advantage, posterior, tradeoff
from sfumato.explain.delta import DeltaAdvice, delta_advice
from sfumato.explain.deployments import KINDS, Comparison, Deployment, compare, deployments, source
from sfumato.explain.words import NOT_PROMISED, words

__all__ = [
    "KINDS",
    "NOT_PROMISED",
    "Comparison",
    "DeltaAdvice",
    "Deployment",
    "Posterior",
    "advantage",
    "compare",
    "delta_advice",
    "deployments",
    "posterior",
    "source",
    "tradeoff",
    "words",
]
