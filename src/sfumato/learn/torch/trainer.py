"""`PrivateTrainer`: the `Trainer` of `transformers` with private steps (extra `transformers`)."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import nn

from sfumato.errors import InvalidParameter, MissingExtra
from sfumato.learn.torch.checking import check_data, kind_of
from sfumato.learn.torch.named import Named
from sfumato.learn.torch.objectives import cross_entropy, next_token, squared_error
from sfumato.learn.torch.recording import Objective
from sfumato.learn.torch.runs import Private, private
from sfumato.ledger import Counter
from sfumato.numeric.exact import Rational

if find_spec("transformers") is None or find_spec("accelerate") is None:
    raise MissingExtra("PrivateTrainer needs transformers: pip install 'sfumato[transformers]'.")

from transformers import Trainer, TrainerState, TrainingArguments
from transformers.trainer_utils import TrainOutput, get_last_checkpoint

__all__ = ["PrivateTrainer"]

Tensor: TypeAlias = torch.Tensor
_CHECKPOINT = "private.pt"
_SPENT = "privacy.json"
_CARD = "PRIVACY.md"


class PrivateTrainer(Trainer):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """Trains as `Trainer` does, in private steps that one debit pays for.

    ```python
    trainer = PrivateTrainer(
        model, TrainingArguments("out", per_device_train_batch_size=64, gradient_accumulation_steps=16,
                                 num_train_epochs=3, learning_rate=1e-3),
        train_dataset=private_rows, eval_dataset=public_rows,
        example={"input_ids": zeros, "attention_mask": zeros, "labels": zeros},
        epsilon=8, delta=1e-6, size=50_000, ledger=ledger, dataset="notes",
    )
    trainer.train()
    ```

    A step expects `per_device_train_batch_size × gradient_accumulation_steps` records, drawn each by a coin
    of its own, and as many as the first of these pass at once. Epochs are of the declared size. What
    `TrainingArguments` say of the optimizer, the schedule, logging, saving and evaluation holds;
    `max_grad_norm`, loaders and collators of training data do not.

    Args:
        model: What is trained: all of it, or its adapters.
        args: As for `Trainer`.
        train_dataset: Private: it gives dictionaries by number.
        eval_dataset: Public: what is computed on it is shown, and may stop the run or choose a checkpoint.
        example: One made-up record, by name: of which shape and type records are.
        epsilon: What the whole run costs.
        delta: Likewise.
        size: How many records there are about, as a public number.
        clip: What one record's gradient is cut to.
        objective: From logits and labels to a loss for each record; by default that of the model's kind.
        labels: Which of the names is that of labels.
        ledger: Which ledger pays.
        dataset: Whose budget pays.
        analyst: In whose name.
        compiled: Whether passes are compiled.
        processing_class: As for `Trainer`.
        data_collator: As for `Trainer`, for evaluation.
        compute_metrics: Likewise.
        callbacks: As for `Trainer`; they see what is logged, and never a batch.
        optimizers: As for `Trainer`.

    Privacy:
        Claim: the model after each step, checkpoints, logs and what callbacks see of `state` are (epsilon,
        delta)-differentially private for one record. Proof: the model is `Private`'s; logs and `state` hold
        numbers of the settings and what is computed of the model on public data. No training loss, gradient
        norm, size of a batch or of the data set is computed.
    """

    control: Any

    def __init__(
        self,
        model: nn.Module,
        args: TrainingArguments,  # type: ignore[no-any-unimported, unused-ignore]
        *,
        train_dataset: Any,
        example: Mapping[str, Tensor],
        epsilon: Rational,
        delta: Rational,
        size: int,
        eval_dataset: Any = None,
        clip: Rational = 1,
        objective: Objective | None = None,
        labels: str = "labels",
        ledger: Counter | None = None,
        dataset: str = "",
        analyst: str | None = None,
        compiled: bool = False,
        processing_class: Any = None,
        data_collator: Any = None,
        compute_metrics: Callable[[Any], dict[str, Any]] | None = None,
        callbacks: list[Any] | None = None,
        optimizers: tuple[Any, Any] = (None, None),
    ) -> None:
        _check_kinds(model, args, train_dataset, optimizers)
        _check(args)
        super().__init__(
            model,
            args,
            data_collator=data_collator,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            compute_metrics=compute_metrics,
            callbacks=callbacks,
            optimizers=optimizers,
        )
        self._private_rows = train_dataset
        self._public(eval_dataset)
        named, batch = Named(model, example, labels=labels), self._batch()
        trains = {"steps": args.max_steps} if args.max_steps > 0 else {"epochs": args.num_train_epochs}
        self.create_optimizer()
        mode = model.training
        model.train()  # as in each step: so it is looked at
        self.run: Private = private(
            named,
            self.optimizer,
            named.records(train_dataset),
            example=named.example,
            objective=objective or _objective(model, named.example[1]),
            epsilon=epsilon,
            delta=delta,
            size=size,
            batch=batch,
            clip=clip,
            physical=min(batch, args.per_device_train_batch_size),
            amp=torch.bfloat16 if args.bf16 else None,
            compiled=compiled,
            ledger=ledger,
            dataset=dataset,
            analyst=analyst,
            **trains,
        )
        model.train(mode)
        self.create_scheduler(num_training_steps=self.run.steps)
        self._saved = list[Path]()

    def train(
        self,
        resume_from_checkpoint: str | bool | None = None,
        trial: Any = None,
        ignore_keys_for_eval: list[str] | None = None,
    ) -> Any:
        """All steps that are left; the first of them pays for the whole.

        Raises:
            BudgetExceeded: if the run does not fit into the budget; nothing is read.
        """
        if trial is not None:
            raise InvalidParameter("Each trial of a search is a run with a price: make a trainer for each.")
        self.is_in_train = True
        self.state = TrainerState(train_batch_size=self._train_batch_size, max_steps=self.run.steps)
        self.state.compute_steps(self.args, self.run.steps)
        self.state.num_train_epochs = math.ceil(self.run.steps * self.run.sampler.rate)
        if resume_from_checkpoint:
            self._resume(resume_from_checkpoint)
        self._tell("on_train_begin")
        each = math.ceil(1 / self.run.sampler.rate)
        while self.run.left and not self.control.should_training_stop:
            if self.state.global_step % each == 0:
                self._tell("on_epoch_begin")
            self._step(ignore_keys_for_eval)
            if self.state.global_step % each == 0 or not self.run.left:
                self._tell("on_epoch_end")
                self._follow(ignore_keys_for_eval)
        if self.args.load_best_model_at_end and self.state.best_model_checkpoint is not None:
            self._load_best_model()
        self._tell("on_train_end")
        self.is_in_train = False
        return TrainOutput(self.state.global_step, math.nan, self._spent())

    def _step(self, ignored: list[str] | None) -> None:
        self._tell("on_step_begin")
        self.model.train()
        self.run.step()
        self.lr_scheduler.step()
        self.state.global_step = self.run.taken
        self.state.epoch = float(self.run.taken * self.run.sampler.rate)
        self._tell("on_step_end")
        self._follow(ignored)

    def _follow(self, ignored: list[str] | None) -> None:
        """What the settings and callbacks want after a step: to log, to evaluate, to save."""
        if self.control.should_log:
            self.control.should_log = False
            self.log({"learning_rate": self._get_learning_rate(), **self._spent()})
        better = False
        if self.control.should_evaluate:
            self.control.should_evaluate = False
            metrics = self.evaluate(ignore_keys=ignored)
            better = self._determine_best_metric(metrics=metrics, trial=None)
        if self.control.should_save or (better and self.args.save_strategy == "best"):
            self.control.should_save = False
            self._save_run()
            self._tell("on_save")

    def _tell(self, event: str) -> None:
        handler = self.callback_handler
        handler.model, handler.optimizer, handler.lr_scheduler = self.model, self.optimizer, self.lr_scheduler
        self.control = getattr(handler, event)(self.args, self.state, self.control)

    def _spent(self) -> dict[str, Any]:
        return {
            "epsilon": float(self.run.epsilon),
            "delta": float(self.run.delta),
            "steps_taken": self.run.taken,
            "steps_paid": self.run.steps,
        }

    def _save_run(self) -> None:
        """A checkpoint: the model as `Trainer` writes it, how far the run is, and what was spent."""
        folder = Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}"
        self.save_model(str(folder), _internal_call=True)
        kept = self.run.state_dict()
        moves = {name for name, each in self.run._descent.model.named_parameters() if each.requires_grad}
        kept["model"] = {name: each for name, each in kept["model"].items() if name in moves}
        torch.save({"run": kept, "schedule": self.lr_scheduler.state_dict()}, folder / _CHECKPOINT)
        (folder / _SPENT).write_text(json.dumps(self._spent(), indent=1) + "\n")
        (folder / _CARD).write_text(str(self.run.card()))
        if self.state.best_global_step == self.state.global_step:
            self.state.best_model_checkpoint = str(folder)
        self.state.save_to_json(str(folder / "trainer_state.json"))
        self._saved.append(folder)
        self._forget()

    def _forget(self) -> None:
        """Deletes checkpoints that this run wrote beyond the limit, and never the best one."""
        most = self.args.save_total_limit
        old = [each for each in self._saved if str(each) != self.state.best_model_checkpoint]
        for folder in old[: max(0, len(self._saved) - most)] if most else []:
            shutil.rmtree(folder, ignore_errors=True)
            self._saved.remove(folder)

    def _resume(self, where: str | bool) -> None:
        folder = get_last_checkpoint(self.args.output_dir) if where is True else where
        if folder is None or not (Path(str(folder)) / _CHECKPOINT).is_file():
            raise InvalidParameter("There is no checkpoint of a private run in that folder.")
        try:
            kept = torch.load(
                Path(str(folder)) / _CHECKPOINT, map_location=self.args.device, weights_only=True
            )
            state, trained = kept["run"], kept["run"]["model"]
            merged = {**self.run._descent.model.state_dict(), **trained}
            schedule = kept["schedule"]
        except Exception as error:
            raise InvalidParameter(
                f"{_CHECKPOINT} in that folder is cut short or of something else: resume from another "
                "checkpoint."
            ) from error
        self.run.load_state_dict({**state, "model": merged})
        self.lr_scheduler.load_state_dict(schedule)
        self.state = TrainerState.load_from_json(str(Path(str(folder)) / "trainer_state.json"))

    def _batch(self) -> int:
        return int(self.args.per_device_train_batch_size * self.args.gradient_accumulation_steps)

    def _public(self, data: Any) -> None:
        several = list(data.values()) if isinstance(data, dict) else [data]
        if any(each is self._private_rows for each in several):
            raise InvalidParameter(
                "What is computed on private records is not shown: evaluate on public records."
            )

    def get_train_dataloader(self) -> Any:
        """None: the sampler that was paid for draws the records of each step.

        Raises:
            InvalidParameter: always.
        """
        raise InvalidParameter("The records of a private run are drawn by its own sampler, step by step.")

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        """As for `Trainer`, of public records."""
        self._public(eval_dataset)
        return super().get_eval_dataloader(eval_dataset)

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        """As for `Trainer`, of public records."""
        self._public(test_dataset)
        return super().get_test_dataloader(test_dataset)


def _check_kinds(model: Any, args: Any, rows: Any, optimizers: Any) -> None:
    """Refuses what `Trainer` would fail on without a word of what to give."""
    if not isinstance(model, nn.Module):
        raise InvalidParameter(
            f"model must be a torch.nn.Module, such as AutoModelForCausalLM.from_pretrained(…), not "
            f"{kind_of(model)}."
        )
    if not isinstance(args, TrainingArguments):
        raise InvalidParameter(f"args must be TrainingArguments('out', …), not {kind_of(args)}.")
    if not isinstance(rows, Mapping):  # of columns
        check_data(rows, "train_dataset", "dictionaries")
    if not isinstance(optimizers, tuple | list) or len(optimizers) != 2:
        raise InvalidParameter("optimizers must be a pair (optimizer, schedule), each of them or None.")


def _check(args: TrainingArguments) -> None:  # type: ignore[no-any-unimported, unused-ignore]
    """Settings that would be something else in private steps."""
    if args.world_size > 1:
        raise InvalidParameter(
            "PrivateTrainer runs in one process: for several, call private(…, group=True)."
        )
    wrong = {
        "fp16": args.fp16,
        "deepspeed": args.deepspeed,
        "fsdp": args.fsdp,
        "auto_find_batch_size": args.auto_find_batch_size,
        "label_smoothing_factor": args.label_smoothing_factor,
        "neftune_noise_alpha": args.neftune_noise_alpha,
        "activation_checkpointing": getattr(args, "activation_checkpointing", False),
        "gradient_checkpointing": getattr(args, "gradient_checkpointing", False),
        "include_num_input_tokens_seen": args.include_num_input_tokens_seen not in (False, "no"),
    }
    for name, given in wrong.items():
        if given:
            raise InvalidParameter(f"PrivateTrainer has no {name}: leave it out.")


def _objective(model: nn.Module, labels: Tensor) -> Objective:
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    if not labels.dim():
        return squared_error if labels.is_floating_point() else cross_entropy
    kind = type(base).__name__
    if kind.endswith(("ForCausalLM", "LMHeadModel")):
        return next_token
    if kind.endswith(("ForMaskedLM", "ForTokenClassification")):
        return cross_entropy
    raise InvalidParameter(
        f"Say what {kind} minimises: objective=…, from logits and labels to a loss for each record."
    )
