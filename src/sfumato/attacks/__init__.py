"""Attacks that show why exact answers harm, each beside what a guess would reach. Steward-only on real data.

Every attack works on tables, numbers and functions, and gives an `Outcome`: how often it succeeded, with a
confidence interval, and how often somebody would who has not seen the release.

All names are here: several functions are called as the module that they are in, and `sfumato.attacks.linkage`
is the function. `from sfumato.attacks.linkage import narrowing` finds the module all the same.
"""

from __future__ import annotations

from sfumato.attacks.averaging import averaging
from sfumato.attacks.differencing import difference, differencing, differencing_totals
from sfumato.attacks.extraction import Score, TrainText, exposure, extraction
from sfumato.attacks.gradients import Gradient, gradient_leakage, record_of
from sfumato.attacks.homogeneity import homogeneity
from sfumato.attacks.intersection import Intersection, intersection
from sfumato.attacks.isolation import isolation
from sfumato.attacks.labels import Known, Meaning, covers, known, meaning, steps_of
from sfumato.attacks.linkage import linkage, narrowing, sparse_linkage
from sfumato.attacks.membership import Confidence, Train, likelihood_ratio, shadow
from sfumato.attacks.nearness import NearestRecords, nearest_records, nearness
from sfumato.attacks.outcome import Outcome, Tally, compare
from sfumato.attacks.power import Power
from sfumato.attacks.printed import SCORE_BANDS, company_z, table_1, table_1_anonymized, table_2
from sfumato.attacks.reconstruction import (
    Curve,
    Method,
    curve,
    hadamard_answers,
    hadamard_subsets,
    reconstruct,
    reconstruct_fourier,
    reconstruction,
    subset_queries,
)
from sfumato.attacks.singling import inference, linkability, singling_out
from sfumato.attacks.swapping import swap, swapping
from sfumato.attacks.text import CharacterModel, character_counts
from sfumato.attacks.tracing import trace_scores, tracing

__all__ = [
    "SCORE_BANDS",
    "CharacterModel",
    "Confidence",
    "Curve",
    "Gradient",
    "Intersection",
    "Known",
    "Meaning",
    "Method",
    "NearestRecords",
    "Outcome",
    "Power",
    "Score",
    "Tally",
    "Train",
    "TrainText",
    "averaging",
    "character_counts",
    "company_z",
    "compare",
    "covers",
    "curve",
    "difference",
    "differencing",
    "differencing_totals",
    "exposure",
    "extraction",
    "gradient_leakage",
    "hadamard_answers",
    "hadamard_subsets",
    "homogeneity",
    "inference",
    "intersection",
    "isolation",
    "known",
    "likelihood_ratio",
    "linkability",
    "linkage",
    "meaning",
    "narrowing",
    "nearest_records",
    "nearness",
    "reconstruct",
    "reconstruct_fourier",
    "reconstruction",
    "record_of",
    "shadow",
    "singling_out",
    "sparse_linkage",
    "steps_of",
    "subset_queries",
    "swap",
    "swapping",
    "table_1",
    "table_1_anonymized",
    "table_2",
    "trace_scores",
    "tracing",
]
