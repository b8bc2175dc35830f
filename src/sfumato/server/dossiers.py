"""What is on record about datasets, kept for as long as their ledger ends where it did."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.catalog import Catalog
    from sfumato.dossier import Facts
    from sfumato.ledger import Ledger
    from sfumato.session import Session

__all__ = ["Dossiers"]

_RELEASES = 20_000  # of all that is kept together


class Dossiers:
    """What was on record about datasets when it was last looked at.

    The ledger is verified each time. What was read of it is taken again where it ends in the same link of its
    chain, and so is the same; the rest is computed anew. It is for stewards and auditors, who may see all.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, int | None], tuple[Facts, Facts]] = OrderedDict()

    def facts(
        self,
        catalog: Catalog,
        ledger: Ledger,
        dataset: str,
        *,
        session: Callable[[], Session],
        latest: int | None = None,
    ) -> Facts:
        """What `dossier.facts` gives.

        Args:
            catalog: The steward's file.
            ledger: It is verified.
            dataset: Which one.
            session: The steward's, which tells the errors of answers.
            latest: Of how many answers, the newest first; None: of all.

        Raises:
            LedgerTampered: if the ledger does not verify.
        """
        from sfumato.dossier.facts import facts, with_errors

        with self._lock:
            before, _ = self._known.get((dataset, 0), (None, None))
            told = self._known.get((dataset, latest))
        plain = facts(catalog, ledger, dataset, known=before)
        if plain is not before:
            self._keep(dataset, 0, plain, plain)
        if latest == 0:
            return plain
        if told is not None and told[0] is plain:
            return told[1]
        made = with_errors(plain, ledger, session=session, latest=latest)
        self._keep(dataset, latest, plain, made)
        return made

    def _keep(self, dataset: str, latest: int | None, plain: Facts, made: Facts) -> None:
        with self._lock:
            self._known.pop((dataset, latest), None)
            self._known[dataset, latest] = plain, made
            while sum(1 + len(one.paid) for _, one in self._known.values()) > _RELEASES:
                self._known.popitem(last=False)
