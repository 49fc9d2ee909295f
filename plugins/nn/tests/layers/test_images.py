"""Convolutions and pooling: definitions in plain Python, laws and errors."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.layers.windows import windows

KEY = tk.random.key(0)
CASES = [((6, 5), (3, 2), (1, 1), (1, 1)), ((6, 5), (2, 2), (2, 2), (1, 1)), ((7, 6), (2, 3), (3, 1), (2, 2))]


@pytest.mark.parametrize(("size", "kernel", "strides", "dilations"), CASES)
def test_windows_agree_with_their_definition(
    backend: str, size: Any, kernel: Any, strides: Any, dilations: Any
) -> None:
    x = tk.arange(2 * 3 * size[0] * size[1]).reshape(2, 3, *size)
    result, elements = windows("test", x, kernel, strides, dilations).tolist(), x.tolist()
    down, across = (
        (n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(size, kernel, strides, dilations, strict=True)
    )
    expected = [
        [
            [
                [
                    [
                        [
                            image[k * strides[0] + i * dilations[0]][m * strides[1] + j * dilations[1]]
                            for m in range(across)
                        ]
                        for k in range(down)
                    ]
                    for image in images
                ]
                for j in range(kernel[1])
            ]
            for i in range(kernel[0])
        ]
        for images in elements
    ]
    assert result == expected


def test_a_convolution_is_linear_and_translation_equivariant() -> None:
    layer = nn.Conv2d(2, 3, 3, padding=1, bias=False, key=KEY, dtype=tk.float64)
    x, y = (tk.random.normal(tk.random.key(seed), (2, 2, 8, 8), tk.float64) for seed in (1, 2))
    tk.testing.check_grads(layer, (x,), order=2)
    assert tk.allclose(layer(x * 2.0 + y), layer(x) * 2.0 + layer(y), rtol=1e-12, atol=1e-12)
    inside = tk.pad(x[..., 2:6, 2:6], ((0, 0), (0, 0), (2, 2), (2, 2)))
    assert tk.allclose(
        layer(tk.roll(inside, (1, -1), (2, 3))), tk.roll(layer(inside), (1, -1), (2, 3)), atol=1e-12
    )


def test_grouped_convolutions_equal_separate_ones(backend: str) -> None:
    layer = nn.Conv2d(4, 6, 2, groups=2, key=tk.random.key(0), dtype=tk.float64)
    x = tk.random.normal(tk.random.key(1), (2, 4, 3, 3), tk.float64)
    halves = [
        nn.conv2d(x[:, 2 * i : 2 * i + 2], layer.weight[3 * i : 3 * i + 3], layer.bias[3 * i : 3 * i + 3])
        for i in range(2)
    ]
    assert layer(x).ravel().tolist() == pytest.approx(tk.concatenate(halves, 1).ravel().tolist(), rel=1e-12)


def test_a_1x1_kernel_is_a_linear_layer_on_each_pixel(backend: str) -> None:
    layer = nn.Conv2d(3, 2, 1, key=tk.random.key(0), dtype=tk.float64)
    x = tk.random.normal(tk.random.key(1), (2, 3, 4, 5), tk.float64)
    expected = tk.moveaxis(tk.moveaxis(x, 1, -1) @ layer.weight.reshape(2, 3).T + layer.bias, -1, 1)
    assert layer(x).ravel().tolist() == pytest.approx(expected.ravel().tolist(), rel=1e-12, abs=1e-12)


def test_same_padding_keeps_the_size_and_leading_axes() -> None:
    for kernel, dilation in itertools.product((1, 2, 3, (4, 5)), (1, 2)):
        layer = nn.Conv2d(2, 3, kernel, padding="same", dilation=dilation, key=KEY)
        assert layer(tk.ones((4, 5, 2, 9, 10))).shape == (4, 5, 3, 9, 10)
    assert nn.Conv2d(2, 3, 3, padding="valid", key=KEY)(tk.ones((2, 9, 10))).shape == (3, 7, 8)
    assert nn.MaxPool2d(2)(tk.ones((4, 5, 2, 9, 10))).shape == (4, 5, 2, 4, 5)
    assert nn.AvgPool2d(2)(tk.ones((0, 2, 9, 10))).shape == (0, 2, 4, 5)


def test_integers_can_be_pooled(backend: str) -> None:
    x = tk.arange(-16, 0).reshape(1, 4, 4)
    assert nn.max_pool2d(x, 2).tolist() == [[[-11, -9], [-3, -1]]]
    assert nn.max_pool2d(x, 3, 2, 1).tolist() == [[[-11, -9], [-3, -1]]]
    assert nn.avg_pool2d(x, 2).tolist() == [[[-13.5, -11.5], [-5.5, -3.5]]]


def test_equal_maxima_share_the_derivative() -> None:
    gradient = tk.grad(lambda x: nn.max_pool2d(x, 2).sum())(tk.tensor([[[1.0, 2.0], [2.0, 0.0]]]))
    assert gradient.tolist() == [[[0.0, 0.5], [0.5, 0.0]]]


def test_padding_is_never_the_maximum_but_nan_is() -> None:
    x = tk.tensor([[[-5.0, float("nan")], [-float("inf"), -7.0]]])
    pooled = nn.max_pool2d(x, 2, 1, 1).tolist()[0]
    assert pooled[0][0] == -5.0 and pooled[2][0] == -float("inf") and pooled[2][2] == -7.0
    assert pooled[1][1] != pooled[1][1]


def test_a_small_convolutional_network_learns_stripes(backend: str) -> None:
    """The label is whether stripes are horizontal or vertical, which depends on more than one pixel."""
    across = tk.stack([tk.tensor([[float((i + shift) % 2)] * 4 for i in range(4)]) for shift in (0, 1)])
    x = tk.concatenate([across, across.swapaxes(1, 2)]).reshape(4, 1, 4, 4) - 0.5
    labels = tk.tensor([0, 0, 1, 1])
    keys = tk.random.split(tk.random.key(2))
    model: Any = nn.Sequential(
        nn.Conv2d(1, 4, 2, key=keys[0]), tk.relu, nn.GlobalAvgPool2d(), nn.Linear(4, 2, key=keys[1])
    )

    @tk.jit
    def step(model: Any) -> Any:
        value, gradient = tk.value_and_grad(lambda model: nn.cross_entropy(model(x), labels))(model)
        return value, tk.tree.map(lambda p, g: p - g, model, gradient)

    for _ in range(40):
        value, model = step(model)
    assert value.item() < 0.1
    assert nn.accuracy(model(x), labels).item() == 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Conv2d(0, 1, 3, key=KEY), "Conv2d: need one input and one output or more, got 0, 1"),
        (
            lambda: nn.Conv2d(4, 6, 3, groups=3, key=KEY),
            "Conv2d: 3 groups do not divide 4 inputs and 6 outputs",
        ),
        (
            lambda: nn.Conv2d(1, 1, 0, key=KEY),
            "Conv2d: kernel_size must be an int from 1, or 2 of them, got 0",
        ),
        (lambda: nn.Conv2d(1, 1, (1, 2, 3), key=KEY), r"Conv2d: kernel_size must be .*, got \(1, 2, 3\)"),
        (
            lambda: nn.Conv2d(1, 1, 3, padding=-1, key=KEY),
            "Conv2d: padding must be an int from 0, or for each of 2 axes an int or a pair of ints, got -1",
        ),
        (
            lambda: nn.Conv2d(1, 1, 3, padding="full", key=KEY),
            "padding must be ints, 'same' or 'valid', got 'full'",
        ),
        (
            lambda: nn.Conv2d(1, 1, 3, 2, "same", key=KEY),
            r"Conv2d: padding 'same' needs stride 1, got \(2, 2\)",
        ),
        (
            lambda: nn.MaxPool2d(2, padding=2),
            r"MaxPool2d: padding 2 is larger than half a window of \(2, 2\)",
        ),
        (lambda: nn.AvgPool2d(2.0), "AvgPool2d: kernel_size must be an int from 1, or 2 of them, got 2.0"),
    ],
)
def test_bad_arguments_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: nn.Conv2d(3, 1, 2, key=KEY)(x),
            r"conv2d: got shape \(1, 2, 4, 5\), need \(\.\.\., 3, height, width\)",
        ),
        (
            lambda x: nn.Conv2d(2, 1, 5, key=KEY)(x),
            "conv2d: inputs of 4 x 5, with padding, are smaller than windows of 5 x 5",
        ),
        (lambda x: nn.Conv2d(2, 1, 3, dilation=2, key=KEY)(x), r"windows of 3 x 3 with dilation \(2, 2\)"),
        (
            lambda x: nn.max_pool2d(x[0, 0], 2),
            r"max_pool2d: got shape \(4, 5\), need \(\.\.\., channels, height, width\)",
        ),
        (lambda x: nn.GlobalAvgPool2d()(x[0, 0]), r"GlobalAvgPool2d: got shape \(4, 5\), need"),
        (lambda x: nn.conv2d(x, tk.ones((3, 2))), r"conv2d: got a weight of shape \(3, 2\) in 1 groups"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        call(tk.ones((1, 2, 4, 5)))
