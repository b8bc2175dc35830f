"""Models of `transformers` and adapters of `peft`: exact for each record, and really trained."""

import pytest

from deep import torch
from deep_text import PLACES, adapted, columns, example, made, peft, transformers
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import Named, cross_entropy, next_token, private
from sfumato.learn.torch.noise import Drawn
from sfumato.learn.torch.recording import Recorder

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def _check(model, classes=False, records=5):
    objective = cross_entropy if classes else next_token
    named, data = Named(model, example(classes)), columns(records, classes)
    given, target = named.records(data)
    recorder = Recorder(named)
    recorder.survey(named.example, objective)
    found = recorder.gradients(given, target, objective)
    trained = {name: each for name, each in named.named_parameters() if each.requires_grad}
    alone = []
    for at in range(records):
        one = {name: value[at : at + 1] for name, value in data.items() if name != "labels"}
        loss = objective(model(**one).logits, data["labels"][at : at + 1]).sum()
        alone.append(torch.autograd.grad(loss, list(trained.values())))
    weights = torch.rand(records).double()
    largest = max(float(part.abs().max()) for each in alone for part in each)
    assert set(found) == set(trained)
    for name, parts in zip(trained, zip(*alone, strict=True), strict=True):
        wanted = torch.tensordot(weights, torch.stack(parts), 1)
        assert (found[name].summed(weights) - wanted).abs().max() <= 1e-12 * max(largest, 1), name
    squares = sum(form.settled(lambda _: 1).norms().square for form in found.values())
    lengths = torch.stack([sum(part.square().sum() for part in each) for each in alone])
    assert torch.allclose(squares, lengths, rtol=1e-9)
    return found


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert"])
def test_models_of_named_inputs_are_exact_for_each_record(kind):
    _check(made(kind, torch.float64), classes=kind == "bert")


@pytest.mark.parametrize(
    ("kind", "targets"), [("gpt2", ["c_attn", "c_proj"]), ("llama", ["q_proj", "v_proj"])]
)
def test_adapters_alone_have_gradients(kind, targets):
    found = _check(adapted(made(kind, torch.float64), targets).double())
    assert all("lora_" in name for name in found)


def _run(model, data, noise=True, **more):
    named = Named(model, example())
    trained = [each for each in model.parameters() if each.requires_grad]
    settings = {"epsilon": 1, "delta": 1e-5, "size": 12, "batch": 12, "steps": 2, "objective": next_token}
    run = private(
        named, torch.optim.Adam(trained, 0.01), named.records(data), example=named.example, **settings | more
    )
    if not noise:
        run._descent.noise.draw = lambda count: Drawn(lambda: torch.zeros(count, dtype=torch.int32))
    return run


def test_adapters_are_trained_and_nothing_else_is():
    """A wrapped layer whose adapter never moves, though it is paid for, is a fault of others."""
    model = adapted(made("gpt2"), ["c_attn"])
    before = {name: each.detach().clone() for name, each in model.named_parameters()}
    data = columns(12)
    out = model(**data).logits.detach()
    _run(model, data, noise=False).fit()
    for name, each in model.named_parameters():
        assert torch.equal(each, before[name]) != ("lora_" in name), name
    assert not torch.allclose(model(**data).logits, out)


def test_adapters_whose_layers_are_passed_by_are_refused():
    model = adapted(made("gpt2"), ["c_attn", "wte"])  # a table's adapter is no layer that is called
    with pytest.raises(InvalidParameter, match="used past the layer"):
        _run(model, columns(12))


def test_adapters_that_are_off_are_refused():
    model = adapted(made("gpt2"), ["c_attn"])
    model.base_model.disable_adapter_layers()
    for name, each in model.named_parameters():
        each.requires_grad_("lora_" in name)
    with pytest.raises(InvalidParameter, match="is an adapter off"):
        _run(model, columns(12))


def test_a_parameter_that_is_not_used_is_warned_of():
    model = made("gpt2")
    model.more = torch.nn.Linear(2, 2)
    with pytest.warns(UserWarning, match=r"does not use 'model\.more\.weight'"):
        _run(model, columns(12))


def test_gradient_checkpointing_is_refused():
    model = made("gpt2")
    model.activation_checkpointing_enable()
    with pytest.raises(InvalidParameter, match="gradient checkpointing"):
        _run(model, columns(12))


def test_attention_goes_one_way_whether_a_record_is_padded_or_not():
    model = made("gpt2")
    assert model.config._attn_implementation != "eager"
    Named(model, example())
    assert model.config._attn_implementation == "eager"


class _Rows:
    """A data set of dictionaries, of several lengths, some of them broken."""

    def __len__(self):
        return 4

    def __getitem__(self, place):
        if place == 2:
            return {"text": "no ids"}
        ids = list(range(1, 1 + (3, PLACES + 4, 0, PLACES)[place]))
        return {"input_ids": ids, "attention_mask": [1] * len(ids), "text": "not taken"}


def test_rows_are_filled_up_and_cut():
    named = Named(made("gpt2"), example())
    rows = named.records(_Rows())
    packed, labels = rows[0]
    assert packed.tolist() == [1, 2, 3, 0, 0, 0, 1, 1, 1, 0, 0, 0]
    assert labels.tolist() == [1, 2, 3, -100, -100, -100]
    assert rows[1][0].tolist() == [1, 2, 3, 4, 5, 6, 1, 1, 1, 1, 1, 1]
    run = _run(made("gpt2"), _Rows(), size=4, batch=4)
    run.fit()
    assert all(torch.isfinite(each).all() for each in run._descent.model.parameters())


@pytest.mark.parametrize(
    ("more", "words"),
    [({"labels": None}, "must have 'labels'"), ({"input_ids": torch.zeros(PLACES)}, "of one type")],
)
def test_bad_examples_are_refused(more, words):
    given = {name: value for name, value in (example() | more).items() if value is not None}
    with pytest.raises(InvalidParameter, match=words):
        Named(made("gpt2"), given)


def test_the_packages_are_the_real_ones():
    assert transformers.__version__.split(".")[0] >= "5"
    assert hasattr(peft, "LoraConfig")
