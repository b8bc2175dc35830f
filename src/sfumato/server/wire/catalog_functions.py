"""The functions of PostgreSQL that its clients call when they look at the catalog, and what they are here.

Only what is listed passes: functions that follow from the tables of the catalog and their arguments alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.server.wire.catalog_rows import HIDDEN, OWNER

__all__ = ["CLOCKS", "HOME", "MACROS", "NAMED", "NATIVE", "PARSED"]

HOME = "cat"
"""The schema of DuckDB in which the tables and functions are."""

NAMED: Mapping[str, tuple[str, str]] = {
    "regclass": ("pg_class", "relname"),
    "regnamespace": ("pg_namespace", "nspname"),
    "regproc": ("pg_proc", "proname"),
    "regprocedure": ("pg_proc", "proname"),
    "regrole": ("pg_roles", "rolname"),
    "regtype": ("sfumato_types", "format"),
}
"""Types of PostgreSQL whose values are names to people and numbers to the catalog: where both are."""

_PLAIN: Mapping[str, str] = {
    "pg_table_is_visible(a)": (
        f"EXISTS (SELECT 1 FROM {HOME}.pg_class zz WHERE zz.oid = a AND zz.relnamespace <> {HIDDEN})"
    ),
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
    "pg_get_userbyid(a)": f"'{OWNER}'",
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
    "pg_get_indexdef2(a, b)": "NULL::VARCHAR",
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
    "pg_relation_size(a)": "0::BIGINT",
    "pg_relation_size2(a, b)": "0::BIGINT",
    "pg_total_relation_size(a)": "0::BIGINT",
    "pg_table_size(a)": "0::BIGINT",
    "pg_indexes_size(a)": "0::BIGINT",
    "pg_database_size(a)": "0::BIGINT",
    "pg_size_pretty(a)": "'0 bytes'",
    "pg_tablespace_location(a)": "''",
    "pg_is_in_recovery()": "false",
    "pg_is_wal_replay_paused()": "false",
    "pg_is_other_temp_schema(a)": "false",
    "pg_my_temp_schema()": "0",
    "pg_backend_pid()": "0",
    "pg_postmaster_start_time()": "TIMESTAMPTZ '2000-01-01 00:00:00+00'",
    "pg_conf_load_time()": "TIMESTAMPTZ '2000-01-01 00:00:00+00'",
    "pg_advisory_unlock_all()": "NULL::VARCHAR",
    "pg_stat_get_numscans(a)": "0::BIGINT",
    "pg_column_is_updatable(a, b, c)": "false",
    "pg_relation_is_updatable(a, b)": "0",
    "pg_has_role(a, b)": "true",
    "pg_has_role3(a, b, c)": "true",
    "has_database_privilege(a, b)": "upper(b) = 'CONNECT'",
    "has_database_privilege3(a, b, c)": "upper(c) = 'CONNECT'",
    "has_schema_privilege(a, b)": "upper(b) = 'USAGE'",
    "has_schema_privilege3(a, b, c)": "upper(c) = 'USAGE'",
    "has_table_privilege(a, b)": "upper(b) = 'SELECT'",
    "has_table_privilege3(a, b, c)": "upper(c) = 'SELECT'",
    "has_any_column_privilege(a, b)": "upper(b) = 'SELECT'",
    "has_column_privilege3(a, b, c)": "upper(c) = 'SELECT'",
    "has_function_privilege(a, b)": "false",
    "has_function_privilege3(a, b, c)": "false",
    "has_any_column_privilege3(a, b, c)": "upper(c) = 'SELECT'",
    "has_column_privilege4(a, b, c, d)": "upper(d) = 'SELECT'",
    "has_sequence_privilege(a, b)": "false",
    "has_sequence_privilege3(a, b, c)": "false",
    "has_tablespace_privilege(a, b)": "false",
    "has_tablespace_privilege3(a, b, c)": "false",
    "has_language_privilege(a, b)": "false",
    "has_language_privilege3(a, b, c)": "false",
    "has_foreign_data_wrapper_privilege(a, b)": "false",
    "has_server_privilege(a, b)": "false",
    "has_type_privilege(a, b)": "true",
    "has_type_privilege3(a, b, c)": "true",
    "obj_description(a)": "NULL::VARCHAR",
    "obj_description2(a, b)": "NULL::VARCHAR",
    "shobj_description(a, b)": "NULL::VARCHAR",
    "col_description(a, b)": "NULL::VARCHAR",
    "getdatabaseencoding()": "'UTF8'",
    "inet_server_addr()": "NULL::VARCHAR",
    "inet_server_port()": "NULL::INTEGER",
    "inet_client_addr()": "NULL::VARCHAR",
    "txid_current()": "1::BIGINT",
    "quote_ident(a)": (
        "CASE WHEN regexp_full_match(a, '[a-z_][a-z0-9_]*') THEN a "
        "ELSE '\"' || replace(a, '\"', '\"\"') || '\"' END"
    ),
    "quote_literal(a)": "'''' || replace(a, '''', '''''') || ''''",
    "array_upper(a, b)": "len(a)",
    "array_lower(a, b)": "1",
    "_pg_expandarray(a)": (
        "unnest(list_transform(generate_series(1, len(a)), lambda i: {'x': a[i], 'n': i}))"
    ),
    "_pg_char_max_length(a, b)": "NULL::INTEGER",
    "_pg_numeric_precision(a, b)": "NULL::INTEGER",
    "_pg_numeric_scale(a, b)": "NULL::INTEGER",
    "_pg_datetime_precision(a, b)": "NULL::INTEGER",
    "_pg_truetypid(a, b)": "NULL::UINTEGER",
    "_pg_truetypmod(a, b)": "NULL::INTEGER",
    "oidvectortypes(a)": "''",
    "array_ndims(a)": "1",
    "nonzero(a)": (
        "list_transform([a], lambda x: CASE WHEN x = 0 THEN error('Division by zero') ELSE x END)[1]"
    ),
    "array_position2(a, b)": "list_position(a, b)",
    "array_to_string(a, b)": "list_aggregate(a::VARCHAR[], 'string_agg', b)",
    "format_type(a, b)": f"(SELECT format FROM {HOME}.sfumato_types zz WHERE zz.oid = a)",
    "current_setting(a)": f"(SELECT setting FROM {HOME}.pg_settings zz WHERE zz.name = lower(a))",
    "current_setting2(a, b)": f"(SELECT setting FROM {HOME}.pg_settings zz WHERE zz.name = lower(a))",
    "age(a)": "0",
}


def _found(kind: str) -> dict[str, str]:
    """From a name to a number and back; a number may be given for a name, as text."""
    table, column = NAMED[kind]
    plain = "regexp_replace(replace(a::VARCHAR, '\"', ''), '^(public|pg_catalog)[.]|[(].*[)]$', '', 'g')"
    also = f" OR zz.typname = {plain}" if kind == "regtype" else ""
    return {
        f"to_{kind}(a)": (
            f"coalesce(try_cast(a AS UINTEGER), (SELECT any_value(zz.oid) FROM {HOME}.{table} zz "
            f"WHERE zz.{column} = {plain}{also}))"
        ),
        f"{kind}_name(a)": (
            f"coalesce((SELECT any_value(zz.{column}) FROM {HOME}.{table} zz "
            "WHERE zz.oid = try_cast(a AS UINTEGER)), "
            f"CASE a::VARCHAR WHEN '0' THEN '-' ELSE {plain} END)"
        ),
    }


MACROS: Mapping[str, str] = {
    **_PLAIN,
    **{name: text for kind in NAMED for name, text in _found(kind).items()},
}
"""Functions that DuckDB lacks, or has otherwise; a number after the name is of arguments."""

NATIVE = frozenset(
    {
        "abs", "any_value", "array_agg", "array_append", "array_cat", "array_contains",
        "array_length", "avg", "bool_and", "bool_or", "cardinality", "cast", "ceil", "char_length",
        "coalesce", "concat", "concat_ws", "count", "date_part", "date_trunc", "dense_rank", "extract",
        "floor", "format", "generate_series", "generate_subscripts", "greatest", "if", "initcap", "least",
        "left", "length", "list_contains", "lower", "ltrim", "max", "md5", "min", "mod", "nullif",
        "position", "rank", "regexp_like", "regexp_matches", "regexp_replace", "repeat", "replace",
        "regexp_extract", "reverse", "right", "round", "row_number", "rpad", "lpad", "rtrim", "split_part",
        "starts_with", "string_agg", "string_to_array", "strpos", "str_position", "substr",
        "substring", "sum", "to_char", "trim", "unnest", "upper",
        "case", "list_aggregate", "array_to_string", "posexplode", "explode",
    }
)  # fmt: skip
"""Functions that DuckDB has by the same name and meaning."""

PARSED = frozenset(
    {
        "and", "array", "array_concat", "array_size", "exists", "exploding_generate_series", "group_concat",
        "logical_and", "logical_or", "or", "pad", "regexp_i_like", "time_to_str", "timestamp_trunc",
        "array_contains_all", "array_overlaps", "pow", "power",
    }
)  # fmt: skip
"""Operators, and functions of `NATIVE`, by the names that the parser has for them."""

CLOCKS: Mapping[str, str] = {
    "current_date": "DATE",
    "localtimestamp": "TIMESTAMP",
    **dict.fromkeys(("current_timestamp", "now", "clock_timestamp"), "TIMESTAMPTZ"),
    **dict.fromkeys(("statement_timestamp", "transaction_timestamp"), "TIMESTAMPTZ"),
}
"""Functions that tell the time, and the type of DuckDB in which they do."""
