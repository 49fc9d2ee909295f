"""Convolutions as machine code: every geometry against the definition, and the programs that have them."""

from __future__ import annotations

import ctypes
import random
from math import prod
from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numpy.lib.stride_tricks import as_strided

import tensorken as tk
from plugins.llvm.tests.test_gemm import UNIT, VECTORS
from plugins.llvm.tests.test_programs import machine
from tensorken_llvm import convolutions
from tensorken_llvm.builder import Builder
from tensorken_llvm.convolutions import Geometry, write_convolution
from tensorken_llvm.dtypes import POINTER
from tensorken_llvm.gemm import Vectors, vectors_of
from tensorken_llvm.machine import load, object_code, triple

has_vectors = pytest.mark.skipif(
    vectors_of("float32") is None, reason="the CPU has no fused multiply-adds of vectors"
)


def definition(x: Any, kernel: Any, strides: Any, dilation: Any, groups: int) -> Any:
    """The convolution of images without padding, in extended precision."""
    x, kernel = x.astype("longdouble"), kernel.astype("longdouble")
    count, _, *sizes = x.shape
    outputs, inputs, *kernel_sizes = kernel.shape
    facts = zip(sizes, kernel_sizes, strides, dilation, strict=True)
    windows = [(n - (k - 1) * step - 1) // stride + 1 for n, k, stride, step in facts]
    x = x.reshape(count, groups, inputs, *sizes)
    steps = [
        *[s * step for s, step in zip(x.strides[3:], dilation, strict=True)],
        *[s * stride for s, stride in zip(x.strides[3:], strides, strict=True)],
    ]
    parts = as_strided(x, (count, groups, inputs, *kernel_sizes, *windows), (*x.strides[:3], *steps))
    parts = parts.reshape(count, groups, inputs * prod(kernel_sizes), prod(windows))
    y = kernel.reshape(groups, outputs // groups, inputs * prod(kernel_sizes)) @ parts
    return y.reshape(count, outputs, *windows)


def convolve(geometry: Geometry, x: Any, kernel: Any) -> Any:
    """The convolution by its machine code, from an input among NaNs."""
    module = ir.Module("convolution")
    module.triple = triple()
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER] * 3), "entry")
    builder = Builder(entry.append_basic_block("entry"))
    builder.call(write_convolution(module, geometry), entry.args)
    builder.ret_void()
    library = load(object_code(str(module), is_quick=False), ["entry"])
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(library.addresses["entry"])
    outputs = geometry.groups * geometry.outputs
    among = np.full(x.size + 200, np.nan, x.dtype)
    among[100:-100] = x.ravel()
    y = np.full((geometry.count, outputs, *geometry.windows), np.nan, x.dtype)
    run(among[100:].ctypes.data, kernel.ctypes.data, y.ctypes.data)
    return y


def drawn(seed: int, vectors: Vectors) -> Geometry:
    """A random geometry."""
    rng = random.Random(seed)
    rank = rng.choice((1, 2, 2, 3))

    def each(*choices: int) -> tuple[int, ...]:
        return tuple(rng.choices(choices, k=rank))

    kernel, strides, dilation = each(1, 2, 3), each(1, 1, 2, 3), each(1, 1, 2)
    windows = (*each(1, 2, 3, 5)[1:], rng.choice((1, 3, 6, 7, 14, 15, 16, 17, 30, 32, 33, 70)))
    facts = zip(windows, kernel, strides, dilation, each(0, 0, 1, 2), strict=True)
    sizes = tuple([(n - 1) * stride + (k - 1) * step + 1 + more for n, k, stride, step, more in facts])
    windows = tuple(
        [
            (n - (k - 1) * step - 1) // stride + 1
            for n, k, stride, step in zip(sizes, kernel, strides, dilation, strict=True)
        ]
    )
    return Geometry(
        vectors=vectors,
        count=rng.choice((1, 2, 3)),
        groups=rng.choice((1, 1, 2)),
        outputs=rng.choice((1, 6, 8, 13)),
        inputs=rng.choice((1, 2, 5)),
        sizes=sizes,
        kernel=kernel,
        windows=windows,
        strides=strides,
        dilation=dilation,
    )


def check(geometry: Geometry, dtype: str, seed: int = 0) -> None:
    """Compare the machine code with the definition, within the rounding errors of sums in any order."""
    rng = np.random.default_rng(seed)
    channels = geometry.groups * geometry.inputs
    x = rng.normal(size=(geometry.count, channels, *geometry.sizes)).astype(dtype)
    outputs = geometry.groups * geometry.outputs
    kernel = rng.normal(size=(outputs, geometry.inputs, *geometry.kernel)).astype(dtype)
    facts = geometry.strides, geometry.dilation, geometry.groups
    bound = definition(abs(x), abs(kernel), *facts) * UNIT[dtype] * (geometry.inputs * geometry.elements + 2)
    y = convolve(geometry, x, kernel)
    assert y.shape == bound.shape
    assert np.all(abs(y - definition(x, kernel, *facts)) <= bound), geometry


@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_random_geometries(dtype: str, kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = VECTORS[dtype][kind]
    few = 30 * vectors.columns * vectors.bytes  # channels at a time
    monkeypatch.setattr(convolutions, "PANEL_BYTES", few)
    geometries = [drawn(seed, vectors) for seed in range(12)]
    geometries.append(
        Geometry(vectors, 2, 1, 8, 2, (9, 3), (2, 3), (8, 1), (1, 1), (1, 1))
    )  # rows of one window
    for seed, geometry in enumerate(geometries):
        check(geometry, dtype, seed)
    assert any([geometry.channels < geometry.inputs for geometry in geometries])
    assert any([geometry.columns > vectors.columns for geometry in geometries])
    assert any([geometry.strides[-1] > 1 for geometry in geometries])


def test_parts_of_images_are_the_same_as_images(monkeypatch: pytest.MonkeyPatch) -> None:
    geometry = Geometry(VECTORS["float32"][1], 1, 1, 8, 3, (23, 21), (3, 3), (21, 19), (1, 1), (1, 1))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 3, 23, 21)).astype("float32")
    kernel = rng.normal(size=(8, 3, 3, 3)).astype("float32")
    found = []
    for parts in (1, 3, 7, 1000):
        monkeypatch.setattr(convolutions, "MIN_PARTS", parts)
        found.append(convolve(geometry, x, kernel))
    for y in found[1:]:
        np.testing.assert_array_equal(y, found[0])


# ---- programs ----------------------------------------------------------------------------------------------

PARAMS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((4, 3, 20, 17), (8, 3, 3, 3), {}),
    "padding": ((4, 3, 12, 17), (9, 3, 3, 2), {"padding": ((1, 2), (0, 3))}),
    "cut": ((2, 3, 20, 17), (8, 3, 3, 3), {"padding": ((-1, 0), (2, -2))}),
    "strides": ((2, 3, 23, 20), (8, 3, 3, 3), {"strides": (2, 1), "padding": "same"}),
    "dilation": ((2, 3, 20, 19), (8, 3, 3, 3), {"kernel_dilation": 2}),
    "transposed": ((2, 4, 9, 8), (12, 4, 4, 4), {"input_dilation": 2, "padding": 2}),
    "groups": ((3, 8, 14, 14), (20, 4, 3, 3), {"groups": 2, "padding": 1}),
    "signal": ((3, 2, 301), (8, 2, 16), {"strides": 3}),
    "volume": ((2, 2, 6, 7, 8), (8, 2, 2, 3, 2), {"padding": 1}),
}


def padded_definition(x: Any, kernel: Any, params: dict[str, Any]) -> Any:
    """The definition, after padding and with zeros between the elements."""
    traced = tk.trace(lambda x, w: tk.convolution(x, w, **params))(tk.tensor(x), tk.tensor(kernel))
    (equation,) = [e for e in traced.equations if e.op.name == "convolution"]
    strides, padding, input_dilation, dilation, groups = equation.params
    sizes = [(n - 1) * step + 1 for n, step in zip(x.shape[2:], input_dilation, strict=True)]
    spread = np.zeros((*x.shape[:2], *sizes), x.dtype)
    spread[(..., *[slice(None, None, step) for step in input_dilation])] = x
    widths = [(max(before, 0), max(after, 0)) for before, after in padding]
    spread = np.pad(spread, [(0, 0), (0, 0), *widths])
    cuts = [
        slice(-min(before, 0), n + min(after, 0))
        for n, (before, after) in zip(spread.shape[2:], padding, strict=True)
    ]
    return definition(spread[(..., *cuts)], kernel, strides, dilation, groups)


@pytest.mark.parametrize("name", PARAMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_programs(name: str, dtype: str) -> None:
    shape, kernel_shape, params = PARAMS[name]
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=shape).astype(dtype), rng.normal(size=kernel_shape).astype(dtype)

    def f(x: Any, kernel: Any) -> Any:
        return tk.convolution(x * 2.0, kernel, **params) + 1.0

    compiled = machine(f, x, kernel)
    if vectors_of(dtype) is not None:
        assert "convolution Geometry" in compiled.source().text()
        names = [kernel.name for kernel in compiled.kernels()]
        assert "gemm" not in names
        (shown,) = [kernel for kernel in compiled.kernels() if kernel.name == "convolution"]
        assert shown.flop == 2 * prod(kernel_shape[1:]) * prod(padded_definition(x, kernel, params).shape)
    (y,) = compiled([x, kernel])
    expected = padded_definition(2 * x, kernel, params) + 1
    bound = (prod(kernel_shape[1:]) + 3) * UNIT[dtype]
    assert np.all(abs(y - expected) <= bound * (padded_definition(abs(2 * x), abs(kernel), params) + 1))


@has_vectors
def test_loops_and_batches_have_them_and_equal_ones_are_one_function() -> None:
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=(5, 4, 8, 20, 20)), rng.normal(size=(8, 8, 3, 3)) * 0.1

    def repeated(x: Any, kernel: Any) -> Any:
        def step(carry: Any, image: Any) -> Any:
            carry = tk.tanh(tk.convolution(carry, kernel, padding=1)) + image
            return tk.convolution(carry, kernel, padding=1), carry.sum()

        return tk.scan(step, x[0], x)

    arguments = [tk.tensor(a.astype("float32")) for a in (x, kernel)]
    compiled = machine(repeated, *[np.asarray(a) for a in arguments])
    definitions = [
        line
        for line in compiled.source().text().splitlines()
        if line.startswith("define") and " image" in line
    ]
    assert len(definitions) == 1
    steps = [kernel.name for kernel in compiled.kernels()]
    assert "loop" in steps
    assert steps.count("convolution") == 2
    images, weights = [tk.tensor(np.asarray(a), "float64") for a in arguments]
    carry = images[0]
    for image in images:
        carry = tk.tanh(tk.convolution(carry, weights, padding=1)) + image
        carry = tk.convolution(carry, weights, padding=1)
    np.testing.assert_allclose(
        compiled([np.asarray(a) for a in arguments])[0], np.asarray(carry), rtol=1e-3, atol=1e-4
    )


@has_vectors
def test_gradients_have_those_with_few_inputs_alone() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, 3, 20, 20)).astype("float32")
    kernel = rng.normal(size=(16, 3, 3, 3)).astype("float32")

    def gradient(x: Any, kernel: Any) -> Any:
        return tk.grad(lambda x, kernel: (tk.convolution(x, kernel) ** 2).sum(), (0, 1))(x, kernel)

    compiled = machine(gradient, x, kernel)
    assert [k.name for k in compiled.kernels()].count("convolution") == 1
    found = compiled([x, kernel])
    expected = gradient(tk.tensor(x, "float64"), tk.tensor(kernel, "float64"))
    for y, z in zip(found, expected, strict=True):
        bound = np.abs(np.asarray(z)).max() * 27 * 16 * 9 * UNIT["float32"] * 8
        np.testing.assert_allclose(y, np.asarray(z), rtol=0, atol=bound)
