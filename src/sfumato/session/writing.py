"""From a quote to files: paid for, drawn where the groups are, on record, and then to be seen."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato import random
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.purchase import Bought, Purchase
from sfumato.session.drawing import Drawing, refuse_unfit
from sfumato.session.written import Manifest, Written

if TYPE_CHECKING:
    from sfumato.ledger import Memo, Right
    from sfumato.plan.prices.quoting import Quote
    from sfumato.session.session import Session

__all__ = ["write"]

_SEED = 32


def write(session: Session, quote: Quote, memo: Memo, folder: str | Path, *, errors: bool) -> Written:
    """The answer to a quote as files of a folder, which appear there once the ledger has their digests.

    Privacy:
        Claim: the files carry `quote.loss`, see `Drawing`. They are written beside the folder, for this user
        alone, and moved there when they are on record. Of several threads and processes that ask at once one
        pays and has its files in place before the next one looks, which is given the same. If anything fails
        before they are on record, they are removed, and the price stays paid.

    Raises:
        InvalidParameter: if the folder has files, or nothing can be written beside it; nothing was spent.
        QueryRefused: if the question cannot be drawn group by group; nothing was spent.
        BudgetExceeded: if it does not fit; nothing was spent.
        EngineFailed: if the read fails; the price stays paid.
    """
    refuse_unfit(quote)
    if not session.vault.takes_parts:
        raise QueryRefused(
            "Noise is drawn part by part where the engine is Spark.",
            "Write .release(epsilon=0.5), which has the whole table here.",
        )
    place = Path(folder).absolute()
    questions = quote.recipe.questions

    def answer(right: Right) -> Manifest:
        draft = place.with_name(f".{place.name}.{random.token()}")
        draft.mkdir(mode=0o700)
        work = Drawing(quote, session.vault.kinds(quote.measured), random.salt(_SEED), errors)
        try:
            parts = session.vault.in_parts(questions, right, work, work.schema, draft)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return Manifest(str(place), str(draft), parts, quote.epsilon, quote.delta, quote.mechanism)

    windows = session.windows_of(quote.report)

    def check() -> None:
        session.vault.check(questions, quote.rows, windows=windows)
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise InvalidParameter(f'"{place.name}" has files already; give the name of a new folder.')
        try:
            trial = place.with_name(f".{place.name}.{random.token()}")
            trial.mkdir()
            trial.rmdir()
        except OSError:
            raise InvalidParameter(
                "Nothing can be written where the folder would be; make the folder above it."
            ) from None

    def choose(kept: Iterator[Bought[Manifest]]) -> Bought[Manifest] | None:
        asked = quote.epsilon, quote.delta, quote.mechanism
        same = (
            each for each in kept if (each.answer.epsilon, each.answer.delta, each.answer.mechanism) == asked
        )
        return next((each for each in same if each.answer.place() is not None), None)

    wanted = Purchase(
        dataset=session.dataset_of(quote.report).name,
        loss=quote.loss,
        fingerprint=_fingerprint(quote, errors=errors),
        memo=memo,
        answer=answer,
        write=Manifest.to_bytes,
        read_back=Manifest.from_bytes,
        choose=choose,
        reads=(quote.fingerprint,),
        check=check,
        windows=windows,
    )
    with session.ledger.turn(wanted.dataset, f"files {wanted.fingerprint}"):
        bought = session.buy(wanted)
        bought.answer.put(place)
    return Written(place, bought.answer, quote, bought.receipt, free=bought.free)


def _fingerprint(quote: Quote, *, errors: bool) -> str:
    """Of what is shown as well: the files have it, and not what was measured."""
    shown = [(column.name, repr(column.expression)) for column in quote.report.columns]
    facts = ["written", quote.fingerprint, shown, [repr(bar) for bar in quote.report.bars]]
    return hashlib.sha256(json.dumps([*facts, errors, str(quote.confidence)]).encode()).hexdigest()
