"""`Accounts`: who may log in, the tokens they log in with, and how one is checked."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NoReturn, Self, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, LedgerTampered, LoginFailed
from sfumato.ledger import Ledger
from sfumato.ledger.names import new_name
from sfumato.random import salt
from sfumato.server.access.login import Login
from sfumato.server.access.logins import Logins
from sfumato.server.access.record import Ended, Record, put_right
from sfumato.server.access.remembered import Checked, Remembered
from sfumato.server.access.roles import Account, Role
from sfumato.server.access.scram import ITERATIONS, Exchange, ScramKeys, ScramVerifier, refused
from sfumato.server.access.tables import AccountRow, Tables, TokenRow, opened
from sfumato.server.access.tokens import ServerKey, draw, id_of, person
from sfumato.server.access.tries import Tries

__all__ = ["FRESH", "LIVE_TOKENS", "Accounts", "Listed", "TokenInfo", "Witness"]

FRESH = 2.0  # seconds for which a token that was checked is believed without another look
LIVE_TOKENS = 8  # of an account, at most; all are tried at a login
_DEFAULT, _SHORTEST, _LONGEST = timedelta(days=90), timedelta(seconds=1), timedelta(days=3660)


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """What anybody may know of a token.

    Attributes:
        id: The part of its text after `sfu_`.
        name: Whose it is.
        created: When it was issued.
        expires: When it ends.
        revoked: When the steward ended it; None if they did not.
    """

    id: str
    name: str
    created: datetime
    expires: datetime
    revoked: datetime | None = None

    def status(self, now: datetime) -> Literal["valid", "expired", "revoked"]:
        """What it is at a time."""
        if self.revoked is not None:
            return "revoked"
        return "valid" if now < self.expires else "expired"


Witness: TypeAlias = Callable[[Account, str], object]
"""Called with whose account an act is about, and a token's id or nothing, before the act is done for good.

What it raises undoes the act.
"""


@dataclass(frozen=True, slots=True)
class Listed:
    """An account with its tokens, oldest first."""

    account: Account
    created: datetime
    tokens: tuple[TokenInfo, ...]


class Accounts:
    """Accounts and tokens, kept beside a ledger; several processes may have them open.

    A token is 256 random bits from a generator that the operating system keys, shown once. What is kept of it
    is a keyed hash and the keys of SCRAM-SHA-256, which cannot be turned back. A token that was revoked, or
    whose account was removed, is refused at once by this process, and by all others within `FRESH` seconds.
    """

    def __init__(
        self, tables: Tables, key: ServerKey, *, clock: Callable[[], float], ticks: Callable[[], float]
    ) -> None:
        self._tables, self._key = tables, key
        self._clock, self._ticks = clock, ticks
        self._checked = Remembered(clock=clock, ticks=ticks)
        nobody, hidden = person(""), salt(32)
        self._nothing = (
            TokenRow("", nobody, 0, 0, None, hidden, hidden, hidden, hidden),
            AccountRow(nobody, "", Role.AUDITOR.value, 0, hidden),
        )
        self.tries = Tries(ticks=ticks)
        self.logins = Logins(tables, clock=clock, ticks=ticks, fresh=FRESH)

    @classmethod
    def open(
        cls,
        ledger: str | Path | None,
        *,
        state: Path | None = None,
        create: bool = True,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> Self:
        """The accounts that go with a ledger.

        Args:
            ledger: Where the ledger is: a path, beside which they have a file of their own (`.accounts`); the
                address of a PostgreSQL, where they are tables beside its own; None for some in memory.
            state: The folder of the ledger's key, where the server's (`.serverkey`) is, too.
            create: Make them if there are none.
            clock: The time of day, in seconds since 1970, by which tokens expire.
            ticks: A time that never goes back, by which checks are remembered and wrong tries forgotten.

        Raises:
            LedgerUnusable: if they cannot be opened, or their key is missing or open to others.
        """
        tables, key = opened(ledger, state, create=create)
        return cls(tables, key, clock=clock, ticks=ticks)

    @property
    def cookie_key(self) -> bytes:
        """What logins of the page are sealed with: the same for all processes of a server."""
        return self._key.cookies

    # ── the steward's acts

    def add(self, name: str, role: Role | str = Role.ANALYST, *, witness: Witness | None = None) -> Account:
        """A new account.

        Args:
            name: As the ledger has, or will have, the analyst.
            role: What they may do.
            witness: See there.

        Raises:
            InvalidParameter: if there is one by this name in any spelling, or the name or role cannot be.
        """
        known = _role(role)
        written = new_name(name, "The name of an account")
        who = person(written)
        row = AccountRow(who, written, known.value, int(self._clock()))
        with self._tables.writing():
            there = self._tables.account(who)
            if there is not None:
                raise InvalidParameter(
                    f"There is an account {there.name!r} already: remove it first to give it another role."
                )
            self._tables.add_account(replace(row, seal=row.sealed(self._key)))
            _tell(witness, row)
        return Account(written, known)

    def issue(
        self, name: str, expires: timedelta = _DEFAULT, *, witness: Witness | None = None
    ) -> tuple[str, TokenInfo]:
        """A new token of an account: its text, which is kept nowhere, and what may be known of it.

        Args:
            name: The account, in any spelling.
            expires: How long it is valid.
            witness: See there.

        Raises:
            InvalidParameter: if there is no such account, or it has `LIVE_TOKENS` that are live.
        """
        if not isinstance(expires, timedelta) or not _SHORTEST <= expires <= _LONGEST:
            raise InvalidParameter("A token is valid for 1 second to 3,660 days.")
        who, now = person(name), int(self._clock())
        with self._tables.writing():
            account = self._named(name)
            if len(self._tables.live(who, now, LIVE_TOKENS)) >= LIVE_TOKENS:
                raise InvalidParameter(
                    f"{account.name!r} has {LIVE_TOKENS} tokens that are valid: revoke one of them first."
                )
            label, text = draw()
            while self._tables.token(label) is not None:
                label, text = draw()
            scram = ScramKeys.of(text, self._key.salt(who), label=label)
            until = now + int(expires.total_seconds())
            hashed = self._key.token(text)
            row = TokenRow(label, who, now, until, None, hashed, scram.stored, scram.server)
            self._tables.add_token(replace(row, seal=row.sealed(self._key)))
            _tell(witness, account, row.id)
        return text, _info(row, account.name)

    def revoke(self, id: str, *, witness: Witness | None = None) -> TokenInfo:
        """Ends a token for good; to end it twice changes nothing, and is told to no witness.

        Raises:
            InvalidParameter: if there is no token with this id.
        """
        label = id_of(id) or id  # the whole text says it, too
        with self._tables.writing():
            found = self._tables.token(label) if label.isascii() and label.isalnum() else None
            if found is None:
                raise InvalidParameter("There is no token with this id: see sfumato account list.")
            row, account = found
            if row.revoked is None:
                row = replace(row, revoked=int(self._clock()))
                self._tables.revoke(row.id, int(self._clock()))
                _tell(witness, account, row.id)
        self._checked.forget(lambda checked: checked.token == row.id)
        return _info(row, account.name)

    def remove(self, name: str, *, witness: Witness | None = None) -> str:
        """Takes away an account and all of its tokens, and gives its name; what it spent stays on record.

        Raises:
            InvalidParameter: if there is no such account.
        """
        who = person(name)
        with self._tables.writing():
            # By what it is called, too: a record that was changed by other means may be under another name.
            rows = [row for row in self._tables.accounts() if row.person == who or row.name == name]
            for row in rows or [self._named(name)]:
                self._tables.remove(row.person)
                _tell(witness, row)
        removed = {row.person for row in rows}
        self._checked.forget(lambda checked: checked.person in removed)
        return rows[0].name

    def hold(self, ledger: Ledger) -> Ended:
        """Takes away what a ledger says has ended, such as what came back with an older copy of these."""
        with self._tables.writing():
            ended = put_right(self._tables, Record.of(ledger))
        self._checked.forget(
            lambda checked: checked.account.name in ended.accounts or checked.token in ended.tokens
        )
        return ended

    def list(self) -> tuple[Listed, ...]:
        """All accounts, with what may be known of their tokens.

        Raises:
            LedgerTampered: if one was changed by other means than these.
        """
        tokens: dict[str, list[TokenRow]] = {}
        for token in self._tables.tokens():
            tokens.setdefault(token.person, []).append(token)
        return tuple(self._listed(row, tokens.get(row.person, [])) for row in self._tables.accounts())

    def _listed(self, row: AccountRow, own: Sequence[TokenRow]) -> Listed:
        live = [token for token in own if token.revoked is None]
        if not row.holds(self._key) or not all(token.holds(self._key) for token in live):
            raise LedgerTampered(
                f"The record of the account {row.name[:40]!r} was changed by other means, and is refused at "
                "logins: remove the account, and add it again."
            )
        infos = tuple(_info(token, row.name) for token in own)
        return Listed(Account(row.name, _role(row.role)), _time(row.created), infos)

    def _named(self, name: str) -> AccountRow:
        row = self._tables.account(person(name))
        if row is None:
            raise InvalidParameter(f"There is no account {name[:40]!r}: see sfumato account list.")
        return row

    # ── logins

    def check(self, text: str, *, address: str = "") -> Account:
        """Whose token this is.

        Whatever is wrong with one, as much is computed and asked of the database, and the same is said.

        Args:
            text: The whole token.
            address: Where it came from, to count wrong ones; from nowhere, none are counted.

        Raises:
            LoginFailed: if it is not valid.
            TooManyTries: if it is not, and too many from there were not. Behind a proxy all clients have one
                address, and a stranger there must not keep out the others: one that is valid is kept out only
                by wrong tries with its own id, and not if this process has found it valid before.
        """
        given = text if isinstance(text, str) else ""
        digest, label = self._key.token(given), id_of(given)
        known = self._checked.fresh(digest)
        if known is not None:
            return known
        if address and digest not in self._checked:
            self.tries.admit_name(address, label)
        begun, found = self._ticks(), self._found(label)
        try:
            checked = self._live(found, digest, begun)
        except LoginFailed:
            self._checked.drop(digest)
            if address:
                self.tries.refuse(address, label, known=found is not None)
            raise
        self._checked.keep(label, checked)
        return self._checked.keep(digest, checked)

    def recent(self, text: str) -> Account | None:
        """Whose token this is, if `check` found it valid within `FRESH` seconds; asks no database."""
        return self._checked.fresh(self._key.token(text))

    def named(self, name: str) -> Account:
        """The account with just this name, whom somebody else vouches for.

        Raises:
            LoginFailed: if there is none.
        """
        row = self._tables.account(person(name))
        if row is None or not row.holds(self._key) or row.name != name:
            raise refused()
        return Account(row.name, _role(row.role))

    def current(self, id: str) -> Account:
        """Whose token has this id, while it is valid: to be asked again during a long connection.

        Raises:
            LoginFailed: if it was revoked or has expired since.
        """
        known = self._checked.fresh(id)
        if known is not None:
            return known
        begun = self._ticks()
        return self._checked.keep(id, self._live(self._found(id), None, begun))

    def was_current(self, id: str) -> bool:
        """Whether this process has found the token with this id valid before."""
        return id in self._checked

    def verifier(self, login: str, *, address: str = "") -> ScramVerifier:
        """What a SCRAM login by a name is held against: any live token of the account is its password.

        All tokens of a name have one salt, which follows from the server's key and the name, so that it is
        the same before there is such an account and after. Each verifier has `LIVE_TOKENS` keys, those that
        are none of a token made up by the server's key: names cannot be probed.

        Raises:
            TooManyTries: if too many logins by this name from this address were wrong.
        """
        who = person(login)
        if address:
            self.tries.admit(address, who)
        rows = self._tables.live(who, self._clock(), LIVE_TOKENS)
        keys = []
        for number in range(LIVE_TOKENS):
            row = rows[number] if number < len(rows) else self._nothing[0]
            real, mock = ScramKeys(row.id, row.stored, row.server), self._key.mock(who, number)
            keys.append(real if row.holds(self._key) else mock)
        return ScramVerifier(self._key.salt(who), ITERATIONS, tuple(keys))

    def login(self, name: str, *, address: str = "", binding: bytes | None = None) -> Login:
        """A SCRAM login by a name, with wrong ones counted.

        Where too many by this name from this address were wrong, it still goes to its end, and succeeds only
        with a token that this process has found valid before: a stranger who shares the address of somebody,
        and knows their name, must not keep them out. All others are told to wait.
        """
        return Login(self, name, Exchange(self.verifier(name), binding=binding), address)

    def _found(self, label: str) -> tuple[TokenRow, AccountRow] | None:
        return self._tables.token(label if label.isascii() and label.isalnum() else "")

    def _live(self, found: tuple[TokenRow, AccountRow] | None, digest: bytes | None, begun: float) -> Checked:
        """That a token, as it was found, is live, and has this hash if one is given."""
        now = self._clock()
        token, owner = self._nothing if found is None else found
        right = hmac.compare_digest(token.hash if digest is None else digest, token.hash)
        sealed = token.holds(self._key)
        owned = owner.holds(self._key)
        if not (right & sealed & owned & token.live(now)):
            raise refused()
        account = Account(owner.name, _role(owner.role))
        return Checked(token.id, owner.person, account, token.expires, begun + FRESH)

    # ── the end

    def close(self) -> None:
        """Lets go of the database."""
        self._checked.forget(lambda _: True)
        self._tables.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("Accounts are not pickled: open them where they are needed.")


def _role(role: Role | str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise InvalidParameter(f"A role is one of {', '.join(known.value for known in Role)}.") from None


def _tell(witness: Witness | None, row: AccountRow, token: str = "") -> None:
    if witness is not None:
        witness(Account(row.name, _role(row.role)), token)


def _info(row: TokenRow, name: str) -> TokenInfo:
    revoked = None if row.revoked is None else _time(row.revoked)
    return TokenInfo(row.id, name, _time(row.created), _time(row.expires), revoked)


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
