"""`connect`: a session whose data, ledger and key are another machine's."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from datetime import date
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any
from urllib.parse import quote as _in_path

from sfumato.client.connection import Connection
from sfumato.client.documents import MOST_BYTES_READ
from sfumato.client.hindsight import looking_back, paid_of
from sfumato.client.kept import Kept
from sfumato.client.query import RemoteQuery, made_of
from sfumato.client.selection import RemoteSelection
from sfumato.errors import InvalidParameter, QueryRefused, ServerUnreachable, SfumatoError
from sfumato.ledger import Balance, Receipt
from sfumato.ledger.budget import amount
from sfumato.numeric.exact import as_integer
from sfumato.plan.expressions.names import NotAList, nearest, no_method
from sfumato.plan.questions.nodes import Report
from sfumato.plan.questions.paid_windows import windows_read
from sfumato.render import visible
from sfumato.schema import PrivateTable, Windows
from sfumato.schema.unit import window_of
from sfumato.session.carried import version_here
from sfumato.session.carried.answers import unpack_receipt
from sfumato.session.carried.balances import unpack_balance
from sfumato.session.carried.calls import Recorded
from sfumato.session.carried.tables import unpack_tables
from sfumato.session.carried.values import pack_scalar
from sfumato.session.query import Query
from sfumato.session.release import Release
from sfumato.session.session import Session
from sfumato.session.states import states_named
from sfumato.session.texts import Texts
from sfumato.sql.text.parameters import Values
from sfumato.sql.views import joined_view

__all__ = ["RemoteSession", "connect"]

_PAGE, _LONGEST = 1_000, 1_000  # receipts, and letters of a name
_BESIDE = "It is asked beside the data, not over HTTP: have the steward do it, or ask in SQL."


def connect(
    url: str,
    *,
    token: str,
    certificate: str | Path | None = None,
    timeout: float = 600.0,
    plain: bool = False,
) -> RemoteSession:
    """A session over HTTP, with the questions, answers and errors of `Session`.

    ```python
    with sf.connect("https://answers.example.org", token="sfu_…") as s:
        print(s.sql("SELECT COUNT(*) AS n FROM visits").quote(epsilon=0.1))
    ```

    Args:
        url: Where `sfumato serve` runs.
        token: What the steward gave; it is sent in a header, to this address alone.
        certificate: A PEM file with the certificate of a server that has signed its own; by default those
            that the system trusts are.
        timeout: How many seconds an answer may take.
        plain: Whether to send the token to another machine without TLS, where something else protects it.

    Raises:
        LoginFailed: if the token is not valid.
        ServerUnreachable: if no server of this version of Sfumato answers there.
        InvalidParameter: for an address that holds a token, or would show it to the network.
        MissingExtra: if the extra `client` is not installed.
    """
    connection = Connection(url, token, certificate=certificate, timeout=timeout, plain=plain)
    try:
        return RemoteSession(connection)
    except BaseException:
        connection.close()
        raise


class RemoteSession(NotAList):
    """Private tables on a server, asked in the name of whoever the token belongs to.

    Questions are understood here, by what is declared; the server reads, pays and keeps. There is neither a
    row nor a path nor the ledger's key in this process.

    Attributes:
        tables: The tables by name, as they are declared.
        analyst: In whose name it asks.
        connection: To the server.
        kept: What was made of its last answers.
    """

    _not_a_list = Session._not_a_list
    prepared: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """What of the tables was prepared is known on the server."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self._at = connection, dict[str, str]()
        begun = connection.get("/api/session")
        known = begun.get("version") if isinstance(begun, dict) else None
        if not isinstance(known, str):
            raise ServerUnreachable(f"What answers at {connection.address} is no server of Sfumato.")
        if known != version_here():
            known = visible(known[:20])
            raise ServerUnreachable(
                f"The server runs Sfumato {known}, and this is {version_here()}: install the same, "
                f"pip install sfumato=={known}."
            )
        self.analyst = visible(str(begun.get("analyst"))[:_LONGEST])
        self._windows = made_of(begun.get("windows") or {}, _windows, {})
        self._begin(made_of(begun.get("tables"), lambda data, _: unpack_tables(data), {}))

    def _begin(self, tables: Mapping[str, Any]) -> None:
        self.tables, self._texts, self.kept = MappingProxyType(dict(tables)), Texts(tables), Kept()

    def at(self, state: str, *, table: str | None = None) -> RemoteSession:
        """The same session about data as they were: an answer on record is free, any other is paid as usual.

        Raises:
            InvalidParameter: if there is no such state.
        """
        named, other = states_named(self.tables, state, table), copy(self)
        other._at = {"at": state} | ({} if table is None else {"at_table": table})
        other._begin({name: one.at(state) if name in named else one for name, one in self.tables.items()})
        return other

    def sql(self, text: str, parameters: Values = None) -> Query:
        """A question in SQL, also in GoogleSQL's or Snowflake's words; as `Session.sql`.

        Raises:
            QueryRefused: with the reason and the nearest thing that would work.
        """
        asking = self._texts.asked(text, parameters)
        try:
            if isinstance(parameters, Mapping):
                sent: Any = {"by": {name: pack_scalar(one) for name, one in parameters.items()}}
            else:
                sent = None if parameters is None else [pack_scalar(one) for one in parameters]
        except TypeError as error:
            raise InvalidParameter(f"A parameter cannot be sent: {error}.") from None
        return RemoteQuery(self, asking, text, sends={"sql": text, "parameters": sent, **self._at})

    def table(self, name: str) -> RemoteSelection:
        """A question in Python: `s.table("visits").group_by("country").agg(n=sf.count())`."""
        known = {spelling.lower(): spelling for spelling in self.tables}
        if str(name).lower() not in known:
            raise QueryRefused(
                f"There is no table {str(name)[:60]!r}.", nearest(str(name), list(self.tables), "Tables")
            )
        table = self.tables[known[name.lower()]]
        if not isinstance(table, PrivateTable):
            raise QueryRefused(f"{table.name} is public: read it directly.", "Ask a private table.")

        def ask(report: Report, calls: tuple[Recorded, ...]) -> Query:
            return RemoteQuery(self, report, sends={"table": table.name, **self._at}, calls=calls)

        return RemoteSelection(
            table,
            lambda report: ask(report, ()),
            related=lambda joins: joined_view(self.tables, table.name, joins),
            asks=ask,
        )

    def windows_of(self, report: Report) -> Windows | None:
        """The windows of time that a plan reads rows of, where the budget is for each; else None."""
        each, node = self._windows.get(report.child.table), report.child
        return None if each is None else windows_read(each, node.source, node.predicate, self.tables)

    def balance(self, dataset: str | None = None, *, window: Windows | str | date | None = None) -> Balance:
        """What is spent and left of a dataset's budget, by its own gate; of the own limit if there is one.

        Args:
            dataset: Its name; may be left out where there is one.
            window: Where the budget is for each window of time, of which: "2026-03", or one of its days.
        """
        names = sorted({table.dataset for table in self.tables.values() if isinstance(table, PrivateTable)})
        if dataset is None and len(names) > 1:
            raise InvalidParameter(f"Say which dataset's balance: one of {', '.join(names)}.")
        asked = names[0] if dataset is None else dataset
        when = window.names[0] if isinstance(window, Windows) else None if window is None else str(window)
        path = f"/api/session/balance/{_in_path(str(asked), safe='')}"
        told = self.connection.get(path, {"window": when})

        def losses() -> list[Any]:
            document = self.connection.get(f"{path}/losses", {"window": when})
            return made_of(document, lambda data, _: paid_of(data), {})

        return made_of(told, lambda data, _: looking_back(unpack_balance(data, losses)), {})

    def releases(self, *, after: int | Receipt = 0, most: int | None = None) -> list[Receipt]:
        """The receipts of what was paid in this name, oldest first; a steward's and an auditor's: all.

        Args:
            after: Only those after this receipt, or its number.
            most: At most so many.
        """
        begin = after.number if isinstance(after, Receipt) else as_integer(after, "after", least=0)
        size = None if most is None else as_integer(most, "most")
        found: list[Receipt] = []
        within = self.connection.allowing(MOST_BYTES_READ)  # for all pages together, however many there are
        while size is None or len(found) < size:
            page = self.connection.get("/api/receipts", {"after": begin, "most": _PAGE}, within=within)
            numbers, debits = made_of(page, _debits, {})
            if [begin, *numbers] != sorted({begin, *numbers}) or len(numbers) > _PAGE:
                raise ServerUnreachable(
                    f"{self.connection.address} sends other receipts than it was asked for: connect anew."
                )
            found += debits
            if len(numbers) < _PAGE:
                break
            begin = numbers[-1]
        return found[:size]

    def reread(self, receipt: int | Receipt) -> Release:
        """The answer of an own receipt again, free; as `Session.reread`."""
        number = receipt.number if isinstance(receipt, Receipt) else as_integer(receipt, "receipt")
        missing = f"There is no receipt {number}: s.releases() lists them."
        within = self.connection.allowing(MOST_BYTES_READ)
        document = self.connection.get(f"/api/session/receipts/{number}", missing=missing, within=within)
        return made_of(document, self.kept.release, self.tables)

    def close(self) -> None:
        """End the connection."""
        self.connection.close()

    def __getattr__(self, name: str) -> Any:
        local = name in vars(Session)
        raise no_method(self, "A session over HTTP", name, {name: _BESIDE} if local else {})

    def __repr__(self) -> str:
        """Such as `<Session of visits, as 'ada', at https://…: epsilon 1.5 of 2 left>`."""
        where = f"<Session of {', '.join(self.tables)}, as {self.analyst!r}, at {self.connection.address}"
        names = sorted({table.dataset for table in self.tables.values() if isinstance(table, PrivateTable)})
        try:
            balances = [self.balance(name) for name in names]
        except SfumatoError:
            return f"{where}: closed>"
        left = [
            f"epsilon {amount(one.remaining)} of {amount(one.epsilon)}" + (one.window and f" in {one.window}")
            for one in balances
        ]
        return f"{where}: {', '.join(left)} left>"

    def __enter__(self) -> RemoteSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _windows(data: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    """How long the windows of a table are that has a budget for each."""
    return {table: window_of(each, "each") for table, each in data.items()}


def _debits(page: Any, _: Mapping[str, Any]) -> tuple[list[int], list[Receipt]]:
    """The numbers of a page's receipts, and those of them that paid."""
    numbers = [as_integer(one["number"], "number") for one in page]
    return numbers, [unpack_receipt(one) for one in page if one["kind"] == "debit"]
