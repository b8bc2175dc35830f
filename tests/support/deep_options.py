"""Layers with options that are drawn by chance, each with records for it."""

import random

from torch import nn

from deep import torch

RECORDS = 4


def _conv(pick):
    many = pick([1, 2, 3])
    settings = {
        "kernel_size": tuple(pick([1, 2, 3]) for _ in range(many)),
        "stride": tuple(pick([1, 2, 3]) for _ in range(many)),
        "dilation": tuple(pick([1, 2]) for _ in range(many)),
        "padding": pick([0, tuple(pick([0, 1, 2]) for _ in range(many)), "same", "valid"]),
        "groups": pick([1, 1, 2, 4]),
        "bias": pick([True, False]),
        "padding_mode": pick(["zeros", "reflect", "replicate", "circular"]),
    }
    if settings["padding"] == "same":
        settings["stride"] = 1
    kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[many - 1]
    return kind(4, pick([4, 8]), **settings), (4, *(pick([5, 6]) for _ in range(many)))


def _turned_conv(pick):
    many = pick([1, 2, 3])
    stride = tuple(pick([1, 2, 3]) for _ in range(many))
    settings = {
        "kernel_size": tuple(pick([1, 2, 3]) for _ in range(many)),
        "stride": stride,
        "dilation": tuple(pick([1, 2]) for _ in range(many)),
        "padding": tuple(pick([0, 1]) for _ in range(many)),
        "output_padding": tuple(pick(range(each)) for each in stride),
        "groups": pick([1, 2]),
        "bias": pick([True, False]),
    }
    kind = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[many - 1]
    return kind(4, 4, **settings), (4, *(pick([3, 4]) for _ in range(many)))


def _linear(pick):
    wide = pick([1, 3, 6])
    return nn.Linear(wide, pick([1, 3, 9]), bias=pick([True, False])), (*pick([(), (2,), (2, 3)]), wide)


def _embedding(pick):
    layer = nn.Embedding(
        7,
        pick([1, 4]),
        padding_idx=pick([None, 0, 3, -1]),
        max_norm=pick([None] * 5 + [1.0]),
        scale_grad_by_freq=pick([False] * 5 + [True]),
        sparse=pick([False] * 5 + [True]),
    )
    return layer, (*pick([(), (3,), (2, 3)]), "whole")


def _bag(pick):
    return nn.EmbeddingBag(7, 4, mode=pick(["sum", "mean", "max"]), padding_idx=pick([None, 2])), (3, "whole")


def _layer_norm(pick):
    shape = pick([(6,), (3, 6)])
    layer = nn.LayerNorm(
        shape, elementwise_affine=pick([True, True, False]), bias=pick([True, False]), eps=pick([1e-5, 0.1])
    )
    return layer, (*pick([(), (2,)]), *shape)


def _rms_norm(pick):
    shape = pick([(6,), (3, 6)])
    return nn.RMSNorm(shape, eps=pick([None, 0.1]), elementwise_affine=pick([True, True, False])), (
        *pick([(), (2,)]),
        *shape,
    )


def _group_norm(pick):
    return nn.GroupNorm(pick([1, 2, 4]), 4, affine=pick([True, True, False]), eps=pick([1e-5, 0.1])), (
        4,
        *pick([(3,), (3, 2), (2, 2, 2)]),
    )


def _instance_norm(pick):
    many = pick([1, 2, 3])
    kind = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)[many - 1]
    return kind(4, affine=pick([True, True, False]), eps=pick([1e-5, 0.1])), (4, *[3] * many)


class _Attends(nn.Module):
    """Attention in all ways in which it is called."""

    def __init__(self, pick):
        super().__init__()
        self.first = pick([True, False])
        self.how = pick(["self", "keys", "apart", "widths", "short"])
        widths = {"kdim": 3, "vdim": pick([3, 5])} if self.how == "widths" else {}
        self.layer = nn.MultiheadAttention(
            6,
            pick([1, 2, 3]),
            bias=pick([True, False]),
            add_bias_kv=pick([True, False]),
            add_zero_attn=pick([True, False]),
            batch_first=self.first,
            **widths,
        )
        for each in self.layer.parameters():
            nn.init.normal_(each, std=0.5)
        self.call = {"need_weights": pick([True, False]), "average_attn_weights": pick([True, False])}
        self.mask, self.padding = pick([None, "bool", "float", "heads"]), pick([None, "bool", "float"])
        self.causal = pick([False, False, True])
        self.wide = widths

    def forward(self, x):
        keys = x[:, :3] * 2 if self.how == "short" else x
        given = (x, keys, keys)
        if self.how == "apart":
            given = (x, x * 2, x.square())
        if self.how == "keys":
            given = (x, x, x * 2)
        if self.how == "widths":
            given = (x, x[..., :3], x[..., : self.wide["vdim"]])
        long, many = x.shape[1], keys.shape[1]
        call = dict(self.call)
        if self.mask == "bool":
            call["attn_mask"] = torch.ones(long, many, dtype=torch.bool).triu(1)
        if self.mask == "float":
            call["attn_mask"] = torch.arange(long * many).view(long, many).to(x.dtype) / 10
        if self.mask == "heads":
            call["attn_mask"] = (
                x.detach()
                .mean(2)[:, None, :, None]
                .expand(-1, self.layer.num_heads, -1, many)
                .reshape(-1, long, many)
            )
        if self.padding is not None:
            hidden = (x[:, 0, :1] > 0) & (torch.arange(many) > 1)
            call["key_padding_mask"] = hidden if self.padding == "bool" else hidden.to(x.dtype) * -2
        if self.causal and self.mask == "bool" and long == many:
            call["is_causal"] = True
        if not self.first:
            turned = {id(each): each.transpose(0, 1) for each in given}
            given = tuple(turned[id(each)] for each in given)
        out, weights = self.layer(*given, **call)
        out = out if self.first else out.transpose(0, 1)
        return out if weights is None else torch.cat([out.flatten(1), weights.flatten(1)], 1)


def _attention(pick):
    return _Attends(pick), (pick([3, 4]), 6)


class _Recurs(nn.Module):
    """A recurrent layer, of which outputs, or ends too, are used."""

    def __init__(self, pick):
        super().__init__()
        kind = pick([nn.LSTM, nn.GRU, nn.RNN])
        more = {"nonlinearity": pick(["tanh", "relu"])} if kind is nn.RNN else {}
        more |= {"proj_size": pick([0, 0, 2])} if kind is nn.LSTM else {}
        self.first, self.start, self.ends = pick([True, False]), pick([True, False]), pick([True, False])
        self.layer = kind(
            6,
            4,
            num_layers=pick([1, 2]),
            bias=pick([True, False]),
            batch_first=self.first,
            bidirectional=pick([True, False]),
            **more,
        )

    def forward(self, x):
        several = self.layer.num_layers * (2 if self.layer.bidirectional else 1)
        start = ()
        if self.start:
            own = torch.tanh(x[:, 0, :4]).expand(several, -1, -1).contiguous()
            start = (own,)
            if isinstance(self.layer, nn.LSTM):
                start = ((own[..., : self.layer.proj_size or 4].contiguous(), own * 2),)
        out, end = self.layer(x if self.first else x.transpose(0, 1), *start)
        out = (out if self.first else out.transpose(0, 1)).flatten(1)
        ends = end if isinstance(end, tuple) else (end,)
        return torch.cat([out, *(each.transpose(0, 1).flatten(1) for each in ends)], 1) if self.ends else out


def _recurrent(pick):
    return _Recurs(pick), (pick([2, 3]), 6)


class _Cells(nn.Module):
    """A cell that is used step by step."""

    def __init__(self, pick):
        super().__init__()
        kind = pick([nn.LSTMCell, nn.GRUCell, nn.RNNCell])
        more = {"nonlinearity": pick(["tanh", "relu"])} if kind is nn.RNNCell else {}
        self.cell, self.start = kind(6, 4, bias=pick([True, False]), **more), pick([True, False])

    def forward(self, x):
        state = None
        if self.start:
            state = torch.tanh(x[:, 0, :4])
            state = (state, state * 2) if isinstance(self.cell, nn.LSTMCell) else state
        for at in range(x.shape[1]):
            state = self.cell(x[:, at], state)
        return torch.cat(state, 1) if isinstance(state, tuple) else state


def _cell(pick):
    return _Cells(pick), (pick([1, 3]), 6)


def _prelu(pick):
    many = pick([1, 4])
    return nn.PReLU(many), (4, *pick([(), (3,), (2, 3)]))


class _Pairs(nn.Module):
    """A layer of two inputs."""

    def __init__(self, pick):
        super().__init__()
        self.layer = nn.Bilinear(3, 4, pick([1, 5]), bias=pick([True, False]))

    def forward(self, x):
        return self.layer(x[..., :3], x[..., 3:])


def _bilinear(pick):
    return _Pairs(pick), (*pick([(), (2,)]), 7)


class _Transforms(nn.Module):
    """Layers of transformers, with and without masks."""

    def __init__(self, pick):
        super().__init__()
        self.first, self.kind = pick([True, False]), pick(["encoder", "decoder", "whole", "layer"])
        more = {
            "dim_feedforward": 5,
            "dropout": 0.0,
            "batch_first": self.first,
            "norm_first": pick([True, False]),
            "bias": pick([True, False]),
            "activation": pick(["relu", "gelu"]),
        }
        if self.kind == "whole":
            self.layer = nn.Transformer(6, 2, 1, 1, **more)
        elif self.kind == "decoder":
            self.layer = nn.TransformerDecoder(
                nn.TransformerDecoderLayer(6, 2, **more), 2, norm=pick([None, nn.LayerNorm(6)])
            )
        else:
            self.layer = nn.TransformerEncoderLayer(6, 2, **more)
            if self.kind == "encoder":
                self.layer = nn.TransformerEncoder(
                    self.layer,
                    2,
                    norm=pick([None, nn.LayerNorm(6)]),
                    enable_nested_tensor=pick([True, False]),
                )
        self.padded, self.causal = pick([True, False]), pick([True, False])

    def forward(self, x):
        long, call = x.shape[1], {}
        hidden = (x[:, 0, :1] > 0) & (torch.arange(long) > 1)
        mask = torch.ones(long, long, dtype=torch.bool).triu(1) if self.causal else None
        x = x if self.first else x.transpose(0, 1)
        if self.kind in ("encoder", "layer"):
            if self.padded:
                call["src_key_padding_mask"] = hidden
            if self.causal:
                call["mask" if self.kind == "encoder" else "src_mask"] = mask
            out = self.layer(x, **call)
        else:
            if self.padded:
                call["memory_key_padding_mask"] = hidden
            if self.causal:
                call["tgt_mask"] = mask
            out = self.layer(x, x * 2, **call)
        return out if self.first else out.transpose(0, 1)


def _transformer(pick):
    return _Transforms(pick), (3, 6)


KINDS = [
    _conv,
    _turned_conv,
    _linear,
    _embedding,
    _bag,
    _layer_norm,
    _rms_norm,
    _group_norm,
    _instance_norm,
    _attention,
    _recurrent,
    _cell,
    _prelu,
    _bilinear,
    _transformer,
]


class Wrapped(nn.Module):
    """The layer by itself, or behind a trained one, so that its input has a gradient, too."""

    def __init__(self, layer, before):
        super().__init__()
        self.scale, self.layer = (nn.Linear(1, 1) if before else None), layer

    def forward(self, x):
        if self.scale is not None:
            x = torch.tanh(self.scale(x[..., None]))[..., 0]
        return self.layer(x)


def made(kind, seed):
    """A layer with options by chance, and records for it; none where PyTorch refuses such a one."""
    chance = random.Random(f"{kind.__name__} {seed}")
    torch.manual_seed(seed)
    try:
        layer, shape = kind(chance.choice)
    except ValueError:
        return None
    whole = shape[-1:] == ("whole",)
    shape = shape[:-1] if whole else shape
    given = torch.randint(0, 7, (RECORDS, *shape)) if whole else torch.randn(RECORDS, *shape).double()
    model = Wrapped(layer, not whole and chance.choice([True, False])).double()
    trained = list(model.parameters())
    for each in trained:
        if chance.random() < 0.15:
            each.requires_grad_(False)
    try:
        if not any(each.requires_grad for each in trained):
            return None
        model(given)
    except (RuntimeError, ValueError):
        return None
    return model, given
