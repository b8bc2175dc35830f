"""One form for expressions that mean the same, so that equivalent questions share a fingerprint."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from sfumato.plan.expressions.comparisons import FLIPPED, NEGATED
from sfumato.plan.expressions.tree import Call, Expression, Literal, to_wire

__all__ = ["conjunction", "normal"]


def normal(expression: Expression) -> Expression:
    """The same values on every row, written in one way.

    AND and OR are flat, sorted and without repetitions; the arguments of commutative functions are sorted;
    comparisons have the constant on the right; IN lists are sorted; NOT goes into comparisons and cancels.
    """
    if not isinstance(expression, Call):
        return expression
    notes = expression.notes
    if "normal" not in notes:
        call = expression.replaced(expression.function, tuple(map(normal, expression.arguments)))
        rule = _RULES.get(call.function)
        notes["normal"] = call if rule is None else rule(call)
    result: Expression = notes["normal"]
    return result


def conjunction(predicates: Iterable[Expression]) -> Expression | None:
    """The one condition that all of these hold; None if nothing is asked for."""
    both = normal(Call("and", tuple(predicates)))
    return None if both == _TRUE else both


_TRUE = Literal(True, "boolean")


def _order(expression: Expression) -> str:
    if not isinstance(expression, Call):
        return json.dumps(to_wire(expression))
    notes = expression.notes
    if "order" not in notes:
        notes["order"] = json.dumps(to_wire(expression))
    return str(notes["order"])


def _sorted(arguments: Iterable[Expression]) -> tuple[Expression, ...]:
    return tuple(sorted(arguments, key=_order))


def _listed(options: Iterable[Expression]) -> tuple[Expression, ...]:
    """Constants in their own order where they have one: keys that a query lists are reported so."""
    constants = tuple(options)
    kinds = {constant.kind for constant in constants if isinstance(constant, Literal)}
    if len(kinds) == 1 and None not in kinds:
        return tuple(sorted(constants, key=_value))
    return _sorted(constants)


def _value(constant: Expression) -> Any:
    return constant.value if isinstance(constant, Literal) else None


def _commutative(call: Call) -> Expression:
    return call.replaced(call.function, _sorted(call.arguments))


def _flat(call: Call) -> tuple[Expression, ...]:
    terms: list[Expression] = []
    for argument in call.arguments:
        same = isinstance(argument, Call) and argument.function == call.function
        terms += argument.arguments if same and isinstance(argument, Call) else [argument]
    return tuple(dict.fromkeys(terms))


def _and(call: Call) -> Expression:
    terms = [term for term in _flat(call) if term != _TRUE]
    if not terms:
        return _TRUE
    if len(call.arguments) == 1 and isinstance(inner := call.arguments[0], Call) and inner.function == "and":
        call = inner  # one condition, which may be as it should be
    return terms[0] if len(terms) == 1 else call.replaced("and", _sorted(terms))


def _or(call: Call) -> Expression:
    """Equalities of one expression with constants are one IN."""
    listed: dict[Expression, list[Expression]] = {}
    terms: list[Expression] = []
    for term in _flat(call):
        match term:
            case Call("equal", (value, Literal() as option)) if option.value is not None:
                listed.setdefault(value, []).append(option)
            case Call("in", (value, *options)):
                listed.setdefault(value, []).extend(options)
            case _:
                terms.append(term)
    terms += [_in(Call("in", (value, *options))) for value, options in listed.items()]
    return terms[0] if len(terms) == 1 else call.replaced("or", _sorted(terms))


def _in(call: Call) -> Expression:
    value, *options = call.arguments
    listed = _listed(dict.fromkeys(options))
    if len(listed) == 1:
        return Call("equal", (value, listed[0]))
    return call.replaced("in", (value, *listed))


def _not(call: Call) -> Expression:
    match call.arguments[0]:
        case Call("not", (inner,)):
            return inner
        case Call(function, arguments) if function in NEGATED and len(arguments) == 2:
            return normal(Call(NEGATED[function], arguments))
    return call


def _compared(call: Call) -> Expression:
    left, right = call.arguments
    constant = isinstance(left, Literal), isinstance(right, Literal)
    if constant == (True, False) or (constant == (False, False) and call.function.startswith("greater")):
        return Call(FLIPPED[call.function], (right, left))
    return call


def _equal(call: Call) -> Expression:
    left, right = call.arguments
    if isinstance(left, Literal) and isinstance(right, Literal):
        sure = left == right and left.value is not None and call.function == "equal"
        return _TRUE if sure else call
    if isinstance(left, Literal) or (not isinstance(right, Literal) and _order(right) < _order(left)):
        return Call(call.function, (right, left))
    return call


_RULES: dict[str, Callable[[Call], Expression]] = {
    "and": _and,
    "or": _or,
    "not": _not,
    "in": _in,
    "equal": _equal,
    "not_equal": _equal,
    "is_distinct": _commutative,
    "is_not_distinct": _commutative,
    **dict.fromkeys(("less", "less_equal", "greater", "greater_equal"), _compared),
    **dict.fromkeys(("add", "multiply", "least", "greatest"), _commutative),
}
