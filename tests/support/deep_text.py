"""What tests of `transformers` share: the package or a visible skip, and tiny random models made offline."""

import os
import warnings
from importlib.util import find_spec

import pytest

from deep import torch

for package in ("transformers", "peft", "accelerate"):
    if find_spec(package) is None:
        if os.environ.get("CI") == "true":
            raise RuntimeError(f"{package} is not installed, and nothing is skipped with CI=true.")
        pytest.skip(
            f"{package} is not installed: pip install --no-deps -r requirements/text.txt.",
            allow_module_level=True,
        )

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "WANDB_DISABLED": "true"}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import peft
    import transformers

WORDS, PLACES = 17, 6


def made(kind="gpt2", kind_of=torch.float32):
    """A tiny model with weights that all matter."""
    torch.manual_seed(0)
    ends = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    small = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    if kind == "gpt2":
        still = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        config = transformers.GPT2Config(
            vocab_size=WORDS, n_positions=PLACES, n_embd=8, n_layer=1, n_head=2, **still, **ends
        )
        model = transformers.GPT2LMHeadModel(config)
    elif kind == "llama":
        config = transformers.LlamaConfig(
            vocab_size=WORDS, max_position_embeddings=PLACES, **small, num_key_value_heads=1, **ends
        )
        model = transformers.LlamaForCausalLM(config)
    else:
        still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        config = transformers.BertConfig(
            vocab_size=WORDS, max_position_embeddings=PLACES, **small, **still, num_labels=3
        )
        model = transformers.BertForSequenceClassification(config)
    for each in model.parameters():
        torch.nn.init.normal_(each, std=0.3)
    return model.to(kind_of)


def adapted(model, targets, **more):
    """The model with adapters, which alone are trained."""
    config = peft.LoraConfig(r=2, lora_alpha=4, target_modules=targets, lora_dropout=0.0, **more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return peft.get_peft_model(model, config)


def example(classes=False):
    """A made-up record."""
    zeros = torch.zeros(PLACES, dtype=torch.int64)
    label = torch.tensor(0) if classes else zeros
    return {"input_ids": zeros, "attention_mask": zeros + 1, "labels": label}


def columns(records, classes=False):
    """Records, some of which are padded."""
    torch.manual_seed(1)
    ids = torch.randint(1, WORDS, (records, PLACES))
    seen = (torch.arange(PLACES)[None] < torch.randint(3, PLACES + 1, (records, 1))).long()
    labels = torch.randint(0, 3, (records,)) if classes else torch.where(seen > 0, ids, -100)
    return {"input_ids": ids, "attention_mask": seen, "labels": labels}
