"""Derivatives of derivatives: every mix of the modes, against numbers of JAX in float64 and against closed forms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import FUSED, STACKS, array, close, f64
from tensorken_core.errors import TensorkenError
from tensorken_core.tensor.tensor import Tensor

pytestmark = pytest.mark.usefixtures("on_numpy")

AT = [0.7, -0.4, 1.3]
MATRIX = [[0.5, -1.2, 0.3], [0.8, 0.1, -0.7], [-0.6, 0.9, 0.4]]


def matmul(x: Tensor) -> Tensor:
    weights = tk.tensor(MATRIX, "float64", backend=x.interpreter.base)
    h = tk.tanh(x @ weights)
    return ((h.reshape(3, 1) * x) @ weights @ h).sum()


def maximum_over_axes(x: Tensor) -> Tensor:
    y = tk.sin(x)[:, None] * x[None, :]
    return (y.max(1) ** 3.0).sum() + (x * x).max() * x.max()


def minimum_over_axes(x: Tensor) -> Tensor:
    y = tk.sin(x)[:, None] * x[None, :]
    return (y.min(0) ** 2 * x).sum()


def softmax(x: Tensor) -> Tensor:
    return (tk.softmax(x * x) * tk.tensor([1.0, -2.0, 3.0], "float64", backend=x.interpreter.base) * x).sum()


def log_softmax(x: Tensor) -> Tensor:
    return (tk.log_softmax(x) * tk.sin(x)).sum() + tk.logsumexp(x * 2)


def pow(x: Tensor) -> Tensor:
    return ((x * x + 0.1) ** (x + 1.5)).sum() + ((x - 2.0) ** 3.0).sum()


def where(x: Tensor) -> Tensor:
    return tk.where(x > 0, tk.exp(x) * x[::-1], tk.cos(x * x[0])).sum()


def gather(x: Tensor) -> Tensor:
    g = tk.take(x, [2, 0, 2, 1])
    return (g * g * tk.sin(tk.concatenate([g[-1:], g[:-1]]))).sum()


def movements(x: Tensor) -> Tensor:
    y = tk.concatenate([x, x.flip(0) * x]).reshape(2, 3).T
    p = y.pad(((1, 0), (0, 1)))
    return (p.cumsum(0) * p).sum() * x[1] + (p[1:, :1] ** 2 * y).sum()


def quotients(x: Tensor) -> Tensor:
    return (
        x / (2.0 + tk.sin(x[::-1]))
        + tk.sqrt(x * x + 1) * tk.log1p(x * x)
        + tk.expm1(x / 3) * tk.reciprocal(3 + x)
    ).sum()


def choices(x: Tensor) -> Tensor:
    chosen = tk.maximum(x, x[::-1] * 0.9) * tk.minimum(x * x, tk.sin(x) + 1)
    return (chosen * tk.sigmoid(x) * tk.relu(x + 0.5) * tk.abs(x) * tk.tan(x / 2)).sum()


# Each function at AT: its value, and its second and third derivatives for ascending indices; from JAX 0.10.2, float64.
# fmt: off
EXPECTED: dict[Callable[[Tensor], Tensor], tuple[float, list[float], list[float]]] = {
    matmul: (0.5496152601259197,
        [1.4094116049715064, 1.5489203198112804, -2.1189700619509173, -0.48192903380230667,
         -0.9832254895124588, 2.3949196089294666],
        [1.0087700190565703, 0.7190930377987482, -0.6944946439910105, -1.6598756020807128,
         0.14150320505393538, 0.23651760771479213, 0.0949349991329349, 0.8284486076170423,
         -0.05358214081634933, -0.3004563427675977]),
    maximum_over_axes: (4.753629967522329,
        [3.2055500075411416, 0.0, 4.827989729890226, 0.6595174449825729, 0.0, 19.43091529919921],
        [-8.747010233787751, 0.0, 7.397423094325708, 0.0, 0.0, 7.427676507523424, -6.082883855941887, 0.0,
         0.0, -15.328490169074774]),
    minimum_over_axes: (0.3257620390212937,
        [0.6369159103709527, -1.0545134536222984, 0.0, 1.3110035794408632, -3.3895547223862788,
         1.2925255939772804],
        [0.9098798719585038, -3.012895581777996, 0.0, 2.0483177254806657, 0.0, 0.0, 12.859004143645995,
         5.827402740408743, -6.417990712250468, 1.0418482231447987]),
    softmax: (2.8226791478664603,
        [-0.8950480994953387, -0.029524915035034245, -0.3915970133622946, -0.3177335631612756,
         0.5295789357707841, 3.4011345201308187],
        [-0.668252444401415, -0.0429382053162917, -1.2528232233205838, 0.22891790553950164,
         -0.1412501358874952, 2.655205531795006, -0.7742184090863053, -0.7744332643721619,
         -1.1117881129201368, -8.166471954214366]),
    log_softmax: (2.4952274635969447,
        [2.2202747824452143, -0.3544651183496094, -0.9799176685896387, 0.7545143004872648,
         -0.5608803903721744, 1.2091170638355213],
        [-0.267617385135442, -0.09013737860372723, -0.06641115045564522, -0.1447542321808276,
         0.2447550897108836, 0.8567016736130857, 2.9502520573430244, -0.221732294227931,
         -0.02723652860785658, -1.973357508641484]),
    pow: (-10.718614723125398,
        [-0.9596226349330266, 0.0, 0.0, -11.154579088362642, 0.0, 106.78930855133693],
        [37.23878070769129, 0.0, 0.0, 0.0, 0.0, 0.0, 10.051304871296088, 0.0, 0.0, 530.817003307139]),
    where: (6.147441625355862,
        [2.4641096495818964, 0.5454511712911296, 5.6830493750897215, -0.4709171647722777, 0.0,
         2.568507667333471],
        [2.6355652812197228, 0.7378925180094361, 2.0137527074704766, -1.2913119065165128, 0.0,
         3.6692966676192444, -0.09478998745749098, 0.0, 0.0, 2.568507667333471]),
    gather: (1.056923713451254,
        [0.8383884794026879, 0.0, 2.3630880470140925, 2.5852333693360054, 2.1807595215078317,
         -0.11671413066309433],
        [-1.2925832965107857, 0.0, -1.139968329568822, 0.0, 0.0, 0.18070291498490687, -1.556593079864876,
         1.547485347251666, 2.6129685363395247, -0.17387423860598178]),
    movements: (2.3849600000000004,
        [4.8039999999999985, 10.246, 1.6440000000000003, -4.5280000000000005, 6.994000000000001,
         11.283999999999999],
        [13.799999999999999, 12.14, -2.040000000000001, -4.24, 12.879999999999999, 4.440000000000001,
         22.92, -1.3599999999999997, 4.9399999999999995, 10.200000000000001]),
    quotients: (2.8982282914301507,
        [2.0465686042795133, 0.0, -0.13984749992195575, 1.1000833011545565, 0.0, 1.522243117977863],
        [-0.6758732580500656, 0.0, 0.15542015338520457, 0.0, 0.0, 0.11520957865003138, 0.9951294465058106,
         0.0, 0.0, -0.701966848842525]),
    choices: (3.1888433224059023,
        [4.717426652863367, 0.0, 0.6327546800702448, -0.023885404384293502, 0.0, 63.65382905377346],
        [21.320913988696446, 0.0, 3.6287897329718195, 0.0, 0.0, 0.0, 0.4895281020402415, 0.0, 0.0,
         233.16063215708755]),
}
# fmt: on


def symmetric(entries: list[float], order: int) -> np.ndarray[Any, Any]:
    """The symmetric array with these entries at ascending indices."""
    result = np.full((3,) * order, np.nan)
    ascending = itertools.combinations_with_replacement(range(3), order)
    for index, entry in zip(ascending, entries, strict=True):
        for permuted in itertools.permutations(index):
            result[permuted] = entry
    return result


FUNCTIONS = pytest.mark.parametrize("f", EXPECTED, ids=lambda f: f.__name__)
JACOBIANS = {"fwd": tk.jacfwd, "rev": tk.jacrev}


@pytest.mark.feature(84, 108)
@FUNCTIONS
@each_of("mix", list(itertools.product(JACOBIANS, repeat=2)))
def test_every_composition_of_two_modes_gives_the_hessian(f, mix):
    value, second, _ = EXPECTED[f]
    outer, inner = (JACOBIANS[mode] for mode in mix)
    assert f(f64(AT)).item() == pytest.approx(value, rel=1e-12)
    close(outer(inner(f))(f64(AT)), symmetric(second, 2))


@pytest.mark.feature(108)
@FUNCTIONS
@each_of("mix", list(itertools.product(JACOBIANS, repeat=3)))
def test_every_mix_of_three_modes_gives_the_third_derivatives(f, mix):
    a, b, c = (JACOBIANS[mode] for mode in mix)
    close(a(b(c(f)))(f64(AT)), symmetric(EXPECTED[f][2], 3))


@pytest.mark.feature(84, 116)
@FUNCTIONS
@each_of("stack", STACKS)
def test_hessians_are_the_same_on_every_stack_of_interpreters(f, stack):
    close(tk.hessian(f)(f64(AT, STACKS[stack])), symmetric(EXPECTED[f][1], 2))


@pytest.mark.feature(200)
@FUNCTIONS
def test_a_hessian_vector_product_is_the_hessian_times_the_vector(f):
    direction = np.array([0.3, -1.0, 2.0])
    expected = symmetric(EXPECTED[f][1], 2) @ direction
    close(tk.hvp(f, (f64(AT),), (f64(direction),)), expected)
    close(tk.grad(lambda x: (tk.grad(f)(x) * f64(direction)).sum())(f64(AT)), expected)
    close(tk.grad(lambda x: tk.jvp(f, (x,), (f64(direction),))[1])(f64(AT)), expected)
    close(tk.jvp(lambda x: tk.vjp(f, x)[1](1.0)[0], (f64(AT),), (f64(direction),))[1], expected)


# ---- depth -------------------------------------------------------------------------------------------------


def tanh_derivative(order: int, x: float) -> float:
    """The derivatives of tanh as polynomials in y = tanh(x): p(y) becomes p'(y) (1 - y²)."""
    coefficients = [0.0, 1.0]
    for _ in range(order):
        slope = [i * c for i, c in enumerate(coefficients)][1:] or [0.0]
        coefficients = [
            (slope[i] if i < len(slope) else 0.0) - (slope[i - 2] if i >= 2 else 0.0)
            for i in range(len(slope) + 2)
        ]
    y = math.tanh(x)
    return math.fsum(c * y**i for i, c in enumerate(coefficients))


def by_jvp(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: tk.jvp(f, (x,), (tk.ones_like(tk.tensor(x, "float64")),))[1]


def by_vjp(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def pulled(x: Any) -> Any:
        y, pull_back = tk.vjp(f, x)
        return pull_back(tk.ones_like(y))[0]

    return pulled


@pytest.mark.feature(69, 108)
@pytest.mark.parametrize("mix", list(itertools.product((tk.derivative, tk.grad), repeat=5)))
def test_the_fifth_derivative_of_tanh_in_every_mix(mix):
    f = tk.tanh
    for order, transform in enumerate(mix, start=1):
        f = transform(f)
        assert f(f64(0.5)).item() == pytest.approx(tanh_derivative(order, 0.5), rel=1e-11)


@pytest.mark.feature(108)
def test_ten_levels_of_sine():
    f = tk.sin
    for transform in (tk.derivative, by_vjp, tk.grad, by_jvp, tk.elementwise_grad) * 2:
        f = transform(f)
    assert f(f64(0.3)).item() == pytest.approx(-math.sin(0.3), rel=1e-12)


@pytest.mark.feature(108)
def test_a_power_differentiated_away():
    f = lambda x: x**4.0  # noqa: E731
    for expected in (4 * 2.0**3, 12 * 2.0**2, 24 * 2.0, 24.0, 0.0, 0.0):
        f = tk.grad(f)
        assert f(f64(2.0)).item() == expected


# ---- perturbation confusion --------------------------------------------------------------------------------

DERIVATIVES = {
    "grad": tk.grad,
    "derivative": tk.derivative,
    "jvp": by_jvp,
    "vjp": by_vjp,
    "jacfwd": tk.jacfwd,
    "jacrev": tk.jacrev,
}
PAIRS = pytest.mark.parametrize(
    ("outer", "inner"),
    [pytest.param(DERIVATIVES[a], DERIVATIVES[b], id=f"{a}-{b}") for a in DERIVATIVES for b in DERIVATIVES],
)
TRIPLES = pytest.mark.parametrize("mix", list(itertools.product((tk.derivative, tk.grad), repeat=3)))


@pytest.mark.feature(109)
@PAIRS
def test_perturbations_of_two_levels_stay_apart(outer, inner):
    one, two, three = f64(1.0), f64(2.0), f64(3.0)
    # d/dx [x * d/dy (x + y)] = d/dx [x] = 1
    assert outer(lambda x: x * inner(lambda y: x + y)(two))(one).item() == 1.0
    # d/dx [x * d/dy (x y)] = d/dx x² = 2x
    assert outer(lambda x: x * inner(lambda y: x * y)(two))(three).item() == 6.0
    # d/dx [d/dy (x² y³)] at y = x: d/dx 3x⁴ = 12 x³
    assert outer(lambda x: inner(lambda y: x * x * y * y * y)(x))(two).item() == 96.0
    # d/dx [d/dy (x y) at y = x] = d/dx x
    assert outer(lambda x: inner(lambda y: x * y)(x))(three).item() == 1.0


@pytest.mark.feature(109, 105)
@PAIRS
def test_a_function_that_ignores_its_argument_has_derivative_zero(outer, inner):
    assert outer(lambda x: inner(lambda y: x * x)(f64(2.0)))(f64(3.0)).item() == 0.0
    assert outer(lambda x: x * inner(lambda y: x)(x))(f64(3.0)).item() == 0.0
    assert outer(lambda x: inner(lambda y: f64(7.0))(x) + x)(f64(3.0)).item() == 1.0
    assert inner(lambda x: 5.0)(f64(3.0)).item() == 0.0


@pytest.mark.feature(109)
@PAIRS
def test_closures_over_the_outer_variable(outer, inner):
    def f(x):
        scaled = lambda y: tk.sin(x * y)  # noqa: E731
        slope = inner(scaled)  # x cos(x y)
        return slope(f64(0.5)) + x * slope(x)

    # d/dx [x cos(x/2) + x² cos(x²)]
    x = 0.8
    expected = (
        math.cos(x / 2) - x / 2 * math.sin(x / 2) + 2 * x * math.cos(x * x) - 2 * x**3 * math.sin(x * x)
    )
    assert outer(f)(f64(x)).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.feature(109)
@PAIRS
def test_an_inner_derivative_whose_point_depends_on_the_outer_variable(outer, inner):
    # g(x) = sin'(x²) = cos(x²); g'(x) = -2x sin(x²)
    assert outer(lambda x: inner(tk.sin)(x * x))(f64(0.7)).item() == pytest.approx(
        -1.4 * math.sin(0.49), rel=1e-12
    )


@pytest.mark.feature(109)
@TRIPLES
def test_perturbations_of_three_levels_stay_apart(mix):
    a, b, c = mix
    # d/dx [x d/dy [y d/dz (x y z)]] = d/dx [x d/dy (x y²)] = d/dx [2 x² y] = 4 x y
    f = lambda x: x * b(lambda y: y * c(lambda z: x * y * z)(f64(5.0)))(f64(3.0))  # noqa: E731
    assert a(f)(f64(2.0)).item() == 24.0
    # the innermost does not see the middle one: d/dx [d/dy [x d/dz (x z) y]] = d/dx x² = 2x
    f = lambda x: b(lambda y: x * c(lambda z: x * z)(y) * y)(f64(3.0))  # noqa: E731
    assert a(f)(f64(2.0)).item() == 4.0
    # all at one point: f(x) = d/dy (y · d/dz (x y z²) at z = y) at y = x: d/dy 2 x y³ = 6 x y² -> 6x³ -> 18x²
    f = lambda x: b(lambda y: y * c(lambda z: x * y * z * z)(y))(x)  # noqa: E731
    assert a(f)(f64(2.0)).item() == 72.0


@pytest.mark.feature(109)
@pytest.mark.parametrize("transform", DERIVATIVES.values(), ids=DERIVATIVES)
def test_a_derivative_that_is_a_function_is_refused(transform):
    """The operator of Manzyuk et al. (2019), whose derivative is a closure over the perturbation."""
    shift = lambda u: lambda f: lambda x: f(x + u)  # noqa: E731
    with pytest.raises(TensorkenError, match="function"):
        transform(shift)(f64(0.0))


@pytest.mark.feature(109)
@pytest.mark.parametrize("transform", [tk.grad, tk.derivative])
def test_sibling_derivatives_inside_one_function(transform):
    # f(x) = sin'(x) cos'(x) + (x²)'(sin'(x)); computed side by side on the level of x
    def f(x):
        first, second = tk.grad(tk.sin)(x), tk.derivative(tk.cos)(x)
        return first * second + tk.grad(lambda y: y * y * x)(first)

    x = 0.6
    # = -sin cos + 2 x cos; derivative: sin² - cos² + 2 cos - 2 x sin
    expected = math.sin(x) ** 2 - math.cos(x) ** 2 + 2 * math.cos(x) - 2 * x * math.sin(x)
    assert transform(f)(f64(x)).item() == pytest.approx(expected, rel=1e-12)


# ---- pullbacks are functions too ---------------------------------------------------------------------------


@pytest.mark.feature(88, 108)
@FUNCTIONS
def test_a_pullback_is_differentiated_with_respect_to_its_cotangent(f):
    """The pullback is linear, so its own derivative gives the JVP: reverse over reverse without a second tape of f."""
    direction = f64([0.3, -1.0, 2.0])
    _, pull_back = tk.vjp(f, f64(AT))
    pushed = tk.jvp(f, (f64(AT),), (direction,))[1]
    close(tk.vjp(lambda t: pull_back(t)[0], f64(1.0))[1](direction)[0], array(pushed))
    close(tk.jvp(lambda t: pull_back(t)[0], (f64(1.0),), (f64(2.0),))[1], 2 * array(pull_back(1.0)[0]))
    close(tk.grad(lambda t: (pull_back(t * t)[0] * direction).sum())(f64(3.0)), 6 * array(pushed))


@pytest.mark.feature(88)
def test_a_pullback_made_inside_a_transform_is_used_inside_it():
    def f(x):
        _, pull_back = tk.vjp(lambda y: y * y * x, x)  # pulls t to 2 x² t
        return (pull_back(x)[0] + pull_back(f64(1.0))[0]).sum()  # 2x³ + 2x²

    assert tk.grad(f)(f64(3.0)).item() == 6 * 9.0 + 4 * 3.0
    assert tk.derivative(f)(f64(3.0)).item() == 6 * 9.0 + 4 * 3.0


@pytest.mark.feature(87)
def test_the_jvp_of_a_composition_is_the_composition_of_jvps():
    g, f = tk.sin, lambda x: x * tk.exp(x)
    x, t = f64(AT), f64([1.0, -2.0, 0.5])
    inner = tk.jvp(f, (x,), (t,))
    whole = tk.jvp(lambda x: g(f(x)), (x,), (t,))
    for a, b in zip(tk.jvp(g, (inner[0],), (inner[1],)), whole, strict=True):
        assert array(a).tolist() == array(b).tolist()


@pytest.mark.feature(108)
def test_the_mixed_derivative_of_a_power_is_the_same_in_either_order():
    """d/db d/da a^b = a^(b-1) (1 + b log a), at b = 0 too, where the first derivative is guarded."""
    for a, b in ((2.0, 0.0), (2.0, 1.5), (0.5, -1.0), (3.0, 1.0)):
        expected = a ** (b - 1) * (1 + b * math.log(a))
        for outer, inner in itertools.product((tk.grad, tk.derivative), repeat=2):
            over_base = outer(lambda b, a=a, inner=inner: inner(lambda a: a**b)(f64(a)))(f64(b))
            over_exponent = outer(lambda a, b=b, inner=inner: inner(lambda b: a**b)(f64(b)))(f64(a))
            assert over_base.item() == pytest.approx(expected, rel=1e-14)
            assert over_exponent.item() == pytest.approx(expected, rel=1e-14)


@pytest.mark.feature(196)
def test_powers_at_their_edges_have_finite_derivatives():
    cases = {
        (0.0, 2.0): 0.0,
        (0.0, 1.0): 1.0,
        (0.0, 0.0): 0.0,
        (-3.0, 2.0): -6.0,
        (2.0, 0.0): 0.0,
        (0.0, 3.0): 0.0,
    }
    for (a, b), expected in cases.items():
        assert tk.grad(lambda a, b=b: a**b)(f64(a)).item() == expected
        assert tk.derivative(lambda a, b=b: a**b)(f64(a)).item() == expected
    assert tk.grad(lambda b: f64(0.0) ** b)(f64(2.0)).item() == 0.0
    assert tk.grad(tk.grad(lambda a: a**2.0))(f64(0.0)).item() == 2.0
    assert tk.grad(tk.grad(tk.grad(lambda a: a**2.0)))(f64(0.0)).item() == 0.0
    assert tk.hessian(lambda x: (x**3.0).sum())(f64([0.0, -1.0])).tolist() == [[0.0, 0.0], [0.0, -6.0]]


def test_levels_of_the_result_end_with_the_transform():
    """Derivatives are tensors of the level at which the transform was called."""
    levels = []

    def f(x):
        levels.append(tk.grad(tk.sin)(x).interpreter is x.interpreter)
        levels.append(
            tk.jvp(tk.sin, (1.0,), (1.0,))[1].interpreter is x.interpreter
        )  # stands on the running level
        return x * x

    assert tk.grad(f)(f64(3.0)).interpreter is FUSED
    assert levels == [True, True]
