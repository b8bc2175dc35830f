"""No message of an engine shows a password, a key or a token of a source, whatever kind of source has it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import engines
from sfumato.engines import DuckDB, base, delta, sources
from sfumato.engines.postgres import Postgres
from sfumato.engines.spark import Spark
from sfumato.engines.spark.rows import rows_of
from sfumato.errors import SfumatoError
from sfumato.schema.states import Snapshot, StateFiles

SECRET = "sEcReT71"
PLACES = (
    "s3a://AKIAKEY:{}@bucket/x",
    "s3://AKIAKEY:{}@bucket/x.parquet",
    "abfss://c@acc.dfs.core.windows.net/x?sig={}",
    "hdfs://u:{}@127.0.0.1:9/x",
    "gs://bucket/x?access_token={}&part=1",
    "https://u:{}@host/x.csv",
    "file://u:{}@host/x.parquet",
    "spark://u:{}@catalog.schema.t",
    "mysql://u:{}@host/x",
    "host=h password={}::t",
    "host=h PASSWORD = {} user=a::t",
    "postgresql:/a:{}@h/x::t",
    "postgres:a:{}@h/x::t",
    "postgresql//a:{}@h/x::t",
    "postgresql://a:{}@h/x::t",
    "postgresql://a:b::{}@h/x::t",
    "postgresql://h/x?user=a&password={}::t",
    "postgresql://h/x?passw%6frd={}::t",
    "postgresql://h/x?service={}::t",
    "postgresql://h/x?user=a%20password%3D{}::t",
    "postgresql://a%3A{}@h/x::t",
    "postgresql://h/x::a:{}@t",
    "postgresql://a:{}@h/x",
    "postgresql://a:{}@h/x::pg_catalog.pg_class",
)
KINDS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "path": Path,
    "list": lambda text: [text, text],
    "csv": sf.Csv,
    "snapshot": lambda text: Snapshot((text, "1")),
    "files": lambda text: StateFiles((text, f"{text}/a.parquet")),
}


def on_spark(source: object) -> None:
    """As Spark does, without a Spark: nothing can be opened."""
    rows_of(None, source, Spark.schemes)


def attaching(make: Callable[[], Any]) -> Callable[[object], None]:
    def attach(source: object) -> None:
        with make() as engine:
            engine.attach("t", source, {"x": "integer"})

    return attach


ENGINES = {"duckdb": attaching(lambda: DuckDB(threads=1)), "postgres": attaching(Postgres), "spark": on_spark}


def said(name: str) -> Iterator[tuple[str, str, str]]:
    """What is said of each source, by its place and kind."""
    for place in PLACES:
        for kind, make in KINDS.items():
            error: Exception | None = None
            try:
                ENGINES[name](make(place.format(SECRET)))
            except SfumatoError as caught:
                error = caught
            assert error is not None
            assert error.__context__ is error.__cause__ is None
            yield place, kind, str(error)


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_no_message_has_the_secret_of_a_source(name):
    found = list(said(name))
    assert [line for line in found if SECRET.lower() in line[2].lower()] == []
    assert len(found) == len(PLACES) * len(KINDS)


def test_a_message_made_of_the_source_itself_is_found(monkeypatch):
    plain = lambda source: f'The source "{source}"'  # noqa: E731
    monkeypatch.setattr(sources, "shown_source", plain)
    assert [line for line in said("duckdb") if SECRET in line[2]]


def test_the_path_of_a_file_is_shown_as_it_is():
    assert base.shown_source("a b/visits.parquet") == 'The source "a b/visits.parquet"'
    assert base.shown_source(Path("/x/é.csv")) == 'The source "/x/é.csv"'
    assert base.shown_source(3) == 'The source "<int>"'


RAW = {"source", "text", "texts", "folder", "path", "paths", "address", "server", "file", "uri", "url"}
"""How what a source is made of is called in the engines."""
HELD = {"shown", "told", "why"}
"""What messages are made of, and called."""
SAFE = {"shown", "name", "number"}
"""What of them is made for messages."""


def raw_in(tree: ast.AST) -> Iterator[int]:
    """The lines on which a message is made of a source itself."""
    for node in ast.walk(tree):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            parts = [*node.exc.args, *(word.value for word in node.exc.keywords)]
        named = [each.id for each in getattr(node, "targets", ()) if isinstance(each, ast.Name)]
        if isinstance(node, ast.Assign | ast.keyword) and (HELD & {*named, getattr(node, "arg", None)}):
            parts = [node.value]
        texts = [text for part in parts for text in ast.walk(part) if isinstance(text, ast.FormattedValue)]
        for text in texts:
            if any(_is_raw(each) for each in _bare(text.value)):
                yield text.lineno


def _bare(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of an expression, without what a function made for messages is given."""
    called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    if called in ("masked", "shown_source", "len", "type"):
        return
    if isinstance(node, ast.Attribute) and node.attr in SAFE:
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _bare(child)


def _is_raw(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and node.id in RAW) or (
        isinstance(node, ast.Attribute) and node.attr in RAW - {"text"}
    )


def test_no_message_in_the_engines_is_made_of_a_source_itself():
    folder = Path(engines.__file__).parent
    found = {
        str(file.relative_to(folder)): lines
        for file in sorted(folder.rglob("*.py"))
        if (lines := sorted(set(raw_in(ast.parse(file.read_text("utf-8"))))))
    }
    assert found == {}


@pytest.mark.parametrize(
    "line",
    [
        "shown = f'The source \"{text[:200]}\"'",
        "raise SourceUnusable(f'{source.folder[:200]} is a Delta table')",
        "f(shown=f'{os.fspath(path)}')",
    ],
)
def test_such_a_message_is_found(line):
    assert list(raw_in(ast.parse(line))) == [1]
    assert list(raw_in(ast.parse("shown = f'{shown_source(text)} and {located.shown}'"))) == []
    assert delta.masked is base.masked
