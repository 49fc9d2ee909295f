"""Intervals of the enclosure contain the results of correct backends for every op, and are not much wider."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken_conformance import limits
from tensorken_conformance.enclosure import (
    Enclosure,
    Interval,
    contains,
    enclosed,
    enclosure_for,
    interval,
    width,
)
from tensorken_conformance.enclosure.interpreter import RULES
from tensorken_conformance.enclosure.interval import exactly, stepped
from tensorken_conformance.numbers.host_arrays import flat_buffer
from tensorken_conformance.programs.draft import ENCLOSED
from tensorken_core.errors import DTypeError, TensorkenError
from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.dtypes import DTYPES, FLOATS, DType, integer_bounds
from tensorken_core.language.op import OPS, Op, run
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

Array = np.ndarray[Any, Any]

SPECIALS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    0.5,
    -3.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-8,
    100.0,
    -1000.0,
    1e-45,
    6e-8,
    3e38,
]
INTEGERS = [0, 1, -1, 2, 3, 7, -5, 31, 32, 63, 64]

ENCLOSURE = Enclosure()


def drawn(rng: random.Random, op: Op, dtype: DType, shape: tuple[int, ...], wild: bool) -> Array:
    """Random values for an op; with `wild`, half of them are special values."""
    count = int(np.prod(shape, dtype=int))
    if dtype.kind == "bool":
        values: list[Any] = [rng.random() < 0.5 for _ in range(count)]
    elif dtype.kind == "int":
        least, most = integer_bounds(dtype)
        ends = [max(least, -(2**31)), min(most, 2**31 - 1)] if wild else []
        values = [rng.choice([n for n in INTEGERS if n >= least] + ends) for _ in range(count)]
    else:
        low, high = op.domain
        values = [
            rng.choice(SPECIALS)
            if wild and rng.random() < 0.5
            else rng.choice((rng.uniform(low, high), rng.gauss(0, 4)))
            for _ in range(count)
        ]
    with np.errstate(over="ignore"):
        return np.array(values, dtype.name).reshape(shape)


def widened(rng: random.Random, values: Array, dtype: DType) -> Interval:
    """Random intervals that contain the values."""
    x = exactly(values, dtype)

    def choices(options: list[float]) -> Array:
        return np.array([rng.choice(options) for _ in range(values.size)], float).reshape(values.shape)

    if dtype.kind == "bool":
        uncertain = choices([0, 0, 1]) > 0
        return Interval(values & ~uncertain, values | uncertain, x.maybe_nan, dtype)
    if dtype.kind == "int":
        lowest, highest = np.iinfo(dtype.name).min, np.iinfo(dtype.name).max
        down, up = choices([0, 0, 1, 50]).astype(np.int64), choices([0, 0, 1, 50]).astype(np.int64)
        wide = values.astype(np.int64)
        low, high = np.maximum(wide, lowest + down) - down, np.minimum(wide, highest - up) + up
        return Interval(low, high, x.maybe_nan, dtype)
    radii = [0.0, 0.0, 1e-7, 1e-3, 0.3, 2.0, 10.0]
    with np.errstate(all="ignore"):
        low = stepped(np.where(x.empty, x.low, x.low - choices(radii)), 0, dtype.name)
        high = stepped(np.where(x.empty, x.high, x.high + choices(radii)), 0, dtype.name)
    number = x.empty & (choices([0, 1]) > 0)
    low, high = np.where(number, -1.0, low), np.where(number, 2.0, high)
    return Interval(low, high, x.maybe_nan | (choices([0] * 9 + [1]) > 0), dtype)


def contains_each(x: Interval, values: Array) -> Array:
    """Where the intervals contain the values."""
    if x.dtype.kind != "float":
        return (x.low <= values) & (values <= x.high)
    wide = values.astype(np.float64)
    return np.where(np.isnan(wide), x.maybe_nan, (x.low <= wide) & (wide <= x.high))


def operands(
    op: Op, dtype: DType, rng: random.Random, wild: bool
) -> Iterator[tuple[list[Array], tuple[Any, ...]]]:
    """Operands and params for each sample of an op that accepts the dtype."""
    for shapes, params in op.samples:
        if op.name == "cast":
            params = (rng.choice(ENCLOSED),)
        arrays = []
        for number, shape in enumerate(shapes):
            role = op.operand_kinds[number] if op.operand_kinds else "data"
            if role == "indices":
                size = params[1] if op.name == "scatter_add" else shapes[0][params[0]]
                arrays.append(np.array([rng.randrange(size) for _ in range(shape[0])], "int32"))
            else:
                data = DTYPES["bool"] if role == "condition" else dtype
                arrays.append(drawn(rng, op, data, shape, wild and op.adjust_samples is None))
        if op.adjust_samples is not None and dtype.kind == "float":
            rows, columns = shapes[0][-2:]
            arrays[0] = arrays[0] + (np.eye(rows, columns) * 6 * np.arange(1, rows + 1)[:, None]).astype(
                dtype.name
            )
            if op.name == "pinv":
                arrays[1] = arrays[1] * 0
        try:
            op.result_dtype(tuple([DTYPES[x.dtype.name] for x in arrays]), params)
        except TensorkenError:
            continue
        yield arrays, params


@pytest.mark.parametrize("name", sorted(RULES))
def test_intervals_contain_the_results_of_backends(name: str) -> None:
    op, rng = OPS[name], random.Random(name)
    compared = 0
    for dtype in ENCLOSED:
        for mode in ("plain", "wild", "wide", "wide and wild"):
            for arrays, params in operands(op, dtype, rng, "wild" in mode):
                dtypes = [DTYPES[x.dtype.name] for x in arrays]
                if "wide" in mode and op.adjust_samples is None:
                    inputs = [widened(rng, x, d) for x, d in zip(arrays, dtypes, strict=True)]
                else:
                    inputs = [exactly(x, d) for x, d in zip(arrays, dtypes, strict=True)]
                enclosing = ENCLOSURE.interpret(op, inputs, params)
                for backend in (Numpy(), Reference()):
                    tensors = [
                        backend.new(x.shape, flat_buffer(x), d) for x, d in zip(arrays, dtypes, strict=True)
                    ]
                    results = run(backend, op, tensors, params)
                    pairs = (
                        zip(enclosing, results, strict=True)
                        if isinstance(results, tuple) and op.results != 1
                        else [(enclosing, results)]
                    )
                    for y, result in pairs:
                        got = np.array(backend.ravel(result), y.dtype.name).reshape(y.shape)
                        assert backend.shape(result) == y.shape
                        inside = contains_each(y, got)
                        assert inside.all(), (mode, dtype, arrays, params, got, y.low, y.high, y.maybe_nan)
                        compared += 1
    assert compared


ELEMENTARY = [
    name
    for name, op in OPS.items()
    if op.elementwise and op.arity == 1 and name not in ("to_bits", "from_bits", "signbit", "round", "floor")
]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", [*ELEMENTARY, "add", "sub", "mul", "div", "pow", "atan2", "hypot"])
def test_the_width_for_exact_operands_is_about_twice_the_declared_error(name: str, dtype: DType) -> None:
    op, rng, declared = OPS[name], random.Random(name), 3
    low, high = op.domain
    values = [
        np.array([rng.uniform(low, high) for _ in range(200)], dtype.name) for _ in range(op.arity or 1)
    ]
    enclosure = Enclosure(Capabilities(ulp={"*": declared}))
    y = enclosure.interpret(op, [exactly(x, dtype) for x in values], ())
    own = 64 if dtype is tk.float64 else 1  # the error of the ends, which are computed in float64
    allowed = min(declared, limits.largest(name, dtype.name, 2))
    steps = allowed if name not in ("neg", "abs", "sign", "relu", "trunc", "ceil") else 0
    assert (width(y) <= 2 * (declared + own)).all() and (width(y) >= 2 * steps).all()


def test_the_interval_of_a_correctly_rounded_op_is_one_number() -> None:
    enclosure = Enclosure(Capabilities(ulp={"*": 0}))
    x, y = tk.tensor([1.0, 2.0, 0.1], backend=enclosure), tk.tensor([3.0, 7.0, 0.3], backend=enclosure)
    for z in (x + y, x - y, x * y, x / y, tk.sqrt(x), tk.abs(-x), tk.maximum(x, y)):
        assert (width(interval(z)) == 0).all()
    low, high, maybe_nan = enclosed(x / y)
    assert low.tolist() == high.tolist() == (np.float32([1, 2, 0.1]) / np.float32([3, 7, 0.3])).tolist()
    assert not maybe_nan.any()


def test_the_interval_of_a_sum_is_gamma_times_the_sum_of_magnitudes() -> None:
    x = np.array([1.0, -1.0, 1e-3, 0.5], "float32")
    low, high, _ = enclosed(tk.tensor(x, backend=Enclosure(Capabilities(ulp={"*": 0}))).sum())
    unit, size = 2.0**-24, float(np.abs(x).astype(float).sum())
    bound = 5 * unit / (1 - 5 * unit) * size
    assert 0.9 * bound < (high - low) / 2 < 1.1 * bound


def test_small_function_values_exclude_zero() -> None:
    x = tk.tensor([1e-6, 1e-3], backend=Enclosure())
    assert not contains(tk.sin(x), np.zeros(2, "float32")).any()
    assert contains(tk.sin(x), np.sin(np.array([1e-6, 1e-3], "float32"))).all()


def test_uncertain_decisions_include_both_results() -> None:
    enclosure = Enclosure(Capabilities(ulp={"exp": 2, "log": 2}))
    x = tk.tensor([2.0], backend=enclosure)
    near = tk.log(tk.exp(x))  # about 2
    low, high, _ = enclosed(tk.where(near > 2.0, 10.0, -10.0))
    assert (low, high) == (-10.0, 10.0)
    low, high, _ = enclosed(tk.floor(near))
    assert (low, high) == (1.0, 2.0)
    low, high, _ = enclosed(near.astype("int32"))
    assert (low, high) == (1, 2)


def test_declared_flushing_includes_zero_for_subnormals() -> None:
    small = np.array([1e-40], "float32")
    flushing = Enclosure(Capabilities(ulp={"*": 0}, flushes_subnormals=("float32",)))
    keeping = Enclosure(Capabilities(ulp={"*": 0}))
    for enclosure, zero in ((flushing, True), (keeping, False)):
        y = tk.tensor(small, backend=enclosure) * 2.0
        assert contains(y, small * 2).all() and contains(y, small * 0).all() == zero


def test_enclosures_contract_sums_of_products_where_the_backend_does() -> None:
    """The products cancel: their difference is exact, but the sums of each are not."""
    numbers = np.array([[[1.9, 2.0]], [[-0.4, 0.0]]], "float32")

    def f(x: Any) -> Any:
        a, b = x[..., :1], x[..., 1:]
        return (a * a - a * b).sum(0)

    for backend in (Fuse(Numpy()), tk.Lazy(Numpy())):
        got = np.asarray(tk.jit(f)(tk.tensor(numbers, backend=backend)))
        assert contains(f(tk.tensor(numbers, backend=enclosure_for(backend))), got).all()
    plain = f(tk.tensor(numbers, backend=enclosure_for(tk.Lazy(Reference()))))
    assert not contains(plain, got).all()
    exact = np.asarray(tk.jit(f)(tk.tensor(numbers, backend=tk.Lazy(Reference()))))
    assert contains(plain, exact).all()


def test_derivatives_and_batches_run_on_an_enclosure() -> None:
    def f(x: Any, w: Any) -> Any:
        return (tk.tanh(x @ w) * tk.exp(-x.sum())).sum()

    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(3, 4)).astype("float32"), rng.normal(size=(4, 2)).astype("float32")
    backend: Any = Fuse(Numpy())
    enclosure = enclosure_for(backend)
    functions = (
        tk.grad(f, 0),
        tk.grad(f, 1),
        lambda x, w: tk.jvp(lambda x: f(x, w), (x,), (x,))[1],
        lambda x, w: tk.hessian(lambda x: f(x, w))(x),
        lambda x, w: tk.vmap(tk.grad(lambda row: (tk.softmax(row) * row).sum()))(x),
    )
    for function in functions:
        got = function(tk.tensor(x, backend=backend), tk.tensor(w, backend=backend))
        bounds = function(tk.tensor(x, backend=enclosure), tk.tensor(w, backend=enclosure))
        assert contains(bounds, np.asarray(got)).all()
        assert np.median(width(interval(bounds))) < 2**14


def test_an_interval_is_not_read_as_a_number() -> None:
    x = tk.exp(tk.tensor([1.0], backend=Enclosure()))
    with pytest.raises(DTypeError, match="use enclosed"):
        x.tolist()
    with pytest.raises(DTypeError, match="must stand on an Enclosure"):
        enclosed(tk.tensor([1.0], backend=Numpy()))


def test_an_op_without_a_rule_has_an_unbounded_interval() -> None:
    missing = [name for name, op in OPS.items() if name not in RULES and op.method]
    assert not missing
    op = Op("without_rule", 1, lambda x: x, lambda d: d, body=lambda x: x + 1)
    low, high, _ = enclosed(tk.tensor([1.0], backend=Enclosure()).apply(op))
    assert (low, high) == (-np.inf, np.inf)
