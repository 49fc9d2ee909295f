"""Laws of a function of arrays: equal to numpy, equal under jit and vmap, derivatives equal to difference quotients."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from core.tests.drawing import Array

TOLERANCE = {"float16": 5e-3, "float32": 2e-5, "float64": 1e-12}


@dataclass(frozen=True)
class Call:
    """The arguments of one call; the numpy arrays among the positional arguments become tensors."""

    positional: tuple[Any, ...]
    keywords: dict[str, Any]

    @property
    def operands(self) -> list[Array]:
        return [x for x in self.positional if isinstance(x, np.ndarray)]

    def of(self, f: Callable[..., Any], operands: Any) -> Any:
        """The result of f with other operands."""
        rest = iter(operands)
        filled = [next(rest) if isinstance(x, np.ndarray) else x for x in self.positional]
        return f(*filled, **self.keywords)


def call(*positional: Any, **keywords: Any) -> Call:
    return Call(positional, keywords)


@dataclass(frozen=True)
class Law:
    """Calls of one function, and which laws hold for it."""

    calls: tuple[Call, ...]
    numpy: Callable[..., Any] | None = None
    """The function to compare with, where it is not numpy's of the same name."""
    known: bool = False
    """Whether the shape of the result depends on the values, so that jit and vmap are refused."""
    smooth: bool = False
    """Whether the derivatives are compared with difference quotients, for operands in float64."""
    batched: bool = True
    """Whether vmap takes the function."""
    wrap: Callable[[Any], Any] = lambda f: f
    """A function of both functions, for arguments that are not arrays."""
    counts: bool = False
    """Whether numpy counts in floats, and our counts are ints."""
    tolerance: float = 1.0
    """A factor of the tolerance."""


def law(*calls: Call, **options: Any) -> Law:
    return Law(calls, **options)


# ---- checks ------------------------------------------------------------------------------------------------


def check(f: Callable[..., Any], oracle: Callable[..., Any], law: Law) -> None:
    """Assert all laws for all calls."""
    f, oracle = law.wrap(f), law.wrap(oracle)
    for one in law.calls:
        tensors = [tk.tensor(x) for x in one.operands]
        found = leaves(one.of(f, tensors))
        with quiet():
            expected = one.of(oracle, one.operands)
        compare(found, leaves(expected), law, one.operands)
        if law.known or not tensors:
            continue
        with quiet():  # every call makes a new function, and jit warns of that
            compiled = tk.jit(lambda *xs, one=one: leaves(one.of(f, xs)))(*tensors)
        compare(compiled, [np.asarray(x) for x in found], law, one.operands)
        if law.batched:
            check_examples(f, one, law, tensors)
        if law.smooth and all(x.dtype == "float64" for x in one.operands):
            check_derivatives(lambda *xs, one=one: leaves(one.of(f, xs)), tensors)


def check_examples(f: Callable[..., Any], one: Call, law: Law, tensors: list[tk.Tensor]) -> None:
    """Assert that vmap equals a loop over two examples."""
    others = [tk.roll(x, 1) for x in tensors]
    stacked = [tk.stack([x, other]) for x, other in zip(tensors, others, strict=True)]
    results = tk.vmap(lambda *xs: leaves(one.of(f, xs)))(*stacked)
    for i, example in enumerate((tensors, others)):
        alone = leaves(one.of(f, example))
        compare([y[i] for y in results], [np.asarray(x) for x in alone], law, one.operands)


def check_derivatives(f: Callable[..., Any], tensors: list[tk.Tensor]) -> None:
    """Assert that JVP and VJP agree with the difference quotient in a random direction, and with each other."""
    rng = np.random.default_rng(1)
    directions = [tk.isnan(x).where(0.0, tk.tensor(rng.standard_normal(x.shape))) for x in tensors]

    def total(*xs: tk.Tensor) -> tk.Tensor:
        weighed = [
            (tk.nan_to_num(y) * tk.cos(tk.arange(y.size, dtype="float64")).reshape(y.shape)).sum()
            for y in f(*xs)
            if y.dtype.kind == "float"
        ]
        return tk.stack(weighed).sum()

    _, slope = tk.jvp(total, tensors, directions)
    gradient = tk.grad(total, tuple(range(len(tensors))))(*tensors)
    pulled = sum(float((g * t).sum()) for g, t in zip(gradient, directions, strict=True))
    h = 1e-6
    ahead, behind = (
        float(total(*[x + sign * h * t for x, t in zip(tensors, directions, strict=True)]))
        for sign in (1, -1)
    )
    quotient = (ahead - behind) / (2 * h)
    np.testing.assert_allclose([float(slope), pulled], quotient, rtol=1e-5, atol=1e-6)


def compare(found: Any, expected: Any, law: Law, operands: list[Array]) -> None:
    """Assert equal shapes, kinds and values; floats have the dtype of the floating-point operands."""
    assert len(found) == len(expected), (len(found), len(expected))
    floats = [x.dtype for x in operands if x.dtype.kind == "f"]
    dtype = str(np.result_type(*floats)) if floats else "float32"
    for mine, theirs in zip(found, expected, strict=True):
        assert isinstance(mine, tk.Tensor), type(mine)
        wanted = np.asarray(theirs)
        assert mine.shape == wanted.shape, (mine.shape, wanted.shape)
        if law.counts and mine.dtype.kind == "int":
            wanted = wanted.astype("int64")
        assert mine.dtype.kind == {"b": "bool", "i": "int", "u": "int", "f": "float"}[wanted.dtype.kind]
        if wanted.dtype.kind == "f" and operands:
            assert str(mine.dtype) == dtype, (mine.dtype, dtype)
            error = TOLERANCE[dtype] * law.tolerance
            np.testing.assert_allclose(np.asarray(mine, "float64"), wanted, rtol=error, atol=error)
        elif wanted.dtype.kind == "f":
            np.testing.assert_allclose(np.asarray(mine), wanted, rtol=1e-6)
        else:
            np.testing.assert_array_equal(np.asarray(mine), wanted)


def leaves(x: Any) -> list[Any]:
    """The tensors or arrays of a result in order."""
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, list | tuple) else [x]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without warnings."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


# ---- operands ----------------------------------------------------------------------------------------------


def floats(*shape: int, dtype: str = "float64", seed: int = 0) -> Array:
    """Different numbers from -4 to 4, far enough from each other and from integers for difference quotients."""
    size = int(np.prod(shape))
    order = np.random.default_rng(seed).permutation(size)
    return ((order + 0.37) * (8.0 / max(size, 1)) - 4.0).reshape(shape).astype(dtype)


def ints(*shape: int, low: int = 0, high: int = 10, dtype: str = "int32", seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def bools(*shape: int, seed: int = 0) -> Array:
    return ints(*shape, high=2, seed=seed).astype(bool)


def with_nan(x: Array) -> Array:
    """The array with some NaN, and a last row of NaN alone if there are several."""
    y = x.copy()
    y.ravel()[1::4] = np.nan
    if y.ndim > 1 and len(y) > 1:
        y[-1] = np.nan
    return y


def gappy(x: Array) -> Array:
    """The array with some NaN, but a number in every row and column."""
    y = x.copy()
    y.ravel()[:: y.shape[-1] + 1] = np.nan
    return y
