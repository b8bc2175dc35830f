"""An engine from outside the package, by the kit alone: DataFusion. README.md says how such a one is written.

It reads Arrow tables and Parquet files. What its SQL does not mean the same by is refused by its dialect.
Run by itself, it puts itself to `check_engine` and answers a question:

    python examples/engine/datafusion_engine.py
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import SessionConfig, SessionContext, SQLOptions
from sqlglot import exp

import sfumato as sf
from datafusion_dialect import DATAFUSION, NAN, TYPES
from sfumato.engines import UNIT_COLUMN, Source, SourceKind, check_address, pointer_column
from sfumato.engines.public import ShowsPublic
from sfumato.errors import EngineFailed, InvalidParameter, SourceUnusable
from sfumato.numeric.moments import DAY, FIRST, LAST
from sfumato.schema import Kind
from sfumato.testing import check_engine

__all__ = ["DataFusion", "context", "no_rows", "readable"]

_STRANGE = "The engine runs one SELECT over attached tables and nothing else."
_READS = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
_CALLS = {
    *("ARROW_TYPEOF", "CHR", "DATE_PART", "ENDS_WITH", "ISNAN", "MD5", "NANVL", "WIDTH_BUCKET"),
    *("CUME_DIST", "DENSE_RANK", "FIRST_VALUE", "LAG", "LAST_VALUE", "LEAD", "NTILE", "PERCENT_RANK", "RANK"),
    "ROW_NUMBER",
}
_CHANGING = (
    exp.Rand,
    exp.Uuid,
    exp.CurrentTimestamp,
    exp.CurrentDate,
    exp.CurrentTime,
    exp.Unnest,
    exp.Explode,
)


def plain(tree: exp.Expression, tables: Collection[str]) -> exp.Expression | None:
    """A SELECT over these tables, named in any case, of calls that no clock or coin decides; None for others.

    sqlglot puts names in quotes and texts in others; a bare word may hold anything.
    """
    nodes = list(tree.walk())

    def of(*kinds: type[exp.Expression]) -> list[exp.Expression]:
        return [node for node in nodes if isinstance(node, kinds)]

    if any(not re.fullmatch(r"\w+", each.name) for each in of(exp.Var)):
        return None
    if of(exp.TableSample, exp.Command, *_CHANGING):
        return None
    if any(each.args.get("recursive") for each in of(exp.With)):
        return None
    if not {each.name.upper() for each in of(exp.Anonymous)} <= _CALLS:
        return None
    named = {each.alias_or_name.lower() for each in of(exp.CTE)}
    read = of(exp.Table)
    if any(not isinstance(each.this, exp.Identifier) or each.db for each in read):
        return None
    if not {each.name.lower() for each in read} <= {*named, *tables}:
        return None
    if all(each.name in {*named, *tables} for each in read):
        return tree
    tree = tree.copy()
    for each in list(tree.find_all(exp.Table)):
        if each.name.lower() not in named:
            each.set("alias", each.args.get("alias") or exp.TableAlias(this=each.this.copy()))
            each.set("this", exp.to_identifier(each.name.lower(), quoted=True))
    return tree


def context(threads: int = 1) -> SessionContext:
    """DataFusion without the optimisers that read statistics of columns."""
    config = SessionConfig().with_target_partitions(threads).with_parquet_pruning(False)
    for key in ("datafusion.execution.collect_statistics", "datafusion.execution.parquet.pushdown_filters"):
        config = config.set(key, "false")
    return SessionContext(config)


class DataFusion(ShowsPublic):
    """Runs reads in DataFusion. The data is held in memory as Arrow has it."""

    dialect = DATAFUSION
    schemes: frozenset[str] = frozenset()

    def __init__(self, *, threads: int = 1) -> None:
        if type(threads) is not int or threads < 1:
            raise InvalidParameter("threads must be a whole number from 1 on.")
        self._context, self._lock = context(threads), threading.RLock()
        self._units: dict[str, bool] = {}
        self._closed = False

    def attach(
        self,
        name: str,
        source: Source,
        columns: Mapping[str, Kind],
        *,
        unit: str | None = None,
        pointers: Sequence[str] = (),
    ) -> None:
        rows, shown = self._rows(source)
        wanted = [(each, each, kind) for each, kind in columns.items()]
        if any(each.casefold().startswith("sfumato ") for each in columns):
            raise SourceUnusable(f"{shown}: a name that is kept is used for a column; rename it.")
        ids = [*([] if unit is None else [(UNIT_COLUMN, unit)]), *((pointer_column(p), p) for p in pointers)]
        for each in {*columns, *(column for _, column in ids)}:
            if each not in rows.column_names:
                raise SourceUnusable(
                    f'{shown} has no column "{each[:100]}"; correct the schema or the source.'
                )
        for _, each in ids:
            if not _identifies(rows.schema.field(each).type):
                raise SourceUnusable(
                    f'{shown}: the values of column "{each[:100]}" cannot be the ids of units.'
                )
        made = [f"{_cast(rows, column, kind, shown)} AS {_quoted(public)}" for public, column, kind in wanted]
        made += [f"{_id(rows, column)} AS {_quoted(public)}" for public, column in ids]
        with self._lock:
            self._check_open()
            name, raw = name.lower(), f"{name.lower()} source"
            for each in (name, raw):
                self._context.deregister_table(_quoted(each))
            self._context.register_record_batches(_quoted(raw), [rows.to_batches() or [no_rows(rows.schema)]])
            view = self._context.sql(f"SELECT {', '.join(made) or '1 AS nothing'} FROM {_quoted(raw)}")
            self._context.register_view(_quoted(name), view)
            self._units[name] = unit is not None

    def schema(self, source: Source) -> dict[str, SourceKind]:
        self._check_open()
        rows, _ = self._rows(source)
        return {field.name: _kind_of(field.type) for field in rows.schema}

    def fetch(self, statement: exp.Expression, *, guard: exp.Expression | None = None) -> pa.Table:
        if guard is not None or not isinstance(statement, exp.Select | exp.SetOperation):
            raise EngineFailed(_STRANGE)
        found: pa.Table | None = None
        with self._lock:
            self._check_open()
            if not self._units:
                raise EngineFailed("No table is attached; attach one before reading.")
            read = plain(statement, self._units)
            if read is None:
                raise EngineFailed(_STRANGE)
            try:
                found = self._context.sql_with_options(self.dialect.text(read), _READS).to_arrow_table()
            except BaseException:  # its text may hold data
                found = None
        if found is None:
            raise EngineFailed("The engine could not finish the read; the price stays paid.")
        return _plain(found)

    def check_whole(self, source: Source) -> None:
        pass

    def is_prepared(self, name: str) -> bool:  # noqa: ARG002
        return False

    def grouping(self, name: str) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def unread(self, name: str) -> frozenset[str]:  # noqa: ARG002
        return frozenset()

    def close(self) -> None:
        self._closed, self._units = True, {}

    def _check_open(self) -> None:
        if self._closed:
            raise EngineFailed("The engine is closed; open a new session.")

    def _has_unit(self, name: str) -> bool:
        return bool(self._units.get(name.lower()))

    def _rows(self, source: Source) -> tuple[pa.Table, str]:
        if isinstance(source, pa.Table):
            return source, "The Arrow table"
        check_address(source, self.schemes)
        shown, rows = f'The source "{str(source)[:200]}"', None
        if isinstance(source, str | Path) and Path(source).suffix == ".parquet":
            try:
                rows = pq.read_table(source)
            except Exception:  # its text may hold data
                rows = None
        if rows is None:
            raise SourceUnusable(f"{shown} cannot be opened; give a Parquet file or an Arrow table.")
        return rows, shown


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {field.name: pa.array([], field.type) for field in schema}, schema=schema
    )


def _kind_of(native: pa.DataType) -> SourceKind:
    if pa.types.is_integer(native):
        return "integer"
    if pa.types.is_floating(native):
        return "float"
    if pa.types.is_boolean(native):
        return "boolean"
    if pa.types.is_string(native) or pa.types.is_large_string(native):
        return "text"
    if pa.types.is_date32(native):
        return "date"
    return "timestamp" if pa.types.is_timestamp(native) else "other"


_FITTING: dict[Kind, tuple[str, ...]] = {
    "integer": ("integer", "boolean"),
    "float": ("integer", "float"),
    "boolean": ("boolean",),
    "text": ("text", "integer"),
    "date": ("date",),
    "timestamp": ("integer",),  # seconds
    "time": ("integer",),
}
_ENDS = {"timestamp": (FIRST, LAST), "time": (0, DAY - 1)}


def _cast(rows: pa.Table, column: str, kind: Kind, shown: str) -> str:
    native = rows.schema.field(column).type
    found = _kind_of(native)
    if found not in _FITTING[kind] and not pa.types.is_null(native):
        raise SourceUnusable(f'{shown}: column "{column[:100]}" cannot be read as {kind}.')
    value = f"TRY_CAST({readable(column, native)} AS {TYPES[kind]})"
    if kind not in _ENDS:
        return value
    low, high = _ENDS[kind]
    return f"CASE WHEN {value} BETWEEN {low} AND {high} THEN {value} END"


def readable(column: str, native: pa.DataType) -> str:
    """A column with one NaN, and no day that has no text there: such a one fails where it is cast."""
    name = _quoted(column)
    if pa.types.is_float64(native):
        return f"NANVL({name}, {NAN})"
    if pa.types.is_date32(native):
        ends = "CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE)"
        return f"CASE WHEN {name} BETWEEN {ends} THEN {name} END"
    if pa.types.is_floating(native):
        return f"NANVL(CAST({name} AS DOUBLE), {NAN})"
    return name


def _identifies(native: pa.DataType) -> bool:
    return _kind_of(native) in ("integer", "float", "text", "boolean", "date") or pa.types.is_null(native)


def _id(rows: pa.Table, column: str) -> str:
    native, name = rows.schema.field(column).type, _quoted(column)
    if pa.types.is_floating(native):  # NaN is no id, and zeros of two signs are one number and one id
        zero = f"CAST(0 AS {'FLOAT' if native == pa.float32() else 'DOUBLE'})"
        return f"CASE WHEN NOT ISNAN({name}) THEN {name} + {zero} END"
    return name


def _plain(found: pa.Table) -> pa.Table:
    """Text and numbers in the types that readers know."""
    fields = [
        field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field
        for field in found.schema
    ]
    return found.cast(pa.schema(fields))


def main() -> None:
    """Whether the engine keeps what is asked of it, and a private answer from it."""
    check_engine(DataFusion)
    print("check_engine: nothing to find fault with")
    draw = sf.random.simulation(1)
    rows = pa.table({
        "patient": draw.integers(0, 3_000, 10_000),
        "ward": draw.choice(["heart", "bones", "children"], 10_000, p=[0.5, 0.3, 0.2]),
        "cost": draw.gamma(2.0, 400.0, 10_000),
    })  # fmt: skip
    stays = sf.PrivateTable(
        "stays",
        source=rows,
        unit=sf.PrivacyUnit("patient", max_groups=2, max_rows=4),
        schema={"ward": sf.Enum("heart", "bones", "children"), "cost": sf.Float(0, 3_000)},
    )
    with sf.Session(stays, budget=sf.Budget(epsilon=1), engine=DataFusion()) as session:
        asked = session.sql("SELECT ward, COUNT(*) AS n, AVG(cost) AS cost FROM stays GROUP BY ward")
        print(asked.release(epsilon=1))


if __name__ == "__main__":
    main()
