"""PostgreSQL's SQL about its catalog as DuckDB's SQL about our tables of the catalog.

Only names that are listed here pass: tables of the catalog, and functions that look at nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlglot
from sqlglot import exp

from sfumato.server.wire.catalog_tables import SCHEMA
from sfumato.server.wire.sqlstates import WireError

__all__ = ["HOME", "MACROS", "about_catalog", "rewritten", "tree_of"]

HOME = "cat"
"""The schema of DuckDB in which the tables and functions are."""

MACROS: Mapping[str, str] = {
    "pg_table_is_visible(a)": "true",
    "pg_type_is_visible(a)": "true",
    "pg_function_is_visible(a)": "true",
    "pg_collation_is_visible(a)": "true",
    "pg_operator_is_visible(a)": "true",
    "pg_opclass_is_visible(a)": "true",
    "pg_conversion_is_visible(a)": "true",
    "pg_statistics_obj_is_visible(a)": "true",
    "pg_ts_config_is_visible(a)": "true",
    "pg_ts_dict_is_visible(a)": "true",
    "pg_ts_parser_is_visible(a)": "true",
    "pg_ts_template_is_visible(a)": "true",
    "pg_get_userbyid(a)": "'sfumato'",
    "pg_encoding_to_char(a)": "'UTF8'",
    "pg_char_to_encoding(a)": "6",
    "pg_get_expr(a, b)": "NULL::VARCHAR",
    "pg_get_expr3(a, b, c)": "NULL::VARCHAR",
    "pg_get_constraintdef(a)": "NULL::VARCHAR",
    "pg_get_constraintdef2(a, b)": "NULL::VARCHAR",
    "pg_get_indexdef(a)": "NULL::VARCHAR",
    "pg_get_indexdef3(a, b, c)": "NULL::VARCHAR",
    "pg_get_viewdef(a)": "NULL::VARCHAR",
    "pg_get_viewdef2(a, b)": "NULL::VARCHAR",
    "pg_get_ruledef(a)": "NULL::VARCHAR",
    "pg_get_triggerdef(a)": "NULL::VARCHAR",
    "pg_get_triggerdef2(a, b)": "NULL::VARCHAR",
    "pg_get_functiondef(a)": "NULL::VARCHAR",
    "pg_get_function_result(a)": "NULL::VARCHAR",
    "pg_get_function_arguments(a)": "NULL::VARCHAR",
    "pg_get_function_identity_arguments(a)": "NULL::VARCHAR",
    "pg_get_partkeydef(a)": "NULL::VARCHAR",
    "pg_get_statisticsobjdef_columns(a)": "NULL::VARCHAR",
    "pg_get_serial_sequence(a, b)": "NULL::VARCHAR",
    "pg_relation_is_publishable(a)": "false",
    "pg_relation_size(a)": "0",
    "pg_relation_size2(a, b)": "0",
    "pg_total_relation_size(a)": "0",
    "pg_table_size(a)": "0",
    "pg_indexes_size(a)": "0",
    "pg_database_size(a)": "0",
    "pg_size_pretty(a)": "'0 bytes'",
    "pg_tablespace_location(a)": "''",
    "pg_is_in_recovery()": "false",
    "pg_is_other_temp_schema(a)": "false",
    "pg_my_temp_schema()": "0",
    "pg_backend_pid()": "0",
    "pg_postmaster_start_time()": "TIMESTAMP '2000-01-01'",
    "pg_conf_load_time()": "TIMESTAMP '2000-01-01'",
    "pg_advisory_unlock_all()": "NULL::VARCHAR",
    "pg_stat_get_numscans(a)": "0",
    "pg_column_is_updatable(a, b, c)": "false",
    "pg_relation_is_updatable(a, b)": "0",
    "pg_has_role(a, b)": "true",
    "pg_has_role3(a, b, c)": "true",
    "has_database_privilege(a, b)": "true",
    "has_database_privilege3(a, b, c)": "true",
    "has_schema_privilege(a, b)": "upper(b) = 'USAGE'",
    "has_schema_privilege3(a, b, c)": "upper(c) = 'USAGE'",
    "has_table_privilege(a, b)": "upper(b) = 'SELECT'",
    "has_table_privilege3(a, b, c)": "upper(c) = 'SELECT'",
    "has_any_column_privilege(a, b)": "upper(b) = 'SELECT'",
    "has_column_privilege3(a, b, c)": "upper(c) = 'SELECT'",
    "has_function_privilege(a, b)": "false",
    "obj_description(a)": "NULL::VARCHAR",
    "obj_description2(a, b)": "NULL::VARCHAR",
    "shobj_description(a, b)": "NULL::VARCHAR",
    "col_description(a, b)": "NULL::VARCHAR",
    "getdatabaseencoding()": "'UTF8'",
    "inet_server_addr()": "NULL::VARCHAR",
    "inet_server_port()": "NULL::INTEGER",
    "inet_client_addr()": "NULL::VARCHAR",
    "txid_current()": "1",
    "quote_ident(a)": "'\"' || replace(a, '\"', '\"\"') || '\"'",
    "array_upper(a, b)": "len(a)",
    "array_lower(a, b)": "1",
    "array_position2(a, b)": "list_position(a, b)",
    "array_to_string(a, b)": "list_aggregate(a::VARCHAR[], 'string_agg', b)",
    "format_type(a, b)": f"(SELECT format FROM {HOME}.sfumato_types zz WHERE zz.oid = a)",
    "to_regclass(a)": f"(SELECT oid FROM {HOME}.pg_class zz WHERE zz.relname = replace(a, 'public.', ''))",
    "to_regtype(a)": f"(SELECT oid FROM {HOME}.sfumato_types zz WHERE a IN (zz.format, zz.typname))",
    "regclass_name(a)": f"(SELECT relname FROM {HOME}.pg_class zz WHERE zz.oid = a)",
    "current_setting(a)": f"(SELECT setting FROM {HOME}.pg_settings zz WHERE zz.name = lower(a))",
    "current_setting2(a, b)": f"(SELECT setting FROM {HOME}.pg_settings zz WHERE zz.name = lower(a))",
    "set_config(a, b, c)": "b",
    "age(a)": "0",
}
"""Functions of PostgreSQL that DuckDB lacks, or has otherwise; a number after the name is of arguments."""

_NATIVE = frozenset(
    {
        "abs", "any_value", "array_agg", "array_append", "array_cat", "array_contains",
        "array_length", "bool_and", "bool_or", "cardinality", "cast", "ceil", "char_length",
        "coalesce", "concat", "concat_ws", "count", "date_part", "date_trunc", "extract", "floor",
        "format", "generate_series", "generate_subscripts", "greatest", "if", "initcap", "least",
        "left", "length", "list_contains", "lower", "ltrim", "max", "md5", "min", "mod", "nullif",
        "now", "position", "regexp_like", "regexp_matches", "regexp_replace", "repeat", "replace",
        "reverse", "right", "round", "row_number", "rpad", "lpad", "rtrim", "split_part",
        "starts_with", "string_agg", "string_to_array", "strpos", "str_position", "substr",
        "substring", "sum", "to_char", "trim", "unnest", "upper", "current_timestamp",
        "current_date", "case", "list_aggregate", "array_to_string", "posexplode", "explode",
    }
)  # fmt: skip
_GUARDED = (exp.Insert, exp.Update, exp.Delete, exp.Create, exp.Drop, exp.Command, exp.Into, exp.Lock)
_OPERATORS: Mapping[str, type[exp.Binary]] = {
    "~": exp.RegexpLike,
    "~*": exp.RegexpILike,
    "=": exp.EQ,
    "<>": exp.NEQ,
    "~~": exp.Like,
    "~~*": exp.ILike,
    "<": exp.LT,
    ">": exp.GT,
}
_NUMBERS = frozenset({"oid", "xid", "regproc", "regprocedure", "regoper", "regnamespace", "regrole", "cid"})
_TEXTS = frozenset(
    {"name", "char", '"char"', "information_schema.sql_identifier", "cstring", "bpchar", "json"}
)
_SCHEMAS = ("", "pg_catalog", "information_schema")
_HIDDEN = frozenset({"tableoid", "xmin", "ctid"})
_NOTHING = frozenset({"json_build_object", "row_to_json", "to_json", "jsonobject", "json_object"})
_MACROS = {name.partition("(")[0]: name for name in MACROS}


def tree_of(text: str) -> exp.Expr | None:
    """The tree of one query in PostgreSQL's SQL; None if it is none."""
    try:
        tree = sqlglot.parse_one(text, read="postgres")
    except Exception:  # whatever the parser stumbles over
        return None
    return tree if isinstance(tree, exp.Query | exp.Values) else None


def about_catalog(tree: exp.Expr) -> bool:
    """Whether all tables of a query are tables of the catalog, or it has none."""
    local = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    tables = list(tree.find_all(exp.Table))
    named = [table for table in tables if isinstance(table.this, exp.Identifier)]
    return all(
        _listed(table) or table.db.lower() in _SCHEMAS[1:] or (not table.db and table.name.lower() in local)
        for table in named
    )


def _listed(table: exp.Table) -> str:
    """The name under which `SCHEMA` has it; empty if it has not."""
    schema, name = table.db.lower(), table.name.lower()
    full = f"{schema}.{name}" if schema == "information_schema" else name
    return full if schema in _SCHEMAS and full in SCHEMA else ""


def rewritten(tree: exp.Expr, constants: Mapping[str, str | None], values: Sequence[Any] = ()) -> str:
    """The same query for DuckDB.

    Args:
        tree: As `tree_of` gives it; it is changed.
        constants: What functions without arguments give in this connection, such as `current_user`.
        values: Of the parameters `$1`, `$2`, ….

    Raises:
        WireError: if it has a function or a part that is not listed.
    """
    if any(tree.find_all(*_GUARDED)):
        raise WireError("0A000", "The catalog can be read, and nothing else.")
    root = exp.Paren(this=tree)  # so that the tree itself can be replaced
    for select in root.find_all(exp.Select):
        select.set("expressions", [_named(column) for column in select.expressions])
    for change in (_parameters(values), _tables, _operators, _calls(constants), _casts):
        for node in list(root.walk()):
            change(node)
    _check_functions(root)
    return str(root.this.sql(dialect="duckdb"))


def _named(column: exp.Expr) -> exp.Expr:
    """A column with the name that PostgreSQL gives it."""
    if isinstance(column, exp.Alias | exp.Column | exp.Star) or column.is_star:
        return column
    inner = column
    while isinstance(inner, exp.Cast | exp.Paren | exp.Dot | exp.Collate):
        inner = inner.expression if isinstance(inner, exp.Dot) else inner.this
    name = inner.name if isinstance(inner, exp.Column) else _name(inner)
    if not name and isinstance(column, exp.Cast):
        name = column.to.sql(dialect="postgres").lower().removeprefix("pg_catalog.")
    return exp.alias_(column, name or "?column?", quoted=True)


def _tables(node: exp.Expr) -> None:
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        name = _listed(node)
        local = {cte.alias_or_name.lower() for cte in node.root().find_all(exp.CTE)}
        if not node.db and node.name.lower() in local:
            return
        if not name:
            raise WireError("42P01", f"There is no table {node.name[:60]!r} in the catalog.")
        if not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name)))
        node.set("this", exp.to_identifier(name.replace("information_schema.", "is_"), quoted=True))
        node.set("db", exp.to_identifier(HOME))
        node.set("catalog", None)
    elif isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
        node.set("db", None)  # pg_catalog.generate_series(…)
    elif isinstance(node, exp.Column) and node.name.lower() in _HIDDEN:
        node.replace(exp.Literal.number(0))
    elif isinstance(node, exp.Column) and node.args.get("db"):
        node.set("db", None)  # pg_catalog.pg_class.relname
        node.set("catalog", None)


def _operators(node: exp.Expr) -> None:
    if isinstance(node, exp.Collate):
        node.replace(node.this)
    elif isinstance(node, exp.Operator):
        sign = str(node.args["operator"]).split(".")[-1].strip(" ()")
        if sign in _OPERATORS:
            node.replace(_OPERATORS[sign](this=node.this, expression=node.expression))
    elif isinstance(node, exp.ByteString):
        node.replace(exp.Literal.string(node.name.replace("\\n", "\n").replace("\\\\", "\\")))


def _calls(constants: Mapping[str, str | None]) -> Any:
    def change(node: exp.Expr) -> None:
        if isinstance(node, exp.Dot) and node.this.name.lower() in _SCHEMAS[1:]:
            node.replace(node.expression)
            node = node.expression
        name = _name(node)
        if name in constants and not node.args.get("expressions"):
            value = constants[name]
            node.replace(exp.null() if value is None else exp.Literal.string(value))
        elif name in _NOTHING:
            node.replace(exp.null())
        elif name == "current_schemas":
            node.replace(exp.array(exp.Literal.string("pg_catalog"), exp.Literal.string("public")))
        elif name in _MACROS or f"{name}{_count(node)}" in _MACROS:
            counted = f"{name}{_count(node)}"
            called = counted if counted in _MACROS else name
            arguments = list(node.iter_expressions())
            node.replace(
                exp.Dot(
                    this=exp.to_identifier(HOME), expression=exp.Anonymous(this=called, expressions=arguments)
                )
            )

    return change


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    if isinstance(node, exp.Column) and not node.table and node.name.lower() in ("session_user", "user"):
        return node.name.lower() if not node.this.args.get("quoted") else ""
    name = node.sql_name().lower() if isinstance(node, exp.Func) else ""
    return {"current_version": "version"}.get(name, name)


def _count(node: exp.Expr) -> int:
    return len(list(node.iter_expressions()))


def _casts(node: exp.Expr) -> None:
    if not isinstance(node, exp.Cast):
        return
    to = node.to.sql(dialect="postgres").lower().removeprefix("pg_catalog.")
    listed, to = to.endswith("[]"), to.removesuffix("[]")
    kind = "BIGINT" if to in _NUMBERS else "TEXT" if to in _TEXTS else ""
    if to in ("regclass", "regtype"):
        node.replace(_looked_up(node.this, to))
    elif kind:
        node.set("to", exp.DataType.build(kind + "[]" * listed, dialect="duckdb"))
    elif to == "text" and isinstance(node.this, exp.Cast):
        return


def _looked_up(inner: exp.Expr, to: str) -> exp.Expr:
    """A name as the number of what it names, a number as its name."""
    if isinstance(inner, exp.Literal) and inner.is_string and not inner.name.isdecimal():
        name = inner.name.removeprefix("pg_catalog.").removeprefix("public.").strip('"')
        called, argument = f"to_{to}", _text(name)
    elif isinstance(inner, exp.Literal):
        return exp.Literal.number(inner.name)
    else:
        called, argument = ("regclass_name", inner) if to == "regclass" else ("format_type", inner)
    arguments = [argument, exp.null()] if called == "format_type" else [argument]
    return _call(called, arguments)


def _text(value: str) -> exp.Expr:
    return exp.Literal.string(value)


def _call(name: str, arguments: list[Any]) -> exp.Expr:
    call = exp.Anonymous(this=name, expressions=arguments)
    return exp.Dot(this=exp.to_identifier(HOME), expression=call)


def _parameters(values: Sequence[Any]) -> Any:
    def change(node: exp.Expr) -> None:
        if isinstance(node, exp.Parameter):
            place = int(node.name) if node.name.isdecimal() else 0
            if not 1 <= place <= len(values):
                raise WireError("08P01", "There is no value for a parameter.")
            node.replace(exp.convert(values[place - 1]))

    return change


def _check_functions(tree: exp.Expr) -> None:
    for node in tree.find_all(exp.Func):
        if isinstance(node, exp.Anonymous):
            name = str(node.this).lower()
            if name not in _NATIVE and name not in _MACROS:
                raise WireError(
                    "42883",
                    f"There is no function {name[:60]!r} here.",
                    hint="Ask the catalog with plain SQL.",
                )
        elif node.sql_name().lower().startswith(("read_", "parquet", "csv", "glob", "getvariable")):
            raise WireError("0A000", "The catalog can be read, and nothing else.")
