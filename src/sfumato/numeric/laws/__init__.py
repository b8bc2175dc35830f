"""Laws: one direction of a dominating pair each, one family a file."""

from __future__ import annotations

from sfumato.numeric.laws.base import Law, Term
from sfumato.numeric.laws.gaussian import GAUSSIAN
from sfumato.numeric.laws.laplace import LAPLACE
from sfumato.numeric.laws.pure import DOUBLE, PURE

__all__ = ["DOUBLE", "GAUSSIAN", "LAPLACE", "PURE", "Law", "Term"]
