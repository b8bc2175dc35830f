"""What docs/benchmarks.md says of the subjects about learning and synthetic tables."""

from __future__ import annotations

from benchmarks.overview_tables import TIME, Subject, Table, at_each, column, mean, ratio, took, value

EPSILONS = ("epsilon 0.1", "epsilon 1", "epsilon 10")

LEARNING = {
    "learn": Subject(
        "Learning",
        "AUC is how well a model ranks: 1 is best, 0.5 is a coin. Inertia is how far points are from their "
        "centres, over what scikit-learn reaches without privacy: 1 is best.",
        (
            Table("Logistic regression on Adult: AUC", ("logistic", "sfumato"), at_each("auc", EPSILONS)),
            Table("Linear regression on Adult: R²", ("linear", "sfumato"), at_each("r2", EPSILONS)),
            Table("Boosted trees on Adult: AUC", ("boosting", "sfumato"), at_each("auc", EPSILONS)),
            Table(
                "K-means: inertia over scikit-learn's",
                ("50,000 x 10", "sfumato"),
                at_each("inertia_over_plain", EPSILONS),
            ),
            Table(
                "One fit of a million rows, 1 thread",
                ("logistic", "scikit-learn"),
                (TIME, value("peak_mebibytes", "peak MiB")),
            ),
            Table(
                "One fit of a million rows, 2 threads",
                ("logistic", "scikit-learn"),
                (TIME, value("peak_mebibytes", "peak MiB")),
            ),
        ),
    ),
    "synth": Subject(
        "Synthetic tables",
        "Variation is how far pairs of columns are from the real ones: 0 is best. AUC is how well trees that "
        "learned from synthetic rows rank real ones: 1 is best. cpu is CPU seconds.",
        (
            Table(
                "The Adult table",
                ("mst, epsilon 0.1", "sfumato"),
                (
                    took("cpu", "CPU"),
                    value("megabytes", "MB"),
                    value("variation", "variation"),
                    value("auc", "AUC"),
                ),
            ),
            Table("Wide tables in closed form", ("100 x 16, 1,000,000 rows", "sfumato"), ()),
            Table(
                "Two tables: patients and their visits",
                ("two tables, epsilon 0.1", "sfumato"),
                (took("cpu", "CPU"), value("numbers", "number of visits"), value("pairs", "pairs")),
            ),
            Table(
                "A wide table",
                ("independent", "sfumato"),
                (took("cpu", "CPU"), value("variation", "variation")),
            ),
        ),
    ),
    "coverage": Subject(
        "Intervals of regressions",
        "An interval of 95 % should hold the truth 95 times in 100.",
    ),
    "learn_coverage_survival": Subject(
        "Intervals of survival curves",
        "A band or an interval of 95 % should hold the truth 95 times in 100.",
    ),
    "deep": Subject(
        "Deep learning on a CPU",
        "Plain is a step without privacy. Opacus has three ways to take gradients of each record; its best "
        "one counts.",
        (
            Table("One step", ("small CNN", "plain"), (TIME, ratio("of_plain", "over plain"))),
            Table("Narrow and wide layers: one step", ("MLP 512", "plain"), (TIME,), again=True),
        ),
    ),
    "deep_gpu": Subject(
        "Deep learning on an accelerator",
        "Plain is a step without privacy. [Deep learning](deep.md) has the settings.",
        (
            Table(
                "One step",
                ("GPT-2 size", "plain"),
                (
                    TIME,
                    ratio("over_plain", "over plain"),
                    column("held_bytes", "memory", lambda held: f"{held / 1e9:.3g} GB"),
                ),
            ),
        ),
    ),
    "deep_accuracy": Subject(
        "Accuracy of private nets",
        "Noise hits rare kinds hardest: the table has them beside all others.",
        (
            Table(
                "Accuracy",
                ("digits, linear", "epsilon 0.5"),
                (mean("overall", "overall"), mean("rare", "rare kind"), mean("others", "others")),
            ),
        ),
    ),
    "deep_text": Subject(
        "A language model, tuned privately",
        "Recovered is the part of what tuning without privacy gains: 1 is all of it.",
        (
            Table(
                "Loss of the next word",
                ("no tuning", "-"),
                (value("loss", "loss"), value("recovered", "recovered")),
            ),
        ),
    ),
}
