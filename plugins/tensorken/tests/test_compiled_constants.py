"""Every compiler gets programs whose constants are representations of the backend, in every nesting of transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tensorken as tk
from core.tests.each import each_of
from core.tests.examples import examples
from core.tests.support import Strict, array, f64
from plugins.tensorken.tests import test_random_nesting
from plugins.tensorken.tests.test_random_nesting import PARTS, TRANSFORMS, Function
from tensorken.lazy.interpreter import Lazy
from tensorken.programs.execution import with_compiler
from tensorken.programs.names import all_programs
from tensorken_core.host.plugin import hookimpl
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Program
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.rewriting.shape_tracker import ShapeTracker
from tensorken_core.tensor.tensor import Tensor
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

pytestmark = pytest.mark.filterwarnings("ignore::tensorken_core.errors.RetraceWarning")  # each row jits anew


class Witness:
    """A compiler that compiles nothing and notes each constant that is not the backend's own."""

    def __init__(self) -> None:
        self.offered = 0
        self.constants = 0
        self.inner = 0
        self.wrong: list[str] = []

    @hookimpl
    def compile(self, program: Program, backend: RawTensor[Any]) -> None:
        self.offered += 1
        own = type(backend.full((1,), 1, tk.int32))
        for p in all_programs(program):
            self.inner += p is not program
            for x in p.constants.values():
                self.constants += 1
                raw = isinstance(x.representation, np.ndarray if own is np.ndarray else own)
                if x.interpreter is not backend or not raw:
                    found = f"{type(x.representation).__name__} of {x.interpreter!r}"
                    self.wrong.append(f"{program.name}, {p.name}: {found}, not of {backend!r}")


@pytest.fixture
def witness() -> Iterator[Witness]:
    found = Witness()
    with with_compiler(found.compile, "witness"):
        yield found


BACKENDS: dict[str, Callable[[], RawTensor[Any]]] = {
    "numpy": Numpy,
    "Fuse over numpy": lambda: Fuse(Numpy()),
    "Lazy over numpy": lambda: Lazy(Numpy()),
    "ShapeTracker over numpy": lambda: ShapeTracker(Numpy()),
    "Lazy over Fuse over numpy": lambda: Lazy(Fuse(Numpy())),
    "Fuse over reference": lambda: Fuse(Reference()),
}

LARGE = np.linspace(-1.0, 1.0, 3 * 2000).reshape(2000, 3)
"""A constant that no pass folds."""


def _large() -> Tensor:
    return tk.tensor(LARGE)


def _ruled(g: Function) -> Function:
    """A function whose rules have constants of their own."""
    f = tk.custom_jvp(lambda x: g(x) + _large()[0])
    f.defjvp(lambda xs, ts: (f(*xs), tk.jvp(g, xs, ts)[1] + ts[0] * (_large()[1] - _large()[1])))
    return f


def _ruled_back(g: Function) -> Function:
    f = tk.custom_vjp(lambda x: g(x) + _large()[0])
    f.defvjp(lambda x: (f(x), x), lambda x, t: (tk.vjp(g, x)[1](t)[0] + 0.0 * t * (_large() * t).sum(0),))
    return f


def _scanned(f: Function, x: Tensor) -> Tensor:
    large = _large()[:3]
    return tk.scan(lambda c, row: (f(c + row).sin(), None), x, large)[0]


CONTROL_FLOW: dict[str, Callable[[Function], Function]] = {
    "scan": lambda f: lambda x: _scanned(f, x),
    "fori": lambda f: lambda x: tk.fori_loop(0, 2, lambda i, c: (f(c) * _large()[i]).sin(), x),
    "while": lambda f: (
        lambda x: tk.while_loop(
            lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1]).sin() + _large()[0]), (0, x)
        )[1]
    ),
    "cond": lambda f: (
        lambda x: tk.cond(x.sum() > 0.0, lambda x: f(x) * _large()[3], lambda x: (_large() * f(x)).sum(0), x)
    ),
    "jit": lambda f: tk.jit(lambda x: f(x) + (_large() * x).sum(0)),
    "checkpoint": lambda f: tk.checkpoint(lambda x: f(x) + (_large() * x).sum(0)),
    "custom_jvp": _ruled,
    "custom_vjp": _ruled_back,
    "elementwise": lambda f: (
        lambda x: tk.elementwise(lambda x: x.sin() * 2.0, lambda x: x.cos() * 2.0)(f(x) + _large()[5])
    ),
    "gather": lambda f: (
        lambda x: f(x.gather(tk.tensor([2, 0, 1]), 0)) + _large().gather(tk.tensor([7]), 0)[0]
    ),
}

DIFFERENTIATED: dict[str, Callable[[Function], Function]] = {
    "": lambda f: f,
    "grad": lambda f: tk.grad(lambda x: (f(x) * x).sum()),
    "jvp": lambda f: lambda x: tk.jvp(f, (x,), (_large()[9],))[1],
    "vmap": lambda f: lambda x: tk.vmap(lambda y: f(y) * x)(_large()[:2]).sum(0),
}


def _start(x: Tensor) -> Tensor:
    return (tk.take(x, tk.tensor([1, 0, 2])) * tk.tensor([0.5, 0.25, 2.0], tk.float64)).tanh()


def _agree(f: Function, witness: Witness, expected: np.ndarray[Any, Any], backend: RawTensor[Any]) -> None:
    with tk.use_backend(backend):
        found = array(tk.jit(f)(tk.tensor([0.4, -0.7, 1.1], tk.float64)))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert not witness.wrong, witness.wrong[0]


@each_of("backend", BACKENDS)
def test_the_gradient_of_a_jitted_function_with_a_constant_index(witness: Witness, backend: str) -> None:
    with tk.use_backend(BACKENDS[backend]()):
        i, x = tk.tensor([1, 0, 1]), tk.ones((3, 2))
        fast = tk.jit(lambda x: (tk.cumsum(x, axis=0) * tk.take(x, i, axis=0)).sum())
        fast(x), tk.grad(fast)(x), tk.jit(tk.grad(fast))(x).tolist()
    assert witness.offered >= 3 and witness.constants
    assert not witness.wrong, witness.wrong[0]


@each_of("outer", CONTROL_FLOW)
@pytest.mark.parametrize("inner", CONTROL_FLOW)
@pytest.mark.parametrize("backend", ["Fuse over numpy", "Lazy over numpy"])
def test_constants_within_control_flow_and_rules(
    witness: Witness, backend: str, inner: str, outer: str
) -> None:
    with_backend, op_by_op = BACKENDS[backend](), Fuse(Strict())
    for name, transform in DIFFERENTIATED.items():
        if "while" in (inner, outer) and (name == "grad" or "custom_vjp" in (inner, outer)):
            continue  # reverse mode needs a known number of steps
        f = transform(CONTROL_FLOW[outer](CONTROL_FLOW[inner](_start)))
        with tk.use_backend(op_by_op):
            expected = array(f(tk.tensor([0.4, -0.7, 1.1], tk.float64)))
        _agree(f, witness, expected, with_backend)
    assert witness.constants


nestings = st.tuples(
    st.lists(st.sampled_from(sorted(PARTS)), min_size=1, max_size=2),
    st.lists(st.sampled_from(sorted({*TRANSFORMS, *CONTROL_FLOW} - {"while"})), min_size=1, max_size=4),
    st.integers(0, 15),
)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@given(nestings)
@settings(max_examples=examples(60))
def test_constants_of_random_nestings(backend: str, nesting: tuple[list[str], list[str], int]) -> None:
    parts, transforms, jits = nesting

    def f(x: Tensor) -> Tensor:
        for part in parts:
            x = PARTS[part](x)
        return x

    for i, name in enumerate(transforms):
        f = TRANSFORMS[name][0](f) if name in TRANSFORMS else CONTROL_FLOW[name](f)
        f = tk.jit(f) if jits >> i & 1 else f
    witness, of_backend = Witness(), partial(f64, backend=None)
    with (
        with_compiler(witness.compile, "witness"),
        tk.use_backend(BACKENDS[backend]()),
        mock.patch.object(test_random_nesting, "f64", of_backend),
    ):
        array(tk.jit(f)(of_backend([0.4, -0.7, 1.1])))
    assert not witness.wrong, witness.wrong[0]
