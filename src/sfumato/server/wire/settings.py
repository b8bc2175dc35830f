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


@dataclass(frozen=True, slots=True)
class _Layers:
    """What is set for the session, and over it what is set for the transaction alone (None: to nothing).

    Neither is ever changed, only replaced: so whoever remembers them need not copy them.
    """

    session: Mapping[str, str]
    local: Mapping[str, str | None]

    def shown(self) -> dict[str, str]:
        """What holds, by name."""
        if not self.local:
            return dict(self.session)
        both = {**self.session, **self.local}
        return {name: value for name, value in both.items() if value is not None}


@dataclass(slots=True)
class _Point:
    """A savepoint, and the settings as they were.

    One that is made again under its name, with nothing set since, is the same, so many `times`.
    """

    name: str
    layers: _Layers
    times: int = 1


class Settings:
    """The settings of one connection, by names in small letters, as in PostgreSQL.

    Every statement is in a transaction: in one that the client began, or in one that ends with its message.
    What fails or is rolled back is undone, back to a savepoint where there is one; what was set for the
    transaction alone ends with it. So nobody pays a price that was set by what did not happen.

    Nothing is a price that nobody set: without `sfumato.epsilon` there is none.
    """

    def __init__(self, user: str) -> None:
        self._first = {**_FREE, "sfumato.confidence": "0.95", "sfumato.intervals": "off"}
        self._first["session_authorization"] = user
        self._take(_Layers(dict(self._first), {}))
        self._before: _Layers | None = None
        self._points: list[_Point] = []

    def _take(self, layers: _Layers) -> None:
        self._layers, self._now = layers, layers.shown()

    def begin(self) -> None:
        """Remember what a rollback puts back, unless a transaction began before."""
        if self._before is None:
            self._before = self._layers

    def end(self, *, undo: bool) -> None:
        """Put back what was set for the transaction alone, or all that was set in it."""
        before, self._before = self._before, None
        self._points.clear()
        if before is not None and undo:
            self._take(before)
        elif self._layers.local:
            self._take(_Layers(self._layers.session, {}))

    def save(self, name: str) -> None:
        """Make a savepoint.

        Raises:
            WireError: if there are too many.
        """
        last = self._points[-1] if self._points else None
        if last is not None and (last.name, last.layers) == (name, self._layers):
            last.times += 1
            return
        if len(self._points) >= _MOST_POINTS:
            raise WireError(
                "53400", f"A transaction has at most {_MOST_POINTS} savepoints here.", hint="RELEASE some."
            )
        self._points.append(_Point(name, self._layers))

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
        self._take(self._points[self._place(name)].layers)

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

    def check(self, name: str, value: str | None) -> str:
        """The key of a setting, which may have this value.

        Raises:
            InvalidParameter: if it is no value for this name.
            WireError: if there is no such name under `sfumato.`, or an encoding is not UTF-8.
        """
        key = _known(name)
        if value is not None and key == "client_encoding" and value.strip().lower() not in _ENCODINGS:
            raise WireError("22023", "Texts are in UTF-8 here.", hint="SET client_encoding = 'UTF8'.")
        if value is not None and key in _CHECKS:
            _CHECKS[key](value)
        return key

    def set(self, name: str, value: str | None, *, local: bool = False) -> None:
        """Set a value, for the transaction alone or for the session; None: the one of the beginning.

        What is set for the session takes the place of what was set for the transaction before.

        Raises:
            InvalidParameter: as `check`.
            WireError: as `check`.
        """
        key = self.check(name, value)
        if local and self._before is None:
            return
        known = {*self._layers.session, *self._layers.local}
        if key in _FIXED or (key not in known and len(known) >= _MOST):
            return
        value = self._first.get(key) if value is None else value.strip()[:_LONGEST]
        if local:
            self._take(_Layers(self._layers.session, {**self._layers.local, key: value}))
            return
        session = {name: said for name, said in self._layers.session.items() if name != key}
        if value is not None:
            session[key] = value
        over = {name: said for name, said in self._layers.local.items() if name != key}
        self._take(_Layers(session, over))

    def reset(self) -> None:
        """Set all as they were when the connection began, whatever the transaction has set for itself."""
        self._take(_Layers(dict(self._first), {}))

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
