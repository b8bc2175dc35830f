"""What `SET` changes: the price of what is asked next, and what drivers set on connecting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import delta_of, positive, probability
from sfumato.plan.expressions.names import nearest
from sfumato.server.wire.sqlstates import WireError

__all__ = ["REPORTED", "Settings", "on_or_off", "shown_name"]

_PRICES = ("sfumato.epsilon", "sfumato.delta", "sfumato.confidence", "sfumato.intervals")
_LONGEST, _MOST, _MOST_POINTS = 1000, 200, 50

_FIXED = {
    "server_version": "16.0 (sfumato)",
    "server_version_num": "160000",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "timezone": "UTC",
    "is_superuser": "off",
    "in_hot_standby": "off",
    "transaction_read_only": "on",
    "default_transaction_read_only": "on",
    "transaction_isolation": "read committed",
    "default_transaction_isolation": "read committed",
    "transaction_deferrable": "off",
    "max_identifier_length": "63",
    "lc_collate": "C",
    "lc_ctype": "C",
    "lc_messages": "C",
    "bytea_output": "hex",
    "array_nulls": "on",
    "max_index_keys": "32",
}
"""What does not change: a client may set these to what they are, and other values are ignored."""

_FREE = {
    "application_name": "",
    "search_path": "public",
    "extra_float_digits": "1",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "client_min_messages": "notice",
    "row_security": "on",
    "jit": "off",
    "geqo": "on",
    "escape_string_warning": "on",
    "synchronize_seqscans": "on",
    "enable_seqscan": "on",
    "work_mem": "4MB",
    "session_authorization": "",
}
"""What clients set and read back, and which changes nothing here."""

_ENCODINGS = {"utf8", "utf-8", "unicode", "sql_ascii", "auto"}

REPORTED = {
    "server_version": "server_version",
    "server_encoding": "server_encoding",
    "client_encoding": "client_encoding",
    "application_name": "application_name",
    "is_superuser": "is_superuser",
    "session_authorization": "session_authorization",
    "datestyle": "DateStyle",
    "intervalstyle": "IntervalStyle",
    "timezone": "TimeZone",
    "integer_datetimes": "integer_datetimes",
    "standard_conforming_strings": "standard_conforming_strings",
    "in_hot_standby": "in_hot_standby",
    "default_transaction_read_only": "default_transaction_read_only",
}
"""The settings that clients are told of when they connect, and how they are spelled then."""


def on_or_off(value: str) -> str:
    """A switch, as PostgreSQL writes it.

    Raises:
        InvalidParameter: if it is none.
    """
    word = value.strip().lower()
    if word in ("on", "true", "yes", "1"):
        return "on"
    if word in ("off", "false", "no", "0"):
        return "off"
    raise InvalidParameter(f"sfumato.intervals is on or off, not {value[:40]!r}.")


_CHECKS: Mapping[str, Callable[[str], object]] = {
    "sfumato.epsilon": lambda value: positive(value, "sfumato.epsilon"),
    "sfumato.delta": lambda value: delta_of(value, "sfumato.delta"),
    "sfumato.confidence": lambda value: probability(value, "sfumato.confidence"),
    "sfumato.intervals": on_or_off,
}


@dataclass(slots=True)
class _Point:
    """A savepoint: the settings as they were, and which of them are for the transaction alone.

    One that is made again under its name, with nothing set since, is the same, so many `times`.
    """

    name: str
    now: dict[str, str]
    local: set[str]
    times: int = 1


class Settings:
    """The settings of one connection, by names in small letters. A transaction that is rolled back undoes it.

    So does going back to a savepoint: a price that was set for a part of a transaction ends with that part.

    Nothing is a price that nobody set: without `sfumato.epsilon` there is none.
    """

    def __init__(self, user: str) -> None:
        self._first = {**_FREE, "sfumato.confidence": "0.95", "sfumato.intervals": "off"}
        self._first["session_authorization"] = user
        self._now = dict(self._first)
        self._before: dict[str, str] | None = None
        self._local: set[str] = set()
        self._points: list[_Point] = []

    def begin(self) -> None:
        """Remember what a rollback puts back."""
        self._before, self._local = dict(self._now), set()

    def end(self, *, undo: bool) -> None:
        """Put back what was set for the transaction alone, or all that was set in it."""
        before, self._before = self._before, None
        self._points.clear()
        if before is None:
            return
        names = set(before) | set(self._now) if undo else self._local
        for name in names:
            self._now.pop(name, None)
            if name in before:
                self._now[name] = before[name]

    def save(self, name: str) -> None:
        """Make a savepoint.

        Raises:
            WireError: outside a transaction, or where there are too many.
        """
        if self._before is None:
            raise WireError("25P01", "A savepoint is one of a transaction.", hint="Send BEGIN first.")
        last = self._points[-1] if self._points else None
        if last is not None and (last.name, last.now, last.local) == (name, self._now, self._local):
            last.times += 1
            return
        if len(self._points) >= _MOST_POINTS:
            raise WireError(
                "53400", f"A transaction has at most {_MOST_POINTS} savepoints here.", hint="RELEASE some."
            )
        self._points.append(_Point(name, dict(self._now), set(self._local)))

    def release(self, name: str) -> None:
        """Forget a savepoint, with those after it; what was set stays.

        Raises:
            WireError: if there is none of this name.
        """
        point = self._points[self._place(name)]
        point.times -= 1
        if not point.times:
            self._points.pop()

    def back(self, name: str) -> None:
        """Undo all that was set since a savepoint, which stays.

        Raises:
            WireError: if there is none of this name.
        """
        point = self._points[self._place(name)]
        self._now, self._local = dict(point.now), set(point.local)

    def _place(self, name: str) -> int:
        """The place of the last savepoint of a name, which is the last of all then."""
        place = next((at for at in reversed(range(len(self._points))) if self._points[at].name == name), None)
        if place is None:
            raise WireError("3B001", "There is no savepoint of this name.")
        del self._points[place + 1 :]
        return place

    def connect(self, name: str, value: str) -> None:
        """Take what the first message says; it is what RESET goes back to."""
        self.set(name, value.strip().strip("'\""))
        key = name.lower()
        if key in self._now:
            self._first[key] = self._now[key]

    def set(self, name: str, value: str | None, *, local: bool = False) -> None:
        """Set a value; None: the one that it had when the connection began.

        Raises:
            InvalidParameter: if it is no value for this name.
            WireError: if there is no such name under `sfumato.`, or an encoding is not UTF-8.
        """
        key = _known(name)
        if local and self._before is None:
            return  # as in PostgreSQL: it would last until the end of this statement
        if local:
            self._local.add(key)
        else:
            self._local.discard(key)
        if value is None:
            self._now.pop(key, None)
            if key in self._first:
                self._now[key] = self._first[key]
            return
        if key == "client_encoding" and value.strip().lower() not in _ENCODINGS:
            raise WireError("22023", "Texts are in UTF-8 here.", hint="SET client_encoding = 'UTF8'.")
        if key in _CHECKS:
            _CHECKS[key](value)
        if key not in _FIXED and (key in self._now or len(self._now) < _MOST):
            self._now[key] = value.strip()[:_LONGEST]

    def reset(self) -> None:
        """Set all as they were when the connection began."""
        self._now = dict(self._first)

    def get(self, name: str) -> str | None:
        """The value of a setting; None where a price is not set.

        Raises:
            WireError: if there is no such setting.
        """
        key = _known(name)
        if key in _FIXED:
            return _FIXED[key]
        if key not in self._now and key not in _PRICES:
            raise WireError("42704", f"There is no setting {name[:60]!r}.", hint="SHOW ALL lists them.")
        return self._now.get(key)

    def all(self) -> dict[str, str]:
        """All settings that have a value, by name."""
        return dict(sorted({**_FIXED, **self._now}.items()))

    @property
    def epsilon(self) -> Fraction | None:
        """The price of what is asked next; None: nobody set one."""
        value = self._now.get("sfumato.epsilon")
        return None if value is None else positive(value, "sfumato.epsilon")

    @property
    def delta(self) -> Fraction | None:
        """Its other half, if it was set."""
        value = self._now.get("sfumato.delta")
        return None if value is None else delta_of(value, "sfumato.delta")

    @property
    def confidence(self) -> Fraction:
        """At which intervals hold."""
        return probability(self._now["sfumato.confidence"], "sfumato.confidence")

    @property
    def intervals(self) -> bool:
        """Whether answers have the ends of intervals as columns."""
        return on_or_off(self._now["sfumato.intervals"]) == "on"


_MEANT = {
    "time zone": "timezone",
    "names": "client_encoding",
    "transaction isolation level": "transaction_isolation",
}


def _key(name: str) -> str:
    return _MEANT.get(" ".join(name.lower().split()), name.lower())


def shown_name(name: str) -> str:
    """The name of a setting as PostgreSQL spells it."""
    return REPORTED.get(_key(name), _key(name))


def _known(name: str) -> str:
    key = _key(name)
    if key.startswith("sfumato.") and key not in _PRICES:
        raise WireError(
            "42704", f"There is no setting {name[:60]!r}.", hint=nearest(key, _PRICES, "Settings")
        )
    return key
