"""Complex tensors: values against numpy, mpmath and Python's cmath; derivatives; transforms; interchange; errors."""

from __future__ import annotations

import cmath
import itertools
import math
import pickle
from typing import Any

import mpmath
import numpy as np
import pytest

import tensorken as tk
from core.tests.drawing import Array
from core.tests.each import each_of
from plugins.tensorken.tests.namespace.laws import quiet
from tensorken.complex_numbers.rules import RULES
from tensorken.complex_numbers.tensor import ComplexTensor
from tensorken_core.errors import DTypeError, GradientError, MixedBackendError, StructureError
from tensorken_core.language.op import OPS

pytestmark = pytest.mark.usefixtures("on_numpy")

ELEMENTARY = (
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "log",
    "log10",
)
ELEMENTARY += ("log1p", "log2", "reciprocal", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh")

BACKENDS = ("numpy", "reference", "wgpu")

EPS = {"complex64": 2.0**-23, "complex128": 2.0**-52}


def drawn(shape: Any = (), dtype: str = "complex128", seed: int = 0, scale: float = 0.0) -> Array:
    """Complex numbers of normal parts, times lognormal numbers if `scale` is given."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    return np.asarray(z * np.exp(scale * rng.normal(size=shape)), dtype)


def distance(found: Any, expected: Any) -> float:
    """The largest error in modulus, relative to the modulus of the expected number, or to 1 if that is smaller."""
    a, b = np.asarray(found), np.asarray(expected)
    assert a.shape == b.shape
    if a.dtype == b.dtype == bool:
        return float((a != b).sum())
    return float((np.abs(a - b) / np.maximum(np.abs(b), 1.0)).max(initial=0.0))


# ---- values ----------------------------------------------------------------------------------------------------


def exactly(name: str, z: complex) -> complex:
    """mpmath's function, to 40 digits."""
    with mpmath.workdps(40):
        w = mpmath.mpc(z)
        others = {
            "exp2": lambda: mpmath.mpf(2) ** w,
            "log1p": lambda: mpmath.log(1 + w),
            "log2": lambda: mpmath.log(w) / mpmath.log(2),
            "reciprocal": lambda: 1 / w,
            "sigmoid": lambda: 1 / (1 + mpmath.exp(-w)),
            "sign": lambda: w / abs(w),
            "square": lambda: w * w,
        }
        return complex(others[name]() if name in others else getattr(mpmath, name)(w))


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("name", ELEMENTARY)
def test_elementary_functions_are_within_few_ulps_of_mpmath(name, dtype):
    z = np.concatenate([drawn(60, dtype, 1), drawn(60, dtype, 2, 1.0), drawn(40, dtype, 3, 0.2) * 1e-3])
    z = z[np.abs(z) < 30].astype(dtype)
    found = np.asarray(getattr(tk, name)(tk.tensor(z)))
    expected = np.array([exactly(name, complex(v)) for v in z])
    assert found.dtype == dtype
    assert (np.abs(found - expected) / np.abs(expected)).max() < 8 * EPS[dtype]


# On a branch cut the sign of a zero imaginary part decides; Python's cmath follows annex G of C99.
PARTS = (0.0, -0.0, 0.5, -0.5, 2.0, -3.0, math.inf, -math.inf, math.nan)
OF_CMATH = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "sin", "sinh")
OF_CMATH += ("sqrt", "tan", "tanh")


def same_part(found: float, expected: float) -> bool:
    if math.isnan(expected) or math.isnan(found):
        return math.isnan(expected) and math.isnan(found)
    if expected == 0.0 or math.isinf(expected):
        return found == expected and math.copysign(1, found) == math.copysign(1, expected)
    return math.isclose(found, expected, rel_tol=1e-14)


@pytest.mark.parametrize("name", OF_CMATH)
def test_infinities_nan_and_signs_of_zeros_are_those_of_cmath(name):
    wrong, examined = [], 0
    for x, y in itertools.product(PARTS, PARTS):
        try:
            expected = getattr(cmath, name)(complex(x, y))
        except (ValueError, OverflowError):
            continue
        if math.isnan(x) or math.isnan(y) or (math.isinf(expected.real) and math.isnan(expected.imag)):
            continue  # signs of parts beside NaN are unspecified
        if name in ("tan", "tanh") and (math.isinf(x) or math.isinf(y)):
            continue  # the standard's zero has the sign of the other part, C's that of the sine
        with quiet():
            found = complex(getattr(tk, name)(tk.tensor(complex(x, y), dtype="complex128")).item())
        examined += 1
        if not (same_part(found.real, expected.real) and same_part(found.imag, expected.imag)):
            wrong.append((complex(x, y), found, expected))
    assert examined >= 30
    assert not wrong


def test_large_numbers_do_not_overflow_early():
    for dtype, top, least in (("complex64", 3e38, 1e-44), ("complex128", 1.5e308, 1e-320)):
        z = np.array([top + 1j * top, top, 1j * top, -top - 1j, least * (1 + 1j)], dtype)
        wide = z.astype(np.clongdouble)
        for name in ("log", "sqrt"):
            found = np.asarray(getattr(tk, name)(tk.tensor(z)))
            assert distance(found, getattr(np, name)(wide)) < 8 * EPS[dtype], (name, dtype)
    x = np.array([89.0 + 1.5707j, 700 + 1j, 709.9 + 0.78j], "complex128")
    for name in ("exp", "sinh", "cosh"):
        found = np.asarray(getattr(tk, name)(tk.tensor(x)))
        expected = np.array([exactly(name, complex(v)) for v in x])
        assert np.isfinite(found).all()
        assert (np.abs(found - expected) / np.abs(expected)).max() < 1e-13


ARITHMETIC = {
    "add": lambda np_, a, b: a + b,
    "sub": lambda np_, a, b: a - b,
    "mul": lambda np_, a, b: a * b,
    "div": lambda np_, a, b: a / b,
    "pow": lambda np_, a, b: a**b,
    "real operand": lambda np_, a, b: (a * 2.0 + 1) / 3 - b.real,
    "reflected": lambda np_, a, b: 2.0 / a + (1 - 2j) - 1j * b,
    "powers": lambda np_, a, b: a**3 + b**-2 + a**0.5 + a**0,
    "equal": lambda np_, a, b: (a == b) | (a != a.conj()),
    "abs": lambda np_, a, b: abs(a) + np_.abs(b),
    "angle": lambda np_, a, b: np_.angle(a) + np_.angle(b, deg=True),
    "parts": lambda np_, a, b: np_.real(a) * np_.imag(b) + a.real - b.imag,
    "conj": lambda np_, a, b: np_.conj(a) * b.conjugate(),
    "where": lambda np_, a, b: np_.where(a.real > 0, a, b),
    "sum": lambda np_, a, b: a.sum(axis=0) + b.mean() + np_.sum(a),
    "prod": lambda np_, a, b: a.prod(axis=1) + np_.prod(b),
    "cumsum": lambda np_, a, b: a.cumsum(axis=1),
    "cumprod": lambda np_, a, b: a.cumprod(axis=0) + np_.cumprod(b, axis=1),
    "statistics": lambda np_, a, b: a.var(axis=0) + b.std(),
    "matmul": lambda np_, a, b: a @ b.T,
    "matmul with real": lambda np_, a, b: a @ b.real.T,
    "vdot": lambda np_, a, b: np_.vdot(a, b),
    "vecdot": lambda np_, a, b: np_.vecdot(a, b),
    "matvec": lambda np_, a, b: np_.matvec(a, b[0]),
    "vecmat": lambda np_, a, b: np_.vecmat(a[:, 0], b),
    "tensordot": lambda np_, a, b: np_.tensordot(a, b, ((0,), (0,))),
    "outer": lambda np_, a, b: np_.outer(a, b),
    "inner": lambda np_, a, b: np_.inner(a, b),
    "kron": lambda np_, a, b: np_.kron(a, b),
    "einsum": lambda np_, a, b: np_.einsum("ij,kj,k->i", a, b, b[:, 0]),
    "movement": lambda np_, a, b: np_.concatenate([a.T, np_.flip(b).T, np_.roll(a, 1).T])[1:, ::-1],
    "indexing": lambda np_, a, b: a[0, 1:] + b[np_.asarray([0, 1, 0]), 1:][2] + a[a.real > -100][0],
    "stack": lambda np_, a, b: np_.stack([a, b, a.real]),
    "pad": lambda np_, a, b: np_.pad(a, 1),
    "sort": lambda np_, a, b: np_.sort(np_.concatenate([a, a.real, b]), axis=0),
    "unique": lambda np_, a, b: np_.unique(np_.concatenate([a, b, a])),
    "round": lambda np_, a, b: np_.round(a * 10, 1),
    "isclose": lambda np_, a, b: np_.isfinite(a) & ~np_.isnan(b) & ~np_.isinf(a),
    "tests": lambda np_, a, b: np_.iscomplex(a) | np_.isreal(b),
    "diag": lambda np_, a, b: np_.diag(a[0]) + a.trace() + np_.triu(b)[0, 0],
    "linspace": lambda np_, a, b: np_.linspace(a[0], b[0], 5) * 1j,
    "convolve": lambda np_, a, b: np_.convolve(a[0], b[0]),
    "polyval": lambda np_, a, b: np_.polyval(a[0], b),
}


@pytest.mark.parametrize("dtype", EPS)
@each_of("name", ARITHMETIC)
def test_functions_of_complex_tensors_are_numpys(name, dtype):
    f = ARITHMETIC[name]
    a, b = drawn((3, 4), dtype, 5), drawn((3, 4), dtype, 6)
    found, expected = f(tk, tk.tensor(a), tk.tensor(b)), f(np, a, b)
    assert distance(found, expected) < 60 * EPS[dtype]
    if dtype == "complex64":
        assert np.asarray(found).dtype == expected.dtype
    jitted = tk.jit(lambda a, b: f(tk, a, b)) if name not in ("indexing", "unique") else None
    if jitted is not None:
        assert distance(jitted(tk.tensor(a), tk.tensor(b)), expected) < 60 * EPS[dtype]


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_with_floats_has_complex_numbers(backend):
    a, b = drawn((2, 3), "complex64", 7), drawn((3, 2), "complex64", 8)
    x, y = tk.tensor(a, backend=backend), tk.tensor(b, backend=backend)
    value, gradient = tk.value_and_grad(lambda x: abs(tk.exp(x @ y) / (1 + tk.sqrt(x).sum())).sum())(x)
    assert value.backend == gradient.backend == backend
    on_numpy = tk.value_and_grad(lambda x: abs(tk.exp(x @ b) / (1 + tk.sqrt(x).sum())).sum())(tk.tensor(a))
    assert distance([value.item()], [on_numpy[0].item()]) < 1e-5
    assert distance(gradient.tolist(), on_numpy[1].tolist()) < 1e-5


def test_the_rules_are_of_ops_of_the_language():
    assert set(RULES) <= set(OPS)
    assert all(OPS[name].elementwise for name in ELEMENTARY if name in OPS)


# ---- derivatives -----------------------------------------------------------------------------------------------


def value(z: Any) -> Any:
    """A real value that is not holomorphic."""
    return (abs(tk.sin(z) * z.conj() + tk.log(z + 3)) ** 2 + tk.angle(z + 4j)).sum()


def test_the_gradient_is_the_conjugate_of_the_direction_of_steepest_ascent():
    z, dz = tk.tensor(drawn(4, seed=1)), tk.tensor(drawn(4, seed=2))
    gradient, step = tk.grad(value)(z), 1e-6
    slope = (value(z + step * dz) - value(z - step * dz)).item() / (2 * step)
    assert slope == pytest.approx((gradient * dz).sum().real.item(), rel=1e-8)
    assert slope == pytest.approx(tk.jvp(value, (z,), (dz,))[1].item(), rel=1e-8)
    x, y = z.real, z.imag
    by_x, by_y = tk.grad(lambda x, y: value(tk.complex(x, y)), (0, 1))(x, y)
    assert distance(gradient, tk.complex(by_x, -by_y)) < 1e-14
    assert (
        value(z + 0.001 * gradient.conj()).item()
        > value(z).item()
        > value(z - 0.001 * gradient.conj()).item()
    )


HOLOMORPHIC = {
    "exp": (tk.exp, tk.exp),
    "log": (tk.log, lambda z: 1 / z),
    "sqrt": (tk.sqrt, lambda z: 0.5 / tk.sqrt(z)),
    "sin": (tk.sin, tk.cos),
    "tanh": (tk.tanh, lambda z: 1 - tk.tanh(z) ** 2),
    "asin": (tk.asin, lambda z: 1 / tk.sqrt(1 - z * z)),
    "acos": (tk.acos, lambda z: -1 / tk.sqrt(1 - z * z)),
    "atan": (tk.atan, lambda z: 1 / (1 + z * z)),
    "asinh": (tk.asinh, lambda z: 1 / tk.sqrt(1 + z * z)),
    "acosh": (tk.acosh, lambda z: 1 / (tk.sqrt(z - 1) * tk.sqrt(z + 1))),
    "atanh": (tk.atanh, lambda z: 1 / (1 - z * z)),
    "cube": (lambda z: z**3, lambda z: 3 * z * z),
    "power": (lambda z: z ** (1 + 2j), lambda z: (1 + 2j) * z**2j),
    "quotient": (lambda z: (z - 1) / (z + 2j), lambda z: (1 + 2j) / (z + 2j) ** 2),
    "expm1": (tk.expm1, tk.exp),
    "log1p": (tk.log1p, lambda z: 1 / (1 + z)),
}


@each_of("name", HOLOMORPHIC)
def test_derivatives_of_holomorphic_functions(name):
    f, derivative = HOLOMORPHIC[name]
    z = tk.tensor(drawn(6, seed=3))
    expected = derivative(z)
    found = tk.vmap(tk.grad(f, holomorphic=True))(z)
    assert distance(found, expected) < 1e-13
    assert distance(tk.jvp(f, (z,), (tk.ones_like(z),))[1], expected) < 1e-13
    assert distance(tk.vmap(tk.jacfwd(f, holomorphic=True))(z), expected) < 1e-13
    assert distance(tk.vmap(tk.jacrev(f, holomorphic=True))(z), expected) < 1e-13
    twice = tk.vmap(tk.grad(derivative, holomorphic=True))(z)
    assert distance(tk.vmap(tk.hessian(f, holomorphic=True))(z), twice) < 1e-12
    assert (
        distance(tk.vmap(tk.jit(tk.grad(tk.grad(f, holomorphic=True), holomorphic=True)))(z), twice) < 1e-12
    )


def test_derivatives_on_the_axes_and_at_zero():
    z = tk.tensor([0j, 0.5, -0.75j, -1.0], dtype="complex128")
    for f, derivative in (
        (tk.exp, tk.exp),
        (tk.expm1, tk.exp),
        (tk.sinh, tk.cosh),
        (tk.cosh, tk.sinh),
        (tk.sin, tk.cos),
        (tk.cos, lambda z: -tk.sin(z)),
        (tk.tanh, lambda z: 1 / tk.cosh(z) ** 2),
        (tk.tan, lambda z: 1 / tk.cos(z) ** 2),
        (tk.sigmoid, lambda z: tk.sigmoid(z) * tk.sigmoid(-z)),
    ):
        assert distance(tk.vmap(tk.grad(f, holomorphic=True))(z), derivative(z)) < 1e-14
        twice = tk.vmap(tk.grad(tk.grad(f, holomorphic=True), holomorphic=True))(z)
        assert distance(twice, tk.vmap(tk.grad(derivative, holomorphic=True))(z)) < 1e-13


def test_exp2_and_sigmoid_keep_their_digits_far_from_zero():
    z = np.array([700 + 1j, -900.25 - 0.5j, 1023.9 + 0.1j])
    found, expected = np.asarray(tk.exp2(tk.tensor(z))), [exactly("exp2", complex(v)) for v in z]
    assert distance(found / expected, np.ones(3)) < 1e-14
    z = np.array([-700 + 1j, -40 - 3j, 3.141592653589793j])
    found, expected = np.asarray(tk.sigmoid(tk.tensor(z))), [exactly("sigmoid", complex(v)) for v in z]
    assert distance(found / expected, np.ones(3)) < 1e-14


def test_forward_and_reverse_mode_agree_for_functions_that_are_not_holomorphic():
    def f(z: Any) -> Any:
        return z.conj() * tk.exp(1j * abs(z)) + z.real * z.imag

    z, u, v = (tk.tensor(drawn(5, seed=k)) for k in (4, 5, 6))
    pushed = tk.jvp(f, (z,), (u,))[1]
    (pulled,) = tk.vjp(f, z)[1](v)
    # The pairing of a cotangent and a tangent is the real part of their product, without a conjugate.
    assert (pulled * u).sum().real.item() == pytest.approx((v * pushed).sum().real.item(), rel=1e-13)
    assert distance(tk.linearize(f, z)[1](u), pushed) < 1e-14


def test_derivatives_at_zero_are_zero_for_moduli_and_angles():
    z = tk.tensor([0j, 1j])
    assert tk.grad(lambda z: abs(z).sum())(z).tolist() == [0, -1j]
    assert tk.grad(lambda z: tk.angle(z).sum())(z).tolist() == [0, -1]
    assert tk.grad(lambda z: tk.sqrt(abs(z) ** 2 + 1).sum())(z)[0].item() == 0


def test_value_and_grad_with_aux_and_holomorphic():
    z = tk.tensor(drawn(3, seed=9))
    (y, aux), gradient = tk.value_and_grad(lambda z: ((z * z).sum(), z), has_aux=True, holomorphic=True)(z)
    assert distance(y, (z * z).sum()) == distance(aux, z) == 0
    assert distance(gradient, 2 * z) < 1e-15
    jacobian, aux = tk.jacrev(lambda z: (z * z, z), has_aux=True, holomorphic=True)(z)
    assert distance(jacobian, tk.diag(2 * z)) < 1e-15 and distance(aux, z) == 0
    jacobian, aux = tk.jacfwd(lambda z: (z * z, z), has_aux=True, holomorphic=True)(z)
    assert distance(jacobian, tk.diag(2 * z)) < 1e-15 and distance(aux, z) == 0


# ---- transforms ------------------------------------------------------------------------------------------------


def test_loops_and_branches_carry_complex_numbers():
    c, z = drawn((), seed=11) / 4, 0j
    for _ in range(7):
        z = z * z + c
    start = tk.zeros((), "complex128")
    step = lambda z, _: (z * z + tk.asarray(c), abs(z))  # noqa: E731
    carry, sizes = tk.scan(step, start, None, length=7)
    assert complex(carry.item()) == pytest.approx(z) and sizes.shape == (7,)
    assert complex(tk.fori_loop(0, 7, lambda i, z: z * z + tk.asarray(c), start).item()) == pytest.approx(z)
    grown = tk.while_loop(lambda z: abs(z) < 10, lambda z: z * (1 + 1j), tk.ones((), "complex128"))
    assert complex(grown.item()) == pytest.approx((1 + 1j) ** 7)
    chosen = tk.cond(tk.tensor(True), lambda z: z * 1j, lambda z: z, tk.asarray(c))
    assert complex(chosen.item()) == pytest.approx(c * 1j)
    gradient = tk.grad(lambda c: abs(tk.scan(lambda z, _: (z * z + c, z), start, None, length=5)[0]))(
        tk.asarray(c)
    )
    unrolled = tk.grad(lambda c: abs((((c * c + c) ** 2 + c) ** 2 + c) ** 2 + c))(tk.asarray(c))
    assert complex(gradient.item()) == pytest.approx(complex(unrolled.item()))


def test_custom_rules_see_cotangents_in_the_convention_of_grad():
    @tk.custom_vjp
    def f(z: Any) -> Any:
        return z * z

    def backward(z: Any, t: Any) -> tuple[Any]:
        return (2 * z * t,)

    f.defvjp(lambda z: (f(z), z), backward)
    z = tk.tensor(drawn(3, seed=12))
    plain = tk.grad(lambda z: abs(z * z + 1).sum())(z)
    assert distance(tk.grad(lambda z: abs(f(z) + 1).sum())(z), plain) < 1e-14
    assert distance(tk.jvp(f, (z,), (z,))[1], 2 * z * z) < 1e-14

    @tk.custom_jvp
    def g(z: Any) -> Any:
        return z * z

    g.defjvp(lambda primals, tangents: (g(*primals), 2 * primals[0] * tangents[0]))
    assert distance(tk.grad(lambda z: abs(g(z) + 1).sum())(z), plain) < 1e-14
    assert distance(tk.grad(lambda z: abs(tk.checkpoint(g)(z) + 1).sum())(z), plain) < 1e-14


def test_batches_and_trees():
    z = tk.tensor(drawn((3, 4), seed=13))
    assert distance(tk.vmap(lambda row: row.sum() * 1j)(z), z.sum(axis=1) * 1j) < 1e-15
    assert tk.vmap(lambda a, b: a * b, (None, 0))(1 + 1j, z.real).dtype == tk.complex128
    out = tk.vmap(lambda row: {"z": row, "n": abs(row)}, out_axes=1)(z)
    assert out["z"].shape == (4, 3) and out["n"].dtype == tk.float64
    gradients = tk.grad(lambda tree: abs(tree["a"] * tree["b"][0]).sum())({"a": z, "b": [2.0]})
    assert gradients["a"].dtype == tk.complex128 and gradients["b"][0].dtype == tk.float32
    assert tk.tree.leaves({"a": z, "b": 2j})[0] is z and tk.tree.leaves({"a": z, "b": 2j})[1] == 2j
    shapes = tk.tree.map(lambda x: x.shape, {"a": z, "b": z.real})
    assert shapes == {"a": (3, 4), "b": (3, 4)} and isinstance(tk.tree.map(lambda x: x * 2, z), ComplexTensor)


# ---- dtypes and interchange ------------------------------------------------------------------------------------


def test_promotion_and_dtypes():
    c64, c128 = tk.complex64, tk.complex128
    rows = {
        (tk.bool, c64): c64,
        (tk.int64, c64): c64,
        (tk.float16, c64): c64,
        (tk.float32, c128): c128,
        (tk.float64, c64): c128,
        (c64, c128): c128,
        (c64, 2.0): c64,
        (tk.float32, 1j): c64,
        (tk.float64, 1j): c128,
        (tk.int32, 1j): c64,
    }
    for operands, expected in rows.items():
        assert tk.result_type(*operands) is expected, operands
        a, b = (tk.ones((2,), d) if isinstance(d, tk.DType) else d for d in operands)
        assert (a * b).dtype is (b * a).dtype is expected, operands
    assert (
        tk.isdtype(c64, "complex floating")
        and tk.isdtype(c64, "numeric")
        and not tk.isdtype(c64, "real floating")
    )
    assert tk.finfo(c64).eps == tk.finfo(tk.float32).eps
    assert c64 == np.complex64 and c64 == "complex64" and tk.tensor([1j]).dtype is c64
    assert tk.tensor([1j]).astype(bool).tolist() == [True] and tk.tensor([0j]).nbytes == 8


def test_interchange_with_numpy_python_and_pickle():
    n = drawn((2, 3), "complex128", 14)
    z = tk.tensor(n)
    for array in (z.numpy(), np.asarray(z), np.from_dlpack(z)):
        assert array.dtype == n.dtype and (array == n).all()
    assert tk.asarray(n[::-1, ::2].astype(">c16")).tolist() == n[::-1, ::2].tolist()
    assert pickle.loads(pickle.dumps(z)).tolist() == z.tolist() == n.tolist()
    assert tk.tensor([[1, 2j], [3.0, True]]).tolist() == [[1, 2j], [3, 1]]
    assert tk.tensor(n, dtype="complex64").dtype is tk.complex64
    assert complex(tk.tensor(1 + 2j)) == 1 + 2j and tk.tensor([2j]).item() == 2j
    assert tk.asarray([z, z]).shape == (2, 2, 3)
    assert z.to("reference").tolist() == z.tolist()
    assert str(z) == str(n) and repr(tk.tensor([1 + 2j])) == "tensor([1.+2.j], dtype=complex64)"
    assert tk.grad(lambda z: abs(z).sum())(n).dtype is tk.complex128  # arrays of numpy are arguments, too
    assert distance(tk.jit(lambda z: z * 2)(n), n * 2) == distance(tk.vmap(lambda z: z * 2)(n), n * 2) == 0
    assert tk.jit(lambda z: z + 1)(2j).item() == 1 + 2j


class Memory:
    """An array of another library, which offers its memory by one protocol alone."""

    def __init__(self, array: Array, *protocol: str) -> None:
        self.__dict__ |= {name: getattr(array, name) for name in protocol}


@pytest.mark.parametrize("dtype", ["complex64", "complex128", ">c8", ">c16"])
def test_every_way_in_takes_complex_numbers(dtype, tmp_path):
    n = drawn((2, 3), "complex128", 15).astype(dtype)
    plain = n.astype(n.dtype.newbyteorder("="))
    found = {
        "buffer": lambda: tk.tensor(memoryview(plain)),
        "transposed buffer": lambda: tk.tensor(memoryview(plain.T)).T,
        "interface": lambda: tk.tensor(Memory(n[::-1], "__array_interface__"))[::-1],
        "dlpack": lambda: tk.from_dlpack(plain),
        "dlpack of strides": lambda: tk.from_dlpack(plain.T[::-1])[::-1].T,
        "dlpack alone": lambda: tk.from_dlpack(Memory(plain, "__dlpack__", "__dlpack_device__")),
        "dlpack elsewhere": lambda: tk.from_dlpack(plain, backend="reference"),
        "list": lambda: tk.tensor([memoryview(row) for row in plain], str(plain.dtype)),
        "bytes": lambda: tk.frombuffer(plain.tobytes(), plain.dtype).reshape((2, 3)),
    }
    for way, read in found.items():
        z = read()
        assert z.dtype == str(plain.dtype) and z.tolist() == n.tolist(), way
    np.save(tmp_path / "theirs.npy", n)
    tk.save(tmp_path / "ours.npy", tk.tensor(n))
    tk.savez(tmp_path / "several.npz", z=tk.tensor(n))
    assert tk.load(tmp_path / "theirs.npy").tolist() == n.tolist()
    assert np.load(tmp_path / "ours.npy").tolist() == n.tolist()
    assert tk.load(tmp_path / "several.npz")["z"].tolist() == n.tolist()
    mutable = plain.copy()
    z = tk.from_dlpack(mutable, copy=False)
    mutable[0, 0] = 7j
    assert z[0, 0].item() == 7j


ERRORS = {
    "order": (lambda z: z < z, DTypeError, "complex numbers have no order"),
    "max": (lambda z: z.max(), DTypeError, "complex numbers have no order"),
    "float": (lambda z: float(z[0]), DTypeError, "take x.real"),
    "int": (lambda z: int(z[0]), DTypeError, "take x.real"),
    "astype": (lambda z: z.astype("float32"), DTypeError, "would lose the imaginary parts"),
    "tensor": (lambda z: tk.tensor([1j], dtype="int32"), DTypeError, "complex numbers do not fit int32"),
    "array": (lambda z: tk.tensor(np.ones(2, complex), dtype="float32"), DTypeError, "pass x.real"),
    "floor": (tk.floor, DTypeError, "not defined for complex64"),
    "remainder": (lambda z: z % 2, DTypeError, "not defined for complex64"),
    "parts": (lambda z: tk.complex(z, 1.0), DTypeError, "the parts must be real"),
    "grad": (lambda z: tk.grad(lambda z: z.sum())(z), GradientError, "holomorphic=True"),
    "real": (lambda z: tk.grad(lambda z: abs(z[0]), holomorphic=True)(z), GradientError, "leave it out"),
    "jacfwd": (lambda z: tk.jacfwd(abs)(z), GradientError, "holomorphic=True"),
    "jacrev": (lambda z: tk.jacrev(lambda z: z)(z), GradientError, "holomorphic=True"),
    "tangent": (lambda z: tk.jvp(lambda z: z, (z,), (z.real,)), StructureError, "tangents"),
    "backend": (lambda z: z + z.to("reference"), MixedBackendError, "different backends"),
}


@each_of("name", ERRORS)
def test_mistakes_are_answered_in_one_line(name):
    f, error, text = ERRORS[name]
    with pytest.raises(error, match=text) as caught:
        f(tk.tensor([1 + 2j, 3.0]))
    assert len(str(caught.value).splitlines()[0]) < 160


def test_whether_a_value_is_of_a_complex_dtype():
    """As numpy's functions of these names: the dtype decides, not the imaginary parts."""
    for value in (tk.tensor([1.0, 2.0]), tk.tensor([1 + 0j]), 1.0, 1j, [1, 2j], np.zeros(2, "complex64")):
        array = np.asarray(value)
        assert tk.iscomplexobj(value) == np.iscomplexobj(array)
        assert tk.isrealobj(value) == np.isrealobj(array)
