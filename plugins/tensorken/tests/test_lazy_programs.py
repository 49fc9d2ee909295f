"""Programs of Lazy: numbers that change become inputs, so that a loop stops making new programs."""

from __future__ import annotations

import gc
import math
import struct
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import tensorken as tk
from core.tests.examples import examples
from core.tests.support import Counting, array
from core.tests.threads import together
from tensorken.lazy.interpreter import Lazy
from tensorken.lazy.programs import MAX_SPECIALIZATIONS
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Literal, Program
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.tensor.tensor import Tensor
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference


class Compiling(Numpy):
    """Numpy that records the programs and the arrays that it gets; it runs programs op by op."""

    def __init__(self) -> None:
        self.programs: list[Program] = []
        self.written: list[Any] = []

    def __repr__(self) -> str:
        return "Compiling()"

    def new(self, shape: Any, data: Any, dtype: Any) -> Any:
        self.written.append((shape, dtype))
        return super().new(shape, data, dtype)

    def compile(self, program: Program) -> Any:
        self.programs.append(program)
        return lambda xs: program.replay(self, xs)


@pytest.fixture
def raw() -> Compiling:
    return Compiling()


def bits(x: Any) -> bytes:
    """The elements of a tensor or an array, bit for bit, except that all NaNs are equal."""
    elements = array(x)
    if elements.dtype.kind == "f":
        elements = np.where(np.isnan(elements), np.nan, elements)
    return elements.tobytes()


def literals(program: Program) -> set[Any]:
    """The literals in the program."""
    return {v.value for e in program.equations for v in e.operands if isinstance(v, Literal)}


# ---- laws --------------------------------------------------------------------------------------------------

WITH_A_NUMBER: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, c: x + c,
    "sub": lambda x, c: c - x,
    "mul": lambda x, c: x * c,
    "square": lambda x, c: (x * c) * (x * c),
    "twice": lambda x, c: (x + c) * c,
    "maximum": lambda x, c: x.maximum(c),
    "where": lambda x, c: (x < c).where(x, c),
    "eq": lambda x, c: x.eq(c).where(x, -x),
    "row": lambda x, c: tk.full((1, x.shape[1]), c, x.dtype, backend=x.interpreter) * x,
    "sum": lambda x, c: (x * c).sum(0, keepdims=True) + x,
    "power": lambda x, c: x * x**2 + c,
}
"""Functions of a matrix and a number."""

CROPPED: dict[str, Callable[[Any, int], Any]] = {
    "rows": lambda x, i: x[i : i + 2],
    "columns": lambda x, i: x[:, i : i + 1] + x,
    "both": lambda x, i: x[i : i + 1, 2 - i : 3 - i] * x,
    "one": lambda x, i: x[i] + x,
    "nothing": lambda x, i: x[i:i].sum(0) + x,
    "gradient": lambda x, i: tk.grad(lambda x: (x[:, i : i + 1] * x[:, :1]).sum())(x),
}
"""Functions of a 4×3 matrix and an index from 0 to 2 that return the matrix's shape, or two rows of it."""


@dataclass(frozen=True)
class Recipe:
    """Functions to apply in order, and their numbers for each of several runs."""

    names: tuple[str, ...]
    runs: tuple[tuple[Any, ...], ...]

    def on(self, x: Tensor, numbers: tuple[Any, ...], steps: list[Tensor] | None = None) -> Tensor:
        """The result; the results of all functions are appended to the list."""
        for name, number in zip(self.names, numbers, strict=True):
            x = (CROPPED if name in CROPPED else WITH_A_NUMBER)[name](x, number)
            if x.shape != (4, 3):
                x = tk.concatenate([x, x])
            if steps is not None:
                steps.append(x)
        return x

    @property
    def crops(self) -> int:
        """The largest number of positions that may change; a gradient pads where the function crops."""
        return sum([{"gradient": 4}.get(name, 2) for name in self.names if name in CROPPED])


@st.composite
def recipes(draw: st.DrawFn, numbers: st.SearchStrategy[Any], names: Any = None) -> Recipe:
    names = tuple(
        draw(st.lists(st.sampled_from(names or sorted(WITH_A_NUMBER | CROPPED)), min_size=1, max_size=5))
    )
    of_each = [st.integers(0, 2) if name in CROPPED else numbers for name in names]
    runs = draw(st.lists(st.tuples(*of_each), min_size=1, max_size=8))
    return Recipe(names, tuple(runs))


ANY = st.sampled_from(
    (0.0, -0.0, 1.0, -1.0, 2.0, 0.1, 1e300, 1e-300, math.inf, -math.inf, math.nan, -math.nan, 3, -1)
)
WHOLE = st.integers(-3, 3).map(float)

MATRIX = np.array(
    [[0.0, -0.0, 1.5], [-2.0, math.nan, math.inf], [-math.inf, 7.0, 0.3], [1e-310, -3.0, 5e-45]]
)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("raw", [Counting(), Reference()], ids=repr)
def test_changing_numbers_give_the_bits_of_eager_execution(raw: RawTensor[Any], dtype: str) -> None:
    """On backends that do not compile, so that no pass changes the order of sums."""

    @settings(max_examples=examples(60), deadline=None)
    @given(recipes(ANY))
    def same(recipe: Recipe) -> None:
        lazy = Lazy(raw)
        data = MATRIX.astype(dtype)
        for numbers in recipe.runs:
            found = recipe.on(tk.tensor(data, backend=lazy), numbers)
            expected = recipe.on(tk.tensor(data, backend=raw), numbers)
            assert bits(found) == bits(expected)

    same()


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_compiled_programs_with_changing_numbers_give_numpys_results(dtype: str, wrapped: bool) -> None:
    """Integers, whose sum does not depend on the order."""
    names = sorted({*WITH_A_NUMBER, *CROPPED} - {"power", *({"gradient"} if dtype.startswith("int") else ())})
    numbers: st.SearchStrategy[Any] = WHOLE.map(int) if dtype.startswith("int") else WHOLE

    @settings(max_examples=examples(40), deadline=None)
    @given(recipes(numbers, names))
    def agrees(recipe: Recipe) -> None:
        lazy: RawTensor[Any] = Lazy(Numpy())
        lazy = Fuse(lazy) if wrapped else lazy
        data = np.arange(-5.0, 7.0).reshape(4, 3).astype(dtype)
        for run in recipe.runs:
            steps: list[Tensor] = []
            expected = recipe.on(tk.tensor(data, backend=Numpy()), run, steps)
            assume(
                dtype != "float32" or all([np.abs(array(x)).max() < 2**20 for x in steps])
            )  # sums are exact
            found = recipe.on(tk.tensor(data, backend=lazy), run)
            np.testing.assert_array_equal(array(found), array(expected))

    agrees()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_input_gives_the_same_bits_as_a_literal(dtype: str) -> None:
    """Also in compiled programs, without the passes that change only numbers: products of numbers, and powers."""
    names = sorted({*WITH_A_NUMBER, *CROPPED} - {"power", "mul", "square", "twice", "row", "sum"})

    @settings(max_examples=examples(60), deadline=None)
    @given(recipes(ANY, names), ANY)
    def same(recipe: Recipe, factor: Any) -> None:
        lazy = Lazy(Numpy())
        data = MATRIX.astype(dtype)
        for i, numbers in enumerate(recipe.runs):
            found, expected = (
                recipe.on(tk.tensor(data, backend=backend), numbers) * (factor * i)
                for backend in (lazy, Lazy(Numpy()))
            )
            assert bits(found) == bits(expected)

    same()


def test_one_structure_has_few_programs() -> None:
    @settings(max_examples=examples(60), deadline=None)
    @given(recipes(WHOLE))
    def bounded(recipe: Recipe) -> None:
        raw = Compiling()
        x = tk.tensor(np.arange(12.0).reshape(4, 3), backend=Lazy(raw))
        for numbers in recipe.runs:
            recipe.on(x, numbers).realize()
        x.realize()
        assert len(raw.programs) <= MAX_SPECIALIZATIONS + 1 + recipe.crops

    bounded()


# ---- what is an input, and what is not -----------------------------------------------------------------------


def test_numbers_are_literals_at_first_and_inputs_once_they_change(
    raw: Compiling,
) -> None:
    x = tk.tensor([1.0, 2.0], backend=Lazy(raw))
    for rate in (0.5, 0.25, 0.125, 0.75):
        assert (x * 3.0 - tk.sin(x) * rate).tolist() == (
            np.float32([3, 6]) - np.float32(np.sin(np.float32([1, 2]))) * np.float32(rate)
        ).tolist()
    first, second = raw.programs
    assert {3.0, 0.5} <= literals(first) and len(first.inputs) == 1
    assert 3.0 in literals(second) and 0.25 not in literals(second)
    assert [(v.shape, v.dtype) for v in second.inputs[1:]] == [((1,), tk.float32)]


def test_the_first_numbers_keep_their_program(raw: Compiling) -> None:
    x = tk.tensor([2.0, 3.0], backend=Lazy(raw))
    for exponent in (2.0, 3.0, 2.0, 5.0, 3.0, 2.0):
        raw.written.clear()
        assert (tk.exp(x) * 0.0 + x**exponent).tolist() == [2.0**exponent, 3.0**exponent]
        assert len(raw.written) == (exponent != 2.0)  # an array of numbers
    assert len(raw.programs) == 2


def test_one_number_of_two_dtypes_is_two_inputs(raw: Compiling) -> None:
    lazy = Lazy(raw)
    x, y = tk.tensor([1.0, 2.0], "float32", backend=lazy), tk.tensor([1.0, 2.0], "float64", backend=lazy)
    for c in (0.1, 0.3, 0.7):
        found = (x * c).astype("float64") + y * c
        assert found.tolist() == [float(np.float32(c)) * k + c * k for k in (1.0, 2.0)]
    assert [(v.shape, v.dtype) for v in raw.programs[-1].inputs[2:]] == [
        ((1,), tk.float32),
        ((1,), tk.float64),
    ]


def test_changing_numbers_of_one_dtype_are_one_array(raw: Compiling) -> None:
    x = tk.tensor(np.arange(10.0, dtype="float32"), backend=Lazy(raw))
    y = tk.tensor(np.arange(4, dtype="int32"), backend=x.interpreter)
    for i in range(6):
        raw.written.clear()
        part = x[i : i + 4] * float(i) + (y + i).astype("float32") * (i + 0.5)
        assert part.tolist() == [(i + k) * i + (k + i) * (i + 0.5) for k in range(4)]
        if i >= 2:
            assert sorted(raw.written, key=str) == [((1,), tk.int32), ((2,), tk.float32)]
    assert len(raw.programs) == 2


def test_equal_numbers_are_one_input_until_they_differ(raw: Compiling) -> None:
    x = tk.tensor([1.0, 2.0], backend=Lazy(raw))

    def moved(a: float, b: float) -> list[float]:
        return (tk.maximum(x * a, x + b) - x / b).tolist()  # type: ignore[no-any-return]

    def expected(a: float, b: float) -> list[float]:
        z = np.float32([1.0, 2.0])
        return (np.maximum(z * np.float32(a), z + np.float32(b)) - z / np.float32(b)).tolist()  # type: ignore[no-any-return]

    for numbers in ((1.0, 1.0), (2.0, 2.0), (4.0, 4.0)):
        assert moved(*numbers) == expected(*numbers)
    assert [v.shape for v in raw.programs[-1].inputs[1:]] == [(1,)] and len(raw.programs) == 2
    for numbers in ((2.0, 4.0), (8.0, 2.0), (2.0, 2.0)):
        assert moved(*numbers) == expected(*numbers)
    assert [v.shape for v in raw.programs[-1].inputs[1:]] == [(2,)] and len(raw.programs) == 3


def test_after_few_programs_all_numbers_are_inputs(raw: Compiling) -> None:
    """As in finite differences."""
    x = tk.tensor([1.0, 2.0], backend=Lazy(raw))
    numbers = [float(i) for i in range(1, 21)]
    for i in range(20):
        changed = [c + 0.5 * (k == i) for k, c in enumerate(numbers)]
        y = x
        for c in changed:
            y = (y + c).maximum(y)
        assert y.tolist() == [1.0 + sum(changed), 2.0 + sum(changed)]
    assert len(raw.programs) == MAX_SPECIALIZATIONS + 1


def test_numbers_that_are_equal_by_chance_stay_correct(raw: Compiling) -> None:
    x = tk.tensor([1.0, 2.0], backend=Lazy(raw))
    for i in range(10):
        assert ((x + 3.0) * float(i) + tk.full((2,), 5.0, backend=x.interpreter)).tolist() == [
            4.0 * i + 5,
            5.0 * i + 5,
        ]
    assert len(raw.programs) == 2


def test_signs_of_zeros_nans_and_types_of_numbers_count_as_changes(raw: Compiling) -> None:
    lazy = Lazy(raw)
    x = tk.tensor([1.0, -1.0], backend=lazy)
    nan = struct.unpack("d", struct.pack("Q", 0x7FF8000000000000))[0]
    for c in (0.0, -0.0, nan, -nan, 0, 1, 1.0, -0.0):
        found = tk.copysign(x, tk.full((2,), c, backend=lazy, dtype="float32"))
        assert np.signbit(array(found)).all() == (math.copysign(1.0, c) < 0)
    for flag in (True, False, False, True):
        condition = tk.full((2,), flag, "bool", backend=lazy)
        assert condition.where(x, -x).tolist() == ([1.0, -1.0] if flag else [-1.0, 1.0])
    for i in (0, 1, 1, 0):
        assert x.gather(tk.full((3,), i, "int32", backend=lazy), 0).tolist() == [[1.0, -1.0][i]] * 3
    for big in (2**31 - 1, -(2**31), 7):
        assert (
            tk.full((1,), big, "int32", backend=lazy) + tk.zeros_like(x[:1]).astype("int32")
        ).tolist() == [big]


def test_the_start_of_a_crop_may_change(raw: Compiling) -> None:
    data = np.array([[0.0, -0.0, math.nan, 1.0], [2.0, -math.inf, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    for dtype in ("float64", "int32", "bool"):
        with np.errstate(invalid="ignore"):
            values = data.astype(dtype)
        x = tk.tensor(values, backend=Lazy(raw))
        raw.programs.clear()
        for i, k in ((0, 0), (1, 1), (2, 2), (0, 2), (1, 3), (2, 0)):
            assert bits(x[i : i + 1, k : k + 1]) == values[i : i + 1, k : k + 1].tobytes()
            assert bits(x[:, k]) == np.ascontiguousarray(values[:, k]).tobytes()
            assert bits(x[i, 1:3]) == values[i, 1:3].tobytes()
        assert len(raw.programs) <= 3 * (MAX_SPECIALIZATIONS + 1)


# ---- loops -------------------------------------------------------------------------------------------------


def trained(backend: Any, steps: int) -> tuple[list[float], list[Any]]:
    """A perceptron trained by Adam with a falling rate: its losses and its final parameters."""
    rng = np.random.default_rng(0)
    x, w, v = (tk.tensor(rng.standard_normal(s), backend=backend) for s in ((40, 5), (5, 6), (6,)))
    y = tk.tensor(rng.standard_normal(40), backend=backend)
    parameters = [w, v]
    means, squares = ([tk.zeros_like(p) for p in parameters] for _ in range(2))

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        w, v = parameters
        return ((tk.tanh(x @ w) @ v - y) ** 2).mean()

    losses = []
    for step in range(1, steps + 1):
        start = step * 8 % 40
        value, gradients = tk.value_and_grad(loss)(parameters, x[start : start + 8], y[start : start + 8])
        rate = 0.1 * (1.0 - step / steps) / (1.0 - 0.9**step)
        root = math.sqrt(1.0 - 0.999**step)
        means = [0.9 * m + 0.1 * g for m, g in zip(means, gradients, strict=True)]
        squares = [0.999 * s + 0.001 * g * g for s, g in zip(squares, gradients, strict=True)]
        parameters = [
            p - rate * m / (s.sqrt() / root + 1e-8)
            for p, m, s in zip(parameters, means, squares, strict=True)
        ]
        losses.append(value.item())
    return losses, [array(p) for p in parameters]


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_training_with_a_falling_rate_makes_few_programs(raw: Compiling, wrapped: bool) -> None:
    lazy: RawTensor[Any] = Lazy(raw)
    losses, found = trained(Fuse(lazy) if wrapped else lazy, 50)
    assert len(raw.programs) <= 6
    expected = trained(Fuse(Numpy()), 50)
    np.testing.assert_allclose(losses, expected[0], rtol=1e-9)
    for a, b in zip(found, expected[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
    assert losses[-1] < losses[0]


def test_training_op_by_op_gives_the_bits_of_eager_training() -> None:
    found, expected = trained(Lazy(Reference()), 12), trained(Reference(), 12)
    assert found[0] == expected[0]
    assert [bits(p) for p in found[1]] == [bits(p) for p in expected[1]]


def test_memory_stays_the_same_while_numbers_change() -> None:
    lazy = Lazy(Numpy())
    x = tk.tensor(np.linspace(0.0, 1.0, 100), backend=lazy)

    def steps(start: int, count: int) -> None:
        y = x
        for i in range(start, start + count):
            y = (tk.sin(y) * (1.0 / (i + 1.5)) + x[i % 50 : i % 50 + 1] * float(i)) * 0.5
            if i % 7 == 0:
                y.realize()

    steps(0, 700)
    programs = len(lazy._programs)
    tracemalloc.start()
    try:
        steps(700, 350)
        gc.collect()
        start = tracemalloc.get_traced_memory()[0]
        steps(1050, 1400)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - start
    finally:
        tracemalloc.stop()
    assert grown < 300_000
    assert len(lazy._programs) == programs and len(lazy._nodes) < 5000


def test_threads_may_change_numbers_of_one_structure() -> None:
    lazy = Lazy(Numpy())
    x = tk.tensor(np.arange(1.0, 101.0), backend=lazy)
    wrong: list[Any] = []

    def work(k: int) -> None:
        for i in range(60):
            y = ((x + float(k)) * float(i))[i : i + 3]
            expected = ((np.arange(1.0, 101.0) + k) * i)[i : i + 3]
            if y.tolist() != expected.tolist():
                wrong.append((k, i))

    together(4, work)
    assert not wrong


def test_a_run_that_fails_keeps_its_numbers() -> None:
    class Failing(Counting):
        broken = False

        def sin(self, x: Any) -> Any:
            return 1 / 0 if self.broken else np.sin(x)

    raw = Failing()
    x = tk.tensor(np.arange(6.0), backend=Lazy(raw))
    for i in range(4):
        y = (tk.sin(x * float(i)) * 2.0 + float(-i))[i : i + 2] + x[i] * (i + 0.5)
        raw.broken = True
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                y.tolist()
        raw.broken = False
        z = np.arange(6.0)
        np.testing.assert_allclose(array(y), (np.sin(z * i) * 2.0 - i)[i : i + 2] + z[i] * (i + 0.5))
