"""The `Trainer` of `transformers` with private steps: one debit, and nothing of the records is shown."""

import json
import math

import pytest

import sfumato as sf
from deep import torch
from deep_text import adapted, columns, example, made, transformers
from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerMismatch
from sfumato.learn.torch.noise import Drawn
from sfumato.learn.torch.trainer import PrivateTrainer

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


class _Rows:
    """Dictionaries by number; how often they were read."""

    def __init__(self, records, shift=0):
        self.columns, self.records, self.read, self.shift = columns(max(records, 1)), records, 0, shift

    def __len__(self):
        return self.records

    def __getitem__(self, place):
        self.read += 1
        row = {name: value[place] for name, value in self.columns.items()}
        return {**row, "labels": torch.where(row["labels"] < 0, -100, (row["labels"] + self.shift) % 17)}


class _Watcher(transformers.TrainerCallback):
    """Everything that callbacks are shown."""

    def __init__(self):
        self.logs, self.events, self.given = [], [], set()

    def on_log(self, args, state, control, logs=None, **more):
        self.logs.append(dict(logs))
        self.given |= {name for name, value in more.items() if value is not None}

    def on_epoch_begin(self, *_, **__):
        self.events.append("begin")

    def on_epoch_end(self, *_, **__):
        self.events.append("end")


def _trainer(tmp_path, rows=None, model=None, settings=None, **more):
    arguments = {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "num_train_epochs": 2,
        "learning_rate": 0.05,
        "logging_steps": 1,
        "report_to": [],
        "disable_tqdm": True,
        "use_cpu": True,
        "save_strategy": "no",
        "log_level": "error",
    }
    watcher = _Watcher()
    trainer = PrivateTrainer(
        model or made("gpt2"),
        transformers.TrainingArguments(str(tmp_path / "out"), **arguments | (settings or {})),
        train_dataset=_Rows(30) if rows is None else rows,
        example=example(),
        callbacks=[watcher],
        **{"epsilon": 2, "delta": 1e-5, "size": 32} | more,
    )
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer, watcher


def _ledger(tmp_path):
    ledger = sf.Ledger.open(tmp_path / "text.ledger")
    if "notes" not in ledger.datasets():
        ledger.register("notes", {"unit": "row", "version": 1}, sf.Budget(epsilon=3, delta=1e-4))
    return ledger


def test_one_debit_pays_before_a_record_is_read(tmp_path):
    ledger, rows = _ledger(tmp_path), _Rows(30)
    trainer, _ = _trainer(tmp_path, rows, ledger=ledger, dataset="notes")
    assert rows.read == 0
    assert ledger.balance("notes").spent == 0
    out = trainer.train()
    assert ledger.balance("notes").spent == 2
    assert rows.read > 0
    assert out.global_step == 8, "two epochs of the declared size"
    assert math.isnan(out.training_loss)
    again, _ = _trainer(tmp_path, other := _Rows(30), ledger=ledger, dataset="notes")
    with pytest.raises(BudgetExceeded):
        again.train()
    assert other.read == 0


def test_what_is_shown_is_the_same_whatever_the_records_are(tmp_path):
    """Logs, states and files of runs over many, few and no records: only weights differ."""
    shown = []
    for records in (30, 3, 0):
        trainer, watcher = _trainer(
            tmp_path / str(records), _Rows(records), settings={"save_strategy": "epoch"}
        )
        trainer.train()
        state = json.loads((tmp_path / str(records) / "out/checkpoint-8/trainer_state.json").read_text())
        spent = json.loads((tmp_path / str(records) / "out/checkpoint-8/privacy.json").read_text())
        files = sorted(each.name for each in (tmp_path / str(records) / "out").rglob("*"))
        shown.append((watcher.logs, watcher.events, state, spent, files))
    assert json.dumps(shown[0]) == json.dumps(shown[1]) == json.dumps(shown[2])
    assert set(watcher.logs[0]) == {
        "learning_rate", "epsilon", "delta", "steps_taken", "steps_paid", "epoch",
    }  # fmt: skip
    assert watcher.given <= {"model", "optimizer", "lr_scheduler", "processing_class", "eval_dataloader"}
    assert watcher.events == ["begin", "end"] * 2


def test_public_records_are_evaluated_and_choose_a_checkpoint(tmp_path):
    settings = {
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "load_best_model_at_end": True,
        "save_total_limit": 1,
    }
    trainer, watcher = _trainer(tmp_path, settings=settings, eval_dataset=_Rows(8))
    trainer.train()
    assert sum("eval_loss" in each for each in watcher.logs) == 2
    assert trainer.state.best_model_checkpoint is not None
    kept = {each.name for each in (tmp_path / "out").iterdir()}
    assert kept <= {"checkpoint-4", "checkpoint-8"}


def test_private_records_are_not_evaluated(tmp_path):
    rows = _Rows(30)
    with pytest.raises(InvalidParameter, match="public records"):
        _trainer(tmp_path, rows, eval_dataset={"own": rows})
    trainer, _ = _trainer(tmp_path, rows)
    for wrong in (trainer.evaluate, trainer.predict):
        with pytest.raises(InvalidParameter, match="public records"):
            wrong(rows)
    with pytest.raises(InvalidParameter, match="own sampler"):
        trainer.get_train_dataloader()
    assert rows.read == 0


def test_a_checkpoint_carries_what_was_spent(tmp_path):
    ledger = _ledger(tmp_path)
    paid = {"ledger": ledger, "dataset": "notes"}
    stopped, _ = _trainer(tmp_path, settings={"save_steps": 3, "save_strategy": "steps"}, **paid)
    model = adapted(made("gpt2"), ["c_attn"])
    stopped, _ = _trainer(tmp_path, model=model, settings={"save_steps": 3, "save_strategy": "steps"}, **paid)
    stopped.add_callback(_Stops())
    stopped.train()
    kept = torch.load(tmp_path / "out/checkpoint-3/private.pt", weights_only=True)
    assert kept["run"]["taken"] == 3
    assert all("lora_" in name for name in kept["run"]["model"]), "frozen weights are not written again"
    fresh = adapted(made("gpt2"), ["c_attn"])
    again, _ = _trainer(tmp_path, model=fresh, **paid)
    again.train(resume_from_checkpoint=True)
    assert again.state.global_step == 8
    assert ledger.balance("notes").spent == 2, "the rest of the run was paid already"
    with pytest.raises(BudgetExceeded):
        _trainer(tmp_path, model=adapted(made("gpt2"), ["c_attn"]), **paid)[0].train()
    other, _ = _trainer(tmp_path, model=fresh, settings={"num_train_epochs": 3})
    with pytest.raises(LedgerMismatch):
        other.train(resume_from_checkpoint=str(tmp_path / "out/checkpoint-3"))
    with pytest.raises(InvalidParameter, match="no checkpoint"):
        other.train(resume_from_checkpoint=str(tmp_path))


class _Stops(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, **more):
        control.should_training_stop = state.global_step == 3


def test_steps_draw_their_own_records(tmp_path):
    trainer, _ = _trainer(tmp_path)
    sizes = []
    draw = type(trainer.run.sampler).draw
    trainer.run._descent.sampler = _Counted(trainer.run.sampler, draw, sizes)
    trainer.train()
    assert len(sizes) == 8
    assert len(set(sizes)) > 1, "batches of a Poisson sample differ in size"
    assert trainer.run.sampler.rate.as_integer_ratio() == (1, 4)


class _Counted:
    def __init__(self, sampler, draw, sizes):
        self.sampler, self.one, self.sizes = sampler, draw, sizes
        self.rate, self.steps = sampler.rate, sampler.steps

    def draw(self, records):
        drawn = self.one(self.sampler, records)
        self.sizes.append(len(drawn))
        return drawn


def test_it_learns_and_the_schedule_is_followed(tmp_path):
    rows = _Rows(64, shift=1)
    trainer, watcher = _trainer(
        tmp_path, rows, settings={"num_train_epochs": 12, "max_grad_norm": 1e-9}, epsilon=8, size=64
    )
    trainer.run._descent.noise.draw = lambda count: Drawn(lambda: torch.zeros(count, dtype=torch.int32))

    whole = rows.columns["labels"]
    data = {**rows.columns, "labels": torch.where(whole < 0, -100, (whole + 1) % 17)}

    def loss():
        with torch.no_grad():
            return float(trainer.model(**data).loss)

    before = loss()
    trainer.train()
    assert loss() < before - 0.1  # without noise, nothing but learning moves it
    rates = [each["learning_rate"] for each in watcher.logs]
    assert rates[0] > rates[-1]
    assert rates[-1] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"settings": {"label_smoothing_factor": 0.1}}, "label_smoothing_factor"),
        ({"settings": {"include_num_input_tokens_seen": "all"}}, "include_num_input_tokens_seen"),
        ({"settings": {"neftune_noise_alpha": 1.0}}, "neftune"),
        ({"size": 4}, "larger than the declared"),
    ],
)
def test_settings_that_would_mean_something_else_are_refused(tmp_path, more, words):
    with pytest.raises(InvalidParameter, match=words):
        _trainer(tmp_path, **more)


def test_a_search_is_refused(tmp_path):
    with pytest.raises(InvalidParameter, match="a run with a price"):
        _trainer(tmp_path)[0].train(trial=object())


def test_classes_have_an_objective_of_their_own(tmp_path):
    data = columns(20, classes=True)
    rows = [{name: value[at] for name, value in data.items()} for at in range(20)]
    trainer = PrivateTrainer(
        made("bert"),
        transformers.TrainingArguments(
            str(tmp_path), max_steps=2, per_device_train_batch_size=5, report_to=[], use_cpu=True,
            save_strategy="no", disable_tqdm=True,
        ),
        train_dataset=rows, example=example(classes=True), epsilon=2, delta=1e-5, size=20,
    )  # fmt: skip
    assert trainer.train().global_step == 2
    assert trainer.run._descent.engine.objective.__name__ == "cross_entropy"
