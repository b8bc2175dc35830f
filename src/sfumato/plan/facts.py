"""What declared bounds say about expressions: clamps, keys and normal forms come from it."""

from sfumato.plan.deduce import column_facts, domain_of, facts_of, resolve
from sfumato.plan.narrow import refine
from sfumato.plan.ranges import Facts

__all__ = ["Facts", "column_facts", "domain_of", "facts_of", "refine", "resolve"]
