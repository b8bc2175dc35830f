"""Questions, quotes and answers on their way between two processes: plain data, and the same values again.

What travels is public or released: declarations, plans, prices and noisy measurements. Data that come from a
client are read by a list of what is allowed (`calls`); nothing that arrives names code to run.
"""

from importlib.metadata import version

__all__ = ["version_here"]


def version_here() -> str:
    """The version of Sfumato: what travels is made again by the same one alone."""
    return version("sfumato")
