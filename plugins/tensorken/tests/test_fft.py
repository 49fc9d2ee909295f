"""tk.fft: compared with numpy.fft, its derivatives, and its transforms on all backends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken.ops import fourier_bodies
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_numpy.backend import Numpy

LENGTHS = [*range(1, 18), 31, 64, 97, 100, 1000]
NORMS = ["backward", "ortho", "forward"]
TO_COMPLEX = ["fft", "ifft", "rfft", "ihfft"]
TO_REAL = ["irfft", "hfft"]
OF_REAL = {"rfft", "ihfft", "rfftn", "rfft2"}
BOUND = {np.dtype("complex64"): 2e-6, np.dtype("complex128"): 4e-15}
BACKENDS = [record.name for record in tk.backends() if record.name != "string"]


def numbers(shape: Any, dtype: str = "complex128", seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape)).astype(dtype) if "complex" in dtype else x.astype(dtype)


def operand_of(name: str, shape: Any, wide: bool = True) -> Any:
    real = name in OF_REAL
    return numbers(
        shape, ("float64" if wide else "float32") if real else "complex128" if wide else "complex64"
    )


def close(got: tk.Tensor, expected: Any) -> None:
    """Whether a tensor has the dtype, the shape and nearly the values of an array, compared with its norm."""
    y = got.numpy()
    assert y.dtype == expected.dtype
    assert y.shape == expected.shape
    bound = BOUND[np.result_type(expected.dtype, np.complex64)]
    size = np.sqrt(np.mean(np.abs(expected) ** 2)) if expected.size else 0.0
    assert np.abs(y - expected).max(initial=0.0) <= bound * 8 * max(size, 1e-3)


class WithoutTransforms(Numpy):
    """numpy's backend, on which the bodies of the transforms run."""

    def __repr__(self) -> str:
        return "WithoutTransforms()"


for _name in ("fft", "rfft", "irfft"):
    setattr(WithoutTransforms, _name, getattr(RawTensor, _name))
BODIES = WithoutTransforms()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", TO_COMPLEX + TO_REAL)
@pytest.mark.parametrize("n", LENGTHS)
def test_transforms_equal_numpys(name, n, norm):
    for wide in (True, False):
        x = operand_of(name, (2, n), wide)
        if name in TO_REAL and n == 1:  # the result would have no elements
            close(getattr(tk.fft, name)(x, 1, norm=norm), getattr(np.fft, name)(x, 1, norm=norm))
            continue
        close(getattr(tk.fft, name)(x, norm=norm), getattr(np.fft, name)(x, norm=norm))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("axis", [0, 1, -1, -3])
@pytest.mark.parametrize("name", TO_COMPLEX + TO_REAL)
def test_lengths_crop_and_pad_along_an_axis(name, axis, n):
    x = operand_of(name, (4, 5, 3))
    close(getattr(tk.fft, name)(x, n, axis), getattr(np.fft, name)(x, n, axis))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("s", "axes"),
    [
        (None, None),
        (None, (0,)),
        (None, (1, 0)),
        (None, (-1, 0, 1)),
        ((4, 3), (0, 1)),
        ((2, 7), (2, 0)),
        ((5, 5, 5), (0, 1, 2)),
    ],
)
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_along_several_axes_equal_numpys(name, s, axes, norm):
    x = operand_of(name, (3, 4, 6))
    close(getattr(tk.fft, name)(x, s, axes, norm), getattr(np.fft, name)(x, s, axes, norm))


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
def test_transforms_along_two_axes_equal_numpys(name):
    x = operand_of(name, (3, 4, 6))
    close(getattr(tk.fft, name)(x), getattr(np.fft, name)(x))
    close(getattr(tk.fft, name)(x, (2, 5), (0, 2)), getattr(np.fft, name)(x, (2, 5), (0, 2)))
    close(getattr(tk.fft, name)(x, (-1, 5)), getattr(np.fft, name)(x, (4, 5), (1, 2)))


def test_lengths_without_axes_are_those_of_the_last_axes():
    x = numbers((3, 4, 6))
    close(tk.fft.fftn(x, (2, 5)), np.fft.fftn(x, (2, 5), (1, 2)))
    close(tk.fft.fftn(x, axes=()), x)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "int64", "uint8", "float16"])
def test_other_dtypes_become_float32(dtype):
    x = np.arange(6).astype(dtype)
    close(tk.fft.fft(tk.tensor(x)), np.fft.fft(x.astype("float32")))
    close(tk.fft.irfft(tk.tensor(x)), np.fft.irfft(x.astype("complex64")))


# ---- bodies --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [*LENGTHS, 61, 67, 134, 509, 1024])
def test_the_bodies_equal_numpys(n, dtype):
    x, y = [tk.tensor(numbers((2, n), dtype, seed), backend=BODIES) for seed in (0, 1)]
    z = x.numpy() + 1j * y.numpy()
    for inverse in (False, True):
        real, imag = x.apply(OPS["fft"], y, inverse)
        close(tk.complex(real, imag), np.fft.ifft(z, norm="forward") if inverse else np.fft.fft(z))
    close(tk.complex(*x.apply(OPS["rfft"])), np.fft.rfft(x.numpy()))
    for size in (2 * n - 1, 2 * n - 2):
        if size:
            close(x.apply(OPS["irfft"], y, size), np.fft.irfft(z, size, norm="forward"))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 24, 1000, 4096])
def test_roots_of_unity_are_off_by_less_than_three_roundings(n):
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.prec = 200
    for k in range(0, n, max(1, n // 50)):
        exact = mpmath.cospi(mpmath.mpf(2 * k) / n), mpmath.sinpi(mpmath.mpf(2 * k) / n)
        for found, wanted in zip(fourier_bodies.root(k, n), exact, strict=True):
            assert abs(found - wanted) <= 2.0**-53 * 3 * abs(wanted)


def test_the_body_is_as_accurate_as_numpys_for_a_million_elements():
    n = 1 << 20
    x, y = numbers(n, "float64"), numbers(n, "float64", 1)
    z = (x + 1j * y).astype(np.clongdouble)
    exact = np.fft.fft(z)
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("numpy has no wider complex numbers here")
    tensors = [tk.tensor(part, backend=BODIES) for part in (x, y)]
    real, imag = tensors[0].apply(OPS["fft"], tensors[1], False)

    def error(found: Any) -> float:
        return float(np.sqrt(np.mean(np.abs(found - exact) ** 2)))

    assert error(real.numpy() + 1j * imag.numpy()) <= 2.0 * error(np.fft.fft(x + 1j * y))


# ---- laws ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 97])
def test_round_trips(n, norm):
    z, x = numbers((2, n)), numbers((2, n), "float64")
    close(tk.fft.ifft(tk.fft.fft(z, norm=norm), norm=norm), z)
    close(tk.fft.irfft(tk.fft.rfft(x, norm=norm), n, norm=norm), x)
    close(tk.fft.hfft(tk.fft.ihfft(x, norm=norm), n, norm=norm), x)
    close(tk.fft.ifftn(tk.fft.fftn(z, norm=norm), norm=norm), z)
    close(tk.fft.irfftn(tk.fft.rfftn(x, norm=norm), x.shape, (0, 1), norm=norm), x)


@pytest.mark.parametrize("n", [5, 8])
def test_parseval(n):
    x = tk.tensor(numbers(n, "float64"))
    spectrum = tk.fft.rfft(x, norm="ortho")
    weights = np.full(n // 2 + 1, 2.0)
    weights[0] = 1.0
    weights[n // 2 :] = 1.0 if n % 2 == 0 else 2.0
    assert (abs(spectrum).square() * weights).sum().item() == pytest.approx(x.square().sum().item())


@pytest.mark.parametrize("n", [6, 7])
def test_imaginary_parts_at_frequency_zero_and_nyquists_are_ignored(n):
    z = numbers(n // 2 + 1)
    changed = z.copy()
    changed[0] += 3j
    if n % 2 == 0:
        changed[-1] -= 2j
    close(tk.fft.irfft(changed, n), tk.fft.irfft(z, n).numpy())
    if n % 2:
        changed[-1] -= 2j
        assert abs(tk.fft.irfft(changed, n) - tk.fft.irfft(z, n)).max().item() > 0.1


def test_frequencies_and_shifts_equal_numpys():
    for n in (1, 2, 3, 8, 9):
        for name in ("fftfreq", "rfftfreq"):
            expected = getattr(np.fft, name)(n, 0.3)
            assert getattr(tk.fft, name)(n, 0.3, dtype="float64").tolist() == expected.tolist()
            assert getattr(tk.fft, name)(n).dtype is tk.float32
    x = np.arange(60).reshape(3, 4, 5)
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 0, (1, 2), -1):
            assert getattr(tk.fft, name)(x, axes).tolist() == getattr(np.fft, name)(x, axes).tolist()
    close(tk.fft.ifftshift(tk.fft.fftshift(numbers((3, 4)))), numbers((3, 4)))


# ---- transforms of functions ---------------------------------------------------------------------------------


def parts_of(x: Any) -> list[tk.Tensor]:
    return [x.real, x.imag] if x.dtype.kind == "complex" else [x]


CALLS = {
    **{f"{name} {n}": (name, n) for name in TO_COMPLEX + TO_REAL for n in (1, 4, 5)},
    **{f"{name} of two axes": (name, None) for name in ("fftn", "ifftn", "rfftn", "irfftn")},
}


def called(key: str) -> tuple[Any, Any]:
    name, n = CALLS[key]
    x = operand_of(name, (3, 4))
    return (lambda z: getattr(tk.fft, name)(z) if n is None else getattr(tk.fft, name)(z, n)), tk.tensor(x)


@pytest.mark.parametrize("backend", [BODIES, "numpy"], ids=["bodies", "numpy"])
@pytest.mark.parametrize("key", CALLS)
def test_the_vjp_is_the_transpose(key, backend):
    f, x = called(key)
    x = x.to(backend)
    y, pull = tk.vjp(f, x)
    v = tk.tensor(
        numbers(y.shape, "complex128" if y.dtype.kind == "complex" else "float64", 5), backend=backend
    )
    u = tk.tensor(
        numbers(x.shape, "complex128" if x.dtype.kind == "complex" else "float64", 6), backend=backend
    )
    pushed = tk.jvp(f, (x,), (u,))[1]
    (pulled,) = pull(v)
    # cotangents are linear, without conjugates: v f'(u) and f*(v) u have equal real parts
    left = (v * pushed).real.sum().item()
    assert (pulled * u).real.sum().item() == pytest.approx(left, rel=1e-12)
    close(pushed, f(u).numpy())


@pytest.mark.parametrize("key", CALLS)
def test_gradients_of_nonlinear_functions_equal_difference_quotients(key):
    f, x = called(key)

    def energy(*parts: Any) -> Any:
        z = f(tk.complex(*parts) if len(parts) == 2 else parts[0])
        return sum(((part * part * part).sum() for part in parts_of(z)), start=tk.tensor(0.0, "float64"))

    tk.testing.check_grads(energy, tuple(parts_of(x)), order=2)


@pytest.mark.parametrize("key", CALLS)
def test_vmap_and_jit(key):
    f, x = called(key)
    batch = tk.stack([x, 2.0 * x, x + 1.0])
    expected = np.stack([f(row).numpy() for row in batch])
    close(tk.vmap(f)(batch), expected)
    moved = tk.moveaxis(batch, 0, -1)
    close(tk.vmap(f, in_axes=-1)(moved), expected)
    close(tk.jit(f)(x), f(x).numpy())
    close(tk.jit(tk.vmap(f))(batch), expected)

    def energy(z: Any) -> Any:
        return abs(f(z)).square().sum()

    close(tk.jit(tk.grad(energy))(x), tk.grad(energy)(x).numpy())


@pytest.mark.parametrize("key", CALLS)
def test_gradients_equal_jaxs(key):
    jax = pytest.importorskip("jax")
    name, n = CALLS[key]
    f, x = called(key)
    with jax.enable_x64(True):
        of_jax = getattr(jax.numpy.fft, name)

        def energy(z: Any) -> Any:
            y = of_jax(z) if n is None else of_jax(z, n)
            return (abs(y) ** 4).sum()

        expected = np.asarray(jax.grad(energy)(x.numpy()))
    close(tk.grad(lambda z: (abs(f(z)) ** 4).sum())(x), expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_all_backends(backend):
    for n in (1, 5, 8, 12, 67):
        x, z = numbers((2, n), "float32"), numbers((2, n // 2 + 1), "complex64")
        close(tk.fft.rfft(tk.tensor(x, backend=backend)), np.fft.rfft(x))
        close(tk.fft.irfft(tk.tensor(z, backend=backend), n), np.fft.irfft(z, n))
        close(tk.fft.ifft(tk.tensor(z, backend=backend)), np.fft.ifft(z))
        program = tk.jit(lambda y: tk.fft.fft(y * 2.0) + 1.0)
        close(program(tk.tensor(x, backend=backend)), np.fft.fft(x * 2) + 1)


# ---- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tk.fft.fft([1.0], 0), tk.errors.ShapeError, r"fft: .*at least 1 element, got length 0"),
        (lambda: tk.fft.rfft(tk.zeros((2, 0))), tk.errors.ShapeError, r"rfft: .*at least 1 element"),
        (lambda: tk.fft.irfft([1.0]), tk.errors.ShapeError, r"irfft: .*at least 1 element, got length 0"),
        (lambda: tk.fft.fft([1.0], 1.5), tk.errors.ArgumentError, r"fft: a length must be an int, got 1.5"),
        (lambda: tk.fft.rfft([1j]), tk.errors.DTypeError, r"rfft: takes real numbers, got complex64"),
        (lambda: tk.fft.ihfft([1j]), tk.errors.DTypeError, r"ihfft: takes real numbers"),
        (lambda: tk.fft.rfftn([[1j]]), tk.errors.DTypeError, r"rfftn: takes real numbers"),
        (lambda: tk.fft.fft([1.0], norm="both"), tk.errors.ArgumentError, r"fft: norm must be .* got 'both'"),
        (lambda: tk.fft.fft([1.0], axis=1), tk.errors.AxisError, r"fft: axis 1"),
        (lambda: tk.fft.fft(1.0), tk.errors.AxisError, r"fft: axis -1"),
        (lambda: tk.fft.fftn([1.0], (1, 2)), tk.errors.ArgumentError, r"fftn: 2 lengths for shape \(1,\)"),
        (lambda: tk.fft.fftn([1.0], (1, 2), (0,)), tk.errors.ArgumentError, r"fftn: 2 lengths for 1 axes"),
        (lambda: tk.fft.fftn([[1.0]], axes=(0, 0)), tk.errors.AxisError, r"fftn: .*"),
        (lambda: tk.fft.rfftn([1.0], axes=()), tk.errors.ArgumentError, r"rfftn: needs at least 1 axis"),
        (
            lambda: tk.fft.fftn([1.0], 4),
            tk.errors.ArgumentError,
            r"fftn: s must be a sequence of lengths, got 4",
        ),
        (
            lambda: tk.fft.rfftfreq(4, 0.0),
            tk.errors.ArgumentError,
            r"rfftfreq: d must be a number other than 0",
        ),
        (lambda: tk.fft.fftfreq(0), tk.errors.ShapeError, r"fftfreq: .*at least 1"),
        (lambda: tk.fft.fftfreq(4, dtype="int32"), tk.errors.DTypeError, r"fftfreq: frequencies are floats"),
    ],
)
def test_errors_are_one_line(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
