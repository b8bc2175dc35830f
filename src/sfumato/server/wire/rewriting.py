"""PostgreSQL's SQL about its catalog as DuckDB's SQL about our tables of the catalog.

Only names that are listed pass: tables of `catalog_tables`, and functions of `catalog_functions`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from sfumato._dataclasses import dataclass
from sfumato.server.wire.catalog_functions import CLOCKS, HOME, MACROS, NAMED, NATIVE, PARSED
from sfumato.server.wire.catalog_tables import FUNCTIONS, is_listed
from sfumato.server.wire.sqlstates import WireError
from sfumato.sql.text.bounded import trees_of
from sfumato.sql.text.quiet import quiet

__all__ = ["Asker", "about_catalog", "parsed", "plain_value", "rewritten", "settings_in", "tree_of"]

_LANGUAGE = "postgres"
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
_NUMBERS = frozenset({"oid", "xid", "regoper", "cid"})
_TEXTS = frozenset(
    {"name", "char", '"char"', "information_schema.sql_identifier", "cstring", "bpchar", "json", "aclitem"}
)
_WHOLE, _HOURS = (r"\A\s*[-+]?\d+\s*\Z", "22P02"), (r"\d:|\A\s*\d+\s*\Z|\Anow\Z", "22007")
_STRICT: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("int", "integer", "bigint", "smallint", "int2", "int4", "int8"), _WHOLE),
    **dict.fromkeys(("time", "time without time zone"), _HOURS),
}
"""What a text must look like to be a value of a type, where DuckDB takes more; and the code otherwise."""
_SCHEMAS = ("", "pg_catalog", "information_schema")
_HIDDEN = frozenset({"tableoid", "xmin", "ctid"})
_NOTHING = frozenset({"json_build_object", "row_to_json", "to_json", "jsonobject", "json_object"})
_MACROS = {name.partition("(")[0]: name for name in MACROS}
_PERSONAL = {"pg_roles": "rolname", "pg_user": "usename"}
_SETTINGS = frozenset({"pg_settings", "pg_show_all_settings"})

_WRITTEN = "sfumato_written"  # where a function has its name as it was written, for the name of a column

Change = Callable[[exp.Expr], None]

_PREFIX = re.compile(
    r"""
    (?P<kept>'(?:[^']|'')*'|"(?:[^"]|"")*"(?!\s*\.)|--[^\n]*|/\*.*?(?:\*/|\Z))
    | (?<![\w.])(?:"pg_catalog"|pg_catalog)\s*\.\s*(?=[a-z_]\w*\s*\()
    | \bAS\s+(?P<label>SELECT|TABLE|ALL|END|DESC|ASC|USER|ORDER|GROUP|FROM|TO|ON|CHECK|DEFAULT|COLUMN)
      (?=\s*(?:,|\)|$|FROM\b))
    | ::\s*(?P<oids>oid|xid|reg[a-z]+)\s*\[\]
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""What the parser does not read as PostgreSQL does: functions with their schema, labels that are keywords,
lists of numbers of rows."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks: what functions without arguments give them, and their settings by name."""

    constants: Mapping[str, str | None]
    settings: Mapping[str, str]


def tree_of(text: str) -> exp.Expr | None:
    """The tree of one query in PostgreSQL's SQL; None if it is none."""
    tree = parsed(text)
    if not isinstance(tree, exp.Query | exp.Values):
        return None
    written = _PREFIX.sub(_without, text)
    for select in tree.find_all(exp.Select):
        for column in select.expressions:
            for call in column.find_all(exp.Func):
                if (begin := call.meta.get("start")) is not None:
                    call.meta[_WRITTEN] = written[begin : call.meta["end"] + 1].strip('"').lower()
    return tree


def parsed(text: str) -> exp.Expr | None:
    """The tree of one statement in PostgreSQL's SQL; None if it cannot be read, or not in a bounded time."""
    plain = _PREFIX.sub(_without, text)
    try:
        with quiet():
            trees = trees_of(Dialect.get_or_raise(_LANGUAGE).tokenize(plain), plain, _LANGUAGE)
    except Exception:  # whatever the parser stumbles over
        return None
    return next((tree for tree in trees if tree is not None), None)


def _without(match: re.Match[str]) -> str:
    if match["oids"]:
        return "::uint[]"
    return match["kept"] or (f'AS "{match["label"].lower()}"' if match["label"] else "")


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
    """The name under which the catalog has it; empty if it has not."""
    schema, name = table.db.lower(), table.name.lower()
    full = f"{schema}.{name}" if schema == "information_schema" else name
    return full if schema in _SCHEMAS and is_listed(full) else ""


def rewritten(tree: exp.Expr, asker: Asker, values: Sequence[Any] = ()) -> str:
    """The same query for DuckDB.

    Args:
        tree: As `tree_of` gives it; it is changed.
        asker: Who asks.
        values: Of the parameters `$1`, `$2`, ….

    Raises:
        WireError: if it has a function or a part that is not listed.
    """
    if any(tree.find_all(*_GUARDED)):
        raise WireError("0A000", "The catalog can be read, and nothing else.")
    _said_by_columns(tree, values)
    root = exp.Paren(this=tree)  # so that the tree itself can be replaced
    for name in root.find_all(exp.Identifier):
        if not name.quoted:
            name.set("this", name.name.lower())  # as PostgreSQL does; DuckDB would show it as it is written
    for select in root.find_all(exp.Select):
        select.set("expressions", [_named(column) for column in select.expressions])
    for change in (_parameters(values), _tables(asker), _operators, _casts, _texts, _calls(asker)):
        for node in list(root.walk()):
            change(node)
    _check_functions(root)
    with quiet():
        return str(root.this.sql(dialect="duckdb"))


def settings_in(tree: exp.Expr, values: Sequence[Any] = ()) -> list[tuple[str, str | None, bool]]:
    """What `set_config` in a query sets: name, value, and whether for the transaction alone.

    Raises:
        WireError: if it is not a column of the query, or its arguments are not plain values.
    """
    calls = [call for call in tree.find_all(exp.Anonymous) if _name(call) == "set_config"]
    columns = tree.expressions if isinstance(tree, exp.Select) else []
    shown = [column.unalias() for column in columns]
    found = []
    for call in calls:
        given = [plain_value(argument, values) for argument in call.expressions]
        if not any(call is column for column in shown) or len(given) != 3 or not isinstance(given[0], str):
            raise WireError(
                "0A000", "set_config takes plain values, in a column of a query.", hint="Use SET."
            )
        value = None if given[1] is None else str(given[1])
        found.append((given[0], value, bool(given[2])))
    return found


def _said_by_columns(tree: exp.Expr, values: Sequence[Any]) -> None:
    """Show in a column what a column before it sets; nothing is set before the query is answered."""
    said: dict[str, str] = {}
    for column in tree.expressions if isinstance(tree, exp.Select) else []:
        for call in list(column.find_all(exp.Anonymous)):
            given = [plain_value(argument, values) for argument in call.expressions]
            key = str(given[0]).lower() if given else ""
            if _name(call) == "set_config" and len(given) == 3 and given[1] is not None:
                said[key] = str(given[1])
            elif _name(call) == "current_setting" and key in said:
                call.replace(_text(said[key]))


def plain_value(node: exp.Expr, values: Sequence[Any]) -> Any:
    """The value that is written there, or given for a parameter; None for NULL and for anything else."""
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    if isinstance(node, exp.Parameter) and node.name.isdecimal() and 0 < int(node.name) <= len(values):
        return values[int(node.name) - 1]
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    return node.name if isinstance(node, exp.Literal) else None


def _named(column: exp.Expr) -> exp.Expr:
    """A column with the name that PostgreSQL gives it."""
    if isinstance(column, exp.Alias | exp.Column | exp.Star) or column.is_star:
        return column
    inner = column
    while isinstance(inner, exp.Cast | exp.Paren | exp.Dot | exp.Collate | exp.Bracket):
        inner = inner.expression if isinstance(inner, exp.Dot) else inner.this
    name = inner.name if isinstance(inner, exp.Column | exp.Identifier) else ""
    name = name or inner.meta.get(_WRITTEN) or _name(inner)
    if not name and isinstance(column, exp.Cast):
        name = _type(column)
    return exp.alias_(column, _SHOWN.get(name, name) or "?column?", quoted=True)


_SHOWN = {"group_concat": "string_agg", "str_position": "position", "time_to_str": "to_char"}
"""Names of functions that the parser changes."""


def _tables(asker: Asker) -> Change:
    changed = {
        name: value for name, value in asker.settings.items() if not any(sign in name for sign in "'\\")
    }

    def change(node: exp.Expr) -> None:
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            _table(node, asker, changed)
        elif isinstance(node, exp.Table):
            name = _name(node.this)
            if name in FUNCTIONS:
                node.set("this", exp.to_identifier(name))
                _table(node, asker, changed)
            node.set("db", exp.to_identifier(HOME) if name in FUNCTIONS else None)
        elif isinstance(node, exp.Column) and node.name.lower() in _HIDDEN:
            node.replace(exp.Literal.number(0))
        elif isinstance(node, exp.Column) and node.args.get("db"):
            node.set("db", None)  # pg_catalog.pg_class.relname
            node.set("catalog", None)

    return change


def _table(node: exp.Table, asker: Asker, settings: Mapping[str, str]) -> None:
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
    if name in _PERSONAL:
        column = exp.column(_PERSONAL[name])
        value: exp.Expr = exp.Coalesce(this=column, expressions=[_text(asker.constants.get("user") or "")])
        _replaced(node, _PERSONAL[name], value)
    elif name in _SETTINGS:
        cases = [exp.If(this=_text(key), true=_text(value)) for key, value in settings.items()]
        _replaced(
            node, "setting", exp.Case(this=exp.column("name"), ifs=cases, default=exp.column("setting"))
        )


def _replaced(node: exp.Table, column: str, value: exp.Expr) -> None:
    """Put a subquery in a table's place, in which one column has other values."""
    alias = node.args.pop("alias")
    inner = node.copy()
    instead = exp.Star(replace=[exp.alias_(value, column)])
    subquery = exp.Subquery(this=exp.Select(expressions=[instead]).from_(inner), alias=alias)
    for key in ("joins", "laterals"):
        if moved := inner.args.pop(key, None):
            subquery.set(key, moved)
    node.replace(subquery)


def _operators(node: exp.Expr) -> None:
    if isinstance(node, exp.Collate):
        node.replace(node.this)
    elif isinstance(node, exp.Mod):  # of which DuckDB has a value for 1.5 % 0
        node.set("expression", exp.Anonymous(this="nonzero", expressions=[node.expression]))
    elif isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
        listed = node.expression.this.unnest()
        query = listed.expressions[0] if isinstance(listed, exp.Array) and listed.expressions else None
        if isinstance(query, exp.Query):  # = ANY(ARRAY(SELECT …))
            node.replace(exp.In(this=node.this, query=exp.Subquery(this=query)))
    elif isinstance(node, exp.NEQ) and _name(node.expression) == "all":  # <> ALL(a list)
        arguments = [*node.expression.expressions, node.this]
        node.replace(exp.Not(this=exp.Anonymous(this="list_contains", expressions=arguments)))
    elif isinstance(node, exp.Operator):
        sign = str(node.args["operator"]).split(".")[-1].strip(" ()")
        if sign in _OPERATORS:
            node.replace(_OPERATORS[sign](this=node.this, expression=node.expression))
    elif isinstance(node, exp.ByteString):
        node.replace(_text(node.name.replace("\\n", "\n").replace("\\\\", "\\")))


def _texts(node: exp.Expr) -> None:
    """What PostgreSQL does with texts and DuckDB otherwise: patterns, `format`, LIKE with backslashes."""
    if isinstance(node, exp.Substring) and _is_text(node.args.get("start")):
        found = exp.Anonymous(this="regexp_extract", expressions=[node.this, node.args["start"], _one()])
        node.replace(exp.Nullif(this=found, expression=_text("")))
    elif isinstance(node, exp.Format) and _is_text(node.this):
        node.replace(_formatted(node.this.name, list(node.expressions)))
    elif (
        isinstance(node, exp.Like | exp.ILike)
        and _is_text(node.expression)
        and "\\" in node.expression.name
        and not isinstance(node.parent, exp.Escape)
    ):
        node.replace(exp.Escape(this=node.copy(), expression=_text("\\")))


def _is_text(node: Any) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _one() -> exp.Expr:
    return exp.Literal.number(1)


def _formatted(pattern: str, values: list[exp.Expr]) -> exp.Expr:
    """`format('%I.%I', …)` as the parts of it, one after the other."""
    parts: list[exp.Expr] = []
    head, *rest = pattern.replace("%%", "\0").split("%")
    parts.append(_text(head.replace("\0", "%")))
    for part in rest:
        if part[:1] not in ("s", "I", "L") or not part or not values:
            raise WireError("0A000", "format takes %s, %I and %L here, with a value for each.")
        value = values.pop(0)
        quoting = {"I": "quote_ident", "L": "quote_literal"}.get(part[0])
        parts.append(value if quoting is None else exp.Anonymous(this=quoting, expressions=[value]))
        parts.append(_text(part[1:].replace("\0", "%")))
    return exp.Anonymous(this="concat", expressions=parts)


def _calls(asker: Asker) -> Change:
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)  # the same all over a question

    def change(node: exp.Expr) -> None:
        if isinstance(node, exp.Dot) and node.this.name.lower() in _SCHEMAS[1:]:
            node.replace(node.expression)
            node = node.expression
        name = _name(node)
        arguments = list(node.iter_expressions())
        if name in asker.constants and not node.args.get("expressions"):
            value = asker.constants[name]
            node.replace(exp.null() if value is None else _text(value))
        elif name == "set_config" and len(arguments) == 3:
            node.replace(arguments[1])
        elif name in _NOTHING:
            node.replace(exp.null())
        elif name in CLOCKS:
            zone = "+00" * (CLOCKS[name] == "TIMESTAMPTZ")
            node.replace(exp.cast(_text(now.isoformat(sep=" ") + zone), CLOCKS[name]))
        elif name == "current_schemas":
            both = [_text("pg_catalog")] * node.sql().upper().endswith("TRUE)")
            node.replace(exp.array(*both, _text("public")))
        elif name == "current_setting" and arguments and _is_text(arguments[0]):
            known = asker.settings.get(arguments[0].name.lower())
            node.replace(exp.null() if known is None else _text(known))
        elif f"{name}{len(arguments)}" in _MACROS or name in _MACROS:
            counted = f"{name}{len(arguments)}"
            node.replace(_call(counted if counted in _MACROS else name, arguments))

    return change


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    if isinstance(node, exp.Column) and not node.table and node.name.lower() in ("session_user", "user"):
        return node.name.lower() if not node.this.args.get("quoted") else ""
    name = node.sql_name().lower() if isinstance(node, exp.Func) else ""
    return {"current_version": "version"}.get(name, name)


def _type(cast: exp.Cast) -> str:
    return str(cast.to.sql(dialect="postgres")).lower().removeprefix("pg_catalog.")


def _casts(node: exp.Expr) -> None:
    if not isinstance(node, exp.Cast):
        return
    to = _type(node)
    listed, to = to.endswith("[]"), to.removesuffix("[]")
    kind = "UINTEGER" if to in _NUMBERS else "TEXT" if to in _TEXTS else ""
    if _is_text(node.this) and to in _STRICT and not listed:
        pattern, state = _STRICT[to]
        if not re.search(pattern, node.this.name):
            raise WireError(state, f"This is no value of the type {to}: {node.this.name[:60]!r}.")
    if to in NAMED and not listed:
        called = f"{to}_name" if _is_shown(node) else f"to_{to}"
        node.replace(exp.Anonymous(this=called, expressions=[node.this]))
    elif listed and _is_text(node.this) and node.this.name[:1] == "{":
        inner = node.this.name.strip("{}")
        items = [_text(word.strip('"')) for word in inner.split(",")] if inner else []
        node.set("this", exp.array(*items, dialect="duckdb"))
    if kind:
        node.set("to", exp.DataType.build(kind + "[]" * listed, dialect="duckdb"))


def _is_shown(cast: exp.Expr) -> bool:
    """Whether a value that is a name to people and a number to the catalog is shown, and not looked up by."""
    parent = cast.parent
    while isinstance(parent, exp.Paren | exp.Alias):
        parent = parent.parent
    if isinstance(parent, exp.Cast):
        return _type(parent) in ("text", "varchar", "name")
    return isinstance(parent, exp.Select | exp.DPipe | exp.Concat | exp.Order | exp.Ordered)


def _text(value: str) -> exp.Expr:
    return exp.Literal.string(value)


def _call(name: str, arguments: list[Any]) -> exp.Expr:
    call = exp.Anonymous(this=name, expressions=arguments)
    return exp.Dot(this=exp.to_identifier(HOME), expression=call)


def _parameters(values: Sequence[Any]) -> Change:
    def change(node: exp.Expr) -> None:
        if isinstance(node, exp.Parameter):
            place = int(node.name) if node.name.isdecimal() else 0
            if not 1 <= place <= len(values):
                raise WireError("08P01", "There is no value for a parameter.")
            node.replace(exp.convert(values[place - 1]))

    return change


def _check_functions(tree: exp.Expr) -> None:
    for node in tree.find_all(exp.Func):
        known = not isinstance(node, exp.Anonymous)
        name = (node.sql_name() if known else str(node.this)).lower()
        if name not in NATIVE and name not in (PARSED if known else _MACROS):
            raise WireError(
                "42883", f"There is no function {name[:60]!r} here.", hint="Ask the catalog with plain SQL."
            )
