"""The rows of PostgreSQL's catalog: they follow from what is declared, and from nothing that tables hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfumato.server.wire.catalog_tables import table_names
from sfumato.server.wire.types import KINDS, Kind, oid_of

if TYPE_CHECKING:
    from sfumato.schema import PrivateTable, PublicTable

__all__ = ["HIDDEN", "OWNER", "long_name", "rows"]

OWNER = "sfumato"
"""Whose the tables are. An analyst stands beside it, with a name that each connection fills in."""

HIDDEN = 13000
"""The number of the schema that is not on the path of names: `information_schema`."""

_OWNER_OID, _ANALYST_OID, _PUBLIC, _CATALOG, _FIRST = 10, 16383, 2200, 11, 16384
_FUNCTIONS, _SYSTEM = 9000, 12000
_SCHEMAS = {"public": _PUBLIC, "pg_catalog": _CATALOG, "information_schema": HIDDEN}
_LONG = {
    "bool": "boolean", "int8": "bigint", "int2": "smallint", "int4": "integer", "float4": "real",
    "float8": "double precision", "varchar": "character varying", "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone", "time": "time without time zone", "char": '"char"',
}  # fmt: skip
_CATEGORIES = {"B": {16}, "N": {20, 21, 23, 26, 700, 701, 1700}, "D": {1082, 1083, 1114, 1184}}
_ARRAY = ("array_in", "array_out", "array_recv", "array_send")
_PRECISE = {"int2": (16, 0), "int4": (32, 0), "int8": (64, 0), "float4": (24, None), "float8": (53, None)}
_KEYWORDS = (
    "all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate "
    "collation column concurrently constraint create cross current_catalog current_date current_role "
    "current_schema current_time current_timestamp current_user default deferrable desc distinct do else end "
    "except false fetch for foreign freeze from full grant group having ilike in initially inner intersect "
    "into is isnull join lateral leading left like limit localtime localtimestamp natural not notnull null "
    "offset on only or order outer overlaps placing primary references returning right select session_user "
    "similar some symmetric system_user table tablesample then to trailing true union unique user using "
    "variadic verbose when where window with"
)

Row = dict[str, Any]


def long_name(name: str) -> str:
    """What SQL calls a type that PostgreSQL's catalog has a short name for."""
    return _LONG.get(name, name)


def rows(
    database: str, tables: Sequence[PrivateTable | PublicTable], settings: Mapping[str, str]
) -> Mapping[str, list[Row]]:
    """The rows of the tables that have some."""
    return {**_of_server(database, settings), **_of_types(), **_of_tables(database, tables)}


def _of_server(database: str, settings: Mapping[str, str]) -> dict[str, list[Row]]:
    """What is the same whatever the tables are."""
    roles = [(_OWNER_OID, OWNER, False), (_ANALYST_OID, None, True)]
    false = ("rolsuper", "rolcreaterole", "rolcreatedb", "rolreplication", "rolbypassrls")
    shown = [
        {"name": name, "setting": value, "boot_val": value, "reset_val": value, "context": "user",
         "vartype": "string", "source": "default", "category": "Sfumato", "short_desc": "",
         "pending_restart": False}
        for name, value in settings.items()
    ]  # fmt: skip
    return {
        "pg_namespace": [
            {"oid": oid, "nspname": name, "nspowner": _OWNER_OID} for name, oid in _SCHEMAS.items()
        ],
        "pg_database": [
            {"oid": 5, "datname": database, "datdba": _OWNER_OID, "encoding": 6, "datlocprovider": "c",
             "datistemplate": False, "datallowconn": True, "datconnlimit": -1, "dattablespace": 1663,
             "datcollate": "C", "datctype": "C", "dathasloginevt": False}
        ],
        "pg_roles": [
            dict.fromkeys(false, False)
            | {"oid": oid, "rolname": name, "rolinherit": True, "rolcanlogin": login, "rolconnlimit": -1}
            for oid, name, login in roles
        ],
        "pg_user": [
            dict.fromkeys(("usecreatedb", "usesuper", "userepl", "usebypassrls"), False)
            | {"usename": name, "usesysid": oid}
            for oid, name, _ in roles
        ],
        "pg_settings": shown,
        "pg_show_all_settings": shown,
        "pg_stat_gssapi": [
            {"pid": 0, "gss_authenticated": False, "encrypted": False, "credentials_delegated": False}
        ],
        "pg_am": [{"oid": 2, "amname": "heap", "amtype": "t"}],
        "pg_tablespace": [{"oid": 1663, "spcname": "pg_default", "spcowner": _OWNER_OID}],
        "pg_get_keywords": [
            {"word": word, "catcode": "R", "catdesc": "reserved", "barelabel": True}
            for word in _KEYWORDS.split()
        ],
        "information_schema.information_schema_catalog_name": [{"catalog_name": database}],
        "information_schema.character_sets": [
            {"character_set_name": "UTF8", "character_repertoire": "UCS", "form_of_use": "UTF8",
             "default_collate_catalog": database}
        ],
        "information_schema.schemata": [
            {"catalog_name": database, "schema_name": name, "schema_owner": OWNER} for name in _SCHEMAS
        ],
    }  # fmt: skip


def _of_tables(database: str, tables: Sequence[PrivateTable | PublicTable]) -> dict[str, list[Row]]:
    numbered = list(enumerate(tables, start=_FIRST))
    return {
        "pg_class": [
            *(_class(oid, table) for oid, table in numbered),
            *(_system(oid, name) for oid, name in enumerate(table_names(), start=_SYSTEM)),
        ],
        "pg_attribute": [row for oid, table in numbered for row in _attributes(oid, table)],
        "pg_tables": [
            {"schemaname": "public", "tablename": table.name, "tableowner": OWNER, "hasindexes": False,
             "hasrules": False, "hastriggers": False, "rowsecurity": False}
            for table in tables
        ],
        "information_schema.tables": [
            {"table_catalog": database, "table_schema": "public", "table_name": table.name,
             "table_type": "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO"}
            for table in tables
        ],
        "information_schema.columns": [row for table in tables for row in _columns(database, table)],
        **{
            f"information_schema.{name}": [
                {"grantor": OWNER, "grantee": "PUBLIC", "table_catalog": database, "table_schema": "public",
                 "table_name": table.name, "privilege_type": "SELECT", "is_grantable": "NO",
                 "with_hierarchy": "NO"}
                for table in tables
            ]
            for name in ("table_privileges", "role_table_grants")
        },
    }  # fmt: skip


def _class(oid: int, table: PrivateTable | PublicTable) -> Row:
    false = ("relhasindex", "relisshared", "relhasrules", "relhastriggers", "relhassubclass",
             "relrowsecurity", "relforcerowsecurity", "relispartition", "relhasoids")  # fmt: skip
    return dict.fromkeys(false, False) | {
        "oid": oid, "relname": table.name, "relnamespace": _PUBLIC, "relowner": _OWNER_OID, "relam": 2,
        "relpersistence": "p", "relkind": "r", "relnatts": len(table.schema), "relchecks": 0,
        "reltablespace": 0, "reltoastrelid": 0, "reloftype": 0, "reltuples": -1.0, "relpages": 0,
        "relreplident": "d", "relispopulated": True, "reltype": 0, "relfilenode": 0, "relrewrite": 0,
        "relallvisible": 0, "relallfrozen": 0, "relacl": [f"=r/{OWNER}"],
    }  # fmt: skip


def _system(oid: int, name: str) -> Row:
    """A table of the catalog itself."""
    schema, _, plain = name.rpartition(".")
    return {
        "oid": oid, "relname": plain, "relnamespace": _SCHEMAS[schema or "pg_catalog"],
        "relowner": _OWNER_OID, "relkind": "v" if schema else "r", "relpersistence": "p", "relnatts": 0,
        "reltablespace": 0, "reltoastrelid": 0, "reloftype": 0, "reltuples": -1.0, "relam": 0,
        "relhasindex": False, "relispartition": False, "relhassubclass": False, "reltype": 0,
    }  # fmt: skip


def _attributes(oid: int, table: PrivateTable | PublicTable) -> Iterator[Row]:
    for number, (name, column) in enumerate(table.schema.items(), start=1):
        kind = KINDS[oid_of(column.kind)]
        yield {
            "attrelid": oid, "attname": name, "atttypid": kind.oid, "attlen": kind.size, "attnum": number,
            "atttypmod": -1, "attndims": 0, "attnotnull": not column.nullable, "atthasdef": False,
            "attidentity": "", "attgenerated": "", "attisdropped": False, "attislocal": True,
            "attinhcount": 0, "attcacheoff": -1,
            "attcollation": 0, "attstorage": "p", "attcompression": "", "attstattarget": -1, "attalign": "i",
            "attbyval": False, "atthasmissing": False,
        }  # fmt: skip


def _columns(database: str, table: PrivateTable | PublicTable) -> Iterator[Row]:
    for number, (name, column) in enumerate(table.schema.items(), start=1):
        kind = KINDS[oid_of(column.kind)]
        precision, scale = _PRECISE.get(kind.name, (None, None))
        yield {
            "table_catalog": database, "table_schema": "public", "table_name": table.name,
            "column_name": name, "ordinal_position": number,
            "is_nullable": "YES" if column.nullable else "NO", "data_type": long_name(kind.name),
            "numeric_precision": precision, "numeric_scale": scale,
            "numeric_precision_radix": None if precision is None else 2,
            "datetime_precision": {"date": 0, "timestamp": 6, "time": 6}.get(kind.name),
            "udt_catalog": database, "udt_schema": "pg_catalog", "dtd_identifier": str(number),
            "udt_name": kind.name, "is_self_referencing": "NO", "is_identity": "NO", "is_generated": "NEVER",
            "is_updatable": "NO",
        }  # fmt: skip


def _of_types() -> dict[str, list[Row]]:
    """Types, those of arrays of them, and the functions that read and write their values."""
    names = [*_ARRAY, *(name for kind in KINDS.values() for name in _functions(kind))]
    numbers = {name: _FUNCTIONS + place for place, name in enumerate(names)}
    return {
        "pg_type": [row for kind in KINDS.values() for row in _pair(kind, numbers)],
        "pg_proc": [
            {"oid": number, "proname": name, "pronamespace": _CATALOG, "proowner": _OWNER_OID, "prolang": 12,
             "prokind": "f", "prosecdef": False, "proisstrict": True, "proretset": False, "provolatile": "i",
             "proparallel": "s", "pronargs": 0, "pronargdefaults": 0, "prorettype": 0, "proargtypes": "",
             "prosrc": name, "proleakproof": False, "provariadic": 0, "procost": 1.0, "prorows": 0.0}
            for name, number in numbers.items()
        ],
    }  # fmt: skip


def _functions(kind: Kind) -> list[str]:
    """The names of those that read a value as text, write it so, and the same in binary."""
    link = "_" * (kind.name[:4] in ("date", "time", "nume"))
    return [f"{kind.name}{link}{what}" for what in ("in", "out", "recv", "send")]


def _pair(kind: Kind, numbers: Mapping[str, int]) -> Iterator[Row]:
    category = next((letter for letter, oids in _CATEGORIES.items() if kind.oid in oids), "S")
    base = {
        "typnamespace": _CATALOG, "typowner": _OWNER_OID, "typtype": "b", "typispreferred": False,
        "typisdefined": True, "typdelim": ",", "typrelid": 0, "typnotnull": False, "typbasetype": 0,
        "typtypmod": -1, "typndims": 0, "typcollation": 0, "typmodin": 0, "typmodout": 0, "typanalyze": 0,
        "typsubscript": 0, "typalign": "i", "typstorage": "p",
    }  # fmt: skip
    own = {"oid": kind.oid, "typname": kind.name, "typlen": kind.size, "typarray": kind.array, "typelem": 0,
           "typbyval": 0 < kind.size <= 8, "typcategory": category}  # fmt: skip
    listed = {"oid": kind.array, "typname": f"_{kind.name}", "typlen": -1, "typarray": 0,
              "typelem": kind.oid, "typbyval": False, "typcategory": "A"}  # fmt: skip
    for row, names in ((own, _functions(kind)), (listed, _ARRAY)):
        calls = dict(
            zip(("typinput", "typoutput", "typreceive", "typsend"), map(numbers.get, names), strict=True)
        )
        yield base | row | calls
