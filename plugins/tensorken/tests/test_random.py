"""Functions of random bits: equal results on all backends, their bounds and errors."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import FUSED, STACKS, array
from tensorken_core.errors import ArgumentError, DTypeError, ScalarRangeError, ShapeError
from tensorken_numpy.backend import Numpy

BACKENDS: dict[str, Any] = {**STACKS, "reference": "reference"}
KEY = tk.random.key(42, backend=FUSED)
WORD = 1 << 32
inf = math.inf


def beside(key: Any, values: Any, dtype: str = "float32") -> Any:
    """A tensor at the level of the key."""
    flat = np.array(values, dtype)
    return key.constant(flat.ravel().tolist(), tk.tensor(0, dtype, backend=FUSED).dtype, flat.shape)


class Chosen(Numpy):
    """Numpy with a cipher whose words are chosen."""

    def __init__(self, *words: int) -> None:
        self.words = np.array(words, np.uint32).view(np.int32)

    def threefry2x32(self, key: Any, counter: Any) -> Any:
        return np.resize(self.words, counter.shape)


def chosen(*words: int) -> Any:
    return tk.random.key(0, backend=Chosen(*words))


ONES = WORD - 1

# ---- golden values: of key 42, in every release ------------------------------------------------------------

LOGITS = [[0.0, 1.0, -inf], [2.0, 0.0, 1.0]]
EXACT: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "split": (lambda key: tk.random.split(key, 2), [[-699161599, -63025992], [1946893949, -79456841]]),
    "fold_in": (lambda key: tk.random.fold_in(key, 7), [-419740425, 22718876]),
    "bits": (
        lambda key: tk.random.bits(key, (5,)),
        [1832780943, 270669613, 64467757, -1378843660, -1829035798],
    ),
    "bits64": (
        lambda key: tk.random.bits(key, (3,), "int64"),
        [7871734211187709741, 276886910877598708, -7855648935367878381],
    ),
    "uniform": (
        lambda key: tk.random.uniform(key, (2, 2)),
        [[0.4267275333404541, 0.06302016973495483], [0.015010058879852295, 0.6789628863334656]],
    ),
    "uniform64": (
        lambda key: tk.random.uniform(key, (3,), "float64"),
        [0.4267275666499091, 0.015010069515314584, 0.5741444178995353],
    ),
    "uniform16": (
        lambda key: tk.random.uniform(key, (3,), "float16"),
        [0.42626953125, 0.06298828125, 0.0146484375],
    ),
    "uniform_between": (
        lambda key: tk.random.uniform(key, (3,), minval=-2.0, maxval=5.0),
        [0.9870927333831787, -1.558858871459961, -1.8949296474456787],
    ),
    "bernoulli": (
        lambda key: tk.random.bernoulli(key, 0.3, (8,)),
        [False, True, True, False, False, True, False, True],
    ),
    "randint": (lambda key: tk.random.randint(key, (6,), -3, 10), [2, -3, 4, 6, 5, 5]),
    "randint_all": (lambda key: tk.random.randint(key, (2,), -(2**31), 2**31), [-314702705, -2083015891]),
    "randint64": (
        lambda key: tk.random.randint(key, (3,), 0, 10**15, "int64"),
        [426727566649909, 574144417899535, 687800341230566],
    ),
    "permutation": (lambda key: tk.random.permutation(key, 9), [2, 7, 5, 6, 4, 3, 1, 8, 0]),
    "permutation_of": (
        lambda key: tk.random.permutation(key, beside(key, [[1, 2, 3], [4, 5, 6]]), 1, True),
        [[3.0, 2.0, 1.0], [6.0, 5.0, 4.0]],
    ),
    "choice": (lambda key: tk.random.choice(key, 10, (2, 2)), [[4, 0], [5, 7]]),
    "choice_once": (
        lambda key: tk.random.choice(key, beside(key, [1, 2, 3, 4]), (3,), False),
        [3.0, 4.0, 2.0],
    ),
}
ROUNDED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "normal": (
        lambda key: tk.random.normal(key, (3,)),
        [-0.1847117394208908, -1.5299042463302612, -2.1698241233825684],
    ),
    "normal64": (
        lambda key: tk.random.normal(key, (3,), "float64"),
        [-0.18471174528191164, -2.1698245603977546, 0.18693555179382615],
    ),
    "normal16": (
        lambda key: tk.random.normal(key, (3,), "float16"),
        [-0.1846923828125, -1.5302734375, -2.169921875],
    ),
    "truncated_normal": (
        lambda key: tk.random.truncated_normal(key, -0.5, inf, (3,)),
        [0.2626858353614807, -0.3796203136444092, -0.47073084115982056],
    ),
    "exponential": (
        lambda key: tk.random.exponential(key, (3,)),
        [0.5563942790031433, 0.0650935247540474, 0.015123849734663963],
    ),
    "gumbel": (
        lambda key: tk.random.gumbel(key, (3,)),
        [0.5862780809402466, 2.7319302558898926, 4.1914825439453125],
    ),
    "gumbel64": (
        lambda key: tk.random.gumbel(key, (3,), "float64"),
        [0.5862781993145616, 4.191481602167407, 0.1582281488500173],
    ),
    "categorical": (
        lambda key: tk.random.categorical(key, beside(key, LOGITS), shape=(3, 2)),
        [[1, 2], [1, 2], [1, 0]],
    ),
    "categorical_once": (
        lambda key: tk.random.categorical(key, beside(key, LOGITS), shape=(2, 2), replace=False),
        [[1, 2], [0, 0]],
    ),
    "choice_by_chances": (
        lambda key: tk.random.choice(key, 4, (5,), p=beside(key, [0.1, 0.2, 0.3, 0.4])),
        [2, 3, 3, 2, 2],
    ),
}
CALLS = {name: call for name, (call, _) in {**EXACT, **ROUNDED}.items()}
ON_EACH = each_of("backend", BACKENDS.values())
OF_EACH = pytest.mark.parametrize("name", CALLS)


@ON_EACH
@pytest.mark.parametrize("name", EXACT)
def test_golden_values_are_the_same_everywhere_to_the_last_bit(name: str, backend: Any) -> None:
    call, golden = EXACT[name]
    assert call(KEY.to(backend)).tolist() == golden


@ON_EACH
@pytest.mark.parametrize("name", ROUNDED)
def test_golden_values_that_are_rounded_are_near_everywhere(name: str, backend: Any) -> None:
    call, golden = ROUNDED[name]
    found = call(KEY.to(backend))
    if found.dtype.kind == "int":
        assert found.tolist() == golden
        return
    expected = np.array(golden, str(found.dtype))
    assert (np.abs(array(found) - expected) <= 4 * np.spacing(np.abs(expected))).all()


@OF_EACH
def test_the_golden_values_are_those_of_a_loop_under_vmap(name: str) -> None:
    call, keys = CALLS[name], tk.random.split(KEY, 4)
    loop = np.stack([array(call(keys[i])) for i in range(4)])
    assert np.array_equal(array(tk.vmap(call)(keys)), loop)
    nested = tk.vmap(tk.vmap(call))(tk.random.split(KEY, (2, 2)))
    assert np.array_equal(array(nested).reshape(loop.shape), loop)
    shared = tk.vmap(lambda x: call(KEY), axis_size=3)(tk.zeros((3,), backend=FUSED))
    assert np.array_equal(array(shared), np.stack([array(call(KEY))] * 3))


@OF_EACH
def test_derivatives_see_the_same_values(name: str) -> None:
    call = CALLS[name]
    plain = array(call(KEY))
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append(array(call(KEY)))
        return (call(KEY).astype("float32") * x).sum()

    x = tk.tensor(1.0, backend=FUSED)
    slope = tk.grad(f)(x)
    tk.jvp(tk.grad(f), (x,), (x,))
    assert all(np.array_equal(values, plain) for values in seen)
    assert slope.item() == pytest.approx(plain.astype("float32").sum().item(), rel=1e-6)


@OF_EACH
def test_no_value_is_needed_to_know_shapes(name: str) -> None:
    expected = CALLS[name](KEY)
    written = CALLS[name](tk.symbol("key", (2,), "int32"))
    assert (written.shape, written.dtype) == (expected.shape, expected.dtype)
    if name == "normal":
        assert str(written).count("threefry2x32(") == str(written).count(".erfinv()") == 1


# ---- uniform -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 11), ("float32", 24), ("float64", 53)])
def test_uniform_numbers_are_the_upper_bits(dtype: str, bits: int) -> None:
    wide = dtype == "float64"
    words = array(tk.random.bits(KEY, (5000,), "int64" if wide else "int32"))
    whole = words.view(np.uint64 if wide else np.uint32) >> (64 if wide else 32) - bits
    x = array(tk.random.uniform(KEY, (5000,), dtype))
    assert x.dtype == dtype
    assert np.array_equal(x.astype("float64"), whole.astype("float64") / 2.0**bits)
    assert (whole & 1).mean() == pytest.approx(0.5, abs=0.03)
    assert tk.random.uniform(chosen(0, 0), (2,), dtype).tolist() == [0.0, 0.0]
    assert tk.random.uniform(chosen(ONES, ONES), (2,), dtype).tolist() == [1.0 - 2.0**-bits] * 2


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_upper_bound_is_never_drawn(dtype: str) -> None:
    facts = np.finfo(dtype)
    largest, tiny, least = float(facts.max), float(facts.tiny), float(facts.smallest_subnormal)
    bounds = [
        (0.0, 1.0),
        (1.0, 2.0),
        (-2.0, -1.0),
        (-1.0, 0.0),
        (1.0, 1.0 + float(facts.eps)),
        (1.0 - float(facts.epsneg), 1.0),
        (-1.0, -1.0 + float(facts.epsneg)),
        (3.0, 3.1),
        (-largest, largest),
        (largest / 2, largest),
        (0.0, tiny),
        (-tiny, 0.0),
        (0.0, least),
        (-least, 0.0),
        (-least, least),
        (-0.1, 0.2),
    ]
    for key in (KEY, chosen(ONES, ONES), chosen(0, 0), chosen(ONES, 0)):
        for low, high in bounds:
            x = array(tk.random.uniform(key, (2000,), dtype, low, high))
            first, last = (np.array(bound, dtype) for bound in (low, high))
            assert ((first <= x) & (x < last)).all(), (low, high, x.min(), x.max())
            assert x.dtype == dtype


def test_an_empty_interval_that_is_not_known_gives_its_lower_bound() -> None:
    draw = tk.jit(lambda key, low, high: tk.random.uniform(key, (500,), minval=low, maxval=high))
    for low, high in ((2.0, 2.0), (0.1, 0.1), (3.0, -1.0), (0.0, 0.0)):
        assert set(draw(KEY, low, high).tolist()) == {float(np.float32(low))}


def test_uniform_of_bounds_that_are_tensors() -> None:
    low = tk.tensor([[0.0], [10.0]], backend=FUSED)
    high = tk.tensor([10, 11, 30], backend=FUSED)
    x = array(tk.random.uniform(KEY, (4, 2, 3), minval=low, maxval=high))
    u = array(tk.random.uniform(KEY, (4, 2, 3)))
    expected = np.maximum(array(low) * (1 - u) + array(high) * u, array(low))
    assert np.array_equal(x, expected.astype("float32"))
    for shape in ((), (2,), (3, 3), (2, 1)):
        with pytest.raises(
            ShapeError, match=r"^uniform: m..val of shape \(.*\) does not broadcast to the shape \("
        ):
            tk.random.uniform(KEY, shape, minval=low, maxval=high)


def test_uniform_is_differentiable_by_its_bounds() -> None:
    u = tk.random.uniform(KEY, (4,), "float64")
    low, high = (
        tk.tensor([-1.0, 2.0, 0.0, 5.0], "float64", backend=FUSED),
        tk.tensor(7.0, "float64", backend=FUSED),
    )

    def draw(low: Any, high: Any) -> Any:
        return tk.random.uniform(KEY, (4,), "float64", low, high)

    _, pull_back = tk.vjp(draw, low, high)
    by_low, by_high = pull_back(tk.ones((4,), "float64", backend=FUSED))
    assert by_low.tolist() == pytest.approx((1.0 - u).tolist())
    assert by_high.item() == pytest.approx(u.sum().item())
    tk.testing.check_grads(draw, (low, high))


# ---- normal ------------------------------------------------------------------------------------------------


def ends(bits: int) -> list[int]:
    """Odd numerators over 2**bits at both ends of (-1, 1), and about its middle."""
    top = 2**bits
    far = [top - 1 - 2 * i for i in range(60)]
    far += [top - 1 - 2 ** (1 + i // 4) * (4 + i % 4) for i in range(4 * (bits - 4))]
    near = [2 * i + 1 for i in range(40)] + [2**i + 1 for i in range(1, bits)]
    return [s * n for n in {*far, *near} if 0 < n < top for s in (1, -1) if n % 2]


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "bits"), [("float32", 24), ("float64", 53)])
def test_normal_numbers_are_within_4_units_in_the_last_place(dtype: str, bits: int) -> None:
    """The error of sqrt(2) * erfinv(u) for all u made from random bits, in its full range and in its tails."""
    width = 64 if dtype == "float64" else 32
    words = array(tk.random.bits(KEY, (1500,), f"int{width}")).astype(object) % (1 << width)
    odd = [2 * (int(word) >> width - bits) + 1 - 2**bits for word in words]
    drawn = array(tk.random.normal(KEY, (1500,), dtype)).tolist()
    extremes = ends(bits)
    chosen_words = [((n + 2**bits) >> 1) << width - bits for n in extremes]
    if width == 64:
        chosen_words = [half for word in chosen_words for half in divmod(word, WORD)]
    else:
        chosen_words += [0] * (len(chosen_words) % 2)
    drawn += array(tk.random.normal(chosen(*chosen_words), (len(extremes),), dtype)).tolist()
    worst = 0.0
    with mpmath.workprec(200):
        for numerator, y in zip([*odd, *extremes], drawn, strict=True):
            true = mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(numerator) / 2**bits)
            unit = float(np.spacing(np.array(abs(true), dtype)))
            worst = max(worst, float(abs(mpmath.mpf(y) - true)) / unit)
    assert worst <= 4.0, worst


def test_the_largest_normal_numbers_are_as_the_page_says() -> None:
    assert tk.random.normal(chosen(ONES, ONES), ()).item() == pytest.approx(5.42, abs=0.005)
    assert tk.random.normal(chosen(0, 0), ()).item() == pytest.approx(-5.42, abs=0.005)
    assert tk.random.normal(chosen(ONES, ONES), (), "float64").item() == pytest.approx(8.29, abs=0.005)
    assert array(tk.random.normal(chosen(ONES, ONES), (), "float16")) == np.float16(5.42)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["normal", "exponential", "gumbel", "uniform"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (3, 1, 2)])
def test_shapes_and_dtypes_are_the_requested_ones(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    x = getattr(tk.random, name)(KEY, shape, dtype)
    assert (x.shape, str(x.dtype)) == (shape, dtype) == (array(x).shape, str(array(x).dtype))


def test_location_and_scale_are_differentiable() -> None:
    z = tk.random.normal(KEY, (5,), "float64")

    def draw(mean: Any, deviation: Any) -> Any:
        return (mean + deviation * tk.random.normal(KEY, (5,), "float64")).square().sum()

    mean, deviation = (tk.tensor(v, "float64", backend=FUSED) for v in (0.5, 2.0))
    by_mean, by_deviation = tk.grad(draw, argnums=(0, 1))(mean, deviation)
    assert by_mean.item() == pytest.approx((2.0 * (0.5 + 2.0 * z)).sum().item())
    assert by_deviation.item() == pytest.approx((2.0 * (0.5 + 2.0 * z) * z).sum().item())
    tk.testing.check_grads(draw, (mean, deviation))


# ---- truncated normal, exponential, gumbel -----------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_truncated_normal_numbers_stay_within_their_bounds(dtype: str) -> None:
    bounds = [
        (-1.0, 1.0),
        (0.5, 0.6),
        (2.0, inf),
        (-inf, -2.0),
        (-inf, inf),
        (6.0, 7.0),
        (-9.0, -8.5),
        (30.0, inf),
    ]
    for key in (KEY, chosen(ONES, ONES), chosen(0, 0)):
        for low, high in bounds:
            x = array(tk.random.truncated_normal(key, low, high, (500,), dtype))
            assert x.dtype == dtype
            assert np.isfinite(x).all()
            assert ((np.array(low, dtype) <= x) & (x <= np.array(high, dtype))).all(), (low, high)


def test_without_bounds_it_is_normal() -> None:
    for dtype in ("float32", "float64"):
        x = tk.random.truncated_normal(KEY, -inf, inf, (100,), dtype)
        assert x.tolist() == tk.random.normal(KEY, (100,), dtype).tolist()


def test_truncated_normal_numbers_have_the_shape_of_their_bounds() -> None:
    low = tk.tensor([[-1.0], [0.0]], backend=FUSED)
    x = array(tk.random.truncated_normal(KEY, low, tk.tensor([0.5, 1.0, 2.0], backend=FUSED)))
    assert x.shape == (2, 3)
    assert ((x >= array(low)) & (x <= np.array([0.5, 1.0, 2.0]))).all()
    assert tk.random.truncated_normal(KEY, 0.25, 0.25).item() == 0.25
    with pytest.raises(
        ShapeError, match=r"^truncated_normal: lower of shape \(2, 1\) does not broadcast to the shape \(3,\)"
    ):
        tk.random.truncated_normal(KEY, low, 1.0, (3,))
    with pytest.raises(
        DTypeError, match=r"^truncated_normal: the dtype must be a floating-point dtype, got int32"
    ):
        tk.random.truncated_normal(KEY, -1.0, 1.0, (), "int32")


def test_truncated_normal_numbers_are_differentiable_by_their_bounds() -> None:
    low, high = (
        tk.tensor(v, "float64", backend=FUSED) for v in ([-1.0, 0.01, 1.0, 8.0, -9.0], [0.5, 1.5, 2, 9, -7])
    )
    tk.testing.check_grads(lambda a, b: tk.random.truncated_normal(KEY, a, b, (5,), "float64"), (low, high))


def test_truncated_normal_numbers_in_a_tail_are_as_many_as_near_0() -> None:
    """They increase with the random number that they are made of, on both sides of 0."""
    low, high = tk.tensor([4.5], backend=FUSED), tk.tensor([5.0], backend=FUSED)
    x = array(tk.random.truncated_normal(KEY, low, high, (4000,)))
    assert len(np.unique(x)) > 3900
    order = np.argsort(array(tk.random.normal(KEY, (4000,))))
    assert (np.diff(x[order]) >= 0.0).all()
    mirrored = array(tk.random.truncated_normal(KEY, -high, -low, (4000,)))
    assert (np.diff(mirrored[order]) >= 0.0).all()
    assert np.abs(np.sort(-mirrored) - np.sort(x)).max() < 0.02


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exponential_and_gumbel_numbers_are_finite_and_of_the_upper_bits(dtype: str) -> None:
    bits = {"float32": 24, "float64": 53}[dtype]
    u = np.floor(array(tk.random.uniform(KEY, (2000,), dtype)).astype(np.longdouble) * 2.0 ** (bits - 1))
    u = (2 * u + 1) / 2.0**bits
    e = -np.log1p(-u)
    np.testing.assert_array_max_ulp(array(tk.random.exponential(KEY, (2000,), dtype)), e.astype(dtype), 4)
    g = array(tk.random.gumbel(KEY, (2000,), dtype))
    # The error of the exponential number is at most 4 units, that of the logarithm 2 more.
    assert (np.abs(g - -np.log(e)) <= (4 + 2 * np.abs(g)) * np.finfo(dtype).eps).all()
    for key, end in ((chosen(ONES, ONES), 1), (chosen(0, 0), -1)):
        x, y = (draw(key, (), dtype).item() for draw in (tk.random.exponential, tk.random.gumbel))
        assert 0.0 < x < inf and math.isfinite(y)
        assert x == pytest.approx(bits * math.log(2.0) if end == 1 else 2.0**-bits)


# ---- bernoulli ---------------------------------------------------------------------------------------------


def test_the_sure_and_the_impossible() -> None:
    for key in (KEY, chosen(ONES, ONES), chosen(0, 0)):
        for dtype in ("float16", "float32", "float64", "int32"):
            p = beside(key, [0, 1], dtype)
            assert tk.random.bernoulli(key, p, (50, 2)).tolist() == [[False, True]] * 50
    assert tk.random.bernoulli(KEY, 1, (20,)).tolist() == [True] * 20
    assert not any(tk.random.bernoulli(KEY, 0.0, (20,)).tolist())


def test_bernoulli_is_below_p() -> None:
    p = tk.random.uniform(tk.random.key(1, backend=FUSED), (40, 50))
    u = array(tk.random.uniform(KEY, (40, 50)))
    assert np.array_equal(array(tk.random.bernoulli(KEY, p)), u < array(p))
    wide = p.astype("float64")
    assert np.array_equal(
        array(tk.random.bernoulli(KEY, wide)), array(tk.random.uniform(KEY, (40, 50), "float64")) < array(p)
    )
    x = tk.random.bernoulli(KEY)
    assert (x.shape, x.dtype) == ((), tk.bool)
    assert tk.random.bernoulli(KEY, 0.5, (0,)).tolist() == []
    with pytest.raises(
        ShapeError, match=r"^bernoulli: p of shape \(40, 50\) does not broadcast to the shape \(40,\)"
    ):
        tk.random.bernoulli(KEY, p, (40,))


# ---- randint -----------------------------------------------------------------------------------------------

RANGES = [
    (0, 1),
    (0, 2),
    (-3, 10),
    (0, 2**16 + 1),
    (-(2**31), 2**31),
    (-(2**31), 0),
    (1, 2**31),
    (-(2**31), 2**31 - 1),
    (2**31 - 1, 2**31),
]
WIDE = [
    (0, 10),
    (-(2**63), 2**63),
    (0, 2**33 + 7),
    (-(2**63), 2**63 - 1),
    (5, 2**63),
    (2**63 - 1, 2**63),
    (-(2**40), 3),
]


@pytest.mark.parametrize(("dtype", "bits"), [("int32", 32), ("int64", 64)])
def test_integers_are_products_of_words_and_counts(dtype: str, bits: int) -> None:
    """To the last one: (r * n) >> 2 * bits for the words r of the blocks, at the ends of their range too."""
    size = 1 << bits
    for low, high in RANGES if bits == 32 else WIDE:
        for key in (KEY, chosen(ONES), chosen(0), chosen(ONES, 0), chosen(0, ONES), chosen(1 << 31, ONES, 3)):
            both = array(tk.random.bits(key, (100, 2), dtype)).astype(object) % size
            expected = [low + ((int(a) * size + int(b)) * (high - low) >> 2 * bits) for a, b in both]
            found = tk.random.randint(key, (100,), low, high, dtype)
            assert found.tolist() == expected, (low, high)
            assert found.dtype == tk.tensor(0, dtype).dtype


def test_integers_between_tensors() -> None:
    low, high = tk.tensor([[0], [-100]], backend=FUSED), tk.tensor([1, 50, 2**31 - 1], backend=FUSED)
    x = array(tk.random.randint(KEY, (7, 2, 3), low, high))
    assert ((array(low) <= x) & (x < array(high))).all()
    alone = [tk.random.randint(KEY, (7, 2, 3), a, b) for a, b in ((0, 50), (-100, 50))]
    assert np.array_equal(x[:, 0, 1], array(alone[0])[:, 0, 1])
    assert np.array_equal(x[:, 1, 1], array(alone[1])[:, 1, 1])
    assert np.array_equal(
        array(tk.random.randint(KEY, (7, 2, 3), low, 50)),
        np.stack([array(y)[:, i] for i, y in enumerate(alone)], 1),
    )
    assert np.array_equal(array(tk.random.randint(KEY, (7, 2, 3), 0, high))[..., 1], array(alone[0])[..., 1])


def test_integers_of_one_dtype_between_tensors_of_another() -> None:
    top = tk.tensor(2**31, "int64", backend=FUSED)
    whole = tk.random.randint(KEY, (50,), -(2**31), 2**31)
    assert tk.random.randint(KEY, (50,), -top, top).tolist() == whole.tolist()
    assert whole.dtype == tk.int32
    narrow = tk.tensor(9, backend=FUSED)
    wide = tk.random.randint(KEY, (50,), 0, narrow, "int64")
    assert wide.tolist() == tk.random.randint(KEY, (50,), 0, 9, "int64").tolist()
    assert (
        tk.random.randint(KEY, (50,), -(2**40), narrow, "int64").tolist()
        == tk.random.randint(KEY, (50,), -(2**40), 9, "int64").tolist()
    )


def test_without_integers_to_choose_it_is_the_first_where_that_is_not_known() -> None:
    draw = tk.jit(lambda key, first, last: tk.random.randint(key, (20,), first, last))
    for low, high in ((5, 5), (5, 2), (-(2**31), -(2**31)), (2**31 - 1, -(2**31))):
        a, b = (tk.tensor(v, backend=FUSED) for v in (low, high))
        for first, last in ((low, high), (a, high), (low, b), (a, b)):
            assert set(draw(KEY, first, last).tolist()) == {low}
            with pytest.raises(ArgumentError, match=r"^randint: minval must be below maxval"):
                tk.random.randint(KEY, (20,), first, last)
    assert tk.random.randint(KEY, (0,), 5, 5).shape == (0,)


def test_invalid_bounds_are_refused() -> None:
    with pytest.raises(
        ScalarRangeError, match=r"^randint: maxval must be from -2147483648 to 2147483648, got 2147483649"
    ):
        tk.random.randint(KEY, (2,), 0, 2**31 + 1)
    with pytest.raises(
        ScalarRangeError, match=r"^randint: minval must be from -2147483648 to 2147483647, got 2147483648"
    ):
        tk.random.randint(KEY, (2,), 2**31, 2**31)
    with pytest.raises(DTypeError, match=r"^randint: minval must be an integer, got float32; cast it first"):
        tk.random.randint(KEY, (2,), 0.5, 3)
    with pytest.raises(DTypeError, match=r"^randint: maxval must be an integer, got float64; cast it first"):
        tk.random.randint(KEY, (2,), 0, tk.tensor(3.0, "float64", backend=FUSED))
    with pytest.raises(DTypeError, match=r"^randint: the dtype must be an integer dtype, got float32"):
        tk.random.randint(KEY, (2,), 0, 3, "float32")
    with pytest.raises(
        ShapeError, match=r"^randint: minval of shape \(3,\) does not broadcast to the shape \(2,\)"
    ):
        tk.random.randint(KEY, (2,), tk.tensor([0, 1, 2], backend=FUSED), 3)
    with pytest.raises(
        ShapeError, match=r"^randint: maxval of shape \(3,\) does not broadcast to the shape \(\)"
    ):
        tk.random.randint(KEY, (), 0, tk.tensor([1, 2, 3], backend=FUSED))


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint16", "uint32", "uint64"])
def test_integers_of_other_dtypes(dtype: str) -> None:
    """The bits are those of int32 or int64; integers of any range reach both ends."""
    ends, wide = np.iinfo(dtype), "int64" if dtype == "uint64" else "int32"
    words = array(tk.random.bits(KEY, (50,), dtype))
    assert words.dtype == dtype
    assert np.array_equal(words, array(tk.random.bits(KEY, (50,), wide)).astype(dtype))
    few = array(tk.random.randint(KEY, (50,), 3, 90, dtype))
    assert np.array_equal(few, array(tk.random.randint(KEY, (50,), 3, 90, wide)).astype(dtype))
    for low, high in ((ends.min, ends.min + 2), (ends.max - 1, ends.max + 1)):
        drawn = tk.random.randint(KEY, (50,), int(low), int(high), dtype)
        assert (drawn.dtype, set(drawn.tolist())) == (dtype, {low, high - 1})


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_shapes_of_integers(shape: tuple[int, ...]) -> None:
    for dtype in ("int32", "int64"):
        x = tk.random.randint(KEY, shape, 0, 5, dtype)
        assert (x.shape, str(x.dtype)) == (shape, dtype)


# ---- permutation -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 7, 1000])
def test_a_permutation_is_the_order_of_64_bits_each(n: int) -> None:
    order = tk.random.permutation(KEY, n)
    bits = array(tk.random.bits(KEY, (n,), "int64"))
    # each half is compared as a signed integer
    halves = [array(tk.random.bits(KEY, (n, 2)))[:, i] for i in (1, 0)]
    assert order.tolist() == np.lexsort(halves).tolist()
    assert sorted(order.tolist()) == list(range(n))
    assert order.dtype == tk.int32
    assert len(set(bits.tolist())) == n


def test_equal_bits_keep_their_order() -> None:
    assert tk.random.permutation(chosen(3, 4), 50).tolist() == list(range(50))
    assert tk.random.permutation(chosen(1, 0, 0, 5, 0, 4), 6).tolist() == [2, 5, 1, 4, 0, 3]


def test_slices_are_permuted_along_an_axis() -> None:
    x = tk.tensor(np.arange(24.0, dtype=np.float32).reshape(2, 3, 4), backend=FUSED)
    for axis, n in enumerate((2, 3, 4)):
        order = array(tk.random.permutation(KEY, n))
        expected = np.take(array(x), order, axis)
        assert np.array_equal(array(tk.random.permutation(KEY, x, axis)), expected)
        assert np.array_equal(array(tk.random.permutation(KEY, x, axis - 3)), expected)
        apart = array(tk.random.permutation(KEY, x, axis, independent=True))
        assert np.array_equal(np.sort(apart, axis), array(x))
    rows = tk.tensor([list(range(50))] * 3, backend=FUSED)
    lines = tk.random.permutation(KEY, rows, 1, True).tolist()
    assert lines[0] != lines[1] != lines[2]
    assert tk.random.permutation(KEY, [3, 1, 2]).shape == (3,)
    assert tk.random.permutation(KEY, np.int64(4)).shape == (4,)
    assert sorted(tk.random.permutation(KEY, tk.tensor([True, False], backend=FUSED)).tolist()) == [
        False,
        True,
    ]


def test_a_permuted_tensor_is_differentiable() -> None:
    x = tk.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "float64", backend=FUSED)
    for independent in (False, True):
        tk.testing.check_grads(
            lambda x, own=independent: tk.random.permutation(KEY, x, 0, own).square(), (x,)
        )


def test_values_without_an_order_are_refused() -> None:
    for scalar in (tk.tensor(3, backend=FUSED), 2.5):
        with pytest.raises(
            ArgumentError, match=r"^permutation: need an int or a tensor with an axis, got shape \(\)"
        ):
            tk.random.permutation(KEY, scalar)
    with pytest.raises(ShapeError, match=r"^permutation: sizes must not be negative, got \(-1,\)"):
        tk.random.permutation(KEY, -1)
    for x in (3, tk.zeros((3,), backend=FUSED)):
        with pytest.raises(IndexError, match=r"^permutation: axis 1 is out of range for shape \(3,\)"):
            tk.random.permutation(KEY, x, 1)


# ---- choice ------------------------------------------------------------------------------------------------


def test_choices_with_replacement_are_random_integers() -> None:
    assert tk.random.choice(KEY, 10, (3, 4)).tolist() == tk.random.randint(KEY, (3, 4), 0, 10).tolist()
    x = tk.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], backend=FUSED)
    places = array(tk.random.choice(KEY, 3, (2, 2)))
    assert np.array_equal(array(tk.random.choice(KEY, x, (2, 2), axis=1)), array(x)[:, places])
    assert tk.random.choice(KEY, x).shape == (3,)
    assert tk.random.choice(KEY, 5).shape == ()


def test_choices_without_replacement_differ() -> None:
    for p in (None, tk.tensor([0.5, 0.0, 0.1, 0.2, 0.2], backend=FUSED)):
        for seed in range(20):
            key = tk.random.key(seed, backend=FUSED)
            found = tk.random.choice(key, 5, (4,), replace=False, p=p).tolist()
            assert len(set(found)) == 4
            assert p is None or 1 not in found
    assert sorted(tk.random.choice(KEY, 5, (5,), False).tolist()) == [0, 1, 2, 3, 4]


def test_choices_by_chances_are_where_the_running_sum_passes() -> None:
    for n in (1, 2, 3, 8, 9, 100):
        p = array(tk.random.uniform(tk.random.key(n, backend=FUSED), (n,))) + np.float32(0.01)
        p[::3] = 0.0 if n > 1 else 1.0
        found = tk.random.choice(KEY, n, (500,), p=tk.tensor(p, backend=FUSED)).tolist()
        sums = np.add.accumulate(p)
        wanted = sums[-1] * (1 - array(tk.random.uniform(KEY, (500,))))
        assert found == np.searchsorted(sums, wanted).tolist()
        assert (p[found] > 0).all()
    for key in (chosen(ONES, ONES), chosen(0, 0)):
        assert tk.random.choice(key, 4, p=[0.0, 1.0, 2.0, 0.0]).item() in (1, 2)


def test_choices_are_differentiable_with_respect_to_the_elements() -> None:
    x = tk.tensor([1.0, 2.0, 3.0], "float64", backend=FUSED)
    tk.testing.check_grads(lambda x: tk.random.choice(KEY, x, (5,)).square(), (x,))


def test_choices_that_cannot_be_made_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"^choice: cannot choose 4 of 3 without replacement; draw fewer"):
        tk.random.choice(KEY, 3, (2, 2), replace=False)
    with pytest.raises(ShapeError, match=r"^choice: cannot choose 1 of 0; draw fewer"):
        tk.random.choice(KEY, 0)
    assert tk.random.choice(KEY, 0, (0,)).tolist() == []
    assert tk.random.choice(KEY, 0, (0,), p=tk.zeros((0,), backend=FUSED)).tolist() == []
    with pytest.raises(
        ShapeError,
        match=r"^choice: p must have shape \(3,\), got \(2,\); give one probability for each slice",
    ):
        tk.random.choice(KEY, 3, p=[0.5, 0.5])
    with pytest.raises(ArgumentError, match=r"^choice: need an int or a tensor with an axis, got shape \(\)"):
        tk.random.choice(KEY, tk.tensor(3, backend=FUSED))


# ---- categorical -------------------------------------------------------------------------------------------


def test_a_category_is_where_logit_and_noise_are_largest() -> None:
    logits = tk.random.normal(tk.random.key(1, backend=FUSED), (3, 4, 5))
    noise = array(tk.random.gumbel(KEY, (7, 3, 4, 5)))
    for axis in range(3):
        shape = tuple(n for i, n in enumerate((3, 4, 5)) if i != axis)
        x = tk.random.categorical(KEY, logits, axis)
        assert np.array_equal(
            array(x), (array(logits) + array(tk.random.gumbel(KEY, (3, 4, 5)))).argmax(axis)
        )
        assert (x.shape, x.dtype) == (shape, tk.int32)
        many = tk.random.categorical(KEY, logits, axis - 3, shape=(7, *shape))
        assert np.array_equal(array(many), (array(logits) + noise).argmax(axis + 1))
    assert tk.random.categorical(KEY, [0, 1, 2]).shape == ()
    assert tk.random.categorical(KEY, logits.astype("float64"), shape=(0, 3, 4)).shape == (0, 3, 4)


def test_elements_of_probability_zero_are_never_chosen() -> None:
    logits = tk.tensor([-inf, 0.0, -inf, -60.0], backend=FUSED)
    assert set(tk.random.categorical(KEY, logits, shape=(3000,)).tolist()) == {1}
    assert tk.random.categorical(KEY, tk.full((4,), -inf, backend=FUSED)).item() == 0
    for key in (chosen(ONES, 0), chosen(0, ONES)):
        assert tk.random.categorical(key, beside(key, [-inf, 0.0, -inf, -60.0])).item() == 1


def test_categories_without_replacement_differ() -> None:
    logits = tk.random.normal(tk.random.key(1, backend=FUSED), (3, 6))
    x = array(tk.random.categorical(KEY, logits, shape=(2, 2, 3), replace=False))
    assert x.shape == (2, 2, 3)
    assert all(len(set(x[..., i].ravel().tolist())) == 4 for i in range(3))
    one = tk.random.categorical(KEY, logits, replace=False)
    assert one.tolist() == tk.random.categorical(KEY, logits).tolist()
    assert np.array_equal(array(tk.random.categorical(KEY, logits.T, 0, (2, 2, 3), False)).shape, (2, 2, 3))
    with pytest.raises(
        ShapeError, match=r"^categorical: cannot choose 7 of 6 categories without replacement"
    ):
        tk.random.categorical(KEY, logits, shape=(7, 3), replace=False)


def test_shapes_that_do_not_end_in_that_of_the_logits_are_refused() -> None:
    logits = tk.zeros((3, 6), backend=FUSED)
    for shape in ((), (2,), (3, 2), (6,)):
        with pytest.raises(
            ShapeError, match=r"^categorical: the shape must end in \(3,\), as the logits without"
        ):
            tk.random.categorical(KEY, logits, shape=shape)
    with pytest.raises(IndexError, match=r"^categorical: axis 2 is out of range"):
        tk.random.categorical(KEY, logits, 2)
    with pytest.raises(ShapeError, match=r"^categorical: no elements to reduce"):
        tk.random.categorical(KEY, tk.zeros((3, 0), backend=FUSED))


# ---- printing ----------------------------------------------------------------------------------------------


@each_of("seed", [0, 5, -1, 2**63, 2**64 - 1])
def test_a_key_prints_as_the_call_that_makes_it(seed: int) -> None:
    key = tk.random.key(seed)
    assert repr(key) == str(key) == f"{key}" == f"key({seed % 2**64})"
    for other in (
        *tk.random.split(key),
        tk.random.fold_in(key, 7),
        copy.deepcopy(key),
        pickle.loads(pickle.dumps(key)),
    ):
        again = eval(repr(other), {"key": tk.random.key})
        assert again.tolist() == other.tolist()
    assert repr(pickle.loads(pickle.dumps(key))) == repr(key)


def test_arrays_of_keys_print_as_keys() -> None:
    keys = tk.random.split(tk.random.key(0), (2, 3))
    rows = [f"[{' '.join(repr(key) for key in row)}]" for row in keys]
    assert repr(keys) == f"[{' '.join(rows)}]"
    assert repr(keys[1]) == rows[1]
    assert repr(tk.random.split(tk.random.key(0), 9)).count("key(") == 6
    assert repr(tk.random.split(tk.random.key(0), 0)) == "[]"


def test_results_of_keys_are_plain_tensors() -> None:
    key = tk.random.key(3)
    made = [
        *[
            key + 1,
            key[0],
            key[1:],
            key.reshape((1, 2)),
            key == key,
            tk.stack([key, key]),
            tk.concatenate([key, key]),
        ],
        *[tk.random.bits(key, (2,)), tk.random.randint(key, (2,), 0, 9), tk.random.normal(key, (2,))],
        *[tk.random.permutation(key, 2), tk.jit(tk.random.split)(key), tk.random.split(key)[:, 0]],
    ]
    assert [type(x) for x in made] == [tk.Tensor] * len(made)
    assert f"{key:d}" == "[0 3]"
    assert "key(" not in repr(tk.symbol("k"))
    shown: list[str] = []
    tk.jit(lambda key: shown.append(repr(tk.random.fold_in(key, 1))) or key)(key)
    assert shown[0].endswith("inside trace>")
