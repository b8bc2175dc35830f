"""Questions on Spark, each case in a process of its own: its memory is the case's, and so is its JVM.

CPU seconds are those of the driver, the JVM and all workers of Python together. What jobs ran and what their
stages shuffled is what Spark's own listener says.

`python -m benchmarks.engine_spark CASE SOURCE [WORD…]` prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import sfumato as sf
from benchmarks import engine_questions
from benchmarks.engine_servers import find_java
from benchmarks.harness import once, race
from benchmarks.processes import cpu_seconds, family, peak
from benchmarks.visits import forgetting

THREADS, MEMORY = 2, "4GB"
WARM, REPEATS = 3, 10
ENOUGH = 20.0  # seconds of one contender, after which it has no further turn
LONG = 40.0  # seconds of all first calls, after which all are warm
EPSILON, DELTA = 50, "1e-6"  # groups of two rows are nearly all shown, which is the most work
BY_GROUP = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"


def started() -> Any:
    """An engine on a Spark of this process, with ordinary settings."""
    find_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from sfumato.engines.spark import Spark

    return Spark(threads=THREADS, memory=MEMORY)


class Watch:
    """What Spark ran since it was looked at last."""

    def __init__(self, engine: Any) -> None:
        self._context, self._last = engine._spark.sparkContext._jsc.sc(), -1
        self.look()

    def look(self) -> dict[str, Any]:
        """The number of jobs, the bytes that were shuffled, and each stage by itself."""
        self._context.listenerBus().waitUntilEmpty()
        store = self._context.statusStore()
        jobs = [job for job in _listed(store.jobsList(None)) if job.jobId() > self._last]
        self._last = max([self._last, *(job.jobId() for job in jobs)])
        ids = sorted({stage for job in jobs for stage in _listed(job.stageIds())})
        stages = [_stage(store.lastStageAttempt(each)) for each in ids]
        shuffled = sum(stage["shuffled"] for stage in stages)
        return {"jobs": len(jobs), "shuffled": shuffled, "stages": stages}


def _listed(values: Any) -> list[Any]:
    """A sequence of Scala."""
    return [values.apply(place) for place in range(values.size())]


def _stage(stage: Any) -> dict[str, Any]:
    return {
        "tasks": stage.numTasks(),
        "seconds": stage.executorRunTime() / 1e3,
        "cpu": stage.executorCpuTime() / 1e9,
        "shuffled": stage.shuffleWriteBytes(),
        "spilled": stage.diskBytesSpilled(),
    }


def peaks() -> dict[str, float]:
    """The greatest memory so far, in MB: of this driver, of its JVM, and of all its processes together."""
    found = {process: peak(process) for process in family()}
    java = sum(found[process] for process, name in family().items() if name == "java" and process in found)
    return {"driver": peak(), "java": java, "together": sum(found.values())}


def versions(engine: Any) -> dict[str, str]:
    """Of Spark and its Java."""
    java = engine._spark.sparkContext._jvm.java.lang.System.getProperty("java.version")
    return {"Spark": engine._spark.version, "Java": java}


def _plain(engine: Any, source: str, text: str) -> Callable[[], object]:
    """A question without privacy, on a session with Spark's own settings."""
    session = engine._spark.newSession()
    assert session.conf.get("spark.sql.adaptive.enabled") == "true"
    session.read.parquet(source).createOrReplaceTempView("visits")
    return lambda: session.sql(text).toArrow()


def by_country(
    engine: Any, source: str, who: Sequence[str] = ("plain", "sfumato"), *, repeats: int = REPEATS
) -> dict[str, Any]:
    """Sum and mean by country, user units, by each of them: seconds, jobs and bytes, warm, with the first."""
    calls: dict[str, Callable[[], object]] = {
        "plain": _plain(engine, source, engine_questions.PLAIN),
        "by user": _plain(engine, source, engine_questions.BY_USER),
    }
    ours = [("sfumato", engine_questions.session(source, engine))]
    target = Path(tempfile.mkdtemp(prefix="benchmark-prepared-")) / "visits.prepared"
    if "prepared" in who:
        ready = engine_questions.prepared(source, str(target), engine)
        if ready is not None:
            ours.append(("prepared", engine_questions.session(ready, engine)))
            calls["plain, prepared"] = _plain(engine, str(target), engine_questions.PLAIN)
    calls |= {name: engine_questions.asked(one) for name, one in ours}
    chosen = {name: calls[name] for name in (*who, "plain, prepared") if name in calls}
    watch, found = Watch(engine), dict[str, Any]()
    for name, call in chosen.items():
        first = once(call).wall  # with what is checked once, of a table that was prepared
        watch.look()
        call()
        found[name] = {"first": first, **watch.look()}
    warm = 0 if sum(each["first"] for each in found.values()) > LONG else WARM
    timings = race(chosen, repeats=repeats, warm=warm, budget=ENOUGH, clock=cpu_seconds)
    for name in chosen:
        found[name] |= asdict(timings[name])
    found |= {"peaks": peaks(), "versions": versions(engine)}
    for _, one in ours:
        one.close()
    shutil.rmtree(target.parent, ignore_errors=True)
    return found


def groups(engine: Any, source: str, *, repeats: int = 2) -> dict[str, Any]:
    """Counts of many unlisted groups as files, beside the same statement whose result is dropped."""
    schema: dict[str, sf.schema.ColumnType] = {"g": sf.Int()}
    table = sf.PrivateTable("t", source=source, unit=sf.PrivacyUnit.row(), schema=schema)
    place = Path(tempfile.mkdtemp(prefix="benchmark-groups-"))
    watch, shown = Watch(engine), 0
    with sf.Session(table, budget=sf.Budget(10**7, "0.5"), engine=engine) as one:
        renew = forgetting(one)
        quote = one.sql(BY_GROUP).quote(EPSILON, delta=DELTA)
        statement = one.vault._statement(quote.measured)

        def aggregated() -> None:
            def dropped(frame: Any) -> bool:
                frame.write.format("noop").mode("overwrite").save()
                return True

            engine._run(statement, dropped)

        def written() -> None:
            nonlocal shown
            renew()
            shutil.rmtree(place / "out", ignore_errors=True)
            release = one.sql(BY_GROUP).write(place / "out", epsilon=EPSILON, delta=DELTA)
            assert not release.free
            shown = release.rows

        calls = {"aggregation": aggregated, "written": written}
        found: dict[str, Any] = {
            name: {"first": once(call).wall, **watch.look()} for name, call in calls.items()
        }
        timings = race(calls, repeats=repeats, warm=0, budget=6 * ENOUGH, clock=cpu_seconds)
        for name in calls:
            found[name] |= asdict(timings[name])
        found |= {"peaks": peaks(), "versions": versions(engine)}
    shutil.rmtree(place, ignore_errors=True)
    return {**found, "shown": shown}


CASES = {"by country": by_country, "groups": groups}

if __name__ == "__main__":
    with started() as made:
        print(json.dumps(CASES[sys.argv[1]](made, sys.argv[2], *([sys.argv[3:]] if sys.argv[3:] else []))))
