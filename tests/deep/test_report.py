"""Whom a private net costs most: its report by group, beside a net without noise."""

import numpy as np
from torch import nn

from deep import torch
from sfumato.learn import report
from sfumato.learn.torch import private
from sfumato.testing import seeded


class Predicting:
    """A net as a report takes it: rows in, classes out."""

    def __init__(self, model):
        self.model, self.classes_ = model, np.array([0, 1])

    def predict(self, X):
        return self.model(torch.as_tensor(X, dtype=torch.float32)).argmax(1).numpy()


def applicants(count, seed):
    """One in twenty is from the island, where the score means the opposite."""
    draw = np.random.default_rng(seed)
    island, score = draw.random(count) < 0.05, draw.normal(size=count)
    rows = np.column_stack([score, island, score * island])
    return rows, ((score > 0) ^ island).astype(int), np.where(island, "island", "mainland")


def net():
    torch.manual_seed(1)
    return nn.Linear(3, 2)


def test_a_rare_group_loses_more_than_the_overall_figure_shows():
    (rows, paid_back, _), (test_rows, truth, home) = applicants(2000, 1), applicants(4000, 2)
    given = torch.as_tensor(rows, dtype=torch.float32), torch.as_tensor(paid_back)
    plain, noisy = net(), net()
    optimizer = torch.optim.Adam(plain.parameters(), 0.1)
    for _ in range(100):
        optimizer.zero_grad()
        nn.functional.cross_entropy(plain(given[0]), given[1]).backward()
        optimizer.step()
    with seeded("groups"):
        private(
            noisy, torch.optim.Adam(noisy.parameters(), 0.1), given, epsilon=1, delta=1e-5, size=2000,
            batch=500, epochs=10,
        ).fit()  # fmt: skip
    found = report(Predicting(noisy), test_rows, truth, groups={"home": home}, plain=Predicting(plain))
    few, many = found.group("home=island"), found.group("home=mainland")
    assert found.everybody.figures["accuracy"].value > 0.9
    assert few.figures["accuracy"].high < many.figures["accuracy"].low
    # Without noise both fare alike: it is the noise and the clip that cost the few.
    assert few.plain["accuracy"].value > 0.9
    assert few.lost.low > 0.1 > found.everybody.lost.value
    assert found.hardest_hit.group == "home=island"
