"""Models of torch by its TorchScript exporter; those with loops are in `torch_loops.py`,
`torch_rwkv.py`, `torch_recurrences.py`, `torch_scans.py` and `torch_unrolled.py`."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import onnx
import torch
from case import Case, draw
from onnx import ModelProto
from torch import Tensor, nn
from torch.nn import functional

EVERY = tuple(range(9, 19))
FEW = (9, 11, 13, 15, 18)


class Function(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., object], *layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.layers = nn.ModuleList(layers)

    def forward(self, *inputs: Tensor) -> object:
        """What the function gives, of its layers and the inputs."""
        return self.function(*self.layers, *inputs)


def cases() -> Iterator[Case]:
    """Every torch model."""
    from torch_loops import cases as loops
    from torch_recurrences import cases as recurrences
    from torch_rwkv import cases as rwkv
    from torch_scans import cases as scans
    from torch_unrolled import cases as unrolled

    yield from _networks()
    yield from _resized()
    yield from _normalized()
    yield from _recurrent()
    yield from _shaped()
    yield from _indexed()
    yield from _reduced()
    yield from _elementwise()
    yield from _quantized()
    yield from _attending()
    yield from loops()
    yield from rwkv()
    yield from recurrences()
    yield from scans()
    yield from unrolled()


def scripted(
    name: str,
    model: Callable[..., object],
    *inputs: Tensor,
    opsets: Sequence[int] = FEW,
    free: Sequence[Sequence[int]] = ((0,),),
    called: str = "",
    faithful: bool = True,
    fold: bool = True,
) -> Case:
    """A model for the TorchScript exporter; `free` are the dynamic axes of each input,
    all of one name where that is `called`.

    `faithful` says that the exported model computes what torch does.
    """
    compiled = isinstance(model, nn.Module | torch.jit.ScriptFunction)
    module = model if compiled else Function(model)
    if isinstance(module, nn.Module):
        module.eval()
    names = [f"x{number}" for number in range(len(inputs))]
    outputs = results(module, inputs)
    axes = {
        x: {axis: called or f"{x}_d{axis}" for axis in some}
        for x, some in zip(names, free, strict=False)
    }

    def export(opset: int) -> ModelProto:
        file = io.BytesIO()
        torch.onnx.export(
            module,
            inputs,
            file,
            opset_version=opset,
            input_names=names,
            output_names=[f"y{number}" for number in range(len(outputs))],
            dynamic_axes=axes,
            dynamo=False,
            do_constant_folding=fold,
        )
        return onnx.load_from_string(file.getvalue())

    feeds = [arg.numpy() for arg in inputs]
    return Case(name, export, feeds, outputs if faithful else None, opsets)


def results(module: Callable[..., object], inputs: Sequence[Tensor]) -> list[np.ndarray]:
    """What torch itself computes, one array per output."""
    with torch.no_grad():
        found = module(*(arg.clone() for arg in inputs))
    flat = torch.utils._pytree.tree_leaves(found)
    return [value.numpy() if isinstance(value, Tensor) else np.asarray(value) for value in flat]


def tensor(seed: int, *shape: int) -> Tensor:
    """Moderate float32 values, always the same ones."""
    return torch.from_numpy(draw(seed, *shape))


def _networks() -> Iterator[Case]:
    torch.manual_seed(0)
    image = tensor(0, 2, 2, 12, 12)
    convolution = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.BatchNorm2d(4),
        nn.Conv2d(4, 4, 3, groups=2),
        nn.ReLU6(),
        nn.AvgPool2d(2, padding=1, count_include_pad=False),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(4, 3),
        nn.LogSoftmax(1),
    )
    yield scripted("cnn", convolution, image, opsets=EVERY)
    transposed = nn.Sequential(
        nn.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1), nn.LeakyReLU(), nn.MaxPool2d(2)
    )
    yield scripted("transposed", transposed, image, opsets=(9, 13, 18))
    pools = [
        nn.MaxPool2d(3, 2, return_indices=True),
        nn.MaxPool2d(3, 2, dilation=2),
        nn.AvgPool2d(3, 2, ceil_mode=True),
        nn.LPPool2d(2, 3),
        nn.AdaptiveMaxPool2d(4),
    ]
    yield scripted(
        "pools", Function(lambda *all: [pool(all[-1]) for pool in all[:-1]], *pools), image,
        opsets=(10, 11, 12, 13, 18),
    )  # fmt: skip
    dense = nn.Sequential(
        nn.Linear(4, 8), nn.Tanh(), nn.Dropout(), nn.Linear(8, 8), nn.PReLU(), nn.Linear(8, 2)
    )
    yield scripted("dense", dense, tensor(1, 3, 4))


def _resized() -> Iterator[Case]:
    image = tensor(2, 2, 2, 4, 5)
    resize = functional.interpolate

    def case(name: str, opsets: Sequence[int], faithful: bool = True, **how: object) -> Case:
        return scripted(
            f"resize_{name}",
            lambda x: resize(x, **how),
            image,
            opsets=opsets,
            free=((0, 2, 3),),
            faithful=faithful,
        )

    yield case("nearest", EVERY, scale_factor=2.0, mode="nearest")
    yield case("nearest_uneven", (11, 13, 18), scale_factor=(1.5, 0.7), mode="nearest")
    yield case("nearest_size", (11, 13, 18), size=(7, 3), mode="nearest", faithful=False)
    yield case("bilinear", EVERY, scale_factor=2.0, mode="bilinear", faithful=False)
    yield case("bilinear_down", (11, 13, 18), size=(2, 3), mode="bilinear")
    yield case(
        "bilinear_corners", (11, 13, 18), scale_factor=1.5, mode="bilinear", align_corners=True
    )
    yield case("bicubic", (11, 13, 18), scale_factor=2.0, mode="bicubic")
    line = tensor(3, 2, 2, 5)
    linear = nn.Upsample(scale_factor=3.0, mode="linear")
    yield scripted("resize_linear", linear, line, free=((0, 2),), opsets=FEW, faithful=False)
    yield scripted("pixel_shuffle", nn.PixelShuffle(2), tensor(4, 1, 4, 2, 3))
    grid = tensor(5, 2, 3, 4, 2) * 0.5
    for mode in ("bilinear", "bicubic"):
        sample = Function(
            lambda x, at, mode=mode: functional.grid_sample(x, at, mode, align_corners=False)
        )
        yield scripted(f"grid_sample_{mode}", sample, image, grid, opsets=(16, 17, 18))


def _normalized() -> Iterator[Case]:
    torch.manual_seed(1)
    image = tensor(6, 2, 4, 3, 3)
    yield scripted("layer_norm", nn.LayerNorm([3, 3]), image, opsets=EVERY)
    yield scripted("group_norm", nn.GroupNorm(2, 4), image, opsets=EVERY, free=((0, 2, 3),))
    yield scripted("instance_norm", nn.InstanceNorm2d(4, affine=True), image)
    yield scripted("batch_norm", nn.Sequential(nn.ReLU(), nn.BatchNorm1d(4)), tensor(7, 3, 4))
    yield scripted("batch_norm_unfolded", nn.BatchNorm2d(4), image, fold=False)
    for axis in (0, 1, 3):
        yield scripted(f"softmax_{axis}", nn.Softmax(axis), image, opsets=(9, 11, 12, 13))
    yield scripted("log_softmax", nn.LogSoftmax(1), image, opsets=(9, 12, 13))
    dropped = Function(lambda x: functional.dropout(x, 0.3, training=False) + 1)
    yield scripted("dropout", dropped, image, opsets=(9, 12, 13))
    ranked = nn.LocalResponseNorm(2)
    yield scripted("response_norm", ranked, image, opsets=(9, 13, 18))
    yield scripted("normalize", lambda x: functional.normalize(x, dim=1), image)


def _recurrent() -> Iterator[Case]:
    torch.manual_seed(2)
    sequence = tensor(8, 5, 2, 3)
    free = ((0, 1),)
    lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True)
    yield scripted("lstm", lstm, sequence, opsets=EVERY, free=free)
    gru = nn.GRU(3, 4, batch_first=True)
    yield scripted("gru", gru, sequence, opsets=EVERY, free=free)
    yield scripted("rnn", nn.RNN(3, 4, nonlinearity="relu"), sequence, opsets=(9, 14, 18))
    state = tensor(9, 1, 2, 4), tensor(10, 1, 2, 4)
    given = Function(lambda layer, x, h, c: layer(x, (h, c)), nn.LSTM(3, 4))
    yield scripted(
        "lstm_given_state", given, sequence, *state, opsets=(9, 13, 18), free=((0, 1), (1,), (1,))
    )

    def packed(layer: nn.Module, x: Tensor, lengths: Tensor) -> Tensor:
        pack = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=False)
        return nn.utils.rnn.pad_packed_sequence(layer(pack)[0])[0]

    yield scripted(
        "lstm_packed", Function(packed, nn.LSTM(3, 2)), sequence, torch.tensor([5, 3]),
        opsets=(9, 13, 18),
    )  # fmt: skip
    yield scripted("lstm_cell", _cells(), sequence, opsets=(9, 13, 18), free=())


def _cells() -> nn.Module:
    def run(cell: nn.LSTMCell, x: Tensor) -> Tensor:
        h = c = torch.zeros(2, 4)
        for step in x.unbind(0):
            h, c = cell(step, (h, c))
        return h

    return Function(run, nn.LSTMCell(3, 4))


def _shaped() -> Iterator[Case]:
    image = tensor(11, 2, 3, 4, 4)
    pads: list[tuple[str, Sequence[int]]] = [
        ("constant", EVERY), ("reflect", (9, 11, 18)), ("replicate", (9, 11, 18)),
    ]  # fmt: skip
    for mode, opsets in pads:
        pad = Function(lambda x, mode=mode: functional.pad(x, (1, 2, 0, 1), mode=mode))
        yield scripted(f"pad_{mode}", pad, image, opsets=opsets, free=((0, 2),))

    def pieces(x: Tensor) -> list[Tensor]:
        first, second = x.split([1, 2], dim=1)
        return [first, second, *x.chunk(2, dim=2), *x[0].unbind(0)]

    yield scripted("split", pieces, image)

    def shapes(x: Tensor) -> list[Tensor]:
        flat = x.reshape(x.shape[0], -1, 2)
        return [flat, x.flatten(1), x.permute(3, 0, 2, 1), x[:, :1].squeeze(1), x.unsqueeze(-1)]

    yield scripted("reshape", shapes, image, free=((0, 2, 3),))
    yield scripted("slices", _slices, image, opsets=EVERY[1:], free=((0, 1, 2, 3),))

    def spread(x: Tensor, y: Tensor) -> list[Tensor]:
        return [
            x.expand(3, 2, 4).contiguous(),
            x.repeat(2, 1, 3),
            torch.cat([x, y], 1),
            x.roll(1, 2),
        ]

    yield scripted("spread", spread, tensor(12, 1, 2, 4), tensor(13, 1, 3, 4), free=())
    triangles = Function(lambda x: (x.tril(), x.triu(1)))
    yield scripted("triangles", triangles, tensor(14, 3, 4, 4), opsets=(14, 18))

    def made(x: Tensor) -> list[Tensor]:
        count = torch.arange(x.shape[0])
        return [count, torch.zeros(x.shape[0], 2), torch.full_like(x, 7.0), torch.ones_like(x) * 2]

    yield scripted("made", made, tensor(15, 3, 2))
    stacked = Function(lambda x, y: (torch.stack([x, y], 1), torch.einsum("bi,bj->bij", x, y)))
    yield scripted("einsum", stacked, tensor(16, 2, 3), tensor(17, 2, 3), opsets=(12, 13, 18))


def _slices(x: Tensor) -> list[Tensor]:
    half = x.shape[2] // 2
    return [x[:, 1:], x[..., ::2], x[:, :, -3:-1], x[:, :, half:], x[0], x.narrow(3, 1, 2)]


def _indexed() -> Iterator[Case]:
    table = tensor(18, 4, 5)
    rows = torch.tensor([[0, 3], [1, 1]])
    lookup = nn.Embedding(6, 3, padding_idx=0)
    yield scripted("embedding", lookup, rows, opsets=(9, 13, 18))
    yield scripted("top", lambda x: x.topk(3, dim=1), table, opsets=EVERY)
    yield scripted("top_smallest", lambda x: x.topk(2, largest=False), table, opsets=(11, 18))
    yield scripted("sort", lambda x: x.sort(dim=1, descending=True), table, opsets=(10, 13, 18))
    gather = Function(lambda x, at: x.gather(1, at))
    at = torch.tensor([[0], [4], [2], [1]])
    yield scripted("gather", gather, table, at, free=((0,), (0,)))

    def scattered(x: Tensor, at: Tensor) -> list[Tensor]:
        ones = torch.ones_like(at, dtype=x.dtype)
        return [x.scatter(1, at, 9.0), x.scatter(1, at, ones)]

    yield scripted("scatter", scattered, table, at, free=())
    added = Function(lambda x, at: x.scatter_add(1, at, torch.ones_like(at, dtype=x.dtype)))
    yield scripted("scatter_add", added, table, at, opsets=(16, 17, 18), free=())
    chosen = Function(lambda x, at: (x.index_select(0, at), x[at], x[at, at]))
    yield scripted("index_select", chosen, table, torch.tensor([3, 0]), free=())

    def put(x: Tensor, at: Tensor) -> Tensor:
        x = x.clone()
        x[at] = 5.0
        x[:, 2] = -1.0
        x[x > 1] = 0.0
        return x

    yield scripted("put", put, table, torch.tensor([3, 0]), opsets=(11, 13, 18), free=())
    masks = Function(lambda x: (x[x > 0], x.masked_fill(x > 0, 2.0), (x > 0).nonzero()))
    yield scripted("masks", masks, table, opsets=(11, 13, 18))
    hot = Function(lambda at: functional.one_hot(at, 4))
    yield scripted("one_hot", hot, rows, opsets=(9, 11, 13, 18))
    distinct = Function(lambda x: torch.unique(x, return_inverse=True, return_counts=True))
    yield scripted("unique", distinct, rows, opsets=(11, 13, 18), faithful=False)


def _reduced() -> Iterator[Case]:
    image = tensor(19, 2, 3, 4).abs() + 0.1
    kinds: dict[str, Callable[[Tensor], object]] = {
        "sums": lambda x: (x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), x.mean(1), x.prod(2)),
        "norms": lambda x: (x.norm(p=1, dim=1), x.norm(dim=2), x.logsumexp(1), x.norm()),
        "extremes": lambda x: (x.max(), x.max(1), x.min(2, keepdim=True), x.amax(1), x.argmax(1)),
        "spread_of": lambda x: (x.std(1), x.var(2, unbiased=False), torch.var_mean(x, 1)),
    }
    for name, function in kinds.items():
        yield scripted(f"reduce_{name}", function, image, opsets=FEW)
    yield scripted("cumsum", lambda x: x.cumsum(1), image, opsets=(11, 14, 18))
    yield scripted("any_all", lambda x: ((x > 1).any(1), (x > 1).all(), (x > 0).all(2)), image)
    losses = Function(
        lambda x, y: (functional.mse_loss(x, y), functional.nll_loss(x.log(), torch.tensor([0, 2])))
    )
    yield scripted("losses", losses, image[:, :, 0], image[:, :, 1], opsets=(12, 13, 18), free=())


def _elementwise() -> Iterator[Case]:
    x, y = tensor(20, 3, 4), tensor(21, 3, 4).abs() + 0.5
    clips: Sequence[Callable[[Tensor], object]] = (
        lambda a: a.clamp(-0.5, 0.5),
        lambda a: a.clamp(min=0.0),
        lambda a: a.clamp(max=0.25),
        lambda a: functional.relu6(a * 9),
    )
    clip = Function(lambda a: [one(a) for one in clips])
    yield scripted("clip", clip, x, opsets=EVERY)
    whole = torch.tensor([[-5, 0, 3], [9, -1, 2]])
    yield scripted("clip_whole", lambda a: a.clamp(-2, 2), whole, opsets=(12, 18))
    activations: Sequence[Callable[[Tensor], Tensor]] = (
        functional.elu, functional.selu, functional.gelu, functional.softplus, functional.silu,
        functional.hardtanh, functional.logsigmoid, functional.celu,
    )  # fmt: skip
    yield scripted("activations", lambda a: [one(a) for one in activations], x, opsets=(12, 13, 18))
    hard = Function(lambda a: (functional.hardswish(a), functional.hardsigmoid(a)))
    yield scripted("hard_activations", hard, x, opsets=(9, 13, 14, 18))

    def arithmetic(a: Tensor, b: Tensor) -> list[Tensor]:
        divided = [torch.div(a, b, rounding_mode="floor"), torch.fmod(a, b), torch.remainder(a, b)]
        return [a + b, a / b, b**a, a.floor(), *divided, torch.minimum(a, b)]

    yield scripted("arithmetic", arithmetic, x, y, opsets=(10, 13, 18))

    def logic(a: Tensor, b: Tensor) -> list[Tensor]:
        return [a < b, a >= b, a == b, ~(a < b) & (b > 1), a.isnan(), torch.where(a > 0, a, b)]

    yield scripted("logic", logic, x, y, opsets=(11, 13, 18))

    def cast(a: Tensor) -> list[Tensor]:
        return [a.long(), a.bool(), a.double(), a.half().float(), (a * 2).int()]

    yield scripted("cast", cast, x)
    shifts = Function(lambda a: (a << 1, a >> 2))
    yield scripted("shifts", shifts, torch.tensor([1, 6, 9]), opsets=(11, 18))
    products = Function(lambda a, b: (a @ b.T, torch.addmm(a[:, :3], a, b.T, alpha=2.0)))
    yield scripted("products", products, x, y, free=())


def _quantized() -> Iterator[Case]:
    x = tensor(22, 2, 4)
    fake = Function(lambda a: torch.fake_quantize_per_tensor_affine(a, 0.1, 3, 0, 255))
    yield scripted("fake_quantize", fake, x, opsets=(10, 13, 18))
    scale, zero = torch.tensor([0.1, 0.2, 0.05, 0.3]), torch.zeros(4, dtype=torch.int32)
    channels = Function(
        lambda a: torch.fake_quantize_per_channel_affine(a, scale, zero, 1, -128, 127)
    )
    yield scripted("fake_quantize_channels", channels, x, opsets=(13, 18))


def _attending() -> Iterator[Case]:
    torch.manual_seed(3)
    words = tensor(23, 2, 3, 4)
    attention = Function(functional.scaled_dot_product_attention)
    yield scripted("attention", attention, words, words, words, opsets=(14, 18), free=())
    many = Function(lambda layer, x: layer(x, x, x), nn.MultiheadAttention(4, 2))
    yield scripted("multihead", many, words, opsets=(13, 18), free=())

    def encode(attend: nn.Module, norm: nn.Module, feed: nn.Module, x: Tensor) -> Tensor:
        x = norm(x + attend(x, x, x)[0])
        return x + feed(x)

    feed = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 4))
    block = Function(encode, nn.MultiheadAttention(4, 2, batch_first=True), nn.LayerNorm(4), feed)
    yield scripted("transformer", block, words, opsets=(13, 15, 17, 18), free=())
