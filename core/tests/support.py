"""Backends for the tests of core, and functions that create and read tensors."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import tensorken as tk
from tensorken.lazy.interpreter import Lazy
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.rewriting.shape_tracker import ShapeTracker
from tensorken_core.tensor.tensor import Tensor
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference


class Strideless(Numpy):
    """Numpy like a device without strides: every movement op copies, and nothing broadcasts."""

    broadcasts = False

    def __repr__(self) -> str:
        return "Strideless()"

    def expand(self, x: Any, shape: Any) -> Any:
        return np.array(np.broadcast_to(x, shape))

    def permute(self, x: Any, order: Any) -> Any:
        return np.array(x.transpose(order), order="C")  # ascontiguousarray would give a scalar an axis

    def crop(self, x: Any, limits: Any) -> Any:
        return np.array(super().crop(x, limits))

    def flip(self, x: Any, axes: Any) -> Any:
        return np.array(np.flip(x, axes))


class Strict(Strideless):
    """A strideless numpy that checks the guarantees of core to a backend: equal shapes, one dtype, normalised params.

    It does not compile, so it sees each op of a program.
    """

    compile = RawTensor.compile

    def __repr__(self) -> str:
        return "Strict()"


def _checked(op: Op, method: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any) -> Any:
        count = len(args) - len(op.params) if op.arity is None else op.arity
        operands, params = args[:count], args[count:]
        for x in operands:
            assert isinstance(x, np.ndarray | np.generic), f"{op.name} got {type(x).__name__}"
        shape = op.shape(
            *[x.shape for x in operands], *params
        )  # raises where an operand would have to broadcast
        dtype = op.dtype(*[self.dtype(x) for x in operands], *params)
        hash(params)  # tuples, not lists
        if op.params == ("axes",):
            assert params[0] == tuple(sorted(set(params[0]))), f"{op.name} got axes {params[0]}"
        y = method(self, *args)
        facts = [(y, shape, dtype)] if op.results == 1 else list(zip(y, shape, dtype, strict=True))
        for part, size, kind in facts:
            assert part.shape == size, f"{op.name} gives shape {part.shape}, its rule says {size}"
            assert self.dtype(part) is kind, f"{op.name} gives {part.dtype}, its rule says {kind}"
        return y

    return call


for _op in OPS.values():
    if _op.method and Numpy().has(_op):
        setattr(Strict, _op.name, _checked(_op, getattr(Strideless, _op.name)))


class Required(Numpy):
    """Numpy with only the required ops: all others run their bodies."""

    def __repr__(self) -> str:
        return "Required()"


for _op in OPS.values():
    if _op.body is not None and _op.method:
        setattr(Required, _op.name, getattr(RawTensor, _op.name))


class Counting(Numpy):
    """Numpy that counts the calls of each op, by name and by (name, shape of the result).

    It does not compile, so each op of a program is a call.  It has no method `matmul`, so a product of matrices is
    composed of other ops.
    """

    compile = RawTensor.compile
    matmul = RawTensor.matmul  # type: ignore[attr-defined]

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.sizes: Counter[tuple[str, tuple[int, ...]]] = Counter()

    def __repr__(self) -> str:
        return "Counting()"

    def clear(self) -> None:
        self.calls.clear()
        self.sizes.clear()


def _counted(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any) -> Any:
        y = method(self, *args)
        self.calls[name] += 1
        for part in y if isinstance(y, tuple) else (y,):
            self.sizes[name, part.shape] += 1
        return y

    return call


for _op in OPS.values():
    if _op.method and Numpy().has(_op) and _op.name not in vars(Counting):
        setattr(Counting, _op.name, _counted(_op.name, getattr(Numpy, _op.name)))


class Nothing(RawTensor[str]):
    """A backend that only records the name of each op, without values, shapes and dtypes."""

    def new(self, shape: Any, data: Any, dtype: Any) -> str:
        return "new"

    def full(self, shape: Any, value: Any, dtype: Any) -> str:
        return "full"

    def shape(self, x: str) -> Any:
        raise AssertionError("the backend was asked for a shape")

    def dtype(self, x: str) -> Any:
        raise AssertionError("the backend was asked for a dtype")

    def has(self, op: Any) -> bool:
        return True

    def interpret(self, op: Any, operands: Any, params: Any) -> Any:
        return op.name if op.results == 1 else (op.name,) * op.results


FUSED: Fuse[Any] = Fuse(Numpy())

STACKS: dict[str, RawTensor[Any]] = {
    "Fuse(Numpy())": FUSED,
    "Numpy()": Numpy(),
    "Fuse(Strideless())": Fuse(Strideless()),
    "Fuse(Strict())": Fuse(Strict()),
    "Strict()": Strict(),
    "ShapeTracker(Fuse(Numpy()))": ShapeTracker(Fuse(Numpy())),
    "Fuse(ShapeTracker(Numpy()))": Fuse(ShapeTracker(Numpy())),
    "Fuse(Fuse(Strideless()))": Fuse(Fuse(Strideless())),
    "Fuse(Required())": Fuse(Required()),
    "Required()": Required(),
}
"""Every way to stack the interpreters of core over numpy; all mean the same."""

LAZIES: dict[str, RawTensor[Any]] = {
    "Lazy(Numpy())": Lazy(Numpy()),
    "Fuse(Lazy(Numpy()))": Fuse(Lazy(Numpy())),
    "Lazy(Fuse(Numpy()))": Lazy(Fuse(Numpy())),
    "Lazy(Reference())": Lazy(Reference()),
    "Fuse(Lazy(Reference()))": Fuse(Lazy(Reference())),
    "Lazy(Numpy()), at most 3 ops": Lazy(Numpy(), max_pending=3),
    "Fuse(Lazy(Counting())), at most 2 ops": Fuse(Lazy(Counting(), max_pending=2)),
    "ShapeTracker(Lazy(Numpy()))": ShapeTracker(Lazy(Numpy())),
}
"""The same with ops that wait."""


def f64(values: Any, backend: Any = FUSED) -> Tensor:
    """A float64 tensor."""
    return tk.tensor(values, "float64", backend=backend)


def array(x: Any) -> np.ndarray[Any, Any]:
    """The values of a tensor at any level."""
    return np.array(x)


def close(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    """Assert that two trees have equal shapes and numbers up to rounding; a list is compared as a tensor."""
    got, wanted = tk.tree.leaves(found), tk.tree.leaves(expected, is_leaf=lambda x: isinstance(x, list))
    for x, y in zip(got, wanted, strict=True):
        x, y = array(x), array(y)
        assert x.shape == y.shape, f"{x.shape} is not {y.shape}"
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def peak_of(call: Callable[[], Any]) -> int:
    """The peak of allocated bytes during a call, minus those allocated before it."""
    tracemalloc.start()
    try:
        call()
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        result = call()
        peak = tracemalloc.get_traced_memory()[1]
        del result
        return peak - before
    finally:
        tracemalloc.stop()
