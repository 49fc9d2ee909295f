"""Laws that hold for every layer, over one table of layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from core.tests.each import each_of
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError

Shape = tuple[int, ...]


@cache
def layers(backend: str) -> dict[str, tuple[Callable[..., Any], Shape, Shape]]:
    """Layers on a backend, the shape of an input, and that of the output."""
    dtype = tk.float64
    given: Any = {"key": tk.random.key(0, backend=backend), "dtype": dtype}
    return {
        "Linear": (nn.Linear(3, 2, **given), (2, 3), (2, 2)),
        "Conv1d": (nn.Conv1d(2, 4, 3, 2, ((1, 0),), groups=2, **given), (2, 2, 6), (2, 4, 3)),
        "Conv2d": (nn.Conv2d(2, 3, (3, 2), 1, (1, (0, 1)), 2, **given), (2, 2, 4, 3), (2, 3, 2, 2)),
        "Conv3d": (nn.Conv3d(1, 2, 2, padding="same", **given), (1, 1, 2, 3, 2), (1, 2, 2, 3, 2)),
        "Conv1d circular": (
            nn.Conv1d(1, 2, 3, padding=((2, 0),), padding_mode="circular", **given),
            (1, 1, 4),
            (1, 2, 4),
        ),
        "Conv2d reflect": (
            nn.Conv2d(1, 2, 2, padding=(1, 2), padding_mode="reflect", **given),
            (1, 1, 3, 3),
            (1, 2, 4, 6),
        ),
        "ConvTranspose1d": (nn.ConvTranspose1d(2, 2, 3, 2, ((1, 0),), 1, 2, **given), (2, 2, 3), (2, 2, 7)),
        "ConvTranspose2d": (nn.ConvTranspose2d(2, 1, 2, (1, 2), **given), (1, 2, 2, 2), (1, 1, 3, 4)),
        "ConvTranspose3d": (nn.ConvTranspose3d(1, 1, 2, **given), (1, 1, 1, 2, 2), (1, 1, 2, 3, 3)),
        "LPPool1d": (nn.LPPool1d(4, 2, ceil_mode=True), (2, 2, 5), (2, 2, 3)),
        "LPPool2d": (nn.LPPool2d(2, 2, 1), (1, 2, 3, 4), (1, 2, 2, 3)),
        "LPPool3d": (nn.LPPool3d(float("inf"), 2, 1), (1, 1, 2, 3, 2), (1, 1, 1, 2, 1)),
        "MaxUnpool1d": (
            Unpooled(nn.MaxPool1d(2, return_indices=True), nn.MaxUnpool1d(2)),
            (2, 2, 6),
            (2, 2, 6),
        ),
        "MaxPool1d": (nn.MaxPool1d(2, padding=((0, 1),)), (2, 2, 5), (2, 2, 3)),
        "MaxPool2d": (nn.MaxPool2d(2, ceil_mode=True), (1, 2, 5, 4), (1, 2, 3, 2)),
        "MaxPool3d": (nn.MaxPool3d(2, 1), (1, 1, 2, 3, 2), (1, 1, 1, 2, 1)),
        "AvgPool1d": (nn.AvgPool1d(3, 2, ((0, 1),), count_include_pad=False), (2, 2, 6), (2, 2, 3)),
        "AvgPool2d": (nn.AvgPool2d(2, ceil_mode=True), (1, 2, 5, 4), (1, 2, 3, 2)),
        "AvgPool3d": (nn.AvgPool3d(2, 1), (1, 1, 2, 3, 2), (1, 1, 1, 2, 1)),
        "AdaptiveMaxPool1d": (nn.AdaptiveMaxPool1d(3), (2, 2, 5), (2, 2, 3)),
        "AdaptiveMaxPool2d": (nn.AdaptiveMaxPool2d((None, 2)), (1, 2, 3, 4), (1, 2, 3, 2)),
        "AdaptiveMaxPool3d": (nn.AdaptiveMaxPool3d(1), (1, 1, 2, 3, 2), (1, 1, 1, 1, 1)),
        "AdaptiveAvgPool1d": (nn.AdaptiveAvgPool1d(3), (2, 2, 5), (2, 2, 3)),
        "AdaptiveAvgPool2d": (nn.AdaptiveAvgPool2d((None, 3)), (1, 2, 3, 4), (1, 2, 3, 3)),
        "AdaptiveAvgPool3d": (nn.AdaptiveAvgPool3d(2), (1, 1, 2, 3, 2), (1, 1, 2, 2, 2)),
        "GlobalMaxPool1d": (nn.GlobalMaxPool1d(), (2, 2, 5), (2, 2)),
        "GlobalAvgPool3d": (nn.GlobalAvgPool3d(), (2, 2, 2, 1, 3), (2, 2)),
        "Upsample": (nn.Upsample(size=(5, 2), mode="bicubic"), (1, 1, 3, 3), (1, 1, 5, 2)),
        "Upsample nearest": (nn.Upsample(scale_factor=(2, 1.5)), (1, 1, 2, 3), (1, 1, 4, 4)),
        "PixelShuffle": (nn.PixelShuffle(2), (1, 4, 2, 1), (1, 1, 4, 2)),
        "PixelUnshuffle": (nn.PixelUnshuffle(2), (1, 1, 4, 2), (1, 4, 2, 1)),
        "ChannelShuffle": (nn.ChannelShuffle(2), (1, 4, 2), (1, 4, 2)),
        "Pad": (nn.Pad((1, (0, 2)), "edge"), (1, 2, 3), (1, 4, 5)),
        "LayerNorm": (nn.LayerNorm(3, dtype=dtype), (2, 3), (2, 3)),
        "RMSNorm": (nn.RMSNorm(3, dtype=dtype), (2, 3), (2, 3)),
        "LocalResponseNorm": (nn.LocalResponseNorm(3, 0.5), (2, 4, 3), (2, 4, 3)),
        "GroupNorm": (nn.GroupNorm(2, 4, dtype=dtype), (2, 4, 3), (2, 4, 3)),
        "InstanceNorm": (nn.InstanceNorm(2, affine=True, dtype=dtype), (1, 2, 4), (1, 2, 4)),
        "MultiHeadAttention": (nn.MultiHeadAttention(4, 2, **given), (1, 3, 4), (1, 3, 4)),
        "RNN": (First(nn.RNN(2, 3, 2, **given)), (1, 3, 2), (1, 3, 3)),
        "GRU": (First(nn.GRU(2, 2, bidirectional=True, **given)), (1, 3, 2), (1, 3, 4)),
        "LSTM": (First(nn.LSTM(2, 2, 2, bidirectional=True, **given)), (1, 3, 2), (1, 3, 4)),
        "LSTMCell": (First(nn.LSTMCell(2, 3, **given)), (4, 2), (4, 3)),
        "Attention": (
            lambda x: nn.scaled_dot_product_attention(x, x, x, is_causal=True),
            (2, 3, 2),
            (2, 3, 2),
        ),
    }


class First(nn.Module):
    """The first of the results of a layer."""

    layer: Any

    def __call__(self, x: Tensor) -> Tensor:
        """Call the layer."""
        first: Tensor = self.layer(x)[0]
        return first


class Unpooled(nn.Module):
    """The maxima of windows at their positions, and zeros."""

    pool: Any
    back: Any

    def __call__(self, x: Tensor) -> Tensor:
        """Call both layers."""
        y: Tensor = self.back(*self.pool(x))
        return y


NAMES = list(layers("numpy"))


def case(name: str, dtype: Any = tk.float64, backend: str = "numpy") -> tuple[Any, Tensor]:
    layer, shape, _ = layers(backend)[name]
    x = tk.random.normal(tk.random.key(1, backend=backend), shape, tk.float64)
    if isinstance(layer, nn.Module):
        layer = tree.map(lambda p: p.astype(dtype), layer)
    return layer, x.astype(dtype)


def assert_close(a: Any, b: Any, tolerance: float = 1e-12) -> None:
    for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True):
        assert x.shape == y.shape
        assert x.ravel().tolist() == pytest.approx(y.ravel().tolist(), rel=tolerance, abs=tolerance)


@each_of("name", NAMES)
def test_an_output_has_the_shape_and_the_dtype_of_the_layer(name: str, backend: str) -> None:
    layer, x = case(name, backend=backend)
    exact = layer(x)
    assert exact.shape == layers(backend)[name][2]
    for dtype, tolerance in ((tk.float16, 1e-2), (tk.float32, 1e-5)):
        layer, x = case(name, dtype, backend)
        y = layer(x)
        assert y.dtype is dtype
        assert_close(y.astype(tk.float64), exact, tolerance)


@pytest.mark.filterwarnings("ignore::tensorken_core.errors.RetraceWarning")
@each_of("name", NAMES)
def test_a_compiled_layer_equals_the_layer(name: str) -> None:
    layer, x = case(name)
    if isinstance(layer, nn.Module):
        assert_close(tk.jit(lambda layer, x: layer(x))(layer, x), layer(x))
    assert_close(tk.jit(layer)(x), layer(x))


@each_of("name", NAMES)
def test_vmap_equals_a_loop_over_examples(name: str) -> None:
    layer, x = case(name)
    xs = tk.stack([x, x * 0.5 + 0.25])
    assert_close(tk.vmap(layer)(xs), tk.stack([layer(x) for x in xs]), 1e-11)


@pytest.mark.slow
@each_of("name", NAMES)
def test_derivatives_are_those_of_finite_differences(name: str) -> None:
    """Of two orders; of one for loops, whose second derivatives take long, and are tested with `tk.scan`."""
    layer, x = case(name)
    is_loop = isinstance(layer, First) and hasattr(layer.layer, "cells")
    order = 1 if is_loop else 2
    if isinstance(layer, nn.Module) and tree.leaves(layer):
        tk.testing.check_grads(lambda layer, x: layer(x), (layer, x), order=order)
    else:
        tk.testing.check_grads(layer, (x,), order=order)


# ---- single layers -----------------------------------------------------------------------------------------


def normal(*shape: int, seed: int = 2) -> Tensor:
    return tk.random.normal(tk.random.key(seed), shape, tk.float64)


@each_of(
    ("function", "shape", "kernel", "axes"),
    [
        (nn.conv1d, (2, 2, 5), (3, 2, 2), 1),
        (nn.conv2d, (2, 2, 4, 3), (3, 2, 2, 2), 2),
        (nn.conv3d, (1, 1, 3, 2, 3), (2, 1, 2, 2, 2), 3),
    ],
)
def test_padding_before_and_after_is_that_of_a_padded_input(
    function: Any, shape: Shape, kernel: Shape, axes: int
) -> None:
    x, weight = normal(*shape), normal(*kernel)
    pads = ((1, 0), (0, 2), (2, 1))[:axes]
    padded = tk.pad(x, ((0, 0), (0, 0), *pads))
    assert_close(function(x, weight, padding=pads), function(padded, weight))


@each_of(
    ("convolution", "transposed", "shape", "kernel", "options"),
    [
        (
            nn.conv1d,
            nn.conv_transpose1d,
            (2, 2, 8),
            (4, 1, 3),
            {"stride": 2, "padding": ((0, 1),), "groups": 2},
        ),
        (nn.conv2d, nn.conv_transpose2d, (1, 1, 6, 5), (2, 1, 2, 3), {"dilation": (2, 1), "padding": (1, 0)}),
        (nn.conv3d, nn.conv_transpose3d, (1, 2, 3, 4, 3), (1, 2, 2, 2, 1), {"stride": (1, 2, 1)}),
    ],
)
def test_a_transposed_convolution_is_the_adjoint_of_the_convolution(
    convolution: Any, transposed: Any, shape: Shape, kernel: Shape, options: dict[str, Any]
) -> None:
    """<y, A x> = <A.T y, x>, up to elements at the end that no window reaches."""
    x, weight = normal(*shape), normal(*kernel, seed=3)
    y, pull_back = tk.vjp(lambda x: convolution(x, weight, **options), x)
    cotangent = normal(*y.shape, seed=4)
    (expected,) = pull_back(cotangent)
    found = transposed(cotangent, weight, **options)
    missing = [n - m for n, m in zip(x.shape, found.shape, strict=True)]
    assert_close(tk.pad(found, [(0, n) for n in missing]), expected)


def test_initial_parameters_of_convolutions_are_in_the_bounds_of_pytorch() -> None:
    key = tk.random.key(0)
    for layer, bound in (
        (nn.Conv2d(8, 64, 5, groups=2, key=key), 1.0 / 10.0),
        (nn.ConvTranspose1d(64, 32, 8, groups=2, key=key), 1.0 / 128.0**0.5),
    ):
        for parameter in tree.leaves(layer):
            largest = tk.abs(parameter).max().item()
            assert 0.9 * bound < largest <= bound
    zero = nn.Conv1d(1, 2, 3, key=key, weight_initializer=nn.zeros, bias_initializer=nn.zeros)
    assert [float(tk.abs(p).max()) for p in tree.leaves(zero)] == [0.0, 0.0]


def test_interpolation_keeps_constants_and_lines() -> None:
    line = tk.arange(6.0, dtype=tk.float64).reshape(1, 1, 6)
    for mode in ("nearest", "nearest-exact", "linear", "cubic", "area"):
        assert_close(nn.interpolate(tk.ones_like(line), 11, mode=mode), tk.ones((1, 1, 11), tk.float64))
        assert nn.interpolate(line, 6, mode=mode).tolist() == line.tolist()
    for mode, antialias in (("linear", True), ("cubic", True)):
        shrunk = nn.interpolate(tk.ones_like(line), 4, mode=mode, antialias=antialias)
        assert_close(shrunk, tk.ones((1, 1, 4), tk.float64))
    stretched = nn.interpolate(line, 11, mode="linear", align_corners=True)
    assert_close(stretched, tk.linspace(0.0, 5.0, 11, dtype=tk.float64).reshape(1, 1, 11))
    assert nn.interpolate(tk.tensor([[[1, 2]]]), 3).tolist() == [[[1, 1, 2]]]


def test_a_short_size_divides_exactly() -> None:
    """Element i is at floor(i * n / m), which float32 rounds down for some multiples."""
    for n, m in ((49, 98), (75, 25), (93, 31), (7, 21)):
        x = tk.arange(n).reshape(1, 1, n)
        assert nn.interpolate(x, m).ravel().tolist() == [i * n // m for i in range(m)]


def test_pixels_are_shuffled_back() -> None:
    x = normal(2, 3, 4, 6)
    assert nn.pixel_shuffle(nn.pixel_unshuffle(x, 2), 2).tolist() == x.tolist()
    assert nn.channel_shuffle(nn.channel_shuffle(x, 3), 1).shape == x.shape


def test_normalised_groups_have_mean_0_and_variance_1() -> None:
    x = normal(3, 6, 4, 5) * 7.0 + 3.0
    parts = nn.GroupNorm(2, 6, eps=0.0, affine=False)(x).reshape(6, 3 * 4 * 5)
    assert_close(parts.mean(1), tk.zeros(6, tk.float64))
    assert_close(parts.var(1), tk.ones(6, tk.float64))
    assert_close(nn.GroupNorm(6, 6)(x), nn.InstanceNorm(6, affine=True)(x))
    large = tk.full((1, 2, 4), 300.0, tk.float16).at[0, 0, 0].set(-300.0)
    assert bool(tk.isfinite(nn.GroupNorm(1, 2)(large)).all())  # squares are beyond the range of float16


# ---- attention ---------------------------------------------------------------------------------------------


def test_a_query_without_keys_attends_to_nothing(backend: str) -> None:
    """Its output and its derivatives are 0, not NaN, for both kinds of masks, and with the causal mask."""
    q, k, v = (normal(1, 3, 2, seed=seed) for seed in (1, 2, 3))
    allowed = tk.tensor([[False, True, True], [True, False, True], [True, True, True]])
    added = tk.where(allowed, 0.0, -tk.inf)
    for mask, causal in ((allowed, True), (added, True), (~allowed.any(-1, keepdims=True) & allowed, False)):

        def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor = mask, causal: bool = causal) -> Tensor:
            return nn.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)

        y = attend(q, k, v)
        assert y[0, 0].tolist() == [0.0, 0.0]
        gradients = tk.grad(lambda *given: (attend(*given) ** 2).sum(), (0, 1, 2))(q, k, v)
        assert all([bool(tk.isfinite(g).all()) for g in gradients])


def test_attention_drops_weights_only_with_a_key() -> None:
    q = tk.zeros((1, 1, 4), tk.float64)
    k, v = tk.zeros((1, 100, 4), tk.float64), tk.ones((1, 100, 1), tk.float64)
    assert nn.scaled_dot_product_attention(q, k, v, dropout_p=0.5).item() == pytest.approx(1.0)
    dropped = nn.scaled_dot_product_attention(q, k, v, dropout_p=0.5, dropout_key=tk.random.key(0)).item()
    assert dropped * 50 == pytest.approx(round(dropped * 50)) and dropped != pytest.approx(1.0)


# ---- recurrences -------------------------------------------------------------------------------------------

KINDS = (nn.RNN, nn.GRU, nn.LSTM)


@each_of("kind", KINDS)
def test_a_stack_is_a_composition_and_backwards_is_the_reversed_sequence(kind: Any) -> None:
    x = normal(2, 4, 3)
    stack = kind(3, 2, 2, bidirectional=True, key=tk.random.key(0), dtype=tk.float64)

    def one(cell: Any, x: Tensor, reverse: bool) -> tuple[Tensor, Any]:
        layer = kind(1, 1, key=tk.random.key(0)).replace(cells=(cell,))
        outputs, last = layer(x[:, ::-1] if reverse else x)
        return outputs[:, ::-1] if reverse else outputs, last

    y, lasts = x, []
    for i in (0, 2):
        found = [one(stack.cells[i + j], y, j == 1) for j in (0, 1)]
        y = tk.concatenate([outputs for outputs, _ in found], -1)
        lasts += [last for _, last in found]
    outputs, state = stack(x)
    assert_close(outputs, y)
    assert_close(state, tree.map(lambda *parts: tk.stack(parts), *lasts))


@each_of("kind", KINDS)
def test_a_cell_is_a_step_of_its_layer(kind: Any) -> None:
    layer = kind(3, 2, key=tk.random.key(0), dtype=tk.float64)
    x, state = normal(2, 4, 3), None
    for i in range(4):
        state = layer.cells[0](x[:, i], state)
    assert_close(layer(x)[1], state)


@each_of("kind", (nn.GRU, nn.LSTM))
def test_padding_of_sequences_affects_nothing(kind: Any) -> None:
    """Outputs, states and derivatives are those of the sequences alone, with lengths of tensors under jit and vmap."""
    layer = kind(3, 2, 2, bidirectional=True, key=tk.random.key(0), dtype=tk.float64)
    x = normal(3, 4, 3)
    sequences = [x[0, :3], x[1], x[2, :0]]
    padded, lengths = nn.pad_sequence(sequences, padding_value=tk.nan), tk.tensor([3, 4, 0])

    def results(layer: Any, x: Tensor, n: Tensor) -> Any:
        outputs, state = layer(x, lengths=n)
        return outputs.sum() + sum([(2.0 * part).sum() for part in tree.leaves(state)]), (outputs, state)

    def of_one(layer: Any, x: Tensor) -> Any:
        outputs, state = layer(x)
        return outputs.sum() + sum([(2.0 * part).sum() for part in tree.leaves(state)]), (outputs, state)

    def whole(layer: Any, x: Tensor, n: Tensor) -> Any:
        return tk.value_and_grad(results, (0, 1), has_aux=True)(layer, x, n)

    (_, (outputs, state)), (of_layer, of_x) = tk.jit(whole)(layer, padded, lengths)
    each = tk.vmap(whole, in_axes=(None, 0, 0))(layer, padded, lengths)
    alone = [tk.value_and_grad(of_one, (0, 1), has_aux=True)(layer, x) for x in sequences]
    assert_close(of_layer, tree.map(lambda *parts: tk.stack(parts).sum(0), *[g for _, (g, _) in alone]))
    assert_close(each[1][0], tree.map(lambda *parts: tk.stack(parts), *[g for _, (g, _) in alone]))
    for i, ((_, (expected, last)), (_, gradient)) in enumerate(alone):
        n = len(sequences[i])
        assert_close(outputs[i, :n], expected)
        assert_close(tree.map(lambda part, i=i: part[:, i], state), last)
        assert_close(of_x[i, :n], gradient)
        for padding in (outputs[i, n:], of_x[i, n:], each[0][1][0][i, n:], each[1][1][i, n:]):
            assert not padding.any().item()
    restored = nn.unpad_sequence(padded, lengths)
    assert [part.tolist() for part in restored] == [part.tolist() for part in sequences]


def test_sequences_are_padded_on_either_side() -> None:
    sequences = [tk.tensor([[1, 2]]), tk.tensor([[3, 4], [5, 6]])]
    assert nn.pad_sequence(sequences, 7).tolist() == [[[1, 2], [7, 7]], [[3, 4], [5, 6]]]
    assert nn.pad_sequence(sequences, padding_side="left").tolist()[0] == [[0, 0], [1, 2]]


def test_dropout_between_layers_needs_a_key() -> None:
    layer = nn.GRU(2, 3, 2, dropout=1.0, key=tk.random.key(0), dtype=tk.float64)
    x = normal(1, 3, 2)
    without = layer.replace(dropout=nn.Dropout(0.0))
    assert layer(x)[0].tolist() == without(x)[0].tolist()
    dropped, state = layer(x, key=tk.random.key(1))
    nothing, last = nn.GRU(3, 3, key=tk.random.key(0)).replace(cells=layer.cells[1:])(
        tk.zeros((1, 3, 3), tk.float64)
    )
    assert dropped.tolist() == nothing.tolist()
    assert state[1].tolist() == last.tolist()
    assert state[0].tolist() == without(x)[1][0].tolist()


# ---- errors ------------------------------------------------------------------------------------------------


@each_of(
    ("call", "message"),
    [
        (lambda x: nn.conv1d(x, tk.ones((1, 2, 2)), tk.ones((2,))), r"conv1d: got a bias of shape \(2,\), need \(1,\)"),
        (lambda x: nn.conv1d(x[0, 0], tk.ones((1, 2, 2))), r"conv1d: got shape \(4,\), need \(\.\.\., 2, length\)"),
        (lambda x: nn.conv_transpose1d(x, tk.ones((2, 1, 2)), padding=3), "gives an output of -1"),
        (lambda x: nn.conv_transpose1d(x, tk.ones((3, 1, 2))), r"need \(\.\.\., 3, length\)"),
        (
            lambda x: nn.conv_transpose1d(x, tk.ones((2, 1, 2)), output_padding=1),
            r"output_padding must be less than the stride \(1,\) or the dilation \(1,\), got 1",
        ),
        (lambda x: nn.Conv1d(1, 1, 3, padding=(1, 2), key=tk.random.key(0)), "Conv1d: padding must be an int from 0"),
        (lambda x: nn.max_pool1d(x, 2, padding=((0, 2),)), "larger than half a window"),
        (lambda x: nn.avg_pool1d(x, 2, divisor_override=0), "divisor_override must be an int from 1, got 0"),
        (lambda x: nn.lp_pool1d(x, 0, 2), "lp_pool1d: norm_type must not be 0"),
        (lambda x: nn.max_pool1d_with_indices(x[0, 0], 2), r"max_pool1d_with_indices: got shape \(4,\), need"),
        (lambda x: nn.max_unpool1d(x, x, 2), "max_unpool1d: indices must be ints, got float32"),
        (lambda x: nn.max_unpool1d(x, tk.argmax(x, 1), 2), r"indices of shape \(1, 4\); they must be equal"),
        (
            lambda x: nn.MaxUnpool1d(2)(x, x.astype(tk.int32), 10),
            r"output_size 10 differs from \(8,\) by a stride of \(2,\) or more; choose nearer sizes",
        ),
        (
            lambda x: nn.Conv1d(2, 1, 3, padding_mode="wrap", key=tk.random.key(0)),
            "padding_mode must be one of zeros, reflect, replicate, circular, got 'wrap'",
        ),
        (
            lambda x: nn.Conv1d(3, 1, 3, padding=1, padding_mode="reflect", key=tk.random.key(0))(x),
            r"conv1d: got shape \(1, 2, 4\), need \(\.\.\., 3, length\)",
        ),
        (lambda x: nn.LocalResponseNorm(0), "LocalResponseNorm: need a size of one channel or more, got 0"),
        (lambda x: nn.local_response_norm(x[0, 0], 2), r"local_response_norm: got shape \(4,\), need \(count"),
        (lambda x: nn.pad_sequence([]), "pad_sequence: need one sequence or more, got none"),
        (lambda x: nn.pad_sequence([x], padding_side="both"), "padding_side must be 'right' or 'left', got 'both'"),
        (lambda x: nn.pad_sequence([x, x[..., 1:]]), r"got a sequence of shape \(1, 2, 3\), need \(length, 2, 4\)"),
        (lambda x: nn.unpad_sequence(x, [1, 2]), r"got shape \(1, 2, 4\) and lengths \[1, 2\]"),
        (lambda x: nn.unpad_sequence(x, [3]), "unpad_sequence: got length 3, need 0 to 2, the number of steps"),
        (
            lambda x: nn.GRU(4, 2, key=tk.random.key(0))(x, lengths=[1, 2]),
            r"GRU: got lengths of shape \(2,\), need \(1,\), one for each sequence of shape \(1, 2, 4\)",
        ),
        (
            lambda x: nn.GRU(4, 2, key=tk.random.key(0))(x, lengths=tk.ones(1)),
            "GRU: lengths must be ints, got float32",
        ),
        (lambda x: nn.adaptive_avg_pool1d(x, 0), "output_size must be an int from 1, got"),
        (lambda x: nn.adaptive_avg_pool1d(x[..., :0], 1), "has an empty axis"),
        (lambda x: nn.interpolate(x), "give either size or scale_factor"),
        (lambda x: nn.interpolate(x, 2, mode="bilinear"), "mode 'bilinear' is for 2 axes .*use 'linear'"),
        (lambda x: nn.interpolate(x, 2, mode="best"), "mode must be one of nearest, .*, got 'best'"),
        (lambda x: nn.interpolate(x, scale_factor=0.1), "gives an empty axis"),
        (lambda x: nn.interpolate(x, scale_factor=-1), "scale_factor must be a positive number"),
        (lambda x: nn.interpolate(x, 2, align_corners=True), "align_corners and antialias are for linear and cubic"),
        (lambda x: nn.interpolate(x.astype(tk.int32), 2, mode="linear"), "needs floats, got int32"),
        (lambda x: nn.interpolate(x[0], 2), r"got shape \(2, 4\), need \(count, channels, \*sizes\)"),
        (lambda x: nn.pixel_shuffle(x, 2), r"need \(\.\.\., channels \* 4, height, width\)"),
        (lambda x: nn.pixel_unshuffle(x, 3), r"height \* 3"),
        (lambda x: nn.channel_shuffle(x, 3), "with channels that 3 groups divide"),
        (lambda x: nn.pixel_shuffle(x, 0), "pixel_shuffle: need an int from 1, got 0"),
        (lambda x: nn.Pad((1,) * 4)(x), r"Pad: got shape \(1, 2, 4\), need 4 axes or more"),
        (lambda x: nn.GroupNorm(2, 3), "GroupNorm: need groups that divide the channels, got 2 and 3"),
        (lambda x: nn.InstanceNorm(3)(x), r"InstanceNorm: got shape \(1, 2, 4\), need \(count, 3, \.\.\.\)"),
        (lambda x: nn.scaled_dot_product_attention(x, x[..., :3], x), "transpose or reshape them"),
        (
            lambda x: nn.scaled_dot_product_attention(tk.ones((3, 2, 4)), *[tk.ones((2, 2, 4))] * 2, enable_gqa=True),
            "enable_gqa needs heads of queries that are a multiple",
        ),
        (lambda x: nn.scaled_dot_product_attention(x, x, x, dropout_p=2.0), "rate must be from 0 to 1, got 2.0"),
        (lambda x: nn.GRUCell(3, 2, key=tk.random.key(0))(x), r"GRUCell: got shape \(1, 2, 4\), need \(\.\.\., 3\)"),
        (lambda x: nn.GRU(4, 2, 2, key=tk.random.key(0))(x, x[:, 0, :2]), r"need \(2, 1, 2\) with this input"),
        (lambda x: nn.LSTM(4, 2, 0, key=tk.random.key(0)), "number of layers of 1 or more, got 4, 2, 0"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(call: Any, message: str) -> None:
    with pytest.raises((ArgumentError, ShapeError, DTypeError), match=message):
        call(tk.ones((1, 2, 4)))
