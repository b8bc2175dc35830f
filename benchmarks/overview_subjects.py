"""What docs/benchmarks.md says of each subject: a title, words to read it with, and its tables of rows."""

from __future__ import annotations

from benchmarks.harness import seconds
from benchmarks.overview_learning import LEARNING
from benchmarks.overview_tables import (
    CPU,
    TIME,
    Column,
    Row,
    Subject,
    Table,
    at_each,
    column,
    each,
    number,
    ratio,
    took,
    value,
)


def _points_below(errors: dict[str, float]) -> str:
    return f"{sum(error < 0 for error in errors.values())} of {len(errors)}"


def _worst(errors: dict[str, float]) -> str:
    return number(max(map(abs, errors.values())))


def _checked(row: Row) -> str | None:
    """Time of a check; of a textbook's, row by row, for the rows that were tried."""
    if "wall_seconds" not in row:
        return None
    return seconds(row["wall_seconds"]) + (f" for {row['rows']} rows" if "rows" in row else "")


OVER_OURS = ratio("over_ours", "over ours")
LEVELS = ("all", "states", "counties", "tracts")

SUBJECTS = {
    "noise": Subject(
        "Noise",
        "Where time and noise are correlated, somebody with a clock learns about the noise: 0 is best.",
        (
            Table(
                "A million exact draws beside numpy's float draws",
                ("discrete Laplace, scale 0.001", "numpy (float)"),
                (TIME, ratio("over_numpy", "over numpy")),
            ),
            Table(
                "Vectors: time of one value",
                ("Geometric, scale 1", "sfumato"),
                (each("values", "time"), OVER_OURS),
            ),
            Table("One release", ("Laplace, epsilon 1", "sfumato"), (TIME, OVER_OURS)),
            Table(
                "Rank correlation of time with the size of the noise",
                ("Laplace of 0", "sfumato"),
                (value("correlation", "correlation"), value("half_width", "±")),
            ),
        ),
    ),
    "accounting": Subject(
        "Accounting",
        "A relative error is the distance from a slow, exact computation. A shortfall is how far a figure is "
        "below it: an epsilon must not be below the truth.",
        (
            Table(
                "One epsilon, or one noise multiplier",
                ("Gaussian, Laplace, pure", "sfumato"),
                (TIME, OVER_OURS, value("relative_error", "relative error")),
            ),
            Table(
                "The total after each of 1,000 spends",
                ("500 Laplace, 500 Gaussian", "sfumato"),
                (took("mean_seconds", "mean time"), value("relative_error", "relative error")),
            ),
        ),
    ),
    "calibration": Subject(
        "Calibration",
        "A sigma below the truth does not keep the epsilon and delta that were asked for.",
        (
            Table(
                "Sigma of the Gaussian mechanism at 99 pairs of epsilon and delta",
                ("99 points", "sfumato"),
                (
                    column("relative_errors", "worst relative error", _worst),
                    column("relative_errors", "points below the truth", _points_below),
                ),
            ),
            Table("One calibration", ("sigma", "sfumato"), (TIME,)),
        ),
    ),
    "selection": Subject(
        "Selection",
        "",
        (
            Table(
                "One choice among a million candidates",
                ("normal scores, spread 10", "argmax + uniform"),
                (TIME, ratio("over_numpy", "over numpy")),
            ),
            Table(
                "One choice: time of one candidate",
                ("normal scores, spread 10", "sf.Exponential"),
                (each("candidates", "time"), OVER_OURS),
            ),
            Table(
                "Groups found that nobody listed (more is better)",
                ("20 to 80 groups a unit", "sfumato"),
                (value("found", "groups found"), value("max_groups", "most groups of a unit")),
            ),
        ),
    ),
    "mechanisms": Subject(
        "Mechanisms",
        "What one answer costs to compute, and whether it grows as [the guide](mechanisms.md#which-one) "
        "says. "
        "An exponent of 1 means that twice as much takes twice as long; it is fitted over the three largest "
        "sizes. Where a time follows the private value, somebody with a clock learns about it: 1 × is best. "
        "The second round of `AdaptiveSelection` is about groups that the first did not find, so that its "
        "time follows what is shown.",
        (
            Table(
                "One answer",
                ("1 number", "sf.Laplace"),
                (took("median", "CPU time"), took("each", "of one"), value("exponent", "exponent")),
            ),
            Table(
                "Two private values",
                ("one number of 0", "sf.Laplace"),
                (took("median", "CPU time"), ratio("over_first", "over the first")),
            ),
            Table(
                "100,000 numbers or candidates by the scale of the noise",
                ("scale 1", "sf.Laplace"),
                (took("median", "CPU time"),),
            ),
            Table(
                "A new one with its first small answer",
                ("made and first used", "sf.Laplace"),
                (took("median", "CPU time"),),
            ),
        ),
    ),
    "query": Subject(
        "Queries",
        'A "row unit" protects each row, a "user unit" all rows of a person. Plain DuckDB has no privacy.',
        (
            Table("A new question over few rows", ("one count, row unit", "engine alone"), (TIME, CPU)),
            Table("A count over a million rows", ("row unit", "engine alone"), (TIME, CPU)),
            Table("A count with WHERE", ("row unit, 1,000,000 rows", "plain DuckDB"), (TIME, CPU)),
            Table("A count over a million rows by OpenDP", ("user unit", "OpenDP, 5 rows"), (TIME, CPU)),
            Table("GROUP BY over 10 million rows, row units", ("count", "plain DuckDB"), (TIME, CPU)),
            Table("GROUP BY over 10 million rows, user units", ("sum and mean", "plain DuckDB"), (TIME, CPU)),
            Table(
                "Debits of 8 processes, each on disk before the next",
                ("debits", "SQLite"),
                (value("debits_per_second", "debits a second"),),
            ),
            Table(
                "Beside other libraries, user units, a million rows",
                ("sum and mean by country", "plain DuckDB"),
                (TIME, CPU),
            ),
        ),
    ),
    "depth": Subject(
        "Prepared tables",
        "Plain DuckDB has no privacy. [Prepared tables](prepare.md) says what preparing does.",
        (
            Table("On a prepared table", ("preparing it, once", "sfumato"), (TIME, CPU)),
            Table("Groups that nobody listed, not prepared", ("count", "plain DuckDB"), (TIME, CPU)),
        ),
    ),
    "growth": Subject(
        "Growth",
        "A growth exponent of 1 means that twice as much takes twice as long. All rows are ours, at several "
        "sizes: the figures sum them up.",
    ),
    "scale": Subject(
        "Scale",
        "[Scale](scale.md) has the stages of a question, and what a cluster would need.",
        (
            Table(
                "The same question over more and more data",
                ("rows, row units: 100,000", "plain DuckDB"),
                (took("wall"), ratio("over_plain", "over plain"), value("mb", "peak MB")),
            ),
        ),
    ),
    "engines": Subject(
        "Engines",
        "Plain is the same query without privacy on the same engine. [Engines](engines.md) says what "
        "preparing saves.",
        (
            Table(
                "Beside Tumult on Spark",
                ("sum and mean, 100,000 rows", "sfumato"),
                (TIME, CPU, value("megabytes", "peak MB")),
            ),
            Table(
                "Bytes moved between the parts of Spark",
                ("sum and mean", "plain"),
                (TIME, CPU, value("shuffled", "bytes")),
            ),
            Table("DuckDB, 10 million rows", ("on DuckDB", "plain"), (TIME, CPU)),
            Table("PostgreSQL, a million rows", ("on PostgreSQL", "plain"), (TIME, CPU)),
            Table("Spark, a million rows", ("on Spark", "plain"), (TIME, CPU)),
            Table("PostgreSQL, a thousand rows", ("on PostgreSQL", "plain"), (TIME, CPU)),
            Table("Spark, a thousand rows", ("on Spark", "plain"), (TIME, CPU)),
            Table("Noise drawn on Spark for 10 million groups", ("counts", "aggregation"), (TIME, CPU)),
        ),
    ),
    "server": Subject(
        "Server",
        "p99 is the time within which 99 of 100 answers came. [The server](server.md) has more.",
        (
            Table("One small question", ("new", "in process"), (took("median", "median time"),)),
            Table(
                "64 clients at once",
                ("by the same text", "sfumato"),
                (value("rate", "answers a second"), took("p50", "p50"), took("p99", "p99")),
            ),
        ),
    ),
    "page": Subject(
        "Web page",
        "Cold is the first visit, warm a later one.",
        (
            Table(
                "Sections of the page",
                ("/login", "page"),
                (took("cold", "cold"), took("warm", "warm"), value("bytes", "bytes")),
            ),
            Table(
                "A quote while somebody types",
                ("live quote", "page"),
                (took("median", "median"), took("p95", "p95")),
            ),
            Table(
                "A privacy card",
                ("privacy card", "page"),
                (took("first", "after a release"), took("again", "again")),
            ),
        ),
    ),
    "errors": Subject(
        "Errors",
        "Noise is what privacy adds. Total is the distance from the answer over all rows, cuts included. "
        "Peers at several limits have the one that was best in hindsight among them. "
        "Errors on skewed users are parts of the true answer: 0.1 is ten percent.",
        (
            Table(
                "The same guarantee, epsilon 1",
                ("count by country", "sfumato"),
                (value("spread", "noise"), value("total", "total error")),
            ),
            Table(
                "Not run here: what others published",
                ("cited, not run here", "PipelineDP"),
                (column("cited", "cited", str),),
            ),
            Table(
                "Nine deciles at once",
                ("deciles of age", "sfumato"),
                (value("spread", "noise"), value("total", "total error")),
            ),
            Table(
                "Several quantiles: error in rows",
                ("1 levels of uniform, 1,000 rows", "sfumato"),
                (value("rank_error", "ours"), value("recursive", "recursive mechanism")),
            ),
            Table(
                "Skewed users",
                ("Zipf, count", "sfumato, auto"),
                (value("noise", "noise"), value("bias", "bias"), value("total", "total error")),
            ),
            Table("Rows by shop", ("5 rows declared", "sfumato"), (value("total", "total error"),)),
        ),
    ),
    "local": Subject(
        "Local reports",
        "[Local privacy](local.md) describes each kind of report.",
        (
            Table(
                "Making reports: time of one",
                ("k-ary response", "sfumato"),
                (each("reports", "time"), value("bytes", "bytes")),
            ),
            Table(
                "Adding reports up: time of one",
                ("k-ary response", "sfumato"),
                (each("reports", "time"), value("bytes", "bytes")),
            ),
            Table(
                "Unary reports: time of one",
                ("unary, encode", "sfumato"),
                (each("reports", "time"), value("bytes", "bytes")),
            ),
            Table(
                "Errors over what theory says (1 is best)",
                ("binary response", "sfumato"),
                (value("ratio", "error over theory"), value("coverage", "intervals of 95 % that held")),
            ),
        ),
    ),
    "anonymity": Subject(
        "Anonymity",
        "A lower discernibility keeps more detail. [Anonymity](anonymity.md) says what these checks are.",
        (
            Table(
                "Checks of k and of t on the Adult table",
                ("k check", "sfumato"),
                (Column("time", _checked), OVER_OURS),
            ),
            Table(
                "Making a table k-anonymous, k = 10",
                ("Mondrian", "sfumato"),
                (TIME, value("classes", "classes"), value("discernibility", "discernibility")),
            ),
        ),
    ),
    "games": Subject(
        "Games",
        '"From a part" was timed on a part of the work; its ratio is for the whole.',
        (
            Table(
                "Beside plain numpy",
                ("one price", "numpy, sorting"),
                (TIME, ratio("over_sorting", "over sorting"), ratio("over_plain", "over plain")),
            ),
            Table(
                "What was promised and what was seen",
                ("revenue, 10,000 buyers", "sfumato (private)"),
                (value("measured", "seen"), value("promised", "promised")),
            ),
        ),
    ),
    "census": Subject(
        "Census",
        "Mean absolute errors of counts, over those of another way at the same price: below 1 is better. "
        "[Census](census.md) describes the ways.",
        (
            Table(
                "Mean absolute error of all tables of a level",
                ("epsilon 0.1", "sfumato"),
                at_each("all_tables", LEVELS),
            ),
            Table(
                "Mean absolute error of cells of tracts",
                ("epsilon 0.1", "sfumato"),
                (value("unusual", "unusual tracts"), value("others", "other tracts")),
            ),
            Table("Seconds of a release", ("epsilon 0.1", "sfumato"), (TIME,)),
        ),
    ),
    "continual": Subject(
        "Streams",
        "The lower bound is what no factorisation can beat.",
        (
            Table(
                "Mean squared error of running totals",
                ("64 steps", "lower bound"),
                (value("error", "error"), ratio("over_bound", "over the bound")),
            ),
            Table("A long stream, step by step", ("made once", "sfumato"), (TIME,)),
            Table("A year of daily releases", ("a year", "sfumato, at once"), (TIME, CPU)),
        ),
    ),
    **LEARNING,
}
