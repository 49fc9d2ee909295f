"""Fourier transforms of powers of two: their kernels, errors, and results in programs, derivatives and batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken.lazy.interpreter import Lazy
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.execution.planning import plan
from tensorken_wgpu.kernels import fourier
from tensorken_wgpu.kernels.fourier import ELEMENTS, MAX_RADIX, radixes
from tensorken_wgpu.wgsl.single_op import Value, single

SHAPES = {
    "complex64": [(4,), (300, 8), (2, 5, 32), (128,), (3, 1024), (2, 2048), (1 << 15,)],
    "complex128": [(3, 8), (3, 1024), (2, 2048)],
}


def numbers(shape: Any, dtype: str, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(dtype)


def error(found: Any, x: Any, inverse: bool = False) -> float:
    """The relative error of a transform, in the norm."""
    wide = x.astype(np.clongdouble)
    exact = np.fft.ifft(wide, norm="forward") if inverse else np.fft.fft(wide)
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def transform(x: Any, backend: Any, inverse: bool = False) -> Any:
    """The transform by the op, as an array."""
    parts = [tk.tensor(np.ascontiguousarray(part), backend=backend) for part in (x.real, x.imag)]
    real, imag = parts[0].apply(OPS["fft"], parts[1], inverse)
    found = np.empty(x.shape, x.dtype)
    found.real, found.imag = real, imag
    return found


@each_of(("shape", "dtype"), [(shape, dtype) for dtype, shapes in SHAPES.items() for shape in shapes])
def test_errors_are_at_most_twice_those_of_numpy(lazy: Any, shape: Any, dtype: str) -> None:
    if dtype == "complex128" and "float64" not in lazy.raw.capabilities.dtypes:
        return  # the device has no float64
    inverse = len(shape) > 1
    x = numbers(shape, dtype)
    numpys = np.fft.ifft(x, norm="forward") if inverse else np.fft.fft(x)
    assert error(transform(x, lazy, inverse), x, inverse) <= 2.0 * error(numpys, x, inverse)


@pytest.mark.slow
def test_the_error_of_a_million_elements_is_at_most_twice_that_of_numpy(lazy: Any) -> None:
    x = numbers(1 << 20, "complex64")
    assert error(transform(x, lazy), x) <= 2.0 * error(np.fft.fft(x), x)


def test_up_to_1024_elements_are_one_kernel_for_all_rows(raw: Any) -> None:
    for shape, count in (((4,), 1), ((3, 1024), 1), ((2, 2048), 2), ((1 << 14,), 2), ((1 << 20,), 3)):
        x = Value(shape, DTYPES["float32"])
        program: Any = single(OPS["fft"], [x, x], (False,))
        assert len(plan(program, raw.target).steps) == count


@each_of("bits", range(2, 31))
def test_radixes_divide_a_length_evenly(bits: int) -> None:
    found = radixes(1 << bits)
    assert np.prod(found) == 1 << bits
    assert max(found) <= (ELEMENTS if len(found) == 1 else MAX_RADIX)
    assert max(found) <= 2 * min(found)
    assert all(
        len(found) == 1 or ELEMENTS // radix <= found[0] for radix in found
    )  # columns of a workgroup are neighbours


FUNCTIONS = {
    "axis 0": lambda x: tk.fft.fft(x, axis=0),
    "a padded axis": lambda x: tk.fft.fft(x, 16, axis=1),
    "inverse": lambda x: tk.fft.ifft(x + 1.0, axis=0),
    "real": lambda x: tk.fft.rfft(x.real * 2.0),
    "from half": lambda x: tk.fft.irfft(x, 16),
    "a flipped and a repeated operand": lambda x: tk.fft.fft(
        tk.complex(x.real.flip((0,)), x.imag[:1] + 0 * x.real)
    ),
}


@each_of("name", FUNCTIONS)
def test_programs_and_derivatives_equal_those_on_numpy(lazy: Any, fused: None, name: str) -> None:
    def loss(real: Any, imag: Any) -> Any:
        y = FUNCTIONS[name](tk.complex(real, imag))
        a, b = y.real, y.imag
        return (a * a * 0.5 + b * a + b).sum(), (a, b)

    check(lazy, tk.jit(tk.value_and_grad(loss, (0, 1), has_aux=True)), numbers((8, 5, 32), "complex64"))


def test_batches_equal_those_on_numpy(lazy: Any) -> None:
    for name in ("axis 0", "real"):
        check(lazy, tk.vmap(parts_of(FUNCTIONS[name]), 1), numbers((8, 5, 32), "complex64"))


def check(lazy: Any, function: Any, x: Any) -> None:
    """Compare a function of the parts of x with its results on numpy's backend."""
    results = []
    for backend in (lazy, "numpy"):
        parts = [tk.tensor(np.ascontiguousarray(part), backend=backend) for part in (x.real, x.imag)]
        results.append([np.asarray(y) for y in tk.tree.leaves(function(*parts))])
    for found, expected in zip(*results, strict=True):
        assert found.shape == expected.shape
        assert np.linalg.norm(found - expected) <= 1e-6 * np.linalg.norm(expected)


def count(raw: Any, function: Any, x: Any) -> int:
    """The number of kernels of a function of the parts of x."""
    program = tk.trace(function)(*[tk.zeros(x.shape, backend=raw) for _ in range(2)])
    return len(plan(optimised(program, raw), raw.target).steps)


def parts_of(function: Any) -> Any:
    """A function of complex tensors as one of parts."""

    def of_parts(real: Any, imag: Any) -> Any:
        y = function(tk.complex(real, imag))
        return y.real, y.imag

    return of_parts


COUNTS = {
    "padded, moved and scaled": (lambda z: tk.fft.ifft(z, 64, axis=0), 1),
    "multiplied before": (lambda z: tk.fft.fft(z * tk.exp(z.real[0] * 0.1)), 2),  # one for the repeated row
    "of real numbers": (lambda z: tk.fft.fft(tk.tanh(z.real) - z.imag), 1),
    "two axes": (lambda z: tk.fft.ifft2(z), 2),
    "used twice": (lambda z: tk.fft.fft(z + 1.0) + (z + 1.0), 4),
    "filtered": (lambda z: tk.fft.ifft(tk.fft.fft(z) * z), 2),
    "real and back": (lambda z: tk.fft.irfft(z, 64) + 0j, 2),
}


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small transforms are fused with other ops too."""
    monkeypatch.setattr(fourier, "MIN_FUSED", 0)


@each_of("name", COUNTS)
def test_ops_around_a_transform_are_part_of_its_kernels(lazy: Any, fused: None, name: str) -> None:
    function, expected = COUNTS[name]
    x = numbers((16, 32), "complex64")
    assert count(lazy.raw, parts_of(function), x) == expected
    check(lazy, tk.jit(parts_of(function)), x)


def test_ops_that_read_more_values_than_a_kernel_may_have_kernels_of_their_own(raw: Any, fused: None) -> None:
    few = Wgpu(raw.device)
    few.target = replace(raw.target, bindings=5)  # two of operands, two of results, and the table

    def real_part(a: Any, b: Any, c: Any, d: Any) -> Any:
        return tk.fft.fft(tk.complex(a + b * c, d)).real

    found = []
    for backend, kernels in ((raw, 1), (few, 2)):
        program = tk.trace(real_part)(*[tk.zeros((4, 16), backend=backend)] * 4)
        assert len(plan(optimised(program, backend), backend.target).steps) == kernels
        lazy = Lazy(backend)
        xs = [tk.tensor(numbers((4, 16), "complex64", i).real.copy(), backend=lazy) for i in range(4)]
        found.append(np.asarray(tk.jit(real_part)(*xs)))
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-5)


def test_rows_with_infinities_and_nans_are_not_finite_and_others_are_as_before(lazy: Any) -> None:
    x = numbers((6, 16), "complex64")
    expected = transform(x, lazy)
    x[1, 3], x[4, 0], x[5, 2] = np.inf, np.nan, 3e38
    found = transform(x, lazy)
    assert not np.isfinite(found[[1, 4]]).any()
    assert np.array_equal(found[[0, 2, 3]], expected[[0, 2, 3]])
    assert np.isfinite(found[5]).all()


def test_the_backend_runs_single_ops_by_kernels_or_by_their_body(raw: Any) -> None:
    for n in (16, 6):
        x = numbers((2, n), "complex64")
        assert error(transform(x, raw, True), x, True) <= 2e-7


def test_overflowing_sums_are_infinite(lazy: Any) -> None:
    x = np.full((1, 8), 3e38, "complex64")
    assert transform(x, lazy)[0, 0].real == np.inf


def test_operands_may_be_larger_than_a_binding(device: Any) -> None:
    raw = Wgpu(device)
    x = numbers((3, 2048), "complex64")
    for bindings, has_kernels in ((9, True), (8, False)):  # two parts of each of 4 values, and a table
        raw.target = replace(raw.target, binding_size=16640, bindings=bindings)
        value = Value(x.shape, DTYPES["float32"])
        assert raw.runs_body(OPS["fft"], [value, value]) != has_kernels
    raw.target = replace(raw.target, binding_size=16640, bindings=9)
    assert error(transform(x, Lazy(raw)), x) <= 1e-7
