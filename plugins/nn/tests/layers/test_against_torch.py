"""Values and gradients agree with PyTorch's in float64, recorded by `oracles/record_layers.py`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from oracles.layer_rows import ROWS, Row
from oracles.numbers import numbers, weights
from tensorken import Tensor

pytestmark = pytest.mark.slow

KEY = tk.random.key(0)
CLOSE = {"rel": 1e-9, "abs": 1e-9}


@cache
def records() -> Any:
    return json.loads(Path(__file__).with_name("torch.json").read_text(encoding="ascii"))


def arguments(name: str) -> dict[str, Tensor]:
    """The arguments of a recorded case, on the backend in use."""
    tensors = {}
    for seed, (argument, values) in enumerate(records()[name]["arguments"].items()):
        is_shape = all(isinstance(number, int) for number in values)  # a shape; otherwise the numbers
        data = tk.tensor(numbers(tuple(values), seed) if is_shape else values, tk.float64)
        tensors[argument] = data.reshape(values) if is_shape else data
    return tensors


def flattened(values: list[Any]) -> tuple[list[Any], tk.DType, tuple[int, ...]]:
    """The numbers of nested lists, their dtype, and the shape."""
    x = tk.tensor(values)
    dtype = tk.float64 if x.dtype.kind == "float" else x.dtype
    return tk.tensor(values, dtype).ravel().tolist(), dtype, x.shape


def results(y: Any) -> list[Tensor]:
    return [part for each in y for part in results(each)] if isinstance(y, tuple) else [y]


# ---- the cases ---------------------------------------------------------------------------------------------


def convolution(make: Callable[..., Any] = nn.Conv2d, **options: Any) -> Callable[..., Tensor]:
    def run(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        inputs = weight.shape[1] * options.get("groups", 1)
        layer = make(inputs, weight.shape[0], weight.shape[2:], **options, key=KEY)
        return layer.replace(weight=weight, bias=bias)(x)

    return run


def unpool(pool: Any, back: Any, size: Any, *options: Any) -> Callable[[Tensor], Any]:
    def run(x: Tensor) -> Any:
        maxima, indices = pool(*options, return_indices=True)(x)
        return maxima, indices.astype(tk.float64), back(*options)(maxima, indices, size)

    return run


def batch_norm(momentum: float | None) -> Callable[..., Any]:
    def run(x: Tensor, other: Tensor, weight: Tensor, bias: Tensor) -> Any:
        layer = nn.BatchNorm(2, momentum=momentum, dtype=tk.float64).replace(weight=weight, bias=bias)
        first, state = layer.train(x, layer.initial_state())
        second, state = layer.train(other, state)
        return first, second, layer(x, state), state.mean, state.variance

    return run


def ctc(x: Tensor, **options: Any) -> Tensor:
    """Labels of three lengths, of which those of the last example do not fit into its steps."""
    labels, steps, counts = [[1, 1, 3], [2, 0, -1], [3, 1, 2]], [5, 6, 2], [3, 1, 3]
    given = [x.constant(*flattened(values)) for values in (labels, steps, counts)]
    return nn.ctc(nn.log_softmax(x), *given, zero_infinity=True, **options)


FIELDS = {
    "weight_ih": "input_weight",
    "weight_hh": "state_weight",
    "bias_ih": "input_bias",
    "bias_hh": "state_bias",
}


def recurrent(
    kind: Callable[..., nn.layers.recurrent.Recurrent],
    inputs: int,
    lengths: list[int] | None = None,
    **options: Any,
) -> Callable[..., Any]:
    """A layer with parameters of PyTorch's names."""

    def run(x: Tensor, state: Tensor | None = None, cell: Tensor | None = None, **parameters: Tensor) -> Any:
        layer = kind(inputs, 2, **options, key=KEY)
        directions = 2 if layer.bidirectional else 1
        cells: list[dict[str, Tensor | None]] = [
            {"input_bias": None, "state_bias": None} for _ in layer.cells
        ]
        for name, value in parameters.items():
            field, _, suffix = name.partition("_l")
            number, _, reverse = suffix.partition("_")
            cells[int(number) * directions + bool(reverse)][FIELDS[field]] = value
        pairs = zip(layer.cells, cells, strict=True)
        layer = layer.replace(cells=tuple([cell.replace(**given) for cell, given in pairs]))
        given = state if cell is None or state is None else nn.LSTMState(state, cell)
        return layer(x, given, lengths=lengths)

    return run


def called(row: Row) -> Callable[..., Any]:
    """The function of a row, with lists as tensors."""

    def run(*alone: Tensor, **named: Tensor) -> Any:
        operands = alone or [named[name] for name in row.arguments]  # trees sort the keys of dicts
        given = {
            name: operands[0].constant(*flattened(value)) if isinstance(value, list) else value
            for name, value in row.options.items()
        }
        others = [given.pop(name) for name in ("target", "var") if name in given]
        return getattr(nn, row.here)(*operands, *others, **given)

    return run


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "celu": lambda x: nn.celu(x, 1.5),
    "elu": lambda x: nn.elu(x, 1.5),
    "gelu": nn.gelu,
    "gelu tanh": lambda x: nn.gelu(x, "tanh"),
    "hardsigmoid": nn.hardsigmoid,
    "hardswish": nn.hardswish,
    "hardtanh": nn.hardtanh,
    "leaky_relu": lambda x: nn.leaky_relu(x, 0.2),
    "log_sigmoid": nn.log_sigmoid,
    "mish": nn.mish,
    "relu": nn.relu,
    "relu6": nn.relu6,
    "selu": nn.selu,
    "sigmoid": nn.sigmoid,
    "silu": nn.silu,
    "softplus": nn.softplus,
    "softsign": nn.softsign,
    "tanh": nn.tanh,
}
CASES: dict[str, Callable[..., Any]] = {
    **ACTIVATIONS,
    "glu": lambda x: nn.glu(x, 1),
    "softmax": nn.softmax,
    "log_softmax": nn.log_softmax,
    "embedding": lambda weight: nn.Embedding(4, 2, key=KEY).replace(weight=weight)(
        tk.tensor([[3, 0, 3], [1, 3, 1]], backend=weight.backend)
    ),
    "layer norm": lambda x, weight, bias: nn.LayerNorm((3, 2)).replace(weight=weight, bias=bias)(x),
    "layer norm plain": nn.LayerNorm(4, 0.1, affine=False),
    "rms norm": lambda x, weight: nn.RMSNorm(4).replace(weight=weight)(x),
    "rms norm eps": nn.RMSNorm((3, 4), 0.1, affine=False),
    "batch norm 0": batch_norm(0.1),
    "batch norm 1": batch_norm(None),
    "batch norm 2": batch_norm(0.25),
    "conv": convolution(),
    "conv stride": convolution(stride=(2, 3), padding=(1, 2)),
    "conv same": convolution(padding="same"),
    "conv same dilation": convolution(padding="same", dilation=(2, 1)),
    "conv dilation": convolution(dilation=2, padding=1, stride=2),
    "conv groups": convolution(groups=2),
    "conv depthwise": convolution(groups=3, padding=1),
    "conv patches": convolution(stride=2),
    "conv point": convolution(),
    "conv one image": convolution(),
    "conv1d circular": convolution(nn.Conv1d, padding=2, stride=2, groups=2, padding_mode="circular"),
    "conv1d reflect same": convolution(nn.Conv1d, padding="same", padding_mode="reflect"),
    "conv reflect": convolution(padding=(1, 2), padding_mode="reflect"),
    "conv replicate": convolution(padding=(2, 1), dilation=(2, 1), padding_mode="replicate"),
    "conv3d replicate": convolution(nn.Conv3d, padding=1, padding_mode="replicate"),
    "lp_pool1d odd": lambda x: nn.LPPool1d(3, 2)(x.reshape(1, 2, 4)),
    "max unpool 1": unpool(nn.MaxPool1d, nn.MaxUnpool1d, 8, 2, 3, 1),
    "max unpool 2": unpool(nn.MaxPool2d, nn.MaxUnpool2d, (5, 7), 2),
    "max unpool 2 padded": unpool(nn.MaxPool2d, nn.MaxUnpool2d, None, (2, 3), (3, 4), 1),
    "max unpool 3": unpool(nn.MaxPool3d, nn.MaxUnpool3d, None, (1, 2, 2)),
    "max pool": nn.MaxPool2d(2),
    "max pool rest": nn.MaxPool2d((2, 3)),
    "max pool overlap": nn.MaxPool2d(3, 2, 1),
    "max pool dilation": lambda x: nn.max_pool2d(x, 2, 1, 1, 2),
    "avg pool": nn.AvgPool2d(2),
    "avg pool overlap": nn.AvgPool2d((3, 2), (2, 1), 1),
    "avg pool without": lambda x: nn.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "avg pool one image": nn.AvgPool2d(2, 1),
    "global max pool": lambda x: nn.GlobalMaxPool2d()(x)[..., None, None],
    "global avg pool": lambda x: nn.GlobalAvgPool2d()(x)[..., None, None],
    "group norm": lambda x, weight, bias: nn.GroupNorm(2, 4).replace(weight=weight, bias=bias)(x),
    "instance norm": lambda x, weight, bias: nn.InstanceNorm(4).replace(weight=weight, bias=bias)(x),
    **{name: called(row) for name, row in ROWS.items()},
    "ctc": ctc,
    "ctc each": lambda x: ctc(x, reduction="none"),
    "rnn": recurrent(nn.RNN, 3),
    "rnn plain": recurrent(nn.RNN, 3, bias=False),
    "rnn relu": recurrent(nn.RNN, 3, nonlinearity=tk.relu),
    "rnn relu plain": recurrent(nn.RNN, 3, nonlinearity=tk.relu, bias=False),
    "gru": recurrent(nn.GRU, 3),
    "gru plain": recurrent(nn.GRU, 3, bias=False),
    "lstm": recurrent(nn.LSTM, 3),
    "lstm plain": recurrent(nn.LSTM, 3, bias=False),
    "rnn both": recurrent(nn.RNN, 2, bidirectional=True),
    "gru layers": recurrent(nn.GRU, 1, num_layers=2),
    "lstm both layers": recurrent(nn.LSTM, 2, num_layers=2, bidirectional=True, bias=False),
    "rnn packed": recurrent(nn.RNN, 2, [2, 4, 1]),
    "gru packed both": recurrent(nn.GRU, 2, [1, 3], bidirectional=True),
    "lstm packed both layers": recurrent(nn.LSTM, 1, [3, 1, 2], num_layers=2, bidirectional=True),
}


def test_every_recorded_case_has_a_test() -> None:
    assert CASES.keys() == records().keys()


# ---- comparisons -------------------------------------------------------------------------------------------


def loss_of(name: str) -> Callable[..., Any]:
    """From named arguments: the weighted sum of all results, and the results."""

    def loss(case_arguments: dict[str, Tensor]) -> tuple[Tensor, list[Tensor]]:
        ys = results(
            CASES[name](**case_arguments)
            if len(case_arguments) > 1
            else CASES[name](*case_arguments.values())
        )
        totals = [(y * y.constant(weights(y.size), y.dtype, y.shape)).sum() for y in ys]
        return sum(totals[1:], totals[0]), ys

    return loss


def assert_as_recorded(name: str, ys: list[Tensor], gradients: dict[str, Tensor]) -> None:
    record = records()[name]
    assert [list(y.shape) for y in ys] == [output["shape"] for output in record["outputs"]]
    for y, output in zip(ys, record["outputs"], strict=True):
        assert y.ravel().tolist() == pytest.approx(output["values"], **CLOSE)
    assert gradients.keys() == record["gradients"].keys()
    for argument, gradient in gradients.items():
        assert gradient.ravel().tolist() == pytest.approx(record["gradients"][argument], **CLOSE), argument


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_pytorch(name: str, backend: str) -> None:
    (_, ys), gradients = tk.value_and_grad(loss_of(name), has_aux=True)(arguments(name))
    assert_as_recorded(name, ys, gradients)


@pytest.mark.filterwarnings("ignore::tensorken_core.errors.RetraceWarning")  # each case is a loss of its own
@pytest.mark.parametrize("name", CASES)
def test_compiled_values_and_gradients_are_those_of_pytorch(name: str) -> None:
    (_, ys), gradients = tk.jit(tk.value_and_grad(loss_of(name), has_aux=True))(arguments(name))
    assert_as_recorded(name, ys, gradients)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ACTIVATIONS])
def test_a_batch_gives_the_results_of_its_examples(name: str) -> None:
    first = arguments(name)
    second = {argument: x * 0.75 for argument, x in first.items()}
    stacked = {argument: tk.stack([x, second[argument]]) for argument, x in first.items()}
    differentiated = tk.value_and_grad(loss_of(name), has_aux=True)
    (_, ys), gradients = tk.vmap(differentiated)(stacked)
    for i, example in enumerate((first, second)):
        (_, expected_ys), expected_gradients = differentiated(example)
        for y, expected in zip(ys, expected_ys, strict=True):
            assert y[i].ravel().tolist() == pytest.approx(expected.ravel().tolist(), **CLOSE)
        for argument, expected in expected_gradients.items():
            gradient = gradients[argument][i]
            assert gradient.ravel().tolist() == pytest.approx(expected.ravel().tolist(), **CLOSE)


SMOOTH = (
    *(
        "gelu",
        "glu",
        "layer norm",
        "rms norm",
        "conv stride",
        "avg pool overlap",
        "gru",
        "lstm",
        "group norm",
    ),
    *[name for name, row in ROWS.items() if row.smooth],
)


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_of_both_modes_are_those_of_finite_differences(name: str) -> None:
    order = 1 if name in ("gru", "lstm") else 2  # second derivatives of loops take long
    tk.testing.check_grads(lambda args: loss_of(name)(args)[0], (arguments(name),), order=order)
