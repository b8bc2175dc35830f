"""`python -m benchmarks [subject…]`: run the subjects, print their tables, write their results."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from benchmarks import harness

SUBJECTS = (
    "noise",
    "accounting",
    "calibration",
    "selection",
    "mechanisms",
    "query",
    "depth",
    "growth",
    "scale",
    "engines",
    "server",
    "page",
    "errors",
    "local",
    "anonymity",
    "games",
    "learn",
    "deep_gpu",
    "deep_text",
    "synth",
    "census",
    "continual",
    "coverage",
    "learn_coverage_survival",
    "deep",
    "deep_accuracy",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "subjects", nargs="*", metavar="subject", help=f"among {', '.join(SUBJECTS)}; all unless given"
    )
    parser.add_argument("--only", help="only the parts of a subject whose name contains this text")
    parser.add_argument("--output", type=Path, default=harness.RESULTS, help="folder of the results")
    arguments = parser.parse_args()
    unknown = set(arguments.subjects) - set(SUBJECTS)
    if unknown:
        parser.error(f"no such subject: {', '.join(sorted(unknown))}; choose among {', '.join(SUBJECTS)}")
    harness.preamble()
    reports = []
    for subject in arguments.subjects or SUBJECTS:
        report = harness.Report(subject)
        for part in import_module(f"benchmarks.{subject}").PARTS:
            if not arguments.only or arguments.only in part.__name__:
                report.attempt(part)
        # A partial run must not pass for a whole one, so it leaves the results alone.
        if not arguments.only:
            print(f"\nwritten: {report.write(arguments.output)}")
        reports.append(report)
    return 0 if harness.summary(reports) else 1


if __name__ == "__main__":
    sys.exit(main())
