"""What declared bounds say about expressions: clamps, keys and normal forms come from it."""

from sfumato.plan.expressions.deduce import (
    column_facts,
    domain_of,
    facts_by_name,
    facts_of,
    resolve,
    size_of,
)
from sfumato.plan.expressions.narrow import refine
from sfumato.plan.expressions.ranges import Facts

__all__ = ["Facts", "column_facts", "domain_of", "facts_by_name", "facts_of", "refine", "resolve", "size_of"]
