"""Shared rows: reductions on a GPU read each element once, with the numbers of IEEE 754, in any layout."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from math import ceil, prod
from typing import Any

import numpy as np
import pytest

import tensorken as tk
import tensorken_nn as nn
from backends.wgpu.tests.accesses import accesses
from backends.wgpu.tests.test_fusion import check_against_numpy, drawn_program
from core.tests.each import each_of
from tensorken.kernels.positions import with_positions
from tensorken.kernels.rows import Rows
from tensorken.programs.passes.pipeline import optimised
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.execution.planning import plan
from tensorken_wgpu.kernels import column_sums, layouts, shared_rows
from tensorken_wgpu.kernels.layouts import layout_of
from tensorken_wgpu.wgsl.target import Target

HARDWARE = Target(8, 2**27, False)


@pytest.fixture(scope="module")
def gpu(raw: Any) -> Any:
    """A backend that takes the device for a GPU."""
    backend = Wgpu(raw.device)
    backend.target = replace(raw.target, is_software=False, fast_64_bit=False)
    return tk.Lazy(backend)


# ---- functions over rows: x is of shape (rows, length), gain and bias (length,), labels (rows,) ----------------


def softmax_of_ops(x: Any) -> Any:
    exponentials = tk.exp(x - x.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def variance(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return (centred * centred).mean(-1)


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / tk.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * gain + bias


def rms_norm(x: Any, gain: Any) -> Any:
    return x / tk.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gain


def cross_entropy(x: Any, labels: Any) -> Any:
    return nn.losses.cross_entropy(x, labels)


def cross_entropy_and_gradient(x: Any, labels: Any) -> Any:
    return tk.value_and_grad(lambda x: cross_entropy(x, labels))(x)


def gradient_of(function: Any, count: int = 1) -> Any:
    """The gradients of a function for its first arguments, given the cotangent of its result as the last argument."""

    def gradient(*given: Any) -> Any:
        *operands, cotangent = given
        arguments = tuple(range(count))
        return tk.grad(lambda *xs: (function(*xs) * cotangent).sum(), argnums=arguments)(*operands)

    return gradient


FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "softmax": (lambda x: tk.softmax(x), "x"),
    "log_softmax": (lambda x: tk.log_softmax(x), "x"),
    "logsumexp": (lambda x: tk.logsumexp(x, -1), "x"),
    "layer norm": (layer_norm, "xgg"),
    "RMS norm": (rms_norm, "xg"),
    "cross-entropy": (cross_entropy, "xl"),
    "gradient of softmax": (gradient_of(lambda x: tk.softmax(x)), "xx"),
    "gradient of log_softmax": (gradient_of(lambda x: tk.log_softmax(x)), "xx"),
    "gradients of layer norm": (gradient_of(layer_norm, 3), "xggx"),
    "gradients of RMS norm": (gradient_of(rms_norm, 2), "xgx"),
    "cross-entropy and gradient": (cross_entropy_and_gradient, "xl"),
}
LENGTHS = (1, 31, 1000, 1024, 4097, 8192, 50257)
SOME = (
    ("softmax", 31),
    ("log_softmax", 1000),
    ("layer norm", 1024),
    ("RMS norm", 4097),
    ("gradients of layer norm", 31),
    ("cross-entropy and gradient", 1000),
    ("cross-entropy", 50257),
    ("layer norm", 50257),
)


def given_arrays(kinds: str, rows: int, length: int) -> list[Any]:
    """Random arguments of the kinds of `FUNCTIONS`."""
    rng = np.random.default_rng(length)
    shapes = {"x": (rows, length), "g": (length,)}
    return [
        rng.integers(0, length, rows).astype(np.int32)
        if kind == "l"
        else (rng.normal(size=shapes[kind]) * (3 if kind == "x" else 1)).astype(np.float32)
        for kind in kinds
    ]


def flat(results: Any) -> list[Any]:
    return [np.asarray(v) for v in (results if isinstance(results, (tuple, list)) else [results])]


def check(name: str, length: int, gpu: Any) -> None:
    """Compare with numpy in float64; rows of up to 31 elements with the reference as well."""
    function, kinds = FUNCTIONS[name]
    arrays = given_arrays(kinds, 5 if length < 8192 else 2, length)
    found = flat(tk.jit(function)(*[tk.tensor(x, backend=gpu) for x in arrays]))
    exact = [x.astype(np.float64) if x.dtype == np.float32 else x for x in arrays]
    for backend in ["numpy", *["reference"] * (length <= 31)]:
        expected = flat(function(*[tk.tensor(x, backend=backend) for x in exact]))
        for ours, others in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, others, rtol=1e-6, atol=2e-6 * max(np.abs(others).max(), 1))


@each_of(("name", "length"), SOME)
def test_functions_over_rows(name: str, length: int, gpu: Any) -> None:
    check(name, length, gpu)


@pytest.mark.nightly
@each_of(("name", "length"), [(name, n) for name in FUNCTIONS for n in LENGTHS if (name, n) not in SOME])
def test_all_functions_over_rows_of_all_lengths(name: str, length: int, gpu: Any) -> None:
    check(name, length, gpu)


# ---- special numbers -------------------------------------------------------------------------------------------


def special_rows(length: int) -> Any:
    x = np.random.default_rng(0).normal(size=(12, length)) * 8
    x[1] = -np.inf
    x[2, 5] = np.inf
    x[3, 7] = np.nan
    x[4] -= 600.0
    x[5].sort()
    x[6] = np.sort(x[6])[::-1]
    x[7, :-1] = -np.inf
    x[8, ::2] = -np.inf
    x[9] = np.linspace(-90.0, 90.0, length)
    x[10] = 1e4 + x[0] * 1e-2
    x[11] = 0.0
    x[11, [length // 2, length // 3]] = np.inf
    return x


SUMS_OF_EXPONENTIALS: dict[str, tuple[Any, int]] = {  # and their errors in units of the machine epsilon
    "softmax": (FUNCTIONS["softmax"][0], 10),
    "log_softmax": (FUNCTIONS["log_softmax"][0], 4),
    "logsumexp": (FUNCTIONS["logsumexp"][0], 4),
    "softmax of ops": (softmax_of_ops, 120),  # its differences are rounded, and are up to 180
}


@each_of(
    ("name", "dtype", "length"),
    [
        ("softmax", "float32", 3000),
        ("softmax", "float32", 9001),
        ("logsumexp", "float32", 2**17),
        ("logsumexp", "float64", 9001),
        ("softmax of ops", "float32", 9000),
        ("variance", "float32", 3000),
        ("variance", "float32", 9001),
        ("variance", "float32", 2**17),
    ],
)
def test_special_numbers(name: str, dtype: str, length: int, gpu: Any) -> None:
    """In registers, in passes, and in parts; infinities, NaN, and rows whose maximum often changes."""
    if dtype not in gpu.raw.capabilities.dtypes:
        return
    x = special_rows(length).astype(dtype)
    function, most = SUMS_OF_EXPONENTIALS.get(name, (variance, 20))
    exact = x.astype(np.float64)
    found = np.asarray(tk.jit(function)(tk.tensor(x, backend=gpu))).astype(np.float64)
    expected = np.asarray(function(tk.tensor(exact, backend="numpy")))
    assert (np.isnan(found) == np.isnan(expected)).all()
    finite = np.isfinite(expected)
    infinite = np.isinf(expected)
    assert (found[infinite] == expected[infinite]).all()
    found, expected = found[finite], expected[finite]
    eps = np.finfo(x.dtype).eps
    bound = most * eps * np.abs(expected) + np.finfo(x.dtype).tiny
    if name == "variance":  # the mean is rounded
        bound += (eps * exact[finite].mean(-1)) ** 2
    assert (np.abs(found - expected) <= bound).all()


def test_a_variance_keeps_its_digits_far_from_zero(gpu: Any) -> None:
    """The differences from the first element of the row have no large mean."""
    x = (1e6 + np.random.default_rng(0).normal(size=(3, 20000))).astype(np.float32)
    found = np.asarray(tk.jit(variance)(tk.tensor(x, backend=gpu)))
    np.testing.assert_allclose(found, x.astype(np.float64).var(-1), rtol=1e-5)


# ---- counts ----------------------------------------------------------------------------------------------------


def kernels_of(function: Any, gpu: Any, *arguments: Any) -> tuple[Any, list[Any]]:
    """The program of a function, and its kernels on a GPU with large bindings."""
    program = optimised(tk.trace(function)(*arguments), gpu.raw)
    program = with_positions(program, gpu.raw)
    target = replace(gpu.raw.target, binding_size=2**31)
    return program, [step.kernel for step in plan(program, target).steps]


def counted(kernels: Sequence[Any], value: Any) -> int:
    """How often kernels access each element of a value, rounded up if a part of the elements is read less often."""
    exact = sum([accesses(kernel, value) for kernel in kernels])
    return int(exact) if exact < 1.15 * int(exact) else ceil(exact)


@each_of(
    ("name", "short", "long"),
    [
        ("softmax", (1, 1), (2, 1)),
        ("log_softmax", (1, 1), (2, 1)),
        ("logsumexp", (1, 0), (1, 0)),
        ("layer norm", (1, 1), (2, 1)),
        ("RMS norm", (1, 1), (2, 1)),
        ("cross-entropy", (1, 0), (1, 0)),
        ("gradient of softmax", (1, 1, 1), (3, 2, 1)),
        ("gradient of log_softmax", (1, 1, 1), (2, 2, 1)),
        ("cross-entropy and gradient", (1, 1), (2, 1)),
        ("gradients of layer norm", (1, 1, 1), (5, 4, 1)),
        ("gradients of RMS norm", (1, 1, 1), (4, 3, 1)),
    ],
)
def test_reads_and_writes_of_each_element(
    name: str, short: tuple[int, ...], long: tuple[int, ...], gpu: Any
) -> None:
    """Of the arrays of rows that are read, and of those that are written."""
    function, kinds = FUNCTIONS[name]
    for rows, length, expected in ((16384, 1000, short), (16384, 8192, short), (512, 50256, long)):
        shapes = {"x": (rows, length), "g": (length,), "l": (rows,)}
        arguments = [
            tk.zeros(shapes[kind], dtype=tk.int32 if kind == "l" else tk.float32, backend=gpu)
            for kind in kinds
        ]
        program, kernels = kernels_of(function, gpu, *arguments)
        full = [v for v in program.inputs if prod(v.shape) == rows * length]
        written = {v for kernel in kernels for v in kernel.writes if prod(v.shape) == rows * length}
        *reads, writes = expected
        assert [counted(kernels, v) for v in full] == reads
        assert sum([counted([k for k in kernels if v in k.writes], v) for v in written]) == writes


@each_of(
    ("shape", "axis"),
    [
        ((2**24,), 0),
        ((4, 2**22), 1),
        ((65536, 64), 0),
        ((65536, 10), 0),
        ((32, 64, 3136), (0, 2)),
        ((2**20, 3), 0),
    ],
)
def test_few_long_rows_keep_a_gpu_busy(shape: tuple[int, ...], axis: Any, gpu: Any) -> None:
    """The first of two kernels has enough invocations with several accesses at once, and writes little."""
    program, (first, second) = kernels_of(lambda x: x.sum(axis), gpu, tk.zeros(shape, backend=gpu))
    (x,) = program.inputs
    assert counted([first], x) == 1
    assert prod(first.workgroups) >= 128
    assert prod(first.workgroups) * 256 >= 2**15
    assert sum([prod(v.shape) for v in first.writes]) <= prod(shape) / 64
    assert x not in second.reads


@each_of(
    ("shape", "axis"),
    [
        ((2**18,), 0),
        ((3, 100001), 1),
        ((20001, 10), 0),
        ((5, 4000, 12), 1),
        ((32, 8, 49), (0, 2)),
        ((40, 300), 0),
    ],
)
def test_sums_and_maxima_in_parts(shape: tuple[int, ...], axis: Any, gpu: Any) -> None:
    """Of integers exactly, of floats with the same bits each time."""
    rng = np.random.default_rng(0)
    whole = rng.integers(-(2**31), 2**31, shape).astype(np.int32)
    run = tk.jit(lambda x: (x.sum(axis), x.max(axis)))
    total, largest = run(tk.tensor(whole, backend=gpu))
    np.testing.assert_array_equal(np.asarray(total), whole.sum(axis, dtype=np.int32))
    np.testing.assert_array_equal(np.asarray(largest), whole.max(axis))
    x = rng.normal(size=shape).astype(np.float32)
    sums = [np.asarray(run(tk.tensor(x, backend=gpu))[0]) for _ in range(2)]
    assert sums[0].tobytes() == sums[1].tobytes()
    exact = x.astype(np.float64)
    assert (np.abs(sums[0] - exact.sum(axis)) <= 64 * 2.0**-24 * np.abs(exact).sum(axis)).all()


def test_results_are_written_in_the_pass_that_adds_them(gpu: Any) -> None:
    """The gradient of a bias reads the cotangent of a layer no more than the kernel that computes it."""

    def gradients(x: Any, cotangent: Any) -> Any:
        of_layer = tk.where(x > 0.0, cotangent, 0.0)
        return of_layer, of_layer.sum(0)

    arrays = [np.random.default_rng(i).normal(size=(30001, 12)).astype(np.float32) for i in (0, 1)]
    given = [tk.tensor(x, backend=gpu) for x in arrays]
    program, kernels = kernels_of(gradients, gpu, *given)
    assert [counted(kernels, v) for v in program.inputs] == [1, 1]
    assert len(kernels) == 2
    of_layer, of_bias = tk.jit(gradients)(*given)
    expected = np.where(arrays[0] > 0.0, arrays[1], 0.0)
    np.testing.assert_array_equal(np.asarray(of_layer), expected)
    np.testing.assert_allclose(np.asarray(of_bias), expected.sum(0, dtype=np.float64), rtol=1e-4, atol=1e-3)


def test_neighbours_read_neighbours() -> None:
    """Several short rows share a workgroup, and columns are read in segments of 128 bytes."""
    short = layout_of(Rows((65536, 32), (1,)), HARDWARE)
    assert (short.sharing, short.steps, short.rows) == (8, 4, 8)
    tall = layout_of(Rows((65536, 64), (0,)), HARDWARE)
    assert (tall.is_across, tall.lanes, tall.rows * tall.lanes) == (True, 4, 32)
    for rows in (Rows((7, 8192), (1,)), Rows((10**5, 8192), (1,)), Rows((64, 4099), (1,))):
        assert layout_of(rows, HARDWARE).is_in_registers


# ---- sums of columns -------------------------------------------------------------------------------------------


class SmallTarget(Target):
    """A GPU that few invocations keep busy."""

    @property
    def busy_invocations(self) -> int:
        return 2**6


@pytest.fixture(scope="module")
def small_gpu(raw: Any) -> Any:
    backend = Wgpu(raw.device)
    given = {field.name: getattr(raw.target, field.name) for field in fields(Target)}
    backend.target = SmallTarget(**{**given, "is_software": False, "fast_64_bit": False})
    return tk.Lazy(backend)


@each_of(
    ("name", "shape"),
    [
        ("gradients of layer norm", (130, 100)),
        ("gradients of layer norm", (500, 9)),
        ("gradients of RMS norm", (3000, 8)),
    ],
)
def test_gradients_of_rows_and_weights_in_one_kernel(
    name: str, shape: tuple[int, int], small_gpu: Any
) -> None:
    """A second kernel adds the sums of columns, also if the rows are not a multiple of the sets of invocations."""
    function, kinds = FUNCTIONS[name]
    arrays = given_arrays(kinds, *shape)
    given = [tk.tensor(x, backend=small_gpu) for x in arrays]
    program, kernels = kernels_of(function, small_gpu, *given)
    assert [sum([v in kernel.reads for v in program.inputs if v.shape == shape]) for kernel in kernels] == [
        2,
        0,
    ]
    expected = function(*[tk.tensor(x.astype(np.float64), backend="numpy") for x in arrays])
    for ours, others in zip(flat(tk.jit(function)(*given)), flat(expected), strict=True):
        np.testing.assert_allclose(ours, others, rtol=1e-6, atol=2e-6 * np.abs(others).max())


# ---- labels ----------------------------------------------------------------------------------------------------


def test_labels_out_of_range_pick_zero(gpu: Any) -> None:
    """The sum has no element then, as on other backends; also if the element of the label is infinite or NaN."""
    x = np.array([[1.0, np.inf, np.nan, -0.0, 5.0]] * 7, np.float32)
    labels = np.array([0, 1, 2, 3, 5, -1, 2**31 - 1], np.int32)

    def picked(x: Any, labels: Any) -> Any:
        return tk.where(labels.reshape((7, 1)) == list(range(5)), x, 0.0).sum(-1)

    found = np.asarray(tk.jit(picked)(*[tk.tensor(a, backend=gpu) for a in (x, labels)]))
    np.testing.assert_array_equal(found, np.array([1.0, np.inf, np.nan, 0.0, 0.0, 0.0, 0.0], np.float32))


# ---- any layout ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@each_of("seed", range(24))
def test_random_programs_in_random_layouts(seed: int, gpu: Any, small_gpu: Any) -> None:
    """Layouts for large arrays, such as parts of rows, are chosen here for small ones."""
    rng = random.Random(seed)
    shape = rng.choice([(4, 8, 8), (2, 4, 12), (1, 8, 4), (4, 6, 5), (3, 70, 9), (40, 3, 17)])
    with pytest.MonkeyPatch.context() as patch:
        most = rng.choice([1, 4, 8, 32])
        patch.setattr(layouts, "MAX_ELEMENTS", most)
        patch.setattr(shared_rows, "MAX_LINES", rng.choice([64, 512, 4096]))
        patch.setattr(layouts, "USUAL_ELEMENTS", rng.choice([1, 4, 16]))
        patch.setattr(layouts, "MAX_INVOCATIONS", invocations := rng.choice([8, 16, 256]))
        patch.setattr(layouts, "MIN_INVOCATIONS", rng.choice([1, 4]))
        patch.setattr(layouts, "SEGMENT", min(rng.choice([4, 8, 32]), invocations))
        patch.setattr(layouts, "PASSES", rng.choice([1, 2]))
        patch.setattr(column_sums, "MIN_ROWS", 2)
        function = drawn_program(seed)
        if seed % 3 == 0:
            function = tk.grad(
                lambda x, y, f=function: sum([(v * v).mean() for v in f(x, y)]), argnums=(0, 1)
            )
        check_against_numpy(function, rng.choice([gpu, small_gpu]), shape, seed, rtol=1e-3, atol=2e-5)
