"""GoogleSQL's clause: `SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, …) …`, read from tokens.

The clause is taken out of the statement, and what is left is ordinary SQL. What an option may do to privacy
is decided elsewhere, by the session's budget and the declared unit; here a value is only read, and refused
where it cannot be meant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from sqlglot import Token, TokenType, exp

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.names import nearest
from sfumato.sql.refusals import refuse, shown
from sfumato.sql.text.tokens import Constant, constant_at, is_kind, is_word, word_at

__all__ = ["Options", "check_shape", "is_google", "take_clause"]

_CLAUSES = {"differential_privacy": "WITH DIFFERENTIAL_PRIVACY", "anonymization": "WITH ANONYMIZATION"}
_OLD = {"kappa": "max_groups_contributed", "k_threshold": "min_privacy_units_per_group"}
_NAMES = (
    "epsilon",
    "delta",
    "privacy_unit_column",
    "max_groups_contributed",
    "max_rows_contributed",
    "group_selection_strategy",
    "group_selection_epsilon",
    "min_privacy_units_per_group",
)
_STRATEGIES = {"laplace_threshold": False, "public_groups": True}
_EXAMPLE = "Write OPTIONS(epsilon = 1, delta = 1e-6, privacy_unit_column = user_id)."
_LARGEST = 1000
_MOST = 2**53
_PLACE = "Write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(…) country, COUNT(*) FROM visits GROUP BY country."


@dataclass(frozen=True, slots=True)
class Options:
    """What the clause says; None where it says nothing.

    Attributes:
        epsilon: The epsilon of the query.
        delta: Its delta.
        unit_column: The column that the query takes for the privacy unit.
        unit_table: The table's name or alias that was written before it.
        max_groups: The most groups that one unit contributes to.
        max_rows: The most rows that one unit contributes.
        public_groups: Whether groups come from a public table (`PUBLIC_GROUPS`) and not from a threshold.
        group_selection_epsilon: The part of epsilon that chooses groups.
        min_units: The least number of units of a group that is shown.
        notes: What is deprecated in the text, with what replaces it.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    unit_column: str | None = None
    unit_table: str | None = None
    max_groups: int | None = None
    max_rows: int | None = None
    public_groups: bool | None = None
    group_selection_epsilon: Fraction | None = None
    min_units: int | None = None
    notes: tuple[str, ...] = ()


_Parameter = Callable[[str], Constant]


def is_google(tokens: Sequence[Token]) -> bool:
    """Whether the clause is somewhere in these tokens."""
    return any(_begins(tokens, at) for at in range(len(tokens) - 2))


def _begins(tokens: Sequence[Token], at: int) -> bool:
    return (
        tokens[at].token_type == TokenType.SELECT
        and is_kind(tokens, at + 1, TokenType.WITH)
        and word_at(tokens, at + 2) in _CLAUSES
    )


def take_clause(tokens: list[Token], parameter: _Parameter) -> tuple[Options | None, list[Token]]:
    """The options of the clause, if there is one, and the tokens without it.

    Args:
        tokens: The tokens of one statement.
        parameter: Gives the value of a parameter of this name.

    Raises:
        QueryRefused: if the clause is elsewhere than in the outermost SELECT, or is not understood.
    """
    place = _place(tokens)
    if place is None:
        return None, tokens
    word, after = word_at(tokens, place + 2), place + 3
    options = Options()
    if word == "anonymization":
        options = replace(
            options, notes=("WITH ANONYMIZATION is deprecated: write WITH DIFFERENTIAL_PRIVACY.",)
        )
    if word_at(tokens, after) == "options" and is_kind(tokens, after + 1, TokenType.L_PAREN):
        options, after = _options(tokens, after + 2, parameter, options)
    return _consistent(options), [*tokens[: place + 1], *tokens[after:]]


def _place(tokens: Sequence[Token]) -> int | None:
    """Where the SELECT with the clause begins."""
    place: int | None = None
    depth = 0
    for at, token in enumerate(tokens):
        kind = token.token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if kind != TokenType.WITH or not at:
            continue
        _check_before(tokens, at)
        if not _begins(tokens, at - 1):
            continue
        name = _CLAUSES[word_at(tokens, at + 1)]
        if depth and any(other.token_type != TokenType.L_PAREN for other in tokens[: at - 1]):
            raise refuse(
                f"{name} is in a subquery: noise is added once, to the result of the whole query.",
                "Put the clause after the first SELECT; the subqueries under it are protected with it.",
            )
        if place is not None:
            raise refuse(f"{name} is written twice.", "Ask one SELECT at a time.")
        place = at - 1
    return place


def _check_before(tokens: Sequence[Token], at: int) -> None:
    """Refuse the clause behind any word but SELECT, and any word but the clause behind SELECT."""
    word = word_at(tokens, at + 1)
    before = tokens[at - 1]
    late = before.token_type in (TokenType.DISTINCT, TokenType.ALL) and is_kind(
        tokens, at - 2, TokenType.SELECT
    )
    if word in _CLAUSES and (late or word_at(tokens, at - 1) == "aggregate"):
        raise refuse(f"{_CLAUSES[word]} goes directly after SELECT.", _PLACE)
    if before.token_type == TokenType.SELECT and word and word not in _CLAUSES:
        raise refuse(f"SELECT WITH {tokens[at + 1].text[:40]} is not supported.", _PLACE)


def _options(
    tokens: Sequence[Token], at: int, parameter: _Parameter, options: Options
) -> tuple[Options, int]:
    """The options from here on, and the place after their closing parenthesis."""
    seen: dict[str, str] = {}
    if is_kind(tokens, at, TokenType.R_PAREN):
        return options, at + 1
    while True:
        typed = word_at(tokens, at)
        if not typed or not is_kind(tokens, at + 1, TokenType.EQ):
            raise refuse("OPTIONS takes names and values, as in epsilon = 1.", _EXAMPLE)
        name = _OLD.get(typed, typed)
        if name not in _NAMES:
            raise refuse(f"There is no option {shown(typed)}.", nearest(typed, _NAMES, "Options"))
        if name in seen:
            both = f"{seen[name]} and {typed} mean the same, and both are given."
            again = f"The option {typed} is given twice."
            raise refuse(again if typed == seen[name] else both, "Keep one of them.")
        seen[name] = typed
        if typed in _OLD:
            options = replace(options, notes=(*options.notes, f"{typed} is deprecated: write {name}."))
        options, at = _option(options, name, tokens, at + 2, parameter)
        if is_kind(tokens, at, TokenType.R_PAREN):
            return options, at + 1
        if not is_kind(tokens, at, TokenType.COMMA):
            raise refuse(f"{typed} takes one literal or parameter, not an expression.", _EXAMPLE)
        at += 1


def _option(
    options: Options, name: str, tokens: Sequence[Token], at: int, parameter: _Parameter
) -> tuple[Options, int]:
    if name == "privacy_unit_column":
        table, column, at = _path(tokens, at)
        return replace(options, unit_column=column, unit_table=table), at
    if name == "group_selection_strategy":
        public, at = _strategy(tokens, at, parameter)
        return replace(options, public_groups=public), at
    constant = constant_at(tokens, at, parameter)
    if constant is None:
        raise _no_literal(name)
    value, at = constant
    if name in ("epsilon", "group_selection_epsilon"):
        exact = _epsilon(name, value)
        return (
            replace(options, epsilon=exact)
            if name == "epsilon"
            else replace(options, group_selection_epsilon=exact)
        ), at
    if name == "delta":
        return replace(options, delta=_delta(value)), at
    whole = _whole(name, value)
    if name == "max_groups_contributed":
        return replace(options, max_groups=whole), at
    if name == "max_rows_contributed":
        return replace(options, max_rows=whole), at
    return replace(options, min_units=whole), at


def _no_literal(name: str) -> QueryRefused:
    return refuse(f"{name} takes a number: a literal or a parameter, not an expression.", _EXAMPLE)


def _path(tokens: Sequence[Token], at: int) -> tuple[str | None, str, int]:
    parts: list[str] = []
    while at < len(tokens) and (is_word(tokens[at]) or tokens[at].token_type == TokenType.IDENTIFIER):
        parts.append(tokens[at].text)
        at += 1
        if not is_kind(tokens, at, TokenType.DOT):
            break
        at += 1
    else:
        parts = []
    if not 1 <= len(parts) <= 2:
        raise refuse(
            "privacy_unit_column takes the name of a column, without quotes or functions.",
            "Write privacy_unit_column = user_id, or visits.user_id.",
        )
    return parts[0] if len(parts) == 2 else None, parts[-1], at


def _strategy(tokens: Sequence[Token], at: int, parameter: _Parameter) -> tuple[bool, int]:
    word = word_at(tokens, at)
    if word in _STRATEGIES:
        return _STRATEGIES[word], at + 1
    constant = constant_at(tokens, at, parameter)
    chosen = "" if constant is None else str(constant[0]).lower()
    if constant is None or chosen not in _STRATEGIES:
        named = f"There is no group_selection_strategy {shown(word)}."
        raise refuse(
            named if word else "group_selection_strategy takes one of two words.",
            "Write LAPLACE_THRESHOLD or PUBLIC_GROUPS.",
        )
    return _STRATEGIES[chosen], constant[1]


def _epsilon(name: str, value: Constant) -> Fraction:
    if not isinstance(value, Fraction):
        raise _no_literal(name)
    if value <= 0:
        raise refuse(f"{name} must be greater than 0.", f"Write {name} = 1.")
    if value > _LARGEST:
        raise refuse(
            f"{name} above {_LARGEST:,} would remove the noise, and with it all privacy.",
            f"Write what the budget allows, such as {name} = 1.",
        )
    return value


def _delta(value: Constant) -> Fraction:
    if not isinstance(value, Fraction):
        raise _no_literal("delta")
    if not 0 <= value < 1:
        raise refuse(
            "delta must be at least 0 and below 1: it is the probability that the guarantee fails.",
            "Write a small number, such as delta = 1e-6.",
        )
    return value


def _whole(name: str, value: Constant) -> int:
    if not isinstance(value, Fraction) or value.denominator != 1 or not 1 <= value <= _MOST:
        raise refuse(f"{name} takes a whole number of at least 1.", f"Write {name} = 3.")
    return int(value)


def _consistent(options: Options) -> Options:
    if options.max_groups is not None and options.max_rows is not None:
        raise refuse(
            "max_groups_contributed and max_rows_contributed exclude each other.",
            "Keep the one that bounds what you mean: groups of a unit, or rows of a unit.",
        )
    chosen = options.group_selection_epsilon
    if options.public_groups and chosen is not None:
        raise refuse(
            "group_selection_epsilon pays for choosing groups, and PUBLIC_GROUPS chooses none.",
            "Leave it out: the aggregates get all of epsilon.",
        )
    if options.public_groups and options.min_units is not None:
        raise refuse(
            "min_privacy_units_per_group hides groups, and PUBLIC_GROUPS shows all of them.",
            "Leave it out, or use HAVING, which filters the released groups.",
        )
    if chosen is not None and options.epsilon is not None and chosen >= options.epsilon:
        raise refuse(
            "group_selection_epsilon must be smaller than epsilon: the rest pays for the aggregates.",
            "Write a tenth of epsilon, or leave it out.",
        )
    return options


def check_shape(select: exp.Select) -> None:
    """Refuse what GoogleSQL documents as wrong under the clause, whatever other SQL may do.

    Raises:
        QueryRefused: for DISTINCT, a missing FROM, several groupings at once, and rows instead of aggregates.
    """
    if select.args.get("distinct"):
        raise refuse(
            "SELECT DISTINCT is not supported with WITH DIFFERENTIAL_PRIVACY.",
            "GROUP BY gives one row for each key; leave DISTINCT out.",
        )
    if select.args.get("from_") is None:
        raise refuse("WITH DIFFERENTIAL_PRIVACY needs a table to protect.", "Add FROM and its name.")
    group = select.args.get("group")
    several = (exp.Rollup, exp.Cube, exp.GroupingSets)
    if group is not None and (
        group.find(*several) or any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets"))
    ):
        raise refuse(
            "ROLLUP, CUBE and GROUPING SETS are not supported with WITH DIFFERENTIAL_PRIVACY.",
            "Ask each grouping as a query of its own.",
        )
    shown_nodes = [node for expression in select.expressions for node in expression.walk()]
    if any(isinstance(node, exp.Grouping) for node in shown_nodes):
        raise refuse("GROUPING is not supported with WITH DIFFERENTIAL_PRIVACY.", "Leave it out.")
    if group is None and not any(isinstance(node, exp.AggFunc | exp.Anonymous) for node in shown_nodes):
        raise refuse(
            "WITH DIFFERENTIAL_PRIVACY is for aggregates, and this query has none.",
            "Add one, such as COUNT(*) or AVG(x).",
        )
