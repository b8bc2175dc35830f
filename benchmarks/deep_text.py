"""A small language model tuned privately: loss against epsilon, beside the plain run and no tuning at all.

Both texts are made here. The public one comes from a grammar of 32 words in which each word allows a few
others; in the private one half of the words have other successors. A model learns the first without privacy
and is tuned on the second.
"""

from __future__ import annotations

import copy
import math
from fractions import Fraction

import numpy as np

from benchmarks.harness import Report

WORDS, PLACES, WIDTH, SIZE, RANK = 32, 16, 32, 4096, 4
EPSILONS = (1, 2, 8)
DELTA = Fraction(1, 100_000)
RATES = (0.005, 0.02)


def grammars() -> tuple[np.ndarray, np.ndarray]:
    """Chances of the next word: of the public text, and of the private one."""
    chance = np.random.default_rng(7)
    public = chance.dirichlet(np.full(WORDS, 0.08), WORDS)
    private = public.copy()
    private[: WORDS // 2] = chance.dirichlet(np.full(WORDS, 0.08), WORDS // 2)
    return public, private


def text(grammar: np.ndarray, records: int, seed: int) -> np.ndarray:
    """Records of words that follow a grammar."""
    chance = np.random.default_rng(seed)
    lines = np.empty((records, PLACES), np.int64)
    lines[:, 0] = chance.integers(0, WORDS, records)
    ends = grammar.cumsum(1)
    for place in range(1, PLACES):
        drawn = chance.random((records, 1)) > ends[lines[:, place - 1]]
        lines[:, place] = np.minimum(drawn.sum(1), WORDS - 1)
    return lines


def least(grammar: np.ndarray, lines: np.ndarray) -> float:
    """The loss of the grammar itself: no model has less, but for chance."""
    return float(-np.log(np.maximum(grammar[lines[:, :-1], lines[:, 1:]], 1e-300)).mean())


class Study:
    """The model, both texts, and what tuning one way or another gives."""

    def __init__(self) -> None:
        import torch

        torch.manual_seed(0)
        torch.set_num_threads(2)
        self.torch = torch
        public, private = grammars()
        self.rows, held = (torch.from_numpy(text(private, SIZE, seed)) for seed in (1, 2))
        self.held, self.least = held[:2048], least(private, held[:2048].numpy())
        self.base = _model()
        self._learn(self.base, torch.from_numpy(text(public, 2 * SIZE, 3)), 6, 0.005, 128)

    def loss(self, model: object) -> float:
        """Of the next word, on records that nobody learned from."""
        from sfumato.learn.torch import next_token

        with self.torch.no_grad():
            return float(next_token(model(self.held), self.held).mean())  # type: ignore[operator]

    def tuned(self, adapters: bool) -> object:
        """A copy of the model to be tuned: by adapters alone, or all of it."""
        self.torch.manual_seed(1)
        model = copy.deepcopy(self.base)
        return _adapted(model) if adapters else model

    def plain(self, adapters: bool) -> float:
        """The loss after tuning without privacy, at the better rate."""
        found = []
        for rate in RATES:
            model = self.tuned(adapters)
            self._learn(model, self.rows, 8, rate, 128)
            found.append(self.loss(model))
        return min(found)

    def private(self, epsilon: float, *, batch: int = 1024, epochs: int = 8, adapters: bool = True) -> float:
        """The loss after tuning privately, at the better of two rates; to choose one costs a run each."""
        from sfumato.learn.torch import next_token, private

        found = []
        for rate in RATES:
            model = self.tuned(adapters)
            trained = [each for each in model.parameters() if each.requires_grad]  # type: ignore[attr-defined]
            optimizer = self.torch.optim.Adam(trained, rate)
            run = private(
                model, optimizer, (self.rows, self.rows), objective=next_token, epsilon=epsilon, delta=DELTA,
                size=SIZE, batch=batch, epochs=epochs, clip=0.1,
                physical=min(1024, batch + 3 * math.isqrt(batch)),
            )  # type: ignore[arg-type]  # fmt: skip
            run.fit()
            found.append(self.loss(model))
        return min(found)

    def _learn(self, model: object, rows: object, epochs: int, rate: float, batch: int) -> None:
        from sfumato.learn.torch import next_token

        trained = [each for each in model.parameters() if each.requires_grad]  # type: ignore[attr-defined]
        optimizer = self.torch.optim.Adam(trained, rate)
        for _ in range(epochs):
            for part in self.torch.randperm(len(rows)).split(batch):  # type: ignore[arg-type]
                optimizer.zero_grad()
                next_token(model(rows[part]), rows[part]).mean().backward()  # type: ignore[operator, index]
                optimizer.step()


def _model() -> object:
    from torch import nn
    from torch.nn import functional

    class Language(nn.Module):
        """One block of attention."""

        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(PLACES, WIDTH)
            self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.three, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
            self.head = nn.Linear(WIDTH, WORDS)

        def forward(self, lines):  # type: ignore[no-untyped-def]
            x = self.words(lines) + self.places(_counted(lines))
            many = (len(lines), PLACES, 2, WIDTH // 2)
            q, k, v = (each.reshape(many).transpose(1, 2) for each in self.three(self.first(x)).chunk(3, -1))
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
            return self.head(x + self.down(functional.gelu(self.up(self.second(x)))))

    return Language()


def _counted(lines):  # type: ignore[no-untyped-def]
    import torch

    return torch.arange(lines.shape[1])[None]


def _adapted(model: object) -> object:
    from torch import nn

    class Adapted(nn.Module):
        """A frozen layer with a low-rank change beside it, which begins as none."""

        def __init__(self, frozen: nn.Linear) -> None:
            super().__init__()
            self.frozen = frozen
            self.before = nn.Linear(frozen.in_features, RANK, bias=False)
            self.after = nn.Linear(RANK, frozen.out_features, bias=False)
            nn.init.zeros_(self.after.weight)

        def forward(self, x):  # type: ignore[no-untyped-def]
            return self.frozen(x) + self.after(self.before(x))

    model.requires_grad_(False)  # type: ignore[attr-defined]
    for name in ("three", "out", "up", "down", "head"):
        setattr(model, name, Adapted(getattr(model, name)))
    return model


def tuning(report: Report) -> None:
    """Loss of the next word against epsilon, and what recovers it."""
    study = Study()
    none, limit = study.loss(study.base), study.least
    plain = study.plain(adapters=True)
    report.heading(f"loss of the next word, {SIZE:,} private records of {PLACES} words", "loss", "recovered")

    def row(case: str, who: str, loss: float) -> float:
        share = (none - loss) / (none - plain)
        report.row(case, who, f"{loss:.3f}", f"{share:.0%}", loss=loss, recovered=share)
        return share

    row("no tuning", "-", none)
    row("adapters, no privacy", "-", plain)
    row("all weights, no privacy", "-", study.plain(adapters=False))
    row("the grammar itself", "-", limit)
    shares = {each: row(f"adapters, epsilon {each}", "sfumato", study.private(each)) for each in EPSILONS}
    report.heading("epsilon 2, 8 epochs: what the batch does", "loss", "recovered")
    for batch in (128, 4096):
        row(f"batch {batch:,}", "sfumato", study.private(2, batch=batch))
    report.heading("epsilon 2, batch 1,024: epochs, and what is trained", "loss", "recovered")
    for epochs in (2, 24):
        row(f"{epochs} epochs", "sfumato", study.private(2, epochs=epochs))
    row("all weights, 8 epochs", "sfumato", study.private(2, adapters=False))
    report.figure("recovered by adapters at epsilon 8", shares[8], ">=", 0.5)


PARTS = (tuning,)
