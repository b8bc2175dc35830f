"""The columns of a result that the builder asks for: keys, and expressions over aggregates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.assemble import Assembly, settled
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.plan.questions.terms import Agg

__all__ = ["Outputs", "first_of"]

_SHOWN = 10  # values in a message


@dataclass(frozen=True, slots=True)
class Outputs:
    """A question once its rows and keys are known.

    Attributes:
        assembly: Its keys and aggregates so far.
        names: What the keys are called.
        meant: Gives an expression over names as one over the columns of the source.
        units: The names that say whose the rows are.
    """

    assembly: Assembly
    names: tuple[str, ...]
    meant: Callable[[Expression], Expression]
    units: frozenset[str]

    @property
    def keys(self) -> list[tuple[str, Expression]]:
        """The columns that hold keys."""
        return [(name, Column(f"k{i}")) for i, name in enumerate(self.names)]

    def results(self, aggregates: Mapping[str, Agg]) -> list[tuple[str, Expression]]:
        """The keys and then these aggregates."""
        outputs = self.keys
        for name, aggregate in aggregates.items():
            called = {
                f"a{i}": self.assembly.aggregate(self._known(call)) for i, call in enumerate(aggregate.calls)
            }
            outputs.append((name, _renamed(aggregate.expression, called)))
        return outputs

    def check_open(self) -> None:
        """Refuse to find what is declared."""
        if not self.names:
            raise InvalidParameter('unique takes columns: .unique("city").')
        listed = [self.assembly.values(f"k{i}") for i in range(len(self.names))]
        if all(listed):
            name = self.names[0]
            raise QueryRefused(
                f"The values of {name} are declared, and so public: {first_of(listed[0])}.",
                f"Nothing is to be paid for them; .value_counts({name!r}) counts each.",
            )

    def _known(self, asked: AggregateCall) -> AggregateCall:
        """The aggregate as plans have it: a count of units has no argument, that of other values has."""
        if asked.function in ("count", "count_distinct") and self._is_unit(asked.argument):
            return AggregateCall(asked.function)
        if asked.function == "count_distinct":
            asked = replace(asked, function="count_values")
        argument, other = (
            None if expression is None else settled(self.meant(expression), self.assembly.rows)
            for expression in (asked.argument, asked.other)
        )
        return replace(asked, argument=argument, other=other)

    def _is_unit(self, argument: Expression | None) -> bool:
        return isinstance(argument, Column) and argument.name in self.units


def first_of(values: Sequence[object]) -> str:
    """The first of some values, for a message."""
    return ", ".join(map(str, values[:_SHOWN])) + (", …" if len(values) > _SHOWN else "")


def _renamed(expression: Expression, names: dict[str, str]) -> Expression:
    if isinstance(expression, Column):
        return Column(names[expression.name])
    if isinstance(expression, Literal):
        return expression
    return Call(expression.function, tuple(_renamed(argument, names) for argument in expression.arguments))
