"""Prepared statements and portals: the extended protocol, message by message."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from sfumato.server.wire import replies
from sfumato.server.wire.desk import Desk, Outcome
from sfumato.server.wire.encoding import copied, encoded, pieces
from sfumato.server.wire.kept import Portal, Prepared, weight_of
from sfumato.server.wire.messages import Bind, Close, Describe, Execute, Parse
from sfumato.server.wire.replies import Field
from sfumato.server.wire.sqlstates import WireError
from sfumato.server.wire.statements import statements
from sfumato.server.wire.types import decoded

__all__ = ["Extended", "notice"]

_FEW_BYTES, _EACH = 1 << 13, 8  # of values that are read at once, and what one counts for beside its bytes


def notice(text: str) -> bytes:
    """Something to say that is no error."""
    return replies.report(b"N", {"S": "NOTICE", "V": "NOTICE", "C": "00000", "M": text})


class Extended:
    """What one connection has prepared."""

    def __init__(self, desk: Desk, work: Callable[..., Awaitable[Any]]) -> None:
        self._desk, self._work, self._kept = desk, work, desk.kept
        self._portals = self._kept.portals

    def end(self) -> None:
        """Forget the portals, which last no longer than a transaction; one that nobody began ends here."""
        self._desk.ended()
        if self._desk.status == "I":
            self._portals.clear()

    async def answer(self, message: Any) -> AsyncIterator[bytes]:
        """What to send for one message."""
        match message:
            case Parse():
                yield await self._parse(message)
            case Bind():
                yield await self._bind(message)
            case Describe():
                yield await self._describe(message)
            case Execute():
                async for part in self._execute(message):
                    yield part
            case Close():
                if message.kind == "S":
                    self._kept.statements.pop(message.name)
                elif self._portals.pop(message.name) is None:
                    self._kept.cursors.pop(message.name)
                yield replies.CLOSE_COMPLETE

    async def _parse(self, message: Parse) -> bytes:

        def prepare() -> Prepared:
            found = statements(message.text)
            if len(found) > 1:
                raise WireError("42601", "A prepared statement is one statement.")
            return Prepared(found[0], self._desk.oids(found[0], message.oids))

        if not message.name:
            self._kept.statements.pop("")
        self._kept.prepare(message.name, await self._work(prepare))
        return replies.PARSE_COMPLETE

    async def _bind(self, message: Bind) -> bytes:
        prepared = self._kept.statements[message.statement]
        if message.portal and message.portal in self._portals:
            raise WireError("42P03", "There is a portal of this name.")
        if len(message.values) != len(prepared.oids):
            wanted, given = len(prepared.oids), len(message.values)
            raise WireError("08P01", f"The statement has {wanted} parameters; {given} values were given.")

        def bind() -> Portal:
            codes = _spread(message.formats, len(message.values))
            values = [decoded(*each) for each in zip(prepared.oids, codes, message.values, strict=True)]
            return Portal.of(prepared, values, message.results)

        large = sum(_EACH + len(value or b"") for value in message.values) > _FEW_BYTES
        portal = await self._work(bind) if large else bind()
        self._portals.pop(message.portal)
        self._portals.put(message.portal, portal, portal.size)
        return replies.BIND_COMPLETE

    async def _describe(self, message: Describe) -> bytes:
        if message.kind == "S":
            prepared = self._kept.statements[message.name]
            fields = await self._fields(prepared, None)
            head = replies.parameter_description(prepared.oids)
            return head + _described(fields, (0,))
        if message.name not in self._portals and message.name in self._kept.cursors:
            return _described(self._kept.cursors[message.name].fields, (0,))
        portal = self._portals[message.name]
        if portal.outcome is not None:
            return _described(portal.outcome.fields, portal.formats)
        return _described(await self._fields(portal.prepared, portal.values), portal.formats)

    async def _fields(self, prepared: Prepared, values: Sequence[Any] | None) -> list[Field] | None:
        statement = prepared.statement
        fields: list[Field] | None = await self._work(
            lambda: self._desk.fields(statement, prepared.oids, values),
            catalog=self._desk.asks_catalog(statement),
        )
        return fields

    async def _execute(self, message: Execute) -> AsyncIterator[bytes]:
        portal = self._portals[message.portal]
        if portal.prepared.statement.kind == "empty":
            yield replies.EMPTY_QUERY
            return
        statement, formats, most = portal.prepared.statement, portal.formats, message.most
        outcome = portal.outcome
        if outcome is not None:  # a login that was revoked meanwhile reads no more of it
            given = outcome
            await self._work(lambda: self._desk.check_more(statement, given))
        else:
            outcome = await self._run(message.portal, portal, most)
            for text in outcome.notices:
                yield notice(text)
        if outcome.layout is not None:
            self._sent(message.portal, portal, outcome)
            async for part in pieces(
                copied(outcome.layout, outcome.fields or [], outcome.rows), outcome.rows
            ):
                yield part
            yield replies.command_complete(outcome.tag)
            return
        fields = outcome.fields or []
        codes = _spread(formats, len(fields)) if fields else []
        end = min(len(outcome.rows), portal.sent + most) if most else len(outcome.rows)
        begin, portal.sent = portal.sent, end
        if end == len(outcome.rows):
            self._sent(message.portal, portal, outcome)
        rows = outcome.rows[begin:end]
        async for part in pieces(encoded(fields, codes, rows), rows):
            yield part
        if end < len(outcome.rows):
            yield replies.PORTAL_SUSPENDED
            return
        tag = f"SELECT {end - begin}" if outcome.tag.startswith("SELECT ") else outcome.tag
        yield replies.command_complete(tag)

    async def _run(self, name: str, portal: Portal, most: int) -> Outcome:
        """What a statement gives; it is weighed where the client will read it in parts."""
        statement, formats = portal.prepared.statement, portal.formats

        def run() -> tuple[Outcome, int]:
            outcome = self._desk.run(
                statement, portal.values, fits=lambda fields: _spread(formats, len(fields))
            )
            in_parts = outcome.layout is None and 0 < most < len(outcome.rows)
            return outcome, weight_of(outcome.fields, outcome.rows) if in_parts else 0

        outcome, size = await self._work(run, catalog=self._desk.asks_catalog(statement))
        self._desk.settle(outcome)
        self._portals.put(name, portal, portal.size + size)
        portal.outcome = replace(outcome, opens=None, sets=())
        return portal.outcome

    def _sent(self, name: str, portal: Portal, outcome: Outcome) -> None:
        """Let go of the rows of an answer that the client has, or is about to get, in full."""
        portal.outcome, portal.sent = replace(outcome, rows=[]), 0
        self._portals.put(name, portal, portal.size)


def _spread(formats: Sequence[int], count: int) -> list[int]:
    """One format for each value; none means text, one means all."""
    if len(formats) == count and count != 1:
        return list(formats)
    if len(formats) > 1:
        raise WireError("08P01", "There must be one format, or one for each value.")
    return [formats[0] if formats else 0] * count


def _described(fields: list[Field] | None, formats: Sequence[int]) -> bytes:
    if fields is None:
        return replies.NO_DATA
    return replies.row_description(fields, _spread(formats, len(fields)))
