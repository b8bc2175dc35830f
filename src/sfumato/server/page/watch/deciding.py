"""`/watch/acts`: what a steward decides about budgets and limits, each with a reason, on record by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.ledger import Budget
from sfumato.numeric.exact import positive
from sfumato.server.access import Account, Act
from sfumato.server.http.governing import Done, Figures, Governing
from sfumato.server.page.common import Common
from sfumato.server.page.forms import fields, number_in, reason_in, status_of
from sfumato.server.page.looks import asker
from sfumato.server.page.once import Once
from sfumato.server.page.watch.standing import Standing
from sfumato.server.page.watch.told import Told

__all__ = ["Deciding"]

_MOST_SAID, _LONGEST = 50, 64


@dataclass(frozen=True, slots=True)
class _Deed:
    """One kind of act.

    Attributes:
        run: Does it, by whom, with the fields of its form.
        sure: What is asked first where it cannot be undone; empty: nothing.
        button: What the answer to that is called.
    """

    run: Callable[[str, Mapping[str, str]], Done]
    sure: str = ""
    button: str = ""


class Deciding:
    """Forms for stewards alone: nobody else sees them, or can send one."""

    def __init__(self, common: Common) -> None:
        self._common, self._house, self._run = common, common.house, common.aside
        self._governing, self._once = Governing(common.house), Once()
        self._deeds = {
            "raise": _Deed(
                self._raise,
                "A budget that was raised cannot be lowered once something is spent: the larger one then "
                "holds for everything, earlier answers included.",
                "Raise it",
            ),
            "limit": _Deed(self._limit),
            "allot": _Deed(self._allot),
            "take-back": _Deed(self._take_back),
            "revoke": _Deed(self._revoke),
            "give": _Deed(
                self._give,
                "What was given to all cannot be taken back: whoever reads it has it.",
                "Give it to all",
            ),
            "close": _Deed(
                self._close,
                "A closed budget stays closed: nothing more can be asked of this dataset, ever.",
                "Close it for good",
            ),
        }

    def add_to(self, app: FastAPI) -> None:
        """Makes the addresses known."""
        app.add_api_route("/watch/acts", self.shown, methods=["GET"], response_model=None)
        app.add_api_route("/watch/acts/{act}", self.sent, methods=["POST"], response_model=None)

    async def shown(self, request: Request) -> Response:
        """The forms, and on top of them what was done last."""
        who = asker(request)
        who.needs(Act.GOVERN)
        asked = request.query_params
        first, last = (number_in(asked.get(name, "")) for name in ("done", "to"))

        def said() -> list[Told]:
            found = islice(self._house.record(None, after=first - 1), min(last - first + 1, _MOST_SAID))
            return [Told(receipt) for receipt in found if receipt.number <= last]

        told = await self._run(said) if 0 < first <= last else []
        return await self._page(request, asked, told=told)

    async def sent(self, request: Request, act: str) -> Response:
        """Does what a form says, or asks whether it is really meant."""
        who = asker(request)
        who.needs(Act.GOVERN)
        deed = self._deeds.get(act)
        if deed is None:
            raise HTTPException(404)
        values = fields(await request.body())
        dataset = values.get("dataset", "")
        self._governing.refuse_unknown(dataset)
        try:
            reason_in(values)
            if deed.sure and values.get("sure") != "yes":
                return self._asked(request, act, deed, values)
            again = self._once.begin(who, act, values, _address(dataset))
            if again is not None:
                return RedirectResponse(again, 303)
            where = await self._done(who, deed, values, dataset)
        except SfumatoError as error:
            return await self._page(request, values, act=act, wrong=error)
        self._once.done(who, act, values, where)
        return RedirectResponse(where, 303)

    async def _done(self, who: Account, deed: _Deed, values: Mapping[str, str], dataset: str) -> str:
        try:
            done = await self._run(lambda: deed.run(who.name, values))
        except BaseException:
            self._once.failed(who, values)
            raise
        numbers = [receipt.number for receipt in done.receipts]
        return _address(dataset, *((min(numbers), max(numbers)) if numbers else ()))

    def _asked(self, request: Request, act: str, deed: _Deed, values: Mapping[str, str]) -> Response:
        """Whether it is really meant."""
        kept = {name: value for name, value in values.items() if name not in ("form", "sure")}
        return self._common.looks.page(
            request,
            "watch_confirm.html",
            tab="/watch/acts",
            title=f"{deed.button}: {values.get('dataset', '')}?",
            sure=deed.sure,
            button=deed.button,
            action=f"/watch/acts/{act}",
            back=_address(values.get("dataset", "")),
            kept=kept,
            named=[(name, value) for name, value in kept.items() if value and name != "once"],
        )

    async def _page(
        self,
        request: Request,
        values: Mapping[str, str],
        *,
        told: list[Told] | None = None,
        act: str = "",
        wrong: SfumatoError | None = None,
    ) -> Response:
        """The forms of one dataset, filled in as they were sent where something was wrong."""
        names = self._house.datasets
        dataset = values.get("dataset", "") if values.get("dataset", "") in names else (names or [""])[0]

        def work() -> dict[str, Any]:
            ledger = self._house.ledger
            if not dataset:
                return {"one": None, "analysts": []}
            seats = [Standing(ledger.balance(dataset, name)) for name in ledger.analysts(dataset)]
            return {"one": Standing(ledger.balance(dataset)), "analysts": seats}

        return await self._common.looks.made(
            request,
            "watch_acts.html",
            status_of(wrong),
            tab="/watch/acts",
            datasets=names,
            dataset=dataset,
            told=told or [],
            act=act,
            wrong="" if wrong is None else str(wrong),
            values=values if act else {"analyst": values.get("analyst", "")},
            once=self._once.word,
            **await self._run(work),
        )

    # ── each of them

    def _raise(self, by: str, values: Mapping[str, str]) -> Done:
        return self._governing.raise_budget(by, values["dataset"], _figures(values), reason=reason_in(values))

    def _limit(self, by: str, values: Mapping[str, str]) -> Done:
        analyst = values.get("analyst", "").strip()
        return self._governing.limit(
            by, values["dataset"], analyst, _figures(values), reason=reason_in(values)
        )

    def _allot(self, by: str, values: Mapping[str, str]) -> Done:
        dataset = values["dataset"]
        (budget,) = (known.budget for known in self._house.ledger.datasets() if known.name == dataset)
        limits = _limits(values.get("limits", ""), budget)
        return self._governing.allot(by, dataset, limits, reason=reason_in(values))

    def _take_back(self, by: str, values: Mapping[str, str]) -> Done:
        return self._governing.take_back(by, values["dataset"], reason=reason_in(values))

    def _revoke(self, by: str, values: Mapping[str, str]) -> Done:
        analyst = values.get("analyst", "").strip()
        return self._governing.revoke(by, values["dataset"], analyst, reason=reason_in(values))

    def _give(self, by: str, values: Mapping[str, str]) -> Done:
        numbers = [
            number_in(part.lstrip("#")) for part in values.get("receipts", "").replace(",", " ").split()
        ]
        if not numbers or not all(numbers):
            raise InvalidParameter("Say which answers: the numbers of the receipts that paid for them.")
        return self._governing.give(by, values["dataset"], numbers, reason=reason_in(values))

    def _close(self, by: str, values: Mapping[str, str]) -> Done:
        return self._governing.close(by, values["dataset"], reason=reason_in(values))


def _figures(values: Mapping[str, str]) -> Figures:
    epsilon, delta = (_whole(values.get(name, "")) for name in ("epsilon", "delta"))
    if not epsilon:
        raise InvalidParameter("Say how much may be spent in all: an epsilon, such as 2 or 0.5.")
    return epsilon, delta or None


def _whole(text: str) -> str:
    """A number as it was written: one that is cut would be another."""
    number = text.strip()
    if len(number) > _LONGEST:
        raise InvalidParameter(f"A number has at most {_LONGEST} characters.")
    return number


def _limits(text: str, budget: Budget) -> dict[str, Figures | None]:
    """What a line each says: `ada: 2`, `ada: 2, 1e-7` with a delta, `ada: -` for nothing more.

    Where a line names no delta and those of all analysts add up, it is the same share as that of epsilon.
    """
    limits: dict[str, Figures | None] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, numbers = line.rpartition(":" if ":" in line else " ")
        name, (epsilon, _, delta) = name.strip(), numbers.partition(",")
        if not name or not epsilon.strip():
            raise InvalidParameter("Write a name and an epsilon on each line, such as ada: 2")
        if name in limits:
            raise InvalidParameter(f"{name[:40]!r} is there twice: give each analyst once.")
        limits[name] = _figures_of(_whole(epsilon), _whole(delta), budget)
    if not limits:
        raise InvalidParameter("Write a name and an epsilon on each line, such as ada: 2")
    return limits


def _figures_of(epsilon: str, delta: str, budget: Budget) -> Figures | None:
    if epsilon in ("-", "–"):
        return None
    if delta or budget.accountant != "basic":
        return epsilon, delta or None
    share = positive(epsilon, "epsilon") / budget.epsilon
    return epsilon, min(share, Fraction(1)) * budget.delta


def _address(dataset: str, *done: int) -> str:
    names: dict[str, object] = {"dataset": dataset} | dict(zip(("done", "to"), done, strict=False))
    return f"/watch/acts?{urlencode(names)}"
