"""The tables of PostgreSQL's catalog as clients know them, and which rows of them follow from a schema.

A column is written `name` for a whole number, `name:t` for text, `:b` for a truth value, `:f` for a number,
`:T` and `:N` for lists of texts and of whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfumato.server.wire.types import KINDS, oid_of

if TYPE_CHECKING:
    from sfumato.schema import PrivateTable, PublicTable

__all__ = ["CATALOG_KINDS", "OWNER", "SCHEMA", "columns_of", "long_name", "rows"]

OWNER, _OWNER_OID, _PUBLIC, _CATALOG, _FIRST = "sfumato", 10, 2200, 11, 16384
_SCHEMAS = ("public", "pg_catalog", "information_schema")
_TYPES = {"t": "VARCHAR", "b": "BOOLEAN", "f": "DOUBLE", "T": "VARCHAR[]", "N": "BIGINT[]", "": "BIGINT"}

SCHEMA: Mapping[str, str] = {
    "pg_class": (
        "oid relname:t relnamespace reltype reloftype relowner relam relfilenode reltablespace relpages "
        "reltuples:f relallvisible reltoastrelid relhasindex:b relisshared:b relpersistence:t relkind:t "
        "relnatts relchecks relhasrules:b relhastriggers:b relhassubclass:b relrowsecurity:b "
        "relforcerowsecurity:b relispopulated:b relreplident:t relispartition:b relrewrite relfrozenxid "
        "relminmxid relacl:T reloptions:T relpartbound:t relhasoids:b"
    ),
    "pg_namespace": "oid nspname:t nspowner nspacl:T",
    "pg_attribute": (
        "attrelid attname:t atttypid attlen attnum attcacheoff atttypmod attndims attbyval:b attalign:t "
        "attstorage:t attcompression:t attnotnull:b atthasdef:b atthasmissing:b attidentity:t "
        "attgenerated:t attisdropped:b attislocal:b attinhcount attstattarget attcollation attacl:T "
        "attoptions:T attfdwoptions:T attmissingval:t"
    ),
    "pg_type": (
        "oid typname:t typnamespace typowner typlen typbyval:b typtype:t typcategory:t typispreferred:b "
        "typisdefined:b typdelim:t typrelid typsubscript:t typelem typarray typinput:t typoutput:t "
        "typreceive:t typsend:t typmodin:t typmodout:t typanalyze:t typalign:t typstorage:t "
        "typnotnull:b typbasetype typtypmod typndims typcollation typdefaultbin:t typdefault:t typacl:T"
    ),
    "pg_database": (
        "oid datname:t datdba encoding datlocprovider:t datistemplate:b datallowconn:b datconnlimit "
        "datfrozenxid datminmxid dattablespace datcollate:t datctype:t daticulocale:t daticurules:t "
        "datcollversion:t datacl:T datlastsysoid datlocale:t"
    ),
    "pg_roles": (
        "oid rolname:t rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b "
        "rolreplication:b rolconnlimit rolpassword:t rolvaliduntil:t rolbypassrls:b rolconfig:T"
    ),
    "pg_user": (
        "usename:t usesysid usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd:t valuntil:t "
        "useconfig:T"
    ),
    "pg_group": "groname:t grosysid grolist:N",
    "pg_settings": (
        "name:t setting:t unit:t category:t short_desc:t extra_desc:t context:t vartype:t source:t "
        "min_val:t max_val:t enumvals:T boot_val:t reset_val:t sourcefile:t sourceline "
        "pending_restart:b"
    ),
    "pg_tables": (
        "schemaname:t tablename:t tableowner:t tablespace:t hasindexes:b hasrules:b hastriggers:b "
        "rowsecurity:b"
    ),
    "pg_am": "oid amname:t amhandler:t amtype:t",
    "pg_collation": (
        "oid collname:t collnamespace collowner collprovider:t collisdeterministic:b collencoding "
        "collcollate:t collctype:t colliculocale:t collicurules:t collversion:t colllocale:t"
    ),
    "pg_tablespace": "oid spcname:t spcowner spcacl:T spcoptions:T",
    "pg_language": (
        "oid lanname:t lanowner lanispl:b lanpltrusted:b lanplcallfoid laninline lanvalidator lanacl:T"
    ),
    # What follows is empty, but for those of `information_schema` that have rows.
    "pg_proc": (
        "oid proname:t pronamespace proowner prolang procost:f prorows:f provariadic prosupport:t "
        "prokind:t prosecdef:b proleakproof:b proisstrict:b proretset:b provolatile:t proparallel:t "
        "pronargs pronargdefaults prorettype proargtypes:N proallargtypes:N proargmodes:T proargnames:T "
        "proargdefaults:t protrftypes:N prosrc:t probin:t proconfig:T proacl:T proisagg:b"
    ),
    "pg_attrdef": "oid adrelid adnum adbin:t adsrc:t",
    "pg_index": (
        "indexrelid indrelid indnatts indnkeyatts indisunique:b indnullsnotdistinct:b indisprimary:b "
        "indisexclusion:b indimmediate:b indisclustered:b indisvalid:b indcheckxmin:b indisready:b "
        "indislive:b indisreplident:b indkey:N indcollation:N indclass:N indoption:N indexprs:t "
        "indpred:t"
    ),
    "pg_constraint": (
        "oid conname:t connamespace contype:t condeferrable:b condeferred:b convalidated:b conrelid "
        "contypid conindid conparentid confrelid confupdtype:t confdeltype:t confmatchtype:t "
        "conislocal:b coninhcount connoinherit:b conkey:N confkey:N conpfeqop:N conppeqop:N conffeqop:N "
        "confdelsetcols:N conexclop:N conbin:t consrc:t"
    ),
    "pg_description": "objoid classoid objsubid description:t",
    "pg_shdescription": "objoid classoid description:t",
    "pg_seclabel": "objoid classoid objsubid provider:t label:t",
    "pg_inherits": "inhrelid inhparent inhseqno inhdetachpending:b",
    "pg_trigger": (
        "oid tgrelid tgparentid tgname:t tgfoid tgtype tgenabled:t tgisinternal:b tgconstrrelid "
        "tgconstrindid tgconstraint tgdeferrable:b tginitdeferred:b tgnargs tgattr:N tgargs:t tgqual:t "
        "tgoldtable:t tgnewtable:t"
    ),
    "pg_rewrite": "oid rulename:t ev_class ev_type:t ev_enabled:t is_instead:b ev_qual:t ev_action:t",
    "pg_rules": "schemaname:t tablename:t rulename:t definition:t",
    "pg_policy": "oid polname:t polrelid polcmd:t polpermissive:b polroles:N polqual:t polwithcheck:t",
    "pg_policies": "schemaname:t tablename:t policyname:t permissive:t roles:T cmd:t qual:t with_check:t",
    "pg_statistic_ext": (
        "oid stxrelid stxname:t stxnamespace stxowner stxstattarget stxkeys:N stxkind:T stxexprs:t"
    ),
    "pg_publication": (
        "oid pubname:t pubowner puballtables:b pubinsert:b pubupdate:b pubdelete:b pubtruncate:b "
        "pubviaroot:b"
    ),
    "pg_publication_rel": "oid prpubid prrelid prqual:t prattrs:N",
    "pg_publication_namespace": "oid pnpubid pnnspid",
    "pg_subscription": "oid subdbid subname:t subowner subenabled:b",
    "pg_partitioned_table": (
        "partrelid partstrat:t partnatts partdefid partattrs:N partclass:N partcollation:N partexprs:t"
    ),
    "pg_foreign_table": "ftrelid ftserver ftoptions:T",
    "pg_foreign_server": "oid srvname:t srvowner srvfdw srvtype:t srvversion:t srvacl:T srvoptions:T",
    "pg_foreign_data_wrapper": "oid fdwname:t fdwowner fdwhandler fdwvalidator fdwacl:T fdwoptions:T",
    "pg_user_mapping": "oid umuser umserver umoptions:T",
    "pg_opclass": "oid opcmethod opcname:t opcnamespace opcowner opcfamily opcintype opcdefault:b opckeytype",
    "pg_operator": (
        "oid oprname:t oprnamespace oprowner oprkind:t oprcanmerge:b oprcanhash:b oprleft oprright "
        "oprresult oprcom oprnegate oprcode:t oprrest:t oprjoin:t"
    ),
    "pg_extension": (
        "oid extname:t extowner extnamespace extrelocatable:b extversion:t extconfig:N extcondition:T"
    ),
    "pg_available_extensions": "name:t default_version:t installed_version:t comment:t",
    "pg_enum": "oid enumtypid enumsortorder:f enumlabel:t",
    "pg_range": "rngtypid rngsubtype rngmultitypid rngcollation rngsubopc rngcanonical:t rngsubdiff:t",
    "pg_views": "schemaname:t viewname:t viewowner:t definition:t",
    "pg_matviews": (
        "schemaname:t matviewname:t matviewowner:t tablespace:t hasindexes:b ispopulated:b definition:t"
    ),
    "pg_indexes": "schemaname:t tablename:t indexname:t tablespace:t indexdef:t",
    "pg_sequence": "seqrelid seqtypid seqstart seqincrement seqmax seqmin seqcache seqcycle:b",
    "pg_sequences": (
        "schemaname:t sequencename:t sequenceowner:t data_type:t start_value min_value max_value "
        "increment_by cycle:b cache_size last_value"
    ),
    "pg_depend": "classid objid objsubid refclassid refobjid refobjsubid deptype:t",
    "pg_shdepend": "dbid classid objid objsubid refclassid refobjid deptype:t",
    "pg_auth_members": "oid roleid member grantor admin_option:b inherit_option:b set_option:b",
    "pg_db_role_setting": "setdatabase setrole setconfig:T",
    "pg_event_trigger": "oid evtname:t evtevent:t evtowner evtfoid evtenabled:t evttags:T",
    "pg_aggregate": "aggfnoid aggkind:t aggnumdirectargs aggtransfn:t aggfinalfn:t",
    "pg_cast": "oid castsource casttarget castfunc castcontext:t castmethod:t",
    "pg_conversion": (
        "oid conname:t connamespace conowner conforencoding contoencoding conproc:t condefault:b"
    ),
    "pg_ts_config": "oid cfgname:t cfgnamespace cfgowner cfgparser",
    "pg_ts_dict": "oid dictname:t dictnamespace dictowner dicttemplate dictinitoption:t",
    "pg_ts_parser": "oid prsname:t prsnamespace prsstart prstoken prsend prsheadline prslextype",
    "pg_ts_template": "oid tmplname:t tmplnamespace tmplinit tmpllexize",
    "pg_default_acl": "oid defaclrole defaclnamespace defaclobjtype:t defaclacl:T",
    "pg_locks": "locktype:t database relation pid mode:t granted:b transactionid",
    "pg_stat_activity": (
        "datid datname:t pid leader_pid usesysid usename:t application_name:t client_addr:t "
        "client_hostname:t client_port backend_start:t xact_start:t query_start:t state_change:t "
        "wait_event_type:t wait_event:t state:t backend_xid backend_xmin query:t backend_type:t"
    ),
    "pg_stat_user_tables": "relid schemaname:t relname:t n_live_tup n_dead_tup seq_scan idx_scan",
    "pg_statio_user_tables": "relid schemaname:t relname:t heap_blks_read heap_blks_hit",
    "pg_stat_database": "datid datname:t numbackends xact_commit xact_rollback blks_read blks_hit",
    "pg_timezone_names": "name:t abbrev:t utc_offset:t is_dst:b",
    "pg_prepared_xacts": "transaction gid:t prepared:t owner:t database:t",
    "pg_prepared_statements": "name:t statement:t parameter_types:T from_sql:b",
    "pg_cursors": "name:t statement:t",
    "information_schema.schemata": (
        "catalog_name:t schema_name:t schema_owner:t default_character_set_catalog:t "
        "default_character_set_schema:t default_character_set_name:t sql_path:t"
    ),
    "information_schema.tables": (
        "table_catalog:t table_schema:t table_name:t table_type:t self_referencing_column_name:t "
        "reference_generation:t user_defined_type_catalog:t user_defined_type_schema:t "
        "user_defined_type_name:t is_insertable_into:t is_typed:t commit_action:t"
    ),
    "information_schema.columns": (
        "table_catalog:t table_schema:t table_name:t column_name:t ordinal_position column_default:t "
        "is_nullable:t data_type:t character_maximum_length character_octet_length numeric_precision "
        "numeric_precision_radix numeric_scale datetime_precision interval_type:t character_set_name:t "
        "collation_name:t domain_name:t udt_catalog:t udt_schema:t udt_name:t is_self_referencing:t "
        "is_identity:t identity_generation:t is_generated:t generation_expression:t is_updatable:t "
        "collation_schema:t domain_schema:t"
    ),
    "information_schema.views": (
        "table_catalog:t table_schema:t table_name:t view_definition:t check_option:t is_updatable:t"
    ),
    "information_schema.key_column_usage": (
        "constraint_catalog:t constraint_schema:t constraint_name:t table_catalog:t table_schema:t "
        "table_name:t column_name:t ordinal_position position_in_unique_constraint"
    ),
    "information_schema.table_constraints": (
        "constraint_catalog:t constraint_schema:t constraint_name:t table_catalog:t table_schema:t "
        "table_name:t constraint_type:t is_deferrable:t initially_deferred:t"
    ),
    "information_schema.referential_constraints": (
        "constraint_catalog:t constraint_schema:t constraint_name:t unique_constraint_catalog:t "
        "unique_constraint_schema:t unique_constraint_name:t match_option:t update_rule:t delete_rule:t"
    ),
    "information_schema.constraint_column_usage": (
        "table_catalog:t table_schema:t table_name:t column_name:t constraint_catalog:t "
        "constraint_schema:t constraint_name:t"
    ),
    "information_schema.check_constraints": (
        "constraint_catalog:t constraint_schema:t constraint_name:t check_clause:t"
    ),
    "information_schema.routines": (
        "specific_catalog:t specific_schema:t specific_name:t routine_catalog:t routine_schema:t "
        "routine_name:t routine_type:t data_type:t"
    ),
    "information_schema.parameters": (
        "specific_schema:t specific_name:t ordinal_position parameter_name:t parameter_mode:t "
        "data_type:t"
    ),
    "information_schema.sequences": "sequence_catalog:t sequence_schema:t sequence_name:t data_type:t",
    "information_schema.triggers": (
        "trigger_catalog:t trigger_schema:t trigger_name:t event_manipulation:t event_object_schema:t "
        "event_object_table:t action_statement:t action_timing:t"
    ),
    "information_schema.table_privileges": (
        "grantor:t grantee:t table_catalog:t table_schema:t table_name:t privilege_type:t "
        "is_grantable:t with_hierarchy:t"
    ),
    "information_schema.role_table_grants": (
        "grantor:t grantee:t table_catalog:t table_schema:t table_name:t privilege_type:t "
        "is_grantable:t with_hierarchy:t"
    ),
    "information_schema.character_sets": "character_set_name:t default_collate_name:t",
}  # fmt: skip
"""The columns of each table of the catalog; those of `pg_catalog` are named without it."""

_LONG = {
    "bool": "boolean", "int8": "bigint", "int2": "smallint", "int4": "integer", "float4": "real",
    "float8": "double precision", "varchar": "character varying", "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone", "time": "time without time zone", "char": '"char"',
}  # fmt: skip
_CATEGORIES = {"B": {16}, "N": {20, 21, 23, 26, 700, 701, 1700}, "D": {1082, 1083, 1114, 1184}}


def columns_of(table: str) -> list[tuple[str, str]]:
    """The columns of a table of the catalog, with DuckDB's types."""
    parts = [part.partition(":") for part in SCHEMA[table].split()]
    return [(name, _TYPES[kind]) for name, _, kind in parts]


_KINDS = {"BIGINT": "integer", "VARCHAR": "text", "BOOLEAN": "boolean", "DOUBLE": "float"}
CATALOG_KINDS: Mapping[str, str] = {
    name: _KINDS[kind] for table in SCHEMA for name, kind in columns_of(table) if kind in _KINDS
}
"""The kinds of the columns of the catalog, by name."""


def rows(
    database: str, tables: Sequence[PrivateTable | PublicTable], settings: Mapping[str, str]
) -> Mapping[str, list[dict[str, Any]]]:
    """The rows of the tables that have some: what is declared, and nothing of what the tables hold."""
    return {
        "pg_namespace": [
            {"oid": oid, "nspname": name, "nspowner": _OWNER_OID}
            for oid, name in zip((_PUBLIC, _CATALOG, 13000), _SCHEMAS, strict=True)
        ],
        "pg_class": [_class(_FIRST + place, table) for place, table in enumerate(tables)],
        "pg_attribute": [
            row for place, table in enumerate(tables) for row in _attributes(_FIRST + place, table)
        ],
        "pg_type": [*_types()],
        "pg_database": [
            {"oid": 5, "datname": database, "datdba": _OWNER_OID, "encoding": 6, "datlocprovider": "c",
             "datistemplate": False, "datallowconn": True, "datconnlimit": -1, "dattablespace": 1663,
             "datcollate": "C", "datctype": "C"}
        ],
        "pg_roles": [
            {"oid": _OWNER_OID, "rolname": OWNER, "rolsuper": False, "rolinherit": True,
             "rolcreaterole": False,
             "rolcreatedb": False, "rolcanlogin": False, "rolreplication": False, "rolconnlimit": -1,
             "rolbypassrls": False}
        ],
        "pg_user": [{"usename": OWNER, "usesysid": _OWNER_OID, "usecreatedb": False, "usesuper": False}],
        "pg_settings": [
            {"name": name, "setting": value, "context": "user", "vartype": "string", "source": "default",
             "category": "Sfumato", "short_desc": ""}
            for name, value in settings.items()
        ],
        "pg_am": [{"oid": 2, "amname": "heap", "amtype": "t"}],
        "pg_tablespace": [{"oid": 1663, "spcname": "pg_default", "spcowner": _OWNER_OID}],
        "pg_tables": [
            {"schemaname": "public", "tablename": table.name, "tableowner": OWNER, "hasindexes": False,
             "hasrules": False, "hastriggers": False, "rowsecurity": False}
            for table in tables
        ],
        "information_schema.schemata": [
            {"catalog_name": database, "schema_name": name, "schema_owner": OWNER}
            for name in _SCHEMAS
        ],
        "information_schema.tables": [
            {"table_catalog": database, "table_schema": "public", "table_name": table.name,
             "table_type": "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO"}
            for table in tables
        ],
        "information_schema.columns": [row for table in tables for row in _columns(database, table)],
    }  # fmt: skip


def _class(oid: int, table: PrivateTable | PublicTable) -> dict[str, Any]:
    false = ("relhasindex", "relisshared", "relhasrules", "relhastriggers", "relhassubclass",
             "relrowsecurity", "relforcerowsecurity", "relispartition", "relhasoids")  # fmt: skip
    return dict.fromkeys(false, False) | {
        "oid": oid, "relname": table.name, "relnamespace": _PUBLIC, "relowner": _OWNER_OID, "relam": 2,
        "relpersistence": "p", "relkind": "r", "relnatts": len(table.schema), "relchecks": 0,
        "reltablespace": 0, "reltoastrelid": 0, "reloftype": 0, "reltuples": -1.0, "relpages": 0,
        "relreplident": "d", "relispopulated": True, "reltype": 0, "relfilenode": 0,
    }  # fmt: skip


def _attributes(oid: int, table: PrivateTable | PublicTable) -> Iterator[dict[str, Any]]:
    for number, (name, column) in enumerate(table.schema.items(), start=1):
        kind = KINDS[oid_of(column.kind)]
        yield {
            "attrelid": oid, "attname": name, "atttypid": kind.oid, "attlen": kind.size, "attnum": number,
            "atttypmod": -1, "attndims": 0, "attnotnull": not column.nullable, "atthasdef": False,
            "attidentity": "", "attgenerated": "", "attisdropped": False, "attislocal": True,
            "attinhcount": 0,
            "attcollation": 0, "attstorage": "p", "attcompression": "", "attstattarget": -1, "attalign": "i",
            "attbyval": False, "atthasmissing": False,
        }  # fmt: skip


def _types() -> Iterator[dict[str, Any]]:
    for kind in KINDS.values():
        category = next((letter for letter, oids in _CATEGORIES.items() if kind.oid in oids), "S")
        base = {
            "typnamespace": _CATALOG, "typowner": _OWNER_OID, "typbyval": 0 < kind.size <= 8, "typtype": "b",
            "typispreferred": False, "typisdefined": True, "typdelim": ",", "typrelid": 0,
            "typnotnull": False,
            "typbasetype": 0, "typtypmod": -1, "typndims": 0, "typcollation": 0, "typinput": f"{kind.name}in",
        }  # fmt: skip
        own = {
            "oid": kind.oid,
            "typname": kind.name,
            "typlen": kind.size,
            "typarray": kind.array,
            "typelem": 0,
        }
        yield base | own | {"typcategory": category}
        listed = {
            "oid": kind.array,
            "typname": f"_{kind.name}",
            "typlen": -1,
            "typarray": 0,
            "typelem": kind.oid,
        }
        yield base | listed | {"typcategory": "A", "typinput": "array_in", "typbyval": False}


def _columns(database: str, table: PrivateTable | PublicTable) -> Iterator[dict[str, Any]]:
    for number, (name, column) in enumerate(table.schema.items(), start=1):
        kind = KINDS[oid_of(column.kind)]
        yield {
            "table_catalog": database, "table_schema": "public", "table_name": table.name,
            "column_name": name, "ordinal_position": number,
            "is_nullable": "YES" if column.nullable else "NO", "data_type": long_name(kind.name),
            "udt_catalog": database, "udt_schema": "pg_catalog",
            "udt_name": kind.name, "is_self_referencing": "NO", "is_identity": "NO", "is_generated": "NEVER",
            "is_updatable": "NO",
        }  # fmt: skip


def long_name(name: str) -> str:
    """What SQL calls a type that PostgreSQL's catalog has a short name for."""
    return _LONG.get(name, name)
