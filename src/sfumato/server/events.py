"""What happens at the fronts, told to whoever watches: who did what, how it ended, nothing of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from sfumato._dataclasses import dataclass

__all__ = ["Event", "Watch", "all_of", "nobody"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A request or a statement that is over.

    Attributes:
        front: "http" or "postgresql".
        act: An address as it is documented, such as `POST /api/release`, or a kind of statement; never what
            the client wrote.
        status: The status of HTTP, or PostgreSQL's code of an error, 00000 where there was none.
        who: The account; empty if nobody has logged in.
        address: Where the client is.
        receipt: Of the debit whose answer was given, if one was.
        free: Whether that answer was on record.
        seconds: How long it took: for stewards alone, since a read's depends on the data.
    """

    front: str
    act: str
    status: str
    who: str = ""
    address: str = ""
    receipt: int | None = None
    free: bool = False
    seconds: float | None = None

    @property
    def refused_login(self) -> bool:
        """Whether it is a login that failed."""
        return self.status in ("401", "28P01", "28000")


Watch: TypeAlias = Callable[[Event], None]


def nobody(_: Event) -> None:
    """Watches nothing."""


def all_of(*watching: Watch) -> Watch:
    """Tells several."""

    def tell(event: Event) -> None:
        for watch in watching:
            watch(event)

    return tell
