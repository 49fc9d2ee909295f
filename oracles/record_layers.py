"""Record PyTorch's values and gradients of layers and activations for the tests of `tensorken_nn`.

    python -m oracles.record_layers           record the results
    python -m oracles.record_layers --check   compare the recorded results with new ones

Each case is a function of named arguments, in float64.  The gradients are those of the sum of the results' elements,
each multiplied by one of `weights`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import rnn

from oracles.layer_rows import ROWS, Row
from oracles.numbers import Shape, numbers, weights
from oracles.recording import record_or_check

FILE = Path(__file__).parents[1] / "plugins" / "nn" / "tests" / "layers" / "torch.json"

Cases = dict[str, tuple[Callable[..., Any], dict[str, Shape | list[float]]]]
CASES: Cases = {}


def case(name: str, function: Callable[..., Any], **arguments: Shape | list[float]) -> None:
    """Add a case; each argument is a list of numbers, or a shape, which `numbers` fills."""
    CASES[name] = function, arguments


# ---- activations -------------------------------------------------------------------------------------------

POINTS = [-40.0, -6.0, -3.0, -1.5, -1.0, -0.25, 0.0, 0.25, 1.0, 1.5, 3.0, 6.0, 40.0]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "celu": lambda x: functional.celu(x, 1.5),
    "elu": lambda x: functional.elu(x, 1.5),
    "gelu": functional.gelu,
    "gelu tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "hardsigmoid": lambda x: (
        functional.relu6(x + 3.0) / 6.0
    ),  # functional.hardsigmoid computes the slope 1/6 in float32
    "hardswish": functional.hardswish,
    "hardtanh": functional.hardtanh,
    "leaky_relu": lambda x: functional.leaky_relu(x, 0.2),
    "log_sigmoid": functional.logsigmoid,
    "mish": functional.mish,
    "relu": functional.relu,
    "relu6": functional.relu6,
    "selu": functional.selu,
    "sigmoid": torch.sigmoid,
    "silu": functional.silu,
    "softplus": functional.softplus,
    "softsign": functional.softsign,
    "tanh": torch.tanh,
}
for _name, _activation in ACTIVATIONS.items():
    case(_name, lambda x, activation=_activation: activation(x), x=POINTS)
case("glu", lambda x: functional.glu(x, 1), x=(2, 4, 3))
case("softmax", lambda x: torch.softmax(x, -1), x=(2, 4))
case("log_softmax", lambda x: torch.log_softmax(x, -1), x=(2, 4))

# ---- tables and normalisation ------------------------------------------------------------------------------

case(
    "embedding",
    lambda weight: functional.embedding(torch.tensor([[3, 0, 3], [1, 3, 1]]), weight),
    weight=(4, 2),
)
case(
    "layer norm",
    lambda x, weight, bias: functional.layer_norm(x, (3, 2), weight, bias),
    x=(2, 3, 2),
    weight=(3, 2),
    bias=(3, 2),
)
case("layer norm plain", lambda x: functional.layer_norm(x, (4,), eps=0.1), x=(2, 4))
case("rms norm", lambda x, weight: functional.rms_norm(x, (4,), weight), x=(3, 4), weight=(4,))
case("rms norm eps", lambda x: functional.rms_norm(x, (3, 4), eps=0.1), x=(2, 3, 4))


def batch_norm(momentum: float | None, *features: int) -> Callable[..., Any]:
    """The results of two batches in training and one in evaluation, and the running statistics."""
    classes: dict[int, Callable[..., Any]] = {0: nn.BatchNorm1d, 1: nn.BatchNorm1d, 2: nn.BatchNorm2d}

    def run(x: Tensor, other: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        layer = classes[len(features)](weight.numel(), momentum=momentum, dtype=torch.float64)

        def call(x: Tensor) -> Tensor:
            return torch.func.functional_call(layer, {"weight": weight, "bias": bias}, (x,))  # type: ignore[no-any-return]

        layer.train()
        first, second = call(x), call(other)
        layer.eval()
        # PyTorch updates the buffers in place, so copy them.
        return first, second, call(x), layer.running_mean.clone(), layer.running_var.clone()

    return run


for _features, _momentum in (((), 0.1), ((3,), None), ((2, 3), 0.25)):
    _shape = (4, 2, *_features)
    case(
        f"batch norm {len(_features)}",
        batch_norm(_momentum, *_features),
        x=_shape,
        other=_shape,
        weight=(2,),
        bias=(2,),
    )

# ---- images ------------------------------------------------------------------------------------------------

CONVOLUTIONS: dict[str, tuple[dict[str, Any], Shape, Shape]] = {
    "conv": ({}, (2, 2, 5, 4), (3, 2, 3, 2)),
    "conv stride": ({"stride": (2, 3), "padding": (1, 2)}, (1, 2, 6, 7), (2, 2, 3, 3)),
    "conv same": ({"padding": "same"}, (1, 1, 5, 4), (2, 1, 4, 3)),
    "conv same dilation": ({"padding": "same", "dilation": (2, 1)}, (1, 1, 5, 4), (1, 1, 2, 2)),
    "conv dilation": ({"dilation": 2, "padding": 1, "stride": 2}, (1, 1, 7, 6), (2, 1, 2, 3)),
    "conv groups": ({"groups": 2}, (2, 4, 3, 3), (6, 2, 2, 2)),
    "conv depthwise": ({"groups": 3, "padding": 1}, (1, 3, 3, 4), (3, 1, 3, 3)),
    "conv patches": ({"stride": 2}, (2, 2, 5, 4), (3, 2, 2, 2)),
    "conv point": ({}, (2, 3, 2, 2), (2, 3, 1, 1)),
    "conv one image": ({}, (2, 3, 3), (1, 2, 2, 2)),
}
for _name, (_options, _x, _weight) in CONVOLUTIONS.items():
    case(
        _name,
        lambda x, weight, bias, options=_options: functional.conv2d(x, weight, bias, **options),
        x=_x,
        weight=_weight,
        bias=_weight[:1],
    )

PADDED: dict[str, tuple[Any, dict[str, Any], Shape, Shape]] = {
    "conv1d circular": (
        nn.Conv1d,
        {"padding": 2, "stride": 2, "padding_mode": "circular"},
        (2, 2, 5),
        (2, 1, 3),
    ),
    "conv1d reflect same": (nn.Conv1d, {"padding": "same", "padding_mode": "reflect"}, (1, 1, 5), (1, 1, 4)),
    "conv reflect": (nn.Conv2d, {"padding": (1, 2), "padding_mode": "reflect"}, (2, 1, 4, 3), (2, 1, 3, 2)),
    "conv replicate": (
        nn.Conv2d,
        {"padding": (2, 1), "dilation": (2, 1), "padding_mode": "replicate"},
        (1, 2, 4, 3),
        (2, 2, 2, 2),
    ),
    "conv3d replicate": (
        nn.Conv3d,
        {"padding": 1, "padding_mode": "replicate"},
        (1, 1, 2, 3, 2),
        (1, 1, 2, 3, 2),
    ),
}


def padded(make: Callable[..., nn.Module], x: Shape, weight: Shape, **options: Any) -> Callable[..., Tensor]:
    """A convolution as a layer, as functions have no padding mode."""
    groups = x[1] // weight[1]
    layer = make(x[1], weight[0], weight[2:], groups=groups, dtype=torch.float64, **options)
    return lambda x, weight, bias: torch.func.functional_call(layer, {"weight": weight, "bias": bias}, (x,))  # type: ignore[no-any-return]


for _name, (_make, _options, _x, _weight) in PADDED.items():
    case(_name, padded(_make, _x, _weight, **_options), x=_x, weight=_weight, bias=_weight[:1])

POOLS: dict[str, tuple[Callable[..., Tensor], tuple[Any, ...], Shape]] = {
    "max pool": (functional.max_pool2d, (2,), (2, 1, 4, 6)),
    "max pool rest": (functional.max_pool2d, ((2, 3),), (1, 2, 5, 7)),
    "max pool overlap": (functional.max_pool2d, (3, 2, 1), (1, 2, 5, 6)),
    "max pool dilation": (functional.max_pool2d, (2, 1, 1, 2), (1, 1, 4, 4)),
    "avg pool": (functional.avg_pool2d, (2,), (2, 1, 4, 6)),
    "avg pool overlap": (functional.avg_pool2d, ((3, 2), (2, 1), 1), (1, 2, 5, 4)),
    "avg pool without": (functional.avg_pool2d, (3, 2, 1, False, False), (1, 2, 5, 6)),
    "avg pool one image": (functional.avg_pool2d, (2, 1), (2, 3, 3)),
    "global max pool": (functional.adaptive_max_pool2d, (1,), (2, 2, 3, 4)),
    "global avg pool": (functional.adaptive_avg_pool2d, (1,), (2, 2, 3, 4)),
}
for _name, (_pool, _options_of_pool, _x) in POOLS.items():
    case(_name, lambda x, pool=_pool, options=_options_of_pool: pool(x, *options), x=_x)

case(
    "lp_pool1d odd",
    lambda x: functional.lp_pool1d(x.reshape(1, 2, 4), 3, 2),
    x=[0.5, 1.5, 0.25, 3.0, 0.0, 0.0, -0.5, 0.75],
)


def unpool(rank: int, size: Any, *options: Any) -> Callable[[Tensor], list[Tensor]]:
    """Maxima, their positions, and the maxima at these positions of a result of a size, or the default one."""
    pool, back = getattr(functional, f"max_pool{rank}d"), getattr(functional, f"max_unpool{rank}d")

    def run(x: Tensor) -> list[Tensor]:
        maxima, indices = pool(x, *options, return_indices=True)
        return [maxima, indices.to(torch.float64), back(maxima, indices, *options, output_size=size)]

    return run


UNPOOLS: dict[str, tuple[int, Any, tuple[Any, ...], Shape]] = {
    "max unpool 1": (1, (8,), (2, 3, 1), (2, 1, 8)),
    "max unpool 2": (2, (5, 7), (2,), (1, 2, 5, 7)),
    "max unpool 2 padded": (2, None, ((2, 3), (3, 4), 1), (1, 2, 3, 5)),
    "max unpool 3": (3, None, ((1, 2, 2),), (1, 1, 2, 4, 2)),
}
for _name, (_rank, _size, _options_of_pool, _x) in UNPOOLS.items():
    case(_name, unpool(_rank, _size, *_options_of_pool), x=_x)

# ---- normalisation of groups -------------------------------------------------------------------------------

_channels: dict[str, Shape | list[float]] = {"weight": (4,), "bias": (4,)}
case(
    "group norm", lambda x, weight, bias: functional.group_norm(x, 2, weight, bias), x=(2, 4, 3), **_channels
)
case(
    "instance norm",
    lambda x, weight, bias: functional.instance_norm(x, weight=weight, bias=bias),
    x=(2, 4, 2, 2),
    **_channels,
)

# ---- rows --------------------------------------------------------------------------------------------------


def called(row: Row) -> Callable[..., Any]:
    """The function of a row."""

    def run(**operands: Tensor) -> Any:
        given = {
            name: torch.tensor(value, dtype=torch.float64 if is_float(value) else None)
            if isinstance(value, list)
            else value
            for name, value in row.options.items()
        }
        named = {name: given.pop(name) for name in ("target", "var") if name in given}
        return getattr(functional, row.there)(
            *operands.values(), *named.values(), **given, **row.options_there
        )

    return run


def is_float(value: Any) -> bool:
    """Whether a list, or a list of lists, is of floats."""
    return is_float(value[0]) if isinstance(value, list) else isinstance(value, float)


for _name, _row in ROWS.items():
    case(_name, called(_row), **_row.arguments)

# ---- sequences of labels -----------------------------------------------------------------------------------


def ctc(x: Tensor, **options: Any) -> Tensor:
    """Of logits, as PyTorch's derivative for log-probabilities is one for logits, with labels of three lengths."""
    return functional.ctc_loss(
        torch.log_softmax(x, -1).transpose(0, 1),
        torch.tensor([[1, 1, 3], [2, 0, 0], [3, 1, 2]]),
        torch.tensor([5, 6, 2]),
        torch.tensor([3, 1, 3]),
        zero_infinity=True,
        **options,
    )


case("ctc", ctc, x=(3, 6, 4))
case("ctc each", lambda x: ctc(x, reduction="none"), x=(3, 6, 4))

# ---- recurrent layers --------------------------------------------------------------------------------------


def recurrent(
    make: Callable[..., Any], lengths: list[int] | None = None, **options: Any
) -> Callable[..., Any]:
    """The outputs and the last state, which is one tensor, or two for an LSTM; without the axis of a single cell.

    Sequences with lengths are packed.
    """

    def run(x: Tensor, **parameters: Tensor) -> list[Tensor]:
        state = [parameters.pop(name) for name in ("state", "cell") if name in parameters]
        layer = make(
            x.shape[-1],
            parameters["weight_hh_l0"].shape[1],
            bias="bias_ih_l0" in parameters,
            batch_first=True,
            dtype=torch.float64,
            **options,
        )
        state = [part if part.ndim == 3 else part[None] for part in state]
        given: Any = x
        if lengths is not None:
            given = rnn.pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
        arguments = (given, *([tuple(state) if len(state) > 1 else state[0]] if state else []))
        outputs, last = torch.func.functional_call(layer, parameters, arguments)
        if lengths is not None:
            outputs, _ = rnn.pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])
        parts = last if isinstance(last, tuple) else (last,)
        return [outputs, *[part if len(part) > 1 else part[0] for part in parts]]

    return run


def parameters(inputs: int, rows: int, suffixes: list[str], bias: bool) -> dict[str, Shape | list[float]]:
    """The shapes of the parameters of cells of width 2, by PyTorch's names; the first cells have these inputs."""
    found: dict[str, Shape | list[float]] = {}
    directions = 2 if "l0_reverse" in suffixes else 1
    for suffix in suffixes:
        size = inputs if suffix.startswith("l0") else 2 * directions
        found |= {f"weight_ih_{suffix}": (rows, size), f"weight_hh_{suffix}": (rows, 2)}
        found |= {f"bias_ih_{suffix}": (rows,), f"bias_hh_{suffix}": (rows,)} if bias else {}
    return found


RECURRENT: dict[str, tuple[Callable[..., Any], dict[str, Any], int]] = {
    "rnn": (nn.RNN, {}, 1),
    "rnn relu": (nn.RNN, {"nonlinearity": "relu"}, 1),
    "gru": (nn.GRU, {}, 3),
    "lstm": (nn.LSTM, {}, 4),
}
for _name, (_layer, _options, _gates) in RECURRENT.items():
    _first: dict[str, Shape | list[float]] = {"state": (2, 2)}
    if _layer is nn.LSTM:
        _first["cell"] = (2, 2)
    _one, _rows = ["l0"], _gates * 2
    case(_name, recurrent(_layer, **_options), x=(2, 4, 3), **parameters(3, _rows, _one, True), **_first)
    case(f"{_name} plain", recurrent(_layer, **_options), x=(2, 3, 3), **parameters(3, _rows, _one, False))
case(
    "rnn both",
    recurrent(nn.RNN, bidirectional=True),
    x=(1, 3, 2),
    **parameters(2, 2, ["l0", "l0_reverse"], True),
)
case(
    "gru layers",
    recurrent(nn.GRU, num_layers=2),
    x=(2, 3, 1),
    **parameters(1, 6, ["l0", "l1"], True),
    state=(2, 2, 2),
)
case(
    "lstm both layers",
    recurrent(nn.LSTM, num_layers=2, bidirectional=True),
    x=(1, 3, 2),
    **parameters(2, 8, ["l0", "l0_reverse", "l1", "l1_reverse"], False),
    state=(4, 1, 2),
    cell=(4, 1, 2),
)
case(
    "rnn packed",
    recurrent(nn.RNN, [2, 4, 1]),
    x=(3, 4, 2),
    **parameters(2, 2, ["l0"], True),
    state=(3, 2),
)
case(
    "gru packed both",
    recurrent(nn.GRU, [1, 3], bidirectional=True),
    x=(2, 3, 2),
    **parameters(2, 6, ["l0", "l0_reverse"], True),
)
case(
    "lstm packed both layers",
    recurrent(nn.LSTM, [3, 1, 2], num_layers=2, bidirectional=True),
    x=(3, 3, 1),
    **parameters(1, 8, ["l0", "l0_reverse", "l1", "l1_reverse"], True),
    state=(4, 3, 2),
    cell=(4, 3, 2),
)


# ---- recording ---------------------------------------------------------------------------------------------


def computed(function: Callable[..., Any], arguments: dict[str, Shape | list[float]]) -> dict[str, Any]:
    """The arguments, values and gradients of a case."""
    tensors = {}
    for seed, (name, argument) in enumerate(arguments.items()):
        data = argument if isinstance(argument, list) else numbers(argument, seed)
        shape = (len(argument),) if isinstance(argument, list) else argument
        tensors[name] = torch.tensor(data, dtype=torch.float64).reshape(shape).requires_grad_()
    ys = function(**tensors)
    ys = list(ys) if isinstance(ys, tuple | list) else [ys]
    loss = sum([(y.reshape(-1) * torch.tensor(weights(y.numel()), dtype=torch.float64)).sum() for y in ys])
    gradients = torch.autograd.grad(loss, list(tensors.values()))
    return {
        "arguments": arguments,
        "outputs": [{"shape": list(y.shape), "values": flat(y)} for y in ys],
        "gradients": {name: flat(g) for name, g in zip(tensors, gradients, strict=True)},
    }


def flat(x: Tensor) -> list[float]:
    """The elements, rounded to 12 digits."""
    return [float(f"{value:.12g}") for value in x.detach().reshape(-1).tolist()]


if __name__ == "__main__":
    sys.exit(record_or_check(FILE, {name: computed(*CASES[name]) for name in CASES}, sys.argv[1:]))
