"""Contribution bounds that are written into an aggregate, and the deprecated functions `ANON_…`.

`SUM(x, contribution_bounds_per_group => (0, 10))` and `ANON_SUM(x CLAMPED BETWEEN 0 AND 10)` become `SUM(x)`
with the bounds beside the node: `node.meta["bounds"]` is `("group" or "row", lower, upper)`, and copies of a
tree keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Literal, TypeAlias

from sqlglot import Token, TokenType, exp

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.names import nearest
from sfumato.plan.questions.aggregates import statistics
from sfumato.sql.refusals import refuse, shown
from sfumato.sql.text.tokens import Constant, constant_at, ends_operand, is_kind, is_word, retyped, word_at

__all__ = ["Bounds", "Calls", "attach", "take_calls"]

Bounds: TypeAlias = tuple[Literal["group", "row"], Fraction, Fraction]
"""What is clamped, a unit's aggregate in a group or each row, and between which bounds."""

_PER: dict[str, Literal["group", "row"]] = {
    **{
        name.lower(): statistic.bounds
        for statistic in statistics().values()
        if statistic.bounds
        for name in statistic.spelled
    },
    **dict.fromkeys(("count_if", "countif"), "group"),
    "approx_quantiles": "row",
}
_ANON = {
    "anon_count": "COUNT",
    "anon_sum": "SUM",
    "anon_avg": "AVG",
    "anon_var_pop": "VAR_POP",
    "anon_stddev_pop": "STDDEV_POP",
    "anon_percentile_cont": "PERCENTILE_CONT",
    "anon_quantiles": "APPROX_QUANTILES",
}
_ARGUMENTS: dict[str, Literal["group", "row"]] = {
    "contribution_bounds_per_group": "group",
    "contribution_bounds_per_row": "row",
}
_LARGEST = 2**62
_OTHERS: dict[str, tuple[str, str]] = {
    "report_format": (
        "report_format is not supported.",
        "Add DP_INTERVAL_LOW(alias) and DP_INTERVAL_HIGH(alias) as columns, which bound the noise.",
    ),
    "epsilon": (
        "An epsilon for a single aggregate is not supported.",
        "Give the query its epsilon in OPTIONS; the quote shows how it is divided.",
    ),
    "contribution_bounding_strategy": (
        "contribution_bounding_strategy is not supported.",
        "Leave it out: the quote says how contributions are bounded.",
    ),
    "max_contributions_per_group": (
        "max_contributions_per_group is not supported.",
        "Write max_rows_contributed in OPTIONS.",
    ),
}


@dataclass(slots=True)
class Calls:
    """What was found in the calls of a statement.

    Attributes:
        bounds: The bounds by the place in the text where the aggregate's name begins.
        notes: What is deprecated, with what replaces it.
    """

    bounds: dict[int, Bounds] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Call:
    """The call that is read: its name in the text, its name now, and whether the text has an old one."""

    name: Token
    function: str
    old: bool


_Parameter = Callable[[str], Constant]


def take_calls(tokens: list[Token], parameter: _Parameter, *, google: bool) -> tuple[Calls, list[Token]]:
    """The bounds that are written into aggregates, and the tokens without them.

    Args:
        tokens: The tokens of one statement.
        parameter: Gives the value of a parameter of this name.
        google: Whether this is GoogleSQL, where named arguments have no other meaning.

    Raises:
        QueryRefused: if bounds are elsewhere or are not understood.
    """
    calls = Calls()
    kept: list[Token] = []
    stack: list[_Call | None] = []
    at = 0
    while at < len(tokens):
        token, kind = tokens[at], tokens[at].token_type
        call = stack[-1] if stack else None
        if kind == TokenType.L_PAREN:
            stack.append(_called(kept, calls))
        elif kind == TokenType.R_PAREN and stack:
            stack.pop()
        elif is_kind(tokens, at + 1, TokenType.FARROW) and is_word(token):
            if token.text.lower() in _ARGUMENTS:
                at = _named(tokens, at, call, calls, parameter)
                kept.pop()  # the comma before it
                continue
            _check_other(token, google)
        elif call is not None and _is_clamp(tokens, at, kept):
            at = _clamped(tokens, at, call, calls, parameter)
            continue
        elif call is not None and kind == TokenType.WITH and word_at(tokens, at + 1) == "report":
            raise refuse("WITH REPORT is not supported.", _OTHERS["report_format"][1])
        kept.append(token)
        at += 1
    return calls, kept


def _called(kept: list[Token], calls: Calls) -> _Call | None:
    """The aggregate whose parenthesis opens now; a deprecated name is replaced."""
    name = word_at(kept, len(kept) - 1)
    if name in _PER:
        return _Call(kept[-1], name, False)
    if name not in _ANON:
        return None
    new = _ANON[name]
    kept[-1] = retyped(kept[-1], TokenType.VAR, new)
    per = _PER[new.lower()]
    note = f"{name.upper()} is deprecated: write {new} with contribution_bounds_per_{per} => (lower, upper)."
    if note not in calls.notes:
        calls.notes.append(note)
    return _Call(kept[-1], new.lower(), True)


def _named(tokens: Sequence[Token], at: int, call: _Call | None, calls: Calls, parameter: _Parameter) -> int:
    """Read one named argument of bounds; gives the place behind it."""
    name = tokens[at].text.lower()
    per = _ARGUMENTS[name]
    if call is None:
        example = "SUM" if per == "group" else "VAR_POP"
        raise refuse(f"{name} belongs in an aggregate.", f"Write {example}(x, {name} => (0, 10)).")
    function = call.function.upper()
    if not is_kind(tokens, at - 1, TokenType.COMMA):
        raise refuse(f"{name} comes after what is aggregated.", f"Write {function}(x, {name} => (0, 10)).")
    if per != _PER[call.function]:
        right = f"contribution_bounds_per_{_PER[call.function]}"
        more = " To clamp each row, write LEAST(GREATEST(x, 0), 10) for x." if per == "row" else ""
        raise refuse(
            f"{function} takes {right}, not {name}.", f"Write {function}(x, {right} => (0, 10)).{more}"
        )
    pair = _pair(tokens, at + 2, parameter)
    if pair is None:
        raise refuse(
            f"{name} takes two numbers in parentheses, each a literal or a parameter.",
            f"Write {function}(x, {name} => (0, 10)).",
        )
    lower, upper, after = pair
    if not is_kind(tokens, after, TokenType.COMMA, TokenType.R_PAREN):
        raise refuse(f"{name} is followed by something that is not understood.", "End it with a parenthesis.")
    _keep(calls, call, lower, upper)
    return after


def _pair(tokens: Sequence[Token], at: int, parameter: _Parameter) -> tuple[Fraction, Fraction, int] | None:
    if not is_kind(tokens, at, TokenType.L_PAREN):
        return None
    return _numbers(tokens, at + 1, TokenType.COMMA, TokenType.R_PAREN, parameter)


def _numbers(
    tokens: Sequence[Token], at: int, between: TokenType, end: TokenType | None, parameter: _Parameter
) -> tuple[Fraction, Fraction, int] | None:
    first = constant_at(tokens, at, parameter)
    if first is None or not is_kind(tokens, first[1], between):
        return None
    second = constant_at(tokens, first[1] + 1, parameter)
    if second is None or not isinstance(first[0], Fraction) or not isinstance(second[0], Fraction):
        return None
    if end is not None and not is_kind(tokens, second[1], end):
        return None
    return first[0], second[0], second[1] + (end is not None)


def _keep(calls: Calls, call: _Call, lower: Fraction, upper: Fraction) -> None:
    function = call.function.upper()
    if call.name.start in calls.bounds:
        raise refuse(f"{function} has contribution bounds twice.", "Keep one pair.")
    if lower > upper:
        raise refuse(
            f"The bounds of {function} are the wrong way round: the lower one comes first.", "Exchange them."
        )
    if max(-lower, upper) > _LARGEST:
        raise refuse(f"The bounds of {function} are too large.", "Write numbers of the size of the data.")
    calls.bounds[call.name.start] = (_PER[call.function], lower, upper)


def _is_clamp(tokens: Sequence[Token], at: int, kept: Sequence[Token]) -> bool:
    """Whether CLAMPED BETWEEN follows a value here; a column may be called clamped, too."""
    if word_at(tokens, at) != "clamped" or not is_kind(tokens, at + 1, TokenType.BETWEEN):
        return False
    all_rows = is_kind(kept, len(kept) - 1, TokenType.STAR) and is_kind(
        kept, len(kept) - 2, TokenType.L_PAREN
    )
    return all_rows or ends_operand(kept[-1])


def _clamped(tokens: Sequence[Token], at: int, call: _Call, calls: Calls, parameter: _Parameter) -> int:
    per, function = _PER[call.function], call.function.upper()
    if not call.old:
        raise refuse(
            f"{function} takes no CLAMPED BETWEEN.",
            f"Write {function}(x, contribution_bounds_per_{per} => (0, 10)).",
        )
    numbers = _numbers(tokens, at + 2, TokenType.AND, None, parameter)
    if numbers is None:
        raise refuse(
            "CLAMPED BETWEEN takes two numbers, each a literal or a parameter.",
            "Write CLAMPED BETWEEN 0 AND 10.",
        )
    _keep(calls, call, numbers[0], numbers[1])
    return numbers[2]


def _check_other(token: Token, google: bool) -> None:
    name = token.text.lower()
    if google and name in _OTHERS:
        raise refuse(*_OTHERS[name])
    if google or name.startswith("contribution_"):
        raise refuse(
            f"There is no argument {shown(token.text)}.", nearest(name, list(_ARGUMENTS), "Arguments")
        )


def attach(tree: exp.Select, bounds: dict[int, Bounds]) -> None:
    """Keep the bounds with the nodes of their aggregates, as `node.meta["bounds"]`.

    Raises:
        QueryRefused: if there is no such aggregate in the outermost SELECT.
    """
    waiting = dict(bounds)
    for node in tree.find_all(exp.Func) if waiting else ():
        limits = waiting.pop(node.meta.get("start", -1), None)
        if limits is None:
            continue
        if node.find_ancestor(exp.Query) is not tree:
            raise refuse(
                "Contribution bounds are in a subquery.",
                "Give them to the aggregates of the outermost SELECT, to which noise is added.",
            )
        if isinstance(node.this, exp.Distinct):
            raise refuse("An aggregate with DISTINCT takes no contribution bounds.", "Leave them out.")
        node.meta["bounds"] = limits
    if waiting:
        raise refuse("Contribution bounds are outside of an aggregate.", "Write SUM(x, …) with them inside.")
